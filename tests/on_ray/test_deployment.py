"""The runs of a replica, without Serve's processes: joined requests, split outputs, and faults of one request."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from heald.errors import FailedPrecondition, InvalidArgument, NotFound

pytest.importorskip("ray.serve", reason="Ray Serve is not installed", exc_type=ImportError)
from heald_ray.deployment import ModelReplica, Prediction, make_application, run_predictions
from heald_ray.predictor import model_arguments

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
BATCH = {"max_batch_size": 4, "batch_wait_timeout_s": 0.0}
PREDICT = "/v1/models/digits:predict"


class Runs:
    """A signature that doubles x, and records the rows of its runs. A row of 13 fails the run."""

    name = "double"

    def __init__(self):
        self.rows = []

    def call(self, inputs, options):
        x = inputs["x"]
        self.rows.append(len(x) if x.ndim else None)
        if (x == 13).any():
            raise InvalidArgument("13 has no double")
        return {"y": x * 2}


def results_of(*arrays):
    signature = Runs()
    return run_predictions([Prediction(signature, {"x": np.asarray(array)}) for array in arrays]), signature.rows


def test_requests_of_equal_rows_share_a_run():
    results, rows = results_of([1, 2], [3], [4, 5, 6])
    assert [result["y"].tolist() for result in results] == [[2, 4], [6], [8, 10, 12]]
    assert rows == [6]


def test_requests_of_other_types_shapes_or_without_rows_run_alone():
    results, rows = results_of([1], [[2]], [3.0], 4, [5])
    assert [result["y"].tolist() for result in results] == [[2], [[4]], [6.0], 8, [10]]
    assert rows == [2, 1, 1, None]


def test_the_fault_of_one_request_is_its_own():
    results, rows = results_of([1], [13], [3])
    assert [results[0]["y"].tolist(), results[2]["y"].tolist()] == [[2], [6]]
    assert isinstance(results[1], InvalidArgument)
    assert rows == [3, 1, 1, 1]


class RunsAtOnce:
    """Takes the place of Serve's batching, which works in a process of Serve alone."""

    def set_max_batch_size(self, size):
        assert size == BATCH["max_batch_size"]

    def set_batch_wait_timeout_s(self, seconds):
        assert seconds == BATCH["batch_wait_timeout_s"]

    async def __call__(self, prediction):
        return run_predictions([prediction])[0]


class Replica(ModelReplica):
    run_batch = RunsAtOnce()


@pytest.fixture(scope="module")
def ask():
    """A function from a method, a path and a body to the status and the document of the answer."""
    replica = Replica("digits", model_arguments(DIGITS / "frozen.pb", model_on_workers=True, device="CPU:0"), BATCH)

    def answer_of(method, path, document=None, prefix=""):
        async def stream():
            yield (document if isinstance(document, bytes) else json.dumps(document).encode())

        async def call():
            return await replica(SimpleNamespace(method=method, stream=stream, scope={
                "path": prefix + path, "raw_path": (prefix + path).encode(), "query_string": b"",
                "root_path": prefix}))

        response = asyncio.run(call())
        return response.status_code, json.loads(response.body)

    return answer_of


@pytest.mark.parametrize("prefix", ["", "/models"])
def test_both_forms_of_a_body_are_answered_behind_any_prefix(ask, prefix):
    digits = np.load(DIGITS / "test.npz")
    images = digits["image"][:2].tolist()
    status, rows = ask("POST", PREDICT, {"instances": images}, prefix)
    assert status == 200
    assert [row["Identity"] for row in rows["predictions"]] == digits["digit"][:2].tolist()
    status, columns = ask("POST", PREDICT, {"inputs": images}, prefix)
    assert status == 200
    assert columns["outputs"]["Identity"] == digits["digit"][:2].tolist()


def test_status_and_metadata_name_version_1(ask):
    assert ask("GET", "/v1/models/digits")[1]["model_version_status"][0]["state"] == "AVAILABLE"
    assert ask("GET", "/v1/models/digits/metadata")[1]["model_spec"]["version"] == "1"


@pytest.mark.parametrize(("method", "path", "document", "status"), [
    ("POST", "/v1/models/other:predict", {"instances": [1]}, 404),
    ("POST", "/v1/models/digits/versions/2:predict", {"instances": [1]}, 404),
    ("POST", "/v1/models/digits:classify", {"examples": []}, 501),
    ("DELETE", PREDICT, {}, 400),
    ("GET", "/nowhere", {}, 400),
    ("POST", PREDICT, b"{", 400),
    ("POST", PREDICT, {}, 400),
    ("POST", PREDICT, {"instances": ["text"]}, 400),
    ("POST", PREDICT, {"instances": [[1.0]]}, 400),
    ("POST", PREDICT, {"signature_name": "nope", "instances": [1]}, 400),
])
def test_a_bad_request_has_a_status_and_an_error(ask, method, path, document, status):
    assert ask(method, path, document)[0] == status
    assert ask(method, path, document)[1]["error"]


@pytest.mark.parametrize("bounds", [{"max_batch_size": 0}, {"batch_wait_timeout_s": -1.0},
                                    {"batch_wait_timeout_s": float("nan")}, {"max_batch_size": 2.5},
                                    {"max_batch_size": "8"}, {"batch_wait_timeout_s": None}])
def test_bounds_of_a_batch_that_no_batch_has_are_refused(bounds):
    with pytest.raises(InvalidArgument, match="a batch has at least one request"):
        make_application(DIGITS / "frozen.pb", name="digits", model_on_workers=True, **bounds)


@pytest.mark.parametrize("name", ["", "a/b", "a:b", "a#b", 3])
def test_a_name_that_no_path_has_is_refused(name):
    with pytest.raises(InvalidArgument, match="is no name of a model"):
        make_application(DIGITS / "frozen.pb", name=name, model_on_workers=True)


@pytest.mark.parametrize("options", [
    {"autoscaling_config": {"min_replicas": 5, "max_replicas": 2}}, {"autoscaling_config": {"max_replicas": "many"}},
    {"num_replicas": -1}, {"num_replicas": 2, "autoscaling_config": {"min_replicas": 1}}, {"max_ongoing_requests": 0},
    {"max_queued_requests": -5}, {"unknown": 1}, {"ray_actor_options": {"unknown": 1}}, {"ray_actor_options": 3},
])
def test_options_that_serve_refuses_are_invalid(options):
    with pytest.raises(InvalidArgument, match="Serve refuses the options of 'digits'"):
        make_application(DIGITS / "frozen.pb", name="digits", model_on_workers=True, **options)


def test_an_application_needs_a_connection_before_ray_chooses_a_cluster():
    with pytest.raises(FailedPrecondition, match="connected to no cluster"):
        make_application(DIGITS / "frozen.pb", name="digits", model_on_workers=True)


def test_a_model_that_is_absent_on_a_worker_is_not_found():
    with pytest.raises(NotFound):
        ModelReplica("x", model_arguments("absent.pb", model_on_workers=True), BATCH)
