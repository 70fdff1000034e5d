"""Index arithmetic that metadata functions and kernels share: broadcasting, axes, sliding windows, strided slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...errors import InvalidArgument
from ..support.records import NamedTuple, dataclass
from .tensor import MOST_DIMS, Shape, shape_text


def broadcast_shapes(a: Shape, b: Shape) -> Shape:
    """Return the shape of an elementwise op's output. An unknown length is assumed to fit a length greater than 1.

    Raises InvalidArgument when the shapes do not fit.
    """
    if a is None or b is None:
        return None
    if not shapes_fit(a, b):
        raise InvalidArgument(f"Incompatible shapes: {shape_text(a)} vs. {shape_text(b)}")
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(_broadcast_dim(x, y) for x, y in pairs)


def shapes_fit(a: Shape, b: Shape) -> bool:
    """Return False when no values of the unknown lengths let tensors of these shapes broadcast against each other."""
    pairs = zip(reversed(a or ()), reversed(b or ()), strict=False)
    return all(x == y or 1 in (x, y) or None in (x, y) for x, y in pairs)


def _broadcast_dim(x: int | None, y: int | None) -> int | None:
    if x == 1 or y == 1 or x == y:
        return y if x == 1 else x
    return max(x or 0, y or 0) or None


def broadcast_gradient_axes(
    a: Sequence[int | None], b: Sequence[int | None]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of the broadcast shape to sum over for the gradient by each of two tensors of these shapes.

    Raises InvalidArgument when the shapes do not fit.
    """
    shapes = tuple(a), tuple(b)
    rank = len(broadcast_shapes(*shapes) or ())
    if shapes[0] == shapes[1]:
        return (), ()
    padded = ((1,) * (rank - len(shape)) + shape for shape in shapes)
    first, second = (tuple(i for i, length in enumerate(shape) if length == 1) for shape in padded)
    return first, second


def reduction_axes(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Return a reduction's axes counted from 0, in order. Negative axes in the input count from the end.

    Raises InvalidArgument for an axis that does not exist or is named twice.
    """
    for axis in axes:
        if not -rank <= axis < rank:
            raise InvalidArgument(f"Invalid reduction dimension ({axis} for input with {rank} dimension(s))")
    positive_axes = sorted(axis % rank for axis in axes)
    for axis, following in pairwise(positive_axes):
        if axis == following:
            raise InvalidArgument(f"Invalid reduction arguments: Axes contains duplicate dimension: {axis}")
    return tuple(positive_axes)


class Window(NamedTuple):
    """A window sliding along one dimension: the number of outputs, and the padding (0 while it is not known)."""

    size: int | None
    before: int
    after: int


def window(
    length: int | None, kernel: int | None, stride: int, dilation: int = 1, padding: str = "VALID",
    explicit: tuple[int, int] = (0, 0),
) -> Window:
    """Slide `kernel` taps, `dilation` apart, along `length` elements in steps of `stride`.

    A kernel that lacks less than two strides to fit gives no outputs and no error, as in TensorFlow. Raises
    InvalidArgument.
    """
    if stride < 1 or dilation < 1:
        raise InvalidArgument(f"stride {stride} and dilation {dilation} must be greater than 0")
    if padding == "SAME":
        if length is None:
            return Window(None, 0, 0)
        size = -(-length // stride)
        reach = 0 if kernel is None else (size - 1) * stride + (kernel - 1) * dilation + 1
        missing = max(reach - length, 0)
        return Window(size, missing // 2, missing - missing // 2)
    before, after = explicit if padding == "EXPLICIT" else (0, 0)
    if length is None or kernel is None:
        return Window(None, before, after)
    room = length + before + after - ((kernel - 1) * dilation + 1)
    if room <= -2 * stride:
        raise InvalidArgument(f"a window of {kernel} with dilation {dilation} does not fit into {length} elements"
                              f" padded with {before} and {after}: negative output size")
    return Window(max(room // stride + 1, 0), before, after)


def patch_window(length: int | None, taps: int, stride: int, rate: int, padding: str) -> Window:
    """`window` of ExtractImagePatches: a window that lacks less than two strides to fit gives no patches, no error."""
    lacking = 0 if length is None else (taps - 1) * rate + 1 - length
    if padding == "VALID" and 0 < lacking < 2 * stride:
        return Window(0, 0, 0)
    return window(length, taps, stride, rate, padding)


def spatial_windows(
    attrs: Mapping[str, Any], lengths: Sequence[int | None], taps: Sequence[int | None]
) -> list[Window]:
    """Return the windows of a convolution or pooling op with these attributes, one for each spatial dimension.

    `lengths` measure the input, `taps` the window: height and width, in 3-D after the depth. Raises InvalidArgument.
    """
    rank = len(lengths) + 2
    strides, dilations = attrs["strides"], attrs.get("dilations", (1,) * rank)
    for name, steps in (("strides", strides), ("dilations", dilations)):
        if len(steps) != rank or min(steps) < 1:
            raise InvalidArgument(f"{name} must be {rank} numbers greater than 0, given {list(steps)}")
    pads = _explicit_pads(attrs, rank)
    first = first_spatial(attrs["data_format"])
    return [window(length, taps[i], strides[first + i], dilations[first + i], attrs["padding"], pads[first + i])
            for i, length in enumerate(lengths)]


def first_spatial(data_format: str) -> int:
    """Return the first spatial axis. The channels are before it or last."""
    return 2 if data_format[1] == "C" else 1


def _explicit_pads(attrs: Mapping[str, Any], rank: int) -> list[tuple[int, int]]:
    flat_pads = tuple(attrs.get("explicit_paddings", ()))
    if attrs["padding"] != "EXPLICIT":
        if flat_pads:
            raise InvalidArgument("explicit_paddings must be empty unless padding is EXPLICIT")
        return [(0, 0)] * rank
    if len(flat_pads) != 2 * rank or min(flat_pads) < 0:
        raise InvalidArgument(f"explicit_paddings must be {2 * rank} numbers that are not negative, "
                              f"given {list(flat_pads)}")
    pads = list(zip(flat_pads[::2], flat_pads[1::2], strict=True))
    if any(pads[0]) or any(pads[attrs["data_format"].index("C")]):
        raise InvalidArgument("explicit padding in the batch or depth dimension is not supported")
    return pads


def window_taps(length: int, kernel: int, stride: int, slide: Window) -> list[tuple[slice, slice]]:
    """Return for each position in the window the outputs that find an element there (not padding), and the elements."""
    assert slide.size is not None
    reached = range(max(0, slide.before - (slide.size - 1) * stride), min(kernel, slide.before + length))
    taps = (tap_slices(length, stride, slide.size, tap - slide.before) for tap in reached)
    return [slices for slices in taps if slices is not None]


def tap_slices(length: int, stride: int, size: int, offset: int) -> tuple[slice, slice] | None:
    """Return the outputs o, of `size`, for which element o * stride + offset exists, and the elements."""
    first = max(0, -(offset // stride))
    last = min(size, (length - 1 - offset) // stride + 1)
    if first >= last:
        return None
    start = first * stride + offset
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)


@dataclass(frozen=True, slots=True)
class Slicing:
    """A strided slice: its NumPy index, None while part of it is unknown, and the shape of the selection."""

    index: tuple[Any, ...] | None
    shape: tuple[int | None, ...]


def strided_slice(
    shape: Sequence[int | None], begin: Sequence[int | None], end: Sequence[int | None],
    strides: Sequence[int], *, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
    new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Slicing:
    """Return TensorFlow's strided slice of a tensor of this shape.

    Masks of one position take precedence in this order: ellipsis, new axis, shrink axis, begin and end. Raises
    InvalidArgument.
    """
    count = len(strides)
    ellipsis_mask &= (1 << count) - 1
    if ellipsis_mask.bit_count() > 1:
        raise InvalidArgument("Multiple ellipses in slice spec not allowed")
    ellipsis_at = ellipsis_mask.bit_length() - 1 if ellipsis_mask else count
    takes = [i for i in range(count) if i != ellipsis_at and not new_axis_mask >> i & 1]
    skipped_dims = len(shape) - len(takes)  # dimensions that the ellipsis stands for
    if skipped_dims < 0:
        raise InvalidArgument(f"Index out of range: {len(takes)} dimensions sliced, input has {len(shape)}")
    index: list[Any] = []
    selected: list[int | None] = []
    lengths = iter(shape)
    for i in range(max(count, ellipsis_at + 1)):
        if i == ellipsis_at:
            index += [slice(None)] * skipped_dims
            selected += [next(lengths) for _ in range(skipped_dims)]
        elif new_axis_mask >> i & 1:
            index.append(None)
            selected.append(1)
        elif shrink_axis_mask >> i & 1:
            index.append(_element(next(lengths), begin[i], strides[i], i))
        else:
            first = begin[i] if not begin_mask >> i & 1 else "masked"
            last = end[i] if not end_mask >> i & 1 else "masked"
            part, size = _range(next(lengths), first, last, strides[i], i)
            index.append(part)
            selected.append(size)
    return Slicing(None if _UNKNOWN in index else tuple(index), tuple(selected))


_UNKNOWN = "unknown"


def _element(length: int | None, at: int | None, stride: int, axis: int) -> int | str:
    if stride <= 0:
        raise InvalidArgument("only stride 1 allowed on non-range indexing" if stride else
                              f"strides[{axis}] must be non-zero")
    if length is None or at is None:
        return _UNKNOWN
    position = at + length if at < 0 else at
    if not 0 <= position < length:
        raise InvalidArgument(f"slice index {position} of dimension {axis} out of bounds")
    return position


def _range(
    length: int | None, begin: int | str | None, end: int | str | None, stride: int, axis: int
) -> tuple[slice | str, int | None]:
    """Return NumPy's slice along one axis, and the number of elements it selects."""
    if stride == 0:
        raise InvalidArgument(f"strides[{axis}] must be non-zero")
    if length is None or begin is None or end is None:
        return _UNKNOWN, None
    low, high = (0, length) if stride > 0 else (-1, length - 1)
    source, sink = (low, high) if stride > 0 else (high, low)
    first = source if isinstance(begin, str) else min(max(begin + length if begin < 0 else begin, low), high)
    last = sink if isinstance(end, str) else min(max(end + length if end < 0 else end, low), high)
    size = max(0, -((first - last) // stride))
    if size == 0:
        return slice(0, 0), 0
    return slice(first, last if last >= 0 else None, stride), size


_LONGEST_EQUATION = 3 * (MOST_DIMS + len("...")) + len(",->")  # two inputs and an output
Label = str | int  # an einsum axis; the axes of an ellipsis are numbered from the end, -1 the last


def einsum_labels(
    equation: str, ranks: Sequence[int | None]
) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]] | None:
    """Return the labels of each input's axes and of the output's; None when they depend on an unknown rank.

    Any character is a label, a space too, as in TensorFlow. Raises InvalidArgument.
    """
    if len(equation) > _LONGEST_EQUATION:
        raise InvalidArgument(f"an einsum equation has {len(equation)} characters, at most {_LONGEST_EQUATION} are "
                              "possible")
    subscripts = equation.split("->")
    if len(subscripts) != 2:
        raise InvalidArgument(f"Expecting exactly one '->' in einsum equation: {equation}")
    terms, result = subscripts[0].split(","), subscripts[1]
    if len(terms) > 2 or len(terms) != len(ranks):
        raise InvalidArgument(f"Expected {min(len(terms), 2)} inputs but got: {len(ranks)} for equation '{equation}'")
    for term in (*terms, result):
        if "." in term.replace("...", "", 1):
            raise InvalidArgument(f"Expected at most one ellipsis and no other '.' in the subscript '{term}'")
    if any(rank is None and "..." in term for term, rank in zip(terms, ranks, strict=True)):
        return None
    inputs = [_axis_labels(i, term, rank) for i, (term, rank) in enumerate(zip(terms, ranks, strict=True))]
    broadcast = max(sum(isinstance(label, int) for label in labels) for labels in inputs)
    if broadcast and "..." not in result:
        raise InvalidArgument(f"Output contains {broadcast} broadcasting dimension(s) but no ellipsis (...) was found "
                              f"in the output subscript of '{equation}'")
    output = _axis_labels(-1, result, len(result.replace("...", "")) + broadcast)
    for label in output:
        if not any(label in labels for labels in inputs):
            raise InvalidArgument(f"Einsum output subscripts contain label '{label}' not in inputs: '{equation}'")
    return inputs, output


def _axis_labels(number: int, term: str, rank: int | None) -> tuple[Label, ...]:
    before, ellipsis, after = term.partition("...")
    ellipsis_dims = 0 if rank is None else rank - len(before) - len(after)
    if ellipsis_dims < 0 or (ellipsis_dims and not ellipsis):
        raise InvalidArgument(f"Expected input {number} of subscript '{term}' to have "
                              f"{'at least ' if ellipsis else ''}rank {len(before) + len(after)} but got: {rank}")
    return (*before, *range(-ellipsis_dims, 0), *after)
