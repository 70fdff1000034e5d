"""Pairs of tiles multiplied without tensor cores: 16x16 work-items have a block of sums each, in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heald.api import DType

from .element_types import ELEMENTS, register_type
from .tiles import Tile

SPARE = 4  # elements at the end of a row: writes go to different banks, and vectors of four stay aligned


@dataclass(frozen=True)
class FmaCore:
    """The text of both cores. `word`: the C type of a word in local memory; `elements_in_word`: of the element type.

    `tiles()`: definitions of local memory, of the sums, and of the work-item's position.
    `a(k, row)`, `b(k, column)`: words of the pair that is being stored.
    `word_bits(dtype, value)`: the bits of an element in its word.
    `multiply()`: statements that add the products of pair `now` to the sums.
    `over_sums(body)`: `body` for each sum v0, at row m and column n.
    """

    tile: Tile
    dtype: DType
    elements_in_word = 1

    @property
    def word(self) -> str:
        return register_type(self.dtype)

    @property
    def _block(self) -> tuple[int, int]:
        return self.tile.rows // 16, self.tile.columns // 16

    def tiles(self) -> list[str]:
        high, wide = self._block
        return [
            f"LOCAL {self.word} as[2][{self.tile.depth}][{self.tile.rows + SPARE}];",
            f"LOCAL {self.word} bs[2][{self.tile.depth}][{self.tile.columns + SPARE}];",
            "const u32 tx = LOCAL_ID(0), ty = LOCAL_ID(1);",
            f"{self.word} acc[{high}][{wide}];",
            *self._each_sum("acc[i][j] = 0;"),
        ]

    def a(self, k: str, row: str) -> str:
        return f"as[now ^ 1][{k}][{row}]"

    def b(self, k: str, column: str) -> str:
        return f"bs[now ^ 1][{k}][{column}]"

    def word_bits(self, dtype: DType, value: str) -> str:
        return value

    def multiply(self) -> list[str]:
        high, wide = self._block
        add = f"({self.word})(({{u}})acc[i][j] + ({{u}})a[i] * ({{u}})b[j])".format(u=ELEMENTS[self.dtype].unsigned)
        if self.dtype.kind == "f":
            add = "FMA(a[i], b[j], acc[i][j])"
        return [
            "UNROLL", f"for (u32 k = 0; k < {self.tile.depth}; k++) {{",
            f"  {self.word} a[{high}], b[{wide}];",
            "  UNROLL", f"  for (u32 i = 0; i < {high}; i++) a[i] = as[now][k][{_tile_index('ty', 'i', high)}];",
            "  UNROLL", f"  for (u32 j = 0; j < {wide}; j++) b[j] = bs[now][k][{_tile_index('tx', 'j', wide)}];",
            *(f"  {line}" for line in self._each_sum(f"acc[i][j] = {add};")), "}",
        ]

    def over_sums(self, body: Sequence[str]) -> list[str]:
        high, wide = self._block
        return self._each_sum("{", f"const size_t m = row0 + {_tile_index('ty', 'i', high)};",
                              f"const size_t n = column0 + {_tile_index('tx', 'j', wide)};",
                              f"const {self.word} v0 = acc[i][j];", *body, "}")

    def _each_sum(self, *body: str) -> list[str]:
        high, wide = self._block
        return ["UNROLL", f"for (u32 i = 0; i < {high}; i++)", "UNROLL", f"for (u32 j = 0; j < {wide}; j++)", *body]


def _tile_index(thread: str, number: str, count: int) -> str:
    """The row or column of a work-item's sum: groups of up to four neighbours."""
    adjacent = min(count, 4)
    return f"{number} / {adjacent} * {16 * adjacent} + {thread} * {adjacent} + {number} % {adjacent}"
