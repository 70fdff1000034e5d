"""The open-loop load: its requests, its client, and its HTTP/2."""

import asyncio
import json
import struct

import numpy as np
import pytest

X = np.arange(4, dtype=np.float32).reshape(1, 2, 2)


@pytest.fixture
def load(module):
    return module("serve_load")


@pytest.fixture
def client(module):
    return module("load_client")


def test_a_request_has_its_length_and_the_form_of_its_server(load):
    head, _, body = load.request_of(load.Case("heald", "m", "json"), X, "x").partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/models/m:predict HTTP/1.1\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert json.loads(body) == {"instances": X.tolist()}
    assert load.request_of(load.Case("litserve", "m", "json"), X, "x").startswith(b"POST /predict ")
    v2_head, _, v2_body = load.request_of(load.Case("kserve", "m", "v2"), X, "x").partition(b"\r\n\r\n")
    assert v2_body.endswith(X.tobytes())
    assert b"Inference-Header-Content-Length: " + str(len(v2_body) - X.nbytes).encode() in v2_head


def test_a_message_for_the_peer_has_shape_and_bytes(load):
    assert load.peer_message(X) == b"\x0a\x03\x01\x02\x02\x12\x10" + X.tobytes()
    assert load.varint(300) == b"\xac\x02"


def test_a_model_of_bytes_computes_as_its_source(load, tmp_path):
    import heald
    from heald.graphs.graph.graph import Graph, Node
    from heald.graphs.graph.graphdef import dump
    from heald.runtime.values import dtypes

    place = Node("x", "Placeholder", attrs={"dtype": dtypes.float32, "shape": (None, 2, 2)})
    dump(Graph([place, Node("y", "Neg", ["x"], attrs={"T": dtypes.float32})]), tmp_path / "m.pb")
    load.write_bytes_model(tmp_path / "m.pb", tmp_path / "bytes.pb", X.shape[1:])
    model = heald.load(tmp_path / "bytes.pb")
    np.testing.assert_array_equal(model(np.array([X.tobytes()], object)), -X)


def test_the_status_of_a_call_is_a_literal_in_its_trailers(client):
    block = client.literal_headers(("grpc-status", "14"), ("grpc-message", "full"))
    assert client.status_in(block) == "14"
    assert client.status_in(client.literal_headers(("grpc-message", "full"))) == client.RESET


def test_a_frame_has_its_length_kind_flags_and_stream(client):
    data = client.frame(client.DATA, client.END_STREAM, 5, b"abc")
    assert data == b"\x00\x00\x03\x00\x01" + struct.pack(">I", 5) + b"abc"


class Answering(asyncio.Protocol):
    """Answers the first requests, and refuses the others."""

    left = 0

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        Answering.left -= 1
        line = b"200 OK" if Answering.left >= 0 else b"503 Busy"
        self.transport.write(b"HTTP/1.1 " + line + b"\r\nContent-Length: 2\r\n")
        self.transport.write(b"\r\n{}")


@pytest.mark.parametrize("rate", [200.0, 0.0])
def test_a_load_counts_answers_by_status(client, tmp_path, rate):
    (tmp_path / "request").write_bytes(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    Answering.left = 5

    async def run():
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        task = client.LoadTask(client.HTTP, port, str(tmp_path / "request"), rate=rate, seconds=0.2, connections=2)
        async with server:
            return await client.run(task)

    result = asyncio.run(run())
    assert result.statuses["200"] == 5
    assert result.statuses["503"] == result.sent - 5 > 0
    assert result.goodput == pytest.approx(25, rel=0.5)


def test_an_open_load_counts_requests_without_an_answer(client, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "LAST_ANSWER_SECONDS", 0.05)
    (tmp_path / "request").write_bytes(b"x")

    async def run():
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        task = client.LoadTask(client.HTTP, port, str(tmp_path / "request"), rate=100.0, seconds=0.1)
        async with server:
            return await client.run(task)

    result = asyncio.run(run())
    assert result.statuses == {client.NO_ANSWER: result.sent}
    assert result.goodput == 0


def test_requests_that_wait_too_long_for_a_connection_are_given_up(client, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "MOST_CONNECTIONS", 1)
    (tmp_path / "request").write_bytes(b"x")

    class Late(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            asyncio.get_running_loop().call_later(
                0.1, self.transport.write, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def run():
        server = await asyncio.get_running_loop().create_server(Late, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        task = client.LoadTask(client.HTTP, port, str(tmp_path / "request"), rate=100.0, seconds=0.3, limit=0.05)
        async with server:
            return await client.run(task)

    result = asyncio.run(run())
    assert result.statuses[client.GIVEN_UP] > 0
    assert sum(result.statuses.values()) == result.sent
    assert result.goodput == 0


def test_calls_of_grpc_are_counted_by_their_code(client, tmp_path):
    import grpc

    calls = []

    def answer(request, context):
        calls.append(request)
        if len(calls) % 2:
            context.abort(grpc.StatusCode.UNAVAILABLE, "full")
        return request

    from concurrent.futures import ThreadPoolExecutor

    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("s", {
        "M": grpc.unary_unary_rpc_method_handler(answer)})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    message = bytes(200_000)  # more than the first window
    (tmp_path / "request").write_bytes(message)
    task = client.LoadTask(client.GRPC, port, str(tmp_path / "request"), "/s/M", rate=60.0, seconds=0.2)
    result = asyncio.run(client.run(task))
    server.stop(0)
    assert {*calls} == {message}
    assert result.statuses.keys() == {"0", "14"}
    assert sum(result.statuses.values()) == len(calls)
