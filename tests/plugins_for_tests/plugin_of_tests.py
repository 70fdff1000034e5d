"""A plugin of the tests alone: kernels that fail, complete later, complete with an error, or need one input only."""

from __future__ import annotations

import random
import threading
import time
import weakref
from functools import partial

import numpy as np
from heald.api import AsyncValue, OpSpec, available, errors, failed, hookimpl, info

HEALD_API = (1, 0)
delays = random.Random()  # noqa: S311 - no secrets; Hypothesis watches over the module's own
live: set[int] = set()  # asynchronous work that has not completed
noted: list[str] = []  # nodes whose kernel has run
watched: list[weakref.ref[np.ndarray]] = []  # arrays that Watch kernels have read
alive: list[int] = []  # how many of them there were, when each Watch kernel ran
meeting = threading.Barrier(2, timeout=5)
held, entered, release = "", threading.Event(), threading.Event()


@hookimpl
def heald_ops(registry):
    for name in ("Add", "Fail", "Later", "MuchLater", "LaterFail", "Now", "Positive", "Queued",
                 "First", "Second", "Block", "Poll", "Step"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T", "y: T"], outputs=["z: T"], attrs=["T: type"],
                            metadata=lambda attrs, x, y: info(x.dtype, x.shape)))
    for name in ("Note", "Meet", "Interrupt", "Exit", "Split", "Hold", "Watch"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T", "y: T"], outputs=["z: T"], attrs=["T: type"],
                            metadata=lambda attrs, x, y: info(x.dtype, x.shape), stateful=name == "Note"))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)


def later(complete, delay=0.0):
    """A value that a thread of its own completes soon, or after `delay` seconds."""
    value = AsyncValue()
    live.add(id(value))

    def work():
        time.sleep(delay + delays.random() * 0.0005)
        live.discard(id(value))
        complete(value)

    threading.Thread(target=work, daemon=True).start()
    return value


def first(x, y):
    """The sum of those inputs that are there when it is called: it needs one."""
    have = [v for v in (x, y) if v.is_available() and not v.is_error() and not v.is_dead()]
    return have[0].get() + 0 if have else (x if x.is_available() else y)


def register(kernels):
    kernels.kernel("Test>Add", inplace={0: 0})(lambda b: np.add)

    @kernels.kernel("Test>Fail")
    def fail(b):
        def run(x, y, out):
            out[...] = np.nan
            raise ValueError(f"boom {b.node}")
        return run

    @kernels.kernel("Test>Positive")
    def positive(b):
        def run(x, y, out):
            if not x.flat[0] > 0:
                raise ValueError(f"boom {b.node}")
            np.add(x, y, out)
        return run

    @kernels.kernel("Test>Later", asynchronous=True)
    def asynchronous(b):
        return lambda x, y: later(lambda value: value.emplace(x + y))

    @kernels.kernel("Test>MuchLater", asynchronous=True)
    def slow(b):
        return lambda x, y: later(lambda value: value.emplace(x + y), 0.03)

    @kernels.kernel("Test>LaterFail", asynchronous=True)
    def asynchronous_failure(b):
        return lambda x, y: later(lambda value: value.set_error(errors.Unavailable(f"boom {b.node}")))

    @kernels.kernel("Test>Now", asynchronous=True)
    def now(b):
        return lambda x, y: available(x + y) if x.flat[0] > 0 else failed(errors.Aborted(f"boom {b.node}"))

    @kernels.kernel("Test>Queued", asynchronous=True, step=True)
    def bind_queued(b):
        """Completes in a task of the work queue."""
        def run(step, x, y):
            value = AsyncValue()
            step.host.work_queue.add_task(lambda: value.emplace(x + y))
            return value
        return run

    @kernels.kernel("Test>First", nonstrict=True)
    def nonstrict(b):
        return first

    @kernels.kernel("Test>Second", nonstrict=True)
    def second_of(b):
        return lambda x, y: y

    @kernels.kernel("Test>Block", asynchronous=True, step=True)
    def block(b):
        """Completes when the step is cancelled, and never otherwise."""
        def run(step, x, y):
            value = AsyncValue()
            live.add(id(value))
            step.on_cancel(lambda: (live.discard(id(value)), value.set_error(errors.Cancelled("unblocked"))))
            return value
        return run

    @kernels.kernel("Test>Poll", step=True)
    def poll(b):
        def run(step, x, y, out):
            while not step.cancelled():
                time.sleep(0.001)
            out[...] = x
        return run

    @kernels.kernel("Test>Step", step=True)
    def with_step(b):
        return lambda step, x, y, out: np.add(x, y, out, where=isinstance(step.cancelled(), bool))

    @kernels.kernel("Test>Note")
    def note(b):
        return lambda x, y, out: (noted.append(b.node), np.add(x, y, out))

    @kernels.kernel("Test>Watch")
    def watch(b):
        def run(x, y, out):
            alive.append(sum(array() is not None for array in watched))
            watched.append(weakref.ref(x))
            np.add(x, y, out)
        return run

    @kernels.kernel("Test>Meet")
    def meet(b):
        """Ends only when another thread is in here, too."""
        return lambda x, y, out: (meeting.wait(), np.add(x, y, out))

    for op, error in (("Interrupt", KeyboardInterrupt), ("Exit", SystemExit)):
        kernels.kernel(f"Test>{op}")(partial(in_a_helper, error))

    @kernels.kernel("Test>Hold")
    def hold(b):
        """Does not end in `held`, the worker or the driver of its step, before `release`; two of them meet."""
        def run(x, y, out):
            me = "worker" if threading.current_thread().name.startswith("heald-") else "driver"
            if me == "worker":
                entered.set()
            (release if me == held else entered).wait(10)
            np.add(x, y, out)
        return run

    @kernels.kernel("Test>Split", step=True)
    def split(b):
        """Adds each element in a part of its own; the first and the last wait for each other."""
        def run(step, x, y, out):
            def add(i):
                if i in (0, len(x) - 1):
                    meeting.wait()
                out[i] = x[i] + y[i]
            step.parallel_for(len(x), add)
        return run


def in_a_helper(error, b):
    """A kernel that raises this in a thread of the work queue, while another one runs it elsewhere."""
    def run(x, y, out):
        meeting.wait()
        np.add(x, y, out)
        if threading.current_thread().name.startswith("heald-"):
            raise error(b.node)
    return run
