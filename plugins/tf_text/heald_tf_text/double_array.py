"""Double-array tries, as Darts-clone stores them: a dictionary from byte strings to integers in an array of units.

The child of a node by a label is at the node's position, xor the node's offset, xor the label. It is a child only if
its unit has this label. A node with a value has a leaf bit; the value stands at the child of label 0. A trie is a part
of a stranger's model: a position beyond the array has no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

ROOT = 0
VALUE = 0x7FFFFFFF


class DoubleArray:
    """A trie over `units`, a vector of unsigned 32-bit numbers. A node is a position in it."""

    def __init__(self, units: np.ndarray[Any, Any]) -> None:
        self._units: list[int] = units.tolist()

    def child(self, node: int, label: int) -> int | None:
        """The child of a node by a byte, or None."""
        position = self._base(node) ^ label
        if label and position < len(self._units) and self._units[position] & 0x800000FF == label:
            return position
        return None

    def value(self, node: int) -> int | None:
        """The value of a node, or None for a node without one."""
        if not self.is_node(node) or not self._units[node] >> 8 & 1:
            return None
        position = self._base(node)
        return self._units[position] & VALUE if position < len(self._units) else None

    def is_node(self, node: int) -> bool:
        return 0 <= node < len(self._units)

    def prefixes(self, text: bytes, start: int = 0, node: int = ROOT) -> Iterator[tuple[int, int]]:
        """Yield the end in `text` and the value of each key that the text has at `start`, the shortest first. With a
        node, keys are those below it."""
        if not self.is_node(node):
            return
        for at in range(start, len(text)):
            child = self.child(node, text[at])
            if child is None:
                return
            node = child
            value = self.value(node)
            if value is not None:
                yield at + 1, value

    def longest(self, text: bytes, start: int = 0, node: int = ROOT) -> tuple[int, int] | None:
        """The last of `prefixes`, or None."""
        return max(self.prefixes(text, start, node), default=None)

    def _base(self, node: int) -> int:
        unit = self._units[node]
        return node ^ (unit >> 10) << ((unit & 0x200) >> 6)
