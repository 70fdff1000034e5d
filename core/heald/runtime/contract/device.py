"""Devices: their names, the protocol that plugins implement, and the announced device types.

Threads. The runtime calls `scan` once, when the device type is first asked for. It calls `open` and `close` once per
Host, on the thread that asked. Any thread may call any other method, several at once: a device guards its own state.
Only `synchronize` may block, and only while it blocks may it hold no lock that another method needs.

Fork. The runtime calls no method of a device outside host memory in a forked child of the process that scanned it. The
child frees no buffer. A device on host memory works on in the child; locks that it holds are registered with
`inherited`.

Lifetimes. The runtime keeps buffers and host arrays alive until the event recorded after their last use. A host array
of `copy_in` does not change before that event; one of `copy_out` is read and written by nothing else. A device may so
keep an array's address, but may not use it behind that event. A device that needs the array longer copies it.

Order. A stream does its work in the order in which it was enqueued. A device without queues may do a copy or a launch
at once, within the call that enqueues it: its events have then happened when they are recorded. Work on two streams has
an order only by `record` on one and `wait` on the other. The runtime sets both wherever two streams use one buffer.

Layout. A buffer holds a tensor's elements in C order without gaps, for every shape. Kernels read type and shape from
`Bind`: a buffer does not know them.

Versions. A plugin states the version of the contract that it needs. Optional methods are members of the protocol. A
device without one, or with the protocol's own, is treated as the member's default says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from ...errors import InvalidArgument, NotFound, PluginError
from ..support.records import NamedTuple

STREAM = 0  # of the kernels, and of the copies without a stream of their own
Buffer = Any  # the result of `Device.allocate`: opaque to the runtime unless the device is host_visible
Stream = Any  # a queue of a device, as `Bind.stream` and the methods of Device have it
Event = Any  # the result of `Device.record`: a position in a stream, opaque to the runtime


class Device(Protocol):
    """One device of a plugin. The runtime gives it its index and name.

    `attributes` may have these keys; every other key is shown to users as it is.

    `memory`: Size of the device's memory in bytes.
    `model`: Name of the hardware.
    `driver`: Name and version of the driver. A successful probe is remembered for later processes only with it.
    `accelerator`: False for a device that is the host's own processors under another name, and for a simulator. Such a
        device is used on explicit request, or as the last choice.
    `cost`: Figures of DeviceCost by name, by which placement compares devices. A device without `cost` is placed by
        priority alone.
    `limits`: Figures of DeviceLimits by name: largest buffer, missing element types, alignment of copies and parts.
        Placement and allocation keep to them. `open` may change them.
    `queues`: Streams of copies by their direction, `{"copy_in": 1, "copy_out": 2}`, for a device with `wait`. Copies
        of plain runs go there, beside the kernels on stream 0. Without it every copy is on stream 0.
    `kernels_at_once`: The most kernels of the device that run at the same time, or without it any number. Others wait
        on their threads; kernels that receive their step are not counted.
    `host_visible`: True when the buffers are host memory. Then `allocate` returns a one-dimensional, 64-byte aligned
        uint8 array, and kernels receive NumPy arrays.
    """

    type: str
    uid: str  # stable across processes: serial number, bus address, ...
    attributes: Mapping[str, Any]
    native: Any  # set by `open`: the driver's handle for all kernels; a host device needs none

    def open(self) -> None:
        """Prepare the device for use. Called before every other method. Raises Unavailable(reason, hint=remedy) when it
        cannot be used."""

    def close(self) -> None:
        """Release the device. Called after every program and buffer is gone."""

    def allocate(self, nbytes: int) -> Buffer | None:
        """Return a buffer of at least `nbytes` bytes, or None when there is no memory.

        `nbytes` is at least 1: a tensor without elements has a buffer of one byte.
        """

    def free(self, buffer: Buffer) -> None:
        """Take a buffer back, in the order of all streams: work that is enqueued already may still use it. Never called
        by a finalizer."""

    def copy_in(self, host: Any, buffer: Buffer, stream: Stream) -> None:
        """Enqueue a copy of all bytes of a C-contiguous host array into the buffer, or copy at once.

        The array may be read-only, and may have no elements. The buffer may be larger than the array.
        """

    def copy_out(self, buffer: Buffer, host: Any, stream: Stream) -> None:
        """Enqueue a copy of the buffer into all bytes of a C-contiguous host array, or copy at once.

        The array may have no elements.
        """

    def record(self, stream: Stream) -> Event:
        """Return an event behind all work that is enqueued so far."""

    def synchronize(self, event: Event) -> None:
        """Block until the event has happened. Raises the device's error.

        The runtime does not await every event. So the error of enqueued work is raised by each later event too, until
        a `synchronize` has raised it. An error that belongs to one event alone may never reach the user, who then
        receives wrong values.

        Unavailable, raised by this or any other method while a step runs, declares the device lost: its Host does not
        use it again.
        """

    # The members below are optional. A class that inherits from Device has their defaults, which mean "without it".

    def elapsed(self, start: Event, end: Event) -> float | None:
        """Optional, for a device with a queue that can time its work. Since 1.3.

        Return the seconds from one event to a later one. Both were recorded and have happened. None says that an event
        has no time. A trace calls `elapsed` once before it records the events that it times: from that call on the
        device keeps times. Without `elapsed` a trace waits for each kernel.
        """
        return None

    def wait(self, stream: Stream, event: Event) -> None:
        """Optional, with the attribute `queues`. Since 1.4.

        Have later work of the stream come behind a recorded event of another stream. Only the device waits, never this
        call. An error before the event may become an error of the stream: the runtime asks each stream for its own.
        """
        raise NotImplementedError

    def wrap(self, host: Any) -> Buffer | None:
        """Optional, for a device that can read the host's memory as its own. Since 1.0.

        Return a buffer over the memory of a C-contiguous host array, or None. The buffer holds the array, which may be
        read-only. Kernels and copies only read the buffer. None says that the memory is unfit, by its alignment for
        instance. The runtime frees the buffer like others: work that is enqueued already may still use it.
        """
        return None

    def part(self, buffer: Buffer, start: int, nbytes: int) -> Buffer:
        """Optional, with the limit `part_alignment`. Since 1.4.

        Return a buffer over `nbytes` bytes of another one, from byte `start` on. The other one may be a part itself.
        Kernels only read a part. Work that uses a part uses the whole: the order of streams and `free` count it so. A
        part is never freed. It may outlive its whole, and is not used then.
        """
        raise NotImplementedError

    def reaches(self, device: Device) -> bool:
        """Optional, with `copy_peer`: True when it copies from the buffers of this device. Both are open. Since 1.3."""
        return False

    def copy_peer(self, source: Buffer, target: Buffer, stream: Stream) -> bool:
        """Optional, with `reaches`, for devices that copy from one another's memory. Since 1.3.

        Enqueue a copy of a buffer of a device that this one reaches into one of its own; False for others. The copy
        comes after all work that is enqueued on the source's stream 0. Work that is enqueued later, on either device,
        comes after the copy where it uses the buffers.
        """
        return False

    def figures(self) -> str:
        """Optional: the use of the memory, for errors: `3 of 10 bytes in use`. Since 1.3."""
        return ""

    def capture(self, calls: Sequence[Callable[[], object]], stream: Stream) -> Callable[[], None] | None:
        """Optional, for a device that can replay kernels faster than it launches them. Since 1.3.

        Return a call that enqueues the work of all these calls, in order, as one; None where it cannot. Each call
        enqueues kernels of this device over buffers that stay. It ran before, and runs once more here, without effect.
        A kernel takes part that is attached to its buffers, unless its bound object says `captures = False`: it may
        only enqueue work, and never wait for it.
        """
        return None

    def adopt(self, array: Any) -> Buffer | None:
        """Optional, for a device whose memory other libraries use, too. Since 1.3.

        Return a buffer over an object with `__dlpack__`, or None where it is not in this device's memory. The buffer
        holds the object. Work that is enqueued on it before is done before later work of the stream. Raises
        InvalidArgument for an array that is not C-contiguous. The runtime frees the buffer like others.
        """
        return None


def own_method(device: object, name: str) -> Callable[..., Any] | None:
    """Return a device's method of this name; None where it has none, or has the protocol's own."""
    method = getattr(device, name, None)
    return None if getattr(method, "__func__", None) is getattr(Device, name) else method


def reaches(device: Device, source: Device) -> bool:
    """True when a device copies from the memory of another by itself."""
    ask = own_method(device, "reaches")
    return ask is not None and bool(ask(source))


class DeviceName(NamedTuple):
    """A device's name, or a request that several devices may meet: a part that is None fits every device.

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
        """Read a full, partial or short name; `/cpu:0` is TensorFlow's old form, and `*` stands for any part. Raises
        InvalidArgument for any other text."""
        short = _SHORT.fullmatch(text)
        if short is not None:
            return cls(type=short["type"].upper(), index=_index(short["index"]))
        name = cls()
        for part in text.split("/")[1:] if text.startswith("/") else (text,) if text else ():
            match = re.fullmatch(_PART, part, re.ASCII)
            if match is None:
                hint = "write it as CPU:0 or /job:localhost/replica:0/task:0/device:CPU:0"
                raise InvalidArgument(f"'{text}' is not a device name", device=text, hint=hint)
            name = name._replace(**{k: v for k, v in _part(match).items() if v is not None})
        return name

    @classmethod
    def of_this_process(cls, text: str) -> DeviceName:
        """Read the name of a device that a caller asks for. Raises NotFound for text without a device type, and for a
        device of another process; InvalidArgument for text that is no name."""
        name = cls.parse(text)
        if name.type is None:
            raise NotFound(f"'{text}' names no device type", device=text, hint="write a name like CPU:0")
        if not name.is_local:
            raise NotFound(f"device {text} is not in this process", device=text, hint=f"write {name.short}")
        return name

    @property
    def short(self) -> str:
        """The short form: `CPU:0`; `CPU:*` for any device of a type; `*` for any device."""
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
        """True when each given part of job, replica and task is the one of this process."""
        return self.job in (None, "localhost") and self.replica in (None, 0) and self.task in (None, 0)


_SHORT = re.compile(r"/?(?P<type>(?!job:|replica:|task:|device:)[A-Za-z_]\w*):(?P<index>\d{1,9}|\*)", re.ASCII)
_PART = (  # compiled when it is first used: a start meets short names alone
    r"job:(?P<job>[A-Za-z_]\w*|\*)|replica:(?P<replica>\d{1,9}|\*)|task:(?P<task>\d{1,9}|\*)"
    r"|(device:)?(?P<type>(?!(?:job|replica|task|device):)[A-Za-z_]\w*)(:(?P<index>\d{1,9}|\*))?"
    r"|device:\*(:(?P<index_of_any>\d{1,9}|\*))?"
)


def _index(text: str | None) -> int | None:
    return None if text is None or text == "*" else int(text)


def _part(match: re.Match[str]) -> dict[str, Any]:
    kind, job = match["type"], match["job"]
    return {"job": None if job == "*" else job, "replica": _index(match["replica"]), "task": _index(match["task"]),
            "type": kind.upper() if kind else None, "index": _index(match["index"] or match["index_of_any"])}


class DeviceType(NamedTuple):
    """A device type that a plugin announced. `scan(config)` yields its devices in stable order. `kernels` registers the
    plugin's own kernels for the type. Each is a callable or "module:function", which is imported when first needed."""

    type: str
    scan: str | Callable[..., Iterable[Device]]
    kernels: str | Callable[..., None] | None
    priority: int
    plugin: str
    config: Any = None


class Conflict(NamedTuple):
    """Two plugins claim one thing. The claim of `winner` is used until configuration changes that; `remedy` names the
    setting."""

    what: str
    winner: str
    loser: str
    remedy: str


class DeviceTypeRegistry:
    """Device types by name. Of several announcements of one type the first is used: that of the highest priority, then
    of the lowest plugin id. The others are conflicts.

    `provider`: By type, the plugin that config chooses. Its announcement alone is used.
    """

    def __init__(self, provider: Mapping[str, str] = MappingProxyType({})) -> None:
        self._types: dict[str, list[DeviceType]] = {}
        self._provider = dict(provider)

    def add(self, announced: DeviceType) -> None:
        rivals = [*self._types.get(announced.type, ()), announced]  # a new list: readers see the old or the new one
        self._types[announced.type] = sorted(rivals, key=lambda t: (-t.priority, t.plugin))

    def get(self, name: str) -> DeviceType | None:
        claims = self.claims(name)
        return claims[0] if claims else None

    def priority(self, name: str) -> int:
        """The priority of the announcement in use of a type."""
        return self.claims(name)[0].priority

    def rivals(self, name: str) -> list[DeviceType]:
        """All announcements of a type."""
        return self._types.get(name, [])

    def claims(self, name: str) -> list[DeviceType]:
        """The announcements of a type that may serve it, in the order in which their devices are looked for."""
        rivals = self.rivals(name)
        return [rival for rival in rivals if rival.plugin == self._provider.get(name)] or rivals

    def settle(self, name: str, plugin: str) -> bool:
        """Use the announcement of this plugin, since those before it have no device. Returns True when it was not used
        before."""
        first, *others = self.claims(name)
        if first.plugin == plugin:
            return False
        self._types[name] = sorted([first, *others], key=lambda announcement: announcement.plugin != plugin)
        return True

    def by_priority(self) -> list[DeviceType]:
        """The types in use, in placement's order of preference."""
        return sorted((self.claims(name)[0] for name in self._types), key=lambda t: (-t.priority, t.plugin))

    def conflicts(self) -> list[Conflict]:
        """The device types that several plugins announce, without the types that config has settled."""
        return [
            Conflict(f"device type {name}", rivals[0].plugin, loser.plugin,
                     f"set [placement.provider] {name} = '{loser.plugin}' or '{rivals[0].plugin}'")
            for name, rivals in sorted(self._types.items()) for loser in rivals[1:]
            if all(rival.plugin != self._provider.get(name) for rival in rivals)
        ]


def load_callable(target: str | Callable[..., Any]) -> Callable[..., Any]:
    """The callable itself, or the function that "module:function" names, imported now."""
    loaded_object = load_object(target)
    if not callable(loaded_object):
        raise PluginError(f"'{target}' names no function", hint="write it as 'package.module:function'")
    return loaded_object  # type: ignore[no-any-return]


def load_object(target: Any) -> Any:
    """Return the object itself or, for the text "module:name", the object of that name; None where there is none."""
    if not isinstance(target, str):
        return target
    from importlib import import_module

    module, _, name = target.partition(":")
    return getattr(import_module(module), name, None) if name else None
