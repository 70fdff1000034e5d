"""The nodes that stand for a recurrent loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from heald.api import DType, Input, Node, dtypes, placed_like

from ..graph_view import GraphView
from .body_values import Mask
from .cells import LSTM, Cell
from .recurrent_loop import Loop
from .series import Series
from .weights import WeightWriter

LAST_OUTPUT, FIRST_STATE = 1, 2  # outputs of the ops


class FusedLoop:
    """The ops of a loop, with the loop's name, and the replacements of the loop's outputs."""

    def __init__(self, view: GraphView, loop: Loop, series: Series) -> None:
        self._view, self._loop, self._series = view, loop, series
        self._writer = WeightWriter(view, loop.node, loop.dtype)
        self._names = [view.new_name(f"{loop.node.name}/sequence") for _ in loop.cells]

    def nodes(self) -> tuple[list[Node], dict[Input, Input]]:
        loop, writer = self._loop, self._writer
        x, states = self._tensor(loop.item), [loop.node.inputs[state] for state in loop.states]
        masks = [] if loop.mask is None else [self._mask(loop.mask)]
        if not loop.is_aligned:
            x, states, masks = self._with_equal_rows(x, states, masks)
        self._steps = self._length()
        nodes = []
        for cell, name in zip(loop.cells, self._names, strict=True):
            own, states = states[: len(cell.states)], states[len(cell.states) :]
            nodes.append(self._op(cell, name, x, own, masks))
            x = Input(name)
        if not self._view.is_replaceable(loop.node):
            nodes.append(self._waiting_node(loop.node))
        replacements: dict[Input, Input] = {}
        for nodes_of_stack, instead in map(self._stack, self._stack_nodes()):
            nodes += nodes_of_stack
            replacements |= instead
        replacements |= self._results()
        return [*(placed_like(node, loop.node) for node in nodes), *writer.nodes], replacements

    def _op(self, cell: Cell, name: str, x: Input, states: Sequence[Input], masks: Sequence[Input]) -> Node:
        """The op of one cell over all steps of x."""
        attrs: dict[str, Any] = {"T": self._loop.dtype, "N": len(masks), "masked": self._loop.masked,
                                 "activation": cell.activation}
        if cell.recurrent_activation is not None:
            attrs["recurrent_activation"] = cell.recurrent_activation
        if cell.reset_after is not None:
            attrs["reset_after"] = cell.reset_after
        if cell.op == LSTM:
            attrs |= {"P": len(cell.parts.peepholes), "R": int(cell.parts.projection is not None),
                      "cell_clip": cell.parts.cell_clip, "proj_clip": cell.parts.proj_clip}
        return Node(name, cell.op, [self._steps, x, *states, *self._weights(cell), *masks],
                    controls=self._loop.node.controls, attrs=attrs)

    def _weights(self, cell: Cell) -> list[Input]:
        writer = self._writer
        weights = [writer.product_weights("w", [gate.w for gate in cell.gates]),
                   writer.product_weights("u", [gate.u for gate in cell.gates]), writer.biases(cell)]
        if cell.reset_after is not None:
            weights.append(writer.bias(cell.candidate_biases, cell.candidate_shift, cell.gates[0].u.width))
        weights += [writer.part("peephole", peephole) for peephole in cell.parts.peepholes]
        if cell.parts.projection is not None:
            weights.append(writer.part("projection", cell.parts.projection))
        return weights

    def _tensor(self, index: int) -> Input:
        tensor = self._series.source(self._loop.node.inputs[index])
        assert tensor is not None
        return tensor

    def _mask(self, mask: Mask) -> Input:
        """One boolean for each step and row."""
        writer = self._writer
        if not mask.is_of_lengths:
            matrix = writer.node("mask", "Squeeze", self._tensor(mask.index), T=dtypes.bool_, squeeze_dims=[2])
            return matrix if self._loop.is_mask_as_long else self._first_steps(matrix)
        lengths = self._loop.node.inputs[mask.index]
        dtype = self._view.dtype(lengths)
        counts = writer.node("steps", "Range", writer.constant("zero", 0), self._steps_of_x(),
                             writer.constant("one", 1), Tidx=dtypes.int32)
        if dtype is not dtypes.int32:
            counts = writer.node("steps", "Cast", counts, SrcT=dtypes.int32, DstT=dtype)
        column = writer.node("steps", "ExpandDims", counts, writer.constant("axis", 1), T=dtype, Tdim=dtypes.int32)
        return writer.node("mask", "Less", column, lengths, T=dtype)

    def _steps_of_x(self) -> Input:
        return self._sizes_of(self._tensor(self._loop.item), self._loop.dtype, 0, is_scalar=True)

    def _first_steps(self, mask: Input) -> Input:
        """A mask without steps behind the last of x."""
        writer = self._writer
        end = self._sizes_of(self._tensor(self._loop.item), self._loop.dtype, 0)
        return writer.node("mask", "StridedSlice", mask, writer.constant("mask/begin", [0]), end,
                           writer.constant("mask/strides", [1]), T=dtypes.bool_, Index=dtypes.int32)

    def _sizes_of(self, tensor: Input, dtype: DType, start: int, count: int = 1, *, is_scalar: bool = False) -> Input:
        """Some sizes of a tensor as a vector, or one as a scalar."""
        writer = self._writer
        shape = writer.node("shape", "Shape", tensor, T=dtype, out_type=dtypes.int32)
        ends = [writer.constant(f"shape/{name}", [end])
                for name, end in (("begin", start), ("end", start + count), ("strides", 1))]
        return writer.node("shape", "StridedSlice", shape, *ends, T=dtypes.int32, Index=dtypes.int32,
                           shrink_axis_mask=int(is_scalar))

    def _with_equal_rows(
        self, x: Input, states: list[Input], masks: list[Input]
    ) -> tuple[Input, list[Input], list[Input]]:
        """All with the rows to which the body would broadcast them. Select, with lengths, broadcasts no state."""
        writer, dtype, is_free = self._writer, self._loop.dtype, self._loop.broadcasts_rows
        rows = self._sizes_of(states[0], dtype, 0)
        if is_free and not self._is_of_lengths:
            others = [self._sizes_of(x, dtype, 1), *(self._sizes_of(state, dtype, 0) for state in states[1:]),
                      *(self._sizes_of(mask, dtypes.bool_, 1) for mask in masks)]
            for other in others:
                rows = writer.node("rows", "BroadcastArgs", rows, other, T=dtypes.int32)
        if is_free:
            x = self._broadcast(x, dtype, self._sizes_of(x, dtype, 0), rows, self._sizes_of(x, dtype, 2))
        if self._is_of_lengths:
            return x, states, masks
        states = [self._broadcast(state, dtype, rows, self._sizes_of(state, dtype, 1)) for state in states]
        masks = [self._broadcast(mask, dtypes.bool_, self._sizes_of(mask, dtypes.bool_, 0), rows) for mask in masks]
        return x, states, masks

    @property
    def _is_of_lengths(self) -> bool:
        return self._loop.mask is not None and self._loop.mask.is_of_lengths

    def _broadcast(self, tensor: Input, dtype: DType, *sizes: Input) -> Input:
        writer = self._writer
        shape = writer.node("shape", "ConcatV2", *sizes, writer.constant("shape/axis", 0), N=len(sizes),
                            T=dtypes.int32, Tidx=dtypes.int32)
        return writer.node("rows", "BroadcastTo", tensor, shape, T=dtype, Tidx=dtypes.int32)

    def _length(self) -> Input:
        """The smallest number of steps."""
        writer = self._writer
        numbers = [bound for bound in self._loop.bounds if isinstance(bound, int)]
        tensors = [self._as_int32(bound) for bound in self._loop.bounds if not isinstance(bound, int)]
        if numbers:
            tensors.append(writer.constant("length", min(max(min(numbers), 0), np.iinfo(np.int32).max)))
        length = tensors[0]
        for other in tensors[1:]:
            length = writer.node("length", "Minimum", length, other, T=dtypes.int32)
        return length

    def _count(self, counter: Input) -> Input:
        """A counter behind the loop."""
        writer, dtype = self._writer, self._view.dtype(counter)
        count = writer.node("count", "Maximum", self._steps, writer.constant("zero", 0), T=dtypes.int32)
        return count if dtype is dtypes.int32 else writer.node("count", "Cast", count, SrcT=dtypes.int32, DstT=dtype)

    def _as_int32(self, tensor: Input) -> Input:
        dtype = self._view.dtype(tensor)
        return tensor if dtype is dtypes.int32 else self._writer.node("length", "Cast", tensor, SrcT=dtype,
                                                                       DstT=dtypes.int32)

    def _results(self) -> dict[Input, Input]:
        """The replacements of the loop's variables."""
        loop, name = self._loop, self._loop.node.name
        results = {Input(name, None, index): loop.node.inputs[index] for index in loop.invariants}
        results |= {Input(name, None, state): Input(name_of_op, None, FIRST_STATE + number)
                    for cell, name_of_op in zip(loop.cells, self._names, strict=True)
                    for number, state in enumerate(cell.states)}
        for index in loop.counters:
            if any(consumer.inputs[number].index == index for consumer, number in self._view.consumers[name]):
                results[Input(name, None, index)] = self._count(loop.node.inputs[index])
        if loop.previous is not None:
            results[Input(name, None, loop.previous)] = self._last_output
        return results

    def _waiting_node(self, node: Node) -> Node:
        """A node in the place of `node` for control edges. The op has no effect: only reads of variables come first."""
        return Node(node.name, "NoOp", controls=[*self._writer.reads(), *self._loop.node.controls, *node.controls])

    @property
    def _last_output(self) -> Input:
        """The output of the last step: h, where no step is masked and one at least runs."""
        is_state = self._loop.mask is None and all(isinstance(steps, int) and steps > 0 for steps in self._loop.bounds)
        return Input(self._names[-1], None, FIRST_STATE if is_state else LAST_OUTPUT)

    def _stack_nodes(self) -> list[Node]:
        """The nodes that make a tensor of the output list."""
        loop = self._loop
        return [consumer for consumer, number in self._view.consumers[loop.node.name]
                if loop.written is not None and consumer.inputs[number].index == loop.written.index
                and consumer.op != "TensorArraySizeV3"]

    def _stack(self, stack: Node) -> tuple[list[Node], dict[Input, Input]]:
        """The tensor of the output list, instead of a stack of its elements. An idle copy only waits."""
        loop, writer = self._loop, self._writer
        assert loop.written is not None
        if stack.op == "Identity":
            return [self._waiting_node(stack)], {}
        tensor = Input(self._names[-1])
        if not loop.written.at_step:
            tensor = writer.node("last", "ExpandDims", self._last_output,
                                 writer.constant("last/axis", 0), T=loop.dtype, Tdim=dtypes.int32)
        if self._view.is_free(stack):
            return [], {Input(stack.name): tensor}
        return [Node(stack.name, "Identity", [tensor], controls=stack.controls, attrs={"T": loop.dtype})], {}
