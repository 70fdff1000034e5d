"""The dialect `tfrt_sht`: tensors of strings."""

from __future__ import annotations

from math import prod
from typing import Annotated

from heald.api import HostKernels, HostType, errors

from .host_tensors import HostTensor, Integers, StringTensor, list_text

Strings = Annotated[tuple[str, ...], HostType(
    "an array of strings", lambda payload: isinstance(payload, tuple) and all(isinstance(s, str) for s in payload))]


def register(kernels: HostKernels) -> None:
    kernels.kernel("tfrt_sht.create_tensor", syntax="attr-dict")(create_tensor)


def create_tensor(*, shape: Integers, values: Strings) -> HostTensor:
    """Return a tensor of strings. Raises InvalidArgument for another number of values than the shape has."""
    if any(dim < 0 for dim in shape) or prod(shape) != len(values):
        raise errors.InvalidArgument(f"{len(values)} strings are given for the shape {list_text(shape)}")
    return StringTensor(shape, values)
