"""The parser of attributes and their aliases, after MLIR's own, with the same texts and diagnostics.

Attributes without a class of their own (affine maps, layouts, resources) are kept as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import attributes as a
from . import types as t
from .lexer import unescaped_text
from .sparse_parser import SparseParser
from .type_parser import AFFINE_BRACKETS, BRACKETS, DEEPEST_NESTING, INTEGER, SHAPED

__all__ = ["DEEPEST_NESTING", "AttributeParser"]
_MAX_BLANKS = 100  # characters between two colons
_TYPE_WORDS = frozenset((*SHAPED, "complex", "tuple"))


class AttributeParser(SparseParser):
    """A lexer that understands types, attributes, locations and their aliases, and the uses of values."""

    def alias_definition(self) -> None:
        """Parse `#name = attribute` or `!name = type`."""
        at, kind, name = self.at, self.kind, self.text[1:]
        word = "attribute" if kind == "alias" else "type"
        is_known = name in self.aliases if kind == "alias" else name in self.type_aliases
        if is_known and (kind == "type" or self.early.get(name) != at):
            raise self.error(f"redefinition of {word} alias id '{name}'")
        if "." in name:
            raise self.error(f"{word} names with a '.' are reserved for dialect-defined names")
        self.advance()
        self.expect("=", f" in {word} alias definition")
        if kind == "type":
            self.type_aliases[name] = self.type()
        else:
            self.aliases[name] = self.attribute()

    def attribute(self) -> a.Attribute:
        return self.parse_nested(self._attribute)

    def _attribute(self) -> a.Attribute:
        kind, text = self.kind, self.text
        if kind == "string":
            self.advance()
            value = unescaped_text(text)
            return a.StringAttr(value, self.type() if self.accept(":") else None)
        if kind == "number" or text == "-":
            return self.number()
        if kind == "symbol":
            return self.symbol()
        if kind == "alias":
            return self.dialect_attribute()
        if kind == "punctuation":
            if text == "[":
                return self.array()
            if text == "{":
                return a.DictionaryAttr(tuple(sorted(self.dictionary().items(), key=_first)))
        if kind == "word":
            keyword = _KEYWORDS.get(text)
            if keyword is not None:
                return keyword(self)
            if text not in self.types and text not in _TYPE_WORDS and not INTEGER.match(text):
                raise self.wrong_token("expected attribute value")
        elif kind != "type" and text != "(":
            raise self.wrong_token("expected attribute value")
        return a.TypeAttr(self.type())

    def begins_attribute(self) -> bool:
        if self.kind == "word":
            return self.text in _KEYWORDS or self.text in self.types or self.text in _TYPE_WORDS or (
                INTEGER.match(self.text) is not None)
        return self.kind in ("string", "number", "symbol", "alias", "type") or self.text in ("-", "[", "{", "(")

    def array(self) -> a.ArrayAttr:
        self.advance()
        items: list[a.Attribute] = []
        if self.accept("]"):
            return a.ArrayAttr(())
        items.append(self.attribute())
        while self.accept(","):
            items.append(self.attribute())
        if not self.accept("]"):
            raise self.wrong_token("expected ',' or ']'")
        return a.ArrayAttr(tuple(items))

    def dictionary(self) -> dict[str, a.Attribute]:
        """Parse `{name = value, unit}`. Raises MalformedText for a name that is given twice."""
        entries: dict[str, a.Attribute] = {}

        def entry() -> None:
            if self.kind not in ("word", "string"):
                raise self.wrong_token("expected attribute name")
            name = unescaped_text(self.text) if self.kind == "string" else self.text
            if not name:
                raise self.error("expected valid attribute name")
            if name in entries:
                raise self.error(f"duplicate key '{name}' in dictionary attribute")
            self.advance()
            entries[name] = self.attribute() if self.accept("=") else a.UNIT

        self.comma_list("{", "}", entry, " in attribute dictionary")
        return entries

    def number(self) -> a.Attribute:
        """Parse a number, and the type behind it."""
        negative, at, text = self.accept("-"), self.at, self.text
        if self.kind != "number":
            raise self.wrong_token("expected constant integer or floating point value")
        self.advance()
        of = self.type() if self.accept(":") else t.F64 if "." in text else t.I64
        return self.number_of(text, negative, of, at if "." not in text else self.at)

    def number_of(self, text: str, negative: bool, of: t.Type, at: int) -> a.Attribute:
        """A literal as a number of a type. Raises MalformedText for one that does not fit."""
        if "." in text and not t.is_float(of):
            raise self.error("floating point value not valid for specified type", at)
        if t.is_float(of):
            return a.FloatAttr(self.float_bits(text, negative, str(of), at), of)
        if not t.is_number(of):
            raise self.error("integer literal not valid for specified type", at)
        if negative and isinstance(of, t.IntegerType) and of.sign == "u":
            raise self.error("negative integer literal not valid for unsigned integer type", at)
        value = self.integer_value(text, negative, of, at)
        if value is None:
            raise self.error("integer constant out of range for attribute", at)
        return a.IntegerAttr(value, of)

    def symbol(self) -> a.SymbolRefAttr:
        names = [self.symbol_name()]
        while self._nests():
            if self.kind != "symbol":
                raise self.wrong_token("expected nested symbol reference identifier")
            names.append(self.symbol_name())
        return a.SymbolRefAttr(names[0], tuple(names[1:]))

    def _nests(self) -> bool:
        """Take two colons, which white space may part."""
        if self.text == ":" and self.source[self.end:self.end + _MAX_BLANKS].lstrip(" \t\r\n")[:1] == ":":
            self.advance()
            self.advance()
            return True
        return self.accept("::")

    def symbol_name(self) -> str:
        text = self.take("symbol", "valid '@'-identifier for symbol name")[1:]
        return unescaped_text(text) if text[0] == '"' else text

    def dialect_attribute(self) -> a.Attribute:
        dialect, point, body = self.dialect_text()
        if not point and not body:
            return self.resolve_alias(self.aliases, dialect)
        return a.OpaqueAttr(dialect, point + body)

    def array_of_numbers(self) -> a.Attribute:
        """Parse `array<type: numbers>`."""
        self.advance()
        self.expect("<", " after 'array'")
        at, of = self.at, self.type()
        if not t.is_number(of):
            raise self.error(f"expected integer or float type, got: '{of}'", at)
        if of != t.I1 and t.width_of(of) % 8:
            raise self.error("element type bitwidth must be a multiple of 8", at)
        if self.accept(">"):
            return a.DenseArrayAttr(of, ())
        self.expect(":", " after dense array type")
        values = [self._array_number(of)]
        while self.accept(","):
            values.append(self._array_number(of))
        self.expect(">", " to close an array attribute")
        return a.DenseArrayAttr(of, tuple(values))

    def _array_number(self, of: t.Type) -> int:
        negative, at, text = self.accept("-"), self.at, self.text
        if t.is_float(of):
            if self.kind != "number":
                raise self.error("expected floating point literal")
            self.advance()
            return self.float_bits(text, negative, str(of), at)
        if text in ("true", "false") and self.kind == "word":
            if of != t.I1:
                raise self.error("expected i1 type for 'true' or 'false' values")
            self.advance()
            return int(text == "true")
        if of == t.I1:
            raise self.error("expected 'true' or 'false' values for i1 type")
        if self.kind != "number" or "." in text:
            raise self.error("expected integer literal")
        self.advance()
        value = self.integer_value(text, negative, of, at)
        if value is None:
            raise self.error("integer constant out of range")
        return value

    # Attributes that are kept as text

    def kept_text(self, opening: Sequence[str] = ("<",)) -> a.Attribute:
        """Take a word with the brackets behind it, one pair for each of `opening`."""
        word, start = self.text, self.at
        for bracket in opening:
            if not self.source.startswith(bracket, self.end):
                self.advance()
                self.expect(bracket, f" after '{word}'" if word != "affine_map" else " in affine map")
                self.end = self.at - 1
            self.skip_brackets(AFFINE_BRACKETS if word.startswith("affine") else BRACKETS)
            self.end = self._closed
        self.jump(self._closed)
        return a.BuiltinAttr(word, self.source[start:self._closed])

    def kept_text_with_type(self) -> a.Attribute:
        attribute = self.kept_text()
        at = self.at
        self.expect(":")
        of = self.type()
        assert isinstance(attribute, a.BuiltinAttr)
        if not isinstance(of, t.ShapedType):
            raise self.error(f"`{attribute.word}` expected a shaped type", at)
        return a.BuiltinAttr(attribute.word, f"{attribute.text} : {of}")


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _constant(value: a.Attribute) -> Callable[[AttributeParser], a.Attribute]:
    def parse(parser: AttributeParser) -> a.Attribute:
        parser.advance()
        return value

    return parse


_KEYWORDS: dict[str, Callable[[AttributeParser], a.Attribute]] = {
    "true": _constant(a.TRUE), "false": _constant(a.FALSE), "unit": _constant(a.UNIT),
    "dense": lambda parser: parser.dense(),  # readers of graphs have their own
    "array": AttributeParser.array_of_numbers, "loc": AttributeParser.inline_location,
    "affine_map": AttributeParser.kept_text, "affine_set": AttributeParser.kept_text,
    "strided": AttributeParser.kept_text, "distinct": lambda parser: parser.kept_text(("[", "<")),
    "dense_resource": AttributeParser.kept_text_with_type, "sparse": AttributeParser.sparse,
}
