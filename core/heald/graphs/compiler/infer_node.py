"""Inference for graph nodes: metadata and known values of a node's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import HealdError
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import CONST, LEGACY_SCALARS, PLACEHOLDERS
from ...runtime.program.infer import infer_outputs, of_constant
from ...runtime.values.tensor import TensorMetadata, ValueInfo, info
from ...runtime.values.tensor_proto import TensorValue
from .resolve import Resolved


def program_constant(value: TensorValue) -> Any:
    """Return a node's constant in the form that programs hold."""
    return value if value.is_made else value.array()


def infer_node(entry: Resolved, inputs: Sequence[ValueInfo], ops: OpRegistry) -> tuple[ValueInfo, ...]:
    """Return the known facts about a node's outputs: only their types when the inputs do not fit its op."""
    try:
        if entry.op.name == CONST:
            return (of_constant(program_constant(entry.attrs["value"])),)
        return infer_outputs(entry.node.name, entry.op, ops.metadata(entry.op), entry.attrs, inputs)
    except HealdError:
        return tuple(info(tensor.dtype, None) for tensor in entry.output_tensors)


def fed_metadata(entry: Resolved, index: int, producer: int) -> TensorMetadata:
    """Return the type of a fed output and, for a placeholder, the declared shape.

    `producer`: the version of the graph.
    """
    dtype = entry.output_tensors[index].dtype
    shape = entry.attrs.get("shape") if entry.op.name in PLACEHOLDERS else None
    is_legacy = shape == () and producer <= LEGACY_SCALARS
    return TensorMetadata(dtype, None if shape is None or is_legacy else tuple(shape))
