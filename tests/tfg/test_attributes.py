"""Types, attributes, aliases and locations in graphs: their AttrValues, and the diagnostics of faulty ones."""

from __future__ import annotations

import heald
import pytest
from google.protobuf import text_format
from heald.errors import InvalidArgument
from heald.graphs.protobuf import message_class

from .recorded import DATA

HEAD = "tfg.graph #tf_type.version<producer = 1000, min_consumer = 0> {\n"
ROWS = [line.split("\t") for line in (DATA / "tfg" / "attributes.tsv").read_text("utf-8").splitlines()]


def graph_with(attribute: str, before: str = "", behind: str = "") -> str:
    return f'{before}{HEAD}  %x, %ctl = Foo name("x") {{a = {attribute}}} : () -> (tensor<*xf32>)\n}}\n{behind}'


def answer(text: str) -> tuple[int, str]:
    """The column and the message of a text's fault; 0 and the AttrValue of `a` where it has none."""
    try:
        graph = heald.tfg.loads(text)
    except InvalidArgument as error:
        return (error.location and error.location.column) or 0, error.message
    message = message_class("GraphDef").FromString(heald.graphdef.dumps(graph))
    return 0, text_format.MessageToString(message.node[0].attr["a"], as_one_line=True)


def test_an_attribute_has_the_value_or_the_diagnostic_of_tensorflow():
    differences = [(attribute, answer(graph_with(attribute)), (int(column or 0), content))
                   for attribute, column, content in ROWS
                   if answer(graph_with(attribute)) != (int(column or 0), content)]
    assert len(ROWS) > 800
    assert differences == []


@pytest.mark.parametrize(("before", "attribute", "value"), [
    ("#a = 5\n", "#a", "i: 5"), ("#a = 5\n#b = [#a, #a]\n", "#b", "list { i: 5 i: 5 }"),
    ("!t = f32\n", "!t", "type: DT_FLOAT"), ("!t = i8\n!u = tensor<2x!t>\n", "!u", "type: DT_INT8"),
    ("!t = i8\n", "7 : !t", "i: 7"), ("#map = affine_set<(d0) : (d0 >= 0)>\n", "1", "i: 1"),
    ('#loc = loc("a":1:2 to 3:4)\n#loc1 = loc(fused<"m">[#loc, "b"])\n', "1", "i: 1"),
    ("#1 = // a comment\n {b = 1,\n c}\n", '"s"', 's: "s"'),
])
def test_an_alias_stands_for_its_attribute_or_type(before, attribute, value):
    assert answer(graph_with(attribute, before)) == (0, value)


@pytest.mark.parametrize(("before", "behind", "line", "message"), [
    ("#a = 1\n#a = 2\n", "", 2, "redefinition of attribute alias id 'a'"),
    ("!t = f32\n", "!t = i8\n", 5, "redefinition of type alias id 't'"),
    ("#a.b = 1\n", "", 1, "attribute names with a '.' are reserved for dialect-defined names"),
    ("!t.u = f32\n", "", 1, "type names with a '.' are reserved for dialect-defined names"),
    ("#a 1\n", "", 1, "expected '=' in attribute alias definition"),
    ("!t f32\n", "", 1, "expected '=' in type alias definition"),
    ("#loc = loc(#loc1)\n#loc1 = loc(unknown)\n", "", 1, "undefined symbol alias id 'loc1'"),
    ("#a = 1\n#loc = loc(#a)\n", "", 2, "expected location attribute, but got1 : i64"),
    ("!t = 1\n", "", 1, "expected non-function type"),
])
def test_a_faulty_alias_is_told_in_tensorflows_words(before, behind, line, message):
    with pytest.raises(InvalidArgument) as caught:
        heald.tfg.loads(graph_with("1", before, behind))
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.message) == (line, message)


@pytest.mark.parametrize(("attribute", "value"), [
    ("f8E5M2FNUZ", "type: DT_FLOAT8_E5M2FNUZ"), ("si2", "type: DT_INT2"),
    ("dense<1> : tensor<0xi32>", "tensor { dtype: DT_INT32 tensor_shape { dim { } } }"),
    ("!tf_type.int2ref", "type: DT_INT2"),
])
def test_a_text_that_tensorflow_refuses_or_exports_otherwise_is_kept(attribute, value):
    assert answer(graph_with(attribute)) == (0, value)


@pytest.mark.parametrize(("attribute", "message"), [
    ("[1, \"a\"]", "attribute 'a': a list has items of string and of int (byte 19)"),
    ("dense<(1, 2)> : tensor<i32>", "expected element type to be complex, it is 'i32'"),
    ("#tf_type.shape<-2>", "attribute 'a': -2 is not the size of a dimension"),
    ("!foo.bar", '`!"foo"<"bar">` type created with unregistered dialect'),
    ("#foo.bar", "#\"foo\"<\"bar\"> : 'none' attribute created with unregistered dialect"),
])
def test_a_text_that_no_graph_holds_is_refused_in_our_words(attribute, message):
    assert answer(graph_with(attribute))[1] == message
