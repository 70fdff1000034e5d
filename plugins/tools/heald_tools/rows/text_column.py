"""A column of texts in pyarrow's memory: no Python object for each cell, and slices share the memory.

pyarrow reads numbers as Python does, or refuses. The exceptions are known here, and their columns go to Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

Array = Any


class TextColumn(Sequence[str]):
    """Texts. `array`: a pyarrow array of strings without nulls."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @staticmethod
    def join(columns: Sequence[TextColumn]) -> TextColumn:
        import pyarrow

        return TextColumn(pyarrow.concat_arrays([column.array for column in columns]))

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, rows: int) -> str: ...

    @overload
    def __getitem__(self, rows: slice) -> TextColumn: ...

    def __getitem__(self, rows: int | slice) -> str | TextColumn:
        if isinstance(rows, slice):
            return TextColumn(self.array[rows])
        text: str = self.array[rows].as_py()
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self.array.to_pylist())

    def take(self, rows: Sequence[int]) -> TextColumn:
        import pyarrow

        return TextColumn(self.array.take(pyarrow.array(rows, pyarrow.int64())))

    def encode(self) -> Array:
        """The texts in UTF-8."""
        import numpy as np
        import pyarrow

        texts = np.empty(len(self), object)
        texts[:] = self.array.cast(pyarrow.binary()).to_pylist()
        return texts

    def numbers(self, kind: Any) -> Array | None:
        """The numbers that the texts are, with NaN for an empty text where the type has it.

        None stands for a column that pyarrow does not read, or may read otherwise than Python.
        """
        import numpy as np
        import pyarrow

        dtype = np.dtype(kind)
        try:
            if dtype.kind == "f":
                return self._floats(dtype)
            if dtype.kind in "iu":
                return self._integers(dtype)
        except pyarrow.ArrowInvalid:
            return None
        return None

    def _floats(self, dtype: Any) -> Array | None:
        import numpy as np
        import pyarrow
        import pyarrow.compute as pc

        texts = self.array
        is_empty = pc.equal(texts, "")
        if pc.any(is_empty).as_py():
            texts = pc.if_else(is_empty, "nan", texts)
        numbers = texts.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        if np.isnan(numbers).any() and pc.any(pc.match_substring(texts, "(")).as_py():
            return None  # nan(7) is a number for pyarrow alone
        with np.errstate(over="ignore"):
            return numbers.astype(dtype)

    def _integers(self, dtype: Any) -> Array | None:
        import pyarrow
        import pyarrow.compute as pc

        if pc.any(pc.match_substring(self.array, "x", ignore_case=True)).as_py():
            return None  # 0x10 is a number for pyarrow alone
        return self.array.cast(pyarrow.from_numpy_dtype(dtype)).to_numpy(zero_copy_only=False)
