"""The plugin's object under test, of any hook but devices, and the deadline of its cases.

A subject is a kind and a name. The cases of a kind make the object themselves, some of them several times: a queue that
was closed, for instance, serves no later case.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from .settings import Settings
from .verdict import Broken

T = TypeVar("T")
HOOKS = MappingProxyType({  # the option of pytest, and the module of `hooks`
    "queue": "queues", "allocator": "allocators", "pass": "passes", "loader": "loaders",
    "handler": "handlers", "session": "sessions", "rendezvous": "meetings",
    "compiler": "compilers",
})
OPTION_OF_MODULE = MappingProxyType({module: option for option, module in HOOKS.items()})
DEADLINE = 60.0  # seconds of a case; the slowest takes three
PROMPT = 5.0  # seconds of a call that does not block


@dataclass(frozen=True)
class HookSubject:
    """One object of a plugin: `kind` is a key of HOOKS, `name` the value of its option."""

    kind: str
    name: str
    settings: Settings = field(default_factory=Settings)
    pack: None = None  # the kernels of no plugin: a device's subject may have one

    def size(self, full: int, quick: int) -> int:
        """A number of a case: `full` in the full suite, `quick` in the quick one."""
        return quick if self.settings.quick else full


def run_within(seconds: float, function: Callable[[], T], what: str, rule: str = "returns") -> T:
    """Call a function on a thread of its own, and return its result or raise its exception.

    Raises Broken when it does not end in time. The thread is left behind; it keeps no process alive.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="heald conformance")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise Broken(what, expected=f"the end of the call within {seconds:g} s", got="nothing", rule=rule)
    return results[0]


def faults_of_threads(work: Callable[[int, list[Any]], None], seconds: float | None = None) -> list[Any]:
    """Call `work` with a number and a list of faults on each of four threads, and wait for each, at most `seconds`.

    Returns the list. Exceptions that leave `work` are in it, too.
    """
    faults: list[Any] = []

    def run(number: int) -> None:
        try:
            work(number, faults)
        except BaseException as error:  # noqa: BLE001 - the case judges it
            faults.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True, name=f"heald conformance, thread {number}")
               for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    return faults


def expect_raises(error_types: Any, function: Callable[[], Any], what: str, rule: str) -> None:
    """Raise Broken unless the call raises one of these errors, and soon."""
    names = " or ".join(kind.__name__ for kind in error_types)
    try:
        came: Any = run_within(PROMPT, function, what, rule)
    except error_types:
        return
    except Broken:
        raise
    except Exception as error:
        raise Broken(what, expected=names, got=f"{type(error).__name__}: {error}", rule=rule) from error
    raise Broken(what, expected=names, got=repr(came)[:60], rule=rule)
