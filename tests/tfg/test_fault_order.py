"""A text with several faults is refused for the first: of the parser, then of the verifier, then of the exporter."""

import heald
import pytest
from google.protobuf import text_format
from heald.graphs.protobuf.descriptor_pool import message_class
from heald_mlir.lexer import MalformedText

HEAD = "tfg.graph #tf_type.version<producer = 1, min_consumer = 0> {\n"
X = '%x, %xc = Placeholder name("x") {dtype = f32} : () -> (tensor<*xf32>)\n'
Y = '%y, %yc = Placeholder name("y") {dtype = f32} : () -> (tensor<*xf32>)\n'
NAMELESS = ("%n, %nc = Neg(%x) {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)\n"
            '%m, %mc = Neg(%n) name("m") {T = f32} : (tensor<*xf32>) -> (tensor<*xf32>)\n')
UNEXPORTED = '%y, %yc = Neg(%x) name("y") {T = f32, a = {}} : (tensor<*xf32>) -> (tensor<*xf32>)\n'
OTHER_TYPE = '%z, %zc = Neg(%x) name("z") {T = i8} : (tensor<*xi8>) -> (tensor<*xi8>)\n'
UNTYPED = '%v, %vc = Neg(%x) name("v")\n'
REGION = '%rc = IfRegion %x then {\n  yield\n} else {\n  yield\n} {_mlir_name = "r"} : (tensor<*xf32>) -> ()\n'
FUNCTION = "func @q() {\n  return\n}\n"

FAULTS = [
    (X + UNEXPORTED + NAMELESS, 3, 1, "Unhandled attribute kind for attribute: {}"),
    (X + NAMELESS, 4, 15, "Can't export graph with missing op-name"),
    (X + NAMELESS + FUNCTION, 5, 1, "'tfg.func' op symbol's parent must have the SymbolTable trait"),
    (X + UNEXPORTED + OTHER_TYPE, 4, 15,
     "use of value '%x' expects different type than prior uses: 'tensor<*xi8>' vs 'tensor<*xf32>'"),
    (X + UNTYPED, 3, 15,
     "use of value '%x' expects different type than prior uses: '!tf_type.control' vs 'tensor<*xf32>'"),
    (X + '%v, %vc = Neg name("v")\n)', 3, 1, "operation defines 1 results but was provided 2 to bind"),
    (OTHER_TYPE + X, 3, 1, "definition of SSA value '%x#0' has type 'tensor<*xf32>'"),
    (X + X + OTHER_TYPE, 3, 1, "redefinition of SSA value '%x'"),
    (X + X.replace("%xc", "%x").replace("%x, ", "%w, "), 3, 5, "redefinition of SSA value '%x'"),
    (X + '%v = Neg name("v")\n(', 3, 19, "expected operation name in quotes"),
    (X + REGION + "tfg.Neg(%gone) : (f32", 8, 22, "expected ')'"),
    (X + "return\n" + Y, 3, 1, "'tfg.return' op expects parent op 'tfg.func'"),
    (X + "yield\n" + Y, 3, 1,
     "'tfg.yield' op must be the last operation in the parent block"),
    (X + "yield\n", 3, 1, "Unhandled attribute kind for attribute: array<i32: 0, 0>"),
]


@pytest.mark.parametrize(("body", "line", "column", "words"), FAULTS)
def test_the_first_fault_is_that_of_tensorflow(body, line, column, words):
    with pytest.raises(MalformedText) as caught:
        heald.tfg.loads(f"{HEAD}{body}}}\n")
    location = caught.value.location
    assert (location.line, location.column, caught.value.message) == (line, column, words)


LOCATIONS = [
    ('"name"', ["name"], []), ('"a@f@g"', ["a"], ["f@g"]), ('"a@"', ["a"], []), ('""', [""], []),
    ('"n"("c")', ["n"], []), ('fused["a", "b"]', ["a", "b"], []), ('fused<"m">["a"]', ["a"], []),
    ('fused[fused["a", "b"], "c", "a"]', ["a", "b", "c"], []), ('fused["b@f", "a"]', ["b", "a"], ["f"]),
    ('fused[fused<"m">["a"]]', ["a"], []), ('fused[fused<"m">["a"], "b"]', ["b"], []),
    ('fused["a", "f.py":1:2, unknown]', ["a"], []), ('callsite("a" at "b")', [], []), ("fused[]", [], []),
    ('"f.py":3:4', [], []), ("unknown", [], []),
]


@pytest.mark.parametrize(("location", "nodes", "functions"), LOCATIONS)
@pytest.mark.parametrize("layout", [" loc({})", "\n loc({})"])
def test_a_location_becomes_debug_info(location, nodes, functions, layout):
    text = f"{HEAD}{X.rstrip()}{layout.format(location)}\n{Y}}}\n"
    message = message_class("GraphDef").FromString(heald.graphdef.dumps(heald.tfg.loads(text)))
    info = message.node[0].experimental_debug_info
    assert (info.original_node_names, info.original_func_names) == (nodes, functions)
    assert message.node[0].HasField("experimental_debug_info") == bool(nodes)
    assert not message.node[1].HasField("experimental_debug_info")


def test_a_node_does_not_take_the_tail_of_another_one_that_goes_on_in_the_next_line():
    text = (f'{HEAD}%a = NoOp name("a") {{k}}\n%b = NoOp name("b")\n%c = NoOp name("c") {{k}}\n: () -> ()\n'
            '%d = NoOp name("d")\n{j = 3}\n}\n')
    nodes = heald.tfg.loads(text).nodes
    assert [list(node.attrs) for node in nodes.values()] == [["k"], [], ["k"], ["j"]]


def test_properties_of_ops_without_declaration_keep_names_and_devices():
    text = (f'{HEAD}%a = "tfg.NoOp"() <{{_mlir_name = "a", _mlir_device = "d", k = 1}}> {{j = 2}} : () -> '
            "!tf_type.control\n}\n")
    node = heald.tfg.loads(text).nodes["a"]
    assert (node.device, dict(node.attrs)) == ("d", {"j": 2})


def test_dropped_properties_decide_the_results():
    text = ("tfg.func @f() -> (tensor<*xf32> {tfg.name = \"r\"}) {\n"
            '%s:2, %c = "tfg.Split"() <{_mlir_name = "s", num_split = 2 : i64, T = f32}> : () -> '
            "(tensor<*xf32>, tensor<*xf32>, !tf_type.control)\n  return(%s#1) : tensor<*xf32>\n}\n")
    message = message_class("GraphDef").FromString(heald.graphdef.dumps(heald.tfg.loads(text)))
    assert message.library.function[0].ret["r"] == "s:output:1"
    assert not message.library.function[0].node_def[0].attr


def test_control_flow_loses_attributes_of_another_kind():
    text = (f'{HEAD}%c, %cc = Placeholder name("c") {{dtype = i1}} : () -> (tensor<*xi1>)\n'
            '%i = If(%c) name("i") {Tin = 3 : i64, then_branch = #tf_type.func<@f, {}>, '
            "else_branch = #tf_type.func<@f, {}>} : (tensor<*xi1>) -> ()\n}\n")
    assert set(heald.tfg.loads(text).nodes["i"].attrs) == {"then_branch", "else_branch"}
    assert "Tin" in heald.tfg.loads(text, verify=False).nodes["i"].attrs


def test_a_text_without_a_graph_has_no_versions():
    graph = heald.tfg.loads("tfg.func @f() {\n  return\n}\n")
    message = message_class("GraphDef").FromString(heald.graphdef.dumps(graph))
    assert not message.HasField("versions")
    assert heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(graph))) == heald.graphdef.dumps(graph)


CONCRETE = """library { function { signature { name: "f" input_arg { name: "" type: DT_FLOAT }
  output_arg { name: "r" type: DT_FLOAT } } ret { key: "r" value: "" } } } versions { producer: 1 }"""
GENERIC = """library { function { signature { name: "f" input_arg { name: "a" type_attr: "T" }
    output_arg { name: "r" type_attr: "T" } attr { name: "T" type: "type" } }
  node_def { name: "x" op: "Neg" input: "a" attr { key: "T" value { placeholder: "T" } } }
  ret { key: "r" value: "x:y:0" } arg_attr { key: 0 value { attr { key: "" value { i: 3 } } } } } }
versions { producer: 1 }"""


@pytest.mark.parametrize("text", [CONCRETE, GENERIC])
def test_arguments_and_their_attributes_may_lack_a_name(text):
    raw = text_format.Parse(text, message_class("GraphDef")()).SerializeToString()
    assert heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(heald.graphdef.loads(raw)))) == raw


def test_a_version_has_32_bits():
    raw = b'\n\x09\n\x01a\x12\x04NoOp"\x07\x08\xff\xff\xff\xff\xff\x7f'
    graph = heald.graphdef.loads(raw)
    assert graph.versions.producer == -1
    assert heald.graphdef.dumps(heald.tfg.loads(heald.tfg.dumps(graph))) == raw
