"""Messages of runs, read once there is room: a call that is refused has none of its message in this process.

gRPC's own handler of a unary call reads the message first. In an overload each refused call would then have cost its
memory and the copies of its bytes. A handler that takes a stream reads for itself; the bytes on the wire are the same.

The messages that are read at a time are bounded by their mean size: READING_BYTES together, and FEWEST_MESSAGES in any
case. A call that has kept a place for too long loses it when another one needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import grpc.aio
from heald.errors import DeadlineExceeded, InvalidArgument, Unavailable

READING_BYTES = 64 << 20
FEWEST_MESSAGES = 32
AVERAGED_MESSAGES = 16


class MessageReader:
    """The messages of one event loop. `check_room` raises Unavailable while runs would be refused.

    `reading_bytes`: of the messages that are read at a time. `seconds`: that a message may take, when others wait.
    """

    def __init__(
        self, check_room: Callable[[], object], reading_bytes: int = READING_BYTES, seconds: float = 60.0
    ) -> None:
        self._check_room, self._reading_bytes, self._seconds = check_room, reading_bytes, seconds
        self._starts: dict[asyncio.Task[Any], float] = {}  # of the calls that read, in the order of time
        self._late: set[asyncio.Task[Any]] = set()
        self._mean_bytes = 0.0

    @property
    def reading(self) -> int:
        """The calls that read their messages."""
        return len(self._starts)

    async def read(self, context: Any) -> bytes:
        """The message of a call. Raises Unavailable before it is read, InvalidArgument where there is none, and
        DeadlineExceeded for one that came too slowly."""
        self._check_room()
        if len(self._starts) * self._mean_bytes > self._reading_bytes and len(self._starts) >= FEWEST_MESSAGES:
            self._end_late_call()
            raise Unavailable(f"{len(self._starts)} messages are read already", hint="try again later")
        task = asyncio.current_task()
        assert task is not None
        self._starts[task] = monotonic()
        try:
            data = await context.read()
        except asyncio.CancelledError:
            if task in self._late:
                raise DeadlineExceeded(f"the message took longer than {self._seconds:g} s") from None
            raise
        finally:
            del self._starts[task]
            self._late.discard(task)
        if data is grpc.aio.EOF:
            raise InvalidArgument("the call has no message")
        self._mean_bytes += (len(data) - self._mean_bytes) / AVERAGED_MESSAGES
        message: bytes = data
        return message

    def _end_late_call(self) -> None:
        """Cancel the call that has read for longest, if it takes too long."""
        task, start = next(iter(self._starts.items()))
        if monotonic() - start > self._seconds and task not in self._late:
            self._late.add(task)
            task.cancel()
