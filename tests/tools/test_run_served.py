"""heald run with a model of a server: its addresses, rows, errors and limits."""

import csv
import io
import json
import sys
import threading
from time import sleep

import pytest
from harness.serve_models import infos, signature, start_server
from heald.api import TensorInfo, TensorMetadata, dtypes
from heald.errors import InvalidArgument, Unavailable
from heald_tools import served_model
from heald_tools.served_model import Address, parse_address

ADDRESSES = ("http://127.0.0.1:{rest}/v1/models/{name}", "http://127.0.0.1:{rest}/v2/models/{name}",
             "grpc://127.0.0.1:{grpc}/{name}")


def rows_of_two(**types):
    return {name: TensorInfo(f"{name}:0", TensorMetadata(dtypes.named(kind), (None, 2)))
            for name, kind in types.items()}


def double(x):
    if (x < 0).any():
        raise InvalidArgument("a number is negative")
    return 2 * x


ATTEMPTS = []


def double_at_the_third_attempt(x):
    ATTEMPTS.append(len(x))
    if len(ATTEMPTS) < 3:
        raise Unavailable("the server is full")
    return 2 * x


def never(x):
    raise Unavailable("the server is full")


UNDER_WAY, MOST_UNDER_WAY = [], []


def count_runs(x):
    UNDER_WAY.append(x)
    MOST_UNDER_WAY.append(len(UNDER_WAY))
    sleep(0.02)
    UNDER_WAY.pop()
    return x


MODELS = {
    "double": signature(rows_of_two(x="float32"), rows_of_two(y="float32"), double)
    | signature(rows_of_two(x="float32"), rows_of_two(y="float32"), lambda x: -x, name="negate"),
    "both": signature(infos(n="int32", t="string"), infos(m="int32", u="string"), lambda n, t: (n + 1, t)),
    "busy": signature(rows_of_two(x="float32"), rows_of_two(y="float32"), double_at_the_third_attempt),
    "full": signature(rows_of_two(x="float32"), rows_of_two(y="float32"), never),
    "counted": signature(rows_of_two(x="float32"), rows_of_two(y="float32"), count_runs)}


@pytest.fixture(scope="module")
def server():
    server = start_server(MODELS, grpc_port=0)
    yield server
    server.close()


@pytest.fixture
def address(server):
    """`address(name, form)`: of a model of the server."""
    return lambda name, form=ADDRESSES[1]: form.format(name=name, rest=server.port, grpc=server.grpc_server.port)


@pytest.fixture
def table(tmp_path):
    def write(rows):
        path = tmp_path / "data.csv"
        path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
        return path

    return write


def answers_of(text):
    return [json.loads(row["y"]) for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("form", ADDRESSES)
def test_rows_run_over_each_protocol_in_their_order(command, address, table, form):
    path = table((number, number + 0.5) for number in range(50))
    done = command("run", address("double", form), "--input", path, "--batch", "4")
    assert done.status == 0
    assert answers_of(done.out) == [[2 * number, 2 * number + 1] for number in range(50)]
    assert "50 rows in " in done.err


@pytest.mark.parametrize("form", ADDRESSES)
def test_a_refused_batch_runs_again_row_by_row_and_its_bad_rows_are_told(command, address, table, form):
    path = table((-1 if number in (3, 9) else number, 0) for number in range(12))
    done = command("run", address("double", form), "--input", path, "--batch", "5")
    assert done.status == 1
    assert answers_of(done.out) == [[2 * number, 0] for number in range(12) if number not in (3, 9)]
    assert f"{path}:4: the server: " in done.err
    assert "a number is negative; left out" in done.err
    assert "10 rows in " in done.err
    assert "2 left out" in done.err


def test_a_batch_of_bad_rows_alone_has_no_answers(command, address, table):
    path = table([(-1, 0), (-2, 0), (1, 1)])
    done = command("run", address("double"), "--input", path, "--batch", "2")
    assert done.status == 1
    assert answers_of(done.out) == [[2, 2]]


def test_a_strict_run_stops_at_the_first_bad_row(command, address, table):
    path = table([(1, 1), (-1, 0)])
    done = command("run", address("double"), "--input", path, "--strict")
    assert done.status != 0
    assert f"{path}:3" in done.err or f"{path}:2" in done.err


@pytest.mark.parametrize("form", ADDRESSES)
def test_one_run_takes_values_and_tells_outputs(command, address, form):
    done = command("run", address("both", form), "--input", "n=[1, 2]", "--input", 't=["a", "b"]', "--json")
    assert done.status == 0
    outputs = json.loads(done.out)["outputs"]
    assert outputs["m"]["values"] == [2, 3]
    assert outputs["u"]["values"] == ["a", "b"]


def test_signature_version_and_outputs_are_chosen(command, address):
    negate = command("run", address("double", ADDRESSES[0]) + "/versions/1", "--signature", "negate", "--input",
                     "x=[[1, 2]]", "--json")
    assert json.loads(negate.out)["outputs"]["y"]["values"] == [[-1.0, -2.0]]
    both = ("--input", "n=1", "--input", "t=a", "--json")
    assert list(json.loads(command("run", address("both"), "--fetch", "u", *both).out)["outputs"]) == ["u"]
    wrong = command("run", address("both"), "--fetch", "z", *both)
    assert "the model has no output 'z'" in wrong.err
    assert "its outputs: m, u" in wrong.err


def test_a_full_server_is_asked_again(command, address, table, monkeypatch):
    monkeypatch.setattr(served_model, "PAUSES", (0.001,) * 4)
    ATTEMPTS.clear()
    done = command("run", address("busy"), "--input", table([(1, 2)]))
    assert done.status == 0
    assert ATTEMPTS == [1, 1, 1]
    done = command("run", address("full"), "--input", table([(1, 2)]))
    assert done.status != 0
    assert "the server: the server is full" in done.err


@pytest.mark.parametrize("in_flight", [1, 3])
def test_so_many_requests_are_under_way_and_no_more(command, address, table, in_flight):
    MOST_UNDER_WAY.clear()
    path = table((number, 0) for number in range(12))
    assert command("run", address("counted"), "--input", path, "--batch", "1", "--in-flight", in_flight).status == 0
    assert max(MOST_UNDER_WAY) == in_flight


def test_a_run_that_was_cut_off_goes_on(command, address, table, tmp_path):
    path, out = table((number, 0) for number in range(20)), tmp_path / "out.csv"
    arguments = ("run", address("double"), "--input", path, "--batch", "2", "--output", out)
    assert command(*arguments).status == 0
    whole = out.read_bytes()
    assert command(*arguments, "--resume").status == 0
    assert out.read_bytes() == whole


@pytest.mark.parametrize(("arguments", "text"), [
    (["--device", "CPU:0"], "--device is for models of this machine"),
    (["--tags", "serve"], "--tags is for models of this machine"),
    (["--target", "n"], "--target is for models of this machine"),
    (["--made-up"], "--made-up is for models of this machine"),
    (["--token-file", "no-such-file"], "no-such-file"), (["--input", "z=1"], "no input 'z'"),
    (["--signature", "no"], "no")])
def test_options_that_do_not_fit_are_told(command, address, arguments, text):
    done = command("run", address("double", ADDRESSES[0]), "--input", "x=[[1, 2]]", *arguments)
    assert done.status != 0
    assert text in done.err
    assert "Traceback" not in done.err


def test_options_of_served_models_are_told_for_a_file(command, twice):
    done = command("run", twice, "--input", "x=[[1, 2]]", "--in-flight", "2")
    assert done.status != 0
    assert "--in-flight is for a model of a server" in done.err


@pytest.mark.parametrize("text", [
    "http://", "http://host", "http://host/v1/models/", "http://host/v3/models/m", "http://host/v1/models/m:predict",
    "http://host/v1/models/m/versions/x", "grpc://host", "grpc://host/a/b", "http://host:99999/v1/models/m"])
def test_an_address_without_a_model_is_told(command, text):
    done = command("run", text, "--input", "x=1")
    assert done.status != 0
    assert "error: " in done.err
    assert "Traceback" not in done.err


def test_addresses_are_read_with_their_version():
    assert parse_address("https://h:1/v2/models/a%20b/versions/7") == Address("https://h:1", "v2", "a b", 7)
    assert parse_address("grpcs://h/m/") == Address("grpcs://h", "serving", "m", None)


def test_a_server_that_does_not_answer_ends_the_run_at_once(command):
    done = command("run", "http://127.0.0.1:1/v1/models/m", "--input", "x=1")
    assert done.status != 0
    assert "the server: no answer" in done.err


def test_heald_client_is_asked_for_where_it_is_missing(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "heald_client", None)
    done = command("run", "http://localhost:8501/v1/models/m", "--input", "x=1")
    assert done.status != 0
    assert "needs heald-client" in done.err
    assert "hint: pip install " in done.err


def test_a_token_is_sent(command, table, tmp_path):
    server = start_server(MODELS, token="secret")  # noqa: S106 - of this test
    (tmp_path / "token").write_text("secret\n")
    arguments = ("run", f"http://127.0.0.1:{server.port}/v1/models/double", "--input", table([(1, 2)]))
    try:
        assert "bearer token" in command(*arguments).err
        assert command(*arguments, "--token-file", tmp_path / "token").status == 0
    finally:
        server.close()


def test_threads_of_a_run_end_with_it(command, address, table):
    command("run", address("double"), "--input", table([(1, 2)]))
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("heald-request")]
