"""Recorded results of a model: an .npz with its inputs, its outputs, and tensors inside its graph.

The keys are `inputs/NAME`, `outputs/NAME` and `tensors/NODE:0`. A key without such a part is the input of this name, or
the output, or the tensor. Any program that writes .npz files can therefore make a recording. NumPy's files lack some
types: strings are stored as bytes of one length, and bfloat16 as float32.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from heald.errors import InvalidArgument, did_you_mean

from .array_files import ArrayArchive

INPUTS, OUTPUTS, TENSORS = "inputs/", "outputs/", "tensors/"


class Recording(NamedTuple):
    """Arrays by name: inputs, outputs, and tensors of the graph."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]
    tensors: dict[str, Any]


def read_recording(file: str, inputs: Collection[str], outputs: Collection[str], nodes: Collection[str]) -> Recording:
    """Read the recording of a model with these inputs, outputs and nodes.

    Raises InvalidArgument for a name that the model lacks, and for a recording without an output and a tensor; the
    errors of `ArrayArchive`.
    """
    recording = Recording({}, {}, {})
    with ArrayArchive(file) as arrays:
        for key in arrays.names:
            name, kind = _place(key, inputs, outputs)
            if not _has_name(name, kind, (inputs, outputs, nodes)):
                raise InvalidArgument(f"'{file}' has '{key}', which is no input, output or tensor of the model",
                                      hint=_hint_of_unknown(key, name, inputs, outputs))
            recording[kind][_tensor(name) if kind == 2 else name] = arrays[key]
    if not recording.outputs and not recording.tensors:
        raise InvalidArgument(f"'{file}' has no output and no tensor to compare",
                              hint=f"keys: {OUTPUTS}NAME, {TENSORS}NODE:0; the outputs: {', '.join(outputs)}")
    return recording


def recorded_arrays(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], tensors: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arrays of a recording by key."""
    return {prefix + name: array for prefix, arrays in ((INPUTS, inputs), (OUTPUTS, outputs), (TENSORS, tensors))
            for name, array in arrays.items()}


def comparable(array: Any) -> Any:
    """Return a recorded array in the form of a result: strings are objects of bytes."""
    import numpy as np

    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    return array.astype(object) if array.dtype.kind == "S" else array


def _place(key: str, inputs: Collection[str], outputs: Collection[str]) -> tuple[str, int]:
    """The name and the field of a key."""
    for kind, prefix in enumerate((INPUTS, OUTPUTS, TENSORS)):
        if key.startswith(prefix):
            return key.removeprefix(prefix), kind
    return key, 0 if key in inputs else 1 if key in outputs else 2


def _hint_of_unknown(key: str, name: str, inputs: Collection[str], outputs: Collection[str]) -> str | None:
    """The nearest names. Without one, the two ways to feed the array to an input."""
    near = did_you_mean(name, [*inputs, *outputs])
    if near is not None or key != name or not inputs:
        return near
    first = next(iter(inputs))
    value = shlex.quote(f"{first}=OTHER.npz:{key}")
    return f"rename it: {INPUTS}{first}, or keep it in another file: --input {value}"


def _has_name(name: str, kind: int, names: Sequence[Collection[str]]) -> bool:
    return (name.rpartition(":")[0] or name if kind == 2 else name) in names[kind]


def _tensor(name: str) -> str:
    return name if ":" in name else f"{name}:0"
