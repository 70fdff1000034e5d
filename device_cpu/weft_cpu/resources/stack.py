"""A stack: tensors that a run puts on top and takes off again."""

from __future__ import annotations

from weft.api import DType, errors

from ..element_types import Array


class Stack:
    """One run's; nobody may write the arrays. `most`: how many it takes; negative: any number."""

    def __init__(self, name: str, dtype: DType, most: int) -> None:
        self.name = name
        self.dtype = dtype
        self.most = most
        self._tensors: list[Array] | None = []  # None: closed

    def push(self, tensor: Array, dtype: DType) -> None:
        """Raises InvalidArgument for one of another type, and when it is full or closed."""
        tensors = self._open()
        if dtype is not self.dtype:
            raise errors.InvalidArgument(f"Must have type {self.dtype} but got {dtype}")
        if 0 <= self.most <= len(tensors):
            raise errors.InvalidArgument(f"Stack[{self.name}] overflowed its max_size ({self.most})")
        tensors.append(tensor)

    def pop(self) -> Array:
        """Raises InvalidArgument when it is empty or closed."""
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
