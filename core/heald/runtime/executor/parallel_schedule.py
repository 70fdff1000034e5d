"""Parallel schedule: a flat list under a task partition, run by the step's thread and free work queue threads.

Frames of a parallel schedule have their own memory plan, which holds in every order that the partition allows.

A run is a `Job`: its tasks in the queue offer help, and the owner waits for begun parts only. Calls on several devices
of the host's memory begin in a parallel schedule, so that the devices work at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ...errors import Cancelled, ResourceExhausted
from .frame import Cursor, Frame
from .frame_factory import FrameFactory
from .frame_layout import FrameLayout
from .schedule import LEAST_SPEEDUP, CallEach, Schedule
from .step import Step
from .task_partition import TaskPartition, divide_by_costs, divide_by_owner

if TYPE_CHECKING:
    from ..host.host import Host
    from ..host.parallel import Job


def dependencies(layout: FrameLayout) -> list[list[int]]:
    """For each call of the flat list return the indices of the earlier calls that it needs.

    A stateful call needs the previous stateful call: side effects have an order.
    """
    index_of = {number: i for i, number in enumerate(layout.lists.flat)}
    producer: dict[int, int] = {}  # register -> index of the call that fills it
    needs: list[list[int]] = [[] for _ in layout.lists.flat]
    last_stateful: list[int] = []
    for number, bound in enumerate(layout.calls):
        call = bound.call
        if number in index_of:
            here = index_of[number]
            before = {producer[r] for r in call.needs if r in producer}
            if bound.stateful:
                before.update(last_stateful)
                last_stateful = [here]
            needs[here] = sorted(before)
            producer.update(dict.fromkeys(call.gives, here))
        elif number not in layout.order.late:  # a fixed view: it has its value as soon as its source has
            shown = {r: call.args[bound.alias[i]] for i, r in enumerate(call.results)}
            producer.update({r: producer[source] for r, source in shown.items() if source in producer})
    return needs


def make_parallel_schedule(layout: FrameLayout, host: Host, flat: Schedule, costs: Sequence[int]) -> Schedule | None:
    """Partition the list by the costs of its calls, in ns. Return None when that does not promise to be faster."""
    alone = sum(cost for number, cost in zip(layout.lists.flat, costs, strict=True) if layout.calls[number].fills_cores)
    if alone * LEAST_SPEEDUP > sum(costs):
        return None
    partition = divide_by_costs(dependencies(layout), costs, host.work_queue.parallelism_level)
    return None if partition is None else schedule_of_partition(layout, host, flat, partition)


def make_device_schedule(layout: FrameLayout, host: Host, flat: Schedule) -> Schedule | None:
    """Return a schedule in which devices work at the same time. None when they cannot, or when there is one device."""
    owners = [id(layout.calls[number].device) for number in layout.lists.flat]
    if len(set(owners)) < 2 or host.work_queue.parallelism_level < 2:
        return None
    partition = divide_by_owner(dependencies(layout), owners)
    return None if partition is None else schedule_of_partition(layout, host, flat, partition)


def schedule_of_partition(layout: FrameLayout, host: Host, flat: Schedule, partition: TaskPartition) -> Schedule:
    """Return a schedule for this partition. `flat` runs the frames for which memory was short."""
    this = ParallelSchedule(layout, host, flat, partition)
    schedule = Schedule(this.make_frame, this.run, this.run_each)
    host.memory.may_drop(schedule.frames)
    return schedule


class ParallelSchedule:
    """The frames of a parallel schedule and its runs. The partition and the memory plan are shared by all of them."""
    def __init__(self, layout: FrameLayout, host: Host, flat: Schedule, partition: TaskPartition) -> None:
        self._layout = layout
        self._make_frame_of = FrameFactory(layout, host).make
        self._flat = flat.run, flat.run_each
        self._partition = partition
        self._plan = layout.plan_of(partition)
        self._users = partition.consumers()

    def make_frame(self) -> Frame:
        """Return a frame with the calls of each part, or a frame of the flat plan when memory is short."""
        with suppress(ResourceExhausted):
            return self._make_frame()
        return self._make_frame_of()  # after the handler: the error kept parts of the first frame alive

    def _make_frame(self) -> Frame:
        frame = self._make_frame_of(self._plan)
        frame.parts = [[frame.calls[i] for i in members] for members in self._partition.calls]
        return frame

    def run(self, frame: Frame, step: Step) -> None:
        """Run all parts. After all started parts have ended, raises the error of the first call that failed.

        The frame's cursor then stands at that call.
        """
        if frame.parts:
            self._run(frame, step, None)
        else:
            self._flat[0](frame, step)

    def run_each(self, call_each: CallEach, frame: Frame, step: Step) -> None:
        if frame.parts:
            self._run(frame, step, call_each)
        else:
            self._flat[1](call_each, frame, step)

    def _run(self, frame: Frame, step: Step, call_each: CallEach | None) -> None:
        from ..host.parallel import Job

        frame.cursors = cursors = [Cursor() for _ in frame.parts]
        last: dict[int, int] = {}  # part that raised -> flat index of the call that raised
        work = partial(self._run_part, frame, step, last, call_each)

        def stop() -> None:
            for cursor in cursors:
                cursor.stop()
            if self._layout.order.is_asynchronous:  # then the step belongs to this run alone
                step.cancel(Cancelled("another kernel of the run has failed"))

        job = Job(step.workers, list(map(len, self._partition.needs)), self._users, work, stop)
        try:
            job.run()
        except Exception:
            if job.failed is not None:
                frame.cursor = self._cursor_at(frame, last[job.failed]) if job.failed in last else cursors[job.failed]
            raise

    def _run_part(
        self, frame: Frame, step: Step, last: dict[int, int], call_each: CallEach | None, _: Job, part: int
    ) -> None:
        indices, cursor = self._partition.calls[part], frame.cursors[part]
        cursor.calls = calls = iter(frame.parts[part])
        if step.error is not None or cursor.is_stopped:  # after `calls` is set: a stop moves that iterator
            raise step.end_error()
        try:
            if call_each is None:
                for call in calls:
                    call()
            else:
                for index, call in zip(indices, calls, strict=False):
                    call_each(index, call, frame, step)
        except BaseException:
            left: int = calls.__length_hint__()  # type: ignore[attr-defined]
            if not cursor.is_stopped:  # tested after the position is read: `stop` sets the flag, then moves
                last[part] = indices[max(len(indices) - left - 1, 0)]
            raise
        if cursor.is_stopped:
            raise step.end_error()

    def _cursor_at(self, frame: Frame, index: int) -> Cursor:
        """Return a Cursor whose next call is the one after this index of the flat list."""
        cursor = Cursor()
        cursor.calls = calls = iter(frame.calls)
        calls.__setstate__(index + 1)  # type: ignore[attr-defined]
        return cursor
