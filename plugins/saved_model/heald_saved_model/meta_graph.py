"""A graph of TensorFlow 1 with its checkpoint: `model.meta` beside `model.index` and `model.data-...`.

The file is one MetaGraphDef, as a SavedModel has several. It declares no signatures, and a run may train, so all nodes
stay. Variables begin with the values of the checkpoint, by the file's restore op or, without one, by their names.
Tables begin with the entries that the file's collection of table initializers gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from heald.api import Description, Graph, Initializer, LoadOptions, SignatureDef
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, Location
from heald.graphs.graph import graphdef_text, parse_input
from heald.runtime.contract import OpRegistry
from heald.runtime.support import file_kinds, input_file, mapped_file

from .file_names import META_GRAPH_TEXT
from .init_op import init_op_initializer
from .initializers import with_initializers
from .saved_model import SavedModel, parse_meta_graph
from .state_names import state_names

_TABLE_INITIALIZERS = "table_initializer"  # the collection


def open_meta_graph(path: Path, options: LoadOptions) -> MetaGraphSource:
    """Raises InvalidArgument for a signature or tags, DataLoss for a damaged file, and the errors of its graph."""
    if options.signature is not None or options.tags is not None:
        raise InvalidArgument("this is a graph with a checkpoint: it has no signatures and no tags",
                              location=Location(str(path)))
    with input_file.reading(path):
        input_file.check_file(path)
        head = mapped_file.head(path, file_kinds.HEAD_BYTES)
        file_kinds.check_content(head, "a MetaGraphDef")
        view = mapped_file.contents(path, mapped=options.mmap)
        if head.startswith(META_GRAPH_TEXT):
            view = memoryview(graphdef_text.parse(bytes(view), str(path), "MetaGraphDef"))
        graph, about = parse_meta_graph(view, 0, len(view))
    saved = SavedModel(path.parent, graph, about, view, options.mmap, weights=options.weights,
                       checkpoint_prefix=path.with_suffix(""))
    return MetaGraphSource(path, saved, options)


class MetaGraphSource:
    """The whole graph, and the state that a session begins with."""

    signatures: Mapping[str, SignatureDef | HealdError] = MappingProxyType({})

    def __init__(self, path: Path, saved: SavedModel, options: LoadOptions) -> None:
        self._path, self._saved, self._options = path, saved, options

    def describe(self) -> Description:
        return Description("graph with a checkpoint")

    def graph(self) -> Graph:
        return self._built[0]

    def initial_state(self) -> tuple[Initializer, ...]:
        return self._built[1]

    @cached_property
    def _built(self) -> tuple[Graph, tuple[Initializer, ...]]:
        saved, state = self._saved, state_names(self._saved.graph)
        if state and not saved.has_checkpoint and not saved.lacks_variables and not saved.is_without_variables:
            raise FailedPrecondition(f"the graph's checkpoint is missing: '{self._path.with_suffix('.index').name}'",
                                     location=Location(str(self._path)),
                                     hint="put the files of the checkpoint beside it: NAME.index and NAME.data-...")
        values = saved.variables(saved.graph.nodes)
        tables = self._table_initializers(state, self._options.ops)
        graph, restoring = with_initializers(saved.graph, saved, values, state)
        return graph, (*restoring, *tables)

    def _table_initializers(self, state: Mapping[str, frozenset[str]], ops: OpRegistry) -> list[Initializer]:
        def op_of(node: Any) -> Any:
            try:
                return ops.get(node.op)
            except HealdError:
                return None

        names = [parse_input(name).node for name in self._saved.collection(_TABLE_INITIALIZERS)]
        initializers = [init_op_initializer(self._saved.graph, name, (), state, op_of)
                        for name in names if name in self._saved.graph]
        return [initializer for initializer in initializers if initializer is not None]
