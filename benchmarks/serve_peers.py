"""The servers beside which serve_load.py measures heald: ONNX Runtime behind other fronts, each as its users write it.

    PYTHON benchmarks/serve_peers.py KIND MODEL.onnx PORT THREADS

PYTHON is that of the peer's own environment. KIND is a key of PEERS. THREADS are those of a run. A small model runs in
the event loop where the front has one, for that is the fastest; a model with several threads runs in a thread. Answers
are the rows of the first output. `null` answers at once: it shows the limit of the client.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[Any], Any]


def make_run(model: str, threads: int) -> tuple[Run, tuple[int, ...]]:
    """A function from a batch to the first output, and the shape of a row."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (place,) = session.get_inputs()
    return (lambda x: session.run(None, {place.name: x})[0]), tuple(place.shape[1:])


def rows_of(instances: Any, shape: tuple[int, ...]) -> Any:
    """The batch of JSON's rows: lists of numbers, or raw numbers in base 64."""
    if isinstance(instances[0], dict):
        return np.stack([np.frombuffer(base64.b64decode(row["b64"]), np.float32).reshape(shape) for row in instances])
    return np.array(instances, np.float32)


def serve_http(model: str, port: int, threads: int) -> None:
    """Starlette on uvicorn, with orjson."""
    import orjson
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    run, shape = make_run(model, threads)

    async def predict(request: Request) -> Response:
        x = rows_of(orjson.loads(await request.body())["instances"], shape)
        y = run(x) if threads == 1 else await asyncio.to_thread(run, x)
        return Response(orjson.dumps({"predictions": y}, option=orjson.OPT_SERIALIZE_NUMPY),
                        media_type="application/json")

    routes = [Route("/v1/models/m:predict", predict, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error", access_log=False)


PROTO = """syntax = "proto3";
package peer;
message Tensor { repeated int64 shape = 1; bytes data = 2; }
service Inference { rpc Predict(Tensor) returns (Tensor); }
"""


def serve_grpc(model: str, port: int, threads: int) -> None:
    """grpc.aio, with a message of a shape and raw bytes."""
    import tempfile

    import grpc
    from grpc_tools import protoc

    folder = tempfile.mkdtemp()
    Path(folder, "peer.proto").write_text(PROTO)
    protoc.main(["", f"-I{folder}", f"--python_out={folder}", f"--grpc_python_out={folder}", f"{folder}/peer.proto"])
    sys.path.insert(0, folder)
    import peer_pb2
    import peer_pb2_grpc

    run, _ = make_run(model, threads)

    class Inference(peer_pb2_grpc.InferenceServicer):
        async def Predict(self, request: Any, _: Any) -> Any:  # noqa: N802 - the name of the call
            x = np.frombuffer(request.data, np.float32).reshape(request.shape)
            y = run(x) if threads == 1 else await asyncio.to_thread(run, x)
            return peer_pb2.Tensor(shape=y.shape, data=y.tobytes())

    async def serve() -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
        peer_pb2_grpc.add_InferenceServicer_to_server(Inference(), server)
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        await server.wait_for_termination()

    asyncio.run(serve())


def serve_kserve(model: str, port: int, threads: int) -> None:
    import kserve

    run, shape = make_run(model, threads)

    class Served(kserve.Model):
        def load(self) -> bool:
            self.ready = True
            return True

        async def predict(self, payload: Any, *_: Any, **__: Any) -> Any:
            if isinstance(payload, dict):
                x = rows_of(payload["instances"], shape)
                y = run(x) if threads == 1 else await asyncio.to_thread(run, x)
                return {"predictions": y.tolist()}
            x = payload.inputs[0].as_numpy()
            y = run(x) if threads == 1 else await asyncio.to_thread(run, x)
            output = kserve.InferOutput("y", [*y.shape], "FP32")
            output.set_data_from_numpy(y, binary_data=True)
            return kserve.InferResponse(payload.id or "1", "m", [output])

    served = Served("m")
    served.load()
    kserve.ModelServer(http_port=port, enable_grpc=False, workers=1, access_log_format=None).start([served])


def serve_mlserver(model: str, port: int, threads: int) -> None:
    from mlserver import MLServer
    from mlserver.settings import ModelParameters, ModelSettings, Settings
    from mlserver_peer import Served

    async def serve() -> None:
        settings = Settings(http_port=port, grpc_port=port + 1, metrics_endpoint=None, parallel_workers=0, debug=False,
                            host="127.0.0.1", access_log=False)
        parameters = ModelParameters(uri=model, extra={"threads": threads})
        await MLServer(settings).start([ModelSettings(name="m", implementation=Served, parameters=parameters)])

    asyncio.run(serve())


def serve_litserve(model: str, port: int, threads: int) -> None:
    import litserve
    from litserve_peer import Served

    litserve.LitServer(Served(model, threads), accelerator="cpu", timeout=30).run(
        port=port, log_level="error", generate_client_file=False)


class NullProtocol(asyncio.Protocol):
    """Answers each piece of data."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, _: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")


def serve_null(_model: str, port: int, _threads: int) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(NullProtocol, "127.0.0.1", port)
        await server.serve_forever()

    try:
        import uvloop
    except ImportError:
        asyncio.run(serve())
    else:
        uvloop.run(serve())


PEERS: dict[str, Callable[[str, int, int], None]] = {
    "null": serve_null, "ort-http": serve_http, "ort-grpc": serve_grpc, "kserve": serve_kserve,
    "mlserver": serve_mlserver, "litserve": serve_litserve}


if __name__ == "__main__":
    PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
