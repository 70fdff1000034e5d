"""Steps and tokens end once, on the first request, and call each callback once."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from functools import partial
from types import SimpleNamespace

import pytest
from harness.threads import in_threads
from heald.errors import Aborted, Cancelled, Unavailable
from heald.runtime.executor import step as module
from heald.runtime.executor import step_loop as loop_module
from heald.runtime.executor.step import Step
from heald.runtime.host.cancellation import CancelToken
from heald.runtime.service.runtime import runtime
from heald.runtime.values.async_value import AsyncValue


def test_a_token_calls_back_in_the_order_of_asking_and_at_once_when_it_is_cancelled():
    token, called = CancelToken(), []
    for name in "abc":
        token.on_cancel(lambda name=name: called.append(name))
    token.cancel()
    token.on_cancel(lambda: called.append("late"))
    token.cancel()
    assert called == ["a", "b", "c", "late"]


def test_a_token_does_not_call_a_forgotten_callback():
    token, called = CancelToken(), []
    remaining_handle = token.on_cancel(lambda: called.append("kept"))
    forgotten = token.on_cancel(lambda: called.append("not"))
    token.forget(forgotten)
    token.forget(forgotten)
    token.cancel()
    token.forget(remaining_handle)
    assert called == ["kept"]


def test_a_callback_may_use_the_token_that_calls_it():
    token, called = CancelToken(), []
    token.on_cancel(lambda: (token.cancel(), token.on_cancel(lambda: called.append("inner")), called.append("outer")))
    token.cancel()
    assert called == ["inner", "outer"]


def do_with(work, other, position):
    """Do `work`, and `other` before the instruction of the module that has this number; False when there is none."""
    left = position

    def trace(frame, event, _argument):
        nonlocal left
        if frame.f_code.co_filename != module.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if left == 0:
                other()
            left -= 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return left < 0


ACTS = {
    "ask": lambda token, called, _: token.on_cancel(partial(called.append, "asked")),
    "cancel": lambda token, called, _: token.cancel(),
    "forget": lambda token, called, number: token.forget(number),
}


@pytest.mark.parametrize("other", ACTS)
@pytest.mark.parametrize("work", ACTS)
def test_a_token_calls_each_callback_once_with_any_work_between_two_of_its_instructions(work, other):
    for position in itertools.count():
        token, called = CancelToken(), []
        token_state = token, called, token.on_cancel(partial(called.append, "there"))
        within = do_with(partial(ACTS[work], *token_state), partial(ACTS[other], *token_state), position)
        done = [work, other] if within else [work]
        if "cancel" not in done:
            token.cancel()
        assert called.count("asked") == done.count("ask")
        assert called.count("there") == 1 or ("forget" in done and "there" not in called)
        if not within:
            return


def test_a_step_has_one_error_when_another_thread_ends_it_between_two_instructions_of_its_end():
    for position in itertools.count():
        step, errors_seen, called = Step(runtime().host), [], []
        step.on_cancel(partial(called.append, "there"))

        def end(name, step=step, errors_seen=errors_seen):
            step.cancel(Aborted(name))
            errors_seen.append(step.error)

        within = do_with(partial(end, "outer"), partial(end, "inner"), position)
        assert called == ["there"]
        assert set(errors_seen) == {step.error}
        assert isinstance(step.error, Aborted)
        if not within:
            return


def test_every_callback_is_called_exactly_once_whichever_threads_cancel_and_ask_meanwhile():
    for _ in range(50):
        token, together, calls = CancelToken(), threading.Barrier(4), []

        def work(thread, token=token, together=together, calls=calls):
            together.wait()
            for i in range(100):
                token.on_cancel(partial(calls.append, (thread, i)))
                if i == 50 and thread < 2:
                    token.cancel()

        in_threads(work)
        assert Counter(calls) == {(thread, i): 1 for thread in range(4) for i in range(100)}


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


class EndsAfterEachCheck(Step):
    """A step that another thread cancels right after the loop has asked whether it is cancelled."""

    def cancelled(self):
        is_cancelled = super().cancelled()
        self.cancel(Aborted("meanwhile"))
        return is_cancelled


def test_a_step_that_is_cancelled_while_its_loop_goes_to_rest_ends_and_does_not_wait_for_its_values():
    step = EndsAfterEachCheck(runtime().host)
    step.loop.expect(AsyncValue(), lambda: None)
    loop = step.loop
    step.detach()
    assert not loop.post(lambda: None)
    assert not step.has_loop


class FakeHost:
    """A host whose queue waits for no time: `meanwhile` happens while the loop's thread would sleep."""

    resources = None
    timeouts: list[float | None]

    def __init__(self, meanwhile):
        self.meanwhile, self.timeouts, self.work_queue = meanwhile, [], self

    def await_values(self, _, timeout):
        self.timeouts.append(timeout)
        self.meanwhile()

    def stop(self, step):
        pass

    def add_task(self, _):
        raise Unavailable("the queue is closed")


def test_a_step_whose_queue_is_closed_when_its_value_comes_ends_with_that_error():
    step, ended = Step(FakeHost(lambda: None)), []
    step.close = lambda: ended.append(step.error)
    value = AsyncValue()
    step.loop.expect(value, lambda: None)
    step.detach()
    assert not ended
    value.emplace(1)
    assert [type(error) for error in ended] == [Unavailable]


def test_a_cancelled_step_waits_for_kernels_that_have_started():
    value, came = AsyncValue(), []
    step = Step(FakeHost(lambda: value.emplace(1)))
    step.loop.expect(value, lambda: came.append(value.get()))
    step.cancel(Aborted("by the test"))
    step.loop.run()
    assert came == [1]


def test_a_cancelled_step_waits_for_a_limited_time_only(monkeypatch):
    monkeypatch.setattr(loop_module, "CANCEL_GRACE", 0.01)
    host = FakeHost(lambda: None)
    step = Step(host)
    step.loop.expect(AsyncValue(), lambda: None)
    step.cancel(Aborted("by the test"))
    step.loop.run()
    assert host.timeouts
    assert all(0 <= timeout <= 0.01 for timeout in host.timeouts)


def test_a_function_that_is_called_when_its_step_has_ended_does_not_run_and_its_results_are_the_steps_error():
    step, error = Step(FakeHost(lambda: None)), Aborted("by the test")
    loop, ran = step.loop, []
    waiting = loop.call(lambda: ran.append(1), 2)  # in the mail when the step ends
    step.cancel(error)
    loop.run()
    late = loop.call(lambda: ran.append(2), 1)
    assert [value.error for value in waiting] == [error, error]
    assert late[0].error is error
    assert not ran


def test_promises_that_are_made_while_the_others_are_broken_are_broken_too():
    step = Step(FakeHost(lambda: None))
    loop, broken = step.loop, []

    class Chained:
        """Calls that promise more, by others, when their promises are broken."""

        def __init__(self, left):
            self.left = left

        def break_promises(self, _):
            broken.append(self.left)
            if self.left:
                loop.post(lambda: loop.register_promises(Chained(self.left - 1)))

    loop.register_promises(Chained(2))
    step.cancel(Aborted("by the test"))
    loop.run()
    assert broken == [2, 1, 0]


def test_a_function_that_a_late_kernel_calls_after_the_run_gives_errors():
    step = Step(runtime().host)
    step.close()
    executable = SimpleNamespace(is_asynchronous=True, function=SimpleNamespace(results=(1, 2)))
    values = step.call(SimpleNamespace(executable=executable), [])
    assert [type(value.error) for value in values] == [Cancelled, Cancelled]
    assert not step.post(lambda: None)
