"""Messages between the parent and a worker: questions with answers, and notices without.

    notice     (0, method, arguments)             handled at once, in the receiving thread
    question   (number, method, arguments)        handled by the executor
    answer     (-number, is an error, value)

Both ends are processes of one program and one user, over a socket without a name, so values travel pickled.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from heald.errors import DeadlineExceeded, HealdError, Unavailable, typed_error

QUESTION_SECONDS = 60.0
TICK_SECONDS = 0.2


class ChannelEnded(Unavailable):
    """The other process has ended."""


def channel_pair() -> tuple[Connection, socket.socket]:
    """The parent's end, and the end that a worker inherits."""
    parent_end, worker_end = socket.socketpair()
    return Connection(parent_end.detach()), worker_end


class Channel:
    """`methods`: by name, for the other end. Any thread may tell and ask; one thread runs `serve`."""

    def __init__(self, connection: Connection, methods: Mapping[str, Callable[..., Any]], executor: Executor) -> None:
        self._connection, self._methods, self._executor = connection, methods, executor
        self._futures: dict[int, Future[Any]] = {}
        self._numbers = count(1)
        self._sending = threading.Lock()
        self._is_ended = False

    def tell(self, method: str, *arguments: Any) -> None:
        """Send a notice. One to a process that has ended is dropped."""
        with suppress(OSError):
            self._send((0, method, arguments))

    def ask(self, method: str, *arguments: Any) -> Any:
        """The answer. Raises the other end's error, ChannelEnded and DeadlineExceeded."""
        return answer_of(self.begin(method, *arguments))

    def begin(self, method: str, *arguments: Any) -> Future[Any]:
        """The future of an answer."""
        future: Future[Any] = Future()
        number = next(self._numbers)
        self._futures[number] = future
        try:
            self._send((number, method, arguments))
        except OSError:
            self._end_question(number)
        if self._is_ended:  # set before `serve` ends the questions that it sees: none is left out
            self._end_question(number)
        return future

    def _send(self, message: tuple[Any, ...]) -> None:
        with self._sending:
            self._connection.send(message)

    def serve(self, on_tick: Callable[[], object] = lambda: None) -> None:
        """Handle messages until the other end is closed. `on_tick` is called now and then."""
        with suppress(EOFError, OSError):
            while True:
                if self._connection.poll(TICK_SECONDS):
                    self._handle(*self._connection.recv())
                on_tick()
        self._end()

    def close(self) -> None:
        """Close this end; `serve` returns, on both sides."""
        with suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)

    def _handle(self, number: int, method: Any, value: Any) -> None:
        if number == 0:
            self._methods[method](*value)
        elif number > 0:
            self._executor.submit(self._answer, number, method, value)
        else:
            future = self._futures.pop(-number, None)
            if future is not None:
                if method:
                    future.set_exception(value)
                else:
                    future.set_result(value)

    def _answer(self, number: int, method: str, arguments: tuple[Any, ...]) -> None:
        try:
            message = (-number, False, self._methods[method](*arguments))
        except Exception as error:  # noqa: BLE001 - the other end raises it
            message = (-number, True, error if isinstance(error, HealdError) else typed_error(error))
        with suppress(OSError):
            self._send(message)

    def _end(self) -> None:
        self._is_ended = True
        for number in [*self._futures]:
            self._end_question(number)
        self._connection.close()

    def _end_question(self, number: int) -> None:
        future = self._futures.pop(number, None)
        if future is not None:
            future.set_exception(ChannelEnded("the other process has ended"))


def answer_of(future: Future[Any]) -> Any:
    """The answer of a question. Raises as `Channel.ask`."""
    try:
        return future.result(QUESTION_SECONDS)
    except TimeoutError as error:
        if isinstance(error, HealdError):
            raise
        raise DeadlineExceeded(f"a process of the server did not answer in {QUESTION_SECONDS:.0f} s") from None
