"""Connections that a stranger may open: slow, half, huge, malformed, deep, under another's name."""

from __future__ import annotations

import socket
from threading import Event

import numpy as np
from harness.serve_models import echo, infos, signature

HEAD = b"POST /v1/models/F:predict HTTP/1.1\r\nHost: localhost\r\n"


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def read_all(connection):
    """The bytes until the server ends the connection."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def status_of(data):
    return int(data.split(b" ", 2)[1])


def test_a_client_that_sends_nothing_is_ended(start):
    server, _ = start({"F": echo(x="float32")}, request_read_timeout_in_ms=50)
    with dial(server.port) as connection:
        assert status_of(read_all(connection)) == 408


def test_a_head_that_does_not_end_is_ended(start):
    server, _ = start({"F": echo(x="float32")}, request_read_timeout_in_ms=50)
    with dial(server.port) as connection:
        connection.sendall(HEAD + b"X: ")
        assert status_of(read_all(connection)) == 408


def test_a_half_body_is_ended_at_the_deadline_from_its_first_byte(start):
    server, client = start({"F": echo(x="float32")}, request_read_timeout_in_ms=50)
    with dial(server.port) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert status_of(read_all(connection)) == 408
    assert client.ask("GET", "/livez").status == 200


def test_a_client_that_leaves_with_half_a_body_leaves_no_trace(start):
    server, client = start({"F": echo(x="float32")})
    with dial(server.port) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n" + b" " * 300_000)
    assert client.predict("F", {"inputs": 1.0}).json == {"outputs": 1.0}


def test_a_body_above_the_limit_is_refused_before_it_is_read(start):
    server, _ = start({"F": echo(x="float32")}, max_body_bytes=1000)
    with dial(server.port) as connection:
        connection.sendall(HEAD + b"Content-Length: 1073741824\r\n\r\n")
        assert status_of(connection.recv(1 << 16)) == 413


def test_chunks_above_the_limit_are_refused(start):
    server, client = start({"F": echo(x="float32")}, max_body_bytes=1000)
    chunk = b"320\r\n" + b" " * 0x320 + b"\r\n"
    with dial(server.port) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + 2 * chunk + b"0\r\n\r\n")
        assert status_of(connection.recv(1 << 16)) == 413
    assert client.predict("F", b" " * 900 + b'{"inputs": 1}').status == 200


def test_bodies_together_keep_to_the_budget_of_memory(start):
    from heald.errors import ResourceExhausted

    class Budget:
        taken = 0

        def take(self, nbytes, asker):
            if self.taken + nbytes > 1 << 20:
                raise ResourceExhausted(f"{asker} needs {nbytes} bytes")
            self.taken += nbytes

        def give_back(self, nbytes):
            self.taken -= nbytes

    server, client = start({"F": echo(x="float32")})
    budget = server.listener.config.loaded_app.memory = Budget()
    answer = client.predict("F", b" " * (2 << 20))
    assert (answer.status, answer.json) == (429, {"error": answer.error})
    assert client.predict("F", b" " * (400 << 10) + b'{"inputs": 1}').status == 200
    answer = client.predict("F", {"inputs": [1] * 40_000})  # its values are larger than its body
    assert (answer.status, "the values of a request" in answer.error) == (429, True)
    assert budget.taken == 0


def test_a_huge_head_is_refused(start):
    server, client = start({"F": echo(x="float32")})
    with dial(server.port) as connection:
        connection.sendall(HEAD + b"X: " + b"a" * (70 << 10))
        connection.sendall(b"a" * (70 << 10))
        assert status_of(connection.recv(1 << 16)) == 431
    assert client.ask("GET", "/livez", X="a" * 1000).status == 200


def test_bytes_that_are_no_request_are_refused(start):
    server, client = start({"F": echo(x="float32")})
    for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                 HEAD + b"Content-Length: -1\r\n\r\n", HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                 HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        with dial(server.port) as connection:
            connection.sendall(data)
            assert status_of(read_all(connection)) == 400
    assert client.ask("GET", "/livez").status == 200


def test_connections_beyond_the_cap_are_refused(start):
    server, client = start({"F": echo(x="float32")}, max_connections=2)
    assert client.ask("GET", "/livez").status == 200
    with dial(server.port) as second:
        second.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status_of(second.recv(1 << 16)) == 200
        with dial(server.port) as third:
            third.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status_of(read_all(third)) == 503


def test_a_client_that_does_not_read_is_ended(start):
    from heald_serve.http.protocol import ConnectionLimits

    big = signature(infos(x="float32"), infos(y="float32"), lambda x: np.zeros(3_000_000, "f"))
    server, _ = start({"F": big})
    server.listener.config.http_protocol_class.keywords["limits"] = ConnectionLimits(write_seconds=0.05)
    with dial(server.port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(HEAD + b'Content-Length: 13\r\n\r\n{"inputs": 1}')
        assert b"200 OK" in connection.recv(1 << 10)
        assert is_ended(server)


def is_ended(server):
    """Wait until the server has no connection; False after ten seconds."""
    pause = Event()
    return any(not server.listener.server_state.connections or pause.wait(0.01) for _ in range(1000))


def test_two_requests_at_once_on_a_connection_are_answered_in_order(start):
    server, _ = start({"F": echo(x="float32")})
    first, second = ((HEAD + b"Content-Length: 13\r\n\r\n" + b'{"inputs": %d}' % number) for number in (1, 2))
    with dial(server.port) as connection:
        connection.sendall(first + second + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = read_all(connection)
    assert text.count(b"HTTP/1.1 200") == 3
    assert text.index(b'"outputs": 1.0') < text.index(b'"outputs": 2.0') < text.index(b"ok\n")


def test_another_name_of_a_loopback_address_is_refused(start):
    _, client = start({"F": echo(x="float32")})
    for host, status in (("localhost", 200), ("LOCALHOST:99", 200), ("[::1]:1", 200), ("127.0.0.1", 200),
                         ("evil.example", 403), ("evil.example:8501", 403), ("", 403), ("localhost.evil.example", 403)):
        assert client.ask("GET", "/livez", Host=host).status == status
    _, client = start({"F": echo(x="float32")}, allowed_hosts="box, other")
    assert [client.ask("GET", "/livez", Host=host).status for host in ("box", "localhost", "evil")] == [200, 200, 403]
    _, client = start({"F": echo(x="float32")}, allowed_hosts="*")
    assert client.ask("GET", "/livez", Host="any").status == 200


def test_a_token_is_needed_but_by_probes(start):
    _, client = start({"F": echo(x="float32")}, token="secret")  # noqa: S106 - of this test
    answer = client.predict("F", {"inputs": 1})
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    for text, status in (("Bearer secret", 200), ("bearer  secret", 200), ("Bearer wrong", 401), ("secret", 401)):
        assert client.ask("GET", "/v1/models/F", Authorization=text).status == status
    assert client.ask("GET", "/livez").status == 200
    assert client.ask("GET", "/metrics").status == 401


def test_a_new_client_may_ask_while_another_is_slow(start):
    server, client = start({"F": echo(x="float32")})
    with dial(server.port) as slow:
        slow.sendall(HEAD)
        assert client.predict("F", {"inputs": 1}).status == 200


def test_the_end_waits_for_a_running_request():
    from threading import Thread

    from harness.serve_models import Client, start_server

    gate, begun = Event(), Event()

    def run(x):
        begun.set()
        assert gate.wait(30)
        return x

    server = start_server({"F": signature(infos(x="float32"), infos(y="float32"), run)}, drain_timeout_in_ms=30_000)
    client = Client(server.port)
    client.connection.request("POST", "/v1/models/F:predict", '{"inputs": 1}')
    assert begun.wait(30)
    end = Thread(target=server.close)
    end.start()
    gate.set()
    assert client.connection.getresponse().read() == b'{"outputs": 1.0}'
    client.close()
    end.join(30)
    assert not end.is_alive()


def test_the_end_does_not_wait_longer_than_its_limit():
    from harness.serve_models import Client, start_server

    begun, cancelled = Event(), Event()
    models = {"F": echo(x="float32")}
    (model,) = models["F"].values()

    def call(inputs, options):
        options.cancel.on_cancel(cancelled.set)
        begun.set()
        assert cancelled.wait(30)
        return inputs

    models["F"] = {"serving_default": model._replace(call=call)}
    server = start_server(models, drain_timeout_in_ms=1)
    client = Client(server.port)
    client.connection.request("POST", "/v1/models/F:predict", '{"inputs": 1}')
    assert begun.wait(30)
    server.close()
    assert cancelled.is_set()
    client.close()
