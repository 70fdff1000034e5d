"""Hash functions of byte strings, many of one length at once: each row of a uint8 matrix is hashed to a uint64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Words = Any  # uint64, one a row
Hash = Callable[[Any], Words]

U = np.uint64


def _word(rows: Any, at: int, size: int = 8) -> Words:
    """The little-endian number of `size` bytes at `at`; a negative offset counts from the end."""
    at += rows.shape[1] if at < 0 else 0
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :size] = rows[:, at : at + size]
    return wide.view("<u8")[:, 0].astype(U)


def _right(x: Words, bits: int) -> Words:
    return x >> U(bits) | x << U(64 - bits)


def _mix(x: Words, bits: int = 47) -> Words:
    return x ^ x >> U(bits)


# FarmHash's farmhashna::Hash64, which is Fingerprint64 (github.com/google/farmhash, farmhash.cc)

K0, K1, K2 = U(0xC3A5C85C97CB3127), U(0xB492B66FBE98F273), U(0x9AE16A3B2F90404F)


def farmhash64(rows: Any) -> Words:
    length = rows.shape[1]
    if length > 64:
        return _farm_long(rows)
    return next(function for longest, function in FARM_BY_LENGTH if length <= longest)(rows)


def _farm16(u: Words, v: Words, mul: Words) -> Words:
    a = _mix((u ^ v) * mul)
    return _mix((v ^ a) * mul) * mul


def _farm_multiplier(rows: Any) -> Words:
    return K2 + U(rows.shape[1] * 2)


def _farm_0(rows: Any) -> Words:
    return np.full(len(rows), K2)


def _farm_1_to_3(rows: Any) -> Words:
    n = rows.shape[1]
    first, middle, last = (rows[:, i].astype(U) for i in (0, n >> 1, n - 1))
    return _mix((first + (middle << U(8))) * K2 ^ (U(n) + (last << U(2))) * K0) * K2


def _farm_4_to_7(rows: Any) -> Words:
    return _farm16(U(rows.shape[1]) + (_word(rows, 0, 4) << U(3)), _word(rows, -4, 4), _farm_multiplier(rows))


def _farm_8_to_16(rows: Any) -> Words:
    mul, a, b = _farm_multiplier(rows), _word(rows, 0) + K2, _word(rows, -8)
    return _farm16(_right(b, 37) * mul + a, (_right(a, 25) + b) * mul, mul)


def _farm_ends(rows: Any, k: Any) -> tuple[Words, Words, Words]:
    mul, a, b = _farm_multiplier(rows), _word(rows, 0) * k, _word(rows, 8)
    c, d = _word(rows, -8) * mul, _word(rows, -16) * K2
    return a, _right(a + b, 43) + _right(c, 30) + d, a + _right(b + K2, 18) + c


def _farm_17_to_32(rows: Any) -> Words:
    _, u, v = _farm_ends(rows, K1)
    return _farm16(u, v, _farm_multiplier(rows))


def _farm_33_to_64(rows: Any) -> Words:
    mul = _farm_multiplier(rows)
    a, y, v = _farm_ends(rows, K2)
    z = _farm16(y, v, mul)
    e, f = _word(rows, 16) * mul, _word(rows, 24)
    g, h = (y + _word(rows, -32)) * mul, (z + _word(rows, -24)) * mul
    return _farm16(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, mul)


FARM_BY_LENGTH: tuple[tuple[int, Hash], ...] = (
    (0, _farm_0), (3, _farm_1_to_3), (7, _farm_4_to_7), (16, _farm_8_to_16), (32, _farm_17_to_32), (64, _farm_33_to_64),
)


def _farm_weak(rows: Any, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    w, x, y, z = (_word(rows, at + i) for i in (0, 8, 16, 24))
    a = a + w
    b = _right(b + a + z, 21)
    c, a = a, a + x + y
    return a + z, b + _right(a, 44) + c


def _farm_long(rows: Any) -> Words:
    """A state of 56 bytes, stirred by blocks of 64; the last block ends with the string and may overlap."""
    n = rows.shape[1]
    x, y = U(81) * K2 + _word(rows, 0), np.full(len(rows), U(81)) * K1 + U(113)
    z = _mix(y * K2 + U(113)) * K2
    v = w = (np.zeros_like(x), np.zeros_like(x))
    for at in range(0, n - 1 & ~63, 64):
        x = _right(x + y + v[0] + _word(rows, at + 8), 37) * K1 ^ w[1]
        y = _right(y + v[1] + _word(rows, at + 48), 42) * K1 + v[0] + _word(rows, at + 40)
        z = _right(z + w[0], 33) * K1
        v = _farm_weak(rows, at, v[1] * K1, x + w[0])
        w = _farm_weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
        z, x = x, z
    mul, at = K1 + ((z & U(0xFF)) << U(1)), n - 64
    w0 = w[0] + U(n - 1 & 63)
    v0 = v[0] + w0
    w0 = w0 + v0
    x = _right(x + y + v0 + _word(rows, at + 8), 37) * mul ^ w[1] * U(9)
    y = _right(y + v[1] + _word(rows, at + 48), 42) * mul + v0 * U(9) + _word(rows, at + 40)
    z = _right(z + w0, 33) * mul
    v = _farm_weak(rows, at, v[1] * mul, x + w0)
    w = _farm_weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
    return _farm16(_farm16(v[0], w[0], mul) + _mix(y) * K0 + x, _farm16(v[1], w[1], mul) + z, mul)


# MurmurHash64A (Austin Appleby), with the seed of TensorFlow's Hash64

SEED, M = 0xDECAFCAFFE, 0xC6A4A7935BD1E995


def murmur64a(rows: Any) -> Words:
    n = rows.shape[1]
    h = np.full(len(rows), SEED ^ n * M & 2**64 - 1, U)
    for at in range(0, n - 7, 8):
        h = (h ^ _mix(_word(rows, at) * U(M)) * U(M)) * U(M)
    if n % 8:
        h = (h ^ _word(rows, n - n % 8, n % 8)) * U(M)
    return _mix(_mix(h) * U(M))


# SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012)

SIP_START = tuple(int.from_bytes(b"somepseudorandomlygeneratedbytes"[i : i + 8], "big") for i in (0, 8, 16, 24))


def siphash(k0: int, k1: int) -> Hash:
    start = [U((word ^ key) & 2**64 - 1) for word, key in zip(SIP_START, (k0, k1, k0, k1), strict=True)]

    def function(rows: Any) -> Words:
        n = rows.shape[1]
        whole_words = n - n % 8
        state = [np.full(len(rows), word) for word in start]
        for at in range(0, whole_words, 8):
            state = _sip_absorbed(state, _word(rows, at))
        state = _sip_absorbed(state, U((n & 0xFF) << 56) | _word(rows, whole_words, n - whole_words))
        state[2] = state[2] ^ U(0xFF)
        a, b, c, d = _sip_rounds(state, 4)
        return a ^ b ^ c ^ d

    return function


def _sip_absorbed(state: list[Words], word: Words) -> list[Words]:
    state[3] = state[3] ^ word
    state = _sip_rounds(state, 2)
    state[0] = state[0] ^ word
    return state


def _sip_rounds(state: list[Words], count: int) -> list[Words]:
    a, b, c, d = state
    for _ in range(count):
        a, c = a + b, c + d
        b, d = _right(b, 51) ^ a, _right(d, 48) ^ c
        a, c = _right(a, 32) + d, c + b
        d, b = _right(d, 43) ^ a, _right(b, 47) ^ c
        c = _right(c, 32)
    return [a, b, c, d]
