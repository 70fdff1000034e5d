"""Evaluation: what constants make of each other, told before any program is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import Unimplemented
from .graph import Graph
from .lower import lower
from .place import Placer
from .placement_config import PlacementConfig
from .prune import prune
from .resolve import resolve
from .running.host_context import HostContext
from .running.link import link
from .running.resources import Resources


def evaluate(graph: Graph, names: Sequence[str], host: HostContext, placement: PlacementConfig) -> list[Any]:
    """The first outputs of nodes that need no feeds, by the kernels of a device that works on host memory, wherever the
    graph asks them to run.

    Raises Unimplemented where there is no such device, and what running the nodes raises.
    """
    device = host.host_device()
    if device is None:
        raise Unimplemented("no device works on host memory")
    registries = host.registries
    graph = graph.replace(nodes=[node.replace(device="", without_attrs=["_class"]) for node in graph])
    nodes = resolve(graph, registries.ops)
    fetches = [(name, 0) for name in names]
    order = prune(nodes, [], fetches, [])
    placer = Placer(host, registries.kernels, placement, device)
    placed = placer.place(nodes, {name: (node.op, "") for name, node in graph.nodes.items()})
    program = lower(order, placed, [], fetches, [], frozenset([device]), registries.ops)
    return link(program, host).run([], host.lasting_step(Resources()))
