"""Metadata functions of the structural ops, as TensorFlow's shape functions have them.

Within a session, control flow of TensorFlow 1 is functional before these are asked, and a branch or body is inferred
for the shapes of its call. They serve graphs that are looked at as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidArgument
from ..values.dtypes import bool_, int32
from ..values.tensor import Shape, ValueInfo, info, merge_shapes
from .op import Attrs


def same(_: Attrs, x: ValueInfo) -> ValueInfo:
    return x


def placeholder_with_default(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    """The default's type and shape, not its elements: another value may be fed."""
    try:
        return info(x.dtype, merge_shapes(attrs["shape"], x.shape))
    except ValueError as error:
        raise InvalidArgument(f"the default does not fit the placeholder: {error}") from None


def switch(_: Attrs, data: ValueInfo, pred: ValueInfo) -> tuple[ValueInfo, ...]:
    _scalar(pred, "the condition of a Switch")
    return _passed_on(data), _passed_on(data)


def switch_n(attrs: Attrs, data: ValueInfo, index: ValueInfo) -> tuple[ValueInfo, ...]:
    _scalar(index, "the index of a Switch")
    return (_passed_on(data),) * int(attrs["num_outs"])


def merge(_: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    """The dimensions in which all inputs agree, and the index of the live input."""
    return info(inputs[0].dtype, common_shape([x.shape for x in inputs])), info(int32, ())


def enter(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    """A loop may change the shape of its variables, but not of its constants."""
    return _passed_on(x) if attrs["is_constant"] else info(x.dtype, None)


def passed_on(_: Attrs, x: ValueInfo) -> ValueInfo:
    return _passed_on(x)


def loop_cond(_: Attrs, x: ValueInfo) -> ValueInfo:
    _scalar(x, "the condition of a loop")
    return info(bool_, ())


def declared_outputs(attrs: Attrs, *_: ValueInfo) -> tuple[ValueInfo, ...]:
    """The outputs of an If, Case or While by its attribute `output_shapes`, where it has as many as outputs."""
    types = attrs["Tout"] if "Tout" in attrs else attrs["T"]
    shapes = attrs["output_shapes"] if len(attrs["output_shapes"]) == len(types) else (None,) * len(types)
    return tuple(map(info, types, shapes))


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The dimensions in which all shapes agree; None where their ranks differ or are unknown."""
    first, *others = shapes
    if first is None or any(shape is None or len(shape) != len(first) for shape in others):
        return None
    return tuple(dims[0] if len(set(dims)) == 1 else None for dims in zip(*shapes, strict=True))


def _passed_on(x: ValueInfo) -> ValueInfo:
    """Type, shape and content of a handle, without the elements, which may belong to another iteration."""
    return ValueInfo(x.meta, handle=x.handle)


def _scalar(x: ValueInfo, what: str) -> None:
    if x.rank:
        raise InvalidArgument(f"{what} must be a scalar, its rank is {x.rank}")
