"""Pass `cells`: the ops of one LSTM step with constant weights are fused into one LSTMBlockCell.

    gates = split(x @ w + h @ u + b, 4)                     or [x, h] @ w + b; the gates in any order
    c = sigmoid(f) * c_prev + sigmoid(i) * tanh(g)          gates may have constants added
    h = sigmoid(o) * tanh(c)

x, h and c_prev must be sure to have the same number of rows: the unfused ops would broadcast one of them. A first step
has no h where constant folding has removed its product with zeros. Its cell gets zeros and the next step's weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType, Graph, Input, Node, PassContext, constant, dtypes, placed_like, topological_order

from ..affine import scaling_step
from ..graph_view import Array, GraphView, asks_for_same_place
from ..symbolic_sizes import SymbolicSizes

OP = "LSTMBlockCell"
TYPES = (dtypes.float16, dtypes.float32)
SUMS = ("Add", "AddV2")
GATE_COUNT = 4
STATE, HIDDEN = 1, 6  # outputs of the op
PLAIN = {"forget_bias": 0.0, "cell_clip": -1.0, "use_peephole": False}


class Operand(NamedTuple):
    """A tensor [rows, width], the constant weights [..., 4 * cells] of its product, and the rows of the weights that
    belong to it."""

    source: Input
    weights: Input
    rows: slice


class Sum(NamedTuple):
    """The sum that a Split divides into gates: products, the total bias, and the row counts of added matrices of
    zeros."""

    products: list[Node]
    bias: Array
    rows: frozenset[int]


class Step(NamedTuple):
    """One LSTM step: the nodes of c (`state`) and h (`hidden`), the tensor c_prev (`before`), the indices of the gates
    i, g, f, o among the outputs of the Split, and the constants added to these gates."""

    state: Node
    hidden: Node
    before: Input
    order: tuple[int, ...]
    shifts: tuple[Array | None, ...]
    dtype: DType


def fuse_lstm_cells(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op == "Split" for node in graph):
        return graph
    cells = _Cells(GraphView(graph, context))
    for node in topological_order(graph):
        if node.op == "Split":
            cells.add_cell_of_split(node)
    return cells.graph()


class _Cells:
    """Collects the cells of a graph in order, and the replacements of their steps' tensors c and h."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._sizes = SymbolicSizes(view)
        self._new_nodes: list[Node] = []
        self._constants: dict[Any, Node] = {}
        self._instead: dict[Input, Input] = {}
        self._hidden: dict[Input, Input] = {}  # of each state of a step
        self._starts: dict[Input, tuple[Sum, Step]] = {}  # first steps without h, by their states

    def graph(self) -> Graph:
        """The graph with the cells. Consumers of a step read its cell."""
        replaced = {node.name: node for node in self._new_nodes}
        nodes = [replaced.get(node.name, node) for node in self._view.graph]
        nodes += [node for node in self._new_nodes if node.name not in self._view.graph.nodes]
        rewired = [node.replace(inputs=[self._instead.get(source, source) for source in node.inputs])
                   if any(source in self._instead for source in node.inputs) else node for node in nodes]
        changed = [node for node in rewired if self._view.graph.nodes.get(node.name) is not node]
        return self._view.with_edits([*self._constants.values(), *changed])

    def add_cell_of_split(self, split: Node) -> None:
        total = _gate_sum(self._view, split)
        step = None if total is None else _lstm_step(self._view, split, total.bias.size // GATE_COUNT)
        if total is None or step is None:
            return
        operands = _operands(self._view, total)
        if len(operands) == 1:
            self._starts[Input(step.state.name)] = total, step
            return
        if step.before in self._starts:
            self._make_first_cell(*self._starts.pop(step.before), operands)
        placed = self._x_and_h(operands, total, step)
        if placed is not None:
            self._make_cell(placed, total, step)

    def _make_first_cell(self, total: Sum, step: Step, following: Sequence[Operand]) -> None:
        """Make the cell of a first step without h, if its number of rows is known."""
        (x,), cells = _operands(self._view, total), total.bias.size // GATE_COUNT
        rows, hidden = self._sizes.of(x.source, 0), Input(step.hidden.name)
        weights = next((operand for operand in following if operand.source == hidden
                        and _depth_of_operand(operand) == cells), None)
        if weights is None or not isinstance(rows, int) or self._view.shape(step.before) != (rows, cells):
            return
        if total.rows <= {rows} and self._view.shape(weights.weights) == (weights.rows.stop, total.bias.size):
            zeros = self._constant(step.hidden, "zeros", (rows, cells, step.dtype),
                                   lambda: np.zeros((rows, cells), step.dtype.numpy))
            self._make_cell([x, weights._replace(source=Input(zeros))], total, step)

    def _x_and_h(self, operands: Sequence[Operand], total: Sum, step: Step) -> list[Operand] | None:
        """The operands as x, h. None unless x, h and c_prev are matrices with equal numbers of rows, and h and c_prev
        have one column a cell. If both operands could be h, the output of the previous step is h; without one, the
        second operand is, as in the usual order."""
        cells = total.bias.size // GATE_COUNT
        able = [operand for operand in operands if _depth_of_operand(operand) == cells]
        earlier = self._hidden.get(step.before)
        hidden = next((operand for operand in able if operand.source == earlier), able[-1] if able else None)
        if hidden is None:
            return None
        x = operands[operands[0] is hidden]
        rows = [self._sizes.of(source, 0) for source in (x.source, hidden.source, step.before)]
        shape = self._view.shape(step.before)
        fits = shape is not None and len(shape) == 2 and (shape[1] == cells or step.before in self._hidden)
        return [x, hidden] if fits and rows[0] is not None and len({*rows, *total.rows}) == 1 else None

    def _make_cell(self, operands: list[Operand], total: Sum, step: Step) -> None:
        view, like, dtype = self._view, step.hidden, step.dtype
        gates = total.bias.reshape(GATE_COUNT, -1)[list(step.order)]
        with np.errstate(all="ignore"):
            bias = np.stack([gate if shift is None else gate + shift.reshape(-1)
                             for gate, shift in zip(gates, step.shifts, strict=True)]).reshape(-1).astype(dtype.numpy)
        key = tuple((operand.weights, operand.rows.start, operand.rows.stop) for operand in operands), step.order
        weights = self._constant(like, "weights", key, lambda: self._weights_of_operands(operands, step.order))
        biases = self._constant(like, "bias", (bias.tobytes(), dtype), lambda: bias)
        zeros = self._constant(like, "peepholes", (gates.shape[1], dtype),
                               lambda: np.zeros(gates.shape[1], dtype.numpy))
        inputs: list[str | Input] = [operands[0].source, step.before, operands[1].source, weights, *[zeros] * 3, biases]
        cell = Node(view.new_name(f"{like.name}/cell"), OP, inputs, attrs={"T": dtype} | PLAIN)
        self._new_nodes.append(placed_like(cell, like))
        rows = self._sizes.of(operands[0].source, 0)
        for node, index in ((step.state, STATE), (step.hidden, HIDDEN)):
            output, cell_output = Input(node.name), Input(cell.name, None, index)
            if rows is not None and not view.is_kept(node):
                self._sizes.derived[output, 0] = rows
            if view.is_free(node):
                self._instead[output] = cell_output
            else:
                self._new_nodes.append(node.replace(op="Identity", inputs=[cell_output]))
        self._hidden[Input(step.state.name)] = Input(step.hidden.name)

    def _weights_of_operands(self, operands: Sequence[Operand], order: Sequence[int]) -> Array:
        parts = []
        for operand in operands:
            array = self._view.array(operand.weights)
            assert array is not None
            parts.append(array[operand.rows].reshape(-1, GATE_COUNT, array.shape[1] // GATE_COUNT)[:, list(order)])
        return np.concatenate(parts).reshape(-1, GATE_COUNT * parts[0].shape[2])

    def _constant(self, like: Node, name: str, key: Any, make: Any) -> str:
        """The name of a constant. Cells on one device share equal constants."""
        key = name, like.device, like.attrs.get("_class"), key
        if key not in self._constants:
            self._constants[key] = placed_like(constant(self._view.new_name(f"{like.name}/{name}"), make()), like)
        return self._constants[key].name


def _gate_sum(view: GraphView, split: Node) -> Sum | None:
    """The input of a Split into four, if it is one or two products with constants plus vectors."""
    entry = view.resolve(split)
    axis = view.array(split.inputs[0]) if entry is not None else None
    if entry is None or axis is None or axis.tolist() not in (1, -1) or entry.attrs["num_split"] != GATE_COUNT:
        return None
    if entry.attrs["T"] not in TYPES or not view.is_free(split):
        return None
    products: list[Node] = []
    biases: list[Array] = []
    for consumer, source in _summands(view, split):
        node, value = view.graph[source.node], view.array(source)
        if value is not None:
            biases.append(value)
        elif node.op == "MatMul" and _is_inner(view, node, consumer) and _is_untransposed(view, node):
            products.append(node)
        else:
            return None
    widths = {weights.shape[1] for product in products if (weights := view.constant(product.inputs[1])) is not None}
    if len(products) not in (1, 2) or len(widths) != 1 or (width := widths.pop()) % GATE_COUNT or not width:
        return None
    zeros = [value for value in biases if value.ndim == 2 and value.shape[0] > 1 and not value.any()]
    vectors = [value for value in biases if _is_row(value, width)]
    if len(zeros) + len(vectors) < len(biases):
        return None
    bias = sum((value.reshape(-1).astype(np.float64) for value in vectors), np.zeros(width))
    return Sum(products, np.asarray(bias), frozenset(value.shape[0] for value in zeros))


def _is_row(values: Array, width: int) -> bool:
    """True for one value for each column of a matrix, or one for all."""
    return values.ndim <= 2 and values.size in (1, width) and values.shape[-1:] in ((), (values.size,))


def _summands(view: GraphView, split: Node) -> Iterator[tuple[Node, Input]]:
    """Yield the summands of a Split's input from left to right, each with its consumer."""
    stack = [(split, split.inputs[1])]
    while stack:
        consumer, source = stack.pop()
        node = view.graph[source.node]
        if node.op in (*SUMS, "BiasAdd") and _is_inner(view, node, consumer):
            stack += [(node, summand_input) for summand_input in node.inputs[::-1]]
        else:
            yield consumer, source


def _is_inner(view: GraphView, node: Node, consumer: Node) -> bool:
    """True where `consumer` is the only consumer of `node`, and `node` may be removed with it."""
    return (view.is_free(node) and view.only_consumer(node) is consumer and view.resolve(node) is not None
            and asks_for_same_place(node, consumer))


def _is_untransposed(view: GraphView, product: Node) -> bool:
    entry, weights = view.resolve(product), view.constant(product.inputs[1])
    return (entry is not None and not entry.attrs["transpose_a"] and not entry.attrs["transpose_b"]
            and weights is not None and len(weights.shape) == 2)


def _operands(view: GraphView, total: Sum) -> list[Operand]:
    """The operands of the products. One product of a concatenation [x, h] has two."""
    if len(total.products) == 2:
        return [_operand(view, product_node) for product_node in total.products]
    product = total.products[0]
    both, joint_operand = view.graph[product.inputs[0].node], _operand(view, product)
    axis = view.array(both.inputs[2]) if both.op == "ConcatV2" and len(both.inputs) == 3 else None
    shape = view.shape(both.inputs[0]) if axis is not None and _is_inner(view, both, product) else None
    if axis is None or axis.tolist() not in (1, -1) or shape is None or len(shape) != 2 or shape[1] is None:
        return [joint_operand]
    parts = slice(0, shape[1]), slice(shape[1], joint_operand.rows.stop)
    return [Operand(source, joint_operand.weights, rows) for source, rows in zip(both.inputs, parts, strict=False)]


def _operand(view: GraphView, product: Node) -> Operand:
    weights = view.constant(product.inputs[1])
    assert weights is not None
    return Operand(product.inputs[0], product.inputs[1], slice(0, weights.shape[0]))


def _depth_of_operand(operand: Operand) -> int:
    return int(operand.rows.stop - operand.rows.start)


def _lstm_step(view: GraphView, split: Node, cells: int) -> Step | None:
    """The LSTM step that consumes the four outputs of a Split, None where the ops differ."""
    activations = [_gate_activation(view, split, number) for number in range(GATE_COUNT)]
    gates = {gate[0].name: (number, gate) for number, gate in enumerate(activations) if gate is not None}
    candidates = [node for _, (node, _) in gates.values() if node.op == "Tanh"]
    if len(gates) != GATE_COUNT or len(candidates) != 1:
        return None
    product = _candidate_and_gate(view, candidates[0], gates)
    if product is None:
        return None
    gated_candidate, input_gate = product
    state = view.only_consumer(gated_candidate)
    other = None if state is None else _other_input(state, gated_candidate)
    carried = view.graph[other.node] if other is not None and other.index == 0 else None
    if state is None or carried is None or state.op not in SUMS or not _may_end_step(view, state, gated_candidate):
        return None
    is_forgotten = carried.op == "Mul" and _is_inner(view, carried, state)
    forget_gate = _gate_factor(view, carried, gates) if is_forgotten else None
    before = None if forget_gate is None else _other_input(carried, forget_gate)
    outgoing = _hidden_and_gate(view, state, gates)
    if view.is_kept(state) or forget_gate is None or before is None or outgoing is None:
        return None
    hidden, output = outgoing
    if view.shape(Input(hidden.name)) is None:  # the node fails, and the error must name it
        return None
    order = [gates[node.name] for node in (input_gate, candidates[0], forget_gate, output)]
    shifts, entry = tuple(gate[1] for _, gate in order), view.resolve(split)
    if entry is None or len({number for number, _ in order}) != GATE_COUNT:
        return None
    if not all(shift is None or _is_row(shift, cells) for shift in shifts):
        return None
    return Step(state, hidden, before, tuple(number for number, _ in order), shifts, entry.attrs["T"])


Gates = dict[str, tuple[int, tuple[Node, Array | None]]]  # by activation name: index, activation, added constant


def _gate_activation(view: GraphView, split: Node, number: int) -> tuple[Node, Array | None] | None:
    """The activation that is the only consumer of one output of the Split, and the constant added in front of it."""
    consumers = [consumer for consumer, input_index in view.consumers[split.name]
                 if consumer.inputs[input_index].index == number]
    if len(consumers) != 1:
        return None
    node: Node | None = consumers[0]
    assert node is not None
    added, previous = scaling_step(view, node), split
    shift = None
    if added is not None and added.factor is None and view.is_free(node) and asks_for_same_place(node, split):
        shift, previous, node = added.shift, node, view.only_consumer(node)
    is_function = node is not None and node.op in ("Sigmoid", "Tanh") and view.is_free(node)
    return (node, shift) if node is not None and is_function and asks_for_same_place(node, previous) else None


def _candidate_and_gate(view: GraphView, candidate: Node, gates: Gates) -> tuple[Node, Node] | None:
    """The product of the candidate with a gate, and the gate."""
    node = view.only_consumer(candidate)
    gate = _gate_factor(view, node, gates, but=candidate) if node is not None and node.op == "Mul" else None
    return (node, gate) if node is not None and gate is not None and view.is_free(node) else None


def _gate_factor(view: GraphView, product: Node, gates: Gates, but: Node | None = None) -> Node | None:
    """The operand of a product that is a sigmoid gate with no other consumer."""
    for source in product.inputs:
        gate_entry = gates.get(source.node)
        gate = None if gate_entry is None else gate_entry[1][0]
        if gate is not None and gate is not but and gate.op == "Sigmoid" and _is_inner(view, gate, product):
            return gate
    return None


def _other_input(node: Node, one: Node) -> Input | None:
    """The other input of a binary node that consumes the first output of `one`."""
    if node.inputs[0] == Input(one.name):
        return node.inputs[1]
    return node.inputs[0] if node.inputs[1] == Input(one.name) else None


def _may_end_step(view: GraphView, node: Node, before: Node) -> bool:
    """True where the node can be the end of a step: it may be kept, but no control edge orders it."""
    return not node.controls and view.resolve(node) is not None and asks_for_same_place(node, before)


def _hidden_and_gate(view: GraphView, state: Node, gates: Gates) -> tuple[Node, Node] | None:
    """The product h of a gate and the Tanh of the state, and the gate."""
    for squashed, _ in view.consumers[state.name]:
        if squashed.op != "Tanh" or not view.is_free(squashed) or not asks_for_same_place(squashed, state):
            continue
        node = view.only_consumer(squashed)
        gate = _gate_factor(view, node, gates) if node is not None and node.op == "Mul" else None
        if node is not None and gate is not None and _other_input(node, gate) == Input(squashed.name):
            return (node, gate) if _may_end_step(view, node, state) else None
    return None
