"""LocalRendezvous: the rendezvous of a step within one process."""

from __future__ import annotations

from collections import deque
from itertools import chain
from threading import RLock
from typing import Any

from ...errors import HealdError
from ..contract.rendezvous import RendezvousKey
from ..values.async_value import DEAD, AsyncValue, available, failed


class LocalRendezvous:
    """Queues sent tensors, or waiting receivers, by key. Any thread may call."""

    # A signal handler may abort while its own thread sends or receives: the lock is re-entrant, and `recv` looks for
    # an error once more after its waiter is stored.

    def __init__(self) -> None:
        self._lock = RLock()
        self._sent: dict[RendezvousKey, deque[AsyncValue]] = {}  # tensors without a receiver
        self._waiting: dict[RendezvousKey, deque[AsyncValue]] = {}  # receivers without a tensor
        self._error: HealdError | None = None

    def send(self, key: RendezvousKey, value: Any, is_dead: bool = False) -> None:
        """Hand over a tensor: to the first waiting receiver, or to a later one.

        Raises the error of `abort` afterwards.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            receiver = _first(self._waiting, key)
            if receiver is None:
                self._sent.setdefault(key, deque()).append(DEAD if is_dead else available(value))
        if receiver is None:
            return
        if is_dead:
            receiver.forward_to(DEAD)
        else:
            receiver.emplace(value)

    def recv(self, key: RendezvousKey) -> AsyncValue:
        """Return the first tensor of this key that no other receiver took; it may come later."""
        with self._lock:
            if self._error is not None:
                return failed(self._error)
            value = _first(self._sent, key)
            if value is not None:
                return value
            value = AsyncValue()
            self._waiting.setdefault(key, deque()).append(value)
        if self._error is not None:
            self._fail_waiting()
        return value

    def abort(self, error: HealdError) -> None:
        """Fail all waiting receivers and all later calls with this error, and drop the tensors. The first error
        stays."""
        with self._lock:
            if self._error is None:
                self._error = error
            self._sent.clear()
        self._fail_waiting()

    def _fail_waiting(self) -> None:
        assert self._error is not None
        with self._lock:
            receivers = list(chain.from_iterable(self._waiting.values()))
            self._waiting.clear()
        for receiver in receivers:
            receiver.set_error(self._error)


def _first(queues: dict[RendezvousKey, deque[AsyncValue]], key: RendezvousKey) -> AsyncValue | None:
    """Take the first value of a key's queue, if there is one. An empty queue is removed."""
    queue = queues.get(key)
    if queue is None:
        return None
    value = queue.popleft()
    if not queue:
        del queues[key]
    return value
