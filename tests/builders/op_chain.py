"""Graphs that are written op by op, for ops that hand each other lists, arrays and stacks of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import heald
import numpy as np
from harness.run_op import REGISTRIES
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes


class Chain:
    """Called with an op and its inputs it adds a node and gives the name of its first output. An input is such a name,
    or a value, which becomes a constant; where an op takes several for one, a list of them. Attributes of types are
    those of the inputs, else float32. `after`: nodes that must have run."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self._nodes: list[Node] = []
        self._types: dict[str, dtypes.DType] = {}

    def __call__(self, op: str, *inputs: Any, after: Any = (), **attrs: Any) -> str:
        defined = REGISTRIES.ops.get(op)
        shapes = {n: a if a is None else ShapeAttr(a) for n, a in attrs.items() if defined.attrs[n].type == "shape"}
        attributes: dict[str, Any] = {n: a.default for n, a in defined.attrs.items()} | attrs | shapes
        names = []
        for arg, input_value in zip(defined.inputs, inputs, strict=True):
            input_names = [self._name(x, arg.dtype, attributes.get(arg.type_attr or "")) for x in
                           (input_value if arg.number_attr else [input_value])]
            names += input_names
            if arg.number_attr:
                attributes[arg.number_attr] = len(input_names)
            if arg.type_attr and arg.type_attr not in attrs:
                attributes[arg.type_attr] = self._types[input_names[0]]
        for n, a in defined.attrs.items():
            if a.type == "type" and not isinstance(attributes[n], dtypes.DType):
                attributes[n] = dtypes.float32
        name = f"n{len(self._nodes)}"
        before = [f"^{x.partition(':')[0]}" for x in ([after] if isinstance(after, str) else after)]
        self._nodes.append(Node(name, op, (*names, *before), attrs=attributes))
        outputs = defined.expand_outputs(attributes)
        self._types |= {f"{name}:{i}": t.dtype for i, t in enumerate(outputs)}
        return f"{name}:0" if outputs else name

    def _name(self, operand: Any, dtype: dtypes.DType | None, attr: Any) -> str:
        if isinstance(operand, str):
            return operand
        known_type = dtype if dtype is not None else attr if isinstance(attr, dtypes.DType) else None
        array = np.asarray(operand, None if known_type is None else known_type.numpy)
        if known_type is None and array.dtype == np.float64:
            array = array.astype(np.float32)
        kind = dtypes.of_numpy(array.dtype)
        name = f"c{len(self.constants)}"
        self.constants[f"{name}:0"] = array if kind is not dtypes.string else array.astype(object)
        self._types[f"{name}:0"] = kind
        return f"{name}:0"

    def graph(self, *, fed: bool = False) -> Graph:
        """`fed`: the constants are placeholders of which nothing is known."""
        nodes = [Node(name[:-2], "Placeholder", attrs={"dtype": self._types[name], "shape": None}) if fed else
                 Node(name[:-2], "Const", attrs={"dtype": self._types[name], "value": value})
                 for name, value in self.constants.items()]
        return Graph([*nodes, *self._nodes])

    def run(self, fetches: list[str], *, fed: bool = False, config: Any = None) -> list[Any]:
        """Of a graph with constants, or where all of them are fed."""
        with heald.Session(self.graph(fed=fed), config, device="CPU:0") as session:
            tensors = [f for f in fetches if ":" in f]
            results: list[Any] = session.run(tensors, self.constants if fed else {},
                                             targets=[f for f in fetches if ":" not in f])
            return results

    def gives(self, fetches: list[str], expected: Sequence[Any], *, fed: bool) -> None:
        """Assert equal types, shapes and elements; `expected` takes the type of the results."""
        for got, want in zip(self.run(fetches, fed=fed), expected, strict=True):
            np.testing.assert_array_equal(got, np.asarray(want, got.dtype), strict=True)

    def static_shape(self, fetch: str) -> str:
        """The facts about a value that are known before the run."""
        program = heald.Session(self.graph(), device="CPU:0").prepare(fetch).program
        return str(program.functions["main"].result_metas[0])
