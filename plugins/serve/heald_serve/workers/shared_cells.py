"""Counts that processes share: a file in memory for each process, mapped by all, written by one.

    used bytes                                     8 bytes
    records:  key bytes, number count              2 x 4 bytes
              key: JSON of metric and labels       padded to 8 bytes
              numbers                              8 bytes each

A record never moves, and `used` grows when the record is whole, so readers need no lock. A reader may see a histogram's
count before its sum. A new process in a dead one's stead goes on with its file: counters never go back.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
from collections.abc import MutableSequence, Sequence
from itertools import chain
from typing import cast

FILE_BYTES = 4 << 20  # sparse; a model has about 2 kB of counts
GAUGE_PREFIX = "gauge/"
WORKERS_GAUGE = "heald_serve_workers"  # set by the parent
_USED, _SIZES = struct.Struct("=Q"), struct.Struct("=II")
Labels = tuple[str, ...]
Numbers = MutableSequence[float]


def make_file() -> int:
    """The descriptor of a file for a process, in memory: containers may have no folder that can be written."""
    number = os.memfd_create("heald-serve-counts")
    os.ftruncate(number, FILE_BYTES)
    return number


class _Map:
    """One process's file, mapped."""

    def __init__(self, number: int) -> None:
        self._bytes = mmap.mmap(number, FILE_BYTES)
        self._numbers = memoryview(self._bytes).cast("d")
        self._end = _USED.size
        self._records: dict[tuple[str, Labels], Numbers] = {}

    def records(self) -> dict[tuple[str, Labels], Numbers]:
        """All records. New records are read from the file first."""
        (used,) = _USED.unpack_from(self._bytes, 0)
        while self._end < used:
            key_bytes, count = _SIZES.unpack_from(self._bytes, self._end)
            start = self._end + _SIZES.size
            name, *labels = json.loads(self._bytes[start : start + key_bytes])
            self._end = start + _padded(key_bytes)
            self._records[name, tuple(labels)] = self._take(count)
        return self._records

    def _take(self, count: int) -> Numbers:
        numbers = cast("Numbers", self._numbers[self._end // 8 : self._end // 8 + count])
        self._end += 8 * count
        return numbers

    def add(self, name: str, labels: Labels, count: int) -> Numbers | None:
        """The numbers of a record, which is made if need be; None when the file is full."""
        numbers = self.records().get((name, labels))
        if numbers is not None:
            return numbers
        key = json.dumps([name, *labels]).encode()
        size = _SIZES.size + _padded(len(key)) + 8 * count
        if self._end + size > FILE_BYTES:
            return None
        _SIZES.pack_into(self._bytes, self._end, len(key), count)
        start = self._end + _SIZES.size
        self._bytes[start : start + len(key)] = key
        _USED.pack_into(self._bytes, 0, self._end + size)
        return self.records()[name, labels]


def _padded(size: int) -> int:
    return -(-size // 8) * 8


class SharedCells:
    """The counts of all processes. `own` is the index of this process's file in `numbers`, descriptors.

    Any thread may call.
    """

    def __init__(self, numbers: Sequence[int], own: int) -> None:
        self._maps = [_Map(number) for number in numbers]
        self._own = self._maps[own]
        self._unshared: dict[tuple[str, Labels], Numbers] = {}  # the records without room in the file
        self._lock = threading.Lock()

    def make(self, name: str, labels: Labels, count: int) -> Numbers:
        """Numbers that this process alone writes. Without room they are not shared."""
        with self._lock:
            numbers = self._own.add(name, labels, count)
            return self._unshared.setdefault((name, labels), [0.0] * count) if numbers is None else numbers

    def of_metric(self, name: str) -> list[tuple[Labels, Numbers]]:
        """The labels and numbers of all processes."""
        with self._lock:
            records = [*chain(*(one.records().items() for one in self._maps), self._unshared.items())]
        return [(labels, numbers) for (metric, labels), numbers in records if metric == name]

    def of_process(self, index: int, name: str) -> dict[Labels, float]:
        """The first number of each record that one process has of a metric, by labels."""
        with self._lock:
            return {labels: numbers[0] for (metric, labels), numbers in self._maps[index].records().items()
                    if metric == name}

    def set_gauge(self, name: str, number: float) -> None:
        self.make(GAUGE_PREFIX + name, (), 1)[0] = number

    def sum_of_gauge(self, name: str) -> float:
        """The sum of all processes."""
        return sum(numbers[0] for _, numbers in self.of_metric(GAUGE_PREFIX + name))

    def clear_gauges(self, index: int) -> None:
        """Set the gauges of a dead process to 0."""
        with self._lock:
            for (name, _), numbers in self._maps[index].records().items():
                if name.startswith(GAUGE_PREFIX):
                    numbers[0] = 0.0
