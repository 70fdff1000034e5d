"""Random host programs of functions that call each other, of kernels that fail, in part or later, give what a small
oracle says to each of their results: on every work queue, under many schedules, several at once, cancelled at any
point."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import heald
import pytest
from builders.programs import Body, program
from harness.garbage import left_over
from heald.errors import Cancelled
from heald.runtime.contract.work_queue import WorkQueueConfig
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime.host_kernels.conftest import CONFIG

EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "100"))
USUAL = st.sampled_from(["add", "add", "add", "later", "blocking"])
ODD = st.sampled_from(["fail", "later_fail", "partial_fail", "call", "nonstrict_call", "second", "later", "call"])


@pytest.fixture(scope="module")
def hosts():
    """A host for each work queue, seeded ones with several seeds."""
    queues = [WorkQueueConfig(threads=2), WorkQueueConfig("single_threaded")]
    queues += [WorkQueueConfig("seeded", seed=seed) for seed in range(4)]
    new_hosts = [heald.HostContext(config=CONFIG, work_queue=queue) for queue in queues]
    yield new_hosts
    for host in new_hosts:
        assert host.work_queue.quiesce(20)
        host.close()
    assert left_over(new_hosts) == []


@st.composite
def programs(draw):
    """Functions, each a list of calls (kernel, first, second, callee) and the values it returns; values 0 and 1 are its
    arguments, and it calls functions before it."""
    functions = []
    for number in range(draw(st.integers(1, 4))):
        share = draw(st.sampled_from([0, 2, 5]))
        calls = []
        count = 2
        for _ in range(draw(st.integers(1, 8))):
            kernel = draw(ODD if draw(st.integers(0, 9)) < share else USUAL)
            if kernel.endswith("call") and not number:
                kernel = "add"
            nearby_index = st.integers(max(0, count - 3), count - 1) | st.integers(0, count - 1)
            calls.append((kernel, draw(nearby_index), draw(nearby_index), draw(st.integers(0, max(number - 1, 0)))))
            count += 2 if kernel == "partial_fail" or kernel.endswith("call") else 1
        functions.append((calls, draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))))
    return functions


def build(functions):
    built_functions = []
    for number, (calls, *results) in enumerate(functions):
        b = Body("i32", "i32")
        registers = [0, 1]
        for kernel, x, y, callee in calls:
            x, y = registers[x], registers[y]
            if kernel == "add":
                registers.append(b("tfrt.add.i32", x, y))
            elif kernel == "second":
                registers.append(b("test.second", x, y))
            elif kernel == "partial_fail":
                registers += b("test.partial_fail", x, results=("i32", "i32"))
            elif kernel.endswith("call"):
                registers += b("tfrt.call", x, y, results=("i32", "i32"), functions=(f"f{callee}",),
                               nonstrict=kernel == "nonstrict_call")
            else:
                registers.append(b(f"test.{kernel}", x))
        built_functions.append(b.function(f"f{number}", *(registers[r] for r in results)))
    return program(*built_functions)


def oracle(functions, number, x, y):
    """The results of function `number`: integers, or the text of an error."""
    calls, *results = functions[number]
    values = [x, y]
    for kernel, a, b, callee in calls:
        a, b = values[a], values[b]
        unary = kernel not in ("add", "second", "call", "nonstrict_call")
        stopped = [v for v in ((a,) if unary else (a, b)) if isinstance(v, str)]
        two = kernel == "partial_fail" or kernel.endswith("call")
        if kernel == "second":
            values.append(b)
        elif stopped and kernel != "nonstrict_call":
            values += stopped[-1:] * (1 + two)
        elif kernel.endswith("call"):
            values += oracle(functions, callee, a, b)
        elif kernel == "partial_fail":
            values += [a, f"half a boom {a}"]
        elif kernel == "add":
            values.append((a + b + 2**31) % 2**32 - 2**31)
        else:
            values.append(a if kernel in ("later", "blocking") else f"boom {a}")
    return [values[r] for r in results]


def agrees(value, want):
    return want in value.error.message if isinstance(want, str) else value.get() == want


def check(host, program_def, functions, x, y, request=None):
    last = len(functions) - 1
    results = program_def.run(f"f{last}", x, y, request=request or heald.RequestContext(host))
    assert host.await_values(results, timeout=20)
    want = oracle(functions, last, x, y)
    assert [agrees(r, w) for r, w in zip(results, want, strict=True)] == [True, True], (results, want)


@given(programs())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_random_program_gives_what_the_oracle_says_on_every_queue(hosts, functions):
    program_def = build(functions)
    for i, host in enumerate(hosts):
        check(host, program_def, functions, i, 5)
        check(host, program_def, functions, i + 1, -5)


@given(programs())
@settings(max_examples=EXAMPLES // 5, deadline=None)
def test_random_programs_that_run_at_once_do_not_see_each_other(hosts, functions):
    program_def, host = build(functions), hosts[0]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda x: check(host, program_def, functions, x, 2 * x), range(1, 9)))


@given(programs(), st.integers(0, 30))
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_a_random_program_that_is_cancelled_ends_with_right_results_or_cancelled_ones(hosts, functions, polls):
    program_def, host = build(functions), hosts[polls % len(hosts)]
    last = len(functions) - 1
    request = heald.RequestContext(host)
    canceller = threading.Timer(polls * 3e-5, request.cancel)
    canceller.start()
    results = program_def.run(f"f{last}", 1, 2, request=request)
    assert host.await_values(results, timeout=20)
    canceller.join()
    for result, want in zip(results, oracle(functions, last, 1, 2), strict=True):
        assert isinstance(result.error, Cancelled) or agrees(result, want)
