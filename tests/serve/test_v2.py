"""The Open Inference Protocol: documents, inference in JSON, binary and gRPC, its errors, load and unload.

The body RECORDED is as tritonclient 2 sends it.
"""

from __future__ import annotations

import gzip
import json
import zlib

import numpy as np
import pytest
from harness.serve_grpc import Caller, fault
from harness.serve_models import echo, infos, signature
from heald.api import dtypes
from heald_serve.brief_runs import FIRST_NEED, RunTimes
from heald_serve.grpc.services import INFERENCE_SERVICE
from heald_serve.messages import message_class
from heald_serve.v2.elements import from_raw, to_raw
from heald_serve.v2.inference_service import CONTENTS

LINE = signature(infos(x="float32"), infos(y="float32"), lambda x: 2 * x + 1)
TWO = signature(infos(a="int32", b="string"), infos(a="int32", b="string"), lambda a, b: (a, b))
RECORDED = (b'{"inputs":[{"name":"x","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}],'
            b'"parameters":{"binary_data_output":true}}')


def tensor(name, data, datatype="FP32", shape=None, **fields):
    shape = [len(data)] if shape is None else shape
    return {"name": name, "datatype": datatype, "shape": shape, "data": data, **fields}


@pytest.fixture
def serve(start):
    callers = []

    def serve(models, **changes):
        server, client = start(models, grpc_port=0, **changes)
        callers.append(Caller(server.grpc_server.port))
        return client, callers[-1]

    yield serve
    for caller in callers:
        caller.close()


def infer(client, model, *inputs, **fields):
    return client.ask("POST", f"/v2/models/{model}/infer", {"inputs": inputs, **fields})


def call(caller, method, message=None, **fields):
    request = message_class(f"inference.{method}Request")(**fields) if message is None else message
    return caller.call(INFERENCE_SERVICE, method, request)


def test_both_fronts_have_the_same_documents(serve):
    client, caller = serve({"T": TWO})
    assert client.ask("GET", "/v2/health/live").json == {"live": True}
    assert client.ask("GET", "/v2/health/ready").json == {"ready": True}
    assert call(caller, "ServerLive").live
    assert call(caller, "ServerReady").ready
    server = client.ask("GET", "/v2").json
    assert (server["name"], "binary_tensor_data" in server["extensions"]) == ("heald", True)
    assert list(call(caller, "ServerMetadata").extensions) == server["extensions"]
    metadata = client.ask("GET", "/v2/models/T/versions/1").json
    assert metadata["versions"] == ["1"]
    assert metadata["inputs"] == [{"name": "a", "datatype": "INT32", "shape": [-1]},
                                  {"name": "b", "datatype": "BYTES", "shape": [-1]}]
    assert [row.datatype for row in call(caller, "ModelMetadata", name="T").inputs] == ["INT32", "BYTES"]
    config = client.ask("GET", "/v2/models/T/config").json
    assert [row["data_type"] for row in config["input"]] == ["TYPE_INT32", "TYPE_STRING"]
    assert [row.data_type for row in call(caller, "ModelConfig", name="T").config.input] == [8, 13]
    assert client.ask("GET", "/v2/models/T/ready").json == {"name": "T", "ready": True}
    assert client.ask("GET", "/v2/models/no/ready").status == 404
    assert call(caller, "ModelReady", name="T").ready
    assert not call(caller, "ModelReady", name="no").ready
    index = [{"name": "T", "version": "1", "state": "READY", "reason": ""}]
    assert client.ask("POST", "/v2/repository/index").json == index
    assert client.ask("POST", "/v2/repository/index", {"ready": True}).json == index
    assert [row.state for row in call(caller, "RepositoryIndex").models] == ["READY"]


def test_an_inference_in_json(serve):
    client, _ = serve({"F": LINE, "T": TWO})
    answer = infer(client, "F", tensor("x", [1, 2.5]), id="seven").json
    assert answer == {"model_name": "F", "model_version": "1", "id": "seven", "outputs": [
        {"name": "y", "datatype": "FP32", "shape": [2], "data": [3.0, 6.0]}]}
    assert infer(client, "F", tensor("x", [[1], [2]], shape=[2, 1])).json["outputs"][0]["shape"] == [2, 1]
    assert infer(client, "F", tensor("x", [1, 2], shape=[2, 1])).json["outputs"][0]["data"] == [3.0, 5.0]
    assert infer(client, "F", tensor("x", [], shape=[0])).json["outputs"][0]["data"] == []
    inputs = tensor("a", [1], "INT32"), tensor("b", ["ü"], "BYTES")
    answer = infer(client, "T", *inputs, outputs=[{"name": "b"}]).json
    assert [row["name"] for row in answer["outputs"]] == ["b"]
    assert answer["outputs"][0]["data"] == ["ü"]
    assert "id" not in answer


def test_numbers_that_are_not_finite_pass(serve):
    client, _ = serve({"F": LINE})
    body = client.ask("POST", "/v2/models/F/infer", (
        '{"inputs":[{"name":"x","shape":[2],"datatype":"FP32","data":[NaN,-Infinity]}]}')).body
    assert b"[NaN,-Infinity]" in body


@pytest.mark.parametrize(("packed", "encoding"), [(bytes, ""), (gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_the_recorded_binary_body(serve, packed, encoding):
    client, _ = serve({"F": LINE})
    body = RECORDED + np.float32([1, 2.5]).tobytes()
    answer = client.ask("POST", "/v2/models/F/infer", packed(body), content_encoding=encoding,
                        inference_header_content_length=str(len(RECORDED)))
    length = int(answer.headers["inference-header-content-length"])
    assert answer.headers["content-type"] == "application/octet-stream"
    assert json.loads(answer.body[:length])["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}]
    assert np.frombuffer(answer.body[length:], "f4").tolist() == [3, 6]


def test_an_output_says_itself_whether_it_is_binary(serve):
    client, _ = serve({"T": TWO})
    inputs = tensor("a", [1], "INT32"), tensor("b", ["u"], "BYTES")
    answer = infer(client, "T", *inputs, parameters={"binary_data_output": True}, outputs=[
        {"name": "a", "parameters": {"binary_data": False}}, {"name": "b"}])
    length = int(answer.headers["inference-header-content-length"])
    first, second = json.loads(answer.body[:length])["outputs"]
    assert (first["data"], second["parameters"], answer.body[length:]) == (
        [1], {"binary_data_size": 5}, b"\x01\0\0\0u")


ARRAYS = [("BOOL", "bool", [True, False]), ("UINT8", "uint8", [255]), ("UINT16", "uint16", [65535]),
          ("UINT32", "uint32", [(1 << 32) - 1]), ("UINT64", "uint64", [(1 << 64) - 1]), ("INT8", "int8", [-128]),
          ("INT16", "int16", [-3]), ("INT32", "int32", [-3]), ("INT64", "int64", [-(1 << 63)]),
          ("FP16", "float16", [1.5]), ("FP32", "float32", [0.5]), ("FP64", "float64", [1e300]),
          ("BYTES", "string", [b"a\xff", b""]), ("BF16", "bfloat16", [2.5])]


@pytest.mark.parametrize(("datatype", "kind", "values"), ARRAYS)
def test_every_datatype_passes_by_grpc(serve, datatype, kind, values):
    _, caller = serve({"E": echo(x=kind)})
    dtype = dtypes.named(kind)
    raw = to_raw(np.array(values, dtype.numpy), dtype)
    request = message_class("inference.ModelInferRequest")(model_name="E", id="7", raw_input_contents=[raw])
    request.inputs.add(name="x", datatype=datatype, shape=[len(values)])
    answer = call(caller, "ModelInfer", request)
    assert (answer.id, answer.model_name, answer.model_version) == ("7", "E", "1")
    assert (answer.outputs[0].datatype, list(answer.outputs[0].shape)) == (datatype, [len(values)])
    assert list(answer.raw_output_contents) == [raw]
    assert from_raw("x", raw, dtype, [len(values)]).tolist() == values


@pytest.mark.parametrize(("datatype", "kind", "values"), [row for row in ARRAYS if row[0] not in ("FP16", "BF16")])
def test_typed_contents_pass_by_grpc(serve, datatype, kind, values):
    _, caller = serve({"E": echo(x=kind)})
    request = message_class("inference.ModelInferRequest")(model_name="E")
    row = request.inputs.add(name="x", datatype=datatype, shape=[len(values)])
    getattr(row.contents, CONTENTS[kind]).extend(values)
    dtype = dtypes.named(kind)
    raw = to_raw(np.array(values, dtype.numpy), dtype)
    assert list(call(caller, "ModelInfer", request).raw_output_contents) == [raw]


def infer_by_each_form(client, caller, model, kind, datatype, values):
    """The errors of a tensor in JSON, as binary data, by gRPC as raw and as typed contents."""
    dtype = dtypes.named(kind)
    raw, shape = to_raw(np.array(values, dtype.numpy), dtype), [len(values)]
    row = {"name": "x", "datatype": datatype, "shape": shape}
    yield client.ask("POST", f"/v2/models/{model}/infer", {"inputs": [{**row, "data": values}]}).error
    head = json.dumps({"inputs": [{**row, "parameters": {"binary_data_size": len(raw)}}]}).encode()
    yield client.ask("POST", f"/v2/models/{model}/infer", head + raw,
                     inference_header_content_length=str(len(head))).error
    request = message_class("inference.ModelInferRequest")(model_name=model, raw_input_contents=[raw])
    tensor_row = request.inputs.add(**row)
    yield fault(call, caller, "ModelInfer", request)[1]
    del request.raw_input_contents[:]
    getattr(tensor_row.contents, CONTENTS[kind]).extend(
        [value.encode() for value in values] if kind == "string" else values)
    yield fault(call, caller, "ModelInfer", request)[1]


@pytest.mark.parametrize(("wanted", "wanted_name", "kind", "datatype", "values"), [
    ("float32", "FP32", "float64", "FP64", [1.0]), ("float64", "FP64", "float32", "FP32", [1.0]),
    ("int64", "INT64", "int32", "INT32", [1]), ("int32", "INT32", "int64", "INT64", [1]),
    ("float32", "FP32", "bool", "BOOL", [True]), ("bool", "BOOL", "uint8", "UINT8", [1]),
    ("float32", "FP32", "int8", "INT8", [1]), ("float32", "FP32", "string", "BYTES", ["1"]),
    ("string", "BYTES", "uint8", "UINT8", [1]), ("float16", "FP16", "float32", "FP32", [1.0])])
def test_data_of_another_type_are_refused_in_every_form_with_triton_s_text(
        serve, wanted, wanted_name, kind, datatype, values):
    client, caller = serve({"E": echo(x=wanted)})
    text = f"inference input 'x' data-type is '{datatype}', but model 'E' expects '{wanted_name}'"
    assert [*infer_by_each_form(client, caller, "E", kind, datatype, values)] == [text] * 4


@pytest.mark.parametrize("size", [0, 4, 7, 9, 12])
def test_raw_contents_of_another_size_are_refused(serve, size):
    client, caller = serve({"E": echo(x="int32")})
    head = json.dumps({"inputs": [{"name": "x", "datatype": "INT32", "shape": [2],
                                   "parameters": {"binary_data_size": size}}]}).encode()
    answer = client.ask("POST", "/v2/models/E/infer", head + bytes(size),
                        inference_header_content_length=str(len(head)))
    text = f"input 'x' has {size} bytes, its shape [2] of int32 needs 8"
    assert (answer.status, answer.error) == (400, text)
    request = message_class("inference.ModelInferRequest")(model_name="E", raw_input_contents=[bytes(size)])
    request.inputs.add(name="x", datatype="INT32", shape=[2])
    assert fault(call, caller, "ModelInfer", request) == ("INVALID_ARGUMENT", text)


def test_a_type_that_changes_after_brief_runs_is_refused(serve):
    (name, model), = LINE.items()
    client, caller = serve({"F": {name: model._replace(times=RunTimes())}})
    for _ in range(FIRST_NEED + 4):
        assert infer(client, "F", tensor("x", [1])).status == 200
    assert "expects 'FP32'" in infer(client, "F", tensor("x", [1], "FP64")).error
    assert fault(caller.predict, "F", {"x": np.float64([1])}) == (
        "INVALID_ARGUMENT", "Expects input x to be float but double is provided")


@pytest.mark.parametrize("change", [
    {"datatype": "FP16"}, {"datatype": "INT8", "int_contents": [300]}, {"shape": [3]}, {"shape": [-1]},
    {"shape": [1 << 62, 4]}, {"datatype": ""}, {"shape": [1] * 65}])
def test_contents_that_do_not_fit_are_an_error_by_grpc(serve, change):
    _, caller = serve({"F": LINE})
    request = message_class("inference.ModelInferRequest")(model_name="F")
    row = request.inputs.add(name="x", datatype=change.get("datatype", "FP32"), shape=change.get("shape", [1]))
    row.contents.fp32_contents.append(1)
    row.contents.int_contents.extend(change.get("int_contents", []))
    assert fault(call, caller, "ModelInfer", request)[0] == "INVALID_ARGUMENT"


def test_contents_beside_raw_contents_are_an_error(serve):
    _, caller = serve({"F": LINE})
    request = message_class("inference.ModelInferRequest")(model_name="F", raw_input_contents=[b"\0\0\0\0"])
    row = request.inputs.add(name="x", datatype="FP32", shape=[1])
    row.contents.fp32_contents.append(1)
    assert "beside raw_input_contents" in fault(call, caller, "ModelInfer", request)[1]
    request.raw_input_contents.append(b"")
    assert "2 raw_input_contents for 1 inputs" in fault(call, caller, "ModelInfer", request)[1]


def test_a_stream_answers_each_request_and_goes_on_after_an_error(serve):
    _, caller = serve({"F": LINE})
    make = message_class("inference.ModelInferRequest")
    requests = [make(model_name="F", id="1", raw_input_contents=[b"\0\0\0\0"]), make(model_name="no", id="2")]
    requests[0].inputs.add(name="x", datatype="FP32", shape=[1])
    answers = list(caller.call(INFERENCE_SERVICE, "ModelStreamInfer", iter([*requests, requests[0]])))
    assert [answer.infer_response.id for answer in answers] == ["1", "2", "1"]
    assert [bool(answer.error_message) for answer in answers] == [False, True, False]


@pytest.mark.parametrize("body", [
    "{", "[]", {"inputs": 1}, {"inputs": [1]}, {"inputs": []}, {"inputs": [{}]}, {"inputs": [{"name": "x"}]},
    {"inputs": [tensor("x", [1], "INT99")]}, {"inputs": [tensor("x", [1], 7)]}, {"inputs": [tensor("x", ["a"])]},
    {"inputs": [tensor("x", [1], shape=[2])]}, {"inputs": [tensor("x", [1], shape=[-1])]},
    {"inputs": [tensor("x", [1], shape=1)]}, {"inputs": [tensor("x", [1], shape=[True])]},
    {"inputs": [tensor("x", [1], shape=[1] * 65)]}, {"inputs": [tensor("x", [1], shape=[1 << 70])]},
    {"inputs": [tensor("x", [1])] * 2}, {"inputs": [tensor("z", [1])]}, {"inputs": [tensor("x", [1], parameters=1)]},
    {"inputs": [tensor("x", [1], parameters={"binary_data_size": 4})]},
    {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}]},
    {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": True}}]},
    {"inputs": [tensor("x", [1])], "id": 7}, {"inputs": [tensor("x", [1])], "outputs": [{"name": "no"}]},
    {"inputs": [tensor("x", [1])], "outputs": [{}]}, {"inputs": [tensor("x", [1])], "parameters": []},
    {"inputs": [tensor("x", [1])], "parameters": {"binary_data_output": 1}},
    {"inputs": [tensor("x", [1])], "parameters": {"signature": "no"}},
    {"inputs": [tensor("x", [1])], "parameters": {"signature": 1}}])
def test_a_body_that_does_not_fit_is_an_error(serve, body):
    client, _ = serve({"F": LINE})
    answer = client.ask("POST", "/v2/models/F/infer", body)
    assert (answer.status, bool(answer.error)) == (400, True)


@pytest.mark.parametrize(("length", "encoding"), [("-1", ""), ("x", ""), ("9999", ""), ("1" * 30, ""), ("5", ""),
                                                  (str(len(RECORDED)), ""), ("1", "deflate")])
def test_a_length_that_does_not_fit_is_an_error(serve, length, encoding):
    client, _ = serve({"F": LINE})
    answer = client.ask("POST", "/v2/models/F/infer", RECORDED + b"abc", content_encoding=encoding,
                        inference_header_content_length=length)
    assert (answer.status, bool(answer.error)) == (400, True)


@pytest.mark.parametrize("data", [b"\x01", b"\x05\0\0\0a", b"\x01\0\0\0ab", b"", b"\xff\xff\xff\xff"])
def test_raw_strings_that_end_early_are_an_error(serve, data):
    _, caller = serve({"E": echo(x="string")})
    request = message_class("inference.ModelInferRequest")(model_name="E", raw_input_contents=[data])
    request.inputs.add(name="x", datatype="BYTES", shape=[1])
    assert fault(call, caller, "ModelInfer", request)[0] == "INVALID_ARGUMENT"


def test_paths_that_are_none_and_parts_that_are_not_served(serve):
    client, _ = serve({"F": LINE})
    for method, path in (("GET", "/v2/models/F/infer"), ("POST", "/v2/models/F"), ("GET", "/v2/other"),
                         ("GET", "/v2/models/F/versions/x"), ("GET", "/v2/models//ready")):
        assert client.ask(method, path).status == 400, path
    assert client.ask("GET", "/v2/models/no").status == 404
    for path in ("/v2/systemsharedmemory/status", "/v2/cudasharedmemory/region/a/register", "/v2/trace/setting",
                 "/v2/models/F/trace/setting", "/v2/logging"):
        assert client.ask("POST", path).status == 501, path
    shared = tensor("x", [1], parameters={"shared_memory_region": "r"})
    assert infer(client, "F", shared).status == 501


def test_a_parameter_that_would_change_the_answer_is_refused(serve):
    client, caller = serve({"F": LINE})
    for parameters in ({"classification": 2}, {"shared_memory_region": "r"}):
        wanted = [{"name": "y", "parameters": parameters}]
        assert infer(client, "F", tensor("x", [1]), outputs=wanted).status == 501
        request = message_class("inference.ModelInferRequest")(model_name="F", raw_input_contents=[b"\0\0\x80@"])
        request.inputs.add(name="x", datatype="FP32", shape=[1])
        output = request.outputs.add(name="y")
        for name, value in parameters.items():
            output.parameters[name].SetInParent()
            setattr(output.parameters[name], "string_param" if isinstance(value, str) else "int64_param", value)
        assert fault(call, caller, "ModelInfer", request)[0] == "UNIMPLEMENTED"


def test_names_of_half_a_character_are_refused(serve):
    client, _ = serve({"F": LINE})
    for changes in ({"id": "\ud800"}, {"inputs": [tensor("\udfff", [1])]}, {"outputs": [{"name": "y\ud800"}]},
                    {"id": 7}, {"outputs": [{"name": 7}]}, {"parameters": {"signature": "\ud800"}}):
        answer = client.ask("POST", "/v2/models/F/infer", {"inputs": [tensor("x", [1])], **changes})
        assert (answer.status, bool(answer.error)) == (400, True), changes


def test_types_that_json_lacks_need_binary_data(serve):
    client, _ = serve({"H": signature(infos(x="float32"), infos(h="float16", c="complex64", s="string"), lambda x: (
        x.astype("f2"), x.astype("c8"), np.array([b"\xff"], object)))})
    for name, status in (("h", 501), ("c", 501), ("s", 400)):
        assert infer(client, "H", tensor("x", [1]), outputs=[{"name": name}]).status == status
    answer = infer(client, "H", tensor("x", [1]), outputs=[{"name": "s", "parameters": {"binary_data": True}}])
    assert answer.body.endswith(b"\x01\0\0\0\xff")
    assert infer(client, "H", tensor("x", [1], "FP16")).status == 501


def test_a_parameter_chooses_the_signature(serve):
    double = signature(infos(x="float32"), infos(y="float32"), lambda x: 2 * x, name="double")
    client, caller = serve({"F": LINE | double})
    answer = infer(client, "F", tensor("x", [4]), parameters={"signature": "double"}).json
    assert answer["outputs"][0]["data"] == [8.0]
    request = message_class("inference.ModelInferRequest")(model_name="F", raw_input_contents=[b"\0\0\x80@"])
    request.inputs.add(name="x", datatype="FP32", shape=[1])
    request.parameters["signature"].string_param = "double"
    assert np.frombuffer(call(caller, "ModelInfer", request).raw_output_contents[0], "f4").tolist() == [8]


def test_statistics_count_inferences_and_failures(serve):
    client, caller = serve({"F": LINE})
    infer(client, "F", tensor("x", [1, 2, 3]))
    infer(client, "F", tensor("z", [1]))
    (row,) = client.ask("GET", "/v2/models/F/stats").json["model_stats"]
    counts = {stage: duration["count"] for stage, duration in row["inference_stats"].items() if duration["count"]}
    assert (row["inference_count"], row["execution_count"]) == (3, 1)
    assert counts == {"success": 1, "fail": 1, "compute_input": 1, "compute_infer": 1, "compute_output": 1}
    assert client.ask("GET", "/v2/models/stats").json["model_stats"] == [row]
    assert call(caller, "ModelStatistics", name="F").model_stats[0].inference_count == 3
    assert client.ask("GET", "/v2/models/no/stats").status == 404


def test_load_and_unload_are_an_option(serve):
    client, caller = serve({"F": LINE})
    assert client.ask("POST", "/v2/repository/models/F/unload").status == 403
    assert fault(call, caller, "RepositoryModelLoad", model_name="F")[0] == "PERMISSION_DENIED"


def test_a_model_leaves_and_returns(serve):
    client, caller = serve({"F": LINE}, allow_model_control=True)
    unload = {"parameters": {"unload_dependents": False}}
    assert client.ask("POST", "/v2/repository/models/F/unload", unload).status == 200
    assert infer(client, "F", tensor("x", [1])).status == 404
    assert client.ask("GET", "/v2/models/F/ready").status == 503
    assert [row["state"] for row in client.ask("POST", "/v2/repository/index").json] == ["UNAVAILABLE"]
    assert client.ask("POST", "/v2/repository/index", {"ready": True}).json == []
    call(caller, "RepositoryModelLoad", model_name="F")
    assert infer(client, "F", tensor("x", [1])).status == 200
    call(caller, "RepositoryModelUnload", model_name="F")
    assert client.ask("POST", "/v2/repository/models/F/load").status == 200
    assert client.ask("POST", "/v2/repository/models/no/load").status == 404
    assert client.ask("POST", "/v2/repository/models/F/load", {"parameters": {"config": "{}"}}).status == 501


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "int64", "uint16"])
def test_raw_numbers_have_the_type_that_runs_take_without_conversion(name):
    dtype = dtypes.named(name)
    array = from_raw("x", np.arange(3, dtype=name).tobytes(), dtype, [3])
    assert array.dtype is dtype.numpy
    assert array.flags.carray
