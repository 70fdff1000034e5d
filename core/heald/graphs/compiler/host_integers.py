"""Host integers: shapes, axes and sizes, which the host computes from its own values and alone consumes.

On a device outside host memory they would be copied there and back in every run. So they stay on the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from .resolve import Resolved

INTEGER_KINDS = "iub"  # kinds of types, truth values among them
Reads = Mapping[str, Sequence[tuple[str, bool]]]  # node -> for each input (source, True if it is read on a device)


def is_integer_node(entry: Resolved) -> bool:
    """True when all inputs and outputs of a node are integers or truth values."""
    tensors = (*entry.input_tensors, *entry.output_tensors)
    return bool(entry.output_tensors) and all(tensor.dtype.kind in INTEGER_KINDS for tensor in tensors)


def nodes_kept_on_host(candidates: Collection[str], on_host: Collection[str], reads: Reads) -> set[str]:
    """Return the candidates that stay on the host: no device reads them, and all their sources are on the host.

    The results of the nodes `on_host` are in host memory.
    """
    return _with_sources_on_host(_read_on_host_only(candidates, reads), on_host, reads)


def _read_on_host_only(candidates: Collection[str], reads: Reads) -> set[str]:
    """Return the candidates that have consumers, all of them on the host.

    A returned candidate counts as on the host.
    """
    edges = [edge for edges in reads.values() for edge in edges]
    device_reads = Counter(source for source, at_device in edges if at_device)
    ready = list({source for source, _ in edges if source in candidates and not device_reads[source]})
    host_nodes: set[str] = set()
    while ready:
        name = ready.pop()
        host_nodes.add(name)
        for source, at_device in reads[name]:
            device_reads[source] -= at_device
            if at_device and not device_reads[source] and source in candidates:
                ready.append(source)
    return host_nodes


def _with_sources_on_host(names: set[str], on_host: Collection[str], reads: Reads) -> set[str]:
    """Return the nodes whose sources are all on the host. A returned node counts as on the host."""
    users: dict[str, list[str]] = {}
    missing = dict.fromkeys(names, 0)
    for name in names:
        for source, _ in reads[name]:
            if source not in on_host:
                users.setdefault(source, []).append(name)
                missing[name] += 1
    ready = [name for name, count in missing.items() if not count]
    host_nodes: set[str] = set()
    while ready:
        name = ready.pop()
        host_nodes.add(name)
        for user in users.get(name, ()):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return host_nodes
