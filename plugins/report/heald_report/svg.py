"""A picture as an SVG of its own: for files and notebooks, where no script runs.

Colours are those of devices. Attributes state every colour, so the picture looks the same in every program; it has a
ground of its own, for pages of any colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from .node_table import NodeTable, TextPool, bodies_of
from .pictures import BACKWARDS, CROSSING, NODE, SCOPE, SOURCE_PORT, Box, DrawnEdge, Gallery, Picture, memories_of

if TYPE_CHECKING:
    from heald import Model

FILLS = ("#c9def7", "#f8dfcb", "#e2d3f5", "#cdeedd", "#f9d3df", "#cdeef0", "#f5eccb", "#dcefc9")
PLAIN, EDGE, COPY, TEXT, FAINT = "#f3f4f7", "#8b919c", "#c2570c", "#1a1c20", "#5c626d"

ASIDE = 6.0  # of an edge of copies beside the edge of the tensors that stay


def model_svg(model: Model) -> str:
    """Return the picture of the model's graph."""
    table, pool = NodeTable(bodies_of(model.graph)), TextPool()
    columns = table.columns(pool, model.placement())
    gallery = Gallery(table, memories_of(columns["device"], pool.texts))
    number = gallery.first_picture()
    painter = _Painter(gallery, columns, pool.texts)
    width, height = gallery.pictures[number].size
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="system-ui, sans-serif" font-size="12.5">'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(painter.paint(number))}</svg>\n')


class _Painter:
    def __init__(self, gallery: Gallery, columns: Mapping[str, Sequence[Any]], texts: Sequence[str]) -> None:
        self._gallery, self._columns, self._texts = gallery, columns, texts
        devices = Counter(texts[number] for number in columns["device"] if ":" in texts[number])
        self._fills = {device: FILLS[index % len(FILLS)] for index, (device, _) in enumerate(devices.most_common())}
        self._device_of_picture = self._devices_by_picture()

    def paint(self, number: int) -> Iterator[str]:
        picture = self._gallery.pictures[number]
        for edge in picture.edges:
            yield _edge(picture, edge)
        for box, (x, y) in zip(picture.boxes, picture.corners, strict=True):
            yield f'<g transform="translate({x:.0f} {y:.0f})">{self._box(box)}'
            for inner in box.inner:
                width, height = self._gallery.pictures[inner.picture].size
                yield (f'<g transform="translate({inner.left:.0f} {inner.top:.0f})"><rect width="{width:.0f}" '
                       f'height="{height:.0f}" rx="4" fill="#ffffff" stroke="{EDGE}"/>')
                yield from self.paint(inner.picture)
                yield "</g>"
            yield "</g>"

    def _box(self, box: Box) -> str:
        width, height = box.size
        is_port = box.kind >= SOURCE_PORT
        label = f"{'from' if box.kind == SOURCE_PORT else 'to'} {box.label}" if is_port else box.label
        second, title = self._second_line(box)
        middle = height / 2 + 4.5 if is_port else 18
        dashes = ' stroke-dasharray="3 3"' if is_port else ""
        return (f'<title>{escape(title or label)}</title><rect width="{width:.0f}" height="{height:.0f}" '
                f'rx="{9 if box.kind == SCOPE else 5}" fill={quoteattr(self._fill(box))} stroke="{EDGE}"{dashes}/>'
                f"{_text(width / 2, middle, label, TEXT)}"
                f"{_text(width / 2, middle + 15, second, FAINT) if second else ''}")

    def _second_line(self, box: Box) -> tuple[str, str]:
        """Return the second line of a box, and its title."""
        if box.kind == NODE:
            return self._texts[self._columns["op"][box.ref]], str(self._columns["name"][box.ref])
        if box.kind == SCOPE:
            return "scope", self._gallery.pictures[box.ref].scope
        return "", ""

    def _fill(self, box: Box) -> str:
        if box.kind == NODE:
            return self._fills.get(self._texts[self._columns["device"][box.ref]], PLAIN)
        return self._fills.get(self._device_of_picture.get(box.ref, ""), PLAIN) if box.kind == SCOPE else "none"

    def _devices_by_picture(self) -> dict[int, str]:
        """Return the commonest device of the nodes below each picture."""
        counts: dict[int, Counter[str]] = {}
        for node, (picture, _) in self._gallery.place_of_node.items():
            device = self._texts[self._columns["device"][node]]
            while picture >= 0 and device in self._fills:
                counts.setdefault(picture, Counter())[device] += 1
                picture = self._gallery.pictures[picture].parent
        return {picture: counter.most_common(1)[0][0] for picture, counter in counts.items()}


def _text(x: float, y: float, text: str, fill: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.1f}" text-anchor="middle" fill="{fill}">{escape(text)}</text>'


def _edge(picture: Picture, edge: DrawnEdge) -> str:
    boxes, corners = picture.boxes, picture.corners
    (x0, y0), (x1, y1) = corners[edge.start], corners[edge.end]
    (w0, h0), (w1, h1) = boxes[edge.start].size, boxes[edge.end].size
    is_pair = bool(edge.copies) and any(other.copies == () and other[:2] == edge[:2] for other in picture.edges)
    aside = ASIDE if is_pair else 0.0
    leads_down = y0 + h0 <= y1
    start = (x0 + w0 / 2 + aside, y0 + h0 if leads_down else y0)
    end = (x1 + w1 / 2 + aside, y1 if leads_down else y1 + h1)
    points = [start, *edge.bends, end]
    line = f"M{start[0]:.0f} {start[1]:.0f}"
    for (ax, ay), (bx, by) in pairwise(points):
        half = (by - ay) / 2
        line += f"C{ax:.0f} {ay + half:.0f} {bx:.0f} {by - half:.0f} {bx:.0f} {by:.0f}"
    dashes = ' stroke-dasharray="5 4"' if edge.flags & BACKWARDS else ""
    stroke, width = (COPY, 2.2) if edge.flags & CROSSING else (EDGE, 1.1)
    x, y, tip = *end, -6 if leads_down else 6
    return (f'<path d="{line}" fill="none" stroke="{stroke}" stroke-width="{width}"{dashes}/>'
            f'<path d="M{x:.0f} {y:.0f}l-3.5 {tip}h7z" fill="{stroke}"/>')
