"""The operators of a TensorHandle: a table of the op set has their ops, and the rule that promotes operands."""

from __future__ import annotations

from typing import Any

from heald.api import OperatorTable
from heald.errors import HealdError, NotFound, Unimplemented
from heald.runtime.contract import OP_SET_PLUGIN, load_callable
from heald.runtime.support import install

from .execute import DEFAULT_TABLE, op_function
from .handle_state import Failed, HandleOwner


def operate(symbol: str, operands: tuple[Any, ...], _attrs: object = None) -> Any:
    """Apply an operator. Raises NotFound without an op set, Unimplemented for operands of a kind that has no op."""
    from .source_line import calling_line

    owner, first = _owner_of(operands)
    memoized = owner.run_memoized(symbol, operands, None)
    if memoized is not None:
        return memoized
    try:
        table = _operator_table(owner)
        promoted = tuple(load_callable(table.promote)(symbol, operands, owner.execute))
        typed = first if any(x is first for x in promoted) else _first_handle(promoted)
        op = _op_of(table, symbol, typed)
        attrs = table.attrs.get(symbol)
        result = owner.execute(op, *promoted, attrs=attrs)
    except HealdError as error:
        raise error.at(location=calling_line()())  # noqa: B904 - the same error, with its place
    if all(x is y for x, y in zip(promoted, operands, strict=True)):
        owner.memoize_operator(symbol, op, operands, attrs)
    return result


def index(handle: Operators, key: Any) -> Any:
    """`handle[key]` by the op set's rule. Raises as `operate`."""
    from .source_line import calling_line

    owner, _ = _owner_of((handle,))
    try:
        return load_callable(_operator_table(owner).indexing)(handle, key, owner.execute)
    except HealdError as error:
        raise error.at(location=calling_line()())  # noqa: B904 - as above


def _owner_of(operands: tuple[Any, ...]) -> tuple[HandleOwner, Any]:
    """The runtime of the operands, and the first handle among them."""
    first = _first_handle(operands)
    state = first._kind
    if isinstance(state, Failed):
        from .default_runtime import default_runtime

        return default_runtime(), first
    return state.owner, first


def _first_handle(operands: tuple[Any, ...]) -> Any:
    return next(x for x in operands if isinstance(x, Operators))


def _operator_table(owner: HandleOwner) -> OperatorTable:
    table = owner.host.registries.operators
    if table is None:
        state = owner.host.registries.missing_plugins.get(OP_SET_PLUGIN)
        hint = install.plugin_hint(OP_SET_PLUGIN) if state is None else f"plugin {OP_SET_PLUGIN} is {state}"
        raise NotFound("no op set with operators is in use", hint=hint)
    return table


def _op_of(table: OperatorTable, symbol: str, handle: Any) -> str:
    ops = table.ops.get(symbol)
    if ops is None or isinstance(ops, str):
        if ops is None:
            raise Unimplemented(f"the op set has no operator '{symbol}'")
        return ops
    if isinstance(handle._kind, Failed):
        return next(iter(ops.values()))
    kind = handle.dtype.kind
    op = next((op for kinds, op in ops.items() if kind in kinds), None)
    if op is None:
        raise Unimplemented(f"the operator '{symbol}' is not defined for {handle.dtype.name}")
    return op


def _function(symbol: str, count: int = 2) -> Any:
    return op_function(DEFAULT_TABLE, operate, symbol, count)


class Operators:
    """The operators of TensorHandles, as the op set in use defines them."""

    __slots__ = ()
    __array_priority__ = 100  # an array on the left leaves the operator to the handle

    __add__, __sub__, __mul__, __truediv__ = map(_function, ("+", "-", "*", "/"))
    __floordiv__, __mod__, __pow__, __matmul__ = map(_function, ("//", "%", "**", "@"))
    __lt__, __le__, __gt__, __ge__ = map(_function, ("<", "<=", ">", ">="))
    __and__, __or__, __xor__ = map(_function, ("&", "|", "^"))
    __neg__, __abs__, __invert__ = (_function(symbol, 1) for symbol in ("neg", "abs", "~"))
    __hash__ = None  # type: ignore[assignment] # handles are equal element by element

    def __radd__(self, other: Any) -> Any:
        return operate("+", (other, self))

    def __rsub__(self, other: Any) -> Any:
        return operate("-", (other, self))

    def __rmul__(self, other: Any) -> Any:
        return operate("*", (other, self))

    def __rtruediv__(self, other: Any) -> Any:
        return operate("/", (other, self))

    def __rfloordiv__(self, other: Any) -> Any:
        return operate("//", (other, self))

    def __rmod__(self, other: Any) -> Any:
        return operate("%", (other, self))

    def __rpow__(self, other: Any) -> Any:
        return operate("**", (other, self))

    def __rmatmul__(self, other: Any) -> Any:
        return operate("@", (other, self))

    def __rand__(self, other: Any) -> Any:
        return operate("&", (other, self))

    def __ror__(self, other: Any) -> Any:
        return operate("|", (other, self))

    def __rxor__(self, other: Any) -> Any:
        return operate("^", (other, self))

    def __eq__(self, other: object) -> Any:
        return NotImplemented if other is None else _equal(self, other)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if other is None else _unequal(self, other)

    def __getitem__(self, key: Any) -> Any:
        return index(self, key)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))  # type: ignore[arg-type]


_equal, _unequal = _function("=="), _function("!=")
