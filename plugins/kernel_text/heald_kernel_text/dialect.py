"""Dialects of C: the macros that let one kernel text be OpenCL C, CUDA C and Metal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from textwrap import indent

from heald.api import errors

from .c_text import write_lines
from .cuda_functions import FUNCTIONS
from .kernel_parts import KernelParts, Language
from .wgsl import WGSL


@dataclass(frozen=True)
class Dialect:
    """The differences between C-like kernel languages. Every dialect defines the same macros and types."""

    name: str
    macros: Mapping[str, str] = field(repr=False)  # with parameters -> replacement
    types: Mapping[str, str] = field(repr=False)
    fp64: str = ""  # the line that allows double
    functions: Mapping[str, str] = field(default_factory=dict, repr=False)  # device functions, name -> definition
    head: str = ""  # the first lines of every text
    lacks: frozenset[str] = frozenset()  # types and functions that other dialects have

    def source(self, parts: KernelParts) -> str:
        """The text of a kernel."""
        group = ", ".join(map(str, parts.group))
        body = indent("\n".join(write_lines(parts.body)), "  ")
        text = f"{parts.functions}KERNEL({group}) {parts.name}({', '.join(self.parameters(parts))}) {{\n{body}\n}}\n"
        if self.lacks and (lacking := self.lacks.intersection(re.findall(r"\w+", text))):
            raise errors.Unimplemented(f"no kernel text for {parts.name} in {self.name}, which lacks {min(lacking)}")
        return self.prelude(text) + text

    def parameters(self, parts: KernelParts) -> list[str]:
        return [*(f"GLOBAL const {p.stored}* RESTRICT {p.name}" for p in parts.reads),
                *(f"GLOBAL {p.stored}* RESTRICT {p.name}" for p in parts.writes),
                *(f"const i64 {size}" for size in parts.sizes)]

    def prelude(self, text: str) -> str:
        """The beginning of a source text, for the kernels that follow. Devices without double must not see the word
        `double`."""
        fp64 = re.search(r"\bf64\b", text) is not None
        lines = [self.head] if self.head else []
        lines += [self.fp64] if fp64 and self.fp64 else []
        lines += [f"#define {name} {text}" for name, text in self.types.items() if fp64 or name != "f64"]
        lines += [f"#define {name} {text}" for name, text in self.macros.items()]
        return "\n".join([*lines, *self._called_functions(text), BOTH])

    def _called_functions(self, text: str) -> list[str]:
        """The definitions of the device functions that a text calls."""
        if not self.functions:
            return []
        words = set(re.findall(r"\w+", text))
        called = {name for macro, body in self.macros.items() if _words(macro)[0] in words
                  for name in _words(body)} | words
        return [definition for name, definition in self.functions.items() if name in called]


@cache
def _words(macro: str) -> list[str]:
    return re.findall(r"\w+", macro)


BOTH = """\
#define LOAD_BF16(p, i) F32_OF_BITS((u32)(p)[i] << 16)
#define STORE_BF16(p, i, v) (p)[i] = bf16_of(v)
FUNCTION u16 bf16_of(f32 x) {
  const u32 bits = BITS_OF_F32(x);
  return x != x ? (u16)0x7fc0 : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
"""

OPENCL = Dialect(
    "opencl",
    {
        "KERNEL(x, y, z)": "__kernel __attribute__((reqd_work_group_size(x, y, z))) void",
        "FUNCTION": "static inline",
        "GLOBAL": "__global",
        "LOCAL": "__local __attribute__((aligned(16)))",
        "RESTRICT": "restrict",
        "GLOBAL_ID(d)": "get_global_id(d)",
        "LOCAL_ID(d)": "((u32)get_local_id(d))",
        "GROUP_ID(d)": "get_group_id(d)",
        "UNROLL": '_Pragma("unroll")',
        "BARRIER": "barrier(CLK_LOCAL_MEM_FENCE)",
        "FMA(a, b, c)": "((a) * (b) + (c))",  # contracted where that is fast; a mad() of PoCL is not
        "POSITIVE_INFINITY": "INFINITY",
        "F32_OF_BITS(b)": "as_float(b)",
        "BITS_OF_F32(x)": "as_uint(x)",
        "LOAD_F16(p, i)": "vload_half(i, p)",
        "STORE_F16(p, i, v)": "vstore_half(v, i, p)",
    },
    {
        "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint", "i64": "long",
        "u64": "ulong", "f16": "half", "f32": "float", "f64": "double",
    },
    fp64="#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
)

CUDA = Dialect(
    "cuda",
    {
        # one group a processor is enough: the compiler spills no registers to make room for a second
        "KERNEL(x, y, z)": 'extern "C" __global__ void __launch_bounds__((x) * (y) * (z), 1)',
        "FUNCTION": "__device__ __forceinline__",
        "GLOBAL": "",
        "LOCAL": "__shared__ __align__(16)",
        "RESTRICT": "__restrict__",
        "GLOBAL_ID(d)": "((d) == 0 ? (size_t)blockIdx.x * blockDim.x + threadIdx.x : "
                        "(d) == 1 ? (size_t)blockIdx.y * blockDim.y + threadIdx.y : "
                        "(size_t)blockIdx.z * blockDim.z + threadIdx.z)",
        "LOCAL_ID(d)": "((d) == 0 ? threadIdx.x : (d) == 1 ? threadIdx.y : threadIdx.z)",
        "GROUP_ID(d)": "((size_t)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))",
        "UNROLL": '_Pragma("unroll")',
        "BARRIER": "__syncthreads()",
        "FMA(a, b, c)": "fma(a, b, c)",
        "POSITIVE_INFINITY": "__int_as_float(0x7f800000)",
        "F32_OF_BITS(b)": "__uint_as_float(b)",
        "BITS_OF_F32(x)": "__float_as_uint(x)",
        "LOAD_F16(p, i)": "heald_f32_of_f16((p)[i])",
        "STORE_F16(p, i, v)": "(p)[i] = heald_f16_of_f32(v)",
    },
    {
        "i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short", "i32": "int",
        "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long", "f16": "unsigned short",
        "f32": "float", "f64": "double",
    },
    functions=FUNCTIONS,
)

@dataclass(frozen=True)
class Metal(Dialect):
    """Parameters have the number of their slot; the position of a work-item is a parameter too."""

    def parameters(self, parts: KernelParts) -> list[str]:
        buffers = [f"GLOBAL const {p.stored}* RESTRICT {p.name}" for p in parts.reads]
        buffers += [f"GLOBAL {p.stored}* RESTRICT {p.name}" for p in parts.writes]
        slots = [*buffers, *(f"constant i64& {size}" for size in parts.sizes)]
        return [*(f"{slot} [[buffer({number})]]" for number, slot in enumerate(slots)),
                *(f"uint3 {name} [[{position}]]" for name, position in METAL_POSITIONS.items())]


# the first terms of the series, where a difference of exponentials has few digits left
EXPM1_NEAR_0 = "x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))))"
METAL_POSITIONS = {
    "global_id": "thread_position_in_grid", "local_id": "thread_position_in_threadgroup",
    "group_id": "threadgroup_position_in_grid",
}
METAL = Metal(
    "metal",
    {
        "KERNEL(x, y, z)": "[[max_total_threads_per_threadgroup((x) * (y) * (z))]] kernel void",
        "FUNCTION": "static inline",
        "GLOBAL": "device",
        "LOCAL": "threadgroup",
        "RESTRICT": "__restrict",
        "GLOBAL_ID(d)": "((size_t)global_id[d])",
        "LOCAL_ID(d)": "local_id[d]",
        "GROUP_ID(d)": "((size_t)group_id[d])",
        "UNROLL": '_Pragma("unroll")',
        "BARRIER": "threadgroup_barrier(mem_flags::mem_threadgroup)",
        "FMA(a, b, c)": "fma(a, b, c)",
        "POSITIVE_INFINITY": "INFINITY",
        "F32_OF_BITS(b)": "as_type<float>(b)",
        "BITS_OF_F32(x)": "as_type<uint>(x)",
        "LOAD_F16(p, i)": "(f32)(p)[i]",
        "STORE_F16(p, i, v)": "(p)[i] = (f16)(v)",
    },
    {
        "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint", "i64": "long",
        "u64": "ulong", "f16": "half", "f32": "float",
    },
    head="#include <metal_stdlib>\nusing namespace metal;",
    functions={
        "expm1": f"FUNCTION f32 expm1(f32 x) {{ return fabs(x) < 0.5f ? {EXPM1_NEAR_0} : exp(x) - 1; }}",
        "log1p": "FUNCTION f32 log1p(f32 x) { const f32 u = 1 + x; return u == 1 || x > 1e8f ? (u == 1 ? x : log(x)) : "
                 "log(u) * x / (u - 1); }",
    },
    lacks=frozenset({"f64", "erf", "erfc", "float16"}),
)

DIALECTS: dict[str, Language] = {d.name: d for d in (OPENCL, CUDA, METAL, WGSL)}
PRODUCTS = ("float32", "tf32", "float16", "bfloat16")


@dataclass(frozen=True)
class Target:
    """The device of a text. A CPU needs registers and vectors where a GPU needs local memory and threads.

    `products` is one of PRODUCTS. Two-byte floats are always multiplied by tensor cores where there are any.
    """

    dialect: Language
    cpu: bool = False
    processors: int = 32  # of a GPU, each of which runs groups of work-items
    tensor_cores: bool = False
    products: str = "float32"  # the type to which tensor cores round float32 operands; float32: products without them


OPENCL_CPU = Target(OPENCL, cpu=True)
OPENCL_GPU = Target(OPENCL)
METAL_GPU, WGSL_GPU = Target(METAL), Target(WGSL)
CUDA_GPU = Target(CUDA, processors=128, tensor_cores=True)
