"""The nodes of a graph and of its functions, numbered once for all parts of the page.

Texts that many nodes share are kept once, in a pool; a column of a table holds their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.errors import printable

from .call_names import NamedNodes, number_of_call

if TYPE_CHECKING:
    from heald import Graph

_FOLDERS = re.compile(r"(?<![\w/.:])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\":,;()]+[/\\])+")  # of an absolute path
MOST_NAME_CHARACTERS = 400  # of a text on the page; a file may state a name of any length


class Body(NamedTuple):
    """Nodes by name: of the graph itself, whose function is "", or of a function."""

    function: str
    nodes: Mapping[str, Any]


class TextPool:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        return self._numbers.setdefault(shown_text(text), len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return [*self._numbers]


def shown_text(text: str) -> str:
    """Return a text without control characters, cut in the middle when it is too long."""
    text = printable(text)
    half = MOST_NAME_CHARACTERS // 2
    return text if len(text) <= MOST_NAME_CHARACTERS else f"{text[:half]}…{text[-half:]}"


def without_folders(text: str) -> str:
    """Return a text of the runtime without the folders of this machine: of a path the last name stays."""
    return _FOLDERS.sub("", text)


class NodeTable:
    """Numbers of nodes, by function and name."""

    def __init__(self, bodies: list[Body]) -> None:
        self.bodies = bodies
        self.numbers = {(body.function, name): number for number, (body, name) in enumerate(
            (body, name) for body in bodies for name in body.nodes)}
        self._named = NamedNodes(self.numbers, {body.function: body.nodes for body in bodies})
        self._by_name: dict[str, int] = {}
        for (_, name), number in self.numbers.items():
            self._by_name[name] = number  # the graph itself is the last body

    def number_of_name(self, name: str) -> int:
        """Return the node of this name, or of the node under whose name a pass made this one; -1 without either.

        Nodes of the graph itself win over those of functions. The name may be that of a call inside a function or a
        loop (`number_of_call`).
        """
        number = self._by_name.get(name, self._by_name.get(name.rpartition("/")[0], -1))
        return number if number >= 0 else number_of_call(self._named, name)

    def columns(self, pool: TextPool, placement: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the columns of the nodes' table."""
        columns: dict[str, list[Any]] = {key: [] for key in (
            "name", "function", "op", "inputs", "requested", "device", "pack", "reason", "rule", "lost", "refused")}
        for body in self.bodies:
            for name, node in body.nodes.items():
                sources = [self.numbers.get((body.function, source), -1) for source in sources_of(node)]
                row = (shown_text(name), pool.add(body.function), pool.add(node.op),
                       [number for number in sources if number >= 0],
                       *map(pool.add, _placement_texts(placement, name, node)))
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
        return columns


def sources_of(node: Any) -> list[str]:
    """Return the names of the nodes that a node waits for, each once."""
    return [*dict.fromkeys((*(tensor.node for tensor in node.inputs), *node.controls))]


def functions_of(node: Any) -> list[str]:
    """Return the names of the functions that a node's attributes, or the node's op, call."""
    from heald.api import Func

    names = [node.op]
    for value in node.attrs.values():
        values = value if isinstance(value, (list, tuple)) else (value,)
        names += [func.name for func in values if isinstance(func, Func)]
    return names


def bodies_of(graph: Graph) -> list[Body]:
    """Return the bodies of all functions that the graph calls, callees first, and the graph's own nodes."""
    ordered: dict[str, Body] = {}
    stack: list[tuple[str, Iterator[str]]] = [("", _callees(graph, graph.nodes))]
    visited = {""}
    while stack:
        name, callees = stack[-1]
        callee = next((callee for callee in callees if callee not in visited), None)
        if callee is None:
            stack.pop()
            ordered[name] = Body(name, graph.nodes if name == "" else graph.functions[name].nodes)
        else:
            visited.add(callee)
            stack.append((callee, _callees(graph, graph.functions[callee].nodes)))
    return [*ordered.values()]


def _callees(graph: Graph, nodes: Mapping[str, Any]) -> Iterator[str]:
    return (name for node in nodes.values() for name in functions_of(node) if name in graph.functions)


def _placement_texts(placement: Mapping[str, Any], name: str, node: Any) -> tuple[str, ...]:
    """Return requested device, device, pack, reason, rule of the kernel, packs that lost, and refusals."""
    row = placement.get(name)
    if row is None or row.op != node.op:
        return node.device, "", "", "placed when a step needs it", "", "", ""
    refused = _reasons_text(row.refused)
    if row.error is not None:
        return row.requested, "-", "", without_folders(row.error.message), "", "", refused
    device = row.device or ("host" if row.device == "" else "-")
    rule, lost = choice_of(placement, row)
    return (row.requested, device, "" if row.kernel is None else row.kernel.pack, without_folders(row.reason), rule,
            _reasons_text(lost), refused)


def choice_of(placement: Mapping[str, Any], row: Any) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return the rule by which a node's kernel was chosen, and the packs that lost, with reasons."""
    choice = getattr(placement, "choice", None)  # a plain mapping has none
    return ("", ()) if choice is None else choice(row)


def _reasons_text(reasons: Iterable[tuple[str, str]]) -> str:
    return without_folders("; ".join(f"{candidate}: {why}" for candidate, why in reasons))
