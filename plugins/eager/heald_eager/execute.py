"""The fast path of `heald.execute` and of bound ops.

A table maps an op and the Kinds of its inputs to a function of their arrays. Calls that need more than this function
have no entry: pending and failed handles, effects, handlers, donations, a cancelled host. So the path tests for none of
them, and every exception in it, a missing entry included, leaves the call to the slow path.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref
from typing import Any

from heald.errors import HealdError, Location
from heald.runtime.host import KERNEL_MODES, Host, KernelContext, ModeWords

FastTable = dict[tuple[Any, ...], tuple[Callable[..., Any], Any]]  # (op, *Kinds, *attributes): function, Kind
SlowPath = Callable[..., Any]
DEFAULT_TABLE: FastTable = {}  # of the process's default runtime; it exists before the runtime does


class _LocalContext(threading.local):
    """The context of a thread's kernels, in the form that costs least: functions that enter it, and that read and set
    the floating-point modes."""

    def __init__(self) -> None:
        context = KernelContext()
        self.parts = context._run, context._get, context._set, byref(ModeWords())


local_context = _LocalContext()


def execute_over(fast: FastTable, slow: SlowPath) -> Callable[..., Any]:
    """Return `execute` over a table of bound ops. `slow` is `CoreRuntime.call`."""
    local, new, kernels = local_context, object.__new__, KERNEL_MODES

    def execute(op: str, *inputs: Any, attrs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        if options:
            return _run_with_options(slow, op, inputs, attrs, **options)
        try:
            if len(inputs) == 2 and not attrs:
                x, y = inputs
                function, kind = fast[op, x._kind, y._kind]
                run, get, set_modes, before = local.parts
                get(before)
                try:
                    set_modes(kernels)
                    value = run(function, x._value, y._value)
                finally:
                    set_modes(before)
            else:
                function, kind = fast[op, *[x._kind for x in inputs], *(attrs.items() if attrs else ())]
                run, get, set_modes, before = local.parts
                get(before)
                try:
                    set_modes(kernels)
                    value = run(function, *[x._value for x in inputs])
                finally:
                    set_modes(before)
        except Exception:  # noqa: BLE001 - the slow path raises it again, typed, unless the entry is only missing
            return slow(op, inputs, attrs)
        result = new(inputs[0].__class__)
        result._value, result._kind = value, kind
        return result

    execute.__qualname__ = "execute"
    execute.__signature__ = _execute_signature()  # type: ignore[attr-defined]
    return execute


def _run_with_options(
    slow: SlowPath, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None, *, device: str | None = None,
    handler: Any = None, chain: Any = None, donate: Sequence[int] = (), location: Location | None = None,
    diagnostics: Callable[[HealdError], Any] | None = None, host: Host | None = None,
) -> Any:
    """The rare options of `execute`. Each of them would cost its every call 15 ns for the default."""
    return slow(op, inputs, attrs, device, handler, chain, donate, location, diagnostics, host)


_run_with_options.__qualname__ = "execute"  # in the TypeError for an option that does not exist


def _execute_signature() -> inspect.Signature:
    """The signature of `execute`, its options included."""
    keywords = list(inspect.signature(_run_with_options).parameters.values())
    op, inputs, attrs = keywords[1:4]
    return inspect.Signature([op, inputs.replace(kind=inspect.Parameter.VAR_POSITIONAL, annotation="Any"),
                              attrs.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=None), *keywords[4:]],
                             return_annotation="Any")


_MISSING: Any = object()  # in the place of an input that the caller left out: it misses the fast table


def op_function(fast: FastTable, slow: SlowPath, op: str, count: int) -> Callable[..., Any]:
    """Return an op as a function of its inputs and attributes: the bound op. `count`: the number of its arguments."""
    local, new, kernels = local_context, object.__new__, KERNEL_MODES

    def unary(x: Any = _MISSING, /, **attrs: Any) -> Any:
        try:
            function, kind = fast[op, x._kind] if not attrs else fast[op, x._kind, *attrs.items()]
            run, get, set_modes, before = local.parts
            get(before)
            try:
                set_modes(kernels)
                value = run(function, x._value)
            finally:
                set_modes(before)
        except Exception:  # noqa: BLE001 - as above
            return slow(op, _inputs_given(x), attrs)
        result = new(x.__class__)
        result._value, result._kind = value, kind
        return result

    def binary(x: Any = _MISSING, y: Any = _MISSING, /, **attrs: Any) -> Any:
        try:
            function, kind = fast[op, x._kind, y._kind] if not attrs else fast[op, x._kind, y._kind, *attrs.items()]
            run, get, set_modes, before = local.parts
            get(before)
            try:
                set_modes(kernels)
                value = run(function, x._value, y._value)
            finally:
                set_modes(before)
        except Exception:  # noqa: BLE001 - as above
            return slow(op, _inputs_given(x, y), attrs)
        result = new(x.__class__)
        result._value, result._kind = value, kind
        return result

    def any_number(*inputs: Any, **attrs: Any) -> Any:
        try:
            function, kind = fast[op, *[x._kind for x in inputs], *attrs.items()]
            run, get, set_modes, before = local.parts
            get(before)
            try:
                set_modes(kernels)
                value = run(function, *[x._value for x in inputs])
            finally:
                set_modes(before)
        except Exception:  # noqa: BLE001 - as above
            return slow(op, inputs, attrs)
        result = new(inputs[0].__class__)
        result._value, result._kind = value, kind
        return result

    def _inputs_given(*inputs: Any) -> tuple[Any, ...]:
        return tuple([x for x in inputs if x is not _MISSING])

    by_count: dict[int, Callable[..., Any]] = {1: unary, 2: binary}
    return by_count.get(count, any_number)
