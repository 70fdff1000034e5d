"""The weights of an op, made of the parts that a loop's body multiplies: a whole tensor, or its rows and columns.

Weights that are constants are computed at link time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from heald.api import DType, Input, Node, constant, dtypes, placed_like

from ..graph_view import GraphView
from .cells import Cell
from .polynomials import Block, Source


class WeightWriter:
    """New nodes around the node `like`, whose name begins theirs."""

    def __init__(self, view: GraphView, like: Node, dtype: DType) -> None:
        self._view, self._like, self._dtype = view, like, dtype
        self.nodes: list[Node] = []
        self._reads: dict[Source, Input] = {}

    def node(self, name: str, op: str, *inputs: Input, **attrs: Any) -> Input:
        node = Node(self._view.new_name(f"{self._like.name}/{name}"), op, inputs, attrs=attrs)
        self.nodes.append(placed_like(node, self._like))
        return Input(node.name)

    def constant(self, name: str, value: Any, dtype: Any = np.int32) -> Input:
        node = constant(self._view.new_name(f"{self._like.name}/{name}"), np.asarray(value, dtype))
        self.nodes.append(placed_like(node, self._like))
        return Input(node.name)

    def reads(self) -> list[str]:
        """The names of the nodes that read variables."""
        return [read.node for read in self._reads.values()]

    def product_weights(self, name: str, blocks: Sequence[Block]) -> Input:
        """The columns of all blocks side by side."""
        parts = [self.part(name, block) for block in _merge_neighbours(blocks)]
        return self._join(name, parts, 1)

    def biases(self, cell: Cell) -> Input:
        gates = [(gate.biases, gate.shift, gate.u.width) for gate in cell.gates]
        if all(len(biases) == 1 and not shift for biases, shift, _ in gates):
            return self._join("bias", [self.part("bias", block)
                                         for block in _merge_neighbours([biases[0] for biases, _, _ in gates])], 0)
        return self._join("bias", [self.bias(*gate) for gate in gates], 0)

    def bias(self, blocks: Sequence[Block], shift: float, width: int) -> Input:
        """The sum of vectors and a number."""
        total = None
        if shift or not blocks:
            total = self.constant("shift", np.full(width, shift), self._dtype.numpy)
        for block in blocks:
            part = self.part("bias", block)
            total = part if total is None else self.node("bias", "AddV2", total, part, T=self._dtype)
        assert total is not None
        return total

    def _join(self, name: str, parts: Sequence[Input], axis: int) -> Input:
        if len(parts) == 1:
            return parts[0]
        return self.node(name, "ConcatV2", *parts, self.constant(f"{name}/axis", axis), N=len(parts), T=self._dtype,
                         Tidx=dtypes.int32)

    def part(self, name: str, block: Block) -> Input:
        """The rows and columns of one block."""
        tensor = self._read(block.source)
        if block.is_whole:
            return tensor
        rows = () if block.rows is None else (block.rows,)
        begin, end = zip(*rows, block.columns, strict=True)
        ends = [self.constant(f"{name}/{what}", numbers)
                for what, numbers in (("begin", begin), ("end", end), ("strides", [1] * len(begin)))]
        return self.node(name, "StridedSlice", tensor, *ends, T=self._dtype, Index=dtypes.int32,
                         shrink_axis_mask=int(block.is_row))

    def _read(self, source: Source) -> Input:
        """The tensor of a source. A variable is read where the loop would read it."""
        if not source.is_variable:
            return source.tensor
        if source not in self._reads:
            read = Node(self._view.new_name(f"{self._like.name}/read"), "ReadVariableOp", [source.tensor],
                        controls=self._like.controls, attrs={"dtype": self._dtype})
            self.nodes.append(placed_like(read, self._like))
            self._reads[source] = Input(read.name)
        return self._reads[source]


def _merge_neighbours(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield the blocks, with neighbouring columns of one tensor as one block."""
    last: Block | None = None
    for block in blocks:
        if last is not None and block == last._replace(columns=block.columns) and block.columns[0] == last.columns[1]:
            last = block._replace(columns=(last.columns[0], block.columns[1]))
            continue
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last
