"""LSTMs: one step, or all steps of a sequence, without peepholes and clipping, and with the outputs cs and h only.

The library returns the last state only. If all states are needed, a sequence is done step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from heald.api import Bind, Kernels, ValueInfo, errors

from ..attributes import attributes, number
from ..library import library
from ..memory import ANY, Array, Layout, Operand, row_major
from ..packing import packed_once
from ..primitive_call import join_calls
from ..primitives import (
    BIAS,
    INFERENCE,
    RESULT,
    SOURCE,
    WEIGHTS,
    KernelAroundPrimitive,
    Primitive,
    chosen_layout,
    describe_primitive,
    pack_array,
)
from .binding import check_elements, declining

LEFT_TO_RIGHT = number("dnnl_unidirectional_left2right")
HIDDEN, STATE, LAST_HIDDEN, LAST_STATE, RECURRENT = 2, 3, 18, 19, 34  # the library's argument numbers for LSTMs
CS, H = 1, 6  # outputs of the ops
OUTPUTS = frozenset({CS, H})
GATE_POSITIONS = {  # the positions of i, f, c, o, the library's order, in each op's order
    "LSTMBlockCell": (0, 2, 1, 3), "BlockLSTM": (0, 2, 1, 3), "BlockLSTMV2": (0, 1, 2, 3),
}
FORGET = 1


class Size(NamedTuple):
    """The number of rows, of inputs in each row, and of cells."""

    batch: int
    inputs: int
    cells: int


class Steps(KernelAroundPrimitive):
    """A sequence computed by a primitive of one step, from x [time, ...] to two results [time, ...], cs and h.

    `places`: the indices of x, state and hidden among the inputs, then of cs and h behind the inputs.
    """

    def __init__(self, step: Primitive, time: int, places: Sequence[int]) -> None:
        super().__init__(step)
        self._time, self._places = time, places
        x, _, _, cs, h = places
        self.extents = {operand_index: nbytes * time if operand_index in (x, cs, h) else nbytes
                        for operand_index, nbytes in step.extents.items()}

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        arrays_by_step = self._arrays_by_time_step((*inputs, *outputs))
        calls = join_calls([self._primitive.attach(step_arrays, ()) for step_arrays in arrays_by_step])

        def call() -> None:
            for step in calls:
                step()

        return call

    def run(self, *arrays: Array) -> None:
        for step_arrays in self._arrays_by_time_step(arrays):
            self._primitive.run(*step_arrays)

    def _arrays_by_time_step(self, arrays: Sequence[Array]) -> list[tuple[Array, ...]]:
        """The arrays of each step, at the same indices as the whole arrays."""
        x, state, hidden, cs, h = self._places
        steps = {operand_index: arrays[operand_index].reshape(self._time, -1) for operand_index in (x, cs, h)}
        arrays_by_step: list[tuple[Array, ...]] = []
        for t in range(self._time):
            now = {operand_index: rows[t] for operand_index, rows in steps.items()}
            if t:
                now |= {state: steps[cs][t - 1], hidden: steps[h][t - 1]}
            arrays_by_step.append(tuple(now.get(operand_index, array) for operand_index, array in enumerate(arrays)))
        return arrays_by_step


def lstm_block_cell(b: Bind) -> Primitive:
    batch, inputs = b.inputs[0].meta.dims
    size = Size(batch, inputs, b.outputs[H].dims[1])
    return _lstm(b, size, 1, dict(zip((SOURCE, STATE, HIDDEN, WEIGHTS), range(4), strict=True)))


def block_lstm(b: Bind) -> Primitive | Steps:
    length, x = b.inputs[:2]
    time, batch, inputs = x.meta.dims
    if length.value is None or int(length.value) != time:
        raise errors.Unimplemented("a sequence that may end early")
    size = Size(batch, inputs, b.outputs[H].dims[2])
    places = dict(zip((SOURCE, STATE, HIDDEN, WEIGHTS), range(1, 5), strict=True))
    if CS not in b.needed:
        return _lstm(b, size, time, places)
    count = len(b.inputs)
    arrays = [*(places[p] for p in (SOURCE, STATE, HIDDEN)), count + CS, count + H]
    return Steps(_lstm(b, size, 1, places), time, arrays)


def _lstm(b: Bind, size: Size, time: int, places: Mapping[int, int]) -> Primitive:
    """The primitive of a sequence. `places`: the indices of the op's inputs. A single step also returns the state if it
    is needed."""
    weights, bias = b.inputs[places[WEIGHTS]], b.inputs[-1]
    if not b.needed <= OUTPUTS:
        raise errors.Unimplemented("outputs other than cs and h are needed")
    if b.attrs["use_peephole"] or b.attrs["cell_clip"] > 0:
        raise errors.Unimplemented("peepholes or a state that is clipped")
    if not (weights.is_known and bias.is_known):
        raise errors.Unimplemented("weights that are not known before the run")
    check_elements((time, *size))
    batch, inputs, cells = size
    state, all_states = row_major((1, 1, batch, cells)), row_major((time, batch, cells))
    source, vector = row_major((time, batch, inputs)), row_major((1, 1, 4, cells))
    null = library().ffi.NULL
    last = state.descriptor if CS in b.needed else null
    description = describe_primitive(
        library().c.dnnl_lstm_forward_primitive_desc_create, INFERENCE, LEFT_TO_RIGHT, source.descriptor,
        state.descriptor, state.descriptor, layout_by_library(inputs, cells).descriptor,
        layout_by_library(cells, cells).descriptor, null, null,
        vector.descriptor, all_states.descriptor, last, last, 0, attributes())
    operands: dict[int, tuple[Layout, Operand]] = {
        SOURCE: (source, places[SOURCE]), STATE: (state, places[STATE]), HIDDEN: (state, places[HIDDEN]),
        WEIGHTS: _weights(b, weights, slice(inputs), description, 0),
        RECURRENT: _weights(b, weights, slice(inputs, None), description, 1),
        BIAS: (vector, _bias(b, bias.value)), RESULT: (all_states, len(b.inputs) + H)}
    if CS in b.needed:  # the last hidden value is that of the only step
        operands |= {LAST_HIDDEN: (state, len(b.inputs) + H), LAST_STATE: (state, len(b.inputs) + CS)}
    return Primitive(description, operands)


def layout_by_library(rows: int, cells: int, gates: int = 4) -> Layout:
    """The layout of all gates' weights, left to the library's choice."""
    return Layout.of((1, 1, rows, gates, cells), ANY)


def _weights(b: Bind, weights: ValueInfo, rows: slice, description: Any, index: int) -> tuple[Layout, Operand]:
    """Rows of w [inputs + cells, 4 * cells], in the description's layout for the weights of this index."""
    packed_layout = chosen_layout(description, number("dnnl_query_weights_md"), index)

    def pack(array: Array) -> Array:
        gates = array[rows].reshape(-1, 4, array.shape[1] // 4)[:, GATE_POSITIONS[b.op]]
        return pack_array(np.ascontiguousarray(gates), row_major((1, 1, *gates.shape)), packed_layout)

    key = f"onednn {library().version}/{b.op} {index}/{packed_layout.name}"
    return packed_layout, packed_once(b, key, packed_layout, lambda: _pack_shared(weights.value, key, pack))


_packed: dict[tuple[int, str], tuple[ref[Array], ref[Array]]] = {}  # by id and key: the weights and the packed array


def _pack_shared(weights: Array | None, key: str, pack: Callable[[Array], Array]) -> Array:
    """The packed form of an array, shared with other nodes while it is in use.

    Without this, the steps of a network that cannot be one call would read a copy each.
    """
    assert weights is not None
    references = _packed.get((id(weights), key), (lambda: None, lambda: None))
    source, packed_weights = (reference() for reference in references)
    if packed_weights is not None and source is weights:
        return packed_weights
    packed_weights = pack(weights)
    for dead_key in [packed_key for packed_key, (_, theirs) in [*_packed.items()] if theirs() is None]:
        _packed.pop(dead_key, None)
    _packed[id(weights), key] = ref(weights), ref(packed_weights)
    return packed_weights


def _bias(b: Bind, bias: Any) -> Array:
    gates: Array = bias.reshape(4, -1)[list(GATE_POSITIONS[b.op])].astype(np.float32)
    gates[FORGET] += np.float32(b.attrs.get("forget_bias", 0))
    return gates


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("LSTMBlockCell", dtypes={"T": "float32"})(declining(lstm_block_cell))
    for op in ("BlockLSTM", "BlockLSTMV2"):
        kernels.kernel(op, dtypes={"T": "float32"})(declining(block_lstm))
