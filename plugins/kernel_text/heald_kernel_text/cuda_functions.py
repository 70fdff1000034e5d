"""Device functions of CUDA texts: one PTX instruction each, behind a name.

A host compiler cannot run these instructions. To run a text on the host, the definitions with `asm` are left out, and a
header defines the same names in C++. Threads of a warp meet in `heald_shfl_down` and the `heald_mma` functions, so all
32 must call them.
"""

from __future__ import annotations

# by name; NVRTC's wheel has no cuda_fp16.h: half precision is converted by its instructions
FUNCTIONS = {
    "heald_f32_of_f16": """\
FUNCTION f32 heald_f32_of_f16(u16 h) { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }""",
    "heald_f16_of_f32": """\
FUNCTION u16 heald_f16_of_f32(f32 x) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }""",
    "heald_tf32_of_f32": """\
FUNCTION u32 heald_tf32_of_f32(f32 x) { u32 w; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x)); return w; }""",
    "heald_shfl_down": """\
template <class T> FUNCTION T heald_shfl_down(T x, u32 by) { return __shfl_down_sync(0xffffffffu, x, by); }""",
} | {
    name: f"""\
FUNCTION void {name}(f32* c, const u32* a, const u32* b) {{
  asm volatile("mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 "
      "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}"""
    for name, shape, kind in (("heald_mma_tf32", "m16n8k8", "tf32"), ("heald_mma_f16", "m16n8k16", "f16"),
                              ("heald_mma_bf16", "m16n8k16", "bf16"))
}
