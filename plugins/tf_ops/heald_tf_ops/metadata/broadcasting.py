"""Metadata of ops that broadcast a tensor, or return the broadcast of shapes."""

from __future__ import annotations

import numpy as np
from heald.api import Attrs, TensorMetadata, ValueInfo, geometry, info

from .array import shape_vector
from .rules import rule
from .shapes import broadcast_into, shape_in, vector
from .values import move


@rule("BroadcastTo", values=("shape",))
def broadcast_to(_: Attrs, x: ValueInfo, shape: ValueInfo) -> ValueInfo:
    target = shape_in(shape, "shape")
    if target is None:
        return info(x.dtype, None)
    meta = TensorMetadata(x.dtype, broadcast_into(x.shape, target, "Incompatible shapes"))
    return move(lambda v: np.broadcast_to(v, meta.dims), meta, x) if meta.is_static else ValueInfo(meta)


@rule("BroadcastArgs", values=("s0", "s1"))
def broadcast_args(_: Attrs, a: ValueInfo, b: ValueInfo) -> ValueInfo:
    x, y = vector(a, "s0"), vector(b, "s1")
    if x is None or y is None:
        return info(a.dtype, (None,))
    return shape_vector(a.dtype, geometry.broadcast_shapes(x, y))


@rule("BroadcastGradientArgs", values=("s0", "s1"))
def broadcast_gradient_args(_: Attrs, a: ValueInfo, b: ValueInfo) -> tuple[ValueInfo, ...]:
    x, y = vector(a, "s0"), vector(b, "s1")
    if x is None or y is None or None in x or None in y:
        return (info(a.dtype, (None,)),) * 2
    return tuple(shape_vector(a.dtype, axes) for axes in geometry.broadcast_gradient_axes(x, y))
