"""GEMM on GPUs: a group of 256 work-items computes a tile of sums through local memory.

While a group multiplies one pair of tiles, the loads of the next pair are under way; local memory has room for two
pairs. `fma_core` and `mma_core` multiply a pair. A long inner dimension with few tiles is cut into parts: a second
launch adds the parts up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heald.api import DType, dtypes

from .dialect import Target
from .element_types import ELEMENTS, load, memory_type, register_type
from .epilogue import Epilogue, indent_lines
from .fma_core import FmaCore
from .gemm_problem import GemmProblem
from .kernel_parts import Pointer
from .lhs import Lhs
from .mma_core import FRAGMENTS, MmaCore
from .plan import BYTES, INPUT, OUTPUT, SCRATCH, KernelText, Plan, kernel, plane
from .tiles import FMA, FMA_OF_EIGHT_BYTES, MMA, THREADS, Tile, choose_tile

LOCAL = (16, 16, 1)
Core = FmaCore | MmaCore


def gemm_gpu(target: Target, name: str, problem: GemmProblem, lhs: Lhs, epilogue: Epilogue) -> Plan:
    """The plan of a tiled product. Two-byte floats are summed in float32, other types in their own type."""
    kind = fragment(target, problem.dtype)
    wide = ELEMENTS[problem.dtype].register_type in ("f64", "i64")
    tile, parts = choose_tile(target, problem, MMA if kind else FMA_OF_EIGHT_BYTES if wide else FMA)
    core: Core = MmaCore(tile, kind) if kind else FmaCore(tile, problem.dtype)
    # the bits of two-byte floats go to the tensor cores as they are
    lhs = replace(lhs, dtype=dtypes.uint16 if kind and problem.dtype.itemsize == 2 else problem.dtype)
    if parts == 1:
        ending = ["const size_t o = z * yz + m * yr + n;", *epilogue.text(problem.dtype, "z * cz + n", "o")]
        result = [Pointer("y0", OUTPUT, 0, memory_type(epilogue.result(problem.dtype)), problem.result_count)]
        reads, sizes = epilogue.pointers(problem.channel_count, problem.result_count), problem.sizes
        return Plan((_product(target, epilogue.name(name), problem, lhs, core, tile, 1, ending, reads, result, sizes),))
    c_type = register_type(problem.dtype)
    ending = ["part_sums[(group * nm + m) * nn + n] = v0;"]
    sums = parts * problem.batch * problem.rows * problem.columns
    scratch = [Pointer("part_sums", SCRATCH, 0, c_type, sums)]
    sizes = {key: problem.sizes[key] for key in ("nm", "nn", "nk")}
    product = _product(target, f"{name}_parts", problem, lhs, core, tile, parts, ending, [], scratch, sizes)
    return Plan((product, _sum_parts(target, epilogue.name(name), problem, parts, epilogue)), (sums * BYTES[c_type],))


def fragment(target: Target, dtype: DType) -> str:
    """The type of the tensor cores' operands for elements of this type; empty for products without tensor cores."""
    if not target.tensor_cores:
        return ""
    kind = target.products if dtype is dtypes.float32 else dtype.name
    return kind if kind in FRAGMENTS else ""


def _product(
    target: Target, name: str, problem: GemmProblem, lhs: Lhs, core: Core, tile: Tile, parts: int,
    ending: Sequence[str], more: Sequence[Pointer], writes: Sequence[Pointer], sizes: dict[str, int],
) -> KernelText:
    step = tile.depth * core.elements_in_word
    length = -(-problem.inner // (parts * step)) * step  # of a part
    body = [
        *core.tiles(),
        "const u32 t = LOCAL_ID(1) * 16 + LOCAL_ID(0);",
        f"const size_t group = GROUP_ID(2), row0 = GROUP_ID(0) * {tile.rows}, column0 = GROUP_ID(1) * {tile.columns};",
        *(["const size_t z = group % batch, from = group / batch * length;",
           "const size_t end = from + length < (size_t)nk ? from + length : (size_t)nk;"] if parts > 1 else
          ["const size_t z = group, from = 0, end = nk;"]),
        *_rows(tile, lhs),
        "u32 now = 1;",
        f"for (size_t k0 = from; k0 < end + {step}; k0 += {step}, now ^= 1) {{",
        indent_lines(_loads(problem, lhs, core, tile), 2),
        "  if (k0 > from) {", indent_lines(core.multiply(), 4), "  }",
        "  if (k0 < end) {", indent_lines(_stores(problem, core, tile), 4), "  }",
        "  BARRIER;",
        "}",
        *core.over_sums(["if (m < (size_t)nm && n < (size_t)nn) {", *ending, "}"]),
    ]
    c_stored = memory_type(problem.dtype)
    reads = [Pointer("x0", INPUT, 0, c_stored, lhs.count(problem)),
             Pointer("x1", INPUT, 1, c_stored, problem.right_count), *more]
    groups = (-(-problem.rows // tile.rows), -(-problem.columns // tile.columns), problem.batch * parts)
    cut = {"batch": problem.batch, "length": length} if parts > 1 else {}
    return kernel(
        target, name, body, reads, writes, sizes | problem.b_sizes | dict(lhs.sizes) | cut,
        (groups[0] * 16, groups[1] * 16, groups[2]), LOCAL,
    )


def _rows(tile: Tile, lhs: Lhs) -> list[str]:
    """The rows of the left operand that a work-item loads; those beyond the last are read but not used."""
    lines = []
    for i in range(tile.rows * tile.depth // THREADS):
        row = f"row0 + t / {tile.depth} + {i * THREADS // tile.depth}"
        lines += [f"const size_t m{i} = {row} < (size_t)nm ? {row} : (size_t)nm - 1;", *lhs.row(i)]
    return lines


def _right(problem: GemmProblem, tile: Tile) -> tuple[str, str, int]:
    """The word and the column that a work-item loads first, of the right operand, and the number that it loads.
    Neighbouring work-items load neighbouring elements."""
    count = tile.columns * tile.depth // THREADS
    if problem.b_column == 1:
        return f"(t + j * {THREADS}) / {tile.columns}", f"(t + j * {THREADS}) % {tile.columns}", count
    return f"t % {tile.depth}", f"t / {tile.depth} + j * {THREADS // tile.depth}", count


def _loads(problem: GemmProblem, lhs: Lhs, core: Core, tile: Tile) -> list[str]:
    """The elements of the next pair, into registers. Beyond the end they are zero."""
    rows = range(tile.rows * tile.depth // THREADS)
    word, column, count = _right(problem, tile)
    element = load(lhs.dtype, "x1", "z * bz + k * br + n * bc")
    lines = [f"{core.word} ra[{len(rows)}], rb[{count}];"]
    for part in range(core.elements_in_word):
        join, shift = ("|=", " << 16") if part else ("=", "")
        of_word = f"* {core.elements_in_word} + {part}" if core.elements_in_word > 1 else ""
        lines += [
            f"{{ const size_t k = k0 + t % {tile.depth} {of_word}; const int inside = k < end;",
            indent_lines(lhs.column(), 2),
            *(f"  ra[{i}] {join} inside ? {core.word_bits(lhs.dtype, lhs.element(i))}{shift} : 0;" for i in rows), "}",
            "UNROLL",
            f"for (u32 j = 0; j < {count}; j++) {{",
            f"  const size_t k = k0 + ({word}) {of_word}, n = column0 + ({column});",
            f"  rb[j] {join} k < end && n < (size_t)nn ? {core.word_bits(lhs.dtype, element)}{shift} : 0;",
            "}",
        ]
    return lines


def _stores(problem: GemmProblem, core: Core, tile: Tile) -> list[str]:
    rows = range(tile.rows * tile.depth // THREADS)
    word, column, count = _right(problem, tile)
    left = [f"{core.a(f't % {tile.depth}', f't / {tile.depth} + {i * THREADS // tile.depth}')} = ra[{i}];"
            for i in rows]
    return [*left, "UNROLL", f"for (u32 j = 0; j < {count}; j++) {core.b(word, column)} = rb[j];"]


def _sum_parts(target: Target, name: str, problem: GemmProblem, parts: int, epilogue: Epilogue) -> KernelText:
    """The launch that adds up the parts of each sum, and finishes it."""
    dtype = problem.dtype
    add = "v0 += part;" if dtype.kind == "f" else f"v0 = ({register_type(dtype)})(({{u}})v0 + ({{u}})part);".format(
        u=ELEMENTS[dtype].unsigned)
    body = [
        "const size_t n = GLOBAL_ID(0), row = GLOBAL_ID(1);", "if (n >= (size_t)nn || row >= (size_t)rows) return;",
        f"const size_t z = row / nm, m = row % nm, o = z * yz + m * yr + n; {register_type(dtype)} v0 = 0;",
        "for (size_t p = 0; p < (size_t)parts; p++) {",
        f"  const {register_type(dtype)} part = part_sums[(p * rows + row) * nn + n]; {add}", "}",
        *epilogue.text(dtype, "z * cz + n", "o"),
    ]
    rows = problem.batch * problem.rows
    sizes = {key: problem.sizes[key] for key in ("nm", "nn", "yr", "yz", "cz")} | {"rows": rows, "parts": parts}
    reads = [Pointer("part_sums", SCRATCH, 0, register_type(dtype), parts * rows * problem.columns),
             *epilogue.pointers(problem.channel_count, problem.result_count)]
    writes = [Pointer("y0", OUTPUT, 0, memory_type(epilogue.result(dtype)), problem.result_count)]
    items = (problem.columns, rows)
    return kernel(target, name, body, reads, writes, sizes, items, plane(*items))
