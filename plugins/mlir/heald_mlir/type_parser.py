"""The parser of types and their aliases, after MLIR's own: it takes the same texts, and gives the same diagnostics.

A dimension list is made of tokens: `2x3xf32` is the number 2 and the word `x3xf32`, from which one `x` is taken before
the next token is read. Most types have a simple form that a regular expression reads at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from . import attributes as a
from . import types as t
from .lexer import Lexer

T = TypeVar("T")
DEEPEST_NESTING = 64  # of brackets and regions within each other
INTEGER = re.compile(r"([su]?)i(\d+)\Z", re.ASCII)
BRACKETS = re.compile(r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|->|["<>()\[\]{}]')
AFFINE_BRACKETS = re.compile(r'->|[<>=]=|["<>()\[\]{}]')  # a comparison is no bracket
_PAIRS = {"<": ">", "(": ")", "[": "]", "{": "}"}
_SIMPLE_TENSOR = re.compile(r"<((?:\*x|(?:(?:\d{1,18}|\?)x)*+))([a-z]\w*+)>", re.ASCII)
_MAX_COUNT_DIGITS = 18  # of a count, or a number in a location
_MAX_INTEGER_WIDTH = (1 << 24) - 1
_MAX_READ_WIDTH = (1 << 32) - 1  # wider widths are no number for MLIR
_MAX_DIMENSION = 2**63 - 1
SHAPED = ("tensor", "vector", "memref")


class TypeParser(Lexer):
    """A lexer that understands types, their aliases, and the uses of values."""

    takes_negative_dimensions = False  # TensorFlow prints unknown dimensions of handles as -1

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.depth = 0
        self.types: dict[str, t.Type] = dict(t.WORDS)  # known types by their text
        self.simple_tensors: dict[str, t.Type] = {}  # by the text behind `tensor`
        self.type_aliases: dict[str, t.Type] = {}
        super().__init__(text, file, line)

    def attribute(self) -> a.Attribute:
        """Parse an attribute."""
        raise NotImplementedError

    def begins_attribute(self) -> bool:
        """True where the current token begins an attribute."""
        raise NotImplementedError

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
        if not text.isdigit() or len(text) > _MAX_COUNT_DIGITS:
            raise self.error(f"expected {what}", at)
        return int(text)

    def comma_list(self, opening: str, closing: str, parse: Callable[[], T], context: str = "") -> list[T]:
        """Parse elements between brackets, with commas. `context`: the end of messages about the brackets."""
        self.expect(opening, context)
        items: list[T] = []
        if self.accept(closing):
            return items
        items.append(parse())
        while self.accept(","):
            items.append(parse())
        self.expect(closing, context)
        return items

    # Types

    def type(self) -> t.Type:
        """Parse a type that may be a function's."""
        if self.kind == "punctuation" and self.text == "(":
            return self.parse_nested(self.function_type)
        return self.parse_nested(self.plain_type)

    def function_type(self) -> t.FunctionType:
        inputs = tuple(self.comma_list("(", ")", self.type))
        self.expect("->", " in function type")
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
        if self.kind == "word":
            text = self.text
            cached_type = self.types.get(text)
            if cached_type is None and (match := INTEGER.match(text)):
                cached_type = self.types[text] = self._integer_type(int(match[2][:12]), match[1])
            if cached_type is not None:
                self.advance()
                return cached_type
            parse = _KEYWORDS.get(text)
            if parse is not None:
                return parse(self)
        raise self.wrong_token("expected non-function type")

    def _integer_type(self, width: int, sign: str) -> t.IntegerType:
        if width > _MAX_READ_WIDTH:
            raise self.error("invalid integer width")
        if width > _MAX_INTEGER_WIDTH:
            raise self.error(f"integer bitwidth is limited to {_MAX_INTEGER_WIDTH} bits")
        return t.IntegerType(width, sign)

    def complex_type(self) -> t.ComplexType:
        self.advance()
        self.expect("<", " in complex type")
        at, element = self.at, self.type()
        self.expect(">", " in complex type")
        if not t.is_number(element) or element == t.INDEX:
            raise self.error("invalid element type for complex", at)
        return t.ComplexType(element)

    def tuple_type(self) -> t.TupleType:
        self.advance()
        return t.TupleType(tuple(self.comma_list("<", ">", self.type, " in tuple type")))

    # Types with a shape

    def tensor_type(self) -> t.Type:
        match = _SIMPLE_TENSOR.match(self.source, self.end)
        if match is not None and (element := self.types.get(match[2])) is not None and element != t.NONE:
            self.jump(match.end())
            of = self.simple_tensors.get(match[0])
            if of is None:
                dims = match[1].split("x")[:-1]
                shape = None if match[1] == "*x" else tuple(None if dim == "?" else int(dim) for dim in dims)
                of = self.simple_tensors[match[0]] = t.ShapedType("tensor", shape, element)
            return of
        self.advance()
        self.expect("<", " in tensor type")
        shape = self.dimensions()
        at, element = self.at, self.type()
        encoding = self._encoding() if self.accept(",") else ""
        self.expect(">", " in tensor type")
        if isinstance(element, t.FunctionType | t.TupleType) or element == t.NONE or (
                isinstance(element, t.ShapedType) and element.kind != "vector"):
            raise self.error("invalid tensor element type", at)
        if encoding and shape is None:
            raise self.error("cannot apply encoding to unranked tensor")
        return t.ShapedType("tensor", shape, element, encoding)

    def _encoding(self) -> str:
        """The encoding of a tensor type with its comma; nothing where none follows the comma."""
        if not self.begins_attribute():
            return ""
        start = self.at
        self.attribute()
        return f", {self.source[start:self.at].rstrip()}"

    def vector_type(self) -> t.ShapedType:
        start = self.at
        self.advance()
        self.expect("<", " in vector type")
        dims, scalable = [], []
        while self.kind == "number" or self.text == "[":
            scalable.append(self.accept("["))
            dims.append(self.dimension() or 0)
            if scalable[-1]:
                self.expect("]", " after scalable dimension")
            self.end_dimension()
        if 0 in dims:
            raise self.error("vector types must have positive constant sizes but got "
                             f"{', '.join(map(str, dims))}", start)
        element = self.type()
        self.expect(">", " in vector type")
        if not t.is_number(element):
            raise self.error("failed to verify 'elementType': VectorElementTypeInterface instance", start)
        return t.ShapedType("vector", tuple(dims), element, scalable=tuple(scalable) if any(scalable) else ())

    def memref_type(self) -> t.ShapedType:
        self.advance()
        self.expect("<", " in memref type")
        shape = self.dimensions()
        at, element = self.at, self.type()
        if not t.is_number(element) and not isinstance(element, t.ComplexType) and not (
                isinstance(element, t.ShapedType) and element.kind != "tensor"):
            raise self.error("invalid memref element type", at)
        start = self.at
        if self.text not in (",", ">"):
            raise self.wrong_token("expected ',' or '>' in memref type")
        while self.accept(","):
            if self.text == ">":
                raise self.wrong_token("expected list element")
            self.attribute()
        suffix = self.source[start:self.at].rstrip()
        if not self.accept(">"):
            raise self.wrong_token("expected ',' or '>'")
        return t.ShapedType("memref", shape, element, suffix)

    def dimensions(self) -> tuple[int | None, ...] | None:
        """Parse a dimension list up to its last `x`; None for an unknown rank."""
        if self.accept("*"):
            self.end_dimension()
            return None
        dims = []
        while (self.kind == "number" and "." not in self.text) or self.text == "?" or (
                self.text == "-" and self.takes_negative_dimensions):
            dims.append(None if self._is_unknown_dimension() else self.dimension())
            self.end_dimension()
        return tuple(dims)

    def _is_unknown_dimension(self) -> bool:
        """Take the size of a dimension that is not known."""
        if self.accept("?"):
            return True
        if self.text != "-":
            return False
        at = self.at
        self.advance()
        if self.dimension() != 1:
            raise self.error("invalid dimension", at)
        return True

    def dimension(self) -> int:
        """Parse the size of a dimension. `0x` is a zero with an `x` behind it, never the start of digits."""
        if self.text.startswith("0x"):
            self.jump(self.at + 1)
            return 0
        at, text = self.at, self.take("number", "integer value")
        if not text.isdigit() or len(text) > 20 or int(text) > _MAX_DIMENSION:
            raise self.error("invalid dimension", at)
        return int(text)

    def end_dimension(self) -> None:
        """Take one `x` of the current token."""
        if self.kind != "word" or self.text[0] != "x":
            raise self.wrong_token("expected 'x' in dimension list")
        self.jump(self.at + 1)

    # Types of dialects, aliases

    def dialect_type(self) -> t.Type:
        at, (dialect, point, body) = self.at, self.dialect_text()
        if not point and not body:
            return self.resolve_alias(self.type_aliases, dialect)
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

    def resolve_alias(self, aliases: Mapping[str, T], name: str) -> T:
        """The type or attribute of an alias, which was taken. Raises MalformedText for an unknown one."""
        if name not in aliases:
            raise self.wrong_token(f"undefined symbol alias id '{name}'")
        return aliases[name]

    def skip_brackets(self, pattern: re.Pattern[str] = BRACKETS) -> None:
        """Pass the brackets that begin right behind the token; `_closed` is the position behind them."""
        where = position = self.end
        open_brackets: list[str] = []
        while True:
            match = pattern.search(self.source, position)
            if match is None:
                raise self.error(f"unbalanced '{open_brackets[-1]}' character in pretty dialect name", where)
            position, text = match.end(), match[0]
            if text in _PAIRS:
                open_brackets.append(text)
            elif text[0] == '"':
                where = match.start()
                if len(text) == 1:
                    self.jump(where)  # raises the error of the string
            elif text[-1] not in ">=" or len(text) == 1:
                if text != _PAIRS[open_brackets[-1]]:
                    raise self.error(f"unbalanced '{open_brackets[-1]}' character in pretty dialect name", where)
                open_brackets.pop()
                if not open_brackets:
                    self._closed = position
                    self.jump(position)
                    return


_KEYWORDS: dict[str, Callable[[TypeParser], t.Type]] = {
    "tensor": lambda parser: parser.tensor_type(), "vector": TypeParser.vector_type, "memref": TypeParser.memref_type,
    "complex": TypeParser.complex_type, "tuple": TypeParser.tuple_type,
}
