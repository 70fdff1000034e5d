"""Random models of x, a float32 [2, 2] tensor, drawn by hypothesis: activations, functions and their control flow."""

from __future__ import annotations

import numpy as np
from builders.control_flow import branch, call, case, function, loop
from builders.graphs import const, node, placeholder
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node, Versions
from heald.runtime.values import dtypes
from hypothesis import strategies as st

FEEDS = {"x": np.float32([[1, -2], [3, 0.5]]), "p": np.bool_(True), "k": np.int32(1)}
FIRST = (placeholder("x", (2, 2)), placeholder("p", (), dtypes.bool_), placeholder("k", (), dtypes.int32),
         const("zero", 0, np.int32))
OUTPUTS = {"Neg": "y", "Relu": "activations", "Identity": "output", "Square": "y", "Sqrt": "y", "Tanh": "y",
           "AddV2": "z", "Mul": "z", "Sub": "z", "Maximum": "z", "Minimum": "z"}
BINARY = ("AddV2", "Mul", "Sub", "Maximum", "Minimum")
KINDS = ("node", "node", "node", "node", "constant", "product")
CALLS = ("call", "legacy")
CONTROL_FLOW = ("if", "case", "while")
SHAPES = (None, ShapeAttr((2, 2)), ShapeAttr((None, 2)))
BELOW = function("below", "i:int32 x", [const("most", 3, np.int32),
                                        node("t", "Less", "i", "most:output:0", T=dtypes.int32)],
                 {"go": "t:z:0"}, results="go:bool_")


class _Model:
    """Statements that hypothesis draws, and the functions that they call."""

    def __init__(self, draw):
        self.draw, self.functions = draw, []

    def nodes(self, count, kinds, *, inside):
        """Nodes over x, and the tensors that are known after them. In a function outputs have names."""
        new_nodes, outputs = [], ["x"]
        for index in range(count):
            kind = self.draw(st.sampled_from(kinds))
            new_node, output = getattr(self, f"_{kind}")(f"n{index}", outputs)
            if new_nodes and not self.draw(st.integers(0, 5)):
                new_node = new_node.replace(controls=[self.draw(st.sampled_from(new_nodes)).name])
            new_nodes.append(new_node)
            outputs.append(f"{new_node.name}:{output}:0" if inside else new_node.name)
        return new_nodes, outputs

    def _pick(self, outputs):
        return self.draw(st.sampled_from(outputs[-4:]))

    def _node(self, name, outputs):
        op = self.draw(st.sampled_from([*OUTPUTS]))
        inputs = [self._pick(outputs) for _ in range(1 + (op in BINARY))]
        return node(name, op, *inputs), OUTPUTS[op]

    def _constant(self, name, _):
        return const(name, self.draw(st.sampled_from([0, 1, 2, 6, 0.25]))), "output"

    def _product(self, name, _):
        flags = {key: self.draw(st.booleans()) for key in ("transpose_a", "transpose_b") if self.draw(st.booleans())}
        shape = {"_output_shapes": (self.draw(st.sampled_from(SHAPES)),)} if not self.draw(st.integers(0, 2)) else {}
        return node(name, "MatMul", "x", "x", **flags, **shape), "product"

    def _function(self, arguments="x", kinds=KINDS):
        """Add a function that adds its statements' last value to x."""
        body, outputs = self.nodes(self.draw(st.integers(1, 3)), kinds, inside=True)
        body, ret, results = [*body, node("sum", "AddV2", "x", outputs[-1])], {"y": "sum:z:0"}, ""
        if arguments != "x":
            body += [const("one", 1, np.int32), node("next", "AddV2", "i", "one:output:0", T=dtypes.int32)]
            ret, results = {"j": "next:z:0", **ret}, "j:int32"
        name = f"f{len(self.functions)}"
        self.functions.append(function(name, arguments, body, ret, results))
        return name

    def _call(self, name, _):
        return call(name, self._function(kinds=(*KINDS, "call")), "x"), "output"

    def _legacy(self, name, _):
        return Node(name, self._function(), ["x"]), "y"

    def _if(self, name, _):
        return branch(name, "p", self._function(kinds=(*KINDS, *CALLS)), self._function(), "x"), "output"

    def _case(self, name, _):
        return case(name, "k", [self._function() for _ in range(2)], "x"), "output"

    def _while(self, name, _):
        body = self._function("i:int32 x")
        turns = f"{name}/turns"
        self.functions.append(function(turns, "x", [
            const("zero", 0, np.int32), loop("w", "below", body, "zero:output:0", "x", arguments="i:int32 x")],
            {"y": "w:output:1"}))
        return call(name, turns, "x"), "output"


@st.composite
def models(draw, *, calls=True):
    """A graph, and the names of the nodes whose outputs are its results for FEEDS."""
    model = _Model(draw)
    kinds = (*KINDS, *CALLS, *CONTROL_FLOW) if calls else KINDS
    nodes, outputs = model.nodes(draw(st.integers(1, 7)), kinds, inside=False)
    functions = [*model.functions, *([BELOW] if calls else [])]
    results = dict.fromkeys((outputs[-1], draw(st.sampled_from(outputs[1:]))))
    return Graph([*FIRST, *draw(st.permutations(nodes))], functions, Versions(1000, 12)), [*results]
