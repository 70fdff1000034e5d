"""Pass `reshapes`: what a Reshape keeps apart comes together.

Rows that are put together for a MatMul with weights, and taken apart again, as tf.tensordot and Keras' Dense do it, are
one BatchMatMulV2. What is done with a constant for each channel, behind a Reshape that takes the channels apart, is
done in front of it: it stands behind the product then.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.api import Graph, Input, Node, PassContext, constant, placed_like

from .affine import is_of_floats
from .identities import is_sure
from .view import Array, View, asks_for_same_place

SCALINGS = {"Add": (0, 1), "AddV2": (0, 1), "Div": (1,), "Mul": (0, 1), "RealDiv": (1,), "Sub": (0, 1)}
Dims = Sequence[int | None]


def avoided(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op == "Reshape" for node in graph):
        return graph
    view = View(graph, context)
    view = View(view.edited([new for node in graph if (new := _product(view, node)) is not None]), context)
    return view.edited([new for node in view.graph for new in _in_front(view, node)])


def _product(view: View, last: Node) -> Node | None:
    """BatchMatMulV2 in the place of Reshape(MatMul(Reshape(x), weights)) that gives x @ weights whatever x is."""
    product = _before(view, last, "Reshape", "MatMul")
    first = None if product is None else _before(view, product, "MatMul", "Reshape", only=False)
    entry = None if first is None or product is None else view.resolve(product)
    if entry is None or product is None or first is None or entry.attrs["transpose_a"]:
        return None
    if not (is_of_floats(view, product) and is_of_floats(view, last)):
        return None
    source, columns = first.inputs[0], _columns(view, product)
    before, rows, after = (view.shape(each) for each in (source, Input(first.name), Input(last.name)))
    if before is None or rows is None or after is None or columns is None or len(before) < 3:
        return None
    apart = (*before[:-1], columns)
    if not _is_positive(before) or len(rows) != 2 or rows[1] != before[-1] or tuple(after) != apart:
        return None
    if not (_gives_rows(view, first, source, len(before)) and _takes_apart(view, last, source, apart)):
        return None
    attrs = {"T": entry.attrs["T"], "adj_x": False, "adj_y": entry.attrs["transpose_b"]}
    made = Node(last.name, "BatchMatMulV2", [source, product.inputs[1]], controls=last.controls, attrs=attrs)
    return placed_like(made, last)


def _before(view: View, node: Node, op: str, wanted: str, *, only: bool = True) -> Node | None:
    """What makes the first input of a node of this op, if it is of the wanted one and may go."""
    if node.op != op:
        return None
    source = view.graph[node.inputs[0].node]
    fits = source.op == wanted and view.is_free(source) and asks_for_same_place(source, node)
    return source if fits and (not only or view.only_taker(source) is node) else None


def _columns(view: View, product: Node) -> int | None:
    shape = view.shape(Input(product.name))
    return None if shape is None or len(shape) != 2 else shape[1]


def _is_positive(dims: Dims) -> bool:
    """Whether a shape has one open length at most, besides which nothing is empty, and a last one that is known."""
    return dims[-1] is not None and list(dims).count(None) < 2 and all(n is None or n > 0 for n in dims)


def _gives_rows(view: View, first: Node, source: Input, rank: int) -> bool:
    """Whether a Reshape to [rows, channels] is certain to be that: its shape is constant, or made from the source's."""
    if is_sure(view, first):
        return True
    stack = view.graph[first.inputs[1].node]
    if stack.op != "Pack" or len(stack.inputs) != 2:
        return False
    return all(_is_product(view, part, source, axes)
               for part, axes in zip(stack.inputs, (range(rank - 1), range(rank - 1, rank)), strict=True))


def _takes_apart(view: View, last: Node, source: Input, dims: Dims) -> bool:
    """Whether a Reshape to these dims, the source's but for the last, is certain to be that."""
    wanted = view.array(last.inputs[1])
    if wanted is not None:
        return None not in dims or wanted.tolist() == [-1 if n is None else n for n in dims]
    joined = view.graph[last.inputs[1].node]
    if joined.op != "ConcatV2" or len(joined.inputs) != 3:
        return False
    lengths, columns = joined.inputs[0], view.array(joined.inputs[1])
    leading = range(len(dims) - 1)
    return columns is not None and columns.tolist() == [dims[-1]] and _is_lengths(view, lengths, source, leading)


def _is_product(view: View, number: Input, source: Input, axes: Sequence[int]) -> bool:
    """Whether this is the product of the lengths of these axes of the source."""
    known, shape = view.array(number), view.shape(source)
    if known is not None and shape is not None:
        return known.ndim == 0 and known == prod(shape[axis] or 0 for axis in axes)
    node = view.graph[number.node]
    over = view.array(node.inputs[1]) if node.op == "Prod" else None
    return over is not None and over.tolist() in ([0], 0) and _is_lengths(view, node.inputs[0], source, axes)


def _is_lengths(view: View, lengths: Input, source: Input, axes: Sequence[int]) -> bool:
    """Whether this is the lengths of these axes of the source: GatherV2(Shape(source), axes, 0)."""
    node = view.graph[lengths.node]
    if node.op != "GatherV2":
        return False
    shape, (chosen, axis) = view.graph[node.inputs[0].node], map(view.array, node.inputs[1:])
    return (shape.op == "Shape" and shape.inputs[0] == source and axis is not None and axis.tolist() in (0, [0])
            and chosen is not None and chosen.tolist() == list(axes))


def _in_front(view: View, node: Node) -> list[Node]:
    """A node that scales or shifts channels behind a Reshape, in front of it."""
    for number in SCALINGS.get(node.op, ()):
        reshape = view.graph[node.inputs[1 - number].node]
        values = view.array(node.inputs[number])
        fits = (reshape.op == "Reshape" and view.is_free(reshape) and view.only_taker(reshape) is node
                and not node.controls and asks_for_same_place(reshape, node) and is_of_floats(view, node))
        flat = _flat(view, reshape, values) if fits and values is not None else None
        if flat is not None:
            by = placed_like(constant(view.new_name(f"{node.name}/by"), flat), node)
            inner = view.new_name(f"{node.name}/whole")
            inputs = [Input(by.name)] * 2
            inputs[1 - number] = reshape.inputs[0]
            return [by, node.replace(name=inner, inputs=inputs),
                    reshape.replace(name=node.name, inputs=[inner, reshape.inputs[1]])]
    return []


def _flat(view: View, reshape: Node, values: Array) -> Array | None:
    """The values of the channels that the Reshape takes apart, as there are before it; None where there is another for
    anything but these, or where they are not taken apart."""
    before, after = view.shape(reshape.inputs[0]), view.shape(Input(reshape.name))
    if not before or not after or values.ndim > len(after) or not values.size or before[-1] != values.size:
        return None
    shape = values.shape
    while shape[:1] == (1,):
        shape = shape[1:]
    return values.reshape(-1) if len(shape) > 1 and tuple(after[-len(shape):]) == shape else None
