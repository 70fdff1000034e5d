"""Rules of single allocators beside the laws: budgets, counts, failures, poison, pools."""

from __future__ import annotations

import numpy as np
import pytest
from harness.threads import in_threads
from heald.errors import InvalidArgument, NotFound, ResourceExhausted
from heald.runtime.contract.allocator import AllocatorStats, PlainAllocator
from heald.runtime.host.allocators import make_allocator
from heald.runtime.host.allocators.array_maker import array_maker
from heald.runtime.host.allocators.budgeted import BudgetedAllocator
from heald.runtime.host.allocators.counting import CountingAllocator
from heald.runtime.host.allocators.failing import FailingAllocator
from heald.runtime.host.allocators.poisoning import POISON, PoisoningAllocator
from heald.runtime.host.allocators.pooled import PooledAllocator, block_size
from heald.runtime.support.memory_size import limit_bytes, physical_memory


def address(array):
    return array.__array_interface__["data"][0]


def assert_all_is_back(allocator):
    stats = allocator.stats()
    assert (stats.in_use, stats.buffers) == (0, 0), stats


def test_a_budget_says_what_was_asked_what_is_in_use_and_the_limit():
    allocator = BudgetedAllocator(1000)
    first = allocator.allocate(600)
    with pytest.raises(ResourceExhausted, match="for 401 bytes: 600 bytes are in use, the limit is 1000"):
        allocator.allocate(401)
    second = allocator.allocate(400)
    assert allocator.stats() == AllocatorStats(in_use=1000, peak=1000, buffers=2, allocations=2, limit=1000)
    view = first[10:]
    del first
    with pytest.raises(MemoryError):
        allocator.allocate(1)
    del view
    allocator.deallocate(second)
    assert allocator.stats() == AllocatorStats(in_use=0, peak=1000, buffers=0, allocations=2, limit=1000)
    assert allocator.allocate(1000).size == 1000


def test_a_budget_is_not_charged_for_what_the_allocator_within_refuses():
    allocator = BudgetedAllocator(1000, FailingAllocator(1))
    with pytest.raises(ResourceExhausted, match="request 1 is made to fail"):
        allocator.allocate(800)
    assert allocator.allocate(800).size == 800


def test_threads_together_never_pass_a_budget():
    counting = CountingAllocator()
    allocator = BudgetedAllocator(10_000, counting)
    refused = []

    def work(index):
        buffers = []
        for _ in range(2000):
            try:
                buffers.append(allocator.allocate(1000))
            except ResourceExhausted:
                refused.append(index)
                buffers.clear()

    in_threads(work)
    assert refused
    assert allocator.stats().peak <= 10_000
    assert counting.stats().peak <= 14_000  # a buffer is off the budget just before its memory is
    assert_all_is_back(counting)


def test_counting_knows_the_peak_and_who_has_not_given_back():
    allocator = CountingAllocator()
    for n in (100, 300, 200):
        allocator.allocate(n)
    first, second = allocator.allocate(70), allocator.allocate(80)
    stats = AllocatorStats(in_use=150, peak=300, buffers=2, allocations=5)
    assert allocator.stats() == stats
    assert [leak.nbytes for leak in allocator.leaks()] == [70, 80]
    assert allocator.leaks()[0].where.startswith(f"{__file__}:")
    assert allocator.leaks()[0].where.endswith(test_counting_knows_the_peak_and_who_has_not_given_back.__name__)
    del first, second
    assert allocator.leaks() == []


def test_counting_names_who_asked_through_other_allocators():
    counting = CountingAllocator()
    array = array_maker(BudgetedAllocator(100, PoisoningAllocator(counting)), (2,), "int8")()
    assert __file__ in counting.leaks()[0].where
    del array


@pytest.mark.parametrize("k", range(1, 6))
def test_failing_fails_at_the_kth_request_alone(k):
    allocator = FailingAllocator(k)
    for request in range(1, 8):
        if request == k:
            with pytest.raises(ResourceExhausted, match=f"no host memory for 64 bytes: request {k} is made to fail"):
                allocator.allocate(64)
        else:
            allocator.allocate(64)


@pytest.mark.parametrize("inner", [PlainAllocator, PooledAllocator])
def test_poison_shows_in_unwritten_memory_and_in_returned_memory(inner):
    allocator = PoisoningAllocator(inner())
    buffer = allocator.allocate(100)
    assert (buffer == POISON).all()
    buffer[:] = 1
    allocator.deallocate(buffer)
    assert (buffer == POISON).all()
    assert allocator.allocate(4).view(np.float32)[0] == np.float32(-26711958)


def test_poison_falls_on_a_block_when_its_last_array_is_gone():
    pool = PooledAllocator()
    allocator = PoisoningAllocator(pool)
    view = allocator.allocate(100)[:50]
    view[:] = 1
    del view
    assert (pool.allocate(100) == POISON).all()


def test_blocks_are_whole_lines_and_little_of_them_is_unused():
    sizes = [block_size(n) for n in range(100_000)]
    assert all(size >= max(n, 1) and size % 64 == 0 for n, size in enumerate(sizes))
    assert all(size - n < size / 5 for n, size in enumerate(sizes) if n > 256)
    assert sizes == sorted(sizes)
    assert len(set(sizes)) < 45


def test_a_block_that_came_back_is_lent_again():
    allocator = PooledAllocator()
    first = allocator.allocate(1000)
    where = address(first)
    view = first[1:]
    del first
    assert address(allocator.allocate(1000)) != where
    del view
    assert address(allocator.allocate(900)) == where
    assert allocator.stats() == AllocatorStats(in_use=0, buffers=0, idle=2048)


def test_a_pool_keeps_no_more_idle_than_its_limit_and_trims_to_nothing():
    counting = CountingAllocator()
    allocator = PooledAllocator(counting, idle_limit=5 * 1024)
    buffers = [allocator.allocate(1024) for _ in range(20)]
    assert (allocator.stats().in_use, allocator.stats().idle) == (20 * 1024, 0)
    buffers.clear()
    assert (allocator.stats().in_use, allocator.stats().idle) == (0, 5 * 1024)
    assert counting.stats().in_use == 5 * 1024
    assert allocator.trim() == 5 * 1024
    assert allocator.stats() == AllocatorStats(in_use=0, buffers=0, idle=0)
    assert counting.leaks() == []
    buffers = [allocator.allocate(1024) for _ in range(3)]
    buffers.clear()
    assert allocator.stats().idle == 3 * 1024


def test_a_pool_without_memory_gives_up_its_idle_blocks_first():
    allocator = PooledAllocator(BudgetedAllocator(2000))
    allocator.allocate(1024)
    assert allocator.stats().idle == 1024
    with pytest.raises(ResourceExhausted):
        allocator.allocate(4096)
    assert allocator.stats() == AllocatorStats(in_use=0, buffers=0, idle=0)
    allocator.allocate(1024)
    assert allocator.allocate(1500).size == 1500


def test_memory_that_the_system_does_not_have_is_a_typed_error():
    with pytest.raises(ResourceExhausted, match=f"no memory for {1 << 55} bytes"):
        PlainAllocator().allocate(1 << 55)


@pytest.mark.parametrize(("limit", "nbytes"), [
    (5000, 5000), ("5000", 5000), ("2GiB", 2 << 30), ("1.5 gb", 1_500_000_000), ("64KiB", 65536), ("3 B", 3),
    ("80%", int(physical_memory() * 0.8)), ("12.5 %", int(physical_memory() * 0.125)),
])
def test_a_limit_is_bytes_a_size_or_a_share_of_the_memory(limit, nbytes):
    assert abs(limit_bytes(limit) - nbytes) <= 1
    assert abs(make_allocator({"plain": PlainAllocator}, "plain", limit).stats().limit - nbytes) <= 1


@pytest.mark.parametrize("limit", ["", "much", "2 XiB", "GiB", "-1", "0", 0, -5, "0%", "1e9"])
def test_a_malformed_limit_is_an_error_that_shows_how_to_write_one(limit):
    with pytest.raises(InvalidArgument, match='a size such as "2GiB"'):
        limit_bytes(limit)


def test_an_allocator_that_nobody_registered_is_not_found():
    with pytest.raises(NotFound, match="no allocator is called 'none'"):
        make_allocator({"plain": PlainAllocator}, "none", None)
