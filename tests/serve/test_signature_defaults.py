"""Inputs with default values: SignatureDef.defaults of a SavedModel. A request may leave them out."""

from __future__ import annotations

import json
import shutil

import heald
import numpy as np
import pytest
from harness.recorded_clients import DATA
from harness.serve_grpc import PREDICTION, Caller, arrays_of, fault
from harness.serve_models import Client, settings_of
from heald.errors import HealdError
from heald_serve.grpc.tensors import write_tensor
from heald_serve.messages import message_class
from heald_serve.models.model_config import ModelConfig
from heald_serve.server import ModelServer

X, X2 = np.float32([1]), np.float32([4, 6])


def write_model(folder, **defaults):
    """half_plus_two with a signature of two inputs, x and x2, and these defaults."""
    shutil.copytree(DATA / "half_plus_two" / "00000123", folder)
    file = folder / "saved_model.pb"
    model = heald.graphs.protobuf.parse_message("SavedModel", file.read_bytes())
    definition = model.meta_graphs[0].signature_def["serving_default"]
    definition.inputs["x2"].CopyFrom(model.meta_graphs[0].signature_def["regress_x2_to_y3"].inputs["inputs"])
    definition.outputs["y3"].CopyFrom(model.meta_graphs[0].signature_def["regress_x2_to_y3"].outputs["outputs"])
    for name, array in defaults.items():
        tensor = message_class("tensorflow.TensorProto")()
        write_tensor(tensor, array)
        definition.defaults[name].ParseFromString(tensor.SerializeToString())
    file.write_bytes(model.SerializeToString())
    return folder


@pytest.fixture
def serve(tmp_path):
    ends = []

    def begin(**changes):
        folder = write_model(tmp_path / "model", x2=X2)
        server = ModelServer(settings_of({}, models=[ModelConfig("m", folder, is_single=True)], grpc_port=0,
                                         max_num_load_retries=0, **changes))
        server.start()
        client, caller = Client(server.port), Caller(server.grpc_server.port)
        ends.extend((client.close, caller.close, server.close))
        return client, caller

    yield begin
    for end in ends:
        end()


@pytest.mark.parametrize("is_batched", [False, True])
def test_a_request_may_leave_out_an_input_with_a_default(serve, is_batched):
    _, caller = serve(enable_batching=is_batched)
    assert arrays_of(caller.predict("m", {"x": X, "x2": 2 * X}))["y3"].tolist() == [4]
    outputs = arrays_of(caller.predict("m", {"x": X}))
    assert (outputs["y"].tolist(), outputs["y3"].tolist()) == ([2.5], [5, 6])


def test_the_other_inputs_are_still_needed(serve):
    client, caller = serve()
    for inputs in ({}, {"x2": X}, {"x": X, "z": X}, {"x": X, "x2": X, "z": X}, {"z": X}):
        assert fault(caller.predict, "m", inputs)[0] == "INVALID_ARGUMENT", inputs
    assert "Missing but required: {x}" in fault(caller.predict, "m", {"x2": X})[1]
    row = client.predict("m", {"instances": [{"x": 1.0}]})
    assert (row.status, "keys must be equal to: x,x2" in row.error) == (400, True)


def test_the_open_inference_protocol_has_defaults_too(serve):
    client, _ = serve()
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}
    rows = client.ask("POST", "/v2/models/m/infer", body).json["outputs"]
    assert {row["name"]: row["data"] for row in rows} == {"y": [2.5], "y3": [5, 6]}


def test_metadata_have_the_defaults(serve):
    client, caller = serve()
    signatures = client.ask("GET", "/v1/models/m/metadata").json["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["defaults"]["x2"]["float_val"] == [4, 6]
    assert signatures["regress_x_to_y"]["defaults"] == {}
    request = message_class("GetModelMetadataRequest")(metadata_field=["signature_def"])
    request.model_spec.name = "m"
    packed = caller.call(PREDICTION, "GetModelMetadata", request).metadata["signature_def"]
    definition = message_class("SignatureDefMap").FromString(packed.value).signature_def["serving_default"]
    assert [*definition.defaults["x2"].float_val] == [4, 6]
    assert json.dumps(signatures)


def test_a_default_of_another_type_is_an_error_of_the_load(tmp_path):
    for name, array in (("a", np.int32([1])), ("b", np.array([b"x"], object))):
        with pytest.raises(HealdError, match="the default of input 'x2'"):
            heald.load(write_model(tmp_path / name, x2=array))


def test_a_default_of_no_input_is_ignored(tmp_path):
    assert heald.load(write_model(tmp_path / "m", other=X)).signatures["serving_default"]
