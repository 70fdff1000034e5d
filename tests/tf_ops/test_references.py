"""The pass `references`: the places of reads, the nodes that it leaves alone, and random programs against an oracle.

tests/graphs/session/test_recorded_programs.py compares whole programs with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.errors import FailedPrecondition, ResourceExhausted, Unimplemented
from heald.graphs.graph.graph import Graph, Node, ShapeAttr
from heald.runtime.values import dtypes
from hypothesis import given
from hypothesis import strategies as st

INT = dtypes.int32


def variable(name: str, shape: tuple[int | None, ...] | None = (), op: str = "VariableV2", **more: Any) -> Node:
    device = more.pop("device", "")
    attrs = {"dtype": FLOAT, "shape": None if shape is None else ShapeAttr(shape)} | more
    return Node(name, op, attrs=attrs, device=device)


def after(update: Node, *controls: str) -> Node:
    return update.replace(controls=controls)


def rewritten(nodes: Iterable[Node]) -> Graph:
    with heald.Session(Graph(nodes)) as session:
        return session.graph


def edges(result: Graph, name: str) -> list[str]:
    """Inputs, then controls with a caret."""
    return [*map(str, result[name].inputs), *(f"^{control}" for control in result[name].controls)]


@pytest.mark.parametrize("groups", [(FLOAT, INT), 7, b"loc:@v", (), (b"loc:@v", )])
def test_colocation_of_any_form_is_no_fault_of_the_pass(groups):
    """A file may have any value in `_class`; texts in a list alone name partners."""
    update = node("add", "AssignAdd", "v", "one", T=FLOAT).replace(attrs={"_class": groups})
    nodes = [variable("v"), const("one", 1.0), node("set", "Assign", "v", "one", T=FLOAT), update]
    with heald.Session(graph(*nodes)) as session:
        session.run([], targets=["set"])
        assert session.run("add") == 2


def test_a_graph_without_references_stays_the_same():
    given_graph = graph(placeholder("x"), node("y", "Neg", "x"))
    with heald.Session(given_graph) as session:
        assert session.graph is given_graph


def test_a_variable_becomes_a_handle_and_a_read_under_its_name():
    result = rewritten([variable("v", (2,)), const("one", [1, 1]), node("a", "Assign", "v", "one")])
    assert {graph_node.name: graph_node.op for graph_node in result} == {
        "v": "_ReadReference", "one": "Const", "a": "_ReadReference", "v/handle": "_ReferenceVariable",
        "a/AssignVariableOp": "AssignVariableOp"}
    assert edges(result, "a/AssignVariableOp") == ["v/handle", "one"]
    assert edges(result, "a") == ["v/handle", "^a/AssignVariableOp"]


def test_new_names_avoid_the_names_of_the_graph():
    nodes = [variable("v"), const("v/handle", 5), node("y", "Add", "v", "v/handle"),
             node("a", "Assign", "v", "v/handle")]
    with heald.Session(Graph(nodes)) as session:
        session.run([], targets=["a"])
        assert session.run(["y", "v/handle"]) == [10, 5]


def test_consumers_share_a_read_until_they_come_after_a_change_of_that_variable():
    result = rewritten([
        variable("v"), variable("w"), const("one", 1), node("a", "AssignAdd", "v", "one"),
        node("before", "Mul", "v", "one"), after(node("behind", "Mul", "v", "one"), "a"),
        after(node("other", "Mul", "w", "one"), "a"), node("both", "Mul", "a", "v"),
    ])
    assert edges(result, "before") == ["v", "one"]
    assert edges(result, "other") == ["w", "one", "^a/AssignAddVariableOp"]
    assert edges(result, "behind")[0] == "behind/_ReadReference_0"
    assert edges(result, "behind/_ReadReference_0") == ["v/handle", "^a/AssignAddVariableOp"]
    assert edges(result, "both") == ["a", "both/_ReadReference_1"]


def test_a_control_edge_from_a_variable_or_an_update_reads_nothing():
    nodes = [variable("v"), const("one", 1), node("a", "Assign", "v", "one"), after(const("x", 3), "v"),
             after(node("done", "Neg", "one"), "a")]
    with heald.Session(Graph(nodes)) as session:
        assert session.run("x") == 3  # TensorFlow, too, runs VariableV2 without a value
        assert edges(session.graph, "done") == ["one", "^a/AssignVariableOp"]


def test_conditionals_pass_on_handles():
    switch = node("s", "RefSwitch", "v", "p")
    result = rewritten([
        variable("v"), placeholder("p", (), dtypes.bool_), const("one", 1), switch,
        node("up", "AssignAdd", "s:1", "one"), node("no", "Neg", "s:0"), node("m", "RefMerge", "s", "up", N=2),
        node("y", "Neg", "m"), node("set", "Assign", "m", "one"), node("which", "Neg", "m:1", T=INT),
    ])
    assert (result["s"].op, edges(result, "s"),
            result["s"].attrs["T"]) == ("Switch", ["v/handle", "p"], dtypes.resource)
    assert edges(result, "up/AssignAddVariableOp") == ["s:1", "one"]
    assert edges(result, "no") == ["s/_ReadReference/0"]
    assert edges(result, "s/_ReadReference/0") == ["s"]  # so it is read in that branch alone
    assert (result["m"].op, edges(result, "m")) == ("Merge", ["s", "up/handle"])
    assert edges(result, "up/handle") == ["s:1", "^up/AssignAddVariableOp"]
    assert edges(result, "y") == ["m/_ReadReference/0"]
    assert edges(result, "which") == ["m:1"]
    assert edges(result, "set/AssignVariableOp") == ["m", "one"]


def test_a_read_in_a_branch_waits_for_the_outputs_of_switches_not_for_the_switches():
    result = rewritten([
        variable("v"), placeholder("p", (), dtypes.bool_), const("one", 1), node("up", "AssignAdd", "v", "one"),
        node("x", "Switch", "up", "p"), node("read", "Identity", "v"), node("s", "Switch", "read", "p"),
        node("y", "Mul", "x:1", "s:1"),
    ])
    assert edges(result, "y") == ["x:1", "y/_ReadReference_1"]
    assert edges(result, "y/_ReadReference_1") == ["s/handle:1", "^x/pivot_1"]
    assert (result["x/pivot_1"].op, edges(result, "x/pivot_1")) == ("Identity", ["x:1"])


def test_loops_take_handles_and_read_in_each_iteration():
    frame = {"frame_name": b"loop", "is_constant": True, "parallel_iterations": 10}
    result = rewritten([
        variable("v"), const("one", 1), node("read", "Identity", "v"), node("in", "RefEnter", "v", **frame),
        node("read_in", "Enter", "read", **frame), node("up", "AssignAdd", "in", "one"),
        after(node("y", "Mul", "read_in", "one"), "up"),
    ])
    assert (result["in"].op, edges(result, "in"),
            result["in"].attrs["frame_name"]) == ("Enter", ["v/handle"], b"loop")
    assert edges(result, "y")[0] == "y/_ReadReference_0"  # `read_in` is the memory of `v`
    assert edges(result, "y/_ReadReference_0") == ["read_in/handle", "^up/AssignAddVariableOp"]
    assert (result["read_in/handle"].op, edges(result, "read_in/handle")) == ("Enter", ["v/handle"])


def test_an_op_without_a_form_for_resources_is_an_error_only_for_steps_that_need_it():
    attrs = {"Index": INT}
    nodes = [variable("v", (2,)), const("one", [1, 1]), const("i", [0], np.int32), const("j", [1], np.int32),
             node("set", "Assign", "v", "one"),
             node("part", "StridedSliceAssign", "v", "i", "j", "j", "one", **attrs),
             node("more", "AssignAdd", "part", "one")]
    with heald.Session(Graph(nodes)) as session:
        session.run([], targets=["set"])
        np.testing.assert_array_equal(session.run("v"), [1, 1])
        for name, op in {"part": "StridedSliceAssign", "more": "AssignAdd"}.items():
            with pytest.raises(Unimplemented, match=f"op {op} works on references") as caught:
                session.run([], targets=[name])
            assert caught.value.node == name


def test_an_update_of_a_value_is_unimplemented():
    nodes = [placeholder("x", ()), const("one", 1), node("a", "Assign", "x", "one")]
    with heald.Session(Graph(nodes)) as session, pytest.raises(Unimplemented, match="its input is no reference"):
        session.run("a", {"x": 1})


def test_references_are_unimplemented_without_the_pass():
    session = heald.Session(graph(variable("v")), {"passes": {"disable": ["references"]}})
    with session, pytest.raises(Unimplemented, match="VariableV2 works on references"):
        session.run("v")


def test_an_uninitialized_variable_is_named():
    nodes = [variable("v"), const("one", 1), node("a", "AssignAdd", "v", "one"), node("y", "Neg", "v")]
    with heald.Session(Graph(nodes)) as session:
        for targets in (["v"], ["a"], ["y"]):
            with pytest.raises(FailedPrecondition, match="variable 'v' is uninitialized"):
                session.run([], targets=targets)


def test_another_session_has_variables_of_its_own():
    nodes = graph(variable("v"), const("one", 1), node("a", "Assign", "v", "one"))
    with heald.Session(nodes) as first, heald.Session(nodes) as second:
        first.run([], targets=["a"])
        assert first.run("v") == 1
        with pytest.raises(FailedPrecondition):
            second.run("v")


def test_updates_and_reads_run_on_the_device_of_the_variable():
    nodes = [variable("v", device="/cpu:1"), const("one", 1), node("a", "Assign", "v", "one"), node("y", "Neg", "v"),
             after(node("z", "Neg", "v"), "a")]
    with heald.Session(Graph(nodes), {"plugin": {"cpu": {"count": 2}}}) as session:
        placement = session.placement()
        for name in ("v", "v/handle", "a", "a/AssignVariableOp", "z/_ReadReference_0"):
            assert placement[name].device == "CPU:1", name
        session.run([], targets=["a"])
        assert session.run("z") == -1


def test_the_results_of_updates_are_no_outputs_of_a_model():
    nodes = graph(variable("v"), const("one", 1), node("a", "Assign", "v", "one"), variable("unused"),
                  node("y", "Neg", "v"))
    with heald.Session(nodes) as session:
        assert heald.graphs.session.find_outputs(session) == ("y",)


def test_a_temporary_variable_lives_for_one_run_and_counts_as_memory():
    def nodes(length: int) -> Graph:
        return graph(variable("t", (length,), "TemporaryVariable"), const("one", np.ones(length)),
                     node("up", "AssignAdd", "t", "one"), node("y", "DestroyTemporaryVariable", "up", var_name=b"t"))

    with heald.Session(nodes(2)) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run("y"), [1, 1])
    huge = nodes(2).replace(nodes=[variable("t", (1 << 40,), "TemporaryVariable")])
    session = heald.Session(huge, {"limits": {"memory": "1GiB"}})
    with session, pytest.raises(ResourceExhausted, match="the temporary variable 't'"):
        session.run("t")


def test_thousands_of_updates_take_nodes_and_edges_in_proportion():
    count = 2000
    names = [f"v{i}" for i in range(count)]
    nodes = [const("one", 1), *map(variable, names)]
    nodes += [after(node(f"a{i}", "AssignAdd", f"v{i}", "one"), *([f"a{i - 1}"] if i else [])) for i in range(count)]
    nodes.append(after(node("sum", "AddN", *names, N=count), *(f"a{i}" for i in range(count))))
    result = rewritten(nodes)
    assert len(result) < 3 * len(nodes)
    assert sum(len(graph_node.inputs) + len(graph_node.controls) for graph_node in result) < 20 * count


OPS = {"Assign": lambda old, new: new, "AssignAdd": lambda old, new: old + new, "AssignSub": lambda old, new: old - new}
STEPS = st.lists(st.tuples(st.sampled_from([*OPS, "Identity", "Mul"]), st.integers(0, 99), st.integers(0, 99)),
                 min_size=1, max_size=12)


class Cell:
    """The memory of a variable."""

    def __init__(self, value: float) -> None:
        self.value = value


@given(steps=STEPS, chained=st.booleans())
def test_random_programs_give_what_a_machine_with_shared_memory_gives(
    steps: list[tuple[str, int, int]], chained: bool
) -> None:
    """Each node runs after the one before it. Updates return the memory that they wrote, Identity returns the memory
    that it is given, Mul a new value."""
    cells = [Cell(2), Cell(3)]
    nodes = [variable("v0"), variable("v1"), const("x", 5), const("two", 2), const("three", 3),
             node("i0", "Assign", "v0", "two"), node("i1", "Assign", "v1", "three")]
    operands: list[tuple[str, Cell | float]] = [("v0", cells[0]), ("v1", cells[1]), ("x", 5.0)]
    references = [*operands[:2]]
    products: dict[str, float] = {}
    last = ()
    for number, (op, one, other) in enumerate(steps):
        name = f"n{number}"
        left, left_value = (references if op in OPS else operands)[one % len(references if op in OPS else operands)]
        right, given_value = operands[other % len(operands)]
        value = given_value.value if isinstance(given_value, Cell) else given_value
        inputs = [left] if op == "Identity" else [left, right]
        nodes.append(after(node(name, op, *inputs), *last))
        if op in OPS:
            assert isinstance(left_value, Cell)
            left_value.value = OPS[op](left_value.value, value)
            references.append((name, left_value))
        elif op == "Mul":
            factor = left_value.value if isinstance(left_value, Cell) else left_value
            left_value = products[name] = factor * value
        operands.append((name, left_value))
        last = (name,) if chained or op in OPS or op == "Mul" else (*last, name)
    with heald.Session(Graph(nodes)) as session:
        session.run([], targets=["i0", "i1"])
        np.testing.assert_allclose(session.run([*products], targets=[f"n{len(steps) - 1}"]),
                                   [*products.values()], rtol=1e-6)
        np.testing.assert_allclose(session.run(["v0", "v1"]), [cell.value for cell in cells], rtol=1e-6)
