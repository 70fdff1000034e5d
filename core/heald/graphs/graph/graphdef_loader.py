"""The loader of GraphDef files, binary and text. Every load of a file imports this module, so `open` imports the code
that reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...errors import HealdError, InvalidArgument, Location
from ...runtime.contract.loader import Description, Initializer, LoadOptions, SignatureDef
from ...runtime.support.input_file import reading
from .graphdef_suffixes import SUFFIXES

if TYPE_CHECKING:
    from .graph import Graph

# A NodeDef: tag and length, tag and length of its name, the name, tag of its op.
_FIRST_NODE = re.compile(rb"\n[\x80-\xff]{0,4}[\x01-\x7f]\n[\x80-\xff]?[\x01-\x7f][A-Za-z0-9.][A-Za-z0-9_>./\\-]*\x12")


class GraphDefLoader:
    """Recognises files by their suffix or, under another suffix, by a first node with a well-formed name."""

    def recognise(self, path: Path, head: bytes) -> bool:
        return not path.is_dir() and (path.suffix.lower() in SUFFIXES or _FIRST_NODE.match(head) is not None)

    def open(self, path: Path, options: LoadOptions) -> GraphDefSource:
        """Raises the errors of `heald.graphdef.load`, and InvalidArgument for a signature or tags."""
        from . import graphdef

        with reading(path):
            graphdef.check_kind(path)
        if options.signature is not None or options.tags is not None:
            raise InvalidArgument("this is a GraphDef: it has no signatures and no tags", location=Location(str(path)))
        return GraphDefSource(graphdef.load(path, mmap=options.mmap))


class GraphDefSource:
    """A GraphDef declares neither signatures nor state."""

    signatures: Mapping[str, SignatureDef | HealdError] = MappingProxyType({})

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def describe(self) -> Description:
        return Description("GraphDef")

    def graph(self) -> Graph:
        return self._graph

    def initial_state(self) -> tuple[Initializer, ...]:
        return ()


LOADER = GraphDefLoader()
