"""Queues of elements, which are tuples of arrays. Waiting for a queue holds no thread.

Enqueue and dequeue are requests, each with an AsyncValue. The queue serves the requests of one side in order of
arrival. A request that can be served in part takes, or brings, that part and waits for the rest. When a step ends, its
requests are withdrawn and the elements they had taken return to their old positions (TensorFlow loses them). A
completed request belongs to its step, even if the step fails later. Closing is a request on the enqueue side: earlier
enqueues come first.

No caller waits for the queue's lock: work is appended to a list, and the holder of the lock does it. A step can
therefore be cancelled anywhere, in a signal handler too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from threading import Lock
from typing import ClassVar

import numpy as np
from heald.api import AsyncValue, Step, errors, inherited
from heald.api import TensorMetadata as Metadata

from ..element_types import Array
from .queue_order import Element, FifoOrder, Order

Together = Callable[[list[Element]], Sequence[Array]]
UNLIMITED = 2**31 - 1


class Request:
    """A pending operation. `serve` does the part that is possible now, and returns True if there was any. `outcome` is
    set when the request is over; it completes the values."""

    what: ClassVar[str]
    goes_first: ClassVar[bool] = True  # later requests of its side wait until it is over

    def __init__(self, count: int = 1) -> None:
        self.values = [AsyncValue() for _ in range(count)]
        self.outcome: Callable[[], None] | None = None

    def serve(self, queue: Queue) -> bool:
        raise NotImplementedError

    def give_back(self, queue: Queue) -> None:
        """Return the elements of an unfinished request to the queue."""

    def finish(self) -> None:
        self.outcome = partial(self.values[0].emplace, None)

    def fail(self, error: errors.HealdError) -> None:
        self.outcome = partial(self.complete_with, error)

    def complete_with(self, error: errors.HealdError) -> None:
        for value in self.values:
            value.set_error(error)


class Enqueue(Request):
    what = "Enqueue"

    def __init__(self, elements: Iterable[Element]) -> None:
        super().__init__()
        self._left = deque(elements)

    def serve(self, queue: Queue) -> bool:
        if self._left and queue.is_closed:
            self.fail(errors.Cancelled(f"{queue.title} is closed."))
            return False
        room = min(queue.capacity - len(queue.order), len(self._left))
        for _ in range(room):
            queue.order.add(self._left.popleft())
        if not self._left:
            self.finish()
        return room > 0


class Close(Request):
    what = "Close"

    def serve(self, queue: Queue) -> bool:
        if queue.is_closed:
            self.fail(errors.Cancelled(f"Queue '{queue.name}' is already closed."))
            return False
        queue.is_closed = True
        self.finish()
        return True


class Dequeue(Request):
    """`may_be_fewer`: a closed queue may serve fewer elements, but at least one. `together` makes the `count`
    components of the elements."""

    what = "Dequeue"

    def __init__(self, number: int, together: Together, count: int, *, may_be_fewer: bool = False) -> None:
        super().__init__(count)
        self._number = number
        self._together = together
        self._may_be_fewer = may_be_fewer
        self._taken: list[Element] = []

    def serve(self, queue: Queue) -> bool:
        there = queue.order.available(queue.is_closed)
        element_count = min(there, self._number - len(self._taken))
        if element_count:
            self._taken += [queue.order.take() for _ in range(element_count)]
        if len(self._taken) == self._number or (queue.is_closed and self._may_be_fewer and self._taken):
            self.outcome = self._finish
        elif queue.is_closed:
            self.give_back(queue)
            self.fail(errors.OutOfRange(
                f"{queue.title} is closed and has insufficient elements (requested {self._number}, current size "
                f"{len(queue.order)})"))
        return element_count > 0

    def give_back(self, queue: Queue) -> None:
        queue.order.put_back(self._taken)
        self._taken = []

    def _finish(self) -> None:
        try:
            together = self._together(self._taken)
        except MemoryError as error:
            self.complete_with(errors.ResourceExhausted(f"no memory for {len(self._taken)} elements: {error}"))
            return
        for value, component in zip(self.values, together, strict=True):
            value.emplace(component)


class Peek(Request):
    """Wait for the element with this index, and return a copy of its `count` components. The queue is a FIFO."""

    what = "Peek"
    goes_first = False

    def __init__(self, index: int, count: int) -> None:
        super().__init__(count)
        self._index = index

    def serve(self, queue: Queue) -> bool:
        assert isinstance(queue.order, FifoOrder)
        if len(queue.order) > self._index:
            self.outcome = partial(self._finish, queue.order.element(self._index))
        return False

    def _finish(self, element: Element) -> None:
        for value, component in zip(self.values, element, strict=True):
            value.emplace(component.copy())


class Queue:
    """A queue, safe to use from several threads. `metas`: dtype and common shape of each component of an element."""

    def __init__(self, kind: str, name: str, metas: tuple[Metadata, ...], capacity: int, order: Order) -> None:
        self.kind = kind
        self.name = name
        self.metas = metas
        self.capacity = UNLIMITED if capacity < 0 else capacity
        self.order = order
        self.is_closed = False
        self._bringing: dict[int, Request] = {}  # waiting requests in order of arrival
        self._taking: dict[int, Request] = {}
        self._numbers = count()
        self._to_do: deque[Callable[[], Iterator[Request]]] = deque()
        self._lock = Lock()
        inherited.add(self)

    @property
    def title(self) -> str:
        return f"{self.kind} '{self.name}'"

    def bring(self, step: Step, request: Request) -> AsyncValue:
        """Submit a request of the enqueue side. The value is a chain, available when the request is done."""
        return self._ask(step, self._bringing, request)[0]

    def take(self, step: Step, request: Request) -> list[AsyncValue]:
        """Submit a dequeue, or a look at an element. The values are the components."""
        return self._ask(step, self._taking, request)

    def close_now(self) -> AsyncValue:
        """Close the queue at once and cancel the waiting enqueues."""
        request = Close()

        def close() -> Iterator[Request]:
            self.is_closed = True
            request.finish()
            yield request
            for other in self._bringing.values():
                other.fail(errors.Cancelled("Enqueue operation was cancelled"))
                yield other
            self._bringing.clear()

        self._do(close)
        return request.values[0]

    def clear(self) -> AsyncValue:
        """Drop all elements at once; waiting enqueues bring theirs afterwards."""
        request = Close()

        def drop() -> Iterator[Request]:
            self.drop_incomplete()
            while len(self.order):
                self.order.take()
            request.finish()
            yield request

        self._do(drop)
        return request.values[0]

    def drop_incomplete(self) -> None:
        """Drop what has come of elements that lack parts: a queue has none."""

    def forked(self) -> None:
        """Drop all requests: their steps run in the parent process."""
        self._lock = Lock()
        self._to_do.clear()
        for request in self._taking.values():
            request.give_back(self)
        self._taking.clear()
        self._bringing.clear()

    def _ask(self, step: Step, side: dict[int, Request], request: Request) -> list[AsyncValue]:
        number, last = next(self._numbers), request.values[-1]

        def join() -> Iterator[Request]:
            side[number] = request
            return iter(())

        def go() -> Iterator[Request]:
            if side.pop(number, None) is not None:
                request.give_back(self)
                request.fail(errors.Cancelled(f"{request.what} operation was cancelled"))
                yield request

        self._do(join)
        if not last.is_available():
            registration = step.on_cancel(partial(self._do, go))
            last.and_then(lambda: step.forget(registration))
        return request.values

    def _do(self, work: Callable[[], Iterator[Request]]) -> None:
        """Run `work` and serve requests, here or in the thread that holds the lock. Outcomes run without the lock:
        callbacks may take long."""
        self._to_do.append(work)
        while self._to_do and self._lock.acquire(blocking=False):
            over: list[Request] = []
            try:
                while self._to_do:
                    over += self._to_do.popleft()()
                    over += self._serve_all()
            finally:
                self._lock.release()
                for request in over:
                    assert request.outcome is not None
                    request.outcome()

    def _serve_all(self) -> Iterator[Request]:
        """Serve both sides until no request progresses. Yields the requests that are over."""
        moves = True
        while moves:
            moves = False
            for side in (self._bringing, self._taking):
                for number in list(side):
                    request = side[number]
                    moves = request.serve(self) or moves
                    if request.outcome is None:
                        if request.goes_first:
                            break  # later requests wait for their turn
                        continue
                    del side[number]
                    yield request


def copies_of_parts(component: Array) -> list[Array]:
    """Copies of the parts of an array along its first axis."""
    return [component[i, ...].copy() for i in range(len(component))]


def no_elements(metas: Iterable[Metadata]) -> list[Array]:
    """The components of a dequeue of 0 elements; unknown dimensions are 0."""
    return [np.empty((0, *(d or 0 for d in meta.shape or ())), meta.dtype.numpy) for meta in metas]


def stack_components(elements: list[Element]) -> list[Array]:
    """The components of elements of one shape, stacked along a new first axis."""
    together = []
    for parts in zip(*elements, strict=True):
        batch = np.empty((len(parts), *parts[0].shape), parts[0].dtype)
        for number, part in enumerate(parts):  # np.stack takes several times as long for small parts
            batch[number, ...] = part
        together.append(batch)
    return together


def pad_components(elements: list[Element]) -> list[Array]:
    """The components of elements of several shapes, stacked. Zeros or empty strings pad each component to the largest
    size along each axis."""
    together = []
    for parts in zip(*elements, strict=True):
        shape = np.max([part.shape for part in parts], axis=0).astype(int)
        fill = b"" if parts[0].dtype == object else 0
        batch = np.full((len(parts), *shape), fill, parts[0].dtype)
        for number, part in enumerate(parts):
            batch[number, ...][tuple(map(slice, part.shape))] = part
        together.append(batch)
    return together
