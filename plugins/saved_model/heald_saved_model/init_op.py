"""The init op of a SavedModel: the node that TensorFlow runs once, after it has restored the variables.

The init op becomes an initializer. One that changes tables and variables alone runs before the first step that needs
one of them, so a signature without tables opens no asset. Any other effect may be seen by every step: a queue, a file,
an assertion. Such an init op runs before the first step in any case.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from heald.api import Graph, Initializer
from heald.graphs.graph import ancestors

from .freeze import ASSIGN_OPS, READ_OPS, OpOf, has_effect
from .state_names import STATE_HOLDERS

# Ops with an effect on the table or variable that they are handed, and on nothing else.
_OPS_ON_STATE_ALONE = STATE_HOLDERS | {
    *ASSIGN_OPS.values(), "AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp", "InitializeTable",
    "InitializeTableFromTextFile", "InitializeTableFromTextFileV2", "InitializeTableV2", "LookupTableFind",
    "LookupTableFindV2", "LookupTableImport", "LookupTableImportV2", "LookupTableInsert", "LookupTableInsertV2",
}


def init_op_initializer(
    graph: Graph, name: str, read: Container[str], state: Mapping[str, Iterable[str]], op_of: OpOf
) -> Initializer | None:
    """Return the initializer that runs this node, or None for a node without effects.

    The graph's functions are inlined. `read` has the variables that the graph only reads, `state` is of `state_names`.
    """
    effects = [graph[node] for node in ancestors(graph.nodes, [name])
               if node not in read and graph[node].op not in READ_OPS and has_effect(op_of(graph[node]))]
    if not effects:
        return None
    resources = frozenset().union(*(state.get(node.name, (node.name,)) for node in effects))
    return Initializer(resources, name, for_all_steps=any(node.op not in _OPS_ON_STATE_ALONE for node in effects))
