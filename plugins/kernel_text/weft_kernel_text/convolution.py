"""NHWC convolutions: grouped ones as products of patches, depthwise ones tap by tap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from weft.api import DType, geometry

from .broadcast import Dims
from .dialect import Target
from .epilogue import Epilogue
from .left import Left, Matrix, Patches
from .plan import Plan
from .problem import Problem
from .product import product

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """How a window of `taps` slides over NHWC images: its places, and the padding before the first element."""

    taps: Pair
    strides: Pair
    dilations: Pair
    size: Pair
    before: Pair

    @property
    def is_point(self) -> bool:
        return self.taps == self.strides == (1, 1) and self.before == (0, 0)


def sliding(
    shape: Dims, taps: Sequence[int], strides: Sequence[int], padding: str,
    dilations: Sequence[int] = (1, 1), explicit: Sequence[Pair] = ((0, 0), (0, 0)),
) -> Window:
    """All by height and width. Raises InvalidArgument."""
    found = [geometry.window(shape[1 + i], taps[i], strides[i], dilations[i], padding, explicit[i]) for i in range(2)]
    (h, w) = found
    assert h.size is not None
    assert w.size is not None
    return Window((taps[0], taps[1]), (strides[0], strides[1]), (dilations[0], dilations[1]), (h.size, w.size),
                  (h.before, w.before))


def conv2d(
    target: Target, dtype: DType, shape: Dims, kernel: Dims, window: Window, epilogue: Epilogue | None = None
) -> Plan:
    """Images NHWC, filter HWIO; the input's channels may be several groups of the filter's."""
    images, height, width, channels = shape
    depth, filters = kernel[2:]
    groups = channels // depth
    columns, rows = filters // groups, images * prod(window.size)
    problem = Problem(dtype, groups, rows, prod(kernel[:3]), columns, filters, 1, columns, filters, columns, columns)
    left: Left = Patches(dtype, (images, height, width, channels), window.size, window.taps, window.strides,
                         window.dilations, window.before, depth)
    if window.is_point and window.size == (height, width):
        left = Matrix(dtype, channels, 1, depth)
    return product(target, "Conv2D", problem, left, epilogue or Epilogue())
