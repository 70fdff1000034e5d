"""Pass `control-flow-sink`, on request: nodes that one branch alone uses become nodes of its region.

The pass is TFG's `tfg-cf-sink`. A branch that is not taken then computes none of its nodes. It moves a node into a
region of an If or Case when every consumer and every node behind its control edges is in that region, or in regions
within. Regions of loops run more than once, so no node moves there. A node with effects stays, and so does one with
regions. The nodes of the inner regions move first. A moved node has the name `NODE_tfg_cf_sunk_OWNER`.

TFG's pass is about functions. Here nodes of the graph move too, but for kept nodes and placeholders. A node that is
colocated with others stays. A node is moved at most once, and each edge is looked at once for each region around it.
"""

from __future__ import annotations

from collections import Counter, deque

from heald.api import Graph, PassContext

from .region_forms import FunctionNames
from .region_tree import (
    Body,
    Operation,
    Parameter,
    RegionTree,
    colocation_partners,
    is_stateless,
    operand_sources,
    returned_sources,
)

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


def sink_control_flow(graph: Graph, context: PassContext) -> Graph:
    """The graph with nodes that one branch alone uses in its region."""
    tree = RegionTree(graph, context.ops)
    changed = [name for name, body in tree.roots.items() if _Sinker(tree, graph, context, body).sink_into(body)]
    return tree.graph_with(changed) if changed else graph


class _Sinker:
    """Moves the operations of one root body."""

    def __init__(self, tree: RegionTree, graph: Graph, context: PassContext, root: Body) -> None:
        self._tree = tree
        self._graph = graph
        self._context = context
        self._fixed = context.kept if root.signature is None else frozenset()
        self._uses: dict[Operation | Parameter, Counter[Body]] = {}  # the bodies that use each source, and how often
        self._partners: set[str] = set()
        self._count_uses(root)

    def sink_into(self, body: Body) -> bool:
        """Move operations into the branches of a body, and of the regions within. True where one has moved."""
        moved = False
        for operation in [*body.current_operations()]:
            for region in operation.regions:
                moved |= self.sink_into(region)
            if operation.regions and not operation.form.loop:
                for region in operation.regions:
                    moved |= self._fill_region(region)
        return moved

    def _count_uses(self, body: Body) -> None:
        for operation in body.operations:
            self._partners.update(colocation_partners(operation.node))
            for source in operand_sources(operation):
                self._uses.setdefault(source, Counter())[body] += 1
            for region in operation.regions:
                self._count_uses(region)
        for source in returned_sources(body):
            self._uses.setdefault(source, Counter())[body] += 1

    def _fill_region(self, region: Body) -> bool:
        """Move operations into a region, in the order in which MLIR's utility does."""
        names = FunctionNames(operation.name for operation in region.current_operations())
        front: deque[Operation] = deque()
        waiting: list[Operation | Body] = [*region.current_operations(), region]
        while waiting:
            user = waiting.pop()
            for source in returned_sources(user) if isinstance(user, Body) else operand_sources(user):
                if isinstance(source, Operation) and source.body is not region and self._can_move(source, region):
                    self._move(source, region, names)
                    front.appendleft(source)
                    waiting.append(source)
        region.operations[:0] = front
        return bool(front)

    def _can_move(self, operation: Operation, region: Body) -> bool:
        return all(body.is_within(region) for body in self._uses[operation]) and self._is_movable(operation)

    def _is_movable(self, operation: Operation) -> bool:
        node = operation.node
        if operation.regions or operation.name in self._fixed or operation.name in self._partners:
            return False
        if "_class" in node.attrs:
            return False
        if operation.body.signature is None and node.op in _PLACEHOLDERS:
            return False
        return all(map(self._tree.type_number, operation.inputs)) and is_stateless(node, self._graph, self._context)

    def _move(self, operation: Operation, region: Body, names: FunctionNames) -> None:
        assert region.owner is not None
        for source in operand_sources(operation):
            uses = self._uses[source]
            uses[region] += 1
            uses[operation.body] -= 1
            if not uses[operation.body]:
                del uses[operation.body]
        operation.body = region
        operation.name = names.new(f"{operation.name}_tfg_cf_sunk_{region.owner.name}")
