"""The clocks of a run: the host's, and one for each device that times its own work.

A moment is microseconds from the first call of its clock. No moment of one clock is subtracted from, added to or
compared with one of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from heald.runtime.executor import HOST_CLOCK, clock_spans

if TYPE_CHECKING:
    from heald.runtime.executor import Event

Span = tuple[int, int]


class RunClocks:
    """Clocks by number, the host's first."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._spans = clock_spans(events)
        self._numbers = {clock: number for number, clock in enumerate(self._spans)}

    def number(self, clock: str) -> int:
        return self._numbers[clock]

    def us(self, clock: str, moment: int) -> float:
        """Return the microseconds from the clock's first call to a moment."""
        return round((moment - self._spans[clock][0]) / 1e3, 2)

    def rows(self) -> list[tuple[str, float]]:
        """Return name and microseconds of each clock."""
        return [(clock, round((end - start) / 1e3, 2)) for clock, (start, end) in self._spans.items()]

    def span_on(self, event: Event, clock: str) -> Span:
        """Return the times of an event on one of its clocks: enqueueing on the host's, work on its own."""
        return (event.start_ns, event.end_ns) if clock == HOST_CLOCK else event.span

    def last_end(self, consumers: Iterable[Event], clock: str) -> int:
        """Return the end of the last consumer, or of the clock without one or with one that it does not time."""
        ends = [self.span_on(event, clock)[1] if clock in (HOST_CLOCK, event.clock) else self._spans[clock][1]
                for event in consumers]
        return max(ends, default=self._spans[clock][1])
