"""Hash functions of byte strings, many at once. Strings whose hash takes the same steps stand in one matrix of words: a
call on a few short strings is one walk through the steps, whatever their lengths are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Words = Any  # uint64, one a string

U = np.uint64
WORD_BYTES = 8
BITS = [U(n) for n in range(65)]  # shifts, as NumPy takes its own numbers faster than Python's


class ByteStrings:
    """Strings as little-endian words: `front` begins with the first byte and ends with zeros, at least one word or the
    rest of one; `back` ends with the last byte and begins with zeros. `lengths` is in bytes."""

    def __init__(self, strings: Sequence[bytes], lengths: Array) -> None:
        self._strings, self.lengths = strings, lengths.astype(U)
        self.longest = int(lengths.max(initial=0))
        self._width = (self.longest // WORD_BYTES + 1) * WORD_BYTES
        self.front = self._words([string.ljust(self._width, b"\0") for string in strings])

    @cached_property
    def back(self) -> Array:
        return self._words([string.rjust(self._width, b"\0") for string in self._strings])

    def _words(self, padded: list[bytes]) -> Array:
        return np.frombuffer(b"".join(padded), "<u8").reshape(len(padded), -1).T.astype(U)


@dataclass(frozen=True)
class Hash:
    """`function` hashes strings of one kind at once; `kinds` numbers the kinds of strings by their lengths."""

    kinds: Callable[[Array], Array]
    function: Callable[[ByteStrings], Array]

    def hash_strings(self, strings: Array) -> Array:
        """The hash of each string of a flat array of bytes."""
        lengths = np.fromiter(map(len, strings), np.int64, len(strings))
        kinds = self.kinds(lengths)
        if not (kinds != kinds[:1]).any():
            return self.function(ByteStrings(strings.tolist(), lengths)) if len(strings) else np.empty(0, U)
        hash_values = np.empty(len(strings), U)
        for kind in np.unique(kinds):
            alike = kinds == kind
            hash_values[alike] = self.function(ByteStrings(strings[alike].tolist(), lengths[alike]))
        return hash_values

    def hash_rows(self, rows: Array) -> Array:
        """The hash of each row of a matrix of bytes."""
        count, width = rows.shape
        content = rows.tobytes()
        strings = [content[i * width : (i + 1) * width] for i in range(count)]
        return self.function(ByteStrings(strings, np.full(count, width))) if count else np.empty(0, U)


def _right(x: Words, bits: int) -> Words:
    return x >> BITS[bits] | x << BITS[64 - bits]


def _mix(x: Words, bits: int = 47) -> Words:
    return x ^ x >> BITS[bits]


# FarmHash's farmhashna::Hash64, which is Fingerprint64 (github.com/google/farmhash, farmhash.cc)

K0, K1, K2 = U(0xC3A5C85C97CB3127), U(0xB492B66FBE98F273), U(0x9AE16A3B2F90404F)
LOW_BYTE, LOW_HALF = U(0xFF), U(0xFFFFFFFF)


def _farm16(u: Words, v: Words, mul: Words) -> Words:
    a = _mix((u ^ v) * mul)
    return _mix((v ^ a) * mul) * mul


def _farm_multiplier(x: ByteStrings) -> Words:
    return K2 + (x.lengths << BITS[1])


def _farm_0(x: ByteStrings) -> Words:
    return np.full(len(x.lengths), K2)


def _farm_1_to_3(x: ByteStrings) -> Words:
    first, middle = (x.front[0] >> place & LOW_BYTE for place in (BITS[0], x.lengths >> BITS[1] << BITS[3]))
    last = x.back[-1] >> BITS[56]
    return _mix((first + (middle << BITS[8])) * K2 ^ (x.lengths + (last << BITS[2])) * K0) * K2


def _farm_4_to_7(x: ByteStrings) -> Words:
    first, last = x.front[0] & LOW_HALF, x.back[-1] >> BITS[32]
    return _farm16(x.lengths + (first << BITS[3]), last, _farm_multiplier(x))


def _farm_8_to_16(x: ByteStrings) -> Words:
    mul, a, b = _farm_multiplier(x), x.front[0] + K2, x.back[-1]
    return _farm16(_right(b, 37) * mul + a, (_right(a, 25) + b) * mul, mul)


def _farm_ends(x: ByteStrings, k: Any) -> tuple[Words, Words, Words]:
    mul, a, b = _farm_multiplier(x), x.front[0] * k, x.front[1]
    c, d = x.back[-1] * mul, x.back[-2] * K2
    return a, _right(a + b, 43) + _right(c, 30) + d, a + _right(b + K2, 18) + c


def _farm_17_to_32(x: ByteStrings) -> Words:
    _, u, v = _farm_ends(x, K1)
    return _farm16(u, v, _farm_multiplier(x))


def _farm_33_to_64(x: ByteStrings) -> Words:
    mul = _farm_multiplier(x)
    a, y, v = _farm_ends(x, K2)
    z = _farm16(y, v, mul)
    e, f = x.front[2] * mul, x.front[3]
    g, h = (y + x.back[-4]) * mul, (z + x.back[-3]) * mul
    return _farm16(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, mul)


def _farm_weak(words: Array, a: Words, b: Words) -> tuple[Words, Words]:
    w, x, y, z = words
    a = a + w
    b = _right(b + a + z, 21)
    c, a = a, a + x + y
    return a + z, b + _right(a, 44) + c


def _farm_long(x: ByteStrings) -> Words:
    """A state of 56 bytes, stirred by blocks of 64; the last block ends with the string and may overlap."""
    front = x.front
    s, y = U(81) * K2 + front[0], np.full(len(x.lengths), U(81)) * K1 + U(113)
    z = _mix(y * K2 + U(113)) * K2
    v = w = (np.zeros_like(s), np.zeros_like(s))
    for at in range(0, (x.longest - 1 & ~63) // WORD_BYTES, 8):
        s = _right(s + y + v[0] + front[at + 1], 37) * K1 ^ w[1]
        y = _right(y + v[1] + front[at + 6], 42) * K1 + v[0] + front[at + 5]
        z = _right(z + w[0], 33) * K1
        v = _farm_weak(front[at : at + 4], v[1] * K1, s + w[0])
        w = _farm_weak(front[at + 4 : at + 8], z + w[1], y + front[at + 2])
        z, s = s, z
    last, mul, nine = x.back[-8:], K1 + ((z & LOW_BYTE) << BITS[1]), U(9)
    w0 = w[0] + (x.lengths - BITS[1] & U(63))
    v0 = v[0] + w0
    w0 = w0 + v0
    s = _right(s + y + v0 + last[1], 37) * mul ^ w[1] * nine
    y = _right(y + v[1] + last[6], 42) * mul + v0 * nine + last[5]
    z = _right(z + w0, 33) * mul
    v = _farm_weak(last[:4], v[1] * mul, s + w0)
    w = _farm_weak(last[4:], z + w[1], y + last[2])
    return _farm16(_farm16(v[0], w[0], mul) + _mix(y) * K0 + s, _farm16(v[1], w[1], mul) + z, mul)


FARM_LONGEST = (0, 3, 7, 16, 32, 64)  # bytes of the strings that each of these functions takes
FARM_FUNCTIONS = (_farm_0, _farm_1_to_3, _farm_4_to_7, _farm_8_to_16, _farm_17_to_32, _farm_33_to_64)


def _farm_kinds(lengths: Array) -> Array:
    """The place of the function, and behind all places the number of whole blocks before the last byte."""
    return np.where(lengths > FARM_LONGEST[-1], len(FARM_LONGEST) + (lengths - 1 >> 6),
                    np.searchsorted(FARM_LONGEST, lengths))


def _farm(x: ByteStrings) -> Words:
    function = next((f for most, f in zip(FARM_LONGEST, FARM_FUNCTIONS, strict=True) if x.longest <= most), _farm_long)
    return function(x)


farmhash64 = Hash(_farm_kinds, _farm)


def _whole_words(lengths: Array) -> Array:
    return lengths >> 3


# MurmurHash64A (Austin Appleby), with the seed of TensorFlow's Hash64

SEED, M = U(0xDECAFCAFFE), U(0xC6A4A7935BD1E995)


def _murmur(x: ByteStrings) -> Words:
    h = SEED ^ x.lengths * M
    count = x.longest // WORD_BYTES
    for word in x.front[:count]:
        h = (h ^ _mix(word * M) * M) * M
    h = np.where(x.lengths & BITS[7], (h ^ x.front[count]) * M, h)
    return _mix(_mix(h) * M)


murmur64a = Hash(_whole_words, _murmur)


# SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012)

SIP_START = tuple(int.from_bytes(b"somepseudorandomlygeneratedbytes"[i : i + 8], "big") for i in (0, 8, 16, 24))
SIP_TURNS = ((13, 16), (51, 48), (17, 21), (47, 43))  # bits of b and d, left and right, in both halves of a round


def siphash(k0: int, k1: int) -> Hash:
    a, b, c, d = (U((word ^ key) & 2**64 - 1) for word, key in zip(SIP_START, (k0, k1, k0, k1), strict=True))

    def function(x: ByteStrings) -> Words:
        state = _SipState(np.array([[a], [c]]), np.array([[b], [d]]), len(x.lengths))
        count = x.longest // WORD_BYTES
        for word in x.front[:count]:
            state.absorb(word)
        state.absorb((x.lengths & LOW_BYTE) << BITS[56] | x.front[count])
        return state.digest()

    return Hash(_whole_words, function)


class _SipState:
    """The four words of the state, as two pairs: a round does the same to both words of a pair."""

    def __init__(self, ac: Array, bd: Array, count: int) -> None:
        self._ac, self._bd = ac.repeat(count, 1), bd.repeat(count, 1)
        self._turns = [np.array(bits, U).repeat(count).reshape(2, count) for bits in SIP_TURNS]

    def absorb(self, word: Words) -> None:
        self._bd[1] ^= word
        self._stir(2)
        self._ac[0] ^= word

    def digest(self) -> Words:
        self._ac[1] ^= LOW_BYTE
        self._stir(4)
        (a, c), (b, d) = self._ac, self._bd
        return a ^ b ^ c ^ d

    def _stir(self, rounds: int) -> None:
        ac, bd = self._ac, self._bd
        left, left_rest, right, right_rest = self._turns
        for _ in range(rounds):
            ac += bd
            bd = (bd << left | bd >> left_rest) ^ ac
            ac[0] = _right(ac[0], 32)
            ac += bd[::-1]
            bd = (bd << right | bd >> right_rest) ^ ac[::-1]
            ac[1] = _right(ac[1], 32)
        self._bd = bd
