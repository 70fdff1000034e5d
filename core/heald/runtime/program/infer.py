"""Inference for host programs: derives facts about every register of a function from facts about its arguments.

The types that a function states are compared with the derived ones, and used nowhere but for the results of host
kernels that nothing is derived of: a run compares these with their arrays (`linker/host_binding`). So a file's types
decide about no buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import HealdError, InvalidArgument, PluginError, describe_exception
from ..contract.op import Attrs, MetadataRule, OpDef, infer
from ..contract.op_registry import OpRegistry
from ..support.fault_place import with_innermost_place
from ..values.computed_info import ComputedInfo
from ..values.tensor import TensorMetadata, ValueInfo, are_compatible, constant_info
from .host_program import CONSTANT, COPY, EVENT, Call, ProgramFunction, meta_of


def infer_call(call: Call, op: OpDef, rule: MetadataRule | None, inputs: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
    """Return the known facts about a call's results.

    Raises InvalidArgument, with node and op, when inputs do not fit.
    """
    return infer_outputs(call.node, op, rule, call.attrs, inputs)


def infer_outputs(
    node: str | None, op: OpDef, rule: MetadataRule | None, attrs: Attrs, inputs: Sequence[ValueInfo]
) -> tuple[ValueInfo, ...]:
    try:
        return infer(op, rule, attrs, inputs)
    except HealdError as error:
        raise error.at(node=node, op=op.name)  # noqa: B904 - the same error, with node and op
    except Exception as error:
        text = f"the metadata function of {op.name} raised {describe_exception(error)}"
        raise PluginError(with_innermost_place(text, error), node=node, op=op.name,
                          hint=f"report it to the plugin that brings {op.name}: "
                               f"'heald ops {op.name}' names it") from error


def infer_registers(
    function: ProgramFunction, arguments: Sequence[ValueInfo], constants: Sequence[Any], ops: OpRegistry,
    fold: Callable[[Call, list[ValueInfo], tuple[ValueInfo, ...]], tuple[ValueInfo, ...]] | None = None,
    follow: Callable[[Call, list[ValueInfo]], Sequence[ValueInfo]] | None = None,
    defers: Callable[[Call, HealdError], bool] | None = None,
) -> list[ValueInfo]:
    """Return metadata and known values of all registers.

    `fold(call, inputs, outputs)` may add values. `follow(call, inputs)` returns the facts about the results of a call
    of functions, or none when nothing is derived of them. `defers(call, error)` is True for an error that the run of
    the call will raise: then nothing but the types of its results is known.

    Raises InvalidArgument for inputs that do not fit an op, and for a register whose stated type contradicts the
    derived one.
    """
    if len(arguments) != len(function.arg_names):
        raise InvalidArgument(f"function '{function.name}' takes {len(function.arg_names)} arguments, "
                              f"{len(arguments)} are given", location=function.location)
    infos = [ValueInfo(meta_of(kind)) for kind in function.register_types]
    for i, argument in enumerate(arguments):
        if not are_compatible(argument.meta, infos[i].meta):
            raise InvalidArgument(f"argument '{function.arg_names[i]}' of function '{function.name}' is "
                                  f"{argument.meta}, the function states {infos[i].meta}", location=function.location)
        infos[i] = argument
    for call in function.kernels:
        inputs = [infos[a] for a in call.args]
        if call.code == CONSTANT:
            _keep(infos, call, (of_constant(constants[call.attrs["index"]]),))
            continue
        if call.code == COPY:
            _keep(infos, call, inputs)
            continue
        if call.is_host_kernel and call.functions and follow is not None:
            _keep(infos, call, follow(call, inputs))
        if call.is_host_kernel or call.code == EVENT:
            continue
        _keep(infos, call, _derived_outputs(call, ops.get(call.op), inputs, ops, fold, defers))
    return infos


def _derived_outputs(
    call: Call, op: OpDef, inputs: list[ValueInfo], ops: OpRegistry,
    fold: Callable[[Call, list[ValueInfo], tuple[ValueInfo, ...]], tuple[ValueInfo, ...]] | None,
    defers: Callable[[Call, HealdError], bool] | None,
) -> tuple[ValueInfo, ...]:
    try:
        outputs = infer_call(call, op, ops.metadata(op), inputs)
    except HealdError as error:
        if defers is None or not defers(call, error):
            raise
        return infer(op, None, call.attrs, inputs)
    return outputs if fold is None else fold(call, inputs, outputs)


def _keep(infos: list[ValueInfo], call: Call, derived: Sequence[ValueInfo]) -> None:
    """Put the derived facts about a call's results in the place of the stated ones."""
    for index, (register, info) in enumerate(zip(call.results, derived, strict=False)):
        if not are_compatible(info.meta, infos[register].meta):
            raise _contradiction(call, index, info.meta, infos[register].meta)
        infos[register] = info


def _contradiction(call: Call, index: int, derived: TensorMetadata, stated: TensorMetadata) -> InvalidArgument:
    return InvalidArgument(f"result {index} of {call.code} is {derived}, the program states {stated}",
                           node=call.node or None, op=call.op or None, location=call.location,
                           hint="the file is damaged or was changed: write it again from its source")


def of_constant(value: Any) -> ValueInfo:
    """Return the facts about a program's constant: an array, or a TensorValue whose elements are computed on demand."""
    return constant_info(value) if isinstance(value, np.ndarray) else ComputedInfo(value)
