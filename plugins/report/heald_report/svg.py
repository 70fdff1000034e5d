"""A picture as an SVG of its own: for files and notebooks, where no script runs.

Colours are those of devices. Attributes state every colour, so the picture looks the same in every program; it has a
ground of its own, for pages of any colour. Its palette is for light pages or for dark pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from .node_table import NodeTable, TextPool, bodies_of
from .palette import LIGHT, Palette
from .pictures import BACKWARDS, CROSSING, NODE, SCOPE, SOURCE_PORT, Box, DrawnEdge, Gallery, Picture, memories_of
from .svg_text import arrow, svg_document, text_line

if TYPE_CHECKING:
    from heald import Model

ASIDE = 6.0  # of an edge of copies beside the edge of the tensors that stay


def model_svg(model: Model, palette: Palette = LIGHT) -> str:
    """Return the picture of the model's graph."""
    table, pool = NodeTable(bodies_of(model.graph)), TextPool()
    columns = table.columns(pool, model.placement())
    gallery = Gallery(table, memories_of(columns["device"], pool.texts))
    number = gallery.first_picture()
    painter = _Painter(gallery, columns, pool.texts, palette)
    return svg_document(*gallery.pictures[number].size, "".join(painter.paint(number)), palette.card)


class _Painter:
    def __init__(self, gallery: Gallery, columns: Mapping[str, Sequence[Any]], texts: Sequence[str],
                 palette: Palette) -> None:
        self._palette = palette
        self._gallery, self._columns, self._texts = gallery, columns, texts
        devices = Counter(texts[number] for number in columns["device"] if ":" in texts[number])
        self._fills = {device: palette.fills[index % len(palette.fills)]
                       for index, (device, _) in enumerate(devices.most_common())}
        self._device_of_picture = self._devices_by_picture()

    def paint(self, number: int) -> Iterator[str]:
        picture = self._gallery.pictures[number]
        for edge in picture.edges:
            yield self._edge(picture, edge)
        for box, (x, y) in zip(picture.boxes, picture.corners, strict=True):
            yield f'<g transform="translate({x:.0f} {y:.0f})">{self._box(box)}'
            for inner in box.inner:
                width, height = self._gallery.pictures[inner.picture].size
                yield (f'<g transform="translate({inner.left:.0f} {inner.top:.0f})"><rect width="{width:.0f}" '
                       f'height="{height:.0f}" rx="4" fill="{self._palette.card}" stroke="{self._palette.edge}"/>')
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
                f'rx="{9 if box.kind == SCOPE else 5}" fill={quoteattr(self._fill(box))} '
                f'stroke="{self._palette.edge}"{dashes}/>'
                f"{text_line(width / 2, middle, label, self._palette.text)}"
                f"{text_line(width / 2, middle + 15, second, self._palette.faint) if second else ''}")

    def _second_line(self, box: Box) -> tuple[str, str]:
        """Return the second line of a box, and its title."""
        if box.kind == NODE:
            return self._texts[self._columns["op"][box.ref]], str(self._columns["name"][box.ref])
        if box.kind == SCOPE:
            return "scope", self._gallery.pictures[box.ref].scope
        return "", ""

    def _fill(self, box: Box) -> str:
        if box.kind not in (NODE, SCOPE):
            return "none"
        device = (self._texts[self._columns["device"][box.ref]] if box.kind == NODE
                  else self._device_of_picture.get(box.ref, ""))
        return self._fills.get(device, self._palette.head)

    def _devices_by_picture(self) -> dict[int, str]:
        """Return the commonest device of the nodes below each picture."""
        counts: dict[int, Counter[str]] = {}
        for node, (picture, _) in self._gallery.place_of_node.items():
            device = self._texts[self._columns["device"][node]]
            while picture >= 0 and device in self._fills:
                counts.setdefault(picture, Counter())[device] += 1
                picture = self._gallery.pictures[picture].parent
        return {picture: counter.most_common(1)[0][0] for picture, counter in counts.items()}

    def _edge(self, picture: Picture, edge: DrawnEdge) -> str:
        boxes, corners = picture.boxes, picture.corners
        (x0, y0), (x1, y1) = corners[edge.start], corners[edge.end]
        (w0, h0), (w1, h1) = boxes[edge.start].size, boxes[edge.end].size
        is_pair = bool(edge.copies) and any(other.copies == () and other[:2] == edge[:2] for other in picture.edges)
        aside = ASIDE if is_pair else 0.0
        leads_down = y0 + h0 <= y1
        start = (x0 + w0 / 2 + aside, y0 + h0 if leads_down else y0)
        end = (x1 + w1 / 2 + aside, y1 if leads_down else y1 + h1)
        stroke, width = (self._palette.copy, 2.2) if edge.flags & CROSSING else (self._palette.edge, 1.1)
        return arrow([start, *edge.bends, end], stroke, width, dashes="5 4" if edge.flags & BACKWARDS else "")
