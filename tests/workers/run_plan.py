"""Runs plans of kernel texts in a process that has an OpenCL runtime, one for all tests of this process: plan_worker.

A test whose kernel takes that process down is the only one to fail: the next has a new process.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from heald_kernel_text import Plan
from workers import opencl_runtime


class Worker:
    """`platform`: the OpenCL platform that runs the plans; None where there is none, for `reason`."""

    def __init__(self) -> None:
        self._start()

    def run(self, *request: Any) -> list[Any]:
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            results, failure = self._answer()
        except (EOFError, BrokenPipeError):
            self.close()
            self._start()
            raise AssertionError("the process that runs kernels has died") from None
        assert not failure, failure
        return results

    def close(self) -> None:
        self._process.communicate()

    def _start(self) -> None:
        self._process: Any = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("plan_worker.py"))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=opencl_runtime.environment())
        self.platform, self.reason = self._answer()

    def _answer(self) -> Any:
        return pickle.load(self._process.stdout)  # noqa: S301 - we started it


worker = cache(Worker)  # started by the fixture `driver`


def run_plan(plan: Plan, inputs: list[Any], outputs: list[tuple[Any, tuple[int, ...]]]) -> list[Any]:
    """The outputs, of these NumPy dtypes and shapes. Elements that a plan does not write are poison."""
    return worker().run(plan, inputs, outputs)
