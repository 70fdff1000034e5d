"""Work that fails after it was enqueued: a kernel whose launch succeeds, and whose fault a later wait reports.

The suite cannot make a driver fail, so it plants the fault at the wait: the first `synchronize` behind the kernel
raises. A plugin plants a real one by `failing_work` of its settings file: the place of a function of the kernel's
`Bind`, which returns a kernel that enqueues work which fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from heald.api import Bind, Node, dtypes, errors
from heald.runtime.contract import load_callable

from .injection import Fault, register_op, replace_methods
from .settings import SettingsError
from .subject import Subject

OP = "HealdConformance>FailLater"
MESSAGE = "the work of this kernel fails after its launch"
_planted: list[str] = []  # the nodes whose work has been enqueued and has not failed yet
_makers: dict[str, Callable[[Bind], Callable[..., None]] | None] = {}  # device type -> the plugin's own function


def late_failing_node(on: Subject, name: str, source: str) -> Node:
    """A node on the device whose work fails behind its launch. Raises SettingsError for a place without a function."""
    place = on.settings.failing_work
    try:
        _makers[on.type] = None if place is None else load_callable(place)
    except (ImportError, AttributeError, errors.PluginError) as error:
        raise SettingsError(f"failing_work = '{place}' cannot be loaded: {error}") from error
    register_op(on, OP, bind_late_failure)
    return Node(name, OP, [source], attrs={"T": dtypes.float32}, device=on.name)


def bind_late_failure(b: Bind) -> Callable[..., None]:
    """Bind the plugin's own failing kernel, or one whose fault is planted at the wait."""
    make = _makers[b.device.type]
    return (lambda *_buffers: _planted.append(b.node)) if make is None else make(b)


@contextmanager
def failing_waits(on: Subject) -> Iterator[None]:
    """Let the first wait behind the kernel fail, unless the plugin's own work does. Raises NotApplicable for a device
    whose methods cannot be replaced."""
    if on.settings.failing_work is not None:
        yield
        return
    wait = on.device.synchronize

    def fail_once(event: Any) -> None:
        wait(event)
        if _planted:
            _planted.clear()
            raise Fault(MESSAGE)

    _planted.clear()
    with replace_methods(on, {"synchronize": fail_once}):
        yield


@contextmanager
def synchronous(on: Subject, *, is_on: bool) -> Iterator[None]:
    """Await each kernel of the sessions that are made within the block, as `[debug] synchronous` does."""
    debug = on.host.debug
    on.host.debug = replace(debug, synchronous=is_on)
    try:
        yield
    finally:
        on.host.debug = debug
