"""The pass `reference_handles`: tensor arrays of the first two generations run as those of the third."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, placeholder
from heald.errors import HealdError, InvalidArgument, Unimplemented
from heald.graphs.graph.graph import Graph, Versions
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

FLOAT, INT, STRING, LONG = dtypes.float32, dtypes.int32, dtypes.string, dtypes.int64
ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
GENERATIONS = pytest.mark.parametrize("v", ["", "V2"])


def array_nodes(v, size=3, **attrs):
    return [const("size", size, np.int32), const("flow", 0, np.float32), placeholder("x", None, FLOAT),
            *(const(f"i{i}", i, np.int32) for i in range(3)),
            Node("a", f"TensorArray{v}", ("size",), attrs={"dtype": FLOAT, **attrs})]


def open_session(*nodes, producer=15):
    return heald.Session(Graph(nodes, versions=Versions(producer=producer)), device="CPU:0")


@GENERATIONS
def test_elements_are_written_read_and_counted(v):
    with open_session(
        *array_nodes(v), Node("w", f"TensorArrayWrite{v}", ("a", "i1", "x", "flow"), attrs={"T": FLOAT}),
        Node("r", f"TensorArrayRead{v}", ("a", "i1", "w"), attrs={"dtype": FLOAT}),
        Node("n", f"TensorArraySize{v}", ("a", "w")), Node("end", f"TensorArrayClose{v}", ("a", "^r")),
    ) as session:
        read, count = session.run(["r", "n"], {"x": [7.0, 8.0]}, targets=["end"])
        assert (read.tolist(), count) == ([7, 8], 3)


@GENERATIONS
def test_rows_are_scattered_gathered_split_and_joined(v):
    with open_session(
        *array_nodes(v), const("turned", [2, 0, 1], np.int32), const("lengths", [1, 1, 1], np.int64),
        Node("s", f"TensorArrayScatter{v}", ("a", "turned", "x", "flow"), attrs={"T": FLOAT}),
        Node("g", f"TensorArrayGather{v}", ("a", "turned", "s"), attrs={"dtype": FLOAT}),
        Node("b", f"TensorArray{v}", ("size",), attrs={"dtype": FLOAT}),
        Node("p", f"TensorArraySplit{v}", ("b", "x", "lengths", "flow"), attrs={"T": FLOAT}),
        Node("c", f"TensorArrayConcat{v}", ("b", "p"), attrs={"dtype": FLOAT}),
    ) as session:
        gathered, joined, lengths = session.run(["g", "c:0", "c:1"], {"x": ROWS})
        assert (gathered.tolist(), joined.tolist(), lengths.tolist()) == (ROWS, ROWS, [1, 1, 1])


def test_an_array_is_unpacked_and_packed_whole():
    with open_session(
        *array_nodes(""), Node("u", "TensorArrayUnpack", ("a", "x", "flow"), attrs={"T": FLOAT}),
        Node("p", "TensorArrayPack", ("a", "u"), attrs={"dtype": FLOAT}),
    ) as session:
        assert session.run("p", {"x": ROWS}).tolist() == ROWS
        with pytest.raises(InvalidArgument):
            session.run("p", {"x": [[1.0]] * 4})


@GENERATIONS
def test_gradients_are_arrays_of_their_own(v):
    with open_session(
        *array_nodes(v, clear_after_read=False), const("one", [1.0], np.float32),
        Node("w", f"TensorArrayWrite{v}", ("a", "i0", "x", "flow"), attrs={"T": FLOAT}),
        Node("d", f"TensorArrayGrad{v}", ("a", "w"), attrs={"source": "gradients"}),
        Node("dw", f"TensorArrayWrite{v}", ("d", "i0", "one", "w"), attrs={"T": FLOAT}),
        Node("dr", f"TensorArrayRead{v}", ("d", "i0", "dw"), attrs={"dtype": FLOAT}),
        Node("r", f"TensorArrayRead{v}", ("a", "i0", "dw"), attrs={"dtype": FLOAT}),
    ) as session:
        assert [x.tolist() for x in session.run(["dr", "r"], {"x": [5.0]})] == [[1], [5]]


@pytest.mark.parametrize(("v", "prefix"), [("", "Ref"), ("V2", "")])
def test_a_loop_fills_an_array(v, prefix):
    """Squares of 0, 1 and 2, each written by one iteration of a loop of TensorFlow 1."""
    frame = {"frame_name": "loop", "parallel_iterations": 1}

    def pass_on(name, op, *inputs, T=INT, **attrs):  # noqa: N803 - the attribute's name
        return Node(name, op, inputs, attrs={"T": T, **attrs})

    with open_session(
        *array_nodes(v), pass_on("ei", "Enter", "i0", **frame), pass_on("ef", "Enter", "flow", T=FLOAT, **frame),
        pass_on("ea", f"{prefix}Enter", "a", T=STRING, is_constant=True, **frame),
        pass_on("mi", "Merge", "ei", "ni", N=2), pass_on("mf", "Merge", "ef", "nf", T=FLOAT, N=2),
        const("three", 3, np.int32, controls=("mi",)), Node("less", "Less", ("mi", "three"), attrs={"T": INT}),
        Node("c", "LoopCond", ("less",)), pass_on("si", "Switch", "mi", "c"),
        pass_on("sf", "Switch", "mf", "c", T=FLOAT), pass_on("i", "Identity", "si:1"),
        const("step", 1, np.int32, controls=("i",)),
        Node("add", "AddV2", ("i", "step"), attrs={"T": INT}), pass_on("ni", "NextIteration", "add"),
        Node("f", "Cast", ("i",), attrs={"SrcT": INT, "DstT": FLOAT}),
        Node("sq", "Square", ("f",), attrs={"T": FLOAT}),
        Node("w", f"TensorArrayWrite{v}", ("ea", "i", "sq", "sf:1"), attrs={"T": FLOAT}),
        pass_on("nf", "NextIteration", "w", T=FLOAT), pass_on("xf", "Exit", "sf", T=FLOAT),
        const("all", [0, 1, 2], np.int32),
        Node("g", f"TensorArrayGather{v}", ("a", "all", "xf"), attrs={"dtype": FLOAT}),
    ) as session:
        assert session.run("g").tolist() == [0, 1, 4]


@pytest.mark.parametrize(("v", "producer"), [("", 16), ("V2", 26)])
def test_newer_graphs_have_no_such_arrays(v, producer):
    nodes = [*array_nodes(v), Node("n", f"TensorArraySize{v}", ("a", "flow"))]
    with open_session(*nodes, producer=producer) as session, pytest.raises(Unimplemented, match="deprecated"):
        session.run("n")
    with open_session(*nodes, producer=producer - 1) as session:
        assert session.run("n") == 3


def test_a_handle_from_elsewhere_is_a_typed_error():
    with open_session(placeholder("h", (), STRING), const("flow", 0, np.float32),
                 Node("n", "TensorArraySizeV2", ("h", "flow"))) as session, pytest.raises(HealdError) as caught:
        session.run("n", {"h": b"a"})
    assert caught.value.node == "n"
