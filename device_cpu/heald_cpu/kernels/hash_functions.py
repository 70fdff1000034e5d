"""Hash functions of byte strings, many at once.

A function of hashing is written once, over one of two kinds of operands that share an interface. ByteStrings holds the
words of many strings as NumPy arrays: strings whose hash takes the same steps are one group, and a group is one walk
through the steps. ByteString holds one string as Python's integers, which are faster than arrays of a few elements.
Python's integers may exceed 64 bits between steps: only shifts to the right look at the bits above, so these cut them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Word = Any  # uint64: an array with an element for each string, or an integer

U = np.uint64
WORD_BYTES = 8
ALL_BITS = 2**64 - 1
PADDING = bytes(WORD_BYTES)  # at both ends of the content: a word may begin or end outside its string


class ByteString:
    """One string: its words are integers."""

    constant = int

    def __init__(self, string: bytes) -> None:
        self._content = PADDING + string + PADDING
        self.length = self.lengths = len(string)

    def front(self, index: int) -> int:
        """The word whose first byte is byte `8 * index` of the string. Bytes behind the string are of any value."""
        return self._word(WORD_BYTES * (index + 1))

    def back(self, index: int) -> int:
        """The word that ends `8 * index` bytes before the string's end. Bytes before the string are of any value."""
        return self._word(self.length - WORD_BYTES * index)

    def block(self, index: int) -> list[int]:
        """The eight words of a block of 64 bytes."""
        return [self.front(8 * index + i) for i in range(8)]

    def _word(self, start: int) -> int:
        return int.from_bytes(self._content[start : start + WORD_BYTES], "little")

    @staticmethod
    def right(x: int, bits: int) -> int:
        """`x`, rotated to the right."""
        x &= ALL_BITS
        return x >> bits | x << 64 - bits

    @staticmethod
    def mix(x: int, bits: int = 47) -> int:
        x &= ALL_BITS
        return x ^ x >> bits

    @staticmethod
    def cut(x: int) -> int:
        """The lower 64 bits. A loop cuts its state, which would grow."""
        return x & ALL_BITS

    @staticmethod
    def choose(condition: int, if_true: int, if_false: int) -> int:
        return if_true if condition else if_false


class ByteStrings:
    """Strings whose hash takes the same steps: their words are arrays. `length` is that of one of them."""

    constant = U

    def __init__(self, content: bytes, starts: Array, lengths: Array) -> None:
        """`content` has padding at both ends. `starts` are indices of its bytes."""
        self._words = np.ndarray((len(content) - WORD_BYTES + 1,), "<u8", content, 0, (1,))  # one at each byte
        self._starts, self._ends, self.lengths = starts, starts + lengths, lengths.astype(U)
        self.length = int(lengths[0])

    def front(self, index: int) -> Word:
        return self._words[self._starts + WORD_BYTES * index]

    def block(self, index: int) -> Word:
        return self._words[self._starts + BLOCK_STARTS + 8 * WORD_BYTES * index]

    def back(self, index: int) -> Word:
        return self._words[self._ends - WORD_BYTES * (index + 1)]

    @staticmethod
    def right(x: Array, bits: int) -> Array:
        rotated = x >> BITS[bits]
        rotated |= x << BITS[64 - bits]
        return rotated

    @staticmethod
    def mix(x: Array, bits: int = 47) -> Array:
        shifted = x >> BITS[bits]
        shifted ^= x
        return shifted

    @staticmethod
    def cut(x: Array) -> Array:
        return x

    @staticmethod
    def choose(condition: Array, if_true: Array, if_false: Array) -> Array:
        return np.where(condition, if_true, if_false)


BLOCK_STARTS = np.arange(0, 8 * WORD_BYTES, WORD_BYTES)[:, None]
BITS = [U(n) for n in range(65)]  # NumPy takes its own numbers faster than Python's
Operands = Any  # ByteString or ByteStrings


@dataclass(frozen=True)
class Hash:
    """`function` hashes strings of one kind at once; `kinds` numbers the kinds of strings by their lengths."""

    kinds: Callable[[Array], Array]
    function: Callable[[Operands], Word]
    few: int  # strings: up to so many, one by one is faster

    def hash_strings(self, strings: Array) -> Array:
        """The hash of each string of a flat array of bytes."""
        texts = strings.tolist()
        if len(texts) <= self.few:
            return self._hash_one_by_one(texts)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.cumsum(lengths)
        starts += WORD_BYTES - lengths
        return self._hash_kinds(b"".join((PADDING, *texts, PADDING)), starts, lengths)

    def _hash_one_by_one(self, texts: Iterable[bytes]) -> Array:
        return np.array([self.function(ByteString(text)) & ALL_BITS for text in texts], U)

    def _hash_kinds(self, content: bytes, starts: Array, lengths: Array) -> Array:
        kinds, hash_values = self.kinds(lengths), np.empty(len(lengths), U)
        places = np.arange(len(lengths))
        while places.size:
            is_alike = kinds[places] == kinds[places[0]]
            alike = places[is_alike]
            hash_values[alike] = self._hash_alike(content, starts[alike], lengths[alike])
            places = places[~is_alike]
        return hash_values

    def _hash_alike(self, content: bytes, starts: Array, lengths: Array) -> Array:
        if len(starts) > self.few:
            return np.asarray(self.function(ByteStrings(content, starts, lengths)))
        ends = (starts + lengths).tolist()
        return self._hash_one_by_one(content[start:end] for start, end in zip(starts.tolist(), ends, strict=True))

    def hash_rows(self, rows: Array) -> Array:
        """The hash of each row of a matrix of bytes."""
        count, width = rows.shape
        if not count:
            return np.empty(0, U)
        content = b"".join((PADDING, rows.tobytes(), PADDING))
        starts = np.arange(count) * width + WORD_BYTES
        return self._hash_kinds(content, starts, np.full(count, width))


# FarmHash's farmhashna::Hash64, which is Fingerprint64 (github.com/google/farmhash, farmhash.cc)

FARM_CONSTANTS = (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F)
K0, K1, K2 = ({kind: kind(number) for kind in (int, U)} for number in FARM_CONSTANTS)


def _farm16(x: Operands, u: Word, v: Word, mul: Word) -> Word:
    a = x.mix((u ^ v) * mul)
    return x.mix((v ^ a) * mul) * mul


def _farm_multiplier(x: Operands) -> Word:
    return K2[x.constant] + (x.lengths << x.constant(1))


def _farm_0(x: Operands) -> Word:
    return K2[x.constant] + x.lengths


def _farm_1_to_3(x: Operands) -> Word:
    n, k2 = x.constant, K2[x.constant]
    word = x.front(0)
    first, middle = word & n(0xFF), word >> (x.lengths >> n(1) << n(3)) & n(0xFF)
    last = x.back(0) >> n(56)
    return x.mix((first + (middle << n(8))) * k2 ^ (x.lengths + (last << n(2))) * K0[n]) * k2


def _farm_4_to_7(x: Operands) -> Word:
    n = x.constant
    first, last = x.front(0) & n(0xFFFFFFFF), x.back(0) >> n(32)
    return _farm16(x, x.lengths + (first << n(3)), last, _farm_multiplier(x))


def _farm_8_to_16(x: Operands) -> Word:
    mul, a, b = _farm_multiplier(x), x.front(0) + K2[x.constant], x.back(0)
    return _farm16(x, x.right(b, 37) * mul + a, (x.right(a, 25) + b) * mul, mul)


def _farm_ends(x: Operands, k: Word) -> tuple[Word, Word, Word]:
    k2 = K2[x.constant]
    mul, a, b = _farm_multiplier(x), x.front(0) * k, x.front(1)
    c, d = x.back(0) * mul, x.back(1) * k2
    return a, x.right(a + b, 43) + x.right(c, 30) + d, a + x.right(b + k2, 18) + c


def _farm_17_to_32(x: Operands) -> Word:
    _, u, v = _farm_ends(x, K1[x.constant])
    return _farm16(x, u, v, _farm_multiplier(x))


def _farm_33_to_64(x: Operands) -> Word:
    mul = _farm_multiplier(x)
    a, y, v = _farm_ends(x, K2[x.constant])
    z = _farm16(x, y, v, mul)
    e, f = x.front(2) * mul, x.front(3)
    g, h = (y + x.back(3)) * mul, (z + x.back(2)) * mul
    return _farm16(x, x.right(e + f, 43) + x.right(g, 30) + h, e + x.right(f + a, 18) + g, mul)


def _farm_weak(op: Operands, words: Sequence[Word], a: Word, b: Word) -> tuple[Word, Word]:
    w, x, y, z = words
    a = a + w
    b = op.right(b + a + z, 21)
    c, a = a, a + x + y
    return a + z, b + op.right(a, 44) + c


def _farm_long(x: Operands) -> Word:
    """A state of 56 bytes, stirred by blocks of 64; the last block ends with the string and may overlap."""
    n, k1, k2 = x.constant, K1[x.constant], K2[x.constant]
    zero = x.lengths ^ x.lengths
    s, y = x.front(0) + n(81 * FARM_CONSTANTS[2] & ALL_BITS), zero + n(81 * FARM_CONSTANTS[1] + 113 & ALL_BITS)
    z = x.mix(y * k2 + n(113)) * k2
    v = w = (zero, zero)
    for index in range(x.length - 1 >> 6):
        words = x.block(index)
        s = x.right(s + y + v[0] + words[1], 37) * k1 ^ w[1]
        y = x.right(y + v[1] + words[6], 42) * k1 + v[0] + words[5]
        z = x.right(z + w[0], 33) * k1
        v = _farm_weak(x, words[:4], v[1] * k1, s + w[0])
        w = _farm_weak(x, words[4:], z + w[1], y + words[2])
        z, s = s, z
    words, mul, nine = [x.back(i) for i in reversed(range(8))], k1 + ((z & n(0xFF)) << n(1)), n(9)
    w0 = w[0] + (x.lengths - n(1) & n(63))
    v0 = v[0] + w0
    w0 = w0 + v0
    s = x.right(s + y + v0 + words[1], 37) * mul ^ w[1] * nine
    y = x.right(y + v[1] + words[6], 42) * mul + v0 * nine + words[5]
    z = x.right(z + w0, 33) * mul
    v = _farm_weak(x, words[:4], v[1] * mul, s + w0)
    w = _farm_weak(x, words[4:], z + w[1], y + words[2])
    return _farm16(x, _farm16(x, v[0], w[0], mul) + x.mix(y) * K0[n] + s, _farm16(x, v[1], w[1], mul) + z, mul)


FARM_LONGEST = (0, 3, 7, 16, 32, 64)  # bytes of the strings that each of these functions takes
FARM_FUNCTIONS = (_farm_0, _farm_1_to_3, _farm_4_to_7, _farm_8_to_16, _farm_17_to_32, _farm_33_to_64, _farm_long)
FARM_LIMITS = np.array(FARM_LONGEST)


def _farm_kinds(lengths: Array) -> Array:
    """The index of the function plus the number of whole blocks before the last byte, which is -1 for no byte."""
    return FARM_LIMITS.searchsorted(lengths) + (lengths - 1 >> 6)


def _farm(x: Operands) -> Word:
    return FARM_FUNCTIONS[bisect_left(FARM_LONGEST, x.length)](x)


farmhash64 = Hash(_farm_kinds, _farm, 12)


def _whole_words(lengths: Array) -> Array:
    return lengths >> 3


def _rest(x: Operands) -> Word:
    """The bytes behind the last whole word, and zeros."""
    n = x.constant
    return x.front(x.length // WORD_BYTES) & (n(1) << ((x.lengths & n(7)) << n(3))) - n(1)


# MurmurHash64A (Austin Appleby), with the seed of TensorFlow's Hash64

SEED, MURMUR_MULTIPLIER = 0xDECAFCAFFE, 0xC6A4A7935BD1E995


def _murmur(x: Operands) -> Word:
    n = x.constant
    m = n(MURMUR_MULTIPLIER)
    h = n(SEED) ^ x.lengths * m
    for index in range(x.length // WORD_BYTES):
        h = x.cut((h ^ x.mix(x.front(index) * m) * m) * m)
    h = x.choose(x.lengths & n(7), (h ^ _rest(x)) * m, h)
    return x.mix(x.mix(h) * m)


murmur64a = Hash(_whole_words, _murmur, 6)


# SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012)

SIP_START = tuple(int.from_bytes(b"somepseudorandomlygeneratedbytes"[i : i + 8], "big") for i in (0, 8, 16, 24))
SIP_TURNS = ((13, 16), (51, 48), (17, 21), (47, 43))  # bits of b and d, left and right, in both halves of a round


def siphash(k0: int, k1: int) -> Hash:
    start: Any = [(word ^ key) & ALL_BITS for word, key in zip(SIP_START, (k0, k1, k0, k1), strict=True)]

    def function(x: Operands) -> Word:
        n = x.constant
        state = _SipState(*start) if n is int else _SipStates(len(x.lengths), *start)
        for index in range(x.length // WORD_BYTES):
            state.absorb(x.front(index))
        state.absorb((x.lengths & n(0xFF)) << n(56) | _rest(x))
        return state.digest()

    return Hash(_whole_words, function, 6)


class _SipState:
    """The four words of the state, of one string."""

    def __init__(self, a: int, b: int, c: int, d: int) -> None:
        self._words = a, b, c, d

    def absorb(self, word: int) -> None:
        a, b, c, d = self._words
        a, b, c, d = self._stir(a, b, c, d ^ word, 2)
        self._words = a ^ word, b, c, d

    def digest(self) -> int:
        a, b, c, d = self._words
        a, b, c, d = self._stir(a, b, c ^ 0xFF, d, 4)
        return a ^ b ^ c ^ d

    @staticmethod
    def _stir(a: int, b: int, c: int, d: int, rounds: int) -> tuple[int, int, int, int]:
        for _ in range(rounds):
            a, c = a + b & ALL_BITS, c + d & ALL_BITS
            b, d = (b << 13 & ALL_BITS | b >> 51) ^ a, (d << 16 & ALL_BITS | d >> 48) ^ c
            a, c = (a << 32 & ALL_BITS | a >> 32) + d & ALL_BITS, c + b & ALL_BITS
            b, d = (b << 17 & ALL_BITS | b >> 47) ^ c, (d << 21 & ALL_BITS | d >> 43) ^ a
            c = c << 32 & ALL_BITS | c >> 32
        return a, b, c, d


class _SipStates:
    """The states of many strings, as two pairs of words: a round does the same to both words of a pair."""

    def __init__(self, count: int, a: int, b: int, c: int, d: int) -> None:
        self._ac, self._bd = (np.array(pair, U).repeat(count).reshape(2, count) for pair in ((a, c), (b, d)))
        self._turns = [np.array(bits, U).repeat(count).reshape(2, count) for bits in SIP_TURNS]

    def absorb(self, word: Word) -> None:
        self._bd[1] ^= word
        self._stir(2)
        self._ac[0] ^= word

    def digest(self) -> Word:
        self._ac[1] ^= U(0xFF)
        self._stir(4)
        (a, c), (b, d) = self._ac, self._bd
        return a ^ b ^ c ^ d

    def _stir(self, rounds: int) -> None:
        ac, bd = self._ac, self._bd
        left, left_rest, right, right_rest = self._turns
        for _ in range(rounds):
            ac += bd
            bd = (bd << left | bd >> left_rest) ^ ac
            ac[0] = ByteStrings.right(ac[0], 32)
            ac += bd[::-1]
            bd = (bd << right | bd >> right_rest) ^ ac[::-1]
            ac[1] = ByteStrings.right(ac[1], 32)
        self._bd = bd
