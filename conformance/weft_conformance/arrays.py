"""Host arrays to try things with, the same in every run."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from weft.api import DType, dtypes, errors

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
NARROW = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")  # a byte each, of which only some bits count

WORDS = (b"", b"a", b"1.5", b"Two words", b" spaced ", "Straße".encode())


def generator(*seed: object) -> Rng:
    """Random numbers that depend on nothing but these words."""
    return np.random.default_rng(crc32(" ".join(map(str, seed)).encode()))


def fixed_size_types() -> list[DType]:
    """The element types of a fixed size that have host arrays."""
    return [d for d in dtypes.ALL if d.itemsize and d.kind != "q" and _has_arrays(d)]


def any_bits(dtype: DType, shape: tuple[int, ...], rng: Rng) -> Array:
    """Elements of any bit pattern that the type has, NaNs of every kind included."""
    if dtype.kind == "b" or dtype.name in NARROW:
        return rng.integers(0, 2, shape).astype(dtype.numpy)
    count = int(np.prod(shape))
    return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype.numpy).reshape(shape)


def numbers(dtype: DType, shape: tuple[int, ...], rng: Rng) -> Array:
    """Numbers to compute with: small, and of integers none that is zero. Of strings, words."""
    if dtype.name == "string":
        return np.asarray(rng.choice(np.array(WORDS, object), shape), object)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        low = -6 if dtype.kind == "i" else 1
        drawn = rng.integers(low, 7, shape)
        return np.where(drawn == 0, 3, drawn).astype(dtype.numpy)
    real = np.asarray(rng.normal(0, 1.5, shape))
    if dtype.kind == "c":
        return np.asarray(real + 1j * rng.normal(0, 1.5, shape)).astype(dtype.numpy)
    return real.astype(dtype.numpy)


def special(dtype: DType) -> Array:
    """The floats that arithmetic is about: NaN, infinities, both zeros, the largest and the smallest normal one."""
    largest = 3.0e38 if dtype.itemsize >= 4 or dtype.name == "bfloat16" else 6.0e4
    return np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, largest, -largest, 0.5], dtype.numpy)


def _has_arrays(dtype: DType) -> bool:
    try:
        return dtype.numpy is not None
    except errors.Unimplemented:
        return False
