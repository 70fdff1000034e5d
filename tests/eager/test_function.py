"""Composite ops: graphs, functions of graphs and signatures of SavedModels, called like ops."""

from __future__ import annotations

import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.control_flow import branch, function, program
from builders.graphs import FLOAT, const, graph, node, placeholder
from harness.eager_runtime import core
from heald import errors
from heald.graphs.graph.attr_value import AttrPlaceholder
from heald.graphs.graph.function import Function
from heald.graphs.graph.graph import Node
from heald.runtime.config.config import load_config
from heald.runtime.contract.op import ArgDef
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald_eager.core_runtime import CoreRuntime
from heald_eager.function import CompositeOp
from heald_eager.function_source import function_source

ONES = np.ones((2, 2), np.float32)
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
X, Y = placeholder("x", (None, 2)), placeholder("y", (None, 2))
ADD = graph(X, Y, node("sum", "AddV2", "x", "y"))
SEVERAL = graph(X, Y, node("sum", "AddV2", "x", "y"), node("less", "Sub", "sum", "y"),
                node("product", "Mul", "sum", "x"))
ADDER = program([X], function("add", "x y", [node("s", "AddV2", "x", "y"), node("d", "Sub", "x", "y")],
                              {"sum": "s:z:0", "difference": "d:z:0"}))


def line() -> int:
    return sys._getframe(1).f_lineno


def composite_over(runtime, source, **options):
    """`heald.function` over this runtime."""
    arguments = {"inputs": None, "outputs": None, "name": None, "attrs": None, "signature": None, "device": None,
                 "config": None} | options
    handler = arguments.pop("handler", None)
    return CompositeOp(runtime, function_source(source, **arguments), handler)


def lists_of(result):
    return [handle.numpy().tolist() for handle in result]


def test_results_have_the_structure_of_the_outputs():
    f = heald.function(SEVERAL, ["x", "y:0"], "sum")
    assert f.inputs == ("x", "y")
    assert f(ONES, y=ONES * 2).numpy().tolist() == [[3, 3], [3, 3]]
    less_and_sum = heald.function(SEVERAL, outputs=["less", "sum:0"])(ONES, ONES)
    assert lists_of(less_and_sum) == [[[1, 1], [1, 1]], [[2, 2], [2, 2]]]
    named = heald.function(SEVERAL, {"a": "x:0", "b": "y"}, {"p": "product"})(b=[[1, 2]], a=[[3, 4]])
    assert {key: value.numpy().tolist() for key, value in named.items()} == {"p": [[12, 24]]}
    assert len(heald.function(SEVERAL)(ONES, ONES)) == 2  # less and product have no consumers


def test_a_function_of_the_library_is_called_by_its_name():
    f = heald.function(ADDER, name="add")
    assert (f.inputs, repr(f)) == (("x", "y"), "heald.function add(x, y)")
    assert lists_of(f(3.0, y=np.float32(1))) == [4, 2]
    with pytest.raises(errors.NotFound, match="no function 'ad'"):
        heald.function(ADDER, name="ad")


def test_a_polymorphic_function_takes_its_types_by_attrs():
    generic = Function("twice", [ArgDef("x", type_attr="T")], [ArgDef("y", type_attr="T")],
                       [Node("t", "AddV2", ["x", "x"], attrs={"T": AttrPlaceholder("T")})], {"y": "t:z:0"})
    twice = heald.function(program([], generic), name="twice", attrs={"T": "int64"})
    assert twice(21).numpy() == np.int64(42)
    assert twice(21).dtype is dtypes.int64
    with pytest.raises(errors.InvalidArgument, match="needs the attribute 'T'"):
        heald.function(program([], generic), name="twice")


def test_a_signature_of_a_saved_model_returns_a_dict():
    test = np.load(DIGITS / "test.npz")
    model = heald.load(DIGITS / "saved_model")
    expected = model(image=test["image"][:5])
    for f in (heald.function(model), heald.function(DIGITS / "saved_model", signature="serving_default"),
              heald.function(model.signatures["serving_default"])):
        got = f(image=heald.TensorHandle(test["image"][:5]))
        assert f.outputs == tuple(expected) == tuple(got)
        assert all(np.array_equal(got[name].numpy(), expected[name]) for name in expected)
    with pytest.raises(errors.NotFound, match="no signature 'serve'"):
        heald.function(model, signature="serve")


def test_a_call_returns_before_its_arguments_have_come():
    cpu = core()
    f = composite_over(cpu, SEVERAL, outputs="product")
    native = cpu.host.open("SIM:0").native
    with native.machine.lock:  # no other thread moves the device's clock
        late = cpu.execute("MatMul", ONES, ONES, device="SIM:0").to("CPU:0")
        result = f(late, late)
        assert (result.is_available, result.shape, result.dtype.name) == (False, (2, 2), "float32")
    assert result.numpy().tolist() == [[8, 8], [8, 8]]
    assert f(cpu.handle(ONES).to("SIM:0"), ONES).numpy().tolist() == [[2, 2], [2, 2]]


def test_an_argument_of_unknown_shape_is_waited_for():
    cpu = core()
    open_graph = graph(placeholder("x", None, dtypes.int64), node("n", "Neg", "x", T=dtypes.int64),
                       node("y", "Mul", "n", "n", T=dtypes.int64))
    f = composite_over(cpu, open_graph)
    where = cpu.execute("Where", cpu.handle([True, False, True]).to("SIM:0").to("CPU:0"))
    assert f(where).numpy().tolist() == [[0], [4]]


def test_one_kernel_runs_at_once_without_a_program(monkeypatch):
    f = heald.function(ADD)
    a = heald.TensorHandle(ONES)
    monkeypatch.setattr("heald_eager.function.CompositeRun", None)
    assert f(ONES, ONES).is_available
    first = f(a, a)
    monkeypatch.setattr("heald_eager.function.inputs_in_order", None)  # handles of these kinds need one look-up
    assert f(a, first).numpy().tolist() == [[3, 3], [3, 3]]
    with pytest.raises(errors.HealdError, match="not callable"):
        f(a, ONES)


def test_constants_are_arguments_of_the_one_kernel(monkeypatch):
    weights = np.float32([[1, 2, 3], [4, 5, 6]])
    f = heald.function(graph(X, const("w", weights), node("y", "MatMul", "x", "w")))
    monkeypatch.setattr("heald_eager.function.CompositeRun", None)
    for _ in range(2):
        assert np.array_equal(f(heald.TensorHandle(ONES)).numpy(), ONES @ weights)


def test_a_cancelled_host_gives_cancelled_handles_until_restart():
    cpu = core()
    f, a = composite_over(cpu, ADD), cpu.handle(ONES)
    assert f(a, a).numpy().tolist() == f(a, a).numpy().tolist() == [[2, 2], [2, 2]]
    cpu.host.cancel_execution()
    assert isinstance(f(a, a).error, errors.Cancelled)
    cpu.host.restart()
    assert f(a, a).numpy().tolist() == [[2, 2], [2, 2]]


def test_the_call_raises_errors_of_its_arguments_with_the_users_line():
    f = heald.function(ADD)
    bad = ((ONES,), {}, "missing input: y"), ((ONES, ONES, ONES), {}, "takes 2 inputs, 3 given"), (
        (ONES,), {"z": ONES}, "has no input 'z'"), ((ONES, [["a", "b"]]), {}, "input 'y'"), (
        (ONES, np.ones((2, 3), np.float32)), {}, r"input 'y' has shape \[2,3\], expected \[\?,2\]"), (
        (heald.TensorHandle([[1, 2]]), ONES), {}, "must be float32, but it is int32"), (
        (ONES, np.ones((3, 2), np.float32)), {}, "shape")
    for positional, named, text in bad:
        with pytest.raises(errors.InvalidArgument, match=text) as caught:
            f(*positional, **named)
        assert (caught.value.location.file, caught.value.location.line) == (__file__, line() - 1)


def test_a_failing_kernel_makes_errors_of_the_results_with_the_users_line():
    reports = []
    cpu = core(diagnostics=reports.append)
    shape = graph(placeholder("x", (2,)), placeholder("i", (), dtypes.int32), const("axis", 0, np.int32),
                  Node("g", "GatherV2", ["x", "i", "axis"], attrs={"Tparams": FLOAT, "Tindices": dtypes.int32,
                                                                   "Taxis": dtypes.int32}),
                  node("y", "Neg", "g"), node("z", "Neg", "x"))
    f = composite_over(cpu, shape, inputs=["x", "i"], outputs=["y", "z"])
    here = line() + 1
    y, z = f([1, 2], 7)
    later = cpu.execute("Neg", y)
    for handle in (y, z, later):
        with pytest.raises(errors.InvalidArgument) as caught:
            handle.numpy()
        assert (caught.value.op, caught.value.node, caught.value.location.line) == ("GatherV2", "g", here)
    assert len(reports) == 1
    assert lists_of(f([1, 2], 1)) == [-2, [-1, -2]]


def test_an_error_among_the_arguments_is_the_error_of_the_results():
    bad = heald.execute("GatherV2", ONES, [7], 0)
    f = heald.function(SEVERAL, outputs=["sum", "product"])
    assert [handle.error.op for handle in f(bad, ONES)] == ["GatherV2", "GatherV2"]


def counter():
    """A graph that adds x to its variable, and returns the sum."""
    resource = "v:resource x"
    return program(
        [placeholder("x", ()), Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": None, "shared_name": b"v"}),
         Node("is", "VarIsInitializedOp", ["v"]),
         branch("b", "is", "add", "set", "v", "x", arguments=resource, gives=""),
         Node("y", "ReadVariableOp", ["v"], controls=["b"], attrs={"dtype": FLOAT})],
        *[function(name, resource, [Node("set", op, ["v", "x"], attrs={"dtype": FLOAT})], {}, effects=["set"])
          for name, op in (("add", "AssignAddVariableOp"), ("set", "AssignVariableOp"))])


@pytest.mark.parametrize("seed", range(6))
def test_state_belongs_to_the_function_and_its_calls_keep_their_order(seed):
    cpu = core(seed)
    f, g = composite_over(cpu, counter(), outputs="y"), composite_over(cpu, counter(), outputs="y")
    values = [f(float(i)) for i in range(1, 20)]
    assert g(5.0).numpy() == 5
    assert lists_of(values) == [i * (i + 1) / 2 for i in range(1, 20)]


def test_a_function_without_effects_of_its_own_needs_no_order():
    assert not heald.Session(SEVERAL).asynchronous("product", ["x", "y"]).has_effects
    assert heald.Session(counter()).asynchronous("y", ["x"]).has_effects


def test_the_caller_may_write_an_array_after_the_call():
    f = heald.function(SEVERAL, outputs="product")
    array = ONES.copy()
    results = [f(array, array) for _ in range(20)]
    array[:] = 7
    assert all(result.numpy().tolist() == [[2, 2], [2, 2]] for result in results)


def test_a_function_runs_on_its_device(monkeypatch):
    core = runtime(load_config({"plugins": {"allow": ["cpu", "tf_ops", "sim"]}}))
    device, copied_bytes = core.host.open("SIM:0"), []
    copy_out = device.copy_out

    def note_copy(buffer, array, stream):
        copied_bytes.append(array.nbytes)
        copy_out(buffer, array, stream)

    monkeypatch.setattr(device, "copy_out", note_copy)
    f = heald.function(SEVERAL, outputs="product", device="SIM:0", config=core)
    assert f(ONES, ONES).numpy().tolist() == [[2, 2], [2, 2]]
    assert copied_bytes == [ONES.nbytes]
    core.host.close()  # ends the thread that waits for the device


def test_one_kernel_on_a_device_runs_as_this_op(monkeypatch):
    core = runtime(load_config({"plugins": {"allow": ["cpu", "tf_ops", "sim"]}}))
    cpu = CoreRuntime(core.host)
    difference = graph(X, Y, node("d", "Sub", "y", "x"))
    f = composite_over(cpu, difference, inputs=["x", "y"], outputs="d", device="SIM:0", config=core)
    monkeypatch.setattr("heald_eager.function.CompositeRun", None)
    x, y = cpu.handle(ONES).to("SIM:0"), cpu.handle(ONES * 3)
    for _ in range(2):
        result = f(x, y)
        assert (result.device, result.numpy().tolist()) == ("SIM:0", [[2, 2], [2, 2]])
    assert core.host.open("SIM:0").native.report == []
    core.host.close()


@pytest.mark.parametrize("outputs", [None, ["sum", "product"]])
def test_functions_take_scalar_tensors_and_refuse_sparse_ones(outputs):
    f, twos = heald.function(SEVERAL if outputs else ADD, outputs=outputs), heald.scalar_tensor((2, 2), np.float32(2))
    for x, y in [(twos, heald.TensorHandle(ONES)), (twos, twos)] * 2:
        results = f(x, y)
        first = results[0] if outputs else results
        assert first.numpy().tolist() == (x.numpy() + y.numpy()).tolist()
    with pytest.raises(errors.InvalidArgument, match="sparse tensor of float32.*functions take dense"):
        f(heald.TensorHandle(ONES).to_coo(), twos)


def test_handlers_execute_functions(capsys):
    f = heald.function(ADD, handler="logging")
    assert f(ONES, ONES).numpy().tolist() == [[2, 2], [2, 2]]
    assert "dispatch 'graph' 2 argument(s), 1 result(s), no attributes" in capsys.readouterr().err
    with pytest.raises(errors.Unimplemented, match="not supported by NullOpHandler"):
        heald.function(ADD, handler="null")(ONES, ONES)
    with pytest.raises(errors.InvalidArgument, match="no handler of a function"):
        heald.function(ADD, handler="CPU:0")


@pytest.mark.parametrize(("source", "options", "text"), [
    (ADD, {"signature": "s"}, "signature= is given"), (ADD, {"attrs": {"T": "int32"}}, "attrs= is given"),
    (ADDER, {"name": "add", "inputs": ["x"]}, "inputs= is given"), (3, {}, "a int is no source"),
    (DIGITS / "saved_model", {"outputs": ["digit"]}, "outputs= is given"), (ADD, {"outputs": 7}, "a int is given"),
    (ADDER, {"name": 3}, "name is a int"), (ADDER, {"name": "add", "attrs": 3}, "attrs are a int"),
    (DIGITS / "saved_model", {"signature": ["s"]}, "signature is a list"),
])
def test_arguments_that_do_not_fit_their_source_are_refused(source, options, text):
    with pytest.raises(errors.InvalidArgument, match=text):
        heald.function(source, **options)


def test_a_closed_session_ends_its_functions():
    model = heald.load(DIGITS / "saved_model")
    f = heald.function(model)
    model.session.close()
    with pytest.raises(errors.FailedPrecondition, match="closed"):
        f(np.zeros((1, 8, 8, 1), np.float32))


DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(file.parent for file in (DATA / "saved_models").rglob("saved_model.pb"))


def arguments(metas):
    """Some value for each input: small numbers, or the text "a"."""
    rng = np.random.default_rng(0)
    shapes = {name: [dim or 2 for dim in meta.shape or ()] for name, meta in metas.items()}
    return {name: rng.integers(0, 2, shapes[name]).astype(meta.dtype.numpy) if meta.dtype.itemsize else
            np.full(shapes[name], b"a", object) for name, meta in metas.items()}


def lists_or_error(call, names, feeds):
    """The results of a call as lists by name, or its error's class and text."""
    try:
        results = call(**feeds)
        results = results if isinstance(results, dict) else {names[0]: results}
        return {name: np.asarray(value).tolist() for name, value in results.items()}
    except errors.HealdError as error:
        return type(error), error.message


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.parent.name)
def test_a_function_of_a_signature_gives_the_sessions_results_and_changes_state_alike(path):
    loaded, other = heald.load(path), heald.load(path)
    for name, signature in loaded.signatures.items():
        def call(name=name, **feeds):
            return heald.function(other, signature=name)(**feeds)

        feeds, names = arguments(signature.inputs), list(signature.outputs)
        for _ in range(2 if signature.is_runnable else 0):
            assert lists_or_error(call, names, feeds) == lists_or_error(signature, names, feeds), name


@pytest.mark.parametrize(("name", "outputs"), [
    ("v1_cond_nested", ["y"]), ("v1_cond_grad", ["g"]), ("v1_while_cond_inside", ["steps"]), ("v1_while_nested", ["a"]),
    ("v2_case", None), ("v1_switch_case", ["Identity", "Identity_1"]), ("keras_tiny_cnn", None),
])
def test_control_flow_gives_the_sessions_results(name, outputs):
    graph = heald.graphdef.load(DATA / "graphs" / f"{name}.pb")
    model = heald.load(DATA / "graphs" / f"{name}.pb", outputs=outputs)
    f, feeds = heald.function(graph, outputs=list(model.outputs)), arguments(model.inputs)
    results = dict(zip(model.outputs, f(**feeds), strict=True))
    expected = model(**feeds)
    expected = expected if isinstance(expected, dict) else {next(iter(model.outputs)): expected}
    assert {key: value.numpy().tolist() for key, value in results.items()} == {
        key: value.tolist() for key, value in expected.items()}
