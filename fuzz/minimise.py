"""Minimiser: makes a failing sample smaller while it fails in the same way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial

from . import protobuf
from .child import Child, Ended
from .outcomes import Outcome
from .samples import Sample, pack_sample

Fails = Callable[[bytes], bool]
_SECONDS = 60.0  # spent on each file of a sample


class JudgedInChild:
    """Says whether samples of a target fail as one did; a child that ends is replaced."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._child: Child | None = None

    def outcome(self, sample: Sample) -> Outcome:
        self._child = self._child or Child()
        try:
            return self._child.judge(self._target, pack_sample(sample))
        except Ended as end:
            self.close()
            return end.outcome

    def fails(self, expected: Outcome, sample: Sample, name: str, data: bytes) -> bool:
        """True where the sample, with these bytes in the file `name`, fails at the same place."""
        return self.outcome({**sample, name: data})[:2] == expected[:2]

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


def minimise_sample(sample: Sample, target: str) -> tuple[Sample, Outcome]:
    """The smallest sample found whose outcome is of the same kind and place, and that outcome.

    Raises ValueError for a sample that is no failure.
    """
    judged = JudgedInChild(target)
    try:
        expected = judged.outcome(sample)
        if not expected.is_failure:
            raise ValueError(f"this is no failure of heald: its outcome is {expected.kind}")
        smaller_sample = dict(sample)
        for name in sample:
            smaller_sample[name] = shorten(smaller_sample[name], partial(judged.fails, expected, smaller_sample, name),
                                           _SECONDS)
        return smaller_sample, judged.outcome(smaller_sample)
    finally:
        judged.close()


def shorten(data: bytes, fails: Fails, seconds: float = math.inf) -> bytes:
    """The smallest bytes found that still fail: fields of messages are left out first, then ranges of bytes.

    Gives the best found when the seconds are over.
    """
    until = time.monotonic() + seconds
    shorter = True
    while shorter and time.monotonic() < until:
        smaller = next((candidate for candidate in (b"", *_without_fields(data))
                        if len(candidate) < len(data) and time.monotonic() < until and fails(candidate)), None)
        shorter = smaller is not None
        data = data if smaller is None else smaller
    size = len(data) // 2
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            candidate = data[:at] + data[at + size :]
            if fails(candidate):
                data = candidate
            else:
                at += size
        size //= 2
    return data


def _without_fields(data: bytes) -> Iterator[bytes]:
    """Messages that lack one field, at any depth, with lengths that fit."""
    fields = protobuf.parse_fields(data)
    for at, field in enumerate(fields or ()):
        assert fields is not None
        yield protobuf.encode_fields(fields[:at] + fields[at + 1 :])
        if isinstance(field.value, bytes) and field.kind == protobuf.BYTES:
            for inner in _without_fields(field.value):
                yield protobuf.encode_fields([*fields[:at], field._replace(value=inner), *fields[at + 1 :]])
