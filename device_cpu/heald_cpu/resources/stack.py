"""Stack: the tensors that a run pushes and pops, last in, first out."""

from __future__ import annotations

from heald.api import DType, errors

from ..element_types import Array


class Stack:
    """A stack of one run. Its arrays are read-only. `max_size`: the maximum number of tensors; negative: unlimited."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name = name
        self.dtype = dtype
        self.max_size = max_size
        self._tensors: list[Array] | None = []  # None: closed

    def push(self, tensor: Array, dtype: DType) -> None:
        """Raises InvalidArgument for a tensor of another dtype, and when the stack is full or closed."""
        tensors = self._open()
        if dtype is not self.dtype:
            raise errors.InvalidArgument(f"Must have type {self.dtype} but got {dtype}")
        if 0 <= self.max_size <= len(tensors):
            raise errors.InvalidArgument(f"Stack[{self.name}] overflowed its max_size ({self.max_size})")
        tensors.append(tensor)

    def pop(self) -> Array:
        """Raises InvalidArgument when the stack is empty or closed."""
        tensors = self._open()
        if not tensors:
            raise errors.InvalidArgument(f"Stack[{self.name}] is empty when calling Pop().")
        return tensors.pop()

    def close(self) -> None:
        self._tensors = None

    def _open(self) -> list[Array]:
        if self._tensors is None:
            raise errors.InvalidArgument(f"Stack[{self.name}] has already been closed.")
        return self._tensors
