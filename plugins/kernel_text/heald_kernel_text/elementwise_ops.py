"""The table of elementwise ops: the C expression of each op by the class of its type.

In an expression, x, y, z, w are the operands and T is their type in registers. U is the unsigned type in which integers
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
_TRUNCATED_DIV = "y == 0 ? (T)0 : y == (T)-1 ? (T)(0 - (U)x) : (T)(x / y)"
_TRUNCATED_MOD = "y == 0 || y == (T)-1 ? (T)0 : (T)(x % y)"
_UNSIGNED_DIV, _UNSIGNED_MOD = "y == 0 ? (T)0 : (T)(x / y)", "y == 0 ? (T)0 : (T)(x % y)"
_MOD = Row(2, {"f": "fmod(x, y)", "i": _TRUNCATED_MOD, "u": _UNSIGNED_MOD})
_SHIFT = "(u32)(y < 0 ? 0 : y >= (T)(8 * sizeof(T)) ? (T)(8 * sizeof(T) - 1) : y)"
_RECIPROCAL_GRAD = Row(2, {"f": "y == 0 ? y : -x * y * x"})
_SELECT = Row(3, {"fiub": "x ? y : z"}, typed_by=1)

OPS: dict[str, Row] = {
    "Abs": Row(1, {"f": "fabs(x)", "i": "x < 0 ? (T)(0 - (U)x) : x"}),
    "Acos": Row(1, {"f": "acos(x)"}),
    "Acosh": Row(1, {"f": "acosh(x)"}),
    "Add": Row(2, _wrapping("+")),
    "AddV2": Row(2, _wrapping("+")),
    "ApproximateEqual": Row(3, {"f": "fabs(x - y) <= z"}, bool_result=True),
    "Asin": Row(1, {"f": "asin(x)"}),
    "Asinh": Row(1, {"f": "asinh(x)"}),
    "Atan": Row(1, {"f": "atan(x)"}),
    "Atan2": Row(2, {"f": "atan2(x, y)"}),
    "Atanh": Row(1, {"f": "atanh(x)"}),
    "BitwiseAnd": Row(2, {"iu": "(T)(x & y)"}),
    "BitwiseOr": Row(2, {"iu": "(T)(x | y)"}),
    "BitwiseXor": Row(2, {"iu": "(T)(x ^ y)"}),
    "Ceil": Row(1, {"f": "ceil(x)"}),
    "ClipByValue": Row(3, {"fiu": "x < y ? y : x > z ? (z < y ? y : z) : x"}),
    "Cos": Row(1, {"f": "cos(x)"}),
    "Cosh": Row(1, {"f": "cosh(x)"}),
    "Div": Row(2, {"f": "x / y", "i": _TRUNCATED_DIV, "u": _UNSIGNED_DIV}),
    "DivNoNan": Row(2, {"f": "y == 0 ? (T)0 : x / y"}),
    "Elu": Row(1, {"f": "x < 0 ? expm1(x) : x"}),
    "EluGrad": Row(2, {"f": "x * (y < 0 ? y + 1 : (T)1)"}),
    "Equal": _comparison("==", "fiub"),
    "Erf": Row(1, {"f": "erf(x)"}),
    "Erfc": Row(1, {"f": "erfc(x)"}),
    "Exp": Row(1, {"f": "exp(x)"}),
    "Expm1": Row(1, {"f": "expm1(x)"}),
    "Floor": Row(1, {"f": "floor(x)"}),
    "FloorDiv": Row(2, {"f": "floor(x / y)", "i": _FLOOR_DIV, "u": _UNSIGNED_DIV}),
    "FloorMod": Row(2, {"f": "fmod(x, y) + (fmod(x, y) != 0 && (fmod(x, y) < 0) != (y < 0) ? y : (T)0)",
                        "i": _FLOOR_MOD, "u": _UNSIGNED_MOD}),
    "Greater": _comparison(">"),
    "GreaterEqual": _comparison(">="),
    "Identity": Row(1, {"fiub": "x"}),
    "Inv": Row(1, {"f": "(T)1 / x"}),
    "InvGrad": _RECIPROCAL_GRAD,
    "Invert": Row(1, {"iu": "(T)~x"}),
    "IsFinite": Row(1, {"f": "x - x == 0"}, bool_result=True),
    "IsInf": Row(1, {"f": "x == POSITIVE_INFINITY || x == -POSITIVE_INFINITY"}, bool_result=True),
    "IsNan": Row(1, {"f": "x != x"}, bool_result=True),
    "LeakyRelu": Row(2, {"f": "x > 0 ? x : x * y"}),
    "LeakyReluGrad": Row(3, {"f": "y > 0 ? x : x * z"}),
    "LeftShift": Row(2, {"iu": f"(T)((U)x << {_SHIFT})"}),
    "Less": _comparison("<"),
    "LessEqual": _comparison("<="),
    "Log": Row(1, {"f": "log(x)"}),
    "Log1p": Row(1, {"f": "log1p(x)"}),
    "LogicalAnd": Row(2, {"b": "x && y"}),
    "LogicalNot": Row(1, {"b": "!x"}),
    "LogicalOr": Row(2, {"b": "x || y"}),
    "Maximum": Row(2, {"f": "x > y || x != x ? x : y", "iu": "x > y ? x : y"}),
    "Minimum": Row(2, {"f": "x < y || x != x ? x : y", "iu": "x < y ? x : y"}),
    "Mod": _MOD,
    "Mul": Row(2, _wrapping("*")),
    "MulNoNan": Row(2, {"f": "y == 0 ? (T)0 : x * y"}),
    "Neg": Row(1, {"f": "-x", "i": "(T)(0 - (U)x)"}),
    "NotEqual": _comparison("!=", "fiub"),
    "Pow": Row(2, {"f": "pow(x, y)"}),
    "RealDiv": Row(2, {"f": "x / y"}),
    "Reciprocal": Row(1, {"f": "(T)1 / x"}),
    "ReciprocalGrad": _RECIPROCAL_GRAD,
    "Relu": Row(1, {"fi": "x < 0 ? (T)0 : x", "u": "x"}),
    "Relu6": Row(1, {"fi": "x < 0 ? (T)0 : x > 6 ? (T)6 : x", "u": "x > 6 ? (T)6 : x"}),
    "Relu6Grad": Row(2, {"f": "x * (y > 0 && y < 6 ? (T)1 : (T)0)", "iu": "(T)(y > 0 && y < 6 ? x : (T)0)"}),
    "ReluGrad": Row(2, {"f": "x * (y > 0 ? (T)1 : (T)0)", "iu": "(T)(y > 0 ? x : (T)0)"}),
    "RightShift": Row(2, {"iu": f"(T)(x >> {_SHIFT})"}),
    "Rint": Row(1, {"f": "rint(x)"}),
    "Round": Row(1, {"f": "rint(x)"}),
    "Rsqrt": Row(1, {"f": "rsqrt(x)"}),
    "RsqrtGrad": Row(2, {"f": "y == 0 ? y : y * (T)-0.5f * (x * x * x)"}),
    "Select": _SELECT,
    "SelectV2": _SELECT,
    "Selu": Row(3, {"f": "x < 0 ? z * expm1(x) : y * x"}),
    "SeluGrad": Row(4, {"f": "x * (y < 0 ? y + w : z)"}),
    "Sigmoid": Row(1, {"f": "(T)1 / ((T)1 + exp(-x))"}),
    "SigmoidGrad": Row(2, {"f": "y * x * ((T)1 - x)"}),
    "Sign": Row(1, {"f": "x > 0 ? (T)1 : x < 0 ? (T)-1 : x", "i": "(T)((x > 0) - (x < 0))"}),
    "Sin": Row(1, {"f": "sin(x)"}),
    "Sinh": Row(1, {"f": "sinh(x)"}),
    "Softplus": Row(1, {"f": "x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))"}),
    "SoftplusGrad": Row(2, {"f": "x / (exp(-y) + 1)"}),
    "Softsign": Row(1, {"f": "x / (fabs(x) + 1)"}),
    "SoftsignGrad": Row(2, {"f": "x / ((fabs(y) + 1) * (fabs(y) + 1))"}),
    "Sqrt": Row(1, {"f": "sqrt(x)"}),
    "SqrtGrad": Row(2, {"f": "y == 0 ? y : y * (T)0.5f / x"}),
    "Square": Row(1, {"f": "x * x", "iu": "(T)((U)x * (U)x)"}),
    "SquaredDifference": Row(2, {"f": "(x - y) * (x - y)", "iu": "(T)(((U)x - (U)y) * ((U)x - (U)y))"}),
    "Sub": Row(2, _wrapping("-")),
    "Tan": Row(1, {"f": "tan(x)"}),
    "Tanh": Row(1, {"f": "tanh(x)"}),
    "TanhGrad": Row(2, {"f": "y * ((T)1 - x * x)"}),
    "TruncateDiv": Row(2, {"f": "trunc(x / y)", "i": _TRUNCATED_DIV, "u": _UNSIGNED_DIV}),
    "TruncateMod": _MOD,
    "Xdivy": Row(2, {"f": "x == 0 ? (T)0 : x / y"}),
    "Xlog1py": Row(2, {"f": "x == 0 ? (T)0 : x * log1p(y)"}),
    "Xlogy": Row(2, {"f": "x == 0 ? (T)0 : x * log(y)"}),
}

# Operands of a node's step that follow its inputs: an attribute, or a number (Klambauer et al., Self-Normalizing Neural
# Networks, 2017).
_SELU_FACTORS = (1.0507009873554804934193349852946, 1.7580993408473768599402175208123)
MORE_OPERANDS: dict[str, tuple[str | float, ...]] = {
    "ApproximateEqual": ("tolerance",), "LeakyRelu": ("alpha",), "LeakyReluGrad": ("alpha",), "Selu": _SELU_FACTORS,
    "SeluGrad": _SELU_FACTORS,
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
