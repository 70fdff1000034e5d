"""Function matching: a group of elementwise ops is identified by the results it computes for sample inputs.

Frameworks and exporters write one function, such as GELU, in many ways: operands swapped, factors moved, erf or erfc.
All forms compute the same numbers. Take the ops between one value and a result that depends on no other value. These
ops are computed in float64, and the results are compared with the function's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import Attrs, FusedOp

from .memory import Array

LARGEST_FUNCTION_OPS = 16  # ops of a function
RELATIVE_TOLERANCE = 1e-6  # the constants of a graph are float32

KnownElements = Callable[[int], Array | None]  # a value's elements by its number; None unless known before the run


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *arrays: function(*arrays)


def _mean(attrs: Attrs, x: Array, axes: Array) -> Any:
    return x.mean(tuple(int(axis) for axis in axes.reshape(-1)), keepdims=attrs["keep_dims"])


ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "Add": np.add, "AddV2": np.add, "Erf": np.vectorize(math.erf, [float]), "Erfc": np.vectorize(math.erfc, [float]),
    "Mul": np.multiply, "Neg": np.negative, "Pow": np.power, "RealDiv": np.divide,
    "Relu6": lambda x: np.clip(x, 0, 6), "Rsqrt": lambda x: 1 / np.sqrt(x), "Sqrt": np.sqrt, "Square": np.square,
    "SquaredDifference": lambda x, y: np.square(x - y), "Sub": np.subtract, "Tanh": np.tanh,
}
EVALUATORS = {op: _elementwise(function) for op, function in ELEMENTWISE.items()} | {"Mean": _mean}


class Part(NamedTuple):
    """Ops in order. The last op's result depends on the value `source` and on constants only."""

    source: int
    ops: list[FusedOp]


def has_near_producer(last: FusedOp, producers: Mapping[int, FusedOp], op_type: str) -> bool:
    """True where an op of this type is among the nearest producers of `last`. Most ops fail this cheap test."""
    queue, visited = deque([last]), 1
    while queue and visited < 2 * LARGEST_FUNCTION_OPS:
        for number in queue.popleft().args:
            op = producers.get(number)
            if op is not None and op.op in EVALUATORS:
                if op.op == op_type:
                    return True
                queue.append(op)
                visited += 1
    return False


def parts(last: FusedOp, producers: Mapping[int, FusedOp], elements_of: KnownElements) -> Iterator[Part]:
    """Yield the parts that end with `last`, shortest first. `producers`: the ops by the numbers of their results,
    in order."""
    position = {number: i for i, number in enumerate(producers)}
    ops = [last]
    needed = {a for a in last.args if elements_of(a) is None}
    while len(ops) < LARGEST_FUNCTION_OPS:
        if len(needed) == 1:
            yield Part(next(iter(needed)), ops[::-1])
        latest = max(needed & producers.keys(), key=position.__getitem__, default=None)
        if latest is None or producers[latest].op not in EVALUATORS:
            return
        ops.append(producers[latest])
        needed = (needed - {latest}) | {a for a in producers[latest].args if elements_of(a) is None}


def part_result(part: Part, x: Array, elements_of: KnownElements) -> Array | None:
    """The float64 result of the part for x. None where the shapes do not fit, the result has another shape, or a
    constant is larger than x."""
    values: dict[int, Any] = {part.source: x}
    beside = [elements_of(a) for op in part.ops for a in op.args if a != part.source]
    if any(array is not None and array.size > x.size for array in beside):
        return None
    try:
        with np.errstate(all="ignore"):
            for op in part.ops:
                arrays = [values[a] if a in values else elements_of(a) for a in op.args]
                values[op.results[0]] = EVALUATORS[op.op](op.attrs, *(
                    a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays if a is not None))
    except ValueError:  # shapes that do not broadcast
        return None
    last_result: Array = values[part.ops[-1].results[0]]
    return last_result if last_result.shape == x.shape else None


def is_close(a: Array | None, b: Array) -> bool:
    return a is not None and bool(np.all(np.abs(a - b) <= RELATIVE_TOLERANCE * (1 + np.abs(b))))


def is_closed(part: Part, ops: Sequence[FusedOp]) -> bool:
    """True where no op outside the part reads a value that the part computes on its way."""
    inner = {op.results[0] for op in part.ops[:-1]}
    return all(op in part.ops or inner.isdisjoint(op.args) for op in ops)
