"""Random graphs over `x` that constant folding changes: constants in sums, products, concatenations and shapes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from builders.graphs import FLOAT, placeholder
from builders.graphs import const as constant_node
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

INT = dtypes.int32
Shape = tuple[int, ...]


class _Builder:
    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)  # noqa: S311 - repeatable test graphs
        self.nodes: list[Node] = [placeholder("x", (2, 3)), placeholder("y", (1, 3))]
        self.shapes: dict[str, Shape] = {"x": (2, 3), "y": (1, 3)}

    def tensor(self) -> str:
        return self.choose.choice([*self.shapes])

    def add(self, op: str, inputs: list[str], shape: Shape | None, **attrs: Any) -> str:
        name = f"n{len(self.nodes)}"
        controls = [self.tensor().partition(":")[0]] if self.choose.random() < 0.15 else []
        self.nodes.append(Node(name, op, inputs, controls=controls, attrs=attrs))
        if shape is not None:
            self.shapes[name] = shape
        return name

    def numbers(self, shape: Shape, *, neutral: bool = True) -> str:
        name = f"n{len(self.nodes)}"
        kind = self.choose.random()
        value = np.full(shape, 1.0) if kind < 0.2 and neutral else np.zeros(shape) if kind < 0.3 and neutral else (
            np.array([self.choose.choice((-2.0, -1.5, 0.5, 3.0)) for _ in range(int(np.prod(shape)))]).reshape(shape))
        controls = [self.tensor().partition(":")[0]] if self.choose.random() < 0.1 else []
        self.nodes.append(constant_node(name, value, np.float32, controls=controls))
        self.shapes[name] = shape
        return name

    def integers(self, *values: int) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(constant_node(name, values, np.int32))
        return name

    def binary(self) -> None:
        op = self.choose.choice(("AddV2", "Mul", "Sub", "RealDiv", "AddV2", "Mul"))
        first = self.tensor()
        shape = self.shapes[first]
        if op == "RealDiv":
            self.add(op, [first, self.numbers(shape, neutral=False)], shape, T=FLOAT)
            return
        second = self.numbers(shape) if self.choose.random() < 0.7 else first
        pair = [first, second] if self.choose.random() < 0.6 else [second, first]
        self.add(op, pair, shape, T=FLOAT)

    def unary(self) -> None:
        source = self.tensor()
        op = self.choose.choice(("Neg", "Identity", "Tanh", "ZerosLike"))
        self.add(op, [source], self.shapes[source], T=FLOAT)

    def layout(self) -> None:
        source = self.tensor()
        shape = self.shapes[source]
        rank = range(len(shape))
        op = self.choose.choice(("Reshape", "Transpose", "Pad", "Tile", "Slice", "Squeeze", "Sum", "ReverseV2"))
        if op == "Reshape":
            self.add(op, [source, self.integers(*shape)], shape, T=FLOAT, Tshape=INT)
        elif op == "Transpose":
            order = [*rank] if self.choose.random() < 0.6 else [*rank][::-1]
            self.add(op, [source, self.integers(*order)], tuple(shape[axis] for axis in order), T=FLOAT, Tperm=INT)
        elif op == "Pad" and shape:
            name = f"n{len(self.nodes)}"
            self.nodes.append(constant_node(name, np.zeros((len(shape), 2)), np.int32))
            self.add(op, [source, name], shape, T=FLOAT, Tpaddings=INT)
        elif op == "Tile":
            self.add(op, [source, self.integers(*[1 for _ in rank])], shape, T=FLOAT, Tmultiples=INT)
        elif op == "Slice" and shape:
            self.add(op, [source, self.integers(*[0 for _ in rank]), self.integers(*shape)], shape, T=FLOAT, Index=INT)
        elif op == "Squeeze":
            self.add(op, [source], tuple(size for size in shape if size != 1), T=FLOAT, squeeze_dims=[])
        elif op == "Sum" and shape:
            self.add(op, [source, self.integers(0)], (1, *shape[1:]), T=FLOAT, Tidx=INT, keep_dims=True)
        elif op == "ReverseV2" and shape:
            self.add(op, [source, self.integers(0)], shape, T=FLOAT, Tidx=INT)

    def sums(self) -> None:
        source = self.tensor()
        shape = self.shapes[source]
        parts = [source, *(self.numbers(shape) for _ in range(self.choose.randint(1, 3)))]
        self.choose.shuffle(parts)
        self.add("AddN", parts, shape, T=FLOAT, N=len(parts))

    def concatenation(self) -> None:
        source = self.tensor()
        shape = self.shapes[source]
        if not shape:
            return
        parts = [source if self.choose.random() < 0.3 else self.numbers(shape) for _ in range(4)]
        self.add("ConcatV2", [*parts, self.integer(0)], (4 * shape[0], *shape[1:]), T=FLOAT, Tidx=INT, N=4)

    def integer(self, value: int) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(constant_node(name, value, np.int32))
        return name

    def pieces(self) -> None:
        value, axis = self.numbers((4, 3)), self.integer(0)
        name = self.add("Split", [axis, value], None, T=FLOAT, num_split=2)
        self.shapes |= {name: (2, 3), f"{name}:1": (2, 3)}

    def sizes(self) -> None:
        source = self.tensor()
        op = self.choose.choice(("Shape", "Rank", "Size"))
        name = self.add(op, [source], None, T=FLOAT, **({} if op == "Rank" else {"out_type": INT}))
        shape = {"Shape": (len(self.shapes[source]),)}.get(op, ())
        self.add("Cast", [name], shape, SrcT=INT, DstT=FLOAT, Truncate=False)

    def pack(self) -> None:
        source = self.tensor()
        self.add("Pack", [source], (1, *self.shapes[source]), T=FLOAT, N=1, axis=0)

    def several(self) -> None:
        parts = [self.tensor(), self.numbers((2, 3))]
        name = self.add("IdentityN", parts, None, T=[FLOAT, FLOAT])
        self.shapes |= {name: self.shapes[parts[0]], f"{name}:1": (2, 3)}


STEPS: tuple[Callable[[_Builder], None], ...] = (
    _Builder.binary, _Builder.binary, _Builder.binary, _Builder.unary, _Builder.layout, _Builder.layout, _Builder.sums,
    _Builder.concatenation, _Builder.pieces, _Builder.sizes, _Builder.pack, _Builder.several)


def random_foldable_graph(seed: int) -> tuple[list[Node], list[str]]:
    """The nodes, and the names of those with one output that no other node reads."""
    builder = _Builder(seed)
    for _ in range(builder.choose.randint(1, 12)):
        builder.choose.choice(STEPS)(builder)
    read = {source.node for node in builder.nodes for source in node.inputs}
    waited = {name for node in builder.nodes for name in node.controls}
    return builder.nodes, [node.name for node in builder.nodes if node.name not in read | waited
                           and node.op not in ("IdentityN", "Split")] or ["x"]
