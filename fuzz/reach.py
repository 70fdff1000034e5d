"""Reach: counts the calls of kernels in this process, so that a campaign tells which mutants came to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.runtime.executor.call_reports import CallReports
from heald.runtime.executor.dataflow import DataflowRun
from heald.runtime.linker import folding


class Reach:
    """`calls`: calls of kernels since the process began: in runs with a deadline, and in folding."""

    def __init__(self) -> None:
        self.calls = 0
        self._watch(CallReports, "call_each", lambda of, index, _call, frame, _step: of.layout.calls[
            frame.numbers[index]].kernel is not None)
        self._watch(DataflowRun, "_results", lambda _of, _number, call, _arguments: call.kernel is not None)
        self._watch(folding, "check_returned", lambda *_: True)

    def _watch(self, owner: Any, name: str, is_kernel: Callable[..., bool]) -> None:
        """Count the calls of a function, whose arguments tell whether it runs a kernel."""
        function: Callable[..., Any] = getattr(owner, name)

        def counting(*arguments: Any) -> Any:
            self.calls += is_kernel(*arguments)
            return function(*arguments)

        setattr(owner, name, counting)
