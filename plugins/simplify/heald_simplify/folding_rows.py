"""Rows of the pass `constant-folding`: nodes that a constant input makes cheaper, by op.

A row is a function of the folder and a node. It puts the new nodes into the folder and returns True, or it returns
False and changes nothing. The node keeps its name, its control edges come last. A constant that the node no longer
reads is still waited for. TensorFlow's folding has these rows and names.

Zero times x is no row for floats here: x may be infinite. Nor are reciprocals that are no finite number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from heald.api import Graph, Input, Node, PassContext, constant, dtypes, errors

from .graph_view import Array, GraphView

Row = Callable[["Folder", Node], bool]

LARGEST_FILLED_ELEMENTS = 1 << 16
SWITCHES = frozenset({"RefSwitch", "Switch", "_SwitchN"})
FLOATS = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


class Folder:
    """A graph under change: new and changed nodes by name, and tensors that others replace."""

    def __init__(self, view: GraphView, context: PassContext) -> None:
        self.view = view
        fetched = {_node_name(text) for text in context.fetches} - {_node_name(text) for text in context.feeds}
        self._hidden = context.kept - fetched  # these may be fed
        self._changed: dict[str, Node] = {}
        self._removed: set[str] = set()
        self._instead: dict[Input, Input] = {}
        self._values: dict[str, Array] = {}

    def current(self, name: str) -> Node:
        """The node as it is now, with its inputs as they are now."""
        node = self._changed.get(name)
        if node is None:
            node = self.view.graph[name]
        inputs = [self._instead.get(tensor, tensor) for tensor in node.inputs]
        return node if inputs == list(node.inputs) else node.replace(inputs=inputs)

    def put(self, node: Node) -> None:
        self._changed[node.name] = node
        self._values.pop(node.name, None)

    def remove(self, name: str) -> None:
        self._removed.add(name)

    def redirect(self, tensor: Input, to: Input) -> None:
        self._instead[tensor] = to

    def reroute(self, tensor: Input, to: Input, controls: Sequence[str] = ()) -> None:
        """Let the consumers of a tensor, but for Identities that stand for it, read another one and wait for nodes."""
        for consumer, _ in self.view.consumers[tensor.node]:
            node = self.current(consumer.name)
            if tensor in node.inputs and node.name != _stand_in(tensor):
                inputs = [to if source == tensor else source for source in node.inputs]
                self.put(node.replace(inputs=inputs, controls=dict.fromkeys((*node.controls, *controls))))

    def graph(self) -> Graph:
        """The graph with all changes; the graph itself where there are none."""
        if not self._changed and not self._instead:
            return self.view.graph
        names = dict.fromkeys((*self.view.graph.nodes, *self._changed))
        nodes = [self.current(name) for name in names if name not in self._removed]
        return self.view.graph.replace(
            nodes=[node for node in nodes if self.view.graph.nodes.get(node.name) is not node], without=self._removed)

    def constant(self, name: str, value: Array, like: Node, controls: Iterable[str]) -> Node:
        return constant(name, np.array(value), like.device).replace(controls=dict.fromkeys(controls))

    def is_constant(self, tensor: Input) -> bool:
        tensor = self._instead.get(tensor, tensor)
        node = self._node(tensor.node)
        return node.op == "Const" and tensor.node not in self._hidden

    def value(self, tensor: Input) -> Array | None:
        """The elements of a constant, None for another tensor and for one that is malformed."""
        if not self.is_constant(tensor):
            return None
        name = self._instead.get(tensor, tensor).node
        if name not in self._values:
            try:
                self._values[name] = self._node(name).attrs["value"].array()
            except (errors.HealdError, KeyError, AttributeError):  # malformed: running the node raises the error
                return None
        return self._values[name]

    def _node(self, name: str) -> Node:
        return self._changed.get(name) or self.view.graph[name]

    def waits(self, tensors: Iterable[Input]) -> tuple[str, ...]:
        """The nodes to wait for instead of reading the tensors."""
        return tuple(dict.fromkeys(self._anchor(self._instead.get(tensor, tensor)) for tensor in tensors))

    def anchors(self, node: Node) -> tuple[str, ...]:
        """The nodes to wait for instead of running a node."""
        return (*self.waits(node.inputs), *node.controls)

    def _anchor(self, tensor: Input) -> str:
        node = self._node(tensor.node)
        if node.op not in SWITCHES:
            return node.name
        name = _stand_in(tensor)
        if name not in self._changed and name not in self.view.graph:
            dtype = node.attrs["T"]
            self.put(Node(name, "Identity", [tensor], device=node.device, attrs={"T": dtype}))
        return name

    def shape(self, tensor: Input) -> tuple[int, ...] | None:
        """The shape of a tensor of the graph before, None unless all of it is known."""
        shape = self.view.shape(tensor)
        return None if shape is None or None in shape else tuple(size for size in shape if size is not None)

    def combine(self, function: Callable[[Any, Any], Any], tensors: Sequence[Input]) -> Array | None:
        """The constants combined from the first to the last. None where one is no number, or the result is none."""
        values = [self.value(tensor) for tensor in tensors]
        arrays = [value for value in values if value is not None and value.dtype != object]
        if len(arrays) < len(values) or any(array.dtype != arrays[0].dtype for array in arrays):
            return None
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(reduce(function, arrays))
        except (TypeError, ValueError):  # strings, or shapes that do not fit: running the node raises the error
            return None
        is_float = dtypes.of_numpy(result.dtype) in FLOATS
        return None if is_float and not np.isfinite(result.astype(np.float64)).all() else result


def _stand_in(tensor: Input) -> str:
    """The name of the Identity that nodes wait for instead of an output of a Switch."""
    return f"{tensor.node}/ControlDependencyCtrl_{tensor.index}"


def _node_name(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]


def _kept_attrs(node: Node) -> dict[str, Any]:
    return {key: value for key, value in node.attrs.items() if key.startswith("_") or key == "T"}


def _put_pass_through(folder: Folder, node: Node, op: str, source: Input, controls: Iterable[str]) -> bool:
    attrs = {"T": dtypes.bool_} | _kept_attrs(node)
    folder.put(Node(node.name, op, [source], controls=dict.fromkeys((*controls, *node.controls)), device=node.device,
                    attrs=attrs))
    return True


def _multiply_by_reciprocal(folder: Folder, node: Node) -> bool:
    """x / c becomes x * (1 / c)."""
    dividend, divisor = node.inputs
    value = folder.value(divisor)
    if value is None or folder.is_constant(dividend) or node.attrs.get("T") not in FLOATS or not value.all():
        return False
    with np.errstate(all="ignore"):
        reciprocal = (1 / value).astype(value.dtype)
    wide = np.abs(reciprocal.astype(np.float64))
    if not np.isfinite(wide).all() or wide.min(initial=1) < np.finfo(np.float32).tiny:
        return False
    name = folder.view.new_name(f"{node.name}/{divisor.node}/_recip")
    folder.put(folder.constant(name, reciprocal, node, folder.waits([divisor])))
    folder.put(Node(node.name, "Mul", [dividend, Input(name)], controls=node.controls, device=node.device,
                    attrs=_kept_attrs(node)))
    return True


def _drop_neutral(first: float | None, second: float | None) -> Row:
    """The row for x and a neutral constant, on the sides that have one."""

    def row(folder: Folder, node: Node) -> bool:
        shape = folder.shape(Input(node.name))
        for index, neutral in enumerate((first, second)):
            value = None if neutral is None else folder.value(node.inputs[index])
            other = node.inputs[1 - index]
            is_neutral = value is not None and value.dtype != object and bool((value == neutral).all())
            if is_neutral and shape is not None and folder.shape(other) == shape and _is_float_or_bool(node):
                return _put_pass_through(folder, node, "Snapshot", other, folder.waits(node.inputs))
        return False

    return row


def _is_float_or_bool(node: Node) -> bool:
    return node.attrs.get("T", dtypes.bool_) in (*FLOATS, dtypes.bool_)


def _negate(folder: Folder, node: Node) -> bool:
    """0 - x becomes -x."""
    zero, x = node.inputs
    value, shape = folder.value(zero), folder.shape(Input(node.name))
    if value is None or value.any() or shape is None or folder.shape(x) != shape or not _is_float_or_bool(node):
        return False
    folder.put(Node(node.name, "Neg", [x], controls=dict.fromkeys((*folder.waits([zero]), *node.controls)),
                    device=node.device, attrs=_kept_attrs(node)))
    return True


def _absorb(value: bool) -> Row:
    """The row for a constant that decides the result of a logical op alone."""

    def row(folder: Folder, node: Node) -> bool:
        shape = folder.shape(Input(node.name))
        constants = [folder.value(tensor) for tensor in node.inputs]
        if shape is None or not any(array is not None and (array == value).all() for array in constants):
            return False
        folder.put(folder.constant(node.name, np.full(shape, value), node, folder.anchors(node)))
        return True

    return row


def _is_same_shape(folder: Folder, node: Node) -> bool:
    shape = folder.shape(Input(node.name))
    return shape is not None and shape == folder.shape(node.inputs[0])


def _reshapes_nothing(folder: Folder, node: Node) -> bool:
    return _is_same_shape(folder, node) and all(map(folder.is_constant, node.inputs[1:]))


def _keeps_order(folder: Folder, node: Node) -> bool:
    """True for a transposition that leaves all axes of more than one element in their order."""
    shape, order = folder.shape(node.inputs[0]), folder.value(node.inputs[1])
    if shape is None or order is None or order.shape != (len(shape),):
        return False
    axes = [axis % len(shape) for axis in order.tolist()]
    long_axes = [axis for axis in axes if shape[axis] != 1]
    return _is_same_shape(folder, node) and long_axes == sorted(long_axes)


def _turns_single_elements(folder: Folder, node: Node) -> bool:
    """True for reversals and reductions over axes of one element, with the input's shape as the result's."""
    shape, axes = folder.shape(node.inputs[0]), folder.value(node.inputs[1])
    if shape is None or axes is None or not _is_same_shape(folder, node):
        return False
    return all(-len(shape) <= axis < len(shape) and shape[axis] == 1 for axis in axes.reshape(-1).tolist())


def _pass_through_if(holds: Callable[[Folder, Node], bool]) -> Row:
    """The row that makes an Identity of a node that returns its first input."""

    def row(folder: Folder, node: Node) -> bool:
        return holds(folder, node) and _put_pass_through(folder, node, "Identity", node.inputs[0],
                                                         folder.waits(node.inputs[1:]))

    return row


def _add_constants_first(folder: Folder, node: Node) -> bool:
    """The constants of a sum become one, in front."""
    constants = [tensor for tensor in node.inputs if folder.is_constant(tensor)]
    others = [tensor for tensor in node.inputs if not folder.is_constant(tensor)]
    shapes = {getattr(folder.value(tensor), "shape", None) for tensor in constants}
    total = folder.combine(np.add, constants) if len(constants) > 1 and others and len(shapes) == 1 else None
    if total is None:
        return False
    name = folder.view.new_name(f"{node.name}/_partial_split_{len(constants)}")
    folder.put(folder.constant(name, total, node, folder.waits(constants)))
    inputs = [Input(name), *others]
    folder.put(node.replace(inputs=inputs, attrs={"N": len(inputs)}))
    return True


def _concatenate_constants(folder: Folder, node: Node) -> bool:
    """Neighbouring constants of a concatenation become one each."""
    *parts, axis = node.inputs
    place = folder.value(axis)
    if place is None or place.size != 1 or all(map(folder.is_constant, parts)):
        return False
    merged: list[Input] = []
    at = 0
    while at < len(parts):
        end = at
        while end < len(parts) and folder.is_constant(parts[end]):
            end += 1
        whole = None if end - at < 2 else folder.combine(_concatenation(int(place.reshape(()))), parts[at:end])
        if whole is None:
            end = max(end, at + 1)
            merged += parts[at:end]
        else:
            name = folder.view.new_name(f"{node.name}/_partial_split_{at}")
            folder.put(folder.constant(name, whole, node, folder.waits([*parts[at:end], axis])))
            merged.append(Input(name))
        at = end
    if len(merged) == len(parts):
        return False
    folder.put(node.replace(inputs=[*merged, axis], attrs={"N": len(merged)}))
    return True


def _concatenation(axis: int) -> Callable[[Any, Any], Any]:
    return lambda first, second: np.concatenate((first, second), axis)


def _expand_single(folder: Folder, node: Node) -> bool:
    """A Pack of one tensor becomes ExpandDims."""
    if len(node.inputs) != 1:
        return False
    name = folder.view.new_name(f"{node.name}/_const_axis")
    folder.put(folder.constant(name, np.asarray(node.attrs.get("axis", 0), np.int32), node, folder.waits(node.inputs)))
    folder.put(Node(node.name, "ExpandDims", [*node.inputs, Input(name)], controls=node.controls, device=node.device,
                    attrs={**_kept_attrs(node), "Tdim": dtypes.int32}))
    return True


def _enter_constant(folder: Folder, node: Node) -> bool:
    """The nodes in a loop read a constant of their own instead of one that enters the loop."""
    value = folder.value(node.inputs[0]) if node.attrs.get("is_constant") else None
    if value is None or value.dtype == object or not folder.view.consumers[node.name]:
        return False
    name = folder.view.new_name(f"{node.name}/_enter")
    folder.put(folder.constant(name, value, node, (node.name,)))
    folder.redirect(Input(node.name), Input(name))
    return True


def _bypass_identities(folder: Folder, node: Node) -> bool:
    """Consumers read the constants that an IdentityN returns, and wait for it."""
    used = {consumer.inputs[number].index for consumer, number in folder.view.consumers[node.name]}
    constants = [index for index in used if folder.is_constant(node.inputs[index])]
    for index in constants:
        folder.reroute(Input(node.name, None, index), node.inputs[index], (node.name,))
    return bool(constants)


def _know_predicate(folder: Folder, node: Node) -> bool:
    """Behind a Switch of its own predicate, the predicate is known."""
    if node.inputs[0] != node.inputs[1]:
        return False
    tensors = [Input(node.name, None, index) for index in range(2)]
    used = [tensor for tensor in tensors if any(
        consumer.inputs[number] == tensor and consumer.name != _stand_in(tensor)
        for consumer, number in folder.view.consumers[node.name])]
    for tensor in used:
        name = folder.view.new_name(f"{node.name}/_const_{'true' if tensor.index else 'false'}")
        folder.put(folder.constant(name, np.asarray(tensor.index, np.bool_), node, folder.waits([tensor])))
        folder.reroute(tensor, Input(name))
    return bool(used)


def _fill(value: int) -> Row:
    """The row for a tensor of one number whose shape is known."""

    def row(folder: Folder, node: Node) -> bool:
        shape, dtype = folder.shape(Input(node.name)), node.attrs["T"]
        if shape is None or prod(shape) > LARGEST_FILLED_ELEMENTS or dtype.kind not in "fiubc":
            return False
        folder.put(folder.constant(node.name, np.full(shape, value, dtype.numpy), node, folder.anchors(node)))
        return True

    return row


ROWS: dict[str, tuple[Row, ...]] = {
    "AccumulateNV2": (_add_constants_first,),
    "Add": (_drop_neutral(0, 0),),
    "AddN": (_add_constants_first,),
    "AddV2": (_drop_neutral(0, 0),),
    "ConcatV2": (_concatenate_constants,),
    "Div": (_drop_neutral(None, 1), _multiply_by_reciprocal),
    "Enter": (_enter_constant,),
    "IdentityN": (_bypass_identities,),
    "LogicalAnd": (_drop_neutral(True, True), _absorb(False)),
    "LogicalOr": (_drop_neutral(False, False), _absorb(True)),
    "Mul": (_drop_neutral(1, 1),),
    "OnesLike": (_fill(1),),
    "Pack": (_expand_single,),
    "Pad": (_pass_through_if(_reshapes_nothing),),
    "PadV2": (_pass_through_if(_reshapes_nothing),),
    "RealDiv": (_drop_neutral(None, 1), _multiply_by_reciprocal),
    "Reshape": (_pass_through_if(_reshapes_nothing),),
    "ReverseV2": (_pass_through_if(_turns_single_elements),),
    "Slice": (_pass_through_if(_reshapes_nothing),),
    "Squeeze": (_pass_through_if(_is_same_shape),),
    "Sub": (_drop_neutral(None, 0), _negate),
    "Switch": (_know_predicate,),
    "Tile": (_pass_through_if(_reshapes_nothing),),
    "Transpose": (_pass_through_if(_keeps_order),),
    "ZerosLike": (_fill(0),),
    **dict.fromkeys(("Max", "Mean", "Min", "Prod", "Sum"), (_pass_through_if(_turns_single_elements),)),
}
