"""Preparation: collects the arrays that kernels prepare from a compiled program's constants, and strips constants that
only these kernels use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..host.host import Host
from ..host.resources import Resources
from ..program.compiled_model import PreparedConstant, StrippedConstant
from ..program.host_program import CONSTANT, ProgramDef
from ..program.infer import of_constant
from .link import link
from .shared_by_links import SharedByLinks
from .stored_constants import CollectedConstants, LoadedConstants, StoredConstants


class Preparation:
    """Links compiled functions as a loaded model does, each alone, and collects the arrays of their kernels.

    `prepared`: the arrays. Functions of one node, key and fingerprint share them.
    """

    def __init__(self, program: ProgramDef, functions: Sequence[str], host: Host) -> None:
        """Raises as `link`."""
        self._program, self._functions, self._host = program, functions, host
        self.prepared: tuple[PreparedConstant, ...] = ()
        self._sources: set[int] = set()
        for name in functions:
            collected = CollectedConstants()
            self._collect_constants(program, name, collected)
            self.prepared += tuple(collected.prepared_arrays(self.prepared))
            self._sources |= collected.sources

    def strip_constants(self) -> ProgramDef:
        """Return the program without the elements of constants that no link reads when it has the prepared arrays."""
        program, touched = self._program, set[int]()
        watched = program._replace(constants=tuple(
            _TrackedConstant(value, index, touched) for index, value in enumerate(program.constants)))
        loaded = LoadedConstants(self.prepared)
        for name in self._functions:
            self._collect_constants(watched, name, loaded)
        with_prepared = {one.function for one in self.prepared}
        kept_indices = touched | {call.attrs["index"] for name, function in program.functions.items()
                                  if name not in with_prepared for call in function.kernels if call.code == CONSTANT}
        return program._replace(constants=tuple(
            value if index in kept_indices or id(value) not in self._sources else _without_elements(value)
            for index, value in enumerate(program.constants)))

    def _collect_constants(self, program: ProgramDef, name: str, stored: StoredConstants) -> None:
        shared = SharedByLinks({}, Resources(), stored)
        try:
            link(program, self._host, program.functions[name].arg_metas, function=name, shared=shared, waits=True)
        finally:
            self._host.device_memory.dropped.extend(shared.buffers)


class _TrackedConstant:
    """Stands for a constant as a TensorValue, and notes its index when its elements are asked for."""

    def __init__(self, value: Any, index: int, touched: set[int]) -> None:
        self._value, self._index, self._touched = value, index, touched
        self.dtype, self.shape = _meta(value)
        self.is_filled, self.file = getattr(value, "is_filled", False), None

    @property
    def scaling(self) -> Any:
        self._touched.add(self._index)
        return getattr(self._value, "scaling", None)

    def array(self) -> Any:
        self._touched.add(self._index)
        value = self._value
        return value.array() if hasattr(value, "array") else value


def _without_elements(value: Any) -> StrippedConstant:
    return StrippedConstant(*_meta(value))


def _meta(value: Any) -> tuple[Any, tuple[int, ...]]:
    meta = of_constant(value).meta
    return meta.dtype, meta.dims
