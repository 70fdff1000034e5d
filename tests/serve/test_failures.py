"""Failures under load, over whole servers: new and broken versions, huge bodies, clients that leave, bytes that are no
request."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from harness.serve_grpc import Caller, arrays_of
from harness.serve_models import Client, echo, infos, settings_of, signature
from heald.errors import ResourceExhausted
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump
from heald_serve.batching_parameters import BatchingParameters
from heald_serve.models.model_config import ModelConfig
from heald_serve.server import ModelServer

HOUR = 3_600_000_000  # microseconds
DEEP = ["[" * 100_000, '{"inputs": ' + "[" * 100_000 + "]" * 100_000 + "}", '{"a":' * 100_000,
        '{"inputs": [{"name": "x", "data": ' + "[" * 100_000, '{"parameters": ' + '{"a":' * 100_000]


def write_version(folder, version, factor):
    """A whole version appears at once, as a rename does it."""
    aside = folder.parent / f"aside-{version}"
    aside.mkdir()
    graph = Graph([placeholder("x", (None,)), const("factor", factor), node("y", "Mul", "x", "factor")])
    dump(graph, aside / "model.pb")
    folder.mkdir(exist_ok=True)
    aside.rename(folder / str(version))


class Load:
    """Clients that ask without a pause until `end`; each answer is the factor of a version."""

    def __init__(self, server, count=2):
        self._end, self._server = Event(), server
        self._threads = ThreadPoolExecutor(2 * count)
        self._futures = [self._threads.submit(ask) for ask in (self._ask_http, self._ask_grpc) for _ in range(count)]

    def _ask_http(self):
        client, answers = Client(self._server.port), []
        while not self._end.is_set():
            answers.append(client.predict("m", {"inputs": [1.0]}).json["outputs"][0])
        client.close()
        return answers

    def _ask_grpc(self):
        caller, answers = Caller(self._server.grpc_server.port), []
        while not self._end.is_set():
            (answer,) = arrays_of(caller.predict("m", {"x": np.float32([1])})).values()
            answers.append(answer[0])
        caller.close()
        return answers

    def end(self):
        """The answers of each client."""
        self._end.set()
        answers = [future.result(30) for future in self._futures]
        self._threads.shutdown()
        return answers


@pytest.fixture
def versions(tmp_path):
    """A server of a folder of versions that has version 1, with the factor 2."""
    folder = tmp_path / "m"
    write_version(folder, 1, 2)
    server = ModelServer(settings_of({}, models=[ModelConfig("m", folder)], grpc_port=0,
                                     file_system_poll_wait_seconds=0, max_num_load_retries=0))
    server.start()
    yield server, folder
    server.close()


def test_a_new_version_under_load_is_taken_by_every_client_without_an_error(versions):
    server, folder = versions
    load = Load(server)
    write_version(folder, 2, 10)
    server.manager.poll()
    server.manager.settle()
    client = Client(server.port)
    assert client.predict("m", {"inputs": [1.0]}).json == {"outputs": [10.0]}
    client.close()
    for answers in load.end():
        assert answers == sorted(answers)  # no client goes back
        assert set(answers) <= {2, 10}


def test_a_broken_version_under_load_leaves_the_old_one_serving(versions):
    server, folder = versions
    load = Load(server)
    (folder / "2").mkdir()
    (folder / "2" / "model.pb").write_bytes(b"broken")
    server.manager.poll()
    server.manager.settle()
    assert {answer for answers in load.end() for answer in answers} == {2}
    client = Client(server.port)
    rows = client.ask("GET", "/v1/models/m").json["model_version_status"]
    client.close()
    assert [(row["version"], row["state"]) for row in rows] == [("2", "END"), ("1", "AVAILABLE")]


class Budget:
    """A budget of memory with a small limit, which knows the most that was taken."""

    limit, taken, most = 1 << 20, 0, 0

    def take(self, nbytes, asker):
        if self.taken + nbytes > self.limit:
            raise ResourceExhausted(f"{asker} needs {nbytes} bytes")
        self.taken += nbytes
        self.most = max(self.most, self.taken)

    def give_back(self, nbytes):
        self.taken -= nbytes


@pytest.mark.parametrize("head", [b"Content-Length: 1073741824", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", ["/v1/models/F:predict", "/v2/models/F/infer"])
def test_a_body_of_a_gigabyte_is_refused_within_the_budget(start, head, path):
    server, client = start({"F": echo(x="float32")})
    budget = server.listener.config.loaded_app.memory = Budget()
    piece = b" " * (64 << 10)
    data = piece if head.startswith(b"Content") else b"%x\r\n%s\r\n" % (len(piece), piece)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % (path.encode(), head))
        for _ in range(17):  # a little more than the budget, and no more
            connection.sendall(data)
        status = int(connection.recv(1 << 16).split(b" ", 2)[1])
    assert status == 429
    assert budget.most <= budget.limit
    assert client.predict("F", {"inputs": 1.0}).json == {"outputs": 1.0}
    assert budget.taken == 0


@pytest.mark.parametrize("path", ["/v1/models/F:predict", "/v1/models/F:classify", "/v2/models/F/infer"])
def test_deep_bodies_are_refused_by_every_front(start, path):
    _, client = start({"F": echo(x="float32")})
    for body in DEEP:
        assert client.ask("POST", path, body).status == 400


def test_a_client_that_leaves_its_batch_is_not_in_it(start):
    parameters = BatchingParameters(max_batch_size=2, max_execution_batch_size=2, batch_timeout_micros=HOUR,
                                    num_batch_threads=1)
    shapes = []

    def run(x):
        shapes.append(x.shape)
        return x

    models = {"F": signature(infos(x="float32"), infos(x="float32"), run)}
    server, client = start(models, batching=parameters)
    leaving, pause = Client(server.port), Event()
    leaving.connection.request("POST", "/v1/models/F:predict", '{"instances": [7]}')
    assert any(server.predictor.pending == 1 or pause.wait(0.01) for _ in range(3000))
    leaving.close()
    assert any(server.predictor.pending == 0 or pause.wait(0.01) for _ in range(3000))
    assert client.predict("F", {"instances": [1]}).json == {"predictions": [1.0]}
    assert shapes == [(1,)]


def test_a_deadline_in_the_middle_of_a_batch_is_504_and_the_server_goes_on(start):
    parameters = BatchingParameters(max_batch_size=2, max_execution_batch_size=2, batch_timeout_micros=HOUR,
                                    num_batch_threads=1)
    server, client = start({"F": echo(x="float32")}, batching=parameters, rest_api_timeout_in_ms=50, grpc_port=0)
    assert client.predict("F", {"instances": [1]}).status == 504
    caller = Caller(server.grpc_server.port)  # which has a time of its own
    assert arrays_of(caller.predict("F", {"x": np.float32([1, 2])}))["x"].tolist() == [1, 2]
    caller.close()


@pytest.mark.parametrize("data", [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", bytes(100),
                                  b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100])
def test_a_stranger_on_the_port_of_grpc_holds_up_nobody(start, data):
    server, _ = start({"F": echo(x="float32")}, grpc_port=0)
    port = server.grpc_server.port
    strangers = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(20)]
    for stranger in strangers:
        stranger.sendall(data)
    caller = Caller(port)
    assert arrays_of(caller.predict("F", {"x": np.float32([3])}))["x"].tolist() == [3]
    caller.close()
    for stranger in strangers:
        stranger.close()
