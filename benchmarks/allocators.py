"""The time of an allocator for a buffer that is dropped at once, against np.empty.

    python benchmarks/allocators.py

`write_array`: every byte is written, as a kernel does. Each row is the median over interleaved pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from heald.runtime.contract.allocator import HostAllocator, PlainAllocator
from heald.runtime.host.allocators.array_maker import array_maker
from heald.runtime.host.allocators.budgeted import BudgetedAllocator
from heald.runtime.host.allocators.counting import CountingAllocator
from heald.runtime.host.allocators.failing import FailingAllocator
from heald.runtime.host.allocators.poisoning import PoisoningAllocator
from heald.runtime.host.allocators.pooled import PooledAllocator
from tabulate import tabulate
from timing import time_pairs

ALLOCATORS: dict[str, Callable[[], HostAllocator]] = {
    "plain": PlainAllocator,
    "pooled": PooledAllocator,
    "budgeted": lambda: BudgetedAllocator(1 << 40),
    "counting": CountingAllocator,
    "failing": lambda: FailingAllocator(0),
    "poisoning": PoisoningAllocator,
    "budgeted(pooled)": lambda: BudgetedAllocator(1 << 40, PooledAllocator()),
}
SIZES = (("64 B", 64), ("64 KiB", 64 << 10), ("4 MiB", 4 << 20))
WRITTEN = (("64 KiB", 64 << 10, 200), ("4 MiB", 4 << 20, 20), ("64 MiB", 64 << 20, 1))


def row(name: str, size: str, ours: Callable[[], object], numpys: Callable[[], object], repeat: int) -> list[object]:
    a, b, ratio = time_pairs(ours, numpys, repeat)
    return [name, size, f"{a * 1e9:,.0f} ns", f"{b * 1e9:,.0f} ns", f"{ratio:.2f}", f"{(a - b) * 1e9:+,.0f} ns"]


def write_array(make: Callable[[], np.ndarray]) -> None:
    make().fill(1)


def main() -> None:
    rows = []
    for size, nbytes in SIZES:
        empty = partial(np.empty, nbytes, np.uint8)
        for name, make in ALLOCATORS.items():
            repeat = 20 if name == "poisoning" and nbytes > 1 << 20 else 2000
            rows.append(row(name, size, partial(make().allocate, nbytes), empty, repeat))
    for size, nbytes, repeat in WRITTEN:
        for name in ("plain", "pooled"):
            allocate, empty = partial(ALLOCATORS[name]().allocate, nbytes), partial(np.empty, nbytes, np.uint8)
            rows.append(row(f"{name}, written", size, partial(write_array, allocate), partial(write_array, empty),
                            repeat))
    for name in ("plain", "pooled", "budgeted", "counting"):
        make_array = array_maker(ALLOCATORS[name](), (2, 2), np.float32)
        rows.append(row(f"{name}, array_maker", "2x2", make_array, partial(np.empty, (2, 2), np.dtype(np.float32)),
                        2000))
    headers = ["allocator", "size", "allocate and drop", "np.empty", "ratio", "more"]
    print(tabulate(rows, headers, colalign=("left", "left", *["right"] * 4), disable_numparse=True))


if __name__ == "__main__":
    main()
