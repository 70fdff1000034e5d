"""Kernels of quantised numbers: to integers, from integers, and networks of integers, as published graphs have them.

Each tensor of integers comes with the floats of its lowest and highest integer, which the kernels return for results
too. Products and sums are computed in float64, exactly, by the kernels of convolutions, matrices and pools.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, TensorMetadata, ValueInfo, dtypes, errors

from ..element_types import QUANTISED, Array
from ..quantised import (
    F32,
    INT32,
    Levels,
    integers_of,
    product_range,
    round_half_away,
    single,
    store,
    sum_range,
    to_bytes,
    to_int32,
)
from . import conv, linear, pool
from .const_inputs import integer

Run = Callable[..., None]
SUM_BITS, BIAS_BITS = 14, 17  # a sum's range is so many bits wider than its inputs'
LARGEST = np.finfo(np.float32).max
LARGEST_BYTE = 255
HALF = 1 << 15  # the largest factors of which float64 has room for the sum of 2**23 products


def quantize(b: Bind) -> Run:
    """QuantizeV2, for one range or one range for each index along an axis."""
    levels, along = Levels.of(b.attrs["T"]), _along_axis(b)
    floor, mode = F32(b.attrs["ensure_minimum_range"]), b.attrs["mode"]

    def run(x: Array, minimum: Array, maximum: Array, out: Array, low_out: Array, high_out: Array) -> None:
        low, high = _limits_around_zero(minimum.reshape(low_out.shape), maximum.reshape(high_out.shape), floor)
        if mode == "MIN_FIRST":
            store(levels.to_integers(x, low, high), out)
        elif mode == "MIN_COMBINED":
            store(_zero_for_nan(_min_combined(levels, x, low.reshape(along), high.reshape(along))), out)
        else:
            scale, low, high = _scaled_limits(b, levels, low, high)
            clamped = np.maximum(np.minimum(x, high.reshape(along)), low.reshape(along))
            rounded = np.rint if b.attrs["round_mode"] == "HALF_TO_EVEN" else round_half_away
            store(_zero_for_nan(rounded(clamped * scale.reshape(along))), out)
        low_out[...], high_out[...] = low, high

    return run


def _along_axis(b: Bind) -> tuple[int, ...]:
    """The shape by which limits broadcast against the input."""
    axis, dims = b.attrs["axis"], b.inputs[0].meta.dims
    rank = len(dims)
    if axis != -1 and dims[axis] != 1 and b.attrs["mode"] == "MIN_FIRST":
        raise errors.Unimplemented("MIN_FIRST mode is not implemented with axis != -1")
    return () if axis == -1 else tuple(-1 if i == axis else 1 for i in range(rank))


def _limits_around_zero(minimum: Array, maximum: Array, floor: Any) -> tuple[Any, Any]:
    """The limits, widened to include 0 and to a least width. As in C++, a comparison with NaN is false."""
    if (maximum < minimum).any():
        raise errors.InvalidArgument("input_max_range must be larger than input_min_range.")
    low = np.where(minimum < 0, minimum, F32(0))
    first, last = np.abs(minimum), np.abs(maximum)
    size = np.where(first < last, last, first)
    width = np.where(size > 1, size, F32(1)) * floor
    high = np.where(maximum < low + width, low + width, maximum)
    return low, np.where(high > 0, high, F32(0))


def _min_combined(levels: Levels, x: Array, low: Array, high: Array) -> Array:
    scale = (np.float64(levels.span) / (high - low).astype(np.float64)).astype(F32)
    places = (np.maximum(np.minimum(x, high), low) - low) * scale
    rounded: Array = round_half_away(places - F32(levels.half)) if levels.lowest else np.trunc(places + F32(0.5))
    return rounded


def _zero_for_nan(rounded: Array) -> Array:
    return np.where(np.isnan(rounded), F32(0), rounded)


def _scaled_limits(b: Bind, levels: Levels, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """The scale by which 0 stays 0 and both limits fit, and the limits of that scale."""
    least, greatest = F32(levels.lowest + b.attrs["narrow_range"]), F32(levels.highest)
    by_low = np.where(least * low > 0, least / low, LARGEST)
    by_high = np.where(greatest * high > 0, greatest / high, LARGEST)
    scale = np.where(by_high < by_low, by_high, by_low)
    return scale, least / scale, greatest / scale


def dequantize(b: Bind) -> Run:
    levels, along, mode = Levels.of(b.attrs["T"]), _along_axis(b), b.attrs["mode"]
    least = F32(levels.lowest + b.attrs["narrow_range"])

    def run(x: Array, minimum: Array, maximum: Array, out: Array) -> None:
        integers = integers_of(x)
        low, high = minimum.reshape(along), maximum.reshape(along)
        if mode == "MIN_FIRST":
            floats = levels.to_floats(integers, single(minimum), single(maximum))
        elif mode == "MIN_COMBINED":
            floats = (integers.astype(F32) + F32(levels.half)) * ((high - low) / F32(levels.span)) + low
        else:
            by_high = high / F32(levels.highest)
            by_low = low / least if levels.lowest else by_high
            numbers = integers.astype(F32)  # TensorFlow takes them back to int32, of which 2**31 is none
            floats = np.where(numbers < -F32(INT32.lowest), numbers, F32(INT32.lowest))
            floats *= np.where(by_low < by_high, by_high, by_low)
        out[...] = floats

    return run


# Networks of integers


def _wide(b: Bind, count: int, dtype: DType, **attrs: Any) -> Callable[..., Array]:
    """Bind another op's kernel to the first `count` inputs and the first output, as numbers of `dtype`. Return a
    function from the inputs to the output."""
    inputs = tuple(ValueInfo(TensorMetadata(dtype, x.meta.shape)) for x in b.inputs[:count])
    meta = TensorMetadata(dtype, b.outputs[0].shape)
    inner = Bind(b.node, b.op, {**b.attrs, "T": dtype, **attrs}, inputs, (meta,), b.device, b.stream, {}, ask=b.ask)
    bind = KERNELS[b.op]
    kernel: Any = bind(inner)

    def run(*arrays: Array) -> Array:
        out = np.empty(meta.dims, dtype.numpy)
        getattr(kernel, "run", kernel)(*(np.ascontiguousarray(x, dtype.numpy) for x in arrays), out)
        return out

    return run


KERNELS: dict[str, Callable[[Bind], Any]] = {
    "QuantizedConv2D": conv.convolution, "QuantizedMatMul": linear.matmul, "QuantizedAvgPool": pool.avg_pool,
    "QuantizedMaxPool": pool.max_pool,
}


def _limits(*arrays: Array, names: tuple[str, ...] = (), strict: bool = False) -> list[Any]:
    """The float32s of limits. With `strict`, each second one must be larger than the one before."""
    limits = [single(x) for x in arrays]
    for i, name in enumerate(names):
        if strict and not limits[2 * i] < limits[2 * i + 1]:
            raise errors.InvalidArgument(f"max_{name} must be larger than min_{name}.")
    return limits


def product(b: Bind) -> Run:
    """QuantizedConv2D and QuantizedMatMul: integers less the integers of 0.0, multiplied and added.

    A pad is 0.0. TensorFlow's pads have only the last 8 bits of its integer where that is above the type. Then pixels
    are convolved less these 8 bits, and the rest is subtracted at each place of the kernel.
    """
    is_matrix = b.op == "QuantizedMatMul"
    if not (is_matrix or all(x.size for x in b.inputs[:2])):
        raise errors.InvalidArgument("quantised convolutions need dimensions above 0")
    multiply = _wide(b, 2, dtypes.float64, data_format="NHWC", explicit_paddings=())
    levels = [Levels.of(x.dtype) for x in b.inputs[:2]]

    def run(x: Array, y: Array, *arrays: Array) -> None:
        limits = _limits(*arrays[:4], names=("a", "b"), strict=is_matrix)
        (zero, step), (other_zero, other_step) = (
            (_zero_point(kind, *ends), kind.step(*ends))
            for kind, ends in zip(levels, (limits[:2], limits[2:]), strict=True))
        padding = 0 if is_matrix or zero <= LARGEST_BYTE else zero & ~LARGEST_BYTE
        numbers, weights = _subtract_zero(x, zero - padding), _subtract_zero(y, other_zero)
        total = _multiply_exactly(multiply, numbers, weights)
        if padding:
            total = total - padding * weights.sum((0, 1, 2))
        out, low_out, high_out = arrays[4:]
        np.copyto(integers_of(out), total, casting="unsafe")
        low_out[...], high_out[...] = product_range(step, other_step)

    return run


def _zero_point(levels: Levels, low: Any, high: Any) -> int:
    """The int32 of 0.0, perhaps outside the type."""
    return int(levels.to_integer(0, low, high, clamped=False).astype(np.int32))


def _subtract_zero(x: Array, zero: int) -> Array:
    """The integers less that of 0.0: int64s in the range of int32, wrapped around."""
    differences: Array = (integers_of(x).astype(np.int64) - zero).astype(np.int32).astype(np.int64)
    return differences


def _multiply_exactly(multiply: Callable[..., Array], x: Array, y: Array) -> Array:
    """A product of int32s, right in its last 32 bits, by products in float64. Large factors are cut in halves."""
    largest = max(1, *(int(np.abs(a).max(initial=0)) for a in (x, y)))
    if largest <= HALF:
        return _int64_of(multiply(x, y))
    highs, lows = zip(*(((a + HALF) >> 16, ((a + HALF) & 0xFFFF) - HALF) for a in (x, y)), strict=True)
    middle = _int64_of(multiply(highs[0], lows[1])) + _int64_of(multiply(lows[0], highs[1]))
    total: Array = _int64_of(multiply(*lows)) + (middle << 16)
    return total


def _int64_of(total: Array) -> Array:
    """float64 integers as int64, with the same last 32 bits."""
    wrapped: Array = np.fmod(total, 2.0**32).astype(np.int64)
    return wrapped


def relu(b: Bind) -> Run:
    """Integers from that of 0.0 on; QuantizedRelu6 also ends at that of 6.0."""
    levels, is_limited = Levels.of(b.attrs["Tinput"]), b.op == "QuantizedRelu6"

    def run(x: Array, minimum: Array, maximum: Array, out: Array, low_out: Array, high_out: Array) -> None:
        low, high = single(minimum), single(maximum)
        integers, result = integers_of(x), integers_of(out)
        highest = int(levels.to_integer(6.0, low, high)) if is_limited else levels.highest
        np.minimum(np.maximum(integers, int(levels.to_integer(0.0, low, high))), highest, out=result)
        low_out[...], high_out[...] = low, high

    return run


def avg_pool(b: Bind) -> Run:
    average = _wide(b, 1, dtypes.float64, data_format="NHWC")
    return _with_same_range(lambda x: np.trunc(average(x)))


def max_pool(b: Bind) -> Run:
    return _with_same_range(_wide(b, 1, dtypes.of_numpy(b.attrs["T"].numpy[0]), data_format="NHWC"))


def reshape(_: Bind) -> Run:
    def run(x: Array, _shape: Array, minimum: Array, maximum: Array, *outs: Array) -> None:
        out, low_out, high_out = outs
        np.copyto(out, x.reshape(out.shape))
        low_out[...], high_out[...] = single(minimum), single(maximum)

    return run


def _with_same_range(function: Callable[[Array], Array]) -> Run:
    def run(x: Array, minimum: Array, maximum: Array, out: Array, low_out: Array, high_out: Array) -> None:
        np.copyto(integers_of(out), function(integers_of(x)), casting="unsafe")
        low_out[...], high_out[...] = single(minimum), single(maximum)

    return run


def bias_add(b: Bind) -> Run:
    """QuantizedBiasAdd: each input is rounded to the range of the sum, in float32. The integer of 0.0 in that range, 0
    or -1, is added too, as in TensorFlow."""
    levels = [Levels.of(x.dtype) for x in b.inputs[:2]]
    if not b.inputs[1].size:
        raise errors.InvalidArgument("bias must have an element")

    def run(x: Array, bias: Array, *arrays: Array) -> None:
        limits = _limits(*arrays[:4])
        ends = sum_range(limits, BIAS_BITS)
        parts = (to_int32(INT32.to_integers(kind.to_floats(integers_of(a), *limit), *ends)).astype(np.int64)
                 for kind, a, limit in zip(levels, (x, bias), (limits[:2], limits[2:]), strict=True))
        out, low_out, high_out = arrays[4:]
        np.copyto(integers_of(out), np.add(*parts) + INT32.to_integer(0.0, *ends), casting="unsafe")
        low_out[...], high_out[...] = ends

    return run


def add(b: Bind) -> Run:
    """QuantizedAdd, in steps of the sum: an integer of a tensor is a whole number of steps. One single element, the
    first input's if both have one, is rounded by itself."""
    levels, sizes = _levels_of_operands(b), [x.size for x in b.inputs[:2]]
    is_single = [sizes[0] == 1, sizes[1] == 1 != sizes[0]]

    def run(x: Array, y: Array, *arrays: Array) -> None:
        limits = _limits(*arrays[:4], names=("x", "y"), strict=True)
        ends = sum_range(limits, SUM_BITS)
        parts = [_in_steps(kind, integers_of(a), limit, ends, is_single=alone) for kind, a, limit, alone in
                 zip(levels, (x, y), (limits[:2], limits[2:]), is_single, strict=True)]
        out, low_out, high_out = arrays[4:]
        np.copyto(integers_of(out), np.add(*parts), casting="unsafe")
        low_out[...], high_out[...] = ends

    return run


def _levels_of_operands(b: Bind) -> list[Levels]:
    """The levels of both inputs. TensorFlow broadcasts no empty tensor, except one against a single element."""
    operands = b.inputs[:2]
    sizes = [x.size for x in operands]
    if 0 in sizes and 1 not in sizes and len({_without_ones(x.meta.dims) for x in operands}) == 2:
        raise errors.InvalidArgument("an empty tensor of quantised numbers is not broadcast")
    return [Levels.of(x.dtype) for x in operands]


def _without_ones(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions from the first one that is not 1."""
    return dims[next((i for i, n in enumerate(dims) if n != 1), len(dims)) :]


def _in_steps(levels: Levels, integers: Array, limits: Any, ends: Any, *, is_single: bool) -> Any:
    if is_single:
        return INT32.to_integer(levels.to_float(integers, *limits), *ends)
    first, second = (INT32.to_integer(levels.to_float(i, *limits), *ends, clamped=False) for i in (0, 1))
    multiple = np.subtract(second, first).astype(np.int32)
    return np.add(integers.astype(np.int64) * multiple, first).clip(INT32.lowest, INT32.highest)


def mul(b: Bind) -> Run:
    levels = _levels_of_operands(b)

    def run(x: Array, y: Array, *arrays: Array) -> None:
        limits = _limits(*arrays[:4], names=("x", "y"), strict=True)
        ends = limits[:2], limits[2:]
        factors = (_subtract_zero(a, _zero_point(kind, *limit))
                   for a, kind, limit in zip((x, y), levels, ends, strict=True))
        out, low_out, high_out = arrays[4:]
        np.copyto(integers_of(out), np.multiply(*factors), casting="unsafe")
        low_out[...], high_out[...] = product_range(*(kind.step(*limit) for kind, limit in zip(levels, ends,
                                                                                            strict=True)))

    return run


def concat(b: Bind) -> Run:
    """Integers in the range of 0 and all inputs together; of a signed type, a range around 0."""
    count, axis, levels = b.attrs["N"], integer(b, 0), Levels.of(b.attrs["T"])
    if axis < 0:
        raise errors.InvalidArgument(f"ConcatOp : Expected concatenating dimensions from 0 on, but got {axis}")

    def run(_axis: Array, *arrays: Array) -> None:
        values, (out, low_out, high_out) = arrays[:count], arrays[3 * count :]
        lows, highs = (_limits(*arrays[i * count : (i + 1) * count]) for i in (1, 2))
        low, high = min(F32(0), *lows), max(-LARGEST, *highs)  # in this order, NaN is left out
        if levels.lowest:
            low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
        parts = [x if ends == (low, high) else _in_new_range(levels, x, ends, (low, high))
                 for x, ends in zip(values, zip(lows, highs, strict=True), strict=True)]
        np.copyto(out, np.concatenate(parts, axis))
        low_out[...], high_out[...] = low, high

    return run


def _in_new_range(levels: Levels, x: Array, ends: Any, new_ends: Any) -> Array:
    out = np.empty_like(x)
    store(levels.to_integers(levels.to_floats(integers_of(x), *ends), *new_ends), out)
    return out


def _shrink(levels: Levels, x: Array, ends: Any, new_ends: Any, out: Array) -> None:
    """The bytes for qint32s."""
    if levels.lowest:
        store(levels.to_integers(INT32.to_floats(integers_of(x), *ends), *new_ends), out)
    else:
        np.copyto(integers_of(out), to_bytes(integers_of(x), *ends, *new_ends), casting="unsafe")


def requantize(b: Bind) -> Run:
    levels = Levels.of(b.attrs["out_type"])

    def run(x: Array, minimum: Array, maximum: Array, new_low: Array, new_high: Array, *outs: Array) -> None:
        low, high, *ends = _limits(minimum, maximum, new_low, new_high)
        if not ends[0] <= 0:
            raise errors.InvalidArgument(f"requested_output_min must be <= 0, but got {ends[0]}")
        if not ends[1] >= ends[0]:
            raise errors.InvalidArgument(f"requested_output_max must be >= requested_output_min, but got {ends[1]} and "
                                         f"{ends[0]}")
        _shrink(levels, x, (low, high), ends, outs[0])
        outs[1][...], outs[2][...] = ends

    return run


def _used_range(x: Array, low: Any, high: Any) -> tuple[Any, Any]:
    """The limits of the integers that occur; the lower one is not above 0. Of no integers they are as TensorFlow has
    them: the other way round."""
    integers = integers_of(x)
    least = int(integers.min(initial=INT32.highest))
    greatest = int(integers.max(initial=INT32.lowest))
    return min(F32(0), INT32.to_float(least, low, high)), INT32.to_float(greatest, low, high)


def requantization_range(_: Bind) -> Run:
    def run(x: Array, minimum: Array, maximum: Array, low_out: Array, high_out: Array) -> None:
        low_out[...], high_out[...] = _used_range(x, single(minimum), single(maximum))

    return run


def shrink_range(b: Bind) -> Run:
    levels = Levels.of(b.attrs["out_type"])

    def run(x: Array, minimum: Array, maximum: Array, out: Array, low_out: Array, high_out: Array) -> None:
        low, high = single(minimum), single(maximum)
        ends = _used_range(x, low, high)
        _shrink(levels, x, (low, high), ends, out)
        low_out[...], high_out[...] = ends

    return run


def register_kernels(kernels: Kernels) -> None:
    bytes_, words = ("qint8", "quint8"), "qint32"
    kernels.kernel("QuantizeV2", dtypes={"T": QUANTISED})(quantize)
    kernels.kernel("Dequantize", dtypes={"T": QUANTISED})(dequantize)
    kernels.kernel("QuantizedConv2D", dtypes={"Tinput": "quint8", "Tfilter": "quint8", "out_type": words})(product)
    kernels.kernel("QuantizedMatMul", dtypes={"T1": "quint8", "T2": "quint8", "Toutput": words})(product)
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        for dtype in ("quint8", words):
            kernels.kernel(op, dtypes={"Tinput": dtype, "out_type": dtype})(relu)
    kernels.kernel("QuantizedAvgPool", dtypes={"T": bytes_})(avg_pool)
    kernels.kernel("QuantizedMaxPool", dtypes={"T": bytes_})(max_pool)
    for dtype in bytes_:
        kernels.kernel("QuantizedBiasAdd", dtypes={"T1": dtype, "T2": dtype, "out_type": words})(bias_add)
    kernels.kernel("QuantizedAdd", dtypes={"T1": "quint8", "T2": "quint8", "Toutput": words})(add)
    kernels.kernel("QuantizedMul", dtypes={"T1": "quint8", "T2": "quint8", "Toutput": words})(mul)
    kernels.kernel("QuantizedConcat", dtypes={"T": ("quint8", words)})(concat)
    kernels.kernel("QuantizedReshape", dtypes={"T": ("quint8", words)})(reshape)
    kernels.kernel("Requantize", dtypes={"Tinput": words, "out_type": bytes_})(requantize)
    kernels.kernel("RequantizationRange", dtypes={"Tinput": words})(requantization_range)
    kernels.kernel("QuantizeDownAndShrinkRange", dtypes={"Tinput": words, "out_type": "quint8"})(shrink_range)
