"""The text form of GraphDef and SavedModel: read straight into the binary form, and written by protobuf's printer.

The parser is one loop over items: a field with its value, the beginning of a message, or its end. A regular expression
takes an item, a table says how its field is written, and a stack has the messages that are open. Each byte is scanned a
fixed number of times, whatever the text holds: no quantifier backtracks, and nothing recurses.
"""

from __future__ import annotations

import re
from typing import Any

from . import wire
from .errors import InvalidArgument, Location, closest
from .text_fields import Field, Message, message
from .text_scalars import shown, string
from .wire import put_varint

_BLANK = r"[\t-\r ]*+(?:\#[^\n]*+[\t-\r ]*+)*+"  # with comments
_NAME = r"[A-Za-z_][\w+-]*+"
_STRING = r"""(?:"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|'[^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*+')"""
_VALUE = rf"""(?:
    "([^"\\\n]*+)"{_BLANK}(?!["'])                  # a string without escapes and without a second literal
  | ({_NAME}|(?:[0-9+-]|\.[0-9])[\w.+-]*+){_BLANK}  # a number, or a name of one
  | ((?:{_STRING}{_BLANK})++)                       # any string
)"""
_CONTENT, _TOKEN, _STRINGS, _BRACE, _LIST, _BARE_BRACE, _BARE_LIST, _CLOSE, _SEPARATOR = range(2, 11)  # in _ITEM


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.VERBOSE)


_ITEM = _compiled(rf"""
    ({_NAME}){_BLANK}
    (?: :{_BLANK}(?: {_VALUE}[,;]?+{_BLANK} | ([{{<]){_BLANK} | (\[){_BLANK}) | ([{{<]){_BLANK} | (\[){_BLANK})
  | ([}}>]){_BLANK}([,;]?+){_BLANK}
""")
_START = _compiled(rf"(?:\xef\xbb\xbf)?+{_BLANK}")
_NAMED = _compiled(rf"({_NAME}){_BLANK}(?:(:){_BLANK})?+")
_ELEMENT = _compiled(rf"{_VALUE}([,\]]){_BLANK}")
_MESSAGE_ELEMENT = _compiled(rf"([{{<]){_BLANK}")
_LIST_END = _compiled(rf"\]{_BLANK}[,;]?+{_BLANK}")
_WORD = _compiled(r"[\w.+-]++|[\x80-\xff]++|[^\n]")
_CLOSING = {b"{": b"}", b"<": b">"}
_SIZES = [put_varint(size) for size in range(128)]

_Got = dict[int, Any]  # fields so far, with tags: bytes; a bytearray of a repeated one; of a map, values by key


class _Malformed(Exception):
    """The text is wrong at byte `at`."""

    def __init__(self, at: int, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.at = at
        self.hint = hint


def parse(data: bytes, file: str, kind: str = "GraphDef") -> bytes:
    """The binary form of a GraphDef, or another kind of message, in text form; `file` is its name in errors.

    Fields are sorted by number, the entries of maps by key. Raises InvalidArgument with the place in the text.
    """
    try:
        if not data.isascii():
            data.decode()
        return _Parser(data, message(kind)).run()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidArgument("this is not UTF-8", location=Location(file, line),
                              hint="pass text=False for the binary form") from None
    except _Malformed as error:
        start = data.rfind(b"\n", 0, error.at) + 1
        column = len(data[start : error.at].decode("utf-8-sig")) + 1
        location = Location(file, data.count(b"\n", 0, error.at) + 1, column)
        raise InvalidArgument(str(error), location=location, hint=error.hint) from None


class _Parser:
    """The messages that are open: the innermost in `message`, `fields` and `got`, those around it in `opened`."""

    def __init__(self, data: bytes, root: Message) -> None:
        self.data = data
        self.message = root
        self.fields = root.fields
        self.got: _Got = {}
        self.opened: list[tuple[Message, _Got, Field, bytes, int, bool]] = []
        self.at = self.after(_START, 0, "text")

    def run(self) -> bytes:
        """The binary form of the whole text. Raises _Malformed."""
        data, end, item = self.data, len(self.data), _ITEM.match
        steps = (None, None, self.content, self.token, self.strings, self.begin, self.list, self.begin, self.list,
                 None, self.end)
        while self.at < end:
            match = item(data, self.at)
            if match is None:
                raise self.unexpected()
            self.at = match.end()
            steps[match.lastindex](match)  # type: ignore[index, misc]  # each alternative has one of these groups
        if self.opened:
            *_, closing, begin, _ = self.opened[-1]
            raise _Malformed(begin, f"the text ends before the '{shown(closing)}' of this message")
        return bytes(_joined(self.message, self.got))

    def field(self, match: re.Match[bytes]) -> Field:
        found = self.fields.get(match[1])
        if found is None:
            name, names = shown(match[1]), [name.decode() for name in self.fields]
            near = closest(name, names, most=1)
            raise _Malformed(match.start(), f'{self.message.name} has no field named "{name}"',
                             f"did you mean '{near[0]}'?" if near else f"it has {', '.join(names) or 'none'}")
        return found

    def content(self, match: re.Match[bytes]) -> None:
        """A field whose value is a string without escapes."""
        field = self.field(match)
        content = match[_CONTENT]
        if not field.is_text:
            raise _refusal(field, b'"%b"' % content, match.start(_CONTENT) - 1)
        self.put(field, _sized(field.tag, content), match.start())

    def token(self, match: re.Match[bytes]) -> None:
        """A field whose value is a number or a name."""
        field = self.field(match)
        token = match[_TOKEN]
        raw = field.known.get(token) or _read(field, token, match.start(_TOKEN))
        self.put(field, field.tag + raw, match.start())

    def strings(self, match: re.Match[bytes]) -> None:
        """A field whose value is string literals in a row."""
        field = self.field(match)
        self.put(field, _text(field, match[_STRINGS], match.start(_STRINGS)), match.start())

    def begin(self, match: re.Match[bytes]) -> None:
        field = self.field(match)
        bracket = match[match.lastindex or 0]
        if field.message is None:
            raise _refusal(field, bracket, match.start(match.lastindex or 0))
        self.push(field, field.message, bracket, match.start(), in_list=False)

    def push(self, field: Field, inner: Message, bracket: bytes, begin: int, *, in_list: bool) -> None:
        if len(self.opened) >= wire.NESTING:
            raise _Malformed(begin, f"nesting: messages more than {wire.NESTING} deep")
        self.opened.append((self.message, self.got, field, _CLOSING[bracket], begin, in_list))
        self.message, self.fields, self.got = inner, inner.fields, {}

    def end(self, match: re.Match[bytes]) -> None:
        """The end of a message."""
        closing = self.opened[-1][3] if self.opened else b""
        if match[_CLOSE] != closing:
            expected = f"'{shown(closing)}'" if closing else "a field or the end of the text"
            raise _Malformed(match.start(), f"expected {expected}, got '{shown(match[_CLOSE])}'")
        inner, got = self.message, self.got
        self.message, self.got, field, _, begin, in_list = self.opened.pop()
        self.fields = self.message.fields
        if field.order is None:
            self.put(field, _sized(field.tag, _joined(inner, got)), begin)
        else:  # the last of equal keys counts
            self.got.setdefault(field.number, {})[got.get(1, inner.absent[0])] = got.get(2, inner.absent[1])
        if in_list:
            self.next(field, match)

    def next(self, field: Field, match: re.Match[bytes]) -> None:
        """Go on behind a message in a list: with another one, or the list's end."""
        if match[_SEPARATOR] == b",":
            self.element(field)
        else:
            self.at = self.after(_LIST_END, match.start(_SEPARATOR), "',' or ']'")

    def element(self, field: Field) -> None:
        begin = self.at
        self.at = self.after(_MESSAGE_ELEMENT, begin, "'{'")
        assert field.message is not None
        self.push(field, field.message, self.data[begin : begin + 1], begin, in_list=True)

    def list(self, match: re.Match[bytes]) -> None:
        """The short form of a repeated field."""
        field = self.field(match)
        if not field.is_repeated:
            raise _refusal(field, b"[", match.start(match.lastindex or 0))
        if field.message is None and match.lastindex == _BARE_LIST:
            raise _Malformed(match.start(_BARE_LIST), f"expected ':' after '{field.name}', got '['")
        if self.data.startswith(b"]", self.at):
            self.at = self.after(_LIST_END, self.at, "']'")
        elif field.message is None:
            self.scalars(field)
        else:
            self.element(field)

    def scalars(self, field: Field) -> None:
        """The rest of a list of scalars."""
        delimiter = b","
        while delimiter == b",":
            match = _ELEMENT.match(self.data, self.at)
            if match is None:
                raise self.unexpected()
            content, token, literals, delimiter = match.groups()
            if token is not None:
                piece = field.tag + (field.known.get(token) or _read(field, token, match.start()))
            else:
                piece = _text(field, literals or b'"%b"' % content, match.start())
            self.put(field, piece, match.start())
            self.at = match.start(4) if delimiter == b"]" else match.end()
        self.at = self.after(_LIST_END, self.at, "']'")

    def put(self, field: Field, piece: bytes, begin: int) -> None:
        """Add a field, given as tag and value, to the innermost message."""
        got, number = self.got, field.number
        if field.is_repeated:
            held = got.get(number)
            if held is None:
                got[number] = bytearray(piece)
            else:
                held += piece
        elif number in got:
            raise _Malformed(begin, f"'{field.name}' of {self.message.name} has one value, got a second")
        elif got and not field.rivals.isdisjoint(got):
            raise _Malformed(begin, f"'{field.name}' excludes another field that {self.message.name} has here")
        elif piece != field.default:
            got[number] = piece

    def after(self, pattern: re.Pattern[bytes], at: int, expected: str) -> int:
        match = pattern.match(self.data, at)
        if match is None:
            raise _Malformed(at, f"expected {expected}, got {self.word(at)}")
        return match.end()

    def word(self, at: int) -> str:
        match = _WORD.match(self.data, at)
        return f"'{shown(match[0])}'" if match else "the end of the text"

    def unexpected(self) -> _Malformed:
        """The error for the place where no item follows."""
        name = _NAMED.match(self.data, self.at)
        at = name.end() if name else self.at
        if self.data[at : at + 1] in (b'"', b"'"):
            return _Malformed(at, "a string without an end")
        if name is None:
            return _Malformed(at, f"expected a field's name, got {self.word(at)}")
        expected = "a value" if name[2] else "':'"
        return _Malformed(at, f"expected {expected} after '{shown(name[1])}', got {self.word(at)}")


def _joined(kind: Message, got: _Got) -> bytes | bytearray:
    """The binary form of a message with these fields."""
    for number in kind.gathered.keys() & got.keys():
        got[number] = _gathered(kind.gathered[number], got[number])
    if len(got) == 1:
        (only,) = got.values()
        return only  # type: ignore[no-any-return]
    return b"".join([got[number] for number in sorted(got)])


def _gathered(field: Field, values: Any) -> bytes:
    """The packed values of a field, or the entries of a map."""
    if field.order is None:
        return _sized(put_varint(field.number << 3 | wire.BYTES), values)
    keys = sorted(values, key=field.order) if len(values) > 1 else values
    return b"".join([_sized(field.tag, key + values[key]) for key in keys])


def _sized(tag: bytes, content: bytes | bytearray) -> bytes:
    size = len(content)
    return tag + (_SIZES[size] if size < 128 else put_varint(size)) + content


def _read(field: Field, token: bytes, at: int) -> bytes:
    """The wire's bytes of a scalar that is not among the common ones."""
    try:
        return field.read(token)
    except ValueError as error:
        raise _Malformed(at, f"'{field.name}': {error}") from None


def _text(field: Field, literals: bytes, at: int) -> bytes:
    """Tag and value of a field, given as string literals in a row."""
    if not field.is_text:
        raise _refusal(field, literals, at)
    try:
        content = string(literals)
        if field.is_string:
            content.decode()
    except UnicodeDecodeError:
        raise _Malformed(at, f"'{field.name}': the escapes of this string give no UTF-8") from None
    except ValueError as error:
        raise _Malformed(at, f"'{field.name}': {error}") from None
    return _sized(field.tag, content)


def _refusal(field: Field, value: bytes, at: int) -> _Malformed:
    """The error for a value of a form that the field does not have."""
    return _Malformed(at, f"'{field.name}': expected {field.expected}, got '{shown(value)}'")


def write(raw: bytes) -> bytes:
    """The text form of a binary GraphDef. Raises InvalidArgument for what text cannot express."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    from .messages import message_class

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
    """The first node with fields that have no text form."""
    from .messages import message_class

    for node in message_class("GraphDef").FromString(raw).node:  # type: ignore[attr-defined]
        size = node.ByteSize()
        node.DiscardUnknownFields()
        if node.ByteSize() != size:
            return str(node.name)
    return None
