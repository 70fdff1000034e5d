"""Sparse tensors as strings: there and back, damaged strings, and strings that say they hold very much."""

import heald
import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import HealdError, InvalidArgument, ResourceExhausted
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.node import Node
from heald.runtime.config.config import load_config
from heald.runtime.values import dtypes, wire
from heald.runtime.values.tensor_proto import TensorValue
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
matrices = hnp.arrays(np.int32, st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
                      elements=st.integers(0, 2))


def sparse(x, as_text):
    values = np.array([*map(b"%d".__mod__, x[x != 0].tolist()), None], object)[:-1] if as_text else x[x != 0]
    return np.argwhere(x), values, np.array(x.shape, np.int64)


@fast
@given(matrices, st.booleans())
def test_rows_that_were_serialized_make_the_tensor_again(x, as_text):
    parts, dtype = sparse(x, as_text), dtypes.string if as_text else dtypes.int32
    rows = outputs("SerializeManySparse", *parts)[0]
    assert rows.shape == (len(x), 3)
    for op in ("DeserializeManySparse", "DeserializeSparse"):
        for part, again in zip(parts, outputs(op, rows, dtype=dtype), strict=True):
            np.testing.assert_array_equal(part, again)
    whole = outputs("SerializeSparse", *parts)[0]
    for part, again in zip(parts, outputs("DeserializeSparse", whole, dtype=dtype), strict=True):
        np.testing.assert_array_equal(part, again)


@fast
@given(matrices, st.data())
def test_damaged_strings_end_in_a_typed_error(x, data):
    whole = outputs("SerializeSparse", *sparse(x, as_text=True))[0]
    place = data.draw(st.integers(0, 2))
    raw = bytearray(whole[place])
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    whole[place] = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        indices, values, shape = outputs("DeserializeSparse", whole, dtype=dtypes.string)
    except HealdError:
        return
    assert indices.shape == (len(values), len(shape))


@pytest.mark.parametrize(("place", "part"), [
    (0, np.int32([[0]])), (2, np.int32([3])), (2, np.int64([-3])), (1, np.float64([1])), (0, np.int64([[0, 0]])),
    (0, np.int64([0])), (1, np.float32([1, 2])),
])
def test_parts_that_do_not_fit_are_refused(place, part):
    """TensorFlow crashes for parts of other types and for negative shapes."""
    parts = [np.int64([[0]]), np.float32([1]), np.int64([3])]
    parts[place] = part
    strings = np.array([bytes(TensorValue(x).raw) for x in parts], object)
    with pytest.raises(InvalidArgument):
        outputs("DeserializeSparse", strings, dtype=dtypes.float32)


def test_many_elements_in_few_bytes_are_counted_before_they_are_made():
    def one_for_all(dtype, shape, value):
        dims = b"".join(wire.put_bytes(2, wire.put_integer(1, n)) for n in shape)
        return wire.put_integer(1, dtype.number) + wire.put_bytes(2, dims) + value

    many = 10**11
    strings = np.array([one_for_all(dtypes.int64, (many, 1), wire.put_integer(10, 1)),
                        one_for_all(dtypes.float32, (many,), wire.put_bytes(5, np.float32(1).tobytes())),
                        bytes(TensorValue(np.int64([3])).raw)], object)
    graph = Graph([Node("x", "Placeholder", attrs={"dtype": dtypes.string, "shape": None}),
                   Node("op", "DeserializeSparse", ["x"], attrs={"dtype": dtypes.float32})])
    with heald.Session(graph, load_config({"limits": {"memory": "1GB"}}), device="CPU:0") as session, \
            pytest.raises((ResourceExhausted, InvalidArgument)):
        session.run("op:1", {"x": strings})
