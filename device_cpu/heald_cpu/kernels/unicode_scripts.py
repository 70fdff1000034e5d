"""The script of code points, by ICU's numbers. unicode_scripts.tsv has the ranges of each script.

TensorFlow's ICU is a version of Unicode of its own, so the table is its, and no other library's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import Array

TABLE = Path(__file__).parent / "unicode_scripts.tsv"
UNKNOWN, INVALID = 103, -1  # of code points without a script, and of numbers that are no code points
END = 0x110000


@cache
def first_points() -> tuple[Array, Array]:
    """The first code point of each range, in order, and the range's script."""
    rows = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    firsts = {END: INVALID}
    for number, ranges in rows:
        for text in ranges.split():
            first, _, last = text.partition("-")
            firsts[int(first, 16)] = int(number)
            firsts.setdefault(int(last or first, 16) + 1, UNKNOWN)
    return np.array(sorted(firsts), np.int32), np.array([firsts[first] for first in sorted(firsts)], np.int32)


def script(_: Bind) -> Callable[..., None]:
    firsts, scripts = first_points()

    def run(points: Array, out: Array) -> None:
        out[...] = np.where(points < 0, INVALID, scripts[np.searchsorted(firsts, points, "right") - 1])

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("UnicodeScript")(script)
