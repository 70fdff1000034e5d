"""Rendezvous: the meeting place of the tensors that Send nodes send and Recv nodes receive, in one step.

A session has a new rendezvous for each of its steps. A plugin that connects processes implements this protocol: a key
names the same tensor in every process of the step.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from ...errors import HealdError, InvalidArgument
from ..support.records import NamedTuple
from ..values.async_value import AsyncValue

_DIGITS = 16  # hexadecimal digits of an incarnation
_INCARNATIONS = 1 << 64


class RendezvousKey(NamedTuple):
    """The name of one sent tensor, which sender and receiver compute alike.

    `source`, `destination`: full names of devices.
    `incarnation`: a number of 64 bits that changes when the source device's process restarts.
    `tensor`: the attribute `tensor_name` of both nodes.
    `frame`, `iteration`: the loop and its turn; 0 outside of loops.
    """

    source: str
    incarnation: int
    destination: str
    tensor: str
    frame: int = 0
    iteration: int = 0

    @classmethod
    @lru_cache(4096)
    def parse(cls, text: str) -> RendezvousKey:
        """Read TensorFlow's form, `source;incarnation in hex;destination;tensor;frame:iteration`.

        Raises InvalidArgument for any other text.
        """
        try:
            source, incarnation, destination, tensor, frame_iteration = text.split(";")
            frame, iteration = map(int, frame_iteration.split(":"))
            number = int(incarnation, 16)
        except ValueError:
            number = -1
        if not 0 <= number < _INCARNATIONS:
            raise InvalidArgument(f"{text!r} is not the key of a rendezvous",
                                  hint="write it as 'source;incarnation;destination;tensor;frame:iteration'")
        return cls(source, number, destination, tensor, frame, iteration)

    def __str__(self) -> str:
        return (f"{self.source};{self.incarnation:0{_DIGITS}x};{self.destination};{self.tensor};"
                f"{self.frame}:{self.iteration}")


class Rendezvous(Protocol):
    """Delivers tensors by key, in the order of their sends. Any thread may call, and no method blocks.

    A key may be sent more than once: the n-th `recv` of a key receives the n-th `send`.
    """

    def send(self, key: RendezvousKey, value: Any, is_dead: bool = False, /) -> None:
        """Hand over a contiguous array, which is not written any more; a dead tensor has the value None.

        Raises the error of `abort` afterwards.
        """

    def recv(self, key: RendezvousKey, /) -> AsyncValue:
        """Return the next tensor of this key, which may come later. A dead tensor is DEAD.

        The value becomes the error of `abort`. The method never waits.
        """

    def abort(self, error: HealdError, /) -> None:
        """End the step's exchange: all pending and later `recv` values are this error. The first error stays."""
