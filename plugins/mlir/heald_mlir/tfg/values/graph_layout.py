"""The fields of a GraphDef around its nodes and functions, where they are not as TensorFlow writes them.

TensorFlow writes nodes, then a library of functions and gradients, then versions. Every other order, and every other
field, is in `_heald.layout`: a list of runs. `["nodes", 2]` stands for the next two nodes, `["functions", 1]` for a
function, `["library", ...]` for a library with runs of its own, `["versions"]` for the versions, `["fields", "..."]`
for fields as bytes. A run of nodes that is the last one takes all that are left.

The reader makes the functions of regions behind all others. Where the file has another order, `_heald.functions` lists
the names of all functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from heald.api import Graph, Node, errors, wire
from heald.graphs.graph import Versions, graphdef
from heald.runtime.values import Buffer

from ... import attributes as a
from ...lexer import escaped_bytes

NODE, LIBRARY, VERSIONS = 1, 2, 4  # fields of GraphDef
FUNCTION, GRADIENT = 1, 2  # fields of FunctionDefLibrary
LAYOUT = "_heald.layout"
FUNCTIONS = "_heald.functions"
T = TypeVar("T")
Run = tuple[Any, ...]


def gradients(graph: Graph) -> dict[str, str]:
    """The name of each function's gradient by the name of the function."""
    return dict(pair for number, raw in (*graph.form.head, *graph.form.tail) if number == LIBRARY
                for _, _, at, end in wire.fields(raw, 0, len(raw)) for pair in library_gradients(raw[at:end]))


def library_gradients(library: Buffer) -> Iterator[tuple[str, str]]:
    """Functions and their gradients in a FunctionDefLibrary."""
    for number, _, at, end in wire.fields(library, 0, len(library)):
        if number == GRADIENT:
            pair = {n: wire.text(library, first, last) for n, _, first, last in wire.fields(library, at, end)
                    if n <= 2}
            yield pair.get(1, ""), pair.get(2, "")


def layout_text(graph: Graph) -> str:
    """The text of `_heald.layout`; empty for the usual layout."""
    runs = layout(graph)
    usual = usual_layout(len(graph.nodes), len(graph.functions), gradients(graph), graph.functions)
    return "" if merge_runs(runs) == merge_runs(usual) else _item_text(runs)


def functions_text(graph: Graph, in_reading_order: Sequence[str]) -> str:
    """The text of `_heald.functions`; empty where the reader makes the functions in the order of the graph."""
    order = [*graph.functions]
    return "" if order == in_reading_order else _item_text(order)


def order_functions(functions: Mapping[str, T], attribute: a.Attribute | None) -> dict[str, T]:
    """Functions by name in the order of the attribute. They keep their own where the text was edited since."""
    items = attribute.items if isinstance(attribute, a.ArrayAttr) else ()
    names = [item.value for item in items if isinstance(item, a.StringAttr)]
    return {name: functions[name] for name in names} if sorted(names) == sorted(functions) else dict(functions)


def layout(graph: Graph) -> list[Run]:
    """The runs of a graph's file, or of the file that it would be."""
    raw = graph.form.unedited_file
    if raw is None:
        raw = graphdef.dumps(graph.with_nodes([Node("_", "_")] if graph.nodes else []))
    runs: list[Run] = []
    for number, raw_field, value in _fields(raw):
        if number == NODE:
            runs.append(("nodes", 1))
        elif number == LIBRARY:
            runs.append(("library", *_library(value)))
        elif number == VERSIONS and bytes(value) == versions_bytes(graph.versions):
            runs.append(("versions",))
        else:
            runs.append(("fields", bytes(raw_field)))
    if graph.form.unedited_file is None:
        runs = [("nodes", len(graph.nodes)) if run[0] == "nodes" else run for run in runs]
    return list(merge_runs(runs))


def _library(raw: Buffer) -> list[Run]:
    runs = [("functions", 1) if number == FUNCTION else ("fields", bytes(raw_field))
            for number, raw_field, _ in _fields(raw)]
    return list(merge_runs(runs))


def _fields(raw: Buffer) -> Iterator[tuple[int, Buffer, Buffer]]:
    """Number, whole bytes and value of each field."""
    before = 0
    for number, _, at, end in wire.fields(raw, 0, len(raw)):
        yield number, raw[before:end], raw[at:end]
        before = end


def merge_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs without neighbours of one kind."""
    out: list[Run] = []
    for run in runs:
        if run[0] == "library":
            run = ("library", *merge_runs(run[1:]))
        if out and out[-1][0] == run[0] and run[0] in ("nodes", "functions", "fields"):
            out[-1] = (run[0], out[-1][1] + run[1])
        else:
            out.append(run)
    return tuple(out)


def usual_layout(nodes: int, functions: int, gradients: Mapping[str, str], order: Iterable[str]) -> list[Run]:
    """The layout that TensorFlow writes. `gradients`: by function. `order`: the names of the functions."""
    entries = b"".join([wire.put_bytes(GRADIENT, wire.put_bytes(1, name) + wire.put_bytes(2, gradients[name]))
                        for name in order if name in gradients])
    library: list[Run] = [("functions", functions)] if functions else []
    if entries:
        library.append(("fields", entries))
    runs: list[Run] = [("nodes", nodes)] if nodes else []
    return [*runs, *([("library", *library)] if library else []), ("versions",)]


def versions_bytes(versions: Versions) -> bytes:
    """The VersionDef of versions, as TensorFlow writes it."""
    bad = b"".join(map(wire.put_varint, versions.bad_consumers))
    return b"".join((wire.put_integer(1, versions.producer) if versions.producer else b"",
                     wire.put_integer(2, versions.min_consumer) if versions.min_consumer else b"",
                     wire.put_bytes(3, bad) if bad else b""))


def _item_text(value: Any) -> str:
    if isinstance(value, bytes | str):
        return f'"{escaped_bytes(value.encode() if isinstance(value, str) else value)}"'
    return str(value) if isinstance(value, int) else f"[{', '.join(map(_item_text, value))}]"


def assemble_graph_def(runs: Sequence[Run], nodes: list[list[Buffer]], functions: list[list[Buffer]],
                       versions: Versions) -> list[Buffer]:
    """The bytes of a GraphDef. `nodes`, `functions`: their messages."""
    out: list[Buffer] = []
    left, library_left = iter(nodes), iter(functions)
    last = max((i for i, run in enumerate(runs) if run[0] == "nodes"), default=-1)
    for index, run in enumerate(runs):
        if run[0] == "nodes":
            count = len(nodes) if index == last else run[1]
            for _, buffers in zip(range(count), left, strict=False):
                out += message(NODE, buffers)
        elif run[0] == "library":
            out += message(LIBRARY, _assemble_library(run[1:], library_left, len(functions)))
        elif run[0] == "versions":
            out.append(wire.put_bytes(VERSIONS, versions_bytes(versions)))
        else:
            out.append(run[1])
    return out


def _assemble_library(runs: Sequence[Run], left: Iterator[list[Buffer]], largest_count: int) -> list[Buffer]:
    out: list[Buffer] = []
    last = max((i for i, run in enumerate(runs) if run[0] == "functions"), default=-1)
    for index, run in enumerate(runs):
        if run[0] == "functions":
            for _, buffers in zip(range(largest_count if index == last else run[1]), left, strict=False):
                out += message(FUNCTION, buffers)
        else:
            out.append(run[1])
    return out


def message(number: int, buffers: Sequence[Buffer]) -> list[Buffer]:
    """A field that holds a message, in buffers."""
    return [wire.put_varint(number << 3 | wire.BYTES) + wire.put_varint(sum(map(len, buffers))), *buffers]


class LayoutError(Exception):
    """A kept layout does not fit the text any more."""


def read_layout(attribute: a.Attribute, usual: Sequence[Run], versions: Versions, gradients: Mapping[str, str],
                functions: Sequence[str]) -> list[Run]:
    """The runs of `_heald.layout`. `gradients`: by function, as the text has them. `functions`: the names of the text's
    functions.

    Raises LayoutError where the layout says something else than the text, or nothing.
    """
    runs = [_run(item, "nodes") for item in _items(attribute)]
    field_bytes = b"".join([run[1] for run in runs if run[0] == "fields"])
    kinds = [run[0] for run in runs]
    for run in usual:
        if run[0] not in kinds and run[0] in ("nodes", "library"):
            raise LayoutError
    gradient_bytes = b"".join([inner[1] for run in runs if run[0] == "library" for inner in run[1:]
                               if inner[0] == "fields"])
    try:
        layout_gradients = dict(library_gradients(gradient_bytes))
        if {name: layout_gradients[name] for name in functions if name in layout_gradients} != dict(gradients):
            raise LayoutError
        version_bytes = wire.put_bytes(VERSIONS, versions_bytes(versions)) if "versions" in kinds else b""
        fields_graph = graphdef.read(memoryview(version_bytes + field_bytes))
    except errors.HealdError:
        raise LayoutError from None
    if fields_graph.versions != versions or fields_graph.nodes or fields_graph.functions:
        raise LayoutError
    return runs


def _items(attribute: a.Attribute) -> tuple[a.Attribute, ...]:
    if not isinstance(attribute, a.ArrayAttr):
        raise LayoutError
    return attribute.items


def _run(item: a.Attribute, counted: str) -> Run:
    """A run from a list whose first item is its kind."""
    items = _items(item)
    kind = items[0].value if items and isinstance(items[0], a.StringAttr) else ""
    if kind == "library" and counted == "nodes":
        return ("library", *[_run(inner, "functions") for inner in items[1:]])
    if kind == "versions" and counted == "nodes" and len(items) == 1:
        return ("versions",)
    value = items[1] if len(items) == 2 else None
    if kind == counted and isinstance(value, a.IntegerAttr):
        return (kind, value.value)
    if kind == "fields" and isinstance(value, a.StringAttr):
        return ("fields", value.value.encode("utf-8", "surrogateescape"))
    raise LayoutError
