"""Pruning: collects the nodes of a step, from fetches and targets back to the feeds, in an order in which they can
run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...errors import HealdError, InvalidArgument
from ...runtime.contract.op import attr_text
from ...runtime.contract.structural import MUST_FEED, NEXT_ITERATIONS, PLACEHOLDERS
from ...runtime.values.tensor import shape_text
from .resolve import Resolved

Tensor = tuple[str, int]  # node, number of its output


def prune(
    nodes: Mapping[str, Resolved | HealdError], feeds: Collection[Tensor], fetches: Sequence[Tensor],
    targets: Sequence[str],
) -> list[Resolved]:
    """Return the nodes to run, each after all nodes that it needs, by data or control.

    Only nodes that need an output of NextIteration, the back edge of a loop, come before it.

    Raises InvalidArgument for a placeholder without a feed and for a cycle without NextIteration, and the recorded
    error of a needed node.
    """
    fed = set(feeds)
    fed_nodes = {node for node, _ in fed}
    order: list[Resolved] = []
    state: dict[str, bool] = {}  # False: its inputs are being visited; True: it is in the order
    stack = [*reversed([n for n, i in fetches if (n, i) not in fed] + list(targets))]
    back: list[str] = []  # NextIterations that needed nodes have as inputs
    while stack or back:
        if not stack:
            stack.append(back.pop())
        name = stack[-1]
        if name in state:
            stack.pop()
            if not state[name]:
                state[name] = True
                order.append(_check_resolved(nodes[name]))
            continue
        state[name] = False
        entry = _check_resolved(nodes[name])
        if entry.op.name in MUST_FEED:
            raise _missing_feed_error(entry)
        for needed in _needed_nodes(entry, nodes, fed, fed_nodes):
            if _op_of(nodes[needed]) in NEXT_ITERATIONS:
                back.append(needed)
            elif state.get(needed) is False:
                raise InvalidArgument(f"a cycle leads from '{needed}' back to '{name}'", node=name, op=entry.op.name,
                                      hint="only the output of NextIteration may lead back")
            elif needed not in state:
                stack.append(needed)
    return order


def _needed_nodes(
    entry: Resolved, nodes: Mapping[str, Resolved | HealdError], fed: set[Tensor], fed_nodes: set[str]
) -> list[str]:
    """Return the nodes that must run before this one. A fed placeholder satisfies control edges from it too."""
    needed = [node for node, index in entry.inputs if (node, index) not in fed]
    for control in entry.node.controls:
        if control in fed_nodes and _op_of(nodes[control]) in PLACEHOLDERS:
            continue
        needed.append(control)
    return needed


def _op_of(entry: Resolved | HealdError) -> str:
    return entry.op.name if isinstance(entry, Resolved) else ""


def _check_resolved(entry: Resolved | HealdError) -> Resolved:
    if isinstance(entry, Resolved):
        return entry
    raise entry


def _missing_feed_error(entry: Resolved) -> InvalidArgument:
    dtype, shape = entry.attrs["dtype"], entry.attrs.get("shape")
    return InvalidArgument(
        f"you must feed a value for placeholder tensor '{entry.node.name}' with dtype {attr_text(dtype)} and shape "
        f"{shape_text(shape)}", node=entry.node.name, op=entry.op.name)
