"""TensorArray: an array of tensors, which a run writes once at each index and reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from heald.api import DType, Shape, dtypes, errors, shape_text

from ..element_types import NUMBERS, Array, zeros
from .handles import empty_cells, from_handle
from .partial_shape import agreed_shape, fits, is_known


@dataclass(slots=True)
class Slot:
    """An index that was written: a tensor, or only a shape, which stands for zeros."""

    shape: tuple[int, ...]
    tensor: Array | None = None
    is_own: bool = False  # the tensor is a sum that the array owns
    is_read: bool = False
    is_cleared: bool = False


class TensorArray:
    """An array of one run, safe to use from several threads. The tensors are read-only.

    `grows`: a write behind the end extends the array. `clears`: reading removes the tensor. `is_uniform`: all tensors
    have the shape of the first. A gradient's array sums the writes to one index, and starts with the shapes of its
    forward array.
    """

    def __init__(
        self, name: str, dtype: DType, shape: Shape, slots: list[Slot | None], *, grows: bool = False,
        clears: bool = True, is_uniform: bool = False, is_gradient: bool = False, marked: int | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.grows = grows
        self._shape = shape
        self._slots = slots
        self._clears = clears
        self._is_uniform = is_uniform
        self._is_gradient = is_gradient
        self._marked = marked  # number of tensors that a split has written
        self._is_closed = False
        self._gradients: dict[str, TensorArray] = {}
        self._lock = Lock()

    def size(self) -> int:
        self._check_open()
        return len(self._slots)

    def size_to_join(self) -> int:
        """The number of tensors that a concat joins."""
        self._check_open()
        return len(self._slots) if self._marked is None or not self._is_gradient else self._marked

    def mark(self, size: int) -> None:
        """Note the number of tensors that a split is about to write."""
        self._check_open()
        self._marked = size if not self._is_gradient else self._marked

    def narrow(self, shape: Shape) -> None:
        """Merge a shape into the element shape. Raises InvalidArgument where they contradict."""
        with self._lock:
            self._shape = agreed_shape(self._shape, shape)

    def write(self, indices: Iterable[int], tensors: Iterable[Array]) -> None:
        """Keep a tensor at each index. Raises InvalidArgument for bad indices, shapes, and repeated writes."""
        with self._lock:
            self._check_open()
            for index, tensor in zip(indices, tensors, strict=True):
                self._write(index, tensor)

    def read(self, indices: Iterable[int]) -> list[Array]:
        """The tensors at these indices. Raises InvalidArgument for cleared ones, and unwritten of unknown shape."""
        with self._lock:
            return [self._take(index)[0] for index in indices]

    def read_copy(self, index: int) -> Array:
        """A tensor that the caller may write."""
        with self._lock:
            tensor, is_own = self._take(index)
        return tensor if is_own else tensor.copy()

    def gradient(self, source: str, prefix: tuple[int, ...]) -> TensorArray:
        """The gradient array for `source`, with `prefix` in front of each shape. From now on this array keeps its size.
        Raises InvalidArgument for the array of a gradient."""
        with self._lock:
            self._check_open()
            if self._is_gradient:
                raise errors.InvalidArgument(f"{self} holds gradients itself: there is no gradient of it")
            self.grows = False
            if source not in self._gradients:
                self._gradients[source] = self._new_gradient(source, prefix)
            return self._gradients[source]

    def close(self) -> None:
        with self._lock:
            self._slots = []
            self._is_closed = True

    def __str__(self) -> str:
        return f"TensorArray {self.name}"

    def _new_gradient(self, source: str, prefix: tuple[int, ...]) -> TensorArray:
        slots = [None if slot is None else Slot((*prefix, *slot.shape)) for slot in self._slots]
        shape = None if self._shape is None else (*prefix, *self._shape)
        return TensorArray(f"{self.name}@{source}", self.dtype, shape, slots, is_uniform=self._is_uniform,
                           is_gradient=True, marked=self._marked)

    def _check_open(self) -> None:
        if self._is_closed:
            raise errors.InvalidArgument(f"{self} has already been closed.")

    def _write(self, index: int, tensor: Array) -> None:
        if index < 0 or (index >= len(self._slots) and not self.grows):
            raise errors.InvalidArgument(f"{self}: Tried to write to index {index} but array is not resizeable and "
                                         f"size is: {len(self._slots)}")
        slot = self._slots[index] if index < len(self._slots) else None
        self._check_shape(index, tensor.shape)
        if slot is not None and slot.is_read:
            raise self._error(index, "because it has already been read.")
        if slot is not None and not self._is_gradient:
            raise self._error(index, "because it has already been written to.")
        self._lengthen(index)
        self._slots[index] = Slot(tensor.shape, tensor) if slot is None else self._total(index, slot, tensor)

    def _check_shape(self, index: int, shape: tuple[int, ...]) -> None:
        if not fits(shape, self._shape):
            raise self._error(index, f"because the value shape is {shape_text(shape)} which is incompatible with the "
                                     f"TensorArray's inferred element shape: {shape_text(self._shape)} (consider "
                                     "setting infer_shape=False).")
        if self._is_uniform:
            self._shape = shape

    def _error(self, index: int, why: str) -> errors.InvalidArgument:
        return errors.InvalidArgument(f"{self}: Could not write to TensorArray index {index} {why}")

    def _lengthen(self, index: int) -> None:
        missing = index + 1 - len(self._slots)
        if missing > 0:
            empty_cells(index + 1)
            self._slots += empty_cells(missing)

    def _total(self, index: int, slot: Slot, tensor: Array) -> Slot:
        """The sum of a slot's tensor and another."""
        if tensor.shape != slot.shape:
            raise errors.InvalidArgument(f"{self}: Could not aggregate to TensorArray index {index} because the "
                                         f"existing shape is {shape_text(slot.shape)} but the new input shape is "
                                         f"{shape_text(tensor.shape)}.")
        if slot.tensor is None:
            return Slot(tensor.shape, tensor)
        if self.dtype.name not in NUMBERS:
            raise errors.InvalidArgument(f"tensors of {self.dtype} cannot be added")
        total = np.add(slot.tensor, tensor, out=slot.tensor if slot.is_own else np.empty_like(tensor))
        return Slot(tensor.shape, total, is_own=True)

    def _take(self, index: int) -> tuple[Array, bool]:
        """The tensor at an index, and True where the caller becomes its only owner."""
        self._check_open()
        if index < 0 or (index >= len(self._slots) and not self._is_gradient):
            raise errors.InvalidArgument(f"Tried to read from index {index} but array size is: {len(self._slots)}")
        slot = self._slots[index] if index < len(self._slots) else None
        if slot is None:
            slot = self._fill(index)
        if slot.is_cleared:
            raise errors.InvalidArgument(f"{self}: Could not read index {index} twice because it was cleared after a "
                                         "previous read (perhaps try setting clear_after_read = false?).")
        tensor = self._zeros(slot.shape) if slot.tensor is None else slot.tensor
        is_own = slot.is_own or slot.tensor is None
        slot.is_read = True
        slot.is_cleared = self._clears
        slot.tensor = None if self._clears else tensor
        return tensor, is_own and self._clears

    def _fill(self, index: int) -> Slot:
        """Put zeros at an unwritten index, and at missing indices before it."""
        if not is_known(self._shape):
            raise errors.InvalidArgument(f"{self}: Could not read from TensorArray index {index}.  Furthermore, the "
                                         f"element shape is not fully defined: {shape_text(self._shape)}", hint=_HINT)
        start = min(index, len(self._slots))
        self._lengthen(index)
        for i in range(start, index + 1):
            self._slots[i] = Slot(self._shape)
        slot = self._slots[index]
        assert slot is not None
        return slot

    def _zeros(self, shape: tuple[int, ...]) -> Array:
        if self.dtype is dtypes.string:
            raise errors.InvalidArgument("there are no zeros of type string")
        return zeros(self.dtype, shape)


_HINT = "set the full element_shape of the forward TensorArray: then unwritten elements are zeros"


def tensor_array(scalar: Array) -> TensorArray:
    return from_handle(scalar, TensorArray)


def array_to_write(scalar: Array, dtype: DType) -> TensorArray:
    """The array of a handle. Raises InvalidArgument for another kind of value, and for another dtype."""
    array = tensor_array(scalar)
    if array.dtype is not dtype:
        raise errors.InvalidArgument(f"TensorArray dtype is {array.dtype} but Op is trying to write dtype {dtype}.")
    return array


def array_to_read(scalar: Array, dtype: DType) -> TensorArray:
    """The array of a handle. Raises InvalidArgument for another kind of value, and for another dtype."""
    array = tensor_array(scalar)
    if array.dtype is not dtype:
        raise errors.InvalidArgument(f"TensorArray dtype is {array.dtype} but Op requested dtype {dtype}.")
    return array


def check_shapes(shapes: Sequence[tuple[int, ...]], what: str) -> None:
    """Raises InvalidArgument unless all shapes are equal."""
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise errors.InvalidArgument(f"TensorArray has inconsistent shapes.  Index 0 has {what}: "
                                         f"{shape_text(shapes[0])} but index {i} has {what}: {shape_text(shape)}")
