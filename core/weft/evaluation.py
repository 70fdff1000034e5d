"""Evaluation: what constants make of each other, told before any program is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import Unimplemented
from .graph import Graph
from .host_program import Call
from .lower import MAIN, lower
from .place import Placer
from .placement_config import PlacementConfig
from .prune import prune
from .resolve import Resolved, resolve
from .running.binder import Binder
from .running.folding import folded, is_worth_folding
from .running.host_context import HostContext
from .running.link import link
from .running.resources import Resources
from .tensor import ValueInfo, constant_info


def evaluate(graph: Graph, names: Sequence[str], host: HostContext, placement: PlacementConfig) -> list[Any]:
    """The first outputs of nodes that need no feeds, by the kernels of a device that works on host memory, wherever the
    graph asks them to run.

    Raises Unimplemented where there is no such device, and what running the nodes raises.
    """
    device = host.host_device()
    if device is None:
        raise Unimplemented("no device works on host memory")
    registries = host.registries
    graph = graph.replace(nodes=[node.replace(device="", without_attrs=["_class"]) for node in graph
                                 if node.device or "_class" in node.attrs])
    nodes = resolve(graph, registries.ops)
    fetches = [(name, 0) for name in names]
    order = prune(nodes, [], fetches, [])
    placer = Placer(host, registries.kernels, placement, device)
    placed = placer.place(nodes, {name: (node.op, "") for name, node in graph.nodes.items()})
    program = lower(order, placed, [], fetches, [], frozenset([device]), registries.ops)
    return link(program, host).run([], host.lasting_step(Resources()))


def fold(
    entry: Resolved, inputs: Sequence[ValueInfo], outputs: tuple[ValueInfo, ...], host: HostContext
) -> tuple[ValueInfo, ...]:
    """What is known of a node's outputs, with their elements where those of its inputs are known and computing them now
    is no waste, by the kernels of a device that works on host memory."""
    name = host.host_device() if not entry.op.stateful and is_worth_folding(inputs, outputs) else None
    if name is None:
        return outputs
    device = host.open(name)
    able = tuple(kernel for kernel in host.registries.kernels.candidates(entry.op.name, device.type)
                 if kernel.refuses(entry.attrs) is None)
    call = Call(f"{device.type}.{entry.op.name}", (), (), entry.attrs, node=entry.node.name)
    values = folded(Binder(call, entry.op, None, able, device, name, {}, host.allocator, Resources().get, MAIN),
                    inputs, outputs)
    return outputs if values is None else tuple(map(constant_info, values))
