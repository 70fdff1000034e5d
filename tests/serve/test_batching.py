"""Batching: requests of equal shapes run together, others do not wait for them, and each has its own deadline."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from time import monotonic

import heald
import numpy as np
import pytest
from harness.serve_models import infos, signature
from heald.errors import Cancelled, DeadlineExceeded, InvalidArgument, Unavailable
from heald_serve.batching import Batcher, Batchers
from heald_serve.batching_parameters import BatchingParameters
from heald_serve.metrics import Metrics
from heald_serve.models.servable import Servable
from heald_serve.predict import Prediction

HOUR = 3_600_000_000


class Model:
    """A model that doubles its rows, notes their shapes, and may wait for `gate`."""

    def __init__(self):
        self.shapes, self.gate, self.begun, self.fault = [], Event(), Event(), None
        self.gate.set()
        signatures = signature(infos(x="float32"), infos(y="float32"), self.run)
        servable = Servable("m", 1, Path("m"))
        servable.load(lambda _: signatures)
        self.lease = servable.lease()
        self.signature = signatures["serving_default"]

    def run(self, x):
        self.shapes.append(x.shape)
        self.begun.set()
        assert self.gate.wait(30)
        if self.fault is not None:
            raise self.fault
        return 2 * x

    def ask(self, *shape, start=0.0, seconds=None, cancel=None):
        rows = np.arange(np.prod(shape), dtype="f").reshape(shape) + np.float32(start)
        deadline = None if seconds is None else monotonic() + seconds
        return Prediction(self.lease, self.signature, {"x": rows}, deadline, cancel)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def batcher_of(model):
    batchers = []

    def make(**changes):
        changes = {"num_batch_threads": 1, "batch_timeout_micros": HOUR} | changes
        if "max_execution_batch_size" not in changes and "max_batch_size" in changes:
            changes["max_execution_batch_size"] = changes["max_batch_size"]
        batchers.append(Batcher(BatchingParameters()._replace(**changes), Metrics()))
        return batchers[-1]

    yield make
    model.gate.set()
    for batcher in batchers:
        batcher.close()


def test_requests_of_equal_shapes_run_together(model, batcher_of):
    batcher = batcher_of(max_batch_size=4)
    futures = [batcher.submit(model.ask(1, 2, start=k)) for k in range(2)] + [batcher.submit(model.ask(2, 2, start=9))]
    assert [future.result(30)["y"].tolist() for future in futures] == [
        [[0, 2]], [[2, 4]], [[18, 20], [22, 24]]]
    assert model.shapes == [(4, 2)]


def test_a_request_runs_when_it_has_waited(model, batcher_of):
    batcher = batcher_of(max_batch_size=4, batch_timeout_micros=0)
    assert batcher.submit(model.ask(1, 2)).result(30)["y"].tolist() == [[0, 2]]


def test_another_shape_does_not_wait(model, batcher_of):
    batcher = batcher_of(max_batch_size=2)
    waiting = batcher.submit(model.ask(1, 3))
    assert batcher.submit(model.ask(2, 2)).result(30)["y"].shape == (2, 2)
    assert not waiting.done()
    batcher.submit(model.ask(1, 3)).result(30)
    assert waiting.result(30)["y"].shape == (1, 3)


def test_a_deadline_in_the_middle_of_a_batch_frees_that_request_alone(model, batcher_of):
    batcher = batcher_of(max_batch_size=2)
    model.gate.clear()
    late, patient = batcher.submit(model.ask(1, 2, seconds=0.05)), batcher.submit(model.ask(1, 2, start=1))
    assert model.begun.wait(30)
    with pytest.raises(DeadlineExceeded):
        late.result(30)
    assert not patient.done()
    model.gate.set()
    assert patient.result(30)["y"].tolist() == [[2, 4]]


def test_a_request_that_leaves_before_its_batch_runs_takes_no_place_in_it(model, batcher_of):
    batcher = batcher_of(max_batch_size=2)
    model.gate.clear()
    first = [batcher.submit(model.ask(1, 2)) for _ in range(2)]
    assert model.begun.wait(30)
    token = heald.CancelToken()
    left, stays = batcher.submit(model.ask(1, 2, cancel=token)), batcher.submit(model.ask(1, 2, start=5))
    token.cancel()
    with pytest.raises(Cancelled):
        left.result(30)
    model.gate.set()
    assert stays.result(30)["y"].tolist() == [[10, 12]]
    assert model.shapes == [(2, 2), (1, 2)]
    assert all(future.result(30) for future in first)


def test_a_batch_that_all_have_left_is_cancelled(model, batcher_of):
    options = []

    def call(inputs, run_options):
        options.append(run_options)
        model.run(inputs["x"])
        return inputs

    batcher = batcher_of(max_batch_size=1)
    model.gate.clear()
    token = heald.CancelToken()
    future = batcher.submit(model.ask(1, 2, cancel=token)._replace(signature=model.signature._replace(call=call)))
    assert model.begun.wait(30)
    token.cancel()
    with pytest.raises(Cancelled):
        future.result(30)
    assert options[0].cancel.is_cancelled


def test_an_error_reaches_all_requests_of_the_batch_and_the_thread_goes_on(model, batcher_of):
    batcher = batcher_of(max_batch_size=2)
    model.fault = ValueError("boom")
    for future in [batcher.submit(model.ask(1, 2)) for _ in range(2)]:
        assert "boom" in str(future.exception(30))
    model.fault = None
    futures = [batcher.submit(model.ask(1, 2)) for _ in range(2)]
    assert [future.result(30)["y"].tolist() for future in futures] == [[[0, 2]]] * 2


def test_a_batch_is_filled_up_to_an_allowed_size(model, batcher_of):
    batcher = batcher_of(max_batch_size=8, allowed_batch_sizes=(4, 8), batch_timeout_micros=0)
    assert batcher.submit(model.ask(3, 2)).result(30)["y"].shape == (3, 2)
    assert model.shapes == [(4, 2)]


def test_a_large_request_is_split_with_the_option_and_refused_without(model, batcher_of):
    split = batcher_of(max_batch_size=8, max_execution_batch_size=3, enable_large_batch_splitting=True,
                       batch_timeout_micros=0)
    assert split.submit(model.ask(8, 1)).result(30)["y"].reshape(-1).tolist() == [2 * k for k in range(8)]
    assert max(shape[0] for shape in model.shapes) == 3
    with pytest.raises(InvalidArgument, match="Task size 9 is larger than maximum input batch size 8"):
        batcher_of(max_batch_size=8).submit(model.ask(9, 1))


def test_rows_of_other_lengths_are_padded_with_the_option(model, batcher_of):
    batcher = batcher_of(max_batch_size=2, pad_variable_length_inputs=True)
    short, long = batcher.submit(model.ask(1, 1, start=7)), batcher.submit(model.ask(1, 3))
    assert short.result(30)["y"].tolist() == [[14, 14, 14]]
    assert long.result(30)["y"].tolist() == [[0, 2, 4]]


def test_a_full_queue_refuses(model, batcher_of):
    batcher = batcher_of(max_batch_size=1, max_enqueued_batches=1)
    model.gate.clear()
    running = batcher.submit(model.ask(1, 2))
    assert model.begun.wait(30)
    waiting = batcher.submit(model.ask(1, 2))
    with pytest.raises(Unavailable, match="queue to which this task was submitted is full"):
        batcher.submit(model.ask(1, 2))
    model.gate.set()
    assert running.result(30)
    assert waiting.result(30)


@pytest.mark.parametrize("arrays", [{"x": np.float32(1)}, {"x": np.zeros(2, "f"), "z": np.zeros(3, "f")}])
def test_inputs_need_one_first_dimension(model, batcher_of, arrays):
    with pytest.raises(InvalidArgument, match="equal 0th-dimension size"):
        batcher_of().submit(model.ask(1)._replace(inputs=arrays))


def test_outputs_need_the_rows_of_the_batch(model, batcher_of):
    batcher = batcher_of(max_batch_size=2)
    broken = model.signature._replace(call=lambda inputs, options: {"y": np.float32(1)})
    for future in [batcher.submit(model.ask(1, 2)._replace(signature=broken)) for _ in range(2)]:
        assert "0th dimension does not equal" in str(future.exception(30))


def test_the_end_fails_requests_that_wait(model, batcher_of):
    batcher = batcher_of(max_batch_size=9)
    waiting = batcher.submit(model.ask(1, 2))
    batcher.close()
    assert isinstance(waiting.exception(30), Unavailable)
    with pytest.raises(Unavailable):
        batcher.submit(model.ask(1, 2))


def test_a_version_s_own_file_decides_with_the_option(model, tmp_path):
    (tmp_path / "batching_params.pbtxt").write_text("max_batch_size { value: 2 } num_batch_threads { value: 9 }")
    batchers = Batchers(BatchingParameters(num_batch_threads=1), Metrics(), per_model=True)
    assert batchers.of(model.ask(1, 2)) is None
    model.lease.path = tmp_path
    batcher = batchers.of(model.ask(1, 2))
    assert batchers.of(model.ask(1, 2)) is batcher
    with pytest.raises(InvalidArgument, match="larger than maximum input batch size 2"):
        batcher.submit(model.ask(3, 2))
    batchers.close()


def test_batching_joins_requests_over_http(start):
    shapes = []

    def run(x):
        shapes.append(x.shape)
        return x

    from concurrent.futures import ThreadPoolExecutor

    from harness.serve_models import Client

    parameters = BatchingParameters(max_batch_size=3, max_execution_batch_size=3, batch_timeout_micros=HOUR,
                                    num_batch_threads=1)
    server, client = start({"F": signature(infos(x="float32"), infos(y="float32"), run)}, batching=parameters)
    clients = [client, Client(server.port), Client(server.port)]
    with ThreadPoolExecutor(3) as threads:
        answers = [*threads.map(lambda asker: asker.predict("F", {"instances": [1]}).json, clients)]
    for asker in clients[1:]:
        asker.close()
    assert answers == [{"predictions": [1.0]}] * 3
    assert shapes == [(3,)]
    assert "heald_serve_batching_session_wrapped_run_count 1" in client.ask("GET", "/metrics").body.decode()


@pytest.mark.parametrize(("rows", "size"), [(1, 1), (3, 4), (5, 8), (33, 64), (64, 64), (65, 65), (90, 90)])
def test_a_small_batch_is_filled_up_to_a_power_of_two(model, batcher_of, rows, size):
    batcher = batcher_of(max_batch_size=100, batch_timeout_micros=0)
    assert batcher.submit(model.ask(rows, 2)).result(30)["y"].shape == (rows, 2)
    assert model.shapes == [(size, 2)]


def test_a_batch_is_filled_up_to_the_largest_size_at_most(model, batcher_of):
    assert batcher_of(max_batch_size=6, batch_timeout_micros=0).submit(model.ask(5, 2)).result(30)
    assert model.shapes == [(6, 2)]
