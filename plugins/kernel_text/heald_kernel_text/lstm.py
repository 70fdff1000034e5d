"""LSTMBlockCell: one product over input and hidden values side by side, then all gates in one launch."""

from __future__ import annotations

from heald.api import Bind, dtypes

from .c_text import literal
from .copies import concat
from .dialect import Target
from .kernel_parts import Pointer
from .matmul import matmul
from .plan import INPUT, OUTPUT, SCRATCH, Argument, Plan, Stage, chain_plans, kernel, plane

F32 = dtypes.float32
RESULTS = ("i", "cs", "f", "o", "ci", "co", "h")
PEEPHOLES = {"wci": 4, "wcf": 5, "wco": 6}  # inputs


def lstm_cell(target: Target, b: Bind) -> Plan:
    """Inputs: x, cs_prev, h_prev, w, wci, wcf, wco, b, all float32; [i, ci, f, o] = [x, h_prev] w + b."""
    x, hidden, weights = (b.inputs[number].meta.dims for number in (0, 2, 3))
    both = (x[0], x[1] + hidden[1])
    if 0 in hidden:
        return Plan()
    beside, products = Argument(SCRATCH, 0), Argument(SCRATCH, 1)
    inputs = [Argument(INPUT, number) for number in range(len(b.inputs))]
    outputs = [Argument(OUTPUT, number) for number in range(len(b.outputs))]
    return chain_plans([
        Stage(concat(target, F32.itemsize, [x, hidden], 1), (inputs[0], inputs[2]), (beside,)),
        Stage(matmul(target, F32, both, weights), (beside, inputs[3]), (products,)),
        Stage(_gates(target, b), (products, *inputs[1:]), outputs),
    ], [4 * both[0] * both[1], 16 * hidden[0] * hidden[1]])


def _gates(target: Target, b: Bind) -> Plan:
    """Sigmoid is computed by tanh, which does not overflow. Input 0 is the products; the others are the cell's."""
    rows, cells = b.outputs[0].dims
    clip, has_peepholes = b.attrs["cell_clip"], b.attrs["use_peephole"]
    bound, forget = literal(clip, F32), literal(b.attrs["forget_bias"], F32)

    def gate(quarter: int, more: str = "") -> str:
        return f"p[{quarter} * cells] + b[{quarter} * cells + c]{more}"

    lines = [
        "const size_t c = GLOBAL_ID(0), row = GLOBAL_ID(1);", "if (c >= (size_t)cells || row >= (size_t)rows) return;",
        "const GLOBAL f32* p = products + row * 4 * cells + c;", "const f32 state = cs_prev[row * cells + c];",
        f"const f32 to_i = {gate(0, ' + wci[c] * state' if has_peepholes else '')};",
        f"const f32 to_f = {gate(2, ' + wcf[c] * state' if has_peepholes else '')} + {forget};",
        f"const f32 v_i = {_sigmoid('to_i')}, v_f = {_sigmoid('to_f')}, v_ci = tanh({gate(1)});",
        "const f32 sum = v_ci * v_i + state * v_f;",
        f"const f32 v_cs = {f'sum > {bound} ? {bound} : sum < -{bound} ? -{bound} : sum' if clip > 0 else 'sum'};",
        f"const f32 to_o = {gate(3, ' + wco[c] * v_cs' if has_peepholes else '')};",
        f"const f32 v_o = {_sigmoid('to_o')}, v_co = tanh(v_cs), v_h = v_co * v_o;",
        *(f"{RESULTS[number]}_[row * cells + c] = v_{RESULTS[number]};" for number in sorted(b.needed)),
    ]
    reads = [Pointer("products", INPUT, 0, "f32", 4 * rows * cells), Pointer("cs_prev", INPUT, 1, "f32", rows * cells),
             *(Pointer(name, INPUT, number, "f32", cells) for name, number in PEEPHOLES.items() if has_peepholes),
             Pointer("b", INPUT, 7, "f32", 4 * cells)]
    writes = [Pointer(f"{RESULTS[number]}_", OUTPUT, number, "f32", rows * cells) for number in sorted(b.needed)]
    return Plan((kernel(target, "LSTMBlockCell", lines, reads, writes, {"rows": rows, "cells": cells},
                        (cells, rows), plane(cells, rows)),))


def _sigmoid(x: str) -> str:
    return f"0.5f * tanh(0.5f * ({x})) + 0.5f"
