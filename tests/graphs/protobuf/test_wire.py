"""The wire format: written fields are read back, and malformed bytes are a DataLoss that names its offset."""

from __future__ import annotations

import pytest
from heald.errors import DataLoss, InvalidArgument
from heald.runtime.values import wire
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=100)

VARINTS = [
    (0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (2**32, b"\x80" * 4 + b"\x10"),
    (2**64 - 1, b"\xff" * 9 + b"\x01"),
]

MALFORMED = [
    (b"\x0a", "byte 1"),  # a tag without a length
    (b"\x0a\x05ab", "field at byte 0"),  # fewer bytes than said
    (b"\x0a\x80", "varint at byte 1"),  # a length without an end
    (b"\x0a" + b"\xff" * 9 + b"\x01", "field at byte 0"),  # a length of 2**64 - 1
    (b"\x08\x01\x08" + b"\xff" * 10 + b"\x01", "varint at byte 3 is longer"),
    (b"\x08" + b"\xff" * 9 + b"\x02", "longer than 64 bits"),
    (b"\x0d\x00\x00", "field at byte 0"),  # 32 bits cut
    (b"\x09\x00\x00", "field at byte 0"),  # 64 bits cut
    (b"\x00\x00", "0 is not a field number"),
    (b"\x0b", "a group"), (b"\x0c", "a group"), (b"\x0e", "6 is not a wire type"), (b"\x0f", "7 is not a wire type"),
    (b"\x80\x80\x80\x80\x80\x01\x00", "not a field number"),
]


@pytest.mark.parametrize(("value", "raw"), VARINTS)
def test_varints_are_written_and_read(value: int, raw: bytes) -> None:
    assert wire.put_varint(value) == raw
    assert wire.varint(raw + b"\x7f", 0, len(raw)) == (value, len(raw))


def test_a_varint_longer_than_needed_is_read() -> None:
    assert wire.varint(b"\x81\x80\x00", 0, 3) == (1, 3)


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_signed_values_survive(value: int) -> None:
    raw = wire.put_varint(value)
    assert wire.integer(raw, 0, len(raw)) == value


@pytest.mark.parametrize(("raw", "says"), MALFORMED)
def test_malformed_bytes_are_data_loss_that_names_the_byte(raw: bytes, says: str) -> None:
    with pytest.raises(DataLoss, match=says):
        list(wire.fields(raw, 0, len(raw)))


def test_offsets_count_from_the_start_of_the_buffer() -> None:
    with pytest.raises(DataLoss, match="field at byte 7"):
        list(wire.fields(memoryview(b"1234567\x0a\x05ab"), 7, 11))


def test_a_message_does_not_read_past_its_end() -> None:
    with pytest.raises(DataLoss, match="truncated"):
        list(wire.fields(b"\x0a\x02ab", 0, 3))
    with pytest.raises(DataLoss, match="truncated"):
        list(wire.fields(b"\x0a\x02ab", 0, 1))


def test_bad_text_names_the_byte() -> None:
    with pytest.raises(DataLoss, match="byte 2"):
        wire.text(b"ab\xff", 0, 3)
    with pytest.raises(InvalidArgument, match="UTF-8"):
        wire.put_bytes(1, "\ud800")


FIELDS = st.lists(
    st.tuples(st.integers(1, 40), st.one_of(st.binary(max_size=200), st.integers(0, 2**64 - 1))), max_size=12
)


def write(fields: list[tuple[int, bytes | int]]) -> bytes:
    return b"".join(wire.put_integer(n, v) if isinstance(v, int) else wire.put_bytes(n, v) for n, v in fields)


@QUICK
@given(FIELDS)
def test_fields_are_found_where_they_were_written(fields: list[tuple[int, bytes | int]]) -> None:
    raw = write(fields)
    read_fields = [
        (n, wire.varint(raw, at, end)[0] if kind == wire.VARINT else raw[at:end])
        for n, kind, at, end in wire.fields(raw, 0, len(raw))
    ]
    assert read_fields == fields


@QUICK
@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_data_loss(raw: bytes) -> None:
    try:
        last = [end for *_, end in wire.fields(raw, 0, len(raw))]
    except DataLoss:
        return
    assert last[-1:] in ([], [len(raw)])


@QUICK
@given(FIELDS, st.integers(1, 40), st.binary(max_size=5))
def test_splice_touches_one_field_only(fields: list[tuple[int, bytes | int]], number: int, value: bytes) -> None:
    raw = wire.splice(write(fields), {(number, ""): wire.put_bytes(number, value)})
    other_fields = [(n, v) for n, v in fields if n != number]
    values = [raw[at:end] for n, _, at, end in wire.fields(raw, 0, len(raw)) if n == number]
    assert values == [value]
    assert wire.splice(raw, {(number, ""): b""}) == write(other_fields)


def test_splice_puts_new_fields_in_order_of_their_numbers() -> None:
    new = {(2, ""): wire.put_bytes(2, "b"), (9, ""): wire.put_bytes(9, "z")}
    base = wire.put_bytes(1, "a") + wire.put_bytes(3, "c")
    assert wire.splice(base, new) == b"".join(wire.put_bytes(n, t) for n, t in ((1, "a"), (2, "b"), (3, "c"), (9, "z")))


def test_splice_replaces_single_entries_of_maps() -> None:
    def entry(key: str, value: str) -> bytes:
        return wire.put_bytes(5, wire.put_bytes(1, key) + wire.put_bytes(2, value))

    base = entry("b", "1") + entry("a", "2") + entry("c", "3")
    new = {(5, "a"): entry("a", "new"), (5, "c"): b"", (5, "d"): entry("d", "4")}
    assert wire.splice(base, new, maps=(5,)) == entry("b", "1") + entry("a", "new") + entry("d", "4")
