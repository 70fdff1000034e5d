"""Removal of operations that no value needs, for passes over a RegionTree.

Pass `canonicalize`, on request: a function has the nodes alone that its results and effects need. A call runs the nodes
that results and control results need. The others never run, stateful ones neither. MLIR's canonicalizer removes the
same nodes of TFG's functions. Within regions it removes stateless If, Case and While without consumers, and so does the
pass. Nodes of the graph stay: `dead-nodes` removes those. A node that a needed one is colocated with stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from heald.api import Graph, PassContext

from .region_forms import FORMS
from .region_tree import (
    Body,
    Operation,
    Parameter,
    RegionTree,
    bodies_within,
    colocation_partners,
    is_stateless,
    operand_sources,
    returned_sources,
)

REMOVED = Body(None, None)  # the body of removed operations


def canonicalize(graph: Graph, context: PassContext) -> Graph:
    """The graph whose functions have the nodes alone that run."""
    tree = RegionTree(graph, context.ops)
    changed = [name for name, root in tree.roots.items() if name is not None and (
        remove_dead_control_flow(root, graph, context) | _remove_idle(root))]
    return tree.graph_with(changed) if changed else graph


def _remove_idle(root: Body) -> bool:
    """Remove the operations of a function that no result needs. True where there was one."""
    by_name = {operation.name: operation for operation in root.operations}
    needed: set[Operation] = set()
    waiting = [*returned_sources(root)]
    while waiting:
        source = waiting.pop()
        if isinstance(source, Operation) and source not in needed:
            needed.add(source)
            waiting += _needed_sources(source)
            waiting += [by_name[name] for name in colocation_partners(source.node) if name in by_name]
    idle = [operation for operation in root.operations if operation not in needed]
    for operation in idle:
        operation.body = REMOVED
    return bool(idle)


def _needed_sources(operation: Operation) -> Iterator[Operation | Parameter]:
    """The sources of an operation, and those outside that its regions use."""
    yield from operand_sources(operation)
    for region in operation.regions:
        for body in bodies_within(region):
            yield from _used_sources(body)


def remove_dead_control_flow(root: Body, graph: Graph, context: PassContext) -> bool:
    """Remove stateless control flow without consumers, then control flow that the removed operations alone used."""
    kept = context.kept if root.signature is None else frozenset()
    uses: Counter[Operation | Parameter] = Counter()
    for body in bodies_within(root):
        uses.update(_used_sources(body))
    waiting = [operation for body in bodies_within(root) for operation in body.current_operations()
               if operation.node.op in FORMS and not uses[operation]]
    any_removed = False
    while waiting:
        operation = waiting.pop()
        is_kept = operation.body is root and operation.name in kept
        if is_kept or not _is_live(operation) or not is_stateless(operation.node, graph, context):
            continue
        released = [*_needed_sources(operation)]
        operation.body, any_removed = REMOVED, True
        uses.subtract(released)
        waiting += [source for source in released if isinstance(source, Operation)
                    and source.node.op in FORMS and not uses[source]]
    return any_removed


def _is_live(operation: Operation) -> bool:
    """True where neither the operation nor one around it is removed."""
    body = operation.body
    while body.owner is not None:
        body = body.owner.body
    return body is not REMOVED


def _used_sources(body: Body) -> Iterator[Operation | Parameter]:
    for operation in body.current_operations():
        yield from operand_sources(operation)
    yield from returned_sources(body)
