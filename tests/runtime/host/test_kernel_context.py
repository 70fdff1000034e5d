"""Kernels run without denormals and without NumPy's warnings, on every thread that runs them. The thread's
other work is not touched."""

from __future__ import annotations

import os
import sys
import threading
import warnings

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError
from heald.runtime.executor.step import Step
from heald.runtime.host.kernel_context import KernelContext
from heald.runtime.service.runtime import runtime

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="denormals cannot be switched off here")
SMALL = np.float32(1e-30)
DENORMAL = np.float32(1e-40)


def has_denormals() -> bool:
    return bool(np.multiply(SMALL, np.float32(1e-10)) != 0)


@pytest.mark.parametrize("count", [3, 1 << 20])  # by one thread, and by all that a library has
def test_denormal_operands_and_results_are_zero(count):
    session = heald.Session(graph(placeholder("x", (None,)), placeholder("y", (None,)), node("z", "Mul", "x", "y")))
    x = np.full(count, SMALL)
    assert np.all(session.run("z:0", {"x:0": x, "y:0": np.full(count, np.float32(1e-10))}) == 0)
    assert np.all(session.run("z:0", {"x:0": np.full(count, DENORMAL), "y:0": np.full(count, np.float32(1e20))}) == 0)
    assert np.all(session.run("z:0", {"x:0": x, "y:0": x * 0 + 1}) == SMALL)
    assert has_denormals()


def test_a_run_that_fails_leaves_the_thread_as_it_was():
    session = heald.Session(graph(placeholder("x"), placeholder("y"), node("z", "MatMul", "x", "y")))
    with pytest.raises(HealdError):
        session.run("z:0", {"x:0": np.ones((2, 3), np.float32), "y:0": np.ones((2, 3), np.float32)})
    assert has_denormals()


def test_threads_that_help_have_none_either():
    host = runtime({"work_queue": {"threads": 3}}).host
    meeting = threading.Barrier(3, timeout=10)
    context_flags: list[bool] = []

    def work(_number: int) -> None:
        meeting.wait()
        context_flags.append(has_denormals())

    Step(host).parallel_for(3, work)
    assert sorted(context_flags) == [False, False, True]  # two threads of the queue, and this one
    KernelContext().run(Step(host).parallel_for, 3, work)
    assert context_flags[3:] == [False] * 3
    assert has_denormals()
    host.close()


def test_numpy_warns_of_nothing_inside_and_does_outside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(KernelContext().run(np.log, np.float32(0)))
        with pytest.raises(RuntimeWarning):
            np.log(np.float32(0))
