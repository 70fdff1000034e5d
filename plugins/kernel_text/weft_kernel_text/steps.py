"""Expressions of elementwise ops as a flat list of steps, and the C statements that compute them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.api import DType, dtypes, errors

from .element import ELEMENTS, computed, literal
from .table import CAST, FLOAT_TO_INTEGER, OPS, TO_BOOL


class Literal(NamedTuple):
    """A constant operand, of the type of the step's first operand that is none."""

    value: float


class Step(NamedTuple):
    """One op. Its operands are values by number (the inputs first, then the steps before it) or constants."""

    op: str
    args: tuple[int | Literal, ...]
    dtype: DType | None = None  # of a Cast


def has(op: str, dtype: DType) -> bool:
    """True where the table has this op for this type."""
    return op in OPS and dtype in ELEMENTS and any(dtype.kind in classes for classes in OPS[op].c)


def result_types(steps: Sequence[Step], inputs: Sequence[DType]) -> list[DType]:
    """The types of all values: of the inputs, then of the steps. Raises Unimplemented."""
    types = list(inputs)
    for dtype in types:
        if dtype not in ELEMENTS:
            raise errors.Unimplemented(f"no kernel text for elements of type {dtype.name}")
    for op, args, target in steps:
        if op == "Cast":
            assert target is not None
            types.append(target)
            continue
        dtype = _operand_type(op, args, types)
        if not has(op, dtype):
            raise errors.Unimplemented(f"no kernel text for {op} of {dtype.name}")
        types.append(dtypes.bool_ if OPS[op].bool_result else dtype)
    return types


def _operand_type(op: str, args: tuple[int | Literal, ...], types: Sequence[DType]) -> DType:
    typed_by = OPS[op].typed_by if op in OPS else 0
    return next(types[a] for a in args[typed_by:] if isinstance(a, int))


def statements(steps: Sequence[Step], types: Sequence[DType], first: int, *, vector: bool = False) -> Iterator[str]:
    """Definitions of v<first>, v<first + 1>, ..., the steps' values, from v0 ... of the inputs. `vector`: all values
    are 16 of float32."""
    for number, (this, dtype) in enumerate(zip(steps, types[first:], strict=True), first):
        yield f"const {_register(dtype, vector)} v{number} = {_expression(this, types, dtype, vector)};"


def _register(dtype: DType, vector: bool) -> str:
    return "float16" if vector else computed(dtype)


def _expression(this: Step, types: Sequence[DType], result: DType, vector: bool) -> str:
    dtype = _operand_type(this.op, this.args, types)
    words = {"T": _register(dtype, vector), "U": ELEMENTS[dtype].unsigned, "D": _register(result, vector)}
    for name, arg in zip("xyz", this.args, strict=False):
        words[name] = f"v{arg}" if isinstance(arg, int) else f"({words['T']}){literal(arg.value, dtype)}"
    text = _cast(dtype, result) if this.op == "Cast" else _of_class(this.op, dtype)
    return re.sub(r"\b[TUDxyz]\b", lambda word: words[word[0]], text)


def _of_class(op: str, dtype: DType) -> str:
    return next(text for classes, text in OPS[op].c.items() if dtype.kind in classes)


def _cast(source: DType, target: DType) -> str:
    if target is dtypes.bool_:
        return TO_BOOL
    return FLOAT_TO_INTEGER[target.name] if source.kind == "f" and target.kind in "iu" else CAST
