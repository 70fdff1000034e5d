"""Send and Recv nodes meet in the rendezvous of their step."""

from __future__ import annotations

import gc
import threading
import weakref

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.transfers import key, recv, send
from heald.errors import Aborted, Cancelled, DeadlineExceeded, InvalidArgument
from heald.runtime.executor.step import RunOptions
from heald.runtime.host.cancellation import CancelToken
from heald.runtime.host.rendezvous import LocalRendezvous
from heald.runtime.values import dtypes

X = np.float32([1, 2, 3])


@pytest.mark.parametrize("sends", ["_Send", "_HostSend"])
@pytest.mark.parametrize("recvs", ["_Recv", "_HostRecv"])
@pytest.mark.parametrize("is_recv_first", [False, True])
def test_a_recv_gives_what_its_send_got(sends, recvs, is_recv_first):
    nodes = [send("s", "t", "n", op=sends), recv("r", "t", op=recvs)]
    tested_graph = graph(placeholder("x", (3,)), node("n", "Neg", "x"), *nodes[::-1 if is_recv_first else 1],
                         node("y", "Neg", "r"))
    with heald.Session(tested_graph) as session:
        for _ in range(3):
            y, r = session.run(["y:0", "r:0"], {"x": X}, targets=["s"])
            assert (y.tolist(), r.tolist()) == (X.tolist(), (-X).tolist())


def test_strings_travel():
    tested_graph = graph(const("c", np.array([b"a", b"bc"], object), object), send("s", "t", "c", dtype=dtypes.string),
                         recv("r", "t", dtype=dtypes.string))
    with heald.Session(tested_graph) as session:
        assert session.run("r:0", targets=["s"]).tolist() == [b"a", b"bc"]


def test_a_received_result_is_the_users_own():
    tested_graph = graph(const("c", [1, 2]), placeholder("x", (3,)), send("s", "t", "c"), send("sx", "t", "x"),
                         recv("r", "t"))
    with heald.Session(tested_graph) as session:
        session.run("r:0", targets=["s"])[:] = 9
        assert session.run("r:0", targets=["s"]).tolist() == [1, 2]
        x = X.copy()
        result = session.run("r:0", {"x": x}, targets=["sx"])
        result[:] = 9
        assert x.tolist() == X.tolist()


def dead_graph():
    return graph(placeholder("p", (), dtypes.bool_), placeholder("x", (3,)), node("sw", "Switch", "x", "p"),
                 send("s", "t", "sw:1"), recv("r", "t"), node("n", "Neg", "r"), node("other", "Exp", "sw"),
                 node("m", "Merge", "n", "other", N=2))


@pytest.mark.parametrize("condition", [True, False])
def test_a_dead_tensor_travels(condition):
    with heald.Session(dead_graph()) as session:
        m, index = session.run(["m:0", "m:1"], {"p": condition, "x": X}, targets=["s"])
        assert index == (not condition)
        np.testing.assert_allclose(m, -X if condition else np.exp(X), 1e-6)


def test_a_received_dead_tensor_cannot_be_fetched():
    with heald.Session(dead_graph()) as session, pytest.raises(InvalidArgument, match="'r:0' is dead"):
        session.run("r:0", {"p": False, "x": X}, targets=["s"])


@pytest.mark.parametrize("condition", [True, False])
def test_a_send_behind_a_dead_control_input_sends_a_dead_tensor(condition):
    tested_graph = graph(placeholder("p", (), dtypes.bool_), placeholder("x", (3,)), node("sw", "Switch", "x", "p"),
                         node("taken", "Identity", "sw:1"), send("s", "t", "x", "^taken"), recv("r", "t"),
                         node("other", "Exp", "sw"), node("m", "Merge", "r", "other", N=2))
    with heald.Session(tested_graph) as session:
        assert session.run("m:1", {"p": condition, "x": X}, targets=["s"]) == (not condition)


def test_a_recv_that_the_caller_terminates_is_fed():
    with heald.Session(graph(recv("r", "t", client=True), node("y", "Neg", "r"))) as session:
        assert session.run("y:0", {"r:0": X}).tolist() == (-X).tolist()
        with pytest.raises(InvalidArgument, match="the caller sends tensor 't'") as caught:
            session.run("y:0")
        assert caught.value.node == "r"


def test_a_caller_with_a_rendezvous_feeds_and_fetches_through_it():
    meeting = LocalRendezvous()
    tested_graph = graph(recv("r", "in", client=True), node("y", "Neg", "r"), send("s", "out", "y"))
    meeting.send(key("in"), X)
    with heald.Session(tested_graph, rendezvous=lambda: meeting) as session:
        session.run([], targets=["s"])
    assert meeting.recv(key("out")).get().tolist() == (-X).tolist()


def test_a_names_part_with_a_separator_is_an_error_of_its_node():
    with (heald.Session(graph(recv("r", "t;u"))) as session,
          pytest.raises(InvalidArgument, match="is not the key of a rendezvous") as caught):
        session.run("r:0")
    assert caught.value.node == "r"


class Watched(LocalRendezvous):
    """A rendezvous whose step begins to wait when `waits` is set."""

    def __init__(self):
        super().__init__()
        self.waits = threading.Event()

    def recv(self, key):
        value = super().recv(key)
        self.waits.set()
        return value


def test_a_recv_without_a_send_waits_until_the_timeout_and_leaves_nothing():
    references = []

    def meet():
        meeting = Watched()
        references.append(weakref.ref(meeting))
        return meeting

    with heald.Session(graph(recv("r", "t"), node("y", "Neg", "r")), rendezvous=meet) as session:
        with pytest.raises(DeadlineExceeded):
            session.run("y:0", options=RunOptions(timeout=0.01))
        gc.collect()
        assert [reference() for reference in references] == [None]


@pytest.mark.parametrize("cancel", ["token", "close"])
def test_a_recv_without_a_send_waits_until_it_is_cancelled(cancel):
    meetings, references, token = [Watched()], [], CancelToken()
    references.append(weakref.ref(meetings[0]))
    waits = meetings[0].waits
    session = heald.Session(graph(recv("r", "t"), node("y", "Neg", "r")), rendezvous=meetings.pop)

    def end():
        waits.wait(10)
        token.cancel() if cancel == "token" else session.close()

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(Cancelled):
        session.run("y:0", options=RunOptions(cancel=token))
    thread.join()
    gc.collect()
    assert [reference() for reference in references] == [None]  # neither the token nor the session keeps the run
    session.close()


def test_an_error_of_the_step_aborts_its_rendezvous_even_before_the_first_use():
    meeting = LocalRendezvous()
    tested_graph = graph(placeholder("x"), node("bad", "CheckNumerics", "x", message=b"not finite"),
                         send("s", "t", "bad"))
    with heald.Session(tested_graph, rendezvous=lambda: meeting) as session, pytest.raises(InvalidArgument):
        session.run([], {"x": np.float32(np.inf)}, targets=["s"])
    assert isinstance(meeting.recv(key("t")).error, InvalidArgument)


def test_an_abort_of_the_rendezvous_ends_the_step_with_its_error():
    meeting = LocalRendezvous()
    meeting.abort(Aborted("the other process has ended"))
    with (heald.Session(graph(recv("r", "t")), rendezvous=lambda: meeting) as session,
          pytest.raises(Aborted, match="the other process has ended") as caught):
        session.run("r:0")
    assert caught.value.node == "r"
