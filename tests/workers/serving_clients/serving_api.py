"""The calls of tensorflow-serving-api's users, with TensorFlow in the process. The answers are TensorFlow's own."""

from __future__ import annotations

import sys
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

DIGITS = Path(__file__).parents[3] / "examples" / "digits"


def spec_of(request, model, signature=""):
    request.model_spec.name, request.model_spec.signature_name = model, signature
    return request


def predict_request(model, signature="", **inputs):
    request = spec_of(predict_pb2.PredictRequest(), model, signature)
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def example(x):
    message = tf.train.Example()
    message.features.feature["x"].float_list.value.append(x)
    return message


def call_half_plus_two(stub):
    request = predict_request("half_plus_two", "serving_default", x=np.float32([1, 2, 5]))
    for answer in (stub.Predict(request, 10), stub.Predict.future(request, 10).result(),
                   stub.Predict(request, 10, compression=grpc.Compression.Gzip)):
        assert tf.make_ndarray(answer.outputs["y"]).tolist() == [2.5, 3, 4.5]
    regression = spec_of(regression_pb2.RegressionRequest(), "half_plus_two", "regress_x_to_y")
    regression.input.example_list.examples.extend([example(1), example(2)])
    assert [row.value for row in stub.Regress(regression, 10).result.regressions] == [2.5, 3]
    regression.input.example_list_with_context.context.CopyFrom(example(7))
    regression.input.example_list_with_context.examples.append(tf.train.Example())
    assert [row.value for row in stub.Regress(regression, 10).result.regressions] == [5.5]
    classification = spec_of(classification_pb2.ClassificationRequest(), "half_plus_two", "classify_x_to_y")
    classification.input.example_list.examples.extend([example(1), example(2)])
    rows = stub.Classify(classification, 10).result.classifications
    assert [row.classes[0].score for row in rows] == [2.5, 3]
    several = inference_pb2.MultiInferenceRequest()
    several.input.example_list.examples.append(example(3))
    for signature, method in (("regress_x_to_y", "regress"), ("classify_x_to_y", "classify")):
        task = spec_of(several.tasks.add(), "half_plus_two", signature)
        task.method_name = f"tensorflow/serving/{method}"
    first, second = stub.MultiInference(several, 10).results
    assert first.regression_result.regressions[0].value == 3.5
    assert second.classification_result.classifications[0].classes[0].score == 3.5


def call_saved_models(stub, data):
    texts = np.array(["a fine day", "dull"], object)
    text_model = tf.saved_model.load(str(data / "text" / "1"))
    wanted = text_model.signatures["serving_default"](keras_tensor=tf.constant(texts))
    answer = stub.Predict(predict_request("text", keras_tensor=texts), 10)
    assert np.allclose(tf.make_ndarray(answer.outputs["output_0"]), wanted["output_0"])
    images = np.load(DIGITS / "test.npz")["image"][:2]
    wanted = tf.saved_model.load(str(DIGITS / "saved_model")).signatures["serving_default"](image=tf.constant(images))
    request = predict_request("digits", image=images)
    request.model_spec.version.value = 1
    outputs = stub.Predict(request, 10).outputs
    assert all(np.allclose(tf.make_ndarray(outputs[name]), wanted[name], atol=1e-4) for name in wanted)
    request.output_filter.append("digit")
    assert [*stub.Predict(request, 10).outputs] == ["digit"]
    picture = np.ones((1, 224, 224, 3), np.float32)
    assert len(stub.Predict(predict_request("picture", x=picture), 10).outputs["y"].float_val) == 1000


def call_information(stub, models):
    request = spec_of(get_model_metadata_pb2.GetModelMetadataRequest(), "digits")
    request.metadata_field.append("signature_def")
    signatures = get_model_metadata_pb2.SignatureDefMap()
    stub.GetModelMetadata(request, 10).metadata["signature_def"].Unpack(signatures)
    assert [*signatures.signature_def] == ["serving_default"]
    request = spec_of(get_model_status_pb2.GetModelStatusRequest(), "text")
    (row,) = models.GetModelStatus(request, 10).model_version_status
    assert row.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE


def code_of(call, request):
    try:
        call(request, 10)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def call_wrongly(stub, models):
    x = np.float32([1])
    later = predict_request("half_plus_two", x=x)
    later.model_spec.version.value = 9
    filtered = predict_request("half_plus_two", x=x)
    filtered.output_filter.append("z")
    wrong = [(later, "NOT_FOUND"), (filtered, "INVALID_ARGUMENT"), (predict_request("none", x=x), "NOT_FOUND"),
             (predict_request("half_plus_two", "zz", x=x), "FAILED_PRECONDITION"),
             (predict_request("half_plus_two", y=x), "INVALID_ARGUMENT"),
             (predict_request("half_plus_two"), "INVALID_ARGUMENT"), (predict_request("", x=x), "INVALID_ARGUMENT"),
             (predict_request("half_plus_two", x=["a"]), "INVALID_ARGUMENT"),
             (predict_pb2.PredictRequest(), "INVALID_ARGUMENT")]
    for request, code in wrong:
        assert code_of(stub.Predict, request) == code, request
    same = spec_of(classification_pb2.ClassificationRequest(), "half_plus_two", "classify_x2_to_y3")
    same.input.example_list.examples.append(example(1))
    assert code_of(stub.Classify, same) == "INVALID_ARGUMENT"
    for text in ("", 'config { name: "m" base_path: "here" model_platform: "tensorflow" }', 'config { name: "m" }'):
        models_text = f"config {{ model_config_list {{ {text} }} }}" if text else ""
        request = text_format.Parse(models_text, model_management_pb2.ReloadConfigRequest())
        assert code_of(models.HandleReloadConfigRequest, request) == "INVALID_ARGUMENT", text


def main():
    with grpc.insecure_channel(sys.argv[2]) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        call_half_plus_two(stub)
        call_saved_models(stub, Path(sys.argv[3]))
        call_information(stub, models)
        call_wrongly(stub, models)


main()
