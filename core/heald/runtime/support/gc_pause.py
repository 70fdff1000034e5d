"""A pause of the garbage collector while a graph is read and prepared. Its many objects stay alive.

The collector would scan these objects again and again and free nothing. The scans take a fifth of the time to load a
small network. A pause ends without a scan: the objects go straight to the oldest generation. Python then counts them no
more, and would not scan that generation again. Sessions without references would stay in memory. Therefore a pause
after many new objects ends with a scan of all.

An application may freeze its objects, as servers do before they fork. The objects of a pause then stay young, for their
way to the oldest generation would thaw the others.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_SCANS = 500_000  # objects between scans of the oldest generation: 0.1 GB at most, and 0.1 s for a scan
PAUSES_BETWEEN_COUNTS = 1000  # pauses between counts of frozen objects: a count takes 50 ms for a million of them


class ScanCounts:
    """Numbers of objects and scans since the last scan of the oldest generation, by this module or by Python."""

    def __init__(self, limit: int) -> None:
        self.new_objects = 0  # objects of pauses
        self.scans = 0  # of the oldest generation, since the start of Python
        self.young = 0  # of the youngest generation, before the last scan of the oldest
        self.limit = limit

    def is_scan_due(self) -> bool:
        """Count the objects of a pause that ends now. True when the oldest generation should be scanned."""
        young, _, oldest = (generation["collections"] for generation in gc.get_stats())
        if oldest != self.scans:
            self.new_objects, self.scans, self.young = 0, oldest, young
        self.new_objects += gc.get_count()[0]
        beside = (young - self.young) * gc.get_threshold()[0]
        return bool(self.new_objects + beside > self.limit)


class FrozenObjects:
    """Whether the application has frozen objects. Python counts them one by one, so that a yes holds for many pauses.

    An application that thaws its objects loses the saving of the next pauses, and nothing else.
    """

    def __init__(self) -> None:
        self.pauses_until_count = 0

    def exist(self) -> bool:
        if self.pauses_until_count:
            self.pauses_until_count -= 1
            return True
        exist = bool(gc.get_freeze_count())
        self.pauses_until_count = PAUSES_BETWEEN_COUNTS if exist else 0
        return exist


scan_counts = ScanCounts(OBJECTS_BETWEEN_SCANS)
frozen_objects = FrozenObjects()


@contextmanager
def gc_paused() -> Iterator[None]:
    """Switch off collection inside the block. With several threads the first one to leave switches it on again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not frozen_objects.exist():
            _age_all_objects()
        gc.enable()


def _age_all_objects() -> None:
    """Move all objects to the oldest generation, after a scan of that when it is time."""
    scan = scan_counts.is_scan_due()
    if scan:
        gc.collect()
    gc.freeze()
    if scan:  # a quarter of the objects that are alive is Python's own rule for this generation
        scan_counts.limit = max(OBJECTS_BETWEEN_SCANS, gc.get_freeze_count() // 4)
    gc.unfreeze()
