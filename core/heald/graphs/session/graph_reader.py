"""The graph of an opened file."""

from __future__ import annotations

from ...errors import Unimplemented
from ...runtime.service.loading import OpenedFile
from ..graph.graph import Graph


def read_graph(opened: OpenedFile) -> Graph:
    """The graph of all signatures of a file.

    Raises Unimplemented for a file of a host program, PluginError for a loader that fails or returns another object.
    """
    if not hasattr(opened.source, "graph"):
        raise Unimplemented(f"'{opened.file}' is a host program, not a graph",
                            hint=f"load it with heald.HostProgram.load('{opened.file}')")
    graph: Graph = opened.call_source("graph", opened.source.graph, Graph)
    return graph
