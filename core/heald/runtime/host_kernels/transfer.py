"""Send and Recv: kernels that hand tensors to the step's rendezvous, and take them from it. They never wait.

A Send runs for a dead value, too: its receiver is told. A control input that is dead does not stop a Recv. So both are
non-strict.
"""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgument
from ..contract.host_kernel import HostKernels
from ..contract.host_type import I1, Chain, String
from ..contract.rendezvous import RendezvousKey
from ..contract.structural import RECV_CODE, SEND_CODE
from ..executor.step import Step
from ..values.async_value import AsyncValue


def register(kernels: HostKernels) -> None:
    kernels.kernel(SEND_CODE, step=True, nonstrict=True)(send)
    kernels.kernel(RECV_CODE, step=True, asynchronous=True, nonstrict=True)(recv)


def send(step: Step, tensor: Any, *, key: String) -> Chain:
    """Send a tensor, dead or alive. Raises the tensor's error, which is not sent: it ends the step."""
    value: AsyncValue = tensor
    is_dead = value.is_dead()
    step.rendezvous.send(RendezvousKey.parse(key), None if is_dead else value.get(), is_dead)


def recv(step: Step, *, key: String, client_terminated: I1) -> Any:
    """Return the tensor of this key, which may come later.

    Raises InvalidArgument for a tensor that the caller gives, in a step whose rendezvous no caller can reach.
    """
    if client_terminated and not step.has_transport:
        tensor = RendezvousKey.parse(key).tensor
        raise InvalidArgument(f"the caller sends tensor '{tensor}' to this node, and did not feed it",
                              hint="feed the node's output, or give the session a rendezvous")
    return step.rendezvous.recv(RendezvousKey.parse(key))
