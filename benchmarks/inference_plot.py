"""The plot of inference.py's results: the times of other runtimes as multiples of heald's, grouped by network.

matplotlib draws it, which no other benchmark needs: two SVGs, for light pages and for dark pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference_table import RUNTIMES, TITLES, headline, machine, rows_of_batch, runtimes

INK = {"inference": "#1f2328", "inference-dark": "#e6edf3"}  # of text, by file; the page's own ground shows through
FAINT = {"inference": "#818b98", "inference-dark": "#7d8590"}
COLORS = {  # distinct on both pages, for the colour-blind too; shapes differ as well
    "tensorflow": ("#c2570c", "#f0883e", "o"), "onnxruntime": ("#0969da", "#58a6ff", "s"),
    "openvino": ("#8250df", "#bc8cff", "D"),
}
STEP = 0.24  # between the runtimes of a network, where networks are 1 apart
WIDTH, LEFT, HEAD, FOOT = 8.6, 2.05, 1.2, 0.4  # inches
MARKS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)  # on the axis, which is logarithmic


def draw(results: Mapping[str, Any], folder: Path, suffix: str = ".svg") -> None:
    """Write inference.svg and inference-dark.svg, for the README's batch and threads. Without peers, write nothing."""
    import matplotlib as mpl

    batch, threads = headline(results)
    rows = rows_of_batch(results, batch, threads)
    if len(runtimes(rows)) < 2:
        return
    title = f"Time of one run: batch {batch}, {threads} thread{'' if threads == 1 else 's'}, float32"
    with mpl.rc_context({"svg.hashsalt": "heald", "font.family": "DejaVu Sans", "font.size": 10.5}):
        for dark, name in enumerate(INK):
            figure = _figure(rows, name, bool(dark))
            top = figure.get_figheight()
            for text, below, style in (
                (title, 0.12, {"weight": "bold", "size": 13, "color": INK[name]}),
                (f"{machine(results)}; milliseconds are heald's median", 0.42, {"size": 9, "color": FAINT[name]}),
            ):
                figure.text(0.012, 1 - below / top, text, va="top", **style)
            figure.savefig(folder / (name + suffix), transparent=True,
                           metadata={"Date": None} if suffix == ".svg" else None)


def _figure(rows: Sequence[Any], name: str, dark: bool) -> Any:
    from matplotlib.figure import Figure

    there = runtimes(rows)[1:]
    body = len(rows) * (0.2 + 0.17 * len(there))  # inches, as all here
    height = body + HEAD + FOOT
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((LEFT / WIDTH, FOOT / height, 1 - (LEFT + 0.2) / WIDTH, body / height))
    for y, row in enumerate(rows):
        if y % 2:
            axes.axhspan(y - 0.5, y + 0.5, color=FAINT[name], alpha=0.09, linewidth=0)
        for number, runtime in enumerate(r for r in there if r in row["runtimes"]):
            _mark(axes, row["runtimes"][runtime], y + (number - (len(there) - 1) / 2) * STEP, runtime, dark,
                  INK[name])
    _dress(axes, rows, name)
    for runtime in there:
        axes.plot([], [], COLORS[runtime][2], color=COLORS[runtime][dark], markersize=7, label=RUNTIMES[runtime])
    figure.legend(loc="upper left", bbox_to_anchor=(0.0, 1 - 0.6 / height), ncols=len(there), frameon=False,
                  labelcolor=INK[name], handletextpad=0.1, columnspacing=1.6)
    return figure


def _mark(axes: Any, times_of_runtime: Mapping[str, Any], height: float, runtime: str, dark: bool, ink: str) -> None:
    """Mark a runtime's time as a multiple of heald's. A line behind the mark spans the repeats."""
    times, least, highest = (1 / ratio for ratio in (times_of_runtime["ratio"], max(times_of_runtime["ratios"]),
                                                     min(times_of_runtime["ratios"])))
    color = COLORS[runtime][dark]
    axes.plot([1, times], [height, height], color=color, linewidth=2.2, solid_capstyle="butt")
    axes.plot([least, highest], [height, height], color=color, linewidth=6, alpha=0.35, solid_capstyle="round")
    axes.plot(times, height, COLORS[runtime][2], color=color, markersize=6.5)
    right = times >= 1
    axes.annotate(f"{times:.2f}x" if times < 9.95 else f"{times:.0f}x", (highest if right else least, height),
                  (9 if right else -9, -0.5), textcoords="offset points", va="center",
                  ha="left" if right else "right", size=9, color=ink)


def _dress(axes: Any, rows: Sequence[Any], name: str) -> None:
    """Axes, names, and the line of heald's own time."""
    times = [1 / ratio for row in rows for runtime in row["runtimes"].values() for ratio in runtime.get("ratios", ())]
    least, highest = min(*times, 0.9) / 1.5, max(*times, 1.1) * 1.5
    marks = [mark for mark in MARKS if least <= mark <= highest]
    axes.set_xscale("log")
    axes.set_xlim(least, highest)
    axes.set_xticks(marks, [f"{mark:g}x" if mark != 1 else "heald" for mark in marks])
    axes.minorticks_off()
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks([])
    for height, row in enumerate(rows):
        for text, up, size, color in ((TITLES[row["network"]], 2, 10.5, INK[name]),
                                      (f"{row['runtimes']['heald']['median']:.3g} ms", -3, 9, FAINT[name])):
            axes.annotate(text, (0, height), (-8, up), xycoords=axes.get_yaxis_transform(), size=size, color=color,
                          textcoords="offset points", ha="right", va="bottom" if up > 0 else "top")
    axes.axvline(1, color=INK[name], linewidth=1.4, zorder=0)
    axes.tick_params(length=0, colors=INK[name], pad=6)
    axes.grid(axis="x", color=FAINT[name], alpha=0.3, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    for text, right in (("slower than heald →", True), ("← faster", False)):
        axes.annotate(text, (1, 1), (8 if right else -8, 4), xycoords=axes.get_xaxis_transform(), size=9,
                      textcoords="offset points", ha="left" if right else "right", va="bottom", color=FAINT[name])
