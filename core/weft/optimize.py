"""The passes that plugins bring, over a graph, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .device import load_callable
from .errors import InvalidArgument
from .graph import Graph, verify
from .graph_pass import GraphPass, PassContext
from .plugin_code import plugin_code


def optimize(graph: Graph, passes: Sequence[GraphPass], context: PassContext) -> Iterator[tuple[str, Graph]]:
    """The name of each pass, and the graph after it.

    Raises PluginError for a pass that fails, InvalidArgument for one that gives no graph, loses a node that is kept,
    or leaves what is no well-formed graph.
    """
    for entry in passes:
        who = f"pass '{entry.name}' of plugin {entry.plugin}"
        with plugin_code(who):
            graph = load_callable(entry.function)(graph, context)
        if not isinstance(graph, Graph):
            raise InvalidArgument(f"{who} returned {type(graph).__name__}, not a Graph")
        for name in sorted(context.kept - graph.nodes.keys()):
            raise InvalidArgument(f"{who} lost the node '{name}', which is fed, fetched or run", node=name)
        verify(graph)
        yield entry.name, graph
