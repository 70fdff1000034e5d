"""Memory: buffers are allocated and freed, and a copy moves exactly its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import DeviceLimits, Node, dtypes, own_method

from ..arrays import any_bits, fixed_size_types, generator
from ..case import sentence
from ..elementwise import ops_of
from ..subject import Subject, placeholder, whatever_comes
from ..verdict import NotApplicable, expect, expect_close, expect_same_bits

SIZES = (1, 2, 3, 5, 7, 8, 15, 31, 33, 63, 65, 127, 255, 257, 1023, 4095, 4097, 65535, 65537, 1000003)
GUARD = 64  # bytes before and after the copied bytes, which a copy must not touch
UNKNOWN_MEMORY = 1 << 46
Array = np.ndarray[Any, Any]


def _lock_array(x: Array) -> Array:
    x.flags.writeable = False
    return x


def _unaligned_copy(x: Array) -> Array:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    shifted: Array = raw[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    return shifted


def _aligned_copy(x: Array) -> Array:
    """A copy at the start of a page, which a device is likely to wrap."""
    raw = np.zeros(x.nbytes + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    copy: Array = raw[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda x: x.T,
    "every_second": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "in_fortran_order": np.asfortranarray,
    "of_the_other_byte_order": lambda x: x.astype(x.dtype.newbyteorder()),
    "read_only": lambda x: _lock_array(x.copy()),
    "unaligned": _unaligned_copy,
    "broadcast": lambda x: np.broadcast_to(x[0], x.shape),
}


@sentence(over=lambda _: [d.name for d in fixed_size_types()])
def copies_in_and_out_are_bit_exact(on: Subject, dtype: str) -> None:
    for shape in ((1,), (3,), (7, 5), (2, 3, 4, 5), (1001,)):
        want = any_bits(dtypes.named(dtype), shape, generator(dtype, shape))
        got = np.zeros_like(want)
        with on.buffers(want.nbytes) as (buffer,):
            on.enqueue_in(_lock_array(want), buffer)
            on.enqueue_out(buffer, got)
            on.finish()
        expect_same_bits(got, want, f"{dtype}{list(shape)} copied in and out", "Device.copy_out")


@sentence(over=lambda _: [str(n) for n in SIZES])
def copies_of_any_number_of_bytes_touch_no_others(on: Subject, nbytes: str) -> None:
    count = int(nbytes)
    pattern = generator("pattern", count).integers(0, 256, count + GUARD, np.uint8)
    content = generator("content", count).integers(0, 256, count, np.uint8)
    with on.buffers(count + GUARD) as (buffer,):
        on.enqueue_in(pattern, buffer)
        on.enqueue_in(content, buffer)
        got = on.read(buffer, count + GUARD)
        end = count and min(DeviceLimits.of(on.device.attributes).allocation(count), count + GUARD)
        got[count:end] = pattern[count:end]  # bytes of the device's own, by the alignment of its copies
        want = np.concatenate([content, pattern[count:]])
        expect_same_bits(got, want, f"{count} bytes copied into a larger buffer",
                         "Device.copy_in")
        host = np.full(count + 2 * GUARD, 0x5A, np.uint8)
        on.enqueue_out(buffer, host[GUARD : GUARD + count])
        on.finish()
    expect_same_bits(host[GUARD : GUARD + count], content, f"{count} bytes copied out", "Device.copy_out")
    guards = np.concatenate([host[:GUARD], host[GUARD + count :]])
    expect_same_bits(guards, np.full(2 * GUARD, 0x5A, np.uint8), f"memory around {count} bytes that were copied out",
                     "Device.copy_out")


@sentence()
def copies_of_no_bytes_do_nothing(on: Subject) -> None:
    with on.buffers(1) as (buffer,):
        on.enqueue_in(np.full(1, 7, np.uint8), buffer)
        with whatever_comes("copies of an array without elements", expected="nothing", rule="Device.copy_in"):
            on.enqueue_in(np.zeros((0, 3), np.float32), buffer)
            on.enqueue_out(buffer, np.zeros((3, 0), np.float32))
            on.finish()
        expect_same_bits(on.read(buffer, 1), np.full(1, 7, np.uint8), "a copy of no bytes", "Device.copy_in")


@sentence()
def a_large_copy_is_bit_exact(on: Subject) -> None:
    want = np.arange(on.size(64 << 20, 1 << 20) // 8, dtype=np.int64) * 0x9E3779B97F4A7C1
    got = np.zeros_like(want)
    with on.buffers(want.nbytes) as (buffer,):
        on.enqueue_in(want, buffer)
        on.enqueue_out(buffer, got)
        on.finish()
    expect_same_bits(got, want, f"{want.nbytes} bytes copied in and out", "Device.copy_out")


@sentence()
def many_buffers_keep_their_own_bytes(on: Subject) -> None:
    count = on.size(500, 60)
    contents = [np.full(i % 97 + 1, i % 251, np.uint8) for i in range(count)]
    with on.buffers(*(c.nbytes for c in contents)) as buffers:
        for content, buffer in zip(contents, buffers, strict=True):
            on.enqueue_in(content, buffer)
        for number, (content, buffer) in enumerate(zip(contents, buffers, strict=True)):
            expect_same_bits(on.read(buffer, content.nbytes), content, f"buffer {number} of {count}", "Device.allocate")


@sentence()
def freed_memory_serves_later_requests(on: Subject) -> None:
    """Allocates more than the device's memory in total, a quarter at a time."""
    nbytes = int(on.device.attributes.get("memory") or 1 << 30) // 4
    while nbytes > 1 and (first := on.device.allocate(nbytes)) is None:
        nbytes //= 2
    on.device.free(first)
    content = np.arange(16, dtype=np.uint8)
    for turn in range(on.size(12, 6)):
        on.finish()
        buffer = on.device.allocate(nbytes)
        expect(buffer is not None, f"after {turn + 1} buffers of {nbytes} bytes were freed, one at a time",
               expected="a buffer", got="None", rule="Device.free")
        on.enqueue_in(content, buffer)
        expect_same_bits(on.read(buffer, 16), content, "memory that was had before", "Device.copy_in")
        on.device.free(buffer)


@sentence()
def an_allocation_without_memory_returns_none(on: Subject) -> None:
    nbytes = 8 * int(on.device.attributes.get("memory") or UNKNOWN_MEMORY)
    with whatever_comes(f"{nbytes} bytes are asked for", expected="None", rule="Device.allocate"):
        buffer = on.device.allocate(nbytes)
    if buffer is not None:
        on.device.free(buffer)
    expect(buffer is None, f"{nbytes} bytes are asked for, eight times what there is", expected="None", got="a buffer",
           rule="Device.allocate")
    with on.buffers(4) as (buffer,):
        on.enqueue_in(np.arange(4, dtype=np.uint8), buffer)
        expect_same_bits(on.read(buffer, 4), np.arange(4, dtype=np.uint8), "a copy after memory ran out",
                         "Device.copy_out")


@sentence()
def buffers_of_a_host_visible_device_are_aligned_arrays(on: Subject) -> None:
    if not on.host_visible:
        raise NotApplicable("its buffers are not host memory")
    for nbytes in (1, 3, 64, 1000):
        buffer = on.allocate(nbytes)
        got = f"{type(buffer).__name__} {getattr(buffer, 'dtype', '')}{list(getattr(buffer, 'shape', ()))}"
        expect(isinstance(buffer, np.ndarray) and buffer.dtype == np.uint8 and buffer.ndim == 1
               and buffer.size >= nbytes, f"allocate({nbytes})", expected=f"ndarray uint8[{nbytes}]", got=got,
               rule="Device.host_visible")
        expect(buffer.ctypes.data % 64 == 0, f"allocate({nbytes})", expected="an address that 64 divides",
               got=hex(buffer.ctypes.data), rule="Device.host_visible")
        on.device.free(buffer)


@sentence(over=lambda _: ["1", "64", "4097", "1000003"])
def a_wrapped_array_is_read_and_not_written(on: Subject, nbytes: str) -> None:
    wrap = own_method(on.device, "wrap")
    if wrap is None:
        raise NotApplicable("it has no wrap: it cannot read host memory in place")
    content = generator("wrapped", nbytes).integers(0, 256, int(nbytes), np.uint8)
    host = _lock_array(_aligned_copy(content))
    buffer = wrap(host)
    if buffer is None:
        raise NotApplicable("its wrap returns None for this memory")
    expect_same_bits(on.read(buffer, host.nbytes), content, "a wrapped array, copied out", "Device.wrap")
    on.device.free(buffer)
    expect_same_bits(host, content, "an array that was wrapped", "Device.wrap")


@sentence()
def a_feed_that_has_changed_is_read_anew(on: Subject) -> None:
    """A device may read a feed in place. After the run the user may write the array again."""
    op = ops_of(on)[0]
    x = _aligned_copy(generator("feed").normal(size=100_003).astype(np.float32))
    nodes = [placeholder("x"), Node("y", op.name, ["x"] * op.arity, attrs={"T": dtypes.float32}, device=on.name)]
    with on.session(nodes) as session:
        step = session.make_callable("y", ["x"])
        for turn in range(3):
            x += turn
            before = x.copy()
            got = step(x)
            expect_same_bits(x, before, "a feed after the run", "feeds")
            expect_close(got, op.compute(*[before] * op.arity), (0.0, 0.0), f"{op.name} of a feed in run {turn + 1}",
                         "feeds")


@sentence(over=lambda _: list(LAYOUTS))
def feeds_of_any_layout_arrive_as_their_elements(on: Subject, layout: str) -> None:
    op = ops_of(on)[0]
    x = LAYOUTS[layout](generator(layout).normal(size=(6, 10)).astype(np.float32))
    nodes = [placeholder("x"), Node("y", op.name, ["x"] * op.arity, attrs={"T": dtypes.float32}, device=on.name)]
    (got,) = on.run(nodes, ["y"], {"x": x})
    expect_close(got, op.compute(*[x.astype(np.float32)] * op.arity), (0.0, 0.0), f"{op.name} of a feed", "feeds")


@sentence()
def tensors_without_elements_pass(on: Subject) -> None:
    op = ops_of(on)[0]
    nodes = [placeholder("x"), Node("y", op.name, ["x"] * op.arity, attrs={"T": dtypes.float32}, device=on.name)]
    with whatever_comes(f"{op.name} of a tensor without elements", expected="float32[0, 3]", rule="kernels"):
        (got,) = on.run(nodes, ["y"], {"x": np.zeros((0, 3), np.float32)})
    expect_close(got, np.zeros((0, 3), np.float32), (0.0, 0.0), f"{op.name} of a tensor without elements", "kernels")
