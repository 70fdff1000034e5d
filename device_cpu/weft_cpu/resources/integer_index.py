"""Where each of many integers is in an array of integers, all looked up at once.

A hash table with open addressing and linear probing: Knuth, The Art of Computer Programming 3, 6.4. A number's first
place is given by the upper bits of its product with the golden ratio's.
"""

from __future__ import annotations

import numpy as np

from ..element_types import Array

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MOST_ROUNDS = 100  # keys that collide more often than numbers do are left to others


class IntegerIndex:
    """Made of different keys, an integer vector that is not changed. `is_made` tells whether they could be spread."""

    def __init__(self, keys: Array) -> None:
        self._keys = keys
        bits = (2 * len(keys)).bit_length()
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._slots = np.full(1 << bits, -1, np.int64)  # where in keys the one is that has this place
        self.is_made = self._spread()

    def _first(self, numbers: Array) -> Array:
        return (numbers.astype(np.uint64) * GOLDEN >> self._shift).astype(np.int64)

    def _spread(self) -> bool:
        places, left = self._first(self._keys), np.arange(len(self._keys))
        for _ in range(MOST_ROUNDS):
            free = left[self._slots[places[left]] < 0]
            self._slots[places[free]] = free
            left = left[self._slots[places[left]] != left]
            if not len(left):
                return True
            places[left] = places[left] + 1 & self._mask
        return False

    def find(self, numbers: Array) -> Array:
        """Where each of a vector of numbers is among the keys, int64; -1 for those that are not there."""
        places = self._first(numbers)
        found: Array = self._slots[places]
        left = np.flatnonzero((found >= 0) & (self._keys[found] != numbers))
        while len(left):
            places[left] = places[left] + 1 & self._mask
            found[left] = there = self._slots[places[left]]
            left = left[(there >= 0) & (self._keys[there] != numbers[left])]
        return found
