"""The parser of attributes of the dialects tf_type and tfg, and of tensors, which become bytes at once."""

from __future__ import annotations

import re
import struct
from math import prod
from typing import Any

from heald.api import wire
from heald.runtime.values import Buffer

from .. import attributes as a
from .. import types as t
from ..attribute_parser import AttributeParser
from ..lexer import unescaped_bytes, unescaped_text
from . import dialect_attributes as d
from . import tensor_forms
from .attribute_forms import full_types
from .element_types import CONTROL, NUMBERS, OPAQUE

_SHAPE = re.compile(r"<\s*(\*|(?:(?:-1|\?|\d{1,18})(?:x(?:-1|\?|\d{1,18}))*)?)\s*>")
_HEX, _AFTER_HEX = re.compile(r'\s*<\s*"0x'), re.compile(r'"\s*>\s*:')  # the digits between them may be gigabytes
_VERSION_FIELDS = ("producer", "min_consumer")
_DIALECTS = ("tf_type", "tfg")
_TYPES = frozenset(text.removeprefix("!tf_type.") for text in (*NUMBERS, CONTROL, OPAQUE) if text[0] == "!")
_MOST_INT32 = 2**31 - 1


class AttributeReader(AttributeParser):
    """A parser of attributes in graphs."""

    dims = re.compile(r"\s*(\*x|(?:(?:\d+|\?|-1)x)*)")  # TensorFlow prints unknown dimensions of handles as -1

    def dialect_attribute(self) -> a.Attribute:
        dialect, _, name = self.text[1:].partition(".")
        read = _ATTRIBUTES.get(name) if dialect in _DIALECTS else None
        if dialect == "tf_type" and not name and self.source.startswith("<", self.end):
            return self.tensor_proto()
        return super().dialect_attribute() if read is None else read(self)

    def dialect_type(self) -> t.Type:
        at, of = self.at, super().dialect_type()
        if not isinstance(of, t.OpaqueType) or of.dialect not in _DIALECTS:
            return of
        plain_type = t.OpaqueType("tf_type", of.body)  # `!tfg.tensor` is an older spelling
        if of.body.partition("<")[0] not in _TYPES:
            raise self.error(f"unknown type in TF graph dialect: {of.body}", at)
        return plain_type

    # Attributes of the dialect; the current token is their name

    def version(self) -> d.VersionAttr:
        self.advance()
        self.expect("<")
        numbers = []
        for index, name in enumerate(_VERSION_FIELDS):
            if index:
                self.expect(",")
            self.expect(name)
            self.expect("=")
            numbers.append(self.int32(f"integer {name}"))
        bad: list[int] = []
        if self.accept(","):
            self.expect("bad_consumers")
            self.expect("=")
            bad = self.comma_list("[", "]", lambda: self.int32("integer bad consumer"))
        self.expect(">")
        return d.VersionAttr(numbers[0], numbers[1], tuple(bad))

    def int32(self, what: str) -> int:
        at, negative = self.at, self.accept("-")
        value = self.count(what)
        if value > _MOST_INT32:
            raise self.error(f"expected {what} of 32 bits", at)
        return -value if negative else value

    def shape(self) -> d.ShapeAttr:
        match = _SHAPE.match(self.source, self.end)
        if match is None:
            raise self.error("expected a shape, such as <1x?x3>, <*> or <>", self.end)
        self.jump(match.end())
        if match[1] == "*":
            return d.ShapeAttr(None)
        return d.ShapeAttr(tuple(-1 if dim == "?" else int(dim) for dim in match[1].split("x")) if match[1] else ())

    def func(self) -> d.FuncAttr:
        self.advance()
        self.expect("<")
        if self.kind == "string":
            name = unescaped_text(self.text)
            self.advance()
        else:
            name = self.symbol_name()
        self.expect(",")
        attrs = a.DictionaryAttr(tuple(sorted(self.parse_nested(self.dictionary).items(), key=_first)))
        self.expect(">")
        return d.FuncAttr(name, attrs)

    def placeholder(self) -> d.PlaceholderAttr:
        self.advance()
        self.expect("<")
        name = unescaped_text(self.take("string", "a name in quotes"))
        self.expect(">")
        return d.PlaceholderAttr(name)

    def full_type(self) -> d.FullTypeAttr:
        self.advance()
        self.expect("<")
        raw = self.full_type_inside()
        self.expect(">")
        return d.FullTypeAttr(raw)

    def full_type_inside(self) -> bytes:
        return self.parse_nested(self._full_type)

    def _full_type(self) -> bytes:
        kind = full_types().get(self.text) if self.kind == "word" else None
        if kind is None:
            raise self.error("expected the name of a full type")
        self.advance()
        arguments = self.comma_list("<", ">", self.full_type_inside) if self.text == "<" else []
        parts = [wire.put_integer(1, kind) if kind else b"", *(wire.put_bytes(2, argument) for argument in arguments)]
        if self.kind == "string":
            parts.append(wire.put_bytes(3, unescaped_bytes(self.text)))
            self.advance()
        elif self.kind == "number" or self.text == "-":
            number = self.number()
            parts.append(wire.put_integer(4, number.value if isinstance(number, a.IntegerAttr) else 0))
        return b"".join(parts)

    def region_attrs(self) -> d.RegionAttrs:
        self.advance()
        self.expect("<")
        attrs = a.DictionaryAttr(tuple(sorted(self.parse_nested(self.dictionary).items(), key=_first)))
        lists = [a.ArrayAttr(tuple(self.comma_list("[", "]", self.attribute))) for _ in range(2)]
        self.expect(">")
        return d.RegionAttrs(attrs, *lists)

    # Tensors

    def tensor_proto(self) -> d.TensorAttr:
        at = self.at
        self.advance()
        self.expect("<")
        self.expect("tensor_proto")
        self.expect(":")
        text = self.take("string", "a tensor in hexadecimal digits")[1:-1]
        self.expect(">")
        self.expect(":")
        of = self.type()
        try:
            raw = tensor_forms.demangle_tensor(bytes.fromhex(text.removeprefix("0x")))
        except ValueError:
            raw = None
        if raw is None:
            raise self.error("expected a TensorProto in hexadecimal digits", at)
        return d.TensorAttr(str(of), (raw,))

    def dense(self) -> a.Attribute:
        at = self.at
        match = _HEX.match(self.source, self.end)
        end = -1 if match is None else self.source.find('"', match.end())
        after = None if end < 0 else _AFTER_HEX.match(self.source, end)
        if match is None or after is None:
            return self.listed_tensor()
        self.jump(after.end())
        number, shape, of = self.tensor_type(at)
        digits = self.source[match.end():end]
        storage = tensor_forms.STORAGE.get(number)
        count = prod(shape)
        try:
            data: Buffer = bytes.fromhex(digits)
        except ValueError:
            raise self.error("elements hex string only contains hex digits", at) from None
        if len(digits) != 2 * len(data):  # white space
            raise self.error("elements hex string only contains hex digits", at)
        if storage is None or not count:
            raise self.error("elements hex data size is invalid for provided type", at)
        if number == tensor_forms.BOOL and len(data) == (count + 7) // 8 and count > 1:
            data = tensor_forms.booleans(data, count)
        if len(data) not in (storage.size, storage.size * count):
            raise self.error("elements hex data size is invalid for provided type", at)
        return self.tensor(number, shape, of, data)

    def listed_tensor(self) -> d.TensorAttr:
        self.advance()
        self.expect("<", " after 'dense'")
        at = self.at
        literals: list[Any] = []
        literal_shape = () if self.text == ">" else self.elements(literals)
        self.expect(">")
        self.expect(":")
        number, shape, of = self.tensor_type(at)
        count = prod(shape)
        if literal_shape != shape and not (literal_shape == () and len(literals) == 1) and (literals or count):
            raise self.error(f"inferred shape of elements literal ({list(literal_shape)}) does not match type "
                             f"({list(shape)})", at)
        if literals and not count:
            literals = []
        elif count and not literals:
            raise self.error(f"inferred shape of elements literal ([]) does not match type ({list(shape)})", at)
        if number == tensor_forms.STRING:
            return self.string_tensor(literals, shape, of)
        storage = tensor_forms.STORAGE.get(number)
        if storage is None:
            raise self.error(f"elements of type '{of}' have no literals", at,
                             hint='write #tf_type<tensor_proto : "0x...">')
        element = _ELEMENTS[number]
        values = [self.element(literal, element) for literal in literals]
        flat = [part for pair in values for part in pair] if isinstance(element, t.ComplexType) else values
        mask = (1 << 8 * struct.calcsize(storage.code)) - 1
        code = storage.code.upper()
        data = struct.pack(f"<{len(flat)}{code}", *[value & mask for value in flat])
        return self.tensor(number, shape, of, data)

    def element(self, literal: Any, of: t.Type) -> Any:
        if isinstance(literal, tuple) and literal[0][0] == '"':
            raise self.error(f"expected an element of type '{of}', not a string", literal[2])
        return super().element(literal, of)

    def string_tensor(self, literals: list[Any], shape: tuple[int, ...], of: str) -> d.TensorAttr:
        strings = []
        for literal in literals:
            if isinstance(literal, list) or literal[0][0] != '"':
                at = literal[0][2] if isinstance(literal, list) else literal[2]
                raise self.error("expected a string literal", at)
            strings.append(unescaped_bytes(literal[0]))
        splat = bool(strings) and strings.count(strings[0]) == len(strings)
        elements = tensor_forms.Elements(tensor_forms.STRING, shape, b"", strings[:1] if splat else strings, splat)
        return d.TensorAttr(of, tuple(tensor_forms.proto_of_elements(elements)))

    def tensor(self, number: int, shape: tuple[int, ...], of: str, data: Buffer) -> d.TensorAttr:
        """The tensor of these elements, of which there is one where all are equal."""
        size = tensor_forms.STORAGE[number].size
        splat = len(data) == size or (len(data) > 0 and tensor_forms.equal(data, size))
        elements = tensor_forms.Elements(number, shape, data[:size] if splat else data, (), splat)
        return d.TensorAttr(of, tuple(tensor_forms.proto_of_elements(elements)))

    def tensor_type(self, at: int) -> tuple[int, tuple[int, ...], str]:
        """Number of the DataType, shape and text of the type of a tensor with elements."""
        of = self.type()
        if not isinstance(of, t.ShapedType) or of.shape is None or None in of.shape:
            raise self.error("elements literal type must have static shape", at)
        number = NUMBERS.get(str(of.element))
        if number is None:
            raise self.error(f"'{of.element}' is no type of a tensor's elements", at)
        shape = tuple(dim or 0 for dim in of.shape)
        if prod(shape) > _MAX_ELEMENTS:
            raise self.error("a tensor has more than 2**63 - 1 elements", at)
        return number, shape, str(of)


_MAX_ELEMENTS = 2**63 - 1
_INTEGERS = [t.IntegerType(width, sign) for width in (1, 8, 16, 32, 64) for sign in ("", "u")]
_ELEMENTS = {NUMBERS[str(of)]: of for of in (
    *t.WORDS.values(), *_INTEGERS, t.ComplexType(t.F32), t.ComplexType(t.F64)) if str(of) in NUMBERS}


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


_ATTRIBUTES = {
    "version": AttributeReader.version, "shape": AttributeReader.shape, "func": AttributeReader.func,
    "placeholder": AttributeReader.placeholder, "full_type": AttributeReader.full_type,
    "region_attrs": AttributeReader.region_attrs,
}
