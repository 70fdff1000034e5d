"""Order: a stream runs work in order, an event marks work as done, and sessions and threads do not disturb others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import heald
import numpy as np
from heald.api import STREAM, own_method
from heald.runtime.host import WAIT_CHECKS, Waits

from ..arrays import generator
from ..case import sentence
from ..elementwise import Chain
from ..injection import failing_node
from ..subject import Subject, whatever_comes
from ..verdict import NotApplicable, expect, expect_close, expect_same_bits

SIZES = (1, 100, 10_000, 1_000_000)  # bytes: small work is often done before the host waits


def ramp(seed: int, nbytes: int) -> Any:
    return (np.arange(nbytes, dtype=np.int64) * 7 + seed).astype(np.uint8)


@sentence(over=lambda _: [str(n) for n in SIZES])
def an_event_comes_after_all_that_was_enqueued_before_it(on: Subject, nbytes: str) -> None:
    count = int(nbytes)
    with on.buffers(count) as (buffer,):
        for seed in range(on.size(20, 3)):
            host = np.full(count, 0xA5, np.uint8)
            on.enqueue_in(ramp(seed, count), buffer)
            on.enqueue_out(buffer, host)
            on.finish()
            expect_same_bits(host, ramp(seed, count), "an array when the event after its copy has been waited for",
                             "Device.synchronize")


@sentence(over=lambda _: list(WAIT_CHECKS))
def a_wait_ends_after_the_work_before_it(on: Subject, work: str) -> None:
    """As `heald devices --check`: after the wait the host overwrites the arrays that the work has read."""
    if on.host_visible:
        raise NotApplicable("its buffers are host memory: no work is pending")
    waits = Waits(on.device, on.host.registries, on.size(1 << 20, 1 << 14))
    try:
        with whatever_comes(f"a wait behind {work}", expected="no exception", rule="Device.synchronize"):
            is_complete = WAIT_CHECKS[work](waits)
    finally:
        on.finish()
        waits.free()
    expect(is_complete, f"a wait behind {work}", expected="the end of the work", got="a return before it",
           rule="Device.synchronize")


@sentence()
def work_on_one_stream_is_done_in_order(on: Subject) -> None:
    count = on.size(50, 10)
    contents = [ramp(seed, 3000) for seed in range(count)]
    hosts = [np.zeros(3000, np.uint8) for _ in contents]
    with on.buffers(3000) as (buffer,):
        for content, host in zip(contents, hosts, strict=True):
            on.enqueue_in(content, buffer)
            on.enqueue_out(buffer, host)
        on.finish()
    for number, (content, host) in enumerate(zip(contents, hosts, strict=True)):
        expect_same_bits(host, content, f"the {number + 1}. of {count} contents of one buffer, read in between",
                         "streams")


@sentence()
def events_are_waited_for_in_any_order_and_more_than_once(on: Subject) -> None:
    hosts = [np.zeros(500, np.uint8) for _ in range(3)]
    with on.buffers(500) as (buffer,):
        events = []
        for seed, host in enumerate(hosts):
            on.enqueue_in(ramp(seed, 500), buffer)
            on.enqueue_out(buffer, host)
            events.append(on.device.record(STREAM))
        with whatever_comes("events waited for out of order", expected="no exception", rule="Device.synchronize"):
            for number in (2, 0, 1, 2):
                on.device.synchronize(events[number])
    for seed, host in enumerate(hosts):
        expect_same_bits(host, ramp(seed, 500), "a copy before the event", "Device.synchronize")


@sentence()
def the_times_between_events_add_up(on: Subject) -> None:
    elapsed = own_method(on.device, "elapsed")
    if elapsed is None:
        raise NotApplicable(f"{on.type} has no elapsed: traces wait for its kernels")
    with on.buffers(SIZES[-1]) as (buffer,):
        on.finish()
        first = on.device.record(STREAM)
        on.device.synchronize(first)
        elapsed(first, first)  # the device may begin to keep times
        events = []
        for seed in range(4):
            on.enqueue_in(ramp(seed, SIZES[-1]), buffer)
            events.append(on.device.record(STREAM))
        on.finish()
        parts = [elapsed(a, b) for a, b in pairwise(events)]
        total = elapsed(events[0], events[-1])
    if None in (total, *parts):
        raise NotApplicable(f"{on.name} keeps no times: traces wait for its kernels")
    expect(all(isinstance(part, float) and part >= 0 for part in parts), "a time between an event and a later one",
           expected="seconds, as a float of 0 or more", got=parts, rule="Device.elapsed")
    expect(abs(sum(parts) - total) <= 1e-6 + 0.01 * total, "the sum of the times between four events in a row",
           expected=f"{total} s, as between the first and the last", got=f"{sum(parts)} s", rule="Device.elapsed")


@sentence()
def an_event_of_an_idle_stream_is_reached(on: Subject) -> None:
    for _ in range(3):
        on.finish()


@sentence()
def a_buffer_that_is_freed_serves_what_was_enqueued(on: Subject) -> None:
    for seed in range(on.size(20, 5)):
        first, second = on.allocate(5000), None
        host, want = np.zeros(5000, np.uint8), ramp(seed, 5000)
        on.enqueue_in(want, first)
        if seed % 2:  # then only the copy out is pending when the buffer is freed
            on.finish()
        on.enqueue_out(first, host)
        on.device.free(first)
        second = on.allocate(5000)  # the same memory is allowed, but only after the copy
        on.enqueue_in(ramp(seed + 1, 5000), second)
        on.finish()
        expect_same_bits(host, want, "a copy out of a buffer that was freed after it was enqueued", "Device.free")
        on.device.free(second)


@sentence(over=lambda _: ["1", "3", "1000", "100000"])
def a_kernel_sees_the_copy_before_it_and_is_seen_by_the_one_after(on: Subject, elements: str) -> None:
    chain = Chain(on, 3)
    rng = generator("copy kernel copy", elements)
    with on.session(chain.nodes) as session:
        step = session.make_callable(chain.last, ["x"])
        for _ in range(on.size(50, 5)):
            x = rng.normal(size=int(elements)).astype(np.float32)
            check(on, chain, x, step(x), "copy in, kernels, copy out")


@sentence()
def many_launches_in_one_run_give_the_last_ones_result(on: Subject) -> None:
    chain = Chain(on, on.size(1000, 150))
    x = generator("many launches").normal(size=33).astype(np.float32) / len(chain.ops)
    (got,) = on.run(chain.nodes, [chain.last], {"x": x})
    check(on, chain, x, got, f"a chain of {len(chain.ops)} kernels")


@sentence()
def threads_with_a_session_each_do_not_disturb_each_other(on: Subject) -> None:
    chain = Chain(on, 9)

    def work(seed: int) -> None:
        with on.session(chain.nodes) as session:
            runs_are_right(on, chain, session, seed)

    at_once(work)


@sentence()
def threads_that_share_a_session_do_not_disturb_each_other(on: Subject) -> None:
    chain = Chain(on, 9)
    with on.session(chain.nodes) as session:
        at_once(lambda seed: runs_are_right(on, chain, session, seed))


@sentence()
def a_cancelled_run_leaves_the_device_usable(on: Subject) -> None:
    chain = Chain(on, 200)
    x = generator("cancelled").normal(size=50).astype(np.float32)
    with on.session(chain.nodes) as session:
        token = heald.CancelToken()
        token.cancel()
        for options in (heald.RunOptions(cancel=token), heald.RunOptions(timeout=1e-9)):
            try:
                session.run(chain.last, {"x": x}, options=options)
            except (heald.errors.Cancelled, heald.errors.DeadlineExceeded):
                pass
            else:
                expect(False, "a run that was cancelled, or had no time", expected="Cancelled or DeadlineExceeded",
                       got="results", rule="errors")
            check(on, chain, x, session.run(chain.last, {"x": x}), "a run after one that was cancelled")


@sentence()
def a_failed_run_leaves_the_device_usable(on: Subject) -> None:
    chain = Chain(on, 5)
    x = generator("failed").normal(size=50).astype(np.float32)
    with on.session([*chain.nodes, failing_node(on, "bad", chain.last)]) as session:
        for _ in range(on.size(20, 4)):
            try:
                session.run("bad", {"x": x})
            except heald.errors.HealdError:
                pass
            else:
                expect(False, "a kernel that raises", expected="a heald.errors class", got="results", rule="errors")
            check(on, chain, x, session.run(chain.last, {"x": x}), "a run after one that failed")


def check(on: Subject, chain: Chain, x: Any, got: Any, what: str) -> None:
    expect_close(got, chain.expected(x), on.settings.tolerance("float32"), what, "streams")


def runs_are_right(on: Subject, chain: Chain, session: heald.Session, seed: int) -> None:
    rng = generator("threads", seed)
    step = session.make_callable(chain.last, ["x"])
    for _ in range(on.size(50, 8)):
        x = rng.normal(size=(7, 11 + seed)).astype(np.float32)
        expect_close(step(x), chain.expected(x), on.settings.tolerance("float32"), f"a run of thread {seed} of four",
                     "threads")


def at_once(work: Callable[[int], None]) -> None:
    """Run `work` in four threads. Raises the first exception of a thread in the caller."""
    failures: list[BaseException] = []

    def run_guarded(seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            failures.append(error)

    threads = [threading.Thread(target=run_guarded, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure
