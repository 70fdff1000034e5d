"""Counts of each version of a model, as the statistics extension has them: inferences, runs, and their times."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import time
from typing import Any

STAGES = ("compute_input", "compute_infer", "compute_output")


class _Version:
    def __init__(self) -> None:
        self.last_inference = self.inferences = self.runs = 0
        self.durations = {stage: [0, 0] for stage in ("success", "fail", "queue", *STAGES, "cache_hit", "cache_miss")}

    def add(self, stage: str, seconds: float) -> None:
        row = self.durations[stage]
        row[0] += 1
        row[1] += int(1e9 * seconds)


class Statistics:
    """Any thread may call."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], _Version] = {}
        self._lock = threading.Lock()

    def add_success(self, name: str, version: int, inferences: int, stages: dict[str, float]) -> None:
        """Count a request of so many inferences. `stages`: the seconds of each of STAGES."""
        with self._lock:
            row = self._versions.setdefault((name, version), _Version())
            row.last_inference = int(1000 * time())
            row.inferences += inferences
            row.runs += 1
            row.add("success", sum(stages.values()))
            for stage, seconds in stages.items():
                row.add(stage, seconds)

    def add_failure(self, name: str, version: int, seconds: float) -> None:
        with self._lock:
            self._versions.setdefault((name, version), _Version()).add("fail", seconds)

    def document(self, names: Iterator[tuple[str, int]]) -> dict[str, Any]:
        """The document of these versions; a version without a request has zeros."""
        with self._lock:
            return {"model_stats": [_row(name, version, self._versions.get((name, version), _Version()))
                                    for name, version in names]}


def _row(name: str, version: int, row: _Version) -> dict[str, Any]:
    return {"name": name, "version": str(version), "last_inference": row.last_inference,
            "inference_count": row.inferences, "execution_count": row.runs,
            "inference_stats": {stage: {"count": count, "ns": ns} for stage, (count, ns) in row.durations.items()},
            "batch_stats": []}
