"""Piecewise: the flat list run in pieces, by the thread that runs the step and those of the work queue that are free.

Its frames have a memory plan of their own, which is right in every order that the pieces allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Cancelled, ResourceExhausted
from ..host.parallel import Job
from .frame import Cursor, Frame, FrameLayout
from .schedule import CallEach, Schedule
from .step import Step
from .task_partition import LEAST_GAIN, TaskPartition, divide

if TYPE_CHECKING:
    from ..host.host import Host


def dependencies(layout: FrameLayout) -> list[list[int]]:
    """For each call of the flat list the earlier ones that it needs, by their places in it. Stateful calls need the
    one before: what they do to the world has an order."""
    place = {number: i for i, number in enumerate(layout.attached)}
    maker: dict[int, int] = {}  # register -> place of the call that fills it
    needs: list[list[int]] = [[] for _ in layout.attached]
    last_stateful: list[int] = []
    for number, bound in enumerate(layout.calls):
        call = bound.call
        if number in place:
            here = place[number]
            before = {maker[r] for r in call.needs if r in maker}
            if bound.stateful:
                before.update(last_stateful)
                last_stateful = [here]
            needs[here] = sorted(before)
            maker.update(dict.fromkeys(call.gives, here))
        elif number not in layout.late:  # a view that frames are made with: there when what it shows is
            shown = {r: call.args[bound.alias[i]] for i, r in enumerate(call.results)}
            maker.update({r: maker[source] for r, source in shown.items() if source in maker})
    return needs


def divided(layout: FrameLayout, host: Host, flat: Schedule, costs: Sequence[int]) -> Schedule | None:
    """The list in pieces by these costs of its calls, in ns; None where that does not promise to be faster."""
    alone = sum(cost for number, cost in zip(layout.attached, costs, strict=True) if layout.calls[number].fills_cores)
    if alone * LEAST_GAIN > sum(costs):
        return None
    pieces = divide(dependencies(layout), costs, host.work_queue.parallelism_level)
    return None if pieces is None else parallel_schedule(layout, host, flat, pieces)


def parallel_schedule(layout: FrameLayout, host: Host, flat: Schedule, pieces: TaskPartition) -> Schedule:
    """The list in these pieces; `flat` is how a frame is run for which there was too little memory."""
    this = Piecewise(layout, host, flat, pieces)
    schedule = Schedule(this.make_frame, this.run, this.run_each)
    host.memory.may_drop(schedule.frames)
    return schedule


class Piecewise:
    def __init__(self, layout: FrameLayout, host: Host, flat: Schedule, pieces: TaskPartition) -> None:
        self._layout = layout
        self._host = host
        self._flat = flat.run, flat.run_each
        self._pieces = pieces
        self._plan = layout.plan_of(pieces)
        self._users = pieces.users()

    def make_frame(self) -> Frame:
        """A frame with the calls of each piece; a plain one when there is no memory for it."""
        with suppress(ResourceExhausted):
            return self._make_frame()
        return self._layout.make_frame()  # here, where the error keeps nothing of the first one alive any more

    def _make_frame(self) -> Frame:
        frame = self._layout.make_frame(self._plan)
        frame.pieces = [[frame.calls[i] for i in members] for members in self._pieces.calls]
        return frame

    def run(self, frame: Frame, step: Step) -> None:
        """Raises what the first call to fail raises, when the begun ones have ended; the frame's cursor is there."""
        if frame.pieces:
            self._run(frame, step, None)
        else:
            self._flat[0](frame, step)

    def run_each(self, call_each: CallEach, frame: Frame, step: Step) -> None:
        if frame.pieces:
            self._run(frame, step, call_each)
        else:
            self._flat[1](call_each, frame, step)

    def _run(self, frame: Frame, step: Step, call_each: CallEach | None) -> None:
        frame.cursors = cursors = [Cursor() for _ in frame.pieces]
        last: dict[int, int] = {}  # of pieces that raised: the place of the call that did
        work = partial(self._run_piece, frame, step, last, call_each)

        def stop() -> None:
            for cursor in cursors:
                cursor.stop()
            if self._layout.is_asynchronous:  # the step is this run's alone
                step.cancel(Cancelled("another kernel of the run has failed"))

        job = Job(self._host, list(map(len, self._pieces.needs)), self._users, work, stop)
        try:
            job.run()
        except Exception:
            if job.failed is not None:
                frame.cursor = self._cursor_at(frame, last[job.failed]) if job.failed in last else cursors[job.failed]
            raise

    def _run_piece(
        self, frame: Frame, step: Step, last: dict[int, int], call_each: CallEach | None, _: Job, piece: int
    ) -> None:
        places, cursor = self._pieces.calls[piece], frame.cursors[piece]
        cursor.calls = calls = iter(frame.pieces[piece])
        if step.error is not None or cursor.is_stopped:  # after the calls are there: a stop moves those that it finds
            raise step.end()
        try:
            if call_each is None:
                for call in calls:
                    call()
            else:
                for place, call in zip(places, calls, strict=False):
                    call_each(place, call, frame, step)
        except BaseException:
            left: int = calls.__length_hint__()  # type: ignore[attr-defined]
            if not cursor.is_stopped:  # asked after the position was read: a cursor is marked, then moved
                last[piece] = places[max(len(places) - left - 1, 0)]
            raise
        if cursor.is_stopped:
            raise step.end()

    def _cursor_at(self, frame: Frame, place: int) -> Cursor:
        """A cursor behind the call at this place of the flat list."""
        cursor = Cursor()
        cursor.calls = calls = iter(frame.calls)
        calls.__setstate__(place + 1)  # type: ignore[attr-defined]
        return cursor
