"""Inference for host programs: derives facts about every register of a function from facts about its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..contract.op import Attrs, MetadataRule, OpDef, OpRegistry, infer, merge_info
from ..errors import HealdError, Internal, told
from ..program.host_program import CONSTANT, COPY, EVENT, Call, ProgramFunction, meta_of
from ..values.tensor import MadeInfo, ValueInfo, constant_info


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
        raise Internal(f"the metadata function of {op.name} raised {told(error)}", node=node,
                       op=op.name) from error


def infer_registers(
    function: ProgramFunction, arguments: Sequence[ValueInfo], constants: Sequence[Any], ops: OpRegistry,
    fold: Callable[[Call, list[ValueInfo], tuple[ValueInfo, ...]], tuple[ValueInfo, ...]] | None = None,
    follow: Callable[[Call, list[ValueInfo]], Sequence[ValueInfo]] | None = None,
) -> list[ValueInfo]:
    """Return metadata and known values of all registers.

    `fold(call, inputs, outputs)` may add values. `follow(call, inputs)` returns the facts about the first results of a
    call of functions, as many as are known.
    """
    known = [ValueInfo(meta_of(kind)) for kind in function.register_types]
    for i, argument in enumerate(arguments):
        known[i] = merge_info(argument, known[i])
    for call in function.kernels:
        inputs = [known[a] for a in call.args]
        if call.code == CONSTANT:
            known[call.results[0]] = of_constant(constants[call.attrs["index"]])
            continue
        if call.code == COPY:
            known[call.results[0]] = inputs[0]
            continue
        if call.is_host_kernel and call.functions and follow is not None:
            for register, output in zip(call.results, follow(call, inputs), strict=False):
                known[register] = output
        if call.is_host_kernel or call.code == EVENT:
            continue  # the program declares the types of its results
        op = ops.get(call.op)
        outputs = infer_call(call, op, ops.metadata(op), inputs)
        if fold is not None:
            outputs = fold(call, inputs, outputs)
        for register, output in zip(call.results, outputs, strict=True):
            known[register] = output
    return known


def of_constant(value: Any) -> ValueInfo:
    """Return the facts about a program's constant: an array, or a TensorValue whose elements are computed on demand."""
    return constant_info(value) if isinstance(value, np.ndarray) else MadeInfo(value)
