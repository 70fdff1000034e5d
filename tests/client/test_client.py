"""heald-client against a server of the tests, over its four protocols, and against answers that are wrong."""

from __future__ import annotations

import asyncio
import pickle
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from harness.serve_models import echo, infos, signature, start_server
from heald.api import TensorInfo, TensorMetadata, dtypes
from heald.errors import DataLoss
from heald_client import Client, ClientError, connect, connect_async
from heald_client.calls import PredictCall
from heald_client.messages import message_class
from heald_client.serving_grpc_protocol import read_tensor
from heald_serve.grpc.tensors import write_tensor
from heald_serve.messages import message_class as server_message_class


def fail(x):
    raise DataLoss("the model is broken")


def info_of(name, dtype, shape):
    return TensorInfo(f"{name}:0", TensorMetadata(dtype, shape))


MODELS = {
    "F": signature(infos(x="float32"), infos(y="float32"), lambda x: 2 * x + 1)
    | signature(infos(x="float32"), infos(y="float32"), lambda x: -x, name="negate"),
    "T": signature(infos(a="int32", b="string"), infos(a="int32", b_bytes="string"), lambda a, b: (a, b)),
    "S": signature({"a": info_of("a", dtypes.int32, (None, 3)), "b": info_of("b", dtypes.string, ())}, infos(c="int32"),
                   lambda a, b: a),
    "broken": signature(infos(x="float32"), infos(y="float32"), fail),
    **{kind: echo(x=kind) for kind in (
        "float64", "int32", "uint8", "int16", "int8", "int64", "bool", "uint16", "float16", "uint32", "uint64",
        "bfloat16", "string", "complex64")}}
PROTOCOLS = ("rest", "grpc", "v2", "v2 grpc")


@pytest.fixture(scope="module")
def server():
    server = start_server(MODELS, grpc_port=0)
    yield server
    server.close()


def address_of(server, kind):
    if "grpc" in kind:
        return f"grpc://127.0.0.1:{server.grpc_server.port}"
    return f"http://127.0.0.1:{server.port}/"


@pytest.fixture(params=PROTOCOLS)
def client(request, server):
    with connect(address_of(server, request.param), protocol="v2" if "v2" in request.param else "serving") as client:
        yield client


def test_arrays_go_in_and_out(client):
    outputs = client.predict("F", {"x": np.float32([[1, 2.5], [np.inf, -0.0]])})
    assert [*outputs] == ["y"]
    assert outputs["y"].dtype == np.float32
    assert outputs["y"].tolist() == [[3, 6], [np.inf, 1]]
    assert client.predict("F", {"x": np.float32(2)})["y"].shape == ()
    assert client.predict("F", {"x": np.zeros(0, "f4")})["y"].shape == (0,)
    assert client.predict("F", {"x": np.float32([1, 2, 3, 4])[::2]})["y"].tolist() == [3, 7]
    assert client.predict("F", {"x": np.float32([1, 2]).astype(">f4")})["y"].tolist() == [3, 5]


def test_a_signature_is_described_with_types_and_shapes(client):
    spec = client.describe("S", version=1)
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in spec.inputs.items()} == {
        "a": (np.int32, (None, 3)), "b": (object, ())}
    assert [*spec.outputs] == ["c"]
    with pytest.raises(ClientError, match="NOT_FOUND"):
        client.describe("none")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_signature_by_name_is_described_where_the_protocol_has_it(server, protocol):
    with connect(address_of(server, protocol), protocol="v2" if "v2" in protocol else "serving") as client:
        if "v2" in protocol:
            with pytest.raises(ClientError, match="UNIMPLEMENTED"):
                client.describe("F", signature="negate")
            return
        assert client.describe("F", signature="negate").inputs.keys() == {"x"}
        with pytest.raises(ClientError, match="NOT_FOUND|DATA_LOSS"):
            client.describe("F", signature="no")


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_a_shape_of_unknown_rank_is_described_as_none(server, protocol):
    with connect(address_of(server, protocol)) as client:
        assert client.describe("F").inputs["x"].shape is None


def test_texts_and_bytes_come_back_as_bytes(client):
    outputs = client.predict("T", {"a": np.int32([1, 2]), "b": ["ü", b"\xff"]})
    assert outputs["a"].tolist() == [1, 2]
    assert outputs["b_bytes"].tolist() == ["ü".encode(), b"\xff"]
    outputs = client.predict("T", {"a": np.int32([1, 2]), "b": [b"a\0", b""]})
    assert outputs["b_bytes"].tolist() == [b"a\0", b""]
    assert client.predict("T", {"a": np.int32(1), "b": np.array("u")})["b_bytes"].tolist() == b"u"


def test_outputs_signatures_and_versions_are_chosen(client):
    inputs = {"a": np.int32([1]), "b": ["u"]}
    assert [*client.predict("T", inputs, outputs=["b_bytes"])] == ["b_bytes"]
    assert client.predict("F", {"x": np.float32([1])}, signature="negate", version=1)["y"].tolist() == [-1]
    for options in ({"outputs": ["no"]}, {"version": 7}, {"signature": "no"}):
        with pytest.raises(ClientError):
            client.predict("T", inputs, **options)


ARRAYS = {"float64": [1e300], "int32": [-3], "uint8": [255], "int16": [-3], "int8": [-128], "int64": [-(1 << 63)],
          "bool": [True, False], "uint16": [65535], "float16": [1.5], "uint32": [(1 << 32) - 1],
          "uint64": [(1 << 64) - 1], "bfloat16": [2.5], "string": [b"a", b""], "complex64": [1 + 2j]}
NOT_IN_JSON, NOT_IN_V2 = ("float16", "bfloat16", "complex64"), ("complex64",)


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_type_passes_or_is_refused(server, kind, protocol):
    import ml_dtypes

    dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else object if kind == "string" else kind
    array = np.array(ARRAYS[kind], dtype)
    with connect(address_of(server, protocol), protocol="v2" if "v2" in protocol else "serving") as client:
        if kind in (NOT_IN_JSON if protocol == "rest" else NOT_IN_V2 if "v2" in protocol else ()):
            with pytest.raises(ClientError, match="UNIMPLEMENTED|INVALID_ARGUMENT"):
                client.predict(kind, {"x": array})
            return
        output = client.predict(kind, {"x": array})["x"]
    assert output.dtype == array.dtype
    assert output.tolist() == array.tolist()


def test_readiness(client):
    assert client.is_ready("F")
    assert not client.is_ready("no")


def test_the_errors_of_the_server_have_codes(client):
    with pytest.raises(ClientError, match="NOT_FOUND"):
        client.predict("no", {"x": np.float32([1])})
    with pytest.raises(ClientError, match="INTERNAL|DATA_LOSS") as caught:
        client.predict("broken", {"x": np.float32([1])})
    assert "the model is broken" in caught.value.text
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own bytes


@pytest.mark.parametrize("value", [[[1], [2, 3]], [object()], np.array(["2020-01-01"], "M8[D]"), [None],
                                   ["a", 1], [np.zeros((2, 2)), np.zeros((2, 3))]])
def test_inputs_that_are_no_arrays_are_refused(client, value):
    with pytest.raises(ClientError, match="INVALID_ARGUMENT"):
        client.predict("F", {"x": value})


def test_coroutines_have_the_same_client(server):
    async def ask(kind):
        options = {"protocol": "v2" if "v2" in kind else "serving"}
        async with connect_async(address_of(server, kind), **options) as client:
            outputs = await asyncio.gather(*(client.predict("F", {"x": np.float32([at])}) for at in range(8)))
            assert await client.is_ready("F", timeout=30)
            assert [*(await client.describe("S", version=1)).outputs] == ["c"]
            return [output["y"].tolist() for output in outputs]

    for kind in PROTOCOLS:
        assert asyncio.run(ask(kind)) == [[2 * at + 1] for at in range(8)]


X = np.float32([1])
WRONG_CALLS = {
    "model": [{"model": 5}, {"model": ""}, {"model": "F\ud800"}, {"model": None}],
    "inputs": [{"inputs": [1.0]}, {"inputs": {1: X}}, {"inputs": None}, {"inputs": {"x": ["\ud800"]}}],
    "version": [{"version": -1}, {"version": "1"}, {"version": 1 << 63}, {"version": True}, {"version": 1.5}],
    "names": [{"signature": 3}, {"outputs": "y"}, {"outputs": [3]}, {"outputs": ["\udc00"]}],
    "timeout": [{"timeout": "a"}, {"timeout": float("nan")}]}


@pytest.mark.parametrize("kind", WRONG_CALLS)
def test_a_wrong_argument_is_told_before_the_call(client, kind):
    for changes in WRONG_CALLS[kind]:
        call = {"model": "F", "inputs": {"x": X}, **changes}
        with pytest.raises(ClientError, match="INVALID_ARGUMENT"):
            client.predict(**call)


def test_a_timeout_that_has_passed_is_late(client):
    for timeout in (0, -1, -float("inf")):
        for call in (lambda timeout=timeout: client.predict("F", {"x": X}, timeout=timeout),
                     lambda timeout=timeout: client.is_ready("F", timeout=timeout)):
            with pytest.raises(ClientError, match="DEADLINE_EXCEEDED"):
                call()
    with pytest.raises(ClientError, match="INVALID_ARGUMENT"):
        client.is_ready(5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_closed_client_tells_it(server, protocol):
    options = {"protocol": "v2" if "v2" in protocol else "serving"}
    client = connect(address_of(server, protocol), **options)
    client.close()
    client.close()
    with pytest.raises(ClientError, match="the client is closed"):
        client.predict("F", {"x": X})

    async def ask():
        other = connect_async(address_of(server, protocol), **options)
        await other.close()
        await other.predict("F", {"x": X})

    with pytest.raises(ClientError, match="the client is closed"):
        asyncio.run(ask())


class Flaky:
    """A protocol whose calls fail with these codes, one after the other, and then succeed."""

    def __init__(self, *codes):
        self.codes, self.timeouts, self.pauses = [*codes], [], []

    def predict(self, call):
        self.timeouts.append(call.timeout)
        if self.codes:
            raise ClientError(self.codes.pop(0), "away")
        return {"y": call.inputs["x"]}

    def is_ready(self, model, timeout):
        return bool(self.predict(PredictCall(model, {"x": True}, timeout=timeout))["y"])


def test_a_call_that_an_overloaded_server_refuses_is_tried_again_within_its_time():
    flaky = Flaky("UNAVAILABLE", "CANCELLED")
    client = Client(flaky, retries=2, sleep=flaky.pauses.append)
    assert client.predict("F", {"x": X}, timeout=30)["y"] is X
    assert 30 == flaky.timeouts[0] > flaky.timeouts[1] > flaky.timeouts[2] > 29
    assert 0.05 <= flaky.pauses[0] <= 0.1 <= flaky.pauses[1] <= 0.2
    flaky.codes = ["UNAVAILABLE"]
    assert client.is_ready("F", timeout=None)


@pytest.mark.parametrize(("codes", "retries", "timeout", "code", "calls"), [
    (["UNAVAILABLE"], 0, 30, "UNAVAILABLE", 1), (["UNAVAILABLE"] * 3, 2, 30, "UNAVAILABLE", 3),
    (["INVALID_ARGUMENT"], 2, 30, "INVALID_ARGUMENT", 1), (["DEADLINE_EXCEEDED"], 2, 30, "DEADLINE_EXCEEDED", 1),
    (["UNAVAILABLE"] * 3, 9, 0.01, "UNAVAILABLE", 1)])
def test_other_calls_are_not_tried_again(codes, retries, timeout, code, calls):
    flaky = Flaky(*codes)
    with pytest.raises(ClientError, match=code):
        Client(flaky, retries=retries, sleep=flaky.pauses.append).predict("F", {"x": X}, timeout=timeout)
    assert len(flaky.timeouts) == calls


@pytest.mark.parametrize("options", [
    {"retries": -1}, {"retries": "2"}, {"token": "a\nb"}, {"token": "ü"}, {"headers": {"a b": "c"}},
    {"headers": {"": "c"}}, {"headers": {"a": 1}}, {"headers": {"a": "b\r\nc: d"}}, {"headers": {"a:": "b"}}])
@pytest.mark.parametrize("address", ["http://a:1", "grpc://a:1"])
def test_an_option_that_no_protocol_carries_is_an_error(address, options):
    with pytest.raises(ClientError, match="INVALID_ARGUMENT"):
        connect(address, **options)


@pytest.mark.parametrize("address", ["https://a:1", "grpcs://a:1"])
def test_certificates_that_are_none_are_told_by_connect(tmp_path, address):
    (tmp_path / "bad.pem").write_text("no certificate")
    for option in ("ca_file", "cert_file"):
        with pytest.raises(ClientError, match="NOT_FOUND"):
            connect(address, **{option: str(tmp_path / "none.pem")})
        with pytest.raises(ClientError, match="INVALID_ARGUMENT"):
            connect(address, **{option: str(tmp_path / "bad.pem")})


def test_headers_are_sent(start):
    token = "".join(["sec", "ret"])
    server, _ = start({"F": MODELS["F"]}, grpc_port=0, token=token)
    for kind in PROTOCOLS:
        options = {"protocol": "v2" if "v2" in kind else "serving"}
        with connect(address_of(server, kind), headers={"Authorization": f"Bearer {token}"}, **options) as client:
            assert client.predict("F", {"x": X})["y"].tolist() == [3]


@pytest.mark.parametrize("address", [5, None, b"http://a"])
def test_an_address_that_is_no_text_is_an_error(address):
    with pytest.raises(ClientError, match="an address is a text"):
        connect(address)


@pytest.mark.parametrize("address", ["", "localhost:8501", "ftp://a", "http://", "http://a:b", "http://a:99999",
                                     "grpc://a/b", "http://a:0"])
def test_an_address_that_is_none_is_an_error(address):
    with pytest.raises(ClientError, match="is no address"):
        connect(address)


def test_a_protocol_that_is_none_is_an_error():
    with pytest.raises(ClientError, match="is no protocol"):
        connect("http://localhost:1", protocol="v3")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_is_away_is_unavailable(protocol):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scheme = "grpc" if "grpc" in protocol else "http"
    with connect(f"{scheme}://127.0.0.1:{port}", protocol="v2" if "v2" in protocol else "serving") as client, \
            pytest.raises(ClientError, match="UNAVAILABLE|DEADLINE_EXCEEDED"):
        client.predict("F", {"x": np.float32([1])}, timeout=5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_is_silent_is_late(protocol):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        scheme = "grpc" if "grpc" in protocol else "http"
        with connect(f"{scheme}://127.0.0.1:{port}", protocol="v2" if "v2" in protocol else "serving") as client, \
                pytest.raises(ClientError, match="DEADLINE_EXCEEDED"):
            client.predict("F", {"x": np.float32([1])}, timeout=0.3)


@pytest.fixture
def answering():
    """A function that starts a server with one answer to everything, and returns its address."""
    servers = []

    def begin(body, **headers):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.do_GET()

            def do_GET(self):
                self.send_response(int(headers.get("status", 200)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield begin
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("body", [
    b"", b"[]", b"{", b"\xff", b'{"outputs": 1}', b'{"outputs": [1]}', b'{"outputs": [{}]}', b"[" * 100_000,
    b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2], "data": [1]}]}',
    b'{"outputs": [{"name": "y", "datatype": "INT8", "shape": [1], "data": [300]}]}',
    b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}]}',
    b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [-1], "parameters": {"binary_data_size": 0}}]}',
    b'{"outputs": [{"name": "y", "datatype": "ODD", "shape": [1], "data": [1]}]}',
    b'{"outputs": [{"name": "y", "datatype": "BYTES", "shape": [1], "data": [1]}]}'])
@pytest.mark.parametrize("protocol", ["serving", "v2"])
def test_a_wrong_answer_is_an_error(answering, body, protocol):
    with connect(answering(body), protocol=protocol) as client, \
            pytest.raises(ClientError, match="DATA_LOSS|UNIMPLEMENTED"):
        client.predict("F", {"x": np.float32([1])})


@pytest.mark.parametrize("length", ["-1", "x", "99", "1" * 30])
def test_a_wrong_length_of_the_header_is_an_error(answering, length):
    with connect(answering(b"{}", inference_header_content_length=length), protocol="v2") as client, \
            pytest.raises(ClientError, match="DATA_LOSS"):
        client.predict("F", {"x": np.float32([1])})


def test_an_answer_in_json_is_read(answering):
    body = (b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 1], "data": [1, NaN]},'
            b'{"name": "s", "datatype": "BYTES", "shape": [1], "data": ["a"]}]}')
    with connect(answering(body), protocol="v2") as client:
        outputs = client.predict("F", {"x": np.float32([1])})
    assert (outputs["y"].shape, outputs["s"].tolist()) == ((2, 1), [b"a"])


def test_an_error_without_text_is_told(answering):
    with connect(answering(b"oops", status="500")) as client, \
            pytest.raises(ClientError, match="INTERNAL: status 500: oops"):
        client.predict("F", {"x": np.float32([1])})


@pytest.mark.parametrize("as_content", [False, True])
def test_tensors_of_typed_fields_are_read(as_content):
    for array in (np.float32([1.5]), np.float64([2]), np.int8([-3]), np.complex64([1 + 2j]), np.complex128([1j]),
                  np.float16([0.5]), np.uint64([1 << 63]), np.array([True, False]), np.zeros((0, 2), "f4")):
        message = server_message_class("tensorflow.TensorProto")()
        write_tensor(message, array, as_content=as_content)
        again = read_tensor(message_class("tensorflow.TensorProto").FromString(message.SerializeToString()), "x")
        assert (again.dtype, again.shape, again.tolist()) == (array.dtype, array.shape, array.tolist())


def test_a_short_list_repeats_its_last_element_and_a_wrong_one_is_an_error():
    make = message_class("tensorflow.TensorProto")
    message = make(dtype=1, float_val=[1, 2])
    message.tensor_shape.dim.add(size=4)
    assert read_tensor(message, "x").tolist() == [1, 2, 2, 2]
    message.tensor_shape.dim[0].size = 1
    with pytest.raises(ClientError, match="DATA_LOSS"):
        read_tensor(message, "x")
    message.tensor_shape.dim[0].size = -4
    with pytest.raises(ClientError, match="DATA_LOSS"):
        read_tensor(message, "x")
    with pytest.raises(ClientError, match="UNIMPLEMENTED"):
        read_tensor(make(dtype=20), "x")


def test_a_token_is_sent(start):
    token = "".join(["sec", "ret"])
    server, _ = start({"F": MODELS["F"]}, grpc_port=0, token=token)
    for kind in PROTOCOLS:
        options = {"protocol": "v2" if "v2" in kind else "serving"}
        with connect(address_of(server, kind), token=token, **options) as client:
            assert client.predict("F", {"x": np.float32([1])})["y"].tolist() == [3]
        with connect(address_of(server, kind), **options) as client, \
                pytest.raises(ClientError, match="UNAUTHENTICATED"):
            client.predict("F", {"x": np.float32([1])})


def test_the_client_loads_neither_heald_nor_a_network_before_it_connects():
    code = ("import sys, heald_client; "
            "print([m for m in ('heald', 'heald_serve', 'grpc', 'urllib3', 'google.protobuf') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
