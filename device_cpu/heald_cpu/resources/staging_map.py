"""Staging maps: tuples that wait between steps under keys, and may come and go in parts.

A tuple that lacks parts is incomplete, and invisible until they come. A consumer waits for its key. Consumers of
several keys do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from heald.api import DType, errors

from ..element_types import Array
from .queue import Queue, Request

Parts = dict[int, Any]  # the parts that are there, by index


class StagedTuples:
    """The tuples of a map. With `ordered` the consumer of any key gets the smallest one, else the newest one.

    `dtypes`: the dtypes of the tuples' parts, known from the first producer on.
    """

    def __init__(self, *, ordered: bool) -> None:
        self.dtypes: Sequence[DType] | None = None
        self.complete: dict[int, Parts] = {}
        self.incomplete: dict[int, Parts] = {}
        self._ordered = ordered

    def __len__(self) -> int:
        return len(self.complete)

    def key(self) -> int:
        """The key of the tuple that the consumer of any key gets."""
        return min(self.complete) if self._ordered else next(reversed(self.complete))

    def take(self) -> None:
        """Drop a tuple."""
        self.complete.popitem()


class StagedMap(Queue):
    """A staging map, safe to use from several threads."""

    def __init__(self, kind: str, name: str, capacity: int, *, ordered: bool) -> None:
        self.tuples = StagedTuples(ordered=ordered)
        super().__init__(kind, name, (), capacity, self.tuples)  # type: ignore[arg-type]  # no queue's request comes

    def drop_incomplete(self) -> None:
        self.tuples.incomplete.clear()


class StageParts(Request):
    """Bring the parts with these indices of a tuple. A whole tuple waits for room; of two under one key the first
    stays, as in TensorFlow."""

    what = "Stage"
    goes_first = False

    def __init__(self, key: int, parts: Parts) -> None:
        super().__init__()
        self._key = key
        self._parts = parts

    def serve(self, queue: Queue) -> bool:
        assert isinstance(queue, StagedMap)
        tuples = queue.tuples
        count = len(tuples.dtypes or ())
        if len(self._parts) == count:
            if len(tuples) >= queue.capacity:
                return False
            tuples.complete.setdefault(self._key, self._parts)
        else:
            there = tuples.incomplete.setdefault(self._key, {})
            twice = sorted(there.keys() & self._parts.keys())
            if twice:
                self.fail(errors.InvalidArgument(f"the tuple with the key {self._key} has the parts {twice} already"))
                return False
            there |= self._parts
            if len(there) == count:
                tuples.complete.setdefault(self._key, tuples.incomplete.pop(self._key))
        self.finish()
        return True


class LookUp(Request):
    """Return parts of the tuple under a key, or under any key without one: then the key comes first.

    The parts leave the map if `takes` is set. The tuple leaves it with its last part.
    """

    what = "Unstage"
    goes_first = False

    def __init__(self, key: int | None, indices: Sequence[int], dtypes: Sequence[DType], *, takes: bool) -> None:
        super().__init__(len(indices) + (key is None))
        self._key = key
        self._indices = indices
        self._dtypes = dtypes
        self._takes = takes

    def serve(self, queue: Queue) -> bool:
        assert isinstance(queue, StagedMap)
        tuples = queue.tuples
        if not tuples.complete or (self._key is not None and self._key not in tuples.complete):
            return False
        key = tuples.key() if self._key is None else self._key
        parts = tuples.complete[key]
        assert tuples.dtypes is not None
        if any(index not in parts for index in self._indices):
            self.fail(errors.InvalidArgument(f"the tuple with the key {key} has the parts {sorted(parts)}, asked for "
                                             f"{list(self._indices)}"))
            return False
        kinds = [tuples.dtypes[index] for index in self._indices]
        if kinds != list(self._dtypes):
            self.fail(errors.InvalidArgument(f"the parts {list(self._indices)} have the dtypes "
                                             f"{[kind.name for kind in kinds]}, asked for as "
                                             f"{[kind.name for kind in self._dtypes]}"))
            return False
        cells = [parts.pop(index) if self._takes else parts[index] for index in self._indices]
        if not parts:
            del tuples.complete[key]
        self.outcome = partial(self._finish, key, cells)
        return self._takes

    def _finish(self, key: int, components: list[Array]) -> None:
        values = iter(self.values)
        if self._key is None:
            next(values).emplace(np.array(key, np.int64))
        for value, part in zip(values, components, strict=True):
            value.emplace(part if self._takes else part.copy())
