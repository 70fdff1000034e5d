"""The tensors that a loop reads step by step, and the list or the TensorArray that it fills."""

# A TensorArray stands for a tensor, whose slices are its elements, under these conditions, which are checked:
#
#   - It has as many elements as the tensor has steps, and its shapes fit the slices.
#   - An input array is filled by one scatter to 0, 1, 2, ..., and only the loop reads it, with the scatter's flow.
#   - An output array is written by the loop alone, and read by gathers of 0, 1, 2, ... behind the loop.
#   - An array that is cleared by a read is gathered once.
#   - Elements that no step writes are zeros: the first write or the array states the shape of all elements.
#
# An array without any write is an error where its elements have no shape. The op gives zeros, as a list does.

from __future__ import annotations

import numpy as np
from heald.api import Attrs, Input, Node

from ..graph_view import GraphView
from ..symbolic_sizes import Size, SymbolicSizes
from .body import fits_shape
from .body_values import OutputList
from .recurrent_loop import Loop

ARRAY = "TensorArrayV3"
HANDLE, FLOW = 0, 1  # outputs of an array

PartialShape = tuple[int | None, ...] | None


class Series:
    """Lists and arrays of a graph."""

    def __init__(self, view: GraphView, sizes: SymbolicSizes) -> None:
        self._view = view
        self._sizes = sizes

    def source(self, handle: Input) -> Input | None:
        """The tensor whose slices are the elements of an input list or array."""
        node = self._view.graph[handle.node]
        if node.op == ARRAY:
            scatter = self._scatter(node)
            return None if scatter is None else scatter.inputs[2]
        if node.op != "TensorListFromTensor" or self._view.resolve(node) is None or self._view.is_kept(node):
            return None
        shape = self._view.shape(node.inputs[0])
        return node.inputs[0] if shape and self._states_shape(node.inputs[1], shape[1:]) else None

    def input_flow(self, handle: Input) -> Input | None:
        """The flow that an input array has behind its scatter."""
        node = self._view.graph[handle.node]
        scatter = self._scatter(node) if node.op == ARRAY else None
        return None if scatter is None else Input(scatter.name)

    def output(self, index: int, tensor: Input) -> OutputList | None:
        """An output array, by its flow in front of the loop."""
        node = self._view.graph[tensor.node]
        is_flow = node.op == ARRAY and tensor.index == FLOW and self._view.resolve(node) is not None
        return OutputList(index, Input(node.name)) if is_flow else None

    def fits(self, loop: Loop) -> bool:
        """True where the output has an element for each step of x, or the one that each step overwrites."""
        if loop.written is None:
            return True
        node = self._view.graph[loop.node.inputs[loop.written.index].node]
        return self._array_fits(loop, node) if node.op == ARRAY else self._list_fits(loop, node)

    def is_stack(self, node: Node, loop: Loop) -> bool:
        """True for a node that makes one tensor of the whole output."""
        entry = self._view.resolve(node)
        if entry is None:
            return False
        if node.op == "TensorArrayGatherV3":
            array = self._view.graph[node.inputs[0].node]
            return (_is_partial_shape(entry.attrs["element_shape"], self._output_shape(loop))
                    and self._is_of_array(node, array) and self._counts_up(node.inputs[1], self._steps(loop), array))
        if node.op != "TensorListStack" or entry.attrs["element_dtype"] is not loop.dtype:
            return False
        if not self._states_shape(node.inputs[1], self._output_shape(loop)):
            return False
        steps = self._steps(loop) if loop.written is not None and loop.written.at_step else 1
        return entry.attrs["num_elements"] in (-1, steps)

    def rows(self, handle: Input) -> Size | None:
        """The rows of each element of an input list or array."""
        tensor = self.source(handle)
        return None if tensor is None else self._sizes.of(tensor, 1)

    def is_size(self, node: Node) -> bool:
        """True for the size of an array that only bounds the indices of gathers."""
        return node.op == "TensorArraySizeV3" and self._view.is_free(node) and all(
            self._view.is_free(consumer) and consumer.op == "Range" and all(
                gather.op == "TensorArrayGatherV3" for gather, _ in self._view.consumers[consumer.name])
            for consumer, _ in self._view.consumers[node.name])

    def _list_fits(self, loop: Loop, reserve: Node) -> bool:
        view = self._view
        entry = view.resolve(reserve) if reserve.op == "TensorListReserve" and not view.is_kept(reserve) else None
        if loop.written is None or entry is None or entry.attrs["element_dtype"] is not loop.dtype:
            return False
        if not self._states_shape(reserve.inputs[0], self._output_shape(loop)):
            return False
        size = self._number(reserve.inputs[1])
        return size is not None and size == (self._steps(loop) if loop.written.at_step else 1)

    def _array_fits(self, loop: Loop, array: Node) -> bool:
        attrs = self._attributes(array)
        steps, shape = self._steps(loop), self._output_shape(loop)
        if attrs is None or attrs["dtype"] is not loop.dtype or not _is_partial_shape(attrs["element_shape"], shape):
            return False
        if steps is None or self._number(array.inputs[0]) != steps or not self._is_read_behind(loop, array, attrs):
            return False
        stated_shape: PartialShape = attrs["element_shape"]
        is_full = stated_shape is not None and None not in stated_shape
        return is_full or attrs["identical_element_shapes"] or self.runs_all_steps(loop)

    def _is_read_behind(self, loop: Loop, array: Node, attrs: Attrs) -> bool:
        """True where the loop alone takes the array, and gathers and sizes alone take its end."""
        gathers = 0
        for consumer, number in self._view.consumers[array.name]:
            if consumer is loop.node:
                continue
            is_gather = consumer.op == "TensorArrayGatherV3"
            flow = consumer.inputs[-1]
            if flow.index != (loop.written.index if loop.written else None) or flow.node != loop.node.name:
                return False
            if consumer.inputs[number].index != HANDLE or not (is_gather or self.is_size(consumer)):
                return False
            gathers += is_gather
        return gathers < 2 or not attrs["clear_after_read"]

    def runs_all_steps(self, loop: Loop) -> bool:
        """True where the number of steps is sure to be that of x."""
        return {bound if isinstance(bound, int) else self._number(bound) for bound in loop.bounds} == {
            self._steps(loop)}

    def _is_of_array(self, node: Node, array: Node) -> bool:
        attrs = self._attributes(array) if array.op == ARRAY else None
        entry = self._view.resolve(node)
        return (attrs is not None and entry is not None and entry.attrs["dtype"] is attrs["dtype"]
                and node.inputs[0] == Input(array.name))

    def _scatter(self, array: Node) -> Node | None:
        """The scatter that fills an input array with the slices of a tensor."""
        attrs = self._attributes(array)
        consumers = [consumer for consumer, _ in self._view.consumers[array.name]]
        scatters = {node.name: node for node in consumers if node.op == "TensorArrayScatterV3"}
        if attrs is None or len(scatters) != 1 or len(consumers) != 3:  # the loop's handle, the scatter's, and its flow
            return None
        (scatter,) = scatters.values()
        entry = None if self._view.is_kept(scatter) else self._view.resolve(scatter)
        handle, indices, x, flow = scatter.inputs
        if entry is None or entry.attrs["T"] is not attrs["dtype"]:
            return None
        if handle != Input(array.name) or flow != Input(array.name, None, FLOW):
            return None
        shape, steps = self._view.shape(x), self._sizes.of(x, 0)
        if not shape or steps is None or not _is_partial_shape(attrs["element_shape"], shape[1:]):
            return None
        is_filled = self._number(array.inputs[0]) == steps and self._counts_up(indices, steps, array)
        return scatter if is_filled else None

    def _attributes(self, array: Node) -> Attrs | None:
        entry = None if self._view.is_kept(array) else self._view.resolve(array)
        return None if entry is None else entry.attrs

    def _counts_up(self, indices: Input, size: Size | None, array: Node) -> bool:
        """True for the indices 0, 1, 2, ... of all elements."""
        view, node = self._view, self._view.graph[indices.node]
        if size is None:
            return False
        if view.is_known_tensor(indices):
            return isinstance(size, int) and np.array_equal(view.value(indices), np.arange(size))
        if node.op != "Range" or view.is_kept(node) or view.resolve(node) is None:
            return False
        start, limit, delta = node.inputs
        if not view.is_known_tensor(start) or not view.is_known_tensor(delta):
            return False
        if view.value(start) != 0 or view.value(delta) != 1:
            return False
        return self._number(limit) == size or self._is_size_of(limit, array)

    def _is_size_of(self, tensor: Input, array: Node) -> bool:
        node = self._view.graph[tensor.node]
        return node.op == "TensorArraySizeV3" and not self._view.is_kept(node) and node.inputs[0] == Input(array.name)

    def _number(self, tensor: Input) -> Size | None:
        if not self._view.is_known_tensor(tensor):
            return self._sizes.number(tensor)
        value = self._view.value(tensor)
        return int(value) if value.ndim == 0 else None

    def _steps(self, loop: Loop) -> Size | None:
        """The number of steps of x."""
        x = self.source(loop.node.inputs[loop.item])
        return None if x is None else self._sizes.of(x, 0)

    def _output_shape(self, loop: Loop) -> tuple[int | None, ...]:
        return self._view.shape(loop.node.inputs[loop.output]) or ()

    def _states_shape(self, element_shape: Input, shape: tuple[int | None, ...]) -> bool:
        """True where the element shape of a list is known, and sure to be that of tensors of this shape."""
        return self._view.is_known_tensor(element_shape) and fits_shape(self._view.value(element_shape), shape)


def _is_partial_shape(stated: PartialShape, shape: tuple[int | None, ...]) -> bool:
    """True where a shape with None for unknown sizes is sure to be that of tensors of this shape."""
    return stated is None or (len(stated) == len(shape) and all(
        stated_size in (None, size) for stated_size, size in zip(stated, shape, strict=True)))
