"""Symbolic sizes: dimensions that are equal in every run, although their size is not known before the run."""

from __future__ import annotations

from heald.api import Input, Node

from .graph_view import GraphView

Size = int | tuple[Input, int]  # a known size, or the size of an axis of a tensor


class SymbolicSizes:
    """Traces dimensions through a graph. `derived`: sizes that a pass has found by other means, by tensor and axis."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
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
        if node.op == "Fill":
            return self._element(node.inputs[0], axis)
        if node.op == "Identity":
            return node.inputs[0], axis
        if node.op == "Transpose":
            order = self._view.array(node.inputs[1])
            return None if order is None else (node.inputs[0], int(order[axis]) % len(order))
        among: int = entry.attrs["axis"] if node.op in ("Pack", "Unpack") else -1
        if among < 0 or (node.op == "Pack" and axis == among):
            return None
        return node.inputs[0], axis + (axis >= among) if node.op == "Unpack" else axis - (axis > among)

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
