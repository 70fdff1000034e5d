"""SequenceExamples: the three ops agree, lists over time keep their steps, and damaged messages are errors."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import HealdError, InvalidArgument
from heald.runtime.values import dtypes, wire
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
lists_of_steps = st.lists(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), max_size=3), min_size=1,
                          max_size=3)
NOTHING = np.array([], object)


def field(number, content):
    return wire.put_varint(number << 3 | wire.BYTES) + wire.put_varint(len(content)) + content


def entry(key, content):
    return field(1, field(1, key) + field(2, content))


def integers(values):
    return field(3, field(1, b"".join(map(wire.put_varint, values))))


def message(context, steps):
    listed = b"".join(field(1, integers(values)) for values in steps)
    return field(1, entry(b"c", integers(context))) + field(2, entry(b"l", listed))


def texts(*elements):
    return np.array([*elements, None], object)[:-1]


def parse(messages, **attrs):
    """All outputs of ParseSequenceExampleV2 for a sparse and a ragged "c", and a sparse and a ragged list "l"."""
    types = {"context_sparse_types": (dtypes.int64,), "Ncontext_sparse": 1, "Nfeature_list_sparse": 1,
             "feature_list_sparse_types": (dtypes.int64,)}
    for kind in ("context", "feature_list"):
        types |= {f"{kind}_ragged_value_types": (dtypes.int64,), f"{kind}_ragged_split_types": (dtypes.int64,)}
    keys = [texts(b"c"), NOTHING, texts(b"c"), texts(b"l"), NOTHING, texts(b"l")]
    outputs = run_op("ParseSequenceExampleV2", [messages, NOTHING, *keys, np.array([], bool)], types | attrs)
    return {"c": outputs[:3], "ragged c": outputs[3:5], "l": outputs[5:8], "ragged l": outputs[8:]}


@fast
@given(lists_of_steps)
def test_lists_keep_their_values_steps_and_messages(lists):
    parsed = parse(texts(*(message([i], steps) for i, steps in enumerate(lists))))
    indices, values, shape = parsed["l"]
    flat = [v for steps in lists for step in steps for v in step]
    assert values.tolist() == flat
    assert [lists[i][j][k] for i, j, k in indices.tolist()] == flat
    lengths = [len(step) for steps in lists for step in steps]
    assert shape.tolist() == [len(lists), max(map(len, lists)), max(lengths, default=0)]
    ragged_values, outer, inner = parsed["ragged l"]
    assert ragged_values.tolist() == flat
    assert outer.tolist() == np.cumsum([0, *map(len, lists)]).tolist()
    assert inner.tolist() == np.cumsum([0, *lengths]).tolist()
    assert parsed["c"][1].tolist() == parsed["ragged c"][0].tolist() == [*range(len(lists))]


def test_a_single_message_has_no_dimension_and_no_splits_of_messages():
    """TensorFlow returns unwritten memory for the splits."""
    parsed = parse(np.array(message([5, 6], [[1], [2, 3]]), object))
    assert [x.tolist() for x in parsed["c"]] == [[[0], [1]], [5, 6], [2]]
    assert [x.tolist() for x in parsed["l"]] == [[[0, 0], [1, 0], [1, 1]], [1, 2, 3], [2, 2]]
    assert [x.tolist() for x in parsed["ragged c"]] == [[5, 6], []]
    assert [x.tolist() for x in parsed["ragged l"]] == [[1, 2, 3], [], [0, 1, 3]]


@fast
@given(st.data())
def test_damaged_messages_end_in_a_typed_error(data):
    raw = bytearray(message([1, 2], [[3], [4, 5]]))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    try:
        parsed = parse(texts(bytes(raw[:cut])))
    except HealdError:
        return
    assert parsed["l"][1].size <= len(raw)


def dense(steps, *, empty=()):
    return run_op("ParseSequenceExample", [texts(*(message([1], listed) for listed in steps)), NOTHING], {
        "feature_list_dense_missing_assumed_empty": empty, "context_sparse_keys": (), "context_dense_keys": (),
        "feature_list_sparse_keys": (), "feature_list_dense_keys": ("l", "x")[:1 + bool(empty)],
        "Nfeature_list_dense": 1 + bool(empty), "feature_list_dense_types": (dtypes.int64,) * (1 + bool(empty)),
        "feature_list_dense_shapes": ((2,),) * (1 + bool(empty))})


def test_dense_lists_are_padded_with_zeros():
    padded, missing, lengths, no_lengths = dense([[[1, 2], [3, 4]], [[5, 6]]], empty=("x",))
    assert padded.tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]
    assert lengths.tolist() == [2, 1]
    assert missing.shape == (2, 0, 2)
    assert no_lengths.tolist() == [0, 0]


@pytest.mark.parametrize("steps", [[[[1]]], [[[1, 2], []]], [[[1, 2, 3]]]])
def test_a_dense_list_needs_as_many_values_in_each_step(steps):
    with pytest.raises(InvalidArgument, match="needs 2 values"):
        dense(steps)


def test_no_messages_need_no_values_of_a_dense_feature():
    """TensorFlow compares the size of the default with the shape all the same."""
    keys = [NOTHING, texts(b"c"), *[NOTHING] * 4, np.array([], bool)]
    attrs = {"Tcontext_dense": (dtypes.int64,), "context_dense_shapes": ((2,),)}
    default = np.int64([1, 2])
    assert run_op("ParseSequenceExampleV2", [NOTHING, NOTHING, *keys, default], attrs)[0].shape == (0, 2)
    with pytest.raises(InvalidArgument, match="needs 2 values"):
        run_op("ParseSequenceExampleV2", [NOTHING, NOTHING, *keys, default[:0]], attrs)
