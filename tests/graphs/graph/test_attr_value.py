"""Attributes: one table read in both directions against protobuf, tensors by every rule, and refused values."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf import text_format
from heald.errors import DataLoss, HealdError, InvalidArgument, Unimplemented
from heald.graphs.graph.attr_value import (
    UNSET,
    AttrPlaceholder,
    Func,
    ShapeAttr,
    as_shape,
    canonical,
    put_value,
    read_value,
)
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values import dtypes, wire
from heald.runtime.values.tensor_proto import TensorValue
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=60)


def message(text: str, kind: str = "AttrValue") -> bytes:
    return text_format.Parse(text, message_class(kind)()).SerializeToString(deterministic=True)


def tensor(text: str) -> TensorValue:
    raw = message(text, "TensorProto")
    return TensorValue.read(raw, 0, len(raw))


VALUES: list[tuple[str, Any]] = [
    ("", UNSET),
    ('s: "NHWC"', b"NHWC"), (r's: "\000\377"', b"\x00\xff"), ('s: ""', b""),
    ("i: 0", 0), ("i: -1", -1), ("i: 9223372036854775807", 2**63 - 1), ("i: -9223372036854775808", -(2**63)),
    ("f: 0.5", 0.5), ("f: inf", float("inf")), ("f: -0.0", -0.0), ("f: 0.1", float(np.float32(0.1))),
    ("b: true", True), ("b: false", False),
    ("type: DT_FLOAT", dtypes.float32), ("type: DT_FLOAT4_E2M1FN", dtypes.named("float4_e2m1fn")),
    ("shape { dim { size: 2 } dim { size: -1 } dim { size: 0 } }", ShapeAttr((2, None, 0))),
    ("shape { }", ShapeAttr(())), ("shape { unknown_rank: true }", None),
    ('func { name: "f" attr { key: "T" value { type: DT_INT32 } } }', Func("f", {"T": dtypes.int32})),
    ('placeholder: "N"', AttrPlaceholder("N")),
    ("list { }", ()),
    ('list { s: "a" s: "" }', (b"a", b"")), ("list { i: 1 i: -2 i: 300 }", (1, -2, 300)),
    ("list { f: 1 f: 0.25 }", (1.0, 0.25)), ("list { b: true b: false }", (True, False)),
    ("list { type: DT_INT64 type: DT_BOOL }", (dtypes.int64, dtypes.bool_)),
    ("list { shape { dim { size: 3 } } shape { unknown_rank: true } shape { } }",
     (ShapeAttr((3,)), None, ShapeAttr(()))),
    ('list { func { name: "f" } func { name: "g" } }', (Func("f"), Func("g"))),
    ("list { tensor { dtype: DT_INT32 tensor_shape { } int_val: 7 } }",
     (tensor("dtype: DT_INT32 int_val: 7 tensor_shape {}"),)),
    ("tensor { dtype: DT_INT32 tensor_shape { } int_val: 7 }", tensor("dtype: DT_INT32 int_val: 7 tensor_shape {}")),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text[:40] for text, _ in VALUES])
def test_reading_and_writing_agree_with_protobuf(text: str, value: Any) -> None:
    read = read_value(message(text))
    assert read == value
    assert type(read) is type(value)
    assert put_value(canonical(value)) == message(text)


CANONICAL: list[tuple[Any, Any]] = [
    ("text", b"text"), (bytearray(b"x"), b"x"), (np.int32(3), 3), (np.float64(0.1), float(np.float32(0.1))),
    (np.bool_(True), True), (0.1, float(np.float32(0.1))), ([1, 2], (1, 2)), ((1, 2.5), (1.0, 2.5)), ([], ()),
    ([(1, None), None, [2, -1]], (ShapeAttr((1, None)), None, ShapeAttr((2, None)))),
    (as_shape([1, -1]), ShapeAttr((1, None))), (as_shape(None), None), (["a", b"b"], (b"a", b"b")),
]


@pytest.mark.parametrize(("spelling", "value"), CANONICAL, ids=[repr(g)[:40] for g, _ in CANONICAL])
def test_a_spelling_of_a_value_becomes_the_value_that_reading_gives(spelling: Any, value: Any) -> None:
    canonical_value = canonical(spelling)
    assert canonical_value == value
    assert type(canonical_value) is type(value)
    assert read_value(put_value(canonical_value)) == value


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 1e300, object(), {}, [1, "a"], [True, 1], [[[1]]], "\ud800"])
def test_a_value_that_no_attribute_can_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgument):
        canonical(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("type: 999", "999 is not the number of a data type"),
        ("type: 0", "0 is not the number"),
        ("list { type: 999 }", "999"),
        ("list { i: 1 f: 2 }", "a list has items of int and of float"),
        ("shape { dim { size: -2 } }", "-2 is not the size"),
        ("shape { dim { size: 4294967296 } dim { size: 4294967296 } }", "overflows"),
        ("shape { unknown_rank: true dim { size: 1 } }", "unknown rank lists 1"),
        (f"shape {{ {'dim { size: 1 } ' * 255} }}", "255 dimensions"),
        ('func { name: "f" attr { key: "T" value { type: 999 } } }', "attribute 'T': 999"),
    ],
)
def test_values_that_cannot_be_are_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        read_value(message(text))


def test_a_reference_type_reads_as_its_value_type() -> None:
    assert read_value(message("type: DT_FLOAT_REF")) is dtypes.float32


def test_numbers_are_read_packed_and_single() -> None:
    single = wire.put_bytes(1, wire.put_integer(3, 5) + wire.put_integer(3, -6))
    assert read_value(single) == (5, -6)
    assert read_value(wire.put_bytes(1, wire.put_float(4, 0.5))) == (0.5,)


def test_the_last_of_several_values_counts_and_messages_merge() -> None:
    assert read_value(message("i: 3") + message("b: true")) is True
    assert read_value(message("list { i: 3 }") + message("list { i: 4 }")) == (3, 4)


def nested_function_value(levels: int) -> bytes:
    value = message("i: 1")
    for _ in range(levels):
        entry = wire.put_bytes(1, "g") + wire.put_bytes(2, value)
        value = wire.put_bytes(10, wire.put_bytes(1, "f") + wire.put_bytes(2, entry))
    return value


def test_functions_nest_as_deep_as_protobuf_goes() -> None:
    value = read_value(nested_function_value(30))
    assert put_value(canonical(value)) == nested_function_value(30)
    for levels in (34, 1000):
        with pytest.raises(InvalidArgument, match="nesting"):
            read_value(nested_function_value(levels))


ELEMENTS: list[tuple[str, Any]] = [
    ("dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [1, 2]", np.float32([1, 2, 2])),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 2 } }", np.float32([0, 0])),
    ("dtype: DT_DOUBLE tensor_shape { } double_val: 0.1", np.float64(0.1)),
    ("dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: [-1, 70000]", np.int32([-1, 70000])),
    ("dtype: DT_INT8 tensor_shape { dim { size: 1 } } int_val: -128", np.int8([-128])),
    ("dtype: DT_UINT8 tensor_shape { dim { size: 1 } } int_val: 255", np.uint8([255])),
    ("dtype: DT_UINT16 tensor_shape { dim { size: 1 } } int_val: 65535", np.uint16([65535])),
    ("dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: [-9223372036854775808, 5]", np.int64([-(2**63), 5])),
    ("dtype: DT_UINT32 tensor_shape { } uint32_val: 4294967295", np.uint32(2**32 - 1)),
    ("dtype: DT_UINT64 tensor_shape { } uint64_val: 18446744073709551615", np.uint64(2**64 - 1)),
    ("dtype: DT_BOOL tensor_shape { dim { size: 3 } } bool_val: [true, false]", np.array([True, False, False])),
    ("dtype: DT_HALF tensor_shape { } half_val: 15360", np.float16(1.0)),
    ("dtype: DT_BFLOAT16 tensor_shape { } half_val: 16256", np.array(1.0, ml_dtypes.bfloat16)),
    (r'dtype: DT_FLOAT8_E5M2 tensor_shape { } float8_val: "\074"', np.array(1.0, ml_dtypes.float8_e5m2)),
    ("dtype: DT_INT4 tensor_shape { dim { size: 2 } } int_val: [-8, 7]", np.array([-8, 7], ml_dtypes.int4)),
    ("dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } } scomplex_val: [1, -2]", np.complex64([1 - 2j, 1 - 2j])),
    ("dtype: DT_COMPLEX128 tensor_shape { } dcomplex_val: [1, -2]", np.complex128(1 - 2j)),
    ('dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: ["a", "b"]', np.array([b"a", b"b", b"b"], object)),
    ("dtype: DT_STRING tensor_shape { dim { size: 1 } }", np.array([b""], object)),
    (r'dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: "\001\002abc"',
     np.array([b"a", b"bc"], object)),
    (r'dtype: DT_INT16 tensor_shape { dim { size: 2 } } tensor_content: "\001\000\377\377"', np.int16([1, -1])),
    (r'dtype: DT_BOOL tensor_shape { dim { size: 2 } } tensor_content: "\002\000"', np.array([True, False])),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 0 } dim { size: 3 } }", np.zeros((0, 3), np.float32)),
]


@pytest.mark.parametrize(("text", "expected"), ELEMENTS, ids=[text[7:40] for text, _ in ELEMENTS])
def test_elements_follow_tensorflows_rules(text: str, expected: Any) -> None:
    expected = np.asarray(expected)
    value = tensor(text)
    array = value.array()
    assert (array.dtype, array.shape, value.shape) == (expected.dtype, expected.shape, expected.shape)
    assert array.tolist() == expected.tolist()
    assert not array.flags.writeable
    again = TensorValue(array)
    assert again.dtype is value.dtype
    assert TensorValue.read(again.raw, 0, len(again.raw)).array().tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dtype: DT_FLOAT tensor_shape { dim { size: 1152921504606846976 } }", "larger than any memory"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: 1152921504606846976 } } float_val: 1", "larger than any memory"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: -5 } }", "-5 is not the size"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", "must be known"),
        ("dtype: DT_FLOAT tensor_shape { unknown_rank: true }", "must be known"),
        ("dtype: DT_INT8 tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }", "overflows"),
        (f"dtype: DT_FLOAT tensor_shape {{ {'dim { size: 1 } ' * 300} }}", "300 dimensions"),
        ('dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: "abcdefg"', "7 bytes, .* needs 8"),
        ('dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: "\\001\\002ab"', "strings take 5"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: [1, 2]", "too many values: 2"),
        ("dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: [1, 200]", "too many values: 2"),
        ("dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } } scomplex_val: [1, 2, 3]", "expected a multiple of 8"),
        ("dtype: 999 tensor_shape { }", "999"),
    ],
)
def test_tensors_that_cannot_be_take_no_memory(text: str, says: str) -> None:
    raw = message(text, "TensorProto")
    tracemalloc.start()
    with pytest.raises(InvalidArgument, match=says):
        TensorValue.read(raw, 0, len(raw))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_malformed_varint_among_the_elements_is_data_loss() -> None:
    head = message("dtype: DT_INT32 tensor_shape { dim { size: 4 } }", "TensorProto")
    for packed in (b"\x80", b"\x01\xff", b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"):
        raw = head + wire.put_bytes(7, packed)
        with pytest.raises(DataLoss, match="malformed"):
            TensorValue.read(raw, 0, len(raw))


def test_one_value_for_a_thousand_million_elements_stays_one_value() -> None:
    value = tensor("dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } } float_val: 2.5")
    array = value.array()
    assert value.nbytes == 4 * 10**9
    assert array.strides == (0,)
    assert array[123456789] == 2.5


@pytest.mark.parametrize(("size", "is_view"), [(1000, False), (100_000, True)])
def test_large_content_is_a_view_of_the_bytes_it_was_read_from(size: int, is_view: bool) -> None:
    raw = TensorValue(np.arange(size, dtype=np.float32)).raw
    array = TensorValue.read(memoryview(raw), 0, len(raw)).array()
    assert np.shares_memory(array, np.frombuffer(raw, np.uint8)) == is_view


def test_a_tensor_does_not_change_with_the_array_it_was_made_of() -> None:
    array = np.arange(3)
    value = TensorValue(array)
    array[0] = 7
    assert value.array().tolist() == [0, 1, 2]


def test_types_without_host_arrays_keep_their_bytes() -> None:
    value = tensor("dtype: DT_QINT8 tensor_shape { dim { size: 2 } } int_val: 3")
    assert (value.dtype.name, value.shape) == ("qint8", (2,))
    with pytest.raises(Unimplemented):
        tensor('dtype: DT_VARIANT tensor_shape { } variant_val { type_name: "x" }').array()
    with pytest.raises(Unimplemented, match="64 dimensions"):
        tensor(f"dtype: DT_FLOAT tensor_shape {{ {'dim { size: 1 } ' * 100} }}").array()


NUMBERS = {
    "float_val": ("DT_FLOAT", st.floats(width=32), "<f4"), "double_val": ("DT_DOUBLE", st.floats(), "<f8"),
    "int_val": ("DT_INT32", st.integers(-(2**31), 2**31 - 1), "<i4"),
    "int64_val": ("DT_INT64", st.integers(-(2**63), 2**63 - 1), "<i8"),
    "uint64_val": ("DT_UINT64", st.integers(0, 2**64 - 1), "<u8"),
}


@QUICK
@given(st.data())
def test_any_list_of_elements_fills_the_tensor(data: st.DataObject) -> None:
    field, (dtype, numbers, code) = data.draw(st.sampled_from(sorted(NUMBERS.items())), label="field")
    values = data.draw(st.lists(numbers, min_size=1, max_size=20), label="values")
    size = data.draw(st.integers(len(values), 30), label="size")
    proto: Any = message_class("TensorProto")()
    proto.dtype = proto.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_name[dtype].number
    proto.tensor_shape.dim.add().size = size
    getattr(proto, field).extend(values)
    raw = proto.SerializeToString()
    expected = np.array(values, code)
    expected = np.concatenate([expected, np.repeat(expected[-1:], size - len(values))])
    assert TensorValue.read(raw, 0, len(raw)).array().tobytes() == expected.tobytes()


@QUICK
@given(st.binary(max_size=80))
def test_any_bytes_are_a_value_or_a_typed_error(raw: bytes) -> None:
    try:
        value = read_value(raw)
    except HealdError:
        return
    assert read_value(put_value(canonical(value))) == value or has_nan(value)


def has_nan(value: Any) -> bool:
    return any(v != v for v in (value if isinstance(value, tuple) else (value,)))


def test_floats_keep_their_bits() -> None:
    for bits in (0x7FC00000, 0xFF800000, 0x00000001, 0x80000000):
        raw = wire.put_varint(4 << 3 | wire.FIXED32) + struct.pack("<I", bits)
        assert put_value(read_value(raw)) == raw


@pytest.mark.parametrize("array", [np.float32([[1, 2], [3, 4]]), np.int32(7), np.array([b"a", b"bc"], object),
                                   np.zeros((0, 3), ml_dtypes.bfloat16)])
def test_numpy_takes_the_elements_of_a_value(array: Any) -> None:
    value = TensorValue(np.asarray(array))
    taken = np.asarray(value)
    assert (taken.dtype, taken.shape, taken.tolist()) == (value.array().dtype, array.shape, array.tolist())
    assert np.array(value).flags.writeable
    if taken.dtype.kind == "f":
        assert np.asarray(value, "f8").dtype == np.float64
