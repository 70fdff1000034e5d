"""Pairs of tiles multiplied by tensor cores: eight warps have a block of sums each. CUDA only.

The positions of a thread's elements are those of `mma.m16n8k8` (TF32) and `mma.m16n8k16` (two-byte floats) in the PTX
manual. A word has one TF32 or two two-byte elements; counted in words, both instructions are 16x8x8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heald.api import DType, dtypes

from .tiles import Tile

# type of the operands: elements in a word, the device function, the bits of a float32
FRAGMENTS = {
    "tf32": (1, "heald_mma_tf32", "heald_tf32_of_f32({})"),
    "float16": (2, "heald_mma_f16", "(u32)heald_f16_of_f32({})"),
    "bfloat16": (2, "heald_mma_bf16", "(u32)bf16_of({})"),
}
WARPS = {16: 1, 32: 2, 64: 2, 128: 2}  # rows of a tile: warps one above the other, of eight
LEFT_SPARE, RIGHT_SPARE = 4, 8  # words at the end of a row: the threads of a warp read from different banks


@dataclass(frozen=True)
class MmaCore:
    tile: Tile
    kind: str
    word = "u32"

    @property
    def elements_in_word(self) -> int:
        return FRAGMENTS[self.kind][0]

    @property
    def _block(self) -> tuple[int, int]:
        """Rows and columns of a warp's sums."""
        above = WARPS[self.tile.rows]
        return self.tile.rows // above, self.tile.columns * above // 8

    @property
    def _products(self) -> tuple[int, int]:
        return self._block[0] // 16, self._block[1] // 8

    def tiles(self) -> list[str]:
        (high, wide), (rows, columns), beside = self._products, self._block, 8 // WARPS[self.tile.rows]
        return [
            f"LOCAL u32 as[2][{self.tile.rows}][{self.tile.depth + LEFT_SPARE}];",
            f"LOCAL u32 bs[2][{self.tile.depth}][{self.tile.columns + RIGHT_SPARE}];",
            "const u32 lane = (LOCAL_ID(1) * 16 + LOCAL_ID(0)) % 32, warp = (LOCAL_ID(1) * 16 + LOCAL_ID(0)) / 32;",
            f"const u32 above = warp / {beside} * {rows} + lane / 4, before = warp % {beside} * {columns};",
            f"f32 acc[{high}][{wide}][4];",
            *self._each_product("UNROLL", "for (u32 e = 0; e < 4; e++) acc[i][j][e] = 0;"),
        ]

    def a(self, k: str, row: str) -> str:
        return f"as[now ^ 1][{row}][{k}]"

    def b(self, k: str, column: str) -> str:
        return f"bs[now ^ 1][{k}][{column}]"

    def word_bits(self, dtype: DType, value: str) -> str:
        return f"(u32){value}" if dtype is dtypes.uint16 else FRAGMENTS[self.kind][2].format(value)

    def multiply(self) -> list[str]:
        high, wide = self._products
        return [
            "UNROLL", f"for (u32 k = lane % 4; k < {self.tile.depth}; k += 8) {{",
            f"  u32 a[{high}][4], b[{wide}][2];",
            "  UNROLL", f"  for (u32 i = 0; i < {high}; i++) {{",
            *(f"    a[i][{e}] = as[now][above + i * 16 + {e % 2 * 8}][k + {e // 2 * 4}];" for e in range(4)), "  }",
            "  UNROLL", f"  for (u32 j = 0; j < {wide}; j++) {{",
            *(f"    b[j][{e}] = bs[now][k + {e * 4}][before + j * 8 + lane / 4];" for e in range(2)), "  }",
            *(f"  {line}" for line in self._each_product(f"{FRAGMENTS[self.kind][1]}(acc[i][j], a[i], b[j]);")), "}",
        ]

    def over_sums(self, body: Sequence[str]) -> list[str]:
        return self._each_product(
            "UNROLL", "for (u32 e = 0; e < 4; e++) {", "const size_t m = row0 + above + i * 16 + e / 2 * 8;",
            "const size_t n = column0 + before + j * 8 + lane % 4 * 2 + e % 2;", "const f32 v0 = acc[i][j][e];", *body,
            "}")

    def _each_product(self, *body: str) -> list[str]:
        high, wide = self._products
        return ["UNROLL", f"for (u32 i = 0; i < {high}; i++)", "UNROLL", f"for (u32 j = 0; j < {wide}; j++)", *body]
