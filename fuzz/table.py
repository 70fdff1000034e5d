"""The table of docs/fuzzing.md: how many mutants of each target had which outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tabulate import tabulate

from . import state
from .outcomes import FAILURES, RESULT
from .state import State
from .targets import TARGETS

_HEAD = ("target", "mutants", "to a kernel")  # columns before the outcomes
BEGIN, END = "<!-- fuzz: made by python -m fuzz table -->", "<!-- end of fuzz -->"


def load_states(folder: Path) -> list[State]:
    """The states in a folder."""
    return [state.load(path) for path in sorted(folder.glob("*.json"))]


class Row(NamedTuple):
    """A row: the mutants of a target by outcome, and the share of them in which a kernel ran, empty where it was not
    counted."""

    counts: Counter[str]
    share: str = ""


def markdown(states: Iterable[State], rows_to_keep: Mapping[str, Row] = MappingProxyType({})) -> str:
    """A row for each target, all seeds together: mutants, the share in which a kernel ran, results, each class of typed
    errors, each kind of failure. `kept`: the rows of targets without a state."""
    rows = {**rows_to_keep, **_rows(states)}
    typed = Counter[str]()
    for row in rows.values():
        typed.update({kind: n for kind, n in row.counts.items() if n and kind not in (RESULT, *FAILURES)})
    kinds = [RESULT, *(kind for kind, _ in typed.most_common()), *FAILURES]
    lines = [[target, f"{rows[target].counts.total():,}", rows[target].share,
              *(f"{rows[target].counts[kind]:,}" for kind in kinds)] for target in TARGETS if target in rows]
    align = ["left"] + ["right"] * (len(kinds) + 2)
    return tabulate(lines, [*_HEAD, *kinds], tablefmt="pipe", disable_numparse=True, colalign=align)


def _rows(states: Iterable[State]) -> dict[str, Row]:
    counts: dict[str, Counter[str]] = {}
    reached: dict[str, Counter[bool]] = {}
    for one in states:
        counts.setdefault(one.target, Counter()).update(one.counts)
        reached.setdefault(one.target, Counter()).update({True: one.reached, False: one.counted - one.reached})
    return {target: Row(counts[target], _share(reached[target])) for target in counts}


def read(text: str) -> dict[str, Row]:
    """The rows of a table that `markdown` wrote, by target."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    rows = {}
    for line in lines[2:]:
        cells = dict(zip(lines[0], line, strict=True))
        target, _, share = (cells.pop(name, "") for name in _HEAD)
        rows[target] = Row(Counter({kind: int(cell.replace(",", "")) for kind, cell in cells.items()}), share)
    return rows


def _share(reached: Counter[bool]) -> str:
    """The share of mutants in which a kernel ran; empty where it was not counted."""
    return f"{reached[True] / reached.total():.0%}" if reached.total() else ""


def renew_table(page: str, states: Iterable[State]) -> str:
    """This text with the table between the two marks made anew; rows of targets without a state stay.

    Raises ValueError where the marks are missing.
    """
    before, begin, after_begin = page.partition(BEGIN)
    old, end, after = after_begin.partition(END)
    if not (begin and end):
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{begin}\n{markdown(states, read(old))}\n{end}{after}"
