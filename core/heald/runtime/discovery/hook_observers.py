"""Hook observers: wrappers of plugins around the hooks of others, which see each call and change nothing.

A wrapper is a generator function marked with `hookimpl(wrapper=True)`. It runs up to its `yield` before the hook of
each other plugin, and goes on behind it. Its `registry` is a HookCall, so it cannot register anything in the other's
name. Its result does not count, and an exception of the hook is raised whatever the wrapper does with it.

A wrapper that raises, yields not exactly once, or takes too long is the fault of its own plugin. It observes no further
call, and the plugin that it observed goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from ...errors import DeadlineExceeded, PluginError
from ..contract.hookspecs import HookCall
from ..support.plugin_guard import plugin_guard
from ..support.time_limit import run_within

LONGEST_STEP_SECONDS = 1.0  # of one wrapper, before a hook or behind it
HINT = "a wrapper yields once, and passes on what is raised there"
T = TypeVar("T")
Wrapper = Callable[..., Generator[None, object, object]]


class HookObserver:
    """The wrappers of one plugin: by hook, the function, its parameters and its rank. `fault`: its first error."""

    def __init__(self, plugin: str, wrappers: dict[str, tuple[Wrapper, tuple[str, ...], int]], config: Any) -> None:
        self.plugin = plugin
        self.fault: PluginError | None = None
        self._wrappers = wrappers
        self._config = config

    @property
    def hooks(self) -> tuple[str, ...]:
        return tuple(self._wrappers)

    def rank(self, hook: str) -> int:
        """The place of the wrapper of a hook among others: -1 around them, for `tryfirst`, 1 within, for `trylast`."""
        return self._wrappers[hook][2] if hook in self._wrappers else 0

    def begin(self, hook: str, plugin: str) -> Generator[None, object, object] | None:
        """Start the wrapper of a hook; None where there is none to run."""
        if hook not in self._wrappers or plugin == self.plugin or self.fault is not None:
            return None
        function, parameters, _ = self._wrappers[hook]
        handed = {"registry": HookCall(plugin, hook), "config": self._config}

        def start() -> Generator[None, object, object]:
            generator = function(**{parameter: handed[parameter] for parameter in parameters})
            try:
                next(generator)
            except StopIteration:
                raise PluginError(f"the wrapper of {hook} does not yield", hint=HINT) from None
            return generator

        return self._guarded(hook, start)

    def end(self, hook: str, generator: Generator[None, object, object], error: BaseException | None) -> None:
        """Let the wrapper go on, with the hook's exception if it raised one."""
        def go_on() -> None:
            try:
                generator.send(None) if error is None else generator.throw(error)
            except StopIteration:
                return
            except BaseException as raised:
                if raised is error:
                    return
                raise
            generator.close()
            raise PluginError(f"the wrapper of {hook} yields twice", hint=HINT)

        self._guarded(hook, go_on)

    def _guarded(self, hook: str, work: Callable[[], T]) -> T | None:
        """Return the result of `work`, or None after noting its fault."""
        def guarded() -> T:
            with plugin_guard(f"the wrapper of {hook}", hint=HINT):
                return work()

        try:
            return run_within(LONGEST_STEP_SECONDS, lambda: f"the wrapper of {hook}", guarded)
        except PluginError as error:
            self.fault = error.__cause__ if isinstance(error.__cause__, PluginError) else error
        except DeadlineExceeded as error:
            self.fault = PluginError(error.message, hint=HINT)
        return None


def call_observed(observers: Sequence[HookObserver], hook: str, plugin: str, call: Callable[[], None]) -> None:
    """Call a hook of a plugin between the steps of all observers, which nest as pluggy's wrappers. Raises the hook's
    own exception."""
    ranks = [observer.rank(hook) for observer in observers]
    from_outside = sorted(range(len(ranks)), key=lambda i: (ranks[i], i if ranks[i] > 0 else -i))
    begun = [(observer, generator) for observer in [observers[i] for i in from_outside]
             if (generator := observer.begin(hook, plugin)) is not None]
    error: BaseException | None = None
    try:
        call()
    except BaseException as raised:
        error = raised
        raise
    finally:
        for observer, generator in reversed(begun):
            observer.end(hook, generator, error)
