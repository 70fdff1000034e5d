"""Errors of control flow, with regions and without: TensorFlow's words, at the place of the op."""

from __future__ import annotations

import heald
import pytest
from heald_mlir.lexer import MalformedText

HEAD = """tfg.graph #tf_type.version<producer = 1, min_consumer = 0> {
  %c, %ctl_c = Placeholder name("c") {dtype = i1} : () -> (tensor<*xi1>)
  %x, %ctl_x = Placeholder name("x") {dtype = f32} : () -> (tensor<*xf32>)
  %i, %ctl_i = Placeholder name("i") {dtype = i32} : () -> (tensor<*xi32>)
"""
FUNCTIONS = """}
tfg.func @f(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xf32> {tfg.name = "r"}) {
  return(%a) : tensor<*xf32>
}
"""
YIELD = "yield(%x) : tensor<*xf32>"


def if_region(then=YIELD, other=YIELD, condition="%c", types="(tensor<*xi1>) -> tensor<*xf32>", attributes=""):
    return (f"  %r, %cr = IfRegion {condition} then {{\n    {then}\n  }} else {{\n    {other}\n  }} "
            f'{{_mlir_name = "r"{attributes}}} : {types}')


def while_region(condition="condition %c : tensor<*xi1> (%a) : tensor<*xf32>", body="yield(%b) : tensor<*xf32>",
                 arguments="%a: tensor<*xf32>, %ac: !tf_type.control",
                 of_body="%b: tensor<*xf32>, %bc: !tf_type.control",
                 types="(tensor<*xf32>) -> tensor<*xf32>", attributes=""):
    return (f"  %r, %cr = WhileRegion(%x) {{\n  ^bb0({arguments}):\n    {condition}\n  }} do {{\n  ^bb0({of_body}):\n"
            f'    {body}\n  }} {{_mlir_name = "r", parallel_iterations = 10 : i64{attributes}}} : {types}')


def case_region(second=YIELD, types="(tensor<*xi32>) -> tensor<*xf32>", index="%i", attributes=""):
    return (f"  %r, %cr = CaseRegion {index} {{\n    {YIELD}\n  }}, {{\n    {second}\n  }} "
            f'{{_mlir_name = "r"{attributes}}} : {types}')


def for_region(body="yield(%b) : tensor<*xf32>", start="%i", attributes="",
               arguments="%k: tensor<*xi32>, %b: tensor<*xf32>, %kc: !tf_type.control, %bc: !tf_type.control",
               types="(tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>) -> (tensor<*xf32>)"):
    return (f"  %r, %cr = ForRegion(%x) from {start} to %i by %i {{\n  ^bb0({arguments}):\n    {body}\n  }} "
            f'{{_mlir_name = "r"{attributes}}} : {types}')


def region_attrs(arguments, results):
    return f'#tfg.region_attrs<{{sym_name = "f"}} [{arguments}] [{results}]>'


def if_op(attributes="", condition="%c", of="tensor<*xi1>"):
    return (f'  %r, %cr = If({condition}, %x) name("r") {{then_branch = #tf_type.func<@f, {{}}>, '
            f"else_branch = #tf_type.func<@f, {{}}>{attributes}}} : ({of}, tensor<*xf32>) -> (tensor<*xf32>)")


EDGE = "op along control flow edge from "
TO_PARENT = f"{EDGE}Operation tfg.yield to parent: "
NOTHING = "region branch point has 0 operands, but region successor needs 1 inputs"
INT_FOR_FLOAT = ("successor operand type #0 'tensor<*xi32>' should match successor input type #0 "
                 "'tensor<*xf32>'")
FLOAT_FOR_INT = ("successor operand type #0 'tensor<*xf32>' should match successor input type #0 "
                 "'tensor<*xi32>'")
REGIONS = [
    (if_region(then="yield"), TO_PARENT + NOTHING),
    (if_region(then="yield(%i) : tensor<*xi32>"),
     f"{EDGE}Operation tfg.yield to parent: {INT_FOR_FLOAT}"),
    (if_region(condition="%x", types="(tensor<*xf32>) -> tensor<*xf32>"),
     "op operand #0 must be tensor of 1-bit signless integer values, but got 'tensor<*xf32>'"),
    (if_region(then='%n = NoOp name("n")'), "op then region must be terminated by a 'tfg.yield'"),
    (if_region(other="condition %c : tensor<*xi1>"), "op else region must be terminated by a 'tfg.yield'"),
    (if_region(then=""), "op expects a non-empty block"),
    (if_region(then=f"^bb0(%z: tensor<*xf32>):\n    {YIELD}"),
     "op region #0 expected same number of data values and control tokens (1 vs. 0)"),
    (if_region(attributes=", then_attrs = 3 : i64"),
     "op attribute 'then_attrs' failed to satisfy constraint: dictionary of named attribute values"),
    (if_region(attributes=", then_region_attrs = {}"),
     "op attribute 'then_region_attrs' failed to satisfy constraint: Region attributes, argument and result "
     "attributes."),
    (if_region(attributes=f", then_region_attrs = {region_attrs('{}', '{}')}"),
     "op region #0 has 0 argument(s) but preserved attributes has 1"),
    (if_region(attributes=f", else_region_attrs = {region_attrs('', '{}, {}')}"),
     "op region #1 has 1 result(s) but preserved attributes has 2"),
    (while_region(condition="yield(%a) : tensor<*xf32>"),
     "op condition region must be terminated by a 'tfg.condition' op"),
    (while_region(condition="condition %c : tensor<*xi1>"),
     f"{EDGE}Operation tfg.condition to Region #1: {NOTHING}"),
    (while_region(body="yield(%i) : tensor<*xi32>"),
     f"{EDGE}Operation tfg.yield to Region #0: {INT_FOR_FLOAT}"),
    (while_region(types="(tensor<*xf32>) -> tensor<*xi32>"),
     f"{EDGE}Operation tfg.condition to parent: {FLOAT_FOR_INT}"),
    (while_region(arguments="%a: tensor<*xi32>, %ac: !tf_type.control",
                  condition="condition %c : tensor<*xi1> (%x) : tensor<*xf32>"),
     f"{EDGE}parent to Region #0: {FLOAT_FOR_INT}"),
    (while_region(of_body="%bc: !tf_type.control, %b: tensor<*xf32>"),
     "op region #1 argument #0 should not be a control token"),
    (while_region(of_body="%b: tensor<*xf32>, %q: tensor<*xf32>"),
     "op region #1 expected same number of data values and control tokens (2 vs. 0)"),
    (case_region(second="yield"), TO_PARENT + NOTHING),
    (case_region(index="%x", types="(tensor<*xf32>) -> tensor<*xf32>"),
     "op operand #0 must be tensor of 32-bit signless integer values, but got 'tensor<*xf32>'"),
    (case_region(attributes=", branch_attrs = [{}]"), "op has 2 regions but 1 branch function attributes"),
    (case_region(attributes=", region_attrs = []"), "op expected 2 region attribute(s) but got 0"),
    (case_region(attributes=", branch_attrs = 3 : i64"),
     "op attribute 'branch_attrs' failed to satisfy constraint: an array of dictionaries"),
    (case_region(attributes=", region_attrs = [{}, {}]"),
     "op attribute 'region_attrs' failed to satisfy constraint: case region preserved attributes"),
    (for_region(arguments="%b: tensor<*xf32>, %bc: !tf_type.control"),
     "op expected first body block argument to be an i32 tensor"),
    (for_region(body="yield"), f"{EDGE}Operation tfg.yield to Region #0: {NOTHING}"),
    (for_region(types="(tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>) -> (tensor<*xi32>)"),
     f"{EDGE}Operation tfg.yield to parent: {FLOAT_FOR_INT}"),
]
CALLS = [
    (if_op(", Tin = [3 : i64]"), "op attribute 'Tin' failed to satisfy constraint: type array attribute"),
    (if_op(", output_shapes = [3 : i64]"), "op attribute 'output_shapes' failed to satisfy constraint: An array of "
                                           "shapes."),
    (if_op(condition="%x", of="tensor<*xf32>"),
     "op operand #0 must be  or opaque tensor type, but got 'tensor<*xf32>'"),
]


def refusal(line):
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads(f"{HEAD}{line}\n{FUNCTIONS}")
    location = caught.value.location
    return (location.line, location.column), caught.value.message


@pytest.mark.parametrize(("line", "words"), REGIONS)
def test_a_faulty_region_is_refused_in_the_words_of_tensorflow(line, words):
    place, message = refusal(line)
    attributes = line.rfind("{_mlir_name")
    is_of_form = message.startswith("custom op")
    assert place == ((5 + line.count("\n", 0, attributes), attributes - line.rfind("\n", 0, attributes))
                     if is_of_form else (5, 13))
    assert message.removeprefix("custom op 'tfg.IfRegion' ").removeprefix("custom op 'tfg.CaseRegion' ").partition(
        " ")[2] == words


@pytest.mark.parametrize(("line", "words"), CALLS)
def test_a_faulty_call_is_refused_in_the_words_of_tensorflow(line, words):
    place, message = refusal(line)
    assert (place, message) == ((5, 13), f"'tfg.If' {words}")


@pytest.mark.parametrize("region", [if_region, while_region, case_region, for_region])
def test_a_region_op_that_fits_is_read(region):
    assert heald.tfg.loads(f"{HEAD}{region()}\n{FUNCTIONS}")["r"].attrs


def test_a_condition_of_a_loop_is_a_truth_value():
    text = while_region(condition="condition %x : tensor<*xf32> (%a) : tensor<*xf32>")
    place, message = refusal(text)
    assert place == (7, 5)
    assert message == ("'tfg.condition' op operand #0 must be tensor of 1-bit signless integer values, but got "
                       "'tensor<*xf32>'")
