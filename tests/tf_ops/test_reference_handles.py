"""The pass `reference_handles`: graphs of TensorFlow 1.0 run with queues, tables and stacks on references."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.string_arrays import array
from heald.errors import FailedPrecondition, HealdError, OutOfRange
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

INT, STRING, LONG = dtypes.int32, dtypes.string, dtypes.int64


def queue_of(op: str, **attrs: object) -> list[Node]:
    takes, gives = {"component_types": (INT,)}, {"Tcomponents": (INT,)}
    return [
        Node("q", op, attrs=takes | {"shapes": ((),), **attrs}), placeholder("x", None, INT), placeholder("n", (), INT),
        Node("put", "QueueEnqueue", ("q", "x"), attrs=gives), Node("puts", "QueueEnqueueMany", ("q", "x"), attrs=gives),
        Node("get", "QueueDequeue", ("q",), attrs=takes), Node("gets", "QueueDequeueMany", ("q", "n"), attrs=takes),
        Node("rest", "QueueDequeueUpTo", ("q", "n"), attrs=takes), Node("size", "QueueSize", ("q",)),
        Node("close", "QueueClose", ("q",)), Node("closed", "QueueIsClosed", ("q",)),
    ]


@pytest.mark.parametrize("op", ["FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue"])
def test_queues_on_references_work_as_those_on_resources(op):
    with heald.Session(graph(*queue_of(op))) as session:
        session.run([], {"x": [1, 2, 3, 4]}, targets=["puts"])
        session.run([], {"x": 5}, targets=["put"])
        assert session.run("size") == 5
        dequeued = [int(session.run("get")), *session.run("gets", {"n": 2}).tolist()]
        session.run([], targets=["close"])
        assert session.run("closed")
        dequeued += session.run("rest", {"n": 9}).tolist()
        assert sorted(dequeued) == [1, 2, 3, 4, 5]
        with pytest.raises(OutOfRange, match="is closed and has insufficient elements"):
            session.run("get")


def test_a_table_on_references_is_initialized_and_asked():
    kinds = {"key_dtype": STRING, "value_dtype": LONG}
    with heald.Session(graph(
        Node("t", "HashTable", attrs=kinds), placeholder("k", None, STRING), const("v", [1, 2], np.int64),
        const("none", -1, np.int64), Node("fill", "InitializeTable", ("t", "k", "v"), attrs={"Tkey": STRING,
        "Tval": LONG}), Node("find", "LookupTableFind", ("t", "k", "none"), attrs={"Tin": STRING, "Tout": LONG}),
        Node("size", "LookupTableSize", ("t",)),
    )) as session:
        with pytest.raises(FailedPrecondition):
            session.run("find", {"k": array([b"a"])})
        session.run([], {"k": array([b"a", b"b"])}, targets=["fill"])
        assert session.run(["find", "size"], {"k": array([b"b", b"c"])})[0].tolist() == [2, -1]


def test_a_mutable_table_on_references_takes_new_keys():
    kinds, used = {"key_dtype": LONG, "value_dtype": INT}, {"Tin": LONG, "Tout": INT}
    with heald.Session(graph(
        Node("t", "MutableHashTable", attrs=kinds), const("k", [3, 4], np.int64), const("v", [1, 2], np.int32),
        const("none", 0, np.int32), Node("insert", "LookupTableInsert", ("t", "k", "v"), attrs=used),
        Node("find", "LookupTableFind", ("t", "k", "none", "^insert"), attrs=used),
        Node("all", "LookupTableExport", ("t", "^insert"), attrs={"Tkeys": LONG, "Tvalues": INT}),
    )) as session:
        assert [x.tolist() for x in session.run(["find", "all:0", "all:1"])] == [[1, 2], [3, 4], [1, 2]]


def test_a_stack_on_references_gives_the_last_first():
    push = {"T": INT}
    with heald.Session(graph(
        Node("s", "Stack", attrs={"elem_type": INT}), const("one", 1, np.int32), const("two", 2, np.int32),
        const("s/max_size", 7), Node("a", "StackPush", ("s", "one"), attrs=push),
        Node("b", "StackPush", ("s", "two", "^a"), attrs=push),
        Node("c", "StackPop", ("s", "^b"), attrs={"elem_type": INT}),
        Node("d", "StackPop", ("s", "^c"), attrs={"elem_type": INT}), Node("end", "StackClose", ("s", "^d")),
    )) as session:
        assert session.run(["c", "d", "s/max_size"], targets=["end"]) == [2, 1, 7]


def test_control_flow_passes_handles_on():
    takes = {"component_types": (INT,)}
    with heald.Session(graph(
        *queue_of("FIFOQueue"), placeholder("p", (), dtypes.bool_),
        node("s", "RefSwitch", "q", "p", T=STRING), node("i", "RefIdentity", "s:1", T=STRING),
        Node("then", "QueueDequeue", ("i",), attrs=takes), node("m", "Merge", "then", "neither", T=INT, N=2),
        const("seven", 7, np.int32, controls=("f",)),
        node("f", "Identity", "s2", T=dtypes.bool_),
        node("s2", "Switch", "p", "p", T=dtypes.bool_), node("neither", "Identity", "seven", T=INT),
    )) as session:
        session.run([], {"x": 5}, targets=["put"])
        assert session.run("m", {"p": False}) == 7
        assert session.run("m", {"p": True}) == 5


def test_a_handle_from_elsewhere_is_a_typed_error():
    with heald.Session(graph(placeholder("h", (), STRING), Node("size", "QueueSize", ("h",)))) as session, \
            pytest.raises(HealdError) as caught:
        session.run("size", {"h": b"q"})
    assert caught.value.node == "size"


def test_a_graph_without_such_handles_stays_the_same():
    given_graph = graph(placeholder("x"), node("y", "Neg", "x"))
    with heald.Session(given_graph) as session:
        assert session.graph is given_graph
