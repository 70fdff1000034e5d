"""IteratorResource: an iterator that the session or a run owns, as ops refer to it by a handle.

Pulls queue: each waits for the value of the pull before it. A pull whose step ended drops its generator, which
completes its value. So no pull waits for ever, and no thread waits at all.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import count
from threading import Lock

from heald.api import AsyncValue, Step, errors, inherited

from ..element_types import Array
from .interface import Dataset, Iterator, Pull, Spec, check_element, check_spec

_numbers = count(1)


class IteratorResource:
    """`spec`: the types and shapes of the elements. It is None where the ops do not state them."""

    def __init__(self, spec: Spec | None) -> None:
        self.spec = spec
        self.name = f"iterator-{next(_numbers)}"  # by which `IteratorFromStringHandle` finds it
        self._iterator: Iterator | None = None
        self._last: AsyncValue | None = None  # completed at the end of the newest pull
        self._lock = Lock()
        inherited.add(self)

    def start(self, dataset: Dataset) -> None:
        """Begin with the first element of a dataset. Raises InvalidArgument for elements of another kind."""
        if self.spec is not None:
            check_spec(self.spec, dataset.spec)
        self._iterator = dataset.iterator()

    def stop(self) -> None:
        """Forget the dataset."""
        self._iterator = None

    def pull(self, step: Step, remedy: str) -> Pull:
        """Return the next element, None at the end. Raises FailedPrecondition, with this remedy, before `start`."""
        end = AsyncValue()
        with self._lock:
            previous, self._last = self._last, end
        try:
            yield from _wait_for(previous)
            if self._iterator is None:
                raise errors.FailedPrecondition(
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element.", hint=remedy)
            return (yield from self._iterator.pull(step))
        finally:
            end.emplace(None)

    def forked(self) -> None:
        self._lock = Lock()
        self._last = None


def _wait_for(previous: AsyncValue | None) -> Generator[list[AsyncValue], None, None]:
    while previous is not None and not previous.is_available():
        yield [previous]


def next_element(
    resource: IteratorResource, spec: Spec, step: Step, remedy: str
) -> Generator[list[AsyncValue], None, list[Array]]:
    """Return copies of the next element's components. Raises OutOfRange at the end, InvalidArgument for an element of
    another kind."""
    element = yield from resource.pull(step, remedy)
    if element is None:
        raise errors.OutOfRange("End of sequence")
    check_element(spec, element)
    return [component.copy() for component in element]
