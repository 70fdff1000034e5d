"""Arrays of a population's models in .npz files, of every type: read and written without pickles.

A key is "CALL/NAME". A string has a full stop added, since NumPy drops zero bytes at the end of a string. The key of
an array of a type that NumPy lacks ends in "|TYPE", and the array has the type's bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

Calls = Sequence[Mapping[str, np.ndarray]]  # of each call, arrays by name
GUARD = b"."  # after each string
BITS = {1: np.uint8, 2: np.uint16}  # integer types by bytes


def write_calls(path: Path, calls: Calls) -> None:
    stored = dict(
        _encode(f"{number}/{name}", np.asarray(array))
        for number, call in enumerate(calls)
        for name, array in call.items()
    )
    np.savez_compressed(path, **stored)


def read_calls(path: Path) -> list[dict[str, np.ndarray]]:
    calls: dict[int, dict[str, np.ndarray]] = {}
    with np.load(path) as file:
        for key in file:
            number, _, name = key.partition("/")
            name, _, type_name = name.partition("|")
            calls.setdefault(int(number), {})[name] = _decode(file[key], type_name)
    return [calls[number] for number in sorted(calls)]


def _encode(key: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    if array.dtype.kind in "OSU":
        flat = [(text.encode() if isinstance(text, str) else bytes(text)) + GUARD for text in array.ravel().tolist()]
        return key, np.array(flat, "S").reshape(array.shape) if flat else np.zeros(array.shape, "S1")
    if array.dtype.kind == "V":
        return f"{key}|{array.dtype.name}", array.view(BITS[array.dtype.itemsize])
    return key, array


def _decode(array: np.ndarray, type_name: str) -> np.ndarray:
    if type_name:
        return array.view(getattr(ml_dtypes, type_name))
    if array.dtype.kind != "S":
        return array
    texts = np.empty(array.shape, object)
    texts.ravel()[:] = [text[: -len(GUARD)] for text in array.ravel().tolist()]
    return texts
