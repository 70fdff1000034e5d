"""Datasets for tests: nodes with the attributes that their op needs. Elements are int64 scalars unless stated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from builders.control_flow import function
from builders.graphs import const
from heald.graphs.graph.attr_value import Func, ShapeAttr
from heald.graphs.graph.graph import Function, Node
from heald.runtime.values import dtypes
from heald.runtime.values.dtypes import DType

INT = dtypes.int64
SCALAR = ShapeAttr(())


def number(name: str, value: int) -> Node:
    return const(name, value, np.int64)


def kinds(types: Sequence[DType] = (INT,), shapes: Sequence[Any] = (SCALAR,)) -> dict[str, Any]:
    """The attributes that state the types and shapes of elements."""
    return {"output_types": tuple(types), "output_shapes": tuple(shapes)}


def dataset(name: str, op: str, *inputs: str, **attrs: Any) -> Node:
    return Node(name, f"{op}Dataset", inputs, attrs=kinds() | attrs)


def number_range(stop: int, name: str = "range") -> list[Node]:
    """The dataset of the numbers below `stop`."""
    numbers = [number(f"{name}/{part}", value) for part, value in (("start", 0), ("stop", stop), ("step", 1))]
    return [*numbers, dataset(name, "Range", *(node.name for node in numbers))]


def mapped(name: str, source: str, f: str, *captured: str, op: str = "Map", types: Sequence[DType] = (),
           **attrs: Any) -> Node:
    """A dataset that calls a function. `types`: those of the captured values, int64 unless given."""
    attribute = "predicate" if op in ("Filter", "TakeWhile") else "f"
    return dataset(name, op, source, *captured, **{attribute: Func(f, {})},
                   Targuments=tuple(types) or (INT,) * len(captured), **attrs)


def total(source: str, f: str = "add", *, name: str = "total", state: str = "zero", **attrs: Any) -> Node:
    """The reduction of a dataset, by default to the sum of its elements."""
    return Node(name, "ReduceDataset", (source, state), attrs=kinds() | {
        "f": Func(f, {}), "Tstate": (INT,), "Targuments": ()} | attrs)


def int_function(name: str, arguments: str, nodes: Sequence[Node], result: str, dtype: str = "int64") -> Function:
    """A function of int64 arguments with the one result `result`."""
    typed = " ".join(f"{argument}:int64" for argument in arguments.split())
    return function(name, typed, nodes, {"y": result}, results=f"y:{dtype}")


def binary(name: str, op: str) -> Node:
    return Node(name, op, ("a", "b"), attrs={"T": INT})


ZERO = number("zero", 0)
ADD = int_function("add", "a b", [binary("sum", "AddV2")], "sum:z:0")
