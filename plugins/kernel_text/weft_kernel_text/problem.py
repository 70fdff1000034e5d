"""The lengths and steps of a product: where the right operand's elements are, and where the result goes."""

from __future__ import annotations

from dataclasses import dataclass

from weft.api import DType


@dataclass(frozen=True)
class Problem:
    """`batch` products of (rows, inner) with (inner, columns). Steps are in elements."""

    dtype: DType
    batch: int
    rows: int
    inner: int
    columns: int
    b_row: int  # from one row of the right operand to the next
    b_column: int
    b_batch: int
    y_row: int
    y_batch: int
    channel_batch: int = 0  # from a batch entry's first channel to the next one's, in operands of the epilogue

    @property
    def sizes(self) -> dict[str, int]:
        """Those that every variant needs."""
        return {"nm": self.rows, "nn": self.columns, "nk": self.inner, "yr": self.y_row, "yz": self.y_batch,
                "cz": self.channel_batch}

    @property
    def b_sizes(self) -> dict[str, int]:
        return {"br": self.b_row, "bc": self.b_column, "bz": self.b_batch}
