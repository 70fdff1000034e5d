"""The sizes and strides of a matrix product: the shape, the layout of the right operand and of the result."""

from __future__ import annotations

from dataclasses import dataclass

from heald.api import DType

from .strided_view import reach


@dataclass(frozen=True)
class GemmProblem:
    """`batch` products of (rows, inner) with (inner, columns). Strides are in elements."""

    dtype: DType
    batch: int
    rows: int
    inner: int
    columns: int
    b_row: int  # stride of the right operand's rows
    b_column: int
    b_batch: int
    y_row: int
    y_batch: int
    channel_batch: int = 0  # stride of the epilogue's channel operands from one batch entry to the next

    @property
    def sizes(self) -> dict[str, int]:
        """The size parameters that every variant has."""
        return {"nm": self.rows, "nn": self.columns, "nk": self.inner, "yr": self.y_row, "yz": self.y_batch,
                "cz": self.channel_batch}

    @property
    def right_count(self) -> int:
        """The elements from the right operand's start to the end of its last."""
        return self._reach((self.batch, self.b_batch), (self.inner, self.b_row), (self.columns, self.b_column))

    @property
    def result_count(self) -> int:
        return self._reach((self.batch, self.y_batch), (self.rows, self.y_row), (self.columns, 1))

    @property
    def channel_count(self) -> int:
        """The same for a channel operand of the epilogue."""
        return self._reach((self.batch, self.channel_batch), (self.columns, 1))

    def _reach(self, *axes: tuple[int, int]) -> int:
        return reach(0, axes) if all(n for n, _ in axes) else 0

    @property
    def b_sizes(self) -> dict[str, int]:
        return {"br": self.b_row, "bc": self.b_column, "bz": self.b_batch}
