"""A function of a host program as an SVG of its own: calls with the numbers of their steps, registers as edges.

A bar at the left of a box has the colour of the call's stream. A dashed edge leads to a non-strict call, which may
begin without it. A dashed box has values that come later; its second line has the step of their arrival, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .node_table import shown_text
from .palette import Palette
from .pictures import short_label
from .program_record import SOURCE, program_picture, stream_names
from .program_steps import CallTraits, program_steps, traits_of_calls
from .svg_text import arrow, bar, svg_document, text_line

if TYPE_CHECKING:
    from heald.runtime.program import ProgramFunction

STREAM_BAR = 5.0  # the width of the bar of a stream


def program_svg(function: ProgramFunction, devices: tuple[str, ...], palette: Palette) -> str | None:
    """Return the picture, None for a function without calls or with too many."""
    picture = program_picture(function)
    if picture is None:
        return None
    painter = _Painter(function, devices, picture, palette)
    return svg_document(picture["width"], picture["height"], "".join(painter.paint()), palette.card)


class _Painter:
    def __init__(self, function: ProgramFunction, devices: tuple[str, ...], picture: Mapping[str, Any],
                 palette: Palette) -> None:
        self._function, self._picture, self._palette = function, picture, palette
        self._traits = traits_of_calls(function)
        self._when = _step_texts(function, self._traits)
        self._streams = [*stream_names(function, devices)]
        colours = (palette.accent, palette.copy, *palette.series[2:], palette.edge)
        self._colours = {stream: colours[min(number, len(colours) - 1)] for number, stream in enumerate(sorted(
            {*self._streams}, key=lambda stream: (-self._streams.count(stream), stream)))}

    def paint(self) -> Iterator[str]:
        corners = {index: rest for index, *rest in self._picture["boxes"]}
        for start, end, registers, bends in self._picture["edges"]:
            if start in corners:
                (x0, y0, w0, h0), (x1, y1, w1, _) = corners[start], corners[end]
                points = [(x0 + w0 / 2, y0 + h0), *zip(bends[::2], bends[1::2], strict=True), (x1 + w1 / 2, y1)]
                yield arrow(points, self._palette.edge, dashes="5 4" if self._is_loose(end, registers) else "")
        for index, corner in corners.items():
            yield from self._box(index, *corner)

    def _box(self, index: int, x: float, y: float, width: float, height: float) -> Iterator[str]:
        is_call = index != SOURCE
        dashes = ' stroke-dasharray="5 3"' if is_call and self._traits[index].is_asynchronous else ""
        code = self._function.kernels[index].code if is_call else "arguments"
        second = self._when[index] if is_call else str(len(self._function.arg_names))
        yield bar(x, y, width, height, self._palette.head, f'rx="5" stroke="{self._palette.edge}"{dashes}')
        if is_call:
            yield bar(x, y, STREAM_BAR, height, self._colours[self._streams[index]], 'rx="2"')
        yield text_line(x + width / 2, y + 18, short_label(shown_text(code)), self._palette.text)
        yield text_line(x + width / 2, y + 33, second, self._palette.faint, font_size="11")

    def _is_loose(self, index: int, registers: Sequence[int]) -> bool:
        return self._traits[index].is_nonstrict and {*registers} <= {*self._function.kernels[index].args}


def _step_texts(function: ProgramFunction, traits: Sequence[CallTraits]) -> list[str]:
    """Return for each call the number of its step, the registers that it fills, and the step of their arrival."""
    texts = ["never ready"] * len(function.kernels)
    for number, step in enumerate(program_steps(function, traits), 1):
        gives = function.kernels[step.call].gives
        registers = ", ".join(f"%{register}" for register in gives[:1]) + (" …" if len(gives) > 1 else "")
        texts[step.call] = (f"{texts[step.call]}, value at {number}" if step.is_arrival
                            else f"step {number}{': ' if registers else ''}{registers}")
    return texts
