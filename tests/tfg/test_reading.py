"""Texts in any layout and form: each reads as the graph of its usual text, or is refused in TensorFlow's words."""

from __future__ import annotations

import json
from pathlib import Path

import heald
import pytest
from heald_mlir.lexer import MalformedText

HEAD = "tfg.graph #tf_type.version<producer = 1000, min_consumer = 0> {\n"
X = '%x, %cx = Placeholder name("x") {dtype = f32} : () -> (tensor<*xf32>)\n'
GRAPH_HEAD = HEAD + X
USUAL = '%y, %c = Neg(%x) [%cx] device("d") name("y") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)'
GENERIC = "(%x, %cx) {T = f32, _mlir_device = \"d\", _mlir_name = \"y\"} : (tensor<*xf32>, !tf_type.control) -> "
FORMS = [
    "%y\n,\n%c\n=\nNeg\n(\n%x\n)\n[\n%cx\n]\ndevice\n(\n\"d\"\n)\nname(\n\"y\")\n{\nT\n=\nf32\n}\n:\n(\ntensor<*xf32>\n)\n->\n"
    "(\ntensor<*xf32>\n)",
    '%y, %c = Neg(%x) // a\n [%cx] // b\n // c\n device("d")// d\n name("y") {T = f32 // e\n} :\n (tensor<*xf32>) '
    "// f\n -> (tensor<*xf32>)",
    '%y:2 = Neg(%x) [%cx] device("d") name("y") {T = f32} : (tensor<*xf32>) -> tensor<*xf32>',
    'tfg.Neg(%x) [%cx] device("d") name("y") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)',
    '%y, %c = tfg.Neg(%x) [%cx] {T = f32, _mlir_name = "y", _mlir_device = "d"} : (tensor<*xf32>) -> (tensor<2xf32>)',
    '%c = Neg(%x, %cx) device("d") name("y") {T = f32} : tensor<*xf32>',
    f'%y:2 = "tfg.Neg"{GENERIC}(tensor<*xf32>, !tf_type.control)',
    f'%y, %c = "tfg.Neg" {GENERIC}\n(tensor<*xf32>, !tf_type.control) loc("f":1:2)',
    f'%y = "tfg.Neg"{GENERIC}tensor<*xf32>',
    f'"tfg.Neg"{GENERIC}(tensor<*xf32>, !tf_type.control)',
    f"{USUAL} loc(unknown)",
]
ROWS = [json.loads(line) for line in (Path(__file__).parents[1] / "data/tfg/reading.jsonl").read_text().splitlines()]
BASES = {row[1]: row[2] for row in ROWS if row[0] == "base"}
FAULTS = [row for row in ROWS if row[0] != "base"]
REGION_HEAD = HEAD + '''  %p, %cp = Placeholder name("p") {dtype = i1} : () -> (tensor<*xi1>)
  %x, %cx = Placeholder name("x") {dtype = f32} : () -> (tensor<*xf32>)
  %i, %ci = Placeholder name("i") {dtype = i32} : () -> (tensor<*xi32>)
'''
REGION_FORMS = [  # an edit of a base after which its graph is the same
    ("if", "then {", "then\n{ // c\n"), ("if", "} else {", "} else {^bb0:"), ("if", "IfRegion", "tfg.IfRegion"),
    ("if", " -> (tensor<*xf32>)", " -> tensor<*xf32>"), ("if", "%If, %c = ", ""),
    ("if", "yield(%x) : tensor<*xf32>", "yield(%x) : tensor<*xf32> loc(unknown)"),
    ("if", "yield(%x) : tensor<*xf32>", '"tfg.yield"(%x) <{operandSegmentSizes = array<i32: 1, 0>}> : '
     "(tensor<*xf32>) -> ()"),
    ("case", "}, {", "}\n,\n{"), ("case", "%o, %c", "%o:2"),
    ("while", "^bb0(%a: tensor<*xf32>, %b", '^foo(%a: tensor<*xf32> loc("a"), // c\n%b'),
    ("while", "condition %l : tensor<*xi1> (%a) [%cl] : tensor<*xf32>", '"tfg.condition"(%l, %a, %cl) '
     "<{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<*xi1>, tensor<*xf32>, !tf_type.control) -> ()"),
    ("for", "from %i to %i by %i", "from\n%i\nto\n%i by %i"),
]
FUNCTION = """tfg.func @f(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xf32> {tfg.name = "r"})
    attributes {description = "d"} {
  %N, %c = Neg(%a) [%a.ctl] name("n") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)
  return(%N) [%c {tfg.name = "q"}] : tensor<*xf32>
}"""
FUNCTION_FORMS = [
    FUNCTION.replace(" ", "\n // c\n").replace("tfg.func\n // c\n", "tfg.func "),
    FUNCTION.replace("tfg.func", "tfg.func private"),
    FUNCTION.replace("return(%N)", "tfg.return(%N)"),
    FUNCTION.replace("%N, %c = Neg", "%N:2 = Neg").replace("(%N)", "(%N#0)").replace("[%c {", "[%N#1 {"),
    FUNCTION.replace('{tfg.name = "q"}]', '{tfg.name = "q"},] name("n") {a = 1}'),
    FUNCTION.replace('return(%N) [%c {tfg.name = "q"}] : tensor<*xf32>', '"tfg.return"(%N, %c) <{control_ret_attrs = '
                     '[{tfg.name = "q"}]}> : (tensor<*xf32>, !tf_type.control) -> ()'),
    '''"tfg.func"() <{sym_name = "f", function_type = (tensor<*xf32>, !tf_type.control) -> tensor<*xf32>,
        arg_attrs = [{tfg.name = "a"}, {}], res_attrs = [{tfg.name = "r"}]}> ({
    ^bb0(%a: tensor<*xf32>, %t: !tf_type.control):
      %N, %c = tfg.Neg(%a) [%t] name("n") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)
      tfg.return(%N) [%c {tfg.name = "q"}] : tensor<*xf32>
    }) {description = "d"} : () -> ()''',
]
MODULES = ["module {{\n{0}\n}}", "module @m attributes {{tf.a = 1}} {{\n{0}\n}} loc(unknown)", "builtin.module {{{0}}}",
           '"builtin.module"() ({{\n^bb0:\n{0}\n}}) {{sym_name = "m"}} : () -> ()', "#a = 1\n{0}\n// end\n!t = i32"]


def graph_def(text: str) -> bytes:
    return heald.graphdef.dumps(heald.tfg.loads(text))


@pytest.mark.parametrize("form", FORMS)
def test_a_node_in_any_layout_and_form_is_one_node(form):
    assert graph_def(f"{GRAPH_HEAD}{form}\n}}") == graph_def(f"{GRAPH_HEAD}{USUAL}\n}}")


NEXT = '%z, %cz = Relu(%y) name("z") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)'


@pytest.mark.parametrize("gap", ["\n", "\n\n \t\r\n", " // c\n// %a\n", "\0\n\0", "\n\0\n", " ", " loc(unknown)\n"])
def test_any_gap_between_lines_leaves_the_nodes_as_they_are(gap):
    assert graph_def(f"{GRAPH_HEAD}{USUAL}{gap}{NEXT}{gap}}}") == graph_def(f"{GRAPH_HEAD}{USUAL}\n{NEXT}\n}}")


@pytest.mark.parametrize("gap", ["\n\v", "\v\n", "\n\f", "\n;", "\n{}\n"])
def test_a_gap_that_is_no_blank_is_refused_at_its_place(gap):
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads(f"{GRAPH_HEAD}{USUAL}{gap}{NEXT}\n}}")
    assert caught.value.location.line in (3, 4)


@pytest.mark.parametrize("name", ["n" * 127, "n" * 128, "n" * 300, "n\u00fc", "a/b.c-d"])
def test_a_name_of_any_length_and_script_comes_back(name):
    graph = heald.tfg.loads(f"{GRAPH_HEAD}{USUAL}\n{NEXT}\n}}".replace('name("y")', f'name("{name}")'))
    assert [node.name for node in graph] == ["x", name, "z"]
    assert [str(source) for source in graph["z"].inputs] == [name]
    assert graph_def(heald.tfg.dumps(graph)) == heald.graphdef.dumps(graph)


@pytest.mark.parametrize("label", ["^bb0:", "^bb0(%q: tensor<*xf32>):"])
def test_a_graph_may_begin_with_a_label(label):
    assert graph_def(f"{HEAD}{label}\n{X}{USUAL}\n}}") == graph_def(f"{GRAPH_HEAD}{USUAL}\n}}")


@pytest.mark.parametrize(("kind", "old", "new"), REGION_FORMS)
def test_control_flow_in_any_layout_and_form_is_one_graph(kind, old, new):
    base = BASES[kind]
    assert old in base
    assert graph_def(f"{REGION_HEAD}{base.replace(old, new)}\n}}") == graph_def(f"{REGION_HEAD}{base}\n}}")


@pytest.mark.parametrize("form", FUNCTION_FORMS)
def test_a_function_in_any_layout_and_form_is_one_function(form):
    assert graph_def(form) == graph_def(FUNCTION)


@pytest.mark.parametrize("form", MODULES)
def test_a_module_in_any_form_is_one_graph(form):
    text = f"{GRAPH_HEAD}{USUAL}\n}}"
    assert graph_def(form.format(text)) == graph_def(text)


def test_a_graph_in_generic_form_is_read():
    text = f"""{GRAPH_HEAD}{USUAL}\n}}"""
    version = "#tf_type.version<producer = 1000, min_consumer = 0>"
    nodes = (X + USUAL).replace("Placeholder", "tfg.Placeholder").replace("Neg", "tfg.Neg")
    assert graph_def(f'"tfg.graph"() <{{version = {version}}}> ({{\n{nodes}\n}}) : () -> ()') == graph_def(text)


@pytest.mark.parametrize(("kind", "parts"), [(kind, parts) for kind, *parts in FAULTS])
def test_a_faulty_text_is_refused_in_the_words_and_at_the_place_of_tensorflow(kind, parts):
    *parts, (line, column, words) = parts
    if kind == "regions":
        base, old, new = parts
        text = f"{REGION_HEAD}{BASES[base].replace(old, new, 1)}\n}}\n"
    else:
        text = parts[0] if kind == "functions" else f"{GRAPH_HEAD}{parts[0]}\n}}\n"
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads(text)
    location = caught.value.location
    assert (location.line, location.column, caught.value.message) == (line, column, words)


def test_one_node_may_lack_a_name_and_has_no_users():
    nameless = USUAL.replace('name("y") ', "")
    assert [node.op for node in heald.tfg.loads(f"{GRAPH_HEAD}{nameless}\n}}")] == ["Placeholder", "Neg"]
    with pytest.raises(MalformedText, match="Can't export graph with missing op-name") as caught:
        heald.tfg.loads(f'{GRAPH_HEAD}{nameless}\n%z = NoOp [%c] name("z")\n}}')
    assert (caught.value.location.line, caught.value.location.column) == (4, 12)
    with pytest.raises(MalformedText, match="two nodes are called ''"):
        heald.tfg.loads(f"{GRAPH_HEAD}{nameless}\nNoOp\n}}")


def test_an_op_with_a_point_in_its_name_is_printed_with_the_prefix():
    text = f'{HEAD}  %c = tfg.My.Op name("a")\n  %d = tfg.tfg.Neg name("b")\n}}'
    graph = heald.tfg.loads(text)
    assert [node.op for node in graph] == ["My.Op", "tfg.Neg"]
    assert "= tfg.My.Op name" in heald.tfg.dumps(graph)
    with pytest.raises(MalformedText, match="Dialect `My' not found for custom op 'My.Op'"):
        heald.tfg.loads(text.replace("tfg.My", "My"))


def test_the_published_designs_function_that_contradicts_itself_is_refused():
    with pytest.raises(MalformedText, match="operation defines 2 results but was provided 3 to bind") as caught:
        heald.tfg.loads("""tfg.func @f(%arg0: tensor<*xf32> {tfg.name = "a"}, %arg1: tensor<*xi1> {tfg.name = "b"})
    -> (tensor<*xf32> {tfg.name = "r"}) {
  %Switch:2, %ctl = Switch(%arg0, %arg1) [%arg1.ctl] name("s") {T = f32}
      : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>)
  return(%Switch#0) : tensor<*xf32>
}""")
    assert (caught.value.location.line, caught.value.location.column) == (3, 3)


def test_the_published_designs_spellings_are_read():
    graph = heald.tfg.loads("""tfg.graph #tfg.version<producer = 42, min_consumer = 33> {
  %arg0, %ctl = tfg.placeholder() name("p") : () -> (!tfg.tensor)
}
tfg.func generic @g(%arg0 : !tfg.tensor {tfg.name = "a"}, %arg1 : !tfg.tensor {tfg.name = "b"})
    -> (!tfg.tensor {tfg.name = "r"}) {
  %G, %c = Greater(%arg0, %arg1) [%arg1.ctl] name("g") {T = f32}
  %z = get_result(%G) "z" : 0
  %S, %d = Switch(%arg0, %z) name("s")
  %t = get_result %S "output_true" : 0
  return(%t)
}""")
    function = graph.functions["g"]
    assert (graph["p"].op, graph.versions.producer, str(function.ret["r"])) == ("placeholder", 42, "s:output_true:0")


def test_loads_all_reads_several_graphs_and_pieces():
    text = f"{GRAPH_HEAD}}}\n{FUNCTION}\n"
    graphs = heald.tfg.loads_all(f'{text}{HEAD}%c = NoOp name("y")\n}}\n')
    assert [([*graph.nodes], [*graph.functions]) for graph in graphs] == [(["x"], ["f"]), (["y"], ["f"])]
    pieces = heald.tfg.loads_all(f"{text}// -----\n\n// -----\n{FUNCTION}\n// ----- more\n{text}")
    assert [([*graph.nodes], [*graph.functions]) for graph in pieces] == [(["x"], ["f"]), ([], ["f"]), (["x"], ["f"])]
    assert heald.tfg.loads_all("// nothing\n") == []


def test_loads_names_loads_all_for_several_graphs():
    with pytest.raises(MalformedText, match=r"two different tfg\.graph; .*loads_all") as caught:
        heald.tfg.loads(f"{HEAD}}}\n{HEAD}}}")
    assert (caught.value.location.line, caught.value.location.column) == (3, 1)


def test_an_error_of_a_piece_has_the_line_of_the_whole_text():
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads_all(f"{HEAD}}}\n// -----\n{HEAD}}}\n// -----\n  oops", file="f.tfg")
    assert (caught.value.location.file, caught.value.location.line, caught.value.location.column) == ("f.tfg", 7, 3)


@pytest.mark.parametrize("digits", [
    "", "0", "zz", "00 00", "000080", "0000803F", "0000803F00000040", "0000803f000000C0", "FF" * 16, "01" * 3])
@pytest.mark.parametrize("of", [
    "2xf32", "2xi1", "2xi8", "2xcomplex<f32>", "1x!tf_type.string", "0xf32", "4xi4", "2xf64", "2xui16", "3xf8E5M2",
    "99999999999x99999999999xf32"])
def test_digits_at_once_are_those_behind_a_comment(of, digits):
    def read(gap):
        value = f'dense<{gap}"0x{digits}"> : tensor<{of}>'
        text = f'{HEAD}%c, %t = Const name("c") {{v = {value}}} : () -> (tensor<*xf32>)\n}}'
        try:
            return graph_def(text)
        except heald.errors.HealdError as error:
            return type(error), error.message

    assert read("") == read(" // c\n")
