"""The text form: text that protobuf's parser reads gives the same message, other text a typed error with its place."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any
from zipfile import ZipFile

import pytest
from google.protobuf import descriptor, text_format
from heald.errors import InvalidArgument
from heald.graphs.graph import graphdef_text
from heald.graphs.protobuf.descriptor_pool import definitions, message_class
from heald.runtime.values import wire
from heald_conformance.golden import FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=60)
KINDS = ("GraphDef", "NodeDef", "AttrValue", "TensorProto", "FunctionDef", "StructuredValue", "SavedModel",
         "GraphDebugInfo", "FullTypeDef", "BundleEntryProto", "SaverDef")
STYLES: tuple[dict[str, Any], ...] = (
    {}, {"as_one_line": True}, {"use_short_repeated_primitives": True}, {"pointy_brackets": True, "force_colon": True},
    {"as_utf8": True, "as_one_line": True}, {"print_unknown_fields": False, "indent": 3},
)
Types = descriptor.FieldDescriptor
INTEGERS = {
    Types.TYPE_INT32: (-(2**31), 2**31 - 1), Types.TYPE_INT64: (-(2**63), 2**63 - 1),
    Types.TYPE_SINT64: (-(2**63), 2**63 - 1), Types.TYPE_UINT32: (0, 2**32 - 1), Types.TYPE_UINT64: (0, 2**64 - 1),
    Types.TYPE_FIXED32: (0, 2**32 - 1), Types.TYPE_FIXED64: (0, 2**64 - 1), Types.TYPE_ENUM: (-(2**31), 2**31 - 1),
}
OTHERS = {
    Types.TYPE_FLOAT: st.floats(width=32), Types.TYPE_DOUBLE: st.floats(), Types.TYPE_BOOL: st.booleans(),
    Types.TYPE_STRING: st.text(max_size=6), Types.TYPE_BYTES: st.binary(max_size=6),
}


def scalars(field: Any) -> st.SearchStrategy[Any]:
    if field.type in INTEGERS:
        small = st.sampled_from([v.number for v in field.enum_type.values]) if field.enum_type else st.integers(0, 300)
        return small | st.integers(*INTEGERS[field.type])
    return OTHERS[field.type]


def fill(message: Any, draw: st.DrawFn, depth: int) -> None:
    """Set some of the fields of a message, and of those within."""
    fields = list(message.DESCRIPTOR.fields)
    for field in draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda f: f.number)) if fields else ():
        entry = field.message_type is not None and field.message_type.GetOptions().map_entry
        for _ in range(draw(st.integers(1, 3)) if field.is_repeated else 1):
            container = getattr(message, field.name)
            if entry:
                key, value = field.message_type.fields
                key = draw(scalars(key))
                if value.message_type is None:
                    container[key] = draw(scalars(value))
                elif depth:
                    fill(container[key], draw, depth - 1)
            elif field.message_type is not None:
                if depth:
                    inner = container.add() if field.is_repeated else container
                    inner.SetInParent()
                    fill(inner, draw, depth - 1)
            elif field.is_repeated:
                container.append(draw(scalars(field)))
            else:
                setattr(message, field.name, draw(scalars(field)))


@st.composite
def message_texts(draw: st.DrawFn) -> tuple[str, Any, str]:
    """A kind of message, a message, and its text in one of protobuf's styles."""
    kind = draw(st.sampled_from(KINDS))
    message = message_class(kind)()
    fill(message, draw, 3)
    return kind, message, text_format.MessageToString(message, **draw(st.sampled_from(STYLES)))


def parse_by_protobuf(text: str, kind: str) -> Any:
    """The message that protobuf's parser reads, or None."""
    message = message_class(kind)()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of escapes that it does not know
            return text_format.Parse(text, message)
    except (text_format.ParseError, ValueError, DeprecationWarning):
        return None


def ours(text: str, kind: str) -> bytes | None:
    try:
        return graphdef_text.parse(text.encode(), "<text>", kind)
    except InvalidArgument:
        return None


def assert_same(raw: bytes | None, message: Any) -> None:
    """The same message in as many bytes, but for the order of maps' entries, in which protobuf's versions differ."""
    assert (raw is None) == (message is None)
    if raw is not None:
        again = type(message).FromString(raw).SerializeToString(deterministic=True)
        assert again == message.SerializeToString(deterministic=True)
        assert len(raw) == len(again)


@QUICK
@given(message_texts())
def test_a_text_that_protobuf_prints_is_the_message_again(case: tuple[str, Any, str]) -> None:
    kind, _, text = case
    assert_same(ours(text, kind), parse_by_protobuf(text, kind))


@QUICK
@given(message_texts(),
       st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.text('{}[]<>:",;# \n-017.aDTinf\'+x',
                                                                          max_size=2)), max_size=2))
def test_damaged_text_is_read_or_refused_as_protobuf_does(case: tuple[str, Any, str], damage: list[Any]) -> None:
    kind, _, text = case
    for at, length, new in damage:
        at %= len(text) + 1
        text = text[:at] + new + text[at + length :]
    assert_same(ours(text, kind), parse_by_protobuf(text, kind))


def test_graphs_that_tensorflow_wrote_are_the_same_as_text() -> None:
    with ZipFile(FOLDER / "graphs.zip") as graphs:
        for name in graphs.namelist()[::5]:
            message = message_class("GraphDef").FromString(graphs.read(name))
            assert_same(ours(text_format.MessageToString(message), "GraphDef"), message)


SPELLINGS = [
    ("NodeDef", ""), ("NodeDef", "# only a comment"), ("NodeDef", 'name:"a"op:"b"'), ("NodeDef", "name: 'it\"s'"),
    ("NodeDef", 'name: "a" "b" # "c"\n \'d\' op: "e"'), ("NodeDef", 'name: "a", op: "b"; device: "c";'),
    ("NodeDef", 'name: "a",; op: "b"'), ("NodeDef", "name: 'a',;"), ("NodeDef", "attr {},;"), ("AttrValue", "i: 1,;"),
    ("NodeDef", "input: [],;"), ("NodeDef", "input: ['a'];,"), ("NodeDef", "attr [{}],;"), ("NodeDef", ', name: "a"'),
    ("NodeDef", 'input: ["a" "b", \'c\'], input: "d"'),
    ("NodeDef", "input: []"), ("NodeDef", "input []"), ("NodeDef", 'input: ["a",]'), ("NodeDef", 'input: ["a"; "b"]'),
    ("NodeDef", 'input: ["a" '), ("NodeDef", 'input: ["a", 5]'), ("NodeDef", 'name: ["a"]'), ("NodeDef", 'name "a"'),
    ("NodeDef", 'name: "a" name: "a"'), ("NodeDef", 'name: "" name: "a"'), ("NodeDef", 'name: "a" name: ""'),
    ("NodeDef", "attr {}"), ("NodeDef", "attr: <>"), ("NodeDef", "attr [{}, <key: 'a'>]"), ("NodeDef", "attr [{};{}]"),
    ("NodeDef", "attr [{} {}]"), ("NodeDef", "attr [{},]"), ("NodeDef", "attr []; op: 'a'"), ("NodeDef", "attr {>"),
    ("NodeDef", "attr [{}"), ("NodeDef", "attr [{},"), ("NodeDef", "attr [{}],"), ("NodeDef", "attr [5]"),
    ("NodeDef", "attr { key: 'a' value { i: 1 } } attr { key: 'a' value { f: 2 } }"), ("NodeDef", "[a.b]: 1"),
    ("NodeDef", "attr { value { i: 1 } key: 'b' } attr { key: 'a' }"), ("NodeDef", "attr { key: 'a' key: 'b' }"),
    ("NodeDef", "5: 'a'"), ("NodeDef", "name+: 'a'"), ("NodeDef", "op: 'b' name: 'a'"), ("NodeDef", "name"),
    ("NodeDef", "name:"), ("NodeDef", "}"), ("NodeDef", "experimental_type {} experimental_type {}"), ("NodeDef", "é"),
    ("AttrValue", "i: 0"), ("AttrValue", "i: 0 i: 0"), ("AttrValue", "i: 0 f: 0"), ("AttrValue", "i: 0 list {}"),
    ("AttrValue", "list {} shape {}"), ("AttrValue", "type: 5"), ("AttrValue", "type: 12345"), ("AttrValue", "i: {}"),
    ("AttrValue", "type: -1"), ("AttrValue", "type: 2147483648"), ("AttrValue", "type: NONE"), ("AttrValue", "list: 5"),
    ("AttrValue", "type: 'DT_FLOAT'"), ("AttrValue", "type: 017"), ("AttrValue", "i: 'a'"), ("AttrValue", "i: - 5"),
    ("GraphDebugInfo.FileLineCol", "line: 0"), ("GraphDebugInfo.FileLineCol", "line: 0 line: 1"),
    ("GraphDebugInfo", "frames_by_id { key: 300 } frames_by_id { key: 2 }"), ("GraphDebugInfo", "traces_by_id {}"),
    ("GraphDebugInfo.StackTrace", "frame_id: [1, 2] frame_id: 3 file_line_cols { code: 'a' }"),
    ("FunctionDef", "arg_attr { key: 300 value {} } arg_attr { key: 2 } resource_arg_unique_id {}"),
    ("TensorProto", "float_val: [] float_val: [1, 2.5] float_val: 3 int_val: -1 version_number: -0"),
    ("SaverDef", "keep_checkpoint_every_n_hours: -0.0"), ("SaverDef", "keep_checkpoint_every_n_hours: 1e-60"),
    ("StructuredValue", "none_value {}"), ("NoneValue", "a: 1"),
]
INTEGER_TOKENS = ("0", "-0", "7", "-7", "+7", "017", "-017", "+017", "08", "00", "0x1F", "-0xf", "0X1", "0b11", "0o7",
                  "1_0", "1.0", "1e3", "1f", "--1", "-", "0x", "true", "2147483647", "2147483648", "-2147483648",
                  "-2147483649", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
                  "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616")
FLOAT_TOKENS = ("0", "-0", "1.5", "-2.25", ".5", "5.", "1e10", "1e-50", "1e39", "-1e39", "1e400", "3.4028235e38",
                "3.4028235677973366e38", "1.5f", "1.F", "2ff", "inf", "-inf", "+inf", "INF", "inff", "infinity",
                "-infinityf", "infinityff", "nan", "NaN", "-nan", "nanf", "01.5", "00", "0x1", "1_0.5", "1.5.2", "e5",
                "f", "-", "1e", "abc")
LITERALS = (r'"\a\b\f\n\r\t\v\\\'\""', r'"\0\12\101\377"', r'"\400"', r'"\1234\78"', r'"\8"', r'"\q"', r'"\x"',
            r'"\x4"', r'"\x41\x4g\xabc"', r'"\u00e9\U0001F600"', r'"\u12"', r'"\ud800"', r'"\U00110000"',
            r'"\UFFFFFFFF"', r'"\\u0041"', r'"\\\u0041"', r'"\303\251"', r'"\303"', '"é\\n😀"', '"a\tb\r"', '"a\nb"',
            '"a', "'a\"b\\'c'", r'"\"', r'"a\\"', '"" ""')
SPELLINGS += [("TensorProto", f"{field}: {token}") for token in INTEGER_TOKENS
              for field in ("int_val", "int64_val", "uint32_val", "uint64_val", "bool_val", "version_number")]
SPELLINGS += [(kind, f"{field}: {token}") for token in INTEGER_TOKENS for kind, field in
              (("StructuredValue", "int64_value"), ("BundleEntryProto", "crc32c"),
               ("GraphDebugInfo.StackTrace", "frame_id"))]
SPELLINGS += [("TensorProto", f"{field}: {token}") for token in FLOAT_TOKENS for field in ("float_val", "double_val")]
SPELLINGS += [("TensorProto", f"bool_val: {token}")
              for token in ("true", "t", "True", "1", "false", "f", "False", "0", "TRUE", "2", "00", "'true'")]
SPELLINGS += [("NodeDef", f"{field}: {literal}") for literal in LITERALS for field in ("name", "input")]
SPELLINGS += [("TensorProto", f"tensor_content: {literal}") for literal in LITERALS]


@pytest.mark.parametrize(("kind", "text"), SPELLINGS, ids=str)
def test_each_spelling_is_read_or_refused_as_protobuf_does(kind: str, text: str) -> None:
    assert_same(ours(text, kind), parse_by_protobuf(text, kind))


def test_escapes_that_protobuf_for_python_misreads_follow_the_languages_specification() -> None:
    assert ours(r's: "\?\u005cn"', "AttrValue") == wire.put_bytes(2, "?\\n")


def test_a_byte_order_mark_is_skipped_and_counts_for_no_column() -> None:
    assert graphdef_text.parse(b"\xef\xbb\xbfi: 1", "<text>", "AttrValue") == b"\x18\x01"
    with pytest.raises(InvalidArgument, match="<text>:1:4"):
        graphdef_text.parse(b"\xef\xbb\xbfi: x", "<text>", "AttrValue")


def test_fields_are_sorted_by_number_and_maps_by_key() -> None:
    raw = ours('attr { value {} key: "b" } attr { key: "ab" } op: "y" attr { key: "a" } name: "x"', "NodeDef")
    entries = [wire.put_bytes(5, wire.put_bytes(1, key) + b"\x12\x00") for key in ("a", "ab", "b")]
    assert raw == b"".join((wire.put_bytes(1, "x"), wire.put_bytes(2, "y"), *entries))


def test_every_message_has_a_table() -> None:
    for syntax in ("proto2", "proto3"):
        for kind, rows in definitions()[syntax].items():
            described = message_class(kind).DESCRIPTOR.fields_by_name
            assert [row[1] for row in rows] == list(described)
            assert ours("", kind) == b""


PLACES = [
    ('node {\n  name: "a"\n  nam: "b"\n}', 3, 3, "NodeDef has no field named \"nam\"; did you mean 'name'"),
    ("node {\n  name: 5 }", 2, 9, "'name': expected a string in quotes, got '5'"),
    ("node { input: {} }", 1, 15, "expected a string in quotes, got '{'"),
    ("versions: 5", 1, 11, "expected a message in braces, got '5'"),
    ('versions { producer: "5" }', 1, 22, "expected an integer, got '\"5\"'"),
    ('versions { producer: "5\\n" }', 1, 22, "expected an integer, got"),
    ("versions { producer: 5 > ", 1, 24, "expected '}', got '>'"),
    ("versions {\n producer: 5", 1, 1, "ends before the '}'"),
    ("versions { producer 5 }", 1, 21, "expected ':' after 'producer', got '5'"),
    ("versions { producer: }", 1, 22, "expected a value after 'producer', got '}'"),
    ("versions { bad_consumers: [1 2] }", 1, 28, "then ',' or ']', got '1'"),
    ("versions { bad_consumers [1] }", 1, 26, "expected ':' after 'bad_consumers'"),
    ("versions { producer: [1] }", 1, 22, "expected an integer, got '['"),
    ("versions {} versions {}", 1, 13, "'versions' of GraphDef has one value, got a second"),
    ("node { attr { value { i: 1\n f: 2 } } }", 2, 2, "'f' excludes another field that AttrValue has"),
    ("node { [a.b]: 5 }", 1, 8, "expected a field's name, got '['"),
    ('# é\nnode { name: "é" op: "\\z" }', 2, 22, r"unknown escape, '\\z'"),
    ('node { name: "a" "b }', 1, 18, "this string has no end"),
    ("node: [{} {}]", 1, 11, "expected ',' or ']', got '{'"),
    ("\x00", 1, 1, r"got '\\x00'"),
]


@pytest.mark.parametrize(("text", "line", "column", "says"), PLACES, ids=[text for text, *_ in PLACES])
def test_an_error_says_what_was_given_where_and_what_was_expected(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says.replace("[", r"\[").replace("{", r"\{")) as caught:
        graphdef_text.parse(text.encode(), "g.pbtxt")
    assert caught.value.location == ("g.pbtxt", line, column)



LONG = 5_000
HOSTILE = {
    "comments": "# x\n" * LONG, "one comment": "#" + "x" * LONG, "blanks": " " * LONG,
    "deep": "node { " + "attr { value { func { " * LONG, "closing brackets": "}" * LONG, "separators": ";" * LONG,
    "this string has no end": 'node { name: "' + "a" * LONG, "backslashes": 'node { name: "' + "\\" * (LONG | 1) + '"',
    "literals without an end": "node { name: " + '"a" ' * LONG + '"', "digits": "versions { producer: " + "1" * LONG,
    "a name": "x" * LONG, "quotes": "'\"" * LONG, "lists": "node { input: [" + '"a",' * LONG,
    "zeros": "\0" * LONG, "lists of messages": "node: [" + "{}," * LONG,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_or_refused_in_linear_memory(name: str) -> None:
    import tracemalloc

    data = HOSTILE[name].encode()
    ours("", "GraphDef")  # tables are made once
    tracemalloc.start()
    try:
        ours(HOSTILE[name], "GraphDef")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(data) + 60_000


def test_reading_text_imports_no_protobuf() -> None:
    code = "import sys, heald\nheald.graphdef.loads('node { name: \"a\" op: \"NoOp\" }', text=True)\n" \
           "sys.exit([m for m in sys.modules if m.split('.')[0] in ('numpy', 'google')] or None)"
    subprocess.run([sys.executable, "-c", code], check=True)
