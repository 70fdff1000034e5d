"""Needed feeds: the tensors that a user must feed for some outputs of a graph.

These are placeholders, and the first values behind a handle that no kernel makes, or of an iterator that no needed node
starts: its dataset is not in a frozen graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...errors import HealdError
from ...runtime.contract.structural import ITERATORS, MAKE_ITERATOR, MUST_FEED, NO_KERNEL, PLACEHOLDERS
from ...runtime.host.host import Host
from ..graph.node import Node
from .names import HANDLE_TYPES
from .prune import Tensor
from .resolve import Resolved

Entries = Mapping[str, Resolved | HealdError]


def needed_feeds(
    nodes: Mapping[str, Node], entries: Entries, outputs: Iterable[str], host: Host, fed: Iterable[str] = (),
) -> list[str]:
    """Return the tensors to feed for these outputs, by name, in the graph's order.

    An output is a node's name, or a tensor's. `entries` has the nodes resolved; a node that could not be resolved has
    dependencies, too. `fed`: tensors that the user feeds anyway. They hide their dependencies, and are not returned.
    """
    fed_tensors = {_tensor(name) for name in fed}
    names = [name for name in outputs if _tensor(name) not in fed_tensors]
    needed = _needed_nodes(nodes, names, (), fed_tensors)
    values = _values_of_iterators(entries, needed, host)
    if values:
        needed = _needed_nodes(nodes, names, {node for node, _ in values}, fed_tensors)
        used = {tensor for name in needed for tensor in _resolved_inputs(entries, name)} | {*map(_tensor, names)}
        values = {tensor for tensor in values if tensor in used and tensor[0] in needed}
    feeds: list[str] = []
    for name, node in nodes.items():
        if name not in needed:
            continue
        feeds += [name] if node.op in MUST_FEED else []
        feeds += [_name(entries, tensor) for tensor in sorted(tensor for tensor in values if tensor[0] == name)]
    return feeds


def _needed_nodes(
    nodes: Mapping[str, Node], outputs: Iterable[str], ends: Collection[str], fed: Collection[Tensor],
) -> set[str]:
    """Return the nodes that these outputs depend on, by data or control, without the dependencies of `ends` and of fed
    tensors. A fed placeholder does not run, so that a control edge from it needs nothing."""
    fed_placeholders = {name for name, _ in fed if name in nodes and nodes[name].op in PLACEHOLDERS}
    needed: set[str] = set()
    stack = [name.partition(":")[0] for name in outputs]
    while stack:
        name = stack.pop()
        if name in needed or name not in nodes:
            continue
        needed.add(name)
        if name not in ends:
            stack += [i.node for i in nodes[name].inputs if (i.node, i.index) not in fed]
            stack += [control for control in nodes[name].controls if control not in fed_placeholders]
    return needed


def _values_of_iterators(entries: Entries, needed: Collection[str], host: Host) -> set[Tensor]:
    """Return the tensors that needed nodes compute from handles without a kernel or a start, through nodes that return
    handles."""
    started = {source for name in needed for source in _resolved_inputs(entries, name)
               if _is_start(entries[name])}
    handles = {(name, index) for name in needed for index in _handles_of(entries[name])
               if not _has_kernel(entries[name], host) or _lacks_start(entries[name], (name, index), started)}
    if not handles:
        return set()
    takers: dict[Tensor, list[str]] = {}
    for name in needed:
        for tensor in _resolved_inputs(entries, name):
            takers.setdefault(tensor, []).append(name)
    values: set[Tensor] = set()
    stack = [*handles]
    while stack:
        for name in takers.get(stack.pop(), ()):
            entry = entries[name]
            returned = {(name, index) for index in _handles_of(entry)} - handles
            handles |= returned
            stack += returned
            if isinstance(entry, Resolved):
                values |= {(name, index) for index in range(len(entry.output_tensors)) if (name, index) not in handles}
    return values


def _handles_of(entry: Resolved | HealdError) -> list[int]:
    if not isinstance(entry, Resolved):
        return []
    return [index for index, tensor in enumerate(entry.output_tensors) if tensor.dtype in HANDLE_TYPES]


def _is_start(entry: Resolved | HealdError) -> bool:
    return isinstance(entry, Resolved) and entry.op.name == MAKE_ITERATOR


def _lacks_start(entry: Resolved | HealdError, handle: Tensor, started: Collection[Tensor]) -> bool:
    return isinstance(entry, Resolved) and entry.op.name in ITERATORS and handle not in started


def _has_kernel(entry: Resolved | HealdError, host: Host) -> bool:
    if not isinstance(entry, Resolved) or entry.op.name in NO_KERNEL | MUST_FEED:
        return True
    return any(kernel.refuses(entry.attrs) is None for device_type in host.preference()
               for kernel in host.registries.kernels.candidates(entry.op.name, device_type))


def _resolved_inputs(entries: Entries, name: str) -> Iterable[Tensor]:
    entry = entries[name]
    return entry.inputs if isinstance(entry, Resolved) else ()


def _tensor(name: str) -> Tensor:
    node, _, index = name.partition(":")
    return node, int(index or 0) if (index or "0").isdecimal() else 0


def _name(entries: Entries, tensor: Tensor) -> str:
    entry = entries[tensor[0]]
    is_only = isinstance(entry, Resolved) and len(entry.output_tensors) == 1
    return tensor[0] if is_only else f"{tensor[0]}:{tensor[1]}"
