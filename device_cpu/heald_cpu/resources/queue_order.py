"""Queue order: the containers of a queue's elements, which decide the order of dequeueing."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any, Protocol

from ..philox import Sequence as Random
from ..philox import words

Element = tuple[Any, ...]


class Order(Protocol):
    """A container of elements. `put_back` returns the elements taken last, in the order in which they were taken."""

    def __len__(self) -> int: ...

    def available(self, is_closed: bool) -> int:
        """The number of elements that may be taken now."""

    def add(self, element: Element) -> None: ...

    def take(self) -> Element: ...

    def put_back(self, elements: Sequence[Element]) -> None: ...


class FifoOrder:
    """First in, first out."""

    def __init__(self) -> None:
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, _: bool) -> int:
        return len(self._elements)

    def add(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extendleft(reversed(elements))

    def element(self, index: int) -> Element:
        """The element that the take after `index` others would return."""
        return self._elements[index]


class ShuffledOrder:
    """Random order. At least `kept` elements stay while the queue is open. Equal seeds, one of them not 0, give
    TensorFlow's order."""

    def __init__(self, least_size: int, seed: int, seed2: int) -> None:
        self._least_size = least_size
        self._words = words(*Random(seed, seed2).reserve(0))
        self._elements: list[Element] = []

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, is_closed: bool) -> int:
        return max(len(self._elements) - (0 if is_closed else self._least_size), 0)

    def add(self, element: Element) -> None:
        self._elements.append(element)

    def take(self) -> Element:
        number = next(self._words) % len(self._elements)
        self._elements[number], self._elements[-1] = self._elements[-1], self._elements[number]
        return self._elements.pop()

    def put_back(self, elements: Sequence[Element]) -> None:
        self._elements.extend(elements)


class PriorityOrder:
    """Ascending first component; equal ones in order of arrival."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Element]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def available(self, _: bool) -> int:
        return len(self._heap)

    def add(self, element: Element) -> None:
        heapq.heappush(self._heap, (int(element[0]), next(self._numbers), element))

    def take(self) -> Element:
        return heapq.heappop(self._heap)[2]

    def put_back(self, elements: Sequence[Element]) -> None:
        first = -next(self._numbers) - len(elements)
        for number, element in enumerate(elements, first):
            heapq.heappush(self._heap, (int(element[0]), number, element))
