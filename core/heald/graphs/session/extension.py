"""Extension of a session's graph by the nodes and functions of another graph."""

from __future__ import annotations

from ...errors import InvalidArgument
from ..compiler.resolve import check_versions
from ..graph.function import Function
from ..graph.graph import Graph, verify
from ..graph.graphdef import dumps


def extend_graph(graph: Graph, more: Graph) -> Graph:
    """Return `graph` with the nodes and functions of `more`. The latter may use the nodes and functions of `graph`.

    Functions that both have must be equal. The version of the producer stays that of `graph`, by which defaults go.

    Raises InvalidArgument for a node that `graph` has, for another function of the same name, for other versions of the
    producer, and for a result that is no well-formed graph.
    """
    check_versions(more)
    clash = next((node.name for node in more if node.name in graph), None)
    if clash is not None:
        raise InvalidArgument(f"the session has a node '{clash}' already", node=clash, op=more[clash].op,
                              hint="an extension holds new nodes only, and names the session's as inputs")
    both = graph.functions.keys() & more.functions.keys()
    other = next((name for name in sorted(both) if not _equal_functions(graph.functions[name], more.functions[name])),
                 None)
    if other is not None:
        raise InvalidArgument(f"the session has another function '{other}'", hint="give the new function another name")
    if more.versions.producer not in (0, graph.versions.producer):
        raise InvalidArgument(f"the extension is of GraphDef version {more.versions.producer}, the session's graph of "
                              f"version {graph.versions.producer}", hint="write both with the same TensorFlow")
    functions = [function for name, function in more.functions.items() if name not in both]
    combined = graph.replace(nodes=list(more), functions=functions)
    verify(combined)
    return combined


def _equal_functions(one: Function, other: Function) -> bool:
    return one is other or dumps(Graph(functions=[one])) == dumps(Graph(functions=[other]))
