"""A plugin of the tests alone: host kernels that fail, partly or later, wait to be released, or break their word."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Annotated, Any

import numpy as np
from heald.api import I32, AsyncValue, Callee, Chain, HostType, Step, String, Tensor, errors, failed, hookimpl

HEALD_API = (1, 0)
RAISED = {kind.__name__: kind for kind in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit)}


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


PointType = Annotated[Point, HostType("!test.point", lambda value: isinstance(value, Point))]


class Tracked:
    """Says in the resource `notes` when it dies."""


TrackedType = Annotated[Tracked, HostType("!test.tracked")]


@hookimpl
def heald_kernels(registry):
    registry.host_kernels(register)


def register(kernels):
    for function in (chained, fail, ones, partial_fail, wrong_type, too_many, raising, no_result, point, x_of, scaled,
                     named):
        kernels.kernel(f"test.{function.__name__}")(function)
    for function in (note, cancel, times_made, twice, first_of, thread, tracked, used, used_with):
        kernels.kernel(f"test.{function.__name__}", step=True)(function)
    for function in (later, later_fail, ones_later, gated, note_later, raising_task, blocking):
        kernels.kernel(f"test.{function.__name__}", step=True, asynchronous=True)(function)
    kernels.kernel("test.second", nonstrict=True)(second)


def chained(value: Any) -> Chain:
    """Ready when the value is."""


def ones(*, shape: Any) -> Tensor:
    return np.ones(shape, np.float32)


def ones_later(step: Step, *, shape: Any) -> Tensor:
    return step.enqueue(lambda: ones(shape=shape))


def fail(x: I32) -> I32:
    raise ValueError(f"boom {x}")


def partial_fail(x: I32) -> tuple[I32, I32]:
    return x, failed(errors.Aborted(f"half a boom {x}"))


def wrong_type() -> I32:
    return "one"


def too_many() -> I32:
    return AsyncValue


def no_result() -> tuple[I32, I32]:
    return 1


def raising(*, kind: String) -> I32:
    raise RAISED[kind]("enough")


def raising_task(step: Step, *, kind: String) -> I32:
    def task():
        raise RAISED[kind]("enough")
    return step.enqueue(task)


def point(x: I32, y: I32) -> PointType:
    return Point(x, y)


def x_of(at: PointType) -> I32:
    return at.x


def scaled(x: I32, *more: I32, by: I32, offset: I32 = 0) -> list[Any]:
    """Each argument times `by`."""
    return [value * by + offset for value in (x, *more)]


def named(x: Any, *, name: String) -> String:
    return f"{name} {x}"


def note(step: Step, what: I32, chain: Chain) -> Chain:
    step.resources.get("notes", list).append(what)


def note_later(step: Step, what: I32, chain: Chain) -> Chain:
    return step.enqueue(lambda: note(step, what, None))


def tracked(step: Step) -> TrackedType:
    tracked_object = Tracked()
    weakref.finalize(tracked_object, step.resources.get("notes", list).append, "freed")
    return tracked_object


def used(step: Step, thing: TrackedType) -> I32:
    step.resources.get("notes", list).append("used")
    return 1


def used_with(step: Step, thing: TrackedType, other: I32) -> I32:
    return used(step, thing)


def cancel(step: Step, chain: Chain) -> Chain:
    step.cancel(errors.Cancelled("this kernel has had enough"))


def times_made(step: Step, *, name: String) -> I32:
    """The number of times that the resource was made."""
    names_made = step.resources.get("made", list)
    step.resources.get(name, lambda: names_made.append(name))
    return names_made.count(name)


def twice(step: Step, x: I32, *, body: Callee) -> I32:
    (once,) = step.call(body, [x])
    return step.call(body, [once])[0] if once.is_available() else once


def first_of(step: Step, *values: I32, branches: tuple[Callee, ...]) -> list[Any]:
    return step.call(branches[0], values)


def thread(step: Step) -> String:
    return threading.current_thread().name


def later(step: Step, x: I32) -> I32:
    return step.enqueue(lambda: x)


def later_fail(step: Step, x: I32) -> I32:
    def task():
        raise ValueError(f"late boom {x}")
    return step.enqueue(task)


def blocking(step: Step, x: I32) -> I32:
    def wait():
        time.sleep(0.005)
        return x
    return step.enqueue_blocking(wait)


def gated(step: Step) -> I32:
    """Comes when the test completes the resource `gate`."""
    return step.resources.get("gate", AsyncValue)


def second(a: Any, b: Any) -> Any:
    return b
