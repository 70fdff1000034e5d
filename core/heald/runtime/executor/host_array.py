"""Payloads in host memory: NumPy arrays, C-contiguous and aligned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import HealdError, InvalidArgument, PluginError
from ..support.remedy import kernel_remedy
from ..values.async_value import AsyncValue, payload_of
from ..values.tensor import TensorMetadata, fits, shape_text


def typed_view(buffer: Any, meta: TensorMetadata) -> Any:
    """View the start of a byte buffer as an array of this static type and shape."""
    return buffer[: meta.nbytes].view(meta.dtype.numpy).reshape(meta.dims)


def view(array: Any, meta: TensorMetadata) -> Any:
    """View the elements of an array under an alias's type and shape."""
    if array.dtype != meta.dtype.numpy:
        array = array.view(meta.dtype.numpy)
    return array if array.shape == meta.shape else array.reshape(meta.dims)


def part_view(array: Any, start: int, meta: TensorMetadata) -> Any:
    """View a part of an array's elements, from `start` on, as an array of this static shape."""
    return array.reshape(-1)[start : start + meta.size].reshape(meta.dims)


def plain_integers(array: Any) -> Any:
    """View quantised numbers, which have one field of integers, as plain integers. Any other value stays as it is."""
    is_quantised = isinstance(array, np.ndarray) and array.dtype.names is not None
    return array.view(array.dtype[0]) if is_quantised else array


def stand_in(meta: TensorMetadata) -> Any:
    """Make an array of this static type and shape, without memory, for a constant that no call reads."""
    return np.broadcast_to(np.zeros((), meta.dtype.numpy), meta.dims)


def check_results(result: Any, metas: Sequence[TensorMetadata], op: str, plugin: str = "") -> list[Any]:
    """Check the result of a kernel and list its values: contiguous arrays, or AsyncValues without a payload.

    An AsyncValue stays when it is pending, failed or dead. Raises PluginError when the number of values differs from
    the number of `metas`, or when an array does not fit its metadata.
    """
    values = list(result) if isinstance(result, tuple | list) else [result]
    if len(values) != len(metas) or any(v is None for v in values):
        got = 0 if result is None else len(values)
        raise _misfit_error(f"{got} values", str(len(metas)), op, plugin)
    return [check_payload(v, meta, op, plugin) for v, meta in zip(values, metas, strict=True)]


def check_payload(value: Any, meta: TensorMetadata, op: str, plugin: str = "") -> Any:
    """Convert a value from a kernel to a register's form: a contiguous array, or an AsyncValue without a payload.

    A Python number fits any type. Raises PluginError when an array of a plugin's kernel does not match `meta`.
    Without a plugin `meta` is the program's, which raises InvalidArgument.
    """
    if (value.__class__ is np.ndarray and value.dtype == meta.dtype.numpy and value.flags.c_contiguous
            and fits(value.shape, meta)):
        return value
    value = payload_of(value)
    if isinstance(value, AsyncValue):
        return value
    array = np.asarray(value, meta.dtype.numpy if isinstance(value, int | float | complex) else None, order="C")
    if array.dtype != meta.dtype.numpy or not fits(array.shape, meta):
        array_text = f"{array.dtype}{shape_text(array.shape)}"
        raise _misfit_error(array_text, str(meta), op, plugin)
    return array


def _misfit_error(received: str, expected: str, op: str, plugin: str) -> HealdError:
    if not plugin:
        return InvalidArgument(f"{op} gives {received}, the program states {expected}")
    return PluginError(f"the kernel of {op} (plugin {plugin}) returned {received}, expected {expected}", op=op,
                       plugin=plugin, hint=kernel_remedy(plugin, op))
