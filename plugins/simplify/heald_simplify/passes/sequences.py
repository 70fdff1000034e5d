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

# inputs of a cell: x, cs_prev, h_prev, and the shared weights
X, STATE_BEFORE, HIDDEN_BEFORE, SHARED_INPUTS = 0, 1, 2, 3
ATTRS = ("T", "forget_bias", "cell_clip", "use_peephole")


def fuse_lstm_sequences(graph: Graph, context: PassContext) -> Graph:
    while True:  # the fused layer feeds the next one
        if not any(node.op == OP for node in graph):
            return graph
        view = GraphView(graph, context)
        unpack_and_chain = next(_chains(view), None)
        if unpack_and_chain is None:
            return graph
        graph = _fuse_chain(view, *unpack_and_chain)


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
        expected_inputs = [Input(first.inputs[X].node, None, index), Input(last.name, None, STATE),
                           Input(last.name, None, HIDDEN), *first.inputs[SHARED_INPUTS:]]
        following = next((consumer for consumer, number in view.consumers[last.name]
                          if number == STATE_BEFORE and list(consumer.inputs) == expected_inputs
                          and _is_cell(view, consumer)
                          and _are_alike(view, first, consumer)), None)
        if following is None:
            return None
        chain.append(following)
    return chain


def _is_cell(view: GraphView, node: Node) -> bool:
    return node.op == OP and view.is_free(node) and view.resolve(node) is not None


def _are_alike(view: GraphView, a: Node, b: Node) -> bool:
    attributes, others = (entry.attrs for entry in map(view.resolve, (a, b)) if entry is not None)
    return asks_for_same_place(a, b) and all(attributes[name] == others[name] for name in ATTRS)


def _fuse_chain(view: GraphView, unpack: Node, chain: list[Node]) -> Graph:
    first, last = chain[0], chain[-1]
    entry = view.resolve(first)
    assert entry is not None
    x = unpack.inputs[0]
    new_nodes: list[Node] = []

    def add_constant(name: str, value: Any, dtype: Any = np.int32) -> str:
        new_nodes.append(placed_like(constant(view.new_name(f"{last.name}/{name}"), np.asarray(value, dtype)), last))
        return new_nodes[-1].name

    def add_node(name: str, op: str, *inputs: Input | str, **attrs: Any) -> Input:
        new = Node(view.new_name(f"{last.name}/{name}"), op, inputs, attrs={"T": entry.attrs["T"]} | attrs)
        new_nodes.append(placed_like(new, last))
        return Input(new.name)

    if first.inputs[X].index:
        x = add_node("turned", "ReverseV2", x, add_constant("axis", [0]), Tidx=dtypes.int32)
    sequence = add_node("steps", "BlockLSTM", add_constant("length", len(chain), np.int64), x,
                        *first.inputs[STATE_BEFORE:],
                        **{name: entry.attrs[name] for name in ATTRS})
    step_of_cell = {cell.name: step for step, cell in enumerate(chain)}
    instead: dict[Input, Input] = {}
    for index in range(len(entry.output_tensors)):
        all_steps, outputs = Input(sequence.node, None, index), [Input(cell.name, None, index) for cell in chain]
        packs = [consumer for consumer, _ in view.consumers[last.name] if _is_pack(view, consumer, outputs)]
        instead |= {Input(pack.name): all_steps for pack in packs if view.is_free(pack)}
        new_nodes += [placed_like(Node(pack.name, "Identity", [all_steps], controls=pack.controls,
                                  attrs={"T": entry.attrs["T"]}), pack) for pack in packs if not view.is_free(pack)]
        single_steps = {step_of_cell[consumer.inputs[number].node]
                        for cell in chain for consumer, number in view.consumers[cell.name]
                        if consumer.inputs[number].index == index and consumer.name not in step_of_cell
                        and consumer not in packs}
        if single_steps == {len(chain) - 1}:
            ends = [add_constant(what, [end]) for what, end in (("begin", len(chain) - 1), ("end", len(chain)),
                                                                ("stride", 1))]
            instead[outputs[-1]] = add_node("last", "StridedSlice", all_steps, *ends, Index=dtypes.int32,
                                            shrink_axis_mask=1)
        elif single_steps:
            apart = add_node("apart", "Unpack", all_steps, num=len(chain), axis=0)
            instead |= {output: Input(apart.node, None, step) for step, output in enumerate(outputs)}
    again = {graph_node.name for graph_node in new_nodes}
    changed = [graph_node.replace(inputs=[instead.get(source, source) for source in graph_node.inputs])
               for graph_node in view.graph
               if graph_node.name not in again and any(source in instead for source in graph_node.inputs)]
    return view.with_edits([*new_nodes, *changed])


def _is_pack(view: GraphView, node: Node, outputs: list[Input]) -> bool:
    """True for a Pack of the outputs of all steps along the first axis."""
    entry = view.resolve(node) if node.op == "Pack" and list(node.inputs) == outputs else None
    return entry is not None and entry.attrs["axis"] == 0
