"""The parser of MLIR text: the tree that it makes, and its diagnostics."""

from __future__ import annotations

import pytest
from heald_mlir.attributes import FileLineColLoc, SymbolRefAttr
from heald_mlir.floats import bits_of, text_of
from heald_mlir.lexer import MalformedText, escaped_text, unescaped_text
from heald_mlir.parser import parse
from heald_mlir.printer import print_module
from hypothesis import given
from hypothesis import strategies as st


def test_a_function_is_parsed_with_a_value_that_is_defined_after_its_use():
    module = parse("""module @m {
      func @f(%a: i32) -> i32 {
        %0:2 = "t.op"(%a, %b) {c = @g::@h} : (i32, i32) -> (i32, !t.x<a->b>)
        %b = "t.u"() : () -> i32 loc("f":1:2)
      }
    }""")
    _, function, op, late = module.walk()
    assert function.name == "func.func"
    assert op.operands == [function.regions[0].blocks[0].arguments[0], late.results[0]]
    assert op.attributes == {"c": SymbolRefAttr("g", ("h",))}
    assert str(op.results[1].type) == "!t.x<a->b>"
    assert late.location == FileLineColLoc("f", 1, 2)


@pytest.mark.parametrize(("text", "position", "message"), [
    ('"a"() : () -> i32\n"b"(%x) : (i32) -> ()', (2, 5), "use of undeclared SSA value name '%x'"),
    ('"a"() -> ()', (1, 6), "expected ':' followed by operation type"),
    ('%x = "a"() : () -> i32\n%x = "a"() : () -> i32', (2, 1), "redefinition of SSA value '%x'"),
    ('%x = "a"() : () -> i32\n"b"(%x) : (i64) -> ()', (2, 5), "expects different type than prior uses: 'i64' vs 'i32'"),
    ('"a"() {b = ' + "[" * 9999, (1, 76), "nested deeper than 64 levels"),
    ('"a"() {b = dense<' + "[" * 9999, (1, 82), "nested deeper than 64 levels"),
    ('"a"() : ' + "(" * 9999, (1, 74), "nested deeper than 64 levels"),
    ('"a"() {b = 300 : i8} : () -> ()', (1, 12), "integer constant out of range for attribute"),
])
def test_malformed_text_is_an_error_with_line_and_column(text, position, message):
    with pytest.raises(MalformedText) as raised:
        parse(text, "p.mlir")
    assert message in raised.value.message
    assert (raised.value.location.line, raised.value.location.column) == position


@pytest.mark.parametrize(("value", "name", "text"), [
    (1.0, "f32", "1.000000e+00"), (0.1, "f64", "1.000000e-01"), (0.99609375, "bf16", "9.960930e-01"),
    (12345678.0, "f32", "0x4B3C614E"), (float("inf"), "f32", "0x7F800000"), (-0.0, "f64", "-0.000000e+00"),
    (3.14159274, "f32", "3.14159274"),
])
def test_a_float_prints_as_mlir_prints_it(value, name, text):
    assert text_of(bits_of(value, name), name) == text


def test_a_string_survives_its_escapes():
    text = 'a"b\\\n\x00\udcff'
    assert unescaped_text(f'"{escaped_text(text)}"') == text


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from(("i32", "!a.b"))), max_size=5))
def test_the_common_form_of_a_line_is_parsed_as_any_other_form(operations):
    def outcome(text):
        try:
            return print_module(parse(text))
        except MalformedText as error:
            return error.message

    lines = [f'%{i} = "t.op"(%{a}, %b#{b % 2}) : ({of}, i32) -> {of}' for i, (a, b, of) in enumerate(operations)]
    text = "\n".join(['%b:2 = "t.b"() : () -> (i32, i32)', *lines, ""])
    assert outcome(text) == outcome(text.replace(" = ", " =  "))
