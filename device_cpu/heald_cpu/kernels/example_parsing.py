"""Kernels that parse tf.train.Example messages into dense, sparse and ragged tensors, a feature each.

Example has field 1, Features; that has field 1, a map from names to Feature; and that one of the fields 1 to 3, a list
of bytes, floats or integers. A feature without any of these counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, DType, Kernels, dtypes, errors, wire

from .string_splitting import ragged_indices
from .strings import encode

Run = Callable[..., Any]
Span = tuple[int, int]
Example = tuple[bytes, dict[bytes, Span]]  # the message, and the span of each feature in it
Rows = Sequence[Sequence[Any] | None]  # values of one feature in each example, None for a missing feature


def strings(buf: bytes, span: Span) -> list[bytes]:
    return [buf[at:end] for number, _, at, end in wire.fields(buf, *span) if number == 1]


def floats(buf: bytes, span: Span) -> list[float]:
    parts = (wire.floats(buf, kind, at, end, "a feature") for n, kind, at, end in wire.fields(buf, *span) if n == 1)
    return list(chain.from_iterable(parts))


def integers(buf: bytes, span: Span) -> list[int]:
    parts = (wire.integers(buf, kind, at, end, "a feature") for n, kind, at, end in wire.fields(buf, *span) if n == 1)
    return list(chain.from_iterable(parts))


Read = Callable[[bytes, Span], Sequence[Any]]
LISTS: dict[int, tuple[DType, Read]] = {  # by field of Feature
    1: (dtypes.string, strings), 2: (dtypes.float32, floats), 3: (dtypes.int64, integers),
}


def parse(serialized: Iterable[bytes]) -> list[Example]:
    return [(buf, dict(entry_of(buf, *entry) for features in message_spans(buf, 0, len(buf))
                       for entry in message_spans(buf, *features))) for buf in serialized]


def message_spans(buf: bytes, start: int, stop: int, field: int = 1) -> list[Span]:
    """The spans of the messages in a field."""
    spans = []
    for number, kind, at, end in wire.fields(buf, start, stop):
        if number == field:
            wire.expect(kind, wire.BYTES, at, "a message")
            spans.append((at, end))
    return spans


def entry_of(buf: bytes, start: int, stop: int) -> tuple[bytes, Span]:
    spans = {number: (at, end) for number, _, at, end in wire.fields(buf, start, stop)}
    return buf[slice(*spans.get(1, (0, 0)))], spans.get(2, (0, 0))


def rows_of(examples: Sequence[Example], key: bytes, dtype: DType) -> Rows:
    """The values of feature `key`. Raises InvalidArgument for values of another dtype."""
    return [_values(buf, spans[key], key, dtype) if key in spans else None for buf, spans in examples]


def _values(buf: bytes, span: Span, key: bytes, dtype: DType) -> Sequence[Any] | None:
    lists = [(number, (at, end)) for number, _, at, end in wire.fields(buf, *span) if number in LISTS]
    if not lists:
        return None
    number, inner = lists[0]  # TensorFlow's parsers of Example look no further
    actual, read = LISTS[number]
    if actual is not dtype:
        raise errors.InvalidArgument(f"Key: {key!r}. Data types don't match. Expected type: {dtype}, actual: {actual}")
    return read(buf, inner)


def flat(rows: Rows, dtype: DType) -> Any:
    return np.array([*chain.from_iterable(row for row in rows if row is not None)], dtype.numpy)


def counts(rows: Rows) -> Any:
    return np.array([len(row or ()) for row in rows], np.int64)


class Dense(NamedTuple):
    key: bytes
    dtype: DType
    shape: tuple[int | None, ...]
    default: Any  # empty: the feature is required
    ask: Callable[[int, str], None]  # as Bind.ask

    def read(self, examples: Sequence[Example], *, single: bool) -> Any:
        rows = rows_of(examples, self.key, self.dtype)
        values = self._padded_rows(rows, single=single) if self.shape[:1] == (None,) else self._fixed_length_rows(rows)
        return values[0, ...] if single else values

    def _fixed_length_rows(self, rows: Rows) -> Any:
        size = prod(d or 0 for d in self.shape)
        default = self.default.reshape(-1)
        if None in rows and len(default) != size:
            raise errors.InvalidArgument(f"Feature: {self.key!r} (data type: {self.dtype}) is required but could not "
                                         "be found")
        filled = [default if row is None else row for row in rows]
        for i, row in enumerate(filled):
            if len(row) != size:
                raise errors.InvalidArgument(f"Key: {self.key!r}, index: {i}. Number of {self.dtype} values != "
                                             f"expected: {len(row)}, but {size} make a tensor of shape {self.shape}")
        return flat(filled, self.dtype).reshape(len(rows), *self.shape)

    def _padded_rows(self, rows: Rows, *, single: bool) -> Any:
        """The rows, padded with the default to the longest."""
        stride, lengths = prod(d or 0 for d in self.shape[1:]), counts(rows)
        if (lengths % stride if stride else lengths).any():
            raise errors.InvalidArgument(f"Key: {self.key!r}. Number of {self.dtype} values is not a multiple of "
                                         f"stride length {stride}")
        longest = int(lengths.max(initial=0))
        self.ask(len(rows) * longest * self.dtype.numpy.itemsize, f"feature {self.key!r}, padded,")
        values = np.empty((len(rows), longest), self.dtype.numpy)
        values[...] = self.default.reshape(-1)[:1]
        values[np.arange(longest) < lengths[:, None]] = flat(rows, self.dtype)
        return values.reshape(len(rows), longest // stride if stride else 0, *self.shape[1:])


def sparse(examples: Sequence[Example], key: bytes, dtype: DType, *, single: bool) -> tuple[Any, Any, Any]:
    """Indices, values, dense shape."""
    rows = rows_of(examples, key, dtype)
    lengths = counts(rows)
    shape = np.array([len(rows), lengths.max(initial=0)], np.int64)
    first = 1 if single else 0
    return ragged_indices(lengths)[:, first:], flat(rows, dtype), shape[first:]


def parse_ragged(
    examples: Sequence[Example], key: bytes, types: tuple[DType, DType], *, single: bool
) -> tuple[Any, Any]:
    """Values and row splits; a single example has no splits."""
    rows = rows_of(examples, key, types[0])
    splits = np.cumsum([0, *counts(rows)]).astype(types[1].numpy)
    return flat(rows, types[0]), splits[:0] if single else splits


Keys = Sequence[bytes]


def reader(b: Bind) -> Callable[..., tuple[Any, ...]]:
    """A function from serialized examples, keys (sparse, dense, ragged) and dense defaults to the op's outputs."""
    attrs = b.attrs
    sparse_types, dense_types, shapes = attrs["sparse_types"], attrs["Tdense"], attrs["dense_shapes"]
    ragged_types = list(zip(attrs.get("ragged_value_types", ()), attrs.get("ragged_split_types", ()), strict=True))

    def read(serialized: Any, keys: tuple[Keys, Keys, Keys], defaults: Sequence[Any]) -> tuple[Any, ...]:
        single = serialized.ndim == 0
        try:
            examples = parse(serialized.reshape(-1))
            sparses = [sparse(examples, *column, single=single) for column in zip(keys[0], sparse_types, strict=True)]
            denses = [Dense(*column, b.ask).read(examples, single=single)
                      for column in zip(keys[1], dense_types, shapes, defaults, strict=True)]
            raggeds = [parse_ragged(examples, *column, single=single)
                       for column in zip(keys[2], ragged_types, strict=True)]
        except errors.DataLoss as error:
            raise errors.InvalidArgument(f"Could not parse example input: {error}") from None
        return (*by_part(sparses, 3), *denses, *by_part(raggeds, 2))

    return read


def by_part(tensors: Sequence[tuple[Any, ...]], parts: int) -> list[Any]:
    return [tensor[part] for part in range(parts) for tensor in tensors]


def parse_example(b: Bind) -> Run:
    read, sparse_count = reader(b), b.attrs["Nsparse"]
    first_default = sparse_count + b.attrs["Ndense"]

    def run(serialized: Any, _names: Any, *others: Any) -> tuple[Any, ...]:
        keys = [key[()] for key in others[:first_default]]
        return read(serialized, (keys[:sparse_count], keys[sparse_count:], ()), others[first_default:])

    return run


def parse_example_v2(b: Bind) -> Run:
    read = reader(b)

    def run(serialized: Any, _names: Any, sparse_keys: Any, dense_keys: Any, ragged_keys: Any, *defaults: Any) -> Any:
        return read(serialized, (sparse_keys, dense_keys, ragged_keys), defaults)

    return run


def parse_single_example(b: Bind) -> Run:
    read = reader(b)
    keys = ([encode(key) for key in b.attrs["sparse_keys"]], [encode(key) for key in b.attrs["dense_keys"]], ())
    return lambda serialized, *defaults: read(serialized, keys, defaults)


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "ParseExample": parse_example, "ParseExampleV2": parse_example_v2, "ParseSingleExample": parse_single_example,
    }.items():
        kernels.kernel(op, allocates=True)(bind)
