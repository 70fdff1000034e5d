"""The graph of an opened file."""

from __future__ import annotations

from ...errors import Unimplemented
from ...runtime.contract.host_kernel import CORE_PLUGIN
from ...runtime.service.loading import OpenedFile
from ..graph.graph import Graph
from ..graph.verifier import verify


def read_graph(opened: OpenedFile) -> Graph:
    """The graph of all signatures of a file.

    Raises Unimplemented for a file of a host program, PluginError for a loader that fails or returns another object.
    """
    if not hasattr(opened.source, "graph"):
        raise Unimplemented(f"'{opened.file}' is a host program, not a graph",
                            hint=f"load it with heald.HostProgram.load('{opened.file}')")
    graph: Graph = opened.call_source("graph", opened.source.graph, Graph)
    return graph


def read_verified_graph(opened: OpenedFile) -> Graph:
    """The graph of all signatures of a file, for callers that make no session of it. Core's own loaders verify theirs.

    Raises the errors of `read_graph`, and InvalidArgument for a graph that is not well formed.
    """
    graph = read_graph(opened)
    if opened.entry.plugin != CORE_PLUGIN:
        verify(graph)
    return graph
