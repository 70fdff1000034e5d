"""Random GraphDefs that TensorFlow imports: nodes of every kind, concrete and generic functions, versions.

`random_graphdef(seed)` returns the same message for the same seed.
"""

from __future__ import annotations

from random import Random
from typing import Any

from builders.random_attributes import put_attribute
from builders.random_nodes import GraphMaker, Signature, Tensor
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values import dtypes

INT, FLOAT, BOOL, RESOURCE = dtypes.int32, dtypes.float32, dtypes.bool_, dtypes.resource
FORMS = (((INT,), (INT,)), ((INT,), (BOOL,)), ((INT,), (INT,)), ((FLOAT, INT), (FLOAT,)), ((FLOAT, INT), (FLOAT, INT)),
         ((FLOAT, INT), (BOOL,)), ((), (FLOAT,)), ((FLOAT,), ()), ((RESOURCE, FLOAT), (FLOAT,)))
GENERIC = ("Identity", "Neg", "AddV2", "Mul", "Square")


def random_graphdef(seed: int, *, max_nodes: int = 14) -> Any:
    """A GraphDef of up to about `max_nodes` statements, each of one to nine nodes."""
    rng = Random(f"graph {seed}")  # noqa: S311 - no secrets: the seed makes the graph
    graph: Any = message_class("GraphDef")()
    functions: list[Signature] = []
    for index in range(rng.choice((0, 0, 1, 2, 4))):
        is_generic = rng.random() < 0.25
        # in texts of TensorFlow no op is called h-h
        stem = rng.choice(("f", "__inference_g", "f" if is_generic else "h-h"))
        make = _generic if is_generic else _concrete
        functions.append(make(rng, graph.library.function.add(), f"{stem}_{index}", functions))
    maker = GraphMaker(rng, functions)
    for _ in range(rng.randrange(max_nodes)):
        maker.statement()
    nodes = maker.nodes
    if rng.random() < 0.3:
        rng.shuffle(nodes)
    graph.node.extend(nodes)
    _versions(rng, graph)
    if len(functions) > 1 and rng.random() < 0.2:
        graph.library.gradient.add(function_name=functions[0].name, gradient_func=functions[1].name)
    return graph


def random_bytes(seed: int, *, max_nodes: int = 14) -> bytes:
    """The same GraphDef in binary, with its maps in order of their keys."""
    return bytes(random_graphdef(seed, max_nodes=max_nodes).SerializeToString(deterministic=True))


def _versions(rng: Random, graph: Any) -> None:
    kind = rng.random()
    if kind < 0.9:
        graph.versions.producer = rng.choice((21, 27, 1395, 2474))
    if kind < 0.4:
        graph.versions.min_consumer = rng.choice((0, 8, 12))
    if kind < 0.1:
        graph.versions.bad_consumers.extend((13, 17))


def _concrete(rng: Random, function: Any, name: str, functions: list[Signature]) -> Signature:
    """Fill in a FunctionDef with types of its own."""
    inputs, outputs = rng.choice(FORMS)
    function.signature.name = name
    maker = GraphMaker(rng, functions, in_function=True)
    for index, dtype in enumerate(inputs):
        arg = function.signature.input_arg.add(name=f"a{index}", type=dtype.number)
        if dtype is RESOURCE and rng.random() < 0.5:
            arg.handle_data.add(dtype=FLOAT.number).shape.dim.add(size=2)
        maker.tensors.append(Tensor(arg.name, dtype))
        maker.names.add(arg.name)
    for _ in range(rng.randrange(5)):
        maker.statement()
    for index, dtype in enumerate(outputs):
        function.signature.output_arg.add(name=f"r{index}", type=dtype.number)
        function.ret[f"r{index}"] = maker.tensor(dtype)
    function.node_def.extend(maker.nodes)
    _decorate(rng, function, maker)
    return Signature(name, inputs, outputs)


def _decorate(rng: Random, function: Any, maker: GraphMaker) -> None:
    """Add attributes, attributes of arguments, control outputs and the rest of a signature."""
    for name, value in (("_noinline", True), ("api_implements", b"lstm"), ("_shapes", ([(1,), None], "list(shape)"))):
        if rng.random() < 0.2:
            put_attribute(function.attr[name], value)
    for index in range(len(function.signature.input_arg)):
        if rng.random() < 0.3:
            put_attribute(function.arg_attr[index].attr["_user_specified_name"], b"x")
        if rng.random() < 0.2:
            put_attribute(function.arg_attr[index].attr["_output_shapes"], ([(-1, 2)], "list(shape)"))
    if function.signature.input_arg and rng.random() < 0.1:  # one: TensorFlow prints several in the order of a hash
        function.resource_arg_unique_id[0] = 3
    if maker.nodes and rng.random() < 0.3:
        node = rng.choice(maker.nodes).name
        function.signature.control_output.append("done")
        function.control_ret["done"] = node
    function.signature.is_stateful = rng.random() < 0.2
    if rng.random() < 0.1:
        function.signature.description = "what it does"


def _generic(rng: Random, function: Any, name: str, _: list[Signature]) -> Signature:
    """Fill in a FunctionDef whose types are the attribute T of its callers."""
    count = rng.choice((1, 2))
    function.signature.name = name
    function.signature.attr.add(name="T", type="type")
    for index in range(count):
        function.signature.input_arg.add(name=f"a{index}", type_attr="T")
    function.signature.output_arg.add(name="r0", type_attr="T")
    arguments = [arg.name for arg in function.signature.input_arg]
    for index in range(rng.randrange(1, 4)):
        op = rng.choice(GENERIC)
        inputs = [rng.choice(arguments) for _ in range(2 if op in ("AddV2", "Mul") else 1)]
        node = function.node_def.add(name=f"n{index}", op=op, input=inputs)
        node.attr["T"].placeholder = "T"
        arguments.append(f"n{index}:{'z' if len(inputs) == 2 else 'output' if op == 'Identity' else 'y'}:0")
        if index and rng.random() < 0.2:
            node.input.append("^n0")
    function.ret["r0"] = arguments[-1]
    if rng.random() < 0.2:
        function.signature.control_output.append("done")
        function.control_ret["done"] = "n0"
    return Signature(name, (FLOAT,) * count, (FLOAT,), is_generic=True)
