"""Requests that are answered on the event loop, and requests that are refused there."""

import asyncio
import threading
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from harness.serve_models import Client, infos, signature
from heald.errors import DataLoss
from heald.graphs.graph.function import Function
from heald.graphs.graph.graph import Graph, Node
from heald_serve.brief_runs import BRIEF_SECONDS, FIRST_NEED, RunTimes, may_be_brief
from heald_serve.http import direct
from heald_serve.http.direct import MOST_HEADS, DirectAnswers, fields_of
from heald_serve.http.guards import Guards
from heald_serve.http.messages import Response
from heald_serve.models.served_model import signatures_of

ONE_ROW = {"x": np.zeros((1, 2), np.float32)}
BRIEF = BRIEF_SECONDS / 2


def proven_times(inputs=ONE_ROW):
    times = RunTimes()
    for _ in range(FIRST_NEED + 1):
        times.add(inputs, BRIEF)
    return times


def test_a_shape_is_brief_after_some_brief_runs_and_other_shapes_are_not():
    times = proven_times()
    assert times.are_brief(ONE_ROW)
    assert not times.are_brief({"x": np.zeros((2, 2), np.float32)})


@pytest.mark.parametrize("seconds", [0.01, 1.0, inf])
def test_slow_runs_send_a_shape_to_the_threads(seconds):
    times = proven_times()
    times.add(ONE_ROW, seconds)
    assert not times.are_brief(ONE_ROW)


def test_a_long_run_doubles_the_runs_that_a_shape_needs():
    times = proven_times()
    times.add(ONE_ROW, 1.0)
    for _ in range(2 * FIRST_NEED - 1):
        times.add(ONE_ROW, BRIEF)
    assert not times.are_brief(ONE_ROW)
    times.add(ONE_ROW, BRIEF)
    assert times.are_brief(ONE_ROW)


def test_texts_count_by_their_bytes_and_shapes_are_bounded():
    times = proven_times({"x": np.array([b"ab"], object)})
    assert times.are_brief({"x": np.array([b"ba"], object)})
    assert not times.are_brief({"x": np.array([b"ab" * 1000], object)})
    for size in range(1000):
        times.add({"x": np.zeros(size)}, BRIEF)
    assert len(times) <= 256


def graph_of(*ops, functions=()):
    return Graph([Node(f"n{at}", op) for at, op in enumerate(ops)], functions=functions)


@pytest.mark.parametrize(("ops", "is_brief"), [
    (["Placeholder", "Relu"], True), (["VarHandleOp", "ReadVariableOp"], True), (["While"], False), (["Enter"], False),
    (["QueueDequeueV2"], False), (["PyFunc"], False), (["AssignVariableOp"], False)])
def test_graphs_with_loops_or_ops_that_act_are_not_brief(ops, is_brief):
    stateful = {"VarHandleOp", "ReadVariableOp", "QueueDequeueV2", "AssignVariableOp"}
    assert may_be_brief(graph_of(*ops), stateful.__contains__) == is_brief


def test_a_loop_in_a_function_counts():
    body = Function("body", [], [], [Node("loop", "StatelessWhile")], {})
    assert not may_be_brief(graph_of("PartitionedCall", functions=[body]), lambda _: False)


@pytest.mark.parametrize(("ops", "devices", "is_brief"), [
    ({"Conv2D", "Relu"}, ("CPU:0",), True), ({"While"}, ("CPU:0",), False), ({"QueueDequeueV2"}, ("CPU:0",), False),
    ({"Relu", "ReadVariableOp"}, (), True), ({"Relu"}, ("CPU:0", "GPU:0"), False), (None, ("CPU:0",), False)])
def test_a_compiled_model_is_judged_by_the_ops_and_devices_of_its_program(ops, devices, is_brief):
    """Ops are None for a program with host kernels."""
    model = SimpleNamespace(signatures={}, inputs={}, outputs={}, program_ops=lambda: ops,
                            program_devices=devices)
    (signature,) = signatures_of(model, {"ReadVariableOp", "QueueDequeueV2"}.__contains__).values()
    assert (signature.times is not None) == is_brief


def test_a_compiled_model_with_damaged_functions_and_one_of_a_plugin_run_in_threads():
    def ops():
        raise DataLoss("damaged")

    for fields in ({"program_ops": ops, "program_devices": ()}, {}):
        (signature,) = signatures_of(SimpleNamespace(signatures={}, inputs={}, outputs={}, **fields)).values()
        assert signature.times is None


def request_text(head="", body=b"{}", *, target="/v1/models/m:predict", length=None):
    size = len(body) if length is None else length
    return f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{head}\r\n".encode() + body


def make_answers(route=lambda *_: Response(200, b"[]"), *, most=1000, is_full=lambda: False, guards=None):
    refused = []
    return DirectAnswers({b"/v1": route}, guards or Guards(None), most, is_full, refused.append), refused


def ask(answers, *requests):
    async def run():
        return [answers(request, [(b"date", b"today")]) for request in requests]

    return asyncio.run(run())


def test_a_plain_request_is_answered_in_one_piece():
    answers, _ = make_answers(lambda target, headers, body: Response(200, target.encode() + headers[b"host"] + body))
    (answer,) = ask(answers, request_text())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [b"HTTP/1.1 200 OK", b"content-type: application/json", b"content-length: 31",
                                   b"date: today"]
    assert body == b"/v1/models/m:predictlocalhost{}"


@pytest.mark.parametrize("request_bytes", [
    request_text("Transfer-Encoding: chunked\r\n"), request_text("Connection: close\r\n"),
    request_text("Content-Encoding: gzip\r\n"), request_text("Expect: 100-continue\r\n"),
    request_text("Content-Length: 2\r\n"), request_text("X\x01: 1\r\n"), request_text(" folded: 1\r\n"),
    request_text("name : 1\r\n"), request_text("name\r\n"), request_text("a: b\nc: d\r\n"), request_text("a: \xff\r\n"),
    request_text(length=1), request_text(length=3), request_text(length="+2"), request_text(length=""),
    request_text(target="/v1/models/a b:predict"), request_text(target="/v2/models/m/infer"),
    request_text(target="/metrics"), request_text()[:-3], request_text()[:20], b"GET" + request_text()[4:],
    request_text() + request_text(), request_text(f"a: {'b' * 10_000}\r\n")])
def test_an_unusual_request_goes_the_ordinary_way(request_bytes):
    answers, refused = make_answers()
    assert ask(answers, request_bytes) == [None]
    assert not refused


@pytest.mark.parametrize("route", [lambda *_: None, lambda *_: 1 / 0])
def test_a_route_without_an_answer_and_one_that_fails_leave_it_to_the_ordinary_way(route):
    answers, _ = make_answers(route)
    assert ask(answers, request_text()) == [None]


@pytest.mark.parametrize("request_bytes", [
    request_text("Transfer-Encoding: chunked\r\n"), request_text("content-length: 2\r\n"), request_text(length=3),
    request_text(length="+2"), request_text()[:-1], request_text() + request_text(), request_text(length="")])
def test_a_late_turn_leaves_a_request_that_is_not_whole_to_the_ordinary_way(monkeypatch, request_bytes):
    monkeypatch.setattr(direct, "TURN_SECONDS", -1)
    answers, refused = make_answers(most=0)
    assert ask(answers, request_bytes) == [None]
    assert not refused


def test_a_refusal_has_the_date_of_its_second():
    answers, _ = make_answers(is_full=lambda: True)
    first, second = [(b"date", b"one")], [(b"date", b"two")]

    async def run():
        return [answers(request_text(), headers) for headers in (first, first, second)]

    dates = [answer.partition(b"date: ")[2][:3] for answer in asyncio.run(run())]
    assert dates == [b"one", b"one", b"two"]


def test_a_request_that_the_guards_refuse_goes_the_ordinary_way():
    answers, _ = make_answers(guards=Guards(None, "secret"))
    assert ask(answers, request_text()) == [None]
    assert ask(answers, request_text("Authorization: Bearer secret\r\n")) != [None]


def test_a_repeated_head_has_the_body_of_each_request():
    answers, _ = make_answers(lambda target, headers, body: Response(200, headers[b"a"] + body))
    requests = [request_text("a: 1\r\n"), request_text("a: 1\r\n", b"[]"), request_text("a: 2\r\n"),
                request_text("a: 1\r\n", b"[ ]"), request_text("a: 1\r\n", b"{", length=2), request_text("a: 1\r\n")]
    answers = ask(answers, *requests)
    assert [answer and answer.partition(b"\r\n\r\n")[2] for answer in answers] == [
        b"1{}", b"1[]", b"2{}", b"1[ ]", None, b"1{}"]


def test_remembered_heads_are_bounded_and_none_is_one_that_the_guards_refuse():
    answers, _ = make_answers(guards=Guards(None, "secret"))
    ask(answers, *[request_text(f"a: {number}\r\n") for number in range(10)])
    assert answers.head_count == 0
    ask(answers, *[request_text(f"Authorization: Bearer secret\r\na: {number}\r\n") for number in range(1000)])
    assert 0 < answers.head_count <= MOST_HEADS


def test_fields_of_equal_names_are_unusual():
    assert fields_of(b"A: 1\r\na: 2\r\n") is None
    assert fields_of(b"A:1 \r\nb: 2\r\n") == {b"a": b"1", b"b": b"2"}


def test_a_turn_that_lasts_too_long_refuses_the_rest_of_its_requests(monkeypatch):
    monkeypatch.setattr(direct, "TURN_SECONDS", -1)
    answers, refused = make_answers(most=2)
    first, second, third = ask(answers, *[request_text()] * 3)
    assert first == second != third
    assert third.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\n" in third
    assert refused == ["/v1/models/m:predict"]
    assert ask(answers, request_text()) == [first]  # a turn of another loop


def test_a_short_turn_refuses_nothing():
    answers, refused = make_answers(most=2)
    assert len({*ask(answers, *[request_text()] * 50)}) == 1
    assert not refused


def test_full_threads_refuse_before_the_body_is_read():
    answers, refused = make_answers(route=lambda *_: 1 / 0, is_full=lambda: True)
    (answer,) = ask(answers, request_text(body=b"no json"))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert len(refused) == 1


def served(function, times):
    (row,) = signature(infos(x="float32"), infos(y="float32"), function).values()
    return {row.name: row._replace(times=times)}


def test_brief_runs_move_to_the_event_loop_with_equal_answers(start):
    threads = []

    def run(x):
        threads.append(threading.current_thread().name)
        return 2 * x

    _, client = start({"m": served(run, RunTimes())})
    answers = {client.predict("m", {"instances": [[1.5, 2.0]]}).body for _ in range(FIRST_NEED + 4)}
    assert answers == {b'{"predictions": [[3.0, 4.0]]}'}
    assert threads[0].startswith("heald-serve-run")
    assert threads[-1] == "heald-serve-http"
    binary = {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1.5, 2.0]}]}
    answer = client.ask("POST", "/v2/models/m/infer", binary)
    assert answer.json["outputs"][0]["data"] == [3.0, 4.0]
    assert threads[-1] == "heald-serve-http"
    assert client.predict("m", {"instances": [["a"]]}).status == 400
    assert client.predict("none", {"instances": [[1.0]]}).status == 404


def test_a_brief_run_that_fails_has_the_ordinary_error(start):
    times = proven_times()

    def fail(x):
        raise ValueError(f"no {x.shape}")

    _, client = start({"m": served(fail, times)})
    answer = client.predict("m", {"instances": [[1.0, 2.0]]})
    assert answer.status == 500
    assert "no (1, 2)" in answer.error


def test_requests_of_a_late_turn_get_503_and_are_counted(start, monkeypatch):
    monkeypatch.setattr(direct, "TURN_SECONDS", -1)
    server, client = start({"m": served(lambda x: x, proven_times())}, rest_api_num_threads=1, max_queued_requests=0)
    body = {"instances": [[1.0, 2.0]]}
    assert client.predict("m", body).status == 200
    answers = server.direct_answers()
    assert [answer[9:12] for answer in ask(answers, *[request_text(body=b'{"instances": [[1.0, 2.0]]}')] * 2)] == [
        b"200", b"503"]
    assert server.metrics.request_count.value("m", "UNAVAILABLE") == 1


def test_connections_of_the_backlog_are_accepted_after_a_long_turn(start, monkeypatch):
    monkeypatch.setattr(direct, "LONG_TURN_REQUESTS", 0)
    _, client = start({"m": served(lambda x: x, proven_times())})
    clients = [client, *(Client(client.port) for _ in range(8))]
    for _ in range(3):
        assert {each.predict("m", {"instances": [[1.0, 2.0]]}).status for each in clients} == {200}
    for each in clients[1:]:
        each.close()


def test_a_kept_connection_ends_after_its_last_direct_answer(start):
    server, client = start({"m": served(lambda x: x, proven_times())})
    assert client.predict("m", {"instances": [[1.0, 2.0]]}).status == 200
    (connection,) = server.listener.server_state.connections
    connection.loop.call_soon_threadsafe(connection.timeout_keep_alive_handler)  # its timer ends early
    assert client.predict("m", {"instances": [[1.0, 2.0]]}).status == 200
    connection.timeout_keep_alive = 0
    connection.loop.call_soon_threadsafe(connection.timeout_keep_alive_handler)
    assert client.connection.sock.recv(1) == b""


def test_the_options_that_ask_for_more_of_an_answer_turn_direct_answers_off(start):
    server, _ = start({"m": served(lambda x: x, RunTimes())}, rest_api_enable_cors_support=True)
    assert server.direct_answers() is None


