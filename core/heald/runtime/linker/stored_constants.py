"""StoredConstants: arrays that kernels prepared from constants, in a compiled model and on the way into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ...errors import FailedPrecondition, PluginError
from ..contract.kernel import Stored
from ..program.compiled_model import COMPILE_AGAIN, PreparedConstant, StrippedConstant
from ..support.aligned_array import empty
from ..support.mapped_file import file_behind
from ..values.computed_info import ComputedInfo
from ..values.dtypes import of_numpy
from ..values.tensor import TensorMetadata, ValueInfo

ALIGNMENT = 64  # bytes of a cache line
Slot = tuple[str, str, str, str]  # function, node, device, key
Make = Callable[[], Any]


class StoredConstants(Protocol):
    """The source of the prepared objects of kernels that give a fingerprint."""

    def get(
        self, slot: Slot, inputs: Sequence[ValueInfo], fingerprint: str, meta: TensorMetadata, make: Make
    ) -> Any:
        """Return the object of this slot. `inputs`: the inputs of the slot's call."""


class ConstantsMadeAnew:
    """Makes every object, and stores none."""

    def get(self, _: Slot, __: Sequence[ValueInfo], ___: str, ____: TensorMetadata, make: Make) -> Any:
        return make()


NO_STORED_CONSTANTS = ConstantsMadeAnew()


class LoadedConstants:
    """The prepared constants of a loaded model. One array serves all slots of a file that share it."""

    def __init__(self, prepared: Iterable[PreparedConstant]) -> None:
        self._stored = {tuple(one[:4]): one for one in prepared}

    def get(
        self, slot: Slot, inputs: Sequence[ValueInfo], fingerprint: str, meta: TensorMetadata, make: Make
    ) -> Any:
        """Return the stored array, or a new object when the file has none for this fingerprint and metadata.

        Raises FailedPrecondition when a constant that a new object needs is not in the file, and when the file has
        changed.
        """
        stored = self._stored.get(slot)
        if stored is not None and stored.fingerprint == fingerprint and _fits(stored.value, meta):
            return _aligned_array(stored.value)
        if any(isinstance(info, ComputedInfo) and isinstance(info.constant, StrippedConstant) for info in inputs):
            raise self._missing(slot, fingerprint, meta)
        return make()

    def _missing(self, slot: Slot, fingerprint: str, meta: TensorMetadata) -> FailedPrecondition:
        _, node, device, key = slot
        of_node = [f"'{one.key}' of '{one.fingerprint}', {_meta(one.value)}"
                   for other_slot, one in self._stored.items() if other_slot[:3] == slot[:3]]
        return FailedPrecondition(
            f"the kernel needs the prepared constants '{key}' of '{fingerprint}', {meta}; the compiled file has "
            f"{'; '.join(of_node) or 'none for this node'}, and its constants were stripped", node=node, device=device,
            hint=COMPILE_AGAIN)


class CollectedConstants:
    """Makes every object, and keeps it for a file."""

    def __init__(self) -> None:
        self.sources: set[int] = set()  # ids of the constants among the inputs
        self._made: list[tuple[Slot, str, TensorMetadata, Any]] = []

    def get(
        self, slot: Slot, inputs: Sequence[ValueInfo], fingerprint: str, meta: TensorMetadata, make: Make
    ) -> Any:
        prepared = make()
        self.sources.update(id(info.constant if isinstance(info, ComputedInfo) else info.value) for info in inputs)
        self._made.append((slot, fingerprint, meta, prepared))
        return prepared

    def prepared_arrays(self, others: Sequence[PreparedConstant] = ()) -> list[PreparedConstant]:
        """Return the objects as arrays. Functions share equal arrays of one node, device, key and fingerprint, also
        with `others`.

        Raises PluginError for an object that contradicts its metadata.
        """
        arrays = {one[1:5]: one.value for one in others}
        rows = []
        for slot, fingerprint, meta, prepared in self._made:
            array = prepared() if callable(prepared) else prepared
            if not isinstance(array, np.ndarray) or _meta(array) != meta:
                actual = _meta(array) if isinstance(array, np.ndarray) else type(array).__name__
                raise PluginError(f"the prepared object '{slot[-1]}' of '{fingerprint}' is {actual}, "
                                  f"declared as {meta}", node=slot[1])
            other = arrays.setdefault((*slot[1:], fingerprint), array)
            same = other.shape == array.shape and other.tobytes() == array.tobytes()
            rows.append(PreparedConstant(*slot, fingerprint, other if same else array))
        return rows


def stored_constants_source(stored: StoredConstants, node: tuple[str, str, str], inputs: Sequence[ValueInfo]) -> Stored:
    """Return the source of a call's prepared objects. `node`: function, node, device."""
    return lambda key, fingerprint, meta, make: stored.get((*node, key), inputs, fingerprint, meta, make)


def _meta(array: Any) -> TensorMetadata:
    return TensorMetadata(of_numpy(array.dtype), array.shape)


def _fits(array: Any, meta: TensorMetadata) -> bool:
    return bool(array.shape == meta.shape and array.dtype == meta.dtype.numpy)


def _aligned_array(array: Any) -> Any:
    """Return the array as native code may read it: a view of the file, or a copy of an array at another address.

    Raises FailedPrecondition when the file has changed.
    """
    file = file_behind(array)
    if file is not None:
        file.check()
    if array.flags.c_contiguous and array.__array_interface__["data"][0] % ALIGNMENT == 0:
        return array
    copy = empty(array.nbytes, ALIGNMENT).view(array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    return copy
