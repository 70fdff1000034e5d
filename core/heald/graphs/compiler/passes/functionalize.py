"""Pass `functionalize`, on request: control flow of TensorFlow 1 becomes If, Case and While with functions.

Switch and Merge stay where they have not the structure of a conditional. The bodies of functions stay.
"""

from __future__ import annotations

from ....runtime.contract.graph_pass import PassContext
from ....runtime.contract.structural import V1_CONTROL_FLOW
from ...graph.graph import Graph
from ...graph.traversal import topological_order
from .. import functionalize
from ..frames import FrameMembership


def functionalize_control_flow(graph: Graph, context: PassContext) -> Graph:
    """Raises the errors of `compiler.functionalize`, such as InvalidArgument for malformed frames."""
    if not any(node.op in V1_CONTROL_FLOW for node in graph):
        return graph
    members = FrameMembership(topological_order(graph))
    keep: list[tuple[str, int] | str] = []
    for name in sorted(context.kept):
        entry = context.resolve(graph[name])
        outputs = len(entry.output_tensors) if entry is not None and members.output_frames[name] is members.root else 0
        keep += [(name, index) for index in range(outputs)] or [name]
    return functionalize.functionalize(graph, keep, context.ops)
