"""The core: threads, deadlines, cancellation, refusals, and the names of inputs and outputs."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from threading import Event
from time import monotonic

import heald
import heald_serve.predict as predict
import numpy as np
import pytest
from harness.serve_models import echo, infos, signature
from heald.errors import Cancelled, DeadlineExceeded, Internal, InvalidArgument, Unavailable
from heald_serve.deadlines import Deadlines
from heald_serve.models.servable import Servable
from heald_serve.predict import Prediction, Predictor, check_filter, choose_outputs


def prediction_of(signatures, inputs, **changes):
    servable = Servable("m", 1, Path("m"))
    servable.load(lambda _: signatures)
    return Prediction(servable.lease(), next(iter(signatures.values())), inputs)._replace(**changes)


@pytest.fixture
def predictor():
    predictor = Predictor(1, 1)
    yield predictor
    predictor.close()


ONE = {"x": np.float32(1)}


def test_a_prediction_gives_outputs_by_name(predictor):
    assert predictor.submit(prediction_of(echo(x="float32"), ONE)).result(30) == ONE


def test_more_requests_than_may_wait_are_refused(predictor):
    gate, begun = Event(), Event()

    def run(x):
        begun.set()
        assert gate.wait(30)
        return x

    slow = signature(infos(x="float32"), infos(y="float32"), run)
    futures = [predictor.submit(prediction_of(slow, ONE))]
    assert begun.wait(30)
    futures.append(predictor.submit(prediction_of(slow, ONE)))
    assert predictor.pending == 2
    with pytest.raises(Unavailable, match="run or wait already"):
        predictor.submit(prediction_of(slow, ONE))
    gate.set()
    assert [future.result(30)["y"] for future in futures] == [1, 1]
    assert predictor.submit(prediction_of(slow, ONE)).result(30)["y"] == 1


@pytest.fixture
def clock(monkeypatch):
    """A list with the time that the predictor measures."""
    clock = [0.0]
    monkeypatch.setattr(predict, "perf_counter", lambda: clock[0])
    return clock


def test_slow_runs_lower_the_number_of_requests_that_may_wait(clock):
    predictor, gate = Predictor(1, 64, queue_seconds=0.05), Event()

    def run(x):
        assert gate.wait(30)
        clock[0] += 0.02
        return x

    slow = signature(infos(x="float32"), infos(y="float32"), run)
    gate.set()
    try:
        for _ in range(20):
            predictor.submit(prediction_of(slow, ONE)).result(30)
        gate.clear()
        futures = [predictor.submit(prediction_of(slow, ONE)) for _ in range(2)]
        with pytest.raises(Unavailable, match="run or wait already"):
            futures += [predictor.submit(prediction_of(slow, ONE)) for _ in range(3)]
        assert predictor.is_full()
        gate.set()
        assert [future.result(30)["y"] for future in futures] == [1] * len(futures)
        assert not predictor.is_full()
    finally:
        predictor.close()


@pytest.mark.usefixtures("clock")
def test_fast_runs_leave_all_the_places_to_waiting_requests():
    predictor = Predictor(1, 3, queue_seconds=5.0)
    gate = Event()
    held = signature(infos(x="float32"), infos(y="float32"), lambda x: gate.wait(30) and x)
    try:
        for _ in range(20):
            predictor.submit(prediction_of(echo(x="float32"), ONE)).result(30)
        futures = [predictor.submit(prediction_of(held, ONE)) for _ in range(4)]
        with pytest.raises(Unavailable):
            predictor.check_room()
        gate.set()
        assert [future.result(30)["y"] for future in futures] == [1] * 4
    finally:
        predictor.close()


def test_a_request_past_its_deadline_or_cancelled_does_not_start(predictor):
    runs = []
    model = signature(infos(x="float32"), infos(y="float32"), runs.append)
    with pytest.raises(DeadlineExceeded):
        predictor.submit(prediction_of(model, ONE, deadline=monotonic() - 1)).result(30)
    token = heald.CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        predictor.submit(prediction_of(model, ONE, cancel=token)).result(30)
    assert runs == []


def test_an_exception_of_a_model_is_a_typed_error(predictor):
    def fail(x):
        raise KeyError("boom")

    with pytest.raises(Internal, match="boom"):
        predictor.submit(prediction_of(signature(infos(x="float32"), infos(y="float32"), fail), ONE)).result(30)


def test_an_ended_predictor_refuses():
    predictor = Predictor(1)
    predictor.close()
    with pytest.raises(Unavailable):
        predictor.submit(prediction_of(echo(x="float32"), ONE))


@pytest.mark.parametrize(("names", "text"), [
    ("a", r"input size does not match signature: 1!=2 len\({a}\) != len\({a,b}\)"),
    ("abc", r"input size does not match signature: 3!=2 .*Sent extra: {c}"),
    ("ac", r"Signature input alias: b\(feed name: b:0\) not found in request")])
def test_inputs_are_the_signature_s(predictor, names, text):
    with pytest.raises(InvalidArgument, match=text):
        predictor.submit(prediction_of(echo(a="float32", b="float32"), dict.fromkeys(names, np.float32(1))))


def test_a_filter_chooses_outputs():
    model = echo(a="float32", b="float32")["serving_default"]
    outputs = {"a": 1, "b": 2}
    assert choose_outputs(outputs, []) == outputs
    assert choose_outputs(outputs, ["b"]) == {"b": 2}
    check_filter(model, ["b", "a"])
    with pytest.raises(InvalidArgument, match="output tensor alias not found in signature: c"):
        check_filter(model, ["c"])
    with pytest.raises(InvalidArgument, match="duplicate output tensor alias: a"):
        check_filter(model, ["a", "a"])


def test_deadlines_act_in_order_and_dropped_ones_do_not():
    deadlines, acted, done, gate = Deadlines("test-deadlines"), [], Event(), Event()
    now = monotonic()
    deadlines.add(now, lambda: gate.wait(30))  # the thread waits until all are there
    deadlines.add(now + 0.02, lambda: (acted.append(2), done.set()))
    dropped = [deadlines.add(now + 3600, lambda: acted.append(3)) for _ in range(100)]
    deadlines.add(now + 0.01, lambda: acted.append(1))
    for number in dropped:
        deadlines.drop(number)
    gate.set()
    assert done.wait(30)
    deadlines.close()
    assert acted == [1, 2]
    Deadlines("never started").close()


@pytest.mark.parametrize(("wanted", "array", "text"), [
    ("float32", np.array([b"a"], object), "to be float but string is provided"),
    ("string", np.float32([1]), "to be string but float is provided"),
    ("bool", np.array([b"1"], object), "to be bool but string is provided"),
    ("string", np.array([True]), "to be string but bool is provided"),
    ("float32", np.float64([1]), "to be float but double is provided"),
    ("float32", np.float16([1]), "to be float but half is provided"),
    ("float32", np.array([True]), "to be float but bool is provided"),
    ("int64", np.int32([1]), "to be int64 but int32 is provided"),
    ("int32", np.int64([1]), "to be int32 but int64 is provided"),
    ("bool", np.uint8([1]), "to be bool but uint8 is provided")])
def test_inputs_of_another_type_are_refused_in_the_words_of_the_protocol(predictor, wanted, array, text):
    with pytest.raises(InvalidArgument, match=f"Expects input x {text}"):
        predictor.submit(prediction_of(echo(x=wanted), {"x": array}))


class Bursts:
    """A batching that ends its requests together."""

    def __init__(self):
        self.futures = []

    def submit(self, prediction):
        self.futures.append(Future())
        return self.futures[-1]

    def end(self):
        futures, self.futures = self.futures, []
        for future in futures:
            future.set_result({})


def test_requests_that_end_together_share_the_time_of_their_batch(clock):
    bursts = Bursts()
    predictor = Predictor(1, 64, queue_seconds=0.5, batching_of=lambda _: bursts)
    model = echo(x="float32")
    try:
        for _ in range(8):
            for _ in range(16):
                predictor.submit(prediction_of(model, ONE))
            clock[0] += 0.03
            bursts.end()
        for _ in range(100):  # the time of a request is 2 ms
            predictor.submit(prediction_of(model, ONE))
        for _ in range(1000):
            if predictor.is_full():
                break
            predictor.submit(prediction_of(model, ONE))
        with pytest.raises(Unavailable, match="run or wait already"):
            predictor.submit(prediction_of(model, ONE))
        bursts.end()
        assert not predictor.is_full()
    finally:
        predictor.close()
