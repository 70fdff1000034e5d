"""Devices: their names, the protocol that plugins implement, and the device types that are announced.

Who calls what. `scan` is called once, when its type is first asked for. `open` and `close` are called once per
Host, on the thread that asked. Everything else is called on threads that run steps, and must not block,
except `synchronize`. The runtime keeps buffers and host arrays alive until the event recorded after their last use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from ..errors import InvalidArgument, PluginError

STREAM = 0  # a device has one stream so far: this one
Buffer = Any  # what a device's allocate returns: opaque to the runtime unless the device is host_visible
Stream = Any
Event = Any


class Device(Protocol):
    """One device of a plugin. The runtime gives it its index and name.

    attributes: `memory` (bytes), `model`, `driver`, with its version: only where it is named a probe that went well is
    remembered for the next process; `accelerator`: False for a device that is the host's own processors by another name
    or a simulator, which nobody gets who did not ask for it; `host_visible`: True when its buffers are host memory, in
    which case allocate returns a one-dimensional, 64-byte aligned uint8 array and kernels get NumPy arrays.
    """

    type: str
    uid: str  # stable across processes: serial number, bus address, ...
    attributes: Mapping[str, Any]
    native: Any  # set by open: what kernels drive it with, other people's too; a host device needs none

    def open(self) -> None:
        """Before the first use. Raises Unavailable(reason, hint=remedy)."""

    def close(self) -> None:
        """After every program and buffer is gone."""

    def allocate(self, nbytes: int) -> Buffer | None:
        """A buffer, or None when there is no memory."""

    def free(self, buffer: Buffer) -> None:
        """Stream-ordered: what is enqueued already may still use the buffer. Never called by a finalizer."""

    def copy_in(self, host: Any, buffer: Buffer, stream: Stream) -> None:
        """Enqueue a copy from a C-contiguous host array."""

    def copy_out(self, buffer: Buffer, host: Any, stream: Stream) -> None:
        """Enqueue a copy to a C-contiguous host array."""

    def record(self, stream: Stream) -> Event:
        """An event after everything enqueued so far."""

    def synchronize(self, event: Event) -> None:
        """Block until the event; raises the device's error. Unavailable, from here or any other method while a step
        runs, says that the device is lost: its Host does not use it again."""

    # Optional methods are copy_peer, wait_event, and for a device that can read the host's memory as its own:
    #
    #     def wrap(self, host) -> Buffer | None:
    #         """A buffer over a C-contiguous host array's memory, which it holds; None where that memory is unfit, for
    #         its alignment perhaps. Kernels and copies only read it, and the array may be read-only. To be freed, as
    #         others are: what is enqueued already may still use it."""


class DeviceName(NamedTuple):
    """A device's name or, where parts are None, a request that several devices may meet.

    Written `/job:j/replica:0/task:0/device:CPU:0`, or short `CPU:0`.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    index: int | None = None  # type: ignore[assignment] # not tuple.index

    @classmethod
    @lru_cache(256)
    def parse(cls, text: str) -> DeviceName:
        """Read full, partial and short names; `/cpu:0` is TensorFlow's old form. Raises InvalidArgument."""
        short = _SHORT.fullmatch(text)
        if short is not None:
            return cls(type=short["type"].upper(), index=_index(short["index"]))
        name = cls()
        for part in text.split("/")[1:] if text.startswith("/") else (text,) if text else ():
            match = _PART.fullmatch(part)
            if match is None:
                hint = "write it as CPU:0 or /job:localhost/replica:0/task:0/device:CPU:0"
                raise InvalidArgument(f"'{text}' is not a device name", device=text, hint=hint)
            name = name._replace(**{k: v for k, v in _part(match).items() if v is not None})
        return name

    @property
    def short(self) -> str:
        """`CPU:0`; `CPU:*` for any device of a type, `*` for any device."""
        if self.type is None:
            return "*"
        return f"{self.type}:{'*' if self.index is None else self.index}"

    def __str__(self) -> str:
        parts = [f"/job:{self.job}"] if self.job is not None else []
        parts += [f"/replica:{self.replica}"] if self.replica is not None else []
        parts += [f"/task:{self.task}"] if self.task is not None else []
        return "".join(parts) + (f"/device:{self.short}" if self.type is not None else "")

    @property
    def is_local(self) -> bool:
        """True when job, replica and task, as far as they are given, are those of this process."""
        return self.job in (None, "localhost") and self.replica in (None, 0) and self.task in (None, 0)


_SHORT = re.compile(r"/?(?P<type>(?!job:|replica:|task:|device:)[A-Za-z_]\w*):(?P<index>\d{1,9}|\*)", re.ASCII)
_PART = re.compile(
    r"job:(?P<job>[A-Za-z_]\w*)|replica:(?P<replica>\d{1,9}|\*)|task:(?P<task>\d{1,9}|\*)"
    r"|(device:)?(?P<type>[A-Za-z_]\w*)(:(?P<index>\d{1,9}|\*))?",
    re.ASCII,
)


def _index(text: str | None) -> int | None:
    return None if text is None or text == "*" else int(text)


def _part(match: re.Match[str]) -> dict[str, Any]:
    kind = match["type"]
    return {"job": match["job"], "replica": _index(match["replica"]), "task": _index(match["task"]),
            "type": kind.upper() if kind else None, "index": _index(match["index"])}


class DeviceType(NamedTuple):
    """A type that a plugin announced. `scan(config)` yields its devices in stable order; `kernels` registers the
    plugin's own kernels for it. Either is a callable or "module:function", imported when first needed."""

    type: str
    scan: str | Callable[..., Iterable[Device]]
    kernels: str | Callable[..., None] | None
    priority: int
    plugin: str
    config: Any = None


class Conflict(NamedTuple):
    """Two plugins claim one thing: `winner`'s is used, until config does what `remedy` says."""

    what: str
    winner: str
    loser: str
    remedy: str


class DeviceTypeRegistry:
    """Device types by name; the first of a type is used, others that claim it are kept as conflicts."""

    def __init__(self) -> None:
        self._types: dict[str, list[DeviceType]] = {}

    def add(self, announced: DeviceType) -> None:
        rivals = [*self._types.get(announced.type, ()), announced]  # who reads them sees all, or those before
        self._types[announced.type] = sorted(rivals, key=lambda t: (-t.priority, t.plugin))

    def get(self, name: str) -> DeviceType | None:
        rivals = self._types.get(name)
        return rivals[0] if rivals else None

    def by_priority(self) -> list[DeviceType]:
        """The types in use, those that placement prefers first."""
        return sorted((rivals[0] for rivals in self._types.values()), key=lambda t: (-t.priority, t.plugin))

    def conflicts(self) -> list[Conflict]:
        """Claims of several plugins to one device type."""
        return [
            Conflict(f"device type {name}", rivals[0].plugin, loser.plugin,
                     f"set [plugins] block = ['{loser.plugin}'] or ['{rivals[0].plugin}']")
            for name, rivals in sorted(self._types.items()) for loser in rivals[1:]
        ]


def load_callable(target: str | Callable[..., Any]) -> Callable[..., Any]:
    """The callable itself, or what "module:function" names, imported now."""
    if not isinstance(target, str):
        return target
    from importlib import import_module

    module, _, name = target.partition(":")
    found = getattr(import_module(module), name, None) if name else None
    if not callable(found):
        raise PluginError(f"'{target}' names no function", hint="write it as 'package.module:function'")
    return found  # type: ignore[no-any-return]


