"""Fingerprints: FarmHash's Fingerprint64, https://github.com/google/farmhash (farmhashna), of many rows at once.

Rows of equal length are columns of bytes here: each step of the hash is one operation on unsigned 64-bit integers,
which wrap around, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from weft.api import Bind, Kernels, dtypes

Array = np.ndarray[Any, Any]
K0, K1, K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
SEED = np.uint64(81)


def fingerprint(b: Bind) -> Callable[..., None]:
    """Eight bytes of hash for each row; rows of texts are hashed by the hashes of their texts."""
    shape = b.inputs[0].meta.dims
    rows, width = shape[0], prod(shape[1:])
    hashed = _texts if b.attrs["T"] is dtypes.string else _numbers

    def run(data: Any, _method: Any, out: Any) -> None:
        if rows:
            out[...] = _bytes(hashed(data.reshape(rows, width), len(shape) == 1))

    return run


def _numbers(matrix: Array, _is_vector: bool) -> Array:
    rows, width = matrix.shape
    return fingerprint64(np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, width * matrix.itemsize))


def _texts(matrix: Array, is_vector: bool) -> Array:
    """Texts of equal length are hashed together."""
    texts = matrix.reshape(-1)
    lengths = np.array([len(text) for text in texts], np.int64)
    found = np.zeros(texts.size, np.uint64)
    for length in np.unique(lengths):
        of_length = np.flatnonzero(lengths == length)
        joined = np.frombuffer(b"".join(texts[of_length]), np.uint8)
        found[of_length] = fingerprint64(joined.reshape(of_length.size, length))
    return found if is_vector else fingerprint64(_bytes(found).reshape(len(matrix), -1))


def _bytes(hashes: Array) -> Array:
    return hashes.astype("<u8")[:, None].view(np.uint8)


def fingerprint64(rows: Array) -> Array:
    """The hash of each row of bytes: uint8, shape (n, length), to uint64, shape (n,)."""
    length = rows.shape[1]
    if length <= 16:
        return _up_to_16(rows, length)
    if length <= 32:
        return _up_to_32(rows, length)
    return _up_to_64(rows, length) if length <= 64 else _longer(rows, length)


def _word(rows: Array, at: int, size: int = 8) -> Array:
    words: Array = np.ascontiguousarray(rows[:, at : at + size]).view(f"<u{size}")[:, 0]
    return words.astype(np.uint64)


def _rotated(x: Array, bits: int) -> Array:
    return (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))


def _shift_mix(x: Array) -> Array:
    mixed: Array = x ^ (x >> np.uint64(47))
    return mixed


def _mixed(u: Array, v: Array, factor: np.uint64 | Array) -> Array:
    """16 bytes to 8: HashLen16."""
    return _shift_mix((v ^ _shift_mix((u ^ v) * factor)) * factor) * factor


def _factor(length: int) -> np.uint64:
    return K2 + np.uint64(2 * length)


def _up_to_16(rows: Array, length: int) -> Array:
    if length >= 8:
        factor = _factor(length)
        a, b = _word(rows, 0) + K2, _word(rows, length - 8)
        return _mixed(_rotated(b, 37) * factor + a, (_rotated(a, 25) + b) * factor, factor)
    if length >= 4:
        first = _word(rows, 0, 4)
        return _mixed(np.uint64(length) + (first << np.uint64(3)), _word(rows, length - 4, 4), _factor(length))
    if length:
        a, b, c = (_word(rows, at, 1) for at in (0, length >> 1, length - 1))
        y, z = a + (b << np.uint64(8)), np.uint64(length) + (c << np.uint64(2))
        return _shift_mix(y * K2 ^ z * K0) * K2
    return np.full(len(rows), K2)


def _up_to_32(rows: Array, length: int) -> Array:
    factor = _factor(length)
    a, b = _word(rows, 0) * K1, _word(rows, 8)
    c, d = _word(rows, length - 8) * factor, _word(rows, length - 16) * K2
    return _mixed(_rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + K2, 18) + c, factor)


def _up_to_64(rows: Array, length: int) -> Array:
    factor = _factor(length)
    a, b = _word(rows, 0) * K2, _word(rows, 8)
    c, d = _word(rows, length - 8) * factor, _word(rows, length - 16) * K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _mixed(y, a + _rotated(b + K2, 18) + c, factor)
    e, f = _word(rows, 16) * factor, _word(rows, 24)
    g, h = (y + _word(rows, length - 32)) * factor, (z + _word(rows, length - 24)) * factor
    return _mixed(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, factor)


def _longer(rows: Array, length: int) -> Array:
    """56 bytes of state, updated by 64 bytes at a time; the last 64 may overlap those before."""
    zero = np.zeros(len(rows), np.uint64)
    x, y = zero + SEED, zero + (SEED * K1 + np.uint64(113))
    z = _shift_mix(y * K2 + np.uint64(113)) * K2
    v, w = (zero, zero), (zero, zero)
    x = x * K2 + _word(rows, 0)
    blocks = (length - 1) // 64
    for at in range(0, 64 * blocks, 64):
        x = _rotated(x + y + v[0] + _word(rows, at + 8), 37) * K1
        y = _rotated(y + v[1] + _word(rows, at + 48), 42) * K1
        x, y, z = x ^ w[1], y + v[0] + _word(rows, at + 40), _rotated(z + w[0], 33) * K1
        v = _weak(rows, at, v[1] * K1, x + w[0])
        w = _weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
        z, x = x, z
    factor = K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    last = length - 64
    w = (w[0] + np.uint64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotated(x + y + v[0] + _word(rows, last + 8), 37) * factor
    y = _rotated(y + v[1] + _word(rows, last + 48), 42) * factor
    x = x ^ (w[1] * np.uint64(9))
    y = y + v[0] * np.uint64(9) + _word(rows, last + 40)
    z = _rotated(z + w[0], 33) * factor
    v = _weak(rows, last, v[1] * factor, x + w[0])
    w = _weak(rows, last + 32, z + w[1], y + _word(rows, last + 16))
    z, x = x, z
    return _mixed(_mixed(v[0], w[0], factor) + _shift_mix(y) * K0 + z,
                       _mixed(v[1], w[1], factor) + x, factor)


def _weak(rows: Array, at: int, a: Array, b: Array) -> tuple[Array, Array]:
    """32 bytes and two seeds to two numbers: WeakHashLen32WithSeeds."""
    first, second, third, fourth = (_word(rows, at + i) for i in (0, 8, 16, 24))
    a = a + first
    b = _rotated(b + a + fourth, 21)
    c = a
    a = a + second + third
    return a + fourth, b + _rotated(a, 44) + c


def register(kernels: Kernels) -> None:
    kernels.kernel("Fingerprint")(fingerprint)
