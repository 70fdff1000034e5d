"""Pass `invariants`: nodes of a loop's body that compute the same in every turn are computed before the loop.

    While(i, x, keys, w) that computes x @ (keys @ w)  ->  While(i, x, keys, w, keys @ w), which computes x @ it

A decoder that projects its encoder's output in each step is such a loop.
"""

# A node is hoisted under these conditions, which are checked:
#
#   - It has one output, no control edges, no effects and no device of its own. Its inputs are variables that no turn
#     changes, constants of the body, or hoisted nodes.
#   - It is sure to succeed for every shape that its inputs may have: a loop without turns does not run its body.
#   - It depends on a variable whose elements are not known before the run. The linker computes the others once.
#
# The values become new variables behind the others, so the outputs of the loop keep their indices. A copy of the body
# reads them. Its own nodes for them have no consumers, and are left out when the body is compiled.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from heald.api import DType, Func, Function, Graph, Input, Node, PassContext, constant, dtypes, new_name, placed_like

from ..counted_loops import LOOPS, MOST_NODES, argument_index, trace_identities
from ..graph_view import GraphView
from ..row_rules import BROADCASTING, UNARY

Shape = tuple[int | None, ...]
TYPES = (dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.float16)
CHEAP = frozenset({"Const", "Identity"})  # no gain if a turn does not compute them


class _Value(NamedTuple):
    """A tensor before the loop that a node of the body computes in every turn, or is an argument.

    `shape`: sure to be its shape. `array`: the elements of a constant. `is_new`: True for a hoisted node's.
    """

    tensor: Input
    shape: Shape
    array: np.ndarray | None = None
    is_new: bool = False


def hoist_invariants(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op in LOOPS for node in graph):
        return graph
    view = GraphView(graph, context)
    nodes: list[Node] = []
    functions: list[Function] = []
    names = set(graph.functions)
    for node in graph:
        if node.op in LOOPS and not view.is_kept(node):
            hoisted = _Hoist(view, node).apply(names)
            if hoisted is not None:
                nodes += hoisted[0]
                functions += hoisted[1]
    return graph.replace(nodes=nodes, functions=functions) if nodes else graph


class _Hoist:
    def __init__(self, view: GraphView, node: Node) -> None:
        self._view = view
        self._node = node
        self._new_nodes: list[Node] = []

    def apply(self, names: set[str]) -> tuple[list[Node], list[Function]] | None:
        """The nodes and functions of the loop with hoisted nodes. None for a loop that stays. `names`: of functions."""
        entry = self._view.resolve(self._node)
        if entry is None:
            return None
        funcs = entry.attrs["cond"], entry.attrs["body"]
        cond, body = (self._view.graph.functions.get(func.name) for func in funcs)
        if cond is None or body is None or any(func.attrs for func in funcs) or len(body.nodes) > MOST_NODES:
            return None
        if not 0 < len(cond.inputs) == len(body.inputs) == len(body.outputs) == len(self._node.inputs):
            return None
        values = self._hoist_nodes(body)
        read = {source.node for node in body.nodes.values() if node.name not in values for source in node.inputs}
        read |= {source.node for source in body.ret.values()}
        useful = {name: value for name, value in values.items()
                  if value.is_new and name in read and body.nodes[name].op not in CHEAP}
        return self._loop_with(cond, body, useful, names) if useful else None

    def _hoist_nodes(self, body: Function) -> dict[str, _Value]:
        """Make the nodes before the loop. Returns their tensors, and those of unchanged arguments, by name."""
        values = self._arguments(body)
        remaining = [node for node in body.nodes.values() if not node.controls]
        is_changed = True
        while is_changed:
            is_changed, waiting = False, []
            for node in remaining:
                if all(source.node in values for source in node.inputs):
                    value = self._hoisted(node, [values[source.node] for source in node.inputs])
                    if value is not None:
                        values[node.name], is_changed = value, True
                else:
                    waiting.append(node)
            remaining = waiting
        return values

    def _arguments(self, body: Function) -> dict[str, _Value]:
        values = {}
        for index, (arg, tensor) in enumerate(zip(body.inputs, self._node.inputs, strict=True)):
            result = trace_identities(body, body.ret.get(body.outputs[index].name))
            shape = self._view.shape(tensor)
            is_tensor = arg.dtype in TYPES and arg.dtype is self._view.dtype(tensor)
            is_tensor = is_tensor and not self._view.is_reference(tensor)
            if is_tensor and shape is not None and result is not None and argument_index(body, result) == index:
                is_known = self._view.is_known_tensor(tensor)
                values[arg.name] = _Value(tensor, shape, self._view.value(tensor) if is_known else None)
        return values

    def _hoisted(self, node: Node, operands: Sequence[_Value]) -> _Value | None:
        entry = self._view.resolve(node)
        if entry is None or entry.op.stateful or len(entry.output_tensors) != 1:
            return None
        if node.device not in ("", self._node.device) or "_class" in node.attrs:
            return None
        if node.op == "Identity":
            return operands[0]
        if node.op == "Const":
            array = entry.attrs["value"].array()
            return _Value(Input(""), array.shape, array)
        shape_of = _shape_rule(node.op)
        shape = None if shape_of is None or entry.output_tensors[0].dtype not in TYPES else shape_of(node, operands)
        if shape is None or all(operand.array is not None for operand in operands):
            return None
        inputs = [self._tensor(node, operand) for operand in operands]
        name = self._view.new_name(f"{self._node.name}/body/{node.name}")
        self._new_nodes.append(placed_like(Node(name, node.op, inputs, attrs=dict(node.attrs)), self._node))
        return _Value(Input(name), shape, is_new=True)

    def _tensor(self, node: Node, operand: _Value) -> Input:
        if operand.tensor.node or operand.array is None:
            return operand.tensor
        made = constant(self._view.new_name(f"{self._node.name}/body/{node.name}/constant"), operand.array)
        self._new_nodes.append(placed_like(made, self._node))
        return Input(made.name)

    def _loop_with(
        self, cond: Function, body: Function, values: Mapping[str, _Value], names: set[str]
    ) -> tuple[list[Node], list[Function]]:
        arguments = {arg.name for function in (cond, body) for arg in (*function.inputs, *function.outputs)}
        taken = {*arguments, *body.nodes, *cond.nodes}
        types = {name: _type_of(self._view, body.nodes[name]) for name in values}
        args = {name: body.inputs[0]._replace(name=new_name("hoisted", taken), dtype=types[name]) for name in values}
        instead = {name: Input(arg.name) for name, arg in args.items()}
        nodes = [node.replace(inputs=[instead.get(source.node, source) for source in node.inputs])
                 if any(source.node in instead for source in node.inputs) else node for node in body.nodes.values()]
        ret = {key: instead.get(source.node, source) for key, source in body.ret.items()}
        ret |= {arg.name: Input(arg.name) for arg in args.values()}
        new_body = body.replace(name=new_name(f"{body.name}_hoisted", names), inputs=[*body.inputs, *args.values()],
                                outputs=[*body.outputs, *args.values()], nodes=nodes, ret=ret)
        new_cond = cond.replace(name=new_name(f"{cond.name}_hoisted", names), inputs=[*cond.inputs, *args.values()])
        entry = self._view.resolve(self._node)
        assert entry is not None
        attrs = {"T": (*entry.attrs["T"], *types.values()),
                 "cond": Func(new_cond.name), "body": Func(new_body.name)}
        loop = self._node.replace(inputs=[*self._node.inputs, *(value.tensor for value in values.values())],
                                  attrs=attrs, without_attrs=["output_shapes"])
        return [*self._new_nodes, loop], [new_body, new_cond]


def _type_of(view: GraphView, node: Node) -> DType:
    entry = view.resolve(node)
    assert entry is not None
    return entry.output_tensors[0].dtype


ShapeRule = Callable[[Node, Sequence[_Value]], "Shape | None"]  # None where the node may fail


def _shape_rule(op: str) -> ShapeRule | None:
    if op in UNARY:
        return lambda _, operands: operands[0].shape
    return _shape_of_broadcast if op in BROADCASTING else SHAPE_RULES.get(op)


def _shape_of_broadcast(_: Node, operands: Sequence[_Value]) -> Shape | None:
    """Tensors of one known shape, and scalars."""
    shapes = {operand.shape for operand in operands} - {()}
    if len(shapes) > 1 or any(None in shape for shape in shapes):
        return None
    return shapes.pop() if shapes else ()


def _shape_of_product(node: Node, operands: Sequence[_Value]) -> Shape | None:
    shapes = [operand.shape for operand in operands]
    if [len(shape) for shape in shapes] != [2, 2]:
        return None
    left, right = (shape[::-1] if node.attrs.get(f"transpose_{side}") else shape
                   for side, shape in zip("ab", shapes, strict=True))
    return (left[0], right[1]) if left[1] is not None and left[1] == right[0] else None


def _shape_of_transpose(_: Node, operands: Sequence[_Value]) -> Shape | None:
    shape, order = operands[0].shape, operands[1].array
    if order is None or sorted(axis % max(len(shape), 1) for axis in order.reshape(-1)) != list(range(len(shape))):
        return None
    return tuple(shape[axis] for axis in order.reshape(-1))


SHAPE_RULES: dict[str, ShapeRule] = {"MatMul": _shape_of_product, "Transpose": _shape_of_transpose}
