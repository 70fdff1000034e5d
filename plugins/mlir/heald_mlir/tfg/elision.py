"""Elision: large constants of a text in MLIR's short form, `dense_resource<__elided__>`. The text cannot be read back.

The constants are replaced before anything is printed, so that no element of theirs is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from heald.api import Graph, Node, TensorValue
from heald.graphs.graph import Func

from .values.element_types import TEXTS
from .values.tensor_forms import type_of

_STAND_IN = "__elided__:"
_TEXT = re.compile(r'#tf_type\.func<@"__elided__:([^"]*)", \{\}>')


def without_large_constants(graph: Graph, largest_elements: int) -> Graph:
    """The graph with a function's name, which no function has, in the place of each constant of more elements."""
    functions = [function.replace(nodes=[_short(node, largest_elements) for node in function.nodes.values()])
                 for function in graph.functions.values()
                 if any(_large(node.attrs, largest_elements) for node in function.nodes.values())]
    nodes = [_short(node, largest_elements) for node in graph if _large(node.attrs, largest_elements)]
    return graph.replace(nodes=nodes, functions=functions or None)


def elided_text(fragments: Iterator[str]) -> Iterator[str]:
    """The fragments of the text of such a graph, with MLIR's form of the constants."""
    return (_TEXT.sub(r"dense_resource<__elided__> : \1", fragment) for fragment in fragments)


def _large(attrs: Mapping[str, Any], largest_elements: int) -> dict[str, Func]:
    return {name: Func(f"{_STAND_IN}{type_of(value.dtype.number, value.shape)}") for name, value in attrs.items()
            if isinstance(value, TensorValue) and value.size > largest_elements and value.dtype.number in TEXTS}


def _short(node: Node, largest_elements: int) -> Node:
    large_attrs = _large(node.attrs, largest_elements)
    return node.replace(attrs=large_attrs) if large_attrs else node
