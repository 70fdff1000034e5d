"""The printer of MLIR text."""

from __future__ import annotations

import pytest
from heald.errors import InvalidArgument
from heald_mlir.ir import Block, Operation, Region
from heald_mlir.parser import parse
from heald_mlir.printer import print_module
from hypothesis import HealthCheck, given, settings
from mlir.random_modules import modules


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(modules())
def test_a_printed_module_is_parsed_to_the_same_module(module):
    for generic in (False, True):
        text = print_module(module, generic=generic, locations=True)
        again = parse(text)
        assert print_module(again, generic=generic, locations=True) == text
        assert [(op.name, op.attributes, op.location) for op in again.walk()] == [
            (op.name, dict(sorted(op.attributes.items())), op.location) for op in module.walk()]


def test_a_module_prints_as_mlir_prints_it():
    text = """module @m attributes {a = 1 : i32} {
  func.func private @ext(i32, f32) -> f32
  func.func @f(%arg0: i32 {x.y}, %arg1: tensor<2x?xf32>) -> (i32, i64) attributes {b} {
    %0 = "t.c"() {value = 42 : i32} : () -> i32
    %1:2 = "t.region"(%0, %1#1) ({
      %3 = "t.inner"(%arg0) : (i32) -> i32
      "t.jump"()[^bb1] : () -> ()
    ^bb1(%4: i32):  // 2 preds: ^bb0, ^bb1
      "t.jump"(%4)[^bb1] : (i32) -> ()
    ^bb2:  // no predecessors
      "t.end"() : () -> ()
    }, {
    }) {l = [1, 2.000000e+00, 3 : i32, true], "odd name" = "s\\22t", u} : (i32, i32) -> (i32, i32)
    %2 = "t.last"(%arg0, %1#1) : (i32, i32) -> i64
    "tfrt.return"(%0, %2) : (i32, i64) -> ()
  }
  module {
  }
}
"""
    assert print_module(parse(text)) == text


@pytest.mark.parametrize(("written", "printed"), [
    ("[1, 2 : i64, 3 : i32, 1.5, 1.5 : f32]", "[1, 2, 3 : i32, 1.500000e+00, 1.500000e+00 : f32]"),
    ("0xFF : i16", "255 : i16"), ("-1 : i8", "-1 : i8"), ("255 : ui8", "255 : ui8"), ("true", "true"),
    ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>", "dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>"),
    ("dense<[7, 7]> : tensor<2xi32>", "dense<7> : tensor<2xi32>"),
    ("dense<> : tensor<0xf32>", "dense<> : tensor<0xf32>"),
    ('dense<"0x0000803F00000040"> : tensor<2xf32>', "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"),
    ("dense<(1.0, -0.0)> : tensor<2xcomplex<f32>>", "dense<(1.000000e+00,-0.000000e+00)> : tensor<2xcomplex<f32>>"),
    ('dense<["a", "b"]> : tensor<2x!tf.string>', 'dense<["a", "b"]> : tensor<2x!tf.string>'),
    ("array<i64: 1, 2>", "array<i64: 1, 2>"), ("array<i1: true>", "array<i1: true>"), ("array<f32>", "array<f32>"),
    ('@f::@"odd name"', '@f::@"odd name"'), ("{b = 1 : i32, a}", "{a, b = 1 : i32}"),
    ("(i32) -> (i32, !a.b)", "(i32) -> (i32, !a.b)"), ("(i32) -> i32", "(i32) -> i32"),
    ("#d.x<[1], \"]\">", "#d.x<[1], \"]\">"), ("unit", "a"), ('"s" : i32', '"s" : i32'),
    ('loc(fused<"m">["f":1:2, "n"(callsite("c" at "d")), unknown])',
     'loc(fused<"m">["f":1:2, "n"(callsite("c" at "d")), unknown])'),
    ("tensor<*xf32>", "tensor<*xf32>"), ("memref<2x?xf32, #l.x, 3>", "memref<2x?xf32, #l.x, 3>"),
    ("vector<4xf32>", "vector<4xf32>"), ("tuple<i1, tuple<>>", "tuple<i1, tuple<>>"), ("none", "none"),
])
def test_an_attribute_prints_as_mlir_prints_it(written, printed):
    text = print_module(parse(f'"t.op"() {{a = {written}}} : () -> ()'))
    expected = "a" if printed == "a" else f"a = {printed}"
    assert text == f'module {{\n  "t.op"() {{{expected}}} : () -> ()\n}}\n'


def test_more_than_a_hundred_elements_print_as_digits():
    values = ", ".join(map(str, range(101)))
    text = print_module(parse(f'"t.op"() {{a = dense<[{values}]> : tensor<101xi8>}} : () -> ()'))
    assert 'dense<"0x000102' in text
    assert print_module(parse(text)) == text


def test_regions_that_no_text_can_hold_are_refused():
    operation = Operation("t.op")
    for _ in range(1000):
        region, block = Region(), Block()
        block.operations, region.blocks = [operation], [block]
        operation = Operation("t.op", regions=[region])
    with pytest.raises(InvalidArgument, match="nested deeper than 64 levels"):
        print_module(operation)
