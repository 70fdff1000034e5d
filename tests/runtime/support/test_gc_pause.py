"""The garbage collector at rest."""

from __future__ import annotations

import gc
import weakref

import pytest
from heald.runtime.support import gc_pause
from heald.runtime.support.gc_pause import gc_paused

MANY = 50_000  # more than the collector lets come before it looks at them


def test_what_is_made_meanwhile_is_not_looked_at_in_the_end_either() -> None:
    before = gc.get_stats()[0]["collections"]
    with gc_paused():
        made = [[] for _ in range(MANY)]  # type: ignore[var-annotated]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_count()[0] < MANY
    assert gc.get_stats()[0]["collections"] - before < 10
    assert any(made[0] is each for each in gc.get_objects(2))


def test_what_is_frozen_stays_so() -> None:
    gc.freeze()
    try:
        with gc_paused():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


class Cyclic:
    def __init__(self) -> None:
        self.itself = self


def left(monkeypatch: pytest.MonkeyPatch, most: int) -> int:
    """How many of 20 objects are alive that were made in pauses, with 500 others each, and that nobody holds."""
    gc.collect()
    monkeypatch.setattr(gc_pause, "MOST_MADE", most)
    monkeypatch.setattr(gc_pause, "_counts", gc_pause.Counts(most))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    gone = []
    for _ in range(20):
        with gc_paused():
            made = [Cyclic() for _ in range(500)]
        gone.append(weakref.ref(made[0]))
        del made
    return sum(each() is not None for each in gone)


def test_what_nobody_holds_is_freed_after_many_new_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, most=5000) < 15


def test_a_few_new_objects_bring_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, most=1_000_000) == 20
