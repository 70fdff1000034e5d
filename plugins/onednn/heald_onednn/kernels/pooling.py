"""Pooling: maximum and mean of windows over images and volumes with channels last, with an epilogue; means of whole
images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from heald.api import Bind, FusedOp, Kernels, errors, geometry

from ..attributes import PostOp, attributes, number, operands
from ..epilogue import CHAINED, Epilogue, broadcast, steps_after, with_swish
from ..functions import linear
from ..library import library
from ..memory import dense
from ..primitives import INFERENCE, RESULT, SOURCE, NativeKernel, Primitive, describe_primitive
from .binding import Head, check_elements, declining, without_epilogue

LARGEST, MEAN = number("dnnl_pooling_max"), number("dnnl_pooling_avg_exclude_padding")
IMAGE = (1, 2)  # the axes of one channel of an image


def pool(kind: int) -> Head:
    def bind(b: Bind, node: FusedOp, after: Epilogue) -> Primitive:
        attrs, images = node.attrs, node.args[0]
        is_last = attrs["data_format"] in ("NHWC", "NDHWC")
        if not is_last or {attrs[name][i] for name in ("ksize", "strides") for i in (0, -1)} != {1}:
            raise errors.Unimplemented("channels that are not last, or windows over batch or depth")
        taps, strides = attrs["ksize"][1:-1], attrs["strides"][1:-1]
        places = geometry.spatial_windows(attrs, b.inputs[images].meta.dims[1:-1], taps)
        pads = [p.before for p in places], [p.after for p in places]
        if any(pad >= n for pad, n in zip((*pads[0], *pads[1]), (*taps, *taps), strict=True)):
            raise errors.Unimplemented("windows over padding alone")
        return _pool(b, kind, images, node.outputs[0].dims, taps, strides, pads, after.steps)

    return bind


POOLS: Mapping[str, Head] = {
    **dict.fromkeys(("MaxPool", "MaxPool3D"), pool(LARGEST)), **dict.fromkeys(("AvgPool", "AvgPool3D"), pool(MEAN)),
}


def pool_and(b: Bind) -> NativeKernel:
    """Bind a pooling op with the ops that follow it."""
    node, *following_ops = b.fused
    if node.op not in POOLS:
        raise errors.Unimplemented("there are no windows among these nodes")
    operand_layout = broadcast(b, len(node.outputs[0].dims), dense)
    return POOLS[node.op](b, node, Epilogue(steps=steps_after(b, node, with_swish(b, following_ops), operand_layout)))


def mean_of_images(scaled: Callable[[int], Sequence[PostOp]]) -> Callable[[Bind], Primitive]:
    """Bind a reduction that is the mean of each channel, with steps that depend on the number of elements."""

    def bind(b: Bind) -> Primitive:
        shape, axes = b.inputs[0].meta.dims, b.inputs[1].value
        assert axes is not None
        if len(shape) != 4 or geometry.reduction_axes(4, [int(axis) for axis in axes.reshape(-1)]) != IMAGE:
            raise errors.Unimplemented("a reduction of other axes than those of images")
        output, area = (shape[0], 1, 1, shape[3]), shape[1] * shape[2]
        return _pool(b, MEAN, 0, output, shape[1:3], (1, 1), ([0, 0], [0, 0]), scaled(area))

    return bind


def _pool(
    b: Bind, kind: int, images: int, output: Sequence[int], taps: Sequence[int], strides: Sequence[int],
    pads: tuple[list[int], list[int]], after: Sequence[PostOp],
) -> Primitive:
    """The pooling primitive. `images`: the index of the input with the images."""
    images_meta = b.inputs[images].meta
    check_elements(images_meta.dims, output)
    source, result = dense(images_meta.dims, images_meta.dtype), dense(output, b.outputs[0].dtype)
    description = describe_primitive(library().c.dnnl_pooling_forward_primitive_desc_create, INFERENCE, kind,
                                     source.descriptor,
                            result.descriptor, list(strides), list(taps), [0] * len(taps), *pads, attributes(after))
    return Primitive(description, {SOURCE: (source, images), RESULT: (result, len(b.inputs)), **operands(after)})


def register_kernels(kernels: Kernels, types: Collection[str]) -> None:
    for op, head in POOLS.items():
        kernels.kernel(op, dtypes={"T": types})(without_epilogue(head))
    kernels.kernel("Mean", dtypes={"T": types})(declining(mean_of_images(lambda _: ())))
    kernels.kernel("Sum", dtypes={"T": types})(declining(mean_of_images(lambda count: [linear(count, 0.0)])))
    kernels.fusion("Pool", heads=POOLS, ops=CHAINED)(declining(pool_and))
