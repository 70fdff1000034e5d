"""Recurrent layers over a whole sequence: LSTM, GRU and simple cells, with the library's activations.

The library runs all steps in one call. With a mask it runs one step a call, and the kernel keeps the states of masked
rows. NumPy's kernel serves the activations that the library lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, ValueInfo, errors

from ..attributes import attributes, number
from ..library import library
from ..memory import Array, Layout, Operand, row_major
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
from .recurrent import HIDDEN, LAST_HIDDEN, LAST_STATE, LEFT_TO_RIGHT, RECURRENT, STATE, layout_by_library

Y, LAST, HIDDEN_END, STATE_END = range(4)  # outputs of the ops
LSTM_GATES = 4
SIMPLE_ACTIVATIONS = {"relu": number("dnnl_eltwise_relu"), "sigmoid": number("dnnl_eltwise_logistic"),
                      "tanh": number("dnnl_eltwise_tanh")}


class SequenceOp(NamedTuple):
    """An op: its gates, the index of w among its inputs, and the function that describes it.

    The inputs are length, x, h, c of an LSTM, w, u, b, rb of a GRU, and a mask.
    """

    gates: int
    weights_index: int
    describe: Callable[[Bind, list[Any]], Any]


def _describe_lstm(b: Bind, descriptors: list[Any]) -> Any:
    _check_activations(b)
    source, hidden, w, u, bias, result, end = descriptors
    null = library().ffi.NULL
    return describe_primitive(library().c.dnnl_lstm_forward_primitive_desc_create, INFERENCE, LEFT_TO_RIGHT, source,
                              hidden, hidden, w, u, null, null, bias, result, end, end, 0, attributes(),
                              with_reference=True)


def _describe_gru(b: Bind, descriptors: list[Any]) -> Any:
    _check_activations(b)
    c = library().c
    create = (c.dnnl_lbr_gru_forward_primitive_desc_create if b.attrs["reset_after"]
              else c.dnnl_gru_forward_primitive_desc_create)
    return describe_primitive(create, INFERENCE, LEFT_TO_RIGHT, *descriptors, 0, attributes(), with_reference=True)


def _describe_rnn(b: Bind, descriptors: list[Any]) -> Any:
    activation = SIMPLE_ACTIVATIONS.get(b.attrs["activation"])
    if activation is None:
        raise errors.Unimplemented(f"the activation {b.attrs['activation']}")
    return describe_primitive(library().c.dnnl_vanilla_rnn_forward_primitive_desc_create, INFERENCE, activation,
                              LEFT_TO_RIGHT, *descriptors, 0, 0.0, 0.0, attributes(), with_reference=True)


def _check_activations(b: Bind) -> None:
    names = b.attrs["activation"], b.attrs["recurrent_activation"]
    if names != ("tanh", "sigmoid"):
        raise errors.Unimplemented(f"the activations {names[0]} and {names[1]}")


OPS: Mapping[str, SequenceOp] = {
    "_GRUSequence": SequenceOp(3, 3, _describe_gru),
    "_LSTMSequence": SequenceOp(LSTM_GATES, 4, _describe_lstm),
    "_RNNSequence": SequenceOp(1, 3, _describe_rnn),
}


class MaskedSteps(KernelAroundPrimitive):
    """All steps by a primitive of one step over (x, h, c, y, next c). Rows that the mask excludes keep their states.

    `count`: the number of the op's inputs, the last of which is the mask. `states`: the number of its states.
    """

    def __init__(self, step: Primitive, b: Bind, states: int) -> None:
        super().__init__(step)
        self._count, self._states = len(b.inputs), states
        self._keeps_output = b.attrs["masked"] == "previous"
        touched = [*range(1, 2 + states), self._count - 1]  # x, the states, the mask
        self.extents = {index: b.inputs[index].meta.nbytes for index in touched} | {
            self._count + index: output.nbytes for index, output in enumerate(b.outputs)}

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        x, y = inputs[1], outputs[Y]
        states, new_state = self._buffers(inputs)
        steps = [self._primitive.attach((x[t], *states, y[t], new_state), ()) for t in range(len(x))]

        def call() -> None:
            self._run(inputs, outputs, states, new_state, lambda t: steps[t]())

        return call

    def run(self, *arrays: Array) -> None:
        inputs, outputs = arrays[: self._count], arrays[self._count :]
        x, y = inputs[1], outputs[Y]
        states, new_state = self._buffers(inputs)
        self._run(inputs, outputs, states, new_state,
                  lambda t: self._primitive.run(x[t], *states, y[t], new_state))

    def _buffers(self, inputs: Sequence[Array]) -> tuple[list[Array], Array]:
        """The states h and c, which a simple cell ignores, and the new c."""
        hidden = inputs[2]
        return [np.empty_like(hidden), np.empty_like(hidden)], np.empty_like(hidden)

    def _run(
        self, inputs: Sequence[Array], outputs: Sequence[Array], states: Sequence[Array], new_state: Array,
        run_step: Callable[[int], None],
    ) -> None:
        mask, (y, last, *ends) = inputs[-1], outputs
        for state, start in zip(states, inputs[2 : 2 + self._states], strict=False):
            state[...] = start
        output: Any = np.zeros_like(last)
        for t in range(len(y)):
            run_step(t)
            rows = mask[t][:, None]
            np.copyto(states[0], y[t], where=rows)
            np.copyto(states[1], new_state, where=rows)
            np.copyto(y[t], output if self._keeps_output else 0, where=~rows)
            output = y[t]
        last[...] = output
        for end, state in zip(ends, states, strict=False):
            end[...] = state


def sequence(b: Bind) -> Primitive | MaskedSteps:
    op = OPS[b.op]
    time, batch, inputs = b.inputs[1].meta.dims
    cells = b.outputs[HIDDEN_END].dims[1]
    length, w, u = b.inputs[0], b.inputs[op.weights_index], b.inputs[op.weights_index + 1]
    if length.value is None or int(length.value) != time:
        raise errors.Unimplemented("a sequence that may end early")
    weights = b.inputs[op.weights_index : len(b.inputs) - b.attrs["N"]]
    if not all(info.is_known for info in weights):
        raise errors.Unimplemented("weights that are not known before the run")
    if b.needed >= {LAST, HIDDEN_END} and not b.attrs["N"]:
        raise errors.Unimplemented("two copies of the last state")
    check_elements((time, batch, inputs, cells))
    is_lstm, is_masked = op.gates == LSTM_GATES, bool(b.attrs["N"])
    steps = 1 if is_masked else time
    state, result = row_major((1, 1, batch, cells)), row_major((steps, batch, cells))
    source, bias = row_major((steps, batch, inputs)), _bias(b, op)
    vector = row_major((1, 1, bias.shape[0], cells))
    returns_state = bool(b.needed - {Y}) or (is_masked and is_lstm)
    end = state.descriptor if returns_state and (is_lstm or not is_masked) else library().ffi.NULL

    def describe(w_layout: Layout, u_layout: Layout) -> Any:
        return op.describe(b, [source.descriptor, state.descriptor, w_layout.descriptor, u_layout.descriptor,
                               vector.descriptor, result.descriptor, end])

    description = describe(layout_by_library(inputs, cells, op.gates), layout_by_library(cells, cells, op.gates))
    if implementation(description).startswith("ref"):  # its own choice may be a form without strides
        description = describe(row_major((1, 1, inputs, op.gates, cells)), row_major((1, 1, cells, op.gates, cells)))
    operands: dict[int, tuple[Layout, Operand]] = {
        WEIGHTS: _weights(b, op, w, description, 0), RECURRENT: _weights(b, op, u, description, 1),
        BIAS: (vector, bias)}
    if is_masked:
        operands |= {SOURCE: (source, 0), HIDDEN: (state, 1), RESULT: (result, 3)}
        if is_lstm:
            operands |= {STATE: (state, 2), LAST_HIDDEN: (state, 3), LAST_STATE: (state, 4)}
        return MaskedSteps(Primitive(description, operands), b, 2 if is_lstm else 1)
    count = len(b.inputs)
    operands |= {SOURCE: (source, 1), HIDDEN: (state, 2), RESULT: (result, count + Y)}
    if is_lstm:
        operands[STATE] = state, 3
    if returns_state:
        operands[LAST_HIDDEN] = state, count + (LAST if LAST in b.needed else HIDDEN_END)
        if is_lstm:
            operands[LAST_STATE] = state, count + STATE_END
    return Primitive(description, operands)


def _weights(b: Bind, op: SequenceOp, weights: ValueInfo, description: Any, index: int) -> tuple[Layout, Operand]:
    """Weights [rows, gates * cells] in the description's layout for the weights of this index."""
    packed_layout = chosen_layout(description, number("dnnl_query_weights_md"), index)

    def pack() -> Array:
        value = weights.value
        assert value is not None
        gates = np.ascontiguousarray(value).reshape(value.shape[0], op.gates, -1)
        return pack_array(gates, row_major((1, 1, *gates.shape)), packed_layout)

    key = f"onednn {library().version}/{b.op} {index}/{packed_layout.name}"
    return packed_layout, packed_once(b, key, packed_layout, pack)


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
