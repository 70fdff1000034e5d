"""Elision: large constants of a text in MLIR's short form, `dense_resource<__elided__>`. The text cannot be read back.

The constants are replaced before anything is printed, so that no element of theirs is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from heald.api import Graph, Node, TensorValue
from heald.graphs.graph import Func

from .element_types import TEXTS
from .tensor_forms import type_of

_STAND_IN = "__elided__:"
_TEXT = re.compile(r'#tf_type\.func<@"__elided__:([^"]*)", \{\}>')


def without_large_constants(graph: Graph, most: int) -> Graph:
    """The graph with a function's name, which no function has, in the place of each constant of more elements."""
    functions = [function.replace(nodes=[_short(node, most) for node in function.nodes.values()])
                 for function in graph.functions.values()
                 if any(_large(node.attrs, most) for node in function.nodes.values())]
    return graph.replace(nodes=[_short(node, most) for node in graph if _large(node.attrs, most)],
                         functions=functions or None)


def elided(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces of the text of such a graph, with MLIR's form of the constants."""
    return (_TEXT.sub(r"dense_resource<__elided__> : \1", piece) for piece in pieces)


def _large(attrs: Mapping[str, Any], most: int) -> dict[str, Func]:
    return {name: Func(f"{_STAND_IN}{type_of(value.dtype.number, value.shape)}") for name, value in attrs.items()
            if isinstance(value, TensorValue) and value.size > most and value.dtype.number in TEXTS}


def _short(node: Node, most: int) -> Node:
    found = _large(node.attrs, most)
    return node.replace(attrs=found) if found else node
