"""heald inspect --client, --partitions: the graph that a step runs, whole and by device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..printing.terminal import say

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph, Node

_COLUMNS = ("node", "op", "inputs", "device")
_CUT = ("node", "inputs", "tensor", "consumer")


def client(graph: Graph) -> dict[str, Any]:
    """The nodes of a client graph, and the names of the nodes at SOURCE and at SINK."""
    from ...graphs.compiler.client_graph import source_and_sink_nodes

    source, sink = source_and_sink_nodes(graph)
    return {"nodes": [_row(node) for node in graph], "source": source, "sink": sink}


def partitions(parts: Mapping[str, Graph]) -> dict[str, Any]:
    """The nodes of each partition, and a row for each transfer between two of them."""
    return {"parts": [{"device": device, "nodes": [_row(node) for node in part]} for device, part in parts.items()],
            "transfers": [_transfer(node) for part in parts.values() for node in part if "send_device" in node.attrs
                          and not node.inputs]}


def tell_client(client_report: Mapping[str, Any]) -> None:
    from ..printing.table import plural

    say(f"\nclient graph, {plural(len(client_report['nodes']), 'node')}")
    _show(client_report["nodes"], _COLUMNS)
    for end in ("source", "sink"):
        say(f"{end.upper()}: {', '.join(client_report[end]) or 'none'}")


def tell_partitions(partition_report: Mapping[str, Any]) -> None:
    from ..printing.table import plural

    for part in partition_report["parts"]:
        say(f"\npartition {part['device']}, {plural(len(part['nodes']), 'node')}")
        _show(part["nodes"], _COLUMNS[:-1])
    say(f"\n{plural(len(partition_report['transfers']), 'transfer')}")
    if partition_report["transfers"]:
        _show(partition_report["transfers"], ("name", "tensor", "consumer", "from", "to"))


def _show(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    from ..printing.table import show

    if rows:
        show([{**row, "inputs": ", ".join(row.get("inputs", ()))} for row in rows], columns, cut=_CUT)


def _row(node: Node) -> dict[str, Any]:
    inputs = [*map(str, node.inputs), *(f"^{name}" for name in node.controls)]
    return {"node": node.name, "op": node.op, "inputs": inputs, "device": node.device}


def _transfer(node: Node) -> dict[str, Any]:
    """The row of a transfer, from the attributes of its Recv."""
    keys = {"name": "tensor_name", "tensor": "_src", "consumer": "_dst", "from": "send_device", "to": "recv_device"}
    return {key: node.attrs[attr].decode("utf-8", "backslashreplace") for key, attr in keys.items()}
