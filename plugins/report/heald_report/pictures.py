"""Pictures: the boxes and edges of one scope, with coordinates.

Each scope of each body has a picture. Its boxes are the members of the scope, and ports, which stand for the boxes
outside that its nodes exchange tensors with. A constant has no box of its own where a single member consumes it. A node
that calls functions has their pictures inside its box, as long as the picture stays small.

Boxes are in the order of the graph. An edge against it is laid out backwards and drawn with dashes, as the back edge of
a loop is; scopes that feed each other both ways have such an edge, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .layout import Point, layered_layout
from .node_table import Body, NodeTable, functions_of, shown_text
from .scope_edges import Key, ScopeDraft, Vertex, draft_scopes

MOST_BOXES = 300  # of a picture, those inside its boxes included
MOST_INNER_BOXES = 60  # of the bodies that are drawn inside a node
LONGEST_LABEL = 30
NODE, SCOPE, SOURCE_PORT, TARGET_PORT = range(4)  # kinds of boxes
BACKWARDS, CROSSING = 1, 2  # flags of edges: against the order; from one memory to another
CHARACTER, PADDING, HEIGHT, HEAD, GAP = 7.1, 26.0, 42.0, 46.0, 12.0  # in units of the picture


class Inner(NamedTuple):
    """A picture inside a box, by number, and the place of its left upper corner in the box."""

    picture: int
    left: float
    top: float


class Box(NamedTuple):
    """`ref`: the number of a node or, for a scope, of its picture; -1 for a port that stands for several.
    `folded`: the constants that the box stands for, too."""

    kind: int
    label: str
    ref: int
    size: tuple[float, float]
    folded: tuple[int, ...] = ()
    inner: tuple[Inner, ...] = ()


class DrawnEdge(NamedTuple):
    """`start`, `end`: indices of boxes. `tensors`: the edges between nodes that it stands for. `copies`: the memories
    that an edge of copies leads from and to. Other edges between its boxes have an edge of their own."""

    start: int
    end: int
    tensors: int
    flags: int
    bends: list[Point]
    copies: tuple[tuple[int, int], ...] = ()


class Picture(NamedTuple):
    """`parent`: the number of the enclosing scope's picture; -1 for the root of a body. `total`: boxes, with those
    inside."""

    scope: str
    function: str
    parent: int
    size: tuple[float, float]
    boxes: list[Box]
    corners: list[Point]
    edges: list[DrawnEdge]
    total: int


class Gallery:
    """The pictures of a graph and its functions.

    `place_of_node`: by number of a node, its picture and its box.
    `calls_of_node`: by number of a node, the pictures of the functions that it calls.
    `root`: the picture of the whole graph.
    """

    def __init__(self, table: NodeTable, memories: Sequence[int]) -> None:
        """`memories`: by number of a node, the number of the memory that has its results."""
        self.pictures: list[Picture] = []
        self.place_of_node: dict[int, tuple[int, int]] = {}
        self.calls_of_node: dict[int, list[int]] = {}
        self._table = table
        self._memories = memories
        self._roots: dict[str, int] = {}
        for body in table.bodies:
            self._draw_body(body)
        self.root = self._roots[""]

    def _draw_body(self, body: Body) -> None:
        """Draw a body, whose callees are drawn."""
        start = len(self.pictures)
        for draft in draft_scopes(body.nodes):
            self.pictures.append(_PictureMaker(self, body, draft, start).make())
        self._roots[body.function] = start

    def first_picture(self) -> int:
        """Return the picture to begin with: that of the whole graph, or the scope in it where it has a single one."""
        number = self.root
        while len(scopes := [box.ref for box in self.pictures[number].boxes if box.kind == SCOPE]) == 1:
            number, = scopes
        return number

    def inner_pictures(self, number: int, node: Any, budget: int) -> tuple[list[int], int]:
        """Note the pictures of the functions that a node calls. Return those to draw inside it, and their boxes."""
        roots = [self._roots[name] for name in functions_of(node) if name in self._roots]
        if roots:
            self.calls_of_node[number] = roots
        total = sum(self.pictures[root].total for root in roots)
        return (roots, total) if total <= min(budget, MOST_INNER_BOXES) else ([], 0)

    def memory_of_node(self, body: Body, name: str) -> int:
        return self._memories[self.number_of_node(body, name)]

    def number_of_node(self, body: Body, name: str) -> int:
        return self._table.numbers[body.function, name]


class _PictureMaker:
    """Makes the picture of one scope."""

    def __init__(self, gallery: Gallery, body: Body, draft: ScopeDraft, start: int) -> None:
        """`start`: the number of the picture of the body's root."""
        self._gallery, self._body, self._draft, self._start = gallery, body, draft, start
        self._inner_total = 0

    def make(self) -> Picture:
        draft = self._draft
        vertices: list[Vertex] = [*draft.ports["from"], *draft.members, *draft.ports["to"]]
        budget = MOST_BOXES - len(vertices)
        boxes = [self._port(vertex) if isinstance(vertex, tuple) else self._member(vertex, budget)
                 for vertex in vertices]
        index_of = {vertex: index for index, vertex in enumerate(vertices)}
        edges = {(index_of[a], index_of[b]): pairs for (a, b), pairs in draft.edges.items()}
        layout = layered_layout([box.size for box in boxes], [*dict.fromkeys((min(e), max(e)) for e in edges)])
        for index, box in enumerate(boxes):
            if box.kind in (NODE, SCOPE):
                shown = (*([box.ref] if box.kind == NODE else []), *box.folded)
                self._gallery.place_of_node.update(dict.fromkeys(shown, (len(self._gallery.pictures), index)))
        drawn = [edge for (a, b), pairs in edges.items() for edge in self._drawn_edges(a, b, pairs, (
            layout.bends.get((a, b), []) if a < b else layout.bends.get((b, a), [])[::-1]))]
        parent = draft.parent + self._start if draft.parent >= 0 else -1
        return Picture(draft.scope.name, self._body.function, parent, (layout.width, layout.height), boxes,
                       layout.corners, drawn, len(boxes) + self._inner_total)

    def _member(self, member: str | int, budget: int) -> Box:
        draft = self._draft
        label = draft.labels[member]
        folded = tuple(self._gallery.number_of_node(self._body, name) for name in draft.folded.get(member, ()))
        if isinstance(member, int):
            return _text_box(SCOPE, label.removesuffix("/"), self._start + member, folded)
        number, node = self._gallery.number_of_node(self._body, member), self._body.nodes[member]
        pictures, total = self._gallery.inner_pictures(number, node, budget - self._inner_total)
        self._inner_total += total
        box = _text_box(NODE, label, number, folded, node.op)
        return box if not pictures else self._around(box, pictures)

    def _around(self, box: Box, pictures: Sequence[int]) -> Box:
        """Return the box, so large that the pictures stand in it side by side."""
        inner, left = [], GAP
        for number in pictures:
            inner.append(Inner(number, left, HEAD))
            left += self._gallery.pictures[number].size[0] + GAP
        height = max(self._gallery.pictures[number].size[1] for number in pictures)
        return box._replace(size=(max(box.size[0], left), HEAD + height + GAP), inner=tuple(inner))

    def _port(self, port: tuple[str, Key]) -> Box:
        direction, key = port
        kind = SOURCE_PORT if direction == "from" else TARGET_PORT
        if key is None:
            return _text_box(kind, "others", -1)
        if isinstance(key, str):
            return _text_box(kind, key.rpartition("/")[2], self._gallery.number_of_node(self._body, key))
        return _text_box(kind, self._draft.scope_labels[key].removesuffix("/"), -2 - (self._start + key))

    def _drawn_edges(self, start: int, end: int, pairs: Sequence[tuple[str, str]], bends: list[Point],
                     ) -> Iterator[DrawnEdge]:
        """Yield an edge for the tensors that stay in their memory, and one for those that are copied.

        An edge of control has no tensor to copy."""
        flags = BACKWARDS if start > end else 0
        memories = [(self._gallery.memory_of_node(self._body, source), self._gallery.memory_of_node(self._body, target))
                    for source, target in pairs if self._has_tensor(source, target)]
        copies = [(source, target) for source, target in memories if source != target]
        if len(copies) < len(pairs):
            yield DrawnEdge(start, end, len(pairs) - len(copies), flags, bends)
        if copies:
            yield DrawnEdge(start, end, len(copies), flags | CROSSING, bends, tuple(sorted(set(copies))))

    def _has_tensor(self, source: str, target: str) -> bool:
        return any(tensor.node == source for tensor in self._body.nodes[target].inputs)


def memories_of(devices: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Return a number for the memory of each node: that of its device, one for all devices on host memory."""
    from heald import default_host

    host_devices = {number for number in set(devices)
                    if ":" not in texts[number] or default_host().is_host_visible(texts[number])}
    return [-1 if number in host_devices else number for number in devices]


def _text_box(kind: int, label: str, ref: int, folded: tuple[int, ...] = (), second_line: str = "") -> Box:
    label = short_label(shown_text(label))
    prefix = len("from ") if kind in (SOURCE_PORT, TARGET_PORT) else 0
    characters = max(len(label) + prefix, len(short_label(shown_text(second_line))), 6)
    height = HEIGHT if kind in (NODE, SCOPE) else HEIGHT * 0.6
    return Box(kind, label, ref, (characters * CHARACTER + PADDING, height), folded)


def short_label(text: str) -> str:
    """Return a label that fits a box: the middle of a long one is left out."""
    half = LONGEST_LABEL // 2
    return text if len(text) <= LONGEST_LABEL else f"{text[:half - 1]}…{text[-half:]}"
