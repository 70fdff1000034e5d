"""The kernel that fills a lookup table from a text file, where `[files]` permits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from heald.api import Bind, DType, Kernels
from heald.errors import FailedPrecondition, InvalidArgument
from heald.runtime.support import input_file, mapped_file

from . import vocabulary

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

READ = "read"


@runtime_checkable
class ConstantTable(Protocol):
    """A table that is filled once: the object that a handle on the CPU refers to."""

    key: DType
    value: DType
    is_constant: bool
    is_initialized: bool

    def fill(self, keys: Array, values: Array) -> None:
        """Fill the table. Raises FailedPrecondition for a key with two values."""


def initialize_table_from_text_file(b: Bind) -> Callable[..., None]:
    def run(handle: Array, filename: Array) -> None:
        table = handle[()]
        if not isinstance(table, ConstantTable) or not table.is_constant:
            raise InvalidArgument(f"the handle is of a {type(table).__name__}, which no file initializes")
        path = b.file(filename.item(), READ)
        with input_file.reading(path):
            if path.is_dir():
                raise FailedPrecondition("a vocabulary is a file, this is a folder")
            b.ask(path.stat().st_size, f"the vocabulary '{path}'")
            text = mapped_file.read(path)
            keys, values = vocabulary.read(text, b.attrs, table.key, table.value)
        if not table.is_initialized:  # as in TensorFlow, a second file is read and changes nothing
            table.fill(keys, values)

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("InitializeTableFromTextFileV2", files=(READ,))(initialize_table_from_text_file)
