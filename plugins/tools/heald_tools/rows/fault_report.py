"""Rows that cannot be read: each of the first is told by its file, and all are counted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from heald.errors import DataLoss, HealdWarning

from .row_batch import Fault

MOST_TOLD = 20  # rows that are told one by one


class FaultReport:
    """Tells the rows that cannot be read, the first of them one by one, and counts all."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self.count = 0

    def tell(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            if self._strict:
                raise DataLoss(f"{fault.place}: {fault.reason}", hint="without --strict the other rows go on")
            self.count += 1
            if self.count <= MOST_TOLD:
                warnings.warn(f"{fault.place}: {fault.reason}; left out", HealdWarning, stacklevel=2)

    def tell_count(self) -> None:
        if self.count > MOST_TOLD:
            warnings.warn(f"{self.count - MOST_TOLD:,} more rows are left out", HealdWarning, stacklevel=2)
