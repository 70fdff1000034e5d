"""The text form of GraphDef and SavedModel: parsed straight into the binary form, and written by protobuf's printer.

The parser is one loop over items: a field with its value, the beginning of a message, or its end. A regular expression
matches an item, a table gives the form of its field, and a stack holds the open messages. Time and memory are linear
for every input: a byte is scanned a fixed number of times, no quantifier backtracks, and nothing recurses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ...errors import InvalidArgument, Location, closest
from ...runtime.values import wire
from ...runtime.values.wire import put_varint
from ..protobuf.text_fields import Field, Message, message
from ..protobuf.text_scalars import checked_utf8, quote_token, unescape

_BLANK = r"[\t-\r ]*+(?:\#[^\n]*+[\t-\r ]*+)*+"  # with comments
_NAME = r"[A-Za-z_][\w+-]*+"
_WORD = rf"(?:{_NAME}|(?:[0-9+-]|\.[0-9])[\w.+-]*+)"  # a number or a name
_CONTENT, _TOKEN, _QUOTE, _BRACE, _LIST, _BARE_BRACE, _BARE_LIST, _CLOSE, _SEPARATOR = range(2, 11)  # in _ITEM


def _compile(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.VERBOSE)


_ITEM = _compile(rf"""
    ({_NAME}){_BLANK}
    (?: :{_BLANK}(?: "([^"\\\n]*+)"{_BLANK}(?!["'])[,;]?+{_BLANK}  # without escapes, and no second literal follows
                  | ({_WORD}){_BLANK}[,;]?+{_BLANK} | (["']) | ([{{<]){_BLANK} | (\[){_BLANK})
      | ([{{<]){_BLANK} | (\[){_BLANK})
  | ([}}>]){_BLANK}([,;]?+){_BLANK}
""")
_START = _compile(rf"(?:\xef\xbb\xbf)?+{_BLANK}")
_NAMED = _compile(rf"({_NAME}){_BLANK}(?:(:){_BLANK})?+")
_LITERAL = _compile(rf"""
    (?: "([^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+)" | '([^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*+)' ){_BLANK}
""")
_QUOTES = (b'"', b"'")
_FIELD_END = _compile(rf"[,;]?+{_BLANK}")
_ELEMENT = _compile(rf"({_WORD}){_BLANK}([,\]]){_BLANK}")
_ELEMENT_END = _compile(rf"()([,\]]){_BLANK}")
_MESSAGE_ELEMENT = _compile(rf"([{{<]){_BLANK}")
_LIST_END = _compile(rf"\]{_BLANK}[,;]?+{_BLANK}")
_ANYTHING = _compile(r"[\w.+-]++|[\x80-\xff]++|[^\n]")
_CLOSING = {b"{": b"}", b"<": b">"}
_SIZES = [put_varint(size) for size in range(128)]

T = TypeVar("T")
_FieldValues = dict[int, Any]  # fields so far, with tags: bytes; repeated: a bytearray; map: values by key


class _Malformed(Exception):
    """The text is malformed at byte `at`."""

    def __init__(self, at: int, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.at = at
        self.hint = hint


def parse(data: bytes, file: str, kind: str = "GraphDef") -> bytes:
    """The binary form of a GraphDef, or of another kind of message, in text form. `file` is its name in errors.

    Fields are sorted by number, the entries of maps by key. Raises InvalidArgument, with line and column.
    """
    try:
        _check_utf8(data)
        return _Parser(data, message(kind)).parse_all()
    except _Malformed as error:
        start = data.rfind(b"\n", 0, error.at) + 1
        column = len(data[start : error.at].decode("utf-8-sig")) + 1
        location = Location(file, data.count(b"\n", 0, error.at) + 1, column)
        raise InvalidArgument(str(error), location=location, hint=error.hint) from None


def _check_utf8(data: bytes) -> None:
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError as error:
        raise _Malformed(error.start, "this is not UTF-8", "pass text=False for the binary form") from None


class _Parser:
    """A text, parsed up to byte `at`.

    `message`, `fields` and `field_values` belong to the innermost open message. Each entry of `opened` has these three
    of an outer message. Four facts of the message inside it follow: its field, its closing bracket, its first byte, and
    True if it is an element of a list.
    """

    def __init__(self, data: bytes, root: Message) -> None:
        self.data = data
        self.message = root
        self.fields = root.fields
        self.field_values: _FieldValues = {}
        self.opened: list[tuple[Message, _FieldValues, Field, bytes, int, bool]] = []
        self.at = self.position_after(_START, 0, "text")

    def parse_all(self) -> bytes:
        """The binary form of the whole text. Raises _Malformed."""
        data, end, item = self.data, len(self.data), _ITEM.match
        steps = {_CONTENT: self.parse_plain_string, _TOKEN: self.parse_token, _QUOTE: self.parse_string,
                 _BRACE: self.begin_message,
                 _LIST: self.parse_short_list, _BARE_BRACE: self.begin_message, _BARE_LIST: self.parse_short_list,
                 _SEPARATOR: self.end_message}
        while self.at < end:
            match = item(data, self.at)
            if match is None:
                raise self.unexpected_item_error()
            self.at = match.end()
            steps[match.lastindex](match)  # type: ignore[index]  # each alternative has one of these groups
        if self.opened:
            *_, closing, begin, _ = self.opened[-1]
            raise _Malformed(begin, f"the text ends before the '{quote_token(closing)}' of this message")
        return bytes(_message_bytes(self.message, self.field_values))

    def field_of(self, match: re.Match[bytes]) -> Field:
        field = self.fields.get(match[1])
        if field is None:
            name, names = quote_token(match[1]), [name.decode() for name in self.fields]
            suggestions = closest(name, names, limit=1)
            raise _Malformed(match.start(), f'{self.message.name} has no field named "{name}"',
                             f"did you mean '{suggestions[0]}'?" if suggestions
                             else f"it has {', '.join(names) or 'none'}")
        return field

    def parse_plain_string(self, match: re.Match[bytes]) -> None:
        """Parse a field whose value is a string without escapes."""
        field = self.field_of(match)
        content = match[_CONTENT]
        if not field.is_text:
            raise _refusal(field, b'"%b"' % content, match.start(_CONTENT) - 1)
        self.add_field(field, _with_length(field.tag, content), match.start())

    def parse_token(self, match: re.Match[bytes]) -> None:
        """Parse a field whose value is a number or a name."""
        field = self.field_of(match)
        token = match[_TOKEN]
        raw = field.token_bytes.get(token) or _read(field, field.read, token, match.start(_TOKEN))
        self.add_field(field, field.tag + raw, match.start())

    def parse_string(self, match: re.Match[bytes]) -> None:
        """Parse a field whose value is any string."""
        field = self.field_of(match)
        self.at = match.start(_QUOTE)
        self.add_field(field, self.string_bytes(field), match.start())
        self.at = self.position_after(_FIELD_END, self.at, "a field")

    def string_bytes(self, field: Field) -> bytes:
        """Tag and value of a field whose value is one or more string literals."""
        begin, content = self.at, bytearray()
        if not field.is_text:
            raise _refusal(field, self.data[begin : begin + 80].splitlines()[0], begin)
        while self.data.startswith(_QUOTES, self.at):
            match = _LITERAL.match(self.data, self.at)
            if match is None:
                raise _Malformed(self.at, "this string has no end")
            body = match[match.lastindex or 0]
            content += body if b"\\" not in body else _read(field, unescape, body, self.at)
            self.at = match.end()
        if field.is_string:
            _read(field, checked_utf8, content, begin)
        return _with_length(field.tag, content)

    def begin_message(self, match: re.Match[bytes]) -> None:
        field = self.field_of(match)
        bracket = match[match.lastindex or 0]
        if field.message is None:
            raise _refusal(field, bracket, match.start(match.lastindex or 0))
        self.push_message(field, field.message, bracket, match.start(), in_list=False)

    def push_message(self, field: Field, inner: Message, bracket: bytes, begin: int, *, in_list: bool) -> None:
        if len(self.opened) >= wire.NESTING:
            raise _Malformed(begin, f"nesting: messages more than {wire.NESTING} deep")
        self.opened.append((self.message, self.field_values, field, _CLOSING[bracket], begin, in_list))
        self.message, self.fields, self.field_values = inner, inner.fields, {}

    def end_message(self, match: re.Match[bytes]) -> None:
        """Parse the end of a message."""
        closing = self.opened[-1][3] if self.opened else b""
        if match[_CLOSE] != closing:
            expected = f"'{quote_token(closing)}'" if closing else "a field or the end of the text"
            raise _Malformed(match.start(), f"expected {expected}, got '{quote_token(match[_CLOSE])}'")
        inner, values = self.message, self.field_values
        self.message, self.field_values, field, _, begin, in_list = self.opened.pop()
        self.fields = self.message.fields
        if field.order is None:
            self.add_field(field, _with_length(field.tag, _message_bytes(inner, values)), begin)
        else:  # of equal keys the last one counts
            key, value = values.get(1, inner.entry_defaults[0]), values.get(2, inner.entry_defaults[1])
            self.field_values.setdefault(field.number, {})[key] = value
        if in_list:
            self.after_element(field, match)

    def after_element(self, field: Field, match: re.Match[bytes]) -> None:
        """Parse the separator after a message of a list: begin the next message, or end the list."""
        if match[_SEPARATOR] == b",":
            self.begin_element(field)
        else:
            self.at = self.position_after(_LIST_END, match.start(_SEPARATOR), "',' or ']'")

    def begin_element(self, field: Field) -> None:
        begin = self.at
        self.at = self.position_after(_MESSAGE_ELEMENT, begin, "'{'")
        assert field.message is not None
        self.push_message(field, field.message, self.data[begin : begin + 1], begin, in_list=True)

    def parse_short_list(self, match: re.Match[bytes]) -> None:
        """Parse the short form of a repeated field."""
        field = self.field_of(match)
        if not field.is_repeated:
            raise _refusal(field, b"[", match.start(match.lastindex or 0))
        if field.message is None and match.lastindex == _BARE_LIST:
            raise _Malformed(match.start(_BARE_LIST), f"expected ':' after '{field.name}', got '['")
        if self.data.startswith(b"]", self.at):
            self.at = self.position_after(_LIST_END, self.at, "']'")
        elif field.message is None:
            self.parse_scalar_list(field)
        else:
            self.begin_element(field)

    def parse_scalar_list(self, field: Field) -> None:
        """Parse the elements of a list of scalars, and its end."""
        values: bytearray = self.field_values.setdefault(field.number, bytearray())
        data, tag, token_bytes, delimiter = self.data, field.tag, field.token_bytes, b","
        while delimiter == b",":
            match = _ELEMENT.match(data, self.at)
            if match is not None:
                values += tag + (token_bytes.get(match[1]) or _read(field, field.read, match[1], self.at))
            elif data.startswith(_QUOTES, self.at):
                values += self.string_bytes(field)
                match = _ELEMENT_END.match(data, self.at)
            if match is None:
                expected = f"expected {field.expected}, then ',' or ']'"
                raise _Malformed(self.at, f"'{field.name}': {expected}, got {self.word_at(self.at)}")
            delimiter = match[2]
            self.at = match.end()
        self.at = self.position_after(_FIELD_END, self.at, "a field")

    def add_field(self, field: Field, tagged_value: bytes, begin: int) -> None:
        """Add a field, as tag and value, to the innermost message."""
        fields, number = self.field_values, field.number
        if field.is_repeated:
            elements = fields.get(number)
            if elements is None:
                fields[number] = bytearray(tagged_value)
            else:
                elements += tagged_value
        elif number in fields:
            raise _Malformed(begin, f"'{field.name}' of {self.message.name} has one value, got a second")
        elif field.rivals and not field.rivals.isdisjoint(fields):
            raise _Malformed(begin, f"'{field.name}' excludes another field that {self.message.name} has here")
        elif tagged_value != field.default:
            fields[number] = tagged_value

    def position_after(self, pattern: re.Pattern[bytes], at: int, expected: str) -> int:
        match = pattern.match(self.data, at)
        if match is None:
            raise _Malformed(at, f"expected {expected}, got {self.word_at(at)}")
        return match.end()

    def word_at(self, at: int) -> str:
        match = _ANYTHING.match(self.data, at)
        return f"'{quote_token(match[0])}'" if match else "the end of the text"

    def unexpected_item_error(self) -> _Malformed:
        """The error at a position where no item follows."""
        name = _NAMED.match(self.data, self.at)
        at = name.end() if name else self.at
        if self.data.startswith(_QUOTES, at):
            return _Malformed(at, "this string has no end")
        if name is None:
            return _Malformed(at, f"expected a field's name, got {self.word_at(at)}")
        expected = "a value" if name[2] else "':'"
        return _Malformed(at, f"expected {expected} after '{quote_token(name[1])}', got {self.word_at(at)}")


def _message_bytes(kind: Message, values: _FieldValues) -> bytes | bytearray:
    """The binary form of a message with these fields."""
    if kind.collected:
        for number in kind.collected.keys() & values.keys():
            values[number] = _collected_bytes(kind.collected[number], values[number])
    if len(values) == 1:
        (only,) = values.values()
        return only  # type: ignore[no-any-return]
    return b"".join([values[number] for number in sorted(values)])


def _collected_bytes(field: Field, values: Any) -> bytes:
    """The packed values of a field, or the entries of a map."""
    if field.order is None:
        return _with_length(put_varint(field.number << 3 | wire.BYTES), values)
    keys = sorted(values, key=field.order) if len(values) > 1 else values
    return b"".join([_with_length(field.tag, key + values[key]) for key in keys])


def _with_length(tag: bytes, content: bytes | bytearray) -> bytes:
    size = len(content)
    return tag + (_SIZES[size] if size < 128 else put_varint(size)) + content


def _read(field: Field, convert: Callable[[Any], T], value: bytes | bytearray, at: int) -> T:
    """The wire's bytes of a value. Raises _Malformed."""
    try:
        return convert(value)
    except ValueError as error:
        raise _Malformed(at, f"'{field.name}': {error}") from None


def _refusal(field: Field, value: bytes, at: int) -> _Malformed:
    """The error for a value whose form does not fit the field."""
    return _Malformed(at, f"'{field.name}': expected {field.expected}, got '{quote_token(value)}'")


def write(raw: bytes) -> bytes:
    """The text form of a binary GraphDef. Raises InvalidArgument for fields that text cannot express."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    from ..protobuf.descriptor_pool import message_class

    try:
        message = message_class("GraphDef").FromString(raw)
    except DecodeError as error:
        raise InvalidArgument(f"this graph has no text form: {error}") from None
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise InvalidArgument("fields unknown to TensorFlow's messages have no text form", node=_unknown(raw),
                              hint="write the binary form")
    return text_format.MessageToString(message).encode()


def _unknown(raw: bytes) -> str | None:
    """The name of the first node with fields that have no text form, or None."""
    from ..protobuf.descriptor_pool import message_class

    for node in message_class("GraphDef").FromString(raw).node:  # type: ignore[attr-defined]
        size = node.ByteSize()
        node.DiscardUnknownFields()
        if node.ByteSize() != size:
            return str(node.name)
    return None
