"""A plot of multiples: for each row a bar of the measured thing, and a bar for each of the others it is compared with.

The bar of the measured thing has length 1. A bar of another thing is as long as its multiple, from zero on, so lengths
are proportions. A bar beyond `LONGEST_MULTIPLE` is cut, with a gap near its end, and its label states the multiple.
A thin line spans the repeats of the measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple
from xml.sax.saxutils import escape

from .palette import Palette
from .svg_text import bar, svg_document, text_line

WIDTH, LEFT, RIGHT, HEAD, FOOT = 860.0, 168.0, 76.0, 104.0, 34.0
BAR, GAP = 11.0, 2.5  # the height of a bar, and the room between bars
ROW_GAP = 16.0
LONGEST_MULTIPLE = 5
CHARACTER = 7.1  # the width of a letter of a legend
BREAK = 14.0  # from the end of a cut bar to its gap


class Multiple(NamedTuple):
    """A multiple, with the least and the largest of its repeats."""

    value: float
    least: float
    largest: float


class RatioRow(NamedTuple):
    """`figure`: the size of the measured thing, such as `1.8 ms`. `multiples`: by key of the other things."""

    name: str
    figure: str
    multiples: Mapping[str, Multiple]


def ratio_plot_svg(rows: Sequence[RatioRow], measured: str, others: Mapping[str, str], title: str, note: str,
                   palette: Palette) -> str:
    """Return the plot. `measured`: the name of the thing of length 1. `others`: names of the other things by key."""
    plot = _RatioPlot(rows, others, palette)
    return svg_document(WIDTH, plot.bottom + FOOT, "".join([
        f"<title>{escape(title)}</title>",
        text_line(12, 24, title, palette.text, "start", font_size="17", font_weight="600"),
        text_line(12, 45, note, palette.faint, "start"), *_legend([measured, *others.values()], palette),
        *plot.axis(), *plot.rows()]))


class _RatioPlot:
    def __init__(self, rows: Sequence[RatioRow], others: Mapping[str, str], palette: Palette) -> None:
        self._rows, self._palette = rows, palette
        self._colours = dict(zip(others, palette.series, strict=False))
        largest = max((multiple.value for row in rows for multiple in row.multiples.values()), default=1.0)
        self._longest = min(LONGEST_MULTIPLE, max(2, ceil(largest)))
        self._unit = (WIDTH - LEFT - RIGHT) / self._longest
        self.bottom = HEAD + sum(map(_height, rows))

    def axis(self) -> Iterator[str]:
        """Yield a line for each whole multiple. The line of the measured thing is the strongest."""
        for multiple in range(self._longest + 1):
            x = LEFT + multiple * self._unit
            colour, width = (self._palette.text, 1.4) if multiple == 1 else (self._palette.line, 1)
            yield f'<path d="M{x:.1f} {HEAD - 8:.0f}V{self.bottom:.0f}" stroke="{colour}" stroke-width="{width}"/>'
            yield text_line(x, self.bottom + 18, f"{multiple}x" if multiple else "0", self._palette.faint)

    def rows(self) -> Iterator[str]:
        top = HEAD
        for row in self._rows:
            yield text_line(LEFT - 12, top + (_height(row) - ROW_GAP) / 2 + 4, row.name, self._palette.text, "end")
            yield bar(LEFT, top, self._unit, BAR, self._palette.text)
            yield self._label(self._unit, top, row.figure, is_bold=True)
            for number, (key, colour) in enumerate((k, c) for k, c in self._colours.items() if k in row.multiples):
                yield from self._bar(row.multiples[key], top + (number + 1) * (BAR + GAP), colour)
            top += _height(row)

    def _bar(self, multiple: Multiple, top: float, colour: str) -> Iterator[str]:
        length = min(multiple.value, self._longest) * self._unit
        if multiple.value > self._longest:
            yield bar(LEFT, top, length - BREAK, BAR, colour)
            yield bar(LEFT + length - BREAK + 4, top, BREAK - 4, BAR, colour)
        else:
            yield bar(LEFT, top, length, BAR, colour)
            ends = [LEFT + min(end, self._longest) * self._unit for end in (multiple.least, multiple.largest)]
            yield bar(ends[0], top + BAR / 2 - 0.75, ends[1] - ends[0], 1.5, self._palette.text)
            length = max(length, ends[1] - LEFT)
        yield self._label(length, top, _multiple_text(multiple.value))

    def _label(self, length: float, top: float, text: str, *, is_bold: bool = False) -> str:
        return text_line(LEFT + length + 6, top + BAR - 1.5, text, self._palette.text, "start", font_size="11",
                         **{"font_weight": "600"} if is_bold else {})


def _legend(names: Sequence[str], palette: Palette) -> Iterator[str]:
    x = 12.0
    for name, colour in zip(names, (palette.text, *palette.series), strict=False):
        yield bar(x, 62, 12, 12, colour)
        yield text_line(x + 18, 72.5, name, palette.text, "start")
        x += 18 + (len(name) + 3) * CHARACTER


def _height(row: RatioRow) -> float:
    return (1 + len(row.multiples)) * (BAR + GAP) + ROW_GAP


def _multiple_text(value: float) -> str:
    return f"{value:.2f}x" if value < 9.95 else f"{value:.0f}x"
