"""The left-hand operand of a matrix product: a matrix, or image patches under a sliding window (implicit im2col).

Kernel text defines the variables of row m once (`row`), then reads the row's elements by column k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from heald.api import DType

from .element_types import load
from .gemm_problem import GemmProblem
from .strided_view import reach
from .window import TAP_LOOP, Window, inside, output_position, pixel

Lines = list[str]


@dataclass(frozen=True)
class Matrix:
    """A batch of matrices. The steps are the strides of rows, columns and batch entries, in elements."""

    dtype: DType
    row_step: int
    column_step: int
    batch_step: int
    zeros = 0

    @property
    def sizes(self) -> Mapping[str, int]:
        return {"ar": self.row_step, "az": self.batch_step} | ({} if self.packed else {"ac": self.column_step})

    @property
    def packed(self) -> bool:
        return self.column_step == 1

    def count(self, problem: GemmProblem) -> int:
        """The elements from the operand's start to the end of its last."""
        axes = (problem.batch, self.batch_step), (problem.rows, self.row_step), (problem.inner, self.column_step)
        return reach(0, axes) if all(n for n, _ in axes) else 0

    def row(self, i: int) -> Lines:
        return [f"const size_t a{i} = z * az + (size_t)m{i} * ar;"]

    def column(self) -> Lines:
        return [f"const size_t ak = k{'' if self.packed else ' * ac'};"]

    def element(self, i: int) -> str:
        return load(self.dtype, "x0", f"a{i} + ak")

    def block(self, rows: int, products: Lines) -> Lines:
        """A loop over all k, in the order of the right operand's rows. `products` read s<i>, the element of row i."""
        values = [f"const f32 s{i} = {self.element(i)};" for i in range(rows)]
        return ["for (size_t k = 0; k < (size_t)nk; k++) {", *self.column(), *values, *products, "}"]


@dataclass(frozen=True)
class Patches:
    """Patches of NHWC images. A row is a position of the window; a column is a tap and a channel of group z."""

    dtype: DType
    window: Window
    depth: int  # channels in a group

    @property
    def zeros(self) -> int:
        """Elements of zeros that a block reads instead of padding."""
        return self.depth

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.window.sizes | {"depth": self.depth}

    def count(self, _: GemmProblem) -> int:
        """As in `Matrix`: all images."""
        return prod(self.window.shape)

    def row(self, i: int) -> Lines:
        return output_position(i)

    def column(self) -> Lines:
        return ["const u32 tap = (u32)k / (u32)depth, channel = (u32)k % (u32)depth;",
                "const i32 kh = (i32)(tap / (u32)KW * (u32)DH), kw = (i32)(tap % (u32)KW * (u32)DW);"]

    def element(self, i: int) -> str:
        return f"({inside(i)} ? {load(self.dtype, 'x0', f'{pixel(i)} + z * depth + channel')} : 0)"

    def block(self, rows: int, products: Lines) -> Lines:
        """As in `Matrix`. In padding, rows are read from a buffer of zeros: the inner loop has no bounds test."""
        every = range(rows)
        return [
            TAP_LOOP,
            *(f"const GLOBAL f32* p{i} = {inside(i)} ? x0 + {pixel(i)} + z * depth : zeros;" for i in every),
            "for (size_t k = 0; k < (size_t)depth; k++) {", *(f"const f32 s{i} = p{i}[k];" for i in every), *products,
            "}", "}",
        ]


Lhs = Matrix | Patches
