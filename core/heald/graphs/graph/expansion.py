"""The bound of the nodes that may replace the calls of a graph's functions.

A small file may expand without bound: functions that each call two others, or long names in front of many.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import ResourceExhausted
from .function import Function
from .node import Node

# at least; a multiple of the file's nodes; at most
LEAST_NODE_LIMIT, LIMIT_PER_FILE_NODE, LARGEST_NODE_LIMIT = 20_000, 100, 200_000
_MOST_NAME_CHARACTERS = 1 << 28  # characters of names


class ExpansionLimit:
    """The number of nodes that a graph of `written` nodes with these functions may expand to."""

    def __init__(self, written: int, functions: Mapping[str, Function]) -> None:
        self._written, self._functions = written, functions
        self._limit = LEAST_NODE_LIMIT  # more is asked for when it is reached: most graphs never count their functions

    def check(self, nodes: int, text: int, call: Node) -> None:
        """Raises ResourceExhausted where the graph has more nodes than it may once `call` is replaced, or the calls
        have added more characters, `text`, to names."""
        if nodes > self._limit:
            written = self._written + sum(len(function.nodes) for function in self._functions.values())
            self._limit = min(LARGEST_NODE_LIMIT, max(LEAST_NODE_LIMIT, LIMIT_PER_FILE_NODE * written))
        if nodes > self._limit or text > _MOST_NAME_CHARACTERS:
            raise ResourceExhausted(f"the functions of this graph expand to more than {self._limit:,} nodes, or their "
                                    f"names to more than {_MOST_NAME_CHARACTERS:,} characters", node=call.name,
                                    op=call.op)
