"""Pass `loops`: a loop over the steps of a sequence is fused into one op, where its body is a recurrent cell.

    While(0, steps, 0, TensorListReserve, h, c, TensorListFromTensor(x), w, u, b)  ->  _LSTMSequence(steps, x, h, ...)

The body is compared by the function that it computes (`recurrence`). A loop that differs in anything stays as it is.
"""

# A match is right under these conditions, which are checked:
#
#   - All counters start at 0, and the condition compares counters with numbers of steps. So all counters are equal, and
#     the smallest of these numbers is the op's `length`. An input list that is too short is an error in both forms.
#   - The rows of x, of the states and of the mask are equal in number: the nodes of a body would broadcast one of them.
#   - The output list has an element for each step of x, or just one, which each step overwrites.
#   - Only the list's elements and the last states have consumers outside.
#   - No node of the body has an effect.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType, Function, Graph, Input, Node, PassContext, dtypes, placed_like

from ..graph_view import GraphView
from ..recurrence.body import BodyEvaluation, Outside, fits_shape
from ..recurrence.body_values import (
    Bound,
    Condition,
    Counter,
    Integers,
    Invariant,
    Mask,
    Matrix,
    NextCount,
    OutputList,
    Scalar,
    Selected,
    Value,
    WrittenList,
)
from ..recurrence.cells import Cell, cell_of
from ..recurrence.polynomials import Algebra, Block, Polynomial, Source, State, TooLarge
from ..recurrence.weights import WeightWriter
from ..symbolic_sizes import SymbolicSizes

LOOPS = ("While", "StatelessWhile")
TYPES = (dtypes.float32, dtypes.float64)
MOST_ARGUMENTS = 64  # of a loop
LAST_OUTPUT, FIRST_STATE = 1, 2  # outputs of the ops


class Loop(NamedTuple):
    """A loop whose body is a cell. `bounds`: the numbers of steps, the smallest of which counts."""

    node: Node
    cell: Cell
    dtype: DType
    bounds: tuple[int | Input, ...]
    mask: Mask | None
    masked: str
    previous: int | None  # the variable of the last output
    written: WrittenList | None
    invariants: frozenset[int]
    counters: frozenset[int]


def fuse_recurrent_loops(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op in LOOPS for node in graph):
        return graph
    view = GraphView(graph, context)
    loops = _Loops(view)
    new_nodes: list[Node] = []
    instead: dict[Input, Input] = {}
    for node in graph:
        if node.op in LOOPS and not view.is_kept(node):
            loop = loops.recurrent_loop(node)
            if loop is not None:
                nodes, replacements = _FusedLoop(view, loop).nodes()
                new_nodes += nodes
                instead |= replacements
    return _with_replacements(view, new_nodes, instead)


def _with_replacements(view: GraphView, new_nodes: list[Node], instead: dict[Input, Input]) -> Graph:
    def rewire(node: Node) -> Node:
        return node.replace(inputs=[_final(source, instead) for source in node.inputs])

    new_names = {node.name for node in new_nodes}
    changed = [rewire(node) for node in view.graph
               if node.name not in new_names and any(source in instead for source in node.inputs)]
    return view.with_edits([*map(rewire, new_nodes), *changed])


def _final(source: Input, instead: Mapping[Input, Input]) -> Input:
    while source in instead:
        source = instead[source]
    return source


class _Loops:
    """Finds the recurrent loops of a graph."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._sizes = SymbolicSizes(view)

    def recurrent_loop(self, node: Node) -> Loop | None:
        entry = self._view.resolve(node)
        if entry is None or len(node.inputs) > MOST_ARGUMENTS:
            return None
        functions = [self._view.graph.functions.get(entry.attrs[name].name) for name in ("cond", "body")]
        cond, body = functions
        count = len(node.inputs)
        if cond is None or body is None or len(cond.outputs) != 1:
            return None
        if not len(cond.inputs) == len(body.inputs) == len(body.outputs) == count:
            return None
        try:
            return self._match_functions(node, cond, body)
        except TooLarge:
            return None

    def _match_functions(self, node: Node, cond: Function, body: Function) -> Loop | None:
        algebra = Algebra()
        arguments = [self._argument(node, body, index, algebra) for index in range(len(node.inputs))]
        evaluation = self._evaluation(body, node, arguments, algebra)
        results = evaluation.results()
        condition = self._evaluation(cond, node, arguments, algebra).results()
        bounds = condition[0] if condition is not None else None
        if results is None or not isinstance(bounds, Condition):
            return None
        loop = self._loop(node, arguments, results, bounds.bounds, algebra)
        single_row = not evaluation.needs_single_row
        if loop is None or not self._rows_fit(loop, is_any=single_row) or not self._list_fits(loop):
            return None
        return loop if self._outputs_fit(loop) else None

    def _evaluation(
        self, function: Function, node: Node, arguments: Sequence[Value | None], algebra: Algebra
    ) -> BodyEvaluation:
        shapes = {index: self._item_shape(value) for index, value in enumerate(arguments)
                  if isinstance(value, Invariant)}
        types = [self._view.dtype(tensor) for tensor in node.inputs]
        return BodyEvaluation(function, arguments, types, shapes, self._view.resolve, algebra,
                              Outside(self._weights, self._is_zeros))

    def _item_shape(self, value: Invariant) -> tuple[int | None, ...] | None:
        tensor = self._source_of_list(value.tensor)
        shape = None if tensor is None else self._view.shape(tensor)
        return None if shape is None else shape[1:]

    def _source_of_list(self, handle: Input) -> Input | None:
        """The tensor whose slices are the elements of an input list."""
        node = self._view.graph[handle.node]
        if node.op != "TensorListFromTensor" or self._view.resolve(node) is None or self._view.is_kept(node):
            return None
        shape = self._view.shape(node.inputs[0])
        return node.inputs[0] if shape and self._states_shape(node.inputs[1], shape[1:]) else None

    def _states_shape(self, element_shape: Input, shape: tuple[int | None, ...]) -> bool:
        """True where the element shape of a list is known, and sure to be that of tensors of this shape."""
        return self._view.is_known_tensor(element_shape) and fits_shape(self._view.value(element_shape), shape)

    def _weights(self, source: Source) -> Block | None:
        shape = self._shape_of_source(source)
        if shape is None or len(shape) not in (1, 2) or None in shape:
            return None
        sizes = tuple(size for size in shape if size is not None)
        return Block(source, sizes, (0, sizes[0]) if len(sizes) == 2 else None, (0, sizes[-1]))

    def _shape_of_source(self, source: Source) -> tuple[int | None, ...] | None:
        view = self._view
        return view.shape_of_variable(source.tensor) if source.is_variable else view.shape(source.tensor)

    def _argument(self, node: Node, body: Function, index: int, algebra: Algebra) -> Value | None:
        """The value of a loop's variable at the begin of any step."""
        tensor, name = node.inputs[index], body.inputs[index].name
        result = _trace_identities(body, body.ret.get(body.outputs[index].name))
        if result == Input(name):
            return self._invariant(index, tensor)
        shape, dtype = self._view.shape(tensor), self._view.dtype(tensor)
        if dtype is dtypes.int32 or dtype is dtypes.int64:
            starts_at_zero = shape == () and self._view.is_known_tensor(tensor) and not self._view.value(tensor)
            return Counter(index) if starts_at_zero else None
        if dtype is dtypes.variant:
            return OutputList(index)
        if dtype not in TYPES or shape is None or len(shape) != 2 or shape[1] is None:
            return None
        return Matrix(algebra.polynomial(State(index)), shape[1])

    def _invariant(self, index: int, tensor: Input) -> Value:
        dtype = self._view.dtype(tensor)
        if dtype in TYPES:
            is_number = self._view.shape(tensor) == () and self._view.is_known_tensor(tensor)
            return Scalar(float(self._view.value(tensor))) if is_number else Source(tensor)
        if dtype in (dtypes.int32, dtypes.int64) and self._view.is_known_tensor(tensor):
            return Integers(self._view.value(tensor))
        return Invariant(index, tensor)

    def _is_zeros(self, tensor: Input) -> bool:
        """True for a matrix that is sure to be zeros."""
        node, shape = self._view.graph[tensor.node], self._view.shape(tensor)
        if shape is None or len(shape) != 2 or self._view.is_kept(node):
            return False
        if node.op == "Fill":
            value = self._view.array(node.inputs[1])
            return value is not None and not value.any()
        return node.op == "ZerosLike" or (self._view.is_known_tensor(tensor) and not self._view.value(tensor).any())

    def _loop(
        self, node: Node, arguments: Sequence[Value | None], results: Sequence[Value | None],
        bounds: Sequence[Bound], algebra: Algebra,
    ) -> Loop | None:
        kinds = _Variables(arguments, results)
        if not kinds.are_regular or not all(bound.counter in kinds.counters for bound in bounds):
            return None
        outputs = [result for result in results if isinstance(result, WrittenList)]
        previous = kinds.previous_output(outputs)
        states = kinds.new_states(algebra, previous)
        if states is None or len(outputs) > 1:
            return None
        cell = cell_of(algebra, states)
        if cell is None or (previous is not None and not self._is_zeros(node.inputs[previous])):
            return None
        masks = kinds.masks(cell)
        selection = _selection(outputs[0] if outputs else None, cell, states, masks, previous)
        dtype = self._view.dtype(node.inputs[cell.states[0]])
        if selection is None or len({*masks}) > 1 or dtype is None:
            return None
        return Loop(node, cell, dtype, tuple(dict.fromkeys(bound.steps for bound in bounds)),
                    masks[0] if masks else None, selection, previous, outputs[0] if outputs else None,
                    frozenset(kinds.invariants), frozenset(kinds.counters))

    def _rows_fit(self, loop: Loop, *, is_any: bool) -> bool:
        """True where x, the states and the mask are sure to have as many rows, and one row where the body needs that.
        The mask has as many steps as x."""
        view, inputs = self._view, loop.node.inputs
        x = self._source_of_list(inputs[loop.cell.item])
        shape = None if x is None else view.shape(x)
        if x is None or shape is None or len(shape) != 3 or view.dtype(x) is not loop.dtype:
            return False
        rows = {self._sizes.of(x, 1), *(self._sizes.of(inputs[state], 0) for state in loop.cell.states)}
        if loop.mask is not None:
            mask = self._source_of_list(inputs[loop.mask.index])
            mask_shape = None if mask is None else view.shape(mask)
            if mask is None or mask_shape is None or len(mask_shape) != 3 or mask_shape[2] != 1:
                return False
            rows.add(self._sizes.of(mask, 1))
            if self._sizes.of(mask, 0) != self._sizes.of(x, 0):
                return False
        return len(rows) == 1 and None not in rows and (is_any or rows == {1})

    def _list_fits(self, loop: Loop) -> bool:
        """True where the output list has an element for each step of x, or the one that each step overwrites."""
        if loop.written is None:
            return True
        view = self._view
        reserve = view.graph[loop.node.inputs[loop.written.index].node]
        entry = view.resolve(reserve) if reserve.op == "TensorListReserve" and not view.is_kept(reserve) else None
        if entry is None or entry.attrs["element_dtype"] is not loop.dtype:
            return False
        if not self._states_shape(reserve.inputs[0], self._shape_of_output(loop)):
            return False
        count = reserve.inputs[1]
        size = int(view.value(count)) if view.is_known_tensor(count) else self._sizes.number(count)
        if not loop.written.at_step:
            return size == 1
        x = self._source_of_list(loop.node.inputs[loop.cell.item])
        return x is not None and size is not None and size == self._sizes.of(x, 0)

    def _outputs_fit(self, loop: Loop) -> bool:
        """True where the consumers of the loop read its list, its states or invariants."""
        useful = {*loop.cell.states, *loop.invariants, *loop.counters}
        if loop.previous is not None:
            useful.add(loop.previous)
        for consumer, number in self._view.consumers[loop.node.name]:
            index = consumer.inputs[number].index
            is_of_list = loop.written is not None and index == loop.written.index
            if is_of_list and not self._is_stack(consumer, loop) and not self._is_idle(consumer):
                return False
            if not is_of_list and index not in useful:
                return False
        return True

    def _shape_of_output(self, loop: Loop) -> tuple[int | None, ...]:
        return self._view.shape(loop.node.inputs[loop.cell.states[0]]) or ()

    def _is_idle(self, node: Node) -> bool:
        """True for a copy without consumers, for which other nodes may wait."""
        return node.op == "Identity" and not self._view.consumers[node.name] and not self._view.is_kept(node)

    def _is_stack(self, node: Node, loop: Loop) -> bool:
        entry = self._view.resolve(node) if node.op == "TensorListStack" else None
        if entry is None or entry.attrs["element_dtype"] is not loop.dtype:
            return False
        if not self._states_shape(node.inputs[1], self._shape_of_output(loop)):
            return False
        number, size = entry.attrs["num_elements"], 1
        if loop.written is not None and loop.written.at_step:
            x = self._source_of_list(loop.node.inputs[loop.cell.item])
            shape = None if x is None else self._view.shape(x)
            size = -1 if shape is None or shape[0] is None else shape[0]
        return number in (-1, size)


class _Variables:
    """The variables of a loop by kind, from their values before and after a step."""

    def __init__(self, arguments: Sequence[Value | None], results: Sequence[Value | None]) -> None:
        self.counters: set[int] = set()
        self.invariants: set[int] = set()
        self._states: dict[int, Matrix | Selected] = {}
        self.are_regular = True
        for index, (argument, result) in enumerate(zip(arguments, results, strict=True)):
            if isinstance(argument, Counter) and result == NextCount(index):
                self.counters.add(index)
            elif isinstance(argument, OutputList):
                self.are_regular &= isinstance(result, WrittenList) and result.index == index
            elif isinstance(argument, Matrix):
                self.are_regular &= isinstance(result, Matrix | Selected)
                if isinstance(result, Matrix | Selected):
                    self._states[index] = result
            elif argument is None or isinstance(argument, Counter):
                self.are_regular = False
            else:
                self.invariants.add(index)
        self._own = {index: value for index, value in enumerate(arguments) if isinstance(value, Matrix)}

    def previous_output(self, outputs: Sequence[WrittenList]) -> int | None:
        """The variable that is the masked output of the step before. It differs from h in its first value."""
        element = outputs[0].element if outputs else None
        if not isinstance(element, Selected):
            return None
        return next((index for index, state in self._own.items()
                     if element.old in (None, state) and self._states.get(index) == element
                     and self._has_twin(index, element)), None)

    def _has_twin(self, index: int, element: Selected) -> bool:
        """True where another variable has the same new value: then this one is the output, and that one is h."""
        return any(isinstance(other, Selected) and other.new == element.new
                   for position, other in self._states.items() if position != index)

    def new_states(self, algebra: Algebra, previous: int | None) -> dict[int, Polynomial] | None:
        """The new states before the mask. None where a masked state is not its own old value."""
        new: dict[int, Polynomial] = {}
        for index, value in self._states.items():
            if index == previous:
                continue
            matrix = value.new if isinstance(value, Selected) else value
            if isinstance(value, Selected) and value.old != self._own[index]:
                return None
            if matrix.is_row or matrix.width != self._own[index].width:
                return None
            new[index] = matrix.value
        return new

    def masks(self, cell: Cell) -> list[Mask]:
        """The masks of the states. They are all equal, or the loop is none of a layer."""
        values = [self._states[index] for index in cell.states]
        masks = [value.mask for value in values if isinstance(value, Selected)]
        return masks if len(masks) in (0, len(values)) else [*masks, Mask(-1, 1)]


def _selection(
    written: WrittenList | None, cell: Cell, states: Mapping[int, Polynomial], masks: Sequence[Mask],
    previous: int | None,
) -> str | None:
    """The attribute `masked` of the op. None where the list's element is not the output h of the cell."""
    if written is None:
        return "previous"
    element = written.element
    new = element.new if isinstance(element, Selected) else element
    if new.value != states[cell.states[0]] or new.is_row or isinstance(element, Selected) != bool(masks):
        return None
    if not isinstance(element, Selected):
        return "previous"
    if element.mask != masks[0]:
        return None
    if element.old is None:
        return "zeros"
    return None if previous is None else "previous"


class _FusedLoop:
    """The op of a loop, with the loop's name, and the replacements of the loop's outputs."""

    def __init__(self, view: GraphView, loop: Loop) -> None:
        self._view, self._loop = view, loop
        self._writer = WeightWriter(view, loop.node, loop.dtype)
        self._name = view.new_name(f"{loop.node.name}/sequence")

    def nodes(self) -> tuple[list[Node], dict[Input, Input]]:
        loop, cell, inputs = self._loop, self._loop.cell, self._loop.node.inputs
        writer = self._writer
        weights = [writer.product_weights("w", [gate.w for gate in cell.gates]),
                   writer.product_weights("u", [gate.u for gate in cell.gates]), writer.biases(cell)]
        if cell.reset_after is not None:
            weights.append(writer.bias(cell.candidate_biases, cell.candidate_shift, cell.gates[0].u.width))
        masks = [] if loop.mask is None else [writer.node(
            "mask", "Squeeze", self._tensor(loop.mask.index), T=dtypes.bool_, squeeze_dims=[2])]
        attrs: dict[str, Any] = {"T": loop.dtype, "N": len(masks), "masked": loop.masked,
                                 "activation": cell.activation}
        if cell.recurrent_activation is not None:
            attrs["recurrent_activation"] = cell.recurrent_activation
        if cell.reset_after is not None:
            attrs["reset_after"] = cell.reset_after
        states = [inputs[state] for state in cell.states]
        self._steps = self._length()
        op = Node(self._name, cell.op, [self._steps, self._tensor(cell.item), *states, *weights, *masks],
                  controls=loop.node.controls, attrs=attrs)
        nodes = [op]
        if not self._view.is_replaceable(loop.node):
            nodes.append(self._waiting_node(loop.node))
        replacements: dict[Input, Input] = {}
        for nodes_of_stack, instead in map(self._stack, self._stack_nodes()):
            nodes += nodes_of_stack
            replacements |= instead
        replacements |= self._results()
        return [*(placed_like(node, loop.node) for node in nodes), *writer.nodes], replacements

    def _tensor(self, index: int) -> Input:
        return self._view.graph[self._loop.node.inputs[index].node].inputs[0]

    def _length(self) -> Input:
        """The smallest number of steps."""
        writer = self._writer
        numbers = [bound for bound in self._loop.bounds if isinstance(bound, int)]
        tensors = [self._as_int32(bound) for bound in self._loop.bounds if not isinstance(bound, int)]
        if numbers:
            tensors.append(writer.constant("length", min(max(min(numbers), 0), np.iinfo(np.int32).max)))
        length = tensors[0]
        for other in tensors[1:]:
            length = writer.node("length", "Minimum", length, other, T=dtypes.int32)
        return length

    def _count(self, counter: Input) -> Input:
        """A counter behind the loop."""
        writer, dtype = self._writer, self._view.dtype(counter)
        count = writer.node("count", "Maximum", self._steps, writer.constant("zero", 0), T=dtypes.int32)
        return count if dtype is dtypes.int32 else writer.node("count", "Cast", count, SrcT=dtypes.int32, DstT=dtype)

    def _as_int32(self, tensor: Input) -> Input:
        dtype = self._view.dtype(tensor)
        return tensor if dtype is dtypes.int32 else self._writer.node("length", "Cast", tensor, SrcT=dtype,
                                                                       DstT=dtypes.int32)

    def _results(self) -> dict[Input, Input]:
        """The replacements of the loop's variables."""
        loop, name = self._loop, self._loop.node.name
        results = {Input(name, None, index): loop.node.inputs[index] for index in loop.invariants}
        results |= {Input(name, None, state): Input(self._name, None, FIRST_STATE + number)
                    for number, state in enumerate(loop.cell.states)}
        for index in loop.counters:
            if any(consumer.inputs[number].index == index for consumer, number in self._view.consumers[name]):
                results[Input(name, None, index)] = self._count(loop.node.inputs[index])
        if loop.previous is not None:
            results[Input(name, None, loop.previous)] = self._last_output
        return results

    def _waiting_node(self, node: Node) -> Node:
        """A node in the place of `node` for control edges. The op has no effect: only reads of variables come first."""
        return Node(node.name, "NoOp", controls=[*self._writer.reads(), *self._loop.node.controls, *node.controls])

    @property
    def _last_output(self) -> Input:
        """The output of the last step: h, where no step is masked and one at least runs."""
        is_state = self._loop.mask is None and all(isinstance(steps, int) and steps > 0 for steps in self._loop.bounds)
        return Input(self._name, None, FIRST_STATE if is_state else LAST_OUTPUT)

    def _stack_nodes(self) -> list[Node]:
        """The nodes that make a tensor of the output list."""
        loop = self._loop
        return [consumer for consumer, number in self._view.consumers[loop.node.name]
                if loop.written is not None and consumer.inputs[number].index == loop.written.index]

    def _stack(self, stack: Node) -> tuple[list[Node], dict[Input, Input]]:
        """The tensor of the output list, instead of a stack of its elements. An idle copy only waits."""
        loop, writer = self._loop, self._writer
        assert loop.written is not None
        if stack.op == "Identity":
            return [self._waiting_node(stack)], {}
        tensor = Input(self._name)
        if not loop.written.at_step:
            tensor = writer.node("last", "ExpandDims", self._last_output,
                                 writer.constant("last/axis", 0), T=loop.dtype, Tdim=dtypes.int32)
        if self._view.is_free(stack):
            return [], {Input(stack.name): tensor}
        return [Node(stack.name, "Identity", [tensor], controls=stack.controls, attrs={"T": loop.dtype})], {}


def _trace_identities(function: Function, tensor: Input | None) -> Input | None:
    """A tensor behind the Identity nodes of a function."""
    for _ in range(len(function.nodes) + 1):
        node = None if tensor is None else function.nodes.get(tensor.node)
        if node is None or node.op != "Identity" or not node.inputs:
            return tensor
        tensor = node.inputs[0]
    return None

