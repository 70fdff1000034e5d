"""Errors of malformed texts: TensorFlow's words, at line and column."""

from __future__ import annotations

import heald
import pytest
from heald_mlir.lexer import MalformedText
from hypothesis import given, settings
from hypothesis import strategies as st
from tfg.recorded import recorded_text

FUNCTIONS = """  }
  tfg.func @f(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xf32> {tfg.name = "r"}) {
    return(%a) : tensor<*xf32>
  }
  tfg.func @c(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xi1> {tfg.name = "r"}) {
    %N, %ctl = Less(%a, %a) name("n") {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xi1>)
    return(%N) : tensor<*xi1>
  }
  tfg.func @two(%a: tensor<*xf32> {tfg.name = "a"}, %b: tensor<*xf32> {tfg.name = "b"})
      -> (tensor<*xf32> {tfg.name = "r"}) {
    return(%a) : tensor<*xf32>
  }
}
"""
HEAD = """module {
  tfg.graph #tf_type.version<producer = 1, min_consumer = 0> {
    %P, %ctl = Placeholder name("x") {dtype = f32} : () -> (tensor<*xf32>)
    %I, %ctli = Placeholder name("p") {dtype = i1} : () -> (tensor<*xi1>)
"""


def if_op(then, other, result="tensor<*xf32>"):
    return (f'%If, %ci = If(%I, %P) name("if") {{{then}{other}, Tcond = i1, Tin = [f32]}} : '
            f"(tensor<*xi1>, tensor<*xf32>) -> ({result})")


def then(name):
    return f"then_branch = #tf_type.func<@{name}, {{}}>"


def other(name):
    return f", else_branch = #tf_type.func<@{name}, {{}}>"


def while_op(cond, body, of="f32"):
    return (f'%W, %ci = While(%P) name("w") {{T = [{of}], cond = #tf_type.func<@{cond}, {{}}>, '
            f"body = #tf_type.func<@{body}, {{}}>, parallel_iterations = 10 : i64}} : (tensor<*xf32>) -> "
            f"(tensor<*xf32>)")


LINES = [  # the fifth line of a text, the column and the words of its error
    (if_op(then("f"), ""), 16, "'tfg.If' op requires attribute 'else_branch'"),
    (if_op("then_branch = 3 : i64", other("f")), 16, "'tfg.If' op requires attribute 'then_branch'"),
    (if_op(then("f"), other("two")), 16, "'tfg.If' op else function has 2 arguments but was provided 1"),
    (if_op(then("f"), other("c")), 16, "'tfg.If' op else function result #0 type 'tensor<*xi1>' is not compatible with "
     "corresponding result type: 'tensor<*xf32>'"),
    (while_op("f", "f"), 15, "'tfg.While' op cond function result #0 type 'tensor<*xf32>' is not compatible with "
     "corresponding result type: 'tensor<*xi1>'"),
    (while_op("two", "f"), 15, "'tfg.While' op cond function has 2 arguments but was provided 1"),
    (while_op("c", "f", "i32"), 15,
     "'tfg.While' op argument #0 is incompatible with dtype 'i32', got: 'tensor<*xf32>'"),
    ('%C, %cc = Case() name("c") {branches = [#tf_type.func<@f, {}>]} : () -> (tensor<*xf32>)', 15,
     "'tfg.Case' op expected 1 or more operands, but found 0"),
    ('%A, %ca = Identity(%Q) name("i") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 24,
     "use of undeclared SSA value name"),
    ('%P, %ca = Identity(%P) name("i") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 5,
     "redefinition of SSA value '%P'"),
    ('%A, %ca = Identity(%P) name("i") {T = f32} : (tensor<*xi32>) -> (tensor<*xf32>)', 24,
     "use of value '%P' expects different type than prior uses: 'tensor<*xi32>' vs 'tensor<*xf32>'"),
    ('%A, %ca = Identity(%P) [%P] name("i") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 29,
     "use of value '%P' expects different type than prior uses: '!tf_type.control' vs 'tensor<*xf32>'"),
    ('%A, %ca = Identity(%P) name("i") {T = f32} : () -> (tensor<*xf32>)', 48,
     "custom op 'tfg.Identity' got 1 non-control operands, but the type defines 0 input types"),
    ('%A = Identity(%P) name("i") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 5,
     "operation defines 2 results but was provided 1 to bind"),
    ('%A, %ca = Identity(%P#1) name("i") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 24,
     "reference to invalid result number"),
    ('%A, %ca = Identity(%P) name("x") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 15,
     "two nodes are called 'x'"),
    ('%A, %ca = Identity(%P) name("i") {T = f32, T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)', 48,
     "duplicate key 'T' in dictionary attribute"),
    ('%A, %ca = Placeholder name("i") {dtype = !tf_type.foo} : () -> (tensor<*xf32>)', 55,
     "unknown type in TF graph dialect: foo"),
    ("return", 5, "'tfg.return' op expects parent op 'tfg.func'"),
]
TEXTS = [  # a whole text, and its error
    ("tfg.graph #tf_type.version<producer = 1, min_consumer = 0> {\n}\n" * 2,
     "-:3:1: Can't export module with two different tfg.graph"),
    ("tfg.graph {\n}\n", "-:1:11: custom op 'tfg.graph' invalid kind of attribute specified"),
    ("tfg.func @f() {\n return\n}\n" * 2, "-:4:1: redefinition of symbol named 'f'"),
    ("tfg.func @f() {\n}\n", "-:1:15: custom op 'tfg.func' expected non-empty function body"),
    ("tfg.func @f() -> (tensor<*xf32>) {\n return\n}\n",
     "-:1:1: 'tfg.func' op expects 1 returned values but tfg.return has 0 operands"),
    ('tfg.func @f(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xi32>) {\n return(%a) : tensor<*xf32>\n}\n',
     "-:1:1: 'tfg.func' op type mismatch for returned value #0, expected 'tensor<*xi32>' but got 'tensor<*xf32>'"),
    ("tfg.func @f() {\n return\n return\n}\n",
     "-:2:2: 'tfg.return' op must be the last operation in the parent block"),
    ("hello", "-:1:1: custom op 'hello' is unknown"),
    ("tfg.func @f(", "-:1:12: expected SSA operand"),
]


@pytest.mark.parametrize(("line", "column", "words"), LINES)
def test_a_faulty_node_is_told_in_tensorflows_words(line, column, words):
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads(f"{HEAD}    {line}\n{FUNCTIONS}")
    location = caught.value.location
    assert (location.line, location.column, caught.value.message) == (5, column, words)


@pytest.mark.parametrize(("text", "words"), TEXTS)
def test_a_faulty_module_is_told_with_its_place(text, words):
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads(text)
    assert str(caught.value).startswith(words)


def test_deep_nesting_is_an_error_and_no_recursion():
    for text in ("[" * 10_000, "#tf_type.func<@f, {a = " * 10_000, "tensor<" * 10_000):
        with pytest.raises(MalformedText):
            heald.tfg.loads(f"tfg.graph {text}")


SOURCE = recorded_text("regions.tfg")


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(SOURCE) - 1), st.integers(0, 12), st.sampled_from(("", "{", "%x", '"', "0", ">", "tensor<")))
def test_every_malformed_text_is_an_error_with_its_place(at, length, new):
    text = SOURCE[:at] + new + SOURCE[at + length:]
    location = None
    try:
        heald.tfg.loads(text)
    except MalformedText as error:
        location = error.location
    assert location is None or (location.line and location.column)


@pytest.mark.parametrize(("text", "line"), [
    ('tfg.graph #tf_type.version<producer = 1, min_consumer = 0> {\n  %ctl = NoOp name("\\FF")\n}', 2),
    ('\ntfg.func @f(%a: tensor<*xf32> {tfg.name = "\\FF"}) -> (tensor<*xf32> {tfg.name = "r"}) {\n'
     '  return(%a) : tensor<*xf32>\n}', 2),
])
def test_a_name_without_utf8_is_an_error_with_its_place(text, line):
    with pytest.raises(MalformedText, match="cannot be written as UTF-8") as caught:
        heald.tfg.loads(text)
    assert caught.value.location.line == line
