"""Send and Recv nodes for tests."""

from __future__ import annotations

from heald.graphs.graph.graph import Node
from heald.runtime.contract.rendezvous import RendezvousKey
from heald.runtime.values import dtypes

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def key(tensor: str) -> RendezvousKey:
    return RendezvousKey(CPU, 1, CPU, tensor)


def send(name: str, tensor: str, *inputs: str, op: str = "_Send", dtype: dtypes.DType = dtypes.float32) -> Node:
    return Node(name, op, inputs, attrs={"T": dtype, **_attrs(tensor)})


def recv(
    name: str, tensor: str, *inputs: str, op: str = "_Recv", dtype: dtypes.DType = dtypes.float32, client: bool = False,
) -> Node:
    return Node(name, op, inputs, attrs={"tensor_type": dtype, "client_terminated": client, **_attrs(tensor)})


def _attrs(tensor: str) -> dict[str, object]:
    return {"tensor_name": tensor.encode(), "send_device": CPU.encode(), "recv_device": CPU.encode(),
            "send_device_incarnation": 1}
