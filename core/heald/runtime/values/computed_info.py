"""ComputedInfo: the facts about a constant whose elements are computed when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tensor import TensorMetadata, ValueInfo

if TYPE_CHECKING:
    import numpy as np

    from .tensor_proto import TensorValue


class ComputedInfo(ValueInfo):
    """The ValueInfo of a TensorValue whose elements are computed when they are asked for."""

    __slots__ = ("_constant",)

    def __init__(self, constant: TensorValue) -> None:
        self.meta = TensorMetadata(constant.dtype, constant.shape)
        self.dims = self.handle = None
        self._constant = constant

    @property
    def constant(self) -> TensorValue:
        """The TensorValue itself, its elements not computed."""
        return self._constant

    @property
    def value(self) -> np.ndarray[Any, Any]:  # type: ignore[override]
        return self._constant.array()

    @property
    def is_known(self) -> bool:
        return True

    def parts(self) -> tuple[Any, Any]:
        if self._constant.scaling is None:
            return self._constant.array(), None
        value, factors = self._constant.scaling
        return value.array(), factors

    @property
    def bytes_before_computing(self) -> int:
        """Bytes that the value occupies before its elements are computed. A value that one element fills occupies next
        to none: 0."""
        return 0 if self._constant.is_filled else self.meta.nbytes
