"""Strings that hold something else: numbers, compressed data, Examples in JSON, code points and their places."""

import gzip
import json
import zlib
from base64 import b64encode
from contextlib import suppress

import heald
import numpy as np
import pytest
from harness.call_op import call
from harness.run_op import run_op
from heald.errors import DataLoss, HealdError, InvalidArgument, ResourceExhausted, Unimplemented
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.node import Node
from heald.runtime.config.config import load_config
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
texts = st.lists(st.binary(max_size=20), max_size=4)


def strings(*elements):
    return np.array([*elements, None], object)[:-1]


@fast
@given(texts, st.sampled_from(["uint8", "int16", "bfloat16", "float64"]), st.booleans())
def test_each_string_is_cut_or_padded(elements, name, little):
    attrs = {"out_type": dtypes.named(name), "little_endian": little}
    numbers = call("DecodePaddedRaw", strings(*elements), np.int32(8), **attrs)
    raw = np.ascontiguousarray(numbers if little else numbers.view(f"u{numbers.itemsize}").byteswap()).tobytes()
    assert raw == b"".join(text[:8].ljust(8, b"\0") for text in elements)


@pytest.mark.parametrize(("kind", "compress"), [("ZLIB", zlib.compress), ("GZIP", gzip.compress), ("", bytes)])
@given(texts, st.data())
@fast
def test_strings_are_decompressed_and_cut_ones_give_what_they_hold(kind, compress, elements, data):
    assert call("DecodeCompressed", strings(*map(compress, elements)), compression_type=kind).tolist() == elements
    for text in elements:
        cut = compress(text)[: data.draw(st.integers(0, 30))]
        assert text.startswith(call("DecodeCompressed", strings(cut), compression_type=kind)[0])


@given(st.sampled_from(["ZLIB", "GZIP"]), st.binary(max_size=30))
@fast
def test_other_bytes_are_lost_data_or_nothing(kind, text):
    with suppress(DataLoss):
        call("DecodeCompressed", strings(text), compression_type=kind)


def test_zstandard_is_told_to_be_missing():
    with pytest.raises(Unimplemented, match="ZSTD"):
        call("DecodeCompressed", strings(b""), compression_type="ZSTD")


def test_a_bomb_is_refused_before_its_content_fills_the_memory():
    graph = Graph([Node("x", "Placeholder", attrs={"dtype": dtypes.string, "shape": None}),
                   Node("op", "DecodeCompressed", ["x"], attrs={"compression_type": "ZLIB"})])
    bomb = zlib.compress(bytes(200_000_000))
    with heald.Session(graph, load_config({"limits": {"memory": "50MB"}}), device="CPU:0") as session, \
            pytest.raises(ResourceExhausted):
        session.run("op:0", {"x": np.array(bomb, object)})


json_values = {
    "bytesList": st.binary(max_size=5), "floatList": st.floats(width=32, allow_nan=False),
    "int64List": st.integers(-(2**63), 2**63 - 1),
}
features = st.dictionaries(st.text(max_size=3), st.sampled_from([*json_values]).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(json_values[kind], max_size=3))), max_size=3)


@fast
@given(features)
def test_an_example_in_json_is_parsed_as_its_features(named):
    def written(value):
        if isinstance(value, bytes):
            return b64encode(value).decode()
        return {np.inf: "Infinity", -np.inf: "-Infinity"}.get(value, value if isinstance(value, float) else str(value))

    text = {"features": {"feature": {key: {kind: {"value": [*map(written, values)]}}
                                     for key, (kind, values) in named.items()}}}
    example = call("DecodeJSONExample", strings(json.dumps(text).encode()))
    types = {"bytesList": dtypes.string, "floatList": dtypes.float32, "int64List": dtypes.int64}
    for key, (kind, values) in named.items():
        parsed = run_op("ParseSingleExample", [np.array(example[0], object)], {
            "num_sparse": 1, "sparse_keys": (key,), "sparse_types": (types[kind],), "dense_keys": (), "Tdense": (),
            "dense_shapes": ()})
        assert parsed[1].tolist() == values


@pytest.mark.parametrize("text", [
    b"", b"\xff", b"[]", b"[" * 100_000, b'{"features":' * 5_000, b'{"x":1}', b'{"features":{"feature":{"a":[]}}}',
    b'{"features":{"feature":{"a":{"int64List":{"value":[' + b"9" * 5000 + b"]}}}}}",
    b'{"features":{"feature":{"a":{"int64List":{"value":["' + "\u0663".encode() + b'x"]}}}}}',
    b'{"features":{"feature":{"\\ud800":{}}}}', b'{"features":{"feature":{"a":{"floatList":{"value":["1e999"]}}}}}',
])
def test_other_texts_are_no_examples(text):
    with pytest.raises(InvalidArgument, match="JSON"):
        call("DecodeJSONExample", strings(text))


@fast
@given(st.lists(st.text(max_size=5), max_size=3), st.sampled_from(["utf-8", "utf-16-be", "utf-16-le", "utf-32-be"]))
def test_code_points_start_where_their_bytes_are(elements, encoding):
    raws = [text.encode(encoding, "ignore") for text in elements]
    splits, points, starts = call("UnicodeDecodeWithOffsets", strings(*raws), input_encoding=encoding.upper())
    same_splits, same_points = call("UnicodeDecode", strings(*raws), input_encoding=encoding.upper())
    assert splits.tolist() == same_splits.tolist()
    assert points.tolist() == same_points.tolist()
    for raw, first, end in zip(raws, splits, splits[1:], strict=False):
        for point, start in zip(points[first:end], starts[first:end], strict=True):
            assert raw[start:].startswith(chr(point).encode(encoding))


@fast
@given(st.binary(max_size=12), st.sampled_from(["UTF-8", "UTF-16", "UTF-16-LE", "UTF-32-BE", "ISO-8859-1"]),
       st.sampled_from(["replace", "ignore"]))
def test_places_of_malformed_bytes_are_inside_the_string(raw, encoding, mode):
    try:
        _, points, starts = call("UnicodeDecodeWithOffsets", strings(raw), input_encoding=encoding, errors=mode)
    except HealdError:
        return
    assert points.tolist() == call("UnicodeDecode", strings(raw), input_encoding=encoding, errors=mode)[1].tolist()
    assert (np.diff(starts) > 0).all()
    assert ((starts >= 0) & (starts < len(raw))).all()
