"""Compilers take groups of placed nodes, and change no result, error or effect."""

from __future__ import annotations

from typing import ClassVar

import heald
import numpy as np
import pytest
from builders.compilers import FUNCTIONS, NumPyCompiler, plugin_module, runtime_with
from builders.control_flow import branch, function, program
from builders.graphs import const, graph, node, placeholder
from harness.threads import in_threads
from heald.api import Node
from heald.errors import InvalidArgument, NotFound, PluginError
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime
from heald.runtime.values import dtypes

X = np.float32([1, -2, 3])
CHAIN = [placeholder("x", (3,)), const("c", [1, 2, 3]), node("a", "Mul", "x", "c"), node("b", "Neg", "a"),
         node("d", "AddV2", "b", "x")]


def executable_of(session, fetches, feeds, shapes):
    return session.prepare(fetches, feeds).executable(shapes)


def codes(session, fetches, feeds=("x:0",), shapes=((3,),)):
    return [bound.call.code for bound in executable_of(session, fetches, feeds, shapes).layout.calls]


def test_a_group_is_one_call_that_names_compiler_and_group():
    compiler = NumPyCompiler()
    with heald.Session(graph(*CHAIN), runtime_with(compiler)) as session:
        np.testing.assert_array_equal(session.run("d", {"x": X}), -X * [1, 2, 3] + X)
        assert codes(session, ["d"]) == ["tiny0.group0"]
    part = compiler.parts[0]
    assert (part.function, part.device, list(part.nodes)) == ("main", "CPU:0", ["a", "b", "d"])
    assert part.refused == {"c": "the runtime itself serves it"}
    assert part.infer()["d"][0].meta.dims == (3,)


def test_traces_name_compiler_and_group():
    metadata = heald.RunMetadata()
    with heald.Session(graph(*CHAIN), runtime_with(NumPyCompiler())) as session:
        session.run("d", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    assert "tiny0.group0" in [event.call.code for event, _ in metadata.trace.calls()]


def test_a_group_has_several_results_and_sees_constants_and_shapes():
    compiler = NumPyCompiler()
    with heald.Session(graph(*CHAIN), runtime_with(compiler)) as session:
        a, d = session.run(["a", "d"], {"x": X})
    np.testing.assert_array_equal(a, X * [1, 2, 3])
    np.testing.assert_array_equal(d, -a + X)
    group = compiler.groups[-1]
    assert [op.op for op in group.fused] == ["Mul", "Neg", "AddV2"]
    assert [info.is_known for info in group.inputs] == [False, True]
    assert group.inputs[1].value.tolist() == [1, 2, 3]
    assert group.results == (2, 4)


def test_results_of_one_op_with_several_results_keep_their_order():
    nodes = [placeholder("x", (4,)), const("axis", 0, np.int32),
             node("s", "Split", "axis", "x", num_split=2), node("t", "Sub", "s:1", "s:0")]
    with heald.Session(graph(*nodes), runtime_with(NumPyCompiler())) as session:
        low, high, difference = session.run(["s:0", "s:1", "t"], {"x": np.float32([1, 2, 3, 5])})
        assert codes(session, ["s:0", "s:1", "t"], shapes=((4,),)) == ["tiny0.group0"]
    assert (low.tolist(), high.tolist(), difference.tolist()) == ([1, 2], [3, 5], [2, 3])


def test_a_declined_group_is_linked_as_without_a_compiler():
    compiler = NumPyCompiler(reason="too small")
    with heald.Session(graph(*CHAIN), runtime_with(compiler)) as session, heald.Session(graph(*CHAIN)) as plain:
        np.testing.assert_array_equal(session.run("d", {"x": X}), plain.run("d", {"x": X}))
        assert codes(session, ["d"]) == codes(plain, ["d"])
        (outcome,) = executable_of(session, ["d"], ("x:0",), ((3,),)).report.groups
    assert outcome.refusal == "too small"
    assert str(outcome) == "compiler tiny0 leaves group0 (3 nodes) to the kernels: too small"


def test_config_switches_a_compiler_off():
    runtime = runtime_with(NumPyCompiler(), config={"passes": {"disable": ["tiny0"]}})
    with heald.Session(graph(*CHAIN), runtime) as session:
        session.run("d", {"x": X})
        assert codes(session, ["d"]) == ["cpu.Mul", "cpu.Neg", "cpu.AddV2"]


def test_the_compiler_of_higher_priority_claims_first():
    first, second = NumPyCompiler(lambda part: [["b"]]), NumPyCompiler()
    with heald.Session(graph(*CHAIN), runtime_with(first, second)) as session:
        session.run("d", {"x": X})
        assert codes(session, ["d"]) == ["tiny1.group1", "tiny0.group0", "tiny1.group2"]
    assert second.parts[-1].refused["b"] == "tiny0 claimed it in group0"
    assert sorted(second.parts[-1].nodes) == ["a", "d"]


def test_each_shape_asks_the_compiler_and_constants_are_prepared_once():
    made = []

    class Preparing(NumPyCompiler):
        def compile(self, group):
            group.prepared("model", lambda: made.append(1))
            return super().compile(group)

    nodes = [placeholder("x", (None, 3)), *CHAIN[1:]]
    compiler = Preparing()
    with heald.Session(graph(*nodes), runtime_with(compiler)) as session:
        for rows in (1, 2, 5):
            assert session.run("d", {"x": np.ones((rows, 3), np.float32)}).shape == (rows, 3)
    assert [group.outputs[0].dims for group in compiler.groups] == [(1, 3), (2, 3), (5, 3)]
    assert len(made) == 1


OPEN = [placeholder("x", (4,)), node("u", "Unique", "x", out_idx=dtypes.int32), node("n", "Neg", "u"),
        node("m", "Square", "n"), node("i", "Identity", "n"), node("s", "AddV2", "i", "m")]
FED = (np.float32([1, 1, 2, 1]), np.float32([3, 2, 1, 3]), np.float32([5, 5, 6, 5]))


@pytest.mark.parametrize("allocates", [False, True])
def test_a_group_whose_shapes_depend_on_data_is_asked_once_for_each_shape(allocates):
    compiler = NumPyCompiler(allocates=allocates)
    with heald.Session(graph(*OPEN), runtime_with(compiler)) as session:
        for x in FED:
            unique = np.array([*dict.fromkeys(x.tolist())])
            assert session.run("s", {"x": x}).tolist() == (unique**2 - unique).tolist()
        executable = executable_of(session, ["s"], ("x:0",), ((4,),))
    assert [group.inputs[0].meta.dims for group in compiler.groups] == [(2,), (3,)]
    assert [bound.call.code for bound in executable.layout.calls][-1] == "tiny0.group0"
    (outcome,) = executable.report.groups
    assert str(outcome) == ("compiler tiny0 does 3 nodes in 1 call, group0, and is asked in runs, once for each "
                            "combination of shapes")


@pytest.mark.parametrize("reason", ["", "not today"])
@pytest.mark.parametrize("fetches", [["n", "i"], ["i", "s"], ["m", "n", "i", "s"]])
def test_results_of_an_open_group_are_the_users_and_apart(fetches, reason):
    compiler = NumPyCompiler(reason=reason)
    with heald.Session(graph(*OPEN), runtime_with(compiler)) as session:
        for x in FED * 2:
            unique = np.array([*dict.fromkeys(x.tolist())])
            want = {"n": -unique, "i": -unique, "m": unique**2, "s": unique**2 - unique}
            results = session.run(fetches, {"x": x})
            for result, name in zip(results, fetches, strict=True):
                assert result.tolist() == want[name].tolist()
                result[...] = 99
    assert len(compiler.groups) == 2


def test_a_consumer_may_overwrite_one_result_of_a_declined_open_group_alone():
    nodes = [*OPEN, node("t", "Tanh", "i"), node("z", "AddV2", "t", "n"), node("w", "Tanh", "z")]
    with heald.Session(graph(*nodes), runtime_with(NumPyCompiler(reason="no"))) as session:
        for x in FED:
            n = -np.array([*dict.fromkeys(x.tolist())], np.float32)
            np.testing.assert_allclose(session.run("w", {"x": x}), np.tanh(np.tanh(n) + n), rtol=1e-5)


def test_an_open_group_is_asked_anew_for_values_that_decide_shapes():
    nodes = [placeholder("x", (4,)), placeholder("axis", (), dtypes.int32), node("u", "Unique", "x",
                                                                                out_idx=dtypes.int32),
             node("o", "Neg", "u"), node("e", "ExpandDims", "o", "axis", Tdim=dtypes.int32), node("y", "Neg", "e")]
    compiler = NumPyCompiler(lambda part: [["o", "e", "y"]])
    FUNCTIONS["ExpandDims"] = lambda x, axis: np.expand_dims(x, int(axis))
    try:
        with heald.Session(graph(*nodes), runtime_with(compiler)) as session:
            for axis, shape in ((0, (1, 2)), (1, (2, 1)), (0, (1, 2))):
                result = session.run("y", {"x": FED[0], "axis": np.int32(axis)})
                assert (result.shape, result.reshape(-1).tolist()) == (shape, [1, 2])
    finally:
        del FUNCTIONS["ExpandDims"]
    assert [group.outputs[0].dims for group in compiler.groups] == [(1, 2), (2, 1)]


def test_a_node_of_an_open_group_raises_its_own_error():
    nodes = [*OPEN, const("w", np.ones((3,))), node("bad", "AddV2", "n", "w"), node("y", "Neg", "bad")]
    with heald.Session(graph(*nodes), runtime_with(NumPyCompiler())) as session:
        with pytest.raises(InvalidArgument) as caught:
            session.run("y", {"x": FED[0]})
        assert caught.value.node == "bad"
        assert session.run("y", {"x": FED[1]}).tolist() == [2, 1, 0]


@pytest.mark.parametrize("name", ["raises", "gives a number", "gives None", "kernel raises"])
def test_a_wrong_kernel_of_an_open_group_is_the_compilers_fault(name):
    compiler, text = WRONG_KERNELS[name]
    with heald.Session(graph(*OPEN), runtime_with(compiler)) as session, pytest.raises(PluginError) as caught:
        session.run("s", {"x": FED[0]})
    assert text in caught.value.message
    assert (caught.value.plugin, caught.value.node) == ("tiny_compilers", "s")


def test_threads_share_an_open_group():
    compiler = NumPyCompiler()
    with heald.Session(graph(*OPEN), runtime_with(compiler)) as session:
        step = session.make_callable("s", ["x"])

        def work(number):
            for turn in range(30):
                x = FED[(number + turn) % 3]
                unique = np.array([*dict.fromkeys(x.tolist())])
                assert step(x).tolist() == (unique**2 - unique).tolist()

        in_threads(work)


def test_an_open_group_keeps_the_order_of_its_state():
    typed = {"dtype": dtypes.float32}
    variable = {**typed, "shape": None, "container": "", "shared_name": "v"}
    nodes = [*OPEN, Node("v", "VarHandleOp", attrs=variable), Node("set", "AssignVariableOp", ["v", "s"], attrs=typed),
             Node("read", "ReadVariableOp", ["v", "^set"], attrs=typed)]
    with heald.Session(graph(*nodes), runtime_with(NumPyCompiler())) as session:
        for x in FED:
            unique = np.array([*dict.fromkeys(x.tolist())])
            read, n = session.run(["read", "n"], {"x": x})
            assert (read.tolist(), n.tolist()) == ((unique**2 - unique).tolist(), (-unique).tolist())


@pytest.mark.parametrize("compiler", [NumPyCompiler(), NumPyCompiler(allocates=True)])
def test_control_edges_into_and_out_of_a_group_stay(compiler):
    typed = {"dtype": dtypes.float32}
    variable = {**typed, "shape": heald.api.ShapeAttr(()), "container": "", "shared_name": "v"}
    nodes = [
        placeholder("x", ()), const("one", 1.0), const("two", 2.0),
        Node("v", "VarHandleOp", attrs=variable),
        Node("first", "AssignVariableOp", ["v", "one"], attrs=typed),
        node("in", "Mul", "x", "two", "^first"), node("out", "Neg", "in"),
        Node("read", "ReadVariableOp", ["v", "^first"], attrs=typed),
        Node("second", "AssignVariableOp", ["v", "two", "^in", "^read"], attrs=typed),
        Node("after", "ReadVariableOp", ["v", "^second"], attrs=typed),
        node("sum", "AddV2", "after", "x"),
    ]
    with heald.Session(graph(*nodes), runtime_with(compiler)) as session:
        results = session.run(["out", "read", "after", "sum"], {"x": np.float32(3)})
        assert [float(result) for result in results] == [-6, 1, 2, 5]
        calls = {bound.call.node: bound.call for bound in
                 executable_of(session, ["out", "read", "after", "sum"], ("x:0",), ((),)).layout.calls}
    assert "v" not in compiler.parts[-1].nodes
    assert "has state" in compiler.parts[-1].refused["read"]
    assert set(calls["out"].after) == set(calls["first"].gives)
    assert set(calls["out"].gives) & set(calls["second"].after)


def test_a_compiler_that_declares_state_is_shown_stateful_nodes():
    drawn = node("r", "RandomUniform", "shape", dtype=dtypes.float32, T=dtypes.int32, seed=1, seed2=1)
    nodes = [const("shape", [2], np.int32), drawn, node("n", "Neg", "r")]
    for stateful in (False, True):
        compiler = NumPyCompiler(lambda part: [], stateful=stateful)
        with heald.Session(graph(*nodes), runtime_with(compiler)) as session:
            session.run("n")
        assert ("r" in compiler.parts[-1].nodes) is stateful


def test_functions_of_loops_and_branches_have_groups():
    double = function("double", "v", [node("n", "Neg", "v"), node("s", "Sub", "v", "n:y:0")], {"y": "s:z:0"})
    same = function("same", "v", [node("m", "Neg", "v"), node("i", "Neg", "m:y:0")], {"y": "i:y:0"})
    model = program([placeholder("x", (3,)), placeholder("p", (), dtypes.bool_),
                     branch("y", "p", "double", "same", "x")], double, same)
    with heald.Session(model, runtime_with(NumPyCompiler())) as session:
        assert session.run("y", {"x": X, "p": True}).tolist() == (2 * X).tolist()
        assert session.run("y", {"x": X, "p": False}).tolist() == X.tolist()
        linked = executable_of(session, ["y"], ("x:0", "p:0"), ((3,), ())).with_callees()
        assert "tiny0.group0" in [bound.call.code for one in linked for bound in one.layout.calls]


def test_nodes_behind_a_queue_are_not_shown():
    types, queue = {"timeout_ms": -1}, {"component_types": (dtypes.float32,), "shapes": (), "capacity": 2}
    nodes = [placeholder("x", ()), Node("q", "FIFOQueueV2", attrs=queue), node("a", "Neg", "x"),
             Node("put", "QueueEnqueueV2", ["q", "a"], attrs={"Tcomponents": (dtypes.float32,), **types}),
             Node("get", "QueueDequeueV2", ["q"], attrs={"component_types": (dtypes.float32,), **types}),
             node("b", "Square", "get"), node("d", "AddV2", "a", "b")]
    compiler = NumPyCompiler(lambda part: [list(part.nodes)])
    with heald.Session(graph(*nodes), runtime_with(compiler)) as session:
        options = heald.RunOptions(timeout=20)
        assert float(session.run("d", {"x": np.float32(3)}, targets=["put"], options=options)) == 6
    part = compiler.parts[-1]
    assert list(part.nodes) == ["a"]
    assert (part.refused["get"], part.refused["b"]) == ("it may wait", "it depends on a node that may wait")


def test_an_error_of_a_node_in_a_group_is_the_nodes_own():
    """A group whose node contradicts its op is not shown to the compiler's `compile`."""
    nodes = [placeholder("x", (2, 2)), const("w", np.ones((3, 2))), node("m", "MatMul", "x", "w"),
             node("n", "Neg", "m")]
    compiler = NumPyCompiler()
    with heald.Session(graph(*nodes), runtime_with(compiler)) as session, pytest.raises(InvalidArgument) as caught:
        session.run("n", {"x": np.ones((2, 2), np.float32)})
    assert caught.value.node == "m"
    assert not compiler.groups


WRONG_CLAIMS = {
    "no group": (lambda part: ["a"], "returned 'a' as a group"),
    "a number": (lambda part: [7], "returned 7 as a group"),
    "an empty group": (lambda part: [[]], "returned [] as a group"),
    "no sequence": (lambda part: 7, "raised TypeError"),
    "an unknown node": (lambda part: [["a", "z"]], "claimed 'z', which it may not have: the part has no such node"),
    "a constant": (lambda part: [["a", "c"]], "claimed 'c', which it may not have: the runtime itself serves it"),
    "one node twice": (lambda part: [["a"], ["b", "a"]], "claimed the node 'a' twice"),
    "a gap": (lambda part: [["a", "d"]], "claimed a group that is not convex: a -> b -> d"),
    "an exception": (lambda part: 1 / 0, "raised ZeroDivisionError: division by zero in claim"),
}


@pytest.mark.parametrize("name", WRONG_CLAIMS)
def test_a_wrong_claim_is_the_compilers_fault(name):
    choose, text = WRONG_CLAIMS[name]
    with (heald.Session(graph(*CHAIN), runtime_with(NumPyCompiler(choose))) as session,
          pytest.raises(PluginError) as caught):
        session.run("d", {"x": X})
    assert f"compiler 'tiny0' of plugin tiny_compilers {text}" in caught.value.message
    assert caught.value.plugin == "tiny_compilers"
    assert "[passes] disable = ['tiny0'] leaves it out" in caught.value.hint


def test_two_groups_that_would_wait_for_each_other_are_refused():
    nodes = [placeholder("x", (3,)), node("a1", "Neg", "x"), node("b1", "Abs", "a1"), node("b2", "Abs", "x"),
             node("a2", "Neg", "b2"), node("s", "AddV2", "b1", "a2")]
    compiler = NumPyCompiler(lambda part: [["a1", "a2"], ["b1", "b2"]])
    with (heald.Session(graph(*nodes), runtime_with(compiler)) as session,
          pytest.raises(PluginError, match=r"not convex: b2 -> group0 -> b1")):
        session.run("s", {"x": X})


def compiling(result):
    class Wrong(NumPyCompiler):
        def compile(self, group):
            return result(group)
    return Wrong()


WRONG_KERNELS = {
    "raises": (compiling(lambda group: 1 / 0),
               "compile of compiler 'tiny0' of plugin tiny_compilers for tiny0.group0 raised ZeroDivisionError"),
    "gives a number": (compiling(lambda group: 7),
                       "compile of compiler 'tiny0' of plugin tiny_compilers for tiny0.group0 returned int"),
    "gives None": (compiling(lambda group: None),
                   "compile of compiler 'tiny0' of plugin tiny_compilers returned None for group0"),
    "kernel raises": (compiling(lambda group: lambda *operands: 1 / 0), "ZeroDivisionError: division by zero"),
    "kernel returns an array": (compiling(lambda group: lambda *operands: np.zeros(3)), "returned"),
}


@pytest.mark.parametrize("name", WRONG_KERNELS)
def test_a_wrong_kernel_is_the_compilers_fault(name):
    compiler, text = WRONG_KERNELS[name]
    with heald.Session(graph(*CHAIN), runtime_with(compiler)) as session, pytest.raises(PluginError) as caught:
        session.run("d", {"x": X})
    assert text in caught.value.message
    assert caught.value.plugin == "tiny_compilers"
    assert caught.value.hint
    assert name == "kernel returns an array" or "[passes] disable = ['tiny0'] leaves it out" in caught.value.hint


def test_errors_of_heald_that_a_compiler_raises_pass_through():
    def refuse(_):
        raise NotFound("the model's licence")

    class Refusing(NumPyCompiler):
        def claim(self, part):
            refuse(part)

    for compiler in (Refusing(), compiling(refuse)):
        with (heald.Session(graph(*CHAIN), runtime_with(compiler)) as session,
              pytest.raises(NotFound, match="licence") as caught):
            session.run("d", {"x": X})
        assert caught.value.plugin == "tiny_compilers"


@pytest.mark.parametrize(("arguments", "text"), [
    (("Big", NumPyCompiler()), "must be written in small letters"),
    ((7, NumPyCompiler()), "must be written in small letters"),
    (("tiny", NumPyCompiler), "is the class NumPyCompiler"),
    (("tiny", object()), "without the method claim and compile"),
])
def test_a_wrong_registration_is_refused(arguments, text):
    def heald_compilers(registry):
        registry.add(*arguments, device_type="CPU")

    with pytest.raises(PluginError, match=text):
        Runtime(load_config({})).plugins.register(plugin_module("wrong", heald_compilers=heald_compilers))


def test_a_compiler_that_cannot_be_imported_is_a_plugin_error():
    with (heald.Session(graph(*CHAIN), runtime_with("nowhere.at_all:compiler")) as session,
          pytest.raises(PluginError, match="the import of compiler 'tiny0' of plugin tiny_compilers raised Module")):
        session.run("d", {"x": X})


def test_two_plugins_cannot_have_one_name():
    runtime = runtime_with(NumPyCompiler())

    def heald_compilers(registry):
        registry.add("tiny0", NumPyCompiler(), device_type="CPU")

    with pytest.raises(PluginError, match="compiler 'tiny0' is plugin tiny_compilers's already"):
        runtime.plugins.register(plugin_module("rival", heald_compilers=heald_compilers))


def test_a_permission_that_is_no_bool_is_a_plugin_error():
    compiler = NumPyCompiler()
    compiler.stateful = "yes"
    with (heald.Session(graph(*CHAIN), runtime_with(compiler)) as session,
          pytest.raises(PluginError, match="'stateful' of compiler 'tiny0' of plugin tiny_compilers is 'yes'")):
        session.run("d", {"x": X})


def test_the_digest_of_a_group_depends_on_its_content_alone():
    digests = []
    for scale, name in ((1, "c"), (1, "other"), (2, "c")):
        nodes = [placeholder("x", (3,)), const(name, np.float32([1, 2, 3]) * scale), node(f"a{name}", "Mul", "x", name),
                 node("b", "Neg", f"a{name}")]
        compiler = NumPyCompiler()
        with heald.Session(graph(*nodes), runtime_with(compiler)) as session:
            session.run("b", {"x": X})
        digests.append(heald.api.group_digest(compiler.groups[-1]))
    assert digests[0] == digests[1] != digests[2]
    assert all(op in FUNCTIONS for op in ("Mul", "Neg"))


class ExampleCompiler(NumPyCompiler):
    """Compiles for a device with memory of its own. The result of a group is its last value."""

    operands: ClassVar[list[object]] = []

    def kernel(self, group):
        output = group.outputs[0]
        steps = [({"Neg": "negative", "Relu": "relu"}[op.op], (number,))
                 for number, op in enumerate(op for op in group.fused if op.op != "Reshape")]
        launch = group.device.native.sequence(steps, output.dtype.numpy, output.size)

        def run(x, *others):
            self.operands[:] = x, *others
            launch(group.stream, x, others[-1])

        return run


def test_a_group_on_a_device_reads_where_its_nodes_read():
    shape = const("shape", [3, 2], np.int32)
    nodes = [placeholder("x", (2, 3)), node("a", "Neg", "x"), shape, node("r", "Reshape", "a", "shape",
                                                                          Tshape=dtypes.int32), node("b", "Relu", "r")]
    for compiler, code in ((ExampleCompiler(lambda part: [["a", "r", "b"]]), "tiny0.group0"),
                           (ExampleCompiler(lambda part: [["a", "r", "b"]], reason="no"), "example_device.")):
        runtime = runtime_with(compiler, device_type="EXAMPLE")
        with heald.Session(graph(*nodes), runtime, device="EXAMPLE:0") as session:
            x = np.float32([[1, -2, 3], [4, -5, -6]])
            assert session.run("b", {"x": x}).tolist() == [[0, 2], [0, 0], [5, 6]]
            assert [one.partition(".")[0] + "." for one in codes(session, ["b"], shapes=((2, 3),))].count(
                code.partition(".")[0] + ".") >= 1
        assert compiler.parts[-1].device == "EXAMPLE:0"
    operands = ExampleCompiler.operands
    assert [isinstance(operand, np.ndarray) for operand in operands] == [False, True, False]


def test_a_node_on_another_device_is_not_shown():
    nodes = [placeholder("x", (3,)), node("a", "Neg", "x", device="EXAMPLE:0"), node("b", "Neg", "a", device="CPU:0")]
    compiler = NumPyCompiler(lambda part: [["a", "b"]])
    with (heald.Session(graph(*nodes), runtime_with(compiler)) as session,
          pytest.raises(PluginError, match="claimed 'a', which it may not have: it is on EXAMPLE:0")):
        session.run("b", {"x": X})
