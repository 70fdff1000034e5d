"""Plans for nodes that move elements: concatenation, slicing, tiling, padding, gathering, filling."""

from __future__ import annotations

from math import prod

from heald.api import Bind

from .copies import concat, copy, fill, integers, mirror_pad, pad, padded_view, part, split, tile, transpose
from .dialect import Target
from .elementwise import elementwise
from .expression import Step
from .gather import gather
from .math_plans import ints
from .plan import Plan
from .shown_parts import slice_view, strided_slice_view
from .strided_view import dense_view


def concatenation(target: Target, b: Bind) -> Plan:
    *parts, _ = b.inputs
    (axis,) = ints(b, len(parts))
    return concat(target, b.outputs[0].dtype.itemsize, [x.meta.dims for x in parts], axis % len(b.outputs[0].dims))


def pack(target: Target, b: Bind) -> Plan:
    shape = b.inputs[0].meta.dims
    axis = b.attrs["axis"] % (len(shape) + 1)
    with_axis = (*shape[:axis], 1, *shape[axis:])
    return concat(target, b.outputs[0].dtype.itemsize, [with_axis] * len(b.inputs), axis)


def unpack(target: Target, b: Bind) -> Plan:
    shape = b.inputs[0].meta.dims
    return split(target, b.inputs[0].dtype.itemsize, shape, b.attrs["axis"] % len(shape), (1,) * len(b.outputs))


def splitting(target: Target, b: Bind) -> Plan:
    x = b.inputs[1].meta
    (axis,) = ints(b, 0)
    axis %= len(x.dims)
    plan = split(target, x.dtype.itemsize, x.dims, axis, [output.dims[axis] for output in b.outputs])
    return plan.over((1,), range(len(b.outputs)))


def slice_(target: Target, b: Bind) -> Plan:
    return part(target, b.inputs[0].dtype.itemsize, slice_view(b))


def strided_slice(target: Target, b: Bind) -> Plan:
    return part(target, b.inputs[0].dtype.itemsize, strided_slice_view(b))


def reversal(target: Target, b: Bind) -> Plan:
    x = b.inputs[0].meta
    axes = {axis % len(x.dims) for axis in ints(b, 1)}
    index = [slice(None, None, -1 if axis in axes else 1) for axis in range(len(x.dims))]
    return part(target, x.dtype.itemsize, dense_view(x.dims).view_of_index(index))


def transposition(target: Target, b: Bind) -> Plan:
    x = b.inputs[0].meta
    return transpose(target, x.dtype.itemsize, x.dims, [axis % len(x.dims) for axis in ints(b, 1)])


def tiling(target: Target, b: Bind) -> Plan:
    x = b.inputs[0].meta
    return tile(target, x.dtype.itemsize, x.dims, ints(b, 1))


def _pads(b: Bind) -> list[tuple[int, int]]:
    flat = ints(b, 1)
    return list(zip(flat[::2], flat[1::2], strict=True))


def padding(target: Target, b: Bind) -> Plan:
    """The plan of Pad and PadV2. PadV2's constant is an input: the first launch fills the output with it."""
    x, output = b.inputs[0].meta, b.outputs[0]
    if len(b.inputs) == 2:
        return pad(target, x.dtype, x.dims, _pads(b))
    inner, _ = padded_view(x.dims, _pads(b))
    borders = elementwise(target, (Step("Identity", (0,)),), [(x.dtype, ())], shape=output.dims).over((2,))
    return Plan((*borders.launches, *copy(target, x.dtype.itemsize, dense_view(x.dims), inner)))


def mirror_padding(target: Target, b: Bind) -> Plan:
    x = b.inputs[0].meta
    return mirror_pad(target, x.dtype.itemsize, x.dims, _pads(b), 1 if b.attrs["mode"] == "REFLECT" else 0)


def gathering(target: Target, b: Bind) -> Plan:
    params, indices = b.inputs[0].meta, b.inputs[1].meta
    (axis,) = ints(b, 2)
    axis %= len(params.dims)
    batch = b.attrs["batch_dims"]
    batch += len(indices.dims) if batch < 0 else 0
    return gather(
        target, params.dtype.itemsize, indices.dtype, batch=prod(params.dims[:batch]),
        outer=prod(params.dims[batch:axis]), length=params.dims[axis], inner=prod(params.dims[axis + 1 :]),
        picks=prod(indices.dims[batch:]),
    )


def filling(target: Target, b: Bind) -> Plan:
    """The plan of Fill. The value is an input."""
    value, output = b.inputs[1].dtype, b.outputs[0].dims
    return elementwise(target, (Step("Identity", (0,)),), [(value, ())], shape=output).over((1,))


def filling_like(target: Target, b: Bind) -> Plan:
    output = b.outputs[0]
    return fill(target, output.dtype, output.size, 1 if b.op == "OnesLike" else 0)


def shape(target: Target, b: Bind) -> Plan:
    return integers(target, b.outputs[0].dtype, b.inputs[0].meta.dims)
