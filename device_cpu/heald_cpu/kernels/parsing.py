"""Kernels that read numbers, lines of CSV and serialized tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from heald.api import Bind, DType, Kernels, TensorValue, dtypes, errors

from .numerals import parse_all, parser
from .strings import attribute_bytes

Run = Callable[..., Any]
Fields = Callable[[bytes], list[bytes]]


def to_number(b: Bind) -> Run:
    out_type = b.attrs["out_type"]

    def run(x: Any, out: Any) -> None:
        try:
            out.reshape(-1)[:] = parse_all(x.reshape(-1).tolist(), out_type)
        except ValueError as error:
            raise errors.InvalidArgument(f"could not convert string to {out_type}: {error}") from None

    return run


def decode_csv(b: Bind) -> Run:
    fields = _reader(b)
    types = b.attrs["OUT_TYPE"]
    na_value = attribute_bytes(b, "na_value")
    count = len(types)
    columns = [_column(i, dtype, na_value) for i, dtype in enumerate(types)]

    def run(records: Any, *defaults_and_outs: Any) -> None:
        rows = [fields(record) for record in records.reshape(-1)]
        for i, row in enumerate(rows):
            if len(row) != count:
                raise errors.InvalidArgument(f"Expect {count} fields but have {len(row)} in record {i}")
        texts = list(zip(*rows, strict=True)) or [()] * count
        for column, text, default, out in zip(
            columns, texts, defaults_and_outs[:count], defaults_and_outs[count:], strict=True
        ):
            out.reshape(-1)[:] = column(text, default.reshape(-1))

    return run


def _column(number: int, dtype: DType, na_value: bytes) -> Callable[[Any, Any], Any]:
    """A function that parses one field of all records. The default replaces fields that are empty or `na_value`."""
    parse: Callable[[bytes], Any] = bytes if dtype is dtypes.string else parser(dtype)

    def element(record: int, text: bytes, default: Any) -> Any:
        if not text or text == na_value:
            if not len(default):
                raise errors.InvalidArgument(f"Field {number} is required but missing in record {record}!")
            return default[0]
        try:
            return parse(text)
        except ValueError:
            where = f"Field {number} in record {record}"
            raise errors.InvalidArgument(f"{where} is not a valid {dtype}: {text!r}") from None

    def parse_column(texts: Any, default: Any) -> Any:
        if dtype is not dtypes.string and na_value not in texts and b"" not in texts:
            try:
                return parse_all(texts, dtype)
            except ValueError:
                pass  # the element that is no number is named below
        return [element(i, text, default) for i, text in enumerate(texts)]

    return parse_column


def _reader(b: Bind) -> Fields:
    delimiter, columns = attribute_bytes(b, "field_delim"), b.attrs["select_cols"]
    special = b'\r\n"' if b.attrs["use_quote_delim"] else b"\r\n"

    def fields(record: bytes) -> Iterator[bytes]:
        if len(record.translate(None, special)) < len(record):
            return csv_fields(record, delimiter, quotes=b'"' in special)
        return iter(record.split(delimiter) if record else ())

    def selected_fields(record: bytes) -> list[bytes]:
        row = list(islice(fields(record), columns[-1] + 1))
        return [row[c] for c in columns if c < len(row)]

    return selected_fields if columns else lambda record: list(fields(record))


def csv_fields(record: bytes, delimiter: bytes, *, quotes: bool) -> Iterator[bytes]:
    """The fields of one record by RFC 4180. Line ends before a field are ignored."""
    at = 0
    while at < len(record):
        if record[at] in b"\r\n":
            at += 1
        elif quotes and record[at] == ord('"'):
            field, at = _quoted_field(record, at + 1, delimiter)
            yield field
        else:
            field = record[at:].partition(delimiter)[0]
            if b"\r" in field or b"\n" in field or (quotes and b'"' in field):
                raise errors.InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside")
            at += len(field) + 1
            yield field
    if record.endswith(delimiter):
        yield b""


def _quoted_field(record: bytes, at: int, delimiter: bytes) -> tuple[bytes, int]:
    """The field from `at` to its closing quote, and the start of the next field. Raises InvalidArgument."""
    parts = []
    while (quote := record.find(b'"', at)) >= 0:
        parts.append(record[at:quote])
        following = record[quote + 1 : quote + 2]
        if following in (b"", delimiter):
            return b"".join(parts), quote + 2
        if following != b'"':
            raise errors.InvalidArgument("Quote inside a string has to be escaped by another quote")
        parts.append(b'"')
        at = quote + 2
    raise errors.InvalidArgument("Quoted field has to end with quote followed by delim or end")


def parse_tensor(b: Bind) -> Run:
    dtype = b.attrs["out_type"]

    def run(serialized: Any) -> Any:
        data = serialized[()]
        try:
            value = TensorValue.read(data, 0, len(data))
        except errors.DataLoss as error:
            raise errors.InvalidArgument(f"Could not parse serialized as TensorProto: {error}") from None
        if value.dtype is not dtype:
            raise errors.InvalidArgument(f"Type mismatch between parsed tensor ({value.dtype}) and dtype ({dtype})")
        return value.array().copy()

    return run


def serialize_tensor(_: Bind) -> Run:
    return lambda x, out: out.fill(bytes(TensorValue(x).raw))


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "DecodeCSV": decode_csv, "SerializeTensor": serialize_tensor, "StringToNumber": to_number,
    }.items():
        kernels.kernel(op)(bind)
    kernels.kernel("ParseTensor", allocates=True)(parse_tensor)
