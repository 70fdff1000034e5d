"""Elementwise expressions as flat lists of steps, and the statements that compute them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import pack, unpack
from typing import NamedTuple

from heald.api import Attrs, DType, dtypes, errors

from .element_types import ELEMENTS, number_tree, register_type
from .elementwise_ops import BOOL_TO_BOOL, CAST, FLOAT_TO_INTEGER, MORE_OPERANDS, OPS, TO_BOOL
from .statements import Define
from .tree import Tree, TypeName, Word, instantiate


class Literal(NamedTuple):
    """A constant operand. It has the type of the step's first operand that is no literal."""

    value: float


class Step(NamedTuple):
    """One op. Its operands are literals, or indices of values: first the inputs, then the earlier steps."""

    op: str
    args: tuple[int | Literal, ...]
    dtype: DType | None = None  # target type of a Cast


def has(op: str, dtype: DType) -> bool:
    """True where the table of elementwise ops has this op for this type."""
    return op in OPS and dtype in ELEMENTS and any(dtype.kind in classes for classes in OPS[op].trees)


def node_step(op: str, attrs: Attrs, count: int) -> Step:
    """The step of a node with `count` inputs. Operands that are attributes, which are float32, or constants are
    literals."""
    more = [Literal(unpack("f", pack("f", attrs[attribute]))[0] if isinstance(attribute, str) else attribute)
            for attribute in MORE_OPERANDS.get(op, ())]
    return Step(op, (*range(count), *more))


def result_types(steps: Sequence[Step], inputs: Sequence[DType]) -> list[DType]:
    """The types of all values: the inputs, then the steps. Raises Unimplemented for types and ops without text."""
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


def statements(steps: Sequence[Step], types: Sequence[DType], first: int, *, vector: bool = False) -> Iterator[Define]:
    """Yield the definitions of v<first>, v<first + 1>, ..., the values of the steps; v0 to v<first - 1> are the inputs.
    With `vector`, each value is a vector of 16 float32."""
    for number, (this, dtype) in enumerate(zip(steps, types[first:], strict=True), first):
        yield Define(_register(dtype, vector), {f"v{number}": _expression(this, types, dtype, vector)})


def _register(dtype: DType, vector: bool) -> str:
    return "float16" if vector else register_type(dtype)


def _expression(this: Step, types: Sequence[DType], result: DType, vector: bool) -> Tree:
    dtype = _operand_type(this.op, this.args, types)
    own = TypeName(_register(dtype, vector))
    operands = {name: Word(f"v{arg}") if isinstance(arg, int) else own(number_tree(arg.value, dtype))
                for name, arg in zip("xyzw", this.args, strict=False)}
    names = {"T": own, "U": ELEMENTS[dtype].unsigned, "D": _register(result, vector)}
    return instantiate(_cast(dtype, result) if this.op == "Cast" else _of_class(this.op, dtype), operands, names)


def _of_class(op: str, dtype: DType) -> Tree:
    return next(tree for classes, tree in OPS[op].trees.items() if dtype.kind in classes)


def _cast(source: DType, target: DType) -> Tree:
    if target is dtypes.bool_:
        return BOOL_TO_BOOL if source is dtypes.bool_ else TO_BOOL
    return FLOAT_TO_INTEGER[target.name] if source.kind == "f" and target.kind in "iu" else CAST
