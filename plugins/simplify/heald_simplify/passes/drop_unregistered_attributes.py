"""Pass `drop-unregistered-attributes`, on request: no node has an attribute that its op does not declare.

TensorFlow refuses such a node: "NodeDef mentions attr 'x' not in Op". A file gets it from a newer version of the op, or
from a tool. Attributes with a leading underscore stay, because every node may have them: they hold colocation,
compilation and the form of regions. Nodes of unknown ops stay as they are, and so do calls by the name of a function.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext

from ..node_edits import with_nodes_edited


def drop_unregistered_attributes(graph: Graph, context: PassContext) -> Graph:
    def drop_undeclared(node: Node) -> Node:
        if node.op in graph.functions or all(name.startswith("_") for name in node.attrs):
            return node
        declared = context.ops.get(node.op).attrs if node.op in context.ops else node.attrs
        undeclared = [name for name in node.attrs if name not in declared and not name.startswith("_")]
        return node.replace(without_attrs=undeclared) if undeclared else node

    return with_nodes_edited(graph, drop_undeclared)
