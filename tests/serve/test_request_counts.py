"""Counts, log and trace ids of requests: alike over REST, gRPC and both forms of version 2."""

from __future__ import annotations

import json
from threading import Event

import grpc
import numpy as np
import pytest
from harness.serve_grpc import PREDICTION, Caller, fault
from harness.serve_models import infos, signature
from heald.errors import DataLoss
from heald_serve.brief_runs import FIRST_NEED, RunTimes
from heald_serve.grpc.call_log import client_of
from heald_serve.grpc.services import HEALTH_SERVICE, INFERENCE_SERVICE
from heald_serve.grpc.tensors import write_tensor
from heald_serve.messages import message_class
from heald_serve.request_counts import CANCELLED, code_of

TOKEN = "".join(["sec", "ret"])
TRACES = {"x-request-id": "id-7", "traceparent": "00-a-b-01"}


class Forms:
    """Each form of a request for a model with the input x."""

    def __init__(self, start, model, **changes):
        self.server, self.client = start({"F": model}, grpc_port=0, **changes)
        self.caller = Caller(self.server.grpc_server.port)
        self.metadata = None

    def close(self):
        self.caller.close()

    def rest(self, model="F"):
        return self.client.ask("POST", f"/v1/models/{model}:predict", {"inputs": [1.0]}, **(self.metadata or {}))

    def v2(self, model="F"):
        row = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}
        return self.client.ask("POST", f"/v2/models/{model}/infer", {"inputs": [row]}, **(self.metadata or {}))

    def grpc(self, model="F"):
        request = message_class("PredictRequest")()
        request.model_spec.name = model
        write_tensor(request.inputs["x"], np.float32([1]))
        return self._call(PREDICTION, "Predict", request)

    def _call(self, service, method, request):
        metadata = None if self.metadata is None else tuple(self.metadata.items())
        try:
            return self.caller.stub(service, method).with_call(request, timeout=30, metadata=metadata)
        except grpc.RpcError as error:
            return error

    def infer_request(self, model="F"):
        request = message_class("inference.ModelInferRequest")(model_name=model, raw_input_contents=[
            np.float32([1]).tobytes()])
        request.inputs.add(name="x", datatype="FP32", shape=[1])
        return request

    def v2_grpc(self, model="F"):
        return self._call(INFERENCE_SERVICE, "ModelInfer", self.infer_request(model))

    def each(self, model="F"):
        return [form(model) for form in (self.rest, self.grpc, self.v2, self.v2_grpc)]

    def latencies(self):
        """The counts by API and entrypoint."""
        return {labels[1:]: cell.count for labels, cell in self.server.metrics.request_latency.cells()}


@pytest.fixture
def forms_of(start):
    made = []

    def make(model, **changes):
        made.append(Forms(start, model, **changes))
        return made[-1]

    yield make
    for forms in made:
        forms.close()


def model_of(function, times=None):
    (name, model), = signature(infos(x="float32"), infos(y="float32"), function).items()
    return {name: model._replace(times=times)}


ALL_FORMS = {("Predict", "predict"), ("Predict", "GRPC"), ("ModelInfer", "infer"), ("ModelInfer", "GRPC")}


def test_every_form_counts_its_requests_and_their_time(forms_of):
    forms = forms_of(model_of(lambda x: x))
    forms.each()
    assert forms.server.metrics.request_count.value("F", "OK") == 4
    assert forms.latencies() == dict.fromkeys(ALL_FORMS, 1)


def test_requests_that_the_event_loop_answers_are_counted_alike(forms_of):
    forms = forms_of(model_of(lambda x: x, RunTimes()))
    for _ in range(FIRST_NEED + 4):
        forms.each()
    assert forms.latencies() == dict.fromkeys(ALL_FORMS, FIRST_NEED + 4)


def test_every_request_of_a_stream_is_counted(forms_of):
    forms = forms_of(model_of(lambda x: x))
    requests = [forms.infer_request(), forms.infer_request("no"), forms.infer_request()]
    assert len([*forms.caller.call(INFERENCE_SERVICE, "ModelStreamInfer", iter(requests))]) == 3
    count = forms.server.metrics.request_count
    assert (count.value("F", "OK"), count.value("", "NOT_FOUND")) == (2, 1)


@pytest.mark.parametrize(("error", "status"), [(DataLoss("broken"), "DATA_LOSS"), (KeyError("k"), "INTERNAL")])
def test_every_form_counts_its_errors(forms_of, error, status):
    def fail(x):
        raise error

    forms = forms_of(model_of(fail))
    forms.each()
    forms.each("stranger")
    count = forms.server.metrics.request_count
    assert (count.value("F", status), count.value("", "NOT_FOUND"), forms.latencies()) == (4, 4, {})


def test_a_caller_that_cancels_is_counted(forms_of):
    begun, pause = Event(), Event()

    def call(arrays, options):
        gate = Event()
        options.cancel.on_cancel(gate.set)
        begun.set()
        assert gate.wait(30)
        return {"y": arrays["x"]}

    (name, model), = model_of(None).items()
    forms = forms_of({name: model._replace(call=call)})
    future = forms.caller.stub(INFERENCE_SERVICE, "ModelInfer").future(forms.infer_request())
    assert begun.wait(30)
    future.cancel()
    count = forms.server.metrics.request_count
    assert any(count.value("F", "CANCELLED") == 1 or pause.wait(0.01) for _ in range(3000))


def test_every_form_has_a_line_in_the_log_with_its_model_and_trace(forms_of, capsys):
    forms = forms_of(model_of(lambda x: x), access_log="json")
    forms.metadata = TRACES
    forms.each()
    forms.each("no")
    forms.client.ask("GET", "/livez")  # the lines before are written
    pause, lines = Event(), []
    for _ in range(3000):
        lines += capsys.readouterr().err.splitlines()
        if len(lines) >= 9 or pause.wait(0.01):
            break
    rows = {(row["method"], row["target"]): row for row in map(json.loads, lines) if row["model"]}
    assert {key: row["status"] for key, row in rows.items() if key[0] == "POST"} == {
        ("POST", "/v1/models/F:predict"): 200, ("POST", "/v2/models/F/infer"): 200,
        ("POST", "/v1/models/no:predict"): 404, ("POST", "/v2/models/no/infer"): 404}
    by_grpc = [row for row in map(json.loads, lines) if row["method"] == "gRPC"]
    assert sorted((row["target"], row["status"], row["model"]) for row in by_grpc) == sorted(
        (f"/{service}", status, model) for service in (f"{PREDICTION}/Predict", f"{INFERENCE_SERVICE}/ModelInfer")
        for status, model in (("OK", "F"), ("NOT_FOUND", "no")))
    assert {(row["trace"], row["client"]) for row in (*rows.values(), *by_grpc)} == {
        (TRACES["traceparent"], "127.0.0.1")}


@pytest.mark.parametrize("log", ["none", "text"])
def test_every_form_gives_trace_ids_back(forms_of, log):
    forms = forms_of(model_of(lambda x: x), access_log=log)
    forms.metadata = TRACES
    for model in ("F", "no"):
        rest, called, v2, v2_called = forms.each(model)
        for answer in (rest, v2):
            assert TRACES.items() <= answer.headers.items()
        for call in (called, v2_called):
            trailing = (call if isinstance(call, grpc.RpcError) else call[1]).trailing_metadata()
            assert TRACES.items() <= dict(trailing).items()


def test_a_trace_id_of_other_characters_does_not_go_back(forms_of):
    forms = forms_of(model_of(lambda x: x))
    forms.metadata = {"x-request-id": "a b"}
    assert "x-request-id" not in dict(forms.grpc()[1].trailing_metadata())


def test_a_stream_and_a_refused_call_have_lines_too(forms_of, capsys):
    forms = forms_of(model_of(lambda x: x), access_log="text", token=TOKEN, enable_grpc_healthcheck_service=True)
    watch = forms.caller.call(HEALTH_SERVICE, "Watch", message_class("grpc.health.v1.HealthCheckRequest")())
    assert next(watch).status == 1
    watch.cancel()
    assert fault(forms.caller.predict, "F", {"x": np.float32([1])})[0] == "UNAUTHENTICATED"
    pause, text = Event(), ""
    for _ in range(3000):
        text += capsys.readouterr().err
        if ("Watch CANCELLED" in text and "Predict UNAUTHENTICATED" in text) or pause.wait(0.01):
            break
    assert f"127.0.0.1 gRPC /{HEALTH_SERVICE}/Watch CANCELLED " in text
    assert f"127.0.0.1 gRPC /{PREDICTION}/Predict UNAUTHENTICATED " in text


@pytest.mark.parametrize(("peer", "client"), [("ipv4:127.0.0.1:4", "127.0.0.1"), ("ipv6:%5B::1%5D:4", "::1"),
                                              ("unix:", ""), ("", "")])
def test_the_address_of_a_caller(peer, client):
    assert client_of(peer) == client


def test_an_end_that_is_no_error_of_heald_has_a_code():
    assert code_of(KeyboardInterrupt()) == code_of(GeneratorExit()) == CANCELLED
    assert code_of(MemoryError()) == 8
