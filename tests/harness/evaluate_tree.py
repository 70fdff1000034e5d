"""A reader of trees that evaluates them with NumPy: an example of a dialect in few lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType
from heald_kernel_text.tree import Number, Tree, fold

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
         "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64, "size_t": np.uint64}
FUNCTIONS: Mapping[str, Any] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh,
    "erf": np.vectorize(math.erf, "f"), "erfc": np.vectorize(math.erfc, "f"), "exp": np.exp, "expm1": np.expm1,
    "fabs": np.abs, "floor": np.floor, "fmod": np.fmod, "log": np.log, "log1p": np.log1p, "pow": np.power,
    "rint": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh,
    "sizeof": lambda kind: np.dtype(kind).itemsize, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
}


def _divide(x: Any, y: Any) -> Any:
    """The quotient; of integers without its fraction."""
    return np.true_divide(x, y) if np.asarray(x).dtype.kind == "f" else (x - np.fmod(x, y)) // y


OPERATIONS: Mapping[str, Any] = {
    "||": np.logical_or, "&&": np.logical_and, "|": np.bitwise_or, "^": np.bitwise_xor, "&": np.bitwise_and,
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "<<": np.left_shift, ">>": np.right_shift, "+": np.add, "-": np.subtract, "*": np.multiply, "%": np.fmod,
    "/": _divide,
}


class Evaluation(NamedTuple):
    """`values`: operands and types by their words. `buffers`: the arrays that a tree loads from."""

    values: Mapping[str, Any]
    buffers: Mapping[str, Any] = {}

    def word(self, name: str) -> Any:
        return np.float32(np.inf) if name == "POSITIVE_INFINITY" else self.values[name]

    def number(self, number: Number) -> Any:
        return number.value

    def prefix(self, operator: str, operand: Any) -> Any:
        return {"-": np.negative, "~": np.invert, "!": np.logical_not}[operator](operand)

    def operation(self, operator: str, left: Any, right: Any) -> Any:
        return OPERATIONS[operator](*(np.add(x, 0) if np.asarray(x).dtype == bool else x for x in (left, right)))

    def choice(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        return np.where(condition, chosen, otherwise)

    def conversion(self, type_name: str, operand: Any) -> Any:
        return np.asarray(operand).astype(self.values.get(type_name) or TYPES[type_name])

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        return FUNCTIONS[function](*arguments)

    def element(self, array: Any, index: Any) -> Any:
        return array[index]

    def load(self, dtype: DType, buffer: str, index: Any) -> Any:
        return self.buffers[buffer][index]

    def group(self, operand: Any) -> Any:
        return operand


def evaluate(tree: Tree, values: Mapping[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        return fold(tree, Evaluation(values))
