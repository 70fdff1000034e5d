"""The plot of inference.py's results: the time of each runtime as a multiple of heald's, grouped by network.

The plugin report draws it, which no other benchmark needs: two SVGs, for light pages and for dark pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference_table import RUNTIMES, TITLES, headline, machine, rows_of_batch, runtimes


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """Write inference.svg and inference-dark.svg, for the README's batch and threads. Without peers, write nothing."""
    from heald_report.palette import DARK, LIGHT
    from heald_report.ratio_plot import RatioRow, ratio_plot_svg

    batch, threads = headline(results)
    rows = rows_of_batch(results, batch, threads)
    others = {name: RUNTIMES[name] for name in runtimes(rows)[1:]}
    if not others:
        return
    drawn = [RatioRow(TITLES[row["network"]], f"{row['runtimes']['heald']['median']:.3g} ms", _multiples(row))
             for row in rows]
    title = f"Time of one run: batch {batch}, {threads} thread{'' if threads == 1 else 's'}, float32"
    note = f"multiples of {RUNTIMES['heald']}'s median time; shorter is faster; {machine(results)}"
    for name, palette in (("inference", LIGHT), ("inference-dark", DARK)):
        (folder / f"{name}.svg").write_text(ratio_plot_svg(drawn, RUNTIMES["heald"], others, title, note, palette))


def _multiples(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the times of the other runtimes as multiples of heald's. The results have heald's parts of theirs."""
    from heald_report.ratio_plot import Multiple

    return {name: Multiple(1 / times["ratio"], 1 / max(times["ratios"]), 1 / min(times["ratios"]))
            for name, times in row["runtimes"].items() if name != "heald"}
