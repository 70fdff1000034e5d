"""Kernels that save tensors in checkpoints and restore them, in TensorFlow's tensor-bundle format.

They open files only where `[files]` permits it (`Bind.file`). Texts of errors are TensorFlow's where it has one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heald.api import Bind, Declined, DType, Kernels, shape_text
from heald.errors import InvalidArgument, NotFound

from .checkpoint import Checkpoint, file_contents, shard_name
from .checkpoint_writer import TensorToSave, merge_checkpoints, write_checkpoint
from .tensor_slice import parse_shape_and_slice

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

READ, WRITE = "read", "write"


def save_v2(b: Bind) -> Callable[..., None]:
    def run(prefix: Array, names: Array, specs: Array, *tensors: Array) -> None:
        write_checkpoint(_output_prefix(b, prefix.item()), _tensors_to_save(names, specs, tensors))

    return run


def restore_v2(b: Bind) -> Callable[..., list[Array]]:
    element_types: Sequence[DType] = b.attrs["dtypes"]

    def run(prefix: Array, names: Array, specs: Array) -> list[Array]:
        checkpoint = open_checkpoint(b, prefix.item())
        requests = [(name.decode("utf-8", "surrogateescape"), spec.decode("utf-8", "replace"))
                    for name, spec in zip(names.tolist(), specs.tolist(), strict=True)]
        for (name, _), dtype in zip(requests, element_types, strict=True):
            _check_tensor(checkpoint, name, dtype)
        return [_array_copy(b, checkpoint, name, spec) for name, spec in requests]

    return run


def merge_v2_checkpoints(b: Bind) -> Callable[..., None]:
    missing, delete = b.attrs["allow_missing_files"], b.attrs["delete_old_dirs"]

    def run(prefixes: Array, destination: Array) -> None:
        parts = [_output_prefix(b, prefix) for prefix in prefixes.tolist()]
        for prefix in prefixes.tolist():
            b.file(prefix + b".index", READ)
        target = _output_prefix(b, destination.item())
        merge_checkpoints(parts, target, allow_missing=missing)
        for folder in {Path(part).parent for part in parts} - {Path(target).parent} if delete else ():
            with suppress(OSError):  # as TensorFlow: a folder with other files stays
                folder.rmdir()

    return run


def open_checkpoint(b: Bind, prefix: bytes) -> Checkpoint:
    """Open the checkpoint of a prefix. Raises NotFound without one, PermissionDenied, DataLoss."""
    index, text = b.file(prefix + b".index", READ), prefix.decode("utf-8", "replace")
    if not index.exists():
        raise NotFound("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + text,
                       hint="give the path without '.index' or '.data-...'")

    def shard(number: int, count: int) -> Any:
        return file_contents(b.file(prefix + f".{shard_name(number, count)}".encode(), READ))

    return Checkpoint(file_contents(index), shard, text)


def _output_prefix(b: Bind, prefix: bytes) -> str:
    """Return the prefix of files to write, its folder resolved."""
    return os.fspath(b.file(prefix + b".index", WRITE)).removesuffix(".index")


def _tensors_to_save(names: Array, specs: Array, tensors: Sequence[Array]) -> list[TensorToSave]:
    tensors_to_save = []
    for name, spec, array in zip(names.tolist(), specs.tolist(), tensors, strict=True):
        text, part = spec.decode("utf-8", "replace"), None
        if text:
            part = parse_shape_and_slice(text)
            if part.slice_shape != array.shape:
                raise InvalidArgument("Slice in shape_and_slice specification does not match the shape of the tensor "
                                      f"to save: {text}, tensor: {shape_text(array.shape)}")
        tensors_to_save.append(TensorToSave(name.decode("utf-8", "surrogateescape"), array, part))
    return tensors_to_save


def _check_tensor(checkpoint: Checkpoint, name: str, dtype: DType) -> None:
    if name not in checkpoint:
        hint = _near_names(checkpoint, name)
        raise NotFound(f"Key {name} not found in checkpoint", hint=hint)
    actual = checkpoint.entry(name).dtype
    if actual is not dtype:
        raise InvalidArgument(f"tensor_name = {name}; expected dtype {dtype.name} does not equal original dtype "
                              f"{actual.name}")


def _near_names(checkpoint: Checkpoint, name: str) -> str | None:
    try:
        checkpoint.entry(name)
    except NotFound as error:
        return error.hint
    return None


def _array_copy(b: Bind, checkpoint: Checkpoint, name: str, spec: str) -> Array:
    """Return a tensor as an array of its own: the file may change later."""
    import numpy as np

    stored = checkpoint.read(name, spec)
    b.ask(stored.nbytes, f"tensor '{name}' of a checkpoint")
    return np.array(stored)


def one_file(form: str, also: str = "") -> Callable[[Bind], Declined]:
    """The bind function of an op on checkpoints of one file, TensorFlow's first format, which it declines."""
    remedy = f"checkpoints of one file have no kernel; use {form}, which TensorFlow writes and reads too{also}"
    return lambda b: b.decline(remedy)


ONE_FILE = {  # op: the op to use
    "Save": "SaveV2", "SaveSlices": "SaveV2", "Restore": "RestoreV2", "RestoreSlice": "RestoreV2",
}


def register_kernels(kernels: Kernels) -> None:
    for op, form in ONE_FILE.items():
        also = ": TensorFlow's RestoreV2 reads the old file, and SaveV2 converts it" if form == "RestoreV2" else ""
        kernels.kernel(op, allocates=form == "RestoreV2")(one_file(form, also))
    kernels.kernel("SaveV2", files=(WRITE,))(save_v2)
    kernels.kernel("RestoreV2", files=(READ,), allocates=True)(restore_v2)
    kernels.kernel("MergeV2Checkpoints", files=(READ, WRITE))(merge_v2_checkpoints)
