"""The table of elementwise ops: the C expression of each op by the class of its type.

In an expression, x, y, z are the operands and T is their type in registers. U is the unsigned type in which integers
wrap around. Ternaries replace fmax and fmin: they are faster on CPUs, and propagate NaN as TensorFlow does. Classes of
types: f float, i signed, u unsigned, b bool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """One op. `c`: its expression by classes of types; `bool_result`: the result is bool instead of the type T."""

    arity: int
    c: Mapping[str, str]
    bool_result: bool = False
    typed_by: int = 0  # index of the operand that determines T


def _wrapping(operator: str) -> dict[str, str]:
    return {"f": f"x {operator} y", "iu": f"(T)((U)x {operator} (U)y)"}


def _comparison(operator: str, classes: str = "fiu") -> Row:
    return Row(2, {classes: f"x {operator} y"}, bool_result=True)


# Division by zero is an error in TensorFlow and a trap on some CPUs, as is the least integer divided by -1.
_FLOOR_DIV = "y == 0 ? (T)0 : y == (T)-1 ? (T)(0 - (U)x) : (T)(x / y - (x % y != 0 && (x < 0) != (y < 0)))"
_FLOOR_MOD = "y == 0 || y == (T)-1 ? (T)0 : (T)(x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0))"
_SELECT = Row(3, {"fiub": "x ? y : z"}, typed_by=1)

OPS: dict[str, Row] = {
    "Abs": Row(1, {"f": "fabs(x)", "i": "x < 0 ? (T)(0 - (U)x) : x"}),
    "Acos": Row(1, {"f": "acos(x)"}),
    "Acosh": Row(1, {"f": "acosh(x)"}),
    "Add": Row(2, _wrapping("+")),
    "AddV2": Row(2, _wrapping("+")),
    "Asin": Row(1, {"f": "asin(x)"}),
    "Asinh": Row(1, {"f": "asinh(x)"}),
    "Atan": Row(1, {"f": "atan(x)"}),
    "Atan2": Row(2, {"f": "atan2(x, y)"}),
    "Atanh": Row(1, {"f": "atanh(x)"}),
    "Ceil": Row(1, {"f": "ceil(x)"}),
    "Cos": Row(1, {"f": "cos(x)"}),
    "Cosh": Row(1, {"f": "cosh(x)"}),
    "Elu": Row(1, {"f": "x < 0 ? expm1(x) : x"}),
    "Equal": _comparison("==", "fiub"),
    "Erf": Row(1, {"f": "erf(x)"}),
    "Exp": Row(1, {"f": "exp(x)"}),
    "Expm1": Row(1, {"f": "expm1(x)"}),
    "Floor": Row(1, {"f": "floor(x)"}),
    "FloorDiv": Row(2, {"f": "floor(x / y)", "i": _FLOOR_DIV, "u": "y == 0 ? (T)0 : (T)(x / y)"}),
    "FloorMod": Row(2, {"f": "fmod(x, y) + (fmod(x, y) != 0 && (fmod(x, y) < 0) != (y < 0) ? y : (T)0)",
                        "i": _FLOOR_MOD, "u": "y == 0 ? (T)0 : (T)(x % y)"}),
    "Greater": _comparison(">"),
    "GreaterEqual": _comparison(">="),
    "Identity": Row(1, {"fiub": "x"}),
    "Inv": Row(1, {"f": "(T)1 / x"}),
    "Less": _comparison("<"),
    "LessEqual": _comparison("<="),
    "Log": Row(1, {"f": "log(x)"}),
    "Log1p": Row(1, {"f": "log1p(x)"}),
    "LogicalAnd": Row(2, {"b": "x && y"}),
    "LogicalNot": Row(1, {"b": "!x"}),
    "LogicalOr": Row(2, {"b": "x || y"}),
    "Maximum": Row(2, {"f": "x > y || x != x ? x : y", "iu": "x > y ? x : y"}),
    "Minimum": Row(2, {"f": "x < y || x != x ? x : y", "iu": "x < y ? x : y"}),
    "Mul": Row(2, _wrapping("*")),
    "Neg": Row(1, {"f": "-x", "i": "(T)(0 - (U)x)"}),
    "NotEqual": _comparison("!=", "fiub"),
    "Pow": Row(2, {"f": "pow(x, y)"}),
    "RealDiv": Row(2, {"f": "x / y"}),
    "Reciprocal": Row(1, {"f": "(T)1 / x"}),
    "Relu": Row(1, {"fi": "x < 0 ? (T)0 : x", "u": "x"}),
    "Relu6": Row(1, {"fi": "x < 0 ? (T)0 : x > 6 ? (T)6 : x", "u": "x > 6 ? (T)6 : x"}),
    "Rint": Row(1, {"f": "rint(x)"}),
    "Round": Row(1, {"f": "rint(x)"}),
    "Rsqrt": Row(1, {"f": "rsqrt(x)"}),
    "Select": _SELECT,
    "SelectV2": _SELECT,
    "Sigmoid": Row(1, {"f": "(T)1 / ((T)1 + exp(-x))"}),
    "Sign": Row(1, {"f": "x > 0 ? (T)1 : x < 0 ? (T)-1 : x", "i": "(T)((x > 0) - (x < 0))"}),
    "Sin": Row(1, {"f": "sin(x)"}),
    "Sinh": Row(1, {"f": "sinh(x)"}),
    "Softplus": Row(1, {"f": "x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))"}),
    "Sqrt": Row(1, {"f": "sqrt(x)"}),
    "Square": Row(1, {"f": "x * x", "iu": "(T)((U)x * (U)x)"}),
    "SquaredDifference": Row(2, {"f": "(x - y) * (x - y)", "iu": "(T)(((U)x - (U)y) * ((U)x - (U)y))"}),
    "Sub": Row(2, _wrapping("-")),
    "Tan": Row(1, {"f": "tan(x)"}),
    "Tanh": Row(1, {"f": "tanh(x)"}),
}

# Casts by target; D is the target type. On every device a float beyond the integer's range becomes x86's result.
_TO_I32 = "(x >= (T)-2147483648 && x < (T)2147483648 ? (i32)x : (i32)(1u << 31))"
_TWO_63 = "(T)9223372036854775808"
_TO_I64 = f"(x >= -{_TWO_63} && x < {_TWO_63} ? (i64)x : (i64)((u64)1 << 63))"
_ABOVE = f"(u64)(x < (T)2 * {_TWO_63} ? (i64)(x - {_TWO_63}) : 0)"
FLOAT_TO_INTEGER: dict[str, str] = {
    "int8": f"(D){_TO_I32}", "int16": f"(D){_TO_I32}", "int32": _TO_I32, "int64": _TO_I64,
    "uint8": f"(D){_TO_I32}", "uint16": f"(D){_TO_I32}", "uint32": f"(D){_TO_I64}",
    "uint64": f"(x >= {_TWO_63} ? (u64)1 << 63 | {_ABOVE} : (u64){_TO_I64})",
}
TO_BOOL = "x != 0"
CAST = "(D)x"
