"""AsyncValues: complete once, tell everybody who waits, never recurse."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref

import pytest
from heald.errors import Cancelled, FailedPrecondition, Internal, InvalidArgument
from heald.runtime.values.async_value import DEAD, READY, AsyncValue, available, error_among, failed, when_available
from hypothesis import given
from hypothesis import strategies as st

BOOM = InvalidArgument("boom")


@pytest.mark.parametrize(("value", "facts"), [
    (AsyncValue(), (False, False, False)), (available(3), (True, False, False)), (READY, (True, False, False)),
    (failed(BOOM), (True, True, False)), (DEAD, (True, False, True)),
])
def test_a_value_is_available_an_error_or_dead(value, facts):
    assert (value.is_available(), value.is_error(), value.is_dead()) == facts


def test_getting_gives_the_payload_or_raises_what_stands_instead():
    assert available(3).get() == 3
    assert READY.get() is None
    assert failed(BOOM).error is BOOM
    with pytest.raises(InvalidArgument, match="boom"):
        failed(BOOM).get()
    with pytest.raises(InvalidArgument, match="dead"):
        DEAD.get()
    with pytest.raises(FailedPrecondition, match="not available"):
        AsyncValue().get()


@pytest.mark.parametrize("complete", [
    lambda v: v.emplace(1), lambda v: v.set_error(BOOM), lambda v: v.forward_to(available(1)),
])
def test_a_value_is_completed_once(complete):
    value = AsyncValue()
    complete(value)
    for again in (lambda: value.emplace(2), lambda: value.set_error(BOOM), lambda: value.forward_to(AsyncValue())):
        with pytest.raises(Internal, match="twice"):
            again()
    with pytest.raises(Internal, match="twice"):
        available(1).emplace(2)


@pytest.mark.parametrize("complete", [
    lambda v: v.emplace(1), lambda v: v.set_error(BOOM), lambda v: v.forward_to(DEAD), lambda v: v.forward_to(READY),
])
def test_callbacks_run_once_in_order_and_late_ones_at_once(complete):
    value, calls = AsyncValue(), []
    for i in range(3):
        value.and_then(lambda i=i: calls.append(i))
    assert calls == []
    complete(value)
    value.and_then(lambda: calls.append("late"))
    assert calls == [0, 1, 2, "late"]


def test_a_forwarded_value_is_what_the_last_one_becomes():
    chain = [AsyncValue() for _ in range(4)]
    calls = []
    chain[0].and_then(lambda: calls.append(chain[0].get()))
    for a, b in itertools.pairwise(chain):
        a.forward_to(b)
    assert not chain[0].is_available()
    chain[-1].emplace("x")
    assert calls == ["x"]
    assert [v.get() for v in chain] == ["x"] * 4


def test_a_value_cannot_be_forwarded_in_a_circle():
    a, b = AsyncValue(), AsyncValue()
    a.forward_to(b)
    with pytest.raises(Internal, match="itself"):
        b.forward_to(a)


def test_a_chain_of_any_length_takes_no_stack():
    values = [AsyncValue() for _ in range(20_000)]
    for a, b in itertools.pairwise(values):
        a.and_then(lambda a=a, b=b: b.emplace(a.get() + 1))
    values[0].emplace(0)
    assert values[-1].get() == 19_999
    forwarded = [AsyncValue() for _ in range(20_000)]
    for a, b in itertools.pairwise(forwarded):
        a.forward_to(b)
    forwarded[-1].emplace(7)
    assert forwarded[0].get() == 7


class Silent:
    """A callback that raises, whose own code fails to return a text, too."""

    def __call__(self):
        raise ZeroDivisionError

    def __repr__(self):
        raise ValueError


def broken_hook(_report):
    raise RuntimeError("the hook is broken")


HOOKS = [(None, ""), (sys.__unraisablehook__, "ZeroDivisionError"), (broken_hook, "the hook is broken")]


@pytest.mark.parametrize(("hook", "report"), HOOKS)
@pytest.mark.parametrize("callback", [lambda: 1 / 0, Silent()])
def test_a_callback_that_raises_keeps_no_later_callback_of_its_thread_from_running(
    callback, hook, report, monkeypatch, capfd,
):
    monkeypatch.setattr(sys, "unraisablehook", hook)
    calls = []
    for number in range(2):
        value = AsyncValue()
        value.and_then(callback)
        value.and_then(lambda number=number: calls.append(number))
        value.emplace(None)
    assert calls == [0, 1]
    assert report in capfd.readouterr().err


def test_the_report_of_a_callback_that_raises_names_it(monkeypatch):
    reports = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reports.append(
        (type(report), report.exc_type, repr(report.object).partition(" <function")[0])))
    value = AsyncValue()
    value.and_then(lambda: 1 / 0)
    value.emplace(None)
    ((kind, error, text),) = reports
    assert kind.__name__ == "UnraisableHookArgs"
    assert (error, text) == (ZeroDivisionError, "a callback of an AsyncValue:")


def test_an_interrupt_in_a_callback_loses_no_other_callback():
    value, calls = AsyncValue(), []

    def raise_interrupt():
        raise KeyboardInterrupt

    value.and_then(raise_interrupt)
    value.and_then(lambda: calls.append(1))
    with pytest.raises(KeyboardInterrupt):
        value.emplace(None)
    assert calls == [1]


def test_a_payload_dies_with_its_last_user():
    class Resource:
        pass

    resource = Resource()
    resource_reference = weakref.ref(resource)
    value = AsyncValue()
    indirect = AsyncValue()
    indirect.forward_to(value)
    value.and_then(lambda: None)
    value.emplace(resource)
    del resource, value
    assert resource_reference() is not None
    del indirect
    gc.collect()
    assert resource_reference() is None


@given(st.lists(st.sampled_from(["wait", "emplace", "forward"]), max_size=12), st.data())
def test_in_any_order_of_events_every_callback_is_called_once(events, data):
    values = [AsyncValue() for _ in range(4)]
    waiting, calls = [], []
    for event in events:
        i = data.draw(st.integers(0, 3))
        if event == "wait":
            token = len(waiting)
            waiting.append(token)
            values[i].and_then(lambda token=token: calls.append(token))
        elif not values[i].is_available():
            try:
                values[i].emplace(i) if event == "emplace" else values[i].forward_to(values[(i + 1) % 4])
            except Internal:
                continue  # it was forwarded before, or would be to itself
    for value in values:
        if not value.is_available():
            try:
                value.emplace(0)
            except Internal:
                continue
    assert all(value.is_available() for value in values)
    assert sorted(calls) == waiting


def test_threads_that_wait_and_complete_at_once_lose_no_callback():
    for _ in range(200):
        value, calls, start = AsyncValue(), [], threading.Barrier(3)

        def wait(value=value, calls=calls, start=start):
            start.wait()
            for _ in range(20):
                value.and_then(lambda: calls.append(1))

        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        start.wait()
        value.emplace(None)
        for thread in threads:
            thread.join()
        assert len(calls) == 40


def test_a_callback_waits_for_all_of_several_values():
    values, called = [AsyncValue(), available(1), AsyncValue()], []
    when_available(values, lambda: called.append(error_among(values)))
    values[2].set_error(error := Cancelled("over"))
    assert called == []
    values[0].emplace(2)
    assert called == [error]
    when_available([], lambda: called.append("now"))
    assert called == [error, "now"]
