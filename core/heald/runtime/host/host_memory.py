"""Memory budget of a host's programs. The budget is asked before memory is touched.

An array of COUNTED_FROM_BYTES or more is counted until the last array over its memory is gone. Counting takes 1.7 us,
less than a tenth of the time in which so many bytes are written. Smaller arrays, Python objects and plugins'
own temporaries are not counted.
"""

# The theory of the budget
#
# The unit is the owner: the array that all views of one memory refer to. It is counted once, however many views it has.
#
# Invariants
# - Bytes are counted before their memory is touched, so a refusal comes before the system runs out of memory.
# - Idle frames are dropped before a request is refused.
# - The count ends with the owner, in the finalizer of a weak reference. A finalizer may run in any thread, within any
#   call. So it takes no lock: it removes its entry in one step, and the ledger subtracts the bytes at the next `take`.
# - Two threads that count one array at once count it once: the second gives its bytes back.
#
# Rule: code that makes arrays for programs takes them from `lend`, `maker` or `allocate`. An array from elsewhere is
# registered by `hold`, and a kernel that computes while it is bound calls `ask` first.

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from ...errors import ResourceExhausted, is_lack_of_memory
from ..contract.allocator import AllocatorStats, HostAllocator
from ..values.tensor import shape_text
from .allocators.ledger import Ledger
from .bound_call_cache import BoundCalls

COUNTED_FROM_BYTES = 1 << 20
Maker = Callable[[], Any]


class HostMemory:
    """The memory of one host's programs, at most `limit` bytes at a time (None: no limit). Any thread may call."""

    def __init__(self, allocator: HostAllocator, limit: int | None) -> None:
        self.allocator = allocator
        self._ledger = Ledger(limit)
        self.bound_calls = BoundCalls()
        self._held: dict[int, weakref.ref[Any]] = {}  # by id of the array: arrays have no hash
        self._idle: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    @property
    def limit(self) -> int | None:
        return self._ledger.limit

    def stats(self) -> AllocatorStats:
        """The bytes and the number of the counted arrays."""
        return self._ledger.stats()

    def take(self, nbytes: int, asker: str) -> None:
        """Count `nbytes` until `give_back`. Idle frames are dropped when the bytes do not fit.

        Raises ResourceExhausted, which names `asker`, before any memory is touched.
        """
        if self._ledger.try_take(nbytes):
            return
        for ref in self._idle.valuerefs():
            idle = ref()
            if idle is not None:
                idle.drop()
        if not self._ledger.try_take(nbytes):
            raise ResourceExhausted(
                f"{asker} needs {size_text(nbytes)}: {size_text(self._ledger.in_use())} of the limit of "
                f"{size_text(self._ledger.limit or 0)} are in use", hint="raise [limits] memory, or ask for less")

    def give_back(self, nbytes: int) -> None:
        """Subtract bytes that `take` counted."""
        self._ledger.give_back(nbytes)

    def ask(self, nbytes: int, asker: str) -> None:
        """Raises as `take` when there is no room now. Nothing is counted: the memory is counted when it is
        allocated."""
        if nbytes >= COUNTED_FROM_BYTES:
            self.take(nbytes, asker)
            self._ledger.give_back(nbytes)

    def lend(self, nbytes: int, asker: str, make: Maker) -> Any:
        """Return the array of `nbytes` that `make` returns. A large array is counted. Raises ResourceExhausted."""
        if nbytes < COUNTED_FROM_BYTES:
            return make()
        self.take(nbytes, asker)
        try:
            array = make()
        except BaseException as error:
            self._ledger.give_back(nbytes)
            if is_lack_of_memory(error) and not isinstance(error, ResourceExhausted):
                raise ResourceExhausted(f"the system has no memory for {asker}: {size_text(nbytes)}") from None
            raise
        self._count_until_end(_owner(array), nbytes)
        return array

    def hold(self, array: Any, asker: str) -> None:
        """Count an existing array, if it is large and not counted yet. Raises ResourceExhausted."""
        owner = _owner(array)
        if owner.nbytes >= COUNTED_FROM_BYTES and id(owner) not in self._held:
            self.take(owner.nbytes, asker)
            self._count_until_end(owner, owner.nbytes)

    def maker(self, shape: tuple[int, ...], dtype: Any, what: str) -> Maker:
        """Return a function that makes uninitialised arrays of this type and shape. `what` names their purpose in
        errors.

        The function raises ResourceExhausted.
        """
        import numpy as np  # imported late: listing devices needs no NumPy

        from .allocators.array_maker import array_maker, bytes_of

        make, nbytes = array_maker(self.allocator, shape, dtype), bytes_of(shape, dtype)
        if nbytes < COUNTED_FROM_BYTES:
            return make
        return partial(self.lend, nbytes, f"{what} {np.dtype(dtype)}{shape_text(shape)}", make)

    def allocate(self, nbytes: int, alignment: int, asker: str) -> Any:
        """Return a buffer of the host's allocator, counted if it is large. Raises ResourceExhausted."""
        return self.lend(nbytes, asker, lambda: self.allocator.allocate(nbytes, alignment))

    def may_drop(self, idle: Any) -> None:
        """Register an idle object, by weak reference. `idle.drop()` is called when memory runs short, from any
        thread."""
        self._idle[id(idle)] = idle

    def _count_until_end(self, owner: Any, nbytes: int) -> None:
        key, counted, give_back = id(owner), self._held, self._ledger.give_back

        def on_end(_: weakref.ref[Any]) -> None:  # a finalizer: no lock, each change in one step
            if counted.pop(key, None) is not None:
                give_back(nbytes)

        ref = weakref.ref(owner, on_end)
        if counted.setdefault(key, ref) is not ref:  # counted already
            give_back(nbytes)


class RelaidConstant:
    """A constant that needs a new layout for kernels: it is repeated by strides, or unaligned in its file. The first
    frame that needs the copy makes it."""

    def __init__(self, value: Any, memory: HostMemory, node: str) -> None:
        self._value = value
        self._memory = memory
        self._node = node
        self._made: dict[None, Any] = {}  # the copy, once made: setting a default is atomic

    def array(self) -> Any:
        """The contiguous, aligned copy. Raises ResourceExhausted, which names the constant."""
        from ..support.aligned_array import solid

        if None not in self._made:
            value = self._value
            asker = f"constant '{self._node}' {value.dtype}{shape_text(value.shape)}"
            try:
                self._made.setdefault(None, self._memory.lend(value.nbytes, asker, lambda: solid(value)))
            except ResourceExhausted as error:
                raise error.at(node=self._node)  # noqa: B904 - the same error, with its place filled in
        return self._made[None]


def _owner(array: Any) -> Any:
    """The array that every array over this memory holds: NumPy gives a view of a view the base of that view."""
    while type(array.base) is type(array):
        array = array.base
    return array


def size_text(nbytes: int) -> str:
    """A size as text: `4.0 GB`; sizes below 1,000 bytes as they are."""
    size, unit = float(nbytes), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB", "EB"):
        if size < 1000 or unit == "EB":
            break
        size /= 1000
    return f"{nbytes} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
