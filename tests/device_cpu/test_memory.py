"""Kernels that make their results ask the memory budget first: a small input may stand for much."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from io import BytesIO

import heald
import numpy as np
import pytest
from builders.graphs import const, graph
from heald.errors import ResourceExhausted
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

LIMIT = 64 << 20


def png(width, height):
    """A PNG whose header says this of its size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    framed = [struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
              for kind, body in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def gif(width, height):
    from PIL import Image

    stream = BytesIO()
    Image.new("P", (1, 1)).save(stream, "GIF")
    return stream.getvalue().replace(struct.pack("<HH", 1, 1), struct.pack("<HH", width, height))


I32, I64, F32 = dtypes.int32, dtypes.int64, dtypes.float32
MUCH = 10**8
CASES = {
    "DecodePng": ([("contents", png(10_000, 10_000), object)], {"channels": 0, "dtype": dtypes.uint8}),
    "DecodeGif": ([("contents", gif(10_000, 10_000), object)], {}),
    "RaggedRange": ([("a", [0], np.int32), ("b", [MUCH], np.int32), ("c", [1], np.int32)], {"T": I32, "Tsplits": I32}),
    "RaggedGather": ([("s", [0, 1000], np.int64), ("v", np.zeros((1000, 1000)), np.float32),
                      ("i", np.zeros(100), np.int64)],
                     {"Tvalues": F32, "Tindices": I64, "Tsplits": I64, "PARAMS_RAGGED_RANK": 1,
                      "OUTPUT_RAGGED_RANK": 1}),
    "RaggedTensorToTensor": (
        [("shape", [10_000, 10_000], np.int64), ("v", [1.0], np.float32), ("d", 0.0, np.float32),
         ("splits", [0, 1], np.int64)],
        {"T": F32, "Tindex": I64, "Tshape": I64, "num_row_partition_tensors": 1,
         "row_partition_types": ["ROW_SPLITS"]}),
    "DynamicStitch": ([("i", [MUCH], np.int32), ("x", [1.0], np.float32)], {"N": 1, "T": F32}),
    "SegmentSum": ([("x", [1.0], np.float32), ("i", [MUCH], np.int32)], {"T": F32, "Tindices": I32}),
    "SegmentMean": ([("x", [1.0], np.float32), ("i", [MUCH], np.int32)], {"T": F32, "Tindices": I32}),
    "SparseSegmentSum": ([("x", [1.0], np.float32), ("p", [0], np.int32), ("i", [MUCH], np.int32)],
                         {"T": F32, "Tidx": I32, "Tsegmentids": I32}),
    "SparseFillEmptyRows": ([("i", [[0, 0]], np.int64), ("v", [1.0], np.float32), ("s", [MUCH, 1], np.int64),
                             ("d", 0.0, np.float32)], {"T": F32}),
}


@pytest.mark.parametrize("op", CASES)
def test_a_small_input_that_stands_for_much_is_refused_before_memory_is_touched(op):
    inputs, attrs = CASES[op]
    consts = [const(name, value, dtype) for name, value, dtype in inputs]
    out = Node("out", op, tuple(name for name, *_ in inputs), attrs=attrs)
    session = heald.Session(graph(*consts, out), {"limits": {"memory": LIMIT}})
    tracemalloc.start()
    try:
        with pytest.raises(ResourceExhausted, match=r"needs .*: 0 bytes of the limit of 67.1 MB .* \(node 'out'"):
            session.run("out:0")
        assert tracemalloc.get_traced_memory()[1] < LIMIT
    finally:
        tracemalloc.stop()


def test_a_list_of_elements_that_were_never_written_asks_before_it_is_stacked():
    shape = const("shape", [1000], np.int32)
    reserved = Node("list", "TensorListReserve", ("shape", "count"), attrs={"element_dtype": F32, "shape_type": I32})
    out = Node("out", "TensorListStack", ("list", "shape"), attrs={"element_dtype": F32, "num_elements": -1})
    nodes = shape, const("count", 100_000, np.int32), reserved, out
    session = heald.Session(graph(*nodes), {"limits": {"memory": LIMIT}})
    with pytest.raises(ResourceExhausted, match="the stack of a list needs 400.0 MB"):
        session.run("out")


def test_features_of_different_lengths_ask_before_they_are_padded():
    from heald.runtime.values import wire

    def example(count):
        floats = wire.put_bytes(2, wire.put_bytes(1, b"\0" * (4 * count)))
        return wire.put_bytes(1, wire.put_bytes(1, wire.put_bytes(1, b"x") + wire.put_bytes(2, floats)))

    examples = np.array([example(100_000)] + [example(0)] * 1000, object)
    attrs = {"Ndense": 1, "Nsparse": 0, "sparse_types": [], "Tdense": [F32], "dense_shapes": [ShapeAttr((None,))]}
    nodes = [const("examples", examples, object), const("names", np.array([], object), object),
             const("key", b"x", object), const("default", [0.0])]
    out = Node("out", "ParseExample", ("examples", "names", "key", "default"), attrs=attrs)
    with pytest.raises(ResourceExhausted, match="feature b'x', padded, needs 400.4 MB"):
        heald.Session(graph(*nodes, out), {"limits": {"memory": LIMIT}}).run("out")
