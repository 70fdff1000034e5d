"""The binary form of GraphDef: from the bytes to a graph, and back. Unedited parts keep their bytes."""

from __future__ import annotations

from typing import TypeVar

from ...runtime.support.mapped_file import check_unchanged, lasting_bytes
from ...runtime.values import wire
from ...runtime.values.wire import Buffer
from .attr_value import AttrSource
from .function import Function, read_function
from .graph_base import FileForm, GraphBase, Versions, functions_by_name
from .node import Node, by_name, read_node

NODE, LIBRARY, VERSIONS = 1, 2, 4  # fields of GraphDef
_FUNCTION = 1  # field of FunctionDefLibrary
_PRODUCER, _MIN_CONSUMER, _BAD_CONSUMERS = 1, 2, 3  # fields of VersionDef

G = TypeVar("G", bound=GraphBase)


def read_binary(view: memoryview, graph_class: type[G]) -> G:
    """The graph in a binary GraphDef, not verified. Raises DataLoss, InvalidArgument."""
    source = AttrSource(view)
    nodes: list[Node] = []
    functions: list[Function] = []
    head: list[tuple[int, Buffer]] = []
    tail: list[tuple[int, Buffer]] = []
    begin = 0
    for number, kind, at, end in wire.fields(view, 0, len(view)):
        if number in (NODE, LIBRARY, VERSIONS):
            wire.expect(kind, wire.BYTES, at, "a field of a GraphDef")
        if number == NODE:
            nodes.append(read_node(source, at, end, 1))
        else:
            (tail if nodes else head).append((number, lasting_bytes(view, begin, end)))
            if number == LIBRARY:
                functions += _read_library(source, at, end)
        begin = end
    versions = _read_versions(_merged_message((*head, *tail), VERSIONS))
    form = FileForm(tuple(head), tuple(tail), view)
    return graph_class.read(by_name(nodes), functions_by_name(functions), versions, form)


def _read_library(source: AttrSource, start: int, stop: int) -> list[Function]:
    functions = []
    for number, kind, at, end in wire.fields(source.view, start, stop):
        if number == _FUNCTION:
            wire.expect(kind, wire.BYTES, at, "a function")
            functions.append(read_function(source, at, end, 2))
    return functions


def _int32(value: int) -> int:
    """The lower 32 bits of a varint, as protobuf reads a field of this type."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def _read_versions(raw: Buffer) -> Versions:
    single = {_PRODUCER: 0, _MIN_CONSUMER: 0}
    bad: list[int] = []
    for number, kind, at, end in wire.fields(raw, 0, len(raw)):
        if number in single:
            wire.expect(kind, wire.VARINT, at, "a version")
            single[number] = _int32(wire.integer(raw, at, end))
        elif number == _BAD_CONSUMERS:
            bad += map(_int32, wire.integers(raw, kind, at, end, "bad_consumers"))
    return Versions(single[_PRODUCER], single[_MIN_CONSUMER], tuple(bad))


def _merged_message(raw_fields: tuple[tuple[int, Buffer], ...], number: int) -> Buffer:
    """The message that is spread over all fields of `number`. `raw_fields` has fields with their tags."""
    fields = [raw for n, raw in raw_fields if n == number]
    return b"".join(raw[at:end] for raw in fields for _, _, at, end in wire.fields(raw, 0, len(raw)))


def binary_parts(graph: GraphBase) -> list[Buffer]:
    """The bytes of a GraphDef, in parts: unedited ones are views of the file that they were read from."""
    form = graph.form
    check_unchanged((form.unedited_file, *(raw for _, raw in (*form.head, *form.tail))))
    if form.unedited_file is not None:
        return [form.unedited_file]
    new = {}
    if "functions" in form.touched:
        new[LIBRARY] = _library_field(graph)
    if "versions" in form.touched:
        new[VERSIONS] = _versions_field(graph)
    out: list[Buffer] = []
    for number, raw in form.head:
        out.append(new.pop(number, b"") if number in _rewritten_fields(form) else raw)
    for node in graph:
        raw = node.raw
        out += (b"\n" + wire.put_varint(len(raw)), raw)
    for number, raw in form.tail:
        out.append(new.pop(number, b"") if number in _rewritten_fields(form) else raw)
    return [*out, *new.values()]


def _rewritten_fields(form: FileForm) -> tuple[int, ...]:
    return tuple(n for n, what in ((LIBRARY, "functions"), (VERSIONS, "versions")) if what in form.touched)


def _library_field(graph: GraphBase) -> bytes:
    functions = b"".join(wire.put_bytes(_FUNCTION, f.raw) for f in graph.functions.values())
    base = _merged_message((*graph.form.head, *graph.form.tail), LIBRARY)
    raw = wire.splice(base, {(_FUNCTION, ""): functions})
    return wire.put_bytes(LIBRARY, raw) if raw else b""


def _versions_field(graph: GraphBase) -> bytes:
    versions = graph.versions
    single = {_PRODUCER: versions.producer, _MIN_CONSUMER: versions.min_consumer}
    new = {(n, ""): wire.put_integer(n, value) if value else b"" for n, value in single.items()}
    bad = b"".join(map(wire.put_varint, versions.bad_consumers))
    new[_BAD_CONSUMERS, ""] = wire.put_bytes(_BAD_CONSUMERS, bad) if bad else b""
    raw = wire.splice(_merged_message((*graph.form.head, *graph.form.tail), VERSIONS), new)
    return wire.put_bytes(VERSIONS, raw) if raw else b""
