"""Windows over images and volumes with channels last: the largest, the mean; and means of whole images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from weft.api import Bind, Kernels, errors, geometry

from ..attributes import PostOp, attributes, number
from ..functions import linear
from ..library import library
from ..memory import dense
from ..primitives import INFERENCE, RESULT, SOURCE, Primitive, described
from .binding import declining, has_elements

LARGEST, MEAN = number("dnnl_pooling_max"), number("dnnl_pooling_avg_exclude_padding")
IMAGE = (1, 2)  # the axes of one channel of an image


def pool(kind: int) -> Callable[[Bind], Primitive]:
    def bind(b: Bind) -> Primitive:
        attrs, shape = b.attrs, b.inputs[0].meta.dims
        is_last = attrs["data_format"] in ("NHWC", "NDHWC")
        if not is_last or {attrs[name][i] for name in ("ksize", "strides") for i in (0, -1)} != {1}:
            raise errors.Unimplemented("channels that are not last, or windows over batch or depth")
        taps, strides = attrs["ksize"][1:-1], attrs["strides"][1:-1]
        places = geometry.spatial_windows(attrs, shape[1:-1], taps)
        pads = [p.before for p in places], [p.after for p in places]
        if any(pad >= n for pad, n in zip((*pads[0], *pads[1]), (*taps, *taps), strict=True)):
            raise errors.Unimplemented("windows over padding alone")
        return _pool(b, kind, b.outputs[0].dims, taps, strides, pads)

    return bind


def of_images(scaled: Callable[[int], Sequence[PostOp]]) -> Callable[[Bind], Primitive]:
    """A reduction that is the mean of each channel, with something done to it that the number of elements tells."""

    def bind(b: Bind) -> Primitive:
        shape, axes = b.inputs[0].meta.dims, b.inputs[1].value
        assert axes is not None
        if len(shape) != 4 or geometry.reduction_axes(4, [int(axis) for axis in axes.reshape(-1)]) != IMAGE:
            raise errors.Unimplemented("a reduction of other axes than those of images")
        output, area = (shape[0], 1, 1, shape[3]), shape[1] * shape[2]
        return _pool(b, MEAN, output, shape[1:3], (1, 1), ([0, 0], [0, 0]), scaled(area))

    return bind


def _pool(
    b: Bind, kind: int, output: Sequence[int], taps: Sequence[int], strides: Sequence[int],
    pads: tuple[list[int], list[int]], after: Sequence[PostOp] = (),
) -> Primitive:
    images = b.inputs[0].meta
    has_elements(images.dims, output)
    source, result = dense(images.dims, images.dtype), dense(output, b.outputs[0].dtype)
    description = described(library().c.dnnl_pooling_forward_primitive_desc_create, INFERENCE, kind, source.descriptor,
                            result.descriptor, list(strides), list(taps), [0] * len(taps), *pads, attributes(after))
    return Primitive(description, {SOURCE: (source, 0), RESULT: (result, len(b.inputs))})


def register(kernels: Kernels, types: Collection[str]) -> None:
    for kind, ops in ((LARGEST, ("MaxPool", "MaxPool3D")), (MEAN, ("AvgPool", "AvgPool3D"))):
        for op in ops:
            kernels.kernel(op, dtypes={"T": types})(declining(pool(kind)))
    kernels.kernel("Mean", dtypes={"T": types})(declining(of_images(lambda _: ())))
    kernels.kernel("Sum", dtypes={"T": types})(declining(of_images(lambda count: [linear(count, 0.0)])))
