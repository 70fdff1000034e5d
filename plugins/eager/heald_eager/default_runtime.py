"""The core runtime of the process: `heald.execute` over the default host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heald.api import inherited
from heald.errors import HealdError, Location
from heald.runtime.host import Host
from heald.runtime.service import runtime

from .core_runtime import CoreRuntime, runtime_of
from .execute import DEFAULT_TABLE, FastTable, execute_over


class _DefaultRuntime:
    """The one CoreRuntime of the process, made at the first call. Its fast table is made before it."""

    def __init__(self) -> None:
        self._runtimes: list[CoreRuntime] = []  # at most one
        self._lock = threading.Lock()
        self.fast: FastTable = DEFAULT_TABLE
        inherited.add(self)

    def forked(self) -> None:
        self._lock = threading.Lock()

    def get(self) -> CoreRuntime:
        for core in self._runtimes:
            return core
        process = runtime.runtime()
        with self._lock:
            if not self._runtimes:
                self._runtimes.append(runtime_of(process.host, self.fast, process.config.eager))
            return self._runtimes[0]


_default = _DefaultRuntime()


def default_runtime() -> CoreRuntime:
    """Return the core runtime over the process's default host."""
    return _default.get()


def default_call(
    op: str, inputs: Sequence[Any], attrs: Mapping[str, Any] | None = None, device: str | None = None,
    handler: Any = None, chain: Any = None, donate: Sequence[int] = (), location: Location | None = None,
    diagnostics: Callable[[HealdError], Any] | None = None, host: Host | None = None,
) -> Any:
    """`CoreRuntime.call` of the default runtime."""
    return _default.get().call(op, inputs, attrs, device, handler, chain, donate, location, diagnostics, host)


def default_table() -> FastTable:
    """The fast table of the default runtime."""
    return _default.fast


execute = execute_over(_default.fast, default_call)
