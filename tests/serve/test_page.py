"""The page at /: its files, its policy, its readers, and its documents."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness.serve_models import Client, echo, infos, settings_of, signature, start_server
from heald.api import TensorInfo, TensorMetadata, dtypes
from heald.errors import DataLoss, Unavailable
from heald.runtime.host.device_record import DeviceRecord
from heald.runtime.host.host_memory import HostMemory
from heald_serve.metrics import Metrics
from heald_serve.models.loaded_runtime import memory_gauges
from heald_serve.models.model_config import ModelConfig, VersionPolicy
from heald_serve.models.model_manager import ModelManager, VersionStatus
from heald_serve.page.class_labels import LARGEST_FILE_BYTES, class_labels
from heald_serve.page.documents import devices_document, memory_document, merge_statuses, models_document
from heald_serve.server import ModelServer

SCRIPT_NAME = "<script>alert(1)<b>"
FOLDER = resources.files("heald_serve").joinpath("page", "files")
FILES = {file.name: file.read_text("utf-8") for file in FOLDER.iterdir()}
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".js": "text/javascript; charset=utf-8"}
PATHS = {"/": "index.html"} | {f"/page/{name}": name for name in FILES}
SCORES = {"scores": TensorInfo("scores:0", TensorMetadata(dtypes.float32, (None, 3)))}
MODELS = {"digits": echo(x="float32", s="string"), SCRIPT_NAME: echo(x="float32"),
          "three": signature(infos(x="float32"), SCORES, lambda x: x, name="other")}


@pytest.fixture(scope="module")
def client():
    server = start_server(MODELS)
    client = Client(server.port)
    yield client
    client.close()
    server.close()


@pytest.mark.parametrize("path", sorted(PATHS))
def test_a_file_has_its_type_its_policy_and_its_tag(client, path):
    answer = client.ask("GET", path)
    assert (answer.status, answer.body.decode()) == (200, FILES[PATHS[path]])
    assert answer.headers["content-type"] == TYPES[PATHS[path][PATHS[path].rindex("."):]]
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert {policy[kind] for kind in ("default-src", "frame-ancestors", "base-uri", "form-action")} == {"'none'"}
    assert {policy[kind] for kind in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"  # a cache asks each time: a new version shows at once
    again = client.ask("GET", path, If_None_Match=f'"x", W/{answer.headers["etag"]}')
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", answer.headers["etag"])
    assert "content-length" not in again.headers
    assert client.ask("GET", path, If_None_Match='"x"').status == 200


def test_a_head_has_the_length_and_no_body(client):
    answer = client.ask("HEAD", "/page/main.js")
    length = str(len(FILES["main.js"].encode()))
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", length)


@pytest.mark.parametrize(("method", "path", "status"), [
    ("POST", "/", 405), ("PUT", "/page/main.js", 405), ("DELETE", "/page/state.json", 405), ("GET", "/page/no.js", 404),
    ("GET", "/page/", 404), ("GET", "/page/../plugin.py", 404), ("GET", "/page/%2e%2e/plugin.py", 404),
    ("GET", "/page", 404), ("GET", "/page/version.json", 404), ("GET", "/page/version.json?name=no", 404),
    ("GET", "/page/version.json?name=digits&version=9", 404), ("GET", "/page/version.json?name=digits&version=-1", 400),
    ("GET", "/page/version.json?name=digits&version=x", 400),
    ("GET", "/page/version.json?name=digits&version=%00", 400),
    ("GET", f"/page/version.json?name=digits&version={'9' * 70}", 400),
    ("GET", "/page/version.json?" + "a&" * 999, 404),
    ("GET", "/?anything", 200), ("GET", "/page/version.json?name=digits&version=01", 200),
])
def test_a_request_that_the_page_does_not_know_is_refused(client, method, path, status):
    assert client.ask(method, path).status == status


def test_no_file_fetches_from_another_host():
    for name, text in FILES.items():
        addresses = re.findall(r"(?:https?:|[\"'(])//[^\s\"')]+", text)
        assert set(addresses) <= {"http://www.w3.org/2000/svg", '"http://www.w3.org/2000/svg'}, name  # a namespace
        assert not re.search(r"@import|\burl\(|WebSocket|EventSource|importScripts|sendBeacon", text), name


def test_no_file_makes_markup_of_texts_or_keeps_the_token():
    for name, text in FILES.items():
        assert not re.search(r"(?:inner|outer|AdjacentM?)HTML|document\.write|\beval\b|new Function|srcdoc", text), name
        assert not re.search(r"sessionStorage|indexedDB|document\.cookie", text), name
        assert "localStorage" not in text or name == "theme.js"
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script>", text), name


def test_the_lines_of_the_scripts_are_short():
    lines = [f"{name}:{number}" for name, text in FILES.items() for number, line in enumerate(text.splitlines(), 1)
             if len(line) > 120 and not name.endswith(".svg")]
    assert lines == []


def test_the_files_need_no_token_and_the_documents_do(start):
    _, client = start(MODELS, token="secret")  # noqa: S106 - of this test alone
    assert {client.ask("GET", path).status for path in PATHS} == {200}
    for path in ("/page/state.json", "/page/version.json?name=digits", "/metrics", "/page/no.js", "/page/"):
        assert client.ask("GET", path).status == 401
        assert client.ask("GET", path, Authorization="Bearer secret").status in (200, 404)


def test_a_strange_host_gets_no_file(client):
    assert client.ask("GET", "/", Host="evil.example").status == 403


def test_an_option_leaves_the_page_out(start):
    _, client = start(MODELS, page=False)
    assert {client.ask("GET", path).status for path in ("/", "/page/main.js", "/page/state.json")} == {404}


def test_the_state_has_models_devices_and_memory(client):
    answer = client.ask("GET", "/page/state.json")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    state = answer.json
    row = {"version": "1", "state": "AVAILABLE", "error": "", "labels": []}
    assert state["models"] == [{"name": name, "versions": [row]} for name in MODELS]
    assert {"in_use", "peak", "arrays", "limit"} == state["memory"].keys()
    assert state["server"]["batches"] is False
    for device in state["devices"]:
        assert device["status"] in ("found", "ok", "unavailable")


def test_no_device_is_scanned_for_the_page():
    record = DeviceRecord("FAST:0", "FAST", "fast", "unavailable", "it is lost", "start again", {
        "memory": 7 << 30, "model": "F1", "accelerator": True, "cost": {}})

    class Host:
        def preference(self):
            return ["FAST", "SLOW"]

        def is_scanned(self, device_type):
            return device_type == "FAST"

        def records(self, device_type):
            return {"FAST": [record]}[device_type]

    assert devices_document(Host()) == {
        "devices": [{"name": "FAST:0", "plugin": "fast", "status": "unavailable", "reason": "it is lost",
                     "remedy": "start again", "memory": 7 << 30, "attributes": {"model": "F1", "accelerator": "True"}}],
        "unused_device_types": ["SLOW"]}


@pytest.mark.parametrize("limit", [None, 1 << 30])
def test_memory_is_the_sum_of_all_workers(limit):
    class Cells:
        def set_gauge(self, name, number):
            self.number = number

        def sum_of_gauge(self, name):
            return 2 * self.number

    metrics = Metrics(Cells())
    memory = HostMemory(SimpleNamespace(), limit)
    metrics.gauges = memory_gauges(memory)
    memory.take(100, "a test")
    total = None if limit is None else 2 * limit
    assert memory_document(metrics) == {"in_use": 200, "peak": 200, "arrays": 2, "limit": total}
    memory.give_back(100)


def test_a_version_serves_where_each_worker_serves_it():
    serves, loads = (VersionStatus(2, state, None) for state in ("AVAILABLE", "LOADING"))
    failed, old = VersionStatus(2, "END", DataLoss("broken")), VersionStatus(1, "AVAILABLE", None)
    for workers, rows in (([[serves, old], [serves, old]], [serves, old]),
                          ([[serves, old], [loads, old]], [loads, old]),
                          ([[failed, old], [loads, old], [serves]], [failed, VersionStatus(1, "START", None)]),
                          ([[old], []], [VersionStatus(1, "START", None)]), ([[], []], [])):
        assert merge_statuses(workers) == rows
        assert merge_statuses(workers[::-1]) == rows


def test_a_parent_that_ends_leaves_the_own_states():
    manager = ModelManager(lambda path: echo(x="float32"))
    manager.configure([ModelConfig("m", Path("m"), is_single=True)])
    manager.poll()

    class Lists:
        def statuses(self, name):
            raise Unavailable("the parent has ended")

    assert [row["version"] for row in models_document(manager, Lists())[0]["versions"]] == ["1"]


def test_states_have_versions_labels_and_errors(tmp_path):
    for version in (1, 2, 3):
        (tmp_path / str(version)).mkdir()

    def load(path):
        if path.name == "2":
            raise DataLoss("<i>broken</i>")
        return echo(x="float32")

    config = ModelConfig("m", tmp_path, VersionPolicy("all"), {"stable": 1, "canary": 3})
    server = ModelServer(settings_of([], models=[config], max_num_load_retries=0,
                                     allow_version_labels_for_unavailable_models=True), loader=load)
    server.start()
    client = Client(server.port)
    try:
        versions = client.ask("GET", "/page/state.json").json["models"][0]["versions"]
        assert [(row["version"], row["state"], row["labels"], "<i>broken</i>" in row["error"]) for row in versions] == [
            ("3", "AVAILABLE", ["canary"], False), ("2", "END", [], True), ("1", "AVAILABLE", ["stable"], False)]
    finally:
        client.close()
        server.close()


def test_a_version_has_its_signatures(client):
    document = client.ask("GET", "/page/version.json?name=digits").json
    tensors = [{"name": "x", "type": "float32", "shape": None}, {"name": "s", "type": "string", "shape": None}]
    assert document == {"name": "digits", "version": "1", "class_labels": {}, "signatures": [
        {"name": "serving_default", "method": "predict", "inputs": tensors, "outputs": tensors}]}
    assert client.ask("GET", f"/page/version.json?name={SCRIPT_NAME.replace('<', '%3C')}").json["name"] == SCRIPT_NAME


@pytest.fixture
def assets(tmp_path):
    for folder in ("assets", "assets.extra"):
        (tmp_path / folder).mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["assets/labels.txt", "assets.extra/classes", "assets/a.labels", "assets/a.TXT"])
@pytest.mark.parametrize("text", ["cat\ndog\nböse\n", "cat\r\ndog\r\nböse\r\n\r\n", "\ufeffcat\n dog \nböse"])
def test_a_text_with_a_line_for_each_class_has_the_labels(assets, name, text):
    (assets / name).write_bytes(text.encode())
    assert class_labels(assets, {3, 10}) == {3: ["cat", "dog", "böse"]}


def test_a_file_called_labels_goes_before_others(assets):
    (assets / "assets" / "a.txt").write_text("x\ny")
    (assets / "assets" / "my_labels.txt").write_text("cat\ndog")
    assert class_labels(assets, {2}) == {2: ["cat", "dog"]}


def test_other_files_have_no_labels(assets, tmp_path_factory):
    folder = assets / "assets"
    outside = tmp_path_factory.mktemp("outside") / "labels.txt"
    outside.write_text("secret\nlines")
    (folder / "link.txt").symlink_to(outside)
    (folder / "vocab.txt").write_text("a\nb")
    (folder / "binary.txt").write_bytes(b"\xff\n\xfe")
    (folder / "image.png").write_text("a\nb")
    (folder / "folder.txt").mkdir()
    (folder / "three.txt").write_text("a\nb\nc")
    with (folder / "large.txt").open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    (folder / "lost.txt").symlink_to(folder / "nothing")
    assert class_labels(assets, {2}) == {}
    assert class_labels(assets / "no", {2}) == {}
    assert class_labels(folder / "vocab.txt", {2}) == {}


def test_labels_reach_the_document_of_a_version(assets):
    (assets / "assets" / "labels.txt").write_text("cat\ndog\ncow\n")
    server = ModelServer(settings_of([], models=[ModelConfig("m", assets, is_single=True)]), loader=lambda _: signature(
        infos(x="float32"), SCORES, lambda x: np.float32([[0, 0, 1]])))
    server.start()
    client = Client(server.port)
    try:
        assert client.ask("GET", "/page/version.json?name=m").json["class_labels"] == {"3": ["cat", "dog", "cow"]}
    finally:
        client.close()
        server.close()
