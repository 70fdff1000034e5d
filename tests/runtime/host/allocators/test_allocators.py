"""One suite of laws that every allocator keeps, alone and around another."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from harness.threads import in_threads
from heald.errors import InvalidArgument
from heald.runtime.contract.allocator import PlainAllocator
from heald.runtime.host.allocators.array_maker import array_maker
from heald.runtime.host.allocators.budgeted import BudgetedAllocator
from heald.runtime.host.allocators.counting import CountingAllocator
from heald.runtime.host.allocators.failing import FailingAllocator
from heald.runtime.host.allocators.poisoning import PoisoningAllocator
from heald.runtime.host.allocators.pooled import PooledAllocator
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.page_allocator import PageAllocator

MAKERS = {
    "plain": PlainAllocator,
    "pooled": PooledAllocator,
    "pooled, nothing idle": lambda: PooledAllocator(idle_limit=0),
    "pooled, little idle": lambda: PooledAllocator(idle_limit=2000),
    "budgeted": lambda: BudgetedAllocator(1 << 30),
    "counting": CountingAllocator,
    "failing later": lambda: FailingAllocator(1 << 30),
    "poisoning": PoisoningAllocator,
    "counting(budgeted(pooled))": lambda: CountingAllocator(BudgetedAllocator(1 << 30, PooledAllocator())),
    "poisoning(pooled)": lambda: PoisoningAllocator(PooledAllocator()),
    "budgeted(budgeted)": lambda: BudgetedAllocator(1 << 30, BudgetedAllocator(1 << 30)),
    "pages of the example": PageAllocator,
    "pooled(pages of the example)": lambda: PooledAllocator(PageAllocator()),
    "pooled(counting)": lambda: PooledAllocator(CountingAllocator(), idle_limit=2000),
}
SIZES = (0, 1, 63, 64, 65, 1000, 4096, 70_001, 1 << 20)


@pytest.fixture(params=MAKERS)
def allocator(request):
    return MAKERS[request.param]()


def address(array):
    return array.__array_interface__["data"][0]


def assert_all_is_back(allocator):
    assert (allocator.stats().in_use or 0, allocator.stats().buffers or 0) == (0, 0)


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_buffer_is_aligned_bytes_that_can_be_written(allocator, nbytes):
    buffer = allocator.allocate(nbytes)
    assert type(buffer) is np.ndarray
    assert (buffer.dtype, buffer.shape) == (np.uint8, (nbytes,))
    assert buffer.flags.writeable
    assert buffer.flags.c_contiguous
    assert nbytes == 0 or address(buffer) % 64 == 0
    buffer[:] = 7
    assert (buffer == 7).all()


@pytest.mark.parametrize("alignment", [1, 64, 256, 4096])
def test_an_alignment_that_is_asked_for_is_kept(allocator, alignment):
    buffers = [allocator.allocate(100, alignment) for _ in range(10)]
    assert all(address(b) % alignment == 0 for b in buffers)
    assert len({address(b) for b in buffers}) == 10
    del buffers
    assert_all_is_back(allocator)


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("nbytes", SIZES)
def test_a_buffer_comes_back_once(allocator, nbytes, explicit):
    for _ in range(3):
        other, buffer = allocator.allocate(nbytes), allocator.allocate(nbytes)
        if explicit:
            allocator.deallocate(buffer)
            allocator.deallocate(buffer)
        del buffer
        assert allocator.stats().buffers in (1, None)
        del other
        assert_all_is_back(allocator)


VIEWS = {
    "a slice": lambda b: b[8:],
    "another type": lambda b: b.view(np.float32),
    "another shape of a slice of another type": lambda b: b[64:192].view(np.int32).reshape(4, 8)[1:, ::2],
    "transposed": lambda b: b.view(np.float32).reshape(4, -1).T,
    "a memoryview": memoryview,
    "from a memoryview": lambda b: np.frombuffer(memoryview(b), np.float64),
    "a part of its base": lambda b: b if b.base is None else b.base[3:],
    "a subclass": lambda b: b.view(np.recarray)[5:],
}


@pytest.mark.parametrize("how", VIEWS)
def test_a_buffer_is_out_as_long_as_anything_shows_it(allocator, how):
    buffer = allocator.allocate(256)
    buffer[:] = np.arange(256) % 251
    view = VIEWS[how](buffer)
    expected = np.array(view)
    del buffer
    others = [allocator.allocate(256) for _ in range(3)]
    for other in others:
        other[:] = 255
    assert allocator.stats().buffers in (4, None)
    assert np.array_equal(np.asarray(view), expected)
    del other, others, view
    assert_all_is_back(allocator)


def test_copies_and_parts_of_what_lies_under_a_buffer_give_nothing_back(allocator):
    buffer = allocator.allocate(256)
    under = buffer.base
    del buffer
    for derived_array in (under[5:], under.copy(), under + 1, under.view()[::2]):
        del derived_array
    assert allocator.stats().buffers in (1, None)
    del under
    assert_all_is_back(allocator)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=40, deadline=None)
@given(seeds=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3000), st.integers(0, 50)), max_size=60))
def test_buffers_in_use_never_overlap(name, seeds):
    """Random allocating, viewing, dropping and deallocating: every array keeps its content."""
    allocator = MAKERS[name]()
    buffers = []  # (array, its content, whether it is the buffer itself and has no view)
    for mark, (what, nbytes, index) in enumerate(seeds):
        array, content, alone = buffers[index % len(buffers)] if buffers else (None, None, False)
        if what <= 2 or array is None:
            buffer = allocator.allocate(nbytes)
            buffer[:] = mark
            buffers.append((buffer, mark, True))
        elif what == 3:
            buffers[index % len(buffers)] = (array[: array.size // 2].reshape(-1, 1)[::2, 0], content, False)
        elif what == 4:
            del buffers[index % len(buffers)]
        elif alone:
            del buffers[index % len(buffers)]
            allocator.deallocate(array)
        array = buffer = None
        assert all((array == content).all() for array, content, _ in buffers)
    array = None
    buffers.clear()
    assert_all_is_back(allocator)


def test_four_threads_allocate_two_thousand_times_each(allocator):
    def work(index):
        random = np.random.default_rng(index)
        buffers = []
        for i, nbytes in enumerate(random.integers(1, 2000, 2000).tolist()):
            buffer = allocator.allocate(nbytes)
            buffer[:] = index
            buffers.append(buffer[1:])
            if i % 7 == 0:
                allocator.deallocate(buffer)
                buffers.pop()
            if len(buffers) > 5:
                dropped = buffers.pop(i % 5)
                assert (dropped == index).all()

    in_threads(work)
    assert_all_is_back(allocator)


def test_a_buffer_may_come_back_in_another_thread_and_out_of_a_cycle(allocator):
    buffers = [allocator.allocate(n) for n in range(100)]
    in_threads(lambda _: buffers.clear(), 1)
    assert_all_is_back(allocator)
    cycle = [allocator.allocate(100)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert_all_is_back(allocator)


@pytest.mark.parametrize("name", [n for n in MAKERS if n not in ("plain", "failing later", "pages of the example")])
def test_an_array_of_another_allocator_is_not_taken(name):
    with pytest.raises(InvalidArgument, match="no buffer of this allocator"):
        MAKERS[name]().deallocate(PlainAllocator().allocate(64))


@pytest.mark.parametrize(("shape", "dtype"), [
    ((2, 3), "float32"), ((), "int64"), ((0, 4), "float64"), ((5,), "bool"), ((3,), object), ((2, 2), "complex128"),
])
def test_arrays_of_any_type_are_made_in_an_allocators_memory(allocator, shape, dtype):
    make = array_maker(allocator, shape, dtype)
    first, second = make(), make()
    assert (first.shape, first.dtype) == (shape, np.dtype(dtype))
    assert first.flags.c_contiguous
    first[...], second[...] = 1, 0
    assert (first == 1).all()
    assert allocator.stats().buffers in (None, 0 if dtype is object else 2)
    del first, second
    assert_all_is_back(allocator)
