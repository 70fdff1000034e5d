"""The grammar of --input, which every command with inputs has.

    NAME=VALUE           a literal
    NAME=FILE            a file; FILE.npz:KEY names an array in it
    NAME:SHAPE[:TYPE]    an input of this shape, whose values are made up where a command runs the model

A SHAPE is sizes between commas or x: 1,224,224,3 or 1x224x224x3, in brackets or without. No size is a scalar's shape.
Each form may lack its NAME where the model has one input. A colon is part of many texts and of tensor names, so NAME
before a colon counts only if it is an input of the model.

Commands that run nothing need shapes alone. There NAME=SHAPE stands for NAME:SHAPE. A JSON list of lists and an array
of NumPy's files stand for their shape. This module reads the texts; heald-tools reads the values.
"""

from __future__ import annotations

import json
import re
import zlib
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from ...errors import DataLoss, InvalidArgument, NotFound, describe_exception, of_system

if TYPE_CHECKING:
    from ...runtime.values.tensor import TensorMetadata

_NAME = r"(?P<name>[A-Za-z0-9.][\w.\\/>-]*(?::\d+)?)"
_NAMED = re.compile(rf"{_NAME}=(?P<text>.*)", re.DOTALL)
_SIZES = r"[0-9]{1,18}(?:\s*[,x]\s*[0-9]{1,18})*,?"  # Python converts no text of thousands of digits
_SHAPE = rf"(?P<shape>(?:{_SIZES})|\[\s*(?:{_SIZES})?\s*\]|\(\s*(?:{_SIZES})?\s*\)|)"
_SHAPED = re.compile(rf"{_NAME}?:{_SHAPE}(?::(?P<type>[A-Za-z]\w*))?")
_BARE_SHAPE = re.compile(_SHAPE)
_NUMPY_FILE = re.compile(r"(?P<path>.*\.(?:npy|npz))(?::(?P<key>.+))?", re.IGNORECASE | re.DOTALL)
METAVAR = "NAME=VALUE|FILE, NAME:SHAPE"
FORMS = "write NAME=VALUE, NAME=FILE or NAME:SHAPE, such as image=cat.png or image:1,224,224,3"


class InputText(NamedTuple):
    """One --input: the input's name, or None, and the text after `=`, or the whole text without a name."""

    name: str | None
    text: str

    @property
    def may_be_shape(self) -> bool:
        """True for a text in the form of NAME:SHAPE, whose brackets are no pattern of file names."""
        return self.name is None and _SHAPED.fullmatch(self.text) is not None


class GivenShape(NamedTuple):
    """The shape of an input, and the name of its element type where the text has one."""

    dims: tuple[int, ...]
    dtype: str | None = None

    def check(self, name: str, meta: TensorMetadata) -> None:
        """Raises InvalidArgument for a shape or type that the input cannot have."""
        from ...runtime.values import dtypes
        from ...runtime.values.tensor import fits, shape_text

        if not fits(self.dims, meta):
            raise InvalidArgument(f"input '{name}' is {meta}, it cannot have shape {shape_text(self.dims)}")
        if self.dtype is not None and dtypes.named(self.dtype) is not meta.dtype:
            raise InvalidArgument(f"input '{name}' is {meta}, it cannot have type {self.dtype}")


def add_input(parser: ArgumentParser, text: str = "feed an input, or any other tensor") -> None:
    """--input of a command that runs a model."""
    parser.add_argument("--input", action="append", default=[], metavar=METAVAR, help=f"{text} (repeatable)")


def add_input_shapes(parser: ArgumentParser) -> None:
    """--input of a command that runs nothing, and needs shapes alone."""
    parser.add_argument("--input", action="append", default=[], type=_shape_argument, metavar=METAVAR,
                        help="the shape that an input will have: x:1,224,224,3, x=1,224,224,3, or as a value or a "
                             ".npy file has it (repeatable)")


def parse_input(argument: str) -> InputText:
    match = _NAMED.fullmatch(argument)
    return InputText(match["name"], match["text"]) if match is not None else InputText(None, argument)


def inputs_by_name(input_texts: Iterable[InputText], inputs: Collection[str]) -> dict[str, str | GivenShape]:
    """Return texts and shapes by tensor name; `inputs` are the model's. Raises InvalidArgument for an input that is
    given twice, and for one without a name where the model has several."""
    by_name: dict[str, str | GivenShape] = {}
    for input_text in input_texts:
        name, content = _resolve(input_text, inputs)
        if name in by_name:
            raise InvalidArgument(f"input '{name}' is given twice")
        by_name[name] = content
    return by_name


def shapes_by_name(
    input_texts: Iterable[InputText], inputs: Mapping[str, TensorMetadata | None]
) -> dict[str, list[GivenShape]]:
    """Return the shapes by tensor name, several for an input that is given several times.

    Raises InvalidArgument for an input without a name where the model has several, for a type that the model's known
    input cannot have, and the errors of files.
    """
    shapes: dict[str, list[GivenShape]] = {}
    for input_text in input_texts:
        shaped = _SHAPED.fullmatch(input_text.text) if input_text.name is None else None
        if shaped is not None and shaped["name"] is not None:  # nothing but a name stands there in such a command
            name, shape = shaped["name"], GivenShape(_dims(shaped["shape"]), shaped["type"])
        else:
            name, content = _resolve(input_text, inputs)
            shape = content if isinstance(content, GivenShape) else _shape_of_text(content, name)
        meta = inputs.get(name)
        if meta is not None and shape.dtype is not None:
            shape.check(name, meta)
        shapes.setdefault(name, []).append(shape)
    return shapes


def need_inputs(input_texts: Iterable[InputText]) -> bool:
    """True where the model's inputs decide the meaning of shapes: one lacks its name, or has a type."""
    shaped = [_SHAPED.fullmatch(input_text.text) for input_text in input_texts if input_text.name is None]
    return any(match is None or match["name"] is None or match["type"] is not None for match in shaped)


def _resolve(input_text: InputText, inputs: Collection[str]) -> tuple[str, str | GivenShape]:
    """Return the name and the content of one --input."""
    if input_text.name is not None:
        return input_text.name, input_text.text
    match = _SHAPED.fullmatch(input_text.text)
    name = match["name"] if match is not None else None
    if match is not None and name is not None and name in {*inputs, *(f"{name}:0" for name in inputs)}:
        return name, GivenShape(_dims(match["shape"]), match["type"])
    if len(inputs) != 1:
        has = f"{len(inputs)} inputs: {', '.join(inputs)}" if inputs else "no inputs"
        raise InvalidArgument(f"--input '{input_text.text}' names no input, and the model has {has}",
                              hint="--input NAME=...")
    (only,) = inputs
    if match is not None and name is None:
        return only, GivenShape(_dims(match["shape"]), match["type"])
    return only, input_text.text


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall("[0-9]+", text))


def _shape_argument(argument: str) -> InputText:
    """Return the text of an input whose shape it states. Raises ArgumentTypeError for another text."""
    input_text = parse_input(argument)
    if not argument or not (
            _BARE_SHAPE.fullmatch(input_text.text.strip()) or _NUMPY_FILE.fullmatch(input_text.text)
            or _shape_of_literal(input_text.text) is not None
            or (input_text.name is None and _SHAPED.fullmatch(input_text.text))):
        raise ArgumentTypeError(f"'{argument}' is no NAME=SHAPE, such as image=1,224,224,3, no NAME:SHAPE[:TYPE] and "
                                "no NAME=FILE.npy")
    return input_text


def _shape_of_text(text: str, name: str) -> GivenShape:
    """Return the shape that a text states, or that its value has."""
    if _BARE_SHAPE.fullmatch(text.strip()):
        return GivenShape(_dims(text))
    file = _NUMPY_FILE.fullmatch(text)
    if file is not None:
        return GivenShape(_shape_in_file(Path(file["path"]), file["key"], name))
    dims = _shape_of_literal(text)
    if dims is None:
        raise InvalidArgument(f"'{text}' is no shape of input '{name}'", hint=FORMS)
    return GivenShape(dims)


def _shape_of_literal(text: str) -> tuple[int, ...] | None:
    """The shape of a JSON list whose rows have equal lengths; None for another text. A single number is more often a
    mistyped shape than a scalar."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    dims: list[int] = []
    level = [value]
    while all(isinstance(item, list) for item in level):
        lengths = {len(item) for item in level}
        if len(lengths) != 1:
            return None
        dims += lengths
        level = [item for row in level for item in row]
        if not level:
            return tuple(dims)
    is_plain = all(isinstance(item, bool | int | float | str) for item in level)
    return tuple(dims) if is_plain and dims else None


def _shape_in_file(path: Path, key: str | None, name: str) -> tuple[int, ...]:
    """The shape of the array in a file of NumPy's, from its header. Raises NotFound, DataLoss."""
    import zipfile

    try:
        with path.open("rb") as file:
            if path.suffix.lower() == ".npy":
                return _shape_in_header(file)
            with zipfile.ZipFile(file) as archive:
                keys = [member.removesuffix(".npy") for member in archive.namelist()]
                candidate_keys = [key] if key is not None else [name, name.partition(":")[0], *keys[: len(keys) == 1]]
                array = next((key for key in candidate_keys if key in keys), None)
                if array is None:
                    raise NotFound(f"'{path}' has no array '{candidate_keys[0]}'",
                                   hint=f"it has {', '.join(keys[:8]) or 'none'}: {name}=FILE.npz:KEY")
                with archive.open(f"{array}.npy") as member:
                    return _shape_in_header(member)
    except OSError as error:
        raise of_system(error, path) from error
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DataLoss(f"'{path}' cannot be read: {describe_exception(error)}") from error


def _shape_in_header(file: IO[bytes]) -> tuple[int, ...]:
    from numpy.lib import format as numpy_format

    version = numpy_format.read_magic(file)
    readers = {(1, 0): numpy_format.read_array_header_1_0, (2, 0): numpy_format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the .npy format")
    shape: tuple[int, ...] = readers[version](file)[0]
    return shape
