"""The table of docs/fuzzing.md: how many mutants of each target had which outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tabulate import tabulate

from . import state
from .outcomes import FAILURES, RESULT
from .state import State
from .targets import TARGETS

BEGIN, END = "<!-- fuzz: made by python -m fuzz table -->", "<!-- end of fuzz -->"


def found(folder: Path) -> list[State]:
    """The states in a folder."""
    return [state.load(path) for path in sorted(folder.glob("*.json"))]


def markdown(states: Iterable[State]) -> str:
    """A row for each target, all seeds together: mutants, the share in which a kernel ran, results, each class of typed
    errors, each kind of failure."""
    counts: dict[str, Counter[str]] = {}
    reached: dict[str, Counter[bool]] = {}
    for one in states:
        counts.setdefault(one.target, Counter()).update(one.counts)
        reached.setdefault(one.target, Counter()).update({True: one.reached, False: one.counted - one.reached})
    typed = Counter[str]()
    for row in counts.values():
        typed.update({kind: n for kind, n in row.items() if kind not in (RESULT, *FAILURES)})
    kinds = [RESULT, *(kind for kind, _ in typed.most_common()), *FAILURES]
    rows = [[target, f"{counts[target].total():,}", _share(reached[target]),
             *(f"{counts[target][kind]:,}" for kind in kinds)] for target in TARGETS if target in counts]
    align = ["left"] + ["right"] * (len(kinds) + 2)
    head = ["target", "mutants", "to a kernel", *kinds]
    return tabulate(rows, head, tablefmt="pipe", disable_numparse=True, colalign=align)


def _share(reached: Counter[bool]) -> str:
    """The share of mutants in which a kernel ran; empty where it was not counted."""
    return f"{reached[True] / reached.total():.0%}" if reached.total() else ""


def renewed(page: str, states: Iterable[State]) -> str:
    """This text with the table between the two marks made anew. Raises ValueError where they are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{begin}\n{markdown(states)}\n{end}{after}"
