"""Rules of ops on matrices, weights and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from heald.api import Resolved

from .activations import UNARY, UNIT_CLIP
from .body import UNKNOWN, BodyEvaluation, RuleTable, as_vector
from .body_values import (
    Concatenation,
    Counter,
    Integers,
    Invariant,
    Matrix,
    NextCount,
    Scalar,
    Value,
    Values,
)
from .polynomials import Activation, Atom, Block, Clip, Product, Source, add, constant, scale

RULES = RuleTable()
CLIPS: dict[float | None, str] = {None: "Relu", 1.0: UNIT_CLIP, 6.0: "Relu6"}  # from 0 to a bound
MOST_FILLED = 1_000_000  # elements that a short list fills: the array takes memory


@RULES.rule("Const")
def _const(body: BodyEvaluation, entry: Resolved, _: list[Value | None]) -> Values:
    value = entry.attrs["value"]
    if value.is_filled and prod(value.shape) > MOST_FILLED:
        return UNKNOWN
    array = value.array()
    if array.dtype.kind == "f":
        return (Scalar(float(array)),) if array.ndim == 0 else (_equal_elements(body, array),)
    return (Integers(array),) if array.dtype.kind == "i" and array.size <= 16 else UNKNOWN


def _equal_elements(body: BodyEvaluation, array: np.ndarray[Any, Any]) -> Matrix | None:
    """A constant of equal elements, which takes the place of a matrix: dropout's factors are ones at inference."""
    if array.ndim != 2 or not array.size or (array != array[0, 0]).any():
        return None
    body.row_counts.add(array.shape[0])
    return Matrix(constant(float(array[0, 0])), array.shape[1])


@RULES.rule("OnesLike")
def _ones_like(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    operand = inputs[0]
    return (replace(operand, value=constant(1.0)),) if isinstance(operand, Matrix) else UNKNOWN


@RULES.rule("ZerosLike")
def _zeros_like(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    operand = inputs[0]
    return (replace(operand, value=constant(0.0)),) if isinstance(operand, Matrix) else UNKNOWN


@RULES.rule("Identity", "StopGradient", "PreventGradient", "Snapshot")
def _identity(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    return (inputs[0],)


@RULES.rule("ReadVariableOp")
def _read(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    resource = inputs[0]
    return (Source(resource.tensor, is_variable=True),) if isinstance(resource, Invariant) else UNKNOWN


@RULES.rule("MatMul")
def _matmul(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    left = inputs[0]
    if entry.attrs["transpose_a"] or entry.attrs["transpose_b"]:
        return UNKNOWN
    parts = left.parts if isinstance(left, Concatenation) else (left,)
    return (product_with_weights(body, parts, inputs[1]),)


def product_with_weights(body: BodyEvaluation, parts: Sequence[Value | None], value: Value | None) -> Matrix | None:
    """Matrices side by side, times weights."""
    weights = body.weights(value)
    matrices = [part for part in parts if isinstance(part, Matrix) and not part.is_row]
    if weights is None or weights.is_vector or len(matrices) < len(parts):
        return None
    if sum(part.width for part in matrices) != weights.height:
        return None
    total, row = constant(0.0), 0
    for part in matrices:
        product = Product(part.value, weights.row_block(row, row + part.width))
        total, row = add(total, body.algebra.polynomial(product)), row + part.width
    return Matrix(total, weights.width)


@RULES.rule("ConcatV2")
def _concat(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    *parts, axis = inputs
    body.needs_equal_rows = True
    matrices = tuple(part for part in parts if isinstance(part, Matrix) and not part.is_row)
    return (Concatenation(matrices),) if len(matrices) == len(parts) and _is_axis(axis, (1, -1)) else UNKNOWN


@RULES.rule("BiasAdd")
def _add_bias(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    matrix, bias = inputs
    weights = body.weights(bias)
    is_vector = bias.is_row if isinstance(bias, Matrix) else weights is not None and weights.is_vector
    if entry.attrs["data_format"] != "NHWC" or not isinstance(matrix, Matrix) or matrix.is_row or not is_vector:
        return UNKNOWN
    return _combine(body, inputs, add)


@RULES.rule("Add", "AddV2")
def _sum(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    for one, other in (inputs, inputs[::-1]):
        if isinstance(one, Counter) and isinstance(other, Integers):
            return (NextCount(one.index),) if other.value.ndim == 0 and int(other.value) == 1 else UNKNOWN
    return _combine(body, inputs, add)


@RULES.rule("Sub")
def _difference(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    return _combine(body, inputs, lambda a, b: add(a, scale(b, -1.0)))


@RULES.rule("Mul")
def _product(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    return _combine(body, inputs, body.algebra.multiply)


@RULES.rule("RealDiv", "Div")
def _quotient(_: BodyEvaluation, __: Resolved, inputs: list[Value | None]) -> Values:
    left, right = inputs
    if not isinstance(left, Matrix) or not isinstance(right, Scalar) or not right.value:
        return UNKNOWN
    return (replace(left, value=scale(left.value, 1.0 / right.value)),)


@RULES.rule("Neg")
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


@RULES.rule(*UNARY)
def _activation(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    operand = inputs[0]
    if not isinstance(operand, Matrix):
        return UNKNOWN
    return (replace(operand, value=body.activation(entry.op.name, operand.value)),)


@RULES.rule("Maximum")
def _maximum(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    for operand, bound in (inputs, inputs[::-1]):
        if isinstance(operand, Matrix) and isinstance(bound, Scalar):
            return (_clip(body, operand, bound.value, None),)
    return UNKNOWN


@RULES.rule("Minimum")
def _minimum(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    for operand, bound in (inputs, inputs[::-1]):
        if isinstance(operand, Matrix) and isinstance(bound, Scalar):
            return (_clip(body, operand, None, bound.value),)
    return UNKNOWN


@RULES.rule("ClipByValue")
def _clip_by_value(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    operand, low, high = inputs
    if not isinstance(operand, Matrix) or not isinstance(low, Scalar) or not isinstance(high, Scalar):
        return UNKNOWN
    return (_clip(body, operand, low.value, high.value),)


def _clip(body: BodyEvaluation, operand: Matrix, low: float | None, high: float | None) -> Matrix | None:
    """A matrix with bounds. A second op that bounds a bounded matrix on the other side joins the first."""
    argument = operand.value
    inner = body.algebra.only_atom(argument)
    bounds = _bounds(inner)
    is_other_side = bounds is not None and ((low, bounds[1]) == (None, None) or (high, bounds[0]) == (None, None))
    if isinstance(inner, Activation | Clip) and bounds is not None and is_other_side:
        low, high = bounds[0] if low is None else low, bounds[1] if high is None else high
        argument = inner.argument
    if low is not None and high is not None and not low <= high:  # then the order of the ops counts
        return None
    atom = Activation(CLIPS[high], argument) if low == 0.0 and high in CLIPS else Clip(argument, low, high)
    return replace(operand, value=body.algebra.polynomial(atom))


def _bounds(atom: Atom | None) -> tuple[float | None, float | None] | None:
    if isinstance(atom, Clip):
        return atom.low, atom.high
    if isinstance(atom, Activation):
        return next(((0.0, high) for high, op in CLIPS.items() if op == atom.op), None)
    return None


@RULES.rule("Split")
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


@RULES.rule("SplitV")
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


@RULES.rule("StridedSlice")
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


@RULES.rule("Squeeze")
def _squeeze(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    value, axes = inputs[0], entry.attrs["squeeze_dims"]
    operand = value if isinstance(value, Matrix) else body.weights(value)
    if operand is None or axes not in ((0,), (-2,), ()) or (axes == () and operand.width == 1):
        return UNKNOWN
    if isinstance(value, Matrix):
        body.needs_single_row = True
        return UNKNOWN if value.is_row else (replace(value, is_row=True),)
    return (as_vector(operand),) if isinstance(operand, Block) and operand.height == 1 else UNKNOWN


@RULES.rule("Unpack")
def _unpack(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    weights = body.weights(inputs[0])
    if weights is None or weights.is_vector or entry.attrs["axis"] not in (0, -2):
        return UNKNOWN
    if entry.attrs["num"] != weights.height:
        return UNKNOWN
    return tuple(weights.row_block(row, row + 1)._replace(is_row=True) for row in range(weights.height))


@RULES.rule("Reshape")
def _reshape(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    weights, shape = body.weights(inputs[0]), inputs[1]
    if weights is None or not isinstance(shape, Integers) or shape.value.shape != (1,) or weights.height != 1:
        return UNKNOWN
    return (as_vector(weights),) if shape.value[0] in (-1, weights.width) else UNKNOWN


def _is_axis(value: Value | None, axes: tuple[int, ...]) -> bool:
    return isinstance(value, Integers) and value.value.size == 1 and int(value.value.reshape(())) in axes


def _is_last_axis(value: Value | None, operand: Matrix | Block) -> bool:
    is_vector = operand.is_row if isinstance(operand, Matrix) else operand.is_vector
    return _is_axis(value, (0, -1) if is_vector else (1, -1))
