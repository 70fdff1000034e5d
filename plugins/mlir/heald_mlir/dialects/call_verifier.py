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


def check_callees(operation: Operation, declaration: Declaration, ancestors: Sequence[Operation],
                  dialects: KernelDialects) -> None:
    """Check the functions that an operation names, and its regions. Raises MalformedText."""
    signatures = _callee_signatures(operation, declaration)
    for name in declaration.callees:
        for symbol in _symbols(operation.attributes.get(name)):
            function = _find(symbol, ancestors)
            if function is None:
                raise fault(operation, f"'{symbol.root}' does not reference a valid function")
            of = function.attributes.get("function_type")
            kind = of.type if isinstance(of, a.TypeAttr) else None
            if signatures is not None and isinstance(kind, t.FunctionType):
                _check_type(operation, symbol, kind, signatures)
    for region in operation.regions:
        if not region.blocks:
            continue
        block = region.blocks[0]
        if not block.operations or block.operations[-1].name != RETURN:
            raise fault(operation, f"expected {RETURN} in body")
        argument_types = tuple(str(argument.type) for argument in block.arguments)
        if signatures is not None and argument_types not in [inputs for inputs, _ in signatures]:
            raise fault(operation, f"region arguments have types ({', '.join(argument_types)}), expected "
                                   f"{' or '.join('(' + ', '.join(inputs) + ')' for inputs, _ in signatures)}")


def check_return(operation: Operation, parent: Operation, dialects: KernelDialects) -> None:
    """Check the operands of a return against the function around it, or the operation whose region it ends."""
    operand_types = [operand.type for operand in operation.operands]
    if parent.name == FUNCTION:
        of = parent.attributes.get("function_type")
        results = of.type.results if isinstance(of, a.TypeAttr) and isinstance(of.type, t.FunctionType) else ()
        if len(operand_types) != len(results):
            raise fault(operation, f"has {len(operand_types)} operands, but enclosing function returns {len(results)}")
        for index, (one, other) in enumerate(zip(operand_types, results, strict=True)):
            if one != other:
                raise MalformedText(f"type of return operand {index} ('{one}') doesn't match function result type "
                                    f"('{other}')", location_of(operation))
        return
    declaration = dialects.declaration(parent.name)
    signatures = None if declaration is None else _callee_signatures(parent, declaration)
    if signatures is not None and tuple(map(str, operand_types)) not in [results for _, results in signatures]:
        raise fault(operation, f"operand types don't match '{parent.name}' result")


def _callee_signatures(operation: Operation, declaration: Declaration) -> list[tuple[Types, Types]] | None:
    """The types that the functions of an operation may have; None where any will do."""
    if declaration.calls is None:
        return None
    operands = tuple(str(operand.type) for operand in operation.operands)
    try:
        return list(declaration.calls(operands, tuple(str(result.type) for result in operation.results)))
    except errors.InvalidArgument as error:
        raise fault(operation, error.message) from error


def _check_type(operation: Operation, symbol: a.SymbolRefAttr, of: t.FunctionType,
                signatures: list[tuple[Types, Types]]) -> None:
    inputs, results = tuple(map(str, of.inputs)), tuple(map(str, of.results))
    if (inputs, results) in signatures:
        return
    given_inputs, given_results = signatures[0]
    for kind, one, other in (("operand", inputs, given_inputs), ("result", results, given_results)):
        if len(one) != len(other):
            raise fault(operation, f"incorrect number of {kind}s for callee")
        for index, (expected, provided) in enumerate(zip(one, other, strict=True)):
            if expected != provided:
                where = f"for operand number {index}" if kind == "operand" else f"for result number {index}"
                raise fault(operation, f"{kind} type mismatch: expected {kind} type '{expected}', but provided "
                                       f"'{provided}' {where}")


def _symbols(value: a.Attribute | None) -> Iterator[a.SymbolRefAttr]:
    for symbol in value.items if isinstance(value, a.ArrayAttr) else (value,):
        if isinstance(symbol, a.SymbolRefAttr):
            yield symbol


def _find(symbol: a.SymbolRefAttr, ancestors: Sequence[Operation]) -> Operation | None:
    """The function of a symbol, in the nearest module that has it."""
    for module in reversed(ancestors):
        if module.name == MODULE:
            scope: Operation | None = module
            for name in (symbol.root, *symbol.nested):
                scope = None if scope is None else _operation_named(scope, name)
            if scope is not None:
                return scope if scope.name == FUNCTION else None
    return None


def _operation_named(module: Operation, name: str) -> Operation | None:
    for region in module.regions:
        for block in region.blocks:
            for operation in block.operations:
                symbol_name = operation.attributes.get("sym_name")
                if isinstance(symbol_name, a.StringAttr) and symbol_name.value == name:
                    return operation
    return None
