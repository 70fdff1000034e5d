"""Pass `sequences`: LSTMBlockCells that follow each other over the rows of one tensor are one BlockLSTM.

The tensor has the steps along its first axis, and an Unpack takes them apart: from the first to the last, or from the
last to the first. Who takes something of every step gets it from an Unpack of the sequence's; where a Pack puts that
together again, it is the sequence's itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from weft.api import Graph, Input, Node, PassContext, constant, dtypes, placed_like

from .cells import HIDDEN, OP, STATE
from .view import View, asks_for_same_place

X, BEFORE, HIDDEN_BEFORE, REST = 0, 1, 2, 3  # inputs of a cell: x, cs_prev, h_prev, and what all steps share
ATTRS = ("T", "forget_bias", "cell_clip", "use_peephole")


def joined(graph: Graph, context: PassContext) -> Graph:
    while True:  # the steps of one layer are those of the next
        if not any(node.op == OP for node in graph):
            return graph
        view = View(graph, context)
        found = next(_chains(view), None)
        if found is None:
            return graph
        graph = _with_sequence(view, *found)


def _chains(view: View) -> Iterator[tuple[Node, list[Node]]]:
    """Each Unpack, and cells of which there is one for each of its outputs, in the order of their steps."""
    for unpack in view.graph:
        entry = view.resolve(unpack) if unpack.op == "Unpack" and not view.is_kept(unpack) else None
        if entry is None or entry.attrs["axis"] != 0 or entry.attrs["num"] < 2 or unpack.controls:
            continue
        for order in (range(entry.attrs["num"]), range(entry.attrs["num"])[::-1]):
            for first, number in view.takers[unpack.name]:
                if number == X and first.inputs[X].index == order[0]:
                    chain = _chain(view, first, order)
                    if chain is not None:
                        yield unpack, chain


def _chain(view: View, first: Node, order: range) -> list[Node] | None:
    if not _is_cell(view, first):
        return None
    chain = [first]
    for index in order[1:]:
        last = chain[-1]
        wanted = [Input(first.inputs[X].node, None, index), Input(last.name, None, STATE),
                  Input(last.name, None, HIDDEN), *first.inputs[REST:]]
        following = next((taker for taker, number in view.takers[last.name]
                          if number == BEFORE and list(taker.inputs) == wanted and _is_cell(view, taker)
                          and _are_alike(view, first, taker)), None)
        if following is None:
            return None
        chain.append(following)
    return chain


def _is_cell(view: View, node: Node) -> bool:
    return node.op == OP and view.is_free(node) and view.resolve(node) is not None


def _are_alike(view: View, a: Node, b: Node) -> bool:
    own, others = (entry.attrs for entry in map(view.resolve, (a, b)) if entry is not None)
    return asks_for_same_place(a, b) and all(own[name] == others[name] for name in ATTRS)


def _with_sequence(view: View, unpack: Node, chain: list[Node]) -> Graph:
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
        packs = [taker for taker, _ in view.takers[last.name] if _is_pack(view, taker, outputs)]
        instead |= {Input(pack.name): whole for pack in packs if view.is_free(pack)}
        made += [placed_like(Node(pack.name, "Identity", [whole], controls=pack.controls,
                                  attrs={"T": entry.attrs["T"]}), pack) for pack in packs if not view.is_free(pack)]
        taken = {place[taker.inputs[number].node] for cell in chain for taker, number in view.takers[cell.name]
                 if taker.inputs[number].index == index and taker.name not in place and taker not in packs}
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


def _is_pack(view: View, node: Node, outputs: list[Input]) -> bool:
    """Whether a node puts all steps together."""
    entry = view.resolve(node) if node.op == "Pack" and list(node.inputs) == outputs else None
    return entry is not None and entry.attrs["axis"] == 0
