"""The placement in a few lines: the nodes by device and rule, by pack and rule, the packs that lost, and the refusals.

Reasons that differ in names of nodes or in figures alone are one reason: `colocated with 'a'` and `colocated with 'b'`.
A refused candidate is a device, or a device and a pack; its op does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
from typing import Any

from .node_table import choice_of, shown_text, without_folders

MOST_LINES = 200  # of each part, the commonest
_NAMES = re.compile(r"'[^']*'")
_FIGURES = re.compile(r"\b\d[\d.]*(?:e[+-]?\d+)?(?= ?(?:s|ms|us|µs|ns|bytes|kB|MB|GB|%)\b)")

Line = tuple[str, str]


def placement_summary(placement: Mapping[str, Any], names: Container[str] | None = None) -> dict[str, list[list[Any]]]:
    """Return lines as JSON's values: a count of nodes, the device or pack, and the rule or reason. The commonest are
    first. `names`: of the nodes that count, those of the page. A session places nodes that save and restore, too."""
    counts: dict[str, Counter[Line]] = {part: Counter() for part in ("placed", "kernels", "lost", "refused")}
    for name, row in placement.items():
        if names is not None and name not in names:
            continue
        device = "nothing" if row.error is not None or row.device is None else row.device or "the host"
        counts["placed"][device, _general(row.reason if row.error is None else row.error.message)] += 1
        choice, lost = choice_of(placement, row)
        if choice:
            counts["kernels"]["" if row.kernel is None else row.kernel.pack, choice] += 1
        counts["lost"].update(lost)
        counts["refused"].update({(candidate.removesuffix(f".{row.op}"), _general(why))
                                  for candidate, why in row.refused})
    return {part: [[count, shown_text(subject), shown_text(without_folders(why))]
                   for (subject, why), count in counter.most_common(MOST_LINES)] for part, counter in counts.items()}


def _general(reason: str) -> str:
    return _FIGURES.sub("…", _NAMES.sub("'…'", reason))
