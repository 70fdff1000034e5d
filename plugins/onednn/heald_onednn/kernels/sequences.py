"""Recurrent layers over a whole sequence: LSTM, GRU and simple cells, with the library's activations.

The library runs all steps in one call. NumPy's kernel serves the activations that the library lacks.
"""

# The library knows no masks and no sequence that ends early. A row's steps that the mask excludes change nothing. So
# the other steps of the row may be moved to its front, and the library runs all steps over that: the first of them are
# the row's own, and none of these depends on a later one. The results are moved back to their places.
#
# The library returns no state c but the last. A call that needs c and has a row with fewer steps is run step by step,
# and so is one whose rows have few of the steps.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, errors

from ..attributes import attributes, number
from ..library import library
from ..memory import ANY, Array, Layout, Operand, row_major
from ..packing import packed_once
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
    implementation,
    pack_array,
)
from .binding import check_elements, declining
from .recurrent import HIDDEN, LAST_HIDDEN, LAST_STATE, LEFT_TO_RIGHT, RECURRENT, STATE

Y, LAST, HIDDEN_END, STATE_END = range(4)  # outputs of the ops
LSTM_GATES = 4
PEEPHOLES, PROJECTION = 35, 36  # the library's argument numbers for LSTMs
RAGGED_PLACES = {SOURCE: 0, HIDDEN: 1, STATE: 2, RESULT: 3, LAST_HIDDEN: 4, LAST_STATE: 5, WEIGHTS: 6, RECURRENT: 7,
                 BIAS: 8, PROJECTION: 9}  # the indices of the arrays of a RaggedSequence's primitives
FEW_STEPS = 4  # a call of one step takes up to so many times the time of a step among many
SIMPLE_ACTIVATIONS = {"relu": number("dnnl_eltwise_relu"), "sigmoid": number("dnnl_eltwise_logistic"),
                      "tanh": number("dnnl_eltwise_tanh")}


class SequenceOp(NamedTuple):
    """An op: its gates, the index of w among its inputs, and the function that describes it.

    The inputs are length, x, h, c of an LSTM, w, u, b, rb of a GRU, the peepholes and the projection of an LSTM, and a
    mask.
    """

    gates: int
    weights_index: int
    describe: Callable[[Bind, Mapping[int, Any]], Any]


COMMON = SOURCE, HIDDEN, WEIGHTS, RECURRENT, BIAS, RESULT, LAST_HIDDEN  # in the order of the descriptions


def _describe_lstm(b: Bind, descriptors: Mapping[int, Any]) -> Any:
    _check_activations(b)
    if b.attrs["cell_clip"] > 0 or b.attrs["proj_clip"] > 0:
        raise errors.Unimplemented("states that are clipped")
    roles = (SOURCE, HIDDEN, STATE, WEIGHTS, RECURRENT, PEEPHOLES, PROJECTION, BIAS, RESULT, LAST_HIDDEN, LAST_STATE)
    return describe_primitive(library().c.dnnl_lstm_forward_primitive_desc_create, INFERENCE, LEFT_TO_RIGHT,
                              *(descriptors.get(role, library().ffi.NULL) for role in roles), 0, attributes(),
                              with_reference=True)


def _describe_gru(b: Bind, descriptors: Mapping[int, Any]) -> Any:
    _check_activations(b)
    c = library().c
    create = (c.dnnl_lbr_gru_forward_primitive_desc_create if b.attrs["reset_after"]
              else c.dnnl_gru_forward_primitive_desc_create)
    return describe_primitive(create, INFERENCE, LEFT_TO_RIGHT, *(descriptors[role] for role in COMMON), 0,
                              attributes(), with_reference=True)


def _describe_rnn(b: Bind, descriptors: Mapping[int, Any]) -> Any:
    activation = SIMPLE_ACTIVATIONS.get(b.attrs["activation"])
    if activation is None:
        raise errors.Unimplemented(f"the activation {b.attrs['activation']}")
    return describe_primitive(library().c.dnnl_vanilla_rnn_forward_primitive_desc_create, INFERENCE, activation,
                              LEFT_TO_RIGHT, *(descriptors[role] for role in COMMON), 0, 0.0, 0.0, attributes(),
                              with_reference=True)


def _check_activations(b: Bind) -> None:
    names = b.attrs["activation"], b.attrs["recurrent_activation"]
    if names != ("tanh", "sigmoid"):
        raise errors.Unimplemented(f"the activations {names[0]} and {names[1]}")


OPS: Mapping[str, SequenceOp] = {
    "_GRUSequence": SequenceOp(3, 3, _describe_gru),
    "_LSTMSequence": SequenceOp(LSTM_GATES, 4, _describe_lstm),
    "_RNNSequence": SequenceOp(1, 3, _describe_rnn),
}


class RaggedSequence(KernelAroundPrimitive):
    """All steps, where rows may skip steps or the sequence may end early.

    `all_steps` runs all steps and `step` runs one, both over (x, h, c, y, next h, next c), and w, u, b and a projection
    where they are not known before the run. A cell without c ignores it.
    """

    def __init__(self, all_steps: Primitive, step: Primitive, b: Bind, states: int) -> None:
        super().__init__(all_steps)
        self._step = step
        self._count, self._states, self._is_masked = len(b.inputs), states, bool(b.attrs["N"])
        self._keeps_output = b.attrs["masked"] == "previous"
        self._returns_state = states > 1 and STATE_END in b.needed
        self._weights = _late_weights(b)
        touched = [*range(2 + states), *self._weights,
                   *([self._count - 1] if self._is_masked else [])]  # length, x, states, weights, mask
        self.extents = {index: b.inputs[index].meta.nbytes for index in touched} | {
            self._count + index: output.nbytes for index, output in enumerate(b.outputs)}

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        return lambda: self.run(*inputs, *outputs)

    def run(self, *arrays: Array) -> None:
        inputs, outputs = arrays[: self._count], arrays[self._count :]
        x = inputs[1]
        steps = _steps_of(inputs[0], x)
        valid = inputs[-1][:steps] if self._is_masked else None
        if valid is None or valid.all():
            counts, valid = np.full(x.shape[1], steps), None
        else:
            counts = np.count_nonzero(valid, axis=0)
        is_state_missing = self._returns_state and bool((counts < len(x)).any())
        if is_state_missing or counts.max() * FEW_STEPS < len(x):
            self._run_steps(inputs, outputs, steps, valid)
        else:
            self._run_whole(inputs, outputs, steps, counts, valid)

    def _run_whole(
        self, inputs: Sequence[Array], outputs: Sequence[Array], steps: int, counts: Array, valid: Array | None
    ) -> None:
        x, hidden, *_ = inputs[1:]
        y, last, hidden_end, *state_end = outputs
        next_hidden, result = np.empty_like(hidden), y
        order = None if valid is None else _moved_to_front(valid, counts)
        if order is not None:
            x, result = np.concatenate([np.take_along_axis(x[:steps], order, 0), x[steps:]]), np.empty_like(y)
        next_state = state_end[0] if state_end else next_hidden
        self._primitive.run(x, hidden, inputs[1 + self._states], result, next_hidden, next_state,
                            *(inputs[index] for index in self._weights))
        ends = result[np.maximum(counts - 1, 0), np.arange(len(counts))]
        hidden_end[...] = np.where(counts[:, None] > 0, ends, hidden)
        if valid is not None:
            self._put_in_place(y, result, valid)
        y[steps:] = 0
        last[...] = y[steps - 1] if steps else 0

    def _put_in_place(self, y: Array, result: Array, valid: Array) -> None:
        """The outputs of each row at the steps that they belong to."""
        positions = np.cumsum(valid, axis=0)[:, :, None]
        if self._keeps_output:
            y[: len(valid)] = np.where(positions > 0, np.take_along_axis(result, np.maximum(positions - 1, 0), 0), 0)
            return
        if result is not y:
            y[: len(valid)] = np.take_along_axis(result, np.maximum(positions - 1, 0), 0)
        np.copyto(y[: len(valid)], 0, where=~valid[:, :, None])

    def _run_steps(self, inputs: Sequence[Array], outputs: Sequence[Array], steps: int, valid: Array | None) -> None:
        x, (y, last, *ends) = inputs[1], outputs
        states = [np.array(state) for state in inputs[2 : 2 + self._states]]
        new_states = [np.empty_like(states[0]), np.empty_like(states[-1])]
        weights = [inputs[index] for index in self._weights]
        output: Any = np.zeros_like(last)
        y[steps:] = 0
        for t in range(steps):
            self._step.run(x[t], states[0], states[-1], y[t], *new_states, *weights)
            rows = None if valid is None else valid[t][:, None]
            for state, new in zip(states, (y[t], new_states[1]), strict=False):
                np.copyto(state, new, where=True if rows is None else rows)
            if rows is not None:
                np.copyto(y[t], output if self._keeps_output else 0, where=~rows)
            output = y[t]
        last[...] = output
        for end, state in zip(ends, states, strict=True):
            end[...] = state


def _moved_to_front(valid: Array, counts: Array) -> Array | None:
    """The steps of each row, valid ones first, to index x by. None where they are in the front."""
    if np.array_equal(valid, np.arange(len(valid))[:, None] < counts):
        return None
    order: Array = np.argsort(~valid, axis=0, kind="stable")[:, :, None]
    return order


def _steps_of(length: Array, x: Array) -> int:
    """The number of steps that run. Raises InvalidArgument for more than x has."""
    steps = max(int(length), 0)
    if steps > len(x):
        raise errors.InvalidArgument(f"length {steps} is more than the {len(x)} steps of x")
    return steps


def sequence(b: Bind) -> Primitive | RaggedSequence:
    op = OPS[b.op]
    time, batch, inputs = b.inputs[1].meta.dims
    check_elements((time, batch, inputs, *_sizes(b)))
    if _are_late(b) and (b.attrs.get("reset_after") or b.attrs.get("P")):
        raise errors.Unimplemented("several vectors of biases or peepholes that are not known before the run")
    length = b.inputs[0].value
    if b.attrs["N"] or length is None or int(length) != time or b.needed >= {LAST, HIDDEN_END}:
        all_steps, step = (_primitive(b, op, steps, RAGGED_PLACES) for steps in (time, 1))
        return RaggedSequence(all_steps, step, b, 2 if op.gates == LSTM_GATES else 1)
    count = len(b.inputs)
    places = {SOURCE: 1, HIDDEN: 2, STATE: 3, RESULT: count + Y, WEIGHTS: op.weights_index,
              RECURRENT: op.weights_index + 1, BIAS: op.weights_index + 2, PROJECTION: count - 1}
    if b.needed - {Y}:
        places |= {LAST_HIDDEN: count + (LAST if LAST in b.needed else HIDDEN_END), LAST_STATE: count + STATE_END}
    return _primitive(b, op, time, places)


def _sizes(b: Bind) -> tuple[int, int]:
    """The columns of h, and the number of cells: more, where h is a projection."""
    gates, u = OPS[b.op].gates, b.inputs[OPS[b.op].weights_index + 1]
    return u.meta.dims[0], u.meta.dims[1] // gates


def _dims(b: Bind, op: SequenceOp, steps: int) -> dict[int, tuple[int, ...]]:
    """The dimensions of the arrays of so many steps, by the library's argument numbers."""
    _, batch, inputs = b.inputs[1].meta.dims
    outputs, cells = _sizes(b)
    biases = op.gates + bool(b.attrs.get("reset_after"))
    return {SOURCE: (steps, batch, inputs), RESULT: (steps, batch, outputs), WEIGHTS: (1, 1, inputs, op.gates, cells),
            RECURRENT: (1, 1, outputs, op.gates, cells), BIAS: (1, 1, biases, cells), PEEPHOLES: (1, 1, 3, cells),
            PROJECTION: (1, 1, cells, outputs), HIDDEN: (1, 1, batch, outputs), LAST_HIDDEN: (1, 1, batch, outputs),
            STATE: (1, 1, batch, cells), LAST_STATE: (1, 1, batch, cells)}


def _primitive(b: Bind, op: SequenceOp, steps: int, places: Mapping[int, int]) -> Primitive:
    """A primitive of so many steps. `places`: the indices of its arrays, by the library's argument numbers."""
    dims = _dims(b, op, steps)
    layouts = {role: row_major(shape) for role, shape in dims.items()}
    unused = {role for role, is_used in ((STATE, op.gates == LSTM_GATES), (LAST_STATE, op.gates == LSTM_GATES),
                                         (PEEPHOLES, b.attrs.get("P")), (PROJECTION, b.attrs.get("R"))) if not is_used}
    operands: dict[int, tuple[Layout, Operand]] = {
        role: (layouts[role], index) for role, index in places.items() if role not in unused}
    described = {role: layout.descriptor for role, layout in layouts.items() if role not in unused}
    if LAST_HIDDEN not in places:
        described |= {LAST_HIDDEN: library().ffi.NULL, LAST_STATE: library().ffi.NULL}
    if _are_late(b):
        return Primitive(op.describe(b, described), operands)
    packed = [role for role in (WEIGHTS, RECURRENT, PROJECTION) if role not in unused]
    description = op.describe(b, described | {role: Layout.of(dims[role], ANY).descriptor for role in packed})
    if implementation(description).startswith("ref"):  # its own choice may be a form without strides
        description = op.describe(b, described)
    for role in packed:
        operands[role] = _weights(b, op, role, description)
    operands[BIAS] = layouts[BIAS], _bias(b, op)
    if PEEPHOLES not in unused:
        operands[PEEPHOLES] = layouts[PEEPHOLES], _peepholes(b, op)
    return Primitive(description, operands)


def _are_late(b: Bind) -> bool:
    """True where weights are not known before the run: variables, for example."""
    weights = b.inputs[OPS[b.op].weights_index : len(b.inputs) - b.attrs["N"]]
    return not all(info.is_known for info in weights)


def _late_weights(b: Bind) -> list[int]:
    """The indices of the inputs that are weights and not known before the run: w, u, b, and the projection."""
    first, projection = OPS[b.op].weights_index, len(b.inputs) - b.attrs["N"] - 1
    return [first, first + 1, first + 2, *([projection] if b.attrs.get("R") else [])] if _are_late(b) else []


def _weights(b: Bind, op: SequenceOp, role: int, description: Any) -> tuple[Layout, Operand]:
    """Weights [rows, gates * cells] in the description's layout. A projection has no gates."""
    number_of_weights = {WEIGHTS: 0, RECURRENT: 1, PROJECTION: 2 + bool(b.attrs.get("P"))}[role]
    packed_layout = chosen_layout(description, number("dnnl_query_weights_md"), number_of_weights)
    index = len(b.inputs) - b.attrs["N"] - 1 if role == PROJECTION else op.weights_index + number_of_weights
    dims = _dims(b, op, 1)[role]

    def pack() -> Array:
        value = b.inputs[index].value
        assert value is not None
        return pack_array(np.ascontiguousarray(value).reshape(dims), row_major(dims), packed_layout)

    key = f"onednn {library().version}/{b.op} {number_of_weights}/{packed_layout.name}"
    return packed_layout, packed_once(b, key, packed_layout, pack)


def _peepholes(b: Bind, op: SequenceOp) -> Array:
    first = op.weights_index + 3
    return np.ascontiguousarray([b.inputs[index].value for index in range(first, first + 3)], np.float32)


def _bias(b: Bind, op: SequenceOp) -> Array:
    """The biases by gate. A GRU with the reset behind the product has a fourth, of the product of h."""
    value = b.inputs[op.weights_index + 2].value
    assert value is not None
    gates: Array = np.asarray(value, np.float32).reshape(op.gates, -1)
    if b.attrs.get("reset_after"):
        recurrent = b.inputs[op.weights_index + 3].value
        gates = np.concatenate([gates, np.asarray(recurrent, np.float32).reshape(1, -1)])
    return np.ascontiguousarray(gates)


def register_kernels(kernels: Kernels) -> None:
    for op in OPS:
        kernels.kernel(op, dtypes={"T": "float32"})(declining(sequence))
