"""The steps of a run of a host program's function: a call begins, or values that come later arrive.

A call whose kernel is declared asynchronous returns futures. Its registers are pending, and the run goes on. These are
the rules of the executor with the single-threaded work queue, whose tasks run when the step has no ready call:

- Of the ready calls the first one in execution order begins (`in_execution_order`).
- A strict call is ready when all registers that it needs are filled. A non-strict call needs one of its arguments, and
  all registers of its `after`.
- Without a ready call, the values of the call that has waited longest arrive.

A non-strict call may return a future as well, where it waits for an argument itself. No step shows that: its registers
count as filled. With more threads, values may arrive earlier.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from heald.runtime.program import Call, ProgramFunction


class CallTraits(NamedTuple):
    is_nonstrict: bool
    is_asynchronous: bool


class ProgramStep(NamedTuple):
    """`call`: the index of a call in the function. `is_arrival`: its values arrive; otherwise it begins."""

    call: int
    is_arrival: bool


def traits_of_calls(function: ProgramFunction) -> list[CallTraits]:
    """Return the traits by the kernels' declarations. A kernel that no plugin in use has counts as a plain one."""
    from heald import default_host
    from heald.errors import HealdError

    traits, kernels = [], default_host().registries.host_kernels
    for call in function.kernels:
        is_nonstrict, is_asynchronous = call.nonstrict, False
        if call.is_host_kernel:
            try:
                kernel = kernels.get(call.code)
            except HealdError:
                pass
            else:
                is_nonstrict, is_asynchronous = is_nonstrict or kernel.nonstrict, kernel.asynchronous
        traits.append(CallTraits(is_nonstrict, is_asynchronous))
    return traits


def program_steps(function: ProgramFunction, traits: Sequence[CallTraits]) -> list[ProgramStep]:
    return _StepsOfRun(function, traits).steps()


def execution_order_of(function: ProgramFunction) -> list[int]:
    """Return the indices of the calls in the order of a run whose values never come later."""
    from heald.runtime.program import in_execution_order

    index_of = {id(call): index for index, call in enumerate(function.kernels)}
    return [index_of[id(call)] for call in in_execution_order(function).kernels]


class _StepsOfRun:
    def __init__(self, function: ProgramFunction, traits: Sequence[CallTraits]) -> None:
        self._calls, self._traits = function.kernels, traits
        self._order = execution_order_of(function)
        self._place_of = {index: place for place, index in enumerate(self._order)}
        self._filled = set(range(len(function.arg_names)))
        self._consumers: dict[int, set[int]] = {}
        for index, call in enumerate(self._calls):
            for register in call.needs:
                self._consumers.setdefault(register, set()).add(index)
        self._ready = [place for place, index in enumerate(self._order) if self._is_ready(index)]
        self._queued = set(self._ready)  # places of calls that became ready

    def steps(self) -> list[ProgramStep]:
        steps: list[ProgramStep] = []
        later: deque[int] = deque()  # calls whose values have not arrived
        while self._ready or later:
            if self._ready:
                index = self._order[heapq.heappop(self._ready)]
                steps.append(ProgramStep(index, is_arrival=False))
                if self._traits[index].is_asynchronous and self._calls[index].gives:
                    later.append(index)
                    continue
            else:
                index = later.popleft()
                steps.append(ProgramStep(index, is_arrival=True))
            self._fill(self._calls[index])
        return steps

    def _fill(self, call: Call) -> None:
        self._filled.update(call.gives)
        for register in call.gives:
            for consumer in self._consumers.get(register, ()):
                place = self._place_of[consumer]
                if place not in self._queued and self._is_ready(consumer):
                    self._queued.add(place)
                    heapq.heappush(self._ready, place)

    def _is_ready(self, index: int) -> bool:
        call = self._calls[index]
        if not self._traits[index].is_nonstrict:
            return self._filled.issuperset(call.needs)
        return self._filled.issuperset(call.after) and (not call.args or not self._filled.isdisjoint(call.args))
