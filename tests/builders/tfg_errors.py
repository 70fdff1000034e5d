"""Errors that `random_tfg_texts` plants into TF Graph IR texts, each under a name.

Most errors are rows of `REWRITES`: a pattern, and what stands in the place of one random match. The other errors need
the parts of a node (`_node_errors`) or the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

from builders.tfg_forms import TOKEN, NodeText, operand_and_result_types, replace_node, split_list

Error = Callable[[Random, str], str | None]
_VALUE = r"(?<=[(\[ ])%[\w$.\-]+(?:#\d+)?(?=[,)\]])"
_ATTRIBUTE = r'(?<== )(?:-?\d+ : i64|"\w*"|true|false|f32|i32|i1|#tf_type\.shape<[^<>]*>|\[[^\[\]{}"]*\])(?=[,}])'
REWRITES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # values
    "undeclared value": (_VALUE, ("%undeclared", "%99", "%x.ctl9")),
    "result number out of bounds": (r"(?<=[(\[ ])(%[\w$.\-]+)(?:#\d+)?(?=[,)\]])", (r"\1#7", r"\1#1", r"\1#0")),
    "no value name": (_VALUE, ("%", "x", "@x", "%x#", "%x#a", "3")),
    "token as a tensor": (r"(?<=\()%[\w$.\-]+(?:#\d+)?(?=[,)])", ("%ctl", "%ctl_x", "%ctl_0")),
    "tensor as a token": (r"(?<=\[)%ctl[\w$.\-]*", ("%x", "%Const", "%c")),
    "redefined value": (r"(?m)^( *%)[\w$.\-]+(?=[,: ])", (r"\1x", r"\1ctl", r"\1Const")),
    "results of another count": (r"(?m)^( *%[\w$.\-]+)(:\d+)?(?=, %ctl)", (r"\1:3", r"\1, %extra", r"\1:0", r"\1:2")),
    "no token result": (r"(?m)^( *%[\w$.\-]+(?::\d+)?), %ctl[\w$.\-]*(?= =)", (r"\1",)),
    # types
    "type count": (r"(?m) : \((?=tensor)", (" : (tensor<*xf32>, ", " : (i32, ")),
    "no operand types": (r"(?m) : \([^()\n]+\) ->", (" : () ->", " : ->")),
    "no types": (r"(?m)(?<=[})]) : \([^\n{]*$", ("", " :", " : (")),
    "other operand type": (r"(?<=: \()tensor<[^<>]*>", (
        "tensor<*xi64>", "tensor<*xf64>", "!tf_type.control", "!tf_type.tensor", "f32", "none", "tensor<2xf32>")),
    "other result type": (r"(?<=-> )\(?tensor<[^<>]*>", (
        "(tensor<*xi64>", "(f32", "(!tf_type.control", "(!tf_type.tensor", "(tensor<2x?xf32>", "(index")),
    "unknown type": (r"\b(?:f32|i32|i1|i64)\b(?=[,}>\]])", (
        "f33", "i0", "i16777216", "foo", "int", "!foo", "!tf_type.foo", "!tf_type", "!tfg.foo", "!unknown.t")),
    "invalid element type": (r"tensor<\*x\w+>", (
        "tensor<*xtensor<f32>>", "tensor<*x!tf_type.control>", "tensor<*x()->()>", "tensor<*xtuple<f32>>",
        "tensor<*x>", "tensor<*x!tf_type.resource<f32>>", "tensor<*x!tf_type.variant<tensor<*xf32>, i32>>",
        "tensor<*xnone>", "tensor<*xindex>", "tensor<*xvector<2xf32>>", "tensor<*x!tf_type.string<tensor<f32>>>")),
    "invalid shape": (r"tensor<\*x(?=\w)", (
        "tensor<2xx", "tensor<-1x", "tensor<*x2x", "tensor<2,", "tensor<99999999999999999999x", "tensor<?", "tensor<x",
        "tensor<0x", "tensor<[2]x", "memref<*x", "vector<2x", "tensor", "tensor<9223372036854775807x")),
    "invalid type parameters": (r"!tf_type\.(?:resource|variant)(?!<)\b", (
        "!tf_type.resource<>", "!tf_type.resource<f32>", "!tf_type.resource<tensor<f32>", "!tf_type.variant<,>",
        "!tf_type.resource <tensor<f32>>", "!tf_type.Resource", "!tf_type.resource<tensor<*xf32>,>")),
    "invalid shape attribute": (r"#tf_type\.shape<[^<>]*>", (
        "#tf_type.shape<2x>", "#tf_type.shape<-2>", "#tf_type.shape<2, 3>", "#tf_type.shape<x2>", "#tf_type.shape",
        "#tf_type.shape<1.5>", "#tf_type.shape<?x*>", "#tf_type.shape<**>", "#tf_type.shape<99999999999999999999>",
        "#tf_type.shape <2>", "#tf_type.shape<2x-5x1>", "#tf_type.shape<a>", "#tf_type.shape<0x2>")),
    # attributes
    "unknown attribute": (_ATTRIBUTE, (
        "#foo", "#foo.bar", "#tf_type.foo", "#tf_type", "#tfg.foo<>", "#tf_type.func", "#tf_type.func<f>",
        "#tf_type.func<@f>", "#tf_type.func<@f, {>", "#tf_type.placeholder<T>", "#tf_type.full_type<foo>",
        "#tf_type.full_type<unset<a>>", "#tf_type.version<>", "#tf_type.version<producer = a>", "#tf_type.func<@f, 3>",
        "#tf_type.func<f32, {}>", "#tf_type<tensor_proto : 3>", "#tf_type<foo>", "#tfg.region_attrs<{} []>")),
    "invalid attribute": (_ATTRIBUTE, (
        "", "= 3", "-", "+1", "3 :", "3 : foo", "1.5 : i32", "2 : i1", "300 : i8", "-1 : ui8", "true : i1", "null",
        "99999999999999999999999", "9223372036854775808 : i64", "0x1 : f32", "0xFFFFFFFFF : f32", "1e999 : f32",
        "1.5.5", "3 : f32", "-true", "unitt", "[1", "[1,]", "[,]", "{a}", "{a = }", "{a = 1, a = 2}", "{1 = 2}",
        "{\"a b\" = 3 : i64}", "{\"\" = 3 : i64}", "@", "@f::", "@\"f\"", "\"a\" : i32", "3 : index", "array<i64: a>",
        "array<foo: 1>", "array<i64 1>", "array<i64: 1.5>", "array<i3: 1>", "array<i64>", "array<f32: 1>")),
    "invalid constant": (_ATTRIBUTE, (
        "dense<1>", "dense<1> : i32", "dense<[1, 2]> : tensor<3xi32>", "dense<[1, [2]]> : tensor<2xi32>",
        "dense<1.5> : tensor<i32>", "dense<1> : tensor<f32>", "dense<true> : tensor<i32>", "dense<300> : tensor<i8>",
        "dense<-1> : tensor<ui8>", "dense<1> : tensor<*xi32>", "dense<1> : tensor<?xi32>", "dense<> : tensor<2xi32>",
        "dense<[]> : tensor<0xi32>", "dense<[[]]> : tensor<1x0xi32>", "dense<\"0x00\"> : tensor<2xi32>",
        "dense<\"0xZZ\"> : tensor<i8>", "dense<\"a\"> : tensor<i8>", "dense<\"a\"> : tensor<!tf_type.string>",
        "dense<(1.0, 2.0)> : tensor<f32>", "dense<(1, 2)> : tensor<complex<i32>>", "dense<1.0> : tensor<complex<f32>>",
        "dense<[1, 2]", "dense<1 : tensor<i32>", "dense<2> : tensor<i1>", "dense<\"0x01\"> : tensor<i1>",
        "dense<0x7FC00000> : tensor<f32>", "dense<0x7FC0> : tensor<f32>", "dense<-0x1> : tensor<i32>",
        "dense<0x1FF> : tensor<i8>", "dense_resource<a>", "sparse<0, 1>", "sparse<[[9]], [1]> : tensor<2xi32>",
        "sparse<[[0]], [1, 2]> : tensor<2xi32>", "opaque<\"a\", \"0x1\"> : tensor<i8>")),
    "duplicate attribute": (r"(?<=[{ ])(\w+)( = (?:\w+|-?\d+ : i64))(?=[,}])", (r"\1\2, \1\2", r"\1\2, \1")),
    "attribute without a name": (r"(?<=[{ ])\w+(?= = )", ('""', "3", "=", "@a", "a b", "%a", "#a", "a-b", '"a b"',
                                                         '".a"', "a.", "_b")),
    "attribute list": (r"\{(?=\w+ = )", ("{,", "{ , ", "{{", "<{", "[", "{a,, ")),
    "no end of an attribute list": (r"(?<=\w)\} : ", (" : ", ",} : ", "}} : ", "] : ")),
    "type attribute of another kind": (r"\b(dtype|T|Tin|Tout|Tcond) = [\w\[\]]+", (
        r"\1 = 3 : i64", r'\1 = "f32"', r"\1 = [f32, f32]", r"\1 = unit", r"\1 = [i64]", r"\1 = f64", r"\1 = []",
        r"\1 = tensor<f32>", r"\1 = index")),
    "no such attribute": (r"(?<=[{ ])(?:dtype|T|shape|value|then_branch|body|cond|branches|Tin|Tout) =", (
        "other =", "X_ =", "_dtype =")),
    # names and parts of a node
    "empty name": (r'name\("[^"\n]*"\)', ('name("")', "name()", "name", "name(3)", 'name("x", "y")', "name(x)",
                                          'name "x"', 'name("x"', 'name["x"]', 'name("\\00")', 'name("^x")',
                                          'name("a:0")', 'name("a b")')),
    "duplicate name": (r'name\("[^"\n]*"\)', ('name("x")', 'name("Const")')),
    "device before its turn": (r'(name\("[^"\n]*"\))', (
        r'\1 device("/cpu:0")', r'\1 [%ctl]', r"\1 \1", r'assigned_device("d") device("/cpu:0") \1', r'device() \1',
        r'device("a") device("b") \1', r'foo("x") \1', r"device(3) \1", r'assigned_device("a") \1')),
    "invalid op name": (r"(?<= = )[A-Z]\w*(?=[ (])", (
        "", "3Op", "@Op", "foo.Op", "tfg.", "tfg.tfg.Op", "arith.addi", "func.func", "Op-Op", "op", "tfg.return",
        "yield", '"Op"', '""', '"tfg."', '"foo.Op"', "_Op", "tf.Add", "Op.Sub", "builtin.module", "graph", "func")),
    "operand list": (r"(?<= = )(\w+)\((?=%)", (r"\1(,", r"\1((", r"\1 [", r"\1", r"\1(%x %x, ", r"\1<(")),
    "control list": (r" \[(?=%ctl)", (" [,", " [[", " (", " [] [", " [%x#0#0, ", " {")),
    "text without an end": (r'"(?=[)\],])', ("", '\n"', '\\"', '\\q"', "\\")),
    "invalid escape": (r'(?<=")\w+(?=")', ("\\zz", "\\0", "\\x41", "\\u0041", "\\t", "\\AF", "\\'", "\t")),
    # modules and functions
    "version": (r"#tf_type\.version<[^<>]*>", (
        "", "#tf_type.version", "#tf_type.version<>", "#tf_type.version<producer = 1>", "3", '"a"',
        "#tf_type.version<min_consumer = 0, producer = 1>", "#tf_type.version<producer = -1, min_consumer = 0>",
        "#tf_type.version<producer = 1, min_consumer = 0, bad_consumers = []>", "#tf_type.shape<2>",
        "#tf_type.version<producer = 1, min_consumer = 0, bad_consumers = [1, a]>",
        "#tf_type.version<producer = 1, min_consumer = 0, foo = 1>",
        "#tf_type.version<producer = 99999999999, min_consumer = 0>", "#tf_type.version<producer = 1 min_consumer = 0>",
        "#tf_type.version<producer : 1, min_consumer = 0>")),
    "graph attributes": (r"(?<=>) \{\n", (
        " attributes {\n", " attributes {a = 1 : i64} {\n", " {a = 1 : i64} {\n", " {} {\n", " attributes {} {\n", "\n",
        " {\n^bb0:\n", " {\n^bb0(%z: i32):\n", " {\n^bb0:\n^bb1:\n", " ({\n")),
    "symbol of a function": (r"tfg\.func ((?:generic )?)@[\w\"\-]+", (
        r"tfg.func \1f", r"tfg.func \1@", r"tfg.func \1", r"tfg.func \1@f", r"tfg.func @f \1", r'tfg.func \1@"f g"',
        r'tfg.func \1@""', r"tfg.func protected \1@f9", r"tfg.func private public \1@f9", r"func \1@f9",
        r"tfg.function \1@f9", r"tfg.func generic \1@f9", r'tfg.func "\1" @f9')),
    "argument": (r"%(\w+): (tensor<[^<>]*>|!tf_type\.tensor)(?= \{)", (
        r"%\1", r"%\1 \2", r"\2", r"%\1: ", r"%\1: f32", r"%\1: !tf_type.control", r"%\1:2: \2", r"%a: \2",
        r"\1: \2", r"%\1#0: \2", r"%\1: \2, ", r"%\1: \2 loc(unknown)", r"%\1: tensor<2xf32>")),
    "argument attributes": (r"\{(?:tf\.\w+ = [^{}]*, )?tfg\.name = \"\w+\"", (
        "{", '{tfg.name = ""', "{tfg.name = 3 : i64", '{tfg.name = "a"', "{tfg.name", '{name = "a"', '{foo.bar = "a"',
        '{tfg.other = "a", tfg.name = "q"', '{tfg.name = "a/b"', '{tfg.handle_data = 3 : i64, tfg.name = "q"',
        '{tfg.handle_data = [f32], tfg.name = "q"', '{tfg.handle_data = [tensor<2xindex>], tfg.name = "q"',
        '{tfg.is_ref = 3 : i64, tfg.name = "q"', '{tfg.type_attr = 3 : i64, tfg.name = "q"', '{a = 1, tfg.name = "q"',
        '{tfg.type_list_attr = "T", tfg.name = "q"', '{tfg.number_attr = "N", tfg.name = "q"',
        '{tf.a = affine_map<() -> ()>, tfg.name = "q"', '{tfg.type = 3 : i64, tfg.name = "q"')),
    "function results": (r"-> \((?=(?:tensor|!tf_type)[^()\n]*\{)", (
        "-> (tensor<*xf32>, ", "-> ", "(", "-> (!tf_type.control, ", "-> (i32, ", "-> (,", "-> ()(", "=> (",
        '-> (tensor<*xf32> {tfg.name = "r"}, ')),
    "function attributes": (r"attributes \{(?=\w)", (
        "attributes {a = 1 : i64, ", "attributes {tf.a = affine_map<() -> ()>, ", "attributes {description = 3 : i64, ",
        "attributes {is_stateful = 3 : i64, ", "attributes {gradient = 3 : i64, ", "attributes {foo.bar = 1 : i64, ",
        "attributes {control_output = 3 : i64, ", 'attributes {control_output = ["a", "b"], ', "{",
        'attributes {sym_name = "q", ', "attributes {function_type = i32, ", "attributes {generic, ",
        "attributes {tfg.func_attrs = 3 : i64, ", "attributes {arg_attrs = [], ", "attributes {res_attrs = [], ",
        "attributes {tfg.lifted_graph_version = 3 : i64, ", 'attributes {tf."" = 1 : i64, ',
        "attributes {resource_arg_unique_ids_keys = dense<0> : tensor<1xi32>, ", "attributes attributes {",
        "attributes {tfg.func_attrs = {N = {}}, ", 'attributes {tfg.func_attrs = {N = {function_type = "foo"}}, ')),
    "return": (r"return\(([^()\n]*)\)", (
        r"return", r"return()", r"return(\1, \1)", r"yield(\1)", r"return(\1", r"return(%undeclared)",
        r"return(\1) [\1]", r"return(\1) {a = 1 : i64}", r"return \1", r"return(\1) [%ctl]",
        r"return(\1)\n    return(\1)")),
    "types of a return": (r"(return\([^()\n]*\)(?: \[[^\n\]]*\])?) : [^\n]*", (
        r"\1", r"\1 : i32", r"\1 : tensor<*xi64>", r"\1 : ", r"\1 : (tensor<*xf32>)",
        r"\1 : tensor<*xf32>, tensor<*xf32>",
        r"\1 : !tf_type.control", r"\1 -> tensor<*xf32>")),
    "returned token": (r"(?<=\) )\[%\w+ \{[^{}]*\}\](?= :)", (
        "[%ctl]", "[%ctl {}]", '[%ctl {tfg.name = ""}]', "[%ctl {tfg.name = 3 : i64}]", '[%ctl {name = "a"}]',
        '[%ctl {tfg.name = "a"}, %ctl {tfg.name = "a"}]', "[]", "[%ctl {tfg.name}", "[%a {tfg.name = \"a\"}]")),
    "get_result": (r'get_result\((%[\w$.\-]+)\) ("\w+") : \d+', (
        r"get_result(\1) \2 : -1", r'get_result(\1) "" : 0', r"get_result(\1) \2", r"get_result() \2 : 0",
        r"get_result(\1) : 0", r'get_result(\1) "other" : 0', r"get_result(\1) \2 : 9", r"get_result(\1, \1) \2 : 0",
        r"get_result(\1) x : 0", r"get_result(%a) \2 : 0", r"get_result(%ctl) \2 : 0", r"get_result(\1) \2 : a",
        r"get_result(\1) \2 : 99999999999", r"get_result(\1) \2 : 0 : i32", r"get_result(\1) {a = 1} \2 : 0")),
    "generic form": (r'(?m)^( *%[\w$.\-]+(?::\d+)?(?:, %ctl[\w$.\-]*)?) = (\w+)(?=[ (])', (
        r'\1 = "tfg.\2"', r'\1 = "\2"', r'\1 = "tfg.\2"()', r'\1 = "tfg.\2"() : () -> ()',
        r'\1 = "tfg.\2"(%x) : () -> ()',
        r'\1 = "other.\2"', r'\1 = "tfg.\2"() : (i32) -> (i32)', r'\1 = "tfg.\2"() {a = 1} : ')),
    # regions
    "region op": (r"\b(Stateless|Stateful)?(If|Case|While|For)Region", (
        r"\1\2", "IfRegion", "CaseRegion", "WhileRegion", "ForRegion", r"Stateless\2Region", "LoopRegion",
        r"tfg.\1\2Region", r"\1\2region")),
    "region keyword": (r"(?<=[\]\w}]) (?:then|else|do|from|to|by) (?=[{%])", (
        " ", " then ", " else ", " do ", " from ", " to ", ", ", " yield ", " {} ")),
    "region operand": (r"(?<=Region )%\w+", ("%x", "%i", "%c", "%ctl_x", "(%c)", "", "%undeclared", "%c, %c")),
    "loop operand": (r"(?<=Region)\(%[\w]+\)", ("()", "", "(%x, %x)", "(%i)", "(%ctl_x)", "%x", "(%undeclared)")),
    "yield": (r"yield\(([^()\n]*)\)( \[[^\]\n]*\])? : [^\n]*", (
        "yield", "yield() : ", r"yield(\1)", r"yield(\1) : i32", r"yield(\1, \1) : tensor<*xf32>, tensor<*xf32>",
        r"yield(%i) : tensor<*xi32>", r"yield(%undeclared) : tensor<*xf32>", r"return(\1) : tensor<*xf32>", "",
        r"yield(\1) [\1] : tensor<*xf32>", r"yield(\1) [%ctl_x] : tensor<*xf32>\n  yield",
        r"condition %c : tensor<*xi1> (\1) : tensor<*xf32>", r"yield(\1) [%ctl_x {}] : tensor<*xf32>",
        r"yield(%ctl_x) : !tf_type.control", r"yield(\1) {a = 1 : i64} : tensor<*xf32>", r"yield(%x) : tensor<2xf32>")),
    "condition": (r"condition (%\w+) : tensor<\*xi1> \(([^()\n]*)\)( \[[^\]\n]*\])? : [^\n]*", (
        r"condition \1 : tensor<*xi1>", r"condition %x : tensor<*xf32> (\2) : tensor<*xf32>", r"condition \1",
        "condition",
        r"condition \1 : tensor<*xi1> (\2)", r"condition \1 (\2) : tensor<*xf32>", r"yield(\2) : tensor<*xf32>",
        r"condition \1 : tensor<*xi1> (\2, \2) : tensor<*xf32>, tensor<*xf32>", r"condition %ctl_x : !tf_type.control",
        r"condition \1 : tensor<*xi1> (%i) : tensor<*xi32>", r"condition(\1) : tensor<*xi1>",
        r"condition \1 : tensor<i1> (\2) : tensor<*xf32>",
        r"condition %undeclared : tensor<*xi1> (\2) : tensor<*xf32>")),
    "block arguments": (r"\^bb0\(([^()\n]*)\):\n", (
        "", "^bb0:\n", r"^bb0(%q: i32, \1):\n", r"^bb0(\1, %q: !tf_type.control):\n", "^bb0(%q: tensor<*xf32>):\n",
        r"^bb0(\1)\n", r"^bb0(\1:\n", r"^bb0(\1):\n^bb1:\n", r"bb0(\1):\n", r"^bb0(%q):\n", r"^(\1):\n",
        "^bb0(%q: tensor<*xf32>, %r: tensor<*xf32>):\n", "^bb0(%q: !tf_type.control, %r: tensor<*xf32>):\n",
        "^bb0(%q: tensor<*xi32>, %r: !tf_type.control):\n", r"^bb0(\1, \1):\n", r"^bb0(\1) {:\n")),
    "region attributes": (r"#tfg\.region_attrs<(\{[^{}]*\}) (\[[^\[\]]*\]) (\[[^\[\]]*\])>", (
        r"#tfg.region_attrs<\1 \2>", r"#tfg.region_attrs<\1 [{}, {}, {}] \3>", r"#tfg.region_attrs<\1 \2 []>", "{}",
        "3 : i64", r"#tfg.region_attrs<{} \2 \3>", r"#tfg.region_attrs<\1, \2, \3>", r"#tfg.region_attrs<3 \2 \3>",
        r"#tfg.region_attrs<\1 [3] \3>", r"#tfg.region_attrs<{sym_name = 3 : i64} \2 \3>",
        r"[#tfg.region_attrs<\1 \2 \3>]",
        "#tfg.region_attrs", "#tfg.region_attrs<>", r"#tfg.region_attrs<\1 \2 [{}, {}]>")),
    "type of a region's results": (r"\} : (\([^()\n]*\)) -> [^\n]*", (
        r"} : \1 -> (tensor<*xi32>)", r"} : \1 -> ()", r"} : \1", "}", r"} : () -> (tensor<*xf32>)",
        r"} : \1 -> (tensor<*xf32>, tensor<*xf32>)", r"} : \1 -> i32", r"} : (tensor<*xi64>) -> (tensor<*xf32>)",
        r"} : \1 -> (tensor<2xf32>)", r"} : \1 -> (!tf_type.tensor)")),
    # calls
    "called function": (r"#tf_type\.func<@(\w+), \{\}>", (
        "#tf_type.func<@f, {}>", "#tf_type.func<@c, {}>", "#tf_type.func<@n, {}>", "#tf_type.func<@g, {}>", "@f",
        "#tf_type.func<@missing, {}>", '#tf_type.func<"", {}>', "3 : i64", "[#tf_type.func<@f, {}>]")),
    "functions of a case": (r"branches = \[[^\[\]]*\]", (
        "branches = []", "branches = [3 : i64]", "branches = #tf_type.func<@f, {}>", "branches = [@f]",
        "branches = [#tf_type.func<@c, {}>]", "branches = [#tf_type.func<@f, {}>, #tf_type.func<@n, {}>]")),
    # locations and aliases
    "location": (r"(?m)(?<=>\))$", (
        " loc()", " loc(", " loc(foo)", " loc(#undeclared)", ' loc("f":a:1)', ' loc("f":1)', " loc(fused)",
        ' loc("f":1:',
        " loc(fused[)", ' loc(callsite("a" "b"))', ' loc(callsite("a" at))', " loc(3)", " loc(unknown", ' loc("a"(3))',
        ' loc("f":-1:2)', " loc unknown", ' loc("f":1:2:3)', ' loc(fused<>["a"])', " loc(f32)")),
    "alias": (r"\A", (
        "#a = #a\n", "#a = 3 : i64\n#a = 4 : i64\n", "!a = !a\n", "!a = f32\n!a = f32\n", "#a = f32 f32\n",
        "#a.b = 3\n",
        "!a.b = f32\n", "#a 3\n", "#a =\n", "!a = 3\n", "#0 = 3\n", "!t\n", "#loc0 = loc(\"a\")\n#loc0 = loc(\"b\")\n",
        "#a = #b\n#b = 3 : i64\n", "!a = !b\n!b = f32\n", "#tf_type = 3\n", "a = 3\n")),
}


def _rewrite(pattern: str, news: tuple[str, ...]) -> Error:
    compiled = re.compile(pattern)

    def changed(rng: Random, text: str) -> str | None:
        matches = [*compiled.finditer(text)]
        if not matches:
            return None
        match = rng.choice(matches)
        return f"{text[:match.start()]}{_expand(match, rng.choice(news))}{text[match.end():]}"

    return changed


def _expand(match: re.Match[str], new: str) -> str:
    r"""The replacement with \1 to \3 and \n filled in. Other backslashes stay: they are part of the error."""
    return re.sub(r"\\([123n])", lambda sign: "\n" if sign[1] == "n" else match[int(sign[1])] or "", new)


def drop_token(rng: Random, text: str) -> str | None:
    match = rng.choice([*TOKEN.finditer(text)])
    return text[:match.start()] + text[match.end():]


def repeat_token(rng: Random, text: str) -> str | None:
    match = rng.choice([*TOKEN.finditer(text)])
    return f"{text[:match.end()]} {match[0]}{text[match.end():]}"


def exchange_tokens(rng: Random, text: str) -> str | None:
    tokens = [*TOKEN.finditer(text)]
    one, two = sorted(rng.sample(tokens, 2), key=re.Match.start)
    return f"{text[:one.start()]}{two[0]}{text[one.end():two.start()]}{one[0]}{text[two.end():]}"


def cut_text(rng: Random, text: str) -> str | None:
    return text[:rng.randrange(len(text))]


def insert_sign(rng: Random, text: str) -> str | None:
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(tuple("()[]{}<>%#!@^,:=\"/-*?.;$&`~|\\'\x00\u00e9")) + text[at:]


def drop_line(rng: Random, text: str) -> str | None:
    lines = text.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def repeat_line(rng: Random, text: str) -> str | None:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return "".join([*lines[:at + 1], lines[at], *lines[at + 1:]])


def repeat_module(rng: Random, text: str) -> str | None:
    return text + rng.choice(("", "// -----\n", "\n")) + text


def append_operation(rng: Random, text: str) -> str | None:
    """An operation that has no place at the top of a module."""
    operation = rng.choice((
        "tfg.return", "tfg.yield", 'tfg.NoOp name("n")', "%ctl_9 = tfg.NoOp", "func.func @q() { return }",
        "module {\n}",
        "tfg.foo", '"tfg.graph"() : () -> ()', '"tfg.func"() : () -> ()', "}", "hello", "%0 = 3", "^bb0:",
        "tfg.func @q()", "tfg.func @q() {\n}", "tfg.func @q() {\n  return\n}", "tfg.graph {\n}",
        "tfg.func @q() -> (tensor<*xf32>) {\n  return\n}", "tfg.func @q() {\n  yield\n}",
        "tfg.func generic @q() {\n  return\n}", 'tfg.func @q() {\n  %ctl = NoOp name("n")\n}',
        '"builtin.module"() ({}) : () -> ()',
        "tfg.func @q(%a: tensor<*xf32>) {\n  return\n}", 'tfg.func @q(%a: tensor<*xf32> {tfg.name = "a"}, '
        '%b: tensor<*xf32> {tfg.name = "a"}) {\n  return\n}', "tfg.func @q() {\n  %ctl = NoOp\n  return [%ctl]\n}",
        'tfg.func @q() {\n  %ctl = NoOp\n  return [%ctl {tfg.name = "d"}]\n}'))
    return f"{text.rstrip()}\n{operation}\n" if not text.lstrip().startswith("module") else (
        f"{text.rstrip().removesuffix('}')}{operation}\n}}\n")


def nest_operation(rng: Random, text: str) -> str | None:
    """An operation that has no place among nodes."""
    operation = rng.choice(("return", "yield", "condition %c : tensor<*xi1>", '%0 = get_result(%x) "y" : 0', "graph",
                            "tfg.func @q() {\n return\n}", "module {\n}", "tfg.graph #tf_type.version<producer = 1, "
                            "min_consumer = 0> {\n}", "}", "^bb1:", "#a = 3", "!a = f32", "func @q() {\n return\n}"))
    lines = text.splitlines(keepends=True)
    at = rng.randrange(1, len(lines))
    return "".join([*lines[:at], f"{operation}\n", *lines[at:]])


def _other_count_of_operands(rng: Random, text: str) -> str | None:
    def changed(node: NodeText) -> NodeText | None:
        values = split_list(node.operands[1:-1])
        if not values:
            return None
        values = rng.choice((values[:-1], [*values, values[0]], [values[0]] * 9))
        return node._replace(operands=f"({', '.join(values)})")

    return replace_node(rng, text, changed)


def _other_type_in_one_place(rng: Random, text: str) -> str | None:
    """A derived attribute that disagrees with the operands, or an operand with the value's own type."""
    def changed(node: NodeText) -> NodeText | None:
        operands, results = operand_and_result_types(node)
        if not operands or not results:
            return None
        new = rng.choice(("tensor<*xi16>", "tensor<*x!tf_type.string>", "tensor<3xf32>", "tensor<*xi1>"))
        if rng.random() < 0.5:
            operands[rng.randrange(len(operands))] = new
        else:
            results[rng.randrange(len(results))] = new
        return node._replace(types=f" : ({', '.join(operands)}) -> ({', '.join(results)})")

    return replace_node(rng, text, changed)


ERRORS: Mapping[str, Error] = {
    **{name: _rewrite(*row) for name, row in REWRITES.items()},
    "dropped token": drop_token, "repeated token": repeat_token, "exchanged tokens": exchange_tokens,
    "cut text": cut_text, "inserted sign": insert_sign, "dropped line": drop_line, "repeated line": repeat_line,
    "repeated module": repeat_module, "operation of no module": append_operation,
    "operation of no body": nest_operation, "count of operands": _other_count_of_operands,
    "disagreeing types": _other_type_in_one_place,
}
