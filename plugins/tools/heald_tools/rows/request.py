"""The request of a run over rows: the model, the sources of its inputs, and the place of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import TensorMetadata
from heald.errors import HealdError

from .options import ReadOptions
from .output_options import OutputOptions
from .preprocessing import Preprocessing
from .rescaling import FirstOps

DEFAULT_BATCH = 32


class Request(NamedTuple):
    """The rows, and the place of the table.

    `model`: The model's file or folder, or the address of a served model. `options_text`: All options, for the journal.
    `sources`: The text of each source of rows, by the input that it is for; None for all inputs, by its columns.
    `constants`: Values that are the same for all rows, by input.
    `maps`: The columns of an input, where their names do not say so.
    `keep`: Columns of the sources that the table has, too.
    `limit`: Most rows; None for all.
    """

    model: Path | str
    sources: Mapping[str | None, str]
    constants: Mapping[str, Any]
    output: str
    options_text: str
    batch: int | None = None
    maps: Mapping[str, Sequence[str]] = {}
    keep: Sequence[str] = ()
    limit: int | None = None
    strict: bool = False
    json_lines: bool = False
    nan: str = "null"
    resume: bool = False
    outputs: OutputOptions = OutputOptions()
    preprocessing: Preprocessing = Preprocessing()
    options: ReadOptions = ReadOptions(DEFAULT_BATCH)


class Model(NamedTuple):
    """`step`: from the arrays of `inputs`, in order, to the arrays of `outputs`, in order.

    `first_ops`: From an input's name to the first ops behind it; None for a model without a graph.
    `in_flight`: Batches that run at a time. `row_errors`: Errors of a run that one of its rows may have caused.
    """

    inputs: Mapping[str, TensorMetadata]
    outputs: Sequence[str]
    step: Callable[..., Sequence[Any]]
    first_ops: Callable[[str], FirstOps] | None = None
    in_flight: int = 1
    row_errors: tuple[type[HealdError], ...] = ()
