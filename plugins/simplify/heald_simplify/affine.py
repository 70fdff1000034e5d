"""Affine nodes: x * factor + shift with constants, which are scalars or have one element a channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType, Input, Node, constant, dtypes, placed_like

from .graph_view import Array, GraphView

LARGEST_CHANNEL_ELEMENTS = 1 << 14  # elements of a factor or a shift; larger constants are no channel vectors
FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)


class Affine(NamedTuple):
    """A node that computes `source` * `factor` + `shift` (float64, broadcast). `constants`: its constant inputs."""

    node: Node
    source: Input
    factor: Array | None
    shift: Array | None
    constants: tuple[Input, ...]


Parts = tuple[Array | None, Array | None]  # factor and shift
_PARTS: dict[tuple[str, int], Callable[[Array], Parts]] = {  # by op and the index of the constant input
    ("Add", 0): lambda c: (None, c), ("Add", 1): lambda c: (None, c),
    ("AddV2", 0): lambda c: (None, c), ("AddV2", 1): lambda c: (None, c),
    ("Div", 1): lambda c: (1 / c, None),
    ("Mul", 0): lambda c: (c, None), ("Mul", 1): lambda c: (c, None),
    ("RealDiv", 1): lambda c: (1 / c, None),
    ("Sub", 0): lambda c: (np.array(-1.0), c), ("Sub", 1): lambda c: (None, -c),
}
_OPS = {op for op, _ in _PARTS}


def scaling_step(view: GraphView, node: Node) -> Affine | None:
    """The affine form of a product, quotient, sum or difference with a constant; None for other nodes."""
    if node.op not in _OPS or not is_of_floats(view, node):
        return None
    for number in (1, 0):
        parts, value = _PARTS.get((node.op, number)), view.array(node.inputs[number])
        if parts is not None and value is not None and value.size <= LARGEST_CHANNEL_ELEMENTS:
            with np.errstate(all="ignore"):
                factor, shift = parts(value.astype(np.float64))
            return Affine(node, node.inputs[1 - number], factor, shift, (node.inputs[number],))
    return None


def bias_step(view: GraphView, node: Node) -> Affine | None:
    """The affine form of a BiasAdd with a constant; None for other nodes. In NCHW the shift is [channels, 1, 1]."""
    value = view.array(node.inputs[1]) if node.op == "BiasAdd" and is_of_floats(view, node) else None
    if value is None or value.ndim != 1:
        return None
    entry = view.resolve(node)
    assert entry is not None
    shape = (-1, 1, 1) if entry.attrs["data_format"] == "NCHW" else (-1,)
    return Affine(node, node.inputs[0], None, value.astype(np.float64).reshape(shape), (node.inputs[1],))


def is_of_floats(view: GraphView, node: Node) -> bool:
    entry = view.resolve(node)
    return entry is not None and entry.attrs.get("T") in FLOATS


def composed_parts(chain: list[Affine]) -> Parts:
    """Factor and shift of a chain of affine nodes."""
    factor: Array | None = None
    shift: Array | None = None
    with np.errstate(all="ignore"):
        for step in chain:
            if step.factor is not None:
                factor = step.factor if factor is None else factor * step.factor
                shift = None if shift is None else shift * step.factor
            if step.shift is not None:
                shift = step.shift if shift is None else shift + step.shift
    return factor, shift


def rounded_to_dtype(values: Array, dtype: DType, *, small: bool = False) -> Array | None:
    """The values in `dtype`. None on overflow and, with `small` or in float16, on underflow.

    A shift that underflows in a wider float is negligible; a factor is not.
    """
    under: Any = "raise" if small or dtype is dtypes.float16 else "ignore"
    try:
        with np.errstate(over="raise", invalid="raise", under=under):
            converted = np.asarray(values).astype(dtype.numpy)
    except FloatingPointError:
        return None
    return converted if np.isfinite(converted).all() else None


def scaling_nodes(view: GraphView, source: Input, parts: Parts, last: Node, inner: str) -> list[Node] | None:
    """The Mul and AddV2 for a factor and a shift, with the name and device of `last`. A Mul in front of an AddV2 is
    called `inner`. None where the numbers do not fit the type."""
    entry = view.resolve(last)
    assert entry is not None
    nodes: list[Node] = []
    ops = [(op, values) for op, values in zip(("Mul", "AddV2"), parts, strict=True) if values is not None]
    for number, (op, values) in enumerate(ops, 1):
        numbers = rounded_to_dtype(values, entry.attrs["T"], small=op == "Mul")
        if numbers is None:
            return None
        name = last.name if number == len(ops) else inner
        by = constant(view.new_name(f"{name}/by"), numbers)
        done = Node(name, op, [source, by.name], attrs={"T": entry.attrs["T"]})
        nodes += [placed_like(by, last), placed_like(done, last)]
        source = Input(name)
    return nodes
