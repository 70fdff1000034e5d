"""A runtime with one model in a process of its own: started by conditions.py, which tells it when to run.

    python benchmarks/runtime_process.py RUNTIME MODEL ARRAYS.npz THREADS

It runs the model once on the array x0, and prints a line. Each line that it reads is a request, and is answered with a
line of JSON: `runs N PAUSE` with the seconds of N runs, each behind PAUSE seconds of sleep; `streams N SECONDS` with
the runs in a second of N streams together.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[], Any]
OpenRuntime = Callable[[str, np.ndarray, int], Run]


def open_heald(model: str, x: np.ndarray, threads: int) -> Run:
    import heald

    loaded = heald.load(model, config={"plugin": {"onednn": {"threads": threads}}})
    return lambda: loaded(x)


def open_tensorflow(model: str, x: np.ndarray, threads: int) -> Run:
    import tensorflow as tf

    graph_def = tf.compat.v1.GraphDef.FromString(Path(model).read_bytes())
    taken = {source.split(":")[0].lstrip("^") for node in graph_def.node for source in node.input}
    (feed,) = (node.name for node in graph_def.node if node.op == "Placeholder")
    (fetch,) = (node.name for node in graph_def.node if node.name not in taken and node.op != "NoOp")
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    session = tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads))
    step = session.make_callable(f"{fetch}:0", [f"{feed}:0"])
    return lambda: step(x)


def open_onnxruntime(model: str, x: np.ndarray, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feeds)


def open_openvino(model: str, x: np.ndarray, threads: int) -> Run:
    import openvino

    core = openvino.Core()
    read = core.read_model(model)
    read.reshape({read.inputs[0]: list(x.shape)})
    settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if threads:
        settings["INFERENCE_NUM_THREADS"] = threads
    compiled = core.compile_model(read, "CPU", settings)
    requests = threading.local()

    def run() -> Any:
        if not hasattr(requests, "request"):
            requests.request = compiled.create_infer_request()
        return requests.request.infer([x])

    return run


RUNTIMES: dict[str, OpenRuntime] = {
    "heald": open_heald, "tensorflow": open_tensorflow, "onnxruntime": open_onnxruntime, "openvino": open_openvino,
}


def time_runs(run: Run, count: int, pause: float) -> list[float]:
    times = []
    for _ in range(count):
        if pause:
            time.sleep(pause)
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times


def count_runs_of_streams(run: Run, streams: int, seconds: float) -> float:
    """Runs a second of all streams together: threads of Python, whose runs leave the interpreter's lock."""
    counts = [0] * streams
    end = time.perf_counter() + seconds

    def stream(number: int) -> None:
        while time.perf_counter() < end:
            run()
            counts[number] += 1

    threads = [threading.Thread(target=stream, args=(number,)) for number in range(streams)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def main(arguments: Sequence[str]) -> None:
    runtime, model, arrays, threads = arguments
    run = RUNTIMES[runtime](model, np.load(arrays)["x0"], int(threads))
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        request, count, seconds = line.split()
        answer = {"runs": time_runs, "streams": count_runs_of_streams}[request](run, int(count), float(seconds))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
