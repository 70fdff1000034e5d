"""Quantised numbers: the integers that stand for floats in a range, and TensorFlow's rounding between them.

A quantised tensor comes with the floats of its lowest and highest integer. Its array has one field of integers, named
after the type. TensorFlow has two ways between integers and floats. One is for tensors and in float32, with a step that
is rounded and a low end that is a multiple of the step; the other is for single numbers and in float64. A float without
an integer, such as NaN, becomes the lowest integer of its C type, as x86 converts it. Limits of no range give numbers
by these rules, and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from heald.api import DType

from .element_types import Array

F32 = np.float32
LARGEST_INT32_FLOAT = F32(2147483520)  # the largest float32 that is an int32
LOWEST_INT64 = np.int64(-(2**63))


def integers_of(x: Array) -> Array:
    """A view of the integers."""
    return x.view(x.dtype[0])


def single(limit: Array) -> Any:
    """The float32 of a limit that a tensor of one element holds."""
    return F32(limit.reshape(-1)[0])


def round_half_away(x: Any) -> Any:
    """`x` rounded to integers, halves away from zero, in its own type. The sum is exact in float64."""
    wide = np.asarray(x, np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.asarray(x).dtype)


def through_float32(integers: Any) -> Any:
    """Integers as float64s, rounded to 24 bits: the types of TensorFlow convert to wider ones as float32s."""
    return np.asarray(integers, F32).astype(np.float64)


def to_int32(rounded: Any) -> Any:
    """Rounded floats as C converts them on x86: a float beyond int32 becomes its lowest integer."""
    fits = (rounded >= -(2.0**31)) & (rounded < 2.0**31)
    return np.where(fits, rounded, -(2.0**31)).astype(np.int32)


def to_int64(floats: Any) -> Any:
    """The whole parts of float64s as C converts them on x86: a float beyond int64 becomes its lowest integer."""
    fits = np.abs(floats) < 2.0**63
    return np.where(fits, np.where(fits, floats, 0).astype(np.int64), LOWEST_INT64)


def store(rounded: Any, out: Array) -> None:
    """Put rounded floats into `out` as C does: as int32, then the upper bits are cut."""
    np.copyto(integers_of(out), to_int32(rounded), casting="unsafe")


@dataclass(frozen=True)
class Levels:
    """The integers of a quantised type."""

    lowest: int
    highest: int

    @classmethod
    def of(cls, dtype: DType) -> Levels:
        limits = np.iinfo(dtype.numpy[0])
        return cls(int(limits.min), int(limits.max))

    @property
    def span(self) -> int:
        return self.highest - self.lowest

    @property
    def half(self) -> float:
        """The distance of the lowest integer from 0 in a signed type."""
        return (self.span + 1) / 2 if self.lowest else 0.0

    def to_floats(self, integers: Array, low: Any, high: Any) -> Array:
        """The float32s for the integers of a tensor."""
        step = F32(float(high - low) / self.span)
        start = low if low == high else round_half_away(low / step) * step
        floats: Array = (start - F32(self.lowest) * step) + integers.astype(F32) * step
        return floats

    def to_integers(self, floats: Array, low: Any, high: Any) -> Array:
        """The integers for the float32s of a tensor, as float32."""
        scale = F32(0) if low == high else F32(np.float64(self.span) / np.float64(high - low))
        shift = round_half_away(low * scale) - F32(self.lowest)
        rounded = round_half_away(floats * scale) - shift
        upper = min(F32(self.highest), LARGEST_INT32_FLOAT)
        integers: Array = np.minimum(np.maximum(rounded, F32(self.lowest)), upper)
        return integers

    def to_float(self, integers: Any, low: Any, high: Any) -> Any:
        """The float32 for single integers: an int, or an array of them."""
        if low == high:
            return low
        step = self._width(low, high) / (self.span + 1)
        start = round_half_away(low / F32(step)) * F32(step)
        steps = through_float32(integers) - np.float64(self.lowest)
        return F32(np.float64(start) + steps * step)

    def to_integer(self, numbers: Any, low: Any, high: Any, *, clamped: bool = True) -> Any:
        """The int64 for single floats: a float, or an array of them; without `clamped` perhaps outside the type."""
        if low == high:
            return np.full(np.shape(numbers), self.lowest)
        scale = (self.span + 1) / self._width(low, high)
        places = round_half_away(np.asarray(numbers, np.float64) * scale) - round_half_away(np.float64(low) * scale)
        steps = to_int64(places)
        return np.add(steps.clip(0, self.span) if clamped else steps, np.int64(self.lowest))

    def _width(self, low: Any, high: Any) -> Any:
        """The float64 of the range and one step. TensorFlow rounds it in this order, which halves depend on."""
        return np.float64(high - low) * ((self.span + 1) / self.span)

    def step(self, low: Any, high: Any) -> Any:
        """The float32 of one integer more."""
        return F32((high - low) / F32(self.span))


INT32 = Levels(-(2**31), 2**31 - 1)


def product_range(a_step: Any, b_step: Any) -> tuple[Any, Any]:
    """The limits of qint32 products of numbers with these steps."""
    step = a_step * b_step
    return step * F32(INT32.lowest), step * F32(INT32.highest)


def sum_range(limits: Sequence[Any], spare_bits: int) -> tuple[Any, Any]:
    """The limits of qint32 sums of numbers in these limits, with room for a multiple. The order decides about NaN."""
    low, high, other_low, other_high = limits
    largest = max(high, max(-low, max(other_high, -other_low))) * F32(1 << spare_bits)  # noqa: PLW3301
    return -largest, largest


def to_bytes(words: Array, low: Any, high: Any, new_low: Any, new_high: Any) -> Array:
    """The quint8s for qint32s of another range, by TensorFlow's arithmetic in fixed point of 16 bits."""
    width, new_width = high - low, new_high - new_low
    if new_width == 0:
        return np.zeros(words.shape, np.int64)
    one = 1 << 16
    scale = to_int64(255.0 * one * np.float64(width) / np.float64(new_width))
    middle = F32(np.float64(low + high) / 2)
    offset = to_int64(np.float64(middle * F32(255.0 / np.float64(new_width)) * F32(one)))
    new_offset = to_int64(round_half_away(one * (np.float64(new_low) * 255.0) / np.float64(new_width)))
    with np.errstate(over="ignore"):
        places = (through_float32(words).astype(np.int64) * scale >> 32) + offset - new_offset
    rounded: Array = (places + (one >> 1)) >> 16
    return rounded.clip(0, 255)

