"""Pass `reshapes`: Reshapes around a product are eliminated, and a scaling behind a Reshape moves in front of it.

tf.tensordot and Keras' Dense flatten rows for a MatMul with weights and restore them afterwards: the three nodes become
one BatchMatMulV2. A factor or shift by channel, behind a Reshape that splits the channels, moves in front of the
Reshape. There it follows the product and can be folded into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heald.api import Graph, Input, Node, PassContext, constant, placed_like

from ..affine import is_of_floats
from ..graph_view import Array, GraphView, asks_for_same_place
from .identities import is_certain_reshape

SCALING_INPUTS = {"Add": (0, 1), "AddV2": (0, 1), "Div": (1,), "Mul": (0, 1), "RealDiv": (1,), "Sub": (0, 1)}
Dims = Sequence[int | None]


def eliminate_reshapes(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op == "Reshape" for node in graph):
        return graph
    view = GraphView(graph, context)
    view = GraphView(view.with_edits([new for node in graph if (new := _product_of_reshapes(view, node)) is not None]),
                     context)
    return view.with_edits([new for node in view.graph for new in _scaling_before_reshape(view, node)])


def _product_of_reshapes(view: GraphView, last: Node) -> Node | None:
    """The BatchMatMulV2 for Reshape(MatMul(Reshape(x), weights)); None unless that is x @ weights for every x."""
    product = _removable_producer(view, last, "Reshape", "MatMul")
    first = None if product is None else _removable_producer(view, product, "MatMul", "Reshape", only=False)
    entry = None if first is None or product is None else view.resolve(product)
    if entry is None or product is None or first is None or entry.attrs["transpose_a"]:
        return None
    if not (is_of_floats(view, product) and is_of_floats(view, last)):
        return None
    source, columns = first.inputs[0], _columns(view, product)
    before, rows, after = (view.shape(tensor) for tensor in (source, Input(first.name), Input(last.name)))
    if before is None or rows is None or after is None or columns is None or len(before) < 3:
        return None
    apart = (*before[:-1], columns)
    if not _is_positive(before) or len(rows) != 2 or rows[1] != before[-1] or tuple(after) != apart:
        return None
    if not (_gives_rows(view, first, source, len(before)) and _restores_dims(view, last, source, apart)):
        return None
    attrs = {"T": entry.attrs["T"], "adj_x": False, "adj_y": entry.attrs["transpose_b"]}
    batch_product = Node(last.name, "BatchMatMulV2", [source, product.inputs[1]], controls=last.controls, attrs=attrs)
    return placed_like(batch_product, last)


def _removable_producer(view: GraphView, node: Node, op: str, producer_op: str, *, only: bool = True) -> Node | None:
    """The producer of the first input of a node of type `op`, if its type is `producer_op` and it may be removed."""
    if node.op != op:
        return None
    source = view.graph[node.inputs[0].node]
    fits = source.op == producer_op and view.is_free(source) and asks_for_same_place(source, node)
    return source if fits and (not only or view.only_consumer(source) is node) else None


def _columns(view: GraphView, product: Node) -> int | None:
    shape = view.shape(Input(product.name))
    return None if shape is None or len(shape) != 2 else shape[1]


def _is_positive(dims: Dims) -> bool:
    """True for a shape with a known last size, at most one unknown size, and no size 0."""
    return dims[-1] is not None and list(dims).count(None) < 2 and all(n is None or n > 0 for n in dims)


def _gives_rows(view: GraphView, first: Node, source: Input, rank: int) -> bool:
    """True where the Reshape surely gives [rows, channels]: its shape is constant, or computed from the source's."""
    if is_certain_reshape(view, first):
        return True
    stack = view.graph[first.inputs[1].node]
    if stack.op != "Pack" or len(stack.inputs) != 2:
        return False
    return all(_is_product_of_sizes(view, part, source, axes)
               for part, axes in zip(stack.inputs, (range(rank - 1), range(rank - 1, rank)), strict=True))


def _restores_dims(view: GraphView, last: Node, source: Input, dims: Dims) -> bool:
    """True where the Reshape is certain to give `dims`, which are the source's except for the last."""
    target_dims = view.array(last.inputs[1])
    if target_dims is not None:
        return None not in dims or target_dims.tolist() == [-1 if n is None else n for n in dims]
    joined = view.graph[last.inputs[1].node]
    if joined.op != "ConcatV2" or len(joined.inputs) != 3:
        return False
    lengths, columns = joined.inputs[0], view.array(joined.inputs[1])
    leading = range(len(dims) - 1)
    return columns is not None and columns.tolist() == [dims[-1]] and _are_sizes_of_axes(view, lengths, source, leading)


def _is_product_of_sizes(view: GraphView, number: Input, source: Input, axes: Sequence[int]) -> bool:
    """True where the scalar is the product of the sizes of these axes of the source."""
    constant_size, shape = view.array(number), view.shape(source)
    if constant_size is not None and shape is not None:
        return constant_size.ndim == 0 and constant_size == prod(shape[axis] or 0 for axis in axes)
    node = view.graph[number.node]
    over = view.array(node.inputs[1]) if node.op == "Prod" else None
    return over is not None and over.tolist() in ([0], 0) and _are_sizes_of_axes(view, node.inputs[0], source, axes)


def _are_sizes_of_axes(view: GraphView, lengths: Input, source: Input, axes: Sequence[int]) -> bool:
    """True where the vector has the sizes of these axes of the source: GatherV2(Shape(source), axes, 0)."""
    node = view.graph[lengths.node]
    if node.op != "GatherV2":
        return False
    shape, (indices, axis) = view.graph[node.inputs[0].node], map(view.array, node.inputs[1:])
    return (shape.op == "Shape" and shape.inputs[0] == source and axis is not None and axis.tolist() in (0, [0])
            and indices is not None and indices.tolist() == list(axes))


def _scaling_before_reshape(view: GraphView, node: Node) -> list[Node]:
    """The nodes for a scaling by channel, moved from behind a Reshape to in front of it."""
    for number in SCALING_INPUTS.get(node.op, ()):
        reshape = view.graph[node.inputs[1 - number].node]
        values = view.array(node.inputs[number])
        fits = (reshape.op == "Reshape" and view.is_free(reshape) and view.only_consumer(reshape) is node
                and not node.controls and asks_for_same_place(reshape, node) and is_of_floats(view, node))
        flat = _channel_vector(view, reshape, values) if fits and values is not None else None
        if flat is not None:
            by = placed_like(constant(view.new_name(f"{node.name}/by"), flat), node)
            inner = view.new_name(f"{node.name}/whole")
            inputs = [Input(by.name)] * 2
            inputs[1 - number] = reshape.inputs[0]
            return [by, node.replace(name=inner, inputs=inputs),
                    reshape.replace(name=node.name, inputs=[inner, reshape.inputs[1]])]
    return []


def _channel_vector(view: GraphView, reshape: Node, values: Array) -> Array | None:
    """The constants as a vector over the channels in front of the Reshape. None where they differ along other axes, or
    the Reshape does not split the channels."""
    before, after = view.shape(reshape.inputs[0]), view.shape(Input(reshape.name))
    if not before or not after or values.ndim > len(after) or not values.size or before[-1] != values.size:
        return None
    shape = values.shape
    while shape[:1] == (1,):
        shape = shape[1:]
    return values.reshape(-1) if len(shape) > 1 and tuple(after[-len(shape):]) == shape else None
