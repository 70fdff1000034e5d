"""The picture of what inference.py has measured: other runtimes' times in times of weft's, a group for each network.

Drawn by matplotlib, which nothing else here needs: two SVGs, for pages that are light and for dark ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference_table import RUNTIMES, TITLES, chosen, headline, machine, runtimes

INK = {"inference": "#1f2328", "inference-dark": "#e6edf3"}  # of text, by file; the page's own ground shows through
FAINT = {"inference": "#818b98", "inference-dark": "#7d8590"}
COLORS = {  # told apart in both, by the colour-blind too; and by shape
    "tensorflow": ("#c2570c", "#f0883e", "o"), "onnxruntime": ("#0969da", "#58a6ff", "s"),
    "openvino": ("#8250df", "#bc8cff", "D"),
}
STEP = 0.24  # between the runtimes of a network, where networks are 1 apart
MARKS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)  # on the axis, which is logarithmic


def draw(results: Mapping[str, Any], folder: Path, suffix: str = ".svg") -> None:
    """Write inference.svg and inference-dark.svg: batch and threads that the README shows. Nothing without peers."""
    import matplotlib as mpl

    batch, threads = headline(results)
    rows = chosen(results, batch, threads)
    if len(runtimes(rows)) < 2:
        return
    mpl.use("Agg")
    settings = {"svg.hashsalt": "weft", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 11}
    for dark, name in enumerate(INK):
        with mpl.rc_context(settings):
            figure = _figure(rows, name, bool(dark))
            figure.text(0.01, 0.985, f"Time of one run, in times of weft's: batch {batch}, {threads} "
                        f"thread{'' if threads == 1 else 's'}, float32", va="top", weight="bold", color=INK[name])
            figure.text(0.01, 0.945, machine(results), va="top", size=9, color=FAINT[name])
            metadata = {"Date": None} if suffix == ".svg" else None
            figure.savefig(folder / (name + suffix), transparent=True, metadata=metadata)


def _figure(rows: Sequence[Any], name: str, dark: bool) -> Any:
    from matplotlib.figure import Figure

    there = runtimes(rows)[1:]
    height = 1.6 + len(rows) * (0.25 + 0.24 * len(there))
    figure = Figure(figsize=(9, height))
    axes = figure.add_axes((0.27, 0.75 / height, 0.7, 1 - 1.75 / height))
    for place, row in enumerate(rows):
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color=FAINT[name], alpha=0.09, linewidth=0)
        for number, runtime in enumerate(r for r in there if r in row["runtimes"]):
            _mark(axes, row["runtimes"][runtime], place + (number - (len(there) - 1) / 2) * STEP,
                  COLORS[runtime][dark], COLORS[runtime][2], RUNTIMES[runtime] if not place else None, INK[name])
    _dress(axes, rows, name)
    return figure


def _mark(axes: Any, found: Mapping[str, Any], height: float, color: str, shape: str, label: str | None,
          ink: str) -> None:
    """How many times weft's this one's time is, with the least and most of the repeats."""
    times = 1 / found["ratio"]
    axes.plot([1, times], [height, height], color=color, linewidth=2.2, solid_capstyle="butt")
    axes.plot([1 / max(found["ratios"]), 1 / min(found["ratios"])], [height, height], color=color, linewidth=5.5,
              alpha=0.35, solid_capstyle="round")
    axes.plot(times, height, shape, color=color, markersize=6.5, label=label)
    right = times >= 1
    axes.annotate(f"{times:.2f}" if times < 9.95 else f"{times:.0f}", (times, height), (9 if right else -9, -0.5),
                  textcoords="offset points", va="center", ha="left" if right else "right", size=9, color=ink)


def _dress(axes: Any, rows: Sequence[Any], name: str) -> None:
    """Axes, labels, the line of weft's own time."""
    times = [1 / found["ratio"] for row in rows for found in row["runtimes"].values() if "ratio" in found]
    least, most = min(*times, 0.9) / 1.35, max(*times, 1.1) * 1.35
    axes.set_xscale("log")
    axes.set_xlim(least, most)
    axes.set_xticks([mark for mark in MARKS if least <= mark <= most],
                    [f"{mark:g}x" if mark != 1 else "weft" for mark in MARKS if least <= mark <= most])
    axes.minorticks_off()
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [f"{TITLES[r['network']]}\n{r['runtimes']['weft']['median']:.3g} ms"
                                       for r in rows], linespacing=1.25)
    axes.axvline(1, color=INK[name], linewidth=1.3, zorder=0)
    axes.tick_params(length=0, colors=INK[name], pad=6)
    axes.grid(axis="x", color=FAINT[name], alpha=0.3, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.text(0.985, 1.012, "slower than weft →", transform=axes.transAxes, ha="right", va="bottom", size=9,
              color=FAINT[name])
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.45 / len(rows)), ncols=3, frameon=False,
                         labelcolor=INK[name], handletextpad=0.3)
    legend.set_in_layout(False)
