"""The parser of the elements of tensors, and of the numbers in them, after MLIR's own.

`dense<...>` is read as literals first; the type behind it then says what they mean. A literal is a tuple of its text,
its sign and its position; a complex number is two literals in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from . import attributes as a
from . import floats
from . import types as t
from .lexer import unescaped_text
from .location_parser import LocationParser

_MAX_NUMBER_CHARACTERS = 100  # characters of a number
Literal = tuple[str, bool, int]


class Literals(NamedTuple):
    """Literals between `dense<` and `>`, and the lengths of their lists. `text`: the one string, which may be digits.

    `pairs`: positions of complex numbers.
    """

    values: list[Literal]
    shape: tuple[int, ...]
    text: Literal | None
    pairs: list[int]


class ElementParser(LocationParser):
    """A parser of tensors."""

    def dense(self) -> a.Attribute:
        """Parse `dense<...> : type`."""
        at = self.at
        literals = self.literals()
        self.expect(":")
        of = self.checked_shape(self.type(), at)
        return self.dense_of(literals, of, at)

    def literals(self) -> Literals:
        """Parse `dense<...>`."""
        self.advance()
        self.expect("<", " after 'dense'")
        literals = Literals([], (), None, [])
        if self.accept(">"):
            return literals
        if self.kind == "string":
            literals = literals._replace(text=(self.text, False, self.at))
            self.advance()
        elif self.text == "[":
            literals = literals._replace(shape=self._list(literals))
        else:
            self._element(literals)
        self.expect(">")
        return literals

    def _list(self, literals: Literals) -> tuple[int, ...]:
        """Parse a nested list of literals and return its shape. Raises MalformedText for a ragged one."""
        self.advance()
        count = 0
        shape: tuple[int, ...] = ()
        if self.accept("]"):
            return (0,)
        while True:
            inner: tuple[int, ...] = ()
            if self.text == "[":
                inner = self.parse_nested(lambda: self._list(literals))
            else:
                self._element(literals)
            if count and inner != shape:
                raise self.error("tensor literal is invalid; ranks are not consistent between elements")
            count, shape = count + 1, inner
            if not self.accept(","):
                break
        self.expect("]")
        return (count, *shape)

    def _element(self, literals: Literals) -> None:
        text, at = self.text, self.at
        if self.kind in ("number", "string") or (self.kind == "word" and text in ("true", "false")):
            literals.values.append((text, False, at))
            self.advance()
        elif text == "-":
            self.advance()
            if self.kind != "number":
                raise self.error("expected integer or floating point literal")
            literals.values.append((self.text, True, self.at))
            self.advance()
        elif text == "(":
            literals.pairs.append(at)
            self.advance()
            self.parse_nested(lambda: self._element(literals))
            self.expect(",", " between complex elements")
            self.parse_nested(lambda: self._element(literals))
            self.expect(")", " after complex elements")
        else:
            raise self.error("expected element literal of primitive type")

    def checked_shape(self, of: t.Type, at: int) -> t.ShapedType:
        """The type of a tensor with elements. Raises MalformedText for another type."""
        if not isinstance(of, t.ShapedType):
            raise self.error("elements literal must be a shaped type", at)
        if of.shape is None or None in of.shape:
            raise self.error("elements literal type must have static shape", at)
        return of

    def dense_of(self, literals: Literals, of: t.ShapedType, at: int) -> a.DenseAttr:
        """The tensor of literals. Raises MalformedText for those that do not fit its type."""
        element = of.element
        is_complex = isinstance(element, t.ComplexType)
        part = element.element if isinstance(element, t.ComplexType) else element
        if literals.text is not None and t.is_number(part):
            return a.DenseAttr(of, self.hexadecimal(literals.text, of, at))
        self.check_count(literals, of, at)
        if not t.is_number(part):
            return a.DenseAttr(of, _splat([unescaped_text(text) for text in self.strings_of(literals, at)]))
        read = self.float_element if t.is_float(part) else self.integer_element
        values: list[Any] = [read(literal, part) for literal in literals.values]
        if is_complex:
            self.check_complex_count(literals, of, at)
            values = list(zip(values[::2], values[1::2], strict=True))
        return a.DenseAttr(of, _splat(values))

    def check_count(self, literals: Literals, of: t.ShapedType, at: int) -> None:
        """Raises MalformedText where the number of literals, or the lengths of their lists, do not fit a type."""
        shape = shape_of(of)
        count = prod(shape)
        if literals.shape and literals.shape != shape:
            raise self.error(f"inferred shape of elements literal ({list(literals.shape)}) does not match type "
                             f"({list(shape)})", at)
        if literals.text is None and not literals.values and count:
            raise self.error(f"parsed zero elements, but type ('{of}') expected at least 1", at)
        if literals.pairs and not isinstance(of.element, t.ComplexType):
            raise self.error(f"expected element type to be complex, it is '{of.element}'", literals.pairs[0])

    def check_complex_count(self, literals: Literals, of: t.ShapedType, at: int) -> None:
        count = 2 * prod(shape_of(of)) if literals.shape else 2
        if len(literals.values) not in (count, 0):
            raise self.error(f"parsed {len(literals.values)} elements, but type "
                             f"('{of if literals.shape else of.element}') expected {count} elements", at)

    def strings_of(self, literals: Literals, at: int) -> list[str]:
        """The texts of string literals, in quotes."""
        if literals.text is not None:
            return [literals.text[0]]
        for text, _, _ in literals.values:
            if text[0] != '"':
                raise self.error(f"expected string token, got {text}", at)
        return [text for text, _, _ in literals.values]

    def integer_element(self, literal: Literal, of: t.Type) -> int:
        """A literal as an element of integers. Raises MalformedText for another one."""
        text, negative, at = literal
        if negative and isinstance(of, t.IntegerType) and of.sign == "u":
            raise self.error("expected unsigned integer elements, but parsed negative value", at)
        if "." in text and text[0] != '"':
            raise self.error("expected integer elements, but parsed floating-point", at)
        if text in ("true", "false"):
            if of != t.I1:
                raise self.error("expected i1 type for 'true' or 'false' values", at)
            return int(text == "true")
        value = None if text[0] == '"' else self.integer_value(text, negative, of, at)
        if value is None:
            raise self.error("integer constant out of range for type", at)
        return value

    def float_element(self, literal: Literal, of: t.Type) -> int:
        """The bits of a literal as an element of floats. Raises MalformedText for another one."""
        text, negative, at = literal
        if not text[0].isdigit():
            raise self.error("expected floating point literal", at)
        return self.float_bits(text, negative, str(of), at)

    def hexadecimal(self, literal: Literal, of: t.ShapedType, at: int) -> tuple[Any, ...]:
        """Elements from `"0x..."`, little endian. Raises MalformedText for other texts, and other sizes."""
        element = of.element
        part = element.element if isinstance(element, t.ComplexType) else element
        raw, count = self.raw_bytes(literal), prod(shape_of(of))
        if element == t.I1:
            bits = int.from_bytes(raw, "little")
            if raw in (b"\0", b"\xff") or (len(raw) == count == 1):
                return (int(bits != 0),)
            if len(raw) != (count + 7) // 8:
                raise self.wrong_size(of, at)
            return _splat([bits >> index & 1 for index in range(count)])
        size = (t.width_of(part) + 7) // 8
        if len(raw) not in (size * (1 + (part is not element)), size * (1 + (part is not element)) * count):
            raise self.wrong_size(of, at)
        signed = isinstance(part, t.IntegerType) and part.sign != "u"
        numbers = [int.from_bytes(raw[i:i + size], "little", signed=signed) for i in range(0, len(raw), size)]
        if part is not element:
            return tuple(zip(numbers[::2], numbers[1::2], strict=True))
        return tuple(numbers)

    def wrong_size(self, of: t.Type, at: int) -> Exception:
        return self.error(f"elements hex data size is invalid for provided type: '{of}'", at)

    def raw_bytes(self, literal: Literal) -> bytes:
        """The bytes of a string of hexadecimal digits. Raises MalformedText for another string."""
        digits = literal[0][3:-1]
        try:
            raw = bytes.fromhex(digits)
        except ValueError:
            raw = None
        if raw is None or not literal[0].startswith('"0x') or len(digits) != 2 * len(raw):  # white space
            raise self.error("expected string containing hex digits starting with `0x`", literal[2])
        return raw

    # Numbers

    def integer_value(self, text: str, negative: bool, of: t.Type, at: int) -> int | None:
        """The integer that a literal stands for; None for one that its type does not hold.

        Values of signless types are in the range of signed ones, but of i1 in that of unsigned ones.
        """
        if len(text) > _MAX_NUMBER_CHARACTERS:
            raise self.error("number literal is too long", at)
        value = int(text, 16) if text.startswith("0x") else int(text)
        width, sign = (of.width, of.sign) if isinstance(of, t.IntegerType) else (64, "s")
        if value >> width or (negative and not 0 < value <= 1 << max(width - 1, 0)) or (negative and not width):
            return None
        if negative:
            return -value if width > 1 or sign else value
        top = width > 0 and value >> width - 1
        if not top or sign == "u":
            return value
        if sign == "s":
            return None
        return value - (1 << width) if width > 1 else value

    def float_bits(self, text: str, negative: bool, name: str, at: int) -> int:
        """The bits of a literal in a format of floats. Raises MalformedText for one that is no float."""
        if "." in text:
            if len(text) > _MAX_NUMBER_CHARACTERS:
                raise self.error("number literal is too long", at)
            return floats.bits_of(-float(text) if negative else float(text), name)
        if not text.startswith("0x"):
            raise self.error("unexpected decimal integer literal for a floating point value", at,
                             hint="add a trailing dot to make the literal a float")
        if negative:
            raise self.error("hexadecimal float literal should not have a leading minus", at)
        bits = int(text, 16)
        if bits >> floats.FORMATS[name].width:
            raise self.error("hexadecimal float constant out of range for type", at)
        return bits


def shape_of(of: t.ShapedType) -> tuple[int, ...]:
    """The dimensions of a type that has no unknown ones."""
    return tuple([dim or 0 for dim in of.shape or ()])


def _splat(values: Sequence[Any]) -> tuple[Any, ...]:
    """One element where all are equal."""
    return tuple(values[:1]) if len(values) > 1 and values.count(values[0]) == len(values) else tuple(values)
