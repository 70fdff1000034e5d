"""Pass `maps`: a loop that computes each row of a list from the same row of other lists computes all rows at once.

    While(0, n, Reserve(n), FromTensor(x)) that writes f(list[i]) to out[i]  ->  FromTensor(f of all rows of x)

`tf.map_fn` writes such loops. The nodes of the body become nodes of the graph, under the names that they have in the
body.
"""

# A loop may go under these conditions, which are checked:
#
#   - It counts from 0 to n, and n is the number of rows of every list that it reads or writes.
#   - Each variable is a counter, is never changed, or is a list whose element i is written in turn i, and is not read.
#   - The written values depend on rows, counters and unchanged variables alone, by ops that have a row rule. Such ops
#     have no effects and never fail, so their order among the turns does not matter. One node of the body may be
#     fallible: the loop fails if any of its turns does, and no other node could have failed before.
#   - All shapes of one row are known, and its tensors are small. Rows of many elements gain nothing, and the tensors of
#     all rows would leave the caches.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

import numpy as np
from heald.api import DType, Graph, Input, Node, PassContext, ShapeAttr, constant, dtypes

from ..counted_loops import LOOPS, CountedLoop, argument_index, find_counted_loop, trace_identities
from ..graph_view import GraphView
from ..row_rules import FALLIBLE, Dims, Operand, RowNode, RowWriter, rule_of
from ..symbolic_sizes import Size, SymbolicSizes

LARGEST_ROW = 1 << 14  # elements of a tensor of one row
LARGEST_TENSOR = 1 << 22  # elements of a tensor of all rows


class _NoMap(Exception):
    """The loop stays."""


class _Output(NamedTuple):
    """A written list: its variable, the value that a turn writes, and the node that reserved the list."""

    variable: int
    value: Input
    reserve: Node


def batch_maps(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op in LOOPS for node in graph):
        return graph
    view = GraphView(graph, context)
    new_nodes: list[Node] = []
    instead: dict[Input, Input] = {}
    for node in graph:
        loop = find_counted_loop(view, node)
        if loop is None or loop.start != 0 or not view.is_free(node):
            continue
        try:
            nodes, replacements = _Map(view, context, loop).write_rows()
        except _NoMap:
            continue
        new_nodes += nodes
        instead |= replacements
    return view.with_replacements(new_nodes, instead)


class _Map:
    def __init__(self, view: GraphView, context: PassContext, loop: CountedLoop) -> None:
        self._view = view
        self._context = context
        self._loop = loop
        self._sizes = SymbolicSizes(view)
        self._prefix = f"{loop.node.name}/body/"
        self._rows: dict[str, Input] = {}  # by node of the body, or counter: the tensor of all rows

    def write_rows(self) -> tuple[list[Node], dict[Input, Input]]:
        """The nodes of all rows, and the tensors in the place of the loop's outputs. Raises _NoMap."""
        outputs = [self._output(index) for index in range(len(self._loop.node.inputs))
                   if index not in self._loop.counters | self._loop.invariants]
        order = self._needed_nodes([output.value for output in outputs])
        count = self._common_count(outputs)
        writer = RowWriter(self._view, self._loop.node, count)
        rows = _RowGraph(self._view, self._context, self._loop, self._rows, order, self._prefix)
        values = rows.write(writer, [output.value for output in outputs])
        replacements = self._replacements_of_others(writer)
        for output, value in zip(outputs, values, strict=True):
            replacements |= self._list_replacements(writer, output, value)
        return writer.nodes, replacements

    def _output(self, index: int) -> _Output:
        body, node = self._loop.body, self._loop.node
        result = trace_identities(body, body.ret.get(body.outputs[index].name))
        write = None if result is None else body.nodes.get(result.node)
        reserve = self._view.graph[node.inputs[index].node]
        if write is None or write.op != "TensorListSetItem" or reserve.op != "TensorListReserve":
            raise _NoMap
        handle, position, value = write.inputs
        if argument_index(body, handle) != index or argument_index(body, position) not in self._loop.counters:
            raise _NoMap
        entries = self._view.resolve(write), self._view.resolve(reserve)
        if None in entries or len({entry.attrs["element_dtype"] for entry in entries if entry is not None}) != 1:
            raise _NoMap
        if self._view.is_kept(reserve):
            raise _NoMap
        return _Output(index, value, reserve)

    def _needed_nodes(self, values: list[Input]) -> list[str]:
        """The nodes of the body that the values need, sources first. Rows and counters are found on the way."""
        body = self._loop.body
        order: list[str] = []
        done: set[str] = set()
        stack = [(value.node, False) for value in values]
        while stack:
            name, is_ready = stack.pop()
            if is_ready:
                order.append(name)
            elif name not in done:
                done.add(name)
                stack.append((name, True))
                stack += [(source.node, False) for source in self._sources(name)]
        needed = [name for name in order if name in body.nodes and name not in self._rows]
        if sum(node.op in FALLIBLE for node in body.nodes.values()) > any(body.nodes[name].op in FALLIBLE
                                                                          for name in needed):
            raise _NoMap
        return needed

    def _sources(self, name: str) -> tuple[Input, ...]:
        body, loop = self._loop.body, self._loop
        node = body.nodes.get(name)
        if node is None:
            index = argument_index(body, Input(name))
            if index not in loop.counters | loop.invariants:
                raise _NoMap
            if index in loop.counters:
                self._rows[name] = Input("")  # the numbers of the turns
            return ()
        if node.controls:
            raise _NoMap
        if node.op == "TensorListGetItem":
            self._rows[name] = self._tensor_of_list(node)
            return ()
        return node.inputs

    def _tensor_of_list(self, read: Node) -> Input:
        """The tensor whose row i the node reads in turn i."""
        body, loop, view = self._loop.body, self._loop, self._view
        index = argument_index(body, read.inputs[0])
        if index not in loop.invariants or argument_index(body, read.inputs[1]) not in loop.counters:
            raise _NoMap
        source = view.graph[loop.node.inputs[index].node]
        entries = view.resolve(read), view.resolve(source)
        if source.op != "TensorListFromTensor" or view.is_kept(source) or None in entries:
            raise _NoMap
        if len({entry.attrs["element_dtype"] for entry in entries if entry is not None}) != 1:
            raise _NoMap
        return source.inputs[0]

    def _common_count(self, outputs: list[_Output]) -> int | None:
        """The number of turns and of the rows of all lists, None for an unknown one. Raises _NoMap if they differ."""
        tensors = [tensor for tensor in self._rows.values() if tensor.node]
        sizes: set[Size | None] = {self._sizes.of(tensor, 0) for tensor in tensors}
        sizes.update(self._number(output.reserve.inputs[1]) for output in outputs)
        sizes.update(bound if isinstance(bound, int) else self._number(bound) for bound in self._loop.bounds)
        if not tensors or not outputs or len(sizes) != 1:
            raise _NoMap
        (size,) = sizes
        if size is None or size == 0:
            raise _NoMap
        return size if isinstance(size, int) else None

    def _number(self, tensor: Input) -> Size | None:
        if self._view.is_known_tensor(tensor):
            value = self._view.value(tensor)
            return int(value) if value.shape == () else None
        return self._sizes.number(tensor)

    def _replacements_of_others(self, writer: RowWriter) -> dict[Input, Input]:
        """The tensors in the place of unchanged variables, and of counters that have consumers."""
        loop, name = self._loop, self._loop.node.name
        read = {consumer.inputs[number].index for consumer, number in self._view.consumers[name]}
        replacements = {Input(name, None, index): loop.node.inputs[index] for index in loop.invariants & read}
        if loop.counters & read:
            if writer.count is None:
                raise _NoMap
            end = writer.constant(f"{name}/end", np.array(writer.count, np.int32))
            replacements |= {Input(name, None, index): end for index in loop.counters & read}
        return replacements

    def _list_replacements(self, writer: RowWriter, output: _Output, value: Operand) -> dict[Input, Input]:
        """The list of all rows, and the tensor itself in the place of its stacks."""
        name, view = self._loop.node.name, self._view
        shape = output.reserve.inputs[0]
        if not value.has_rows or not self._fits(shape, value.shape):
            raise _NoMap
        entry = view.resolve(output.reserve)
        assert entry is not None
        listed = writer.node(f"{name}/list", "TensorListFromTensor", [value.tensor, shape],
                             element_dtype=entry.attrs["element_dtype"], shape_type=entry.attrs["shape_type"])
        replacements = {Input(name, None, output.variable): listed}
        for stack in self._stacks(output, value, is_static=_is_static(view.value(shape))):
            replacements[Input(stack.name)] = value.tensor
        return replacements

    def _stacks(self, output: _Output, value: Operand, *, is_static: bool) -> Iterator[Node]:
        """The stacks of a written list that are sure to be its tensor."""
        view = self._view
        size = self._number(output.reserve.inputs[1])
        count = size if isinstance(size, int) else -1
        for consumer, number in view.consumers[self._loop.node.name]:
            entry = view.resolve(consumer) if consumer.op == "TensorListStack" else None
            if entry is None or consumer.inputs[number].index != output.variable or not view.is_free(consumer):
                continue
            shape = consumer.inputs[1]
            is_sure = count > 0 or is_static or (view.is_known_tensor(shape) and _is_static(view.value(shape)))
            if is_sure and entry.attrs["num_elements"] in (-1, count) and self._fits(shape, value.shape):
                yield consumer

    def _fits(self, element_shape: Input, shape: Dims) -> bool:
        """True where the shape of elements is known, and sure to be that of tensors of this shape."""
        if not self._view.is_known_tensor(element_shape):
            return False
        sizes = self._view.value(element_shape)
        if sizes.shape == ():
            return int(sizes) == -1
        return sizes.shape == (len(shape),) and all(size in (-1, length)
                                                    for size, length in zip(sizes.tolist(), shape, strict=True))


def _is_static(element_shape: np.ndarray) -> bool:
    return element_shape.ndim == 1 and bool((element_shape >= 0).all())


class _RowGraph:
    """The needed nodes of a body as a graph of one row, whose shapes and values are inferred.

    `rows`: the tensors of all rows, by the node of the body that reads a row of them. A counter has no tensor yet.
    `order`: the other nodes, sources first.
    """

    def __init__(
        self, view: GraphView, context: PassContext, loop: CountedLoop, rows: Mapping[str, Input], order: list[str],
        prefix: str,
    ) -> None:
        self._view = view
        self._loop = loop
        self._order = order
        self._prefix = prefix
        self._rows = rows
        nodes = [*(self._row_placeholder(name) for name in rows), *self._outer_nodes(),
                 *(self._node(loop.body.nodes[name]) for name in order)]
        self._row_view = GraphView(view.graph.replace(nodes=nodes, without=view.graph.nodes), context)
        self._operands: dict[Input, Operand] = {}

    def _row_placeholder(self, name: str) -> Node:
        tensor = self._rows[name]
        if not tensor.node:
            return self._placeholder(name, dtypes.int32, ())
        shape, dtype = self._view.shape(tensor), self._view.dtype(tensor)
        if not shape or dtype is None or None in shape[1:]:
            raise _NoMap
        return self._placeholder(name, dtype, shape[1:])

    def _placeholder(self, name: str, dtype: DType, shape: tuple[int | None, ...]) -> Node:
        return Node(self._prefix + name, "Placeholder", attrs={"dtype": dtype, "shape": ShapeAttr(shape)})

    def _outer_nodes(self) -> Iterator[Node]:
        """The unchanged variables: as constants where they are known."""
        body, view = self._loop.body, self._view
        needed = {source.node for name in self._order for source in body.nodes[name].inputs}
        for index in self._loop.invariants:
            name, tensor = body.inputs[index].name, self._loop.node.inputs[index]
            if name not in needed:
                continue
            shape, dtype = view.shape(tensor), view.dtype(tensor)
            if shape is None or dtype is None:
                raise _NoMap
            if view.is_known_tensor(tensor):
                yield constant(self._prefix + name, view.value(tensor).copy())
            else:
                yield self._placeholder(name, dtype, shape)

    def _node(self, node: Node) -> Node:
        return Node(self._prefix + node.name, node.op, [self._flat(source) for source in node.inputs],
                    attrs=dict(node.attrs))

    def _flat(self, tensor: Input) -> Input:
        """A tensor of the body as a tensor of the graph of one row."""
        node = self._loop.body.nodes.get(tensor.node)
        if node is None or tensor.node in self._rows:
            return Input(self._prefix + tensor.node)
        entry = self._view.resolve(node)
        names = [] if entry is None else [output.arg for output in entry.output_tensors]
        if tensor.output is not None and tensor.output not in names:
            raise _NoMap
        first = 0 if tensor.output is None else names.index(tensor.output)
        return Input(self._prefix + tensor.node, None, first + tensor.index)

    def write(self, writer: RowWriter, values: list[Input]) -> list[Operand]:
        """Write the nodes of all rows. Return the written values. Raises _NoMap."""
        body = self._loop.body
        for name, tensor in self._rows.items():
            self._add_rows(writer, Input(self._prefix + name), tensor)
        for index in self._loop.invariants:
            argument = Input(self._prefix + body.inputs[index].name)
            if argument.node in self._row_view.graph:
                self._operands[argument] = self._operand(argument, self._loop.node.inputs[index], has_rows=False)
        for name in self._order:
            self._write_node(writer, body.nodes[name])
        return [self._operands[self._flat(value)] for value in values]

    def _add_rows(self, writer: RowWriter, row: Input, tensor: Input) -> None:
        if not tensor.node:
            if writer.count is None:
                raise _NoMap
            tensor = writer.constant(row.node, np.arange(writer.count, dtype=np.int32))
        self._operands[row] = self._operand(row, tensor, has_rows=True)

    def _operand(self, row: Input, tensor: Input, *, has_rows: bool) -> Operand:
        value = self._row_view.value(row) if self._row_view.is_known_tensor(row) else None
        return Operand(tensor, self._shape(row), has_rows, value)

    def _shape(self, row: Input) -> Dims:
        shape = self._row_view.shape(row)
        if shape is None or None in shape:
            raise _NoMap
        return tuple(size for size in shape if size is not None)

    def _write_node(self, writer: RowWriter, body_node: Node) -> None:
        row = Input(self._prefix + body_node.name)
        node = self._row_view.graph[row.node]
        entry = self._row_view.resolve(node)
        if entry is None or len(entry.output_tensors) != 1:
            raise _NoMap
        shape = self._shape(row)
        if self._row_view.is_known_tensor(row):
            value = self._row_view.value(row)
            tensor = writer.constant(row.node, value.copy())
            self._operands[row] = Operand(tensor, shape, has_rows=False, value=value)
            return
        operands = [self._operands[source] for source in node.inputs]
        has_rows = any(operand.has_rows for operand in operands)
        rule = rule_of(node, entry)
        if rule is None or self._is_large(writer, shape):
            raise _NoMap
        if has_rows:
            result = rule(writer, RowNode(node, entry, row.node, shape), operands)
        else:
            result = writer.node(row.node, node.op, [operand.tensor for operand in operands], **node.attrs)
        if result is None:
            raise _NoMap
        self._operands[row] = Operand(result, shape, has_rows)

    def _is_large(self, writer: RowWriter, shape: Dims) -> bool:
        elements = prod(shape)
        return elements > LARGEST_ROW or elements * (writer.count or 1) > LARGEST_TENSOR
