"""Memory limits as text: bytes, a size with its unit, a share of a total."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ...errors import InvalidArgument

UNITS = {"": 1, "B": 1} | {f"{prefix}{unit}": base**power for unit, base in (("B", 1000), ("iB", 1024))
                           for power, prefix in enumerate("KMGT", 1)}
_FOLDED = {unit.lower(): factor for unit, factor in UNITS.items()}


def limit_bytes(limit: int | str) -> int:
    """The bytes that `limit` stands for: 2147483648, "2GiB", "1.5 GB", "80%" of the physical memory. Raises
    InvalidArgument for any other text."""
    nbytes = share_or_bytes(limit, physical_memory, "[allocator] limit")
    assert nbytes is not None
    return nbytes


def share_or_bytes(limit: int | str, total_bytes: Callable[[], int | None], setting: str) -> int | None:
    """The bytes that `limit` stands for. A share is one of `whole()`; a share of None is None.

    Raises InvalidArgument, which names the setting.
    """
    if isinstance(limit, int):
        nbytes: float = limit
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*|%)", limit.strip())
        unit = match[2].lower() if match else None
        if match is None or (unit != "%" and unit not in _FOLDED):
            raise _unreadable(limit, setting)
        total = total_bytes() if unit == "%" else None
        if unit == "%" and total is None:
            return None
        nbytes = float(match[1]) * (_FOLDED[unit or ""] if total is None else total / 100)
    if nbytes < 1:
        raise _unreadable(limit, setting)
    return int(nbytes)


def physical_memory() -> int:
    """The bytes of this machine's memory. Raises InvalidArgument when the system does not report them."""
    if not hasattr(os, "sysconf"):
        raise InvalidArgument("the system does not report the size of its memory", hint="write the limit in bytes")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _unreadable(limit: int | str, setting: str) -> InvalidArgument:
    return InvalidArgument(f"{limit!r} is not a limit of memory",
                           hint=f'{setting}: bytes, a size such as "2GiB", or a share such as "80%"')
