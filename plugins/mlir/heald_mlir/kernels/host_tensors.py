"""Host tensors: their types as payloads of registers, and their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from heald.api import CooTensor, HostType, dtypes, errors

Array = np.ndarray[Any, Any]
OPERANDS_SYNTAX = "operands attr-dict"  # the syntax of most kernels
MAX_PRINTED_ELEMENTS = 16  # elements of a tensor


class StringTensor(NamedTuple):
    """Strings in row-major order."""

    shape: tuple[int, ...]
    values: tuple[str, ...]


HostTensor = Annotated[Any, HostType("!tfrt_tensor.tensor",
                                     lambda payload: isinstance(payload, np.ndarray | StringTensor | CooTensor))]

ELEMENTS = {name: dtypes.named(of) for name, of in {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16",
    "ui32": "uint32", "ui64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "complex64": "complex64", "complex128": "complex128"}.items()}  # by the name in kernels
_PRINTED = {dtypes.named(of).numpy: name for of, name in {
    "bool": "i1", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"}.items()} | {
    dtype.numpy: name for name, dtype in ELEMENTS.items() if name[:2] != "ui" and name != "i1"}
_BITS = {"f16": "fp16", "bf16": "bf16"}  # types that print as their bits


def integers(payload: object) -> bool:
    """True for a tuple of integers: an attribute that TFRT writes as an array of i64."""
    return isinstance(payload, tuple) and all(isinstance(dim, int) and not isinstance(dim, bool) for dim in payload)


Integers = Annotated[tuple[int, ...], HostType("an array of i64", integers)]


def text_of(tensor: Any) -> str:
    """The text that `tfrt_dht.print_tensor` prints."""
    if isinstance(tensor, StringTensor):
        quoted = [f'"{value}"' for value in tensor.values]
        return f"StringHostTensor shape = {list_text(tensor.shape)}, values = {list_text(quoted)}"
    if isinstance(tensor, CooTensor):
        return (f"CooHostTensor dtype = {_name(tensor.values)}, shape = {list_text(tensor.shape)}, indices = "
                f"{list_text(tensor.indices.reshape(-1).tolist())}, values = {list_text(_elements(tensor.values))}")
    return (f"DenseHostTensor dtype = {_name(tensor)}, shape = {list_text(tensor.shape)}, values = "
            f"{list_text(_elements(tensor), tensor.size)}")


def list_text(items: Iterable[Any], count: int = 0) -> str:
    """Items in brackets; a note behind them when `count` is more than is printed."""
    return f"[{', '.join(map(str, items))}{', ... ' if count > MAX_PRINTED_ELEMENTS else ''}]"


def check(tensor: Any, name: str, rank: int | None = None) -> Array:
    """Return a dense tensor of this element type. Raises InvalidArgument for another tensor, or another rank."""
    expectation = f"a dense tensor of {name}" + ("" if rank is None else f" with rank {rank}")
    if not isinstance(tensor, np.ndarray):
        raise errors.InvalidArgument(f"the argument is {wanted_kind(tensor)}, expected {expectation}")
    if tensor.dtype != ELEMENTS[name].numpy or (rank is not None and tensor.ndim != rank):
        raise errors.InvalidArgument(f"the argument is a dense tensor of {_name(tensor)} with shape "
                                     f"{list_text(tensor.shape)}, expected {expectation}")
    return tensor


def wanted_kind(tensor: Any) -> str:
    return {StringTensor: "a tensor of strings", CooTensor: "a sparse tensor"}.get(type(tensor), "a dense tensor")


def _name(array: Array) -> str:
    return _PRINTED[array.dtype]


def _elements(array: Array) -> Sequence[str]:
    flat = array.reshape(-1)[:MAX_PRINTED_ELEMENTS]
    name = _name(array)
    if name in _BITS:
        return [f"{_BITS[name]}({bits})" for bits in flat.view(np.uint16).tolist()]
    form: Callable[[Any], str] = {
        "f": "{:e}".format, "c": lambda value: f"({value.real:e},{value.imag:e})", "b": lambda value: str(int(value)),
    }.get(array.dtype.kind, str)
    return [form(value) for value in flat.tolist()]
