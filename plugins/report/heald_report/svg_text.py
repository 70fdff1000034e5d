"""The elements of an SVG as text: the document, a line of text, a rectangle, an arrow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr


def svg_document(width: float, height: float, content: str, ground: str | None = None) -> str:
    """Return the file. `ground`: its colour; None where that of the page shows through."""
    back = f'<rect width="100%" height="100%" fill="{ground}"/>' if ground else ""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="system-ui, sans-serif" font-size="12.5">{back}{content}</svg>\n')


def text_line(x: float, y: float, text: str, fill: str, anchor: str = "middle", **style: str) -> str:
    """Return a line of text. `style`: further attributes, such as font_weight."""
    more = "".join(f" {name.replace('_', '-')}={quoteattr(value)}" for name, value in style.items())
    return f'<text x="{x:.0f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{more}>{escape(text)}</text>'


def bar(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"'
            f"{' ' + more if more else ''}/>")


def arrow(points: Sequence[tuple[float, float]], stroke: str, width: float = 1.1, dashes: str = "") -> str:
    """Return a curve through the points, with a tip at the last one. It leaves and enters its points vertically."""
    (x, y), tip = points[-1], -6 if points[0][1] <= points[-1][1] else 6
    line = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (ax, ay), (bx, by) in pairwise(points):
        half = (by - ay) / 2
        line += f"C{ax:.0f} {ay + half:.0f} {bx:.0f} {by - half:.0f} {bx:.0f} {by:.0f}"
    dashing = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (f'<path d="{line}" fill="none" stroke="{stroke}" stroke-width="{width}"{dashing}/>'
            f'<path d="M{x:.0f} {y:.0f}l-3.5 {tip}h7z" fill="{stroke}"/>')
