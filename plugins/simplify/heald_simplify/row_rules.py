"""Row rules: an op on one row of a tensor becomes an op on all rows at once.

A rule is right for rows of a static shape, where the op is a function of its operands that never fails. A fallible op
fails for all rows where it fails for one of them. An op without a rule, or with an operand that its rule does not take,
has no form for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import Input, Node, Resolved, constant, dtypes, placed_like

from .graph_view import GraphView

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]


class Operand(NamedTuple):
    """An operand of a row's node.

    `tensor`: the tensor of all rows or, if `has_rows` is False, the one tensor of every row.
    `shape`: the shape of one row's operand.
    `value`: the elements, where they are known and the same for every row.
    """

    tensor: Input
    shape: Dims
    has_rows: bool
    value: Array | None = None


class RowWriter:
    """Makes the nodes of all rows, placed like the node `like`. `count`: the number of rows, None if it is unknown."""

    def __init__(self, view: GraphView, like: Node, count: int | None) -> None:
        self._view = view
        self._like = like
        self.count = count
        self.nodes: list[Node] = []

    def node(self, name: str, op: str, inputs: Sequence[Input], **attrs: Any) -> Input:
        return self._add(Node(self._view.new_name(name), op, inputs, attrs=attrs))

    def constant(self, name: str, array: Array) -> Input:
        return self._add(constant(self._view.new_name(name), array))

    def reshape_rows(self, name: str, tensor: Input, shape: Dims, dtype: Any) -> Input | None:
        """The rows of a tensor in another shape. None for rows without elements: their number would be lost."""
        if 0 in shape:
            return None
        sizes = self.constant(f"{name}/shape", np.array([-1 if self.count is None else self.count, *shape], np.int32))
        return self.node(name, "Reshape", [tensor, sizes], T=dtype, Tshape=dtypes.int32)

    def _add(self, node: Node) -> Input:
        self.nodes.append(placed_like(node, self._like))
        return Input(node.name)


class RowNode(NamedTuple):
    """A node of one row, with the name of the node of all rows, and the shape of one row's result."""

    node: Node
    entry: Resolved
    name: str
    shape: Dims


Rule = Callable[[RowWriter, RowNode, Sequence[Operand]], "Input | None"]

UNARY = frozenset({
    "Abs", "Acos", "Acosh", "AsString", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Cos", "Cosh", "Digamma",
    "Elu", "EncodeBase64", "Erf", "Erfc", "Exp", "Expm1", "Floor", "Identity", "Invert", "IsFinite", "IsInf", "IsNan",
    "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot", "Neg", "OnesLike", "Reciprocal", "Relu", "Relu6", "Rint",
    "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Square",
    "StaticRegexFullMatch", "StaticRegexReplace", "StopGradient", "StringLength", "StringLower", "StringStrip",
    "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "StringUpper", "Tan", "Tanh",
    "ZerosLike"})
BROADCASTING = frozenset({
    "Add", "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterEqual", "Less",
    "LessEqual", "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mul", "MulNoNan", "NotEqual", "RealDiv", "SelectV2",
    "SquaredDifference", "Sub"})
OF_FLOATS = frozenset({"Div", "DivNoNan", "FloorDiv", "FloorMod", "Mod", "Pow"})  # of integers they may fail
REDUCTIONS = frozenset({"All", "Any", "Max", "Mean", "Min", "Prod", "Sum"})
RESHAPES = frozenset({"ExpandDims", "Reshape", "Squeeze"})
FALLIBLE = frozenset({"DecodeBase64", "RegexFullMatch", "RegexReplace", "StringToNumber", "Substr"})
OF_LAST_AXIS = frozenset({"LogSoftmax", "Softmax"})
FLOATS = (dtypes.float32, dtypes.float64)


def rule_of(node: Node, entry: Resolved) -> Rule | None:
    """The rule of a node's op for the types of the node."""
    if node.op in UNARY:
        return _unary
    if node.op in BROADCASTING or (node.op in OF_FLOATS and entry.attrs["T"] in FLOATS):
        return _broadcasting
    return RULES.get(node.op)


def _unary(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    return _same_op(writer, row, [operands[0].tensor])


def _same_op(writer: RowWriter, row: RowNode, inputs: Sequence[Input], **attrs: Any) -> Input:
    return writer.node(row.name, row.node.op, inputs, **{**row.node.attrs, **attrs})


def _broadcasting(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """Rows of lower rank get leading axes of length 1. So the axes of all operands meet."""
    inputs: list[Input] = []
    types = [tensor.dtype for tensor in row.entry.input_tensors]
    for number, (operand, dtype) in enumerate(zip(operands, types, strict=True)):
        tensor: Input | None = operand.tensor
        missing = len(row.shape) - len(operand.shape)
        if missing < 0:  # Equal of shapes that do not fit is one False
            return None
        if operand.has_rows and missing:
            tensor = writer.reshape_rows(f"{row.name}/{number}", operand.tensor, (1,) * missing + operand.shape, dtype)
        if tensor is None:
            return None
        inputs.append(tensor)
    return _same_op(writer, row, inputs)


def _reduction(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    operand, axes = operands
    if axes.value is None or axes.has_rows:
        return None
    shifted = np.array([_axis(axis, len(operand.shape)) + 1 for axis in axes.value.reshape(-1)], np.int32)
    axes_of_rows = writer.constant(f"{row.name}/axes", shifted)
    return _same_op(writer, row, [operand.tensor, axes_of_rows], Tidx=dtypes.int32)


def _axis(axis: Any, rank: int) -> int:
    return int(axis) % rank


def _place_of_extreme(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    operand, axis = operands
    if axis.value is None or axis.has_rows or 0 in operand.shape:
        return None
    shifted = np.array(_axis(axis.value.reshape(()), len(operand.shape)) + 1, np.int32)
    return _same_op(writer, row, [operand.tensor, writer.constant(f"{row.name}/axis", shifted)], Tidx=dtypes.int32)


def _reshape(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    if any(operand.has_rows for operand in operands[1:]):
        return None
    return writer.reshape_rows(row.name, operands[0].tensor, row.shape, row.entry.attrs["T"])


def _of_last_axis(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    return _same_op(writer, row, [operands[0].tensor]) if operands[0].shape else None


def _bias(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    value, bias = operands
    if bias.has_rows or row.entry.attrs["data_format"] != "NHWC":
        return None
    return _same_op(writer, row, [value.tensor, bias.tensor])


def _product(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """One product of all rows with the same matrix."""
    left, right = operands
    attrs = row.entry.attrs
    if not left.has_rows or right.has_rows or attrs["transpose_a"] or 0 in left.shape or 0 in row.shape:
        return None
    height, width = left.shape
    total = -1 if writer.count is None else writer.count * height
    sizes = writer.constant(f"{row.name}/rows/shape", np.array([total, width], np.int32))
    rows = writer.node(f"{row.name}/rows", "Reshape", [left.tensor, sizes], T=attrs["T"], Tshape=dtypes.int32)
    product = _same_op(writer, row, [rows, right.tensor])
    return writer.reshape_rows(f"{row.name}/by_row", product, row.shape, attrs["T"])


def _product_of_rows(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """A product where each row has a right matrix of its own."""
    left, right = operands
    if not right.has_rows:
        return _product(writer, row, operands)
    attrs = row.entry.attrs
    return writer.node(row.name, "BatchMatMulV2", [left.tensor, right.tensor], T=attrs["T"],
                       adj_x=attrs["transpose_a"], adj_y=attrs["transpose_b"])


def _of_texts(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """Texts in rows, and operands that are the same for all: patterns, positions of scalars."""
    if not operands[0].has_rows or any(operand.has_rows or operand.shape for operand in operands[1:]):
        return None
    return _same_op(writer, row, [operand.tensor for operand in operands])


def _joined_texts(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """Texts of one shape in all rows, and single texts that are the same for all."""
    if any(operand.shape != row.shape if operand.has_rows else operand.shape for operand in operands):
        return None
    return _same_op(writer, row, [operand.tensor for operand in operands])


def _strided_slice(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """A slice with an axis of whole rows before its own."""
    operand, *places = operands
    values = [place.value for place in places if not place.has_rows]
    if not operand.has_rows or len(values) != len(places) or any(value is None for value in values):
        return None
    names = ("begin", "end", "strides")
    inputs = [writer.constant(f"{row.name}/{name}", np.concatenate([[first], value]).astype(np.int64))
              for name, first, value in zip(names, (0, 0, 1), values, strict=True) if value is not None]
    masks = {f"{name}_mask": row.entry.attrs[f"{name}_mask"] << 1 | (name in names)
             for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    return _same_op(writer, row, [operand.tensor, *inputs], Index=dtypes.int64, **masks)


def _along_axis(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    """Pack: tensors of each row are stacked along an axis of the row."""
    axis = row.entry.attrs["axis"]
    if not all(operand.has_rows for operand in operands):
        return None
    return _same_op(writer, row, [operand.tensor for operand in operands], axis=axis + (axis >= 0))


def _with_axes(lead: Sequence[int] | None, attr: str = "Tidx") -> Rule:
    """The rule of an op with an operand of known axes, or of a known number for each axis.

    `lead`: the numbers of the axis of rows; None for an operand that names axes. `attr`: the attribute of its type.
    """

    def rule(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
        *tensors, known = operands
        rank = len(tensors[0].shape)
        if known.value is None or known.has_rows or not all(tensor.has_rows for tensor in tensors):
            return None
        if lead is None:
            numbers = np.array([_axis(axis, rank) + 1 for axis in known.value.reshape(-1)]).reshape(known.shape)
        else:
            numbers = np.concatenate([np.reshape(lead, (1, *known.shape[1:])), known.value])
        moved = writer.constant(f"{row.name}/axes", numbers.astype(np.int32))
        return _same_op(writer, row, [*(tensor.tensor for tensor in tensors), moved], **{attr: dtypes.int32})

    return rule


def _transpose(writer: RowWriter, row: RowNode, operands: Sequence[Operand]) -> Input | None:
    operand, axes = operands
    if axes.value is None or axes.has_rows:
        return None
    order = np.array([0, *(_axis(axis, len(operand.shape)) + 1 for axis in axes.value)], np.int32)
    return _same_op(writer, row, [operand.tensor, writer.constant(f"{row.name}/order", order)], Tperm=dtypes.int32)


RULES: dict[str, Rule] = {
    **dict.fromkeys(REDUCTIONS, _reduction), **dict.fromkeys(RESHAPES, _reshape),
    **dict.fromkeys(OF_LAST_AXIS, _of_last_axis), "ArgMax": _place_of_extreme, "ArgMin": _place_of_extreme,
    **dict.fromkeys(FALLIBLE, _of_texts), "BiasAdd": _bias, "ConcatV2": _with_axes(None),
    "Cumprod": _with_axes(None), "Cumsum": _with_axes(None), "MatMul": _product_of_rows, "Pack": _along_axis,
    "Pad": _with_axes((0, 0), attr="Tpaddings"), "ReverseV2": _with_axes(None), "StridedSlice": _strided_slice,
    "StringJoin": _joined_texts, "Tile": _with_axes((1,), attr="Tmultiples"), "Transpose": _transpose,
}
