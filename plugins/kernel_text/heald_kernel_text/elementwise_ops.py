"""The table of elementwise ops: the tree of each op by the class of its type.

In a tree, x, y, z, w are the operands and T is their type in registers. U is the unsigned type in which integers wrap
around. Choices replace fmax and fmin: they are faster on CPUs, and propagate NaN as TensorFlow does. Classes of types:
f float, i signed, u unsigned, b bool.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .tree import (
    I32,
    I64,
    U32,
    U64,
    D,
    Group,
    Number,
    Operand,
    T,
    Tree,
    U,
    Word,
    both,
    choose,
    either,
    function,
    negation,
)


class Row(NamedTuple):
    """One op. `trees`: its tree by classes of types; `bool_result`: the result is bool instead of the type T."""

    arity: int
    trees: Mapping[str, Tree]
    bool_result: bool = False
    typed_by: int = 0  # index of the operand that determines T


x, y, z, w = map(Word, "xyzw")
INFINITY = Word("POSITIVE_INFINITY")
exp, expm1, fabs, floor, fmod, log, log1p, trunc = map(
    function, ("exp", "expm1", "fabs", "floor", "fmod", "log", "log1p", "trunc"))


def _function(name: str, arity: int = 1) -> Row:
    return Row(arity, {"f": function(name)(*(x, y)[:arity])})


def _wrapping(act: Callable[[Tree, Tree], Tree]) -> Row:
    return Row(2, {"f": act(x, y), "iu": T(act(U(x), U(y)))})


def _comparison(compare: Callable[[Tree, Tree], Tree], classes: str = "fiu") -> Row:
    return Row(2, {classes: compare(x, y)}, bool_result=True)


def _unless(zero: Tree, otherwise: Operand) -> Tree:
    return choose(zero == 0, T(0), otherwise)


# Division by zero is an error in TensorFlow and a trap on some CPUs, as is the least integer divided by -1.
_HAS_OTHER_SIGN = both(x % y != 0, (x < 0) != (y < 0))


def _division(quotient: Tree) -> Tree:
    return _unless(y, choose(y == T(-1), T(0 - U(x)), T(quotient)))


def _modulus(rest: Tree) -> Tree:
    return choose(either(y == 0, y == T(-1)), T(0), T(rest))


_TRUNCATED = {"i": _division(x / y), "u": _unless(y, T(x / y))}
_UNSIGNED_MOD = _unless(y, T(x % y))
_FLOATS_HAVE_OTHER_SIGN = both(fmod(x, y) != 0, (fmod(x, y) < 0) != (y < 0))
_MOD = Row(2, {"f": fmod(x, y), "i": _modulus(x % y), "u": _UNSIGNED_MOD})
_BITS = 8 * function("sizeof")(Word("T"))
_SHIFT = U32(choose(y < 0, 0, choose(y >= T(_BITS), T(_BITS - 1), y)))
_RECIPROCAL_GRAD = Row(2, {"f": choose(y == 0, y, -x * y * x)})
_RINT = _function("rint")
_SELECT = Row(3, {"fiub": choose(x, y, z)}, typed_by=1)

OPS: dict[str, Row] = {
    "Abs": Row(1, {"f": fabs(x), "i": choose(x < 0, T(0 - U(x)), x)}),
    "Acos": _function("acos"),
    "Acosh": _function("acosh"),
    "Add": _wrapping(operator.add),
    "AddV2": _wrapping(operator.add),
    "ApproximateEqual": Row(3, {"f": fabs(x - y) <= z}, bool_result=True),
    "Asin": _function("asin"),
    "Asinh": _function("asinh"),
    "Atan": _function("atan"),
    "Atan2": _function("atan2", 2),
    "Atanh": _function("atanh"),
    "BitwiseAnd": Row(2, {"iu": T(x & y)}),
    "BitwiseOr": Row(2, {"iu": T(x | y)}),
    "BitwiseXor": Row(2, {"iu": T(x ^ y)}),
    "Ceil": _function("ceil"),
    "ClipByValue": Row(3, {"fiu": choose(x < y, y, choose(x > z, choose(z < y, y, z), x))}),
    "Cos": _function("cos"),
    "Cosh": _function("cosh"),
    "Div": Row(2, {"f": x / y, **_TRUNCATED}),
    "DivNoNan": Row(2, {"f": _unless(y, x / y)}),
    "Elu": Row(1, {"f": choose(x < 0, expm1(x), x)}),
    "EluGrad": Row(2, {"f": x * choose(y < 0, y + 1, T(1))}),
    "Equal": _comparison(operator.eq, "fiub"),
    "Erf": _function("erf"),
    "Erfc": _function("erfc"),
    "Exp": _function("exp"),
    "Expm1": _function("expm1"),
    "Floor": _function("floor"),
    "FloorDiv": Row(2, {"f": floor(x / y), "i": _division(x / y - _HAS_OTHER_SIGN), "u": _TRUNCATED["u"]}),
    "FloorMod": Row(2, {"f": fmod(x, y) + choose(_FLOATS_HAVE_OTHER_SIGN, y, T(0)),
                        "i": _modulus(x % y + choose(_HAS_OTHER_SIGN, y, 0)), "u": _UNSIGNED_MOD}),
    "Greater": _comparison(operator.gt),
    "GreaterEqual": _comparison(operator.ge),
    "Identity": Row(1, {"fiub": x}),
    "Inv": Row(1, {"f": T(1) / x}),
    "InvGrad": _RECIPROCAL_GRAD,
    "Invert": Row(1, {"iu": T(~x)}),
    "IsFinite": Row(1, {"f": x - x == 0}, bool_result=True),
    "IsInf": Row(1, {"f": either(x == INFINITY, x == -INFINITY)}, bool_result=True),
    "IsNan": Row(1, {"f": x != x}, bool_result=True),
    "LeakyRelu": Row(2, {"f": choose(x > 0, x, x * y)}),
    "LeakyReluGrad": Row(3, {"f": choose(y > 0, x, x * z)}),
    "LeftShift": Row(2, {"iu": T(U(x) << _SHIFT)}),
    "Less": _comparison(operator.lt),
    "LessEqual": _comparison(operator.le),
    "Log": _function("log"),
    "Log1p": _function("log1p"),
    "LogicalAnd": Row(2, {"b": both(x, y)}),
    "LogicalNot": Row(1, {"b": negation(x)}),
    "LogicalOr": Row(2, {"b": either(x, y)}),
    "Maximum": Row(2, {"f": choose(either(x > y, x != x), x, y), "iu": choose(x > y, x, y)}),
    "Minimum": Row(2, {"f": choose(either(x < y, x != x), x, y), "iu": choose(x < y, x, y)}),
    "Mod": _MOD,
    "Mul": _wrapping(operator.mul),
    "MulNoNan": Row(2, {"f": _unless(y, x * y)}),
    "Neg": Row(1, {"f": -x, "i": T(0 - U(x))}),
    "NotEqual": _comparison(operator.ne, "fiub"),
    "Pow": _function("pow", 2),
    "RealDiv": Row(2, {"f": x / y}),
    "Reciprocal": Row(1, {"f": T(1) / x}),
    "ReciprocalGrad": _RECIPROCAL_GRAD,
    "Relu": Row(1, {"fi": choose(x < 0, T(0), x), "u": x}),
    "Relu6": Row(1, {"fi": choose(x < 0, T(0), choose(x > 6, T(6), x)), "u": choose(x > 6, T(6), x)}),
    "Relu6Grad": Row(2, {"f": x * choose(both(y > 0, y < 6), T(1), T(0)),
                         "iu": T(choose(both(y > 0, y < 6), x, T(0)))}),
    "ReluGrad": Row(2, {"f": x * choose(y > 0, T(1), T(0)), "iu": T(choose(y > 0, x, T(0)))}),
    "RightShift": Row(2, {"iu": T(x >> _SHIFT)}),
    "Rint": _RINT,
    "Round": _RINT,
    "Rsqrt": _function("rsqrt"),
    "RsqrtGrad": Row(2, {"f": choose(y == 0, y, y * T(Number(-0.5, "f")) * (x * x * x))}),
    "Select": _SELECT,
    "SelectV2": _SELECT,
    "Selu": Row(3, {"f": choose(x < 0, z * expm1(x), y * x)}),
    "SeluGrad": Row(4, {"f": x * choose(y < 0, y + w, z)}),
    "Sigmoid": Row(1, {"f": T(1) / (T(1) + exp(-x))}),
    "SigmoidGrad": Row(2, {"f": y * x * (T(1) - x)}),
    "Sign": Row(1, {"f": choose(x > 0, T(1), choose(x < 0, T(-1), x)), "i": T((x > 0) - (x < 0))}),
    "Sin": _function("sin"),
    "Sinh": _function("sinh"),
    "Softplus": Row(1, {"f": choose(x > 0, x + log1p(exp(-x)), log1p(exp(x)))}),
    "SoftplusGrad": Row(2, {"f": x / (exp(-y) + 1)}),
    "Softsign": Row(1, {"f": x / (fabs(x) + 1)}),
    "SoftsignGrad": Row(2, {"f": x / ((fabs(y) + 1) * (fabs(y) + 1))}),
    "Sqrt": _function("sqrt"),
    "SqrtGrad": Row(2, {"f": choose(y == 0, y, y * T(Number(0.5, "f")) / x)}),
    "Square": Row(1, {"f": x * x, "iu": T(U(x) * U(x))}),
    "SquaredDifference": Row(2, {"f": (x - y) * (x - y), "iu": T((U(x) - U(y)) * (U(x) - U(y)))}),
    "Sub": _wrapping(operator.sub),
    "Tan": _function("tan"),
    "Tanh": _function("tanh"),
    "TanhGrad": Row(2, {"f": y * (T(1) - x * x)}),
    "TruncateDiv": Row(2, {"f": trunc(x / y), **_TRUNCATED}),
    "TruncateMod": _MOD,
    "Xdivy": Row(2, {"f": _unless(x, x / y)}),
    "Xlog1py": Row(2, {"f": _unless(x, x * log1p(y))}),
    "Xlogy": Row(2, {"f": _unless(x, x * log(y))}),
}

# Operands of a node's step that follow its inputs: an attribute, or a number (Klambauer et al., Self-Normalizing Neural
# Networks, 2017).
_SELU_FACTORS = (1.0507009873554804934193349852946, 1.7580993408473768599402175208123)
MORE_OPERANDS: dict[str, tuple[str | float, ...]] = {
    "ApproximateEqual": ("tolerance",), "LeakyRelu": ("alpha",), "LeakyReluGrad": ("alpha",), "Selu": _SELU_FACTORS,
    "SeluGrad": _SELU_FACTORS,
}

# Casts by target; D is the target type. On every device a float beyond the integer's range becomes x86's result.
_TWO_63 = T(1 << 63)
_TO_I32 = Group(choose(both(x >= T(-(1 << 31)), x < T(1 << 31)), I32(x), I32(Number(1, "u") << 31)))
_TO_I64 = Group(choose(both(x >= -_TWO_63, x < _TWO_63), I64(x), I64(U64(1) << 63)))
_ABOVE = U64(choose(x < T(2) * _TWO_63, I64(x - _TWO_63), 0))
FLOAT_TO_INTEGER: dict[str, Tree] = {
    "int8": D(_TO_I32), "int16": D(_TO_I32), "int32": _TO_I32, "int64": _TO_I64,
    "uint8": D(_TO_I32), "uint16": D(_TO_I32), "uint32": D(_TO_I64),
    "uint64": Group(choose(x >= _TWO_63, U64(1) << 63 | _ABOVE, U64(_TO_I64))),
}
TO_BOOL, BOOL_TO_BOOL = x != 0, x != T(0)  # a dialect's bools need not be numbers
CAST = D(x)
