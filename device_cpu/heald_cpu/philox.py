"""Philox 4x32-10: random words as a function of key and counter, so any part of a sequence can be computed directly.

Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011. A key is a number of 64 bits, a
counter one of 128. Each counter makes a block of four words of 32 bits.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from threading import Lock

import numpy as np
from heald.api import inherited

from .element_types import Array

ROUNDS = 10
LEAST_AT_ONCE, MOST_AT_ONCE = 16, 4096  # blocks that `words` computes at once
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85  # added to the key in each round
WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MASK64 = 2**64 - 1
MASK128 = 2**128 - 1
SCRAMBLER = 0x02461E293EC8F720  # TensorFlow's key for deriving keys from seeds


def blocks(key: int, counter: int, steps: Array) -> Array:
    """uint32 [n, 4]: the blocks of the counters that are `steps`, uint64 [n], after `counter`."""
    low = steps + np.uint64(counter & MASK64)
    high = np.uint64(counter >> 64 & MASK64) + (low < steps)
    a, b, c, d = low & WORD, low >> HALF, high & WORD, high >> HALF
    for number in range(ROUNDS):
        first, second = (np.uint64((part + number * weyl) & 0xFFFFFFFF)
                         for part, weyl in zip((key, key >> 32), WEYL, strict=True))
        left, right = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = right >> HALF ^ b ^ first, right & WORD, left >> HALF ^ d ^ second, left & WORD
    return np.stack((a, b, c, d), -1, dtype=np.uint32, casting="unsafe")


def from_seed(seed: Array) -> tuple[int, int]:
    """The key and the first counter for a stateless op's seed of two integers."""
    first, second = (int(part) & MASK64 for part in seed)
    mixed = blocks(SCRAMBLER, second << 64 | first, np.zeros(1, np.uint64))
    key, high = (int(part) for part in mixed.astype("<u4").view("<u8")[0])
    return key, high << 64


def words(key: int, counter: int) -> Iterator[int]:
    """Yield the words of the blocks from `counter` on, without an end."""
    first, count = 0, LEAST_AT_ONCE
    while True:
        yield from blocks(key, counter, np.arange(first, first + count, dtype=np.uint64)).reshape(-1).tolist()
        first, count = first + count, min(2 * count, MOST_AT_ONCE)


def below(limit: int, numbers: Iterator[int], bits: int) -> int:
    """A uniform integer in [0, limit) from `numbers` in [0, 2**bits). Numbers that would bias the result are skipped. A
    limit of 0 takes one number and returns 0."""
    number = next(numbers)
    if limit & limit - 1:
        while number < 2**bits % limit:
            number = next(numbers)
    return number % limit if limit else 0


class Sequence:
    """The random sequence of a stateful op, which continues from run to run. Safe to use from several threads."""

    def __init__(self, seed: int, seed2: int) -> None:
        if not (seed or seed2):
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._key = seed & MASK64
        self._next = (seed2 & MASK64) << 64
        self._lock = Lock()
        inherited.add(self)

    def reserve(self, count: int) -> tuple[int, int]:
        """Reserve `count` blocks. Returns the key, and the counter of the first block."""
        with self._lock:
            counter = self._next
            self._next = counter + count & MASK128
        return self._key, counter

    def forked(self) -> None:
        self._lock = Lock()
