"""TensorList: an immutable list of tensors, the value of a variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heald.api import DType, Shape, errors, shape_text

from ..element_types import Array, zeros
from .handles import check_cell_count, from_handle
from .partial_shape import agreed_shape, fits, is_known

Cell = Array | None


class TensorList:
    """Tensors of one dtype in order. An uninitialized cell holds None. The arrays are read-only.

    Successive pushes share one list of cells, and so do writes of successive elements of a reserved list. Each
    TensorList knows how many of these cells are its own: `filled`. So a push and such a write take constant time.
    The cells behind them, up to `count`, are uninitialized.
    """

    __slots__ = ("_cells", "_filled", "count", "dtype", "max_elements", "shape")

    def __init__(
        self, dtype: DType, shape: Shape, cells: list[Cell], max_elements: int = -1, count: int | None = None,
        filled: int | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape  # common to all elements
        self.max_elements = max_elements  # maximum number of elements for pushes; negative: unlimited
        self.count = len(cells) if count is None else count
        self._cells = cells
        self._filled = self.count if filled is None else filled

    @property
    def cells(self) -> Sequence[Cell]:
        return self._cells if len(self._cells) == self.count == self._filled else self._first_cells(self.count)

    def cell(self, index: int) -> Cell:
        """The cell at an existing index."""
        return self._cells[index] if index < self._filled else None

    def _first_cells(self, count: int) -> list[Cell]:
        """A new list of the first cells."""
        cells = self._cells[: min(count, self._filled)]
        return cells + [None] * (count - len(cells)) if len(cells) < count else cells

    def holding(self, cells: list[Cell], shape: Shape = None) -> TensorList:
        """A list with other cells, and the same dtype and limit."""
        return TensorList(self.dtype, self.shape if shape is None else shape, cells, self.max_elements)

    def check_room(self) -> None:
        """Raises InvalidArgument for a full list."""
        if 0 <= self.max_elements <= self.count:
            raise errors.InvalidArgument(f"Tried to push item into a full list list size: {self.count} "
                                         f"max_num_elements: {self.max_elements}")

    def with_pushed(self, tensor: Array) -> TensorList:
        """The list with one more tensor, without a test for room. Raises InvalidArgument for another shape."""
        if not fits(tensor.shape, self.shape):
            raise errors.InvalidArgument("Tried to append a tensor with incompatible shape to a list. Op element "
                                         f"shape: {shape_text(tensor.shape)} list shape: {shape_text(self.shape)}")
        if self._filled < self.count:
            return self.holding([*self._first_cells(self.count), tensor])
        return self._with_next(tensor, self.count + 1)

    def _with_next(self, tensor: Array, count: int) -> TensorList:
        """The list with this tensor behind its filled cells, and `count` cells in all."""
        cells, filled = self._cells, self._filled
        if len(cells) == filled:
            cells.append(tensor)
        if len(cells) == filled or cells[filled] is not tensor:  # another list has filled this cell already
            cells = [*cells[:filled], tensor]
        return TensorList(self.dtype, self.shape, cells, self.max_elements, count, filled + 1)

    def without_last(self) -> TensorList:
        """The list without its last element. Cells are dropped once the unused ones are as many as the used ones."""
        left = self.count - 1
        cells = self._cells if len(self._cells) < 2 * left else self._cells[:left]
        return TensorList(self.dtype, self.shape, cells, self.max_elements, left, min(self._filled, left))

    def with_element(self, index: int, tensor: Array) -> TensorList:
        """The list with another tensor at an existing index. Raises InvalidArgument for another shape."""
        if not fits(tensor.shape, self.shape):
            raise errors.InvalidArgument("Tried to set a tensor with incompatible shape at a list index. Item element "
                                         f"shape: {shape_text(tensor.shape)} list shape: {shape_text(self.shape)}")
        if index == self._filled:
            return self._with_next(tensor, self.count)
        cells = self._first_cells(max(self._filled, index + 1))
        cells[index] = tensor
        return TensorList(self.dtype, self.shape, cells, self.max_elements, self.count, len(cells))

    def with_count(self, count: int) -> TensorList:
        """The list with `count` cells: its own first, then uninitialized ones. Raises ResourceExhausted."""
        check_cell_count(count)
        cells = self._first_cells(min(count, self._filled))
        return TensorList(self.dtype, self.shape, cells, self.max_elements, count, len(cells))

    def element_shape(self, asked_shape: Shape, cells: Iterable[Cell]) -> Shape:
        """The merged shape of the request, the list and these cells. Raises InvalidArgument where they contradict."""
        shape = agreed_shape(asked_shape, self.shape)
        for cell_shape in dict.fromkeys(cell.shape for cell in cells if cell is not None):
            shape = agreed_shape(shape, cell_shape)
        return shape

    def blank(self, asked_shape: Shape) -> Array:
        """The zeros for an uninitialized element. Raises InvalidArgument where the shape is not fully known."""
        shape = agreed_shape(asked_shape, self.shape)
        if not is_known(shape):
            shape = self.element_shape(asked_shape, self.cells)
        if not is_known(shape):
            raise errors.InvalidArgument("Trying to read an uninitialized tensor but element_shape is not fully "
                                         f"defined: {shape_text(shape)} and no list element is set.")
        return zeros(self.dtype, shape)


def tensor_list(scalar: Array, dtype: DType | None = None) -> TensorList:
    """The list of a handle. Raises InvalidArgument for another kind of value, and for elements of another dtype."""
    cell_list = from_handle(scalar, TensorList)
    if dtype is not None and cell_list.dtype is not dtype:
        raise errors.InvalidArgument(f"Invalid data types; op elements {dtype} but list elements {cell_list.dtype}")
    return cell_list
