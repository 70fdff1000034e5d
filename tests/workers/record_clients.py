"""Recordings of the clients of model servers: the bytes of their requests, and the answers.

    python tests/workers/record_clients.py models FOLDER        # by TensorFlow 2.21: half_plus_two and text
    python tests/workers/record_clients.py record CLIENT PYTHON # CLIENT: serving_api, triton or tutorial

Each client is a script in `serving_clients`. PYTHON is the interpreter of an environment that has its packages:
tensorflow-serving-api 2.21; tritonclient[http,grpc] 2.73; requests 2.34, and curl beside it. The script checks the
answers; those of serving_api are compared with TensorFlow's own. Between client and server are two proxies, which keep
the exchanges. `tests/data/serving_clients` has models and recordings; `serve/test_recorded_clients.py` plays them.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import tempfile
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))


LONGEST_SECONDS = 3600.0  # grpcio tells a call without a deadline some hundred years


def make_half_plus_two(folder: Path) -> None:
    """The model of TensorFlow Serving's tutorial: signatures to predict, regress and classify."""
    import tensorflow.compat.v1 as tf1

    definitions, name_of = tf1.saved_model.signature_def_utils, tf1.saved_model.signature_constants
    with tf1.Graph().as_default(), tf1.Session() as session:
        a, b, c = (tf1.Variable(value, name=name) for value, name in ((0.5, "a"), (2.0, "b"), (3.0, "c")))
        examples = tf1.placeholder(tf1.string, name="tf_example")
        features = tf1.parse_example(examples, {
            "x": tf1.FixedLenFeature([1], tf1.float32), "x2": tf1.FixedLenFeature([1], tf1.float32, [0.0])})
        x, x2 = tf1.identity(features["x"], name="x"), tf1.identity(features["x2"], name="x2")
        y, y2, y3 = (tf1.add(tf1.multiply(a, value), bias, name=name)
                     for value, bias, name in ((x, b, "y"), (x, c, "y2"), (x2, c, "y3")))
        rows = (("regress_x_to_y", "inputs", examples, "outputs", y, name_of.REGRESS_METHOD_NAME),
                ("regress_x_to_y2", "inputs", examples, "outputs", y2, name_of.REGRESS_METHOD_NAME),
                ("regress_x2_to_y3", "inputs", x2, "outputs", y3, name_of.REGRESS_METHOD_NAME),
                ("classify_x_to_y", "inputs", examples, "scores", y, name_of.CLASSIFY_METHOD_NAME),
                ("classify_x2_to_y3", "inputs", x2, "scores", y3, name_of.CLASSIFY_METHOD_NAME),
                ("serving_default", "x", x, "y", y, name_of.PREDICT_METHOD_NAME))
        info = tf1.saved_model.utils.build_tensor_info
        signatures = {name: definitions.build_signature_def({key: info(value)}, {result_key: info(result)}, method)
                      for name, key, value, result_key, result, method in rows}
        session.run(tf1.global_variables_initializer())
        builder = tf1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save()


def make_text(folder: Path) -> None:
    """A Keras model from texts to two probabilities."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    words = tf.keras.layers.TextVectorization(max_tokens=20, output_mode="multi_hot")
    words.adapt(["a fine film", "a dull film", "what a fine day", "dull and long"])
    model = tf.keras.Sequential([tf.keras.Input(shape=(), dtype=tf.string), words,
                                 tf.keras.layers.Dense(2, activation="softmax")])
    model.export(str(folder))


class LoggingReader:
    """A file of a socket that keeps all bytes that were read."""

    def __init__(self, file: Any) -> None:
        self._file, self.data = file, bytearray()

    def readline(self, limit: int = -1) -> bytes:
        data: bytes = self._file.readline(limit)
        self.data += data
        return data

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self.data += data
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Recording:
    """The exchanges of a client, in their order."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.exchanges: list[dict[str, Any]] = []

    def add(self, **exchange: Any) -> None:
        with self._lock:
            self.exchanges.append(exchange)


def http_proxy(server_port: int, recording: Recording) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.rfile: Any = LoggingReader(self.rfile)

        def forward(self) -> None:
            if self.headers.get("transfer-encoding", "") == "chunked":
                while (size := int(self.rfile.readline(), 16)) > 0:
                    self.rfile.read(size + 2)
                self.rfile.readline()
            else:
                self.rfile.read(int(self.headers.get("content-length", 0)))
            request, self.rfile.data = bytes(self.rfile.data), bytearray()
            with socket.create_connection(("127.0.0.1", server_port)) as connection:
                connection.sendall(request)
                reader = LoggingReader(connection.makefile("rb"))
                answer = http.client.HTTPResponse(connection, method=self.command)
                answer.fp = reader
                answer.begin()
                body = answer.read()
                headers = {name.lower(): value for name, value in answer.getheaders()}
                headers.pop("date", None)
                recording.add(request=request.decode("latin-1"), status=answer.status, headers=headers,
                              answer=body.decode("latin-1"))
                self.wfile.write(reader.data)

        do_GET = do_POST = do_PUT = forward  # noqa: N815 - the names of http.server

        def log_message(self, *_: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def grpc_proxy(server_port: int, recording: Recording) -> tuple[Any, int]:
    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{server_port}")

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            method, metadata = details.method, dict(details.invocation_metadata)

            def forward(requests: Any, context: Any) -> Any:
                sent: list[bytes] = []
                answers: list[bytes] = []

                def keep() -> Any:
                    for request in requests:
                        sent.append(request)
                        yield request

                seconds = context.time_remaining()
                call = channel.stream_stream(method)(keep(), timeout=seconds if seconds < LONGEST_SECONDS else None)
                code, text = "OK", ""
                try:
                    for answer in call:
                        answers.append(answer)
                        yield answer
                except grpc.RpcError:
                    code, text = call.code().name, call.details()
                recording.add(method=method, user_agent=metadata.get("user-agent", ""), code=code, text=text,
                              requests=[data.decode("latin-1") for data in sent],
                              answers=[data.decode("latin-1") for data in answers])
                if code != "OK":
                    context.abort(getattr(grpc.StatusCode, code), text)

            return grpc.stream_stream_rpc_method_handler(forward)

    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers([Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def record(client: str, python: str) -> None:
    from harness.recorded_clients import DATA, start_recorded_server, write_recording

    recording = Recording()
    with tempfile.TemporaryDirectory() as folder:
        server = start_recorded_server(Path(folder))
        over_http = http_proxy(server.port, recording)
        thread = Thread(target=over_http.serve_forever, daemon=True)
        thread.start()
        over_grpc, grpc_port = grpc_proxy(server.grpc_server.port, recording)
        script = Path(__file__).with_name("serving_clients") / f"{client}.py"
        try:
            addresses = (f"http://localhost:{over_http.server_port}", f"localhost:{grpc_port}")
            subprocess.run([python, script, *addresses, DATA], check=True, timeout=120)
        finally:
            over_http.shutdown()
            over_grpc.stop(1).wait()
            server.close()
    write_recording(client, recording.exchanges)
    print(json.dumps({"client": client, "exchanges": len(recording.exchanges)}))


def main() -> None:
    command, *arguments = sys.argv[1:]
    if command == "models":
        make_half_plus_two(Path(arguments[0]) / "half_plus_two" / "00000123")
        make_text(Path(arguments[0]) / "text" / "1")
    else:
        record(*arguments)


if __name__ == "__main__":
    main()
