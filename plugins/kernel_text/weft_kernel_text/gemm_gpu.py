"""GEMM on GPUs: 16x16 work-items compute a 64x64 tile through local memory, 4x4 sums each."""

from __future__ import annotations

from .dialect import Target
from .element_types import ELEMENTS, computed, load, stored
from .epilogue import Epilogue, indented
from .gemm_problem import GemmProblem
from .lhs import Lhs
from .plan import INPUT, OUTPUT, Plan, Pointer, kernel

SIDE, EACH, DEPTH = 64, 4, 16
THREADS = SIDE // EACH  # in each of two dimensions
EVERY = range(EACH)
SPARE = 1  # one column more than needed: writes go to different banks


def gemm_gpu(target: Target, name: str, problem: GemmProblem, lhs: Lhs, epilogue: Epilogue) -> Plan:
    """The plan of a tiled product. Two-byte floats are summed in float32, other types in their own type."""
    element = ELEMENTS[problem.dtype]
    c_type = computed(problem.dtype)
    add = f"({c_type})(({{u}})acc[i][j] + ({{u}})a * ({{u}})b[j])".format(u=element.unsigned)
    if problem.dtype.kind == "f":
        add = "FMA(a, b[j], acc[i][j])"
    lines = [
        f"LOCAL {c_type} as[{DEPTH}][{SIDE + SPARE}];",
        f"LOCAL {c_type} bs[{DEPTH}][{SIDE}];",
        "const u32 tx = LOCAL_ID(0), ty = LOCAL_ID(1), t = ty * 16 + tx;",
        f"const size_t z = GROUP_ID(2), column0 = GROUP_ID(0) * {SIDE}, row0 = GROUP_ID(1) * {SIDE};",
        # the rows of A that this work-item copies; those beyond the last are read but not used
        *(f"const size_t m{i} = row0 + t / {DEPTH} + {i * THREADS} < (size_t)nm ? "
          f"row0 + t / {DEPTH} + {i * THREADS} : (size_t)nm - 1;" for i in EVERY),
        *(line for i in EVERY for line in lhs.row(i)),
        f"{c_type} acc[{EACH}][{EACH}];",
        f"for (int i = 0; i < {EACH}; i++) for (int j = 0; j < {EACH}; j++) acc[i][j] = 0;",
        f"for (size_t k0 = 0; k0 < (size_t)nk; k0 += {DEPTH}) {{",
        f"  {{ const size_t k = k0 + t % {DEPTH}; const int inside = k < (size_t)nk;",
        indented(lhs.column(), 4),
        *(f"    as[t % {DEPTH}][t / {DEPTH} + {i * THREADS}] = inside ? {lhs.element(i)} : 0;" for i in EVERY),
        "  }",
        f"  for (u32 l = t; l < {DEPTH * SIDE}; l += {THREADS * THREADS}) {{",
        f"    const size_t k = k0 + l / {SIDE}, n = column0 + l % {SIDE};",
        f"    bs[l / {SIDE}][l % {SIDE}] = k < (size_t)nk && n < (size_t)nn ? "
        f"{load(problem.dtype, 'x1', 'z * bz + k * br + n * bc')} : 0;",
        "  }",
        "  BARRIER;",
        f"  for (int k = 0; k < {DEPTH}; k++) {{",
        f"    {c_type} b[{EACH}];",
        f"    for (int j = 0; j < {EACH}; j++) b[j] = bs[k][tx + j * {THREADS}];",
        f"    for (int i = 0; i < {EACH}; i++) {{",
        f"      const {c_type} a = as[k][ty + i * {THREADS}];",
        f"      for (int j = 0; j < {EACH}; j++) acc[i][j] = {add};",
        "    }",
        "  }",
        "  BARRIER;",
        "}",
        f"for (int i = 0; i < {EACH}; i++) for (int j = 0; j < {EACH}; j++) {{",
        f"  const size_t m = row0 + ty + i * {THREADS}, n = column0 + tx + j * {THREADS};",
        "  if (m < (size_t)nm && n < (size_t)nn) {",
        "    const size_t o = z * yz + m * yr + n;",
        f"    const {c_type} v0 = acc[i][j];",
        indented(epilogue.text(problem.dtype, "z * cz + n", "o"), 4),
        "  }",
        "}",
    ]
    result = stored(epilogue.result(problem.dtype))
    c_stored = stored(problem.dtype)
    reads = [Pointer("x0", INPUT, 0, c_stored), Pointer("x1", INPUT, 1, c_stored), *epilogue.pointers()]
    groups = (-(-problem.columns // SIDE), -(-problem.rows // SIDE), problem.batch)
    items = (groups[0] * THREADS, groups[1] * THREADS, groups[2])
    return Plan((kernel(
        target, name, indented(lines, 2), reads, [Pointer("y0", OUTPUT, 0, result)],
        problem.sizes | problem.b_sizes | dict(lhs.sizes), items, (THREADS, THREADS, 1),
    ),))
