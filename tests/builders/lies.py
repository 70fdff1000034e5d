"""Lies: changes of one fact of a compiled model, as an attacker with the file may make them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from heald.runtime.program.compiled_model import CompiledModel
from heald.runtime.program.host_program import CONSTANT, RUNTIME_CODES, Call, ProgramFunction, RegisterType
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata

Lie = tuple[str, CompiledModel]  # the changed fact, and the model


def _with_function(model: CompiledModel, function: ProgramFunction) -> CompiledModel:
    return model._replace(program=model.program._replace(
        functions={**model.program.functions, function.name: function}))


def _with_call(model: CompiledModel, function: ProgramFunction, index: int, call: Call) -> CompiledModel:
    calls = function.kernels
    return _with_function(model, function._replace(kernels=(*calls[:index], call, *calls[index + 1:])))


def other_types(kind: RegisterType) -> Iterator[RegisterType]:
    if isinstance(kind, str):
        return
    other = dtypes.float64 if kind.dtype is dtypes.float32 else dtypes.float32
    yield TensorMetadata(other, kind.shape)
    yield TensorMetadata(dtypes.string, kind.shape)
    yield "i32"
    yield TensorMetadata(kind.dtype, None)
    if kind.shape is not None:
        yield TensorMetadata(kind.dtype, (*kind.shape, 1))
        yield TensorMetadata(kind.dtype, tuple(None for _ in kind.shape))
        for axis, dim in enumerate(kind.shape):
            for size in (3000 + (dim or 0), 0, 1):
                yield TensorMetadata(kind.dtype, (*kind.shape[:axis], size, *kind.shape[axis + 1:]))


def of_types(model: CompiledModel, function: ProgramFunction) -> Iterator[Lie]:
    """States another type of one register."""
    types = function.register_types
    for register, kind in enumerate(types):
        for other in other_types(kind):
            changed = (*types[:register], other, *types[register + 1:])
            yield (f"register {register} is {other}, not {kind}",
                   _with_function(model, function._replace(register_types=changed)))


def other_values(value: Any) -> Iterator[Any]:
    """Other values of an attribute."""
    yield from (None, "WILD", 7.5, -3, (), (1, -3, 3, 1))
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (0, value + 1, -value, 2**40)
    elif isinstance(value, tuple) and value:
        yield from (value[:-1], (*value, value[-1]), (value[0],) * len(value), value[::-1])
        if all(isinstance(item, int) for item in value):
            yield from (tuple(-item for item in value), tuple(item + 1 for item in value), (2**33,) * len(value),
                        (0,) * len(value))
    elif isinstance(value, str):
        yield from ("", "SAME", "VALID", "NCHW", "NHWC")
    elif isinstance(value, dtypes.DType):
        yield from (dtypes.float64, dtypes.int8, dtypes.string)


def of_attributes(model: CompiledModel, function: ProgramFunction) -> Iterator[Lie]:
    """Changes or removes one attribute of a call."""
    for index, call in enumerate(function.kernels):
        for name, value in call.attrs.items():
            left = {key: other_value for key, other_value in call.attrs.items() if key != name}
            yield f"{call.code} has no '{name}'", _with_call(model, function, index, call._replace(attrs=left))
            for other in other_values(value):
                yield (f"'{name}' of {call.code} is {other!r:.60}, not {value!r:.60}",
                       _with_call(model, function, index, call._replace(attrs={**left, name: other})))
        yield (f"{call.code} has an attribute 'extra'",
               _with_call(model, function, index, call._replace(attrs={**call.attrs, "extra": 1})))


def of_calls(model: CompiledModel, function: ProgramFunction) -> Iterator[Lie]:
    """Changes arguments, results, device or node of one call."""
    for index, call in enumerate(function.kernels):
        defined = sorted({*range(len(function.arg_names)), *(r for c in function.kernels[:index] for r in c.results)})
        for arg_index, argument in enumerate(call.args):
            for other in defined:
                if other != argument:
                    args = (*call.args[:arg_index], other, *call.args[arg_index + 1:])
                    yield (f"argument {arg_index} of {call.code} is register {other}, not {argument}",
                           _with_call(model, function, index, call._replace(args=args)))
        yield f"{call.code} lacks its last argument", _with_call(model, function, index, call._replace(
            args=call.args[:-1]))
        yield f"{call.code} has its arguments twice", _with_call(model, function, index, call._replace(
            args=call.args * 2))
        if call.code not in RUNTIME_CODES:
            yield f"{call.code} is no call of a device", _with_call(model, function, index, call._replace(stream=-1))
            for op in ("Identity", "Relu", "Reshape", "Softmax", "BiasAdd", "AddV2", "MatMul", "Conv2D", "ConcatV2"):
                code = f"{call.pack}.{op}"
                yield f"{call.code} is {code}", _with_call(model, function, index, call._replace(code=code))


def of_constants(model: CompiledModel, function: ProgramFunction) -> Iterator[Lie]:
    """Replaces a constant by one of another shape or type, and states its type rightly."""
    used = {call.attrs["index"]: call.results[0] for call in function.kernels if call.code == CONSTANT}
    for index, register in used.items():
        constants = model.program.constants
        value = np.asarray(constants[index].array() if callable(getattr(constants[index], "array", None))
                           else constants[index])
        if value.dtype == object:
            continue
        others = [value.reshape(-1)[:1], value[None], value.astype(np.float64), value.astype(np.int8)]
        others += [np.full_like(value, -7), np.full_like(value, 120)]
        for other in others:
            meta = TensorMetadata(dtypes.of_numpy(other.dtype), other.shape)
            types = function.register_types
            changed = function._replace(register_types=(*types[:register], meta, *types[register + 1:]))
            program = model.program._replace(constants=(*constants[:index], other, *constants[index + 1:]))
            yield (f"constant {index} is {meta} of {other.reshape(-1)[:1]}",
                   _with_function(model._replace(program=program, prepared=()), changed))


def of_prepared(model: CompiledModel) -> Iterator[Lie]:
    """States another type or shape of a prepared array."""
    for index, one in enumerate(model.prepared):
        for value in (one.value.reshape(-1)[:1], one.value.reshape(-1).view(np.uint8)[:-1], one.value[None],
                      one.value.reshape(-1).view(np.int8)):
            changed = (*model.prepared[:index], one._replace(value=value), *model.prepared[index + 1:])
            yield f"'{one.key}' is {value.dtype}{list(value.shape)}", model._replace(prepared=changed)


def lies(model: CompiledModel) -> Iterator[Lie]:
    """All lies about the functions of a model."""
    for function in model.program.functions.values():
        for kind in (of_types, of_attributes, of_calls, of_constants):
            yield from kind(model, function)
    yield from of_prepared(model)
