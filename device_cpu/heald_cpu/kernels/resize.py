"""Kernels that resize images along rows and columns, each on its own, and their gradients.

The positions of outputs in the image, and the weights of pixels, are computed in float32 as in TensorFlow
(image_resizer_state.h, resize_*_op.cc, scale_and_translate_op.cc), once, when the kernel is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Attrs, Bind, Kernels, errors

from ..element_types import FLOATS, SIGNED, Array
from .staging import nothing

Run = Callable[..., None]
PIXELS = (*SIGNED, "uint8", "uint16", *FLOATS)
f32 = np.float32

SHORT = 16  # elements of shorter runs are gathered one by one: 0.23 ms for 224x224x3 from 112x112x3, 0.28 run by run
BLOCK_BYTES = 1 << 18  # a block of sums stays in the second-level cache
ROWS, COLUMNS = 1, 2
PLACE_BYTES = 64  # of a row or column: about four taps, each with its index and its weight


class Taps(NamedTuple):
    """A sparse matrix of weights along one axis: `sources[i]` times `weights[i]` is added to `targets[i]`."""

    targets: Array
    sources: Array
    weights: Array | None = None

    def gradient_taps(self) -> Taps:
        """The taps of the gradient."""
        return Taps(self.sources, self.targets, self.weights)

    def within(self, part: slice) -> Taps:
        """The taps of the targets in `part`, renumbered from its start."""
        chosen_taps = (self.targets >= part.start) & (self.targets < part.stop)
        return Taps(self.targets[chosen_taps] - part.start, self.sources[chosen_taps],
                    None if self.weights is None else self.weights[chosen_taps])

    def rounds(self) -> Iterable[Taps]:
        """Yields the first tap of each target, then the second tap of each target that has one, and so on."""
        order = np.argsort(self.targets, kind="stable")
        targets = self.targets[order]
        nth = np.arange(len(targets)) - np.searchsorted(targets, targets)
        for n in range(nth.max(initial=-1) + 1):
            chosen_taps = order[nth == n]
            yield Taps(self.targets[chosen_taps], self.sources[chosen_taps],
                       None if self.weights is None else self.weights[chosen_taps])


class Axis:
    """An axis of an array as the middle one of three. Short runs behind the axis are handled element by element."""

    def __init__(self, shape: tuple[int, ...], axis: int, size: int) -> None:
        outer, self.inner = prod(shape[:axis]), prod(shape[axis + 1 :])
        self._apart = self.inner < SHORT
        joined = (self.inner, 1) if self._apart else (1, self.inner)
        self.source = (outer, shape[axis] * joined[0], joined[1])
        self.target = (outer, size * joined[0], joined[1])
        self.shape = (*shape[:axis], size, *shape[axis + 1 :])

    def span(self, part: slice) -> slice:
        return slice(part.start * self.inner, part.stop * self.inner) if self._apart else part

    def rounds(self, taps: Taps) -> list[tuple[Any, Array, Array | None]]:
        """The targets, sources and factors of each round of taps."""
        tap_rounds = []
        for targets, sources, weights in taps.rounds():
            covers_all = len(targets) == targets[-1] + 1  # all targets, in order
            at = slice(0, len(self.index(targets))) if covers_all else self.index(targets)
            tap_rounds.append((at, self.index(sources), None if weights is None else self.weights(weights)))
        return tap_rounds

    def index(self, index: Array) -> Array:
        index = index.astype(np.intp)
        return (index[:, None] * self.inner + np.arange(self.inner)).reshape(-1) if self._apart else index

    def weights(self, weights: Array) -> Array:
        return np.repeat(weights, self.inner)[:, None] if self._apart else weights[:, None]


Sum = Callable[[Array], Array]


def blocks(outer: int, size: int, target_bytes: int) -> Iterator[tuple[slice, slice]]:
    """Parts of the outer axis and of the targets that together keep to BLOCK_BYTES, if one target does."""
    together = max(1, BLOCK_BYTES // max(1, target_bytes * size))
    step = size if together > 1 else max(1, BLOCK_BYTES // max(1, target_bytes))
    for first in range(0, outer, together):
        for target in range(0, size, step):
            yield slice(first, min(first + together, outer)), slice(target, min(target + step, size))


def weighted_sum(shape: tuple[int, ...], axis: int, size: int, taps: Taps, dtype: Any) -> Sum:
    """A function from an array of `shape` to `size` weighted sums along `axis`, in `dtype`."""
    along = Axis(shape, axis, size)
    parts = list(blocks(along.target[0], size, along.inner * np.dtype(dtype).itemsize))
    rounds = {part.start: along.rounds(taps.within(part)) for _, part in parts}
    steps = [(outer, along.span(part), rounds[part.start]) for outer, part in parts]

    def run(x: Array) -> Array:
        out, x = np.zeros(along.target, dtype), x.reshape(along.source)
        for outer, part, step_taps in steps:
            total = out[outer, part]
            for at, index, factor in step_taps:
                weighted_rows = x[outer].take(index, 1).astype(dtype, copy=False)
                if factor is not None:
                    weighted_rows *= factor
                total[:, at] += weighted_rows
        return out.reshape(along.shape)

    return run


def separable(b: Bind, rows: Taps, columns: Taps, dtype: Any = f32) -> Run:
    """Weighted sums along both axes. The axis that leaves less work for the other comes first."""
    (_, height, width, _), (_, *sizes, _) = b.inputs[0].meta.dims, b.outputs[0].dims
    work = {ROWS: (sizes[0], rows), COLUMNS: (sizes[1], columns)}
    order = (ROWS, COLUMNS) if sizes[0] * width <= height * sizes[1] else (COLUMNS, ROWS)
    if 0 in b.inputs[0].meta.dims or b.outputs[0].size == 0:
        return lambda *arrays: arrays[-1].fill(0)
    first = weighted_sum(b.inputs[0].meta.dims, order[0], *work[order[0]], dtype)
    between = list(b.inputs[0].meta.dims)
    between[order[0]] = work[order[0]][0]
    second = weighted_sum(tuple(between), order[1], *work[order[1]], dtype)
    return lambda x, *sizes_and_out: np.copyto(sizes_and_out[-1], second(first(x)), casting="unsafe")


# Places


def scaling(attrs: Attrs, length: int, size: int) -> Any:
    """The width of an output in pixels of the image."""
    if attrs["align_corners"] and size > 1:
        return f32(length - 1) / f32(size - 1)
    return f32(length) / f32(size)


def places(attrs: Attrs, length: int, size: int, center: float = 0.5) -> Array:
    """The positions of outputs, in pixels. With half-pixel centers, `center` is the offset of a pixel's position from
    its edge."""
    scale, steps = scaling(attrs, length, size), np.arange(size, dtype=f32)
    at: Array = (steps + f32(0.5)) * scale - f32(center) if attrs["half_pixel_centers"] else steps * scale
    return at


def _lengths(b: Bind) -> tuple[tuple[int, int], tuple[int, int]]:
    """The lengths of image and output, for rows and for columns. Raises ResourceExhausted if their positions take too
    much memory. The images themselves may take none: the batch may be empty."""
    image, resized = b.inputs[0].meta.dims, b.outputs[0].dims
    b.ask(PLACE_BYTES * sum((*image[1:3], *resized[1:3])), "the places of rows and columns")
    return (image[1], resized[1]), (image[2], resized[2])


def _gradient_lengths(b: Bind) -> tuple[tuple[int, int], tuple[int, int]]:
    (rows, new_rows), (columns, new_columns) = _lengths(b)
    return (new_rows, rows), (new_columns, columns)


# Nearest neighbor


def nearest(attrs: Attrs, length: int, size: int) -> Array:
    at = places(attrs, length, size, 0)
    rounded = np.trunc(at.astype(np.float64) + 0.5) if attrs["align_corners"] else np.floor(at)
    return np.minimum(rounded.astype(np.int64), length - 1)


def resize_nearest_neighbor(b: Bind) -> Run:
    if b.outputs[0].size == 0:
        return nothing
    (height, rows), (width, columns) = _lengths(b)
    shape, row, column = b.inputs[0].meta.dims, nearest(b.attrs, height, rows), nearest(b.attrs, width, columns)
    if rows < height:
        down, across = Axis(shape, ROWS, rows), Axis((shape[0], rows, *shape[2:]), COLUMNS, columns)
        return _take_pixels((down, row), (across, column))
    across, down = Axis(shape, COLUMNS, columns), Axis((*shape[:2], columns, shape[3]), ROWS, rows)
    return _take_pixels((across, column), (down, row))


def _take_pixels(*picks: tuple[Axis, Array]) -> Run:
    (first, first_index), (second, second_index) = ((axis, axis.index(index)) for axis, index in picks)

    def run(x: Array, _size: Array, out: Array) -> None:
        between = x.reshape(first.source).take(first_index, 1).reshape(second.source)
        between.take(second_index, 1, out.reshape(second.target), "clip")

    return run


def resize_nearest_neighbor_grad(b: Bind) -> Run:
    rows, columns = (Taps(nearest(b.attrs, *lengths), np.arange(lengths[1])) for lengths in _gradient_lengths(b))
    dtype = b.attrs["T"]
    return separable(b, rows, columns, f32 if dtype.itemsize == 2 and dtype.kind == "f" else dtype.numpy)


# Bilinear


def between_pixels(attrs: Attrs, length: int, size: int) -> tuple[Array, Array, Array]:
    """The two pixels around each output, and the output's distance from the first one."""
    at = places(attrs, length, size)
    floor = np.floor(at)
    upper = np.minimum(np.ceil(at).astype(np.int64), length - 1)
    return np.clip(floor.astype(np.int64), 0, upper), upper, at - floor


def resize_bilinear(b: Bind) -> Run:
    """ResizeBilinear: first the columns of the needed rows, then the rows."""
    shape, (_, *sizes, _) = b.inputs[0].meta.dims, b.outputs[0].dims
    if shape[1:3] == tuple(sizes):
        return lambda x, _size, out: np.copyto(out, x, casting="unsafe")
    if b.outputs[0].size == 0:
        return nothing
    top, bottom, down = between_pixels(b.attrs, shape[1], sizes[0])
    needed, needed_index = np.unique(np.concatenate([top, bottom]), return_inverse=True)
    shape = (shape[0], len(needed), *shape[2:])
    columns = Axis(shape, COLUMNS, sizes[1])
    rows = Axis(columns.shape, ROWS, sizes[0])
    left, right, across = between_pixels(b.attrs, shape[2], sizes[1])
    interpolate_columns = interpolation(columns, left, right, across)
    interpolate_rows = interpolation(rows, needed_index[: sizes[0]], needed_index[sizes[0] :], down)
    needs_all = len(needed) == b.inputs[0].meta.dims[1]

    def run(x: Array, _size: Array, out: Array) -> None:
        between = np.empty(columns.target, f32)
        interpolate_columns(x if needs_all else x.take(needed, ROWS), between)
        interpolate_rows(between, out)

    return run


def interpolation(axis: Axis, lower: Array, upper: Array, weight: Array) -> Run:
    """first + (second - first) * weight, in this order of operations."""
    first, second, weights = axis.index(lower), axis.index(upper), axis.weights(weight)
    parts = [(outer, axis.span(part)) for outer, part in blocks(axis.target[0], len(lower), 4 * axis.inner)]

    def run(x: Array, out: Array) -> None:
        x, out = x.reshape(axis.source), out.reshape(axis.target)
        for outer, part in parts:
            total, start = out[outer, part], x[outer].take(first[part], 1).astype(f32, copy=False)
            np.copyto(total, x[outer].take(second[part], 1), casting="unsafe")
            np.subtract(total, start, total)
            np.multiply(total, weights[part], total)
            np.add(total, start, total)

    return run


def resize_bilinear_grad(b: Bind) -> Run:
    rows, columns = (_bilinear_taps(b.attrs, *lengths).gradient_taps() for lengths in _gradient_lengths(b))
    return separable(b, rows, columns, np.result_type(f32, b.attrs["T"].numpy))


def _bilinear_taps(attrs: Attrs, length: int, size: int) -> Taps:
    lower, upper, weight = between_pixels(attrs, length, size)
    steps = np.arange(size)
    return Taps(np.concatenate([steps, steps]), np.concatenate([lower, upper]), np.concatenate([1 - weight, weight]))


# Bicubic

CUBIC_STEPS = 1 << 10


def _cubic_table(a: float) -> Array:
    """The convolution kernel of R. Keys (1981) with parameter `a`: row 0 at distances 0 to 1, row 1 at 1 to 2."""
    near_distance = (np.arange(CUBIC_STEPS + 1) / CUBIC_STEPS).astype(f32)
    far = (near_distance + 1).astype(np.float64)
    near_distance = near_distance.astype(np.float64)
    return np.stack([((a + 2) * near_distance - (a + 3)) * near_distance * near_distance + 1,
                     ((a * far - 5 * a) * far + 8 * a) * far - 4 * a]).astype(f32)


def _bicubic_taps(attrs: Attrs, length: int, size: int) -> Taps:
    """Four taps per output. With half-pixel centers, pixels outside the image have weight 0; else border pixels replace
    them."""
    keys = attrs["half_pixel_centers"]
    near_weights, far_weights = _cubic_table(-0.5 if keys else -0.75)
    at = places(attrs, length, size)
    floor = np.floor(at)
    offset = np.rint((at - floor) * f32(CUBIC_STEPS)).astype(np.int64)
    sources = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
    opposite = CUBIC_STEPS - offset
    weights = np.stack([far_weights[offset], near_weights[offset], near_weights[opposite], far_weights[opposite]], 1)
    inside = np.clip(sources, 0, length - 1)
    if keys:
        weights = _normalised_weights(np.where(inside == sources, weights, f32(0)))
    return Taps(np.repeat(np.arange(size), 4), inside.reshape(-1), weights.reshape(-1))


def _normalised_weights(weights: Array) -> Array:
    """Rows of weights, divided by their sums. A row with a sum next to 0 stays as it is."""
    total = weights.sum(1, f32, keepdims=True)
    some = np.abs(total) >= 1000 * np.finfo(f32).tiny
    return np.where(some, weights * (1 / np.where(some, total, 1)), weights)


def resize_bicubic(b: Bind) -> Run:
    return separable(b, *(_bicubic_taps(b.attrs, *lengths) for lengths in _lengths(b)))


def resize_bicubic_grad(b: Bind) -> Run:
    rows, columns = (_bicubic_taps(b.attrs, *lengths).gradient_taps() for lengths in _gradient_lengths(b))
    return separable(b, rows, columns, b.attrs["T"].numpy)


# Area


def _area_taps(attrs: Attrs, length: int, size: int) -> Taps:
    """A pixel's weight is the part of it that the output covers. The border pixel replaces pixels outside."""
    scale = scaling(attrs, length, size) or f32(length) / f32(size)  # the corners of a single pixel have no distance
    starts, ends = np.arange(size, dtype=f32) * scale, np.arange(1, size + 1, dtype=f32) * scale
    first, last = np.floor(starts).astype(np.int64), np.ceil(ends).astype(np.int64)
    pixels = first[:, None] + np.arange(max((last - first).max(), 1))
    start, end, after = starts[:, None], ends[:, None], (pixels + 1).astype(f32)
    inner = np.where(after > end, end - pixels.astype(f32), f32(1))
    covered = np.where(pixels < start, np.where(after > end, scale, after - start), inner)
    targets, nth = np.nonzero(pixels < last[:, None])
    weights = covered[targets, nth] * (f32(1) / scale)
    return Taps(targets, np.clip(pixels[targets, nth], 0, length - 1), weights.astype(f32))


def resize_area(b: Bind) -> Run:
    return separable(b, *(_area_taps(b.attrs, *lengths) for lengths in _lengths(b)))


# Scale and translate


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        angle = np.pi * np.where(x <= 1e-3, 1, x).astype(np.float64)
        value = radius * np.sin(angle) * np.sin(angle / radius) / (angle * angle)
        return np.where(x > radius, 0, np.where(x <= 1e-3, 1, value))

    return kernel


def _keys_cubic(x: Array) -> Array:
    within_one = ((1.5 * x - 2.5) * x) * x + 1
    return np.where(x >= 2, 0, np.where(x >= 1, ((-0.5 * x + 2.5) * x - 4) * x + 2, within_one))


def _mitchell_cubic(x: Array) -> Array:
    within_one = ((7 / 6 * x - 2) * x) * x + 8 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9, within_one))


SAMPLING: dict[str, tuple[float, Callable[[Array], Array]]] = {  # radius, weight by distance
    "lanczos1": (1, _lanczos(1)), "lanczos3": (3, _lanczos(3)), "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(x >= 1.5, 0, np.exp(-2 * x * x))),
    "box": (1, lambda x: np.where(x < 0.5, 1, np.where(x == 0.5, 0.5, 0))),
    "triangle": (1, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (2, _keys_cubic), "mitchellcubic": (2, _mitchell_cubic),
}


def _sampling_taps(attrs: Attrs, length: int, size: int, scale: Any, translation: Any) -> Taps:
    """The taps of all outputs. An output outside the image has none."""
    inverse = f32(1) / f32(scale)
    radius, kernel = SAMPLING[attrs["kernel_type"]]
    stretch = max(inverse, f32(1)) if attrs["antialias"] else f32(1)
    reach = f32(radius) * stretch
    at = (np.arange(size, dtype=f32) + f32(0.5)) * inverse - inverse * f32(translation)
    span = min(2 * ceil(reach) + 1, length)
    first, last = (np.clip(edge.astype(np.int64), 0, length - 1)
                   for edge in (np.ceil(at - reach - f32(0.5)), np.floor(at + reach - f32(0.5))))
    pixels = first[:, None] + np.arange(span)
    weights = kernel(np.abs((pixels.astype(f32) + f32(0.5) - at[:, None]) / stretch)).astype(f32)
    inside = (at >= 0) & (at <= length)
    targets, nth = np.nonzero((pixels <= last[:, None]) & inside[:, None])
    weights = _normalised_weights(np.where(pixels <= last[:, None], weights, f32(0)))
    return Taps(targets, pixels[targets, nth], weights[targets, nth])


def _scale_and_translate(b: Bind, *, gradient: bool) -> Run:
    lengths = _gradient_lengths(b) if gradient else _lengths(b)

    def resample(scale: Array, translation: Array) -> Run:
        if not (scale > 0).all():
            raise errors.InvalidArgument(f"scale must be greater than zero, given {scale.tolist()}")
        taps = [_sampling_taps(b.attrs, *n, s, t) for n, s, t in zip(lengths, scale, translation, strict=True)]
        rows, columns = (t.gradient_taps() if gradient else t for t in taps)
        return separable(b, rows, columns)

    scale, translation = b.inputs[2].value, b.inputs[3].value
    if scale is not None and translation is not None:
        return resample(scale, translation)
    last: tuple[bytes, Run] = b"", nothing  # images of a run are mostly scaled alike, and taps take longer than sums

    def run(x: Array, _: Array, scale: Array, translation: Array, out: Array) -> None:
        nonlocal last
        asked = scale.tobytes() + translation.tobytes()
        known, chosen = last
        if asked != known:
            chosen = resample(scale, translation)
            last = asked, chosen
        chosen(x, out)

    return run


def scale_and_translate(b: Bind) -> Run:
    return _scale_and_translate(b, gradient=False)


def scale_and_translate_grad(b: Bind) -> Run:
    return _scale_and_translate(b, gradient=True)


def register_kernels(kernels: Kernels) -> None:
    for op, bind, types in (
        ("ResizeArea", resize_area, PIXELS),
        ("ResizeBicubic", resize_bicubic, PIXELS),
        ("ResizeBicubicGrad", resize_bicubic_grad, ("float32", "float64")),
        ("ResizeBilinear", resize_bilinear, PIXELS),
        ("ResizeBilinearGrad", resize_bilinear_grad, FLOATS),
        ("ResizeNearestNeighbor", resize_nearest_neighbor, PIXELS),
        ("ResizeNearestNeighborGrad", resize_nearest_neighbor_grad, ("int8", "uint8", "int32", *FLOATS)),
        ("ScaleAndTranslate", scale_and_translate, PIXELS),
        ("ScaleAndTranslateGrad", scale_and_translate_grad, ("float32",)),
    ):
        kernels.kernel(op, dtypes={"T": types})(bind)
