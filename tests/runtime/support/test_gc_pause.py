"""The garbage collector at rest."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from heald.runtime.support import gc_pause
from heald.runtime.support.gc_pause import gc_paused

MANY = 50_000  # more than the collector lets come before it looks at them


@pytest.fixture(autouse=True)
def _thawed_objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An application that freezes no objects; those of the test run are frozen again at the end."""
    monkeypatch.setattr(gc_pause, "frozen_objects", gc_pause.FrozenObjects())
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


def test_objects_made_in_a_pause_are_not_scanned_at_its_end() -> None:
    before = gc.get_stats()[0]["collections"]
    with gc_paused():
        new_objects = [[] for _ in range(MANY)]  # type: ignore[var-annotated]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_count()[0] < MANY
    assert gc.get_stats()[0]["collections"] - before < 10
    assert any(new_objects[0] is gc_object for gc_object in gc.get_objects(2))


def test_frozen_objects_stay_frozen_after_a_pause() -> None:
    gc.freeze()
    try:
        with gc_paused():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_frozen_objects_are_counted_once_in_many_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [7, 0]
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.pop(0))
    frozen_objects = gc_pause.FrozenObjects()
    assert [frozen_objects.exist() for _ in range(gc_pause.PAUSES_BETWEEN_COUNTS + 2)].count(False) == 1
    assert counts == []


class Cyclic:
    def __init__(self) -> None:
        self.itself = self


def left(monkeypatch: pytest.MonkeyPatch, limit: int) -> int:
    """The number of live objects among 20 garbage cycles, each made in a pause with 500 others."""
    gc.collect()
    monkeypatch.setattr(gc_pause, "OBJECTS_BETWEEN_SCANS", limit)
    monkeypatch.setattr(gc_pause, "scan_counts", gc_pause.ScanCounts(limit))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    references = []
    for _ in range(20):
        with gc_paused():
            cyclic_objects = [Cyclic() for _ in range(500)]
        references.append(weakref.ref(cyclic_objects[0]))
        del cyclic_objects
    return sum(reference() is not None for reference in references)


def test_garbage_cycles_are_freed_after_many_new_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, limit=5000) < 15


def test_a_few_new_objects_bring_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, limit=1_000_000) == 20
