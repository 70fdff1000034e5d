"""Declared operations: their syntax is compiled from their kernels, and prints what it reads."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from weft.api import I32, HostKernels, HostType
from weft.contract.host_kernel import HostKernelRegistry, HostPack
from weft.errors import InvalidArgument, PluginError
from weft_mlir.dialects.registry import KernelDialects
from weft_mlir.ir import Operation
from weft_mlir.lexer import MalformedText
from weft_mlir.parser import parse
from weft_mlir.printer import print_module

PACKS = {"weft": "weft.host_kernels:register", "mlir": "weft_mlir.kernels:register",
         "tfrt_test": "plugins_for_tests.tfrt_test.kernels:register"}


def registry(**packs):
    made = HostKernelRegistry()
    for plugin, pack in packs.items():
        made.add_pack(HostPack(pack, plugin))
    return made


KERNELS = registry(**PACKS)
DIALECTS = KernelDialects(KERNELS)
HEAD = """module {
  func.func @f(%arg0: i32, %arg1: i32, %arg2: !tfrt.chain, %arg3: i1, %arg4: !ts.shape, %arg5: !tfrt_tensor.tensor) {
"""


def printed(line, dialects=DIALECTS):
    """The body of a function with these lines, read and printed, and read and printed again."""
    text = print_module(parse(f"{HEAD}{line}\n}}}}", "p.mlir", dialects=dialects), dialects)
    assert print_module(parse(text, dialects=dialects), dialects) == text
    assert text.startswith(HEAD)
    return "\n".join(each[4:] for each in text.removeprefix(HEAD).splitlines()[:-2])


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
    assert printed(line) == line.replace("#0", "").replace(" : i64, 2 : i64", ", 2")


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
