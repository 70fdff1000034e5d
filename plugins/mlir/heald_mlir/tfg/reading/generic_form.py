"""Operations of bodies in MLIR's generic form, `"tfg.Add"(%a, %b) {_mlir_name = "add"} : (types) -> (types)`.

The generic form lists all operands and all results with their types, control tokens among them, and has no keywords:
names and devices are attributes. Each function returns the data that the dialect's own form gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ... import attributes as a
from ...lexer import Lexer
from ..regions.region_forms import REGION_OPS
from ..values.element_types import CONTROL, OPAQUE
from .inherent_attributes import kind_fault
from .parsed_body import ASSIGNED, DEVICE, NAME, GetResult, ParsedNode, Region, Return, Tail, Use

_SEGMENTS = "operandSegmentSizes"


class GenericOperation(NamedTuple):
    """An operation in generic form. `where`: the position of its name. Kept properties are among the attributes."""

    op: str
    where: int
    uses: list[Use]
    attributes: dict[str, a.Attribute]
    regions: list[Region]
    operands: list[str]
    results: list[str]
    dropped: Mapping[str, a.Attribute]


def operation_of(reader: Lexer, generic: GenericOperation, results: list[tuple[str, int]], at: int,
                 ) -> ParsedNode | GetResult | Return:
    """The operation that begins at `at`, whose results have these names.

    Raises MalformedText for names without results, and for an operation that lacks an attribute.
    """
    if results and not generic.results:
        raise reader.error("cannot name an operation with no results", at)
    if generic.op in ("return", "yield", "condition"):
        if generic.results:
            raise reader.error(f"'tfg.{generic.op}' op requires zero results", generic.where)
        return _return(reader, generic) if generic.op == "return" else _region_end(reader, generic)
    fault = kind_fault(generic.op, generic.attributes)
    if fault is not None:
        raise reader.error(f"'tfg.{generic.op}' op {fault}", generic.where)
    if generic.op == "get_result":
        return _get_result(reader, generic, results, at)
    return _node(reader, generic, results, at)


def _check_order(reader: Lexer, generic: GenericOperation, types: Sequence[str], what: str) -> None:
    """Raises MalformedText for a tensor behind a control token."""
    if CONTROL not in types:
        return
    first = types.index(CONTROL)
    for index in range(first, len(types)):
        if types[index] != CONTROL:
            raise reader.error(f"'tfg.{generic.op}' op found non-control {what} in position #{index} after control "
                               f"{what} in position #{first}", generic.where)


def _split(generic: GenericOperation) -> int:
    """The number of operands before the first control token."""
    return generic.operands.index(CONTROL) if CONTROL in generic.operands else len(generic.operands)


def _node(reader: Lexer, generic: GenericOperation, results: list[tuple[str, int]], at: int) -> ParsedNode:
    _check_order(reader, generic, generic.operands, "input")
    _check_order(reader, generic, generic.results, "result")
    tensors = [of for of in generic.results if of != CONTROL]
    count = _split(generic)
    tail = Tail(generic.attributes, tuple(generic.operands[:count]), tuple(tensors), True, True,
                len(generic.results) - len(tensors), generic.dropped)
    texts = {key: value.value if isinstance(value := generic.attributes.get(key), a.StringAttr) else ""
             for key in (DEVICE, ASSIGNED, NAME)}
    regions = tuple(generic.regions) if generic.op in REGION_OPS else ()
    if generic.op in REGION_OPS and "Case" not in generic.op:
        expected = 1 if generic.op == "ForRegion" else 2
        if len(regions) != expected:
            raise reader.error(f"'tfg.{generic.op}' op expected {expected} regions" if expected > 1 else
                               f"'tfg.{generic.op}' op requires one region", generic.where)
    return ParsedNode(generic.op, at, generic.where, results, generic.uses[:count], generic.uses[count:],
                      texts[DEVICE], texts[ASSIGNED], texts[NAME], tail, regions)


def _return(reader: Lexer, generic: GenericOperation) -> Return:
    name = "control_ret_attrs"
    written = generic.attributes.get(name)
    if written is None:
        raise reader.error(f"'tfg.return' op requires attribute '{name}'", generic.where)
    if not isinstance(written, a.ArrayAttr):
        raise reader.error(f"'tfg.return' op attribute '{name}' failed to satisfy constraint: Array of dictionary "
                           "attributes", generic.where)
    count = _split(generic)
    controls = generic.uses[count:]
    if len(controls) != len(written.items):
        raise reader.error("'tfg.return' op expected as many control result attributes as there are control operands",
                           generic.where)
    pairs = [(use, dict(item.items) if isinstance(item, a.DictionaryAttr) else {})
             for use, item in zip(controls, written.items, strict=True)]
    return Return(generic.uses[:count], pairs, tuple(generic.operands[:count]), generic.where, "return")


def _region_end(reader: Lexer, generic: GenericOperation) -> Return:
    """A yield or a condition, whose operands are in segments: the condition, results, control tokens."""
    written = generic.attributes.get(_SEGMENTS)
    if written is None and generic.op == "yield":  # all segments are empty
        return Return([], [], (), generic.where, generic.op)
    sizes = [size for size in written.values if isinstance(size, int)] if isinstance(written, a.DenseArrayAttr) else []
    expected = 2 if generic.op == "yield" else 3
    if len(sizes) != expected or sum(sizes) != len(generic.uses) or min(sizes) < 0:
        raise reader.error(f"'tfg.{generic.op}' op operand count ({len(generic.uses)}) does not match with the total "
                           f"size ({sum(sizes)}) specified in attribute '{_SEGMENTS}'", generic.where)
    start = sizes[0] if expected == 3 else 0
    if expected == 3 and start != 1:
        raise reader.error(f"'tfg.condition' op operand group starting at #0 requires 1 element, but found {start}",
                           generic.where)
    end = start + sizes[-2]
    condition = (generic.uses[0], generic.operands[0]) if expected == 3 else None
    return Return(generic.uses[start:end], [(use, {}) for use in generic.uses[end:]],
                  tuple(generic.operands[start:end]), generic.where, generic.op, condition)


def _get_result(reader: Lexer, generic: GenericOperation, results: list[tuple[str, int]], at: int) -> GetResult:
    name, number = generic.attributes.get("name"), generic.attributes.get("number")
    for key, value in (("name", name), ("number", number)):
        if value is None:
            raise reader.error(f"'tfg.get_result' op requires attribute '{key}'", generic.where)
    if not isinstance(name, a.StringAttr):
        raise reader.error("'tfg.get_result' op attribute 'name' failed to satisfy constraint: string attribute",
                           generic.where)
    if not isinstance(number, a.IntegerAttr) or str(number.type) != "i32":
        raise reader.error("'tfg.get_result' op attribute 'number' failed to satisfy constraint: 32-bit signless "
                           "integer attribute", generic.where)
    if len(generic.uses) != 1:
        raise reader.error("'tfg.get_result' op requires a single operand", generic.where)
    count = sum([count for _, count in results])
    if generic.results != [OPAQUE]:
        raise reader.error("'tfg.get_result' op requires one result" if len(generic.results) != 1 else
                           f"'tfg.get_result' op result #0 must be tensor type, but got '{generic.results[0]}'",
                           generic.where)
    if results and count != 1:
        raise reader.error(f"operation defines 1 results but was provided {count} to bind", at)
    return GetResult(results[0][0] if results else "", generic.uses[0], name.value, number.value, generic.where)
