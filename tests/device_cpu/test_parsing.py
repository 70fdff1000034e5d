"""Records: numbers, CSV, serialized tensors and examples, and transcoded text."""

from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from builders.string_arrays import array, scalar
from harness.run_op import run_op
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.values import dtypes, wire
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
F32, F64, I32, I64, STRING = dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string


def number(text, dtype):
    return run_op("StringToNumber", [array([text])], {"out_type": dtype})[0].item()


# Numbers


@fast
@given(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))
def test_numbers_come_back(x, i):
    assert number(repr(x).encode(), F64) == x
    assert number(b" %d " % i, I64) == i


@pytest.mark.parametrize(("text", "want"), [
    (b"0x1F", 31), (b"-0x1.8p3", -12), (b"+inf", np.inf), (b"1e400", np.inf), (b"-0x1p9999", -np.inf), (b"\t.5\n", 0.5),
])
def test_floats_are_written_as_in_c(text, want):
    assert number(text, F64) == number(text, F32) == want


def test_a_float32_is_rounded_once():
    half_way = b"1.000000059604644775390625"
    assert number(half_way, F32) == 1
    assert number(half_way + b"0" * 5000 + b"1", F32) == np.nextafter(np.float32(1), np.float32(2))


@fast
@np.errstate(over="ignore")  # the number behind the largest one is infinity
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-3, 3), st.integers(1, 3))
def test_numbers_near_the_middle_of_two_float32_are_rounded_once(x, ulps, digits):
    """The decimal fractions of a float64 are exact: digits behind them make the number larger than the float64."""
    following = np.nextafter(np.float32(x), np.float32(np.inf))
    middle = Fraction(x) + (Fraction(float(following)) - Fraction(x)) / 2 if np.isfinite(following) else Fraction(x)
    near = float(middle)
    for _ in range(abs(ulps)):
        near = np.nextafter(near, np.inf if ulps > 0 else -np.inf)
    exact = Decimal(float(near))
    got = number(f"{exact:f}".encode(), F32)
    distance = abs(Fraction(got) - Fraction(float(near))) if np.isfinite(got) else None
    if distance is not None and exact:
        for other in (np.nextafter(np.float32(got), np.float32(side)) for side in (-np.inf, np.inf)):
            assert not np.isfinite(other) or distance <= abs(Fraction(float(other)) - Fraction(float(near)))
    if got > 0 and np.float64(near) == middle:
        more = f"{exact:f}" + ("" if "." in f"{exact:f}" else ".") + "0" * digits + "1"
        assert number(more.encode(), F32) == following


def test_numbers_of_many_texts_are_those_of_each():
    texts = [b"1", b" -2.5", b"1e-45", b"0x1p-149", b"7e-46", b"1.000000059604644775390625", b"nan(x)", b"inf", b"-0"]
    for dtype in (F32, F64):
        alone = [number(text, dtype) for text in texts]
        together = run_op("StringToNumber", [array(texts)], {"out_type": dtype})[0].tolist()
        assert list(map(repr, together)) == list(map(repr, alone))


@pytest.mark.parametrize(("text", "dtype"), [
    (b"", F32), (b"1_0", F64), (b"1_0", I32), (b"0x", F32), (b"1 2", F32), (b"5\x00", I64), (b"0x1F", I32),
    (b"1.0", I32), (b"-0", dtypes.uint32), (b"2147483648", I32), (b"18446744073709551616", dtypes.uint64),
])
def test_a_text_that_is_no_number_of_the_type_is_refused(text, dtype):
    with pytest.raises(InvalidArgument):
        number(text, dtype)


# CSV


def csv(records, *defaults, **attrs):
    types = tuple(dtypes.of_numpy(d.dtype) for d in defaults)
    return [x.tolist() for x in run_op("DecodeCSV", [array(records), *defaults], {"OUT_TYPE": types} | attrs)]


ONE, TEXT = np.int32([1]), array([b"z"])


@fast
@given(st.lists(st.tuples(*[st.binary(min_size=1, max_size=5)] * 2), max_size=4))
def test_quoted_fields_hold_any_bytes(rows):
    records = [b",".join(b'"' + f.replace(b'"', b'""') + b'"' for f in row) for row in rows]
    if not any(b'",' in f.replace(b'"', b'""') for row in rows for f in row):
        assert csv(records, TEXT, TEXT) == [[a for a, _ in rows], [b for _, b in rows]]


def test_an_empty_field_has_its_default_if_there_is_one():
    assert csv([b",", b'NA,""'], ONE, TEXT, na_value="NA") == [[1, 1], [b"z", b"z"]]
    with pytest.raises(InvalidArgument, match="Field 1 is required but missing in record 0"):
        csv([b"1,"], ONE, TEXT[:0])


def test_only_the_columns_that_are_chosen_are_read():
    assert csv([b'1,2,3"'], ONE, select_cols=(1,)) == [[2]]
    for columns in ((1, 0), (-1, 0), (0,)):
        with pytest.raises(InvalidArgument):
            csv([b"1,2"], ONE, ONE, select_cols=columns)


@pytest.mark.parametrize(("record", "reason"), [
    (b"1", "Expect 2 fields but have 1"), (b"", "have 0"), (b"1,a,", "have 3"), (b"x,a", "not a valid int32"),
    (b'1,a"b', "Unquoted"), (b"1,a\n", "Unquoted"), (b'1,"a', "has to end"), (b'1,"a"b', "escaped"),
])
def test_malformed_records_are_refused(record, reason):
    with pytest.raises(InvalidArgument, match=reason):
        csv([record], ONE, TEXT)


def test_quotes_are_bytes_like_others_where_they_delimit_nothing():
    assert csv([b'1;"a'], ONE, TEXT, use_quote_delim=False, field_delim=";") == [[1], [b'"a']]


# Tensors


@fast
@given(hnp.arrays(st.sampled_from([np.float32, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16]),
                  hnp.array_shapes(min_dims=0, min_side=0), elements=st.just(1)) | st.just(np.empty((0, 2), object)))
def test_serialized_tensors_come_back(x):
    dtype = dtypes.of_numpy(x.dtype)
    (data,) = run_op("SerializeTensor", [x], {"T": dtype})
    (back,) = run_op("ParseTensor", [data], {"out_type": dtype})
    assert (back.dtype, back.shape, back.tolist()) == (x.dtype, x.shape, x.tolist())
    assert back.flags.writeable


@pytest.mark.parametrize("data", [b"abc", b"", b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x01a", b"\x08\x03\x12\x00"])
def test_bytes_that_are_no_tensor_of_the_type_are_refused(data):
    with pytest.raises(InvalidArgument):
        run_op("ParseTensor", [scalar(data)], {"out_type": F32})


# Examples

KIND = {bytes: 1, float: 2, int: 3}


def feature(values):
    """The Feature message of a list; None: of no kind."""
    if values is None:
        return b""
    kind = KIND[type(values[0])] if values else 3
    encode = {1: wire.put_bytes, 2: wire.put_float, 3: wire.put_integer}[kind]
    return wire.put_bytes(kind, b"".join(encode(1, v) for v in values))


def example(**features):
    entries = (wire.put_bytes(1, name) + wire.put_bytes(2, feature(values)) for name, values in features.items())
    return wire.put_bytes(1, b"".join(wire.put_bytes(1, entry) for entry in entries))


def parse(serialized, sparse=(), dense=(), ragged=(), names=()):
    """`sparse`: (key, type); `dense`: (key, shape, default); `ragged`: (key, type)."""
    keys = [array([entry[0] for entry in part]) for part in (sparse, dense, ragged)]
    defaults = [np.asarray(default) for _, _, default in dense]
    attrs = {
        "num_sparse": len(sparse), "sparse_types": tuple(t for _, t in sparse),
        "Tdense": tuple(dtypes.of_numpy(d.dtype) for d in defaults), "dense_shapes": tuple(s for _, s, _ in dense),
        "ragged_value_types": tuple(t for _, t in ragged), "ragged_split_types": (I32,) * len(ragged),
    }
    serialized_tensor = array(serialized) if isinstance(serialized, list) else scalar(serialized)
    inputs = [serialized_tensor, array(list(names)), *keys, *defaults]
    return [x.tolist() for x in run_op("ParseExampleV2", inputs, attrs)]


TWO = [example(a=[1.0, 2.0], s=[b"x"]), example(a=[3.0], s=[b"p", b"q"])]


def test_a_feature_becomes_a_sparse_or_a_ragged_tensor():
    assert parse(TWO, sparse=[(b"s", STRING)]) == [[[0, 0], [1, 0], [1, 1]], [b"x", b"p", b"q"], [2, 2]]
    assert parse(TWO, ragged=[(b"a", F32), (b"none", I64)]) == [[1, 2, 3], [], [0, 2, 3], [0, 0, 0]]
    assert parse(TWO[1], sparse=[(b"s", STRING)], ragged=[(b"a", F32)]) == [
        [[0], [1]], [b"p", b"q"], [2], [3], []]


def test_dense_features_of_variable_length_are_padded():
    assert parse(TWO, dense=[(b"a", (None,), np.float32(9))]) == [[[1, 2], [3, 9]]]
    assert parse(TWO[:1], dense=[(b"a", (None, 2), np.float32([9]))]) == [[[[1, 2]]]]
    assert parse(TWO[1], dense=[(b"a", (None,), np.float32(9))]) == [[3]]
    with pytest.raises(InvalidArgument, match="multiple of stride"):
        parse(TWO, dense=[(b"a", (None, 2), np.float32(9))])


def test_dense_features_have_a_default_or_are_required():
    data = [example(i=[5]), example(i=None), example(s=[b"x"], i=[1]) + example(i=[7])]
    assert parse(data, dense=[(b"i", (1,), np.array([4]))]) == [[[5], [4], [7]]]
    assert parse(data[1], dense=[(b"s", (), scalar(b"none"))]) == [b"none"]
    with pytest.raises(InvalidArgument, match="required"):
        parse(data, dense=[(b"i", (1,), np.empty(0, np.int64))])
    with pytest.raises(InvalidArgument, match="values != expected"):
        parse(TWO, dense=[(b"a", (2,), np.float32([0, 0]))])


@pytest.mark.parametrize("bad", [
    {"sparse": [(b"a", I64)]}, {"dense": [(b"a", (2, None), np.float32(0))]}, {"names": [b"one"]},
    {"dense": [(b"a", (2,), np.float32([0]))]}, {"dense": [(b"a", (None,), np.float32([0, 0]))]},
])
def test_types_shapes_and_defaults_must_fit(bad):
    with pytest.raises(InvalidArgument):
        parse(TWO, **bad)


@pytest.mark.parametrize("bad", [b"\n\x05ab", TWO[0][:-1], TWO[0] + b"\x00"])
def test_malformed_examples_are_refused(bad):
    with pytest.raises(InvalidArgument, match="Could not parse"):
        parse([bad], sparse=[(b"a", F32)])


def test_a_single_example_and_a_batch_are_read_alike():
    attrs = {"sparse_types": (STRING,), "Tdense": (F32,), "dense_shapes": ((None,),)}
    single = run_op("ParseSingleExample", [scalar(TWO[1]), np.float32(9)],
                    attrs | {"num_sparse": 1, "sparse_keys": ("s",), "dense_keys": ("a",)})
    assert [x.tolist() for x in single] == [[[0], [1]], [b"p", b"q"], [2], [3]]
    batch = run_op("ParseExample", [array(TWO), array([]), scalar(b"s"), scalar(b"a"), np.float32(9)],
                   attrs | {"Nsparse": 1, "Ndense": 1})
    assert [x.tolist() for x in batch] == [[[0, 0], [1, 0], [1, 1]], [b"x", b"p", b"q"], [2, 2], [[1, 2], [3, 9]]]


def test_a_batch_of_unknown_size_gives_rows_of_known_shape():
    attrs = {"num_sparse": 1, "sparse_types": (I64,), "Tdense": (F32,), "dense_shapes": ((2,),),
             "ragged_value_types": (I64,), "ragged_split_types": (I64,)}
    keys = [info(STRING, (1,))] * 3
    for batch, want in (((None,), [(None, 2), (None,), (2,), (None, 2), (None,), (None,)]),
                        ((3,), [(None, 2), (None,), (2,), (3, 2), (None,), (4,)]),
                        ((), [(None, 1), (None,), (1,), (2,), (None,), (0,)])):
        given_ = [info(STRING, batch), info(STRING, (0,)), *keys, info(F32, (2,))]
        assert [x.shape for x in RULES["ParseExampleV2"].function(attrs, *given_)] == want


# Text


def transcode(x, source="UTF-8", target="UTF-8", **attrs):
    return run_op("UnicodeTranscode", [scalar(x)], {"input_encoding": source, "output_encoding": target} | attrs)[0][()]


@fast
@given(st.text(), st.sampled_from(["UTF-16-BE", "UTF-32-BE"]))
def test_text_comes_back_from_every_encoding(x, encoding):
    there = transcode(x.encode(), target=encoding)
    assert there == x.encode(encoding.lower())
    assert transcode(there, source=encoding) == x.encode()


def test_malformed_text_is_replaced_left_out_or_refused():
    bad = b"a\xffb\x01"
    assert transcode(bad) == "a\ufffdb\x01".encode()
    assert transcode(bad, replacement_char=ord("?"), replace_control_characters=True) == b"a?b?"
    assert transcode(bad, errors="ignore", replace_control_characters=True) == b"ab"
    with pytest.raises(InvalidArgument, match="formatting"):
        transcode(bad, errors="strict")


def test_utf_16_without_a_mark_is_big_endian():
    assert transcode(b"\x00a", source="UTF-16") == transcode(b"\xff\xfea\x00", source="UTF-16") == b"a"


def test_encodings_that_are_not_known_are_refused():
    with pytest.raises(InvalidArgument, match="bogus"):
        transcode(b"a", source="bogus")
    with pytest.raises(Unimplemented):
        transcode(b"a", source="shift_jis")
    with pytest.raises(InvalidArgument, match="code point"):
        transcode(b"a", replacement_char=0x110000)
