"""The values of `--input`, whose grammar is core's (`heald.api.cli`), and the readers of input files."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import TensorMetadata, dtypes, shape_text
from heald.api.cli import GivenShape
from heald.errors import (
    DataLoss,
    HealdError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    closest,
    describe_exception,
    of_system,
)
from heald.runtime.values import fits

from .images import PICTURE_SUFFIXES, read_image

Scalar = bool | int | float | complex | str | bytes  # a value without a shape of its own, as a list is
_FILE = re.compile(r"(?P<path>.*(?P<suffix>\.(npy|npz|txt|json|png|jpe?g|webp|bmp|gif)))(:(?P<key>.+))?", re.IGNORECASE)


class _File(NamedTuple):
    path: Path
    key: str | None  # the name of an array in an .npz


def read(text: str | GivenShape, meta: TensorMetadata, name: str) -> Any:
    """Read the value of `text`, a literal or a file, for the tensor `name`. The session converts it to the tensor's
    type. An input that is given by its shape is made up.

    Values without a shape of their own, all but arrays of NumPy's files, get the dimensions that they lack.
    Raises NotFound, DataLoss and InvalidArgument, Unimplemented for an image without Pillow.
    """
    if isinstance(text, GivenShape):
        text.check(name, meta)
        return made_up_array(TensorMetadata(meta.dtype, text.dims), name, is_text=True)
    match = _FILE.fullmatch(text)
    if match is None:
        return _with_dimensions(_literal(text, meta, name), meta)
    file = _File(Path(match["path"]), match["key"])
    _check_file(file, text, meta, name)
    try:
        value = _READERS[match["suffix"].lower()](file, meta, name)
        return _with_dimensions(value, meta) if isinstance(value, Scalar | list) else value
    except HealdError:
        raise
    except OSError as error:
        raise of_system(error, file.path) from error
    except (ValueError, RecursionError) as error:
        raise DataLoss(f"'{file.path}' cannot be read: {describe_exception(error)}") from error


def made_up_array(meta: TensorMetadata, name: str, batch: int = 1, *, is_text: bool = False) -> Any:
    """Make up a value for an input without one: unknown lengths are 1, an unknown first dimension is `batch`.

    Raises InvalidArgument for an unknown rank, and for types without a fixed size: any value would be a guess. With
    `is_text` strings are empty, for the caller to fill.
    """
    import numpy as np

    if meta.shape is None or not (meta.dtype.itemsize or (is_text and meta.dtype is dtypes.string)):
        raise InvalidArgument(f"input '{name}' is {meta}: give it", hint=f"--input {shlex.quote(name)}=FILE.npy")
    shape = [(1 if i else batch) if size is None else size for i, size in enumerate(meta.shape)]
    try:
        if meta.dtype is dtypes.string:
            return np.full(shape, b"", object)
        return np.random.default_rng(0).random(shape).astype(meta.dtype.numpy)
    except (MemoryError, ValueError) as error:  # a ValueError where the bytes are more than an address has
        raise ResourceExhausted(f"input '{name}' of shape {shape_text(tuple(shape))} has no room in memory") from error


def _check_file(file: _File, text: str, meta: TensorMetadata, name: str) -> None:
    if not file.path.is_file():
        beside = file.path.parent
        suggestions = closest(file.path.name, [p.name for p in beside.iterdir()] if beside.is_dir() else [])
        quoted = _quoting_hint(text, name) if meta.dtype is dtypes.string else None
        raise NotFound(f"there is no file '{file.path}' for input '{name}'",
                       hint=f"did you mean {suggestions[0]}?" if suggestions else quoted)
    if file.key is not None and file.path.suffix.lower() != ".npz":
        raise InvalidArgument(f"'{text}': only an .npz file has arrays by name")


def _quoting_hint(text: str, name: str) -> str:
    return f"for the text itself write {shlex.quote(name)}={shlex.quote(json.dumps(text))}"


def _literal(text: str, meta: TensorMetadata, name: str) -> Any:
    """Parse a number, a JSON literal or a JSON list. For a string tensor any other text that is no path stands for
    itself. Raises InvalidArgument."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if meta.dtype is dtypes.string:
        if isinstance(value, str | list):
            return value
        if os.path.exists(text):  # noqa: PTH110 - Path's own raises for long texts
            kind = "a folder" if Path(text).is_dir() else "a file of no known kind"
            raise InvalidArgument(f"input '{name}' is {meta}; '{text}' is {kind}",
                                  hint=f"files: {', '.join(_READERS)}; {_quoting_hint(text, name)}")
        return text
    value = _number(text) if value is None else value
    if value is None or isinstance(value, str | dict):
        raise InvalidArgument(
            f"input '{name}' is {meta}; '{text[:60]}' is no number, no JSON list and no file of a known kind",
            hint=f"files: {', '.join(_READERS)}; lists are written as in [[1, 2], [3, 4]]; {name}:1,2 makes up an "
                 "array of this shape")
    return value


def _with_dimensions(value: Any, meta: TensorMetadata) -> Any:
    """Add dimensions of length 1, before the value's or after them, where the tensor has more. 33 for [?,1] is [[33]].

    A value that fits neither way stays as it is, for the session's error.
    """
    import numpy as np

    try:
        shape = np.shape(value)
    except ValueError:  # rows of different lengths
        return value
    if meta.shape is None or 0 in shape or len(shape) >= len(meta.shape):
        return value
    ones = (1,) * (len(meta.shape) - len(shape))
    fitting_shape = next((padded for padded in (ones + shape, shape + ones) if fits(padded, meta)), None)
    return value if fitting_shape is None else _nest(np.array(value, object).reshape(-1).tolist(), fitting_shape)


def _number(text: str) -> int | float | complex | None:
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _npy(file: _File, _: TensorMetadata, __: str) -> Any:
    from .array_files import read_npy

    return read_npy(file.path)


def _npz(file: _File, _: TensorMetadata, name: str) -> Any:
    from .array_files import ArrayArchive

    with ArrayArchive(file.path) as arrays:
        names = arrays.names
        array_names = (file.key,) if file.key is not None else (name, name.partition(":")[0], *names[: len(names) == 1])
        for key in array_names:
            if key in names:
                return arrays[key]
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise NotFound(f"'{file.path}' has no array '{array_names[0]}'",
                   hint=f"it has {shown or 'none'}: {shlex.quote(name)}=FILE.npz:KEY")


def _txt(file: _File, meta: TensorMetadata, name: str) -> Any:
    """Read numbers between white space, or the lines for a string tensor.

    Numbers take the tensor's shape if at most one dimension is unknown. Otherwise each line is a row.
    """
    lines = [line for line in file.path.read_text("utf-8").splitlines() if line.strip()]
    if meta.dtype is dtypes.string:
        return lines
    rows = [[_word(word, file.path) for word in line.split()] for line in lines]
    flat = [number for row in rows for number in row]
    if meta.shape is None or meta.shape.count(None) > 1:
        return rows if len(rows) > 1 else flat
    known_elements = prod(d for d in meta.shape if d is not None)
    exact = None not in meta.shape
    if not known_elements or (known_elements != len(flat) if exact else len(flat) % known_elements):
        raise InvalidArgument(f"'{file.path}' has {len(flat)} numbers, which do not fill '{name}', {meta}")
    return _nest(flat, [len(flat) // known_elements if d is None else d for d in meta.shape])


def _word(word: str, path: Path) -> Any:
    value = {"true": True, "false": False}.get(word.lower(), _number(word))
    if value is None:
        raise InvalidArgument(f"'{path}': '{word[:40]}' is no number")
    return value


def _nest(flat: list[Any], shape: Sequence[int]) -> Any:
    """Nest a flat list by shape. Python numbers stay Python numbers: the session has a conversion rule for them."""
    for size in reversed(shape):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat[0]


def _json(file: _File, _: TensorMetadata, __: str) -> Any:
    return json.loads(file.path.read_text("utf-8"))


def _image(file: _File, meta: TensorMetadata, name: str) -> Any:
    """Read the pixels, or for a string tensor the bytes of the file, which the model decodes itself."""
    if meta.dtype is dtypes.string:
        return file.path.read_bytes()
    array = read_image(file.path, meta)
    if not fits(array.shape, meta):
        height, width = (meta.shape or ())[-3:-1] if len(meta.shape or ()) >= 3 else (None, None)
        resize = f"resize it to {width}x{height} pixels first" if width and height else None
        raise InvalidArgument(f"'{file.path}' is an image of shape {shape_text(array.shape)}, "
                              f"input '{name}' is {meta}", hint=resize)
    return array


_READERS: dict[str, Callable[[_File, TensorMetadata, str], Any]] = {
    ".npy": _npy, ".npz": _npz, ".txt": _txt, ".json": _json, **dict.fromkeys(PICTURE_SUFFIXES, _image),
}
