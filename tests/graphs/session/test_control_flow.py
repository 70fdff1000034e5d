"""If, Case, While, For and calls of functions, as sessions run them."""

from __future__ import annotations

import threading

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, case, function, loop, program
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.errors import DeadlineExceeded, HealdError, InvalidArgument, NotFound, ResourceExhausted
from heald.graphs.graph.attr_value import AttrPlaceholder, Func
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

TWICE = function("twice", "x", [node("sum", "AddV2", "x", "x")], {"y": "sum:z:0"})
LESS = function("less", "x", [node("neg", "Neg", "x")], {"y": "neg:y:0"})
SAME = function("same", "x", [], {"y": "x"})
BELOW = function("below", "i x", [const("most", 5), node("test", "Less", "i", "most:output:0")], {"go": "test:z:0"},
                 results="go:bool_")
STEP = function("step", "i x", [const("one", 1), node("next", "AddV2", "i", "one:output:0"),
                                node("more", "AddV2", "x", "x")], {"i": "next:z:0", "x": "more:z:0"})
TWO = {"plugin": {"example_device": {"devices": 2}}}
X, P = placeholder("x", ()), placeholder("p", (), dtypes.bool_)


def run(nodes, functions, fetches, feeds=None, **config):
    with heald.Session(program(nodes, *functions), config or None) as session:
        return session.run(fetches, feeds or {})


@pytest.mark.parametrize(("condition", "result"), [(True, 6), (False, -3)])
def test_an_if_runs_one_of_its_branches(condition, result):
    nodes = [X, P, branch("y", "p", "twice", "less", "x")]
    assert run(nodes, [TWICE, LESS], "y", {"x": 3, "p": condition}) == result


@pytest.mark.parametrize("condition", [True, False])
def test_an_if_without_devices_returns_its_values_in_a_model_that_uses_one(condition):
    nodes = [placeholder("x", (2,)), P, branch("y", "p", "twice", "less", "x"), call("c", "twice", "y"),
             node("z", "AddV2", "x", "x", device="/device:EXAMPLE:0")]
    y, c, z = run(nodes, [TWICE, LESS], ["y", "c", "z"], {"x": [1, 2], "p": condition})
    expected = [[2, 4], [4, 8], [2, 4]] if condition else [[-1, -2], [-2, -4], [2, 4]]
    assert [y.tolist(), c.tolist(), z.tolist()] == expected


@pytest.mark.parametrize(("predicate", "taken"), [
    (P, True), (P, False), (const("p", True, np.bool_), True), (const("p", False, np.bool_), False)])
def test_a_branch_that_does_not_run_has_no_error_of_shapes(predicate, taken):
    wrong = function("wrong", "x", [const("c", [1, 2]), node("s", "AddV2", "x", "c:output:0")], {"y": "s:z:0"})
    branches = ("twice", "wrong") if taken else ("wrong", "twice")
    feeds = {"x": [1, 2, 3]} | ({"p": taken} if predicate is P else {})
    nodes = [placeholder("x", (3,)), predicate, branch("y", "p", *branches, "x")]
    assert run(nodes, [TWICE, wrong], "y", feeds).tolist() == [2, 4, 6]
    nodes = [placeholder("x", (3,)), predicate, branch("y", "p", *reversed(branches), "x")]
    with pytest.raises(InvalidArgument, match="Incompatible shapes"):
        run(nodes, [TWICE, wrong], "y", feeds)


@pytest.mark.parametrize("prefix", ["", "Stateless"])
def test_loops_and_branches_run_in_either_form(prefix):
    nodes = [placeholder("i", ()), X, P, loop("w", "below", "step", "i", "x").replace(op=f"{prefix}While"),
             branch("y", "p", "twice", "less", "w:1").replace(op=f"{prefix}If")]
    assert run(nodes, [BELOW, STEP, TWICE, LESS], ["w", "y"], {"i": 2, "x": 1, "p": True}) == [5, 16]


@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_a_file_whose_nodes_call_functions_is_a_model(tmp_path, op):
    nodes = [X, call("y", "outer", "x").replace(op=op), node("z", "Neg", "y")]
    outer = function("outer", "x", [call("inner", "twice", "x").replace(op=op)], {"y": "inner:output:0"})
    heald.graphdef.dump(program(nodes, outer, TWICE), tmp_path / "frozen.pb")
    model = heald.load(tmp_path / "frozen.pb")
    assert [*model.inputs] == ["x"]
    assert model(np.float32(3)) == -6


@pytest.mark.parametrize(("of", "value", "condition"), [
    (dtypes.int32, np.int32(2), True), (dtypes.float32, np.float32(0), False), (dtypes.string, b"", False),
    (dtypes.string, b"a", True), (dtypes.float32, np.zeros((2,), np.float32), True),
    (dtypes.float32, np.zeros((0, 2), np.float32), False),
])
def test_a_condition_of_another_type_is_true_as_in_tensorflow(of, value, condition):
    nodes = [X, placeholder("c", None, of), branch("y", "c", "twice", "less", "x", of=of)]
    assert run(nodes, [TWICE, LESS], "y", {"x": 3, "c": value}) == (6 if condition else -3)


@pytest.mark.parametrize(("index", "result"), [(0, 6), (1, -3), (2, 3), (9, 3), (-1, 3)])
def test_a_case_takes_the_last_branch_for_an_index_out_of_range(index, result):
    nodes = [X, placeholder("i", (), dtypes.int32), case("y", "i", ["twice", "less", "same"], "x")]
    assert run(nodes, [TWICE, LESS, SAME], "y", {"x": 3, "i": np.int32(index)}) == result


@pytest.mark.parametrize("make_nodes", [
    [const("p", True, bool), branch("y", "p", "ten", "whole", "logged", arguments="logged:int32", gives="y:int32")],
    [call("y", "ten", "logged", arguments="logged:int32", gives="y:int32")],
])
def test_an_argument_that_no_branch_or_function_uses_runs_for_its_effect(make_nodes):
    ten = function("ten", "x:int32", [const("ten", 10, np.int32)], {"y": "ten:output:0"}, results="y:int32")
    outer = function("whole", "x:int32", [], {"y": "x"}, results="y:int32")
    nodes = [placeholder("x", (), dtypes.int32), Node("logged", "Scalar>Log", ["x"], attrs={"T": dtypes.int32}),
             *make_nodes]
    assert run(nodes, [ten, outer], "y", {"x": np.int32(7)}, plugins={"load": [plugin("scalars")]}) == 10
    from plugin_of_scalars import logged  # imported by the session

    assert logged == [("logged", 7)]
    logged.clear()


@pytest.mark.parametrize(("condition", "result", "op"), [(True, 6, "AddV2"), (False, -3, "Neg")])
def test_a_branch_that_is_known_beforehand_is_no_call(condition, result, op):
    nodes = [X, const("p", condition, bool), branch("y", "p", "twice", "less", "x")]
    with heald.Session(program(nodes, TWICE, LESS)) as session:
        assert session.run("y", {"x": 3}) == result
        assert {kernel.op for kernel in session.prepare("y", ["x"]).program.functions["main"].kernels} == {op}


def test_a_side_of_switches_that_is_known_beforehand_is_no_call():
    nodes = [X, const("p", True, bool), node("s", "Switch", "x", "p"), node("no", "Neg", "s"),
             node("yes", "AddV2", "s:1", "s:1"), node("m", "Merge", "no", "yes", N=2)]
    with heald.Session(graph(*nodes)) as session:
        assert session.run("m", {"x": 3}) == 6
        assert {kernel.op for kernel in session.prepare("m", ["x"]).program.functions["main"].kernels} == {"AddV2",
                                                                                                           "Identity"}


@pytest.mark.parametrize(("start", "result"), [(0, (5, 32)), (4, (5, 2)), (7, (7, 1))])
def test_a_while_runs_its_body_until_the_condition_is_false(start, result):
    nodes = [placeholder("i", ()), const("one", 1), loop("w", "below", "step", "i", "one")]
    assert tuple(run(nodes, [BELOW, STEP], ["w:0", "w:1"], {"i": start})) == result


def test_variables_that_a_loop_never_changes_are_constants_of_its_functions():
    below = function("b", "i k x", [const("most", 3), node("test", "Less", "i", "most:output:0")], {"go": "test:z:0"},
                     results="go:bool_")
    step = function("s", "i k x", [const("one", 1), node("next", "AddV2", "i", "one:output:0"),
                                   node("kept", "Identity", "k"),
                                   node("more", "MatMul", "x", "k", transpose_a=False, transpose_b=False)],
                    {"i": "next:z:0", "k": "kept:output:0", "x": "more:product:0"})
    weights = np.array([[1, 2], [3, 4]], np.float32)
    nodes = [const("i", 0), const("k", weights), placeholder("x", (1, 2)), loop("w", "b", "s", "i", "k", "x")]
    with heald.Session(program(nodes, below, step)) as session:
        (got, unchanged) = session.run(["w:2", "w:1"], {"x": [[1, 1]]})
        np.testing.assert_array_equal(got, np.ones((1, 2)) @ weights @ weights @ weights)
        np.testing.assert_array_equal(unchanged, weights)
        compiled_program = session.prepare(["w:2", "w:1"], ["x"]).program
        assert [len(f.arg_names) for f in compiled_program.functions.values() if f.name != "main"] == [2, 2]


def test_the_shape_of_a_variable_may_change_from_turn_to_turn():
    below = function("b", "i x", [const("most", 4), node("test", "Less", "i", "most:output:0")], {"go": "test:z:0"},
                     results="go:bool_")
    step = function("s", "i x", [
        const("one", 1), node("next", "AddV2", "i", "one:output:0"), const("axis", 0, np.int32),
        node("longer", "ConcatV2", "x", "x", "axis:output:0", N=2, Tidx=dtypes.int32)],
        {"i": "next:z:0", "x": "longer:output:0"})
    nodes = [const("i", 0), placeholder("x", (1,)), loop("w", "b", "s", "i", "x"), node("y", "Neg", "w:1")]
    assert run(nodes, [below, step], "y", {"x": [2]}).tolist() == [-2] * 16


def test_a_while_goes_on_as_long_as_its_condition_has_elements():
    below = function("b", "x", [node("test", "Less", "x", "x")], {"go": "test:z:0"}, results="go:bool_")
    step = function("s", "x", [const("begin", [1], np.int32), const("size", [-1], np.int32),
                               node("rest", "Slice", "x", "begin:output:0", "size:output:0", Index=dtypes.int32)],
                    {"x": "rest:output:0"})
    nodes = [placeholder("x", (3,)), loop("w", "b", "s", "x")]
    assert run(nodes, [below, step], "w:0", {"x": [1, 2, 3]}).shape == (0,)


def test_a_for_counts_to_its_limit():
    body = function("body", "i:int32 x", [Node("f", "Cast", ["i"], attrs={"SrcT": dtypes.int32, "DstT": FLOAT}),
                                          node("sum", "AddV2", "x", "f:y:0")], {"x": "sum:z:0"})
    numbers = [placeholder(name, (), dtypes.int32) for name in ("a", "b", "d")]
    nodes = [X, *numbers, Node("y", "For", ["a", "b", "d", "x"], attrs={"T": (FLOAT,), "body": Func("body")})]
    with heald.Session(program(nodes, body)) as session:
        for numbers, total in (((0, 5, 1), 10), ((5, 0, -2), 9), ((3, 3, 1), 0)):
            feeds = dict(zip("abd", map(np.int32, numbers), strict=True))
            assert session.run("y", feeds | {"x": 100}) == 100 + total
        with pytest.raises(InvalidArgument, match="delta") as caught:
            session.run("y", {"a": 0, "b": 1, "d": 0, "x": 0})
        assert caught.value.node == "y"


def test_a_variable_that_a_for_never_changes_is_its_input():
    body = function("body", "i:int32 k x", [node("sum", "AddV2", "x", "k")], {"k": "k", "x": "sum:z:0"})
    numbers = [const("a", 0, np.int32), placeholder("b", (), dtypes.int32), const("d", 1, np.int32)]
    nodes = [X, *numbers, const("k", 5),
             Node("y", "For", ["a", "b", "d", "k", "x"], attrs={"T": (FLOAT, FLOAT), "body": Func("body")})]
    assert run(nodes, [body], ["y:0", "y:1"], {"x": 1, "b": np.int32(3)}) == [5, 16]


def test_the_results_of_a_while_whose_condition_is_dead_are_dead():
    nodes, (_, step) = counting_graph(7)
    below = function("b", "i v:resource", [const("most", 0), node("test", "Less", "i", "most:output:0"),
                                           node("s", "Switch", "test:z:0", "test:z:0", T=dtypes.bool_)],
                     {"go": "s:output_true:0"}, results="go:bool_")
    with heald.Session(program(nodes, below, step)) as session:
        session.run([], targets=["init"])
        with pytest.raises(InvalidArgument, match="the fetched tensor 'w:0' is dead"):
            session.run("w:0")


def test_a_frame_without_constants_runs():
    """A Merge that waits for another one keeps the loop from becoming a While. All its tensors are variables."""
    nodes = [X, const("zero", 0)]
    for name, start in (("i", "zero"), ("v", "x")):
        nodes += [node(f"{name}/enter", "Enter", start, frame_name=b"f", is_constant=False, parallel_iterations=10),
                  node(f"{name}/switch", "Switch", name, "go"), node(f"{name}/id", "Identity", f"{name}/switch:1"),
                  node(f"{name}/exit", "Exit", f"{name}/switch")]
    nodes += [node("i", "Merge", "i/enter", "i/next", N=2), node("v", "Merge", "v/enter", "v/next", "^i", N=2),
              const("three", 3).replace(controls=["i"]), node("less", "Less", "i", "three"),
              Node("go", "LoopCond", ["less"]), const("one", 1).replace(controls=["i/id"]),
              node("sum", "AddV2", "i/id", "one"), node("i/next", "NextIteration", "sum"),
              node("twice", "AddV2", "v/id", "v/id"), node("v/next", "NextIteration", "twice")]
    with heald.Session(graph(*nodes)) as session:
        assert session.run(["i/exit", "v/exit"], {"x": 5}) == [3, 40]
        assert "frame" in {kernel.op for kernel in session.prepare("v/exit", ["x"]).program.functions["main"].kernels}


def test_loops_run_in_branches_in_loops():
    inner = function("inner", "x", [const("zero", 0), loop("w", "below", "step", "zero:output:0", "x")],
                     {"y": "w:output:1"})
    body = function("body", "i x", [
        const("one", 1), node("next", "AddV2", "i", "one:output:0"), const("two", 2),
        node("odd", "Less", "i", "two:output:0"), branch("b", "odd:z:0", "inner", "less", "x")],
        {"i": "next:z:0", "x": "b:output:0"})
    nodes = [const("i", 0), X, loop("w", "below", "body", "i", "x")]
    assert run(nodes, [BELOW, STEP, LESS, inner, body], "w:1", {"x": 1}) == -1024


FACTORIAL = [
    function("base", "x", [const("one", 1)], {"y": "one:output:0"}),
    function("again", "x", [const("one", 1), node("less", "Sub", "x", "one:output:0"),
                            call("f", "factorial", "less:z:0"), node("times", "Mul", "x", "f:output:0")],
             {"y": "times:z:0"}),
    function("factorial", "x", [const("one", 1.5), node("end", "Less", "x", "one:output:0"),
                                branch("b", "end:z:0", "base", "again", "x")], {"y": "b:output:0"}),
]


@pytest.mark.parametrize(("number", "result"), [(1, 1), (5, 120), (10, 3628800)])
def test_a_function_may_call_itself(number, result):
    assert run([X, call("y", "factorial", "x")], FACTORIAL, "y", {"x": number}) == result


def test_recursion_may_be_deeper_than_the_stack():
    down = [
        function("stop", "x", [], {"y": "x"}),
        function("go", "x", [const("one", 1), node("less", "Sub", "x", "one:output:0"), call("f", "down", "less:z:0")],
                 {"y": "f:output:0"}),
        function("down", "x", [const("half", 0.5), node("end", "Less", "x", "half:output:0"),
                               branch("b", "end:z:0", "stop", "go", "x")], {"y": "b:output:0"}),
    ]
    assert run([X, call("y", "down", "x")], down, "y", {"x": 3000}, limits={"nested_calls": 10_000}) == 0


def test_calls_may_be_nested_a_thousand_deep():
    nest = [function("f0", "x", [node("n", "Neg", "x")], {"y": "n:y:0"})]
    nest += [function(f"f{i}", "x", [call("c", f"f{i - 1}", "x")], {"y": "c:output:0"}) for i in range(1, 1000)]
    assert run([X, call("y", "f999", "x")], nest, "y", {"x": 3}) == -3


def test_a_recursion_without_end_is_an_error_and_no_hang():
    """Its condition is a constant: the branch would be unfolded again and again."""
    functions = [
        function("stop", "x", [], {"y": "x"}),
        function("go", "x", [const("always", True, np.bool_), branch("b", "always:output:0", "go", "stop", "x")],
                 {"y": "b:output:0"}),
    ]
    with pytest.raises(ResourceExhausted, match="nested"):
        run([X, call("y", "go", "x")], functions, "y", {"x": 1})


@pytest.mark.parametrize("depth", [3, 99, 150])
def test_nested_branches_with_known_conditions_are_taken(depth):
    nest = [function("f0", "x", [node("n", "Neg", "x")], {"y": "n:y:0"})]
    nest += [function(f"f{i}", "x", [const("yes", True, np.bool_), branch("b", "yes:output:0", f"f{i - 1}", "f0", "x")],
                      {"y": "b:output:0"}) for i in range(1, depth)]
    assert run([X, call("y", f"f{depth - 1}", "x")], nest, "y", {"x": 3}) == -3


def test_a_function_of_a_recursion_may_have_a_name_that_no_node_has():
    """TensorFlow calls Python's lambdas so. A pass that changes the function is not to blame for its name."""
    name = "__inference_<lambda>_7"
    functions = [
        function("stop", "x", [], {"y": "x"}),
        function("go", "x", [const("one", 1), node("less", "Sub", "x", "one:output:0"),
                             node("a", "Neg", "less:z:0"), node("b", "Neg", "a:y:0"), node("c", "Identity", "b:y:0"),
                             call("f", name, "c:output:0")], {"y": "f:output:0"}),
        function(name, "x", [const("half", 0.5), node("same", "Identity", "x"),
                             node("end", "Less", "same:output:0", "half:output:0"),
                             branch("b", "end:z:0", "stop", "go", "same:output:0")], {"y": "b:output:0"}),
    ]
    assert run([X, call("y", name, "x")], functions, "y", {"x": 40}) == 0


def test_a_function_may_be_called_by_its_name_and_with_attributes():
    there, back = {"SrcT": FLOAT, "DstT": AttrPlaceholder("U")}, {"SrcT": AttrPlaceholder("U"), "DstT": FLOAT}
    casts = [Node("c", "Cast", ["x"], attrs=there), Node("b", "Cast", ["c:y:0"], attrs=back)]
    generic = function("generic", "x", casts, {"y": "b:y:0"})
    nodes = [X, Node("y", "generic", ["x"], attrs={"U": dtypes.int32}), Node("z", "generic", ["x"], attrs={"U": FLOAT})]
    assert run(nodes, [generic], ["y", "z"], {"x": 2.5}) == [2, 2.5]


def counting_graph(turns):
    """A graph whose loop adds to a variable in each turn, and a read behind the loop."""
    handle = Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": None, "shared_name": b"v"})
    below = function("b", "i v:resource", [const("most", turns), node("test", "Less", "i", "most:output:0")],
                     {"go": "test:z:0"}, results="go:bool_")
    step = function("s", "i v:resource", [
        const("one", 1), node("next", "AddV2", "i", "one:output:0"),
        Node("add", "AssignAddVariableOp", ["v", "one:output:0"], attrs={"dtype": FLOAT})],
        {"i": "next:z:0", "v": "v"}, results="v:resource", effects=["add"])
    nodes = [handle, const("zero", 0), Node("init", "AssignVariableOp", ["v", "zero"], attrs={"dtype": FLOAT}),
             loop("w", "b", "s", "zero", "v", arguments="i v:resource"),
             Node("read", "ReadVariableOp", ["v"], controls=["w"], attrs={"dtype": FLOAT})]
    return nodes, [below, step]


def test_effects_in_a_loop_happen_in_each_turn_and_before_what_waits_for_the_loop():
    nodes, functions = counting_graph(7)
    with heald.Session(program(nodes, *functions)) as session:
        session.run([], targets=["init"])
        assert [session.run("read"), session.run("read")] == [7, 14]


def test_an_error_in_a_loop_names_the_node_in_its_function():
    step = function("s", "i x", [Node("bad", "CheckNumerics", ["i"], attrs={"T": FLOAT, "message": b"no number"})],
                    {"i": "bad:output:0", "x": "x"})
    nodes = [X, placeholder("i", ()), loop("w", "below", "s", "i", "x")]
    with heald.Session(program(nodes, BELOW, step)) as session:
        with pytest.raises(InvalidArgument, match="no number") as caught:
            session.run("w:1", {"x": 1, "i": -np.inf})
        assert caught.value.node == "w/body/bad"
        assert session.run("w:1", {"x": 1, "i": 9}) == 1


ENDLESS = function("endless", "x", [const("yes", True, bool)], {"go": "yes:output:0"}, results="go:bool_")


def test_a_loop_without_end_ends_at_its_deadline():
    with heald.Session(program([X, loop("w", "endless", "less", "x")], ENDLESS, LESS)) as session:
        with pytest.raises(DeadlineExceeded):
            session.run("w", {"x": 1}, options=heald.RunOptions(timeout=0.05))
        token = heald.CancelToken()
        timer = threading.Timer(0.05, token.cancel)
        timer.start()
        with pytest.raises(HealdError, match="cancelled"):
            session.run("w", {"x": 1}, options=heald.RunOptions(cancel=token))
        timer.join()


def test_a_trace_has_the_calls_of_every_turn():
    nodes = [placeholder("i", ()), const("one", 1), loop("w", "below", "step", "i", "one")]
    with heald.Session(program(nodes, BELOW, STEP)) as session:
        metadata = heald.RunMetadata()
        session.run("w:1", {"i": 2}, options=heald.RunOptions(trace=True), metadata=metadata)
    names = [event.call.node for event in metadata.trace.events]
    assert (names.count("w/body/more"), names.count("w/cond/test")) == (3, 4)


def test_results_belong_to_the_caller():
    nodes = [placeholder("x", (2,)), P, const("k", [1, 2]), branch("y", "p", "same", "same", "x"),
             branch("z", "p", "same", "same", "k")]
    with heald.Session(program(nodes, SAME)) as session:
        x = np.array([3, 4], np.float32)
        for _ in range(3):
            y, z = session.run(["y", "z"], {"x": x, "p": True})
            assert (y.tolist(), z.tolist(), x.tolist()) == ([3, 4], [1, 2], [3, 4])
            y[:], z[:] = 9, 9


@pytest.mark.parametrize(("nodes", "functions", "error", "text"), [
    ([X, call("y", "nobody", "x")], [], NotFound, "nobody"),
    ([X, P, branch("y", "p", "twice", "nobody", "x")], [TWICE], NotFound, "nobody"),
    ([X, P, branch("y", "p", "twice", "less", "x", "x", arguments="a b")], [TWICE, LESS], InvalidArgument,
     "1 arguments"),
    ([X, P, branch("y", "p", "twice", "less", "x", gives="a b")], [TWICE, LESS], InvalidArgument, "returns 1 values"),
    ([X, P, branch("y", "p", "twice", "less", "x", gives="a:int32")], [TWICE, LESS], InvalidArgument, "int32"),
    ([X, call("y", "twice", "x", gives="a:int32")], [TWICE], InvalidArgument, "stated as int32, its function returns"),
])
def test_a_call_that_does_not_fit_its_function_is_told(nodes, functions, error, text):
    with heald.Session(program(nodes, *functions)) as session:
        with pytest.raises(error, match=text) as caught:
            session.run("y", {node.name: 1 for node in nodes if node.op == "Placeholder"})
        assert caught.value.node == "y"


def test_a_body_may_run_on_several_devices():
    step = function("s", "i x", [
        const("one", 1), node("next", "AddV2", "i", "one:output:0", device="CPU:0"),
        node("half", "AddV2", "x", "x", device="EXAMPLE:0"), node("less", "Neg", "half:z:0", device="EXAMPLE:1")],
        {"i": "next:z:0", "x": "less:y:0"})
    nodes = [const("i", 0), placeholder("x", (2,)), loop("w", "below", "s", "i", "x")]
    with heald.Session(program(nodes, BELOW, step), TWO) as session:
        for _ in range(2):
            assert session.run("w:1", {"x": [1, 2]}).tolist() == [-32, -64]
        assert session.placement()["w/body/half"].device == "EXAMPLE:0"


def test_a_fetched_value_of_a_branch_not_taken_is_an_error():
    nodes = [X, P, node("s", "Switch", "x", "p"), node("no", "Neg", "s"), node("yes", "Neg", "s:1")]
    with heald.Session(program(nodes)) as session:
        assert session.run("yes", {"x": 1, "p": True}) == -1
        with pytest.raises(InvalidArgument, match="dead") as caught:
            session.run("no", {"x": 1, "p": True})
        assert caught.value.node == "no"


def test_a_switch_takes_no_array_as_its_condition():
    """TensorFlow's If and While take arrays, which are true if they have elements; its Switch takes scalars only."""
    nodes = [placeholder("p", None, dtypes.bool_), const("x", 1), node("s", "Switch", "x", "p"),
             node("a", "Neg", "s"), node("b", "Identity", "s:1"), node("m", "Merge", "a", "b", N=2)]
    with heald.Session(graph(*nodes)) as session:
        assert session.run("m:0", {"p": True}) == 1
        with pytest.raises(InvalidArgument, match=r"scalar.*shape \[2\]"):
            session.run("m:0", {"p": [True, False]})


def test_a_queue_of_one_thread_runs_branches_loops_calls_and_asynchronous_kernels():
    """Each of these may wait for a value, and the queue has no second thread that could bring it."""
    later = function("later", "x", [node("queued", "Test>Queued", "x", "x"),
                                    node("soon", "Test>Now", "queued:z:0", "x")], {"y": "soon:z:0"})
    twice_later = function("twice_later", "x", [call("one", "later", "x"), call("two", "later", "one:output:0")],
                           {"y": "two:output:0"})
    step = function("s", "i x", [const("one", 1), node("next", "AddV2", "i", "one:output:0"),
                                 call("more", "twice_later", "x")], {"i": "next:z:0", "x": "more:output:0"})
    nodes = [placeholder("i", ()), placeholder("x", (2,)), P, loop("w", "below", "s", "i", "x"),
             branch("b", "p", "twice_later", "twice", "w:1"), node("z", "Test>Queued", "b", "w:1")]
    config = {"plugins": {"load": [plugin("tests")]}, "work_queue": {"threads": 1}}
    with heald.Session(program(nodes, BELOW, step, later, twice_later, TWICE), config) as session:
        for number in range(100):
            begin, condition = number % 6, bool(number % 2)
            looped = np.float32([1, 2]) * 9 ** (5 - begin)
            feeds = {"i": begin, "x": [1, 2], "p": condition}
            result = session.run("z", feeds, options=heald.RunOptions(timeout=5))
            assert result.tolist() == (looped * (10 if condition else 3)).tolist()


AFFINE = function("affine", "x w", [node("scaled", "Mul", "x", "w"), node("sum", "AddV2", "scaled:z:0", "w")],
                  {"y": "sum:z:0", "z": "scaled:z:0"}, results="y:float32 z:float32")


def batch_call(name, *inputs, captured=("w",), **attrs):
    batching = {"num_batch_threads": 2, "max_batch_size": 8, "batch_timeout_micros": 10, "allowed_batch_sizes": (4, 8)}
    types = {"Tin": (FLOAT,) * len(inputs), "Tcaptured": (FLOAT,) * len(captured), "Tout": (FLOAT, FLOAT)}
    attributes = {"f": Func("affine", {}), **types, **batching, **attrs}
    return Node(name, "BatchFunction", [*inputs, *captured], attrs=attributes)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_batch_function_runs_each_call_as_a_batch_of_its_own(depth):
    """TensorFlow gives the same rows, after it has filled the batch up to four."""
    nodes = [placeholder("x", (None,)), const("w", 3), batch_call("a", "x"), batch_call("b", "a:1")]
    y, z = run(nodes, [AFFINE], ["ab"[depth - 1], f"{'ab'[depth - 1]}:1"], {"x": [1, 2, 5]})
    assert y.tolist() == [[6, 9, 18], [12, 21, 48]][depth - 1]
    assert z.tolist() == [[3, 6, 15], [9, 18, 45]][depth - 1]


def test_a_batch_function_of_a_branch_runs_with_the_branch():
    inner = function("inner", "x", [const("w", 3), batch_call("a", "x", captured=("w:output:0",))],
                     {"y": "a:out_tensors:0"})
    nodes = [placeholder("x", (None,)), P, branch("y", "p", "inner", "less", "x")]
    assert run(nodes, [AFFINE, inner, LESS], "y", {"x": [1, 2], "p": True}).tolist() == [6, 9]


@pytest.mark.parametrize("node_of_call", [
    batch_call("a", "x", "x"), batch_call("a", "x", captured=()), batch_call("a", "x", f=Func("nowhere", {})),
])
def test_a_batch_function_that_does_not_fit_its_function_is_refused(node_of_call):
    with pytest.raises((InvalidArgument, NotFound)):
        run([placeholder("x", (None,)), const("w", 3), node_of_call], [AFFINE], "a", {"x": [1, 2]})
