"""Numbers written as text, as StringToNumber and DecodeCSV read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import inf, isfinite, nan, nextafter
from typing import Any

import numpy as np
from heald.api import DType, dtypes

Array = np.ndarray[Any, Any]
Parse = Callable[[bytes], int | float]  # raises ValueError for a text that is no number of the type

HEXADECIMAL = re.compile(rb"\s*[+-]?0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?\s*")
NAN_OF_KIND = re.compile(rb"\s*[+-]?nan\(\w*\)\s*", re.IGNORECASE)
BEHIND_HALF = (1 << 28) - 1  # the bits of a float64 that are zero half way between two float32
LACKING = (1 << 29) - 1  # those that a float32 lacks
LEAST_NORMAL = float(np.finfo(np.float32).tiny)


def parse_all(texts: Sequence[bytes], dtype: DType) -> Array:
    """The numbers of all texts, as the type has them. Raises ValueError for a text that is no number of the type."""
    numbers = np.array(_numbers(texts, dtype), dtype.numpy if dtype.kind in "iu" else np.float64)
    if dtype is dtypes.float32:
        bits = numbers.view(np.int64)
        unsure = (bits & LACKING) == BEHIND_HALF + 1
        unsure |= (np.abs(numbers) < LEAST_NORMAL) & (bits & BEHIND_HALF == 0)
        for place in unsure.nonzero()[0]:
            numbers[place] = float32(texts[place])
    return numbers.astype(dtype.numpy, copy=False)


def _numbers(texts: Sequence[bytes], dtype: DType) -> list[Any]:
    """Python's own numbers where all texts are Python's, which allows underscores between digits."""
    joined = b"".join(texts)
    if b"_" not in joined and not (dtype.kind == "u" and b"-" in joined):
        try:
            numbers = [*map(int if dtype.kind in "iu" else float, texts)]
        except ValueError:
            pass
        else:
            if dtype.kind == "f" or not numbers or _fits(min(numbers), max(numbers), dtype):
                return numbers
    return [*map(parser(dtype), texts)]


def _fits(least: float, largest: float, dtype: DType) -> bool:
    limits = np.iinfo(dtype.numpy)
    return bool(limits.min <= least and largest <= limits.max)


def parser(dtype: DType) -> Parse:
    if dtype.kind in "iu":
        return _integer(dtype)
    return float32 if dtype is dtypes.float32 else float64


def _integer(dtype: DType) -> Parse:
    limits, minus = np.iinfo(dtype.numpy), b"" if dtype.kind == "i" else b"-"

    def parse(text: bytes) -> int:
        number = int(text)
        if not limits.min <= number <= limits.max or b"_" in text or (minus and minus in text):
            raise ValueError(text)
        return number

    return parse


def float64(text: bytes) -> float:
    """Parses Python's floats, and C's hexadecimal floats and nan(...). Raises ValueError."""
    try:
        if b"_" not in text:  # which Python allows between digits
            return float(text)
        raise ValueError(text)
    except ValueError:
        if NAN_OF_KIND.fullmatch(text):
            return nan
        if not HEXADECIMAL.fullmatch(text):
            raise
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -inf if b"-" in text.partition(b"x")[0] else inf


def float32(text: bytes) -> float:
    """A float64 that rounds to the float32 nearest to the text's number. The nearest float64 may lie half way between
    two float32 although the number does not. In this case the next float64 in the number's direction is returned."""
    number = float64(text)
    if isfinite(number) and number and not int(np.float64(number).view(np.int64)) & BEHIND_HALF:
        exact = number if HEXADECIMAL.fullmatch(text) else Decimal(text.decode())
        if exact != number:
            return nextafter(number, inf if exact > number else -inf)
    return number
