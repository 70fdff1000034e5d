"""Graphs with control flow: loops and branches around little work, loops over rows and tokens, an LSTM, and a network
in a branch and in a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import heald
import numpy as np
from heald.api import DType, Graph, Input, Node, ShapeAttr, Versions, constant, dtypes
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Function
from heald.runtime.contract.op import ArgDef

BOOL, FLOAT, INT, VARIANT = dtypes.bool_, dtypes.float32, dtypes.int32, dtypes.variant
TIMES = 10_000  # iterations of the long loops
STEPS, UNITS = 100, 128  # of the LSTM
ROWS, WIDTH = 64, 32  # of the lists of rows
TOKENS, WORDS = 50, 100  # turns of the decoder, and the words that it chooses from
TURNS = 10  # of the loop around a network
VERSIONS = Versions(1000, 12)  # as TensorFlow writes them: older graphs have no scalar placeholders
SMALL = np.float32(1e-6)  # the part of a network's output that is added to the next input
LOWERED = {"_lower_using_switch_merge": True}  # as TensorFlow marks the nodes that it makes

Types = Mapping[str, DType]


class Case(NamedTuple):
    """A graph, the tensor to fetch and the arrays to feed, by placeholder."""

    title: str
    graph: Graph
    fetch: str
    feeds: dict[str, np.ndarray]


def cases() -> list[Case]:
    long = {"n": np.int32(TIMES), "x": np.ones((2, 2), np.float32), "y": np.full((2, 2), 1e-3, np.float32)}
    choice = {"p": np.bool_(True), "x": long["x"], "y": long["y"]}
    return [
        Case(f"a v1 while loop, {TIMES:,} x 2x2 addition", v1_loop(), "result:0", long),
        Case(f"a While, {TIMES:,} x 2x2 addition", while_loop(), "loop:2", long),
        Case("a While in a While, 100 x 100 x 2x2 addition", nested_loops(), "loop:2", long | {"n": np.int32(100)}),
        Case("an If around a 2x2 addition", if_node(), "y1:0", choice),
        Case("a call of a function, a 2x2 addition", call_node(), "y1:0", {"x": long["x"], "y": long["y"]}),
        Case(f"a map of five nodes over {ROWS} rows", map_loop(), "rows:0", row_feeds()),
        Case(f"a scan over {ROWS} rows", scan_loop(), "rows:0", row_feeds()),
        Case(f"a greedy decoder, {TOKENS} turns", decoder(), "tokens:0", {"x": np.ones((1, WIDTH), np.float32)}),
        Case(f"an LSTM of {UNITS} units, {STEPS} steps in a While", lstm(), "states:0", lstm_feeds()),
    ]


def node(name: str, op: str, *inputs: str, **attrs: Any) -> Node:
    """A node whose attribute T is float32 unless it is given."""
    return Node(name, op, inputs, attrs={"T": FLOAT} | attrs)


def placeholder(name: str, array: np.ndarray) -> Node:
    return Node(name, "Placeholder", attrs={"dtype": dtypes.of_numpy(array.dtype), "shape": ShapeAttr(array.shape)})


def function(name: str, arguments: Types, nodes: Iterable[Node], results: Mapping[str, tuple[DType, str]]) -> Function:
    """`results`: the type and the tensor of each."""
    return Function(name, [ArgDef(arg, dtype) for arg, dtype in arguments.items()],
                    [ArgDef(result, dtype) for result, (dtype, _) in results.items()], nodes,
                    {result: tensor for result, (_, tensor) in results.items()})


def while_node(name: str, condition: str, body: str, inputs: Sequence[str], types: Types) -> Node:
    return Node(name, "While", inputs, attrs={"cond": Func(condition), "body": Func(body), "T": tuple(types.values()),
                                              "parallel_iterations": 10, **LOWERED})


COUNTED = {"i": INT, "n": INT, "x": FLOAT, "y": FLOAT}  # the variables of a loop: a counter, its end, a sum, its step


def below(types: Types = COUNTED) -> Function:
    """The condition i < n."""
    return function("below", types, [node("less", "Less", "i", "n", T=INT)], {"go": (BOOL, "less:z:0")})


def counting_body(name: str, nodes: Sequence[Node], x: str) -> Function:
    """A loop's body: the next counter, and for x the tensor of this name."""
    more = [constant("one", np.int32(1)), node("next", "AddV2", "i", "one:output:0", T=INT)]
    return function(name, COUNTED, [*more, *nodes], {
        "i1": (INT, "next:z:0"), "n1": (INT, "n"), "x1": (FLOAT, x), "y1": (FLOAT, "y")})


ADDING = counting_body("adding", [node("sum", "AddV2", "x", "y")], "sum:z:0")
START = (constant("zero", np.int32(0)), placeholder("n", np.int32(0)), placeholder("x", np.zeros((2, 2), np.float32)),
         placeholder("y", np.zeros((2, 2), np.float32)))


def while_loop() -> Graph:
    return Graph([*START, while_node("loop", "below", "adding", ["zero", "n", "x", "y"], COUNTED)], [below(), ADDING],
                 VERSIONS)


def nested_loops() -> Graph:
    inner = [constant("start", np.int32(0)), while_node("inner", "below", "adding", ["start:output:0", "n", "x", "y"],
                                                        COUNTED)]
    outer = counting_body("outer", inner, "inner:output:2")
    return Graph([*START, while_node("loop", "below", "outer", ["zero", "n", "x", "y"], COUNTED)],
                 [below(), ADDING, outer], VERSIONS)


def v1_loop() -> Graph:
    """The same loop, of Enter, Merge, Switch, NextIteration and Exit."""
    def enter(name: str, of: str, dtype: DType, *, invariant: bool) -> Node:
        return node(name, "Enter", of, T=dtype, frame_name="loop", is_constant=invariant, parallel_iterations=10)

    nodes = [*START]
    nodes += [enter("n_enter", "n", INT, invariant=True), enter("y_enter", "y", FLOAT, invariant=True)]
    for variable, first, dtype in (("i", "zero", INT), ("x", "x", FLOAT)):
        nodes += [enter(f"{variable}_enter", first, dtype, invariant=False),
                  node(f"{variable}_merge", "Merge", f"{variable}_enter", f"{variable}_next", T=dtype, N=2),
                  node(f"{variable}_switch", "Switch", f"{variable}_merge", "go", T=dtype)]
    one = Node("one", "Const", controls=["i_inside"], attrs=constant("one", np.int32(1)).attrs)
    nodes += [node("less", "Less", "i_merge", "n_enter", T=INT), Node("go", "LoopCond", ["less"]), one,
              node("i_inside", "Identity", "i_switch:1", T=INT),
              node("i_sum", "AddV2", "i_inside", "one", T=INT), node("i_next", "NextIteration", "i_sum", T=INT),
              node("x_sum", "AddV2", "x_switch:1", "y_enter"), node("x_next", "NextIteration", "x_sum"),
              node("result", "Exit", "x_switch")]
    return Graph(nodes, (), VERSIONS)


PAIR = {"x": FLOAT, "y": FLOAT}


def if_node() -> Graph:
    then, other = (function(name, PAIR, [node("z", op, "x", "y")], {"z1": (FLOAT, "z:z:0")})
                   for name, op in (("then", "AddV2"), ("other", "Sub")))
    attrs = {"then_branch": Func("then"), "else_branch": Func("other"), "Tcond": BOOL, "Tin": (FLOAT, FLOAT),
             "Tout": (FLOAT,), **LOWERED}
    return Graph([placeholder("p", np.array(True)), *START[2:], Node("y1", "If", ["p", "x", "y"], attrs=attrs)],
                 [then, other])


def call_node() -> Graph:
    callee = function("add", PAIR, [node("z", "AddV2", "x", "y")], {"z1": (FLOAT, "z:z:0")})
    attrs = {"f": Func("add"), "Tin": (FLOAT, FLOAT), "Tout": (FLOAT,)}
    return Graph([*START[2:], Node("y1", "PartitionedCall", ["x", "y"], attrs=attrs)], [callee])


def lstm_feeds() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((STEPS, 1, UNITS), np.float32)}


def lstm() -> Graph:
    """x [steps, 1, units] to the states of all steps: a tensor list is read and another one is written."""
    rng = np.random.default_rng(2)
    types = {"i": INT, "n": INT, "out": VARIANT, "c": FLOAT, "h": FLOAT, "x": VARIANT, "kernel": FLOAT, "bias": FLOAT}
    shape = constant("shape", np.array([1, UNITS], np.int32))
    item = {"element_dtype": FLOAT}
    body = [
        shape, constant("axis", np.int32(1)), constant("one", np.int32(1)),
        node("next", "AddV2", "i", "one:output:0", T=INT),
        Node("now", "TensorListGetItem", ["x", "i", "shape:output:0"], attrs=item),
        node("both", "ConcatV2", "now:item:0", "h", "axis:output:0", N=2, Tidx=INT),
        node("product", "MatMul", "both:output:0", "kernel"),
        node("sums", "BiasAdd", "product:product:0", "bias"),
        node("gates", "Split", "axis:output:0", "sums:output:0", num_split=4),
        node("in", "Sigmoid", "gates:output:0"), node("forget", "Sigmoid", "gates:output:1"),
        node("new", "Tanh", "gates:output:2"), node("leave", "Sigmoid", "gates:output:3"),
        node("kept", "Mul", "forget:y:0", "c"), node("added", "Mul", "in:y:0", "new:y:0"),
        node("cell", "AddV2", "kept:z:0", "added:z:0"), node("told", "Tanh", "cell:z:0"),
        node("state", "Mul", "leave:y:0", "told:y:0"),
        Node("written", "TensorListSetItem", ["out", "i", "state:z:0"], attrs=item),
    ]
    step = function("step", types, body, {
        "i1": (INT, "next:z:0"), "n1": (INT, "n"), "out1": (VARIANT, "written:output_handle:0"),
        "c1": (FLOAT, "cell:z:0"), "h1": (FLOAT, "state:z:0"), "x1": (VARIANT, "x"), "kernel1": (FLOAT, "kernel"),
        "bias1": (FLOAT, "bias")})
    kernel = rng.standard_normal((2 * UNITS, 4 * UNITS)).astype(np.float32) / np.float32(UNITS**0.5)
    nodes = [
        *(constant(name, np.int32(value)) for name, value in (("zero", 0), ("n", STEPS))), shape,
        constant("kernel", kernel), constant("bias", rng.standard_normal(4 * UNITS).astype(np.float32)),
        constant("first", np.zeros((1, UNITS), np.float32)), placeholder("x", lstm_feeds()["x"]),
        Node("list", "TensorListFromTensor", ["x", "shape"], attrs={**item, "shape_type": INT}),
        Node("out", "TensorListReserve", ["shape", "n"], attrs={**item, "shape_type": INT}),
        while_node("loop", "below", "step", ["zero", "n", "out", "first", "first", "list", "kernel", "bias"], types),
        Node("states", "TensorListStack", ["loop:2", "shape"], attrs={**item, "num_elements": STEPS}),
    ]
    return Graph(nodes, [below(types), step])


def row_feeds() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((ROWS, WIDTH), np.float32)}


ITEM = {"element_dtype": FLOAT}
ROW_SHAPE = constant("shape", np.array([WIDTH], np.int32))
LISTED = {"i": INT, "n": INT, "out": VARIANT, "state": FLOAT, "list": VARIANT}  # the variables of a loop over rows


def list_loop(body: Sequence[Node], row: str, state: str) -> Graph:
    """A loop over the rows of x, each read as "row". `row`, `state`: the tensors that a turn writes and passes on."""
    step = function("step", LISTED, [
        ROW_SHAPE, constant("one", np.int32(1)), node("next", "AddV2", "i", "one:output:0", T=INT),
        Node("row", "TensorListGetItem", ["list", "i", "shape:output:0"], attrs=ITEM), *body,
        Node("written", "TensorListSetItem", ["out", "i", row], attrs=ITEM)], {
        "i1": (INT, "next:z:0"), "n1": (INT, "n"), "out1": (VARIANT, "written:output_handle:0"),
        "state1": (FLOAT, state), "list1": (VARIANT, "list")})
    listed = {**ITEM, "shape_type": INT}
    return Graph([
        ROW_SHAPE, constant("zero", np.int32(0)), constant("n", np.int32(ROWS)), placeholder("x", row_feeds()["x"]),
        constant("first", np.zeros(WIDTH, np.float32)),
        Node("list", "TensorListFromTensor", ["x", "shape"], attrs=listed),
        Node("out", "TensorListReserve", ["shape", "n"], attrs=listed),
        while_node("loop", "below", "step", ["zero", "n", "out", "first", "list"], LISTED),
        Node("rows", "TensorListStack", ["loop:2", "shape"], attrs={**ITEM, "num_elements": ROWS}),
    ], [below(LISTED), step], VERSIONS)


def map_loop() -> Graph:
    return list_loop([
        constant("two", np.float32(2)), constant("axis", np.array([0], np.int32)),
        node("twice", "Mul", "row:item:0", "two:output:0"),
        node("more", "AddV2", "twice:z:0", "two:output:0"), node("relu", "Relu", "more:z:0"),
        node("mean", "Mean", "row:item:0", "axis:output:0", Tidx=INT),
        node("y", "Sub", "relu:activations:0", "mean:output:0")], "y:z:0", "state")


def scan_loop() -> Graph:
    return list_loop([
        constant("half", np.float32(0.5)), node("less", "Mul", "state", "half:output:0"),
        node("sum", "AddV2", "less:z:0", "row:item:0"), node("y", "Tanh", "sum:z:0")], "y:y:0", "y:y:0")


def decoder() -> Graph:
    """Each turn looks up a token's vector, updates the state, and writes the most likely next token. A token that never
    comes would end the loop."""
    rng = np.random.default_rng(2)
    shapes = {"words": (WORDS, WIDTH), "kernel": (2 * WIDTH, WIDTH), "logits": (WIDTH, WORDS)}
    weights = [constant(name, rng.standard_normal(shape).astype(np.float32) / np.float32(8))
               for name, shape in shapes.items()]
    types = {"i": INT, "n": INT, "token": INT, "state": FLOAT, "out": VARIANT}
    go = function("go", types, [
        node("less", "Less", "i", "n", T=INT), constant("stop", np.array([-1], np.int32)),
        node("same", "NotEqual", "token", "stop:output:0", T=INT), constant("axis", np.array([0], np.int32)),
        Node("any", "All", ["same:z:0", "axis:output:0"], attrs={"Tidx": INT}),
        Node("both", "LogicalAnd", ["less:z:0", "any:output:0"])], {"go": (BOOL, "both:z:0")})
    plain = {"transpose_a": False, "transpose_b": False}
    step = function("step", types, [
        *weights, constant("one", np.int32(1)), constant("zero", np.int32(0)),
        node("next", "AddV2", "i", "one:output:0", T=INT),
        Node("word", "GatherV2", ["words:output:0", "token", "zero:output:0"],
             attrs={"Tparams": FLOAT, "Tindices": INT, "Taxis": INT}),
        node("both", "ConcatV2", "word:output:0", "state", "one:output:0", N=2, Tidx=INT),
        node("product", "MatMul", "both:output:0", "kernel:output:0", **plain),
        node("new", "Tanh", "product:product:0"),
        node("scores", "MatMul", "new:y:0", "logits:output:0", **plain),
        node("best", "ArgMax", "scores:product:0", "one:output:0", Tidx=INT, output_type=INT),
        Node("written", "TensorListSetItem", ["out", "i", "best:output:0"], attrs={"element_dtype": INT})], {
        "i1": (INT, "next:z:0"), "n1": (INT, "n"), "token1": (INT, "best:output:0"), "state1": (FLOAT, "new:y:0"),
        "out1": (VARIANT, "written:output_handle:0")})
    of_int = {"element_dtype": INT}
    return Graph([
        constant("zero", np.int32(0)), constant("n", np.int32(TOKENS)), constant("shape", np.array([1], np.int32)),
        constant("first", np.zeros(1, np.int32)), placeholder("x", np.zeros((1, WIDTH), np.float32)),
        Node("out", "TensorListReserve", ["shape", "n"], attrs={**of_int, "shape_type": INT}),
        while_node("loop", "go", "step", ["zero", "n", "first", "x", "out"], types),
        Node("tokens", "TensorListStack", ["loop:4", "shape"], attrs={**of_int, "num_elements": TOKENS}),
    ], [go, step], VERSIONS)


def network_function(name: str, graph: Graph, feed: str, fetch: str) -> Function:
    """A network as a function from "x" to "y". `feed` and `fetch` are nodes of it."""
    entries = heald.Session(graph).nodes

    def inside(tensor: Input) -> str:
        if tensor.node == feed:
            return "x"
        outputs = [entry.arg for entry in entries[tensor.node].output_tensors]
        arg = outputs[tensor.index]
        return f"{tensor.node}:{arg}:{tensor.index - outputs.index(arg)}"

    nodes = [entry.replace(inputs=[inside(tensor) for tensor in entry.inputs]) for entry in graph if entry.name != feed]
    return function(name, {"x": FLOAT}, nodes, {"y": (FLOAT, inside(Input(fetch)))})


def network_in_branch(network: Function, x: np.ndarray, y: np.ndarray) -> Graph:
    """The network if the placeholder p is true, else zeros of the shape of `y`. The result is "result"."""
    other = function("other", {"x": FLOAT}, [constant("zeros", np.zeros_like(y))], {"y": (FLOAT, "zeros:output:0")})
    attrs = {"then_branch": Func(network.name), "else_branch": Func("other"), "Tcond": BOOL, "Tin": (FLOAT,),
             "Tout": (FLOAT,), **LOWERED}
    return Graph([placeholder("p", np.array(True)), placeholder("x", x), Node("result", "If", ["p", "x"], attrs=attrs)],
                 [network, other])


def network_in_loop(network: Function, x: np.ndarray, y: np.ndarray) -> Graph:
    """TURNS runs of the network. A small part of the output's mean is added to the next input. The result is "loop:2",
    the last output."""
    types = {"i": INT, "n": INT, "y": FLOAT, "x": FLOAT}
    attrs = {"f": Func(network.name), "Tin": (FLOAT,), "Tout": (FLOAT,)}
    body = [constant("one", np.int32(1)), node("next", "AddV2", "i", "one:output:0", T=INT),
            Node("run", "PartitionedCall", ["x"], attrs=attrs), constant("axes", np.array([0, 1], np.int32)),
            node("mean", "Mean", "run:output:0", "axes:output:0", Tidx=INT), constant("small", SMALL),
            node("part", "Mul", "mean:output:0", "small:output:0"), node("moved", "AddV2", "x", "part:z:0")]
    step = function("step", types, body, {"i1": (INT, "next:z:0"), "n1": (INT, "n"), "y1": (FLOAT, "run:output:0"),
                                          "x1": (FLOAT, "moved:z:0")})
    nodes = [constant("zero", np.int32(0)), constant("n", np.int32(TURNS)), placeholder("x", x),
             constant("first", np.zeros_like(y)),
             while_node("loop", "below", "step", ["zero", "n", "first", "x"], types)]
    return Graph(nodes, [network, below(types), step])
