"""Assembly formats, the language of MLIR's operation definitions, compiled to functions that parse and print.

    operands            all operands                 $name                    an operand, an attribute, a function
    attr-dict           the other attributes         `word`                   a keyword or a punctuation
    attr-dict-with-keyword      the same behind `attributes`, where a region follows
    type(x)             the types of operands        functional-type(x, results)
    type(x, results)    the types of operands, which are those of the results, too
    ( ... x^ ... )?     a group that may be missing: it is printed when x is there, and read when its first element is
    region(x, ...)      a region, the arguments of whose entry have the names and types of these operands
    custom<module:object>   alone: the object's own `parse(parser, name)` and `print(printer, operation)`

Types that the declaration knows are never written. `region`, `type` of two and `custom` alone are heald's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pkgutil import resolve_name
from typing import cast

from heald.api import errors

from ..parser import OpSyntax
from . import format_elements as f
from .declaration import Declaration
from .formatted import FormattedSyntax

_TOKEN = re.compile(
    r"\s*(?:(`[^`\s]+`)|(\$\w+)|(attr-dict-with-keyword|attr-dict|functional-type|[a-z]+)|(\)\?|[()^,])|\Z)")
_CUSTOM = re.compile(r"custom<([\w.]+:[\w.]+)>")
_LITERAL = re.compile(r"[A-Za-z_][\w$.]*|->|::|[(){}<>\[\],:=?*+\-/|]")


def compile_syntax(declaration: Declaration) -> OpSyntax | None:
    """The syntax of an operation; None for one that has the generic form only.

    Raises PluginError for a format that is malformed, or does not say all that the declaration leaves open.
    """
    if declaration.syntax is None:
        return None
    custom = _CUSTOM.fullmatch(declaration.syntax.strip())
    if custom:
        return _custom(declaration, custom[1])
    return FormattedSyntax(declaration, _Compiler(declaration).elements())


def _custom(declaration: Declaration, name: str) -> OpSyntax:
    try:
        syntax = resolve_name(name)
    except (ImportError, AttributeError) as error:
        raise _declaration_error(declaration, f"cannot import {name}: {error}") from error
    if not all(callable(getattr(syntax, method, None)) for method in ("parse", "print")):
        raise _declaration_error(declaration, f"{name} has no functions parse and print")
    return cast(OpSyntax, syntax)


def _gives_results(element: f.Element) -> bool:
    return isinstance(element, f.ResultTypes | f.FunctionalType) or (
        isinstance(element, f.OperandTypes) and element.are_results)


def _declaration_error(declaration: Declaration, what: str) -> errors.PluginError:
    return errors.PluginError(f"plugin {declaration.plugin}: the syntax {declaration.syntax!r}: {what}",
                              op=declaration.name, hint="docs/mlir.md lists the elements of a format")


class _Compiler:
    """The tokens of a format, and the elements that they are."""

    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        self._tokens = list(self._split(declaration.syntax or ""))
        self._operands = {operand.name: (operand, index) for index, operand in enumerate(declaration.operands)}
        self._spans = {name: f.Span(name, index, index + 1) for name, (_, index) in self._operands.items()}
        self._spans[f.ALL] = f.Span(f.ALL, 0, None)
        if declaration.variadic is not None:
            name = declaration.variadic.name
            self._spans[name] = f.Span(name, len(declaration.operands), None)
        self._regions = 0

    def elements(self) -> list[f.Element]:
        elements = [element for element, _ in self._until(None)]
        placed_names = [name for element in f.flat(elements) for name in element.operand_names]
        if placed_names == [f.ALL]:
            pass
        elif f.ALL in placed_names:
            raise self._error("it has both operands and $name of an operand")
        else:
            operand_names = [*self._operands]
            if self._declaration.variadic is not None:
                operand_names.append(self._declaration.variadic.name)
            if sorted(placed_names) != sorted(operand_names):
                raise self._error(f"the operands are {', '.join(operand_names) or 'none'}")
        if not any(isinstance(element, f.AttributeDictionary) for element in f.flat(elements)):
            raise self._error("attr-dict is missing")
        results = self._declaration.results
        if not any(map(_gives_results, f.flat(elements))) and (
                results is None or any(result.type is None for result in results)):
            raise self._error("the types of the results are left open")
        return elements

    def _error(self, what: str) -> errors.PluginError:
        return _declaration_error(self._declaration, what)

    def _split(self, text: str) -> Iterator[str]:
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"'{text[position:].split(maxsplit=1)[0]}' is no element")
            position = match.end()
            yield match[0].strip()

    def _next(self) -> str | None:
        return self._tokens.pop(0) if self._tokens else None

    def _expect(self, word: str) -> None:
        token = self._next()
        if token != word:
            raise self._error(f"'{word}' is expected, not {token!r}")

    def _until(self, closing: str | None) -> list[tuple[f.Element, bool]]:
        """Elements up to a word, each with True for the anchor of a group."""
        elements = []
        while (word := self._next()) != closing:
            if word is None:
                raise self._error("a group is open at its end")
            element = self._element(word)
            is_anchor = bool(self._tokens) and self._tokens[0] == "^"
            if is_anchor:
                self._next()
            elements.append((element, is_anchor))
        return elements

    def _element(self, word: str) -> f.Element:
        if word[0] == "`":
            if not _LITERAL.fullmatch(word[1:-1]):
                raise self._error(f"{word} is no keyword and no punctuation")
            return f.Literal(word[1:-1])
        if word[0] == "$":
            return self._variable(word[1:])
        if word == "operands":
            return f.AllOperands()
        if word in ("attr-dict", "attr-dict-with-keyword"):
            return f.AttributeDictionary("" if word == "attr-dict" else "attributes")
        if word in ("type", "functional-type"):
            return self._type() if word == "type" else self._functional_type()
        if word == "region":
            region = f.RegionElement(self._regions, self._operands_named())
            self._regions += 1
            return region
        if word == "(":
            return self._group()
        raise self._error(f"'{word}' is no element")

    def _variable(self, name: str) -> f.Element:
        declaration = self._declaration
        if name in self._operands:
            if not self._operands[name][0].is_required:
                raise self._error(f"'{name}' may be missing, and so stands in operands alone")
            return f.OneOperand(*self._operands[name])
        if declaration.variadic is not None and name == declaration.variadic.name:
            return f.Operands(declaration.variadic, len(declaration.operands))
        if name in declaration.callees:
            return f.SymbolElement(name, declaration.any_callees)
        if name in declaration.attributes:
            return f.AttributeElement(declaration.attributes[name])
        raise self._error(f"the operation has no operand or attribute '{name}'")

    def _names(self) -> list[str]:
        """The names between parentheses."""
        self._expect("(")
        names: list[str] = []
        while (word := self._next()) != ")":
            if word is None:
                raise self._error("a parenthesis is open at its end")
            names.append(word.removeprefix("$"))
            if self._tokens and self._tokens[0] == ",":
                self._next()
        return names

    def _span(self, name: str) -> f.Span:
        if name not in self._spans:
            raise self._error(f"the operation has no operand '{name}'")
        return self._spans[name]

    def _operands_named(self) -> list[f.Span]:
        return [self._span(name) for name in self._names()]

    def _type(self) -> f.Element:
        names = self._names()
        if not names or names[1:] not in ([], ["results"]):
            raise self._error("type takes one operand, and perhaps results")
        if names == ["results"]:
            return f.ResultTypes()
        return f.OperandTypes(self._span(names[0]), len(names) == 2)

    def _functional_type(self) -> f.Element:
        names = self._names()
        if len(names) != 2 or names[1] != "results":
            raise self._error("functional-type takes an operand and results")
        return f.FunctionalType(self._span(names[0]))

    def _group(self) -> f.Element:
        members = self._until(")?")
        anchors = [element for element, is_anchor in members if is_anchor]
        if len(anchors) != 1:
            raise self._error("a group has one anchor, marked by ^")
        first = members[0][0]
        if not isinstance(first, f.Literal | f.Operands | f.AllOperands | f.RegionElement):
            raise self._error("a group begins with a literal, a region, or operands that may be none")
        return f.Group([element for element, _ in members], first, anchors[0])
