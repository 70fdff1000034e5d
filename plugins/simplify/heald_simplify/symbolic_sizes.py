"""Symbolic sizes: dimensions that are equal in every run, although their size is not known before the run."""

from __future__ import annotations

from collections.abc import Callable

from heald.api import Input, Node, Resolved

from .graph_view import GraphView

Size = int | tuple[Input, int]  # a known size, or the size of an axis of a tensor
AxisOfTensor = tuple[Input, int]
MOST_NESTED = 6  # elementwise nodes of several operands, one behind the other

SAME_SHAPE = frozenset({"BiasAdd", "Cast", "Elu", "Identity", "IsNan", "LogicalNot", "Neg", "OnesLike", "Relu",
                        "ReverseV2", "Sigmoid", "Tanh", "ZerosLike"})  # as the first input
ELEMENTWISE = frozenset({"Add", "AddV2", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd",
                         "LogicalOr", "Mul", "NotEqual", "RealDiv", "SelectV2", "Sub"})  # of operands that broadcast
REDUCTIONS = frozenset({"All", "Any", "Max", "Min", "Prod", "Sum"})


class SymbolicSizes:
    """Traces dimensions through a graph. `derived`: sizes that a pass has found by other means, by tensor and axis."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._nested = 0
        self.derived: dict[tuple[Input, int], Size] = {}

    def of(self, source: Input, axis: int) -> Size | None:
        """The size of an axis, counted from 0, traced to its origin. None where the tensor may have too low a rank."""
        while True:
            shape, node = self._view.shape(source), self._view.graph[source.node]
            if shape is None or axis >= len(shape):
                return None
            inferred_size, derived_size = shape[axis], self.derived.get((source, axis))
            if inferred_size is not None or derived_size is not None:
                return derived_size if inferred_size is None else inferred_size
            before = None if self._view.is_kept(node) else self._before(node, axis)
            if before is None:
                return source, axis
            source, axis = before

    def _before(self, node: Node, axis: int) -> tuple[Input, int] | None:
        """The input and the axis whose size is that of this axis of the node's output."""
        entry = self._view.resolve(node)
        if entry is None:
            return None
        if node.op in SAME_SHAPE:
            return node.inputs[0], axis
        rule = self._rules.get(node.op)
        return None if rule is None else rule(entry, node, axis)

    @property
    def _rules(self) -> dict[str, Callable[[Resolved, Node, int], AxisOfTensor | None]]:
        return {
            "Fill": lambda _, node, axis: self._element(node.inputs[0], axis),
            "Transpose": self._before_transpose, "Pack": self._before_pack, "Unpack": self._before_unpack,
            "ExpandDims": self._before_new_axis, "StridedSlice": self._before_slice, "Split": self._before_split,
            "Squeeze": self._before_squeeze,
            "MatMul": lambda entry, node, axis: (
                None if axis or entry.attrs["transpose_a"] else (node.inputs[0], 0)),
            **dict.fromkeys(ELEMENTWISE, self._before_elementwise),
            **dict.fromkeys(REDUCTIONS, self._before_reduction),
        }

    def _before_transpose(self, _: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        order = self._view.array(node.inputs[1])
        return None if order is None else (node.inputs[0], int(order[axis]) % len(order))

    def _before_pack(self, entry: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        new = entry.attrs["axis"]
        return None if new < 0 or axis == new else (node.inputs[0], axis - (axis > new))

    def _before_unpack(self, entry: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        lost = entry.attrs["axis"]
        return None if lost < 0 else (node.inputs[0], axis + (axis >= lost))

    def _before_new_axis(self, _: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        shape, new = self._view.shape(node.inputs[0]), self._view.array(node.inputs[1])
        if shape is None or new is None or new.size != 1:
            return None
        position = int(new.reshape(())) % (len(shape) + 1)
        return None if axis == position else (node.inputs[0], axis - (axis > position))

    def _before_slice(self, entry: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        """The axes behind an index of the first axis alone."""
        begin = self._view.array(node.inputs[1])
        masks = [entry.attrs[name] for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")]
        is_index = begin is not None and begin.shape == (1,) and entry.attrs["shrink_axis_mask"] == 1
        return (node.inputs[0], axis + 1) if is_index and not any(masks) else None

    def _before_split(self, _: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        split = self._view.array(node.inputs[0])
        shape = self._view.shape(node.inputs[1])
        if split is None or shape is None or int(split.reshape(())) % len(shape) == axis:
            return None
        return node.inputs[1], axis

    def _before_squeeze(self, entry: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        shape, squeezed = self._view.shape(node.inputs[0]), entry.attrs["squeeze_dims"]
        if not shape or not squeezed:
            return None
        lost = {index % len(shape) for index in squeezed}
        return node.inputs[0], [index for index in range(len(shape)) if index not in lost][axis]

    def _before_reduction(self, entry: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        shape, reduced = self._view.shape(node.inputs[0]), self._view.array(node.inputs[1])
        if shape is None or reduced is None:
            return None
        lost = {int(index) % len(shape) for index in reduced.reshape(-1)}
        left = [index for index in range(len(shape)) if entry.attrs["keep_dims"] or index not in lost]
        return None if left[axis] in lost else (node.inputs[0], left[axis])

    def _before_elementwise(self, _: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        """The axis of an operand, where all operands that do not broadcast along it have the same size."""
        rank = len(self._view.shape(Input(node.name)) or ())
        axes: list[AxisOfTensor] = []
        for source in node.inputs:
            shape = self._view.shape(source)
            if shape is None:
                return None
            position = axis - rank + len(shape)
            if position >= 0 and shape[position] != 1:
                axes.append((source, position))
        if len(axes) < 2 or self._nested == MOST_NESTED:
            return axes[0] if len(axes) == 1 else None
        self._nested += 1
        sizes = {self.of(*place) for place in axes}
        self._nested -= 1
        return axes[0] if len(sizes) == 1 and None not in sizes else None

    def _element(self, vector: Input, index: int) -> tuple[Input, int] | None:
        """The tensor and axis whose size is this element of a shape vector."""
        node = self._view.graph[vector.node]
        entry = None if self._view.is_kept(node) else self._view.resolve(node)
        if entry is None:
            return None
        if node.op == "Pack" and index < len(node.inputs):
            return self._number(node.inputs[index])
        if node.op == "ConcatV2" and index == 0:
            first = self._view.graph[node.inputs[0].node]
            is_one = first.op == "ExpandDims" and not self._view.is_kept(first)
            return self._number(first.inputs[0]) if is_one else None
        return (node.inputs[0], index) if node.op == "Shape" else None

    def number(self, source: Input) -> Size | None:
        """A scalar as the size of an axis, traced to its origin."""
        axis = self._number(source)
        return None if axis is None else self.of(*axis)

    def _number(self, source: Input) -> tuple[Input, int] | None:
        """The tensor and axis whose size is this scalar: Shape(x)[axis]."""
        node = self._view.graph[source.node]
        entry = self._view.resolve(node) if node.op == "StridedSlice" and not self._view.is_kept(node) else None
        begin = self._view.array(node.inputs[1]) if entry is not None else None
        if entry is None or begin is None or begin.shape != (1,) or begin[0] < 0:
            return None
        masks = {name: entry.attrs[name] for name in ("begin_mask", "ellipsis_mask", "new_axis_mask")}
        if any(masks.values()) or entry.attrs["shrink_axis_mask"] != 1:
            return None
        return self._element(node.inputs[0], int(begin[0]))
