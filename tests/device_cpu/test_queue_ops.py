"""Queues. TensorFlow 2.21 gave the same results and kinds of errors for the same calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.string_arrays import array
from heald.errors import Cancelled, DeadlineExceeded, FailedPrecondition, InvalidArgument, OutOfRange, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

INT, FLOAT, STRING, LONG = dtypes.int32, dtypes.float32, dtypes.string, dtypes.int64
SOON = heald.RunOptions(timeout=0.05)
pool = ThreadPoolExecutor(16)


def queue(op: str = "FIFOQueueV2", *types: Any, shapes: Any = ((),), name: str = "q", **attrs: Any) -> Node:
    shapes = tuple(None if s is None else ShapeAttr(s) for s in shapes)
    return Node(name, op, attrs={"component_types": types or (INT,), "shapes": shapes, **attrs})


def ops(*types: Any, shapes: Any = None, handle: str = "q") -> list[Node]:
    """The ops of a queue. `x0`, `x1`...: the enqueued components. `n`: the number of dequeued elements."""
    types = types or (INT,)
    fed = [f"x{i}" for i in range(len(types))]
    takes, gives = {"component_types": types}, {"Tcomponents": types}
    return [
        *(placeholder(name, shape, dtype) for name, shape, dtype in
          zip(fed, shapes or [None] * len(types), types, strict=True)),
        placeholder("n", None, INT),
        Node("put", "QueueEnqueueV2", (handle, *fed), attrs=gives),
        Node("puts", "QueueEnqueueManyV2", (handle, *fed), attrs=gives),
        Node("get", "QueueDequeueV2", (handle,), attrs=takes),
        Node("gets", "QueueDequeueManyV2", (handle, "n"), attrs=takes),
        Node("rest", "QueueDequeueUpToV2", (handle, "n"), attrs=takes),
        Node("size", "QueueSizeV2", (handle,)), Node("closed", "QueueIsClosedV2", (handle,)),
        Node("close", "QueueCloseV2", (handle,)),
        Node("kill", "QueueCloseV2", (handle,), attrs={"cancel_pending_enqueues": True}),
    ]


class Driven:
    """A session with one queue."""

    def __init__(self, queue_node: Node, *types: Any) -> None:
        self.session = heald.Session(graph(queue_node, *ops(*types)))
        self.results = [f"{{}}:{i}" for i in range(len(types) or 1)]

    def enqueue(self, *x: Any, op: str = "put", options: Any = None) -> None:
        feeds = {f"x{i}": part for i, part in enumerate(x)}
        self.session.run([], feeds, targets=[op], options=options)

    def puts(self, *x: Any, options: Any = None) -> None:
        self.enqueue(*x, op="puts", options=options)

    def get(self, op: str = "get", n: int | None = None, options: Any = None) -> Any:
        got = self.session.run([r.format(op) for r in self.results], {} if n is None else {"n": n}, options=options)
        return [x.tolist() for x in got] if len(got) > 1 else got[0].tolist()

    def do(self, target: str) -> None:
        self.session.run([], targets=[target])

    def size(self) -> int:
        return int(self.session.run("size"))


@pytest.fixture
def q() -> Iterator[Driven]:
    driven = Driven(queue(capacity=3))
    yield driven
    driven.session.close()


def begin(work: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
    """Something that is being done, and waits."""
    future = pool.submit(work, *arguments, **named)
    time.sleep(0.03)
    assert not future.done(), future.exception()
    return future


def test_elements_come_in_the_order_in_which_they_went(q: Driven) -> None:
    q.puts([1, 2])
    q.enqueue(3)
    assert (q.size(), q.get(), q.get("gets", 2), q.size()) == (3, 1, [2, 3], 0)


def test_none_at_all_are_given_and_taken_at_once(q: Driven) -> None:
    assert (q.get("gets", 0), q.get("rest", 0)) == ([], [])
    q.puts([])
    q.do("close")
    q.puts([])
    assert q.get("gets", 0) == []


@pytest.mark.parametrize("call", [
    lambda q: q.puts(5), lambda q: q.enqueue([1, 2]), lambda q: q.puts([[1, 2]]), lambda q: q.get("gets", -1),
    lambda q: q.get("gets", [1]),
])
def test_an_element_that_does_not_fit_is_an_error(q: Driven, call: Callable[[Driven], Any]) -> None:
    with pytest.raises(InvalidArgument):
        call(q)
    assert q.size() == 0


def test_an_empty_queue_blocks_its_consumer(q: Driven) -> None:
    waiting = begin(q.get)
    q.enqueue(4)
    assert (waiting.result(5), q.size()) == (4, 0)


def test_a_full_queue_blocks_its_producer(q: Driven) -> None:
    q.enqueue(1)
    waiting = begin(q.puts, [2, 3, 4, 5])
    assert (q.size(), q.get(), q.get("gets", 3)) == (3, 1, [2, 3, 4])
    waiting.result(5)
    assert q.get() == 5


def test_more_may_be_taken_at_once_than_there_is_room_for(q: Driven) -> None:
    waiting = begin(q.get, "gets", 5)
    q.puts([1, 2, 3, 4, 5, 6])
    assert (waiting.result(5), q.get()) == ([1, 2, 3, 4, 5], 6)


def test_those_who_wait_are_served_in_the_order_in_which_they_came(q: Driven) -> None:
    pair = begin(q.get, "gets", 2)
    single = begin(q.get)
    q.enqueue(1)
    time.sleep(0.03)
    assert [pair.done(), single.done()] == [False, False]
    q.enqueue(2)
    assert pair.result(5) == [1, 2]
    assert not single.done()
    q.enqueue(3)
    assert single.result(5) == 3


def test_a_timeout_leaves_the_queue_as_it_was_and_nobody_waiting(q: Driven) -> None:
    q.enqueue(1)
    for op in ("gets", "rest"):
        with pytest.raises(DeadlineExceeded):
            q.get(op, 2, options=SOON)
        assert q.size() == 1
    q.puts([2, 3])
    with pytest.raises(DeadlineExceeded):
        q.enqueue(9, options=SOON)
    assert q.get("gets", 3) == [1, 2, 3]
    with pytest.raises(DeadlineExceeded):
        q.get(options=SOON)
    q.enqueue(4)
    assert (q.size(), q.get()) == (1, 4)


def test_the_next_consumer_gets_the_elements_of_one_that_gave_up(q: Driven) -> None:
    q.puts([1, 2])
    cancel = heald.CancelToken()
    first = begin(q.get, "gets", 3, options=heald.RunOptions(cancel=cancel))
    second = begin(q.get)
    cancel.cancel()
    with pytest.raises(Cancelled):
        first.result(5)
    assert (second.result(5), q.get()) == (1, 2)


def test_a_closed_queue_gives_what_it_has(q: Driven) -> None:
    q.puts([1, 2, 3])
    assert not q.session.run("closed")
    q.do("close")
    assert q.session.run("closed")
    assert (q.get(), q.get("rest", 5)) == (1, [2, 3])
    for op, n in (("get", None), ("gets", 1), ("rest", 1)):
        with pytest.raises(OutOfRange, match=r"FIFOQueue 'q' is closed and has insufficient elements \(requested 1, "
                                             r"current size 0\)"):
            q.get(op, n)
    for call in (lambda: q.enqueue(1), lambda: q.puts([1])):
        with pytest.raises(Cancelled, match="FIFOQueue 'q' is closed"):
            call()
    with pytest.raises(Cancelled, match="'q' is already closed"):
        q.do("close")
    q.do("kill")


def test_too_few_are_left_to_others(q: Driven) -> None:
    q.puts([1, 2])
    q.do("close")
    with pytest.raises(OutOfRange, match="requested 3, current size 2"):
        q.get("gets", 3)
    assert (q.size(), q.get("gets", 2)) == (2, [1, 2])


def test_closing_a_queue_ends_the_waiting_of_its_consumers(q: Driven) -> None:
    q.enqueue(1)
    pair, others = begin(q.get, "gets", 2), begin(q.get, "rest", 2)
    q.do("close")
    with pytest.raises(OutOfRange):
        pair.result(5)
    assert others.result(5) == [1]


def test_closing_a_queue_waits_for_earlier_producers(q: Driven) -> None:
    q.puts([1, 2, 3])
    putting, closing, late = begin(q.enqueue, 4), begin(q.do, "close"), begin(q.enqueue, 5)
    assert not q.session.run("closed")
    assert q.get() == 1
    putting.result(5)
    closing.result(5)
    with pytest.raises(Cancelled, match="is closed"):
        late.result(5)
    assert q.get("rest", 5) == [2, 3, 4]


def test_cancelling_the_producers_closes_a_queue_at_once(q: Driven) -> None:
    q.puts([1, 2])
    putting, closing = begin(q.puts, [3, 4]), begin(q.do, "close")
    q.do("kill")
    for future in (putting, closing):
        with pytest.raises(Cancelled, match="Enqueue operation was cancelled"):
            future.result(5)
    assert q.get("gets", 3) == [1, 2, 3]


def test_closing_the_session_ends_all_waiting(q: Driven) -> None:
    waiting = begin(q.get)
    q.session.close()
    with pytest.raises(Cancelled):
        waiting.result(5)
    with pytest.raises(FailedPrecondition):
        q.size()


def test_sessions_have_queues_of_their_own_and_nodes_of_one_shared_name_share_one() -> None:
    model = graph(queue(shared_name="s"), queue(shared_name="s", name="other"), *ops(),
                  Node("there", "QueueSizeV2", ("other",)))
    session = heald.Session(model)
    session.run([], {"x0": 1}, targets=["put"])
    assert (session.run("there"), heald.Session(model).run("there")) == (1, 0)


@pytest.mark.parametrize("other", [
    queue("FIFOQueueV2", FLOAT), queue(capacity=5), queue(shapes=((2,),)), queue("PaddingFIFOQueueV2"),
])
def test_a_shared_queue_is_of_one_kind(other: Node) -> None:
    session = heald.Session(graph(queue(shared_name="s"), other.replace(name="o", attrs={"shared_name": "s"}),
                                 Node("a", "QueueSizeV2", ("q",)), Node("b", "QueueSizeV2", ("o",))))
    assert session.run("a") == 0
    with pytest.raises(InvalidArgument, match="FIFOQueue 's'"):
        session.run("b")


@pytest.mark.parametrize("queue_node", [
    queue(shapes=((None,),)), queue(shapes=((), ())), queue("PaddingFIFOQueueV2", shapes=(None,)),
    queue("RandomShuffleQueueV2", min_after_dequeue=-1), queue("RandomShuffleQueueV2", min_after_dequeue=3, capacity=3),
    queue("PriorityQueueV2", shapes=((None,),)),
])
def test_queues_that_cannot_be_are_errors(queue_node: Node) -> None:
    with pytest.raises(InvalidArgument):
        heald.Session(graph(queue_node, Node("size", "QueueSizeV2", ("q",)))).run("size")


def test_a_queue_without_a_capacity_always_has_room() -> None:
    q = Driven(queue())
    q.puts(list(range(1000)))
    assert q.size() == 1000


def test_components_stay_together() -> None:
    q = Driven(queue("FIFOQueueV2", STRING, FLOAT, shapes=((), (2,))), STRING, FLOAT)
    q.puts(array([b"a", b"b"]), [[1, 2], [3, 4]])
    q.enqueue(b"c", [5, 6])
    assert q.get() == [b"a", [1, 2]]
    assert q.get("gets", 2) == [[b"b", b"c"], [[3, 4], [5, 6]]]
    with pytest.raises(InvalidArgument):
        q.puts(array([b"a", b"b"]), [[1, 2]])


def test_elements_without_shapes_are_taken_one_by_one() -> None:
    q = Driven(queue(shapes=()))
    q.enqueue([1, 2])
    q.enqueue([[3]])
    assert (q.get(), q.get()) == ([1, 2], [[3]])
    for op in ("gets", "rest"):
        with pytest.raises(InvalidArgument, match="shapes"):
            q.get(op, 1)


def test_elements_of_several_shapes_are_padded() -> None:
    q = Driven(queue("PaddingFIFOQueueV2", INT, STRING, shapes=((None, 2), (None,))), INT, STRING)
    q.enqueue([[1, 2]], array([b"x", b"y"]))
    q.enqueue([[1, 2], [3, 4]], array([]))
    assert q.get("gets", 2) == [[[[1, 2], [0, 0]], [[1, 2], [3, 4]]], [[b"x", b"y"], [b"", b""]]]
    assert [x.shape for x in q.session.run(["gets:0", "gets:1"], {"n": 0})] == [(0, 0, 2), (0, 0)]
    with pytest.raises(InvalidArgument, match="component 0"):
        q.enqueue([1, 2], array([b"x"]))


def test_a_shuffling_queue_gives_what_tensorflow_gives_for_the_same_seeds() -> None:
    q = Driven(queue("RandomShuffleQueueV2", capacity=100, min_after_dequeue=4, seed=7, seed2=3))
    q.puts(list(range(20)))
    assert [q.get() for _ in range(4)] == [13, 12, 8, 4]
    assert (q.get("gets", 6), q.get("gets", 6)) == ([14, 0, 15, 16, 2, 1], [18, 17, 19, 9, 6, 10])
    with pytest.raises(DeadlineExceeded):
        q.get(options=SOON)
    q.do("close")
    assert q.get("rest", 9) == [5, 11, 7, 3]


def test_a_shuffling_queue_without_a_seed_shuffles_and_loses_nothing() -> None:
    orders = []
    for _ in range(2):
        q = Driven(queue("RandomShuffleQueueV2"))
        q.puts(list(range(200)))
        orders.append(q.get("gets", 200))
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(200))
    assert orders[0] != orders[1]


def test_the_smallest_priority_comes_first() -> None:
    q = Driven(queue("PriorityQueueV2", STRING), LONG, STRING)
    q.puts(np.array([5, 1, 3, 1]), array([b"five", b"one", b"three", b"uno"]))
    assert (q.get(), q.get("gets", 2), q.get()) == ([1, b"one"], [[1, 3], [b"uno", b"three"]], [5, b"five"])


def test_a_queued_element_is_a_copy() -> None:
    q = Driven(queue("FIFOQueueV2", FLOAT, shapes=((2,),)), FLOAT)
    element = np.ones(2, np.float32)
    q.enqueue(element)
    element[:] = 5
    many = np.ones((2, 2), np.float32)
    q.puts(many)
    many[:] = 6
    assert [q.get() for _ in range(3)] == [[1, 1]] * 3


def test_a_computed_element_stays_when_the_memory_is_used_again() -> None:
    session = heald.Session(graph(
        queue("FIFOQueueV2", FLOAT, shapes=((2,),)), placeholder("x", (2,)), node("y", "Neg", "x"),
        Node("put", "QueueEnqueueV2", ("q", "y"), attrs={"Tcomponents": (FLOAT,)}),
        node("z", "Exp", "y"), node("w", "Exp", "z"),
        Node("get", "QueueDequeueV2", ("q",), attrs={"component_types": (FLOAT,)})), {"debug": {"poison": True}})
    for i in range(3):
        session.run("w", {"x": np.float32([i, i])}, targets=["put"])
    assert [session.run("get").tolist() for _ in range(3)] == [[0, 0], [-1, -1], [-2, -2]]


def test_a_handle_gives_its_types_before_the_run() -> None:
    queue_graph = graph(queue("FIFOQueueV2", FLOAT, shapes=((2,),)), const("four", 4, np.int32),
                 Node("known", "QueueDequeueManyV2", ("q", "four"), attrs={"component_types": (FLOAT,)}),
                 Node("other", "QueueDequeueV2", ("q",), attrs={"component_types": (INT,)}), const("x", [1, 2, 3]),
                 Node("put", "QueueEnqueueV2", ("q", "x"), attrs={"Tcomponents": (FLOAT,)}),
                 Node("soon", "QueueDequeueV2", ("q",), attrs={"component_types": (FLOAT,), "timeout_ms": 5}))
    session = heald.Session(queue_graph)
    assert str(session.prepare("known").program.functions["main"].result_metas[0]) == "float32[4,2]"
    for fetches, targets in ((["other"], []), ([], ["put"]), (["soon"], [])):
        with pytest.raises(InvalidArgument):
            session.prepare(fetches, targets=targets)


@pytest.mark.parametrize(("types", "shapes", "call"), [
    ((INT,), ((2,),), lambda q: q.enqueue(1)), ((INT,), ((2,),), lambda q: q.puts([[1]])),
    ((FLOAT,), ((),), lambda q: q.enqueue(1)), ((FLOAT,), ((),), lambda q: q.get()),
    ((INT,), (), lambda q: q.get("gets", 1)), ((INT, INT), (), lambda q: q.get("rest", 1)),
])
def test_an_element_that_does_not_fit_an_unknown_queue_fails_at_its_use(types: Any, shapes: Any, call: Any) -> None:
    """Of a handle that was packed and unpacked nothing is known before the run."""
    q = Driven(queue())
    q.session = heald.Session(graph(
        queue("FIFOQueueV2", *types, shapes=shapes, name="made"),
        Node("pack", "Pack", ("made",), attrs={"T": dtypes.resource, "N": 1, "axis": 0}),
        Node("q", "Unpack", ("pack",), attrs={"T": dtypes.resource, "num": 1, "axis": 0}), *ops()))
    with pytest.raises(InvalidArgument, match="FIFOQueue|component 0"):
        call(q)
    assert q.size() == 0


def test_an_unknown_queue_is_used_like_others() -> None:
    session = heald.Session(graph(
        queue(name="made"), Node("pack", "Pack", ("made",), attrs={"T": dtypes.resource, "N": 1, "axis": 0}),
        Node("q", "Unpack", ("pack",), attrs={"T": dtypes.resource, "num": 1, "axis": 0}), *ops()))
    session.run([], {"x0": [1, 2, 3]}, targets=["puts"])
    assert (session.run("get"), session.run("gets", {"n": 2}).tolist()) == (1, [2, 3])


def test_a_handle_of_another_kind_is_an_error() -> None:
    session = heald.Session(graph(Node("q", "VarHandleOp", attrs={"dtype": INT, "shape": None}),
                                 Node("size", "QueueSizeV2", ("q",))))
    with pytest.raises(InvalidArgument, match="a Queue is expected here, given a Variable"):
        session.run("size")


def test_values_of_unknown_shape_are_checked_when_they_come() -> None:
    """The values of Where have a shape that only the run tells."""
    session = heald.Session(graph(
        queue("FIFOQueueV2", LONG, shapes=((1,),)), placeholder("x", None), node("w", "Where", "x"),
        Node("puts", "QueueEnqueueManyV2", ("q", "w"), attrs={"Tcomponents": (LONG,)}),
        Node("get", "QueueDequeueV2", ("q",), attrs={"component_types": (LONG,)})))
    session.run([], {"x": [0, 1, 1]}, targets=["puts"])
    assert [session.run("get").tolist() for _ in range(2)] == [[1], [2]]
    with pytest.raises(InvalidArgument):
        session.run([], {"x": [[0, 1]]}, targets=["puts"])


def test_a_node_after_an_enqueue_waits_for_it() -> None:
    """By a control edge: the op has no result that anybody could wait for."""
    session = heald.Session(graph(queue(capacity=1), *ops(), Node("after", "QueueSizeV2", ("q", "^put"))))
    assert session.run("after", {"x0": 1}) == 1
    waiting = begin(session.run, "after", {"x0": 2})
    assert session.run("get") == 1
    assert waiting.result(5) == 1


def test_an_error_names_the_node(q: Driven) -> None:
    q.do("close")
    with pytest.raises(OutOfRange) as caught:
        q.get()
    assert (caught.value.node, caught.value.op) == ("get", "QueueDequeueV2")


def test_readers_of_files_are_not_run() -> None:
    session = heald.Session(graph(Node("r", "TFRecordReaderV2"), queue("FIFOQueueV2", STRING),
                                 Node("read", "ReaderReadV2", ("r", "q"))))
    with pytest.raises(Unimplemented, match=r"TFRecordReaderV2|ReaderReadV2"):
        session.run("read")


@pytest.mark.parametrize("kind", ["FIFOQueueV2", "RandomShuffleQueueV2"])
def test_threads_lose_and_repeat_nothing(kind: str) -> None:
    """Among them some who take what there is, wait for more than will ever come, and give up."""
    q = Driven(queue(kind, capacity=4))
    elements_per_thread, takers = 60, 3
    elements_of_takers: list[list[int]] = [[] for _ in range(takers)]

    def bring(first: int) -> None:
        for x in range(first, first + elements_per_thread, 6):
            q.enqueue(x)
            q.puts(list(range(x + 1, x + 6)))

    def take(elements: list[int], n: int) -> None:
        with suppress(OutOfRange):
            while True:
                elements += q.get("rest", n)

    def want_too_much() -> None:
        with suppress(OutOfRange):
            while True:
                with suppress(DeadlineExceeded):
                    q.get("gets", 10_000, options=heald.RunOptions(timeout=0.002))

    work = [pool.submit(take, elements, 1 + i) for i, elements in enumerate(elements_of_takers)]
    work += [pool.submit(want_too_much) for _ in range(2)]
    for done in [pool.submit(bring, elements_per_thread * i) for i in range(4)]:
        done.result(60)
    q.do("close")
    for done in work:
        done.result(60)
    assert sorted(x for elements in elements_of_takers for x in elements) == list(range(4 * elements_per_thread))


def test_one_bringer_and_one_taker_keep_the_order() -> None:
    q = Driven(queue(capacity=2))
    thread = threading.Thread(target=lambda: [q.enqueue(i) for i in range(100)])
    thread.start()
    got = [q.get() for _ in range(100)]
    thread.join()
    assert got == list(range(100))
