"""UnfinishedFrame: a frame to which calls are attached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...host.device_memory import Owned
from ...support.records import NamedTuple
from .call_environment import CallEnvironment
from .frame_calls import Maker


class UnfinishedFrame(NamedTuple):
    """A frame whose buffers are in its registers and whose calls are attached one after the other.

    `fixed`: the registers whose payloads are the same objects in every run of the frame.
    `lent`: receives the buffers of the current run, with the functions that free them.
    """

    registers: list[Any]
    fixed: frozenset[int]
    lent: list[Owned]
    environment: CallEnvironment

    def has_fixed(self, registers: Iterable[int]) -> bool:
        return self.fixed.issuperset(registers)

    def makers(self, results: Sequence[int]) -> tuple[Maker | None, ...]:
        """For each result return a maker of its output, or None when the output is a buffer of the frame."""
        return tuple(None if r in self.fixed else self.environment.maker(r, self.registers) for r in results)
