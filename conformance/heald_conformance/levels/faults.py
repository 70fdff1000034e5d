"""Faults: every failure is one of heald's errors, leaves the device usable, and leaks nothing."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.api import Node, dtypes, errors, own_method

from ..arrays import generator
from ..case import sentence
from ..elementwise import Chain, ops_of
from ..injection import MESSAGE, failing, failing_node, raising, replace_methods
from ..late_failures import failing_waits, late_failing_node, synchronous
from ..subject import Subject
from ..verdict import Broken, NotApplicable, expect, expect_close

WRONG_FEEDS = {
    "text": np.array(["a"]),
    "complex": np.ones(3, np.complex64),
    "an_object": object(),
    "a_ragged_list": [[1.0], [1.0, 2.0]],
}
DESCRIPTORS = Path("/proc/self/fd")


@sentence(over=lambda _: list(WRONG_FEEDS))
def a_bad_feed_is_an_invalid_argument(on: Subject, feed: str) -> None:
    chain = Chain(on, 3)
    with on.session(chain.nodes) as session:
        fails_with(errors.InvalidArgument, lambda: session.run(chain.last, {"x": WRONG_FEEDS[feed]}))
        works(on, chain, session)


@sentence()
def a_missing_feed_is_one_of_healds_errors(on: Subject) -> None:
    chain = Chain(on, 3)
    with on.session(chain.nodes) as session:
        fails_with(errors.HealdError, lambda: session.run(chain.last))
        works(on, chain, session)


@sentence()
def a_kernel_that_raises_is_an_error_with_its_node_and_device(on: Subject) -> None:
    chain = Chain(on, 3)
    with on.session([*chain.nodes, failing_node(on, "bad", chain.last)]) as session:
        error = fails_with(errors.HealdError, lambda: session.run("bad", {"x": np.ones(3, np.float32)}))
        where = (error.node, error.device)
        expect(where == ("bad", on.name), "where the error is", expected=f"node bad, device {on.name}",
               got=f"node {where[0]}, device {where[1]}", rule="errors")
        expect(MESSAGE in str(error), "what the error says", expected=MESSAGE, got=error, rule="errors")
        works(on, chain, session)


@sentence(over=lambda _: ["awaited_at_the_end", "awaited_behind_each_kernel"])
def work_that_fails_behind_its_launch_is_an_error_with_its_device(on: Subject, how: str) -> None:
    """Launches a kernel without an error, and its work fails later. Where each kernel is awaited, as with `[debug]
    synchronous`, the error names the node, too. The next step works."""
    if on.host_visible:
        raise NotApplicable("its kernels have ended when they return")
    chain = Chain(on, 3)
    nodes = [*chain.nodes, late_failing_node(on, "bad", chain.last)]
    follower = next((op for op in ops_of(on) if op.arity == 1), None)
    nodes += [] if follower is None else [Node("after", follower.name, ["bad"], attrs={"T": dtypes.float32},
                                               device=on.name)]
    with synchronous(on, is_on=how == "awaited_behind_each_kernel"), on.session(nodes) as session:
        works(on, chain, session)
        with failing_waits(on):
            error = fails_with(errors.HealdError, lambda: session.run(nodes[-1].name, {"x": np.ones(3, np.float32)}))
        want = on.name if how == "awaited_at_the_end" else f"{on.name}, node bad"
        got = error.device if how == "awaited_at_the_end" else f"{error.device}, node {error.node}"
        expect(got == want, "where the error is", expected=want, got=f"{got}: {error}", rule="errors")
        works(on, chain, session)


@sentence(over=lambda on: ["copy_in", "copy_out", "record", "synchronize", *(["wrap"] if can_wrap(on) else [])])
def a_device_that_fails_gives_one_of_healds_errors(on: Subject, method: str) -> None:
    chain = Chain(on, 3)
    with on.session(chain.nodes) as session:
        works(on, chain, session)
        with failing(on, method, raising):
            fails_with(errors.HealdError, lambda: session.run(chain.last, {"x": np.ones(5, np.float32)}))
        on.finish()
        works(on, chain, session)


@sentence()
def a_run_without_memory_is_resource_exhausted(on: Subject) -> None:
    chain = Chain(on, 3)
    with on.session(chain.nodes) as session:
        with failing(on, "allocate", lambda _nbytes: None):
            fails_with(errors.ResourceExhausted, lambda: session.run(chain.last, {"x": np.ones(5, np.float32)}))
        works(on, chain, session)


@sentence()
def sessions_leave_nothing_behind(on: Subject) -> None:
    """Counts buffers if they can be referenced weakly, threads, and open files if the system has /proc/self/fd."""
    chain = Chain(on, 5)

    def sessions(count: int) -> None:
        for _ in range(count):
            with on.session([*chain.nodes, failing_node(on, "bad", chain.last)]) as session:
                works(on, chain, session)
                fails_with(errors.HealdError, lambda s=session: s.run("bad", {"x": np.ones(3, np.float32)}))  # type: ignore[misc]
        gc.collect()

    sessions(5)  # starts the work queue's threads and fills caches
    ledger, before = Taken(on), _threads_and_files()
    with replace_methods(on, ledger.methods()):
        sessions(on.size(200, 20))
        on.finish()
        gc.collect()
    after = _threads_and_files()
    expect(not ledger.balance, "buffers that the runtime did not free", expected=0, got=ledger.balance, rule="leaks")
    expect(not ledger.alive(), "buffers that were freed and are still there", expected=0, got=ledger.alive(),
           rule="Device.free")
    expect(all(now <= then for now, then in zip(after, before, strict=True)), "threads and open files",
           expected=f"at most {before}", got=after, rule="leaks")


def can_wrap(on: Subject) -> bool:
    return own_method(on.device, "wrap") is not None


class Taken:
    """Counts allocations and frees while the device has this object's `methods`."""

    def __init__(self, on: Subject) -> None:
        self.balance = 0
        self._free = on.device.free
        self._had_by: dict[str, Callable[[Any], Any]] = {"allocate": on.device.allocate}
        if can_wrap(on):
            self._had_by["wrap"] = on.device.wrap
        self._buffers: list[weakref.ref[Any]] = []

    def methods(self) -> dict[str, Callable[..., Any]]:
        allocations = {name: partial(self._count_allocation, had) for name, had in self._had_by.items()}
        return {"free": self._count_free} | allocations

    def alive(self) -> int:
        return sum(ref() is not None for ref in self._buffers)

    def _count_allocation(self, had: Callable[[Any], Any], argument: Any) -> Any:
        buffer = had(argument)
        self.balance += buffer is not None
        with suppress(TypeError):  # some buffers, such as numbers, cannot be referenced weakly
            self._buffers.append(weakref.ref(buffer))
        return buffer

    def _count_free(self, buffer: Any) -> None:
        self.balance -= 1
        self._free(buffer)


def _threads_and_files() -> tuple[int, int]:
    return threading.active_count(), len(list(DESCRIPTORS.iterdir())) if DESCRIPTORS.exists() else 0


def fails_with(kind: type[errors.HealdError], run: Callable[[], Any]) -> errors.HealdError:
    try:
        run()
    except kind as error:
        return error
    except Exception as error:
        raise Broken("what a run raises", expected=f"heald.errors.{kind.__name__}",
                     got=f"{type(error).__name__}: {error}", rule="errors") from error
    raise Broken("a run that cannot succeed", expected=f"heald.errors.{kind.__name__}", got="results", rule="errors")


def works(on: Subject, chain: Chain, session: heald.Session) -> None:
    x = generator("works").normal(size=9).astype(np.float32)
    expect_close(session.run(chain.last, {"x": x}), chain.expected(x), on.settings.tolerance("float32"),
                 "a run before or after a fault", "errors")
