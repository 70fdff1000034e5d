"""Counts of each version of a model, as the statistics extension has them: inferences, runs, and their times.

A version's numbers are the time of the last inference, the inferences, the runs, and a count and nanoseconds for each
stage. Workers share them by cells, like metrics.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, MutableSequence, Sequence
from time import time
from typing import Any

from ..metrics import Cells

STAGES = ("compute_input", "compute_infer", "compute_output")
ALL_STAGES = ("success", "fail", "queue", *STAGES, "cache_hit", "cache_miss")
CELL = "v2/statistics"
NUMBER_COUNT = 3 + 2 * len(ALL_STAGES)


class Statistics:
    """Any thread may call. `shared`: the cells of all workers."""

    def __init__(self, shared: Cells | None = None) -> None:
        self._shared = shared
        self._versions: dict[tuple[str, str], MutableSequence[float]] = {}
        self._lock = threading.Lock()

    def add_success(self, name: str, version: int, inferences: int, stages: dict[str, float]) -> None:
        """Count a request of so many inferences. `stages`: the seconds of each of STAGES."""
        with self._lock:
            numbers = self._numbers(name, version)
            numbers[0] = int(1000 * time())
            numbers[1] += inferences
            numbers[2] += 1
            _add(numbers, "success", sum(stages.values()))
            for stage, seconds in stages.items():
                _add(numbers, stage, seconds)

    def add_failure(self, name: str, version: int, seconds: float) -> None:
        with self._lock:
            _add(self._numbers(name, version), "fail", seconds)

    def _numbers(self, name: str, version: int) -> MutableSequence[float]:
        key = (name, str(version))
        numbers = self._versions.get(key)
        if numbers is None:
            numbers = [0.0] * NUMBER_COUNT if self._shared is None else self._shared.make(CELL, key, NUMBER_COUNT)
            self._versions[key] = numbers
        return numbers

    def document(self, names: Iterator[tuple[str, int]]) -> dict[str, Any]:
        """The document of these versions, over all workers; a version without a request has zeros."""
        with self._lock:
            rows = [*self._versions.items()] if self._shared is None else [*self._shared.of_metric(CELL)]
            return {"model_stats": [_row(name, version, [numbers for key, numbers in rows
                                                         if key == (name, str(version))]) for name, version in names]}


def _add(numbers: MutableSequence[float], stage: str, seconds: float) -> None:
    place = 3 + 2 * ALL_STAGES.index(stage)
    numbers[place] += 1
    numbers[place + 1] += int(1e9 * seconds)


def _row(name: str, version: int, rows: Sequence[Sequence[float]]) -> dict[str, Any]:
    sums = [int(sum(column)) for column in zip(*rows, strict=True)] if rows else [0] * NUMBER_COUNT
    last = int(max((numbers[0] for numbers in rows), default=0))
    stages = {stage: {"count": sums[3 + 2 * at], "ns": sums[4 + 2 * at]} for at, stage in enumerate(ALL_STAGES)}
    return {"name": name, "version": str(version), "last_inference": last, "inference_count": sums[1],
            "execution_count": sums[2], "inference_stats": stages, "batch_stats": []}
