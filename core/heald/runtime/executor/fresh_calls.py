"""FreshCalls: calls as functions from arguments to results, which write no memory of the plan, for a Dataflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..program.host_program import COPY, EVENT, HOST
from .array_contract import check_returned
from .bound_call import BoundCall
from .frame_calls import copier
from .frame_layout import FrameLayout
from .host_array import view
from .kernel_runs import KernelRuns
from .step import Step

if TYPE_CHECKING:
    from ..host.host import Host

FreshCall = Callable[[Step, list[Any]], list[Any]]  # arguments to results, which are new arrays or views of arguments


class FreshCalls:
    """The calls of `layout` as FreshCalls, shared by all runs."""

    def __init__(self, layout: FrameLayout, host: Host) -> None:
        self._layout = layout
        self._host = host
        self._runs = KernelRuns(layout, host)
        self._calls: dict[int, FreshCall] = {}

    def call(self, number: int) -> FreshCall:
        """Return call `number` as a function, built on first use, that writes no memory of the plan."""
        if number not in self._calls:
            self._calls[number] = self._make(self._layout.calls[number])
        return self._calls[number]

    def _make(self, bound: BoundCall) -> FreshCall:
        metas = [self._layout.metas[r] for r in bound.call.results]
        if bound.is_view:
            sources = [bound.alias[i] for i in range(len(metas))]
            if bound.memory != HOST:
                return lambda _, ins: [ins[s] for s in sources]
            return lambda _, ins: [view(ins[s], m) for s, m in zip(sources, metas, strict=True)]
        if bound.lazy is not None:
            return bound.lazy
        if bound.call.code == EVENT:
            assert bound.device is not None
            waiter = self._host.waiter(bound.device)
            return lambda _, __: [waiter.reach()]
        if bound.call.code == COPY or bound.memory != HOST:
            return self._make_on_device(bound)
        takes_step = bound.kernel is not None and bound.kernel.step
        run = None if takes_step else self._runs.runner(bound, [])
        if bound.returns:
            return lambda step, ins: (run or self._runs.runner(bound, [step]))(ins)
        makers = [self._runs.maker(r, []) for r in bound.call.results]

        assert bound.kernel is not None
        kernel = bound.kernel

        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [make() for make in makers]
            check_returned((run or self._runs.runner(bound, [step]))(*ins, *outs), outs, kernel)
            return outs

        def call_for_one(_: Step, ins: list[Any]) -> list[Any]:
            out = makers[0]()
            returned = run(*ins, out)  # type: ignore[misc]
            if returned is not out and returned is not None:  # calling check_returned costs a tenth of a small kernel
                check_returned(returned, (out,), kernel)
            return [out]

        return call_for_one if run is not None and len(makers) == 1 else call

    def _make_on_device(self, bound: BoundCall) -> FreshCall:
        device, results = bound.device, bound.call.results
        assert device is not None
        waiter = self._host.waiter(device)
        if bound.call.code == COPY and bound.memory == HOST:
            make = self._runs.maker(results[0], [])
            return lambda _, ins: [waiter.leave(ins[0], make())]

        def call(step: Step, ins: list[Any]) -> list[Any]:
            outs = [self._runs.maker(r, [step])() for r in results]
            if bound.call.code == COPY:
                copier(bound)(ins[0], outs[0])
                waiter.keep(ins[0])
            else:
                assert bound.kernel is not None
                check_returned(self._runs.runner(bound, [step])(*ins, *outs), outs, bound.kernel)
            return outs

        return call
