"""Memory of a device: a pool of buffers within config's limit, and on a CPU also the memory of host arrays."""

from __future__ import annotations

from threading import Lock
from typing import Any

import pyopencl as cl
from heald.api import errors
from pyopencl.tools import ImmediateAllocator, MemoryPool, PooledBuffer

from .command_queue import CommandQueue

ALIGNMENT = 16  # bytes, of wrapped host memory: NumPy's alignment, and the size of the widest type that kernels load
READ_HOST = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR


class Memory:
    """Buffers for one queue. A freed buffer serves the next request at once: the queue is in order, so earlier commands
    are done with the buffer by then."""

    def __init__(self, queue: CommandQueue, limit: int) -> None:
        self._queue = queue
        self._limit = limit
        self._largest = queue.handle.device.max_mem_alloc_size
        self._pool = MemoryPool(ImmediateAllocator(queue.handle))
        self._wrapped: list[cl.Buffer] = []  # freed buffers over host arrays, which commands may still read
        self._lock = Lock()

    @property
    def used(self) -> int:
        """Bytes in buffers that are allocated and not yet freed."""
        return int(self._pool.active_bytes)

    def allocate(self, nbytes: int) -> PooledBuffer | None:
        self._queue.check()
        with self._lock:
            self._take_back()
            if nbytes > self._largest:
                return None
            if self._pool.managed_bytes + nbytes > self._limit:
                self._pool.free_held()
                if self._pool.managed_bytes + nbytes > self._limit:
                    return None
            try:
                return self._pool.allocate(nbytes)
            except cl.MemoryError:
                return None
            except cl.Error as error:
                raise self._queue.lose(error) from error

    def wrap(self, host: Any) -> cl.Buffer | None:
        """A buffer over a host array. The buffer holds the array, and does not count towards config's limit. None on
        all devices but CPUs, for other drivers would copy, and for arrays that are empty or not aligned."""
        self._queue.check()
        if self._wrapped:
            with self._lock:
                self._take_back()
        device = self._queue.handle.device
        address = host.__array_interface__["data"][0]
        if not device.type & cl.device_type.CPU or not host.nbytes or address % ALIGNMENT:
            return None
        try:
            return cl.Buffer(self._queue.handle.context, READ_HOST, hostbuf=host)
        except cl.Error:
            return None

    def part(self, buffer: cl.Buffer | PooledBuffer, start: int, nbytes: int) -> cl.Buffer:
        """A sub-buffer. The driver keeps the whole buffer's memory until all sub-buffers are gone."""
        self._queue.check()
        root: Any = cl.Buffer.from_int_ptr(buffer.int_ptr)
        parent = root.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
        if parent is not None:  # a sub-buffer has none of its own
            start, root = start + root.get_info(cl.mem_info.OFFSET), cl.Buffer.from_int_ptr(parent.int_ptr)
        try:
            part: cl.Buffer = root.get_sub_region(start, nbytes)
        except cl.MemoryError as error:
            raise MemoryError(f"the driver: {error}") from error
        return part

    def free(self, buffer: cl.Buffer | PooledBuffer) -> None:
        with self._lock:
            if isinstance(buffer, PooledBuffer):
                buffer.release()
            elif not self._queue.is_idle:
                self._wrapped.append(buffer)

    def close(self) -> None:
        with self._lock:
            self._take_back()
            self._pool.stop_holding()

    def _take_back(self) -> None:
        if self._wrapped and self._queue.is_idle:
            self._wrapped.clear()


def allowance(memory: int | str, device: cl.Device) -> int:
    """The bytes that config's `memory` means on this device. Raises InvalidArgument."""
    text = str(memory).strip()
    share = text.removesuffix("%").strip()
    if not share.isascii() or not share.isdigit() or int(share) == 0 or (text.endswith("%") and int(share) > 100):
        raise errors.InvalidArgument(f"[plugin.opencl] memory is {memory!r}",
                                     hint="write a share such as '80%', or a number of bytes")
    return device.global_mem_size * int(share) // 100 if text.endswith("%") else int(share)
