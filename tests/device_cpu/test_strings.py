"""Ops on strings: differences from Python's functions, and laws. Golden cases have TensorFlow's results."""

import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from builders.string_arrays import array, scalar
from harness.run_op import run_op
from heald.errors import InvalidArgument, OutOfRange
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_cpu.kernels.hash_functions import farmhash64, murmur64a, siphash
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
texts = st.lists(st.binary(max_size=12), max_size=5)
counting = bytes(range(200))


def run(op, *inputs, **attrs):
    return run_op(op, list(inputs), attrs)[0]


def text(op, x, **attrs):
    return run(op, scalar(x), **attrs)[()]


# Letters, lengths, parts


def test_letter_case_is_that_of_ascii_unless_the_encoding_is_named():
    assert text("StringLower", "ÀB".encode()) == "Àb".encode()
    assert text("StringUpper", "àßb".encode(), encoding="utf-8") == "ÀSSB".encode()
    assert text("StringLower", "ΑΣ".encode(), encoding="utf-8") == "ας".encode()
    assert text("StringUpper", b"\xffa", encoding="utf-8") == "\ufffdA".encode()
    with pytest.raises(InvalidArgument, match="utf-8"):
        text("StringLower", b"a", encoding="latin1")


def test_a_character_is_what_does_not_continue_another():
    assert text("StringLength", "aé€😀".encode(), unit="UTF8_CHAR") == 4
    assert text("StringLength", b"\x80\x80", unit="UTF8_CHAR") == 0


@fast
@given(st.text(max_size=8), st.integers(-9, 9), st.integers(0, 9))
def test_a_substring_is_a_slice_that_starts_within_the_string(x, pos, length):
    inputs = scalar(x.encode()), np.int32(pos), np.int32(length)
    if not -len(x) <= pos <= len(x):
        with pytest.raises(InvalidArgument, match="out of range"):
            run("Substr", *inputs, T=dtypes.int32, unit="UTF8_CHAR")
        return
    start = pos % len(x) if pos < 0 else pos
    want = x[start : start + length].encode()
    assert run("Substr", *inputs, T=dtypes.int32, unit="UTF8_CHAR")[()] == want


def test_positions_and_strings_of_a_substring_broadcast():
    got = run("Substr", array([b"abc", b"defg"]), np.int32([[1], [0]]), np.int32([[1], [2]]), T=dtypes.int32)
    assert got.tolist() == [[b"b", b"e"], [b"ab", b"de"]]
    with pytest.raises(InvalidArgument, match="same shape"):
        run("Substr", array([b"abc"]), np.int32([1]), np.int32(1), T=dtypes.int32)


@fast
@given(texts, st.booleans())
def test_base64_comes_back(x, pad):
    encoded = run("EncodeBase64", array(x), pad=pad)
    assert not any(b"+" in e or b"/" in e or (b"=" in e and not pad) for e in encoded)
    assert run("DecodeBase64", encoded).tolist() == x


@pytest.mark.parametrize("bad", [b"S", b"SG=", b"SGk==", b"SGk=SGk=", b"+/+/", b"SG\n", b"===="])
def test_a_text_that_is_no_base64_is_refused(bad):
    with pytest.raises(InvalidArgument, match="base64"):
        text("DecodeBase64", bad)
    with pytest.raises(InvalidArgument, match="base64"):
        run("DecodeBase64", array([b"SGk", bad, b"SGk="]))


# Splitting and joining


def split(op, items, separator, **attrs):
    return run_op(op, [array(items), scalar(separator)], attrs)


@fast
@given(texts, st.binary(min_size=1, max_size=2))
def test_parts_joined_by_their_separator_are_the_string(x, separator):
    indices, values, shape = split("StringSplitV2", x, separator)
    rows = [[] for _ in x]
    for (row, column), value in zip(indices, values, strict=True):
        assert column == len(rows[row])
        rows[row].append(value)
    assert [separator.join(row) for row in rows] == x
    assert shape.tolist() == [len(x), max(map(len, rows), default=0)]


@pytest.mark.parametrize(("x", "separator", "max_splits", "want"), [
    (b" a  b ", b"", 0, [b" a  b "]), (b" a  b ", b"", 1, [b"a", b"b "]), (b"a ", b"", 1, [b"a", b""]),
    (b"a,b,c", b",", 1, [b"a", b"b,c"]), (b"", b"", -1, []), (b"", b",", -1, [b""]),
])
def test_a_limit_bounds_the_number_of_splits(x, separator, max_splits, want):
    assert split("StringSplitV2", [x], separator, maxsplit=max_splits)[1].tolist() == want


@pytest.mark.parametrize(("delimiters", "skip_empty", "want"), [
    (b",;", True, [b"a", b"b]"]), (b",;", False, [b"", b"a", b"", b"b]", b""]), (b"]-a", True, [b",", b",;b", b";"]),
    (b"", True, [b",", b"a", b",", b";", b"b", b"]", b";"]),
])
def test_each_byte_of_the_delimiter_splits(delimiters, skip_empty, want):
    assert split("StringSplit", [b",a,;b];"], delimiters, skip_empty=skip_empty)[1].tolist() == want
    assert split("StringSplit", [b""], delimiters, skip_empty=skip_empty)[1].tolist() == []


@fast
@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=6), st.integers(1, 4), st.integers(0, 3))
def test_ngrams_are_windows_over_the_padded_row(tokens, width, pad):
    attrs = {"separator": " ", "left_pad": "<", "right_pad": ">", "ngram_widths": (width,), "pad_width": pad,
             "preserve_short_sequences": False, "Tsplits": dtypes.int64}
    got, splits = run_op("StringNGrams", [array(tokens), np.array([0, len(tokens)])], attrs)
    pads = min(pad, width - 1)
    padded = [b"<"] * pads + tokens + [b">"] * pads
    want = [b" ".join(padded[i : i + width]) for i in range(len(padded) - width + 1)] if tokens else []
    assert got.tolist() == want
    assert splits.tolist() == [0, len(want)]


@pytest.mark.parametrize("splits", [[1, 4], [0, 3], [0, 5], [0, 3, 2, 4]])
def test_splits_ascend_from_nothing_to_all_of_the_data(splits):
    attrs = {"separator": "", "left_pad": "", "right_pad": "", "ngram_widths": (1,), "pad_width": 0,
             "preserve_short_sequences": False, "Tsplits": dtypes.int64}
    with pytest.raises(InvalidArgument, match="ascend"):
        run_op("StringNGrams", [array([b"a"] * 4), np.array(splits)], attrs)


def join(x, axes, **attrs):
    return run("ReduceJoin", x, np.array(axes, np.int32), **attrs).tolist()


def test_axes_are_joined_in_the_order_in_which_they_are_named():
    x = array([b"a", b"b", b"c", b"d"], (2, 2))
    assert join(x, [0, 1], separator="-") == b"a-c-b-d"
    assert join(x, [1, 0], separator="-", keep_dims=True) == [[b"a-b-c-d"]]
    assert join(x, []) == x.tolist()
    assert join(x[:0], [0]) == [b"", b""]
    with pytest.raises(InvalidArgument, match="Duplicate"):
        join(x, [0, -2])
    with pytest.raises(OutOfRange, match="Invalid reduction dimension 2"):
        join(x, [2])


def segments(x, ids, count):
    attrs = {"separator": "-", "Tindices": dtypes.int32}
    return run("UnsortedSegmentJoin", x, np.array(ids, np.int32), np.int32(count), **attrs).tolist()


def test_segments_are_joined_in_the_order_of_their_elements():
    x = array([b"a", b"b", b"c", b"d"], (2, 2))
    assert segments(x, [[1, 1], [0, 1]], 3) == [b"c", b"a-b-d", b""]
    assert segments(x, [1, 1], 2) == [[b"", b""], [b"a-c", b"b-d"]]
    assert segments(array([b"", b"a", b""]), [0, 0, 0], 1) == [b"a-"]
    for ids, count in (([0, 2], 2), ([0, -1], 2), ([0], 2), (0, 2), ([0, 0], -1)):
        with pytest.raises(InvalidArgument):
            segments(x, ids, count)


def test_strings_are_joined_element_by_element_and_scalars_repeated():
    x = array([b"a", b"b"])
    assert run("StringJoin", x, scalar(b"x"), x, N=3, separator="-").tolist() == [b"a-x-a", b"b-x-b"]
    assert run("StringJoin", N=0)[()] == b""
    with pytest.raises(InvalidArgument, match="do not match"):
        run("StringJoin", x, array([b"a"]), N=2)


# Numbers as text


@pytest.mark.parametrize(("x", "attrs", "want"), [
    (np.float32(1.5), {}, b"1.500000"), (np.float32(1e10), {"shortest": True}, b"1e+10"),
    (np.float64(0.1), {"scientific": True, "precision": 2}, b"1.00e-01"), (np.float64(2.5), {"precision": 0}, b"2"),
    (np.float32(-np.inf), {"width": 6, "fill": "0"}, b"  -inf"), (np.float64(-np.nan), {"fill": "+"}, b"-nan"),
    (np.float64(np.nan), {"fill": "+"}, b"+nan"), (np.float16(0.1), {}, b"0.099976"),
    (np.complex64(1 - 2j), {"precision": 1}, b"(1.0,-2.0)"), (np.int8(-5), {"width": 4, "fill": "0"}, b"-005"),
    (np.uint64(2**64 - 1), {"fill": "+"}, b"18446744073709551615"), (np.int32(5), {"width": 3, "fill": "-"}, b"5  "),
    (np.True_, {"width": 9}, b"true"), (scalar(b"abc"), {"width": 3, "precision": 2}, b" ab"),
])
def test_numbers_are_written_as_by_printf(x, attrs, want):
    dtype = dtypes.of_numpy(np.asarray(x).dtype)
    assert run("AsString", np.asarray(x), T=dtype, **attrs)[()] == want


def test_numbers_are_written_alike_alone_and_beside_infinity():
    x = np.float32([[1.5, np.inf], [-0.0, np.nan]])
    written = run("AsString", x, T=dtypes.float32, width=7)
    assert written.tolist() == [[run("AsString", item, T=dtypes.float32, width=7)[()] for item in row] for row in x]


@pytest.mark.parametrize("attrs", [{"precision": 1}, {"scientific": True}, {"shortest": True}, {"fill": "x"}])
def test_integers_have_no_notation(attrs):
    with pytest.raises(InvalidArgument):
        run("AsString", np.int32(1), T=dtypes.int32, **attrs)


@pytest.mark.parametrize("attrs", [{"width": 2**31 - 1}, {"precision": 2**31}, {"width": 2**62}])
def test_texts_of_numbers_have_a_longest_width_and_precision(attrs):
    with pytest.raises(InvalidArgument, match="at most 65536 characters"):
        run("AsString", np.float32([1, 2]), T=dtypes.float32, **attrs)


def format_text(x, summarize=3, template="%s"):
    attrs = {"T": (dtypes.of_numpy(x.dtype),), "template": template, "summarize": summarize}
    return run("StringFormat", x, **attrs)[()]


def test_a_tensor_is_shown_by_the_ends_of_its_axes():
    assert format_text(np.arange(7)) == b"[0 1 2 ... 4 5 6]"
    assert format_text(np.arange(24).reshape(2, 3, 4), 1) == (
        b"[[[0 ... 3]\n  ...\n  [8 ... 11]]\n\n [[12 ... 15]\n  ...\n  [20 ... 23]]]")
    assert format_text(np.float32([1 / 3, 1e10, 0.1]), -1, "<%s>") == b"<[0.333333343 1e+10 0.1]>"
    assert format_text(array([b'a"b', b"\xff\n"])) == b'["a\\"b" "\xff\\n"]'
    with pytest.raises(InvalidArgument, match="must match"):
        format_text(np.arange(2), template="%s%s")


# Hashes

FARMHASH = {
    0: 0x9AE16A3B2F90404F, 1: 0xBE6056EDF5E94B54, 3: 0x94A13D22E9EBA49A, 4: 0x82BFFD898958E540, 7: 0xA2E0BFF20DB0A6A1,
    8: 0xAD5A13E1E8E93B98, 16: 0xEFD25A0A34156D4, 17: 0xBBB6A6F8F20D1F1C, 32: 0x1A9D8199972CDF49,
    33: 0xE8756EC1CB75524E, 64: 0xF58504BB53DECC4B, 65: 0xC6A3282C3E793DBE, 128: 0x1C484C95F0EA5DD3,
    129: 0xCE8BA3741121083E, 200: 0x74C7FCC26D66FB3,
}


def hash_strings(function, x):
    with np.errstate(all="ignore"):
        return int(function.hash_rows(np.frombuffer(x, np.uint8).reshape(1, -1))[0])


@pytest.mark.parametrize("length", FARMHASH)
def test_fingerprints_of_every_length_are_those_of_farmhash(length):
    assert hash_strings(farmhash64, counting[:length]) == FARMHASH[length]


def test_siphash_gives_the_vector_of_its_paper():
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert hash_strings(siphash(*key), counting[:15]) == 0xA129CA6149BE45E5


def test_murmurhash_takes_whole_words_and_the_bytes_behind_them():
    buckets = 2**62
    assert hash_strings(murmur64a, counting[:21]) % buckets == 4205558502620413488
    assert hash_strings(murmur64a, counting) % buckets == 4185538572715980330


@fast
@given(st.lists(st.binary(max_size=80), max_size=6))
def test_strings_are_hashed_alike_alone_and_among_others(x):
    got = run("StringToHashBucketFast", array(x), num_buckets=1000)
    assert got.tolist() == [hash_strings(farmhash64, item) % 1000 for item in x]


@pytest.mark.parametrize("function", [farmhash64, murmur64a, siphash(1, 2)], ids=["farmhash", "murmurhash", "siphash"])
@pytest.mark.parametrize("most_bytes", [0, 3, 7, 16, 40, 300])
def test_many_strings_have_the_hashes_that_each_has_alone(function, most_bytes):
    random = np.random.default_rng(most_bytes)
    x = [random.bytes(int(random.integers(most_bytes + 1))) for _ in range(150)]
    with np.errstate(all="ignore"):
        assert function.hash_strings(array(x)).tolist() == [hash_strings(function, item) for item in x]
        rows = random.integers(0, 256, (20, most_bytes), np.uint8)
        assert function.hash_rows(rows).tolist() == [hash_strings(function, row.tobytes()) for row in rows]


def test_a_strong_hash_needs_a_key_of_two_words():
    with pytest.raises(InvalidArgument, match="2 elements"):
        run("StringToHashBucketStrong", array([b"a"]), num_buckets=5, key=(1,))


# Metadata


def test_shapes_are_known_as_far_as_those_of_the_inputs():
    strings = info(dtypes.string, (None, 3))
    axes = constant_info(np.int32([-1]))
    assert RULES["ReduceJoin"].function({"keep_dims": True}, strings, axes).shape == (None, 1)
    assert RULES["ReduceJoin"].function({"keep_dims": True}, strings, info(dtypes.int32, (1,))).shape is None
    assert RULES["StringJoin"].function({}, strings, info(dtypes.string, (2, None))).shape == (2, 3)
    count = constant_info(np.array(4, np.int32))
    ids = info(dtypes.int32, (None,))
    assert RULES["UnsortedSegmentJoin"].function({}, strings, ids, count).shape == (4, 3)


# Code points

MIXED = [b"a\xc3\xa9\xf0\x9f\x98\x80", b"", b"\xffb\xe2\x82", b"a\tb"]


def code_points(strings, **attrs):
    """Lists of code points, one for each string."""
    splits, values = run_op("UnicodeDecode", [array(strings)], {
        "input_encoding": "UTF-8", "errors": "replace", "replacement_char": 65533, "replace_control_characters": False,
        "Tsplits": dtypes.int64} | attrs)
    assert (splits.dtype, values.dtype) == (np.int64, np.int32)
    return [values[start:end].tolist() for start, end in pairwise(splits)]


@pytest.mark.parametrize(("attrs", "third", "fourth"), [
    ({}, [65533, 98, 65533], [97, 9, 98]), ({"errors": "ignore"}, [98], [97, 9, 98]),
    ({"replacement_char": 63}, [63, 98, 63], [97, 9, 98]),
    ({"replace_control_characters": True}, [65533, 98, 65533], [97, 65533, 98]),
    ({"replace_control_characters": True, "errors": "ignore"}, [98], [97, 98]),
])
def test_code_points_replace_or_leave_out_faults_as_tensorflow_does(attrs, third, fourth):
    assert code_points(MIXED, **attrs) == [[97, 233, 128512], [], third, fourth]


@given(st.lists(st.text(), max_size=4), st.sampled_from(["UTF-8", "UTF-16-BE", "UTF-32-BE"]))
def test_code_points_are_those_of_the_text(texts, encoding):
    assert code_points([text.encode(encoding) for text in texts], input_encoding=encoding) == [
        [*map(ord, text)] for text in texts]


@pytest.mark.parametrize(("attrs", "reason"), [
    ({"errors": "strict"}, "Invalid formatting"), ({"replacement_char": -1}, "code point"),
    ({"input_encoding": "nonsense"}, "input encoding"),
])
def test_text_that_has_no_code_points_is_refused(attrs, reason):
    with pytest.raises(InvalidArgument, match=reason):
        code_points(MIXED, **attrs)


def encode(points, splits, **attrs):
    (strings,) = run_op("UnicodeEncode", [np.int32(points), np.int64(splits)], {
        "output_encoding": "UTF-8", "errors": "replace", "replacement_char": 65533, "Tsplits": dtypes.int64} | attrs)
    return strings.tolist()


@given(st.lists(st.text(), max_size=4), st.sampled_from(["UTF-8", "UTF-16-BE", "UTF-32-BE"]))
def test_rows_of_code_points_are_encoded_each(texts, encoding):
    points, splits = [ord(c) for text in texts for c in text], np.append(0, np.cumsum([*map(len, texts)]))
    assert encode(points, splits, output_encoding=encoding) == [text.encode(encoding) for text in texts]


@pytest.mark.parametrize("fault", [-1, 0xD800, 0xDFFF, 0x110000, 2**31 - 1, -2**31])
def test_numbers_that_are_no_code_points_are_replaced_or_left_out_or_refused(fault):
    assert encode([97, fault, 98], [0, 2, 3]) == ["a\ufffd".encode(), b"b"]
    assert encode([97, fault, 98], [0, 2, 3], replacement_char=63) == [b"a?", b"b"]
    assert encode([97, fault, 98], [0, 2, 3], errors="ignore") == [b"a", b"b"]
    with pytest.raises(InvalidArgument, match="out of range"):
        encode([97, fault, 98], [0, 2, 3], errors="strict")


@pytest.mark.parametrize("splits", [[1, 1], [0, 2], [0, 1, 0, 1], []])
def test_splits_that_do_not_divide_the_code_points_are_refused(splits):
    with pytest.raises(InvalidArgument, match="splits"):
        encode([97], splits)


@pytest.mark.parametrize(("script", "number"), [
    ("LATIN SMALL LETTER", 25), ("GREEK SMALL LETTER", 14), ("CYRILLIC CAPITAL LETTER", 8), ("HEBREW LETTER", 19),
    ("ARABIC LETTER", 2), ("HIRAGANA LETTER", 20), ("HANGUL SYLLABLE", 18), ("CJK UNIFIED IDEOGRAPH", 17),
])
def test_letters_have_the_script_that_their_names_say(script, number):
    points = np.array([point for point in range(0xD800)
                       if unicodedata.name(chr(point), "").startswith(script)], np.int32)
    scripts = run("UnicodeScript", points)
    assert np.mean(scripts == number) > 0.85  # younger versions of Unicode have more letters


def test_numbers_beyond_unicode_have_no_script():
    points = np.int32([[-1, 0x110000], [2**31 - 1, -(2**31)]])
    assert run("UnicodeScript", points).tolist() == [[-1, -1], [-1, -1]]
    assert run("UnicodeScript", np.int32([0xD800, 0x10FFFF, 0xE000])).tolist() == [103] * 3
