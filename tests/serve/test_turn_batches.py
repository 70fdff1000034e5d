"""Requests of a small model that join in the event loop, and the number of rows that join."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from harness.serve_models import Client, infos, signature
from heald.errors import HealdError, Unavailable
from heald_serve import turn_batches
from heald_serve.batching import Batcher
from heald_serve.batching_parameters import BatchingParameters
from heald_serve.brief_runs import BRIEF_SECONDS, FIRST_NEED, RunTimes
from heald_serve.joined_rows import FIRST_RUNS, SLOW_RUNS, JoinedRows
from heald_serve.later import Later, convert_later, value_of
from heald_serve.metrics import Metrics
from heald_serve.models.servable import Servable
from heald_serve.predict import Prediction

SIZES = (1, 2, 4, 8)


def proven_times(*tail, most_rows=8):
    """Times of a signature whose batches of so many rows have been brief."""
    times = RunTimes()
    for size in SIZES:
        inputs = {"x": np.zeros((size, *tail), np.float32)}
        for _ in range(8 * FIRST_NEED):
            times.add(inputs, BRIEF_SECONDS / 2)
        times.join_rows(inputs)
    times.joined_rows(inputs).most_rows = most_rows
    return times


class Model:
    """A model that doubles its rows, notes their shapes and threads, and fails for a negative number."""

    def __init__(self, times):
        self.shapes, self.threads = [], []
        (row,) = signature(infos(x="float32"), infos(y="float32"), self.run).values()
        self.signatures = {row.name: row._replace(times=times)}
        servable = Servable("m", 1, Path("m"))
        servable.load(lambda _: self.signatures)
        self.lease = servable.lease()

    def run(self, x):
        self.shapes.append(x.shape)
        self.threads.append(threading.current_thread().name)
        if (x < 0).any():
            raise ValueError("a negative number")
        return 2 * x

    def ask(self, *rows):
        (served,) = self.signatures.values()
        return Prediction(self.lease, served, {"x": np.array(rows, np.float32)})


@pytest.fixture
def batcher():
    batchers = []

    def make(**changes):
        batchers.append(Batcher(BatchingParameters(max_batch_size=8, max_execution_batch_size=8,
                                                   num_batch_threads=1)._replace(**changes), Metrics()))
        return batchers[-1]

    yield make
    for each in batchers:
        each.close()


def join(batcher, *predictions):
    """The outcomes of requests of one turn; None for one that does not join."""
    async def wait(later):
        if later is None:
            return None
        try:
            return (await value_of(later))["y"].tolist()
        except HealdError as error:
            return str(error)

    async def run():
        return await asyncio.gather(*[wait(later) for later in [batcher.join_turn(row) for row in predictions]])

    return asyncio.run(run())


def test_requests_of_a_turn_run_together_in_the_loop(batcher):
    model = Model(proven_times())
    assert join(batcher(), model.ask(1), model.ask(2, 3), model.ask(4)) == [[2], [4, 6], [8]]
    assert model.shapes == [(4,)]
    assert model.threads == [threading.current_thread().name]


def test_a_batch_of_a_turn_runs_when_it_is_full_and_is_filled_up_to_a_size(batcher):
    model = Model(proven_times(most_rows=4))
    assert join(batcher(), *[model.ask(number) for number in range(7)]) == [[2 * number] for number in range(7)]
    assert model.shapes == [(4,), (4,)]


def test_an_error_reaches_the_request_that_caused_it(batcher):
    model = Model(proven_times())
    good, bad, other = join(batcher(), model.ask(1), model.ask(-1), model.ask(3))
    assert (good, other) == ([2], [6])
    assert "a negative number" in bad


def test_other_shapes_do_not_join(batcher):
    times = proven_times()
    times.joined_rows({"x": np.zeros(1, np.float32)})
    for size in SIZES:
        inputs = {"x": np.zeros((size, 2), np.float32)}
        for _ in range(8 * FIRST_NEED):
            times.add(inputs, BRIEF_SECONDS / 2)
        times.join_rows(inputs)
    model = Model(times)
    assert join(batcher(), model.ask(1), model.ask([1, 2]), model.ask(3)) == [[2], [[2, 4]], [6]]
    assert sorted(model.shapes) == [(1, 2), (2,)]


@pytest.mark.parametrize("rows", [(), range(9)])
def test_a_request_without_rows_and_one_with_too_many_do_not_join(batcher, rows):
    model = Model(proven_times())
    assert join(batcher(), model.ask(*rows)) == [None]
    assert not model.shapes


@pytest.mark.parametrize("changes", [{"times": None}, {"times": RunTimes()}, {"pad_variable_length_inputs": True}])
def test_requests_that_are_not_proven_to_be_brief_do_not_join(batcher, changes):
    model = Model(changes.pop("times", proven_times()))
    assert join(batcher(**changes), model.ask(1)) == [None]


def test_a_size_that_is_not_proven_runs_in_a_thread_of_the_batches(batcher):
    times = proven_times()
    for _ in range(9):
        times.add({"x": np.zeros(2, np.float32)}, 10 * BRIEF_SECONDS)
    model = Model(times)
    assert join(batcher(thread_pool_name="mine"), model.ask(1), model.ask(2)) == [[2], [4]]
    assert model.threads == ["mine-0"]


def test_an_ended_batcher_joins_nothing(batcher):
    model, ended = Model(proven_times()), batcher()
    ended.close()
    assert join(ended, model.ask(1)) == [None]


def test_the_size_with_the_least_time_a_row_joins():
    joined = JoinedRows()
    for _ in range(4 * FIRST_RUNS):
        for size, seconds in ((1, 10e-6), (2, 12e-6), (4, 16e-6), (8, 100e-6)):
            joined.add(size, seconds)
    for _ in range(FIRST_RUNS):
        joined.add(4, 16e-6)
    assert joined.most_rows == 4


def test_the_double_of_the_best_size_is_tried():
    joined = JoinedRows()
    joined.add(1, 10e-6)
    assert joined.most_rows == 2
    joined.add(2, 10e-6)
    assert joined.most_rows == 4


def test_sizes_that_are_not_brief_are_left_out_until_none_is_left():
    joined = JoinedRows()
    for _ in range(FIRST_RUNS):
        joined.add(1, 10e-6)
    for _ in range(SLOW_RUNS):
        joined.add_slow(2)
    assert joined.most_rows == 1
    for _ in range(SLOW_RUNS):
        joined.add_slow(1)
    assert joined.most_rows == 0


def test_a_later_value_is_handed_on_in_either_order():
    outcomes = []
    early, late = Later(), Later()
    early.resolve(1)
    for later in (early, late):
        convert_later(later, lambda value: value + 1).then(outcomes.append)
    late.resolve(2)
    assert outcomes == [2, 3]
    failed = Later()
    failed.resolve(Unavailable("full"))
    convert_later(failed, lambda outcome: 1 / 0).then(outcomes.append)
    assert isinstance(outcomes[2], HealdError)


def test_batched_requests_of_all_fronts_have_the_answers_of_the_model(start, monkeypatch):
    monkeypatch.setattr(turn_batches, "CROWDED_TURN", 0)
    model = Model(proven_times(2))
    server, client = start({"m": model.signatures}, batching=BatchingParameters(num_batch_threads=1))
    binary = {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, 2.0]}]}
    for _ in range(3):
        assert client.predict("m", {"instances": [[1.5, 2.0]]}).body == b'{"predictions": [[3.0, 4.0]]}'
        assert client.predict("m", {"inputs": [[1.5, 2.0]]}).json == {"outputs": [[3.0, 4.0]]}
        assert client.ask("POST", "/v2/models/m/infer", binary).json["outputs"][0]["data"] == [3.0, 4.0]
        answer = client.predict("m", {"instances": [[-1.0, 2.0]]})
        assert (answer.status, "a negative number" in answer.error) == (500, True)
    assert {*model.threads} == {"heald-serve-http"}
    assert server.metrics.request_count.value("m", "OK") == 9
    assert server.metrics.request_count.value("m", "INTERNAL") == 3
    assert server.predictor.pending == 0


def test_concurrent_clients_of_a_batched_model_get_their_own_rows(start):
    model = Model(proven_times(2))
    _, client = start({"m": model.signatures}, batching=BatchingParameters(num_batch_threads=1))
    clients = [Client(client.port) for _ in range(8)]

    def ask(number):
        return [clients[number].predict("m", {"instances": [[number, turn]]}).json for turn in range(20)]

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(ask, range(8))]
    for each in clients:
        each.close()
    assert answers == [[{"predictions": [[2.0 * number, 2.0 * turn]]} for turn in range(20)] for number in range(8)]


def test_requests_sent_before_an_answer_are_answered_in_order(start, monkeypatch):
    monkeypatch.setattr(turn_batches, "CROWDED_TURN", 0)
    model = Model(proven_times(2))
    _, client = start({"m": model.signatures}, batching=BatchingParameters(num_batch_threads=1))
    with socket.create_connection(("127.0.0.1", client.port), 30) as connection:
        for number in range(6):
            body = b'{"instances": [[%d, 0]]}' % number
            connection.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                               % len(body) + body)
        received = b""
        while received.count(b"}") < 6:
            received += connection.recv(65536)
    assert [received.find(b"[[%d.0, 0.0]]" % (2 * number)) for number in range(6)] == sorted(
        received.find(b"[[%d.0, 0.0]]" % (2 * number)) for number in range(6))
    assert received.count(b"HTTP/1.1 200") == 6
