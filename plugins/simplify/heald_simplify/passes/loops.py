"""Pass `loops`: a loop over the steps of a sequence is fused into one op, where its body is a recurrent cell.

    While(0, steps, 0, TensorListReserve, h, c, TensorListFromTensor(x), w, u, b)  ->  _LSTMSequence(steps, x, h, ...)

A loop over several cells, each of which takes the output of the one before, is fused into an op for each.

The body is compared by the function that it computes (`recurrence`). A loop that differs in anything stays as it is.
"""

# A match is right under these conditions, which are checked:
#
#   - All counters start at 0, and the condition compares counters with numbers of steps. So all counters are equal, and
#     the smallest of these numbers is the op's `length`. An input list that is too short is an error in both forms.
#   - The rows of x, of the states and of the mask are equal in number, or are made equal as the nodes of a body would
#     broadcast them: a body of [x, h] only the others. It fails in its second step where c has more rows than h, and
#     the op fails in its first. Constants and zeros in the body have as many rows as one of them. Lengths of rows need
#     no check: Select takes one for each row, and so does the op; it takes states with all rows only. Several cells in
#     one loop must be sure to have equal rows: each would have rows of its own behind the loop.
#   - The mask has as many steps as x, or the loop runs all steps of x: then a short mask is an error in both forms.
#   - The output list or array has an element for each step of x, or just one, which each step overwrites.
#   - Only its elements and the last states have consumers outside.
#   - No node of the body has an effect but the reads and writes of these arrays (`recurrence.series`).

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Function, Graph, Input, Node, PassContext, dtypes

from ..counted_loops import LOOPS, trace_identities
from ..graph_view import GraphView
from ..recurrence import block_cell_rules, matrix_rules, series_rules
from ..recurrence.body import BodyEvaluation, Outside, RuleTable
from ..recurrence.body_values import (
    Bound,
    Condition,
    Counter,
    Integers,
    Invariant,
    Matrix,
    OutputList,
    Scalar,
    Value,
    WrittenList,
)
from ..recurrence.cells import cells_of
from ..recurrence.fused_loop import FusedLoop
from ..recurrence.polynomials import Algebra, Block, Source, State, TooLarge
from ..recurrence.recurrent_loop import Loop, LoopVariables, masked_attribute
from ..recurrence.series import Series
from ..symbolic_sizes import SymbolicSizes

RULES = RuleTable(matrix_rules.RULES | series_rules.RULES | block_cell_rules.RULES)
TYPES = (dtypes.float32, dtypes.float64)
MOST_ARGUMENTS = 64  # of a loop


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
                nodes, replacements = FusedLoop(view, loop, loops.series).nodes()
                new_nodes += nodes
                instead |= replacements
    return view.with_replacements(new_nodes, instead)


class _Loops:
    """Finds the recurrent loops of a graph."""

    def __init__(self, view: GraphView) -> None:
        self._view = view
        self._sizes = SymbolicSizes(view)
        self.series = Series(view, self._sizes)

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
        if loop is None or not self.series.fits(loop) or not self._mask_fits(loop):
            return None
        loop = self._align(loop, evaluation)
        return loop if loop is not None and self._outputs_fit(loop) else None

    def _evaluation(
        self, function: Function, node: Node, arguments: Sequence[Value | None], algebra: Algebra
    ) -> BodyEvaluation:
        shapes = {index: self._item_shape(value) for index, value in enumerate(arguments)
                  if isinstance(value, Invariant)}
        types = [self._view.dtype(tensor) for tensor in node.inputs]
        return BodyEvaluation(function, arguments, types, shapes, RULES, self._view.resolve, algebra,
                              Outside(self._weights, self._width_of_zeros, self.series.input_flow))

    def _item_shape(self, value: Invariant) -> tuple[int | None, ...] | None:
        tensor = self.series.source(value.tensor)
        shape = None if tensor is None else self._view.shape(tensor)
        return None if shape is None else shape[1:]

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
        result = trace_identities(body, body.ret.get(body.outputs[index].name))
        if result == Input(name):
            return self._invariant(index, tensor)
        shape, dtype = self._view.shape(tensor), self._view.dtype(tensor)
        if dtype is dtypes.int32 or dtype is dtypes.int64:
            starts_at_zero = shape == () and self._view.is_known_tensor(tensor) and not self._view.value(tensor)
            return Counter(index) if starts_at_zero else None
        if dtype is dtypes.variant:
            return OutputList(index)
        if shape == ():
            return self.series.output(index, tensor)
        if dtype not in TYPES or shape is None or len(shape) != 2 or shape[1] is None:
            return None
        return Matrix(algebra.polynomial(State(index)), shape[1])

    def _invariant(self, index: int, tensor: Input) -> Value:
        dtype = self._view.dtype(tensor)
        if dtype in TYPES:
            is_number = self._view.shape(tensor) == () and self._view.is_known_tensor(tensor)
            return Scalar(float(self._view.value(tensor))) if is_number else Source(tensor)
        if dtype in (dtypes.int32, dtypes.int64) and self._view.is_known_tensor(tensor):
            return Integers(self._view.value(tensor), index)
        return Invariant(index, tensor)

    def _width_of_zeros(self, tensor: Input) -> int | None:
        """The columns of a matrix that is sure to be zeros."""
        node, shape = self._view.graph[tensor.node], self._view.shape(tensor)
        if shape is None or len(shape) != 2 or self._view.is_kept(node):
            return None
        if node.op == "Fill":
            value = self._view.array(node.inputs[1])
            return shape[1] if value is not None and not value.any() else None
        is_zeros = self._view.is_known_tensor(tensor) and not self._view.value(tensor).any()
        return shape[1] if node.op == "ZerosLike" or is_zeros else None

    def _loop(
        self, node: Node, arguments: Sequence[Value | None], results: Sequence[Value | None],
        bounds: Sequence[Bound], algebra: Algebra,
    ) -> Loop | None:
        kinds = LoopVariables(arguments, results)
        if not kinds.are_regular or not all(bound.counter in kinds.counters for bound in bounds):
            return None
        outputs = [result for result in results if isinstance(result, WrittenList)]
        previous = kinds.previous_output(outputs)
        states = kinds.new_states(algebra, previous)
        if states is None or len(outputs) > 1:
            return None
        cells = cells_of(algebra, states)
        if cells is None or (previous is not None and self._width_of_zeros(node.inputs[previous]) is None):
            return None
        masks, item = kinds.masks(cells), cells[0].item
        selection = masked_attribute(outputs[0] if outputs else None, cells[-1], states, masks, previous)
        dtype = self._view.dtype(node.inputs[cells[-1].states[0]])
        if selection is None or len({*masks}) > 1 or dtype is None or item is None:
            return None
        return Loop(node, cells, item, dtype, tuple(dict.fromkeys(bound.steps for bound in bounds)),
                    masks[0] if masks else None, selection, previous, outputs[0] if outputs else None,
                    frozenset(kinds.invariants), frozenset(kinds.counters))

    def _mask_fits(self, loop: Loop) -> bool:
        """True where the mask has the rank of one, and a loop that runs into its end fails as the op does."""
        if loop.mask is None:
            return True
        tensor = loop.node.inputs[loop.mask.index]
        if loop.mask.is_of_lengths:
            return len(self._view.shape(tensor) or ()) == 1
        mask = self.series.source(tensor)
        shape = None if mask is None else self._view.shape(mask)
        if shape is None or len(shape) != 3 or shape[2] != 1:
            return False
        return self._is_mask_as_long(loop) or self.series.runs_all_steps(loop)

    def _is_mask_as_long(self, loop: Loop) -> bool:
        if loop.mask is None or loop.mask.is_of_lengths:
            return True
        mask, x = (self.series.source(loop.node.inputs[index]) for index in (loop.mask.index, loop.item))
        return mask is not None and x is not None and self._sizes.of(mask, 0) == self._sizes.of(x, 0)

    def _align(self, loop: Loop, evaluation: BodyEvaluation) -> Loop | None:
        """The loop with its facts about rows and steps. None where an element of the body may have rows of its own."""
        view, inputs = self._view, loop.node.inputs
        x = self.series.source(inputs[loop.item])
        if x is None or len(view.shape(x) or ()) != 3 or view.dtype(x) is not loop.dtype:
            return None
        rows = {self._sizes.of(x, 1), *(self._sizes.of(inputs[state], 0) for state in loop.states)}
        if loop.mask is not None and not loop.mask.is_of_lengths:
            rows.add(self.series.rows(inputs[loop.mask.index]))
        others = [*evaluation.zeros, *([] if loop.previous is None else [inputs[loop.previous]])]
        row_counts = frozenset(evaluation.row_counts).union(*(self._sizes.broadcast_of(tensor, 0) for tensor in others))
        if None in rows or not row_counts <= rows or sum(isinstance(size, int) for size in rows) > 1:
            return None
        if (evaluation.needs_single_row and rows != {1}) or (len(loop.cells) > 1 < len(rows)):
            return None
        return loop._replace(is_aligned=len(rows) == 1, broadcasts_rows=not evaluation.needs_equal_rows,
                             is_mask_as_long=self._is_mask_as_long(loop))

    def _outputs_fit(self, loop: Loop) -> bool:
        """True where the consumers of the loop read its list, its states or invariants."""
        useful = {*loop.states, *loop.invariants, *loop.counters}
        if loop.previous is not None:
            useful.add(loop.previous)
        for consumer, number in self._view.consumers[loop.node.name]:
            index = consumer.inputs[number].index
            is_of_list = loop.written is not None and index == loop.written.index
            if is_of_list and not (self.series.is_stack(consumer, loop) or self.series.is_size(consumer)
                                   or self._is_idle(consumer)):
                return False
            if not is_of_list and index not in useful:
                return False
        return True

    def _is_idle(self, node: Node) -> bool:
        """True for a copy without consumers, for which other nodes may wait."""
        return node.op == "Identity" and not self._view.consumers[node.name] and not self._view.is_kept(node)

