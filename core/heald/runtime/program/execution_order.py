"""Execution order: the order in which TFRT's executor runs the calls of a function whose values never come later.

- A call that has become ready runs before calls that were ready, and the first user of a value before its other users.
  So calls without arguments run in the reverse order of the program.
- A ready call of another stream waits until no call of the running stream is ready. The first of these streams then
  runs. Each other one becomes a task of the work queue, in the order of their numbers. Tasks run one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from .host_program import Call, ProgramFunction
from .stream_analysis import stream_numbers

ROOT_STREAM = 0


def in_execution_order(function: ProgramFunction) -> ProgramFunction:
    """Return a function with its calls in execution order. A function with calls of ops stays as it is: devices order
    these."""
    calls = function.kernels
    if len(calls) < 2 or not all(call.is_host_kernel for call in calls):
        return function
    streams = function.streams or stream_numbers(function)
    order = _order(calls, streams, range(len(function.arg_names)))
    return function._replace(kernels=tuple(calls[index] for index in order),
                             streams=tuple(streams[index] for index in order))


def _order(calls: Sequence[Call], streams: Sequence[int], arguments: range) -> list[int]:
    users: dict[int, list[int]] = {}
    for index in reversed(range(len(calls))):
        for register in calls[index].needs:
            users.setdefault(register, []).append(index)
    missing = [len(call.needs) for call in calls]
    order: list[int] = []
    tasks: deque[tuple[int, list[int]]] = deque([(ROOT_STREAM, [])])
    became_ready = [index for index, call in enumerate(calls) if not call.needs]
    became_ready += _take_ready_calls(arguments, users, missing)
    while tasks:
        stream, ready = tasks.popleft()
        outlined: list[int] = []  # ready calls of other streams
        while True:
            for index in became_ready:
                (ready if streams[index] == stream else outlined).append(index)
            if not ready:
                if not outlined:
                    break
                groups: dict[int, list[int]] = {}
                for index in outlined:
                    groups.setdefault(streams[index], []).append(index)
                stream = streams[outlined[0]]
                ready = groups.pop(stream)
                tasks += sorted(groups.items())
                outlined = []
            index = ready.pop()
            order.append(index)
            became_ready = _take_ready_calls(calls[index].gives, users, missing)
        became_ready = []
    return order


def _take_ready_calls(registers: Iterable[int], users: dict[int, list[int]], missing: list[int]) -> list[int]:
    """Return the calls that become ready with these values. Their counts of missing values are changed."""
    ready_calls = []
    for register in registers:
        for user in users.get(register, ()):
            missing[user] -= 1
            if not missing[user]:
                ready_calls.append(user)
    return ready_calls
