"""The parser of types and attributes of the dialects tf_type and tfg, and of tensors, which become bytes at once.

A dialect reads its own text between brackets, as MLIR does: brackets are matched first, then the text behind the point
is read from its start, and the parser goes on behind the brackets whatever the dialect left unread.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

from heald.api import wire
from heald.runtime.values import Buffer

from ... import attributes as a
from ... import types as t
from ...attribute_parser import AttributeParser
from ...attribute_text import attribute_text
from ...element_parser import Literals, shape_of
from ...lexer import MalformedText, unescaped_bytes
from ..values import dialect_attributes as d
from ..values import tensor_forms
from ..values.attribute_forms import full_types
from ..values.element_types import CONTROL, NUMBERS, OPAQUE, data_type_number

_SHAPE = re.compile(r"<(\*|(?:(?:-1|\?|\d{1,18})(?:x(?:-1|\?|\d{1,18}))*)?)>", re.ASCII)
_HEX, _AFTER_HEX = re.compile(r'\s*<\s*"0x'), re.compile(r'"\s*>\s*:')  # the digits between them may be gigabytes
_WORD = re.compile(r"[\w$.\-]*", re.ASCII)
_VERSION_FIELDS = ("producer", "min_consumer")
_TYPES = frozenset(text.removeprefix("!tf_type.") for text in (*NUMBERS, CONTROL, OPAQUE) if text[0] == "!")
_OLD_TYPES = ("tensor", "control")  # types of tf_type that had the dialect tfg
_SUBTYPED = ("resource", "variant")
_DIALECTS_WITHOUT_SYMBOLS = ("builtin", "func")
_MAX_ELEMENTS = 2**63 - 1
_INT4 = 29  # number of DataType
_DYNAMIC = -(1 << 63)  # an unknown size, by ShapedType::kDynamic of MLIR
T = TypeVar("T")
_TENSOR_PROTO_PREFIX = tensor_forms.MANGLED.decode()


class AttributeReader(AttributeParser):
    """A parser of attributes in graphs."""

    takes_negative_dimensions = True
    unsupported = ""  # text of a value in the last full type that no FullTypeDef holds

    def dialect_type(self) -> t.Type:
        text = self.text
        if text in self.types and not self.source.startswith("<", self.end):
            of = self.types[text]
            self.advance()
            return of
        at, dialect, name_at, is_closed = self._symbol_body()
        if name_at < 0:
            return self.resolve_alias(self.type_aliases, dialect)
        behind = self.at
        self.jump(name_at)
        of = self._type_of_dialect(dialect, at, name_at, is_closed)
        self.jump(behind)
        if not is_closed:
            self.types[text] = of
        return of

    def _symbol_body(self) -> tuple[int, str, int, bool]:
        """Take `!dialect.body` or `#dialect<body>`: the place for an error about the dialect, its name, the place of
        the body, and True where brackets end it. An alias has a place of -1."""
        at, text = self.at, self.text
        dialect, point, _ = text[1:].partition(".")
        has_brackets = self.source.startswith("<", self.end)
        name_at = at + len(dialect) + 2 if point or has_brackets else -1
        if has_brackets:
            self.skip_brackets()
        else:
            self.advance()
        return name_at if point else at, dialect, name_at, has_brackets

    def _type_of_dialect(self, dialect: str, at: int, name_at: int, is_closed: bool) -> t.Type:
        """Parse the body of a type. The current token is its first one."""
        old = dialect == "tfg" and self.text in _OLD_TYPES
        if dialect != "tf_type" and not old:
            raise self._foreign_symbol("type", f'`!"{dialect}"<"{self._body_text(name_at)}">`', dialect, at, name_at)
        name = self.keyword(name_at)
        if name not in _TYPES:  # TensorFlow compares the start of these names alone
            name = next((subtyped for subtyped in _SUBTYPED if name.startswith(subtyped)), name)
        if name not in _TYPES:
            raise self.error(f"unknown type in TF graph dialect: {name}", name_at)
        if name not in _SUBTYPED or not is_closed or self.text != "<":
            return t.OpaqueType("tf_type", name)
        self.advance()
        subtypes = [self._subtype(name_at)]
        while self.accept(","):
            subtypes.append(self._subtype(name_at))
        self.expect(">")
        return t.OpaqueType("tf_type", f"{name}<{', '.join(map(str, subtypes))}>")

    def _subtype(self, name_at: int) -> t.Type:
        at, of = self.at, self.type()
        if not isinstance(of, t.ShapedType) or of.kind != "tensor":
            raise self.error("invalid kind of type specified", at)
        if isinstance(of.element, t.ShapedType) or of.element == t.INDEX:
            raise self.error(f"invalid subtype: '{of}'", name_at)
        return of

    def keyword(self, at: int) -> str:
        """Take the name of a type or an attribute, which is to begin at a place."""
        if self.kind != "word" or self.at != at:
            raise self.error("expected valid keyword", at)
        text = self.text
        self.advance()
        return text

    def _body_text(self, start: int) -> str:
        """The text of a symbol behind the name of its dialect."""
        match = _WORD.match(self.source, start)
        assert match is not None
        end = match.end()
        if self.source.startswith("<", end):
            self.end = end
            self.skip_brackets()
            end = self._closed
        return self.source[start:end]

    def _foreign_symbol(self, kind: str, text: str, dialect: str, at: int, name_at: int) -> MalformedText:
        if dialect == "tfg" or dialect in _DIALECTS_WITHOUT_SYMBOLS:
            return self.error(f"dialect '{dialect}' provides no {kind} parsing hook", name_at)
        return self.error(f"{text} {kind} created with unregistered dialect", at)

    # Attributes of the dialects

    def dialect_attribute(self) -> a.Attribute:
        if self.text == "#tf_type.shape" and (match := _SHAPE.match(self.source, self.end)):
            return self._simple_shape(match)
        at, dialect, name_at, _ = self._symbol_body()
        if name_at < 0:
            return self.resolve_alias(self.aliases, dialect)
        of = self.type() if self.accept(":") else None
        behind = self.at
        self.jump(name_at)
        attribute = self._attribute_of_dialect(dialect, of, at, name_at)
        self.jump(behind)
        return attribute

    def _simple_shape(self, match: re.Match[str]) -> d.ShapeAttr:
        self.jump(match.end())
        if self.accept(":"):
            self.type()
        if match[1] == "*":
            return d.ShapeAttr(None)
        return d.ShapeAttr(tuple(-1 if dim == "?" else int(dim) for dim in match[1].split("x")) if match[1] else ())

    def _attribute_of_dialect(self, dialect: str, of: t.Type | None, at: int, name_at: int) -> a.Attribute:
        """Parse the body of an attribute. The current token is its first one."""
        attributes = _ATTRIBUTES.get(dialect)
        if attributes is None:
            text = f'#"{dialect}"<"{self._body_text(name_at)}"> : \'{of or t.NONE}\''
            raise self._foreign_symbol("attribute", text, dialect, at, name_at)
        if dialect == "tf_type" and self.text == "tensor_proto":
            return self.tensor_proto(of)
        name = self.keyword(name_at)
        parse = attributes.get(name)
        if parse is None:
            raise self.error(f"unknown attribute `{name}` in dialect `{dialect}`", name_at)
        return parse(self)

    def version(self) -> d.VersionAttr:
        self.expect("<")
        numbers = []
        for index, name in enumerate(_VERSION_FIELDS):
            if index:
                self.expect(",")
            self.expect_keyword(name, " in tf_type version")
            self.expect("=")
            numbers.append(self.int32("integer value"))
        bad: list[int] = []
        if self.accept(","):
            self.expect_keyword("bad_consumers", " in tf_type version")
            self.expect("=")
            bad = self.comma_list("[", "]", lambda: self.int32("integer value"))
            if not bad:
                raise self.error("expected integer value", self.at - 1)
        self.expect(">")
        return d.VersionAttr(numbers[0], numbers[1], tuple(bad))

    def int32(self, what: str) -> int:
        """Parse an integer of 32 bits. Raises MalformedText with `what` was expected."""
        start, negative = self.at, self.accept("-")
        if self.kind != "number" or "." in self.text:
            raise self.wrong_token(f"expected {what}") if negative else self.error(f"expected {what}", start)
        value = self.integer_value(self.text, negative, t.IntegerType(32, "s"), start)
        if value is None:
            raise self.error("integer value too large", start)
        self.advance()
        return value

    def shape(self) -> d.ShapeAttr:
        self.expect("<")
        if self.accept("*"):
            self.expect(">")
            return d.ShapeAttr(None)
        if self.accept(">"):
            return d.ShapeAttr(())
        dims = [self._shape_size()]
        while not self.accept(">"):
            self.end_dimension()
            dims.append(self._shape_size())
        return d.ShapeAttr(tuple(dims))

    def _shape_size(self) -> int:
        if self.accept("?"):
            return -1
        at, negative = self.at, self.accept("-")
        if self.kind != "number" or "." in self.text:
            raise self.error("expected decimal integer value", at)
        if self.text.startswith("0x"):
            return self.dimension()
        value = self.integer_value(self.text, negative, t.IntegerType(64, "s"), at)
        if value is None:
            raise self.error("integer value too large", at)
        self.advance()
        return -1 if value == _DYNAMIC else value

    def func(self) -> d.FuncAttr:
        self.expect("<")
        at, name = self.at, self.attribute()
        if isinstance(name, a.StringAttr):
            if name.value:
                raise self.error("expected empty string or symbol while parsing tf.func attribute", at)
            name = a.SymbolRefAttr("")
        if not isinstance(name, a.SymbolRefAttr):
            raise self.error("expected symbol while parsing tf.func attribute", at)
        self.expect(",")
        at, attrs = self.at, self.attribute()
        if not isinstance(attrs, a.DictionaryAttr):
            raise self.error("expected Dictionary attribute while parsing tf.func attribute", at)
        self.expect(">")
        return d.FuncAttr(name.root, attrs)

    def placeholder(self) -> d.PlaceholderAttr:
        self.expect("<")
        if self.kind != "string":
            raise self.error("expected string while parsing tf.placeholder attribute")
        name = self.string_value()
        self.expect(">")
        return d.PlaceholderAttr(name)

    def full_type(self) -> d.FullTypeAttr:
        self.expect("<")
        self.unsupported = ""
        raw = self.full_type_inside()
        self.expect(">")
        return d.FullTypeAttr(raw, self.unsupported)

    def full_type_inside(self) -> bytes:
        return self.parse_nested(self._full_type)

    def _full_type(self) -> bytes:
        kind = full_types().get(self.keyword(self.at))
        if kind is None:
            raise self.error("failed to parse TFType_FullTypeAttr parameter 'type_id'")
        arguments = self.comma_list("<", ">", self.full_type_inside) if self.text == "<" else []
        parts = [wire.put_integer(1, kind) if kind else b"", *(wire.put_bytes(2, argument) for argument in arguments)]
        if self.kind == "string":
            parts.append(wire.put_bytes(3, unescaped_bytes(self.text)))
            self.advance()
        elif self.text not in (",", ">"):
            attribute = self.attribute()
            if isinstance(attribute, a.IntegerAttr):
                parts.append(wire.put_integer(4, attribute.value))
            else:
                self.unsupported = attribute_text(attribute)
        return b"".join(parts)

    def region_attrs(self) -> d.RegionAttrs:
        self.expect("<")
        attrs = self._part_of_region(a.DictionaryAttr)
        arguments, results = self._part_of_region(a.ArrayAttr), self._part_of_region(a.ArrayAttr)
        self.expect(">")
        return d.RegionAttrs(attrs, arguments, results)

    def _part_of_region(self, kind: type[T]) -> T:
        at, part = self.at, self.attribute()
        if not isinstance(part, kind):
            raise self.error("invalid kind of attribute specified", at)
        return part

    def device_metadata(self) -> a.Attribute:
        """Parse `gpu_device_metadata<...>`, which no graph holds."""
        start = self.at
        self.end = start
        self.skip_brackets()
        return a.OpaqueAttr("tf_type", f".gpu_device_metadata{self.source[start:self._closed]}")

    # Tensors

    def tensor_proto(self, of: t.Type | None) -> a.Attribute:
        at = self.at
        self.advance()
        self.expect(":")
        if self.kind != "string":
            raise self.error("expected string")
        where, text = self.at, self.string_value()
        if of is None:
            raise self.error("expected the type of a tensor", where)
        if not text.startswith("0x"):
            raise self.error("Hex string doesn't start with `0x`", at)
        try:
            content = bytes.fromhex(text[2:])
        except ValueError:
            raise self.error("expected a TensorProto in hexadecimal digits", where) from None
        if not content.startswith(tensor_forms.MANGLED):
            return d.UnreadableTensor(f'No prefix "{_TENSOR_PROTO_PREFIX}" in "{content[:20].decode("latin-1")}"')
        raw = tensor_forms.demangle_tensor(content)
        if raw is None:
            raise self.error("expected a TensorProto in text form", where)
        return d.TensorAttr(str(of), (raw,))

    def dense(self) -> a.Attribute:
        at = self.at
        match = _HEX.match(self.source, self.end)
        end = -1 if match is None else self.source.find('"', match.end())
        after = None if end < 0 else _AFTER_HEX.match(self.source, end)
        if match is None or after is None:
            literals = self.literals()
            self.expect(":")
            return self.tensor_of(literals, self.checked_shape(self.type(), at), at)
        self.jump(after.end())
        of = self.checked_shape(self.type(), at)
        tensor = self.tensor_of_digits(match.end(), end, of)
        if tensor is not None:
            return tensor
        start = match.end() - 3
        return self.tensor_of(Literals([], (), (self.source[start:end + 1], False, start), []), of, at)

    def tensor_of_digits(self, start: int, end: int, of: t.ShapedType) -> a.Attribute | None:
        """The tensor of the hexadecimal digits between two positions, with one copy of them, for they may be most of
        the text. None for another type, and for a fault, which `tensor_of` finds."""
        number, shape = data_type_number(of), shape_of(of)
        if number is None or number == tensor_forms.STRING or of.element == t.I1 or prod(shape) > _MAX_ELEMENTS:
            return None
        storage = tensor_forms.LITERALS.get(number)
        try:
            data = bytes.fromhex(self.source[start:end])
        except ValueError:
            return None
        if storage is None or 2 * len(data) != end - start or (
                len(data) not in (storage.size, storage.size * prod(shape))):
            return None
        return self.tensor(number, shape, of, data)

    def tensor_of(self, literals: Literals, of: t.ShapedType, at: int) -> a.Attribute:
        """The tensor of literals as bytes; as a DenseAttr where TensorFlow has no bytes for it."""
        number = data_type_number(of)
        shape = shape_of(of)
        if number == tensor_forms.STRING:
            self.check_count(literals, of, at)
            return self.string_tensor([unescaped_bytes(text) for text in self.strings_of(literals, at)], shape, of)
        storage = None if number is None else tensor_forms.LITERALS.get(number)
        if storage is None or number is None:
            return self.dense_of(literals, of, at)
        if prod(shape) > _MAX_ELEMENTS:
            raise self.error("a tensor has more than 2**63 - 1 elements", at)
        if literals.text is not None and of.element != t.I1:
            data: Buffer = self.raw_bytes(literals.text)
            if len(data) not in (storage.size, storage.size * prod(shape)):
                raise self.wrong_size(of, at)
            return self.tensor(number, shape, of, data)
        values: Sequence[Any] = self.dense_of(literals, of, at).values
        flat = [part for pair in values for part in pair] if isinstance(of.element, t.ComplexType) else values
        mask = (1 << min(8 * struct.calcsize(storage.code), t.width_of(of.element) or 64)) - 1
        return self.tensor(number, shape, of,
                           struct.pack(f"<{len(flat)}{storage.code.upper()}", *[value & mask for value in flat]))

    def string_tensor(self, strings: list[bytes], shape: tuple[int, ...], of: t.Type) -> d.TensorAttr:
        strings = strings if prod(shape) else []
        splat = bool(strings) and strings.count(strings[0]) == len(strings)
        elements = tensor_forms.Elements(tensor_forms.STRING, shape, b"", strings[:1] if splat else strings, splat)
        return d.TensorAttr(str(of), tuple(tensor_forms.proto_of_elements(elements)))

    def tensor(self, number: int, shape: tuple[int, ...], of: t.Type, data: Buffer) -> d.TensorAttr:
        """The tensor of these elements, of which there is one where all are equal."""
        size = tensor_forms.LITERALS[number].size
        if not prod(shape):
            data = b""  # TensorFlow writes one element, which makes no valid tensor
        splat = len(data) == size or (len(data) > 0 and tensor_forms.equal(data, size))
        if number == _INT4 and splat and data:
            data = bytes(((data[0] & 0xF ^ 8) - 8 & 0xFF,))  # a list of one has a sign, content has four bits
        elements = tensor_forms.Elements(number, shape, data[:size] if splat else data, (), splat)
        return d.TensorAttr(str(of), tuple(tensor_forms.proto_of_elements(elements)))


_ATTRIBUTES: dict[str, dict[str, Callable[[AttributeReader], a.Attribute]]] = {
    "tf_type": {
        "version": AttributeReader.version, "shape": AttributeReader.shape, "func": AttributeReader.func,
        "placeholder": AttributeReader.placeholder, "full_type": AttributeReader.full_type,
        "gpu_device_metadata": AttributeReader.device_metadata,
    },
    "tfg": {"version": AttributeReader.version, "region_attrs": AttributeReader.region_attrs},
}
