"""Tensors that a session keeps under handles: GetSessionHandle, GetSessionTensor and DeleteSessionTensor."""

from __future__ import annotations

import threading

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, graph, node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

X = np.float32([1, -2, 3])
HANDLES = dtypes.string


def tensor_of(name, dtype):
    return Node(name, "GetSessionTensor", ["h"], attrs={"dtype": dtype})


def handle_graph(**requests):
    return graph(
        placeholder("x"), placeholder("h", (), HANDLES), placeholder("hs", (1,), HANDLES),
        placeholder("s", None, HANDLES),
        Node("keep", "GetSessionHandle", ["x"], attrs={"T": FLOAT}, **requests),
        Node("keep_text", "GetSessionHandle", ["s"], attrs={"T": dtypes.string}),
        Node("keep_v2", "GetSessionHandleV2", ["x"], attrs={"T": FLOAT}),
        tensor_of("get", FLOAT), tensor_of("get_ints", dtypes.int32), tensor_of("get_text", dtypes.string),
        node("twice", "AddV2", "get", "get"), Node("delete", "DeleteSessionTensor", ["h"]),
        Node("get_many", "GetSessionTensor", ["hs"], attrs={"dtype": FLOAT}))


@pytest.fixture
def session():
    with heald.Session(handle_graph()) as session:
        yield session


def test_a_tensor_is_kept_from_run_to_run_under_its_handle(session):
    handle = session.run("keep", {"x": X})
    assert handle.shape == ()
    assert handle.item() == b"keep;0;/job:localhost/replica:0/task:0/device:CPU:0"  # as TensorFlow writes it
    for _ in range(2):
        assert session.run("twice", {"h": handle}).tolist() == (2 * X).tolist()
    assert session.run("get", {"h": handle.item().decode()}).tolist() == X.tolist()
    text = session.run("keep_text", {"s": [b"a", b"\x00"]})
    assert session.run("get_text", {"h": text}).tolist() == [b"a", b"\x00"]
    session.run([], {"x": X}, targets=["keep_v2"])


def test_each_run_gives_a_new_handle_and_keeps_its_own_copy(session):
    fed = X.copy()
    first = session.run("keep", {"x": fed})
    fed[:] = 0
    result = session.run("get", {"h": first})
    result[:] = 0
    second = session.run("keep", {"x": fed})
    assert first.item() != second.item()
    assert session.run("get", {"h": first}).tolist() == X.tolist()
    assert session.run("get", {"h": second}).tolist() == [0, 0, 0]


def test_an_unknown_handle_is_an_error_and_so_is_a_deleted_one(session):
    handle = session.run("keep", {"x": X})
    session.run([], {"h": handle}, targets=["delete"])
    for name in (handle.item(), b"", b"nonsense", b"\xff\x00", handle.item() + b"0", b"x" * 10_000):
        with pytest.raises(InvalidArgument, match="the session has no tensor under the handle") as caught:
            session.run("get", {"h": name})
        assert caught.value.node == "get"
        with pytest.raises(InvalidArgument, match="no tensor to delete"):
            session.run([], {"h": name}, targets=["delete"])


def test_a_tensor_of_another_type_and_a_vector_of_handles_are_errors(session):
    handle = session.run("keep", {"x": X})
    for fetch in ("get_ints", "get_text"):
        with pytest.raises(InvalidArgument, match="is of type float32, asked for as"):
            session.run(fetch, {"h": handle})
    with pytest.raises(InvalidArgument, match="the handle of a tensor"):
        session.run("get_many", {"hs": [handle.item()]})


def test_handles_are_of_one_session_and_end_with_a_reset(session):
    handle = session.run("keep", {"x": X})
    with heald.Session(handle_graph()) as other, pytest.raises(InvalidArgument, match="the session has no tensor"):
        other.run("get", {"h": handle})
    session.reset()
    with pytest.raises(InvalidArgument, match="the session has no tensor"):
        session.run("get", {"h": handle})
    assert session.run("keep", {"x": X}).item().startswith(b"keep;")


def test_a_tensor_that_comes_from_another_device_is_kept_too():
    with heald.Session(handle_graph(device="EXAMPLE:0"), {"placement": {"fallback": "allow"}}) as session:
        assert session.run("get", {"h": session.run("keep", {"x": X})}).tolist() == X.tolist()


def work(session, seed, runs):
    """Keep, read and delete tensors, run, connect and release callables, and extend the session. Return the number of
    wrong results."""
    wrong = 0
    get, connected = connect(session)
    for i in range(runs):
        x = np.full(1 + (seed + i) % 3, 1000 * seed + i, np.float32)
        kept = session.run({"handle": "keep", "same": ["x"]}, {"x": x})
        wrong += kept["same"][0].tolist() != x.tolist()
        wrong += get(kept["handle"]).tolist() != (2 * x).tolist()
        session.run([], {"h": kept["handle"]}, targets=["delete"])
        wrong += session.run([]) != []
        wrong += connected(x).tolist() != (2 * x).tolist()
        if i % 50 == 49:
            get.release()
            connected.release()
            get, connected = connect(session)
            name = f"more_{seed}_{i}"
            session.extend(heald.graphdef.loads(heald.graphdef.dumps(graph(node(name, "Neg", "x"))), partial=True))
            wrong += session.run({name: [name]}, {"x": x})[name][0].tolist() != (-x).tolist()
    return wrong


def connect(session):
    return session.make_callable("twice", ["h"]), session.make_callable("twice", ["x"], connections={"get": "x"})


def run_in_threads(session, threads, runs):
    wrong = []
    workers = [threading.Thread(target=lambda seed=seed: wrong.append(work(session, seed, runs)))
               for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return wrong


def test_threads_share_the_kept_tensors_and_every_result_is_exact(session):
    assert run_in_threads(session, 4, 20) == [0] * 4


def test_five_thousand_concurrent_runs_with_handles_and_released_callables_are_exact(session):
    assert run_in_threads(session, 8, 625) == [0] * 8
    with pytest.raises(InvalidArgument):
        session.run("get", {"h": b"keep;0;/job:localhost/replica:0/task:0/device:CPU:0"})
