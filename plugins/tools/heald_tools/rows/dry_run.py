"""The first batch of a run over rows, and no run: shapes, ranges and origins of the inputs, and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import TensorMetadata, dtypes
from heald.errors import InvalidArgument

from ..summary import statistics
from .contact_sheet import MOST_PICTURES, picture_of_input, write_sheet
from .fault_report import FaultReport
from .feed import Feeds, make_feeds
from .input_rows import Rows, find_rows
from .preprocessing import PRESETS, Preprocessing, layout_of
from .request import Model, Request
from .row_batch import Undecoded


class InputReport(NamedTuple):
    """`origin`: The source and its columns, or the option.

    `values`: min, mean and max of numbers, or least and most bytes of texts.
    """

    name: str
    expected: str
    origin: str
    batch: str
    values: Mapping[str, float]


class Report(NamedTuple):
    """`rows`: good rows; `bad`: bad ones. `columns`: of the rows themselves, before the outputs'."""

    rows: int
    total: int | None
    inputs: Sequence[InputReport]
    columns: Sequence[str]
    outputs: Sequence[str]
    bad: int
    sheet: str | None = None
    pictures: int = 0


def look_at_rows(model: Model, request: Request, sheet: Path | None) -> Report:
    """Read the first batch, and write a contact sheet of its pictures where `sheet` names a file.

    Raises as `find_rows`, and InvalidArgument for a contact sheet of inputs without pictures.
    """
    rows = find_rows(model, request)
    feeds = make_feeds(next(rows.batches), rows.bindings)
    inputs = [_report_of(name, meta, feeds, rows, request) for name, meta in model.inputs.items()]
    columns = [*feeds.rows.index, *(["label"] if request.outputs.from_folders else []), *request.keep]
    faults = FaultReport(strict=request.strict)
    faults.tell(feeds.faults)
    faults.tell_count()
    report = Report(len(feeds.rows), rows.total, inputs, columns, model.outputs, faults.count)
    if sheet is None:
        return report
    return report._replace(sheet=str(sheet), pictures=_write_sheet(sheet, model.inputs, feeds, request))


def _report_of(name: str, meta: TensorMetadata, feeds: Feeds, rows: Rows, request: Request) -> InputReport:
    if name in request.constants:
        value = _array(request.constants[name])
        shape = str(TensorMetadata(meta.dtype, value.shape))
        return InputReport(name, str(meta), "--input, the same for all rows", shape, _statistics([value]))
    arrays = feeds.arrays.get(name, ())
    parts = list(arrays) if isinstance(arrays, list) else [arrays] if len(arrays) else []
    return InputReport(name, str(meta), _origin(name, meta, feeds, rows, request), _type_and_shape(parts),
                       _statistics(parts))


def _array(value: Any) -> Any:
    import numpy as np

    return np.asarray(value)


def _origin(name: str, meta: TensorMetadata, feeds: Feeds, rows: Rows, request: Request) -> str:
    source = rows.sources[name if name in rows.sources else None] if name in rows.sources or None in rows.sources else (
        next(iter(rows.sources.values())))
    columns = next(binding.columns for binding in rows.bindings if binding.input == name)
    if source.format.decoder:
        files = f"{len(source.files):,} files" if len(source.files) != 1 else "1 file"
        is_picture = meta.dtype is not dtypes.string and isinstance(feeds.rows.columns.get(columns[0]), Undecoded)
        return f"{source.text}, {files}" + (f"; {_preprocessing_text(request.preprocessing)}" if is_picture else "")
    named = f"column{'s' if len(columns) > 1 else ''} {', '.join(columns)} of "
    return (named if columns != (name,) else "") + source.text


def _preprocessing_text(preprocessing: Preprocessing) -> str:
    """The options as they were given."""
    parts = []
    if preprocessing.resize is not None:
        parts.append("--resize " + "x".join(map(str, preprocessing.resize)))
    if preprocessing.crop is not None:
        parts.append("--crop " + "x".join(map(str, preprocessing.crop)))
    numbers = preprocessing.numbers
    preset = next((name for name, preset in PRESETS.items() if preset == numbers), None)
    if preset is not None:
        parts.append(f"--preset {preset}")
    elif numbers is not None:
        parts.append("range by --rescale, --mean, --std or --bgr")
    else:
        parts.append("pixels from 0 to 255")
    return ", ".join(parts)


def _type_and_shape(arrays: Sequence[Any]) -> str:
    if not arrays:
        return "none"
    texts = dict.fromkeys(str(TensorMetadata(dtypes.of_numpy(array.dtype), array.shape)) for array in arrays)
    shown = ", ".join(list(texts)[:3]) + (", ..." if len(texts) > 3 else "")
    return shown if len(arrays) == 1 else f"{shown}, one row at a time"


def _statistics(arrays: Sequence[Any]) -> dict[str, float]:
    import numpy as np

    if not arrays:
        return {}
    flat = np.concatenate([np.asarray(array).reshape(-1) for array in arrays])
    if flat.dtype.kind in "OSU":
        sizes = [len(value) for value in flat]
        return {"least_bytes": min(sizes), "most_bytes": max(sizes)} if sizes else {}
    return {key: value for key, value in statistics(flat).items() if key != "top"}


def _write_sheet(file: Path, inputs: Mapping[str, TensorMetadata], feeds: Feeds, request: Request) -> int:
    name = next((name for name, meta in inputs.items() if meta.dtype is not dtypes.string
                 and isinstance(feeds.rows.columns.get(name), Undecoded)), None)
    if name is None or "file" not in feeds.rows.index:
        raise InvalidArgument("--contact-sheet: no input takes pictures",
                              hint="it shows the pictures of --input x=photos/, resized and in range for the model")
    if not len(feeds.rows):
        raise InvalidArgument("--contact-sheet: the first batch has no picture that can be read")
    layout = layout_of(inputs[name], name)
    count = min(len(feeds.rows), MOST_PICTURES)
    numbers = request.preprocessing.numbers
    pictures = [picture_of_input(feeds.arrays[name][row], layout, numbers) for row in range(count)]
    write_sheet(file, pictures, [str(path) for path in feeds.rows.index["file"][:count]])
    return count


def lines_of(report: Report) -> list[str]:
    """The report for people."""
    of = f" of {report.total:,}" if report.total is not None else ""
    lost = f", {report.bad:,} of them bad" if report.bad else ""
    lines = [f"nothing ran: this is the first batch, {report.rows + report.bad:,}{of} rows{lost}"]
    for row in report.inputs:
        lines += [f"input '{row.name}' {row.expected}", f"  from    {row.origin}", f"  batch   {row.batch}",
                  f"  values  {_values_text(row.values)}"]
    lines.append(f"columns: {', '.join([*report.columns, *report.outputs])}")
    if report.sheet is not None:
        lines.append(f"wrote {report.sheet}: {report.pictures:,} pictures as the model sees them")
    return lines


def _values_text(values: Mapping[str, float]) -> str:
    return "  ".join(f"{key.replace('_', ' ')} {value:.6g}" for key, value in values.items()) or "none"


def as_json(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {**report._asdict(), "inputs": [row._asdict() for row in report.inputs]}
