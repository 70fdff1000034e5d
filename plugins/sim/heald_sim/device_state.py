"""DeviceState: the part of a device that its operations read and change."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from heald.api import errors

from .machine import Machine

LARGEST_TRACE_SPANS = 1 << 16


class Mistake(NamedTuple):
    """A mistake of the program. `kind`: race, use after free, double free, use after reset, wrong device, overrun,
    write to the host, deadlock."""

    kind: str
    message: str


class DeviceState:
    """The engines of one device, its trace, its report and its loss.

    `engines`: the time at which each engine is free.
    `spans`: engine, operation, start and seconds of the newest operations.
    """

    def __init__(self, name: str, machine: Machine) -> None:
        self.name = name
        self.machine = machine
        self.report: list[Mistake] = []
        self.lost: Exception | None = None
        self.engines: dict[str, float] = {}
        self.spans: deque[tuple[str, str, float, float]] = deque(maxlen=LARGEST_TRACE_SPANS)

    def report_mistake(self, kind: str, message: str, hint: str | None = None) -> errors.HealdError:
        """The error for a mistake of the program. The report lists equal mistakes once."""
        if (fault := Mistake(kind, message)) not in self.report:
            self.report.append(fault)
        return errors.Internal(f"{kind}: {message}", device=self.name, hint=hint)

    def lose(self) -> None:
        """Lose the device: every later use of it fails until it is reset."""
        if self.lost is None:
            self.lost = errors.Unavailable("the device is lost", device=self.name,
                                           hint="native.reset() makes it new, for another host")
