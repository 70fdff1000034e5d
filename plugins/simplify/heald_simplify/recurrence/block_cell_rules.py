"""Rules of ops that are a whole cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heald.api import Resolved

from .body import UNKNOWN, BodyEvaluation, RuleTable
from .body_values import (
    Matrix,
    Value,
    Values,
)
from .matrix_rules import product_with_weights
from .polynomials import Block, Clip, Source, add, constant, scale

RULES = RuleTable()


@RULES.rule("LSTMBlockCell")
def _lstm_block_cell(body: BodyEvaluation, entry: Resolved, inputs: list[Value | None]) -> Values:
    """i, cs, f, o, ci, co, h. The weights are in the order i, ci, f, o."""
    x, state, hidden, weights, *vectors, bias = inputs
    sums = _gates_of_block(body, (x, hidden), weights, bias)
    if not isinstance(state, Matrix) or sums is None or sums.width != 4 * state.width:
        return UNKNOWN
    arguments = [body.algebra.columns(sums.value, gate * state.width, (gate + 1) * state.width) for gate in range(4)]
    peepholes = [body.matrix(vector, state.width) for vector in (vectors if entry.attrs["use_peephole"] else ())]
    if any(argument is None for argument in arguments) or not all(peepholes):
        return UNKNOWN
    algebra, activate, multiply = body.algebra, body.activation, body.algebra.multiply
    of_input, of_candidate, of_forget, of_output = (argument for argument in arguments if argument is not None)
    of_forget = add(of_forget, constant(entry.attrs["forget_bias"]))
    wci, wcf, wco = [peephole.value for peephole in peepholes if peephole is not None] or [constant(0.0)] * 3
    i = activate("Sigmoid", add(of_input, multiply(wci, state.value)))
    f = activate("Sigmoid", add(of_forget, multiply(wcf, state.value)))
    candidate = activate("Tanh", of_candidate)
    new_state, clip = add(multiply(candidate, i), multiply(state.value, f)), entry.attrs["cell_clip"]
    if clip > 0:
        new_state = algebra.polynomial(Clip(new_state, -clip, clip))
    o, squashed = activate("Sigmoid", add(of_output, multiply(wco, new_state))), activate("Tanh", new_state)
    results = i, new_state, f, o, candidate, squashed, multiply(o, squashed)
    return tuple(Matrix(result, state.width) for result in results)


@RULES.rule("GRUBlockCell")
def _gru_block_cell(body: BodyEvaluation, _: Resolved, inputs: list[Value | None]) -> Values:
    """r, u, c, h. The weights of the gates are in the order r, u."""
    x, hidden, gate_weights, weights, gate_bias, bias = inputs
    sums = _gates_of_block(body, (x, hidden), gate_weights, gate_bias)
    if sums is None or not isinstance(hidden, Matrix) or sums.width != 2 * hidden.width:
        return UNKNOWN
    algebra, width = body.algebra, hidden.width
    of_reset, of_update = algebra.columns(sums.value, 0, width), algebra.columns(sums.value, width, 2 * width)
    if of_reset is None or of_update is None:
        return UNKNOWN
    r, u = body.activation("Sigmoid", of_reset), body.activation("Sigmoid", of_update)
    of_candidate = _gates_of_block(body, (x, Matrix(algebra.multiply(r, hidden.value), width)), weights, bias)
    if of_candidate is None or of_candidate.width != width:
        return UNKNOWN
    candidate = body.activation("Tanh", of_candidate.value)
    renewal = algebra.multiply(add(constant(1.0), scale(u, -1.0)), candidate)
    results = r, u, candidate, add(algebra.multiply(u, hidden.value), renewal)
    return tuple(Matrix(result, width) for result in results)


def _gates_of_block(
    body: BodyEvaluation, parts: Sequence[Value | None], weights: Value | None, bias: Value | None
) -> Matrix | None:
    """[x, h] w + b"""
    body.needs_equal_rows = True
    product = product_with_weights(body, parts, weights)
    vector = None if product is None else body.matrix(bias, product.width)
    if product is None or vector is None or not isinstance(bias, Source | Block):
        return None
    return replace(product, value=add(product.value, vector.value))
