"""The garbage collector at rest."""

from __future__ import annotations

import gc

from weft.support.gc_pause import gc_paused

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
