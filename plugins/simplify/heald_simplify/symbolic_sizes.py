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

    def broadcast_of(self, source: Input, axis: int, nested: int = 0) -> frozenset[Size | None]:
        """The sizes that elementwise nodes broadcast to the size of an axis."""
        size = self.of(source, axis)
        node = self._view.graph[size[0].node] if isinstance(size, tuple) else None
        shape = None if node is None else self._view.shape(Input(node.name))
        if node is None or shape is None or nested == MOST_NESTED or isinstance(size, int | None):
            return frozenset([size])
        if node.op not in ELEMENTWISE or self._view.is_kept(node) or self._view.resolve(node) is None:
            return frozenset([size])
        axes = self._axes_of_operands(node, size[1], len(shape))
        if not axes:
            return frozenset([size])
        return frozenset().union(*(self.broadcast_of(*operand_axis, nested + 1) for operand_axis in axes))

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
            "Squeeze": self._before_squeeze, "SplitV": self._before_split_by_sizes,
            "LSTMBlockCell": lambda _, node, axis: (node.inputs[1], axis),  # cs_prev
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
        """The axes that a slice leaves whole, behind those that an index removes."""
        begin, strides = self._view.array(node.inputs[1]), self._view.array(node.inputs[3])
        masks = entry.attrs
        if begin is None or strides is None or masks["ellipsis_mask"] or masks["new_axis_mask"]:
            return None
        count, shape = begin.size, self._view.shape(node.inputs[0])
        if shape is None or count > len(shape):
            return None
        is_lost = [bool(masks["shrink_axis_mask"] >> position & 1) for position in range(count)]
        left = [position for position in range(len(shape)) if position >= count or not is_lost[position]]
        position = left[axis]
        is_whole = position >= count or (masks["begin_mask"] & masks["end_mask"]) >> position & 1
        is_forward = position >= count or int(strides.reshape(-1)[position]) in (1, -1)
        return (node.inputs[0], position) if is_whole and is_forward else None

    def _before_split(self, _: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        return self._unsplit(node.inputs[0], node.inputs[1], axis)

    def _before_split_by_sizes(self, _: Resolved, node: Node, axis: int) -> AxisOfTensor | None:
        return self._unsplit(node.inputs[2], node.inputs[0], axis)

    def _unsplit(self, split_axis: Input, source: Input, axis: int) -> AxisOfTensor | None:
        split, shape = self._view.array(split_axis), self._view.shape(source)
        if split is None or shape is None or int(split.reshape(())) % len(shape) == axis:
            return None
        return source, axis

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
        axes = self._axes_of_operands(node, axis, len(self._view.shape(Input(node.name)) or ()))
        if axes is None:
            return None
        if len(axes) < 2 or self._nested == MOST_NESTED:
            return axes[0] if len(axes) == 1 else None
        self._nested += 1
        sizes = {self.of(*place) for place in axes}
        self._nested -= 1
        return axes[0] if len(sizes) == 1 and None not in sizes else None

    def _axes_of_operands(self, node: Node, axis: int, rank: int) -> list[AxisOfTensor] | None:
        """The axes of an elementwise node's operands that are broadcast to its axis, but for those that are 1."""
        axes: list[AxisOfTensor] = []
        for source in node.inputs:
            shape = self._view.shape(source)
            if shape is None:
                return None
            position = axis - rank + len(shape)
            if position >= 0 and shape[position] != 1:
                axes.append((source, position))
        return axes

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
        """The tensor and axis whose size is this scalar: Shape(x)[axis]. The least and the largest of one number is the
        number."""
        node = self._view.graph[source.node]
        while (node.op in ("Max", "Min", "Identity") and self._view.shape(node.inputs[0]) == ()
               and not self._view.is_kept(node) and self._view.resolve(node) is not None):
            node = self._view.graph[node.inputs[0].node]
        entry = self._view.resolve(node) if node.op == "StridedSlice" and not self._view.is_kept(node) else None
        begin = self._view.array(node.inputs[1]) if entry is not None else None
        if entry is None or begin is None or begin.shape != (1,) or begin[0] < 0:
            return None
        masks = {name: entry.attrs[name] for name in ("begin_mask", "ellipsis_mask", "new_axis_mask")}
        if any(masks.values()) or entry.attrs["shrink_axis_mask"] != 1:
            return None
        return self._element(node.inputs[0], int(begin[0]))
