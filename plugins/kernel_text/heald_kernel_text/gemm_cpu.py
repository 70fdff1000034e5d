"""GEMM on CPUs: a work-item computes 8x32 sums in vector registers. The right operand is packed into panels.

This shape reaches 0.6 to 1.0 of OpenBLAS where the GPU's tiles reach 0.03 to 0.09. OpenCL C only, float32 only.
"""

from __future__ import annotations

from heald.api import dtypes

from .dialect import Target
from .element_types import memory_type
from .epilogue import Epilogue, indent_lines
from .gemm_problem import GemmProblem
from .kernel_parts import Pointer
from .lhs import Lhs
from .plan import INPUT, LINE, OUTPUT, SCRATCH, KernelText, Plan, kernel

ROWS, COLUMNS = (8, 10), 32  # the height with the least padding is taken: 49 rows are five blocks of 10
ALONE = (1, 1, 1)


def gemm_cpu(target: Target, name: str, problem: GemmProblem, lhs: Lhs, epilogue: Epilogue) -> Plan:
    """Packs the right operand into scratch memory (once, where it is constant), then multiplies."""
    panels = -(-problem.columns // COLUMNS)
    zeros = -(-lhs.zeros // COLUMNS) * COLUMNS
    rows = min(max(ROWS, key=lambda rows: -(-problem.rows // rows) * -rows), 1 << (problem.rows - 1).bit_length())
    every = range(rows)
    products = ["const float16 b0 = vload16(0, b), b1 = vload16(1, b); b += 32;"]
    products += [f"c{i}0 = FMA((float16)s{i}, b0, c{i}0); c{i}1 = FMA((float16)s{i}, b1, c{i}1);" for i in every]
    lines = [
        f"const size_t row0 = GLOBAL_ID(0) * {rows}, panel = GLOBAL_ID(1), z = GLOBAL_ID(2);",
        # the rows beyond the last are computed from that one, and not written
        *(f"const size_t m{i} = row0 + {i} < (size_t)nm ? row0 + {i} : (size_t)nm - 1;" for i in every),
        *(line for i in every for line in lhs.row(i)),
        f"const GLOBAL f32 *zeros = packed, *b = packed + zn + (z * ((nn + 31) / 32) + panel) * nk * {COLUMNS};",
        *(f"float16 c{i}0 = 0, c{i}1 = 0;" for i in every),
        *lhs.block(rows, products),
        f"const size_t column0 = panel * {COLUMNS};",
        f"const u32 columns = nn - column0 < {COLUMNS} ? (u32)(nn - column0) : {COLUMNS};",
    ]
    for i in every:
        lines += [
            f"if (row0 + {i} < (size_t)nm) {{",
            f"  const size_t o{i} = z * yz + m{i} * yr + column0, n{i} = z * cz + column0;",
            f"  const float16 row[2] = {{c{i}0, c{i}1}};",
            "  for (u32 j = 0; j < columns; j++) {",
            "    const f32 v0 = ((const f32*)row)[j];",
            indent_lines(epilogue.text(dtypes.float32, f"n{i} + j", f"o{i} + j"), 4),
            "  }",
            "}",
        ]
    packed = Pointer("packed", SCRATCH, 0, "f32", zeros + problem.batch * panels * problem.inner * COLUMNS)
    reads = [Pointer("x0", INPUT, 0, "f32", lhs.count(problem)), packed,
             *epilogue.pointers(problem.channel_count, problem.result_count)]
    writes = [Pointer("y0", OUTPUT, 0, memory_type(epilogue.result(dtypes.float32)), problem.result_count)]
    multiply = kernel(
        target, epilogue.name(name), lines, reads, writes,
        problem.sizes | dict(lhs.sizes) | {"zn": zeros}, (-(-problem.rows // rows), panels, problem.batch), ALONE,
    )
    return Plan((_pack(target, problem, packed, panels, zeros), multiply), (4 * packed.length,))


def _pack(target: Target, problem: GemmProblem, packed: Pointer, panels: int, zeros: int) -> KernelText:
    """Behind so many zeros panels of 32 columns, row after row; columns beyond the last are zero."""
    body = [
        "const size_t i = GLOBAL_ID(0), panel = GLOBAL_ID(1), z = GLOBAL_ID(2);", "if (i >= (size_t)nk * 32) return;",
        "if (panel + z == 0 && i < (size_t)zn) packed[i] = 0;", "const size_t k = i / 32, n = panel * 32 + i % 32;",
        "packed[zn + (z * ((nn + 31) / 32) + panel) * nk * 32 + i] = "
        "n < (size_t)nn ? x1[z * bz + k * br + n * bc] : 0;",
    ]
    sizes = {"nn": problem.columns, "nk": problem.inner, "zn": zeros} | problem.b_sizes
    return kernel(
        target, "pack_panels", body, [Pointer("x1", INPUT, 1, "f32", problem.right_count)],
        [packed], sizes, (problem.inner * COLUMNS, panels, problem.batch), (*LINE, 1, 1),
    )
