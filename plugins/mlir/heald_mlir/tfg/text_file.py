"""Graphs in text files: the public functions of `heald.tfg`, and the Source of `.tfg` files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from heald.api import Description, Graph, LoadOptions, errors
from heald.runtime.support import file_path, gc_pause, whole_file

from ..text_file import decode_text
from .checks.function_import_checks import check_graph
from .printing.graph_printer import declarations_of, graph_text
from .reading.graph_parser import read_graph, read_graphs


@errors.boundary
def loads(text: str | bytes, *, file: str = "-", verify: bool = True) -> Graph:
    """The graph in a text. `file`: its name in locations.

    `verify`: False takes control flow that does not fit the functions which it calls, as a GraphDef may have it.

    Types and values are checked; a cycle is no error. Raises MalformedText, an InvalidArgument, with
    file, line and column, for a text that is no module or no graph.
    """
    return _read(decode_text(text, file), file, _ops(), verify)


@errors.boundary
@gc_pause.gc_paused()
def loads_all(text: str | bytes, *, file: str = "-", verify: bool = True) -> list[Graph]:
    """The graphs in a text, of which a module may have several, and which may be in pieces between `// -----` lines.

    Each graph has the functions of its piece. A piece that has functions alone is a graph without nodes, and an empty
    piece is none. `file`, `verify` and errors are as in `loads`. Lines in errors are those of the whole text.
    """
    return read_graphs(decode_text(text, file), file, _ops(), verify)


@errors.boundary
def load(path: str | os.PathLike[str], *, verify: bool = True) -> Graph:
    """The graph in a file. `verify` is as in `loads`.

    Raises as `loads`; NotFound and others for a file that cannot be read.
    """
    return _load(file_path.file_path(path), _ops(), verify)


@errors.boundary
@gc_pause.gc_paused()
def dumps(graph: Graph, *, canonical: bool = False, verify: bool = True) -> str:
    """A graph as text. Reading it back gives the same GraphDef, byte for byte.

    `canonical`: True for the text that TensorFlow's importer makes, in which missing attributes have their defaults and
    nothing is kept that the dialect has no words for.
    `verify`: False prints a graph whose nodes do not fit their ops, as a GraphDef may have it.

    Raises InvalidArgument, in the words of TensorFlow's importer, for a graph that it refuses; unknown ops are kept.
    """
    return "".join(text_fragments(graph, canonical, verify))


@errors.boundary
def dump(
    graph: Graph, path: str | os.PathLike[str], *, canonical: bool = False, verify: bool = True,
) -> None:
    """Write a graph to a text file. `canonical` and `verify` are as in `dumps`.

    Raises as `dumps`; NotFound and others for a file that cannot be written."""
    encoded = (fragment.encode("utf-8", "surrogateescape") for fragment in text_fragments(graph, canonical, verify))
    whole_file.write_whole(file_path.file_path(path), encoded)


def text_fragments(graph: Graph, canonical: bool, verify: bool = True) -> Iterator[str]:
    """The text of a graph in fragments, for files of any size. Raises as `dumps`."""
    if not isinstance(graph, Graph):
        raise errors.InvalidArgument(f"a text is written from a Graph, got {type(graph).__name__}",
                                     hint="read a GraphDef with heald.graphdef.load(path)")
    return graph_text(graph, _ops(), canonical, verify=verify)


def check_import(graph: Graph) -> None:
    """Raises InvalidArgument, in the words of TensorFlow's importer, for a graph that it refuses or does not verify."""
    check_graph(graph, declarations_of(graph, _ops()), verify=True)


def _ops() -> Any:
    import heald

    return heald.default_host().registries.ops


@gc_pause.gc_paused()
def _read(text: str, file: str, ops: Any, verify: bool) -> Graph:
    return read_graph(text, file, ops, verify)


def _load(path: Path, ops: Any, verify: bool = True) -> Graph:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise errors.of_system(error, path) from error
    return _read(decode_text(text, str(path)), str(path), ops, verify)


class TfgSource:
    """The graph of a text."""

    signatures: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def describe(self) -> Description:
        return Description("TF Graph IR")

    def graph(self) -> Graph:
        return self._graph

    def initial_state(self) -> tuple[Any, ...]:
        return ()


def read_graph_file(path: Path, options: LoadOptions) -> TfgSource:
    """The Source of a file. Raises the errors of `load`, and InvalidArgument for a signature or tags."""
    if options.signature is not None or options.tags is not None:
        raise errors.InvalidArgument("this is the text of a graph: it has no signatures and no tags",
                                     location=errors.Location(str(path)))
    return TfgSource(_load(path, options.ops))


__all__ = ["dump", "dumps", "load", "loads", "loads_all"]
