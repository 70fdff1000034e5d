"""Types of a program from outside are derived: a stated type that contradicts them is an error, and decides nothing."""

from __future__ import annotations

from pathlib import Path

import heald
import numpy as np
import pytest
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, NotFound
from heald.runtime.linker.preparation import Preparation
from heald.runtime.program.compiled_model import CompiledModel, Entry, Port, Requirement
from heald.runtime.program.host_program import Call, ProgramDef, ProgramFunction
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

FLOAT = dtypes.float32
X, LARGE, OPEN = (TensorMetadata(FLOAT, shape) for shape in ((2, 4), (200, 200), None))
WIDE, BOOL = TensorMetadata(dtypes.float64, (2, 4)), TensorMetadata(dtypes.bool_, ())
T = {"T": FLOAT}
PRODUCT = {**T, "transpose_a": False, "transpose_b": False}
FEED = np.float32([[1, -1, 2, -2], [3, -3, 4, -4]])
RELU = np.maximum(FEED, 0)
FALSE = np.zeros((), bool)
CHAIN = "!tfrt.chain"


def model_of(*types, calls, results=(1,), functions=(), constants=()):
    main = ProgramFunction("main", ("x",), types, calls, results, is_compiled=True)
    program = ProgramDef({"main": main, **{function.name: function for function in functions}}, constants, ("CPU:0",))
    ports = tuple(Port(f"y{i}", f"y{i}", meta) for i, meta in enumerate(main.result_metas))
    return CompiledModel(program, (Entry("", "main", (Port("x", "x", types[0]),), ports),))


def relu(argument, result, name="relu", attrs=T):
    return Call("cpu.Relu", (argument,), (result,), attrs, 0, name)


def body(argument=X, result=X, name="body"):
    return ProgramFunction(name, ("x",), (argument, result), (relu(0, 1),), (1,), is_compiled=True)


CONDITION = ProgramFunction("condition", ("x",), (X, BOOL), (Call("heald.constant", (), (1,), {"index": 0}),), (1,),
                            is_compiled=True)


def call(result=X, function=None, arguments=(0,)):
    return model_of(X, result, calls=(Call("heald.call", arguments, (1,), functions=("body",)),),
                    functions=[body() if function is None else function])


def loop(result=X, function=None, condition=CONDITION, attrs=None):
    calls = (Call("heald.while", (0,), (1,), attrs or {}, functions=("condition", "body")),)
    return model_of(X, result, calls=calls, constants=(FALSE,),
                    functions=[condition, body() if function is None else function])


def choice(result=X, other=None, arguments=(2, 0), nonstrict=False):
    calls = (Call("heald.constant", (), (2,), {"index": 0}),
             Call("heald.if", arguments, (1,), functions=("body", "other"), nonstrict=nonstrict))
    return model_of(X, result, BOOL, calls=calls, constants=(FALSE,), functions=[body(), other or body(name="other")])


def recursion(argument=X, inner=X, result=X, other=X):
    """A function that calls itself, so that its calls are linked when they first run."""
    calls = (Call("heald.constant", (), (1,), {"index": 0}), relu(0, 2),
             Call("heald.if", (1, 2), (3,), functions=("body", "other")))
    return model_of(X, result, calls=(Call("heald.call", (0,), (1,), functions=("body",)),), constants=(FALSE,),
                    functions=[ProgramFunction("body", ("x",), (argument, BOOL, X, inner), calls, (3,),
                                               is_compiled=True), body(other, other, "other")])


def at_once(model):
    return LoadedCompiledModel(heald.bef.loads(heald.bef.dumps(model)))(FEED)


RIGHT = {
    "an op": model_of(X, X, calls=(relu(0, 1),)),
    "an op without a stated shape": model_of(X, OPEN, calls=(relu(0, 1),)),
    "a call": call(), "a call without a stated shape": call(OPEN), "a function of any shape": call(X, body(OPEN, OPEN)),
    "a loop": loop(X, body(), CONDITION), "a choice": choice(), "recursion": recursion(),
}


@pytest.mark.parametrize("model", RIGHT.values(), ids=RIGHT)
def test_types_that_are_right_or_open_give_the_right_answer(model):
    results = at_once(model)
    assert np.array_equal(results, FEED if "while" in model.program.functions["main"].kernels[0].code else RELU)


WRONG = {
    "a result": (model_of(X, LARGE, calls=(relu(0, 1),)),
                 r"result 0 of cpu.Relu is float32\[2,4\], the program states float32\[200,200\]"),
    "an element type": (model_of(X, WIDE, calls=(relu(0, 1),)), "output 'activations' is float32, .* states float64"),
    "a host type": (model_of(X, "i32", calls=(relu(0, 1),), results=()), "output 'activations' is float32, .* i32"),
    "a constant": (model_of(X, LARGE, calls=(Call("heald.constant", (), (1,), {"index": 0}),), constants=(FEED,)),
                   r"result 0 of heald.constant is float32\[2,4\]"),
    "a call": (call(LARGE), r"result 0 of heald.call is float32\[2,4\], the program states float32\[200,200\]"),
    "an argument of a function": (call(X, body(LARGE, LARGE)), "argument 'x' of function 'body' is"),
    "a result of a function": (call(X, body(X, LARGE)), "result 0 of cpu.Relu"),
    "the number of arguments": (call(X, None, (0, 0)), "takes 1 arguments, 2 are given"),
    "the number of arguments of a branch": (choice(arguments=(2, 0, 0)), "takes 1 arguments, 2 are given"),
    "a choice that does not wait": (choice(nonstrict=True), "the kernel takes no pending arguments"),
    "a loop": (loop(LARGE), r"result 0 of heald.while is float32\[2,4\]"),
    "the element type of a loop": (loop(WIDE), "result 0 of heald.while is float32"),
    "a loop whose body returns twice as much": (
        loop(X, ProgramFunction("body", ("x",), (X,), (), (0, 0))), r"returns \(float32, float32\), expected"),
    "a loop whose body returns another type": (
        loop(X, ProgramFunction("body", ("x",), (X, WIDE), (
            Call("cpu.Cast", (0,), (1,), {"SrcT": FLOAT, "DstT": dtypes.float64, "Truncate": False}, 0),), (1,))),
        r"returns \(float64\), expected is \(float32\)"),
    "a loop without a condition": (
        loop(X, None, ProgramFunction("condition", ("x",), (X,), (), ())), "returns no condition"),
    "a loop whose condition is a chain": (
        loop(X, None, ProgramFunction("condition", ("x",), (X, CHAIN), (Call("tfrt.new.chain", (), (1,)),), (1,))),
        "returns no condition"),
    "a loop that has no chain": (loop(X, None, CONDITION, {"chain": True}), "expected is .float32, variant"),
    "a choice": (choice(LARGE), r"result 0 of heald.if is float32\[2,4\]"),
    "a branch that returns more": (
        choice(X, ProgramFunction("other", ("x",), (X,), (), (0, 0))), "'other' returns .float32, float32., expected"),
    "a branch of another shape": (choice(LARGE, body(LARGE, LARGE, "other")), "argument 'x' of function 'other'"),
    "recursion": (recursion(inner=LARGE), "result 0 of heald.call"),
    "an argument of recursion": (recursion(LARGE, LARGE, LARGE), "argument 'x' of function 'body'"),
    "a branch of recursion": (recursion(inner=LARGE, result=LARGE, other=LARGE), "a call of function 'other' gives"),
    "a function of a host kernel": (
        model_of(X, LARGE, calls=(Call("tfrt.call", (0,), (1,), functions=("body",)),), functions=[body()]),
        r"tfrt.call gives float32\[2,4\], the program states"),
    "an argument of such a function": (
        model_of(X, LARGE, calls=(Call("tfrt.call", (0,), (1,), functions=("body",)),), functions=[body(LARGE, LARGE)]),
        "a call of function 'body' gives"),
    "a value that waits": (model_of(X, LARGE, calls=(Call("heald.gate", (0,), (1,)),)), "heald.gate gives"),
    "the first of several values": (
        model_of(X, WIDE, TensorMetadata(dtypes.int32, ()), calls=(Call("heald.merge", (0,), (1, 2)),)),
        "heald.merge gives"),
    "the variables of a frame": (
        model_of(X, X, calls=(Call("heald.frame", (0,), (1,), {"variables": -1, "exits": 1}, functions=("body",)),),
                 functions=[ProgramFunction("body", ("x",), (X,), (), (0, 0))]), "a loop of -1 variables"),
    "a predicate": (model_of(X, X, X, CHAIN, calls=(Call("heald.switch", (0, 0), (1, 2, 3)),)), "must be a scalar"),
    "a condition that is no tensor": (
        model_of(X, X, "i32", calls=(Call("tfrt.constant.i32", (), (2,), {"value": 1}),
                                     Call("heald.if", (2, 0), (1,), functions=("body", "body"))), functions=[body()]),
        "has i32 as argument 0, which is tensor"),
}


@pytest.mark.parametrize(("model", "message"), WRONG.values(), ids=WRONG)
def test_a_stated_type_that_contradicts_the_derived_one_is_refused(model, message):
    with pytest.raises(InvalidArgument, match=message):
        at_once(model)


def test_text_with_the_mark_of_compiled_functions_is_derived_as_well():
    for model in (WRONG["a result"][0], WRONG["a call"][0], WRONG["a host type"][0]):
        text = heald.mlir.dumps(model.program)
        assert "heald.compiled" in text
        program = heald.mlir.loads(text)
        with pytest.raises(InvalidArgument, match="the program states"):
            heald.HostProgram(program.functions, program.constants, program.requires).run("main", FEED)


def on_device(*calls, types, results):
    main = ProgramFunction("main", ("x", "shape"), types, calls, results, is_compiled=True)
    inputs = tuple(Port(name, name, meta) for name, meta in zip(("x", "shape"), types, strict=False))
    entry = Entry("", "main", inputs, tuple(Port("y", "y", meta) for meta in main.result_metas))
    return LoadedCompiledModel(CompiledModel(ProgramDef({"main": main}, (), ("EXAMPLE:0",)), (entry,)))


COPY_IN = Call("heald.copy", (0,), (2,), {"to": "device"}, 0)
COPY_OUT = Call("heald.copy", (3,), (4,), {"to": "host"}, 0)
RESHAPE = Call("example_device.Reshape", (2, 1), (3,), {"T": FLOAT, "Tshape": dtypes.int32}, 0, "reshape")
SIZES, TURNED = TensorMetadata(dtypes.int32, (2,)), TensorMetadata(FLOAT, (4, 2))


def test_a_device_that_needs_static_shapes_refuses_those_that_only_the_file_states():
    model = on_device(COPY_IN, RESHAPE, COPY_OUT, types=(X, SIZES, X, TURNED, TURNED), results=(4,))
    with pytest.raises(FailedPrecondition, match="known only while it runs") as caught:
        model(FEED, np.int32([4, 2]))
    assert caught.value.node == "reshape"


NEG = Call("example_device.Neg", (2,), (3,), T, 0, "neg")
MEMORY = {
    "an array for a buffer": ((NEG._replace(args=(0,)), COPY_OUT), (X, SIZES, X, X, X), (4,),
                              "in the memory of EXAMPLE:0, it is in host memory"),
    "a buffer for an array": ((COPY_IN, NEG, Call("heald.gate", (3,), (4,))), (X, SIZES, X, X, X), (4,),
                              "in host memory, it is in the memory of EXAMPLE:0"),
    "a copy of an array to the host": ((COPY_OUT._replace(args=(0,), results=(2,)),), (X, SIZES, X), (2,),
                                       "in the memory of EXAMPLE:0, it is in host"),
    "a buffer as a result": ((COPY_IN, NEG), (X, SIZES, X, X), (3,), "returns a value in a device's memory"),
}


@pytest.mark.parametrize(("calls", "types", "results", "message"), MEMORY.values(), ids=MEMORY)
def test_a_call_reads_the_memory_that_it_works_on(calls, types, results, message):
    with pytest.raises(InvalidArgument, match=message):
        on_device(*calls, types=types, results=results)(FEED, np.int32([4, 2]))


def test_a_call_on_a_device_whose_types_are_right_runs():
    model = on_device(COPY_IN, NEG, COPY_OUT, types=(X, SIZES, X, X, X), results=(4,))
    assert np.array_equal(model(FEED, np.int32([4, 2])), -FEED)


def pool(**attrs):
    image = TensorMetadata(FLOAT, (1, 2, 4, 1))
    attributes = {"T": FLOAT, "ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID", **attrs}
    present_attributes = {name: value for name, value in attributes.items() if value is not NotImplemented}
    return model_of(image, OPEN, calls=(Call("cpu.MaxPool", (0,), (1,), present_attributes, 0, "pool"),))


ATTRIBUTES = {
    "a negative size": (pool(ksize=(1, -3, 3, 1)), "ksize"), "an unknown name": (pool(padding="WILD"), "'WILD'"),
    "too few sizes": (pool(ksize=(1, 2)), "ksize"),
    "a text for a list": (pool(strides="WILD"), "'strides' must be list"),
    "no list": (pool(ksize=None), "'ksize' must be list"),
    "a missing one": (pool(ksize=NotImplemented), "'ksize'.*missing"),
    "an undeclared one": (pool(extra=1), "no attribute 'extra'"),
    "another type": (pool(T=dtypes.float64), "float64"),
    "a number for a type": (pool(T=7), "'T' must be type"),
}


@pytest.mark.parametrize(("model", "message"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_an_attribute_is_checked_as_that_of_a_graphs_node(model, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        LoadedCompiledModel(model)(np.ones((1, 2, 4, 1), np.float32))
    assert (caught.value.node, caught.value.op) == ("pool", "MaxPool")


def test_a_default_is_filled_in():
    assert LoadedCompiledModel(pool())(np.ones((1, 2, 4, 1), np.float32)).shape == (1, 1, 3, 1)


def test_a_call_of_no_op_names_it():
    with pytest.raises(NotFound, match="no op is called 'Rleu'"):
        at_once(model_of(X, X, calls=(Call("cpu.Rleu", (0,), (1,), T, 0),)))


def test_the_arguments_of_an_op_are_counted():
    with pytest.raises(InvalidArgument, match="takes 1 inputs .* the call has 2"):
        at_once(model_of(X, X, calls=(Call("cpu.Relu", (0, 0), (1,), T, 0),)))


def test_two_ops_of_one_node_are_refused_since_kernels_keep_weights_by_node():
    with pytest.raises(InvalidArgument, match="two ops of the function have this node"):
        at_once(model_of(X, X, X, calls=(relu(0, 1), relu(1, 2))))


def test_ops_without_nodes_keep_weights_of_their_own():
    def product(argument, weights, result):
        return Call("onednn.MatMul", (argument, weights), (result,), T, 0)

    rows, square = TensorMetadata(FLOAT, (32, 64)), TensorMetadata(FLOAT, (64, 64))
    calls = (Call("heald.constant", (), (1,), {"index": 0}), Call("heald.constant", (), (2,), {"index": 1}),
             product(0, 1, 3), product(3, 2, 4))
    weights = np.eye(64, dtype="f4"), 2 * np.eye(64, dtype="f4")
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    model = model_of(rows, square, square, rows, rows, calls=calls, results=(4,), constants=weights)
    assert np.array_equal(LoadedCompiledModel(model)(x), 2 * x)


def test_calls_of_one_function_with_other_constants_have_weights_of_their_own():
    rows, square, narrow = (TensorMetadata(FLOAT, shape) for shape in ((32, 64), (64, 64), (64, 16)))
    product = ProgramFunction("product", ("x", "w"), (rows, OPEN, OPEN), (
        Call("onednn.MatMul", (0, 1), (2,), T, 0, "product"),), (2,))
    calls = tuple(Call("heald.constant", (), (r,), {"index": i}) for i, r in enumerate((1, 2, 3)))
    calls += tuple(Call("heald.call", (0, r), (r + 3,), functions=("product",)) for r in (1, 2, 3))
    weights = (np.eye(64, 16, dtype="f4"), np.eye(64, dtype="f4"), 2 * np.eye(64, dtype="f4"))
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    some, same, twice = LoadedCompiledModel(model_of(
        rows, narrow, square, square, OPEN, rows, rows, calls=calls, results=(4, 5, 6), functions=[product],
        constants=weights))(x).values()
    assert np.array_equal(some, x[:, :16])
    assert np.array_equal(same, x)
    assert np.array_equal(twice, 2 * x)


@pytest.mark.parametrize("change", [
    lambda array: array[:3], lambda array: array.view("i1"), lambda array: array[None],
    lambda array: array.view("f4")])
def test_a_prepared_array_of_another_type_or_shape_is_not_used(change):
    rows, square = TensorMetadata(FLOAT, (32, 64)), TensorMetadata(FLOAT, (64, 64))
    calls = (Call("heald.constant", (), (1,), {"index": 0}),
             Call("onednn.MatMul", (0, 1), (2,), PRODUCT, 0, "product"))
    model = model_of(rows, square, rows, calls=calls, results=(2,), constants=(2 * np.eye(64, dtype="f4"),))
    (right,) = Preparation(model.program, ["main"], runtime().host).prepared
    wrong = model._replace(prepared=(right._replace(value=change(np.zeros_like(right.value))),))
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    assert np.array_equal(LoadedCompiledModel(wrong)(x), 2 * x)


def test_a_file_that_states_signatures_of_ops_is_read_and_they_count_for_nothing():
    model = heald.load(Path(__file__).parents[2] / "data/bef/with_signatures.bef")
    assert model(np.float32([[1, 0], [0, -1]])).tolist() == [[1, 2, 3], [0, 0, 0]]
    assert model(np.float32([[1, 1]])).tolist() == [[5, 7, 9]]


@pytest.mark.parametrize("version", ["9" * 5000, "1." * 3000, "\u0663", "", "1.x"])
def test_a_required_version_of_any_length_is_compared(version):
    needed = (Requirement("cpu", "heald-cpu", version, "ops"), Requirement("tf_ops", "heald-tf-ops", "0.1", "ops"))
    model = model_of(X, X, calls=(relu(0, 1),))._replace(requirements=needed)
    try:
        assert np.array_equal(LoadedCompiledModel(model)(FEED), RELU)
    except HealdError as error:
        assert isinstance(error, FailedPrecondition)  # noqa: PT017 - either is right, by the version
