"""Packing: threads of their own bring known weights into the library's layout, while Python binds the next kernels.
Loading ResNet50 takes 0.9 of the time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from heald.api import Bind, TensorMetadata, dtypes, inherited

from .library import library
from .memory import Array, Layout

PACKING_REVISION = 1  # the revision of heald_onednn's own part in packed weights; a change of their content raises it
SMALLEST_THREADED_BYTES = 1 << 20  # bytes from which the gain exceeds the cost of taking turns with Python


class Packed:
    """An array that a packing thread makes or, if none has begun, the first caller that needs it."""

    def __init__(self, make: Callable[[], Array]) -> None:
        self._make: Callable[[], Array] | None = make
        self._array: Array | None = None
        self._lock = threading.Lock()
        inherited.add(self)

    def __call__(self) -> Array:
        with self._lock:
            if self._make is not None:
                self._array, self._make = self._make(), None
        assert self._array is not None
        return self._array

    def forked(self) -> None:
        self._lock = threading.Lock()  # the child lacks the parent's thread that may hold the old lock


class Packers:
    """The packing threads: as many as the library has, each with one thread of the library. A thread without work
    ends."""

    def __init__(self) -> None:
        self.forked()
        inherited.add(self)

    def forked(self) -> None:
        self._lock = threading.Lock()
        self._todo: deque[Packed] = deque()
        self._working = 0

    def add(self, packed: Packed) -> None:
        with self._lock:
            self._todo.append(packed)
            starts = self._working < library().threads
            self._working += starts
        if starts:  # no daemons: they would write into arrays that go while the process ends
            threading.Thread(target=self._work, name="heald-onednn-packer", daemon=False).start()

    def _work(self) -> None:
        library().c.omp_set_num_threads(1)  # of this thread
        while True:
            with self._lock:
                if not self._todo:
                    self._working -= 1
                    return
                packed = self._todo.popleft()
            with suppress(Exception):  # the caller that needs the array tries again, and gets the exception
                packed()


packers = cache(Packers)


def packed_once(
    b: Bind, key: str, layout: Layout, make: Callable[[], Array | Packed]
) -> Array | Callable[[], Array]:
    """Known weights in this layout, as bytes: from the compiled file, or as `make` packs them, once for all links.

    `key` names the content and the layout (`Layout.name`). A stored array of another size, library or instruction set
    is not used, so that a primitive reads no other layout than its own.
    """
    return b.prepared(key, make, fingerprint=fingerprint(), meta=TensorMetadata(dtypes.uint8, (layout.nbytes,)))


@cache
def fingerprint() -> str:
    """The names and versions that packed weights depend on besides their layout."""
    instructions = library().c.dnnl_get_effective_cpu_isa()
    return f"onednn, forms {PACKING_REVISION}, oneDNN {library().revision}, instructions {instructions:#x}"


def pack_in_thread(nbytes: int, make: Callable[[], Array]) -> Array | Packed:
    """The array of `nbytes` that `make` returns, or a `Packed` that a thread computes with it."""
    if nbytes < SMALLEST_THREADED_BYTES or library().threads == 1:
        return make()
    packed = Packed(make)
    packers().add(packed)
    return packed
