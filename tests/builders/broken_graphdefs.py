"""GraphDefs with one fault each, of a named kind, in a small random graph.

`broken_graphdef(kind, seed)` returns the same message for the same kind and seed. `KINDS` has the makers by name: each
adds a fault to a graph that TensorFlow imports. TensorFlow takes the faults of a few kinds, and refuses the others.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from builders.random_graphdefs import random_graphdef

FLOAT, INT, BOOL, RESOURCE, STRING = 1, 3, 10, 20, 7  # numbers of DataTypes
Maker = Callable[[Random, Any], None]
KINDS: dict[str, Maker] = {}


def broken_graphdef(kind: str, seed: int) -> Any:
    """A GraphDef of up to five statements and the fault of this kind."""
    rng = Random(f"broken {kind} {seed}")  # noqa: S311 - no secrets: the seed makes the graph
    graph = random_graphdef(rng.randrange(10**6), max_nodes=rng.choice((1, 1, 5)))
    KINDS[kind](rng, graph)
    return graph


def _kind(maker: Maker) -> Maker:
    KINDS[maker.__name__] = maker
    return maker


def _name(rng: Random, stem: str) -> str:
    """A name that no random graph has."""
    return f"{stem}_{rng.choice(('a', 'b/c', 'x.y'))}"


def _holder(rng: Random, graph: Any) -> Any:
    """The nodes of the graph, or those of a new function."""
    return graph.node if rng.random() < 0.5 else _function(rng, graph).node_def


def _node(nodes: Any, name: str, op: str, *inputs: str, **types: int) -> Any:
    node = nodes.add(name=name, op=op, input=inputs)
    for key, number in types.items():
        node.attr[key].type = number
    return node


def _constant(nodes: Any, name: str) -> Any:
    node = _node(nodes, name, "Const", dtype=FLOAT)
    node.attr["value"].tensor.dtype = FLOAT
    node.attr["value"].tensor.tensor_shape.SetInParent()
    node.attr["value"].tensor.float_val.append(1.5)
    return node


def _relu(nodes: Any, name: str, source: str) -> Any:
    return _node(nodes, name, "Relu", source, T=FLOAT)


def _function(rng: Random, graph: Any, name: str = "broken") -> Any:
    """A new function of a float `x` that returns its Relu `y`."""
    function = graph.library.function.add()
    function.signature.name = name
    function.signature.input_arg.add(name="x", type=FLOAT)
    function.signature.output_arg.add(name="r", type=FLOAT)
    _relu(function.node_def, "y", "x")
    if rng.random() < 0.3:
        _constant(function.node_def, "c")
    function.ret["r"] = "y:activations:0"
    return function


def _generic(rng: Random, graph: Any) -> Any:
    """A new function whose types are the attribute T of its callers."""
    function = graph.library.function.add()
    function.signature.name = "broken"
    function.signature.attr.add(name="T", type="type")
    function.signature.input_arg.add(name="x", type_attr="T")
    function.signature.output_arg.add(name="r", type_attr="T")
    function.node_def.add(name="y", op="Neg", input=["x"]).attr["T"].placeholder = "T"
    if rng.random() < 0.3:
        _constant(function.node_def, "c")
    function.ret["r"] = "y:y:0"
    return function


def _some_function(rng: Random, graph: Any) -> Any:
    return rng.choice((_function, _generic))(rng, graph)


# Names


@_kind
def duplicate_node(rng: Random, graph: Any) -> None:
    name = _name(rng, "twice")
    for _ in range(2):
        _constant(graph.node, name)


@_kind
def duplicate_node_in_function(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    name = _name(rng, "twice")
    for _ in range(2):
        _constant(function.node_def, name)


@_kind
def duplicate_argument(rng: Random, graph: Any) -> None:
    arguments = _some_function(rng, graph).signature.input_arg
    arguments.add().CopyFrom(arguments[0])


@_kind
def duplicate_result(rng: Random, graph: Any) -> None:
    results = _some_function(rng, graph).signature.output_arg
    results.add().CopyFrom(results[0])


@_kind
def argument_named_as_node(rng: Random, graph: Any) -> None:
    _constant(_some_function(rng, graph).node_def, "x")


@_kind
def duplicate_function(rng: Random, graph: Any) -> None:
    for _ in range(2):
        _some_function(rng, graph)


@_kind
def node_without_name(rng: Random, graph: Any) -> None:
    _constant(graph.node, "")


@_kind
def node_without_name_in_function(rng: Random, graph: Any) -> None:
    _constant(_some_function(rng, graph).node_def, "")


@_kind
def node_without_op(rng: Random, graph: Any) -> None:
    graph.node.add(name=_name(rng, "n"))


@_kind
def node_without_op_in_function(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).node_def.add(name=_name(rng, "n"))


@_kind
def odd_node_name(rng: Random, graph: Any) -> None:
    _constant(graph.node, rng.choice(("a b", "^a", "a:0", "/a", "_a", "ä", "a\x01")))


@_kind
def odd_node_name_in_function(rng: Random, graph: Any) -> None:
    _constant(_some_function(rng, graph).node_def, rng.choice(("a b", "^a", "a:0", "/a", "_a", "ä")))


@_kind
def attribute_without_name(rng: Random, graph: Any) -> None:
    _constant(_holder(rng, graph), _name(rng, "n")).attr[""].i = 3


@_kind
def function_without_name(rng: Random, graph: Any) -> None:
    _function(rng, graph, "")


@_kind
def generic_function_without_name(rng: Random, graph: Any) -> None:
    _generic(rng, graph).signature.name = ""


@_kind
def argument_without_name(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.input_arg.add(type=FLOAT)


@_kind
def result_without_name(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.output_arg.add(type=FLOAT)
    function.ret[""] = "x"


@_kind
def function_attribute_without_name(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).attr[""].b = True


@_kind
def odd_function_attribute(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).attr[rng.choice(("a b", "tfg.x", "T", "1", ".a", "a\n"))].b = True


@_kind
def argument_attribute_without_name(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).arg_attr[0].attr[""].b = True


@_kind
def declared_attribute_without_name(rng: Random, graph: Any) -> None:
    _generic(rng, graph).signature.attr.add(type="int")


# Edges


@_kind
def missing_input(rng: Random, graph: Any) -> None:
    _relu(graph.node, _name(rng, "n"), rng.choice(("gone", "gone:0", "gone:1")))


@_kind
def missing_input_in_function(rng: Random, graph: Any) -> None:
    _relu(_some_function(rng, graph).node_def, _name(rng, "n"), rng.choice(("gone", "gone:y:0", "gone:0")))


@_kind
def two_missing_inputs(rng: Random, graph: Any) -> None:
    for source in ("gone", "lost", "gone")[:rng.choice((2, 3))]:
        _relu(graph.node, f"n_{source}_{len(graph.node)}", source)


@_kind
def two_missing_inputs_of_a_node(rng: Random, graph: Any) -> None:
    _node(graph.node, _name(rng, "n"), "AddV2", "gone", rng.choice(("lost", "gone", "gone:1")), T=FLOAT)


@_kind
def two_missing_inputs_in_function(rng: Random, graph: Any) -> None:
    nodes = _some_function(rng, graph).node_def
    for source in ("gone:y:0", "lost:y:0"):
        _relu(nodes, f"n_{source[:4]}", source)


@_kind
def missing_control_input(rng: Random, graph: Any) -> None:
    _constant(graph.node, _name(rng, "n")).input.append("^gone")


@_kind
def missing_control_input_in_function(rng: Random, graph: Any) -> None:
    _constant(_some_function(rng, graph).node_def, _name(rng, "n")).input.append("^gone")


@_kind
def index_out_of_bounds(rng: Random, graph: Any) -> None:
    name = _name(rng, "n")
    nodes = [lambda: _constant(graph.node, name), lambda: _relu(graph.node, "user", f"{name}:{rng.choice((1, 2, 7))}")]
    rng.shuffle(nodes)
    for make in nodes:
        make()


@_kind
def odd_index(rng: Random, graph: Any) -> None:
    _constant(graph.node, "c")
    port = rng.choice(("-1", "99999999999", "2147483648", "4294967296", "01", "x", "", "y:0", "0:0"))
    _relu(graph.node, "user", f"c:{port}")


@_kind
def odd_port_in_function(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    _constant(function.node_def, "k")
    port = rng.choice((":-1", ":0", "", ":x", ":output", ":output:", ":output:-1", ":output:0:0", ":output:x", "::0"))
    _relu(function.node_def, "user", f"k{port}")


@_kind
def unknown_output_in_function(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    _constant(function.node_def, "k")
    _relu(function.node_def, "user", rng.choice(("k:foo:0", "k:foo:1")))


@_kind
def output_index_out_of_bounds_in_function(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    _constant(function.node_def, "k")
    _relu(function.node_def, "user", rng.choice(("k:output:1", "k:output:9")))


@_kind
def port_of_argument(rng: Random, graph: Any) -> None:
    _relu(_some_function(rng, graph).node_def, "user", rng.choice(("x:0", "x:1", "x:x:0", "x:y:1")))


@_kind
def data_after_control(rng: Random, graph: Any) -> None:
    nodes = _holder(rng, graph)
    _constant(nodes, "k")
    _node(nodes, "user", "Relu", "^k", "k" if nodes is graph.node else "k:output:0", T=FLOAT)


@_kind
def empty_input(rng: Random, graph: Any) -> None:
    _relu(graph.node, "user", "")


@_kind
def empty_input_in_function(rng: Random, graph: Any) -> None:
    _relu(_some_function(rng, graph).node_def, "user", "")


@_kind
def odd_input(rng: Random, graph: Any) -> None:
    _relu(_holder(rng, graph), "user", rng.choice((":0", ":", "^", "^^a", " ", "a b", ":y:0")))


@_kind
def empty_control_input(rng: Random, graph: Any) -> None:
    _constant(_holder(rng, graph), "user").input.append("^")


@_kind
def takes_itself(rng: Random, graph: Any) -> None:
    _relu(graph.node, "self", "self")


@_kind
def takes_itself_in_function(rng: Random, graph: Any) -> None:
    _relu(_some_function(rng, graph).node_def, "self", "self:activations:0")


@_kind
def cycle(rng: Random, graph: Any) -> None:
    _relu(graph.node, "first", "second")
    _relu(graph.node, "second", "first")


@_kind
def cycle_of_unknown_op(rng: Random, graph: Any) -> None:
    _node(graph.node, "first", "MyUnknownOp", "second")
    _relu(graph.node, "second", "first")


@_kind
def unknown_op(rng: Random, graph: Any) -> None:
    _node(graph.node, "first", rng.choice(("MyUnknownOp", "my>Op")))
    if rng.random() < 0.5:
        _relu(graph.node, "second", "first")


@_kind
def unknown_op_in_function(rng: Random, graph: Any) -> None:
    nodes = _some_function(rng, graph).node_def
    _node(nodes, "first", "MyUnknownOp", "x")
    _relu(nodes, "second", "first:y:0")


# Attributes


@_kind
def list_for_type(rng: Random, graph: Any) -> None:
    nodes = _holder(rng, graph)
    _constant(nodes, "k")
    node = nodes.add(name="n", op="Relu", input=["k" if nodes is graph.node else "k:output:0"])
    node.attr["T"].list.type.extend([FLOAT] * rng.choice((1, 2)))


@_kind
def result_type_of_other_kind(rng: Random, graph: Any) -> None:
    value = _holder(rng, graph).add(name="n", op="Placeholder").attr["dtype"]
    rng.choice((lambda: value.list.type.append(FLOAT), value.list.SetInParent, value.SetInParent,
                lambda: setattr(value, "i", 1), lambda: setattr(value, "s", b"float"),
                lambda: setattr(value, "b", True), lambda: setattr(value, "placeholder", "T")))()


@_kind
def type_list_of_other_kind(rng: Random, graph: Any) -> None:
    node = _holder(rng, graph).add(name="n", op="IteratorGetNext")
    node.attr["output_shapes"].list.shape.add()
    value = node.attr["output_types"]
    rng.choice((lambda: setattr(value, "type", FLOAT), lambda: value.list.i.append(1), value.list.SetInParent,
                lambda: setattr(value, "i", 1), lambda: setattr(value, "s", b"float"), value.SetInParent,
                lambda: value.list.s.append(b"float"), lambda: value.list.type.append(0),
                lambda: value.list.type.append(999)))()


@_kind
def odd_result_type(rng: Random, graph: Any) -> None:
    _node(_holder(rng, graph), "n", "Placeholder", dtype=rng.choice((0, 99, 999, 100, 150)))


@_kind
def missing_result_type(rng: Random, graph: Any) -> None:
    _holder(rng, graph).add(name="n", op=rng.choice(("Placeholder", "Const", "IteratorGetNext", "Unpack", "Relu")))


@_kind
def odd_count(rng: Random, graph: Any) -> None:
    nodes = _holder(rng, graph)
    _constant(nodes, "k")
    node = _node(nodes, "n", "Unpack", "k" if nodes is graph.node else "k:output:0", T=FLOAT)
    value = node.attr["num"]
    rng.choice((lambda: setattr(value, "i", -1), lambda: setattr(value, "type", FLOAT), value.SetInParent,
                lambda: setattr(value, "s", b"1"), lambda: value.list.i.append(2), lambda: setattr(value, "i", 0)))()


@_kind
def derived_attribute_disagrees(rng: Random, graph: Any) -> None:
    nodes = _holder(rng, graph)
    _constant(nodes, "k")
    source = "k" if nodes is graph.node else "k:output:0"
    rng.choice((lambda: _node(nodes, "n", "Relu", source, T=INT),
                lambda: _node(nodes, "n", "AddV2", source, T=FLOAT),
                lambda: _node(nodes, "n", "Relu", source, source, T=FLOAT),
                lambda: _node(nodes, "n", "Const", source, dtype=FLOAT),
                lambda: _node(nodes, "n", "Pack", source, source, T=FLOAT).attr["N"].__setattr__("i", 3)))()


@_kind
def constant_of_other_type(rng: Random, graph: Any) -> None:
    _constant(_holder(rng, graph), "k").attr["dtype"].type = INT


@_kind
def odd_tensor(rng: Random, graph: Any) -> None:
    tensor = _constant(_holder(rng, graph), "k").attr["value"].tensor
    rng.choice((lambda: tensor.tensor_shape.dim.add(size=-1), lambda: tensor.tensor_shape.dim.add(size=-5),
                lambda: setattr(tensor, "dtype", 0), lambda: setattr(tensor, "tensor_content", b"123"),
                lambda: tensor.float_val.extend([1, 2, 3]), lambda: setattr(tensor, "dtype", INT),
                lambda: setattr(tensor.tensor_shape, "unknown_rank", True),
                lambda: tensor.tensor_shape.dim.add(size=2**62) and tensor.tensor_shape.dim.add(size=2**62)))()


@_kind
def odd_value(rng: Random, graph: Any) -> None:
    value = _constant(_holder(rng, graph), "k").attr["_odd"]
    rng.choice((lambda: setattr(value, "type", 999), lambda: setattr(value, "type", 0),
                lambda: value.list.type.append(999), lambda: setattr(value.tensor, "dtype", 999),
                lambda: (value.list.i.append(1), value.list.s.append(b"a")), lambda: setattr(value, "placeholder", "T"),
                lambda: value.func.attr.get_or_create(""), lambda: value.shape.dim.add(size=-7),
                lambda: value.list.func.add(name="a b")))()


@_kind
def odd_output_shapes(rng: Random, graph: Any) -> None:
    value = _constant(_holder(rng, graph), "k").attr["_output_shapes"]
    rng.choice((lambda: value.list.shape.add().dim.add(size=rng.choice((-2, -7, -(2**63)))),
                lambda: value.list.i.append(1), lambda: value.shape.dim.add(size=2),
                lambda: [value.list.shape.add() for _ in range(2)], value.list.SetInParent,
                lambda: value.list.shape.add(unknown_rank=True).dim.add(size=3)))()


@_kind
def odd_full_type(rng: Random, graph: Any) -> None:
    node = _constant(_holder(rng, graph), "k")
    node.experimental_type.type_id = rng.choice((2, 999, 210))


@_kind
def odd_device(rng: Random, graph: Any) -> None:
    _constant(_holder(rng, graph), "k").device = rng.choice(("/job:;", "///", "/device:CPU:x", " "))


@_kind
def invalid_handle_data(rng: Random, graph: Any) -> None:
    argument = _function(rng, graph).signature.input_arg.add(name="h", type=RESOURCE)
    argument.handle_data.add(dtype=rng.choice((0, 99, 999))).shape.unknown_rank = rng.random() < 0.5


@_kind
def invalid_handle_data_of_generic(rng: Random, graph: Any) -> None:
    argument = _generic(rng, graph).signature.input_arg.add(name="h", type=RESOURCE)
    argument.handle_data.add(dtype=rng.choice((0, 999))).shape.unknown_rank = rng.random() < 0.5


# Functions


@_kind
def odd_argument_type(rng: Random, graph: Any) -> None:
    _function(rng, graph).signature.input_arg.add(name="h", type=rng.choice((0, 99, 999, 101)))


@_kind
def odd_result_type_of_function(rng: Random, graph: Any) -> None:
    function = _function(rng, graph)
    function.signature.output_arg.add(name="h", type=rng.choice((0, 99, 999, 101, INT)))
    function.ret["h"] = "x"


@_kind
def argument_of_two_types(rng: Random, graph: Any) -> None:
    _generic(rng, graph).signature.input_arg.add(name="h", type=FLOAT, type_attr="T")


@_kind
def undeclared_type_attribute(rng: Random, graph: Any) -> None:
    argument = _generic(rng, graph).signature.input_arg.add(name="h", type_attr=rng.choice(("S", "T")))
    argument.number_attr = rng.choice(("", "N"))


@_kind
def undeclared_placeholder(rng: Random, graph: Any) -> None:
    function = _generic(rng, graph)
    function.node_def[0].attr["T"].placeholder = "S"


@_kind
def placeholder_in_concrete_function(rng: Random, graph: Any) -> None:
    _function(rng, graph).node_def[0].attr["T"].placeholder = "T"


@_kind
def result_without_value(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    del function.ret["r"]
    if rng.random() < 0.3:
        function.ret["s"] = "x"


@_kind
def result_of_missing_node(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).ret["r"] = rng.choice(("gone:y:0", "gone", "gone:0"))


@_kind
def empty_result(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).ret["r"] = ""


@_kind
def odd_result(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).ret["r"] = rng.choice(("y", "y:0", "y:foo:0", "y:y:9", "y:activations:3", "^y", "x:0",
                                                      "x:x:0", "y:activations:-1", ":", "y:"))


@_kind
def extra_result(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).ret["extra"] = rng.choice(("x", "gone:y:0", ""))


@_kind
def control_output_without_value(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.control_output.append("done")
    if rng.random() < 0.3:
        function.control_ret["other"] = "y"


@_kind
def control_output_of_missing_node(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.control_output.append("done")
    function.control_ret["done"] = rng.choice(("gone", "^gone", "gone:0"))


@_kind
def empty_control_output(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.control_output.append("done")
    function.control_ret["done"] = ""


@_kind
def odd_control_output(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.control_output.append(rng.choice(("done", "")))
    function.control_ret[function.signature.control_output[0]] = rng.choice(("y", "^y", "y:0", "x", "y:y:0"))


@_kind
def duplicate_control_output(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    function.signature.control_output.extend(("done", "done"))
    function.control_ret["done"] = "y"


@_kind
def extra_control_output(rng: Random, graph: Any) -> None:
    _some_function(rng, graph).control_ret["extra"] = rng.choice(("y", "gone", ""))


@_kind
def odd_argument_index(rng: Random, graph: Any) -> None:
    function = _some_function(rng, graph)
    if rng.random() < 0.5:
        function.arg_attr[rng.choice((1, 9))].attr["_a"].b = True
    else:
        function.resource_arg_unique_id[rng.choice((1, 9))] = 3


@_kind
def odd_gradient(rng: Random, graph: Any) -> None:
    _some_function(rng, graph)
    graph.library.gradient.add(function_name=rng.choice(("broken", "gone", "")),
                               gradient_func=rng.choice(("gone", "", "broken")))


@_kind
def odd_attribute_declaration(rng: Random, graph: Any) -> None:
    declared = _generic(rng, graph).signature.attr.add(name="N", type=rng.choice(("int", "foo", "", "list(type)")))
    if rng.random() < 0.5:
        declared.default_value.s = b"x"
    if rng.random() < 0.5:
        declared.has_minimum, declared.minimum = True, -(2**40)


@_kind
def call_of_missing_function(rng: Random, graph: Any) -> None:
    node = _holder(rng, graph).add(name="call", op="PartitionedCall")
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.SetInParent()
    node.attr["f"].func.name = rng.choice(("gone", ""))


@_kind
def call_that_does_not_fit(rng: Random, graph: Any) -> None:
    _function(rng, graph)
    _constant(graph.node, "k")
    graph.node.add(name="call", op="broken", input=["k"] * rng.choice((0, 2)))
    if rng.random() < 0.5:
        _relu(graph.node, "user", f"call:{rng.choice((0, 1, 5))}")


@_kind
def control_flow_that_does_not_fit(rng: Random, graph: Any) -> None:
    _function(rng, graph)
    _constant(graph.node, "k")
    node = graph.node.add(name="branch", op=rng.choice(("If", "StatelessIf")), input=["k", "k"][:rng.choice((1, 2))])
    node.attr["Tcond"].type = FLOAT
    node.attr["Tin"].list.type.extend([FLOAT, INT][:rng.choice((0, 1, 2))])
    node.attr["Tout"].list.type.append(rng.choice((FLOAT, INT)))
    for name in ("then_branch", "else_branch"):
        if rng.random() < 0.8:
            node.attr[name].func.name = rng.choice(("broken", "gone"))


@_kind
def odd_versions(rng: Random, graph: Any) -> None:
    rng.choice((lambda: setattr(graph.versions, "min_consumer", 10**6), lambda: setattr(graph.versions, "producer", -1),
                lambda: graph.ClearField("versions"), lambda: graph.versions.bad_consumers.append(2474)))()
