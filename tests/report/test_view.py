"""heald view: answers about a loaded model, and a server that answers its own page alone."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import struct
import threading
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import Func
from heald.cli import main
from heald.errors import DataLoss, HealdError, InvalidArgument, NotFound, ResourceExhausted, Unimplemented
from heald.graphs.graph.function import Function
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract.op import ArgDef
from heald_report.inspection import LONGEST_TEXT, Inspector
from heald_report.picture_inputs import LARGEST_PICTURE_BYTES, PictureInputs
from heald_report.value_summary import value_summary
from heald_report.view_server import LARGEST_QUESTION_BYTES, ViewServer
from PIL import Image

F32 = heald.api.dtypes.float32


def load(tmp_path: Path, graph: Graph, *outputs: str) -> heald.Model:
    file = tmp_path / "model.pb"
    heald.graphdef.dump(graph, file)
    return heald.load(file, outputs=list(outputs) or None)


@pytest.fixture
def inspector(tmp_path):
    body = Function("double", [ArgDef("x", F32)], [ArgDef("y", F32)],
                    [Node("sum", "AddV2", ["x", "x"], attrs={"T": F32})], {"y": "sum:z:0"})
    nodes = [placeholder("x", (None, 4)), const("c", [1, 2, 3, 4]), node("sum", "AddV2", "x", "c"),
             node("twice", "AddV2", "sum", "sum"),
             node("r", "Reshape", "twice", "shape", T=F32, Tshape=heald.api.dtypes.int32),
             const("shape", [4, -1], np.int32),
             Node("call", "PartitionedCall", ["r"], attrs={"Tin": [F32], "Tout": [F32], "f": Func("double")})]
    return Inspector(load(tmp_path, Graph(nodes, [body]), "call"))


def number(inspector, name, function=""):
    return inspector.names.index((function, name))


def ask(inspector, name, do="values", **fields):
    return inspector.answer({"do": do, "node": number(inspector, name), **fields})


def test_a_value_has_its_statistics_and_elements(inspector):
    answer = ask(inspector, "sum", inputs={"x": "[[0, 1, 2, 3]]"})
    assert answer["type"] == "float32[1, 4]"
    assert answer["elements"] == ["1.0", "3.0", "5.0", "7.0"]
    assert dict(answer["statistics"]) == {"NaN or infinite": "0", "zeros": "0", "least": "1", "mean": "4",
                                          "largest": "7", "deviation": "2.23607"}
    assert sum(answer["histogram"]["counts"]) == 4


def test_shapes_follow_from_other_inputs_without_a_run(inspector):
    assert ask(inspector, "sum", "shapes", inputs={"x": ":6,4"})["shapes"] == [
        ["sum:0", "float32[6,4]"], ["call", "float32[4,6]"]]


@pytest.mark.parametrize("name", ["c", "sum", "r", "call"])
def test_a_node_alone_agrees_with_the_model(inspector, name):
    answer = ask(inspector, name, "compare", device="CPU:0")
    assert not answer["is_beyond"]
    assert answer["device"] == answer["reference"]
    assert float(answer["relative"]) < 1e-3


def test_a_node_runs_alone_on_another_device(inspector):
    answer = ask(inspector, "twice", "compare", device="EXAMPLE:0", inputs={"x": ":3,4"})
    assert (answer["device"], answer["reference"], answer["notes"]) == ("EXAMPLE:0", "CPU:0", [])
    assert not answer["is_beyond"]
    assert answer["value"]["type"] == "float32[3, 4]"


def test_a_device_that_declines_a_node_is_told_with_its_reason(inspector):
    note, = ask(inspector, "sum", "compare", device="EXAMPLE:0")["notes"]
    assert "AddV2 does not run on EXAMPLE:0: shapes differ" in note


def test_features_are_tiles_of_a_picture():
    png = base64.b64decode(value_summary(np.zeros((2, 8, 6, 32), np.float32))["picture"])
    assert (png[16:20], png[20:24]) == ((4 * 6).to_bytes(4, "big"), (4 * 8).to_bytes(4, "big"))


@pytest.mark.parametrize(("fields", "error", "message"), [
    ({"do": "open"}, InvalidArgument, "'do' is one of"), ({"node": -1}, InvalidArgument, "whole number"),
    ({"node": 1 << 20}, NotFound, "no node"), ({"node": True}, InvalidArgument, "whole number"),
    ({"output": 7}, HealdError, "sum"), ({"output": 1 << 40}, InvalidArgument, "whole number"),
    ({"inputs": []}, InvalidArgument, "object of texts"), ({"inputs": {"no": ""}}, NotFound, "no input 'no'"),
    ({"inputs": {"x": "/etc/passwd"}}, InvalidArgument, "no JSON value"),
    ({"inputs": {"x": '"/etc/passwd"'}}, InvalidArgument, "x"), ({"inputs": {"x": "{}"}}, InvalidArgument, "x"),
    ({"inputs": {"x": "[[1], [2, 3]]"}}, InvalidArgument, "x"), ({"inputs": {"x": ":3"}}, InvalidArgument, "x"),
    ({"inputs": {"x": ":-1,4"}}, InvalidArgument, "no shape"),
    ({"inputs": {"x": ":999999999,4"}}, InvalidArgument, "not made up"),
    ({"inputs": {"x": "[" * 100_000}}, InvalidArgument, "no JSON value"),
    ({"inputs": {"x": "1" * (LONGEST_TEXT + 1)}}, InvalidArgument, "more than"),
    ({"do": "compare", "device": "NOWHERE:0"}, HealdError, "NOWHERE"), ({"do": "compare"}, InvalidArgument, "a text"),
    ({"do": "compare", "device": 3}, InvalidArgument, "a text"),
    ({"inputs": {"x": "picture 1"}}, NotFound, "not the last picture")])
def test_a_bad_question_is_a_typed_error(inspector, fields, error, message):
    with pytest.raises(error, match=message):
        inspector.answer({"do": "values", "node": number(inspector, "sum")} | fields)


def test_a_node_inside_a_function_is_refused_with_the_way_out(inspector):
    with pytest.raises(Unimplemented, match="in function 'double'"):
        inspector.answer({"do": "values", "node": number(inspector, "sum", "double")})


def test_no_text_of_an_input_names_a_file(tmp_path, inspector, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((1, 4), np.float32))
    for text in ("x.npy", "data.npz:x", "@files.txt", "-", str(tmp_path / "x.npy")):
        with pytest.raises(InvalidArgument, match="no JSON value"):
            ask(inspector, "sum", inputs={"x": text})


@pytest.mark.parametrize("value", [
    np.float32([np.nan, np.inf, 1, 2]), np.zeros((0, 3)), np.float64([1e308, -1e308]),
    np.array([b"\xff<b>", b""], object),
    np.array(3, np.int64), np.complex64([1j]), np.array([True, False]), np.full((9, 9, 3), np.nan, np.float32),
    np.float64([1.0, np.nextafter(1.0, 2.0)]), np.zeros((2, 600, 5, 4), np.uint8)])
def test_every_value_has_a_summary_that_json_takes(value):
    assert json.loads(json.dumps(value_summary(value), allow_nan=False))["count"] == value.size


def test_a_tensor_of_pixels_is_a_picture():
    png = base64.b64decode(value_summary(np.zeros((1, 8, 6, 3), np.uint8))["picture"])
    assert png.startswith(b"\x89PNG")
    assert (png[16:20], png[20:24]) == ((6).to_bytes(4, "big"), (8).to_bytes(4, "big"))


def png_of(pixels, kind="PNG", **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(file, kind, **options)
    return file.getvalue()


def send(inspector, content, name="x", pixel_range="0 to 255"):
    text = content if isinstance(content, str) else base64.b64encode(content).decode()
    return inspector.answer({"do": "picture", "input": name, "range": pixel_range, "content": text})


@pytest.fixture
def looking(tmp_path):
    """`looking(shape, dtype)`: an inspector of a model that returns its input."""
    def make(shape, dtype=F32):
        return Inspector(load(tmp_path, Graph([placeholder("x", shape, dtype),
                                               node("y", "Identity", "x", T=dtype)]), "y"))

    return make


@pytest.fixture
def value_of(tmp_path):
    """`value_of(content, shape, dtype, pixel_range)`: the value that an input of this shape gets."""
    def take(content, shape, dtype=F32, pixel_range="0 to 255"):
        model = load(tmp_path, Graph([placeholder("x", shape, dtype), node("y", "Identity", "x", T=dtype)]), "y")
        return PictureInputs(model).take("x", base64.b64encode(content).decode(), pixel_range).value

    return take


RAMP = np.stack([np.arange(48).reshape(6, 8) * 5, np.full((6, 8), 7), np.full((6, 8), 200)], -1).astype(np.uint8)


@pytest.mark.parametrize(("shape", "expected"), [
    ((None, 6, 8, 3), RAMP[None]), ((1, 6, 8, 3), RAMP[None]), ((6, 8, 3), RAMP), ((None, None, None, 3), RAMP[None]),
    ((None, 3, 6, 8), RAMP.transpose(2, 0, 1)[None])])
def test_a_sent_picture_gets_the_layout_of_the_input(value_of, shape, expected):
    np.testing.assert_array_equal(value_of(png_of(RAMP), shape), expected)


@pytest.mark.parametrize(("shape", "size"), [((None, 3, 4, 3), (1, 3, 4, 3)), ((None, 12, 9, 1), (1, 12, 9, 1)),
                                             ((None, 5, 5), (1, 5, 5))])
def test_a_sent_picture_gets_the_size_of_the_input(value_of, shape, size):
    assert value_of(png_of(RAMP), shape).shape == size


def test_a_range_is_that_of_heald_run(value_of, looking):
    for pixel_range, expected in (("0 to 1", RAMP / np.float32(255)), ("-1 to 1", RAMP / np.float32(127.5) - 1),
                                  ("ImageNet, BGR less the mean",
                                   RAMP[:, :, ::-1] - np.float32([103.939, 116.779, 123.68]))):
        np.testing.assert_allclose(value_of(png_of(RAMP), (None, 6, 8, 3), pixel_range=pixel_range), expected[None],
                                   rtol=1e-5, atol=1e-5)
    for shape, dtype in (((None, 6, 8, 3), heald.api.dtypes.uint8), ((None, 6, 8, 1), F32)):
        with pytest.raises(InvalidArgument, match="range 'ImageNet, as PyTorch'"):
            send(looking(shape, dtype), png_of(RAMP), pixel_range="ImageNet, as PyTorch")


def test_a_model_of_strings_gets_the_bytes_of_the_file(value_of):
    assert value_of(b"any bytes", (None,), heald.api.dtypes.string).tolist() == [b"any bytes"]
    assert value_of(b"any bytes", (), heald.api.dtypes.string).tolist() == b"any bytes"


def test_a_run_answers_with_outputs_and_the_largest_elements(looking):
    inspector = looking((None, 4))
    answer = inspector.answer({"do": "outputs", "inputs": {"x": "[[0, 3, 1, 2]]"}})
    (name, value), = answer["outputs"]
    assert (name, value["type"]) == ("y", "float32[1, 4]")
    assert value["top"] == [["1", "3"], ["3", "2"], ["2", "1"], ["0", "0"]]


def test_an_earlier_picture_is_refused_and_of_another_input_too(looking):
    inspector = looking((None, 6, 8, 3))
    first, second = (send(inspector, png_of(RAMP))["text"] for _ in range(2))
    with pytest.raises(NotFound, match="not the last picture"):
        inspector.answer({"do": "outputs", "inputs": {"x": first}})
    assert inspector.answer({"do": "outputs", "inputs": {"x": second}})["outputs"]


def bomb(width: int, height: int) -> bytes:
    """A small PNG whose header states these sizes."""
    content = bytearray(png_of(np.zeros((1, 1))))
    content[16:24] = struct.pack(">II", width, height)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    return bytes(content)


@pytest.mark.parametrize(("content", "error", "message"), [
    (b"", InvalidArgument, "a text"), (b"not a picture", DataLoss, "no PNG, JPEG"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", DataLoss, "no PNG, JPEG"),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", DataLoss, "no PNG, JPEG"),
    (png_of(RAMP, "TIFF"), DataLoss, "no PNG, JPEG"), (png_of(RAMP)[:45], DataLoss, "no picture"),
    (bomb(100_000, 100_000), ResourceExhausted, "pixels"), (bomb(9_460, 9_460), ResourceExhausted, "pixels"),
    (bomb(0, 0), DataLoss, "no picture"), ("%%%", InvalidArgument, "no base64"), ("é", InvalidArgument, "no base64"),
    ("A" * (LARGEST_PICTURE_BYTES * 4 // 3 + 5), ResourceExhausted, "more than 32 MiB")])
def test_a_file_that_heald_run_refuses_is_refused_here(looking, content, error, message):
    with pytest.raises(error, match=message):
        send(looking((None, 6, 8, 3)), content)


@pytest.mark.parametrize(("fields", "error", "message"), [
    ({"name": "no"}, NotFound, "no input 'no'"), ({"pixel_range": "0 to 7"}, InvalidArgument, "'range' of a picture"),
    ({"pixel_range": ""}, InvalidArgument, "a text"), ({"name": "x"}, InvalidArgument, "no picture")])
def test_a_picture_of_an_input_that_takes_none_is_refused(inspector, fields, error, message):
    with pytest.raises(error, match=message):
        send(inspector, png_of(RAMP), **fields)


@pytest.fixture
def server(inspector):
    with ViewServer(b"<!DOCTYPE html>page", inspector) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def request(server, method="GET", path=None, body=None, **headers):
    port = urlsplit(server.address).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Host": f"127.0.0.1:{port}"} | {name.replace("_", "-"): text for name, text in headers.items()}
    connection.request(method, f"/{server.token}/" if path is None else path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def post(server, question, **headers):
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    return request(server, "POST", f"/{server.token}/ask", body, **{"Content_Type": "application/json"} | headers)


def test_the_page_and_an_answer_come_with_headers_that_keep_others_out(server, inspector):
    answer, content = request(server)
    assert (answer.status, content) == (200, b"<!DOCTYPE html>page")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "Python" not in answer.headers["Server"]
    answer, content = post(server, {"do": "values", "node": number(inspector, "sum")})
    assert answer.status == 200
    assert json.loads(content)["type"] == "float32[1, 4]"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1",
                                  "localhost.evil:PORT", "[::1]:PORT", "127.0.0.1:PORT@evil", ""])
def test_a_request_of_another_host_is_refused(server, host):
    port = str(urlsplit(server.address).port)
    assert request(server, Host=host.replace("PORT", port))[0].status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:PORT", "http://127.0.0.1:1"])
def test_a_question_of_another_origin_is_refused(server, origin):
    port = str(urlsplit(server.address).port)
    assert post(server, {"do": "values", "node": 0}, Origin=origin.replace("PORT", port))[0].status == 403
    assert post(server, {"do": "x"}, Origin=f"http://localhost:{port}")[0].status == 400


@pytest.mark.parametrize("path", ["/", "/TOKE/", "/token/", "/TOKEN", "/TOKEN/../etc/passwd", "/TOKEN/ask",
                                  "/TOKEN/%2e%2e/", "/TOKEN/?x=1", "http://evil/TOKEN/", "/%C3%A9"])
def test_a_get_of_any_other_address_is_refused(server, path):
    path = path.replace("TOKEN", server.token).replace("TOKE", server.token[:-1])
    assert request(server, path=path)[0].status == 403


@pytest.mark.parametrize(("body", "headers", "status"), [
    (b"{", {}, 400), (b"[" * 100_000, {}, 400), (b"\xff", {}, 400), (b"3", {}, 400), (b"{}", {}, 400),
    (b"{}", {"Content_Type": "text/plain"}, 415), (b"", {"Content_Length": "-1"}, 411),
    (b"", {"Content_Length": "x"}, 411), (b"", {"Content_Length": str(LARGEST_QUESTION_BYTES + 1)}, 413),
    (b"", {"Content_Length": "9" * 30}, 413)])
def test_a_malformed_question_has_the_status_of_its_fault(server, body, headers, status):
    assert post(server, body, **headers)[0].status == status


def test_an_error_of_a_run_is_an_answer_with_its_hint(server):
    answer, content = post(server, {"do": "values", "node": number(server.inspector, "sum"), "inputs": {"no": ""}})
    assert answer.status == 400
    assert "no input 'no'" in json.loads(content)["error"]
    assert json.loads(content)["hint"]


def test_each_server_has_a_token_of_its_own(inspector):
    with ViewServer(b"", inspector) as one, ViewServer(b"", inspector) as other:
        assert one.token != other.token
        assert len(one.token) >= 32
        assert one.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(("arguments", "message"), [
    (["--port", "65536"], "is no port"), (["--port", "-1"], "port"), (["--device", "NOWHERE:0"], "NOWHERE"),
    (["--input", "nothing=3"], "no input 'nothing'")])
def test_wrong_arguments_are_errors(arguments, message, tmp_path, inspector, capsys):
    try:
        status = main(["view", str(tmp_path / "model.pb"), *arguments])
    except SystemExit as end:
        status = end.code
    assert status != 0
    assert message in capsys.readouterr().err


def test_a_port_in_use_is_a_typed_error(tmp_path, inspector, server, capsys):
    port = urlsplit(server.address).port
    assert main(["view", str(tmp_path / "model.pb"), "--no-run", "--port", str(port)]) == 1
    assert f"127.0.0.1:{port}" in capsys.readouterr().err


def test_the_command_serves_until_it_is_interrupted(tmp_path, inspector, monkeypatch, capsys):
    monkeypatch.setattr(ViewServer, "serve_forever", interrupted)
    assert main(["view", str(tmp_path / "model.pb")]) == 0
    assert "open http://127.0.0.1:" in capsys.readouterr().out


def interrupted(server):
    assert b"connect-src &#39;self&#39;" in server.page
    assert b'"live":' in server.page
    assert os.fspath(Path.cwd()).encode() not in server.page
    raise KeyboardInterrupt
