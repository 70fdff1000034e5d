"""Steps and tokens end once, whoever comes first, and tell everybody who wants to know, once."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from functools import partial

import pytest
from threads import in_threads
from weft.errors import Aborted, Cancelled
from weft.runtime import runtime
from weft.step import CancelToken, Step


def test_a_token_calls_back_in_the_order_of_asking_and_at_once_when_it_is_cancelled():
    token, called = CancelToken(), []
    for name in "abc":
        token.on_cancel(lambda name=name: called.append(name))
    token.cancel()
    token.on_cancel(lambda: called.append("late"))
    token.cancel()
    assert called == ["a", "b", "c", "late"]


def test_a_token_does_not_call_what_was_forgotten():
    token, called = CancelToken(), []
    kept, forgotten = token.on_cancel(lambda: called.append("kept")), token.on_cancel(lambda: called.append("not"))
    token.forget(forgotten)
    token.forget(forgotten)
    token.cancel()
    token.forget(kept)
    assert called == ["kept"]


def test_a_callback_may_use_the_token_that_calls_it():
    token, called = CancelToken(), []
    token.on_cancel(lambda: (token.cancel(), token.on_cancel(lambda: called.append("inner")), called.append("outer")))
    token.cancel()
    assert called == ["inner", "outer"]


@pytest.fixture
def switching():
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_every_callback_is_called_exactly_once_whoever_cancels_and_asks_meanwhile():
    for _ in range(100):
        token, together, calls = CancelToken(), threading.Barrier(4), []

        def work(thread, token=token, together=together, calls=calls):
            together.wait()
            for i in range(10):
                token.on_cancel(partial(calls.append, (thread, i)))
                if i == 5 and thread < 2:
                    token.cancel()

        in_threads(work)
        assert Counter(calls) == {(thread, i): 1 for thread in range(4) for i in range(10)}


@pytest.mark.usefixtures("switching")
def test_what_is_forgotten_meanwhile_is_called_once_or_not_at_all_and_never_later():
    for _ in range(100):
        token, together, calls = CancelToken(), threading.Barrier(4), []
        numbers = [token.on_cancel(partial(calls.append, i)) for i in range(40)]

        def work(thread, token=token, together=together, numbers=numbers):
            together.wait()
            if thread < 2:
                token.cancel()
            else:
                for number in numbers[thread::2]:
                    token.forget(number)

        in_threads(work)
        before = list(calls)
        token.cancel()
        assert calls == before
        assert not calls or max(Counter(calls).values()) == 1


@pytest.mark.usefixtures("switching")
def test_a_step_has_the_error_of_whoever_came_first_when_anybody_has_ended_it():
    for _ in range(100):
        step, together, seen, calls = Step(runtime().host), threading.Barrier(4), [], []
        step.on_cancel(lambda calls=calls: calls.append(1))

        def work(thread, step=step, together=together, seen=seen):
            together.wait()
            step.cancel(Aborted(f"by {thread}"))
            seen.append(step.error)

        in_threads(work)
        assert calls == [1]
        assert len(set(map(id, seen))) == 1
        assert isinstance(seen[0], Aborted)


def test_a_step_ends_with_its_parents_and_they_forget_it():
    token, called = CancelToken(), []
    ended, over = Step(runtime().host, parents=(token,)), Step(runtime().host, parents=(token,))
    for step in (ended, over):
        step.on_cancel(lambda step=step: called.append(step))
    over.close()
    token.cancel()
    assert called == [ended]
    assert isinstance(ended.error, Cancelled)
    assert over.error is None
