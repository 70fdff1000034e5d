"""The left operand of a product: a matrix, or the patches of images under a sliding window (implicit im2col).

Row m of a product is read through variables that are made once (`row`); then an element of it by its column k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.api import DType

from .element import load
from .window import TAPS, Window, inside, pixel, place

Lines = list[str]


@dataclass(frozen=True)
class Matrix:
    """Matrices of `rows` and `columns` elements apart, one batch entry `batch` after the other."""

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

    def row(self, i: int) -> Lines:
        return [f"const size_t a{i} = z * az + (size_t)m{i} * ar;"]

    def column(self) -> Lines:
        return [f"const size_t ak = k{'' if self.packed else ' * ac'};"]

    def element(self, i: int) -> str:
        return load(self.dtype, "x0", f"a{i} + ak")

    def block(self, rows: int, products: Lines) -> Lines:
        """Loops over all k, in the order of the right operand's rows; `products` use the values of `rows` rows s<i>."""
        values = [f"const f32 s{i} = {self.element(i)};" for i in range(rows)]
        return ["for (size_t k = 0; k < (size_t)nk; k++) {", *self.column(), *values, *products, "}"]


@dataclass(frozen=True)
class Patches:
    """NHWC images under a window: a row is a place of the window, a column a tap and a channel of the group z."""

    dtype: DType
    window: Window
    depth: int  # channels in a group

    @property
    def zeros(self) -> int:
        """How many a block reads where there is padding."""
        return self.depth

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.window.sizes | {"depth": self.depth}

    def row(self, i: int) -> Lines:
        return place(i)

    def column(self) -> Lines:
        return ["const u32 tap = (u32)k / (u32)depth, channel = (u32)k % (u32)depth;",
                "const i32 kh = (i32)(tap / (u32)KW * (u32)DH), kw = (i32)(tap % (u32)KW * (u32)DW);"]

    def element(self, i: int) -> str:
        return f"({inside(i)} ? {load(self.dtype, 'x0', f'{pixel(i)} + z * depth + channel')} : 0)"

    def block(self, rows: int, products: Lines) -> Lines:
        """As of a matrix. In the padding a row is read from as many zeros, which keeps the inner loop free of tests."""
        every = range(rows)
        return [
            TAPS,
            *(f"const GLOBAL f32* p{i} = {inside(i)} ? x0 + {pixel(i)} + z * depth : zeros;" for i in every),
            "for (size_t k = 0; k < (size_t)depth; k++) {", *(f"const f32 s{i} = p{i}[k];" for i in every), *products,
            "}", "}",
        ]


Left = Matrix | Patches
