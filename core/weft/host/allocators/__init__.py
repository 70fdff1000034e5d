"""The allocators that come with weft, by name; those that wrap another one are put around it here and in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...contract.allocator import HostAllocator, PlainAllocator
from ...contract.device import load_callable
from ...errors import NotFound
from ...support.memory_size import limit_bytes
from ...support.plugin_guard import plugin_guard


def pooled() -> HostAllocator:
    from .pooled import PooledAllocator

    return PooledAllocator()


def counting() -> HostAllocator:
    from .counting import CountingAllocator

    return CountingAllocator()


def poisoning() -> HostAllocator:
    from .poisoning import PoisoningAllocator

    return PoisoningAllocator()


GIVEN: dict[str, Callable[[], HostAllocator]] = {
    "plain": PlainAllocator, "pooled": pooled, "counting": counting, "poisoning": poisoning,
}


def make_allocator(
    factories: Mapping[str, str | Callable[..., Any]], name: str, limit: int | str | None
) -> HostAllocator:
    """The allocator of this name, within `limit` (bytes, "2GiB", "80%" of physical memory) if there is one.

    Raises NotFound for a name without a factory, PluginError when that fails, InvalidArgument for a limit that cannot
    be read.
    """
    if name not in factories:
        raise NotFound(f"no allocator is called '{name}'",
                       hint=f"[allocator] name: one of {', '.join(sorted(factories))}")
    within = None if limit is None else limit_bytes(limit)
    with plugin_guard(f"the factory of allocator '{name}'"):
        allocator: HostAllocator = load_callable(factories[name])()
    if within is None:
        return allocator
    from .budgeted import BudgetedAllocator

    return BudgetedAllocator(within, allocator)
