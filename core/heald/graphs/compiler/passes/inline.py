"""Pass `inline`, on request: the nodes of functions replace their calls, until no call is left but recursive ones.

A kept call becomes an Identity or IdentityN of its results. Functions stay in the library; `dead-nodes` removes them.
"""

from __future__ import annotations

from ....runtime.contract.graph_pass import PassContext
from ....runtime.contract.structural import V1_CONTROL_FLOW
from ...graph.graph import Graph
from .. import inline
from ..function_body import with_partitioned_calls


def inline_calls(graph: Graph, context: PassContext) -> Graph:
    """Raises InvalidArgument for calls that do not fit their functions, ResourceExhausted for too many nodes."""
    calls = with_partitioned_calls(graph)
    pins = any(node.op in V1_CONTROL_FLOW for node in graph)
    inlined = inline.inline(calls, context.ops, pins=pins, results=context.kept).graph
    return graph if inlined is calls else with_partitioned_calls(inlined)
