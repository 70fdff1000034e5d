"""Requests of real clients, played byte by byte: tensorflow-serving-api, tritonclient, curl and requests.

`workers/record_clients.py` recorded them. Answers are equal but for the last digits of floats, the times and counts of
statistics, and the server's version.
"""

from __future__ import annotations

import http.client
import json
import math
import socket
from typing import Any

import grpc
import numpy as np
import pytest
from harness.recorded_clients import CLIENTS, read_recording, start_recorded_server
from heald_serve.grpc.services import SERVICES
from heald_serve.messages import message_class

LENGTH_HEADER = "inference-header-content-length"
COMPARED_HEADERS = ("content-type", "allow", "retry-after")
VOLATILE = ("inference_stats", "batch_stats", "last_inference", "inference_count", "execution_count")
NUMBERS = {"FP32": "<f4", "INT32": "<i4"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = start_recorded_server(tmp_path_factory.mktemp("models"))
    yield server
    server.close()


def is_close(one: Any, other: Any) -> bool:
    """Equality, but for the last digits of floats."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-5)
    return bool(one == other)


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_volatile(item) for key, item in value.items() if key not in VOLATILE}
    return [without_volatile(item) for item in value] if isinstance(value, list) else value


def tensors_of(rows: list[dict[str, Any]], raw: list[bytes]) -> list[Any]:
    return [np.frombuffer(data, NUMBERS[row["datatype"]]).tolist() for row, data in zip(rows, raw, strict=True)]


def document_of(body: bytes, length: str | None) -> Any:
    """The content of an HTTP answer: its JSON, with the tensors behind it as numbers."""
    size = len(body) if length is None else int(length)
    document = json.loads(body[:size])
    if length is not None:
        raw, at = [], size
        for row in document["outputs"]:
            count = row["parameters"]["binary_data_size"]
            raw.append(body[at : at + count])
            at += count
        assert at == len(body)
        document["raw"] = tensors_of(document["outputs"], raw)
    if "extensions" in document:
        document.pop("version")
    return without_volatile(document)


def play_http(port: int, exchange: dict[str, Any]) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(exchange["request"].encode("latin-1"))
        answer = http.client.HTTPResponse(connection, method=exchange["request"].split(" ", 1)[0])
        answer.begin()
        body = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
    line = exchange["request"].splitlines()[0]
    assert answer.status == exchange["status"], (line, body[:500])
    for name in COMPARED_HEADERS:
        assert headers.get(name) == exchange["headers"].get(name), line
    recorded = document_of(exchange["answer"].encode("latin-1"), exchange["headers"].get(LENGTH_HEADER))
    assert is_close(document_of(body, headers.get(LENGTH_HEADER)), recorded), (line, body[:500])


def content_of(message: Any) -> dict[str, Any]:
    """The fields of a message as Python's values."""
    content: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            content[field.name] = {key: content_of(item) for key, item in value.items()}
        elif field.message_type is None:
            content[field.name] = list(value) if not isinstance(value, str | bytes | int | float) else value
        else:
            content[field.name] = content_of(value) if hasattr(value, "ListFields") else [*map(content_of, value)]
    if "raw_output_contents" in content:
        content["raw_output_contents"] = tensors_of(content["outputs"], content["raw_output_contents"])
    if "extensions" in content:
        content.pop("version")
    if content.get("type_url", "").endswith("SignatureDefMap"):
        content["value"] = content_of(message_class("SignatureDefMap").FromString(content["value"]))
    return without_volatile(content)


def play_grpc(channel: grpc.Channel, exchange: dict[str, Any]) -> None:
    call = channel.stream_stream(exchange["method"])(data.encode("latin-1") for data in exchange["requests"])
    answers, status = [], ("OK", "")
    try:
        answers.extend(call)
    except grpc.RpcError:
        status = call.code().name, call.details()
    assert status == (exchange["code"], exchange["text"]), exchange["method"]
    service, method = exchange["method"].removeprefix("/").split("/")
    if method not in SERVICES[service]:
        assert not answers
        return
    kind = message_class(SERVICES[service][method].response)
    contents = [content_of(kind.FromString(data)) for data in answers]
    recorded = [content_of(kind.FromString(data.encode("latin-1"))) for data in exchange["answers"]]
    assert is_close(contents, recorded), (exchange["method"], contents)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_requests_of_a_client_have_their_answers(server, client):
    exchanges = read_recording(client)
    assert len(exchanges) > 20
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_server.port}") as channel:
        for exchange in exchanges:
            if "method" in exchange:
                play_grpc(channel, exchange)
            else:
                play_http(server.port, exchange)
