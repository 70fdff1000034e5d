"""Pass `sequences`: a chain of LSTMBlockCells over the steps of one tensor is fused into one BlockLSTM.

An Unpack divides the tensor along its first axis, and the cells consume the steps in ascending or descending order.
Consumers of single steps read an Unpack of the BlockLSTM's outputs. A Pack of all steps is replaced by the output
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from heald.api import Graph, Input, Node, PassContext, constant, dtypes, placed_like

from ..graph_view import GraphView, asks_for_same_place
from .cells import HIDDEN, OP, STATE

X, BEFORE, HIDDEN_BEFORE, REST = 0, 1, 2, 3  # inputs of a cell: x, cs_prev, h_prev, and the shared weights
ATTRS = ("T", "forget_bias", "cell_clip", "use_peephole")


def fuse_lstm_sequences(graph: Graph, context: PassContext) -> Graph:
    while True:  # the fused layer feeds the next one
        if not any(node.op == OP for node in graph):
            return graph
        view = GraphView(graph, context)
        found = next(_chains(view), None)
        if found is None:
            return graph
        graph = _with_sequence(view, *found)


def _chains(view: GraphView) -> Iterator[tuple[Node, list[Node]]]:
    """Yield each Unpack with a chain of cells, one for each of its outputs, in the order of execution."""
    for unpack in view.graph:
        entry = view.resolve(unpack) if unpack.op == "Unpack" and not view.is_kept(unpack) else None
        if entry is None or entry.attrs["axis"] != 0 or entry.attrs["num"] < 2 or unpack.controls:
            continue
        for order in (range(entry.attrs["num"]), range(entry.attrs["num"])[::-1]):
            for first, number in view.consumers[unpack.name]:
                if number == X and first.inputs[X].index == order[0]:
                    chain = _chain(view, first, order)
                    if chain is not None:
                        yield unpack, chain


def _chain(view: GraphView, first: Node, order: range) -> list[Node] | None:
    if not _is_cell(view, first):
        return None
    chain = [first]
    for index in order[1:]:
        last = chain[-1]
        wanted = [Input(first.inputs[X].node, None, index), Input(last.name, None, STATE),
                  Input(last.name, None, HIDDEN), *first.inputs[REST:]]
        following = next((consumer for consumer, number in view.consumers[last.name]
                          if number == BEFORE and list(consumer.inputs) == wanted and _is_cell(view, consumer)
                          and _are_alike(view, first, consumer)), None)
        if following is None:
            return None
        chain.append(following)
    return chain


def _is_cell(view: GraphView, node: Node) -> bool:
    return node.op == OP and view.is_free(node) and view.resolve(node) is not None


def _are_alike(view: GraphView, a: Node, b: Node) -> bool:
    own, others = (entry.attrs for entry in map(view.resolve, (a, b)) if entry is not None)
    return asks_for_same_place(a, b) and all(own[name] == others[name] for name in ATTRS)


def _with_sequence(view: GraphView, unpack: Node, chain: list[Node]) -> Graph:
    first, last = chain[0], chain[-1]
    entry = view.resolve(first)
    assert entry is not None
    x = unpack.inputs[0]
    made: list[Node] = []

    def known(name: str, value: Any, dtype: Any = np.int32) -> str:
        made.append(placed_like(constant(view.new_name(f"{last.name}/{name}"), np.asarray(value, dtype)), last))
        return made[-1].name

    def node(name: str, op: str, *inputs: Input | str, **attrs: Any) -> Input:
        new = Node(view.new_name(f"{last.name}/{name}"), op, inputs, attrs={"T": entry.attrs["T"]} | attrs)
        made.append(placed_like(new, last))
        return Input(new.name)

    if first.inputs[X].index:
        x = node("turned", "ReverseV2", x, known("axis", [0]), Tidx=dtypes.int32)
    sequence = node("steps", "BlockLSTM", known("length", len(chain), np.int64), x, *first.inputs[BEFORE:],
                    **{name: entry.attrs[name] for name in ATTRS})
    place = {cell.name: step for step, cell in enumerate(chain)}
    instead: dict[Input, Input] = {}
    for index in range(len(entry.output_tensors)):
        whole, outputs = Input(sequence.node, None, index), [Input(cell.name, None, index) for cell in chain]
        packs = [consumer for consumer, _ in view.consumers[last.name] if _is_pack(view, consumer, outputs)]
        instead |= {Input(pack.name): whole for pack in packs if view.is_free(pack)}
        made += [placed_like(Node(pack.name, "Identity", [whole], controls=pack.controls,
                                  attrs={"T": entry.attrs["T"]}), pack) for pack in packs if not view.is_free(pack)]
        taken = {place[consumer.inputs[number].node] for cell in chain for consumer, number in view.consumers[cell.name]
                 if consumer.inputs[number].index == index and consumer.name not in place and consumer not in packs}
        if taken == {len(chain) - 1}:
            ends = [known(what, [end]) for what, end in (("begin", len(chain) - 1), ("end", len(chain)),
                                                                  ("stride", 1))]
            instead[outputs[-1]] = node("last", "StridedSlice", whole, *ends, Index=dtypes.int32, shrink_axis_mask=1)
        elif taken:
            apart = node("apart", "Unpack", whole, num=len(chain), axis=0)
            instead |= {output: Input(apart.node, None, step) for step, output in enumerate(outputs)}
    again = {each.name for each in made}
    changed = [each.replace(inputs=[instead.get(source, source) for source in each.inputs]) for each in view.graph
               if each.name not in again and any(source in instead for source in each.inputs)]
    return view.edited([*made, *changed])


def _is_pack(view: GraphView, node: Node, outputs: list[Input]) -> bool:
    """True for a Pack of the outputs of all steps along the first axis."""
    entry = view.resolve(node) if node.op == "Pack" and list(node.inputs) == outputs else None
    return entry is not None and entry.attrs["axis"] == 0
