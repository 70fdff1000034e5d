"""Declared operations: their syntax is compiled from their kernels, and prints the text that it reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from builders.dialects import DIALECTS, KERNELS, kernel_codes, kernels_of
from heald.api import I32, Callee, HostType
from heald.errors import InvalidArgument, PluginError
from heald_mlir.dialects.registry import KernelDialects
from heald_mlir.ir import Block, Operation, Region
from heald_mlir.lexer import MalformedText
from heald_mlir.parser import parse
from heald_mlir.printer import print_module

HEAD = """module {
  func.func @f(%arg0: i32, %arg1: i32, %arg2: !tfrt.chain, %arg3: i1, %arg4: !ts.shape, %arg5: !tfrt_tensor.tensor) {
"""


def print_twice(line, dialects=DIALECTS):
    """The body of a function with these lines, read and printed, and read and printed again."""
    text = print_module(parse(f"{HEAD}{line}\n}}}}", "p.mlir", dialects=dialects), dialects)
    assert print_module(parse(text, dialects=dialects), dialects) == text
    assert text.startswith(HEAD)
    return "\n".join(printed_line[4:] for printed_line in text.removeprefix(HEAD).splitlines()[:-2])


@pytest.mark.parametrize("line", [
    "%0 = tfrt.constant.i32 -42",
    "%0 = tfrt.constant.i1 true",
    "%0 = tfrt.constant.ui32 4000000000 {a}",
    "%0 = tfrt.constant.f32 1.000000e+00",
    "%0 = tfrt.new.chain",
    "%0:2 = tfrt.div.i32 %arg0, %arg1",
    "%0 = tfrt.print.i32 %arg0, %arg2",
    "%0 = tfrt.print.i32 %arg0",
    "%0 = tfrt.merge.chains %arg2, %arg0 : !tfrt.chain, i32",
    "%0 = tfrt.merge.chains",
    "tfrt.return %arg0, %arg2 : i32, !tfrt.chain",
    "tfrt.return",
    "%0 = tfrt.call @f(%arg0) {bef.nonstrict} : (i32) -> i32",
    "tfrt.call @f() : () -> ()",
    "%0 = tfrt.once @f(%arg0) : (i32) -> i32",
    "%0:2 = tfrt.cond %arg3 @f @g(%arg0) : (i32) -> (i32, i32)",
    "%0 = tfrt.case %arg0 [@f, @g](%arg1) : (i32) -> i32",
    "%0 = tfrt.while %arg3 @body(%arg0) : (i32) -> i32 parallel_iterations(1)",
    "%0 = tfrt.while %arg3 @body(%arg0) : (i32) -> i32",
    "%0 = tfrt.if %arg3, %arg0 : (i32) -> i32 {\n  tfrt.return %arg0 : i32\n} else {\n  tfrt.return %arg0 : i32\n}",
    "tfrt.if %arg3 : () -> () {\n  tfrt.return\n}",
    "%0 = tfrt.repeat.i32 %arg0, %arg1 : i32 {\n  %1 = tfrt.add.i32 %arg1, %arg1\n  tfrt.return %1 : i32\n}",
    "tfrt.repeat.i32 %arg0 attributes {a} {\n  tfrt.return\n}",
    "%0 = tfrt.parallel_for.i32 %arg0 to %arg1 fixed %arg0#0, %arg4 : !ts.shape {\n  tfrt.return\n}",
    "%0 = tfrt.parallel_call.i32 %arg0 to %arg1 fixed %arg0 @f(%arg4, %arg0) : !ts.shape, i32",
    "%0 = tfrt.parallel_call.i32 %arg0 to %arg1 fixed %arg0 @f()",
    "%0 = ts.build_shape [1, 57]",
    "%0 = ts.build_shape [2 : i32, 2 : i32]",
    "%0 = ts.equal_shape %arg4, %arg4",
    "%0 = ts.as_fixed_rank_shape.3 %arg4",
    "%0 = tfrt_dht.create_uninitialized_tensor.i32.2 [3, 2]",
    "%0 = tfrt_dht.fill_tensor_with_constant.f32 %arg5, %arg2 1.000000e+00 : f32",
    "%0 = tfrt_dht.set_tensor_with_constant_values.f32 %arg5, %arg2 [1.000000e+00 : f32]",
    '%0 = tfrt_sht.create_tensor {shape = [1], values = ["a"]}',
    "%0:2 = coo.tensor_equal.i32.2 %arg5, %arg5, %arg2",
    '%0 = tfrt_test.get_string "a\\22b"',
    "%0:3 = tfrt_test.count3.i32 %arg0",
    "%0 = tfrt_test.test_cost %arg0, %arg2 {_tfrt_cost = 5 : i64, id = 1 : i64} : i32, !tfrt.chain",
    "%0 = tfrt_test.do.async %arg0 : (i32) -> i32 {\n  tfrt.return %arg0 : i32\n}",
    '%0 = tfrt_test.benchmark "b"(%arg0 : i32) duration_secs = 1, max_count = 9, num_warmup_runs = 1 {\n'
    "  tfrt.return %arg0 : i32\n}",
    "%0 = vt.constant 7",
    "%0 = tfrt_tutorial.create_coordinate %arg0, %arg1",
])
def test_text_that_is_read_prints_as_it_was(line):
    assert print_twice(line) == line.replace("#0", "").replace(" : i64, 2 : i64", ", 2")


@pytest.mark.parametrize(("line", "message"), [
    ("%0 = tfrt.constant.i32 1.0", "floating point value not valid for specified type"),
    ("%0 = tfrt.constant.f32 1", "unexpected decimal integer literal for a floating point value"),
    ("%0 = tfrt.add.i32 %arg0", "number of operands and types do not match: got 1 operands and 2 types"),
    ("%0 = tfrt.add.i32 %arg0, %arg2", "expects different type than prior uses: 'i32' vs '!tfrt.chain'"),
    ("%0 = tfrt.call @f(%arg0) : i32", "expected function type"),
    ("%0 = tfrt.call @f(%arg0) : () -> i32", "number of operands and types do not match: got 1 operands and 0 types"),
    ("%0 = tfrt.call 7(%arg0) : () -> i32", "expected a symbol reference"),
    ("%0 = tfrt.constant.i32 1 {value = 2 : i32}", "'value' is given by the syntax of 'tfrt.constant.i32'"),
    ("tfrt.if %arg3, %c#1 : (i32) -> () {}", "'%c#1' cannot name an argument of a region"),
    ("tfrt.if %arg3 : () -> () { tfrt.print.i32 %arg0 }", "use of undeclared SSA value name '%arg0'"),
    ("tfrt.unheard %arg0", "custom op 'tfrt.unheard' is unknown"),
])
def test_text_that_does_not_fit_its_syntax_is_an_error_with_its_place(line, message):
    with pytest.raises(MalformedText, match=message.replace("(", r"\(")) as raised:
        parse(f"{HEAD}{line}\n}}}}", "p.mlir", dialects=DIALECTS)
    assert (raised.value.location.file, raised.value.location.line) == ("p.mlir", 3)


EXAMPLES = {"i1": "true", "f32": "1.0", "f64": "1.0", "!tfrt.string": '"s"'}


def call_of(kernel):
    """The text of a call, for a kernel whose operands and results have types and whose functions are none."""
    types = [str(argument.type) for argument in kernel.arguments]
    values = ", ".join(f"%arg{index}" for index in range(len(types)))
    if "$" not in kernel.syntax:
        line = f"{kernel.code} {values}"
    else:
        (name,) = [part[1:] for part in kernel.syntax.split() if part[0] == "$"]
        of = kernel.attributes[name].type
        literal = "[1, 2]" if "array of i64" in str(of) else EXAMPLES.get(str(of), "7")
        line = f"{kernel.code} {values} {literal}"
    inputs = ", ".join(f"%arg{index}: {of}" for index, of in enumerate(types))
    bound = {0: "", 1: "%0 = "}.get(len(kernel.results), f"%0:{len(kernel.results)} = ")
    return f"func.func @f({inputs}) {{\n{bound}{line}\n}}"


PLAIN_SYNTAX = {"operands attr-dict", "$value attr-dict", "operands $value attr-dict", "operands $values attr-dict",
                "$shape attr-dict"}


def test_every_kernel_with_a_plain_syntax_prints_what_it_reads():
    plain = [kernel for kernel in map(KERNELS.get, kernel_codes()) if kernel.syntax in PLAIN_SYNTAX]
    for kernel in plain:
        text = print_module(parse(call_of(kernel), kernel.code, dialects=DIALECTS), DIALECTS)
        assert f" {kernel.code}" in text
        assert '"' not in text.replace('"s"', "")
        assert print_module(parse(text, dialects=DIALECTS), DIALECTS) == text
    assert len(plain) > 250


def test_every_syntax_is_well_formed():
    assert all((DIALECTS.syntax(code) is None) == (KERNELS.get(code).syntax is None) for code in kernel_codes())


@pytest.mark.parametrize("code", ["tfrt.lessequal.i32", "tfrt.minimum.f32", "tfrt.div.f64", "tfrt.constant.bf16"])
def test_a_kernel_without_a_syntax_has_the_generic_form_only(code):
    assert DIALECTS.syntax(code) is None
    assert DIALECTS.declaration(code) is not None


Box = Annotated[list, HostType("!third.box<i32>")]


class Arrow:
    """`third.arrow %a => %b`."""

    @staticmethod
    def parse(parser, name):
        first = parser.use()
        parser.expect("=")
        parser.expect(">")
        return Operation(name, [parser.resolve(*use, parser.types["i32"]) for use in (first, parser.use())])

    @staticmethod
    def print(printer, operation):
        printer.write(" " + " => ".join(map(printer.operand, operation.operands)))


def third_party(kernels):
    @kernels.kernel("third.box", syntax="$item (`,` $more^)? `kept` $label `[` `]` attr-dict (`:` type($more)^)?")
    def box(item: I32, *more: Any, label: I32) -> Box: ...

    @kernels.kernel("third.arrow", syntax=f"custom<{__name__}:Arrow>")
    def arrow(a: I32, b: I32) -> None: ...


def test_a_third_party_has_a_dialect_with_types_and_a_syntax_of_its_own(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, __name__, SimpleNamespace(Arrow=Arrow))
    dialects = KernelDialects(kernels_of(third=third_party))
    for line in ("%0 = third.box %arg0 kept 7[]", "%0 = third.box %arg0, %arg1, %arg2 kept -7[] {a} : i32, !tfrt.chain",
                 "third.arrow %arg0 => %arg1"):
        assert print_twice(line, dialects) == line
    module = parse(f"{HEAD}%0 = third.box %arg0 kept 7[]\n}}}}", dialects=dialects)
    assert str([*module.walk()][2].results[0].type) == "!third.box<i32>"


def several(a: I32, *more: Any, x: I32, f: Callee) -> list[Any]: ...


@pytest.mark.parametrize(("syntax", "message"), [
    ("operands", "attr-dict is missing"),
    ("operands attr-dict", "the types of the results are left open"),
    ("$a attr-dict `:` type(results)", "the operands are a, more"),
    ("operands $a attr-dict `:` type(results)", "it has both operands and"),
    ("operands $b attr-dict", "the operation has no operand or attribute 'b'"),
    ("operands attr-dict `:` type($b)", "the operation has no operand 'b'"),
    ("operands (`,` attr-dict)?", "a group has one anchor"),
    ("operands (`,` attr-dict^", "a group is open at its end"),
    ("operands ($x^)? attr-dict", "a group begins with a literal"),
    ("operands `%` attr-dict", "`%` is no keyword and no punctuation"),
    ("operands attr-dict type(operands", "a parenthesis is open"),
    ("operands ATTR", "'ATTR' is no element"),
    ("custom<nowhere.at_all:x>", "cannot import nowhere.at_all:x"),
    ("custom<os.path:join>", "has no functions parse and print"),
])
def test_a_malformed_syntax_is_an_error_that_names_plugin_and_operation(syntax, message):
    dialects = KernelDialects(kernels_of(mine=lambda kernels: kernels.kernel("my.op", syntax=syntax)(several)))
    with pytest.raises(PluginError, match="plugin mine") as raised:
        dialects.syntax("my.op")
    assert message in raised.value.message
    assert raised.value.op == "my.op"


def test_an_operation_that_lacks_an_attribute_is_not_printed():
    module = Operation("builtin.module", regions=[Region()])
    module.regions[0].blocks.append(Block())
    module.regions[0].blocks[0].operations.append(Operation("tfrt.constant.i32"))
    with pytest.raises(InvalidArgument, match="lacks what its syntax"):
        print_module(module, DIALECTS)
