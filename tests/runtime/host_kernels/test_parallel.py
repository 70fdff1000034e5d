"""Parallel loops: every index once, in blocks of the given size, on the work queue."""

from __future__ import annotations

import heald
import pytest
from builders.programs import CHAIN, Body, program
from heald.errors import Cancelled, FailedPrecondition
from heald.runtime.values.async_value import AsyncValue
from hypothesis import given
from hypothesis import strategies as st
from runtime.host_kernels.conftest import CONFIG, payloads

ATOMIC = "!test.atomic.i32"


def loop(code="tfrt.parallel_for.i32", *, body):
    """main(start, end, block): a chain."""
    b = Body("i32", "i32", "i32")
    return [body, b.function("main", b(code, 0, 1, 2, b.chain(), results=CHAIN, functions=("body",)))]


def noting(*, sync=False, slow=False):
    """A body that notes the start and the end of its block."""
    body = Body("i32", "i32", CHAIN)
    noted = body("test.note_later" if slow else "test.note", 0, 2, results=CHAIN)
    noted = body("test.note", 1, noted, results=CHAIN)
    return body.function("body", *(() if sync else (noted,)))


def notes(request):
    return request.resources.get("notes", list)


def blocks(start, end, size):
    return [(first, min(first + size, end)) for first in range(start, end, size)]


@pytest.fixture(scope="module")
def single():
    host = heald.HostContext(config=CONFIG, work_queue="single_threaded")
    yield host
    host.close()


@given(st.integers(-20, 20), st.integers(-20, 40), st.integers(1, 12), st.booleans())
def test_the_blocks_cover_the_range_once(single, start, end, size, sync):
    request = heald.RequestContext(single)
    results = program(*loop(body=noting(sync=sync))).run("main", start, end, size, request=request)
    assert single.await_values(results, timeout=20)
    assert payloads(results) == [None]
    noted = notes(request)
    assert sorted(zip(noted[::2], noted[1::2], strict=True)) == blocks(start, end, size)


@pytest.mark.parametrize("code", ["tfrt.parallel_for.i32", "tfrt.parallel_call.i32"])
@pytest.mark.parametrize("slow", [False, True])
def test_the_chain_is_filled_when_all_blocks_have_ended(give, host, code, slow):
    request = heald.RequestContext(host)
    assert give(loop(code, body=noting(slow=slow)), 0, 1000, 7, context=request) == [None]
    assert len(notes(request)) == 2 * len(blocks(0, 1000, 7))


def test_the_first_block_runs_at_once_and_the_others_are_tasks(single):
    request = heald.RequestContext(single)
    (chain,) = program(*loop(body=noting())).run("main", 0, 4, 1, request=request)
    assert notes(request) == [0, 1]
    assert not chain.is_available()
    assert single.await_values([chain], timeout=20)
    assert notes(request)[::2] == [0, 2, 1, 3]  # halves, as TFRT hands them on


def test_billions_of_blocks_cost_nothing_up_front_and_end_when_the_run_is_cancelled(single):
    request = heald.RequestContext(single)
    (chain,) = program(*loop(body=noting())).run("main", -(2**31), 2**31 - 1, 1, request=request)
    assert len(notes(request)) == 2
    request.cancel()
    assert single.await_values([chain], timeout=20)
    assert isinstance(chain.error, Cancelled)
    assert len(notes(request)) == 2


def failing_at(number):
    """A body of single blocks: block `number` fails, the others note their start."""
    body = Body("i32", "i32", CHAIN)
    _, remainder = body("tfrt.div.i32", body.constant(1), body("tfrt.add.i32", 0, body.constant(-number)),
                        results=("i32", "i32"))
    chain = body("tfrt.merge.chains", remainder, 2, results=CHAIN)
    return body.function("body", body("test.note", 0, chain, results=CHAIN))


def test_an_error_of_a_block_is_the_chains_once_all_blocks_have_ended(give, host):
    request = heald.RequestContext(host)
    (error,) = give(loop(body=failing_at(5)), 0, 20, 1, context=request)
    assert error.message == "Divide by zero"
    assert sorted(notes(request)) == [n for n in range(20) if n != 5]


@pytest.mark.parametrize("block", [0, -3])
def test_blocks_have_one_index_or_more(give, block):
    (error,) = give(loop(body=noting()), 0, 20, block)
    assert error.message == f"the block size is {block}, not 1 or more"


def test_a_nonstrict_loop_waits_for_its_bounds_alone(host):
    b = Body("i32", "i32")
    body = Body("i32", "i32", CHAIN, "i32")
    noted = body("test.note", 0, 2, results=CHAIN)
    done = b("tfrt.parallel_for.i32", b.constant(0), 0, b.constant(2), b.chain(), 1, results=CHAIN,
             functions=("body",), nonstrict=True)
    request, end = heald.RequestContext(host), AsyncValue()
    (chain,) = program(body.function("body", noted), b.function("main", done)).run(
        "main", end, AsyncValue(), request=request)
    assert not chain.is_available()
    end.emplace(5)
    assert host.await_values([chain], timeout=20)
    assert chain.get() is None
    assert sorted(notes(request)) == [0, 2, 4]
    request.cancel()


def test_blocks_add_to_one_counter(give):
    body, b = Body("i32", "i32", ATOMIC, CHAIN), Body("i32")
    body("tfrt_test.atomic.add.i32", 2, body("tfrt.add.i32", 1, body.constant(0)), 3, results=CHAIN)
    added = body("tfrt_test.atomic.inc.i32", 2, 3, results=CHAIN)
    counter = b("tfrt_test.atomic.create.i32", results=ATOMIC)
    done = b("tfrt.parallel_for.i32", b.constant(0), 0, b.constant(1), counter, b.chain(), results=CHAIN,
             functions=("body",))
    total, _ = b("tfrt_test.atomic.get.i32", counter, done, results=("i32", CHAIN))
    assert give([body.function("body", added), b.function("main", total)], 50) == [50 * 51 // 2 + 50]


def test_loops_nest(give, host):
    inner, body = Body("i32", "i32", CHAIN), Body("i32", "i32", CHAIN)
    noted = inner("test.note", 0, 2, results=CHAIN)
    inside = body("tfrt.parallel_for.i32", body.constant(0), body.constant(10), body.constant(3), 2, results=CHAIN,
                  functions=("inner",))
    request = heald.RequestContext(host)
    functions = [inner.function("inner", noted), *loop(body=body.function("body", inside))]
    assert give(functions, 0, 20, 2, context=request) == [None]
    assert sorted(notes(request)) == sorted([0, 3, 6, 9] * 10)


def test_a_closed_queue_is_an_error_of_the_loop():
    host = heald.HostContext(config=CONFIG, work_queue="single_threaded")
    host.work_queue.close()
    (chain,) = program(*loop(body=noting())).run("main", 0, 10, 1, request=heald.RequestContext(host))
    assert isinstance(chain.error, FailedPrecondition)
    host.close()
