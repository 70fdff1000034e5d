"""Types, attributes and locations of MLIR's builtin dialect in host programs."""

from __future__ import annotations

import pytest
from heald_mlir.attribute_text import attribute_text
from heald_mlir.floats import FORMATS, bits_of, value_of
from heald_mlir.lexer import MalformedText
from heald_mlir.parser import parse


def parsed_text(attribute: str) -> str:
    """The text of an attribute that was parsed."""
    (_, operation) = parse(f'"t.op"() {{a = {attribute}}} : () -> ()').walk()
    return attribute_text(operation.attributes["a"])


@pytest.mark.parametrize(("attribute", "printed"), [
    ("tensor< 2 x3x f32 >", "tensor<2x3xf32>"), ("tensor<0x1xi8>", "tensor<0x1xi8>"), ("tensor<f32,>", "tensor<f32>"),
    ("tensor<2xf32, {b = 1}>", "tensor<2xf32, {b = 1}>"), ("vector<2x[4]xf32>", "vector<2x[4]xf32>"),
    ("memref<2xf32, strided<[1]>, 3>", "memref<2xf32, strided<[1]>, 3>"), ("i01", "i1"),
    ("1.1 : f8E5M2", "1.000000e+00 : f8E5M2"), ("0x7F : f8E4M3FN", "0x7F : f8E4M3FN"),
    ("1.0e30 : f4E2M1FN", "6.000000e+00 : f4E2M1FN"),
    ("0x3FFF8000000000000001 : f80", "0x3FFF8000000000000001 : f80"),
    ("affine_map<(d0)[s0] -> (d0 + s0)>", "affine_map<(d0)[s0] -> (d0 + s0)>"),
    ("sparse<[[0]], [1]> : tensor<4xi32>", "sparse<[[0]], [1]> : tensor<4xi32>"),
    ('loc("f":1:2 to 3:4)', 'loc("f":1:2 to 3:4)'), ('loc("f":1:2 to :4)', 'loc("f":1:2 to :4)'),
    ('loc("f":7)', 'loc("f":7:0)'), ("dense<[]> : tensor<0xi8>", "dense<> : tensor<0xi8>"),
    ('dense<"0xFF"> : tensor<9xi1>', "dense<true> : tensor<9xi1>"),
    ("array<i1: true, false>", "array<i1: true, false>"),
    ("!t.any<(i8) -> i8>", "!t.any<(i8) -> i8>"), ("#t<any>", "#t<any>"),
])
def test_an_attribute_is_read_in_every_form(attribute, printed):
    assert parsed_text(attribute) == printed


@pytest.mark.parametrize(("attribute", "column", "message"), [
    ("u8", 14, "expected attribute value"),
    ('"\\q"', 16, "unknown escape in string literal"),
    ("@1", 16, "@ identifier expected to start with letter or '_'"),
    ("-0", 16, "integer constant out of range"),
    ("1 : i16777216", 19, "integer bitwidth is limited to 16777215 bits"),
    ("complex<index>", 23, "invalid element type"),
    ("tensor<2>", 23, "expected 'x' in dimension list"),
    ("tensor<none>", 22, "invalid tensor element type"),
    ("tensor<9223372036854775808xf32>", 22, "invalid dimension"),
    ("vector<0xf32>", 15, "vector types must have positive"),
    ("dense<1.0> : tensor<i32>", 21, "expected integer elements, but parsed floating-point"),
    ("dense<1> : i32", 15, "elements literal must be a shaped type"),
    ("dense<> : tensor<2xi32>", 15, "parsed zero elements, but type ('tensor<2xi32>') expected at least 1"),
    ("array<i4: 1>", 21, "element type bitwidth must be a multiple of 8"),
    ('{"" = 1}', 16, "expected valid attribute name"),
    ("!t.a<(b]>", 19, "unbalanced '(' character in pretty dialect name"),
    ("1.5 : i32", 24, "floating point value not valid"),
    ('loc("f":1:2 to 3)', 31, "expected either integer or `:` post `to` in FileLineColRange"),
])
def test_a_faulty_attribute_is_told_as_mlir_tells_it(attribute, column, message):
    with pytest.raises(MalformedText) as caught:
        parsed_text(attribute)
    assert caught.value.location is not None
    assert caught.value.message.startswith(message)
    assert caught.value.location.column == column


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.width <= 16])
def test_a_float_survives_its_value(name):
    width = FORMATS[name].width
    bits = [pattern for pattern in range(1 << width) if value_of(pattern, name) == value_of(pattern, name)]
    assert [bits_of(value_of(pattern, name), name) for pattern in bits] == bits
