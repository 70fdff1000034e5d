"""The bodies of the kernels of recurrent layers: C lines of each form, for a layer and the outputs that are needed.

| body | a work-item does |
|---|---|
| `row` | all steps of a row |
| `whole` | all steps of one cell of a row, whose group is the row |
| `sliced` | one step of one cell of a row, with a slice of the product |
| `gates` | one step of one cell of a row, behind the product |

`products` has x w + b of all steps. A body of one step has the number t of the step as an argument.
"""

# Rows are independent of each other, so a row needs no other in `row` and `whole`. Launches order the steps of the
# other bodies. `sliced` reads all of h and writes a part: so h has two buffers there, used in turn. In `gates` a
# work-item reads and writes its own element of h only.

from __future__ import annotations

from collections.abc import Callable, Set

from .plan import LINE
from .recurrent_cells import Layer

LARGEST_WHOLE = 128  # cells: u of more is read faster by all processors than by one
GROUP = LINE[0]
LANES, SLICES = 16, 16  # of a group
Lines = list[str]


def row_body(layer: Layer, needed: Set[int]) -> Lines:
    return [
        "const i64 row = GLOBAL_ID(0);", "if (row >= rows) return;", _columns(layer),
        "GLOBAL f32* sum = sums + row * columns;",
        "for (i64 t = 0; t < steps; t++) {",
        "  const GLOBAL f32* before = (t ? hidden : h_start) + row * cells;",
        "  for (i64 column = 0; column < columns; column++) sum[column] = 0.0f;",
        *_rounds(layer, _row_product, _row_factors),
        "  for (i64 c = 0; c < cells; c++) {",
        "    const i64 own = row * cells + c;", "    const f32 old_h = before[c];",
        *_each_gate(layer, "    const f32 s{0} = sum[{0} * cells + c];"),
        *_indent(_single_step(layer, needed)), "    hidden[own] = new_h;",
        "  }", "}",
    ]


def _row_product(vector: str, first: int, last: int) -> Lines:
    return [
        "  for (i64 k = 0; k < cells; k++) {",
        f"    const f32 h = {vector}[k];", "    const GLOBAL f32* weight = u + k * columns;",
        f"    for (i64 column = {first} * cells; column < {last} * cells; column++)",
        "      sum[column] += h * weight[column];",
        "  }",
    ]


def _row_factors(factor: str) -> Lines:
    """The factors take the place of the sums of gate 1, which only they read."""
    return [
        "  GLOBAL f32* factors = sum + cells;", "  for (i64 c = 0; c < cells; c++) {",
        "    const f32 old_h = before[c], s1 = factors[c];",
        "    const f32 q1 = products[(t * rows + row) * columns + cells + c];", f"    factors[c] = {factor};",
        "  }",
    ]


def whole_body(layer: Layer, needed: Set[int]) -> Lines:
    """Products are read before the sums, which hide the time that they take."""
    has_state = layer.state is not None
    return [
        f"LOCAL f32 before[{LARGEST_WHOLE}];", f"LOCAL f32 sums[{LARGEST_WHOLE * layer.gates}];",
        *_if(layer.factor is not None, f"LOCAL f32 factors[{LARGEST_WHOLE}];"),
        "const i64 row = GROUP_ID(0), c = LOCAL_ID(0);", _columns(layer),
        "const int is_cell = c < cells;", "const i64 own = row * cells + c;",
        "f32 output = 0.0f, old_h = is_cell ? h_start[own] : 0.0f;",
        *_if(has_state, "f32 old_c = is_cell ? c_start[own] : 0.0f;"),
        "if (is_cell) before[c] = old_h;", "BARRIER;",
        "for (i64 t = 0; t < steps; t++) {",
        "  const GLOBAL f32* q = products + (t * rows + row) * columns;",
        *_each_gate(layer, "  const f32 q{0} = is_cell ? q[{0} * cells + c] : 0.0f;"),
        *_rounds(layer, _whole_product, _whole_factors),
        "  if (is_cell) {",
        *_each_gate(layer, "    const f32 s{0} = sums[{0} * cells + c];"),
        *_indent(_cell(layer, needed)), "    before[c] = old_h = new_h;", *_if(has_state, "    old_c = new_c;"),
        "  }", "  BARRIER;", "}",
    ]


def _whole_product(vector: str, first: int, last: int) -> Lines:
    """A work-item has a column of one gate, or each 256th of several: PoCL 3.1 is wrong with two loops."""
    one = f"  if (is_cell) {{ const i64 column = {first} * cells + c;"
    several = f"  for (i64 column = {first} * cells + c; column < {last} * cells; column += {GROUP}) {{"
    return [
        one if last - first == 1 else several,
        "    const GLOBAL f32* weight = u + column;", "    f32 sum = 0.0f;",
        f"    for (i64 k = 0; k < cells; k++, weight += columns) sum = FMA({vector}[k], *weight, sum);",
        "    sums[column] = sum;",
        "  }", "  BARRIER;",
    ]


def _whole_factors(factor: str) -> Lines:
    return ["  if (is_cell) {", "    const f32 s1 = sums[cells + c];", f"    factors[c] = {factor};",
            "  }", "  BARRIER;"]


def sliced_body(layer: Layer, needed: Set[int]) -> Lines:
    return [
        f"LOCAL f32 parts[{layer.gates * SLICES * LANES}];", "const i64 c = GLOBAL_ID(0), row = GROUP_ID(1);",
        "const u32 lane = LOCAL_ID(0), slice = LOCAL_ID(1);", _columns(layer),
        "const i64 own = row * cells + c, states = rows * cells;",
        "const GLOBAL f32* before = (t ? hidden + ((t + 1) & 1) * states : h_start) + row * cells;",
        *_each_gate(layer, "f32 s{0} = 0.0f;"),
        f"if (c < cells) for (i64 k = slice; k < cells; k += {SLICES}) {{",
        "  const GLOBAL f32* weight = u + k * columns + c;", "  const f32 h = before[k];",
        *_each_gate(layer, "  s{0} = FMA(h, weight[{0} * cells], s{0});"),
        "}",
        *_each_gate(layer, f"parts[({{0}} * {SLICES} + slice) * {LANES} + lane] = s{{0}};"), "BARRIER;",
        "if (slice || c >= cells) return;",
        f"for (u32 other = 1; other < {SLICES}; other++) {{",
        *_each_gate(layer, f"  s{{0}} += parts[({{0}} * {SLICES} + other) * {LANES} + lane];"),
        "}",
        "const f32 old_h = before[c];", *_single_step(layer, needed), "hidden[(t & 1) * states + own] = new_h;",
    ]


def gates_body(layer: Layer, needed: Set[int]) -> Lines:
    """`sums`: h u of this step."""
    return [
        "const i64 c = GLOBAL_ID(0), row = GLOBAL_ID(1);", "if (c >= cells || row >= rows) return;", _columns(layer),
        "const i64 own = row * cells + c;",
        *_each_gate(layer, "const f32 s{0} = sums[row * columns + {0} * cells + c];"),
        "const f32 old_h = t ? hidden[own] : h_start[own];", *_single_step(layer, needed), "hidden[own] = new_h;",
    ]


def _rounds(layer: Layer, product: Callable[[str, int, int], Lines], factors: Callable[[str], Lines]) -> Lines:
    """The sums of a step: the products of h. A factor of the last gate has a product of its own behind them."""
    if layer.factor is None:
        return product("before", 0, layer.gates)
    last = layer.gates - 1
    return [*product("before", 0, last), *factors(layer.factor), *product("factors", last, layer.gates)]


def _single_step(layer: Layer, needed: Set[int]) -> Lines:
    """The cell in step t, with all its values but h in global memory."""
    has_state, has_mask = layer.state is not None, layer.mask is not None
    return [
        "const GLOBAL f32* q = products + (t * rows + row) * columns + c;",
        *_each_gate(layer, "const f32 q{0} = q[{0} * cells];"),
        *_if(has_state, "const f32 old_c = t ? state[own] : c_start[own];"),
        f"f32 output = {'t ? previous[own] : 0.0f' if has_mask else '0.0f'};",
        *_cell(layer, needed), *_if(has_state, "state[own] = new_c;"), *_if(has_mask, "previous[own] = output;"),
    ]


def _cell(layer: Layer, needed: Set[int]) -> Lines:
    """From the sums and the states in step t to its results `new_h`, `new_c` and `output`. `own`: the position in a
    state."""
    states = "h" if layer.state is None else "hc"
    ends = [f"  end{number}[own] = {value};" for number, value in layer.end_results.items() if number in needed]
    return [
        *layer.lines,
        *([f"const f32 new_{state} = cell_{state};" for state in states] if layer.mask is None else
          ["const int is_on = mask[t * rows + row];",
           *(f"const f32 new_{state} = is_on ? cell_{state} : old_{state};" for state in states)]),
        "output = new_h;" if layer.mask is None else
        f"output = is_on ? new_h : {'output' if layer.keeps_output else '0.0f'};",
        *(f"y{number}[t * rows * cells + own] = {value};" for number, value in layer.step_results.items()
          if number in needed),
        *_if(bool(ends), "if (t == steps - 1) {", *ends, "}"),
    ]


def _columns(layer: Layer) -> str:
    return f"const i64 columns = {layer.gates} * cells;"


def _each_gate(layer: Layer, line: str) -> Lines:
    return [line.format(gate) for gate in range(layer.gates)]


def _if(condition: bool, *lines: str) -> Lines:
    return [*lines] if condition else []


def _indent(lines: Lines) -> Lines:
    return [f"    {line}" for line in lines]
