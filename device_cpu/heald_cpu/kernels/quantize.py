"""Kernels that round floats as if they were stored as small integers, and return floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, errors

from .const_inputs import integer
from .staging import nothing

Run = Callable[..., None]
Range = Callable[[Any, Any, Any], tuple[Any, Any]]  # of input, input_min and input_max
ROUND: dict[str, Callable[[Any], Any]] = {"HALF_TO_EVEN": np.rint, "HALF_UP": lambda x: np.floor(x + x.dtype.type(0.5))}


def quantize_and_dequantize(b: Bind) -> Run:
    bits = b.attrs["num_bits"] if "num_bits" in b.attrs else integer(b, 3)
    dtype, has_given_range = b.outputs[0].dtype.numpy, b.attrs["range_given"]
    low, high = _integer_range(bits, signed=b.attrs["signed_input"], narrow=b.attrs["narrow_range"])
    least, greatest = dtype.type(low), dtype.type(high)
    rounded = ROUND[b.attrs.get("round_mode", "HALF_TO_EVEN")]
    ends = _given_range(b) if has_given_range else _own_range(b)
    if not has_given_range and b.outputs[0].size == 0:
        return nothing

    def run(x: Any, minimum: Any, maximum: Any, *bits_and_out: Any) -> None:
        first, last, scale, inverse = _scaled_range(*ends(x, minimum, maximum), least, greatest)
        clamped = np.maximum(np.minimum(x, last), first) if has_given_range else x
        np.multiply(rounded(clamped * scale), inverse, out=bits_and_out[-1])

    return run


def quantize_and_dequantize_v1(b: Bind) -> Run:
    """The deprecated op: its range is two attributes, or that of all elements."""
    dtype, attrs = b.outputs[0].dtype.numpy, b.attrs
    limits = np.array(attrs["input_min"], dtype), np.array(attrs["input_max"], dtype)
    attrs_v2 = {**attrs, "narrow_range": False, "axis": -1}
    run_v2 = quantize_and_dequantize(Bind(b.node, b.op, attrs_v2, b.inputs, b.outputs, b.device, b.stream, {}))
    return run_v2 if run_v2 is nothing else lambda x, out: run_v2(x, *limits, out)


def quantize_gradient(b: Bind) -> Run:
    """QuantizeAndDequantizeV4Grad: the gradients of elements in the range pass. The limits get none."""
    axis, rank = b.attrs["axis"], len(b.inputs[1].meta.dims)
    along = () if axis == -1 else tuple(-1 if i == axis else 1 for i in range(rank))

    def run(gradients: Any, x: Any, low: Any, high: Any, out: Any, low_out: Any, high_out: Any) -> None:
        is_inside = (x >= low.reshape(along)) & (x <= high.reshape(along))
        np.multiply(gradients, is_inside, out=out)  # a gradient that is not finite becomes NaN outside
        low_out.fill(0)
        high_out.fill(0)

    return run


def _given_range(b: Bind) -> Range:
    axis, rank = b.attrs["axis"], len(b.inputs[0].meta.dims)
    along = () if axis == -1 else tuple(-1 if i == axis else 1 for i in range(rank))

    def ends(_x: Any, minimum: Any, maximum: Any) -> tuple[Any, Any]:
        if not (minimum <= maximum).all():
            raise errors.InvalidArgument(f"Invalid range: input_min {minimum.tolist()} > input_max {maximum.tolist()}")
        return minimum.reshape(along), maximum.reshape(along)

    return ends


def _own_range(b: Bind) -> Range:
    """The least and the greatest element, of all or of each slice along an axis. NaN is neither."""
    axis, rank = b.attrs["axis"], len(b.inputs[0].meta.dims)
    others = None if axis == -1 else tuple(i for i in range(rank) if i != axis)
    return lambda x, _minimum, _maximum: (np.fmin.reduce(x, others, keepdims=True, initial=np.inf),
                                          np.fmax.reduce(x, others, keepdims=True, initial=-np.inf))


def _integer_range(bits: int, *, signed: bool, narrow: bool) -> tuple[int, int]:
    if signed:
        return -(1 << bits - 1) + narrow, (1 << bits - 1) - 1
    return 0, (1 << bits) - 1


def _scaled_range(first: Any, last: Any, low: Any, high: Any) -> tuple[Any, Any, Any, Any]:
    """The range, widened on one side so that 0 stays 0 and the other side just fits; its scale, and the scale's
    inverse."""
    unlimited = np.finfo(low.dtype).max
    by_first = np.where(low * first > 0, low / first, unlimited)
    by_last = np.where(high * last > 0, high / last, unlimited)
    at_first = by_first < by_last
    scale = np.where(at_first, by_first, by_last)
    inverse = np.where(at_first, first / low, last / high)
    return np.where(at_first, first, low * inverse), np.where(at_first, high * inverse, last), scale, inverse


def fake_quant_args(b: Bind) -> Run:
    low, high = _fake_range(b)
    with np.errstate(all="ignore"):
        nudged = _nudged_range(np.float32(b.attrs["min"]), np.float32(b.attrs["max"]), low, high)
    return lambda x, out: _fake_quant(x, nudged, np.multiply, nudged.inverse, out)


def fake_quant_vars(b: Bind) -> Run:
    return _fake_quant_given(b, lambda nudged: (np.divide, nudged.scale))


def fake_quant_channels(b: Bind) -> Run:
    return _fake_quant_given(b, lambda nudged: (np.multiply, nudged.inverse))


class _Nudged(NamedTuple):
    """A range, moved so that 0 is one of its steps; the size of a step, and the number of steps in 1, rounded apart."""

    first: Any
    last: Any
    scale: Any
    inverse: Any


def _fake_quant_given(b: Bind, steps: Callable[[_Nudged], tuple[Any, Any]]) -> Run:
    """`steps` returns the function and the operand that make steps of a distance. TensorFlow divides in one op and
    multiplies in the others, which differs where a value is halfway between two steps."""
    low, high = _fake_range(b)

    def run(x: Any, minimum: Any, maximum: Any, out: Any) -> None:
        nudged = _nudged_range(minimum, maximum, low, high)
        _fake_quant(x, nudged, *steps(nudged), out)
        out[..., (minimum == 0) & (maximum == 0)] = 0

    return run


def _fake_range(b: Bind) -> tuple[Any, Any]:
    return np.float32(b.attrs["narrow_range"]), np.float32((1 << b.attrs["num_bits"]) - 1)


def _nudged_range(minimum: Any, maximum: Any, low: Any, high: Any) -> _Nudged:
    scale = (maximum - minimum) / (high - low)
    zero_point = np.clip(_round_half_away(low - minimum / scale), low, high)
    return _Nudged((low - zero_point) * scale, (high - zero_point) * scale, scale, (high - low) / (maximum - minimum))


def _round_half_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x)


def _fake_quant(x: Any, nudged: _Nudged, counted: Callable[..., Any], step: Any, out: Any) -> None:
    """Round to steps: `counted(distance, step)` is the number of steps from the first one."""
    half = np.float32(0.5)
    np.maximum(np.minimum(x, nudged.last), nudged.first, out=out)
    np.subtract(out, nudged.first, out)
    counted(out, step, out)
    np.subtract(out, np.floor(half - nudged.first * nudged.inverse), out)
    np.add(out, half, out)
    np.floor(out, out)
    np.multiply(out, nudged.scale, out)


def register_kernels(kernels: Kernels) -> None:
    for version in ("V2", "V3", "V4"):
        kernels.kernel(f"QuantizeAndDequantize{version}", dtypes={"T": ("float32", "float64")})(quantize_and_dequantize)
    kernels.kernel("QuantizeAndDequantize", dtypes={"T": ("float32", "float64")})(quantize_and_dequantize_v1)
    kernels.kernel("QuantizeAndDequantizeV4Grad", dtypes={"T": ("float32", "float64")})(quantize_gradient)
    for op, bind in {
        "FakeQuantWithMinMaxArgs": fake_quant_args, "FakeQuantWithMinMaxVars": fake_quant_vars,
        "FakeQuantWithMinMaxVarsPerChannel": fake_quant_channels,
    }.items():
        kernels.kernel(op)(bind)
