"""The end of a server, and servers with one front alone: HTTP and gRPC drain side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import grpc
import numpy as np
import pytest
from harness.serve_grpc import Caller, arrays_of, fault
from harness.serve_models import Client, echo, infos, signature, start_server


class Gate:
    """A model whose runs wait for `gate`; `begun` counts them."""

    def __init__(self):
        self.gate, self.begun, self.count = Event(), Event(), 0

    def run(self, x):
        self.count += 1
        if self.count == 2:
            self.begun.set()
        assert self.gate.wait(30)
        return x

    def model(self):
        return {"F": signature(infos(x="float32"), infos(x="float32"), self.run)}


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as pool:
        yield pool


def refused(port):
    caller = Caller(port)
    try:
        return fault(caller.predict, "F", {"x": np.float32([1])})[0] == "UNAVAILABLE"
    except (AssertionError, grpc.RpcError):
        return False
    finally:
        caller.close()


def test_http_and_grpc_drain_side_by_side(threads):
    model, pause = Gate(), Event()
    server = start_server(model.model(), grpc_port=0, drain_timeout_in_ms=30_000)
    client, caller = Client(server.port), Caller(server.grpc_server.port)
    by_http = threads.submit(client.predict, "F", {"inputs": [1.0]})
    by_grpc = threads.submit(caller.predict, "F", {"x": np.float32([2])})
    assert model.begun.wait(30)
    end = threads.submit(server.close)
    assert any(not server.grpc_server.is_taking_calls or pause.wait(0.01) for _ in range(1000))
    assert not end.done()  # both requests still run
    model.gate.set()
    assert by_http.result(30).json == {"outputs": [1.0]}
    assert arrays_of(by_grpc.result(30))["x"].tolist() == [2]
    end.result(30)
    client.close()
    caller.close()


def test_grpc_serves_without_rest():
    server = start_server({"F": echo(x="float32")}, rest_port=None, grpc_port=0)
    caller = Caller(server.grpc_server.port)
    assert arrays_of(caller.predict("F", {"x": np.float32([3])}))["x"].tolist() == [3]
    caller.close()
    server.close()
    assert refused(server.grpc_server.port)


def test_rest_serves_without_grpc():
    server = start_server({"F": echo(x="float32")})
    client = Client(server.port)
    assert client.predict("F", {"inputs": 1}).json == {"outputs": 1.0}
    assert server.grpc_server is None
    client.close()
    server.close()
