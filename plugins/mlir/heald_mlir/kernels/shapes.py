"""The dialect `ts`: shapes, shapes of a fixed rank, and shapes of which only a part is known."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Annotated, Any, NamedTuple, TypeVar

from heald.api import I1, I64, Chain, HostKernels, HostType, Step, errors

from .host_tensors import OPERANDS_SYNTAX, Integers, list_text

UNKNOWN = -1  # a dimension of a partial shape
RANKS = range(4)  # of shapes of a fixed rank


class TensorShape(NamedTuple):
    dims: tuple[int, ...]


class FixedRankShape(NamedTuple):
    dims: tuple[int, ...]


class PartialShape(NamedTuple):
    """`dims`: None for an unknown rank; UNKNOWN for an unknown dimension."""

    dims: tuple[int, ...] | None


S = TypeVar("S", bound=FixedRankShape)  # one type for each rank
ShapeType = Annotated[TensorShape, HostType("!ts.shape", lambda payload: isinstance(payload, TensorShape))]
PartialType = Annotated[PartialShape, HostType("!ts.partial_shape", lambda payload: isinstance(payload, PartialShape))]


def register(kernels: HostKernels) -> None:
    kernels.kernel("ts.build_shape", syntax="$value attr-dict")(build_shape)
    kernels.kernel("ts.build_partial_shape", syntax="$value attr-dict")(build_partial_shape)
    shape_kernels: tuple[Callable[..., Any], ...] = (
        build_unranked_partial_shape, to_shape, to_partial_shape, equal_shape, get_num_elements)
    for function in shape_kernels:
        kernels.kernel(f"ts.{function.__name__}", syntax=OPERANDS_SYNTAX)(function)
    kernels.kernel("ts.print_shape", step=True, syntax=OPERANDS_SYNTAX)(print_shape)
    kernels.kernel("ts.print_partial_shape", step=True, syntax=OPERANDS_SYNTAX)(print_partial_shape)
    for rank in RANKS:
        name = f"fixed_rank_shape.{rank}"
        fixed = Annotated[FixedRankShape, HostType(f"!ts.{name}", lambda payload: isinstance(payload, FixedRankShape))]
        kernels.kernel(f"ts.as_{name}", S=fixed, syntax=OPERANDS_SYNTAX)(_as_fixed_rank(rank))
        kernels.kernel(f"ts.print_{name}", step=True, S=fixed, syntax=OPERANDS_SYNTAX)(print_fixed_rank_shape)


def build_shape(*, value: Integers) -> ShapeType:
    """Return a shape. Raises InvalidArgument for a negative dimension."""
    if any(dim < 0 for dim in value):
        raise errors.InvalidArgument(f"the shape {list_text(value)} has a negative dimension",
                                     hint="ts.build_partial_shape takes -1 for an unknown one")
    return TensorShape(value)


def print_shape(step: Step, shape: ShapeType, chain: Chain) -> Chain:
    step.host.print_line(f"shape = {list_text(shape.dims)}")


def equal_shape(a: ShapeType, b: ShapeType) -> I1:
    return a == b


def get_num_elements(shape: ShapeType) -> I64:
    """Return the product of the dimensions, which wraps to 64 bits."""
    return (prod(shape.dims) + 2**63) % 2**64 - 2**63


def build_partial_shape(*, value: Integers) -> PartialType:
    """Return a partial shape. Raises InvalidArgument for a dimension below -1."""
    if any(dim < UNKNOWN for dim in value):
        raise errors.InvalidArgument(f"the shape {list_text(value)} has a dimension below -1")
    return PartialShape(value)


def build_unranked_partial_shape() -> PartialType:
    return PartialShape(None)


def print_partial_shape(step: Step, shape: PartialType, chain: Chain) -> Chain:
    text = "Unknown rank" if shape.dims is None else list_text(shape.dims)
    step.host.print_line(f"partial_tensor_shape = {text}")


def to_shape(shape: PartialType) -> ShapeType:
    """Return the shape. Raises InvalidArgument with the indices of its unknown dimensions."""
    if shape.dims is None:
        raise errors.InvalidArgument("Unknown rank")
    unknown = [index for index, dim in enumerate(shape.dims) if dim == UNKNOWN]
    if unknown:
        raise errors.InvalidArgument(f"Unknown dimensions at following indices = {list_text(unknown)}")
    return TensorShape(shape.dims)


def to_partial_shape(shape: ShapeType) -> PartialType:
    return PartialShape(shape.dims)


def _as_fixed_rank(rank: int) -> Callable[..., Any]:
    def as_fixed_rank_shape(shape: ShapeType) -> S:  # type: ignore[type-var]
        """Return a shape of this rank. Raises InvalidArgument for a shape of another rank."""
        if len(shape.dims) != rank:
            raise errors.InvalidArgument(f"the shape {list_text(shape.dims)} has not the rank {rank}")
        return FixedRankShape(shape.dims)  # type: ignore[return-value]

    return as_fixed_rank_shape


def print_fixed_rank_shape(step: Step, shape: S, chain: Chain) -> Chain:
    step.host.print_line(f"fixed_rank_shape = {list_text(shape.dims)}")
