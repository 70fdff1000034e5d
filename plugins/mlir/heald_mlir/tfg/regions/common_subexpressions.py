"""Pass `common-subexpressions`, on request: equal nodes become one, in functions and across regions.

The pass is TFG's `tfg-cse`. A node of a region becomes an equal one in front of it, of the same region or of one
around it. A node of one branch never stands for a node of another branch, nor for one behind the branches. Equal nodes
have the same op, attributes, inputs, devices and control edges; their names do not count. Stateless nodes with equal
regions are equal, too. Constants merge as all other nodes do. A stateless If, Case or While without a consumer goes.

Nodes with effects, kept nodes and placeholders of the graph stay. So does a node that others are colocated with, and
one that a node in front of it reads. Every node is looked at once, and once more for each region that is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from heald.api import Graph, Node, PassContext
from heald.graphs.graph import Func

from .dead_control_flow import REMOVED, remove_dead_control_flow
from .region_forms import FORMS, REGION, RegionForm, called_functions, shown_name
from .region_tree import (
    Body,
    Operation,
    Parameter,
    RegionTree,
    Tensor,
    bodies_within,
    colocation_partners,
    has_effects,
    is_stateless,
    operand_sources,
    returned_sources,
)

Key = tuple[Any, ...]


def merge_common_subexpressions(graph: Graph, context: PassContext) -> Graph:
    """The graph in which equal nodes of a body, and of the regions in it, are one."""
    tree = RegionTree(graph, context.ops)
    changed = [name for name, body in tree.roots.items() if _Merger(graph, context, body).merge(body)]
    return tree.graph_with(changed) if changed else graph


class _Merger:
    """Merges the operations of one root body.

    `_known`: tables of operations by key, one for the root and for each region around the current one.
    """

    def __init__(self, graph: Graph, context: PassContext, root: Body) -> None:
        self._graph = graph
        self._context = context
        self._kept = context.kept if root.signature is None else frozenset()
        self._known: list[dict[Key, Operation]] = []
        self._visited: set[Operation] = set()  # those that may stand for others
        self._replaced: dict[Operation, Operation] = {}
        self._users: dict[Operation | Parameter, list[Operation | None]] = {}  # None for the end of a region
        self._partners: set[str] = set()
        self._dead = False
        for body in bodies_within(root):
            for operation in body.operations:
                self._partners.update(colocation_partners(operation.node))
                for source in operand_sources(operation):
                    self._users.setdefault(source, []).append(operation)
            for source in returned_sources(body):
                self._users.setdefault(source, []).append(None)

    def merge(self, root: Body) -> bool:
        """Merge the operations. True where one was removed."""
        self._visit(root)
        self._replace_merged(root)
        removed = remove_dead_control_flow(root, self._graph, self._context)
        return removed or bool(self._replaced) or self._dead

    def _replace_merged(self, root: Body) -> None:
        for body in bodies_within(root) if self._replaced else ():
            for operation in body.operations:
                operation.inputs = [self._current(tensor) for tensor in operation.inputs]
                operation.controls = [self._source(source) for source in operation.controls]
            body.returned = {name: self._current(tensor) for name, tensor in body.returned.items()}
            body.control_returned = {name: self._source(source) for name, source in body.control_returned.items()}

    def _visit(self, body: Body) -> None:
        self._known.append({})
        for operation in body.operations:
            for region in operation.regions:
                self._visit(region)
            self._merge_operation(operation)
        self._known.pop()

    def _merge_operation(self, operation: Operation) -> None:
        if self._is_fixed(operation):
            return
        if operation.node.op in FORMS and not self._users.get(operation):
            operation.body, self._dead = REMOVED, True
            return
        if operation.regions and has_effects(operation, self._graph, self._context):
            return
        key = self._key(operation, {})
        first = next((table[key] for table in self._known if key in table), None)
        if first is None:
            self._known[-1][key] = operation
            self._visited.add(operation)
        elif operation.name not in self._partners and self._visited.isdisjoint(self._users.get(operation, ())):
            self._replaced[operation] = first
            operation.body = REMOVED

    def _is_fixed(self, operation: Operation) -> bool:
        node, in_graph = operation.node, operation.body.signature is None
        if in_graph and (operation.name in self._kept or node.op in ("Placeholder", "PlaceholderV2")):
            return True
        return not is_stateless(node, self._graph, self._context)

    def _key(self, operation: Operation, places: Mapping[Operation | Parameter, int]) -> Key:
        """A key that equal operations share. `places`: the numbers of values in a region that is compared."""
        node = operation.node
        form = FORMS[node.op] if operation.regions else None
        inputs = tuple((places.get(source, source), output, index)
                       for source, output, index in map(self._current, operation.inputs))
        controls = tuple(places.get(source, source) for source in map(self._source, operation.controls))
        regions: Key = ()
        if form is not None:
            regions = tuple(self._region_key(region, places) for region in operation.regions)
        return (node.op, node.device, node.assigned_device, _attributes(node, form), _calls(node, form), inputs,
                controls, regions)

    def _region_key(self, region: Body, outer: Mapping[Operation | Parameter, int]) -> Key:
        assert region.signature is not None
        operations = [*region.current_operations()]
        places: dict[Operation | Parameter, int] = {**outer}
        for parameter in region.parameters:
            places[parameter] = len(places)
        for operation in operations:
            places[operation] = len(places)
        returned = tuple((places.get(source, source), output, index)
                         for source, output, index in map(self._current, region.returned.values()))
        controls = tuple(places.get(source, source) for source in map(self._source, region.control_returned.values()))
        name = shown_name(self._graph.functions[region.signature.name])
        results = tuple((output.name, frozenset(output.attrs.items())) for output in region.signature.outputs)
        return (name, results, returned, controls, tuple(self._key(operation, places) for operation in operations))

    def _current(self, tensor: Tensor) -> Tensor:
        return tensor._replace(source=self._source(tensor.source))

    def _source(self, source: Operation | Parameter) -> Operation | Parameter:
        return self._replaced.get(source, source) if isinstance(source, Operation) else source


def _attributes(node: Node, form: RegionForm | None) -> frozenset[tuple[str, Any]]:
    """The attributes of a node, without those that its regions imply."""
    hidden = () if form is None else (REGION, *form.functions, *form.implied)
    return frozenset((name, value) for name, value in node.attrs.items() if name not in hidden)


def _calls(node: Node, form: RegionForm | None) -> Key:
    """The attributes of the calls of a node's regions."""
    calls: Iterator[Func] = iter(called_functions(node)) if form is not None else iter(())
    return tuple(frozenset(call.attrs.items()) for call in calls)
