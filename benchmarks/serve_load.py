"""An open loop of requests against `heald serve`, and against other servers with the same model.

    python benchmarks/serve_load.py --models FOLDER [--seconds S] [--peer KIND=PYTHON ...] [--markdown]

FOLDER has NAME.pb, NAME.npz with an array x0, and NAME.onnx for peers, as inference.py makes them. For each case a
server process starts, its capacity is measured in a closed loop, and then requests arrive at 0.5, 1 and 2 times that
rate for S seconds each. load_client.py is the client, a process of its own on the same cores; a row tells how many
requests a second its CPU time would allow. Goodput counts answers within `--limit` seconds of their scheduled time.
Memory is that of the server's processes, before the loads and at its peak.

The forms of a request: `json`, `b64` (the raw bytes of a row for a model with a text input), `grpc`, `v2` (binary).
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

import numpy as np
from load_client import GRPC, HTTP, LoadResult, LoadTask
from tabulate import tabulate

FORMS = ("json", "b64", "grpc", "v2")
PEER_FORMS = {"ort-http": ("json", "b64"), "ort-grpc": ("grpc",), "kserve": ("json", "b64", "v2"),
              "mlserver": ("json",), "litserve": ("json", "b64"), "null": ("json",)}
SHARES = (0.5, 1.0, 2.0)
START_SECONDS = 120.0
SMALL_MODEL_BYTES = 1 << 20  # below it a peer runs the model with one thread, in its event loop
GRPC_PATH = "/tensorflow.serving.PredictionService/Predict"
PEER_GRPC_PATH = "/peer.Inference/Predict"
OCTETS = "application/octet-stream"
BATCHING = "max_batch_size { value: 32 }\nbatch_timeout_micros { value: 1000 }\nmax_enqueued_batches { value: 100 }\n"
HERE = Path(__file__).resolve().parent


class Case(NamedTuple):
    server: str
    model: str
    form: str
    is_batching: bool = False
    workers: int = 1


class Server(NamedTuple):
    """A running server: its ports, and the ids of its processes."""

    port: int
    grpc_port: int
    process: subprocess.Popen[bytes]


class Row(NamedTuple):
    case: Case
    share: float
    capacity: float
    result: LoadResult
    memory: tuple[int, int]  # bytes before the load, and at its peak


def http_request(path: str, body: bytes, *headers: str) -> bytes:
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers])
    return f"{head}\r\n\r\n".encode() + body


def json_body(x: Any) -> bytes:
    return json.dumps({"instances": x.tolist()}).encode()


def b64_body(x: Any) -> bytes:
    return json.dumps({"instances": [{"b64": base64.b64encode(x.tobytes()).decode()}]}).encode()


def v2_request(x: Any, model: str, name: str) -> bytes:
    head = json.dumps({"inputs": [{"name": name, "shape": [*x.shape], "datatype": "FP32",
                                   "parameters": {"binary_data_size": x.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return http_request(f"/v2/models/{model}/infer", head + x.tobytes(), f"Content-Type: {OCTETS}",
                        f"Inference-Header-Content-Length: {len(head)}")


def v2_json_request(x: Any, model: str) -> bytes:
    body = json.dumps({"inputs": [{"name": "x", "shape": [*x.shape], "datatype": "FP32",
                                   "data": x.reshape(-1).tolist()}]}).encode()
    return http_request(f"/v2/models/{model}/infer", body, "Content-Type: application/json")


def predict_message(x: Any, model: str, name: str) -> bytes:
    """A PredictRequest with tensor_content."""
    from heald_client.messages import message_class

    request = message_class("tensorflow.serving.PredictRequest")()
    request.model_spec.name = model
    tensor = request.inputs[name]
    tensor.dtype = 1
    for size in x.shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.tensor_content = x.tobytes()
    data: bytes = request.SerializeToString()
    return data


def peer_message(x: Any) -> bytes:
    """A message of a shape (field 1, packed) and bytes (field 2)."""
    shape = b"".join(map(varint, x.shape))
    return b"\x0a" + varint(len(shape)) + shape + b"\x12" + varint(x.nbytes) + x.tobytes()


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def request_of(case: Case, x: Any, name: str) -> bytes:
    """The bytes of a request of this case; of gRPC those of its message."""
    is_heald = case.server == "heald"
    if case.form == "grpc":
        return predict_message(x, "m", name) if is_heald else peer_message(x)
    if case.form == "v2":
        return v2_request(x, "m", name)
    if case.server == "mlserver":
        return v2_json_request(x, "m")
    body = json_body(x) if case.form == "json" else b64_body(x)
    path = "/predict" if case.server == "litserve" else "/v1/models/m:predict"
    return http_request(path, body, "Content-Type: application/json")


def write_bytes_model(source: Path, target: Path, shape: Sequence[int]) -> None:
    """The model with a text input: each text has the raw numbers of a row."""
    from heald.graphs.graph.graph import Graph, Node
    from heald.graphs.graph.graphdef import dump, load
    from heald.runtime.values import dtypes

    graph = load(source)
    nodes = graph.nodes.values()
    (place,) = [node for node in nodes if node.op == "Placeholder"]
    size = np.array([-1, *shape], np.int32)
    new = [Node("row_bytes", "Placeholder", attrs={"dtype": dtypes.string, "shape": (None,)}),
           Node("row_numbers", "DecodeRaw", ["row_bytes"], attrs={"out_type": dtypes.float32, "little_endian": True}),
           Node("row_shape", "Const", attrs={"dtype": dtypes.int32, "value": size}),
           Node(place.name, "Reshape", ["row_numbers", "row_shape"],
                attrs={"T": dtypes.float32, "Tshape": dtypes.int32})]
    dump(Graph([*new, *(node for node in nodes if node is not place)]), target)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


def heald_command(case: Case, folder: Path, scratch: Path, ports: Sequence[int]) -> list[str]:
    path = folder / f"{case.model}.pb"
    if case.form == "b64":
        path = scratch / f"{case.model}_bytes.pb"
        write_bytes_model(folder / f"{case.model}.pb", path, row_of(folder, case.model).shape[1:])
    command = [sys.executable, "-m", "heald", "serve", f"m={path}", f"--rest_api_port={ports[0]}", f"--port={ports[1]}"]
    if case.is_batching:
        parameters = scratch / "batching.config"
        parameters.write_text(BATCHING)
        command += ["--enable_batching", f"--batching_parameters_file={parameters}"]
    return command + ([f"--workers={case.workers}"] if case.workers > 1 else [])


def peer_command(case: Case, folder: Path, ports: Sequence[int], pythons: Mapping[str, str]) -> list[str]:
    is_small = (folder / f"{case.model}.onnx").stat().st_size < SMALL_MODEL_BYTES
    return [pythons[case.server], str(HERE / "serve_peers.py"), case.server, str(folder / f"{case.model}.onnx"),
            str(ports[0]), "1" if is_small else "0"]


@contextmanager
def running(command: Sequence[str], ports: Sequence[int], log: Path) -> Iterator[Server]:
    """The server of a command, once both of its ports take connections."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            end = monotonic() + START_SECONDS
            while not all(map(takes_connections, ports)):
                if process.poll() is not None or monotonic() > end:
                    raise SystemExit(f"{' '.join(command)}: {log.read_text(errors='replace')[-2000:]}")
                sleep(0.05)
            yield Server(ports[0], ports[-1], process)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            with suppress(ProcessLookupError):  # workers that outlive it
                os.killpg(process.pid, signal.SIGKILL)


def takes_connections(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            own_port: int = connection.getsockname()[1]
    except OSError:
        return False
    return own_port != port  # a client may connect to itself while nothing listens


def resident_bytes(process: int) -> int:
    """The memory of a process and its descendants; of shared pages each process has its share."""
    total = 0
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        total = sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has ended
        return total
    return total + sum(resident_bytes(int(child)) for child in children)


@contextmanager
def watched_memory(process: int) -> Iterator[list[int]]:
    """A list of the memory at each half second."""
    samples = [resident_bytes(process)]
    ending = Event()

    def watch() -> None:
        while not ending.wait(0.5):
            samples.append(resident_bytes(process))

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield samples
    finally:
        ending.set()
        watcher.join()
        samples.append(resident_bytes(process))


def send_load(task: LoadTask) -> LoadResult:
    answer = subprocess.run([sys.executable, str(HERE / "load_client.py")], input=json.dumps(task._asdict()),
                            stdout=subprocess.PIPE, text=True, check=True)
    return LoadResult(**json.loads(answer.stdout))


def row_of(folder: Path, model: str) -> Any:
    with np.load(folder / f"{model}.npz") as arrays:
        return arrays["x0"]


def input_name(folder: Path, model: str) -> str:
    import heald

    return next(iter(heald.load(folder / f"{model}.pb").inputs))


def measure(case: Case, folder: Path, args: Namespace, pythons: Mapping[str, str]) -> Iterator[Row]:
    """The rows of a case: one for each share of its capacity."""
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        is_heald = case.server == "heald"
        name = input_name(folder, case.model) if is_heald and case.form != "json" else ""
        request = scratch / "request"
        request.write_bytes(request_of(case, row_of(folder, case.model), name))
        ports = free_ports(2 if is_heald else 1)
        command = (heald_command(case, folder, scratch, ports) if is_heald
                   else peer_command(case, folder, ports, pythons))
        with running(command, ports, scratch / "log") as server:
            is_grpc = case.form == "grpc"
            task = LoadTask(GRPC if is_grpc else HTTP, server.grpc_port if is_grpc else server.port, str(request),
                            GRPC_PATH if is_heald else PEER_GRPC_PATH, limit=args.limit,
                            connections=args.connections)
            send_load(task._replace(seconds=args.warm_up))
            closed = send_load(task._replace(seconds=args.capacity_seconds))
            for share in args.shares:
                rate = max(share * closed.goodput, 1.0)
                with watched_memory(server.process.pid) as samples:
                    result = send_load(task._replace(rate=rate, seconds=args.seconds, seed=args.seed))
                yield Row(case, share, closed.goodput, result, (samples[0], max(samples)))


def cases_of(args: Namespace, pythons: Mapping[str, str]) -> Iterator[Case]:
    for model in args.model:
        for form, is_batching, workers in product(args.form, args.batching, args.workers):
            yield Case("heald", model, form, is_batching == "on", workers)
        for peer in pythons:
            yield from (Case(peer, model, form) for form in PEER_FORMS[peer] if form in args.form)


COLUMNS: Sequence[tuple[str, Callable[[Row], Any]]] = (
    ("server", lambda row: row.case.server),
    ("model", lambda row: row.case.model),
    ("request", lambda row: row.case.form),
    ("batching", lambda row: "on" if row.case.is_batching else "off"),
    ("workers", lambda row: row.case.workers),
    ("capacity /s", lambda row: f"{row.capacity:,.0f}"),
    ("load", lambda row: f"{row.share:g}x"),
    ("goodput", lambda row: f"{row.result.goodput / row.capacity:.2f}"),
    ("p50 ms", lambda row: f"{row.result.p50:,.1f}"),
    ("p99 ms", lambda row: f"{row.result.p99:,.1f}"),
    ("answers by status", lambda row: ", ".join(f"{key}: {count:,}" for key, count in sorted(
        row.result.statuses.items()))),
    ("MB", lambda row: f"{row.memory[0] / 1e6:,.0f} to {row.memory[1] / 1e6:,.0f}"),
    ("client's limit /s", lambda row: f"{1e6 / row.result.cpu:,.0f}"),
    ("late ms", lambda row: f"{row.result.lag:.1f}"))


def parse_arguments() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--model", action="append", metavar="NAME", help="digits and mobilenetv2 by default")
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--batching", action="append", choices=("off", "on"))
    parser.add_argument("--workers", action="append", type=int, help="1 by default; 2 needs --workers of the server")
    parser.add_argument("--shares", action="append", type=float, metavar="X", help="of the capacity: 0.5, 1, 2")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--capacity-seconds", type=float, default=5.0)
    parser.add_argument("--warm-up", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=16, help="of the closed loop")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds; a later answer is no goodput")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer", action="append", default=[], metavar="KIND=PYTHON",
                        help=f"a peer, and its environment's Python: {', '.join(PEER_FORMS)}")
    parser.add_argument("--only-peers", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    args.model = args.model or ["digits", "mobilenetv2"]
    args.form, args.batching = args.form or list(FORMS), args.batching or ["off", "on"]
    args.workers, args.shares = args.workers or [1], args.shares or list(SHARES)
    return args


def main() -> None:
    args = parse_arguments()
    pythons = dict(text.split("=", 1) for text in args.peer)
    rows = []
    for case in cases_of(args, pythons):
        if args.only_peers and case.server == "heald":
            continue
        for row in measure(case, args.models, args, pythons):
            rows.append([read(row) for _, read in COLUMNS])
            sys.stderr.write("  ".join(map(str, rows[-1])) + "\n")
    sys.stdout.write(tabulate(rows, [name for name, _ in COLUMNS], "github" if args.markdown else "simple",
                              disable_numparse=True, colalign=["left"] * 3 + ["right"] * 7 + ["left"] + ["right"] * 3)
                     + "\n")


if __name__ == "__main__":
    main()
