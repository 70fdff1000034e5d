"""Progress of work that takes longer than a second, on a terminal's stderr: nothing of it stays there.

In a notebook a bar is a widget of the cell, where the notebook can show one (`tqdm.auto`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from sys import modules as loaded_modules
from time import monotonic
from typing import Any, TextIO

from ...errors import printable

DELAY = 1.0  # seconds
CLEAR = "\r\x1b[K"


def erase() -> None:
    """Clear the line that a progress may have left the cursor in."""
    if sys.stderr.isatty():
        sys.stderr.write(CLEAR)


@contextmanager
def ticking(what: str) -> Iterator[None]:
    """While the body runs: "what ... 3 s"."""
    what = printable(what)
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


def counted(number: int, what: str) -> Iterable[int]:
    """range(number) with a bar."""
    if not (sys.stderr.isatty() or is_in_notebook()):
        return range(number)
    bar: Iterable[int] = _bar_class()(range(number), desc=printable(what), delay=DELAY, leave=False)
    return bar


def lasting(seconds: float, least: int, what: str) -> Iterator[int]:
    """Yield 0, 1, ... for a time, and at least a number of them, with a bar of the time gone and left."""
    start = monotonic()
    with _bar_class()(total=1.0, desc=printable(what), delay=DELAY, leave=False,
                      disable=False if is_in_notebook() else None, file=sys.stderr,
                      bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}") as bar:
        for number in count():
            done = min(1.0, number / least, (monotonic() - start) / seconds if seconds > 0 else 1.0)
            bar.update(done - bar.n)
            if done == 1.0:
                return
            yield number


def is_in_notebook() -> bool:
    """True in a kernel of a notebook. IPython is loaded there."""
    shell = getattr(loaded_modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _bar_class() -> Any:
    """Return tqdm's class for a terminal, or the one for notebooks: its import takes longer."""
    if is_in_notebook():
        from tqdm.auto import tqdm as auto_tqdm

        return auto_tqdm
    from tqdm import tqdm

    return tqdm


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
