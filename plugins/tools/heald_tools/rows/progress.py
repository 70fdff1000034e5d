"""The progress of many rows, on stderr: a bar on a terminal, else a line every ten seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from heald.errors import printable

INTERVAL = 10.0  # seconds between lines


@contextmanager
def show_progress(what: str, total: int | None) -> Iterator[Callable[[int], object]]:
    """Yield a function that takes the number of rows just done. `total`: rows in all, where that is known."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(total=total, desc=printable(what), unit=" rows", delay=1.0, leave=False, file=sys.stderr,
                  smoothing=0.1) as bar:
            yield bar.update
        return
    start = last = monotonic()
    done = 0

    def tell(count: int) -> None:
        nonlocal done, last
        done += count
        now = monotonic()
        if now - last >= INTERVAL:
            last = now
            rate = done / (now - start)
            left = f", {(total - done) / rate:,.0f} s left" if total and rate else ""
            of = f" of {total:,}" if total else ""
            sys.stderr.write(f"{printable(what)}: {done:,}{of} rows, {rate:,.0f} a second{left}\n")
            sys.stderr.flush()

    yield tell
