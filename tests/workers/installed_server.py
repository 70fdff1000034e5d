"""A request to a server of an installation, in one process with other users of protobuf and grpcio.

    python installed_server.py DIGITS [MODULE...]    # the modules are imported first: tensorflow, tritonclient.grpc
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path


def ask_over_http(port, images):
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("POST", "/v1/models/digits:predict", json.dumps({"instances": images.tolist()}))
        return [row["digit"] for row in json.loads(connection.getresponse().read())["predictions"]]


def ask_over_grpc(port, images):
    import grpc
    from heald_serve.messages import message_class

    request = message_class("PredictRequest")(output_filter=["digit"])
    request.model_spec.name = "digits"
    tensor = request.inputs["image"]
    tensor.dtype, tensor.tensor_content = 1, images.tobytes()
    for size in images.shape:
        tensor.tensor_shape.dim.add(size=size)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        data = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(request.SerializeToString(),
                                                                                     timeout=30)
    return [*message_class("PredictResponse").FromString(data).outputs["digit"].int_val]


def main():
    digits, *others = sys.argv[1:]
    for name in others:
        import_module(name)
    serve(Path(digits))


def serve(digits):
    import numpy as np
    from heald_serve.models.model_config import ModelConfig
    from heald_serve.options import with_defaults
    from heald_serve.server import ModelServer
    from heald_serve.settings import Settings

    model = ModelConfig("digits", digits / "saved_model", is_single=True)
    server = ModelServer(Settings(with_defaults({}), [model], "127.0.0.1", 0, grpc_port=0))
    server.start()
    images = np.load(digits / "test.npz")["image"][:2]
    try:
        answers = [ask_over_http(server.port, images), ask_over_grpc(server.grpc_server.port, images)]
    finally:
        server.close()
    assert answers == [[0, 6], [0, 6]], answers


main()
