"""Progress of work that takes longer than a second, on a terminal's stderr: nothing of it stays there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

DELAY = 1.0  # seconds
CLEAR = "\r\x1b[K"


def erase() -> None:
    """Clear the line that a progress may have left the cursor in."""
    if sys.stderr.isatty():
        sys.stderr.write(CLEAR)


@contextmanager
def ticking(what: str) -> Iterator[None]:
    """While the body runs: "what ... 3 s"."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(what, done, sys.stderr), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def counted(count: int, what: str) -> Iterable[int]:
    """range(count) with a bar."""
    if not sys.stderr.isatty():
        return range(count)
    from tqdm import tqdm

    return tqdm(range(count), desc=what, delay=DELAY, leave=False)


def _tick(what: str, done: threading.Event, stream: TextIO) -> None:
    import shutil

    start = monotonic()
    room = shutil.get_terminal_size().columns - len(" ... 100 s ")
    while not done.wait(DELAY):
        stream.write(f"{CLEAR}{what[:room]} ... {monotonic() - start:.0f} s")
        stream.flush()
    if monotonic() - start >= DELAY:
        stream.write(CLEAR)
        stream.flush()
