"""WaveRendezvous: the rendezvous of one step in one worker.

A sent tensor waits until all tensors of its wave to the same worker are sent. Then one message has them all. Received
tensors meet their Recv nodes in a rendezvous of this process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from heald.api import AsyncValue, RendezvousKey
from heald.errors import HealdError
from heald.runtime.contract import DeviceName
from heald.runtime.host import LocalRendezvous

Deliver = Callable[[int, list[str], list[Any]], None]  # destination, keys, arrays


class WaveRendezvous:
    """Exchanges the tensors of a step. `deliver` sends one message to a worker, and never blocks."""

    def __init__(self, received: LocalRendezvous, waves: Mapping[str, tuple[int, int]], deliver: Deliver) -> None:
        self._received, self._waves, self._deliver = received, waves, deliver
        self._lock = threading.Lock()
        self._missing: dict[tuple[int, int], int] = {}
        for wave in map(tuple, waves.values()):
            self._missing[wave] = self._missing.get(wave, 0) + 1  # type: ignore[index, arg-type]
        self._sent: dict[tuple[int, int], list[tuple[str, Any]]] = {}

    def send(self, key: RendezvousKey, value: Any, is_dead: bool = False) -> None:
        task = DeviceName.parse(key.destination).task
        planned = self._waves.get(f"{key.tensor}@{task}")
        if planned is None:  # a Send of the graph's own, whose Recv is in this worker
            self._received.send(key, value, is_dead)
            return
        wave = planned[0], planned[1]
        with self._lock:
            tensors = self._sent.setdefault(wave, [])
            tensors.append((str(key), None if is_dead else value))
            self._missing[wave] -= 1
            if self._missing[wave]:
                return
            del self._sent[wave]
        self._deliver(wave[0], [name for name, _ in tensors], [array for _, array in tensors])

    def recv(self, key: RendezvousKey) -> AsyncValue:
        return self._received.recv(key)

    def abort(self, error: HealdError) -> None:
        self._received.abort(error)
