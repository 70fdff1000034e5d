"""OperatorTable: the ops behind the operators of TensorHandles, which an op set registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..support.records import NamedTuple

Execute = Callable[..., Any]  # heald.execute over the runtime of the operands
Promote = Callable[[str, Sequence[Any], Execute], Sequence[Any]]
Index = Callable[[Any, Any, Execute], Any]

SYMBOLS = ("+", "-", "*", "/", "//", "%", "**", "@", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "neg", "abs", "~")


class OperatorTable(NamedTuple):
    """The operators of an op set.

    `ops`: by symbol, one of SYMBOLS, the op; or by kinds of DType, such as {"b": ..., "iu": ...}, the ops for operands
        of these kinds.
    `promote(symbol, operands, execute)`: returns the operands that the op takes: the promotion rule. One operand at
        least is a TensorHandle. Operands that it returns unchanged are converted as inputs of any op.
    `indexing(handle, key, execute)`: returns `handle[key]`.
    `attrs`: by symbol, attributes of the op.

    The functions may be "package.module:function", which is imported at their first use.
    """

    ops: Mapping[str, str | Mapping[str, str]]
    promote: str | Promote
    indexing: str | Index
    attrs: Mapping[str, Mapping[str, Any]] = {}
