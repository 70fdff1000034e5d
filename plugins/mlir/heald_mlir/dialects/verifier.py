"""The verifier of host programs: operations against their declarations, and modules, with MLIR's words."""

from __future__ import annotations

from collections.abc import Sequence

from .. import attributes as a
from ..ir import Operation, Region, Value
from ..lexer import MalformedText
from ..parser import FUNCTION
from .call_verifier import check_callees, check_return
from .declaration import Constraint, Declaration, Operand, is_symbol, is_symbols, type_text
from .dominance import check_dominance
from .faults import fault, location_of
from .registry import RETURN, KernelDialects

_COST = "_tfrt_cost"  # of an operation, for stream analysis


def verify(module: Operation, dialects: KernelDialects) -> None:
    """Check a module and all operations in it. Raises MalformedText, with the place of the operation in its source.

    Undeclared operations are checked for dominance alone.
    """
    left: list[tuple[Operation, tuple[Operation, ...]]] = [(module, ())]
    while left:
        operation, ancestors = left.pop()
        declaration = dialects.declaration(operation.name)
        if declaration is not None:
            _check_declared(operation, declaration)
            if declaration.callees:
                check_callees(operation, declaration, ancestors, dialects)
        if operation.name == RETURN and ancestors:
            check_return(operation, ancestors[-1], dialects)
        if _COST in operation.attributes:
            _check_cost(operation)
        for region in operation.regions:
            _check_symbols(region)
        if operation.name == FUNCTION:
            check_dominance(operation)
        inner = (*ancestors, operation)
        left += [(nested, inner) for region in reversed(operation.regions) for block in reversed(region.blocks)
                 for nested in reversed(block.operations)]


def _check_declared(operation: Operation, declaration: Declaration) -> None:
    """Check numbers and types of operands and results, attributes, and regions."""
    operands = _operands(operation, declaration)
    _check_types(operation, "operand", operation.operands, operands)
    results = declaration.results
    if results is not None:
        if len(operation.results) != len(results):
            raise fault(operation, {0: "requires zero results", 1: "requires one result"}.get(
                len(results), f"expected {len(results)} results"))
        _check_types(operation, "result", operation.results, results)
    for attribute in declaration.attributes.values():
        value = operation.attributes.get(attribute.name)
        if value is None:
            if attribute.is_required:
                raise fault(operation, f"requires attribute '{attribute.name}'")
        elif attribute.constraint is not None:
            _check_attribute(operation, attribute.name, value, attribute.constraint)
    _check_functions(operation, declaration)


def _operands(operation: Operation, declaration: Declaration) -> list[Operand]:
    """The declared operand of each operand. Raises MalformedText for another number of them."""
    count, operands = len(operation.operands), list(declaration.operands)
    least = sum(operand.is_required for operand in operands)
    if declaration.variadic is not None:
        if count < least:
            raise fault(operation, f"expected {least} or more operands, but found {count}")
        return operands + [declaration.variadic] * (count - len(operands))
    if not least <= count <= len(operands):
        if least < len(operands):
            raise fault(operation, f"expected {least} to {len(operands)} operands, but found {count}")
        raise fault(operation, {0: "requires zero operands", 1: "requires a single operand"}.get(
            least, f"expected {least} operands, but found {count}"))
    return operands[:count]


def _check_types(operation: Operation, kind: str, values: Sequence[Value], operands: Sequence[Operand]) -> None:
    for index, (value, declared) in enumerate(zip(values, operands, strict=False)):
        if declared.type is not None and value.type != declared.type:
            raise fault(operation, f"{kind} #{index} must be {type_text(declared.type)}, but got '{value.type}'")


def _check_attribute(operation: Operation, name: str, value: a.Attribute, constraint: Constraint) -> None:
    if not constraint.holds(value):
        raise fault(operation, constraint.fault or
                    f"attribute '{name}' failed to satisfy constraint: {constraint.text}")


def _check_functions(operation: Operation, declaration: Declaration) -> None:
    """Check that the operation has its functions: symbols where its syntax has `$name`, else regions."""
    symbols = [name for name in declaration.callees
               if (declaration.syntax is not None and f"${name}" in declaration.syntax) or name in operation.attributes]
    for name in symbols:
        value = operation.attributes.get(name)
        if value is None:
            raise fault(operation, f"requires attribute '{name}'")
        if not (is_symbols(value) if declaration.any_callees else is_symbol(value)):
            words = "symbol ref array attribute" if declaration.any_callees else "symbol reference attribute"
            raise fault(operation, f"attribute '{name}' failed to satisfy constraint: {words}")
    count, region_count = len(declaration.callees) - len(symbols), len(operation.regions)
    if region_count != count and not (count and declaration.any_callees and region_count):
        raise fault(operation, {0: "requires zero regions", 1: "requires one region"}.get(
            count, f"expected {count} regions"))


def _check_cost(operation: Operation) -> None:
    value = operation.attributes[_COST]
    if not isinstance(value, a.IntegerAttr) or value.value <= 0:
        raise fault(operation, "cost value must be larger than 0")


def _check_symbols(region: Region) -> None:
    """Check that no two operations of a region have one symbol."""
    symbols: dict[str, Operation] = {}
    for block in region.blocks:
        for operation in block.operations:
            name = operation.attributes.get("sym_name")
            if not isinstance(name, a.StringAttr):
                continue
            first = symbols.setdefault(name.value, operation)
            if first is not operation:
                raise MalformedText(f"redefinition of symbol named '{name.value}'", location_of(operation),
                                    ((location_of(first), "see existing symbol definition here"),))
