"""An index of integers: positions of many integers in an array of keys, looked up at once with NumPy.

A hash table with open addressing and linear probing (Knuth, The Art of Computer Programming 3, 6.4). The hash is
multiplicative: the upper bits of the product with the golden ratio.
"""

from __future__ import annotations

import numpy as np

from ..element_types import Array

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LARGEST_PROBE_ROUNDS = 100  # keys that collide more often than random numbers get no index


class IntegerIndex:
    """`keys`: distinct integers, a vector that must not change. `is_made` is False where they collide too often."""

    def __init__(self, keys: Array) -> None:
        self._keys = keys
        bits = (2 * len(keys)).bit_length()
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._slots = np.full(1 << bits, -1, np.int64)  # from a slot to the position of its key, -1 if free
        self.is_made = self._fill_slots()

    def _first(self, numbers: Array) -> Array:
        return (numbers.astype(np.uint64) * GOLDEN >> self._shift).astype(np.int64)

    def _fill_slots(self) -> bool:
        places, left = self._first(self._keys), np.arange(len(self._keys))
        for _ in range(LARGEST_PROBE_ROUNDS):
            free = left[self._slots[places[left]] < 0]
            self._slots[places[free]] = free
            left = left[self._slots[places[left]] != left]
            if not len(left):
                return True
            places[left] = places[left] + 1 & self._mask
        return False

    def find(self, numbers: Array) -> Array:
        """The position of each number in the keys, int64; -1 for missing numbers."""
        places = self._first(numbers)
        key_numbers: Array = self._slots[places]
        left = np.flatnonzero((key_numbers >= 0) & (self._keys[key_numbers] != numbers))
        while len(left):
            places[left] = places[left] + 1 & self._mask
            key_numbers[left] = there = self._slots[places[left]]
            left = left[(there >= 0) & (self._keys[there] != numbers[left])]
        return key_numbers
