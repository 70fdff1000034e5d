"""Metadata of ops that round floats as if they were stored as small integers."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, info

from .rules import rule
from .shapes import Dims, dims_of_rank, same_dim, same_shape, single_integer


@rule("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> ValueInfo:
    _check_bits(attrs["num_bits"], signed=attrs["signed_input"])
    return _in_range(attrs, x, low, high)


@rule("QuantizeAndDequantizeV3", values=("num_bits",))
def quantize_and_dequantize_v3(
    attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo, num_bits: ValueInfo
) -> ValueInfo:
    bits = single_integer(num_bits, "num_bits", most_rank=1)
    if bits is not None:
        _check_bits(bits, signed=attrs["signed_input"])
    return _in_range(attrs, x, low, high)


@rule("QuantizeAndDequantize")
def quantize_and_dequantize_v1(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    _check_bits(attrs["num_bits"], signed=attrs["signed_input"])
    if attrs["range_given"] and not attrs["input_min"] <= attrs["input_max"]:
        raise InvalidArgument(f"Invalid range: input_min {attrs['input_min']} > input_max {attrs['input_max']}")
    return ValueInfo(x.meta)


@rule("QuantizeAndDequantizeV4Grad")
def quantize_gradient(
    attrs: Attrs, gradients: ValueInfo, x: ValueInfo, low: ValueInfo, high: ValueInfo
) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    same_shape((gradients.shape, x.shape), "gradients and input must have the same shape")
    _in_range(attrs, x, low, high)
    limit = () if attrs["axis"] == -1 else (None if x.shape is None else x.shape[attrs["axis"]],)
    return info(x.dtype, x.shape), info(x.dtype, limit), info(x.dtype, limit)


def _check_bits(bits: int, *, signed: bool) -> None:
    if not 0 < bits < 63 - signed:
        raise InvalidArgument(f"num_bits is out of range: {bits} with signed_input {signed}")


def _in_range(attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> ValueInfo:
    """The limits are one range for all elements, or one range for each index along an axis."""
    axis: int = attrs["axis"]
    if axis < -1:
        raise InvalidArgument(f"axis should be at least -1, got {axis}")
    if axis >= 0 and x.rank is not None and axis >= x.rank:
        raise InvalidArgument(f"axis {axis} is not in [0, {x.rank})")
    for limit, name in ((low, "input_min"), (high, "input_max")):
        if axis == -1:
            dims_of_rank(limit, 0, name)
        else:
            length = None if x.shape is None else x.shape[axis]
            same_dim(dims_of_rank(limit, 1, name)[0], length, f"the length of {name} and dimension {axis} of input")
    return ValueInfo(x.meta)


@rule("FakeQuantWithMinMaxArgs")
def fake_quant_args(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    _check_fake_bits(attrs)
    if not attrs["min"] < attrs["max"]:
        raise InvalidArgument(f"min has to be smaller than max, was: {attrs['min']} >= {attrs['max']}")
    return ValueInfo(x.meta)


@rule("FakeQuantWithMinMaxVars")
def fake_quant_vars(attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> ValueInfo:
    _check_fake_bits(attrs)
    dims_of_rank(low, 0, "min")
    dims_of_rank(high, 0, "max")
    return ValueInfo(x.meta)


@rule("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_channels(attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> ValueInfo:
    _check_fake_bits(attrs)
    if x.rank == 0:
        raise InvalidArgument("inputs must be at least a vector")
    channels: Dims = (None,) if x.shape is None else x.shape[-1:]
    same_shape((channels, dims_of_rank(low, 1, "min"), dims_of_rank(high, 1, "max")),
               "min and max need one element a channel")
    return ValueInfo(x.meta)


def _check_fake_bits(attrs: Attrs) -> None:
    if not 2 <= attrs["num_bits"] <= 16:
        raise InvalidArgument(f"num_bits must be between 2 and 16, inclusive, given {attrs['num_bits']}")
