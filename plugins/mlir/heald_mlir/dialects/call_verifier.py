"""Functions that operations call: existence, the types of the call, and the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heald.api import errors

from .. import attributes as a
from .. import types as t
from ..ir import Operation
from ..lexer import MalformedText
from ..parser import FUNCTION, MODULE
from .declaration import Declaration
from .faults import fault, location_of
from .registry import RETURN, KernelDialects

Types = tuple[str, ...]


def check_callees(operation: Operation, declaration: Declaration, around: Sequence[Operation],
                  dialects: KernelDialects) -> None:
    """Check the functions that an operation names, and its regions. Raises MalformedText."""
    wanted = _wanted(operation, declaration)
    for name in declaration.callees:
        for symbol in _symbols(operation.attributes.get(name)):
            function = _find(symbol, around)
            if function is None:
                raise fault(operation, f"'{symbol.root}' does not reference a valid function")
            of = function.attributes.get("function_type")
            kind = of.type if isinstance(of, a.TypeAttr) else None
            if wanted is not None and isinstance(kind, t.FunctionType):
                _check_type(operation, symbol, kind, wanted)
    for region in operation.regions:
        if not region.blocks:
            continue
        block = region.blocks[0]
        if not block.operations or block.operations[-1].name != RETURN:
            raise fault(operation, f"expected {RETURN} in body")
        given = tuple(str(argument.type) for argument in block.arguments)
        if wanted is not None and given not in [inputs for inputs, _ in wanted]:
            raise fault(operation, f"region arguments have types ({', '.join(given)}), expected "
                                   f"{' or '.join('(' + ', '.join(inputs) + ')' for inputs, _ in wanted)}")


def check_return(operation: Operation, parent: Operation, dialects: KernelDialects) -> None:
    """Check the operands of a return against the function around it, or the operation whose region it ends."""
    given = [operand.type for operand in operation.operands]
    if parent.name == FUNCTION:
        of = parent.attributes.get("function_type")
        results = of.type.results if isinstance(of, a.TypeAttr) and isinstance(of.type, t.FunctionType) else ()
        if len(given) != len(results):
            raise fault(operation, f"has {len(given)} operands, but enclosing function returns {len(results)}")
        for index, (one, other) in enumerate(zip(given, results, strict=True)):
            if one != other:
                raise MalformedText(f"type of return operand {index} ('{one}') doesn't match function result type "
                                    f"('{other}')", location_of(operation))
        return
    declaration = dialects.declaration(parent.name)
    wanted = None if declaration is None else _wanted(parent, declaration)
    if wanted is not None and tuple(map(str, given)) not in [results for _, results in wanted]:
        raise fault(operation, f"operand types don't match '{parent.name}' result")


def _wanted(operation: Operation, declaration: Declaration) -> list[tuple[Types, Types]] | None:
    """The types that the functions of an operation may have; None where any will do."""
    if declaration.calls is None:
        return None
    operands = tuple(str(operand.type) for operand in operation.operands)
    try:
        return list(declaration.calls(operands, tuple(str(result.type) for result in operation.results)))
    except errors.InvalidArgument as error:
        raise fault(operation, error.message) from error


def _check_type(operation: Operation, symbol: a.SymbolRefAttr, of: t.FunctionType, wanted: list[tuple[Types, Types]],
                ) -> None:
    inputs, results = tuple(map(str, of.inputs)), tuple(map(str, of.results))
    if (inputs, results) in wanted:
        return
    given_inputs, given_results = wanted[0]
    for kind, one, other in (("operand", inputs, given_inputs), ("result", results, given_results)):
        if len(one) != len(other):
            raise fault(operation, f"incorrect number of {kind}s for callee")
        for index, (expected, given) in enumerate(zip(one, other, strict=True)):
            if expected != given:
                where = f"for operand number {index}" if kind == "operand" else f"for result number {index}"
                raise fault(operation, f"{kind} type mismatch: expected {kind} type '{expected}', but provided "
                                       f"'{given}' {where}")


def _symbols(value: a.Attribute | None) -> Iterator[a.SymbolRefAttr]:
    for each in value.items if isinstance(value, a.ArrayAttr) else (value,):
        if isinstance(each, a.SymbolRefAttr):
            yield each


def _find(symbol: a.SymbolRefAttr, around: Sequence[Operation]) -> Operation | None:
    """The function of a symbol, in the nearest module that has it."""
    for module in reversed(around):
        if module.name == MODULE:
            found: Operation | None = module
            for name in (symbol.root, *symbol.nested):
                found = None if found is None else _named(found, name)
            if found is not None:
                return found if found.name == FUNCTION else None
    return None


def _named(module: Operation, name: str) -> Operation | None:
    for region in module.regions:
        for block in region.blocks:
            for operation in block.operations:
                own = operation.attributes.get("sym_name")
                if isinstance(own, a.StringAttr) and own.value == name:
                    return operation
    return None
