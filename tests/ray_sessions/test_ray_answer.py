"""RayAnswer against a Ray of this process: answers, waits with a limit, callbacks, and errors as Unavailable."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from heald.errors import DataLoss, Unavailable
from heald_ray.call_message import pack_call
from heald_ray.ray_answer import RayAnswer, wait_for_answers


class Reference:
    """A reference to an object of Ray, as a future."""

    def __init__(self) -> None:
        self.object: Future = Future()

    def future(self) -> Future:
        return self.object


def get(reference):
    return reference.object.result()


def wait(references, *, num_returns, timeout):
    assert num_returns == 1
    event = threading.Event()
    for reference in references:
        reference.object.add_done_callback(lambda _: event.set())
    event.wait(timeout)
    ready = [reference for reference in references if reference.object.done()][:1]
    return ready, [reference for reference in references if reference not in ready]


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=get, wait=wait))


def answers(count: int = 1) -> tuple[list[Reference], list[RayAnswer]]:
    references = [Reference() for _ in range(count)]
    return references, [RayAnswer(reference, task) for task, reference in enumerate(references)]


def test_an_answer_of_one_value_and_one_of_several_are_unpacked():
    (one, several), (first, second) = answers(2)
    one.object.set_result(pack_call([True, 3])[0])
    several.object.set_result(pack_call([True, bytes(1 << 21)], pieces=False))
    assert first.result() == [True, 3]
    assert second.result() == [True, bytes(1 << 21)]
    assert first.done()
    assert second.exception() is None


def test_a_wait_returns_the_answers_that_are_there_and_ends_without_one():
    references, calls = answers(3)
    assert wait_for_answers(calls, 0.01) == set()
    references[1].object.set_result(pack_call(1)[0])
    assert wait_for_answers(calls, 5) == {calls[1]}
    assert wait_for_answers(calls, 5) == {calls[1]}  # an answer that was taken ends the wait at once
    references[0].object.set_result(pack_call(0)[0])
    assert wait_for_answers([calls[0], calls[2]], 5) == {calls[0]}


def test_a_result_that_does_not_come_is_a_timeout():
    _, (call,) = answers()
    with pytest.raises(TimeoutError):
        call.result(0.01)


def test_a_callback_is_called_without_a_waiting_thread():
    (reference,), (call,) = answers()
    results: list[object] = []
    call.add_done_callback(lambda done: results.append(done.result()))
    call.add_done_callback(lambda done: results.append("second"))
    reference.object.set_result(pack_call("x")[0])
    assert results == ["x", "second"]
    call.add_done_callback(lambda done: results.append("later"))
    assert results[-1] == "later"


def test_a_callback_has_its_answer_and_asks_ray_for_nothing(monkeypatch):
    monkeypatch.setattr(sys.modules["ray"], "get", None)  # a call on a thread of Ray's own might wait for that thread
    references, calls = answers(2)
    for call in calls:
        call.add_done_callback(lambda done: done.exception())
    references[0].object.set_result(pack_call("x")[0])
    references[1].object.set_exception(RuntimeError("actor is dead"))
    assert calls[0].result() == "x"
    assert isinstance(calls[1].exception(), Unavailable)


def test_threads_that_wait_for_one_answer_all_get_it():
    (reference,), (call,) = answers()
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(call.result(5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    reference.object.set_result(pack_call(7)[0])
    for thread in threads:
        thread.join()
    assert results == [7] * 8


@pytest.mark.parametrize("error", [RuntimeError("actor is dead\nstack"), OSError(), MemoryError("store")])
def test_an_error_of_ray_is_unavailable_with_the_worker(error):
    (_, reference), (_, call) = answers(2)
    reference.object.set_exception(error)
    with pytest.raises(Unavailable, match="task:1 died: ") as raised:
        call.result()
    assert raised.value.device == "/job:worker/replica:0/task:1"
    assert "stack" not in str(raised.value)


def test_a_damaged_answer_is_data_loss():
    (reference,), (call,) = answers()
    reference.object.set_result(b"damaged")
    assert isinstance(call.exception(), DataLoss)
