"""Kernels whose results come from tasks of the work queue, and a benchmark."""

from __future__ import annotations

import threading
import time
from random import uniform
from typing import Annotated, Any

from heald.api import I32, AsyncValue, Callee, Chain, HostType, Step, String

PLAIN = "operands attr-dict"


class Counter:
    def __init__(self):
        self.value = 0
        self.lock = threading.Lock()

    def add(self, amount):
        with self.lock:
            self.value += amount


Atomic = Annotated[Counter, HostType("!test.atomic.i32", lambda value: isinstance(value, Counter))]


def register(kernels):
    undivided = lambda arguments, results: [(arguments, results)]  # noqa: E731
    kernels.kernel("tfrt_test.do.async", step=True, asynchronous=True, calls=undivided,
                   syntax="operands attr-dict `:` functional-type(operands, results) region(operands)")(do_async)
    kernels.kernel("tfrt_test.benchmark", step=True, asynchronous=True,
                   syntax=f"custom<{__package__}.benchmark_syntax:SYNTAX>")(benchmark)
    for name, function in {"add": async_add, "constant": async_constant, "copy": async_copy, "copy_2": async_copy,
                           "copy.with_delay": async_copy_with_delay}.items():
        syntax = "$value attr-dict" if name == "constant" else PLAIN
        kernels.kernel(f"tfrt_test.async_{name}.i32", step=True, asynchronous=True, syntax=syntax)(function)
    kernels.kernel("tfrt_test.as_chain", syntax="operands attr-dict `:` type(operands)")(as_chain)
    kernels.kernel("tfrt_test.usleep", step=True, syntax=PLAIN)(usleep)
    kernels.kernel("tfrt_test.blocking.usleep", step=True, asynchronous=True, syntax=PLAIN)(blocking_usleep)
    for name, function in {"create": create, "inc": inc, "add": add, "get": get}.items():
        kernels.kernel(f"tfrt_test.atomic.{name}.i32", syntax=PLAIN)(function)


def do_async(step: Step, *values: Any, body: Callee) -> list[Any]:
    return step.enqueue_call(body, values)


def async_add(step: Step, a: I32, b: I32) -> I32:
    return step.enqueue(lambda: (a + b + 2**31) % 2**32 - 2**31)


def async_constant(step: Step, *, value: I32) -> I32:
    return step.enqueue(lambda: value)


def async_copy(step: Step, value: I32) -> I32:
    return step.enqueue(lambda: value)


def async_copy_with_delay(step: Step, value: I32) -> I32:
    def slow():
        time.sleep(uniform(0.001, 0.01))  # noqa: S311
        return value

    return step.enqueue(slow)


def as_chain(*values: Any) -> Chain:
    """Ready when the values are."""


def usleep(step: Step, microseconds: I32) -> None:
    blocking_usleep(step, microseconds)


def blocking_usleep(step: Step, microseconds: I32) -> Chain:
    def sleep():
        time.sleep(microseconds / 1e6)
        step.host.print_line(f"Slept for {microseconds} microseconds")

    return step.enqueue_blocking(sleep)


def create() -> Atomic:
    return Counter()


def inc(counter: Atomic, chain: Chain) -> Chain:
    counter.add(1)


def add(counter: Atomic, amount: I32, chain: Chain) -> Chain:
    counter.add(amount)


def get(counter: Atomic, chain: Chain) -> tuple[I32, Chain]:
    return counter.value, None


def benchmark(
    step: Step, *values: Any, duration_secs: I32, max_count: I32, name: String, num_warmup_runs: I32 = 1, body: Callee
) -> Chain:
    """Run the body again and again, each run a task behind the one before, and print the times of the runs."""
    return _Benchmark(step, values, body, name, duration_secs, max_count, num_warmup_runs).begin()


class _Benchmark:
    def __init__(self, step, values, body, name, seconds, max_runs, warmups):
        self.done = AsyncValue()
        self._step, self._values, self._body, self._name = step, values, body, name
        self._nanoseconds, self._most, self._warmups = seconds * 10**9, max_runs, warmups
        self._times, self._cpu_times = [], []

    def begin(self):
        self._start = time.perf_counter_ns()
        self._next()
        return self.done

    def _next(self):
        if self._warmups == 0 and not self._times:
            self._start = time.perf_counter_ns()
        clocks = time.perf_counter_ns(), time.process_time_ns()
        (value,) = self._step.enqueue_call(self._body, self._values)
        value.and_then(lambda: self._has_run(value, clocks))

    def _has_run(self, value, clocks):
        if value.is_error():
            self.done.set_error(value.error)
            return
        if self._warmups:
            self._warmups -= 1
        else:
            self._times.append(time.perf_counter_ns() - clocks[0])
            self._cpu_times.append(time.process_time_ns() - clocks[1])
        over = time.perf_counter_ns() - self._start >= self._nanoseconds
        if self._times and (len(self._times) >= self._most or over):
            self._report(time.perf_counter_ns() - self._start)
            self.done.emplace(None)
        else:
            self._next()

    def _report(self, duration):
        rows = {"Duration(ns)": duration, "Count": len(self._times)}
        for kind, times in (("Time", sorted(self._times)), ("CPU", sorted(self._cpu_times))):
            rows[f"{kind} Min(ns)"] = times[0]
            rows |= {f"{kind} {share}%(ns)": times[len(times) * share // 100] for share in (50, 95, 99)}
        rows["CPU utilization(percent)"] = sum(self._cpu_times) * 100 // max(sum(self._times), 1)
        for what, number in rows.items():
            self._step.host.print_line(f"BM:{self._name}:{what}: {number}")
