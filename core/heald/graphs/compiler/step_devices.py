"""Step devices: a device for each node of a client graph, also for nodes that the runtime itself serves.

Placement gives a device to nodes with kernels. Constants, control flow and NoOp have none in a session, but need one in
a partition. The rules, in order: the device of the loop around the node, where all kernels of the loop share it; the
device of a colocated node; the requested device; for a constant the device of its consumers, if they share one; the
client's device. TensorFlow's placer has the last three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...errors import Unimplemented
from ...runtime.contract.structural import CONST, CONTROL_FLOW, ENTERS, NO_KERNEL
from ..graph.graph import Graph, Node, consumers
from .client_graph import called_functions
from .colocation import colocation_groups
from .frames import FrameMembership

Requested = Callable[[str], str | None]  # the usable device of a request, None without one
_HINT = "request one device for the whole loop; the session itself runs the loop as it is"


def step_devices(graph: Graph, placed: Mapping[str, str], device_of_request: Requested, client: str) -> dict[str, str]:
    """Return the device of each node. `placed`: devices of the nodes with kernels, and of feeds and fetches.

    Raises InvalidArgument for frames of loops that meet without Enter or Exit.
    """
    assigned = dict(placed)
    bound = [*outermost_loops(graph).values(), *(names for names in colocation_groups(graph) if len(names) > 1)]
    for names in bound:
        devices = {assigned[name] for name in names if name in assigned}
        if len(devices) == 1:
            assigned.update(dict.fromkeys(names, *devices))
    free = []
    for node in graph:
        if node.name not in assigned:
            device = device_of_request(node.device) or _device_of_body(graph, node, device_of_request)
            if device is None and node.op == CONST:
                free.append(node.name)
            else:
                assigned[node.name] = device or client
    users = consumers(graph.nodes) if free else {}
    for name in free:
        devices = {assigned.get(user.name, client) for user in users[name]}
        assigned[name] = devices.pop() if len(devices) == 1 else client
    return assigned


def refuse_split_loops(graph: Graph, device_of_request: Requested) -> None:
    """Raise Unimplemented for a loop on several devices. The graph's nodes have their devices."""
    for name, nodes in outermost_loops(graph).items():
        kernels = [node for node in nodes if graph[node].op not in NO_KERNEL]
        _refuse_several_devices(f"loop '{name}'", {graph[node].device: node for node in reversed(kernels or nodes)},
                                graph[nodes[0]])
    for node in graph:
        if _is_loop(node):
            _refuse_several_devices(f"the body of loop '{node.name}'", _requests(graph, node, device_of_request), node)


def outermost_loops(graph: Graph) -> dict[str, list[str]]:
    """Return the nodes of each outermost loop of TensorFlow 1, Enter and Exit among them, by the loop's name."""
    if all(node.op not in ENTERS for node in graph):
        return {}
    frames = FrameMembership([*graph])
    loops: dict[str, list[str]] = {}
    for name in graph.nodes:
        frame = max(frames.input_frames[name], frames.output_frames[name], key=lambda candidate: candidate.depth)
        while frame.depth > 1 and frame.parent is not None:
            frame = frame.parent
        if frame.depth:
            loops.setdefault(frame.name, []).append(name)
    return loops


def _is_loop(node: Node) -> bool:
    return node.op in CONTROL_FLOW and CONTROL_FLOW[node.op].is_loop


def _device_of_body(graph: Graph, node: Node, device_of_request: Requested) -> str | None:
    """Return the one device that the body of a loop requests."""
    devices = _requests(graph, node, device_of_request) if _is_loop(node) else {}
    return next(iter(devices)) if len(devices) == 1 else None


def _requests(graph: Graph, loop: Node, device_of_request: Requested) -> dict[str, str]:
    """Return the devices that nodes in the functions of a loop request, each with the first such node."""
    requests: dict[str, str] = {}
    for name in sorted(called_functions(graph, [loop])):
        for node in graph.functions[name].nodes.values():
            device = device_of_request(node.device)
            if device is not None:
                requests.setdefault(device, f"{name}/{node.name}")
    return requests


def _refuse_several_devices(what: str, devices: Mapping[str, str], node: Node) -> None:
    if len(devices) > 1:
        raise Unimplemented(f"{what} is on several devices: {_devices_text(devices.items())}; a partition has whole "
                            "loops only", node=node.name, op=node.op, hint=_HINT)


def _devices_text(nodes: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"'{name}' on {device}" for device, name in sorted(nodes))
