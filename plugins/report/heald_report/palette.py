"""The colours of pictures that are files of their own: one palette for light pages, one for dark pages.

A page takes its colours from style.css, which follows the reader's choice. A picture without a script states them.
`text` to `copy` equal the colours of style.css; a test compares them. `fills` have the hues of colours.js in the same
order. `series` are apart from each other for the colour-blind, too.
"""

from __future__ import annotations

from typing import NamedTuple


class Palette(NamedTuple):
    """`card`: the ground of a picture. `head`: of a box of no colour. `fills`: of boxes, by device."""

    text: str
    faint: str
    card: str
    line: str
    edge: str
    head: str
    accent: str
    copy: str
    fills: tuple[str, ...]
    series: tuple[str, ...]


LIGHT = Palette("#1a1c20", "#5c626d", "#ffffff", "#d9dce2", "#8b919c", "#f3f4f7", "#0969da", "#c2570c",
                ("#c9dff7", "#f7dfc9", "#e2c9f7", "#c9f7e0", "#f7c9d9", "#c9f3f7", "#f7f1c9", "#d9f7c9"),
                ("#c2570c", "#0969da", "#8250df", "#1a7f37"))
DARK = Palette("#e4e6ea", "#9aa1ad", "#1b1e23", "#33373f", "#6b727e", "#23272e", "#58a6ff", "#f0883e",
               ("#244060", "#604024", "#442460", "#246042", "#602438", "#245a60", "#605824", "#386024"),
               ("#f0883e", "#58a6ff", "#bc8cff", "#56d364"))
