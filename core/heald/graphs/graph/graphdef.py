"""GraphDef files. Large binary files are read lazily from a memory map; unedited parts are written back byte for
byte."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import DataLoss, InvalidArgument, boundary
from ...runtime.support import file_kinds, mapped_file
from ...runtime.support.file_path import file_path
from ...runtime.support.input_file import check_file, reading
from ...runtime.support.whole_file import write_whole
from ...runtime.values import wire
from ...runtime.values.wire import Buffer
from . import graphdef_text
from .graph import Graph
from .graphdef_codec import binary_parts, read_binary
from .graphdef_suffixes import TEXT_SUFFIXES
from .verifier import verify

_BYTE_FORMATS = ("b", "B", "c")  # formats of buffers whose elements are bytes


@boundary
def load(
    path: str | os.PathLike[str], *, text: bool | None = None, mmap: bool = True, partial: bool = False
) -> Graph:
    """The graph in a file, verified. Large binary files are memory-mapped: large constants stay views of the file.

    `text`: True for protobuf's text form; None decides by the suffix.
    `mmap`: False reads the whole file, so that later changes of the file have no effect.
    `partial`: True for a part of a graph, whose inputs may be nodes of a session: `Session.extend` verifies it.

    Raises NotFound, PermissionDenied, DataLoss for files that are no GraphDef or end too early, InvalidArgument for
    folders, malformed text and graphs that are not well formed.
    """
    file = file_path(path)
    with reading(file):
        _check_no_folder(file)
        check_file(file)
        check_kind(file)
        if file.suffix.lower() in TEXT_SUFFIXES if text is None else text:
            return loads(graphdef_text.parse(mapped_file.read(file), str(file)), partial=partial)
        return _load_binary(file, mmap, partial)


@boundary
def loads(data: bytes | bytearray | memoryview | str, *, text: bool = False, partial: bool = False) -> Graph:
    """The graph in `data`, verified. Bytes are not copied: nodes are views of them. Arguments and errors as `load`."""
    if isinstance(data, str):
        if not text:
            raise InvalidArgument("a binary GraphDef is bytes, got text", hint="pass text=True for the text form")
        data = wire.utf8(data)
    view = _bytes_of(data)
    if text:
        view = memoryview(graphdef_text.parse(bytes(view), "<text>"))
    graph = read(view)
    if not partial:
        verify(graph)
    return graph


def _bytes_of(data: object) -> memoryview:
    """The bytes of a buffer: read-only, contiguous and in logical order. Raises InvalidArgument for an object without
    bytes."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        raise InvalidArgument(f"a GraphDef is bytes, got {type(data).__name__}",
                              hint="load a file with heald.graphdef.load(path)") from None
    if view.format not in _BYTE_FORMATS:
        raise InvalidArgument(f"a GraphDef is bytes, got a buffer of elements of format '{view.format}'",
                              hint="pass its bytes, such as array.tobytes()")
    if not view.readonly or view.format != "B" or view.ndim != 1 or not view.c_contiguous:
        view = memoryview(bytes(view))
    return view


@boundary
def dump(graph: Graph, path: str | os.PathLike[str], *, text: bool | None = None) -> None:
    """Write a graph to a file. The file appears once all of it is written. `text` is as in `load`.

    Raises NotFound, PermissionDenied or Unknown when the file cannot be written, else as `dumps`.
    """
    file = file_path(path)
    if file.suffix.lower() in TEXT_SUFFIXES if text is None else text:
        buffers: list[Buffer] = [dumps(graph, text=True)]
    else:
        buffers = _parts_of(graph)
    write_whole(file, buffers)


@boundary
def dumps(graph: Graph, *, text: bool = False) -> bytes:
    """A graph as a GraphDef. Unedited parts have the bytes they were read from.

    Raises InvalidArgument for the text form of a graph with fields unknown to TensorFlow, which only the binary form
    can hold. Raises FailedPrecondition when the graph's file has changed.
    """
    raw = b"".join(_parts_of(graph))
    return graphdef_text.write(raw) if text else raw


def read(view: memoryview) -> Graph:
    """The graph in a binary GraphDef, not verified. Raises DataLoss, InvalidArgument."""
    return read_binary(view, Graph)


def _parts_of(graph: object) -> list[Buffer]:
    if not isinstance(graph, Graph):
        raise InvalidArgument(f"a GraphDef is written from a Graph, got {type(graph).__name__}")
    return binary_parts(graph)


def _load_binary(file: Path, mapped: bool, partial: bool) -> Graph:
    view = mapped_file.contents(file, mapped=mapped)
    try:
        graph = read(view)
    except DataLoss as error:
        if _looks_like_text(bytes(view[:1024])):
            error.hint = "it looks like text: pass text=True, or name it .pbtxt"
        raise
    if not graph.nodes and not graph.functions and not graph.versions.producer:
        raise DataLoss("this is not a GraphDef: it has no node")
    if not partial:
        verify(graph)
    return graph


def check_kind(file: Path) -> None:
    """Raises InvalidArgument for a SavedModel's file, DataLoss for another kind of file that is known."""
    head = mapped_file.head(file, file_kinds.HEAD_BYTES)
    if file_kinds.kind_of_content(head) is file_kinds.SAVED_MODEL:
        is_in_folder = file.name == "saved_model.pb"
        hint = f"load its folder: heald.load('{file.parent}')" if is_in_folder else file_kinds.SAVED_MODEL.way_out
        raise InvalidArgument("this is a SavedModel, not a GraphDef", hint=hint)
    file_kinds.check_content(head, "a GraphDef")


def _looks_like_text(start: bytes) -> bool:
    return b"{" in start and start.isascii() and all(byte >= 0x20 or byte in b"\t\n\r\f" for byte in start)


def _check_no_folder(file: Path) -> None:
    if file.is_dir():
        saved = (file / "saved_model.pb").exists()
        raise InvalidArgument("this is a folder, not a GraphDef",
                              hint=f"it is a SavedModel: heald.load('{file}')" if saved else None)
