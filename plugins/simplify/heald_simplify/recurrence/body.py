"""Evaluation of a loop's functions: from values of the arguments to values of the results.

A tensor that no recurrent cell has is None, and so is all that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType, Function, HealdError, Input, Node, Resolved

from .activations import UNARY
from .body_values import (
    Bound,
    Concatenation,
    Condition,
    Counter,
    Integers,
    Invariant,
    Mask,
    Matrix,
    NextCount,
    OutputList,
    Scalar,
    Selected,
    Value,
    Values,
    WrittenList,
)
from .polynomials import Activation, Algebra, Block, Item, Product, Source, Vector, add, constant, scale

MOST_NODES = 400  # of a body; Keras's largest has a hundred
HARMLESS = frozenset({"Const", "Identity", "NoOp", "ReadVariableOp"})
EFFECTLESS = frozenset({"ReadVariableOp"})  # stateful ops that change nothing
UNKNOWN: Values = (None,)
Resolve = Callable[[Node], Resolved | None]
Shapes = Mapping[int, tuple[int | None, ...] | None]  # of the elements of input lists, by argument index


class Outside(NamedTuple):
    """Facts about tensors outside the loop: as weights, if their shape is known, and whether they are zeros."""

    weights: Callable[[Source], Block | None]
    is_zeros: Callable[[Input], bool]


class BodyEvaluation:
    """One function of a loop, with values of its arguments."""

    def __init__(
        self, function: Function, arguments: Sequence[Value | None], dtypes: Sequence[DType | None],
        item_shapes: Shapes, resolve: Resolve, algebra: Algebra, outside: Outside,
    ) -> None:
        self._function = function
        self._dtypes = {arg.name: dtype for arg, dtype in zip(function.inputs, dtypes, strict=True)}
        self._arguments = {arg.name: value for arg, value in zip(function.inputs, arguments, strict=True)}
        self._item_shapes = item_shapes
        self._resolve = resolve
        self.algebra = algebra
        self.outside = outside
        self.needs_single_row = False  # a matrix loses the axis of its rows
        self._values: dict[str, Values] = {}

    def results(self) -> list[Value | None] | None:
        """The values of the results. None for a function with effects, and for one that is too large."""
        function = self._function
        if len(function.nodes) > MOST_NODES or not all(map(self._is_plain, function.nodes.values())):
            return None
        results = [self._value_of_result(function.ret.get(arg.name)) for arg in function.outputs]
        waited = {name for node in function.nodes.values() for name in node.controls}
        for name in waited.union(function.control_ret.values()) - self._values.keys():
            if name not in function.nodes or function.nodes[name].op not in HARMLESS:
                return None
        return results

    def _is_plain(self, node: Node) -> bool:
        """True for a node without effect whose inputs have the types of its op."""
        entry = self._resolve(node)
        if entry is None or (entry.op.stateful and node.op not in EFFECTLESS):
            return False
        return all(self._dtype(source) is tensor.dtype
                   for source, tensor in zip(node.inputs, entry.input_tensors, strict=True))

    def _dtype(self, tensor: Input) -> DType | None:
        """The element type of a tensor of the function, None for a tensor that no node has."""
        node = self._function.nodes.get(tensor.node)
        if node is None:
            return self._dtypes.get(tensor.node)
        entry = self._resolve(node)
        outputs = [] if entry is None else [output.dtype for output in entry.output_tensors
                                            if tensor.output in (None, output.arg)]
        return outputs[tensor.index] if tensor.index < len(outputs) else None

    def _value_of_result(self, tensor: Input | None) -> Value | None:
        return None if tensor is None else self.value(tensor)

    def value(self, tensor: Input) -> Value | None:
        """The value of a tensor of the function. Its nodes are evaluated sources first."""
        stack = [tensor.node]
        begun: set[str] = set()
        while stack:
            name = stack[-1]
            node = self._function.nodes.get(name)
            if node is None or name in self._values:
                stack.pop()
                continue
            missing = [source.node for source in node.inputs
                       if source.node in self._function.nodes and source.node not in self._values]
            if missing and name not in begun:
                begun.add(name)
                stack += missing
                continue
            self._values[name] = UNKNOWN if missing else self._evaluate(node)  # a circle stays unknown
            stack.pop()
        if tensor.node not in self._function.nodes:
            return self._arguments.get(tensor.node)
        entry = self._resolve(self._function.nodes[tensor.node])
        if entry is None or (tensor.output is not None and [arg.name for arg in entry.op.outputs] != [tensor.output]):
            return None
        values = self._values[tensor.node]
        return values[tensor.index] if tensor.index < len(values) else None

    def _evaluate(self, node: Node) -> Values:
        entry, rule = self._resolve(node), RULES.get(node.op)
        if entry is None or rule is None or len(entry.op.outputs) != 1:
            return UNKNOWN
        try:
            return rule(self, entry, [self.value(source) for source in node.inputs])
        except HealdError:  # a malformed constant: running the node raises the error
            return UNKNOWN

    def weights(self, value: Value | None) -> Block | None:
        return self.outside.weights(value) if isinstance(value, Source) else value if isinstance(value, Block) else None

    def matrix(self, value: Value | None, width: int) -> Matrix | None:
        """A value as a matrix of this width: a matrix, weights that are equal for all rows, or a number."""
        if isinstance(value, Matrix):
            return value if value.width == width else None
        if isinstance(value, Scalar):
            return Matrix(constant(value.value), width)
        weights = self.weights(value)
        if weights is None or weights.width != width or (weights.rows is not None and weights.height != 1):
            return None
        return Matrix(self.algebra.polynomial(Vector(_as_vector(weights))), width, is_row=True)

    def item_shape(self, index: int) -> tuple[int | None, ...] | None:
        return self._item_shapes.get(index)

    def item(self, index: int) -> Value | None:
        """The element of an input list for this step."""
        shape = self._item_shapes.get(index)
        if shape is None or len(shape) != 2 or shape[1] is None:
            return None
        return Matrix(self.algebra.polynomial(Item(index)), shape[1])


Rule = Callable[[BodyEvaluation, Resolved, list[Value | None]], Values]
RULES: dict[str, Rule] = {}


def _rule(*ops: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


def _as_vector(weights: Block) -> Block:
    """A row of weights in the one form that a vector has in polynomials."""
    return weights if weights.rows is None else weights._replace(is_row=True)


@_rule("Const")
def _const(_: BodyEvaluation, entry: Resolved, __: list[Value | None]) -> Values:
    value = entry.attrs["value"]
    if value.is_filled and len(value.shape):
        return UNKNOWN
    array = value.array()
    if array.dtype.kind == "f":
        return (Scalar(float(array)),) if array.ndim == 0 else UNKNOWN
    return (Integers(array),) if array.dtype.kind == "i" and array.size <= 16 else UNKNOWN


@_rule("Identity", "StopGradient", "PreventGradient", "Snapshot")
def _identity(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    return (inputs[0],)


@_rule("ReadVariableOp")
def _read(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    resource = inputs[0]
    return (Source(resource.tensor, is_variable=True),) if isinstance(resource, Invariant) else UNKNOWN


@_rule("MatMul")
def _matmul(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    weights = body.weights(inputs[1])
    left = inputs[0]
    if entry.attrs["transpose_a"] or entry.attrs["transpose_b"] or weights is None or weights.is_vector:
        return UNKNOWN
    parts = left.parts if isinstance(left, Concatenation) else (left,) if isinstance(left, Matrix) else ()
    if not parts or any(part.is_row for part in parts) or sum(part.width for part in parts) != weights.height:
        return UNKNOWN
    total, row = constant(0.0), 0
    for part in parts:
        product = Product(part.value, weights.row_block(row, row + part.width))
        total, row = add(total, body.algebra.polynomial(product)), row + part.width
    return (Matrix(total, weights.width),)


@_rule("ConcatV2")
def _concat(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    *parts, axis = inputs
    matrices = tuple(part for part in parts if isinstance(part, Matrix) and not part.is_row)
    return (Concatenation(matrices),) if len(matrices) == len(parts) and _is_axis(axis, (1, -1)) else UNKNOWN


@_rule("BiasAdd")
def _add_bias(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    matrix, bias = inputs
    weights = body.weights(bias)
    is_vector = bias.is_row if isinstance(bias, Matrix) else weights is not None and weights.is_vector
    if entry.attrs["data_format"] != "NHWC" or not isinstance(matrix, Matrix) or matrix.is_row or not is_vector:
        return UNKNOWN
    return _combine(body, inputs, add)


@_rule("Add", "AddV2")
def _sum(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    for one, other in (inputs, inputs[::-1]):
        if isinstance(one, Counter) and isinstance(other, Integers):
            return (NextCount(one.index),) if other.value.ndim == 0 and int(other.value) == 1 else UNKNOWN
    return _combine(body, inputs, add)


@_rule("Sub")
def _difference(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    return _combine(body, inputs, lambda a, b: add(a, scale(b, -1.0)))


@_rule("Mul")
def _product(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    return _combine(body, inputs, body.algebra.multiply)


@_rule("RealDiv", "Div")
def _quotient(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    left, right = inputs
    if not isinstance(left, Matrix) or not isinstance(right, Scalar) or not right.value:
        return UNKNOWN
    return (replace(left, value=scale(left.value, 1.0 / right.value)),)


@_rule("Neg")
def _negative(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    operand = inputs[0]
    return (replace(operand, value=scale(operand.value, -1.0)),) if isinstance(operand, Matrix) else UNKNOWN


def _combine(body: BodyEvaluation, inputs: list[Value | None], combine: Callable[[Any, Any], Any]) -> Values:
    """An elementwise function of two operands, of which one at least is a matrix with the batch's rows."""
    width = next((operand.width for operand in inputs if isinstance(operand, Matrix)), None)
    if width is None:
        return UNKNOWN
    left, right = (body.matrix(operand, width) for operand in inputs)
    if left is None or right is None:
        return UNKNOWN
    is_row = all(operand.is_row or isinstance(value, Scalar)
                 for operand, value in zip((left, right), inputs, strict=True))
    return (Matrix(combine(left.value, right.value), width, is_row),)


@_rule(*UNARY)
def _activation(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    operand = inputs[0]
    if not isinstance(operand, Matrix):
        return UNKNOWN
    atom = Activation(entry.op.name, operand.value)
    return (replace(operand, value=body.algebra.polynomial(atom)),)


@_rule("Split")
def _split(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    axis, operand = inputs
    count = entry.attrs["num_split"]
    if isinstance(operand, Matrix):
        return _cut(body, operand, [operand.width // count] * count) if _is_last_axis(axis, operand) else UNKNOWN
    weights = body.weights(operand)
    if weights is None:
        return UNKNOWN
    if _is_axis(axis, (0,)) and not weights.is_vector and weights.height % count == 0:
        height = weights.height // count
        return tuple(weights.row_block(i * height, (i + 1) * height) for i in range(count))
    last = (0, -1) if weights.is_vector else (1, -1)
    return _cut(body, weights, [weights.width // count] * count) if _is_axis(axis, last) else UNKNOWN


@_rule("SplitV")
def _split_by_sizes(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    value, sizes, axis = inputs
    operand = value if isinstance(value, Matrix) else body.weights(value)
    if operand is None or not isinstance(sizes, Integers) or not _is_last_axis(axis, operand):
        return UNKNOWN
    widths = [int(size) for size in sizes.value.reshape(-1)]
    if widths.count(-1) == 1:
        widths[widths.index(-1)] = operand.width - sum(widths) - 1
    return _cut(body, operand, widths)


def _cut(body: BodyEvaluation, operand: Matrix | Block, widths: list[int]) -> Values:
    """The parts of a matrix or weights along the columns."""
    if sum(widths) != operand.width or min(widths, default=0) < 0:
        return UNKNOWN
    parts, start = [], 0
    for width in widths:
        parts.append(_columns(body, operand, start, start + width))
        start += width
    return tuple(parts)


def _columns(body: BodyEvaluation, operand: Matrix | Block, start: int, stop: int) -> Matrix | Block | None:
    if isinstance(operand, Block):
        return operand.column_block(start, stop)
    if (start, stop) == (0, operand.width):
        return operand
    value = body.algebra.columns(operand.value, start, stop)
    return None if value is None else Matrix(value, stop - start, operand.is_row)


@_rule("StridedSlice")
def _slice(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    value, *ends = inputs
    operand = value if isinstance(value, Matrix) else body.weights(value)
    index = _index(entry, ends)
    if operand is None or index is None:
        return UNKNOWN
    is_vector = operand.is_row if isinstance(operand, Matrix) else operand.is_vector
    if is_vector:
        return _slice_columns(body, operand, index[0]) if len(index) == 1 else UNKNOWN
    rows, *columns = index
    if isinstance(rows, int):
        return _row(body, operand, rows, columns)
    if len(columns) > 1 or rows != slice(None):
        return UNKNOWN
    return _slice_columns(body, operand, columns[0]) if columns else (operand,)


def _row(body: BodyEvaluation, operand: Matrix | Block, row: int, columns: list[slice | int]) -> Values:
    if isinstance(operand, Matrix) or not -operand.height <= row < operand.height or len(columns) > 1:
        return UNKNOWN
    row %= operand.height
    vector = operand.row_block(row, row + 1)._replace(is_row=True)
    return _slice_columns(body, vector, columns[0]) if columns else (vector,)


def _slice_columns(body: BodyEvaluation, operand: Matrix | Block, columns: slice | int) -> Values:
    if isinstance(columns, int):
        return UNKNOWN
    start, stop, _ = columns.indices(operand.width)
    return (_columns(body, operand, start, stop),) if start < stop else UNKNOWN


def _index(entry: Resolved, ends: list[Value | None]) -> list[slice | int] | None:
    """The index of a StridedSlice with strides of 1."""
    begin, end, strides = (part.value.reshape(-1) if isinstance(part, Integers) else None for part in ends)
    masks = entry.attrs
    if begin is None or end is None or strides is None or masks["ellipsis_mask"] or masks["new_axis_mask"]:
        return None
    if not len(begin) or len(begin) > 2 or not len(begin) == len(end) == len(strides) or any(strides != 1):
        return None
    index: list[slice | int] = []
    for axis, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        bit = 1 << axis
        if masks["shrink_axis_mask"] & bit:
            index.append(first)
        else:
            index.append(slice(None if masks["begin_mask"] & bit else first,
                               None if masks["end_mask"] & bit else last))
    return index


@_rule("Squeeze")
def _squeeze(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    value, axes = inputs[0], entry.attrs["squeeze_dims"]
    operand = value if isinstance(value, Matrix) else body.weights(value)
    if operand is None or axes not in ((0,), (-2,), ()) or (axes == () and operand.width == 1):
        return UNKNOWN
    if isinstance(value, Matrix):
        body.needs_single_row = True
        return UNKNOWN if value.is_row else (replace(value, is_row=True),)
    return (_as_vector(operand),) if isinstance(operand, Block) and operand.height == 1 else UNKNOWN


@_rule("Unpack")
def _unpack(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    weights = body.weights(inputs[0])
    if weights is None or weights.is_vector or entry.attrs["axis"] not in (0, -2):
        return UNKNOWN
    if entry.attrs["num"] != weights.height:
        return UNKNOWN
    return tuple(weights.row_block(row, row + 1)._replace(is_row=True) for row in range(weights.height))


@_rule("Reshape")
def _reshape(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    weights, shape = body.weights(inputs[0]), inputs[1]
    if weights is None or not isinstance(shape, Integers) or shape.value.shape != (1,) or weights.height != 1:
        return UNKNOWN
    return (_as_vector(weights),) if shape.value[0] in (-1, weights.width) else UNKNOWN


@_rule("TensorListGetItem")
def _get_item(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    handle, step, shape = inputs
    if not isinstance(handle, Invariant) or not isinstance(step, Counter) or not isinstance(shape, Integers):
        return UNKNOWN
    if not fits_shape(shape.value, body.item_shape(handle.index)):
        return UNKNOWN
    if entry.attrs["element_dtype"].name == "bool":
        return (Mask(handle.index, 1),)
    return (body.item(handle.index),)


@_rule("TensorListSetItem")
def _set_item(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    handle, step, element = inputs
    is_first = isinstance(step, Integers) and step.value.ndim == 0 and int(step.value) == 0
    if not isinstance(handle, OutputList) or not isinstance(element, Matrix | Selected):
        return UNKNOWN
    return (WrittenList(handle.index, not is_first, element),) if is_first or isinstance(step, Counter) else UNKNOWN


@_rule("Tile")
def _tile(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    mask, multiples = inputs
    if not isinstance(mask, Mask) or mask.width != 1 or not isinstance(multiples, Integers):
        return UNKNOWN
    counts = multiples.value.tolist()
    return (replace(mask, width=counts[1]),) if len(multiples.value) == 2 and counts[0] == 1 else UNKNOWN


@_rule("SelectV2", "Select")
def _select(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    mask, new, old = inputs
    if not isinstance(mask, Mask) or not isinstance(new, Matrix) or new.is_row:
        return UNKNOWN
    is_zeros = (not old.value if isinstance(old, Scalar) else
                isinstance(old, Source) and not old.is_variable and body.outside.is_zeros(old.tensor))
    if mask.width != new.width and (mask.width != 1 or entry.op.name == "Select"):
        return UNKNOWN
    if is_zeros:
        return (Selected(replace(mask, width=1), new, None),)
    if not isinstance(old, Matrix) or old.is_row or old.width != new.width:
        return UNKNOWN
    return (Selected(replace(mask, width=1), new, old),)


@_rule("Less")
def _less(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    counter, steps = inputs
    if not isinstance(counter, Counter):
        return UNKNOWN
    if isinstance(steps, Integers) and steps.value.ndim == 0:
        return (Condition((Bound(counter.index, int(steps.value)),)),)
    return (Condition((Bound(counter.index, steps.tensor),)),) if isinstance(steps, Invariant) else UNKNOWN


@_rule("LogicalAnd")
def _and(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    bounds = [bound for part in inputs if isinstance(part, Condition) for bound in part.bounds]
    return (Condition(tuple(bounds)),) if all(isinstance(part, Condition) for part in inputs) else UNKNOWN


def fits_shape(stated: np.ndarray[Any, Any], shape: tuple[int | None, ...] | None) -> bool:
    """True where a list's element shape, with -1 for unknown sizes, is sure to be that of tensors of this shape."""
    if stated.ndim != 1 or shape is None:
        return shape is not None and stated.ndim == 0 and stated == -1
    return len(stated) == len(shape) and all(stated_size in (-1, size) for stated_size, size in
                                             zip(stated.tolist(), shape, strict=True))


def _is_axis(value: Value | None, axes: tuple[int, ...]) -> bool:
    return isinstance(value, Integers) and value.value.size == 1 and int(value.value.reshape(())) in axes


def _is_last_axis(value: Value | None, operand: Matrix | Block) -> bool:
    is_vector = operand.is_row if isinstance(operand, Matrix) else operand.is_vector
    return _is_axis(value, (0, -1) if is_vector else (1, -1))

