"""The command as a process, and servers of real models: formats, versions, warm-up, TLS, the end by a signal."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from harness.serve_models import Client, settings_of
from heald.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted, Unimplemented
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump
from heald_client import ClientError, connect
from heald_serve.access_log import report_line
from heald_serve.messages import message_class
from heald_serve.metrics import Metrics
from heald_serve.models.load_version import LoadSettings, load_version
from heald_serve.models.model_config import ModelConfig
from heald_serve.models.warmup import masked_crc32c
from heald_serve.server import ModelServer
from heald_serve.settings import TlsTexts

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
IMAGES = np.load(DIGITS / "test.npz")["image"][:2]


def serve_folder(start_config, **changes):
    server = ModelServer(settings_of({}, models=[start_config], **changes))
    server.start()
    return server


@pytest.fixture
def process():
    processes = []

    def start(*words):
        command = [sys.executable, "-m", "heald", "serve", *map(str, words), "--port=0"]
        environment = {key: value for key, value in os.environ.items() if key not in ("MODEL_NAME", "MODEL_BASE_PATH")}
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        processes.append(child)
        return child

    yield start
    for child in processes:
        child.kill()
        child.wait()
        child.stderr.close()


def port_of(child):
    """The port that the process tells when it serves."""
    for line in child.stderr:
        match = re.search(r"at http://127\.0\.0\.1:(\d+)/", line)
        if match:
            return int(match[1])
    raise AssertionError("the process ended")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_after_its_running_requests(process, number):
    child = process(DIGITS / "frozen.pb", f"--rest_api_port={free_port()}")
    client = Client(port_of(child))
    answer = client.predict("frozen", {"instances": IMAGES.tolist()})
    assert [row["Identity"] for row in answer.json["predictions"]] == [0, 6]
    child.send_signal(number)
    assert child.wait(30) == 0
    client.close()


def test_a_server_that_was_killed_leaves_its_port_free(process):
    port = free_port()
    child = process(DIGITS / "frozen.pb", f"--rest_api_port={port}")
    client = Client(port_of(child))
    assert f"a page to try them: http://127.0.0.1:{port}/\n" in child.stderr.readline()
    assert client.ask("GET", "/").status == 200
    assert client.ask("GET", "/livez").status == 200
    child.kill()
    child.wait(30)
    client.close()
    assert port_of(process(DIGITS / "frozen.pb", f"--rest_api_port={port}")) == port


@pytest.mark.parametrize(("words", "text"), [
    (["none.pb"], "1 servable(s) did not become available: {{name: none version: 1} due to error: "),
    ([], "no model to serve"), (["gs://bucket/model"], "is no path of this machine"),
    (["--model_base_path=/nothing/here"], "nothing is served: gRPC and the REST interface are off"),
    (["--rest_api_port=18", "--model_base_path=/nothing", "--host=no.such.host.example"], "no address of this machine"),
    (["x.pb", "--prefer_tflite_model"], "is not served")])
def test_a_start_that_fails_tells_why(process, words, text):
    child = process(*words)
    assert child.wait(60) == 1
    assert text in child.stderr.read()


def test_a_taken_port_is_told(start):
    from heald.errors import HealdError
    from heald_serve.http.ports import listen

    server, _ = start({})
    with pytest.raises(HealdError, match=f":{server.port}"):
        listen("127.0.0.1", server.port)


def test_a_saved_model_serves_its_signatures():
    server = serve_folder(ModelConfig("digits", DIGITS / "saved_model", is_single=True))
    client = Client(server.port)
    metadata = client.ask("GET", "/v1/models/digits/metadata").json["metadata"]["signature_def"]["signature_def"]
    answer = client.predict("digits", {"instances": [{"image": image} for image in IMAGES.tolist()]})
    row, _ = answer.json["predictions"]
    wrong = client.predict("digits", {"instances": [[1, 2]]})
    client.close()
    server.close()
    assert metadata["serving_default"]["inputs"]["image"]["name"] == "serving_default_image:0"
    assert metadata["serving_default"]["outputs"]["digit"]["dtype"] == "DT_INT32"
    assert (row["digit"], len(row["probabilities"])) == (0, 10)
    assert (wrong.status, "shape" in wrong.error) == (400, True)


def write_graph(path, factor):
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = Graph([placeholder("x", (None,)), const("factor", factor),
                   node("y", "Mul", "x", "factor")])
    dump(graph, path)


def test_a_new_version_under_load_answers_every_request(tmp_path):
    write_graph(tmp_path / "1" / "model.pb", 2)
    server = serve_folder(ModelConfig("m", tmp_path), file_system_poll_wait_seconds=0)
    client = Client(server.port)
    assert client.predict("m", {"instances": [3]}).json == {"predictions": [6.0]}
    write_graph(tmp_path / "aside" / "model.pb", 10)
    (tmp_path / "aside").rename(tmp_path / "2")
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "model.pb").write_bytes(b"broken")
    answers = set()
    for at in range(60):
        if at == 20:
            server.manager.poll()
        answer = client.predict("m", {"instances": [3]})
        assert answer.status == 200, answer
        answers.add(answer.json["predictions"][0])
        if at > 20:
            server.manager.do_next_action()
    states = {row["version"]: row for row in client.ask("GET", "/v1/models/m").json["model_version_status"]}
    assert answers == {6.0}  # the latest version alone is wanted, and it is broken
    shutil.rmtree(tmp_path / "3")
    server.manager.poll()
    server.manager.settle()
    assert client.predict("m", {"instances": [3]}).json == {"predictions": [30.0]}
    client.close()
    server.close()
    assert states["1"]["state"] == "AVAILABLE"
    assert states["3"]["status"]["error_code"] != "OK"


def test_the_thread_of_models_finds_a_new_version(tmp_path):
    write_graph(tmp_path / "1" / "model.pb", 2)
    server = serve_folder(ModelConfig("m", tmp_path), file_system_poll_wait_seconds=1)
    write_graph(tmp_path / "aside" / "model.pb", 10)
    (tmp_path / "aside").rename(tmp_path / "2")
    pause = Event()

    def is_found():
        with server.manager.find("m") as lease:
            return lease.version == 2

    found = any(is_found() or pause.wait(0.05) for _ in range(600))
    server.close()
    assert found


def record(message):
    data = message.SerializeToString()
    length = len(data).to_bytes(8, "little")
    return length + masked_crc32c(length) + data + masked_crc32c(data)


def predict_record(model_input="image", images=IMAGES):
    log = message_class("PredictionLog")()
    tensor = log.predict_log.request.inputs[model_input]
    tensor.dtype = 1
    for size in images.shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.tensor_content = images.tobytes()
    return log


@pytest.fixture
def saved_model(tmp_path):
    folder = tmp_path / "1"
    shutil.copytree(DIGITS / "saved_model", folder)
    (folder / "assets.extra").mkdir()
    return folder


def write_warmup(folder, data):
    (folder / "assets.extra" / "tf_serving_warmup_requests").write_bytes(data)


def test_warm_up_runs_before_a_version_serves(saved_model):
    write_warmup(saved_model, 3 * record(predict_record()))
    metrics = Metrics()
    assert "serving_default" in load_version(saved_model, LoadSettings(), metrics)
    assert metrics.warmup_records.value(str(saved_model), "OK") == 3


@pytest.mark.parametrize(("data", "error"), [
    (b"no records", DataLoss), (record(predict_record())[:-1], DataLoss), (record(predict_record())[:5], DataLoss),
    (b"\xff" * 64, DataLoss), (1001 * record(predict_record(images=IMAGES[:0])), InvalidArgument),
    (record(message_class("PredictionLog")()), Unimplemented),
    (record(message_class("PredictionLog")(session_run_log={})), Unimplemented),
    (record(predict_record("other")), InvalidArgument), (record(predict_record(images=IMAGES[0])), InvalidArgument),
    (record(message_class("PredictionLog")(classify_log={"request": {}})), InvalidArgument),
    (record(message_class("PredictionLog")(predict_log={"request": {"model_spec": {"signature_name": "no"}}})),
     NotFound)])
def test_a_warm_up_that_fails_fails_the_load(saved_model, data, error):
    write_warmup(saved_model, data)
    with pytest.raises(error):
        load_version(saved_model, LoadSettings())
    assert load_version(saved_model, LoadSettings(warmup_runs=0))


def test_memory_is_asked_for_before_a_load(saved_model):
    class Memory:
        def ask(self, nbytes, asker):
            assert nbytes > 10_000
            raise ResourceExhausted(f"{asker} needs {nbytes} bytes")

    class Host:
        memory = Memory()

    class Runtime:
        host = Host()

    with pytest.raises(ResourceExhausted, match="loading"):
        load_version(saved_model, LoadSettings(runtime=Runtime()))


def test_a_model_that_does_not_load_ends_the_start(tmp_path):
    (tmp_path / "1").mkdir()
    server = ModelServer(settings_of({}, models=[ModelConfig("m", tmp_path)], max_num_load_retries=0))
    with pytest.raises(FailedPrecondition, match=r"1 servable\(s\) did not become available"):
        server.start()
    server.close()


def certificate(folder):
    key, cert = folder / "key.pem", folder / "cert.pem"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                           "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "9"],
                          capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no openssl to make a certificate")
    return TlsTexts(key.read_text(), cert.read_text())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_tls_serves_with_the_texts_of_an_ssl_config(tmp_path, start):
    from harness.serve_models import echo

    texts = certificate(tmp_path)
    server, client = start({"F": echo(x="float32")}, tls=texts, grpc_port=0)
    client.close()
    context = ssl.create_default_context(cadata=texts.certificate)
    connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=30)
    connection.request("POST", "/v1/models/F:predict", '{"inputs": 1}')
    assert json.loads(connection.getresponse().read()) == {"outputs": 1.0}
    connection.close()
    for address in (f"https://localhost:{server.port}", f"grpcs://localhost:{server.grpc_server.port}"):
        with connect(address, ca_file=str(tmp_path / "cert.pem")) as caller:
            assert caller.predict("F", {"x": np.float32([2])})["x"].tolist() == [2]
        with connect(address) as stranger, pytest.raises(ClientError, match="UNAVAILABLE"):
            stranger.predict("F", {"x": np.float32([2])})


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
@pytest.mark.parametrize("front", ["http", "grpc"])
@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01"])
def test_a_connection_without_a_whole_tls_handshake_is_ended(tmp_path, start, front, data):
    from harness.serve_models import echo

    server, _ = start({"F": echo(x="float32")}, tls=certificate(tmp_path), grpc_port=0, request_read_timeout_in_ms=200)
    port = server.port if front == "http" else server.grpc_server.port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as silent:
        silent.sendall(data)
        with suppress(ConnectionError):
            assert silent.recv(1) == b""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_a_server_that_verifies_clients_serves_those_with_a_certificate(tmp_path, start):
    from harness.serve_models import echo

    texts = certificate(tmp_path)
    verifying = texts._replace(authorities=texts.certificate, verifies_clients=True)
    server, client = start({"F": echo(x="float32")}, tls=verifying, grpc_port=0)
    client.close()
    cert, key = (str(tmp_path / name) for name in ("cert.pem", "key.pem"))
    for address in (f"https://localhost:{server.port}", f"grpcs://localhost:{server.grpc_server.port}"):
        with connect(address, ca_file=cert, cert_file=cert, key_file=key) as caller:
            assert caller.predict("F", {"x": np.float32([2])})["x"].tolist() == [2]
        with connect(address, ca_file=cert) as stranger, pytest.raises(ClientError, match="UNAVAILABLE"):
            stranger.predict("F", {"x": np.float32([2])}, timeout=10)


def test_texts_that_are_no_certificate_are_an_error():
    from heald_serve.tls import server_context

    for texts in (TlsTexts("no key", "no certificate"), TlsTexts("", "")):
        with pytest.raises(InvalidArgument, match="no usable key"):
            server_context(texts)


def test_a_line_of_the_server_acts_on_no_terminal(capsys):
    report_line("a\x1b[2Jb")
    assert capsys.readouterr().err == "heald serve: a\\x1b[2Jb\n"
