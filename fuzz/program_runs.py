"""Runs of programs from files: with made-up arguments in guarded memory, a deadline, and every function of a few."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from math import prod
from random import Random
from typing import Any
from zlib import crc32

import heald
import numpy as np
from heald.errors import HealdError, Internal, PluginError
from heald.runtime.executor.step import RunOptions
from heald.runtime.program import CompiledModel, RegisterType
from heald.runtime.service.compiled_model import CompiledSignature, LoadedCompiledModel
from heald.runtime.values import dtypes
from heald.runtime.values.async_value import AsyncValue
from heald.runtime.values.tensor import TensorMetadata

from .compiled_groups import check_both_ways, has_groups
from .guarded import GuardedAllocator

OPTIONS = RunOptions(timeout=0.25)
_MOST_WAIT = 6.0  # seconds for results whose time is over after 0.25: a mutant that takes as long is a failure
MOST_ELEMENTS = 1 << 16  # of an array that is made up
_MOST_RUNS = 4  # functions or signatures of a file
_MOST_DIMS = 64  # of NumPy's arrays
_TEXTS = (b"", b"a", b"1", b"0.5", b"b c", b"\xc3\xa9", b"2020-01-01")
_HOST_VALUES: Mapping[RegisterType, tuple[Any, ...]] = {
    "i1": (True, False), **dict.fromkeys(("i32", "i64"), (0, 1, 3, -1)), **dict.fromkeys(("ui32", "ui64"), (0, 3)),
    **dict.fromkeys(("f16", "bf16", "f32", "f64"), (0.0, 1.5)), "!tfrt.string": ("", "a"), "!tfrt.chain": (None,)}


def run_model(model: CompiledModel, data: bytes) -> None:
    """Run the signatures of a compiled model, or the functions of a bare program. `data` decides the arguments."""
    if not model.entries:
        run_program(heald.HostProgram(model.program.functions, tuple(model.program.constants), model.program.requires),
                    data)
        return
    if has_groups(model.program):
        check_both_ways(lambda config: _results(LoadedCompiledModel(model, config=config), data))
        return
    loaded = LoadedCompiledModel(model)
    for signature in islice((loaded, *loaded.signatures.values()), _MOST_RUNS):
        _run_signature(signature, data)


def _run_signature(signature: CompiledSignature, data: bytes) -> Any:
    return signature(*made_up(signature.inputs, data).values(), options=OPTIONS)


def _results(signature: CompiledSignature, data: bytes) -> dict[str, Any]:
    """The results of a run, by name."""
    result = _run_signature(signature, data)
    return result if isinstance(result, dict) else {"result": result}


def run_program(program: heald.HostProgram, data: bytes) -> None:
    """Run the functions for whose arguments values can be made up. Raises the gravest error of a result."""
    rng, host = Random(crc32(data)), _host()
    errors: list[HealdError] = []
    for name, arguments in islice(_callable(program, rng), _MOST_RUNS):
        values = program.run(name, *arguments, request=heald.RequestContext(host), options=OPTIONS)
        host.await_values(values, _MOST_WAIT)
        errors += filter(None, map(_error, values))
    if errors:
        raise next((error for error in errors if isinstance(error, Internal | PluginError)), errors[0])


def _callable(program: heald.HostProgram, rng: Random) -> Iterator[tuple[str, list[Any]]]:
    for name, function in program.functions.items():
        if all(isinstance(kind, TensorMetadata) or kind in _HOST_VALUES for kind in function.arg_types):
            yield name, [array(rng, kind) if isinstance(kind, TensorMetadata) else rng.choice(_HOST_VALUES[kind])
                         for kind in function.arg_types]


def _error(value: AsyncValue) -> HealdError | None:
    return value.error if value.is_available() else None


@cache
def _host() -> heald.HostContext:
    """The host of all programs: their output is dropped."""
    return heald.HostContext(output=_Nowhere())


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def made_up(metas: Mapping[str, TensorMetadata], data: bytes) -> dict[str, Any]:
    """Small arrays for inputs, the same for the same file: open dimensions are 1 or 2."""
    rng = Random(crc32(data))
    return {name: array(rng, meta) for name, meta in metas.items()}


def array(rng: Random, meta: TensorMetadata) -> Any:
    """An array of this metadata, with pages without access around it."""
    dims = [None] * rng.randrange(4) if meta.shape is None else meta.shape[:_MOST_DIMS]
    shape = [rng.choice((1, 2, 2, 3)) if dim is None else dim for dim in dims]
    while prod(dim or 1 for dim in shape) > MOST_ELEMENTS:
        shape[shape.index(max(shape))] //= 2  # the session refuses the shape
    if meta.dtype is dtypes.string:
        return np.array([rng.choice(_TEXTS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    numbers = np.random.default_rng(rng.randrange(1 << 32)).integers(0, 4, shape)
    if not meta.dtype.itemsize:
        return numbers.astype(np.float32)
    return _in_guards(numbers.astype(meta.dtype.numpy))


@cache
def _guarded_allocator() -> GuardedAllocator:
    return GuardedAllocator()


def _in_guards(array: Any) -> Any:
    guarded = _guarded_allocator().allocate(array.nbytes)[: array.nbytes].view(array.dtype).reshape(array.shape)
    guarded[...] = array
    return guarded
