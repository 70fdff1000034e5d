"""The calls of tritonclient's users, over HTTP and gRPC."""

from __future__ import annotations

import asyncio
import queue
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc as over_grpc
import tritonclient.grpc.aio as grpc_coroutines
import tritonclient.http as over_http
import tritonclient.http.aio as http_coroutines
from tritonclient.utils import InferenceServerException

IMAGES = np.load(Path(__file__).parents[3] / "examples" / "digits" / "test.npz")["image"][:2]
TEXTS = np.array([b"a fine day", b"dull"], object)


def input_of(module, array, name="image", datatype="FP32", **options):
    tensor = module.InferInput(name, [*array.shape], datatype)
    tensor.set_data_from_numpy(array, **options)
    return tensor


def ask_information(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("digits")
    assert client.is_model_ready("digits", "1")
    assert not client.is_model_ready("none")
    client.get_server_metadata()
    client.get_model_metadata("digits")
    client.get_model_config("text")
    client.get_inference_statistics("digits")
    client.get_inference_statistics()
    client.get_model_repository_index()


def infer(client, module):
    image = input_of(module, IMAGES)
    result = client.infer("digits", [image])
    assert result.as_numpy("digit").tolist() == [0, 6]
    assert result.as_numpy("probabilities").shape == (2, 10)
    result = client.infer("digits", [image], outputs=[module.InferRequestedOutput("digit")], request_id="seven",
                          model_version="1", priority=1, timeout=5_000_000, parameters={"signature": "serving_default"})
    assert result.as_numpy("logits") is None
    result = client.infer("text", [input_of(module, TEXTS, "keras_tensor", "BYTES")])
    assert result.as_numpy("output_0").shape == (2, 2)
    assert client.infer("half_plus_two", [input_of(module, np.float32([1, 2, 5]), "x")]).as_numpy("y").tolist() == [
        2.5, 3, 4.5]
    picture = np.ones((1, 224, 224, 3), np.float32)
    assert client.infer("picture", [input_of(module, picture, "x")]).as_numpy("y").shape == (1, 1000)


def infer_over_http(client):
    image = input_of(over_http, IMAGES)
    assert client.async_infer("digits", [image]).get_result().as_numpy("digit").tolist() == [0, 6]
    for options in ({"request_compression_algorithm": "gzip"}, {"request_compression_algorithm": "deflate"},
                    {"response_compression_algorithm": "gzip"}, {"response_compression_algorithm": "deflate"}):
        assert client.infer("digits", [image], **options).as_numpy("digit").tolist() == [0, 6]
    in_json = [over_http.InferRequestedOutput("digit", binary_data=False)]
    result = client.infer("digits", [input_of(over_http, IMAGES, binary_data=False)], outputs=in_json)
    assert result.as_numpy("digit").tolist() == [0, 6]
    texts = np.array(["a fine day", "dull"], object)
    assert client.infer("text", [input_of(over_http, texts, "keras_tensor", "BYTES", binary_data=False)]).as_numpy(
        "output_0").shape == (2, 2)


def infer_over_grpc(client):
    image, results = input_of(over_grpc, IMAGES), queue.Queue()

    def keep(result, error):
        results.put((result, error))

    client.async_infer("digits", [image], keep)
    assert results.get(timeout=10)[0].as_numpy("digit").tolist() == [0, 6]
    for algorithm in ("gzip", "deflate"):
        assert client.infer("digits", [image], compression_algorithm=algorithm, client_timeout=10.0)
    client.start_stream(keep)
    for model, name in (("digits", "1"), ("none", "2"), ("digits", "3")):
        client.async_stream_infer(model, [image], request_id=name)
    answers = [results.get(timeout=10) for _ in range(3)]
    client.stop_stream()
    assert [result and result.get_response().id for result, _ in answers] == ["1", None, "3"]


def fails(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except InferenceServerException as error:
        return bool(error.message())
    return False


def ask_wrongly(client, module):
    image = input_of(module, IMAGES)
    assert fails(client.infer, "none", [image])
    assert fails(client.infer, "digits", [input_of(module, IMAGES, "other")])
    assert fails(client.infer, "digits", [input_of(module, IMAGES[0])])
    assert fails(client.infer, "digits", [])
    assert fails(client.infer, "digits", [image], model_version="9")
    assert fails(client.infer, "digits", [image], model_version="x")
    assert fails(client.infer, "digits", [image], outputs=[module.InferRequestedOutput("zz")])
    assert fails(client.infer, "digits", [image], outputs=[module.InferRequestedOutput("digit", class_count=2)])
    assert fails(client.infer, "digits", [image], parameters={"signature": "zz"})
    assert fails(client.infer, "text", [input_of(module, IMAGES, "keras_tensor")])
    assert fails(client.get_model_metadata, "none")
    assert fails(client.load_model, "digits")
    assert fails(client.unload_model, "digits")
    assert fails(client.get_system_shared_memory_status)
    assert fails(client.get_trace_settings)
    assert fails(client.get_log_settings)


async def infer_in_coroutines(module, address):
    client = module.InferenceServerClient(address)
    assert await client.is_server_live()
    result = await client.infer("digits", [input_of(module, IMAGES)])
    assert result.as_numpy("digit").tolist() == [0, 6]
    await client.close()


def main():
    http_address, grpc_address = sys.argv[1].removeprefix("http://"), sys.argv[2]
    for module, coroutines, address in ((over_http, http_coroutines, http_address),
                                        (over_grpc, grpc_coroutines, grpc_address)):
        client = module.InferenceServerClient(address)
        ask_information(client)
        infer(client, module)
        (infer_over_http if module is over_http else infer_over_grpc)(client)
        ask_wrongly(client, module)
        client.close()
        asyncio.run(infer_in_coroutines(coroutines, address))


main()
