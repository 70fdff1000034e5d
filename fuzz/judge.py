"""Judge: puts one sample through its door, and measures time and memory."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

import heald

from .outcomes import DEADLINE, MEMORY, MOST_MEMORY, TIMEOUT, Outcome, of_error, outcome
from .reach import Reach
from .samples import Sample
from .targets import TARGETS


class Judge:
    """The judge of a process; opens the devices. Samples write into `folder`, which is emptied after each.

    An exception of a thread or a finalizer counts as a failure of the current sample.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._errors_of_threads: list[BaseException] = []
        self._reach = Reach()
        heald.devices()
        threading.excepthook = lambda args: self._errors_of_threads.append(args.exc_value or args.exc_type())
        sys.unraisablehook = lambda args: self._errors_of_threads.append(args.exc_value or RuntimeError(args.err_msg))

    def __call__(self, target: str, sample: Sample) -> Outcome:
        """The outcome of one sample."""
        _reset_peak()
        before, began, calls = _peak(), time.monotonic(), self._reach.calls
        result = outcome(lambda: TARGETS[target].door(sample, self._folder))
        took, grown = time.monotonic() - began, _peak() - before
        for entry in self._folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        if self._errors_of_threads:
            result = of_error(self._errors_of_threads[0])
            self._errors_of_threads.clear()
        if took > DEADLINE and not result.is_failure:
            result = Outcome(TIMEOUT, f"{result.kind}, but late", f"{took:.1f} s")
        if grown > MOST_MEMORY and not result.is_failure:
            result = Outcome(MEMORY, f"{result.kind}, of much memory", f"{grown >> 20} MiB more than before")
        return result._replace(reached=self._reach.calls > calls)


def _peak() -> int:
    """The most bytes that were resident since `_reset_peak`."""
    text = Path("/proc/self/status").read_bytes()
    at = text.index(b"VmHWM:") + 6
    return int(text[at : text.index(b"kB", at)]) << 10


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_bytes(b"5")
