"""Outputs as files, which get their names when all of them are complete."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heald.errors import HealdWarning, InvalidArgument, Unimplemented
from heald.runtime.support import whole_file

JSON = ".json"


def check_place(output: str) -> None:
    """Raise InvalidArgument when `output` is no .npz file, no .json file and no folder. Commands check before any
    run."""
    if Path(output).suffix in (".npz", JSON) or is_folder(output):
        return
    raise InvalidArgument(f"--output '{output}' is no folder, no .npz file and no .json file",
                          hint=f"'{output}/' means a folder, with an .npy file for each output")


def is_folder(output: str) -> bool:
    return output.endswith(("/", os.sep)) or Path(output).is_dir() or not Path(output).suffix


def write(output: str, arrays: Mapping[str, Any]) -> dict[str, str]:
    """Write all arrays and return each array's file by name.

    Raises InvalidArgument for a path that is no regular file, Unimplemented for strings that .npy cannot hold, and
    NotFound, PermissionDenied, ResourceExhausted or Unknown when a file cannot be written.
    """
    if Path(output).suffix == JSON and not is_folder(output):
        return _write_json(Path(output), arrays)
    storable_arrays = {name: storable(name, array) for name, array in arrays.items()}
    if is_folder(output):
        return _write_folder(Path(output), storable_arrays)
    path = Path(output)
    with whole_file.writing_file(path) as out, zipfile.ZipFile(out, "w") as archive:
        for name, array in storable_arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                write_array(file, array)
    return dict.fromkeys(arrays, str(path))


def _write_json(path: Path, arrays: Mapping[str, Any]) -> dict[str, str]:
    """Write all values, with types and shapes. NaN and infinities, which JSON lacks, are null, with a warning."""
    import json

    from .json_values import replace_by_null
    from .summary import as_json

    nulls: list[float] = []
    described = {name: replace_by_null(as_json(array, most=None), nulls) for name, array in arrays.items()}
    if nulls:
        warnings.warn(f"{len(nulls):,} values are null: JSON has no NaN and no infinities", HealdWarning, stacklevel=2)
    whole_file.write_whole(path, [json.dumps(described, ensure_ascii=False, allow_nan=False).encode()])
    return dict.fromkeys(arrays, str(path))


def _write_folder(folder: Path, arrays: Mapping[str, Any]) -> dict[str, str]:
    with whole_file.naming(folder):
        whole_file.make_folders(folder)
    names: dict[str, str] = {}
    with whole_file.writing_files(folder) as files:
        for name, array in arrays.items():
            file_name = _file_name(name, names.values(), folder)
            names[name] = str(folder / file_name)
            with files.create(file_name) as file:
                write_array(file, array)
    return names


def write_array(file: Any, array: Any) -> None:
    from numpy.lib import format as npy

    npy.write_array(file, array, allow_pickle=False)


def storable(name: str, array: Any) -> Any:
    """Convert strings to fixed-size bytes, and types that NumPy lacks to float32. Both keep every value, or raise."""
    import numpy as np

    if array.dtype.kind == "V":
        return array.astype(np.float32)
    if array.dtype != object:
        return array
    fixed = array.astype(bytes)
    if not np.array_equal(fixed.astype(object), array):
        raise Unimplemented(f"output '{name}' has strings that end in zero bytes, which .npy files cannot hold")
    return fixed


def _file_name(name: str, used_paths: Any, folder: Path) -> str:
    """Return a file name for a tensor: unsafe characters are replaced, and the name differs from the taken ones."""
    safe = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII).lstrip(".") or "output"
    number, file_name = 1, f"{safe}.npy"
    while str(folder / file_name) in used_paths:
        number += 1
        file_name = f"{safe}_{number}.npy"
    return file_name
