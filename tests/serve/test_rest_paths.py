"""Paths, states, metadata, classify and regress, metrics, probes and headers of the REST interface."""

from __future__ import annotations

import json
from threading import Event

import numpy as np
import pytest
from harness.serve_models import Client, echo, infos, signature, start_server
from heald.api import TensorInfo, TensorMetadata, dtypes
from heald_serve.messages import parse_message
from heald_serve.models.served_model import CLASSIFY, REGRESS
from heald_serve.settings import DEFAULT_METRICS_PATH

SEEN = []


def classify(inputs):
    SEEN.extend(inputs.tolist())
    count = len(inputs)
    return (np.array([[b"cat", b""]] * count, object), np.float32([[0.5, 0.25]] * count))


def regress(inputs):
    SEEN.extend(inputs.tolist())
    return np.full((len(inputs), 1), 1.5, "f")


SHAPED = {"x": TensorInfo("x:0", TensorMetadata(dtypes.float32, (None, 2)))}
MODELS = {
    "F": signature(SHAPED, infos(y="float32"), lambda x: 2 * x),
    "a/b c": echo(x="float32"),
    "E": signature(infos(inputs="string"), infos(classes="string", scores="float32"), classify, method=CLASSIFY)
    | signature(infos(inputs="string"), infos(outputs="float32"), regress, name="reg", method=REGRESS)
    | signature(infos(inputs="string"), infos(scores="float32"), lambda inputs: np.float32([1]), name="flat")
    | signature(infos(inputs="string"), infos(scores="float32"), lambda inputs: np.float32([[1]]), name="scores")
    | signature(infos(inputs="string"), infos(outputs="float64"), lambda inputs: np.float64([1]), name="wide")
    | signature(infos(x="string"), infos(scores="float32"), lambda x: x, name="other"),
}


@pytest.fixture(scope="module")
def client():
    server = start_server(MODELS, metrics_path=DEFAULT_METRICS_PATH)
    client = Client(server.port)
    yield client
    client.close()
    server.close()


@pytest.mark.parametrize(("method", "path", "status", "text"), [
    ("GET", "/v1/models/F", 200, "AVAILABLE"), ("GET", "/V1/MODELS/F", 200, "AVAILABLE"),
    ("GET", "/v1/models/F/versions/1", 200, "AVAILABLE"), ("GET", "/v1/models/F/labels/any", 200, "AVAILABLE"),
    ("GET", "/v1/models/a%2Fb%20c", 200, "AVAILABLE"), ("GET", "/v1/models/F/METADATA", 200, "AVAILABLE"),
    ("GET", "/v1/models", 400, "Missing model name in request."),
    ("GET", "/v1/models/no", 404, "Could not find any versions of model no"),
    ("GET", "/v1/models/a+b", 404, "Could not find any versions of model a+b"),
    ("GET", "/v1/models/F?a=1", 404, "Could not find any versions of model F?a=1"),
    ("GET", "/v1/models/F/versions/9", 404, "Could not find version 9 of model F"),
    ("GET", "/v1/models/F/versions/9/metadata", 404, "Servable not found for request: Specific(F, 9)"),
    ("GET", "/v1/models/F/versions/99999999999999999999", 400,
     "Failed to convert version: 99999999999999999999 to numeric."),
    ("GET", "/v1/models/F/versions/x", 400, "Malformed request: GET /v1/models/F/versions/x"),
    ("GET", "/v1/models/F:predict", 400, "Malformed request: GET /v1/models/F:predict"),
    ("POST", "/v1/models/F", 400, "Malformed request: POST /v1/models/F"),
    ("POST", "/v1/models/F:PREDICT", 400, "Malformed request: POST /v1/models/F:PREDICT"),
    ("POST", "/v1/models/F:predict?a=1", 400, "Malformed request: POST /v1/models/F:predict?a=1"),
    ("POST", "/v1/", 400, "Malformed request: POST /v1/"), ("PUT", "/v1/models/F", 400, "Malformed request: PUT /v1/"),
    ("DELETE", "/v1/models/F:predict", 400, "Malformed request: DELETE"),
    ("POST", "/v1/models/no:predict", 404, "Servable not found for request: Latest(no)"),
    ("POST", "/v1/models/F/versions/9:predict", 404, "Servable not found for request: Specific(F, 9)"),
    ("POST", "/v1/models/F/versions/1:predict", 200, "predictions"),
    ("POST", "/v1/models/F/versions/01:predict", 200, "predictions"),
    ("POST", "/V1/Models/F/Versions/1:predict", 200, "predictions"),
    ("POST", "/v1/models/a%2fb c:predict".replace(" ", "%20"), 200, "predictions"),
    ("POST", "/v1/models/F/labels/no:predict", 400, "Unrecognized servable version label: no"),
])
def test_a_path_is_matched_whole_with_its_query(client, method, path, status, text):
    answer = client.ask(method, path, None if method == "GET" else {"instances": [[1, 2]]})
    assert (answer.status, text in answer.body.decode()) == (status, True), answer.body
    assert answer.headers["content-type"] == "application/json"


def test_a_path_elsewhere_is_a_page(client):
    for path in ("/v3", "/v1", "/pages", "/favicon.ico", "/v1x/models"):
        answer = client.ask("GET", path)
        assert (answer.status, answer.headers["content-type"]) == (404, "text/html")
        assert b"<HTML>" in answer.body


def test_the_states_have_the_form_of_tensorflow_serving(client):
    assert client.ask("GET", "/v1/models/F").json == {"model_version_status": [
        {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]}


def test_the_metadata_have_the_form_of_tensorflow_serving(client):
    assert client.ask("GET", "/v1/models/F/metadata").json == {
        "model_spec": {"name": "F", "signature_name": "", "version": "1"},
        "metadata": {"signature_def": {"signature_def": {"serving_default": {
            "inputs": {"x": {"dtype": "DT_FLOAT", "name": "x:0", "tensor_shape": {
                "dim": [{"size": "-1", "name": ""}, {"size": "2", "name": ""}], "unknown_rank": False}}},
            "outputs": {"y": {"dtype": "DT_FLOAT", "name": "y:0", "tensor_shape": {"dim": [], "unknown_rank": True}}},
            "method_name": "tensorflow/serving/predict", "defaults": {}}}}}}


def infer(client, verb, **body):
    return client.ask("POST", f"/v1/models/E:{verb}", body)


def test_classify_and_regress_answer_with_results(client):
    examples = [{"age": 3}, {"age": 4}]
    assert infer(client, "classify", examples=examples).body == (
        b'{"results": [[["cat", 0.5], ["", 0.25]], [["cat", 0.5], ["", 0.25]]]}')
    assert infer(client, "regress", examples=examples, signature_name="reg").body == b'{"results": [1.5, 1.5]}'
    assert infer(client, "classify", examples=[{}], signature_name="scores").json == {"results": [[["", 1.0]]]}


def test_a_literal_decides_the_kind_of_a_feature(client):
    SEEN.clear()
    infer(client, "classify", context={"c": "x"}, examples=[
        {"i": 1, "b": True, "f": 1.0, "s": "a", "y": {"b64": "/w=="}, "l": [1, 2], "e": [],
         "m": ["a", {"b64": "Yg=="}]}])
    features = parse_message("tensorflow.Example", SEEN[0]).features.feature
    kinds = {name: (kind := feature.WhichOneof("kind"), kind and list(getattr(feature, kind).value))
             for name, feature in features.items()}
    assert kinds == {
        "c": ("bytes_list", [b"x"]), "i": ("int64_list", [1]), "b": ("int64_list", [1]), "f": ("float_list", [1.0]),
        "s": ("bytes_list", [b"a"]), "y": ("bytes_list", [b"\xff"]), "l": ("int64_list", [1, 2]), "e": (None, None),
        "m": ("bytes_list", [b"a", b"b"])}


@pytest.mark.parametrize("body", [
    {}, {"examples": []}, {"examples": {}}, {"examples": [1]}, {"examples": [{"a": None}]},
    {"examples": [{"a": [[1]]}]},
    {"examples": [{"a": {"b": 1}}]}, {"examples": [{"a": [1, 1.0]}]}, {"examples": [{"a": 1 << 63}]},
    {"examples": [{"a": 1}], "context": 7}, {"examples": [{"a": {"b64": "@"}}]},
    {"examples": [{"\ud800": 1}]}, {"examples": [{"a": 1e999}], "signature_name": "\ud800"}, {"instances": [1]},
    {"examples": [{}], "signature_name": "no"}, {"examples": [{}], "signature_name": "other"},
    {"examples": [{}], "signature_name": 7}, {"examples": [{}], "signature_name": "reg"},
    {"examples": [{}], "signature_name": "flat"}])
def test_a_wrong_body_of_classify_is_an_error(client, body):
    answer = infer(client, "classify", **body)
    assert (answer.status, bool(answer.error)) == (400, True)


def test_errors_of_classify_and_regress_have_their_texts(client):
    assert "When method is regress, key 'examples' is expected" in infer(client, "regress").error
    assert infer(client, "classify", examples=[{}], signature_name="no").error == (
        "No signature was found with the name: no")
    assert infer(client, "regress", examples=[{}], signature_name="wide").status == 400
    assert infer(client, "regress", examples=[{}]).status == 400  # the signature has no `outputs`


def test_metrics_have_the_names_of_tensorflow_serving(client):
    client.predict("F", {"instances": [[1, 2]]})
    client.predict("F", {"instances": []})
    text = client.ask("GET", DEFAULT_METRICS_PATH).body.decode()
    assert "# TYPE :tensorflow:serving:request_count counter" in text
    assert ':tensorflow:serving:request_count{model_name="F",status="OK"}' in text
    assert ':tensorflow:serving:request_count{model_name="F",status="INVALID_ARGUMENT"}' in text
    labels = 'model_name="F",API="Predict",entrypoint="predict",le="10"'
    assert f":tensorflow:serving:request_latency_bucket{{{labels}}}" in text
    assert ':tensorflow:serving:runtime_latency_count{model_name="F",API="Predict",runtime="TF1"}' in text
    assert 'le="+Inf"' in text
    assert client.ask("GET", f"{DEFAULT_METRICS_PATH}?a=1").status == 400
    plain = client.ask("GET", "/metrics").body.decode()
    assert 'heald_serve_request_count{model_name="F",status="OK"}' in plain
    assert "heald_serve_pending_requests 0" in plain


def test_names_of_strangers_make_no_metrics(client):
    for number in range(3):
        client.predict(f"stranger{number}", {"instances": [1]})
    text = client.ask("GET", "/metrics").body.decode()
    assert "stranger" not in text
    assert 'request_count{model_name="",status="NOT_FOUND"}' in text


def test_probes_answer(client):
    for path in ("/livez", "/readyz"):
        assert (client.ask("GET", path).status, client.ask("HEAD", path).body) == (200, b"")


def test_origins_are_allowed_with_the_option_alone(client, start):
    assert client.ask("OPTIONS", "/v1/models/F", Origin="https://page.example").status == 200
    assert client.ask("OPTIONS", "/v1/models/F").status == 400
    assert "access-control-allow-origin" not in client.ask("GET", "/v1/models/F", Origin="https://a").headers
    _, open_client = start({"F": echo(x="float32")}, rest_api_enable_cors_support=True)
    headers = open_client.ask("GET", "/v1/models/F").headers
    assert (headers["access-control-allow-origin"], headers["access-control-allow-methods"],
            headers["access-control-allow-headers"]) == ("*", "POST, GET", "Content-Type")


def test_trace_ids_go_through_and_into_the_log(start, capsys):
    for form in ("json", "text"):
        _, client = start({"F": echo(x="float32")}, access_log=form)
        answer = client.ask("POST", "/v1/models/F:predict", {"inputs": 1}, X_Request_Id="id-7")
        assert answer.headers["x-request-id"] == "id-7"
        assert "x-request-id" not in client.ask("GET", "/livez", X_Request_Id="a\tb").headers
        client.ask("GET", "/livez")  # the line of the first request is written before this answer
        line = capsys.readouterr().err.splitlines()[0]
        if form == "json":
            record = json.loads(line)
            assert (record["model"], record["status"], record["trace"]) == ("F", 200, "id-7")
        else:
            assert "POST /v1/models/F:predict 200 " in line
            assert line.endswith(" id-7")


def test_a_run_that_takes_too_long_is_ended(start):
    gate = Event()

    def run(x):
        gate.wait(30)
        return x

    _, client = start({"F": signature(infos(x="float32"), infos(y="float32"), run)}, rest_api_timeout_in_ms=50)
    answer = client.predict("F", {"inputs": 1})
    gate.set()
    assert (answer.status, "0.05 s" in answer.error) == (504, True)


@pytest.mark.parametrize(("path", "body"), [
    ("/v1/models/F:predict", {"inputs": 1}),
    ("/v2/models/F/infer", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [], "data": [1]}]})])
def test_a_client_that_disconnects_ends_its_run(start, path, body):
    begun, cancelled = Event(), Event()
    models = {"F": signature(infos(x="float32"), infos(y="float32"), lambda x: x)}
    (model,) = models["F"].values()

    def call(inputs, options):
        options.cancel.on_cancel(cancelled.set)
        begun.set()
        assert cancelled.wait(30)
        return {"y": inputs["x"]}

    models["F"] = {"serving_default": model._replace(call=call)}
    server, _ = start(models)
    leaving = Client(server.port)
    leaving.connection.request("POST", path, json.dumps(body))
    assert begun.wait(30)
    leaving.close()
    assert cancelled.wait(30)


def test_a_full_server_answers_503_with_retry_after(start):
    gate, begun = Event(), Event()

    def run(x):
        begun.set()
        gate.wait(30)
        return x

    models = {"F": signature(infos(x="float32"), infos(y="float32"), run)}
    server, client = start(models, rest_api_num_threads=1, max_queued_requests=0)
    busy = Client(server.port)
    busy.connection.request("POST", "/v1/models/F:predict", '{"inputs": 1}')
    assert begun.wait(30)
    answers = [client.predict("F", {"inputs": 1}), client.predict("F", b" " * 300_000), client.predict("F", "no JSON")]
    gate.set()
    assert [(answer.status, answer.headers["retry-after"]) for answer in answers] == 3 * [(503, "1")]
    assert busy.connection.getresponse().read() == b'{"outputs": 1.0}'
    assert client.predict("F", {"inputs": 1}).status == 200
    busy.close()
