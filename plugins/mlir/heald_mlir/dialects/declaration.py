"""The declaration of an operation, as the signature of its host kernel gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from heald.runtime.contract import HostKernel

from .. import attributes as a
from .. import floats
from .. import types as t
from ..attribute_parser import AttributeParser
from ..lexer import MalformedText

_FLOATS = {"f16": "16-bit float", "f32": "32-bit float", "f64": "64-bit float", "bf16": "bfloat16 type"}
_SIGNS = {"": "signless", "s": "signed", "u": "unsigned"}
Rule = Callable[[tuple[Any, ...], tuple[Any, ...]], Any]  # the rule of the functions that a kernel calls


class Operand(NamedTuple):
    """An operand, or a result. A `type` of None permits every type."""

    name: str
    type: t.Type | None
    is_required: bool = True


class Constraint(NamedTuple):
    """The values of an attribute. `type`: the type of a number, which texts leave out. `fault`: the whole message."""

    text: str
    holds: Callable[[a.Attribute], bool]
    type: t.Type | None = None
    fault: str = ""


class AttributeDeclaration(NamedTuple):
    """An attribute. A `constraint` of None permits every value."""

    name: str
    constraint: Constraint | None
    is_required: bool


class Declaration(NamedTuple):
    """An operation.

    `variadic`: The operand of further values; None when there may be none. `results`: None for any number of results.
    `callees`: The functions that it calls, by name: symbols, or regions where its syntax names no symbol.
    `any_callees`: One name stands for any number of functions.
    `calls`: The types that these functions may have, from the types of operands and results; None where any will do.
    """

    name: str
    operands: tuple[Operand, ...]
    variadic: Operand | None
    results: tuple[Operand, ...] | None
    attributes: Mapping[str, AttributeDeclaration]
    callees: tuple[str, ...] = ()
    any_callees: bool = False
    calls: Rule | None = None
    syntax: str | None = None
    plugin: str = ""
    summary: str = ""


def declaration_of(kernel: HostKernel) -> Declaration:
    """Return the declaration of a kernel's calls."""
    operands = tuple(Operand(p.name, _type(p.type), p.is_required) for p in kernel.arguments)
    variadic = None if kernel.variadic is None else Operand(kernel.variadic.name, _type(kernel.variadic.type))
    results = None if kernel.results is None else tuple(Operand(f"result{i}", _type(of))
                                                        for i, of in enumerate(kernel.results))
    attributes = {name: AttributeDeclaration(name, None if p.type is None else constraint(str(p.type)), p.is_required)
                  for name, p in kernel.attributes.items()}
    return Declaration(kernel.code, operands, variadic, results, attributes, kernel.callees, kernel.takes_more_callees,
                       kernel.calls, kernel.syntax, kernel.plugin, kernel.doc.partition("\n")[0])


def _type(of: Any) -> t.Type | None:
    return None if of is None else type_named(str(of))


@cache
def type_named(text: str) -> t.Type | None:
    """The type with this text; None for a text that is no type."""
    try:
        parser = AttributeParser(text)
        plain_type = parser.plain_type()
    except MalformedText:
        return None
    return plain_type if parser.kind == "end" else None


def type_text(of: t.Type) -> str:
    """A type in MLIR's words: `32-bit signless integer`, `!ts.shape type`."""
    if isinstance(of, t.IntegerType):
        return f"{of.width}-bit {_SIGNS[of.sign]} integer"
    return _FLOATS.get(str(of)) or f"{of} type"


@cache
def constraint(text: str) -> Constraint | None:
    """The constraint of an attribute whose type has this text in a signature; None for a type without one."""
    if text in _CONSTRAINTS:
        return _CONSTRAINTS[text]
    of = type_named(text)
    if isinstance(of, t.IntegerType):
        words = "bool attribute" if of == t.I1 else f"{type_text(of)} attribute"
        return Constraint(words, lambda value: isinstance(value, a.IntegerAttr) and value.type == of, of)
    if isinstance(of, t.NamedType) and of.name in floats.FORMATS:
        return Constraint(f"{type_text(of)} attribute",
                          lambda value: isinstance(value, a.FloatAttr) and value.type == of, of)
    return None


def _is_integers(value: a.Attribute) -> bool:
    if isinstance(value, a.DenseArrayAttr):
        return isinstance(value.element, t.IntegerType)
    return isinstance(value, a.ArrayAttr) and all(isinstance(item, a.IntegerAttr) for item in value.items)


def _is_string(value: a.Attribute) -> bool:
    return isinstance(value, a.StringAttr)


def _is_strings(value: a.Attribute) -> bool:
    return isinstance(value, a.ArrayAttr) and all(map(_is_string, value.items))


def _is_pairs(value: a.Attribute) -> bool:
    return isinstance(value, a.ArrayAttr) and all(
        isinstance(pair, a.ArrayAttr) and len(pair.items) == 2 and _is_string(pair.items[0]) for pair in value.items)


_CONSTRAINTS = {
    "!tfrt.string": Constraint("string attribute", _is_string),
    "an array of i64": Constraint("64-bit integer array attribute", _is_integers),
    "op attributes": Constraint("array attribute", _is_pairs,
                                fault="each op_attr should be a key-value pair, where the key is a string"),
    "an array of strings": Constraint("string array attribute", _is_strings),
}


def is_symbol(value: a.Attribute | None) -> bool:
    return isinstance(value, a.SymbolRefAttr)


def is_symbols(value: a.Attribute | None) -> bool:
    return isinstance(value, a.ArrayAttr) and all(map(is_symbol, value.items))
