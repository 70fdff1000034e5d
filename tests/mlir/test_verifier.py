"""The verifier: messages of MLIR, at the place of the operation."""

from __future__ import annotations

import pytest
from builders.dialects import DIALECTS
from heald_mlir.dialects.verifier import verify
from heald_mlir.lexer import MalformedText
from heald_mlir.parser import parse

VALUES = """
  %i = "tfrt.constant.i32"() {value = 1 : i32} : () -> i32
  %c = "tfrt.new.chain"() : () -> !tfrt.chain
  %b = "tfrt.constant.i1"() {value = true} : () -> i1"""
FUNCTIONS = "func.func @g(%x: i32) -> i32 { tfrt.return %x : i32 }\n"


def verify_body(body, results="", functions=FUNCTIONS):
    text = f"{functions}func.func @f(){f' -> {results}' if results else ''} {{{VALUES}\n{body}\n}}"
    module = parse(text, "p.mlir", dialects=DIALECTS)
    verify(module, DIALECTS)
    return module


@pytest.mark.parametrize(("line", "message"), [
    ('%0 = "ts.equal_shape"(%i, %i) : (i32, i32) -> i1',
     "'ts.equal_shape' op operand #0 must be !ts.shape type, but got 'i32'"),
    ('%0 = "tfrt.add.i32"(%i, %c) : (i32, !tfrt.chain) -> i32',
     "'tfrt.add.i32' op operand #1 must be 32-bit signless integer, but got '!tfrt.chain'"),
    ('%0 = "ts.build_shape"() {value = [1]} : () -> i32',
     "'ts.build_shape' op result #0 must be !ts.shape type, but got 'i32'"),
    ('%0 = "tfrt.constant.i32"() : () -> i32', "'tfrt.constant.i32' op requires attribute 'value'"),
    ('%0 = "tfrt.constant.i32"() {value = 1 : i64} : () -> i32',
     "'tfrt.constant.i32' op attribute 'value' failed to satisfy constraint: 32-bit signless integer attribute"),
    ('%0 = "ts.build_shape"() {value = "a"} : () -> !ts.shape',
     "attribute 'value' failed to satisfy constraint: 64-bit integer array attribute"),
    ('%0 = "tfrt.add.i32"(%i) : (i32) -> i32', "'tfrt.add.i32' op expected 2 operands, but found 1"),
    ('%0 = "tfrt.new.chain"(%i) : (i32) -> !tfrt.chain', "requires zero operands"),
    ('%0 = "tfrt.print.i32"(%i, %c, %c) : (i32, !tfrt.chain, !tfrt.chain) -> !tfrt.chain',
     "expected 1 to 2 operands, but found 3"),
    ('"tfrt.if"() ({tfrt.return}) : () -> ()', "expected 1 or more operands, but found 0"),
    ('%0:2 = "tfrt.new.chain"() : () -> (!tfrt.chain, i32)', "requires one result"),
    ('%0 = "tfrt.div.i32"(%i, %i) : (i32, i32) -> i32', "expected 2 results"),
    ('"tfrt.repeat.i32"(%i) : (i32) -> ()', "requires one region"),
    ('%0 = "tfrt.new.chain"() ({tfrt.return}) : () -> !tfrt.chain', "requires zero regions"),
    ("%0 = tfrt.call @h(%i) : (i32) -> i32", "'tfrt.call' op 'h' does not reference a valid function"),
    ('"tfrt.call"() : () -> ()', "requires attribute 'callee'"),
    ("tfrt.call @g() : () -> ()", "incorrect number of operands for callee"),
    ("%0 = tfrt.call @g(%c) : (!tfrt.chain) -> i32",
     "operand type mismatch: expected operand type 'i32', but provided '!tfrt.chain' for operand number 0"),
    ("tfrt.call @g(%i) : (i32) -> ()", "incorrect number of results for callee"),
    ("%0 = tfrt.cond %b @g @g(%i) : (i32) -> !tfrt.chain", "result type mismatch"),
    ("%0 = tfrt.if %b, %i : (i32) -> i32 { tfrt.return } else { tfrt.return %i : i32 }",
     "'tfrt.return' op operand types don't match 'tfrt.if' result"),
    ("tfrt.if %b : () -> () { %1 = tfrt.new.chain }", "'tfrt.if' op expected tfrt.return in body"),
    ('"tfrt.if"(%b, %i) ({tfrt.return}) : (i1, i32) -> ()', "region arguments have types (), expected (i32)"),
    ('"tfrt.while"(%b, %i) {body_fn = @g} : (i1, i32) -> ()', "has 1 loop variables and 0 results"),
    ("%0 = tfrt_test.test_cost %i {_tfrt_cost = 0 : i64, id = 1 : i64} : i32",
     "'tfrt_test.test_cost' op cost value must be larger than 0"),
    ("tfrt.return %i : i32", "'tfrt.return' op has 1 operands, but enclosing function returns 0"),
    ("%0 = tfrt.add.i32 %late, %i\n%late = tfrt.constant.i32 1", "operand #0 does not dominate this use"),
    ('"t.own"() ({\n%late = tfrt.constant.i32 1\n}, {"t.use"(%late) : (i32) -> ()}) : () -> ()',
     "use of undeclared SSA value name '%late'"),
])
def test_an_operation_that_is_not_as_it_was_declared_is_an_error(line, message):
    with pytest.raises(MalformedText) as raised:
        verify_body(f"{line}\ntfrt.return")
    assert message in raised.value.message
    assert raised.value.location.file == "p.mlir"
    assert raised.value.location.line >= 6


def test_a_return_of_another_type_names_both_types():
    with pytest.raises(MalformedText, match=r"type of return operand 0 \('i32'\) doesn't match function result type "
                                            r"\('i1'\)"):
        verify_body("tfrt.return %i : i32", "i1")


def test_a_symbol_is_defined_once():
    with pytest.raises(MalformedText, match="redefinition of symbol named 'g'") as raised:
        verify_body("tfrt.return", functions=FUNCTIONS * 2)
    ((location, text),) = raised.value.notes
    assert (raised.value.location.line, location.line, text) == (2, 1, "see existing symbol definition here")


def test_dominance_follows_the_blocks_of_a_function():
    diamond = """"cf.cond"(%b)[^l, ^r] : (i1) -> ()
    ^l:
      {}
      "cf.br"()[^end] : () -> ()
    ^r:
      "cf.br"()[^end] : () -> ()
    ^end:
      "t.use"(%v) : (i32) -> ()
      tfrt.return"""
    with pytest.raises(MalformedText, match="operand #0 does not dominate this use") as raised:
        verify_body(diamond.format("%v = tfrt.constant.i32 1"))
    ((_, note),) = raised.value.notes
    assert note == "operand defined here"
    verify_body(diamond.replace("%v", "%i").format(""))


@pytest.mark.parametrize("body", [
    "%0 = tfrt.call @g(%i) : (i32) -> i32\ntfrt.return",
    "%0 = tfrt.repeat.i32 %i, %b : i1 { tfrt.return %b : i1 }\ntfrt.return",
    "%0 = tfrt.parallel_for.i32 %i to %d fixed %e { tfrt.return }\ntfrt.return",
    "tfrt.if %b : () -> () { tfrt.return }\ntfrt.return",
    '%0 = "tfrt.print.i32"(%i) : (i32) -> !tfrt.chain\ntfrt.return',
    '"un.declared"() ({"t.use"(%i) : (i32) -> ()}) : () -> ()\ntfrt.return',
])
def test_valid_functions_pass(body):
    verify_body(f"%d = tfrt.constant.i32 1\n%e = tfrt.constant.i32 1\n{body}")
