"""TFRecord files as rows: whole records, and the features of tf.Example messages.

A record is its length, a checksum of the length, its bytes and their checksum (tensorflow/core/lib/io/record_writer.h).
A file may be packed by gzip or ZLIB. The checksums are compared: a damaged record ends the file with an error, since no
later record can be found.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from heald.api import install_hint, wire
from heald.errors import DataLoss, HealdError, Unimplemented

from .arrays import VALUE
from .options import ReadOptions
from .row_batch import Fault, RowBatch
from .text_files import BoundedStream, open_bytes

LARGEST_RECORD = 1 << 30  # bytes
_HEAD = struct.Struct("<QI")
_TAIL = struct.Struct("<I")
_ZLIB_HEADS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_FEATURE_LISTS = {1: "bytes", 2: "float", 3: "int64"}


def read_records(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    """Yield the records of a file. The column `value` has them whole; the features of tf.Example are columns, too.

    A file whose first record is no tf.Example has whole records alone. Raises DataLoss for a damaged file.
    """
    with open_bytes(path) as file:
        numbered = enumerate(_records(_unpacked(file, path), path), 1)
        has_features: bool | None = None
        while part := list(islice(numbered, options.size)):
            if has_features is None:
                has_features = _is_example(part[0][1])
            rows, faults = _rows(path, part, has_features)
            names = dict.fromkeys(name for _, _, features in rows for name in features)
            columns: dict[str, Any] = {VALUE: [record for _, record, _ in rows]}
            columns |= {name: [features.get(name) for _, _, features in rows] for name in names}
            index: dict[str, list[Any]] = {"file": [str(path)] * len(rows), "row": [number for number, _, _ in rows]}
            yield RowBatch(index, columns, faults)


def _rows(path: Path, records: list[tuple[int, bytes]], has_features: bool,
          ) -> tuple[list[tuple[int, bytes, dict[str, Any]]], list[Fault]]:
    """The rows with their numbers and features, and the records that have none."""
    rows: list[tuple[int, bytes, dict[str, Any]]] = []
    faults: list[Fault] = []
    for number, record in records:
        try:
            rows.append((number, record, features_of(record) if has_features else {}))
        except HealdError as error:
            faults.append(Fault(f"{path}:{number}", f"no tf.Example: {error.message}", len(rows)))
    return rows, faults


def _is_example(record: bytes) -> bool:
    try:
        return bool(features_of(record))
    except HealdError:
        return False


def features_of(record: bytes) -> dict[str, Any]:
    """The features of a tf.Example: the only value of each, or the list of its values. Raises DataLoss."""
    features: dict[str, Any] = {}
    for number, kind, start, stop in wire.fields(record, 0, len(record)):
        if number != 1:
            raise DataLoss(f"field {number} is none of tf.Example")
        wire.expect(kind, wire.BYTES, start, "the features")
        for entry_number, entry_kind, first, last in wire.fields(record, start, stop):
            if entry_number == 1:
                wire.expect(entry_kind, wire.BYTES, first, "a feature")
                name, values = _feature(record, first, last)
                if values is not None:
                    features[name] = values[0] if len(values) == 1 else values
    return features


def _feature(record: bytes, start: int, stop: int) -> tuple[str, list[Any] | None]:
    spans = {number: (first, last) for number, _, first, last in wire.fields(record, start, stop)}
    name = wire.text(record, *spans.get(1, (0, 0)))
    for number, kind, first, last in wire.fields(record, *spans.get(2, (0, 0))):
        if number in _FEATURE_LISTS:
            wire.expect(kind, wire.BYTES, first, f"the {_FEATURE_LISTS[number]} list of feature '{name}'")
            return name, _values(record, number, first, last)
    return name, None


def _values(record: bytes, kind: int, start: int, stop: int) -> list[Any]:
    values: list[Any] = []
    for number, wire_type, first, last in wire.fields(record, start, stop):
        if number == 1 and kind == 1:
            values.append(record[first:last])
        elif number == 1:
            read = wire.floats if kind == 2 else wire.integers
            values += read(record, wire_type, first, last, "a feature")
    return values


def _unpacked(file: BinaryIO, path: Path) -> BinaryIO:
    """The records' bytes. A head of ZLIB is no length of a record: the record would have 2^13 bytes and a fitting
    checksum."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)  # type: ignore[type-var]
    start = buffered.peek(_HEAD.size)[:_HEAD.size]
    if start[:2] in _ZLIB_HEADS and not (len(start) == _HEAD.size and _head_fits(start)):
        return io.BufferedReader(BoundedStream(io.BufferedReader(_Inflated(buffered, path)), path))
    return buffered


class _Inflated(io.RawIOBase):
    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self._packed = packed
        self._path = path
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            while True:
                data = self._inflate.unconsumed_tail or self._packed.read(1 << 16)
                unpacked = self._inflate.decompress(data, len(buffer))
                if unpacked or not data:
                    break
        except zlib.error as error:
            raise DataLoss(f"'{self._path}' is damaged: {error}") from error
        buffer[: len(unpacked)] = unpacked
        return len(unpacked)


def _head_fits(head: bytes) -> bool:
    _, checksum = _HEAD.unpack(head)
    return masked_crc32c(head[:8]) == int(checksum)


def _records(file: BinaryIO, path: Path) -> Iterator[bytes]:
    number = 1
    while head := file.read(_HEAD.size):
        if len(head) < _HEAD.size:
            raise DataLoss(f"'{path}' is cut off in the head of record {number}")
        length, _ = _HEAD.unpack(head)
        if not _head_fits(head):
            raise DataLoss(f"'{path}': the length of record {number} is damaged" if number > 1 else
                           f"'{path}' is no TFRecord file: its first checksum does not fit")
        if length > LARGEST_RECORD:
            raise DataLoss(f"'{path}': record {number} has {length:,} bytes, more than {LARGEST_RECORD:,}")
        body = file.read(length + _TAIL.size)
        if len(body) < length + _TAIL.size:
            raise DataLoss(f"'{path}' is cut off in record {number}")
        if masked_crc32c(body[:length]) != _TAIL.unpack_from(body, length)[0]:
            raise DataLoss(f"'{path}': record {number} is damaged, its checksum does not fit")
        yield body[:length]
        number += 1


def masked_crc32c(data: bytes) -> int:
    """The checksum of records: CRC-32C, masked so that it is no CRC of data that contains it."""
    try:
        import google_crc32c
    except ImportError:
        raise Unimplemented("reading TFRecord files needs google-crc32c", hint=install_hint("google-crc32c")) from None
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
