"""Squeeze-and-excitation (Hu et al., 2018): a 1x1 convolution of images scaled by one factor per image and channel.

The kernel scales the filters in each run instead of the images: (x * g) W is x (diag(g) W), and filters are fewer than
pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from heald.api import Bind, DType, FusedOp, errors

from ..attributes import operands
from ..epilogue import Epilogue, broadcast, epilogue
from ..memory import FLOAT, PLAIN, Array, Layout, Operand, row_major
from ..primitives import BIAS, RESULT, SOURCE, WEIGHTS, KernelAroundPrimitive, Primitive, matmul_description
from .binding import check_elements

PIXELS_PER_FILTER = 8  # at least: with fewer, scaling and packing the filters takes longer


class ScaledFilters(KernelAroundPrimitive):
    """`product` of images and filters. Each run makes the filters [batch, C, F] from `filters` [C, F] and the factors,
    the array with index `factors_index`. The product reads them as the array with index `filters_index`."""

    def __init__(
        self, product: Primitive, filters: Array, factors_index: int, filters_index: int, shape: tuple[int, int, int]
    ) -> None:
        super().__init__(product)
        batch, channels, _ = shape
        self.extents = {number: nbytes for number, nbytes in product.extents.items() if number != filters_index}
        self.extents[factors_index] = max(batch * channels * filters.itemsize, self.extents.get(factors_index, 0))
        self._filters, self._place, self._shape = filters, factors_index, shape

    def run(self, *arrays: Array) -> None:
        scaled_filters = np.empty(self._shape, np.float32)
        self._multiply(arrays[self._place], scaled_filters)
        self._primitive.run(*arrays, scaled_filters)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        scaled_filters: Array = np.ndarray(self._shape, np.float32,
                                           PLAIN.allocate(self._filters.nbytes * self._shape[0]))
        call = self._primitive.attach(inputs, (*outputs, scaled_filters))
        multiply, factors = self._multiply, inputs[self._place]

        def run() -> None:
            multiply(factors, scaled_filters)
            call()

        return run

    def _multiply(self, factors: Array, scaled_filters: Array) -> None:
        np.multiply(self._filters, factors.reshape(*scaled_filters.shape[:2], 1), scaled_filters)


def squeeze_excite(b: Bind, gate: FusedOp, head: FusedOp, following_ops: Sequence[FusedOp]) -> ScaledFilters:
    """Bind the multiplication `gate`, the convolution `head` and its epilogue. Raises Unimplemented where scaling the
    filters does not pay, or the convolution is no matrix product."""
    images, factors = _operands(b, gate)
    batch, height, width, channels = dims = b.inputs[images].meta.dims
    filters = _filters(b, head, channels)
    count = filters.shape[1]
    check_elements(dims, filters.shape)
    if height * width < PIXELS_PER_FILTER * count:
        raise errors.Unimplemented("there are fewer pixels to multiply than filters")
    pixel_layout = partial(_pixels, (height, width))
    after = epilogue(b, head, following_ops, broadcast(b, 4, pixel_layout))
    scaled = filters if after.scale is None else (filters * after.scale).astype(np.float32)
    product = _product(b, after, (pixel_layout(dims), images), pixel_layout((batch, height, width, count)),
                       (batch, channels, count))
    return ScaledFilters(product, scaled, factors, len(b.inputs) + 1, (batch, channels, count))


def _operands(b: Bind, gate: FusedOp) -> tuple[int, int]:
    """The input indices of the images [N, H, W, C] and of the factors [N, 1, 1, C]. Raises Unimplemented."""
    images, factors = sorted(gate.args, key=lambda a: b.inputs[a].size, reverse=True)
    dims = b.inputs[images].meta.dims
    if len(dims) != 4:
        raise errors.Unimplemented("a factor of an operand that is no image")
    if b.inputs[images].dtype is not FLOAT:
        raise errors.Unimplemented("filters of another type take longer to multiply than pixels")
    if b.inputs[factors].meta.dims != (dims[0], 1, 1, dims[3]) or images == factors:
        raise errors.Unimplemented("a factor that is not one for each image and channel")
    return images, factors


def _filters(b: Bind, head: FusedOp, channels: int) -> Array:
    """The filters [C, F] of a 1x1 convolution. Raises Unimplemented for any other op."""
    info, attrs = b.inputs[head.args[1]], head.attrs
    if head.op != "Conv2D" or not info.is_known or info.meta.dims[:3] != (1, 1, channels):
        raise errors.Unimplemented("a gate that is not before a convolution of single pixels with known filters")
    if attrs["data_format"] != "NHWC" or set(attrs["strides"]) != {1} or any(attrs["explicit_paddings"]):
        raise errors.Unimplemented("a gate before a convolution that pads or steps over pixels")
    filters: Array = info.value[0, 0]  # type: ignore[index]
    return filters


def _pixels(size: tuple[int, int], shape: Sequence[int], dtype: DType = FLOAT) -> Layout:
    """The layout of images as matrices [batch, pixels, channels], or of an operand that broadcasts against them.
    Raises Unimplemented."""
    batch, height, width, channels = shape
    if (height, width) not in ((1, 1), size):
        raise errors.Unimplemented("an operand with a number for each row or column")
    return row_major((batch, height * width, channels), dtype)


def _product(
    b: Bind, after: Epilogue, source: tuple[Layout, int], result: Layout, filters: tuple[int, int, int]
) -> Primitive:
    """The matrix product of images and filters. The filters are the array after the result."""
    weights, bias = row_major(filters), row_major((1, 1, filters[-1]))
    description = matmul_description(source[0], weights, result, None if after.bias is None else bias, after.steps)
    places: dict[int, tuple[Layout, Operand]] = {
        SOURCE: source, RESULT: (result, len(b.inputs)), WEIGHTS: (weights, len(b.inputs) + 1),
        **operands(after.steps)}
    if after.bias is not None:
        places[BIAS] = bias, after.bias.astype(np.float32)
    return Primitive(description, places)
