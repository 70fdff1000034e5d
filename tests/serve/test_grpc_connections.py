"""Connections to the port of gRPC: their number, their silence, and their end."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event

import numpy as np
import pytest
from harness.serve_grpc import PREDICTION, Caller, arrays_of, fault
from harness.serve_models import echo
from heald_serve.grpc.grpc_server import IDLE_SECONDS, connection_arguments
from heald_serve.grpc.tensors import write_tensor
from heald_serve.messages import message_class

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ONE = {"x": np.float32([1])}


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def read_all(connection):
    """The bytes until the server ends the connection."""
    parts = []
    with suppress(ConnectionError):  # a reset is an end, too
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def is_taken(connection):
    """True for a connection that the server speaks on: it sends its settings first."""
    with suppress(ConnectionError):
        return bool(connection.recv(1 << 16))
    return False


@pytest.fixture
def ports(start):
    """A function that starts a server with these options and returns its port of gRPC."""
    def begin(**changes):
        server, _ = start({"F": echo(x="float32")}, grpc_port=0, **changes)
        return server.grpc_server.port

    return begin


@pytest.fixture
def opened():
    connections = []
    yield connections
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("data", [b"", b"P", PREFACE[:10], PREFACE, PREFACE + b"\0\0\0"])
def test_a_connection_that_does_not_begin_to_speak_is_ended(ports, opened, data):
    port = ports(request_read_timeout_in_ms=200)
    for _ in range(3):
        opened.append(dial(port))
        opened[-1].sendall(data)
    for connection in opened:
        read_all(connection)  # ends


def test_connections_beyond_the_cap_are_ended_and_others_go_on(ports, opened):
    port = ports(max_connections=3)
    caller = Caller(port)
    assert arrays_of(caller.predict("F", ONE))["x"].tolist() == [1]
    opened += [dial(port) for _ in range(2)]
    assert all(map(is_taken, opened))
    opened += [dial(port) for _ in range(3)]
    assert not any(is_taken(connection) for connection in opened[2:])
    assert arrays_of(caller.predict("F", ONE))["x"].tolist() == [1]
    caller.close()


def test_a_place_that_is_free_again_is_taken(ports, opened):
    port = ports(max_connections=1)
    opened.append(dial(port))
    assert is_taken(opened[0])
    caller = Caller(port)
    assert fault(caller.predict, "F", ONE)[0] == "UNAVAILABLE"
    opened[0].close()
    assert arrays_of(caller.predict("F", ONE, wait_for_ready=True))["x"].tolist() == [1]
    caller.close()


def test_silent_connections_hold_the_places_for_a_while_alone(ports, opened):
    port = ports(max_connections=2, request_read_timeout_in_ms=500)
    opened += [dial(port) for _ in range(2)]
    caller = Caller(port)
    assert arrays_of(caller.predict("F", ONE, wait_for_ready=True, timeout=60))["x"].tolist() == [1]
    caller.close()


def test_arguments_of_the_command_line_count_before_those_of_the_server(ports, opened):
    port = ports(max_connections=100, grpc_channel_arguments="grpc.max_allowed_incoming_connections=1")
    opened += [dial(port) for _ in range(2)]
    assert [is_taken(connection) for connection in opened] == [True, False]


def test_a_caller_whose_connection_ends_ends_its_run(start):
    begun, cancelled = Event(), Event()
    (name, model), = echo(x="float32").items()

    def call(inputs, options):
        options.cancel.on_cancel(cancelled.set)
        begun.set()
        assert cancelled.wait(30)
        return inputs

    server, _ = start({"F": {name: model._replace(call=call)}}, grpc_port=0)
    caller = Caller(server.grpc_server.port)
    request = message_class("PredictRequest")()
    request.model_spec.name = "F"
    write_tensor(request.inputs["x"], np.float32([1]))
    future = caller.stub(PREDICTION, "Predict").future(request)
    assert begun.wait(30)
    caller.close()
    assert cancelled.wait(30)
    assert future.code() is not None


def test_idle_and_dead_connections_have_an_end():
    arguments = dict(connection_arguments(7, 60.0))
    assert arguments["grpc.max_connection_idle_ms"] == 1000 * IDLE_SECONDS
    assert 0 < arguments["grpc.keepalive_timeout_ms"] < arguments["grpc.keepalive_time_ms"] <= 60_000
    assert arguments["grpc.max_allowed_incoming_connections"] == 7
