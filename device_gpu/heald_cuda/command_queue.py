"""The queue of a device, and its buffers: launches on one stream, copies on two others, ordered by marks.

A copy waits for the launches that may use its buffer. A launch waits for the copies of its buffers. So copies of one
step run beside launches of another. A buffer notes both (`used`, `copied`); the lock makes notes and work one thing.

A fault of the driver that spoils its context is permanent: the device is lost, and stays lost.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import RLock
from typing import Any, NamedTuple

from heald.api import Unavailable, errors

from . import driver
from .driver import Context, DriverError
from .host_copies import move
from .marks import Event, Events, Lane, Mark
from .staging import BLOCK_BYTES, FEWEST_SHARED_BYTES, Block, Staging, address

# Codes after which no call in the context succeeds, in this process (CUDA's documentation of CUresult).
LOST = frozenset(f"CUDA_ERROR_{name}" for name in (
    "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS",
    "INVALID_ADDRESS_SPACE", "INVALID_PC", "HARDWARE_STACK_ERROR", "ASSERT", "ECC_UNCORRECTABLE",
    "NVLINK_UNCORRECTABLE", "TENSOR_MEMORY_LEAK", "EXTERNAL_DEVICE", "CONTEXT_IS_DESTROYED", "DEINITIALIZED",
    "NOT_INITIALIZED", "DEVICE_UNAVAILABLE", "SYSTEM_NOT_READY", "MPS_CLIENT_TERMINATED", "CONTAINED", "UNKNOWN",
))
WAITS = "a kernel that waits, allocates, or reads values of the host, says `captures = False`"


class Buffer:
    """A range of device memory.

    `queue`: that of the device; `used`: the number of the newest launch that may use the buffer; `copied`: the mark of
    a copy that a launch must wait for; `owner`: the object of another library that has the memory, None for memory of
    heald's pool. A buffer that is dropped and was not freed is freed with the next allocation.
    """

    __slots__ = ("__weakref__", "copied", "nbytes", "owner", "pointer", "queue", "used")

    def __init__(self, pointer: int, nbytes: int, queue: CommandQueue, owner: Any = None) -> None:
        self.pointer = pointer
        self.nbytes = nbytes
        self.queue = queue
        self.used = queue.position
        self.copied: Mark | None = None
        self.owner = owner

    def __del__(self) -> None:
        if self.pointer and self.owner is None:
            self.queue.orphans.append((self.pointer, self.nbytes, self.copied))

    @property
    def ordinal(self) -> int:
        return self.queue.context.ordinal

    def __repr__(self) -> str:
        return f"{self.nbytes} bytes of GPU {self.ordinal} at {self.pointer:#x}"

    def __array__(self, *_args: object, **_options: object) -> Any:
        raise TypeError(f"{self} is memory of a GPU, which the host cannot reach: copy it out first")


class Part(Buffer):
    """A part of a buffer. The marks of its launches and copies are those of the buffer, which owns the memory."""

    __slots__ = ()

    def __init__(self, buffer: Buffer, start: int, nbytes: int) -> None:
        self.pointer = buffer.pointer + start
        self.nbytes = nbytes
        self.queue = buffer.queue
        self.owner = buffer

    @property
    def used(self) -> int:
        return int(self.owner.used)

    @used.setter
    def used(self, number: int) -> None:
        self.owner.used = number

    @property
    def copied(self) -> Mark | None:
        mark: Mark | None = self.owner.copied
        return mark

    @copied.setter
    def copied(self, mark: Mark | None) -> None:
        self.owner.copied = mark


class Graph:
    """Launches that the driver replays as one. `buffers`: all that they use."""

    def __init__(self, handle: int, buffers: Sequence[Buffer], queue: CommandQueue) -> None:
        self._handle = handle
        self._buffers = buffers
        self._queue = queue
        weakref.finalize(self, queue.dropped.append, handle).atexit = False

    def replay(self) -> None:
        self._queue.enqueue(self._buffers, driver.replay, self._handle, self._queue.stream)


class Move(NamedTuple):
    """A piece of an array on its way into a block. `wait`: waits until it is there."""

    start: int
    block: Block
    nbytes: int
    wait: Callable[[], object]


class CommandQueue:
    """The queue of a GPU. `position`: launches so far; `done`: the launches that the host knows to be over."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.position = 0
        self.done = 0
        self._lock = RLock()
        self._fault = ""
        self._events = Events()
        self.dropped: deque[int] = deque()  # graphs that were collected
        self.orphans: deque[tuple[int, int, Mark | None]] = deque()  # memory of buffers that were collected
        self._captured: dict[int, Buffer] | None = None  # the buffers of the graph that is captured
        driver.enter(context.handle)
        self._launches, self._uploads, self._downloads = (Lane(self._events) for _ in range(3))
        self._launches.note_work()  # so that every event has a mark, and with it a time
        self._staging = Staging(self._await)
        _queues.add(self)

    @property
    def stream(self) -> int:
        """The driver's stream of launches."""
        return self._launches.handle

    @property
    def captures(self) -> bool:
        """True while launches are captured."""
        return self._captured is not None

    def check(self) -> None:
        """Raise Unavailable when the device was lost."""
        if self._fault:
            raise Unavailable(self._fault, hint="start a new process; 'heald devices --check' lists working devices")

    def enqueue(self, buffers: Sequence[Buffer], command: Callable[..., object], *arguments: Any) -> None:
        """Call `command(*arguments)`, which enqueues work on `stream` that uses these buffers of the device.

        The context is the thread's current one. Raises ResourceExhausted, Internal, or Unavailable for a lost device.
        """
        self.check()
        with self._lock:
            try:
                driver.enter(self.context.handle)
                if self._captured is None:
                    self._note(buffers)
                else:
                    self._captured.update((id(buffer), buffer) for buffer in buffers)
                command(*arguments)
            except DriverError as error:
                raise self.error_of_call(error) from error

    def capture(self, calls: Sequence[Callable[[], object]]) -> Graph:
        """A graph of the launches that these calls enqueue. Other threads wait; nothing runs. Raises as `enqueue`."""
        self.check()
        with self._lock:
            self._captured = {}
            try:
                driver.enter(self.context.handle)
                while self.dropped:
                    driver.destroy("graph", self.dropped.popleft())
                handle = driver.capture(self.stream, partial(_call_each, calls))
                return Graph(handle, tuple(self._captured.values()), self)
            except DriverError as error:
                raise self.error_of_call(error) from error
            except errors.Internal as error:
                raise errors.Internal(f"kernels cannot be captured: {error.message}", hint=WAITS) from error
            finally:
                self._captured = None
                self._launches.note_work()  # a mark that a call has set is one of the graph

    def write(self, host: Any, buffer: Buffer) -> None:
        """Enqueue a copy of an array. The array has been read when this returns."""
        if host.nbytes >= FEWEST_SHARED_BYTES:
            self._write_long(host, buffer)
            return
        for start, nbytes in _pieces(host.nbytes):
            block = self._block(nbytes)
            move(block.address, address(host) + start, nbytes)
            self._upload(buffer, start, block, nbytes)

    def read(self, buffer: Buffer, host: Any) -> None:
        """Enqueue a copy into an array, which is filled when an event behind the copy has been waited for."""
        for start, nbytes in _pieces(host.nbytes):
            block = self._block(nbytes)
            mark = self._copy(self._downloads, buffer, block.address, buffer.pointer + start, nbytes)
            self._staging.note_transfer(mark, block, nbytes, host, start)

    def copy_from(self, source: Buffer, target: Buffer) -> None:
        """Enqueue a copy from another GPU's buffer. Later work of both GPUs on the buffers waits for it."""
        first, second = sorted((self, source.queue), key=id)
        with first._lock, second._lock:
            source.copied = self._copy(self._uploads, target, target.pointer, source.pointer,
                                       min(source.nbytes, target.nbytes), source.queue.record().marks)

    def allocate(self, nbytes: int) -> int:
        """The address of memory for later work, 0 if there is none. Raises as `enqueue`."""
        self.check()
        with self._lock:
            if self.captures:  # the memory would belong to the graph
                raise errors.Internal("memory is allocated while launches are captured")
            try:
                driver.enter(self.context.handle)
                self._note(())
                return driver.allocate(self.context, nbytes, self.stream)
            except DriverError as error:
                if error.name == driver.OUT_OF_MEMORY:
                    return 0
                raise self.error_of_call(error) from error

    def free(self, buffer: Buffer) -> None:
        """Free a buffer's memory behind all enqueued work that uses it. Memory of a lost device is gone."""
        with self._lock:
            if not self._fault:
                self.enqueue((buffer,), driver.free, buffer.pointer, self.stream)

    def trim(self) -> int:
        """Wait for the enqueued work, and give unused memory back to the GPU. Returns its free bytes."""
        self.synchronize(self.record())
        with self._lock:
            try:
                driver.enter(self.context.handle)
                return driver.trim(self.context)
            except DriverError as error:
                raise self.error_of_call(error) from error

    def record(self) -> Event:
        """A point behind all work so far. Raises Unavailable."""
        self.check()
        with self._lock:
            try:
                driver.enter(self.context.handle)
                marks = [lane.mark() for lane in (self._launches, self._uploads, self._downloads)]
            except DriverError as error:
                raise self.error_of_call(error) from error
            return Event(tuple(mark for mark in marks if mark is not None), self.position, self._staging.count)

    def synchronize(self, event: Event) -> None:
        self.check()
        for download in self._staging.long_downloads(event.transfers):
            self._await(download.mark)
            self._staging.begin_move(download)
        for mark in event.marks:
            self._await(mark)
        self.done = max(self.done, event.position)
        self._staging.land(event.transfers)

    def elapsed(self, start: Event, end: Event) -> float:
        """Seconds between two points that were waited for: from the last mark of one to the last of the other."""
        try:
            driver.enter(self.context.handle)
            times = [[driver.elapsed(start.marks[0].handle, mark.handle) for mark in event.marks]
                     for event in (start, end)]
        except DriverError as error:
            raise self.error_of_call(error) from error
        return max(times[1]) - max(times[0])

    def error_of_call(self, error: DriverError, what: str = "the driver refuses a call") -> errors.HealdError:
        """The error to raise for a failed call. A device that cannot go on is lost: every later call raises that."""
        if error.name in LOST:
            self._fault = self._fault or f"the device was lost: {error}"
            return Unavailable(self._fault)
        if error.name == driver.OUT_OF_MEMORY:
            return errors.ResourceExhausted(f"the driver has no memory: {error}")
        return errors.Internal(f"{what}: {error}")

    def close(self) -> bool:
        """Wait for the enqueued work, and release the driver's objects. Returns False for a lost device."""
        try:
            self.synchronize(self.record())
        except errors.HealdError:
            return False
        self._fault = "the device has been closed"
        driver.enter(self.context.handle)
        for graph in self.dropped:
            driver.destroy("graph", graph)
        self._staging.close()
        self._events.close()
        for lane in (self._launches, self._uploads, self._downloads):
            driver.destroy("stream", lane.handle)
        return True

    def forked(self) -> None:
        """Make the queue unusable in a forked child, which may neither use nor release the driver's objects."""
        self._fault = "the device belongs to the process that forked this one"
        self._lock = RLock()
        self._staging.forked()

    def _note(self, buffers: Sequence[Buffer]) -> None:
        """Have the next launch wait for the copies of its buffers, and note its number on them."""
        self.position += 1
        self._launches.note_work()
        for buffer in buffers:
            if buffer.copied is not None:
                driver.wait(self.stream, buffer.copied.handle)
                buffer.copied = None
            buffer.used = self.position

    def _write_long(self, host: Any, buffer: Buffer) -> None:
        """Enqueue a copy whose pieces several threads move."""
        moves: deque[Move] = deque()
        try:
            for start, nbytes in _pieces(host.nbytes):
                if len(moves) == self._staging.most_moves:
                    self._upload_moved(buffer, moves)
                block = self._block(nbytes)
                wait = self._staging.copies.start(block.address, address(host) + start, nbytes)
                moves.append(Move(start, block, nbytes, wait))
            while moves:
                self._upload_moved(buffer, moves)
        except BaseException:
            for unfinished in moves:  # the caller may free the array behind the error
                unfinished.wait()
            raise

    def _upload_moved(self, buffer: Buffer, moves: deque[Move]) -> None:
        """Enqueue the copy of the oldest piece, once it is in its block."""
        moves[0].wait()
        start, block, nbytes, _ = moves.popleft()
        self._upload(buffer, start, block, nbytes)

    def _upload(self, buffer: Buffer, start: int, block: Block, nbytes: int) -> None:
        mark = self._copy(self._uploads, buffer, buffer.pointer + start, block.address, nbytes)
        self._staging.note_transfer(mark, block, nbytes)

    def _copy(
        self, lane: Lane, buffer: Buffer, target: int, source: int, nbytes: int, behind: Sequence[Mark] = ()
    ) -> Mark:
        """Enqueue a copy behind the launches and copies of this buffer, and behind these marks. Returns its mark."""
        self.check()
        with self._lock:
            try:
                driver.enter(self.context.handle)
                self._wait_for_use(lane, buffer)
                for earlier in behind:
                    driver.wait(lane.handle, earlier.handle)
                driver.copy(target, source, nbytes, lane.handle)
                lane.note_work()
                mark = lane.mark()
            except DriverError as error:
                raise self.error_of_call(error) from error
            assert mark is not None
            buffer.copied = mark
            return mark

    def _wait_for_use(self, lane: Lane, buffer: Buffer) -> None:
        """Have a lane wait for the launches and copies of a buffer that may not be over."""
        if buffer.used > max(self.done, lane.seen):
            mark = self._launches.mark()
            assert mark is not None
            driver.wait(lane.handle, mark.handle)
            lane.seen = self.position
        if buffer.copied is not None:
            driver.wait(lane.handle, buffer.copied.handle)

    def _block(self, nbytes: int) -> Block:
        self.check()
        try:
            driver.enter(self.context.handle)
            return self._staging.take(nbytes)
        except DriverError as error:
            raise self.error_of_call(error) from error

    def _await(self, mark: Mark) -> None:
        try:
            driver.enter(self.context.handle)
            driver.synchronize(mark.handle)
        except DriverError as error:
            raise self.error_of_call(error) from error


def _call_each(calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        call()


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each piece of a copy."""
    for start in range(0, nbytes, BLOCK_BYTES):
        yield start, min(BLOCK_BYTES, nbytes - start)


_queues: weakref.WeakSet[CommandQueue] = weakref.WeakSet()


def _abandon_in_child() -> None:
    for queue in list(_queues):
        queue.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)
