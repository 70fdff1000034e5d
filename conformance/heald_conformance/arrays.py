"""Host arrays for the cases, the same in every run."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from heald.api import DType, dtypes, errors

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
NARROW = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")  # one byte an element, of which only some bits count

WORDS = (b"", b"a", b"1.5", b"Two words", b" spaced ", "Straße".encode())


def generator(*seed: object) -> Rng:
    """A random generator whose numbers depend on the seed's words only."""
    return np.random.default_rng(crc32(" ".join(map(str, seed)).encode()))


def fixed_size_types() -> list[DType]:
    """The element types of a fixed size that have host arrays."""
    return [d for d in dtypes.ALL if d.itemsize and _has_arrays(d)]


def any_bits(dtype: DType, shape: tuple[int, ...], rng: Rng) -> Array:
    """Elements of all bit patterns of the type, NaNs of every kind included."""
    if dtype.kind == "b" or dtype.name in NARROW:
        return rng.integers(0, 2, shape).astype(dtype.numpy)
    count = int(np.prod(shape))
    return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype.numpy).reshape(shape)


def numbers(dtype: DType, shape: tuple[int, ...], rng: Rng) -> Array:
    """Operands of arithmetic: small numbers; integers are never zero, and strings are words. Quantised numbers are any
    of their type."""
    if dtype.name == "string":
        return np.asarray(rng.choice(np.array(WORDS, object), shape), object)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "q":
        limits = np.iinfo(dtype.numpy[0])
        return rng.integers(limits.min, limits.max, shape, dtype.numpy[0], endpoint=True).view(dtype.numpy)
    if dtype.kind in "iu":
        low = -6 if dtype.kind == "i" else 1
        drawn = rng.integers(low, 7, shape)
        return np.where(drawn == 0, 3, drawn).astype(dtype.numpy)
    real = np.asarray(rng.normal(0, 1.5, shape))
    if dtype.kind == "c":
        return np.asarray(real + 1j * rng.normal(0, 1.5, shape)).astype(dtype.numpy)
    return real.astype(dtype.numpy)


def special(dtype: DType) -> Array:
    """The edge cases of float arithmetic: NaN, infinities, both zeros, ones, the largest numbers, and 0.5."""
    largest = 3.0e38 if dtype.itemsize >= 4 or dtype.name == "bfloat16" else 6.0e4
    return np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, largest, -largest, 0.5], dtype.numpy)


def _has_arrays(dtype: DType) -> bool:
    try:
        return dtype.numpy is not None
    except errors.Unimplemented:
        return False
