"""UnfinishedFrame: a frame to which calls are attached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ...contract.device import Stream
from ...host.device_memory import Owned
from ...support.records import NamedTuple
from .call_environment import CallEnvironment
from .frame_calls import Maker

_NO_STREAMS: Mapping[int, Stream] = MappingProxyType({})


class UnfinishedFrame(NamedTuple):
    """A frame whose buffers are in its registers and whose calls are attached one after the other.

    `fixed`: the registers whose payloads are the same objects in every run of the frame.
    `lent`: receives the buffers of the current run, with the functions that free them.
    `streams`: the streams of copies by the register of their result, where it is not that of the kernels.
    """

    registers: list[Any]
    fixed: frozenset[int]
    lent: list[Owned]
    environment: CallEnvironment
    streams: Mapping[int, Stream] = _NO_STREAMS

    def has_fixed(self, registers: Iterable[int]) -> bool:
        return self.fixed.issuperset(registers)

    def on_stream(self, result: int, copy: Callable[..., None]) -> Callable[..., None]:
        """Return the copy function, which takes a stream, for the stream of the copy to this register."""
        return partial(copy, stream=self.streams[result]) if result in self.streams else copy

    def makers(self, results: Sequence[int]) -> tuple[Maker | None, ...]:
        """For each result return a maker of its output, or None when the output is a buffer of the frame."""
        return tuple(None if r in self.fixed else self.environment.maker(r, self.registers) for r in results)
