"""The parser of types, attributes, locations and their aliases, and of operands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from . import attributes as a
from . import floats
from . import types as t
from .lexer import Lexer, unescaped_text

T = TypeVar("T")
DEEPEST_NESTING = 64  # of brackets and regions within each other
_INTEGER = re.compile(r"([su]?)i([1-9]\d{0,7})\Z")
_BRACKETS = re.compile(r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|->|[<>()\[\]{}]')
_MAX_INTEGER_DIGITS = 18  # of a dimension, a line, a count
_MAX_NUMBER_CHARACTERS = 100  # characters of a number
_PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}"}
_SHAPED = ("tensor", "vector", "memref")


class AttributeParser(Lexer):
    """A lexer that understands types, attributes, locations and their aliases, and the uses of values."""

    dims = re.compile(r"\s*(\*x|(?:(?:\d+|\?)x)*)")

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.depth = 0
        self.types: dict[str, t.Type] = dict(t.WORDS)  # known types by their text
        self.type_aliases: dict[str, t.Type] = {}
        self.aliases: dict[str, a.Attribute] = {}
        super().__init__(text, file, line)

    def parse_nested(self, parse: Callable[[], T]) -> T:
        """Parse one level deeper. Raises MalformedText beyond DEEPEST_NESTING."""
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            raise self.error(f"nested deeper than {DEEPEST_NESTING} levels")
        result = parse()
        self.depth -= 1
        return result

    def count(self, what: str) -> int:
        """Parse a small number without sign. Raises MalformedText with `what` was expected."""
        at, text = self.at, self.take("number", what)
        if not text.isdigit() or len(text) > _MAX_INTEGER_DIGITS:
            raise self.error(f"expected {what}", at)
        return int(text)

    def comma_list(self, opening: str, closing: str, parse: Callable[[], T]) -> list[T]:
        """Parse elements between brackets, with commas."""
        self.expect(opening)
        items: list[T] = []
        if self.accept(closing):
            return items
        items.append(parse())
        while self.accept(","):
            items.append(parse())
        if not self.accept(closing):
            raise self.error(f"expected '{closing}'" if closing != "]" else "expected ',' or ']'")
        return items

    # Types

    def type(self) -> t.Type:
        """Parse a type that may be a function's."""
        if self.kind == "punctuation" and self.text == "(":
            return self.parse_nested(self.function_type)
        return self.parse_nested(self.plain_type)

    def function_type(self) -> t.FunctionType:
        inputs = tuple(self.comma_list("(", ")", self.type))
        self.expect("->")
        return t.FunctionType(inputs, self.result_types())

    def result_types(self) -> tuple[t.Type, ...]:
        """Parse the types behind an arrow: a list, or one type."""
        if self.kind == "punctuation" and self.text == "(":
            return tuple(self.comma_list("(", ")", self.type))
        return (self.parse_nested(self.plain_type),)

    def types_list(self) -> list[t.Type]:
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    def plain_type(self) -> t.Type:
        if self.kind == "type":
            return self.dialect_type()
        text = self.text
        if self.kind == "word":
            cached_type = self.types.get(text)
            if cached_type is None and (match := _INTEGER.match(text)):
                cached_type = self.types[text] = t.IntegerType(int(match[2]), match[1])
            if cached_type is not None:
                self.advance()
                return cached_type
            if text in _SHAPED:
                return self.shaped_type()
            if text == "complex":
                self.advance()
                self.expect("<", " in complex type")
                element = self.parse_nested(self.plain_type)
                self.expect(">", " in complex type")
                return t.ComplexType(element)
            if text == "tuple":
                self.advance()
                return t.TupleType(tuple(self.comma_list("<", ">", self.type)))
        raise self.error("expected non-function type")

    def dialect_type(self) -> t.Type:
        at, (dialect, point, body) = self.at, self.dialect_text()
        if not point and not body:
            return self.resolve_alias(self.type_aliases, dialect, at)
        if not point:
            raise self.error("expected '.' in a dialect's type", at, hint="write !dialect.name<...>")
        return t.OpaqueType(dialect, body)

    def dialect_text(self) -> tuple[str, str, str]:
        """Take `!dialect.body` or `#dialect.body`, with what stands in brackets right behind it: the name of the
        dialect, the point or nothing, the body."""
        dialect, point, body = self.text[1:].partition(".")
        if self.source.startswith("<", self.end):
            start = self.end
            self.skip_brackets()
            return dialect, point, body + self.source[start:self._closed]
        self.advance()
        return dialect, point, body

    def alias_definition(self) -> None:
        """Parse `#name = attribute` or `!name = type`."""
        kind, name = self.kind, self.text[1:]
        self.advance()
        self.expect("=", " in attribute alias definition" if kind == "alias" else " in type alias definition")
        if kind == "type":
            self.type_aliases[name] = self.type()
        else:
            self.aliases[name] = self.attribute()

    def use(self) -> tuple[str, int, int]:
        """Parse an operand: its name, its index in a pack, its position."""
        at = self.at
        name = self.take("value", "SSA operand")
        index = 0
        if self.kind == "alias" and self.text[1:].isdigit():
            if len(self.text) > 10:
                raise self.error("reference to invalid result number")
            index = int(self.text[1:])
            self.advance()
        return name, index, at

    def resolve_alias(self, aliases: Mapping[str, T], name: str, at: int) -> T:
        """The type or attribute of an alias. Raises MalformedText for an unknown one."""
        if name not in aliases:
            raise self.error(f"undefined symbol alias id '{name}'", at)
        return aliases[name]

    def skip_brackets(self) -> None:
        """Pass the brackets that begin right behind the token; `_closed` is the position behind them."""
        start = position = self.end
        open_brackets: list[str] = []
        while True:
            match = _BRACKETS.search(self.source, position)
            if match is None:
                raise self.error("unexpected nul or EOF in pretty dialect name", start)
            position = match.end()
            if match[0] in _PAIRS:
                open_brackets.append(_PAIRS[match[0]])
            elif len(match[0]) == 1:
                if match[0] != open_brackets[-1]:
                    raise self.error(f"unbalanced '{match[0]}' character in pretty dialect name", match.start())
                open_brackets.pop()
                if not open_brackets:
                    self._closed = position
                    self.jump(position)
                    return

    def shaped_type(self) -> t.Type:
        kind = self.text
        self.advance()
        if self.text != "<":
            raise self.error("expected '<'")
        match = self.dims.match(self.source, self.end)
        assert match is not None
        if any(len(dim) > _MAX_INTEGER_DIGITS for dim in match[1].split("x")):
            raise self.error("invalid dimension", match.start(1))
        self.jump(match.end())
        shape = None if match[1] == "*x" else tuple(
            None if dim in ("?", "-1") else int(dim) for dim in match[1].split("x")[:-1])
        element = self.parse_nested(self.plain_type)
        start = self.at
        while self.text != ">":
            if self.kind == "end":
                raise self.error("expected '>'")
            if self.text in _PAIRS and self.kind == "punctuation":
                self.end = self.at
                self.skip_brackets()
            else:
                self.advance()
        suffix = self.source[start:self.at].strip()
        self.advance()
        return t.ShapedType(kind, shape, element, suffix)

    # Attributes

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
                return a.ArrayAttr(tuple(self.comma_list("[", "]", self.attribute)))
            if text == "{":
                return a.DictionaryAttr(tuple(sorted(self.dictionary().items())))
        if kind == "word":
            keyword = _KEYWORDS.get(text)
            if keyword is not None:
                return keyword(self)
            if text not in self.types and text not in (*_SHAPED, "complex", "tuple") and not _INTEGER.match(text):
                raise self.error("expected attribute value")
        elif kind != "type" and text != "(":
            raise self.error("expected attribute value")
        return a.TypeAttr(self.type())

    def dictionary(self) -> dict[str, a.Attribute]:
        """Parse `{name = value, unit}`. Raises MalformedText for a name that is given twice."""
        entries: dict[str, a.Attribute] = {}

        def entry() -> None:
            at = self.at
            if self.kind not in ("word", "string"):
                raise self.error("expected attribute name")
            name = unescaped_text(self.text) if self.kind == "string" else self.text
            self.advance()
            if name in entries:
                raise self.error(f"duplicate key '{name}' in dictionary attribute", at)
            entries[name] = self.attribute() if self.accept("=") else a.UNIT

        self.comma_list("{", "}", entry)
        return entries

    def number(self) -> a.Attribute:
        at, negative = self.at, self.accept("-")
        text = self.take("number", "constant integer or floating point value")
        of = self.type() if self.accept(":") else t.F64 if "." in text else t.I64
        return self.number_of(text, negative, of, at)

    def number_of(self, text: str, negative: bool, of: t.Type, at: int) -> a.Attribute:
        """A literal as a number of a type. Raises MalformedText for one that does not fit."""
        if len(text) > _MAX_NUMBER_CHARACTERS:
            raise self.error("number literal is too long", at)
        if isinstance(of, t.NamedType) and of.name in floats.FORMATS:
            return a.FloatAttr(self.float_bits(text, negative, of.name, at), of)
        if "." in text:
            raise self.error("expected floating point type" if not isinstance(of, t.IntegerType)
                             else "floating point value not valid for specified type", at)
        if not isinstance(of, t.IntegerType) and of != t.INDEX:
            raise self.error("integer literal not valid for specified type", at)
        value = int(text, 0) if text.startswith("0x") else int(text)
        return a.IntegerAttr(self.check_integer_range(-value if negative else value, of, at), of)

    def check_integer_range(self, value: int, of: t.Type, at: int) -> int:
        """An integer that fits into its type; a signless one may be written without sign, too."""
        width = of.width if isinstance(of, t.IntegerType) else 64
        sign = of.sign if isinstance(of, t.IntegerType) else ""
        least = 0 if sign == "u" else -(1 << width - 1)
        largest = (1 << width - 1) - 1 if sign == "s" else (1 << width) - 1
        if not least <= value <= largest:
            raise self.error("negative integer literal not valid for unsigned integer type" if sign == "u" and value < 0
                             else "integer constant out of range for attribute", at)
        return value - (1 << width) if not sign and width > 1 and value >> width - 1 == 1 else abs(value) if (
            width == 1 and not sign) else value

    def float_bits(self, text: str, negative: bool, name: str, at: int) -> int:
        width = floats.FORMATS[name].width
        if text.startswith("0x"):
            if negative or int(text, 16) >> width:
                raise self.error("hexadecimal float constant out of range for type" if not negative else
                                 "hexadecimal float literal should not have a leading minus", at)
            return int(text, 16)
        if "." not in text:
            raise self.error("unexpected decimal integer literal for a floating point value", at,
                             hint="add a trailing dot to make the literal a float")
        return floats.bits_of(-float(text) if negative else float(text), name)

    def symbol(self) -> a.SymbolRefAttr:
        names = [self.symbol_name()]
        while self.accept("::"):
            names.append(self.symbol_name())
        return a.SymbolRefAttr(names[0], tuple(names[1:]))

    def symbol_name(self) -> str:
        text = self.take("symbol", "valid '@'-identifier for symbol name")[1:]
        return unescaped_text(text) if text[0] == '"' else text

    def dialect_attribute(self) -> a.Attribute:
        at, (dialect, point, body) = self.at, self.dialect_text()
        if not point and not body:
            return self.resolve_alias(self.aliases, dialect, at)
        return a.OpaqueAttr(dialect, point + body)

    def dense(self) -> a.Attribute:
        self.advance()
        self.expect("<", " after 'dense'")
        at = self.at
        literals: list[Any] = []
        shape = () if self.text == ">" else self.elements(literals)
        self.expect(">")
        self.expect(":")
        of = self.type()
        if not isinstance(of, t.ShapedType) or of.shape is None or None in of.shape:
            raise self.error("elements literal type must have static shape", at)
        count = 1
        for dim in of.shape:
            count *= dim or 0
        if len(literals) == 1 and shape == () and isinstance(literals[0], tuple) and literals[0][0].startswith('"0x'):
            return a.DenseAttr(of, self.hexadecimal(literals[0][0], of.element, count, at))
        if shape != of.shape and not (shape == () and len(literals) == 1) and not (not literals and not count):
            raise self.error(f"inferred shape of elements literal ({list(shape)}) does not match type "
                             f"({list(of.shape)})", at)
        values = tuple(self.element(literal, of.element) for literal in literals)
        if len(values) > 1 and values.count(values[0]) == len(values):
            values = values[:1]
        return a.DenseAttr(of, values)

    def elements(self, out: list[Any]) -> tuple[int, ...]:
        """Parse a nested list of literals and return its shape. Raises MalformedText for a ragged one."""
        if self.text == "[":
            shapes = self.comma_list("[", "]", lambda: self.parse_nested(lambda: self.elements(out)))
            if any(shape != shapes[0] for shape in shapes):
                raise self.error("tensor literal is invalid; ranks are not consistent between elements")
            return (len(shapes), *(shapes[0] if shapes else ()))
        at = self.at
        if self.text == "(":
            parts = self.comma_list("(", ")", self._literal)
            if len(parts) != 2:
                raise self.error("expected a pair of numbers", at)
            out.append(parts)
        else:
            out.append(self._literal())
        return ()

    def _literal(self) -> tuple[str, bool, int]:
        at, negative, text = self.at, self.accept("-"), self.text
        if self.kind not in ("number", "string") and text not in ("true", "false"):
            raise self.error("expected element literal of primitive type")
        self.advance()
        return text, negative, at

    def element(self, literal: Any, of: t.Type) -> Any:
        if isinstance(of, t.ComplexType):
            if isinstance(literal, tuple):
                raise self.error(f"expected a pair of numbers for '{of}'", literal[2])
            return tuple(self.element(part, of.element) for part in literal)
        if isinstance(literal, list):
            raise self.error(f"expected element type to be complex, it is '{of}'", literal[0][2])
        text, negative, at = literal
        if text[0] == '"':
            return unescaped_text(text)
        if text in ("true", "false"):
            if of != t.I1:
                raise self.error("expected i1 type for 'true' or 'false' values", at)
            return int(text == "true")
        number = self.number_of(text, negative, of, at)
        return number.value if isinstance(number, a.IntegerAttr) else number.bits  # type: ignore[attr-defined]

    def hexadecimal(self, text: str, of: t.Type, count: int, at: int) -> tuple[Any, ...]:
        """Elements from `"0x..."`, little endian."""
        try:
            raw = bytes.fromhex(text[3:-1])
        except ValueError:
            raise self.error("elements hex string only contains hex digits", at) from None
        part = of.element if isinstance(of, t.ComplexType) else of
        size = (width_of(part) + 7) // 8
        if size == 0 or (len(raw) != size * count * (1 + (part is not of)) and len(raw) != size):
            raise self.error("elements hex data size is invalid for provided type", at)
        signed = (isinstance(part, t.IntegerType) and not part.sign and part.width > 1) or (
            isinstance(part, t.IntegerType) and part.sign == "s")
        numbers = [int.from_bytes(raw[i:i + size], "little", signed=signed) for i in range(0, len(raw), size)]
        if part is not of:
            return tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return tuple(numbers)

    def dense_array(self) -> a.Attribute:
        self.advance()
        self.expect("<")
        of = self.plain_type()
        values: list[Any] = []
        if self.accept(":"):
            values.append(self.element(self._literal(), of))
            while self.accept(","):
                values.append(self.element(self._literal(), of))
        self.expect(">")
        return a.DenseArrayAttr(of, tuple(values))

    # Locations

    def bracketed_location(self) -> a.Location:
        """Parse `loc(...)`."""
        self.expect("loc")
        self.expect("(")
        location = self.location_inside()
        self.expect(")", " in location")
        return location

    def location_inside(self) -> a.Location:
        return self.parse_nested(self._location)

    def later_alias(self, name: str, at: int) -> a.Attribute:
        """Return the attribute of an alias whose definition follows its use, as MLIR prints locations."""
        definition = re.compile(rf"^#{re.escape(name)}\s*=", re.MULTILINE).search(self.source, self.at)
        if definition is None:
            raise self.error(f"operation location alias was never defined: '#{name}'", at)
        here = self.at
        self.jump(definition.end())
        attribute = self.aliases[name] = self.attribute()
        self.jump(here)
        return attribute

    def _location(self) -> a.Location:
        at = self.at
        if self.kind == "string":
            text = unescaped_text(self.text)
            self.advance()
            if self.accept(":"):
                line = self.count("integer line number in FileLineColLoc")
                self.expect(":")
                return a.FileLineColLoc(text, line, self.count("integer column number in FileLineColLoc"))
            child = None
            if self.accept("("):
                child = self.location_inside()
                self.expect(")", " after child location of NameLoc")
            return a.NameLoc(text, child)
        if self.kind == "alias":
            name = self.text[1:]
            self.advance()
            attribute = self.aliases.get(name) or self.later_alias(name, at)
            if not isinstance(attribute, a.Location):
                raise self.error("expected location", at)
            return attribute
        if self.accept("unknown"):
            return a.UNKNOWN
        if self.accept("fused"):
            metadata = None
            if self.accept("<"):
                metadata = self.attribute()
                self.expect(">", " after fused location metadata")
            return a.FusedLoc(tuple(self.comma_list("[", "]", self.location_inside)), metadata)
        if self.accept("callsite"):
            self.expect("(")
            callee = self.location_inside()
            self.expect("at")
            caller = self.location_inside()
            self.expect(")")
            return a.CallSiteLoc(callee, caller)
        raise self.error("expected location instance")


def width_of(of: t.Type) -> int:
    """Bits of a number; 0 for another type."""
    if isinstance(of, t.IntegerType):
        return of.width
    return floats.FORMATS[of.name].width if isinstance(of, t.NamedType) and of.name in floats.FORMATS else (
        64 if of == t.INDEX else 0)


def _constant(value: a.Attribute) -> Callable[[AttributeParser], a.Attribute]:
    def parse(parser: AttributeParser) -> a.Attribute:
        parser.advance()
        return value

    return parse


_KEYWORDS: dict[str, Callable[[AttributeParser], a.Attribute]] = {
    "true": _constant(a.TRUE), "false": _constant(a.FALSE), "unit": _constant(a.UNIT),
    "dense": lambda parser: parser.dense(),  # readers of graphs have their own
    "array": AttributeParser.dense_array, "loc": AttributeParser.bracketed_location,
}
