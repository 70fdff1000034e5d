"""Allocators: heald's own allocators by name, and the construction of the allocator that configuration chooses.

Each allocator but the plain one wraps another and adds one property to it. Any thread may call an allocator; a buffer
returns to it once. The end of a buffer may be found by the garbage collector, within any other call: code that hears of
it takes no lock.

`pooled`: Keeps returned blocks for reuse.
`counting`: Records the callers of live buffers, to find leaks.
`poisoning`: Fills fresh and returned memory with a pattern.
`budgeted`: Limits the bytes in use.
`failing`: Fails one request, for tests.
`ledger`: The count of bytes and buffers that these allocators keep.
`loan`: The detection that the last array over a block is gone.
`allocator_check`: The trial of a plugin's allocator when it is made.
`array_maker`: Typed arrays in an allocator's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....errors import NotFound, closest
from ...contract.allocator import HostAllocator, PlainAllocator
from ...contract.device import load_callable
from ...support.memory_size import limit_bytes
from ...support.plugin_guard import plugin_guard


def make_pooled() -> HostAllocator:
    from .pooled import PooledAllocator

    return PooledAllocator()


def make_counting() -> HostAllocator:
    from .counting import CountingAllocator

    return CountingAllocator()


def make_poisoning() -> HostAllocator:
    from .poisoning import PoisoningAllocator

    return PoisoningAllocator()


BUILT_IN_ALLOCATORS: dict[str, Callable[[], HostAllocator]] = {
    "plain": PlainAllocator, "pooled": make_pooled, "counting": make_counting, "poisoning": make_poisoning,
}


def make_allocator(
    factories: Mapping[str, str | Callable[..., Any]], name: str, limit: int | str | None,
    plugin: str | None = None,
) -> HostAllocator:
    """Return the allocator of this name. With a `limit` (bytes, "2GiB", "80%" of physical memory) it is a
    BudgetedAllocator around it. `plugin`: the owner of the name.

    Raises NotFound for a name without a factory, PluginError when the factory fails or its allocator breaks the
    protocol, InvalidArgument for a limit that cannot be read.
    """
    if name not in factories:
        similar_names = closest(name, factories, limit=1)
        raise NotFound(f"no allocator is called '{name}'",
                       hint=f"did you mean {similar_names[0]}?" if similar_names else
                       f"[allocator] name: one of {', '.join(sorted(factories))}")
    within = None if limit is None else limit_bytes(limit)
    who = f"allocator '{name}' of plugin {plugin or 'unknown'}"
    with plugin_guard(f"the factory of {who}"):
        allocator: HostAllocator = load_callable(factories[name])()
    if name not in BUILT_IN_ALLOCATORS:
        from .allocator_check import check_allocator

        check_allocator(allocator, who)
    if within is None:
        return allocator
    from .budgeted import BudgetedAllocator

    return BudgetedAllocator(within, allocator)
