"""Valid modules of the TF Graph IR, from which `random_tfg_texts` makes its texts.

Half of the modules are random GraphDefs as text. The other modules have regions of every kind, types and attributes
that no GraphDef of the first half has, or functions with every part of a signature.
"""

from __future__ import annotations

from random import Random

import heald
from builders.random_graphdefs import random_bytes

LARGEST_MODULE_CHARACTERS = 6_000
_HEAD = "tfg.graph #tf_type.version<producer = 1000, min_consumer = 12> {\n"
_INPUTS = """  %c, %ctl_c = Placeholder name("c") {dtype = i1, shape = #tf_type.shape<>} : () -> (tensor<*xi1>)
  %x, %ctl_x = Placeholder name("x") {dtype = f32, shape = #tf_type.shape<2x-1>} : () -> (tensor<*xf32>)
  %i, %ctl_i = Placeholder name("i") {dtype = i32, shape = #tf_type.shape<*>} : () -> (tensor<*xi32>)
"""
TYPES = (
    "f32", "f64", "f16", "bf16", "i1", "i4", "i8", "si4", "ui4", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64",
    "index", "none", "complex<f32>", "complex<f64>", "f8E5M2", "f8E4M3FN", "!tf_type.string", "!tf_type.resource",
    "!tf_type.variant", "!tf_type.qint8", "!tf_type.quint8", "!tf_type.qint16", "!tf_type.quint16", "!tf_type.qint32",
    "!tf_type.f32ref", "!tf_type.int32ref", "!tf_type.boolref", "!tf_type.stringref", "!tf_type.resourceref",
    "!tf_type.resource<tensor<2xf32>>", "!tf_type.variant<tensor<*xi32>, tensor<f32>>", "!tf_type.control",
    "!tf_type.tensor", "tensor<f32>", "tensor<2x?xi32>", "tensor<*x!tf_type.string>", "tuple<f32, i32>",
    "(f32) -> i32", "vector<2xf32>", "memref<2xf32>", "tensor<2xf32, 3 : i64>", "!tf_type.half", "!tf_type.float",
    "tensor<*x!tf_type.resource<tensor<32xf32>>>")
ATTRIBUTES = (
    "true", "false", "unit", "1 : i64", "-5 : i64", "0x1F : i64", "7 : i32", "3", "1.5 : f32", "-2.0e+00 : f64", "0.25",
    "0x7F800000 : f32", '"text"', '"\\22\\0A\\FF"', '""', "[]", "[1, 2]", "[1 : i32, 2 : i32]", "[true, false]",
    "[1.0 : f32, -1.0 : f32]", '["a", "b"]', "[f32, i32]", "[#tf_type.shape<1x-1>, #tf_type.shape<*>]",
    "[1, \"a\"]", "{}", "{a = 1 : i64, b = [f32]}", "[{a = 1 : i64}, {}]", "#tf_type.shape<>", "#tf_type.shape<*>",
    "#tf_type.shape<2x?x-1>", "#tf_type.func<@f, {}>", "#tf_type.func<@f, {T = f32, n = 3 : i64}>",
    '#tf_type.func<"", {}>', '#tf_type.placeholder<"T">', "#tf_type.full_type<product<tensor<float>>>",
    "#tf_type.version<producer = 3, min_consumer = 1>", "array<i64: 1, 2>", "array<f32: 1.0>", "array<i1: true>",
    "dense<1> : tensor<2xi32>", "dense<[1, 2]> : tensor<2xi64>", "dense<[[1.0, 2.0]]> : tensor<1x2xf32>",
    "dense<true> : tensor<i1>", "dense<[true, false]> : tensor<2xi1>", 'dense<"0x0000803F"> : tensor<1xf32>',
    'dense<["a", "b\\00"]> : tensor<2x!tf_type.string>', "dense<(1.0, -1.0)> : tensor<2xcomplex<f32>>",
    "dense<> : tensor<0xf32>", "dense<-1> : tensor<3xi8>", "dense<0x7FC00000> : tensor<f32>",
    "sparse<[[0]], [1.0]> : tensor<2xf32>", "@f", "@f::@g", "f32", "tensor<2xf32>", "affine_map<(d0) -> (d0)>",
    "affine_set<(d0) : (d0 >= 0)>", "loc(unknown)", "strided<[1, 2]>", "dense_resource<blob> : tensor<2xf32>",
    '#tf_type<tensor_proto : "0x00"> : tensor<f32>', "opaque<\"x\", \"0x00\"> : tensor<f32>", "distinct[0]<1 : i32>")
_FUNCTIONS = """tfg.func @f(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xf32> {tfg.name = "r"}) {
  return(%a) : tensor<*xf32>
}
tfg.func @c(%a: tensor<*xf32> {tfg.name = "a"}) -> (tensor<*xi1> {tfg.name = "r"}) {
  %Less, %ctl = Less(%a, %a) name("less") {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xi1>)
  return(%Less) [%ctl {tfg.name = "done"}] : tensor<*xi1>
}
tfg.func @n(%a: tensor<*xi32> {tfg.name = "a"}, %b: tensor<*xf32> {tfg.name = "b"})
    -> (tensor<*xf32> {tfg.name = "r"}) {
  return(%b) [%a.ctl {tfg.name = "after_a"}] : tensor<*xf32>
}
"""
_CALLS = (
    '%If, %ctl_1 = If(%c, %x) name("if") {Tcond = i1, Tin = [f32], Tout = [f32], else_branch = #tf_type.func<@f, {}>, '
    "output_shapes = [], then_branch = #tf_type.func<@f, {}>} : (tensor<*xi1>, tensor<*xf32>) -> (tensor<*xf32>)",
    '%While, %ctl_2 = While(%x) name("while") {T = [f32], body = #tf_type.func<@f, {}>, cond = #tf_type.func<@c, {}>, '
    "output_shapes = [], parallel_iterations = 10 : i64} : (tensor<*xf32>) -> (tensor<*xf32>)",
    '%Case, %ctl_3 = Case(%i, %x) name("case") {Tin = [f32], Tout = [f32], branches = [#tf_type.func<@f, {}>], '
    "output_shapes = []} : (tensor<*xi32>, tensor<*xf32>) -> (tensor<*xf32>)",
    '%For, %ctl_4 = For(%i, %i, %i, %x) name("for") {T = [f32], body = #tf_type.func<@n, {}>} : '
    "(tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>) -> (tensor<*xf32>)")
_GENERIC = """tfg.func generic @g(%a: !tf_type.tensor {tfg.name = "a", tfg.type_attr = "T"},
    %b: !tf_type.tensor {tfg.name = "b", tfg.type = i1})
    -> (!tf_type.tensor {tfg.name = "r", tfg.type_attr = "T"}, !tf_type.control {tfg.name = "done"})
    attributes {control_output = ["done"], description = "it selects", is_stateful, tf._noinline = true,
      tfg.func_attrs = {T = {function_type = "type"}}} {
  %Switch, %ctl = Switch(%a, %b) name("s") {T = #tf_type.placeholder<"T">}
    : (!tf_type.tensor, !tf_type.tensor) -> (!tf_type.tensor)
  %0 = get_result(%Switch) "output_true" : 0
  %Neg, %ctl_0 = Neg(%0) [%b.ctl] name("n") {T = #tf_type.placeholder<"T">} : (!tf_type.tensor) -> (!tf_type.tensor)
  %1 = get_result(%Neg) "y" : 0
  return(%1) [%ctl_0] : !tf_type.tensor
}
tfg.func @h(%a: tensor<*xf32> {tf._user = "x", tfg.is_ref, tfg.name = "a"}, %r: tensor<*x!tf_type.resource> {
    tfg.handle_data = [tensor<2xf32>], tfg.name = "r"}) -> (tensor<*xf32> {tfg.name = "y"})
    attributes {description = "it adds", gradient = @f, is_stateful, tf._shapes = [#tf_type.shape<1>]} {
  %Add, %ctl = AddV2(%a, %a) [%r.ctl] name("add") {T = f32} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>)
  return(%Add) [%ctl {tfg.name = "done"}] : tensor<*xf32>
}
"""


def random_module(rng: Random) -> str:
    """A valid module: a random graph, or one with regions, attributes or functions."""
    draw = rng.random()
    if draw < 0.5:
        return _random_graph(rng)
    make = rng.choice((_module_with_regions, _module_with_regions, _module_with_attributes, _module_with_functions))
    return make(rng)


def _random_graph(rng: Random) -> str:
    while True:
        graph = heald.graphdef.loads(random_bytes(rng.randrange(100_000), max_nodes=6))
        if rng.random() < 0.3:
            graph = heald.tfg.functional_to_region(graph)
        text: str = heald.tfg.dumps(graph, canonical=True)
        if len(text) < LARGEST_MODULE_CHARACTERS:
            return text


def _module_with_regions(rng: Random) -> str:
    count = rng.choice((1, 1, 2, 3))
    regions = "".join(_region(rng, number, "%x", rng.choice((0, 0, 1))) for number in range(count))
    return f"{_HEAD}{_INPUTS}{regions}}}\n"


def _region(rng: Random, number: int, value: str, depth: int) -> str:
    """A region op whose one result has the type of `value`."""
    kind = rng.choice(("If", "Case", "While", "For"))
    prefix = rng.choice(("", "Stateless", "Stateful")) if kind != "For" else ""
    name = f"r{number}_{depth}"
    attributes = [f'_mlir_name = "{name}"'] if rng.random() < 0.8 else []
    loop = kind in ("While", "For")

    def block(suffix: str, ending: str) -> str:
        arguments = {"While": "%a{0}: tensor<*xf32>, %ac{0}: !tf_type.control",
                     "For": "%k{0}: tensor<*xi32>, %a{0}: tensor<*xf32>, %kc{0}: !tf_type.control, "
                            "%ac{0}: !tf_type.control"}
        head = f"^bb0({arguments[kind].format(suffix)}):\n" if loop else ""
        source = f"%a{suffix}" if loop else value
        inner = _region(rng, number * 10 + 1, source, depth - 1) if depth and rng.random() < 0.6 else ""
        node = (f"  %n{suffix}, %nc{suffix} = Neg({source}) name(\"n{suffix}\") {{T = f32}} : (tensor<*xf32>) -> "
                "(tensor<*xf32>)\n")
        return f"{{\n{head}{inner}{node}  {ending.format(source, suffix)}\n}}"

    suffixes = [f"_{number}_{depth}_{index}" for index in range(2)]
    ending = rng.choice(("yield({0}) : tensor<*xf32>", "yield(%n{1}) : tensor<*xf32>",
                         "yield(%n{1}) [%nc{1}] : tensor<*xf32>"))
    condition = rng.choice(("condition %c : tensor<*xi1> ({0}) : tensor<*xf32>",
                            "condition %c : tensor<*xi1> (%n{1}) [%nc{1}] : tensor<*xf32>"))
    controls = rng.choice(("", " [%ctl_x]", " [%ctl_x, %ctl_c]"))
    result = rng.choice(("tensor<*xf32>", "(tensor<*xf32>)"))
    region_attrs = "#tfg.region_attrs<{{sym_name = \"{0}\"}} [{1}] [{{}}]>"
    if kind == "If":
        head = f"%c{controls} then {block(suffixes[0], ending)} else {block(suffixes[1], ending)}"
        types, extra = "(tensor<*xi1>)", {"then_region_attrs": ("t", ""), "else_region_attrs": ("e", "")}
    elif kind == "Case":
        blocks = ", ".join(block(suffix, ending) for suffix in suffixes[:rng.choice((1, 2))])
        head, types, extra = f"%i{controls} {blocks}", "(tensor<*xi32>)", {}
    elif kind == "While":
        head = f"({value}){controls} {block(suffixes[0], condition)} do {block(suffixes[1], ending)}"
        types, extra = "(tensor<*xf32>)", {"cond_region_attrs": ("c", "{}"), "body_region_attrs": ("b", "{}")}
        attributes.append("parallel_iterations = 10 : i64")
    else:
        head = f"({value}){controls} from %i to %i by %i {block(suffixes[0], ending)}"
        types, extra = ("(tensor<*xi32>, tensor<*xi32>, tensor<*xi32>, tensor<*xf32>)",
                        {"region_attrs": ("f", "{}, {}")})
        result = "(tensor<*xf32>)"
    if rng.random() < 0.6:
        attributes += [f"{key} = {region_attrs.format(name + suffix, arguments)}"
                       for key, (suffix, arguments) in extra.items()]
    if rng.random() < 0.3:
        call = {"If": "then_attrs", "Case": "_calls", "While": "cond_attrs", "For": "body_attrs"}[kind]
        value = "3 : i64" if kind == "Case" else "{a = 1 : i64}"
        attributes.append(rng.choice(('_note = "x"', '_mlir_device = "/cpu:0"', "_flag", f"{call} = {value}")))
    section = f" {{{', '.join(attributes)}}}" if attributes else ""
    return f"  %r{number}_{depth}, %ctl{number}_{depth} = {prefix}{kind}Region {head}{section} : {types} -> {result}\n"


def _module_with_attributes(rng: Random) -> str:
    nodes = []
    for number in range(rng.choice((1, 1, 2))):
        attributes = {f"_a{index}": rng.choice(ATTRIBUTES) for index in range(rng.choice((1, 1, 2)))}
        if rng.random() < 0.5:
            attributes["_t"] = rng.choice(TYPES)
        section = ", ".join(f"{key} = {value}" for key, value in attributes.items())
        of = rng.choice(("f32", "f32", rng.choice(TYPES)))
        nodes.append(f'  %p{number}, %pc{number} = Placeholder name("p{number}") {{dtype = {of}, {section}}} : () -> '
                     f"(tensor<*x{of}>)\n")
    return f"{_HEAD}{_INPUTS}{''.join(nodes)}}}\n"


def _module_with_functions(rng: Random) -> str:
    calls = rng.sample(_CALLS, rng.choice((0, 1, 1, 2)))
    prefix = rng.choice(("", "", "Stateless"))
    lines = "".join(f"  {call.replace('= If(', f'= {prefix}If(').replace('= While(', f'= {prefix}While(')}\n"
                    for call in calls)
    return f"{_HEAD}{_INPUTS}{lines}}}\n{_FUNCTIONS}{_GENERIC if rng.random() < 0.6 else ''}"
