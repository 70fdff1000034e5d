"""Small graphs for tests: nodes with the attributes that their op needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes

FLOAT = dtypes.float32


def placeholder(name: str, shape: tuple[int | None, ...] | None = None, dtype: dtypes.DType = FLOAT) -> Node:
    from heald.graphs.graph.attr_value import ShapeAttr

    return Node(name, "Placeholder", attrs={"dtype": dtype, "shape": None if shape is None else ShapeAttr(shape)})


def const(name: str, value: Any, dtype: Any = np.float32, **device_and_controls: Any) -> Node:
    array = np.asarray(value, dtype)
    return Node(name, "Const", attrs={"dtype": dtypes.of_numpy(array.dtype), "value": array}, **device_and_controls)


def node(name: str, op: str, *inputs: str, device: str = "", **attrs: Any) -> Node:
    """A node of a one-type op: T is float32 unless given."""
    return Node(name, op, inputs, attrs={"T": FLOAT} | attrs, device=device)


def graph(*nodes: Node) -> Graph:
    return Graph(nodes)
