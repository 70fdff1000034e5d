"""Recurrent cells as C statements: from the products of a step to the new states of one cell."""

# The statements of a cell read
#
#   s0, s1, ...      h u of each gate, for the row and the cell of the work-item
#   q0, q1, ...      x w + b of each gate
#   old_h, old_c     the states
#   c                the number of the cell, for vectors of weights
#
# and define cell_h and, of an LSTM, cell_c. `Layer` names the vectors and the results that outputs take.

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from heald.api import Bind, dtypes, errors

from .c_text import literal, write_lines
from .expression import Literal, Step, result_types, statements

F32 = dtypes.float32
_SELU = Literal(1.0507009873554805), Literal(1.7580993408473768)
ACTIVATIONS: Mapping[str, tuple[Step, ...]] = {  # over value 0
    "elu": (Step("Elu", (0,)),),
    "hard_sigmoid": (Step("AddV2", (0, Literal(3))), Step("Relu6", (1,)), Step("RealDiv", (2, Literal(6)))),
    "hard_sigmoid_of_fifths": (Step("Mul", (0, Literal(0.2))), Step("AddV2", (1, Literal(0.5))),
                               Step("ClipByValue", (2, Literal(0), Literal(1)))),
    "relu": (Step("Relu", (0,)),),
    "selu": (Step("Selu", (0, *_SELU)),),
    "sigmoid": (Step("Sigmoid", (0,)),),
    "softplus": (Step("Softplus", (0,)),),
    "softsign": (Step("Softsign", (0,)),),
    "tanh": (Step("Tanh", (0,)),),
}


class Layer(NamedTuple):
    """A layer over the steps of a sequence. Numbers are indices of the node's inputs and outputs.

    `hidden`, `state`, `w`, `u`, `bias`: the inputs. A layer without `u` has it in the rows of w behind those of x.
    `vectors`: names in the statements to inputs of an element for each cell.
    `activations`: names of functions in the statements to names in `ACTIVATIONS`.
    `factor`: the value that the weights of the last gate multiply, where it is not h. It reads the other gates.
    `step_results`, `end_results`: outputs to the variables that they take in each step, and in the last one.
    """

    gates: int
    lines: tuple[str, ...]
    hidden: int
    w: int
    bias: int
    activations: Mapping[str, str]
    step_results: Mapping[int, str]
    end_results: Mapping[int, str]
    u: int | None = None
    state: int | None = None
    mask: int | None = None
    keeps_output: bool = False
    vectors: Mapping[str, int] = {}
    factor: str | None = None


def layer_of(b: Bind) -> Layer:
    """Raises Unimplemented for a layer without text."""
    return LAYERS[b.op](b)


def activation_functions(layer: Layer) -> str:
    """The definitions of the functions that the statements call. Raises Unimplemented for an unknown activation."""
    functions = []
    for name, activation in layer.activations.items():
        steps = ACTIVATIONS.get(activation)
        if steps is None:
            raise errors.Unimplemented(f"no kernel text for the activation '{activation}'")
        body = " ".join(write_lines([*statements(steps, result_types(steps, [F32]), 1)]))
        functions.append(f"FUNCTION f32 {name}(const f32 v0) {{ {body} return v{len(steps)}; }}\n")
    return "".join(functions)


def _lstm(b: Bind) -> Layer:
    if b.attrs["R"]:
        raise errors.Unimplemented("no kernel text for an LSTM with a projection")
    vectors = {"w_i": 7, "w_f": 8, "w_o": 9} if b.attrs["P"] else {}
    lines = _lstm_lines((0, 1, 2, 3), cell_clip=b.attrs["cell_clip"], hidden_clip=b.attrs["proj_clip"],
                        has_peepholes=bool(vectors))
    return Layer(4, lines, 2, 4, 6, _activations(b), {0: "output"}, {1: "output", 2: "new_h", 3: "new_c"}, 5, 3,
                 *_mask(b), vectors)


def _block_lstm(b: Bind) -> Layer:
    order = (0, 2, 1, 3) if b.op == "BlockLSTM" else (0, 1, 2, 3)
    vectors = {"w_i": 5, "w_f": 6, "w_o": 7} if b.attrs["use_peephole"] else {}
    lines = _lstm_lines(order, cell_clip=b.attrs["cell_clip"], forget_bias=b.attrs.get("forget_bias", 0.0),
                        has_peepholes=bool(vectors))
    results = ("v_i", "new_c", "v_f", "v_o", "v_g", "v_co", "new_h")
    return Layer(4, lines, 3, 4, 8, {"gated": "sigmoid", "activated": "tanh"}, dict(enumerate(results)), {}, None, 2,
                 vectors=vectors)


def _lstm_lines(
    order: tuple[int, int, int, int], *, cell_clip: float, hidden_clip: float = 0.0, forget_bias: float = 0.0,
    has_peepholes: bool,
) -> tuple[str, ...]:
    """`order`: the numbers of the gates i, f, g and o."""
    i, f, g, o = order

    def peephole(gate: str, state: str) -> str:
        return f" + w_{gate}[c] * {state}" if has_peepholes else ""

    shift = f" + {literal(forget_bias, F32)}" if forget_bias else ""
    return (
        f"const f32 v_i = gated(s{i} + q{i}{peephole('i', 'old_c')});",
        f"const f32 v_f = gated(s{f} + q{f}{shift}{peephole('f', 'old_c')});",
        f"const f32 v_g = activated(s{g} + q{g});",
        "const f32 sum = v_f * old_c + v_i * v_g;",
        f"const f32 cell_c = {_clip_expression('sum', cell_clip)};",
        f"const f32 v_o = gated(s{o} + q{o}{peephole('o', 'cell_c')});",
        "const f32 v_co = activated(cell_c), product = v_o * v_co;",
        f"const f32 cell_h = {_clip_expression('product', hidden_clip)};",
    )


def _clip_expression(x: str, clip: float) -> str:
    bound = literal(clip, F32)
    return f"{x} > {bound} ? {bound} : {x} < -{bound} ? -{bound} : {x}" if clip > 0 else x


def _gru(b: Bind) -> Layer:
    is_after = b.attrs["reset_after"]
    lines = ("const f32 v_z = gated(s0 + q0);",
             f"const f32 v_g = activated(q2 + {'gated(s1 + q1) * (s2 + recurrent_bias[c])' if is_after else 's2'});",
             "const f32 cell_h = v_z * old_h + (1.0f - v_z) * v_g;")
    return Layer(3, lines, 2, 3, 5, _activations(b), {0: "output"}, {1: "output", 2: "new_h"}, 4, None, *_mask(b),
                 {"recurrent_bias": 6} if is_after else {}, None if is_after else "gated(s1 + q1) * old_h")


def _rnn(b: Bind) -> Layer:
    return Layer(1, ("const f32 cell_h = activated(s0 + q0);",), 2, 3, 5, _activations(b), {0: "output"},
                 {1: "output", 2: "new_h"}, 4, None, *_mask(b))


def _activations(b: Bind) -> dict[str, str]:
    names = {"activated": "activation", "gated": "recurrent_activation"}
    return {function: b.attrs[name] for function, name in names.items() if name in b.attrs}


def _mask(b: Bind) -> tuple[int | None, bool]:
    return len(b.inputs) - 1 if b.attrs["N"] else None, b.attrs["masked"] == "previous"


LAYERS = {"_GRUSequence": _gru, "_LSTMSequence": _lstm, "_RNNSequence": _rnn, "BlockLSTM": _block_lstm,
          "BlockLSTMV2": _block_lstm}
