"""The simplest ops: every device has a kernel for one of them, so that graphs of them run on any device."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from heald.api import Node, dtypes

from .subject import Subject, placeholder
from .verdict import NotApplicable

Array = np.ndarray[Any, Any]


class Op(NamedTuple):
    """An op of float32 whose results stay as small as its inputs, or grow by sums only."""

    name: str
    arity: int
    compute: Callable[..., Array]


OPS = (
    Op("AddV2", 2, np.add), Op("Sub", 2, np.subtract), Op("Maximum", 2, np.maximum), Op("Minimum", 2, np.minimum),
    Op("Neg", 1, np.negative), Op("Relu", 1, lambda x: np.maximum(x, 0)), Op("Abs", 1, np.abs),
)


def ops_of(on: Subject) -> list[Op]:
    """The ops of `OPS` with a kernel of the device. Raises NotApplicable where it has none."""
    ops = [op for op in OPS if on.has_kernel(op.name, T=dtypes.float32)]
    if not ops:
        raise NotApplicable(f"{on.type} has no float32 kernel for any of {', '.join(op.name for op in OPS)}")
    return ops


class Chain:
    """A graph x -> op -> op -> ... -> y on the device. A second operand is x itself. `last` names the result."""

    def __init__(self, on: Subject, length: int) -> None:
        available = ops_of(on)
        # Sums and differences with the same x change at every node, so that no two nodes have equal results.
        growing = [op for op in available if op.name in ("AddV2", "Sub")] or available
        self.ops = [growing[i % len(growing)] if i % 3 else available[i % len(available)] for i in range(length)]
        self.nodes = [placeholder("x")]
        for i, op in enumerate(self.ops):
            inputs = [f"n{i - 1}" if i else "x", "x"][: op.arity]
            self.nodes.append(Node(f"n{i}", op.name, inputs, attrs={"T": dtypes.float32}, device=on.name))
        self.last = f"n{length - 1}"

    def expected(self, x: Array) -> Array:
        return reduce(lambda value, op: op.compute(*(value, x)[: op.arity]), self.ops, x)
