"""Control flow of TensorFlow 1 becomes functions, which compute the same."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import heald
import pytest
from builders.control_flow_v1 import INT, OPS, ControlFlowBuilder
from builders.random_control_flow import GONE, programs
from harness.dead_values import Endless, normal, run_frames, run_functions
from heald.errors import InvalidArgument, NotFound, ResourceExhausted, Unimplemented
from heald.graphs.compiler.functionalize import functionalize
from heald.graphs.graph.graphdef import load
from heald.graphs.graph.traversal import ancestors
from heald.graphs.graph.verifier import verify
from heald.runtime.contract.structural import V1_CONTROL_FLOW
from heald.runtime.service.runtime import runtime
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st


def needed_part(graph, keep):
    names = ancestors(graph.nodes, [item if isinstance(item, str) else item[0] for item in keep])
    return graph.replace(without=graph.nodes.keys() - names)


def functional(graph, keep):
    """The functional form of the part of a graph that `keep` needs, verified."""
    result = functionalize(needed_part(graph, keep), keep, OPS)
    verify(result)
    return result


def ops_of(graph):
    ops = [node.op for node in graph]
    for function in graph.functions.values():
        ops += [node.op for node in function.nodes.values()]
    return ops


def check_functional_form(graph, keep, feeds, *, wild=False):
    """Run a graph and its functional form, and return the form. The two compute the same, and log the same."""
    tensors = [item for item in keep if not isinstance(item, str)]
    graph = needed_part(graph, keep)
    try:
        result = functional(graph, keep)
    except Unimplemented:  # inputs of a loop that are not alive together
        assert wild
        reject()
    assert GONE.isdisjoint(ops_of(result))
    try:
        expected, log = run_frames(graph, tensors, feeds)
    except Endless:
        reject()
    results, found_log = run_functions(result, tensors, feeds)
    assert [*map(normal, results)] == [*map(normal, expected)]
    assert found_log == log
    return result


EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "100"))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
VALUES = st.integers(0, 9)


@MANY
@given(programs(), VALUES, VALUES)
def test_structured_programs_compute_the_same_as_functions(program, x, y):
    graph, keep = program
    check_functional_form(graph, keep, {"x": x, "y": y})


@MANY
@given(programs(wild=True), VALUES, VALUES)
def test_programs_that_mix_values_of_branches_compute_the_same(program, x, y):
    graph, keep = program
    check_functional_form(graph, keep, {"x": x, "y": y}, wild=True)


# Graphs that TensorFlow wrote

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"


def session_graph(name):
    """A graph of TensorFlow, with resource variables instead of reference variables."""
    with heald.Session(load(GRAPHS / f"{name}.pb")) as session:
        return session.graph


@pytest.mark.parametrize(("name", "keep", "expected"), [
    ("v1_cond", ["y", "w"], {"If": 1}),
    ("v1_cond_nested", ["y"], {"StatelessIf": 4}),
    ("v1_cond_grad", ["g"], {"StatelessIf": 1}),
    ("v1_while_cond_inside", ["steps"], {"StatelessWhile": 1, "StatelessIf": 1}),
    ("v1_while_nested", ["a"], {"StatelessWhile": 2}),
    ("v1_while_sideeffects", ["r"], {"While": 1}),
])
def test_graphs_of_tensorflow_become_functional(name, keep, expected):
    graph = needed_part(session_graph(name), keep)
    result = functionalize(graph, keep, runtime().host.registries.ops)
    verify(result)
    op_counts = Counter(op for op in ops_of(result) if op in {"If", "StatelessIf", "While", "StatelessWhile", "_Frame"})
    assert V1_CONTROL_FLOW.isdisjoint(ops_of(result))
    assert op_counts == expected
    assert all(result[name] is graph[name] for name in ("x", "n", "Greater/y") if name in graph)


def test_an_effect_stays_in_its_branch():
    graph = session_graph("v1_cond")
    result = functionalize(needed_part(graph, ["y"]), ["y"], runtime().host.registries.ops)
    then, otherwise = (result.functions[f"cond/If/{branch}"] for branch in ("then", "else"))
    assert [*then.control_ret.values()] == ["cond/AssignAdd/AssignAddVariableOp"]
    assert not otherwise.control_ret
    assert (then.stateful, otherwise.stateful) == (True, False)
    assert "_class" not in then.nodes["cond/AssignAdd/AssignAddVariableOp"].attrs  # the variable is not in the branch


# Single constructs

def two_inputs():
    build = ControlFlowBuilder()
    for name in "xy":
        build.add("Placeholder", dtype=INT, name=name)
    return build


def both_sides(graph, keep):
    """The functional form, compared for both values of the predicate x < y."""
    check_functional_form(graph, keep, {"x": 7, "y": 3})
    return check_functional_form(graph, keep, {"x": 3, "y": 7})


def conditional(build, then, otherwise, predicate=("x", "y")):
    return build.cond(build.op("Less", *predicate), then, otherwise)


def test_a_graph_without_control_flow_is_returned_as_it_is():
    build = two_inputs()
    graph = build.graph()
    assert functionalize(graph, [(build.op("Add", "x", "y"), 0)], OPS) is graph


def test_outputs_with_one_predicate_become_one_node_and_later_conditionals_another():
    build = two_inputs()
    less = build.op("Less", "x", "y")
    first, other = build.cond(less, lambda: ["x", build.op("Add", "x", "y")], lambda: ["y", build.op("Mul", "y", "y")])
    beside, = build.cond(less, lambda: [build.op("Mul", "x", "x")], lambda: ["x"])
    later, = build.cond(less, lambda: [build.op("Add", first, other)], lambda: [first])
    result = both_sides(build.graph(), [(later, 0), (beside, 0), (other, 0)])
    assert sorted(op for op in ops_of(result) if op == "StatelessIf") == ["StatelessIf"] * 2
    assert result[other].op == "Identity"


def test_branches_around_a_node_outside_stay_as_they_are():
    build = two_inputs()
    less = build.op("Less", "x", "y")
    tensors = []

    def forward(op):
        tensors.append(build.op(op, "x", "y"))
        return tensors[-1:]

    loss, = build.cond(less, lambda: forward("Add"), lambda: forward("Mul"))
    squared = build.op("Mul", loss, loss)
    switch = build.add("Switch", squared, less)
    backward = [build.add("Mul", f"{switch}:1", tensors[1]), build.add("Mul", switch, tensors[0])]
    merge = build.add("Merge", *backward, N=2)
    result = both_sides(build.graph(), [(merge, 0)])
    assert {"Switch", "Merge"} <= {*ops_of(result)}


def test_a_conditional_in_a_branch_that_stays_becomes_a_node():
    """The branches stay, since paths lead from their forward part outside and back."""
    build = two_inputs()
    less = build.op("Less", "x", "y")
    tensors = []

    def forward():
        inner_conditional, = build.cond(build.op("Less", "x", build.const(5)), lambda: [build.op("Mul", "x", "x")],
                                        lambda: ["y"])
        tensors.append(build.op("Add", inner_conditional, "y"))
        return tensors[-1:]

    loss, = build.cond(less, forward, forward)
    squared = build.op("Mul", loss, loss)
    switch = build.add("Switch", squared, less)
    backward = [build.add("Mul", switch, tensors[0]), build.add("Mul", f"{switch}:1", tensors[1])]
    merge = build.add("Merge", *backward, N=2)
    result = both_sides(build.graph(), [(merge, 0)])
    check_functional_form(build.graph(), [(merge, 0)], {"x": 6, "y": 7})
    assert Counter(op for op in ops_of(result) if op in ("StatelessIf", "Merge")) == {"StatelessIf": 2, "Merge": 2}


def test_a_fetch_inside_a_branch_leaves_switch_and_merge():
    build = two_inputs()
    tensors = []

    def branch():
        tensors.append(build.op("Add", "x", "y"))
        return tensors[-1:]

    merge, = conditional(build, branch, lambda: ["y"])
    result = both_sides(build.graph(), [(merge, 0), (tensors[0], 0)])
    assert {"Switch", "Merge"} <= {node.op for node in result}
    assert result[tensors[0]].op == "Add"


def test_the_index_of_the_live_input_is_a_constant_of_each_branch():
    build = two_inputs()
    merge, = conditional(build, lambda: ["x"], lambda: ["y"])
    index = build.op("Add", f"{merge}:1", "x")
    result = both_sides(build.graph(), [(index, 0)])
    assert "Merge" not in ops_of(result)
    merged_index = both_sides(build.graph(), [(merge, 1)])
    assert merged_index[merge].op == "Merge"


def test_a_merge_waits_for_a_branch_that_is_not_taken_without_dying():
    build = two_inputs()
    tensors = []

    def branch():
        tensors.append(build.op("Log", "x"))
        return tensors[-1:]

    conditional(build, branch, lambda: ["y"])
    merge, = conditional(build, lambda: ["x"], lambda: ["y"], predicate=("y", "x"))
    inner = []

    def inner_conditional():
        inner[:] = conditional(build, lambda: ["x"], lambda: ["y"])
        return inner

    outer, = conditional(build, lambda: ["x"], inner_conditional, predicate=("y", "x"))
    for name in (merge, *inner):
        build.nodes[name] = build.nodes[name].replace(controls=tensors)
    both_sides(build.graph(), [(merge, 0), (outer, 0)])


def test_a_conditional_whose_values_nobody_takes_is_a_node_of_the_branch_around_it():
    """A Merge waits for an effect of an inner conditional that has no Merge of its own."""
    build = two_inputs()
    tensors = []

    def branch():
        switch = build.add("Switch", build.here("x"), build.op("Less", "x", build.const(5)))
        tensors.append(build.add("Log", f"{switch}:1"))
        return ["x"]

    merge, = conditional(build, branch, lambda: ["y"])
    build.nodes[merge] = build.nodes[merge].replace(controls=tensors)
    result = both_sides(build.graph(), [(merge, 0)])
    assert sorted(op for op in ops_of(result) if op in ("If", "StatelessIf")) == ["If", "If"]


def counting_loop(build, body, *initial, condition=None):
    """A loop that counts to three, and its Exits. `body` returns the next values of all variables but the counter."""
    limit = build.const(3)

    def next_values(*values):
        return [build.op("Add", values[0], build.const(1)), *body(*values)]

    return build.while_loop(condition or (lambda count, *_: build.op("Less", count, limit)), next_values,
                            [build.const(0), *initial])


def test_a_control_trigger_waits_for_a_branch_of_the_body_without_dying():
    build = two_inputs()
    tensors = []

    def body(count, value):
        def branch():
            tensors.append(build.op("Log", value))
            return tensors[-1:]

        return build.cond(build.op("Less", value, count), branch, lambda: [build.op("Add", value, count)])

    _, end = counting_loop(build, body, "x")
    trigger = build.add("ControlTrigger", controls=tensors)
    following = [name for name, node in build.nodes.items() if node.op == "NextIteration"]
    build.nodes[following[0]] = build.nodes[following[0]].replace(controls=[trigger])
    result = check_functional_form(build.graph(), [(end, 0)], {"x": 1})
    assert {"Switch", "Merge", "_Frame"}.isdisjoint(ops_of(result))


def test_an_effect_that_condition_and_body_share_happens_once():
    build = two_inputs()
    tensors = []

    def condition(count, *_):
        tensors.append(build.op("Log", count))
        return build.op("Less", tensors[0], "x")

    _, end = counting_loop(build, lambda count, value: [build.op("Add", value, build.op("Add", tensors[0], count))],
                           "y",
                           condition=condition)
    result = check_functional_form(build.graph(), [(end, 0)], {"x": 3, "y": 1})
    assert "_Frame" in ops_of(result)


def test_a_value_that_condition_and_body_share_is_computed_in_both():
    build = two_inputs()
    tensors = []

    def condition(count, *_):
        tensors.append(build.op("Add", count, count))
        return build.op("Less", tensors[0], "x")

    _, end = counting_loop(build, lambda count, value: [build.op("Add", value, build.op("Add", tensors[0], count))],
                           "y",
                           condition=condition)
    result = check_functional_form(build.graph(), [(end, 0)], {"x": 5, "y": 1})
    assert "StatelessWhile" in ops_of(result)
    assert all(tensors[0] in result.functions[name].nodes for name in ("While/cond", "While/body"))


@pytest.mark.parametrize("swapped", [False, True])
def test_the_index_of_a_variable_tells_the_first_iteration(swapped):
    build = two_inputs()
    exits = counting_loop(build, lambda _, value: [build.op("Mul", value, value)], "x")
    merges = [name for name, node in build.nodes.items() if node.op == "Merge"]
    if swapped:
        build.nodes[merges[1]] = build.nodes[merges[1]].replace(inputs=build.nodes[merges[1]].inputs[::-1])
    product, = [node for node in build.nodes.values() if node.op == "Mul"]
    build.nodes[product.name] = product.replace(inputs=[product.inputs[0], f"{merges[1]}:1"])
    result = check_functional_form(build.graph(), [(exits[1], 0)], {"x": 5})
    assert "StatelessWhile" in ops_of(result)


def test_an_enter_without_merge_is_alive_in_the_first_iteration():
    build = two_inputs()
    _, end = counting_loop(build, lambda _, value: [value], "x")
    merge = [node for node in build.nodes.values() if node.op == "Merge"][1]
    build.context = build.home[merge.name]
    first = build.add("Log", merge.inputs[0].node)
    build.context = build.root
    out = build.add("Exit", first)
    result = check_functional_form(build.graph(), [(end, 0), (out, 0)], {"x": 5})
    assert "_Frame" in ops_of(result)


def test_a_node_that_runs_after_an_enter_is_alive_in_the_first_iteration():
    build = two_inputs()
    count, end = counting_loop(build, lambda _, value: [value], "x")
    merge = [node for node in build.nodes.values() if node.op == "Merge"][1]
    build.context = build.home[merge.name]
    logged = build.add("Log", merge.name, controls=[merge.inputs[0].node])
    build.context = build.root
    out = build.add("Exit", logged)
    result = check_functional_form(build.graph(), [(count, 0), (end, 0), (out, 0)], {"x": 5})
    assert "_Frame" in ops_of(result)


def dying(build):
    """A loop whose second variable dies in the first iteration, and the names of the Merges and of the Exits."""
    exits = counting_loop(build, lambda _, value: [value], "x")
    following = [node for node in build.nodes.values() if node.op == "NextIteration"][1]
    switches = [name for name, node in build.nodes.items() if node.op == "Switch"]
    build.context = build.home[following.name]
    never = build.add("Add", switches[1], f"{switches[0]}:1")  # of both sides
    build.nodes[following.name] = following.replace(inputs=[never])
    build.context = build.root
    return [name for name, node in build.nodes.items() if node.op == "Merge"], exits


def test_a_loop_is_left_by_a_value_that_is_no_variable():
    build = two_inputs()
    _, end = counting_loop(build, lambda count, value: [build.op("Add", value, count)], "y",
                           condition=lambda count, *_: build.op("Less", build.op("Add", count, count), "x"))
    less, = [node for node in build.nodes.values() if node.op == "Less"]
    build.context = build.root
    out = build.add("Exit", less.inputs[0].node)
    result = check_functional_form(build.graph(), [(end, 0), (out, 0)], {"x": 5, "y": 1})
    assert "_Frame" in ops_of(result)


def test_an_exit_may_be_dead_although_the_loop_is_not():
    build = two_inputs()
    _, (count, end) = dying(build)
    merge, = conditional(build, lambda: [end], lambda: [count])
    after = build.add("Identity", count, controls=[end])
    both_sides(build.graph(), [(merge, 0), (count, 0), (end, 0), (after, 0)])


def test_a_dead_variable_kills_nodes_that_run_after_it():
    build = two_inputs()
    merges, (count, _) = dying(build)
    build.context = build.home[merges[1]]
    logged = build.add("Log", merges[0], controls=[merges[1]])
    build.context = build.root
    out = build.add("Exit", logged)
    result = check_functional_form(build.graph(), [(count, 0), (out, 0)], {"x": 3})
    assert "_Frame" in ops_of(result)


def test_a_variable_may_die_before_the_loop_ends():
    build = two_inputs()
    exits = counting_loop(build, lambda count, value: [value], "x")
    following = [node for node in build.nodes.values() if node.op == "NextIteration"][1]
    build.context = build.home[following.name]
    count, value = next(name for name, node in build.nodes.items() if node.op == "Identity"), following.inputs[0].node
    switch = build.add("Switch", value, build.add("Less", value, count))
    build.nodes[following.name] = following.replace(inputs=[switch])
    for x in (0, 1, 9):
        check_functional_form(build.graph(), [(end, 0) for end in exits], {"x": x}, wild=True)


def test_a_merge_of_a_variable_may_wait_for_other_nodes():
    build = two_inputs()
    exits = counting_loop(build, lambda _, value: [value], "x")
    merges = [name for name, node in build.nodes.items() if node.op == "Merge"]
    build.context = build.home[merges[0]]
    waited = build.add("Log", merges[0])
    build.nodes[merges[1]] = build.nodes.pop(merges[1]).replace(controls=[waited])
    check_functional_form(build.graph(), [(end, 0) for end in exits], {"x": 3})


def test_a_loop_stays_a_while_around_a_loop_that_is_none_and_whose_exits_are_alive():
    build = two_inputs()

    def body(_, value):
        exits = counting_loop(build, lambda _, inner: [inner], value)
        first, second = [name for name, node in build.nodes.items() if node.op == "Merge"][-2:]
        build.nodes[second] = build.nodes.pop(second).replace(controls=[first])  # so the inner loop is no While
        return exits[1:]

    exits = counting_loop(build, body, "x")
    result = check_functional_form(build.graph(), [(end, 0) for end in exits], {"x": 3})
    assert {"StatelessWhile", "While"}.intersection(ops_of(result))
    assert "_Frame" in ops_of(result)


def test_a_loop_runs_after_a_node_before_it_that_one_of_its_nodes_waits_for():
    build = two_inputs()
    logged = build.add("Log", "y")
    exits = counting_loop(build, lambda _, value: [build.op("Add", value, value)], "x")
    add = next(name for name, node in build.nodes.items() if node.op == "Add")
    build.nodes[add] = build.nodes[add].replace(controls=[logged])
    result = functional(build.graph(), [(end, 0) for end in exits])
    loop, = (node for node in result if node.op == "StatelessWhile")
    assert loop.controls == (logged,)


def test_a_kept_node_inside_a_loop_runs_with_the_loop_and_a_kept_tensor_is_refused():
    build = two_inputs()
    tensors = []

    def body(_, value):
        tensors.append(build.op("Log", value))
        return tensors

    counting_loop(build, body, "x")
    result = check_functional_form(build.graph(), tensors, {"x": 3})
    assert result[tensors[0]].op == "NoOp"
    with pytest.raises(InvalidArgument, match="is in loop 'frame_.*fetch the output of an Exit"):
        functional(build.graph(), [(tensors[0], 0)])
    with pytest.raises(NotFound, match="absent"):
        functionalize(build.graph(), ["absent"], OPS)


def test_names_that_exist_are_not_given_again():
    build = ControlFlowBuilder()
    for name in ("arg_0", "If", "x"):
        build.add("Placeholder", dtype=INT, name=name)
    merge, = conditional(build, lambda: [build.op("Add", "arg_0", "If")], lambda: ["x"], predicate=("arg_0", "x"))
    check_functional_form(build.graph(), [(merge, 0), ("If", 0)], {"arg_0": 1, "If": 2, "x": 3})


def test_devices_stay_and_colocation_stays_within_a_body():
    build = two_inputs()

    def branch():
        neighbour = build.op("Add", "x", "y", name="near")
        return [build.op("Mul", neighbour, neighbour, name="far", _class=(b"loc:@near", b"loc:@x"))]

    merge, = conditional(build, branch, lambda: ["y"])
    build.nodes["near"] = build.nodes["near"].replace(device="/device:CPU:1")
    build.add("Identity", merge, name="end", _class=(b"loc:@near", b"loc:@elsewhere"))
    result = functional(build.graph(), [("end", 0)])
    nodes = result.functions["If/then"].nodes
    assert nodes["near"].device == "/device:CPU:1"
    assert nodes["far"].attrs["_class"] == (b"loc:@near",)
    assert result["end"].attrs["_class"] == (b"loc:@elsewhere",)


# Faults, and size

def enter(build, tensor, frame, **attrs):
    return build.add("Enter", tensor, frame_name=frame, **attrs)


def check_refusal(build, result, error, text):
    with pytest.raises(error, match=text) as caught:
        functional(build.graph(), [(result, 0)])
    assert caught.value.node is not None
    assert caught.value.hint is not None


def test_frames_that_are_not_well_formed_are_refused():
    build = two_inputs()
    check_refusal(build, build.add("Exit", "x"), InvalidArgument, "Exit is in no loop")
    check_refusal(build, build.add("NextIteration", "x"), InvalidArgument, "NextIteration is in no loop")
    one, other = enter(build, "x", b"one"), enter(build, "y", b"other")
    check_refusal(build, build.add("Exit", build.add("Add", one, other)), InvalidArgument,
                  "is in loop 'other', '.*' in loop 'one'")
    check_refusal(build, build.add("Exit", build.add("Add", one, "y")), InvalidArgument,
                  "'y' is in the graph outside loops, '.*' in loop 'one'")
    check_refusal(build, build.add("Add", "x", "y", controls=[one]), InvalidArgument, "is in loop 'one'")


def test_a_node_without_inputs_cannot_wait_for_nodes_of_two_loops():
    build = two_inputs()
    controls = [enter(build, "x", b"one"), enter(build, "y", b"other")]
    waiting = build.add("NoOp", controls=controls)
    with pytest.raises(InvalidArgument, match="is in loop 'other', '.*' in loop 'one'") as caught:
        functional(build.graph(), [waiting])
    assert caught.value.node == waiting


def test_a_merge_that_is_no_variable_is_refused():
    build = two_inputs()
    first = enter(build, "x", b"f", is_constant=True)
    merge = build.add("Merge", first, "later", N=2)
    build.add("NextIteration", merge, name="later")
    check_refusal(build, build.add("Exit", merge), Unimplemented,
                  "a Merge that takes NextIteration must have two inputs")


def test_loops_are_nested_to_a_limit():
    build = two_inputs()
    tensor = "x"
    for depth in range(100):
        tensor = enter(build, tensor, b"f%d" % depth)
    for _ in range(100):
        tensor = build.add("Exit", tensor)
    check_refusal(build, tensor, ResourceExhausted, "more than 64 loops are nested")


def test_thousands_of_nested_conditionals_need_no_recursion():
    build = two_inputs()
    tensor, switches = "x", []
    for _ in range(3000):
        switches.append(build.add("Switch", tensor, build.add("Less", "x", "y")))
        tensor = f"{switches[-1]}:1"
    for switch in reversed(switches):
        tensor = build.add("Merge", switch, tensor, N=2)
    result = functional(build.graph(), [(tensor, 0)])
    assert len(result.functions) < 200
