"""Memory that this process may still take: the least that the system and its control groups leave.

Linux reports both. Page cache counts as free: the kernel drops it when programs need memory. Other systems report at
most the size of the machine's memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...errors import InvalidArgument, ResourceExhausted
from .memory_size import physical_memory

_AVAILABLE = rb"^MemAvailable:\s*(\d+) kB"


class _Controller(NamedTuple):
    """The files of one version of control groups. `mount` is the folder below the system's root."""

    mount: str
    limit: str
    usage: str
    cache: bytes  # a pattern of the lines of memory.stat that count page cache


_V1 = _Controller("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                  rb"^total_(?:in)?active_file (\d+)$")
_V2 = _Controller("sys/fs/cgroup", "memory.max", "memory.current",
                  rb"^(?:in)?active_file (\d+)$")
_UNLIMITED = 1 << 60  # control groups of version 1 write a number near 2**63 for no limit


def available_memory(root: str = "/") -> int | None:
    """Bytes that are left to this process. Without figures of the system: the size of the machine's memory, or None
    when that is unknown too. `root` is the folder that contains proc and sys."""
    left = [*_available_in_system(root), *_of_groups(root)]
    if left:
        return max(min(left), 0)
    try:
        return physical_memory()
    except InvalidArgument:
        return None


def ask_system(nbytes: int, asker: str) -> None:
    """Raises ResourceExhausted when the system has fewer than `nbytes` bytes left: it would kill the process
    instead."""
    left = available_memory()
    if left is not None and nbytes > left:
        raise ResourceExhausted(f"no memory for {asker}: {nbytes} bytes are needed, {left} bytes are available")


def _available_in_system(root: str) -> list[int]:
    figure = re.search(_AVAILABLE, _read(f"{root}/proc/meminfo"), re.MULTILINE)
    return [int(figure[1]) << 10] if figure else []


def _of_groups(root: str) -> Iterator[int]:
    """Bytes that each group above this process leaves. A path that does not exist belongs to another namespace."""
    for line in _read(f"{root}/proc/self/cgroup").decode("utf-8", "replace").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if "memory" in controllers.split(","):
            controller = _V1
        elif number == "0" and not controllers:
            controller = _V2
        else:
            continue
        group = path.rstrip("/")
        while group:
            yield from _group_bytes_left(f"{root}/{controller.mount}{group}", controller)
            group = group.rpartition("/")[0]
        yield from _group_bytes_left(f"{root}/{controller.mount}", controller)


def _group_bytes_left(folder: str, files: _Controller) -> list[int]:
    limit = _read(f"{folder}/{files.limit}").strip()
    if not limit.isdigit() or int(limit) >= _UNLIMITED:
        return []
    usage = _read(f"{folder}/{files.usage}").strip()
    cache = sum(map(int, re.findall(files.cache, _read(f"{folder}/memory.stat"), re.MULTILINE)))
    return [int(limit) - max(int(usage) - cache, 0)] if usage.isdigit() else []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - making a Path takes as long as reading the file
            return file.readall()
    except OSError:
        return b""
