"""GPU:0 against the CPU, its own bus and NVIDIA's libraries: launches, copies, layers, products, networks.

    python benchmarks/gpu.py [--folder DIR] [--markdown FILE]

`launch`: a kernel of 256 elements, enqueued 100 times and then waited for; a captured one is part of a CUDA graph of
100. Copies are compared with the same bytes in pinned memory, enqueued in one call: the bus. Recurrent layers are
compared with CPU:0. Products and convolutions are compared with cuBLASLt and cuDNN where torch brings these libraries.
benchmarks/networks.py makes the networks in DIR, of which the smallest come first: each is checked against CPU:0, then
timed with batch 1 and 16, with captured graphs and without, and against TensorFlow or ONNX Runtime where they can be
imported and see the GPU.

The least time of each counts. Without a GPU the program says why there is none, and ends with status 3.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import heald
import numpy as np
from heald.api import STREAM, Node, dtypes
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph
from heald.runtime.service.runtime import runtime
from tabulate import tabulate
from timing import least

NAME = "GPU:0"
COUNT, LAUNCHES = 256, 100
COPIES = (4 << 10, 1 << 20, 64 << 20)
SIDES = (512, 2048, 4096)
CONVOLUTIONS = ((56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 1024, 1))  # side, channels, filters, taps; batch 16
LAYERS = ("LSTM", "GRU")
CELLS = (64, 128, 256, 512)
STEPS = 64
BATCHES = (1, 16)
TOLERANCE = 1e-3  # of the logits' standard deviation
NO_GPU = 3  # the exit status
SOURCE = """extern "C" __global__ void add(const float* x, const float* y, float* out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = x[i] + y[i]; }"""

Row = tuple[str, str, str, str]  # work, heald, peer, heald's time in the peer's


def wait(device: Any) -> None:
    device.synchronize(device.record(STREAM))


def row(work: str, ours: float, peer: str, theirs: float | None) -> Row:
    return (work, _time(ours), f"{peer} {_time(theirs)}" if theirs else "-", f"{ours / theirs:.2f}" if theirs else "-")


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:,.2f} ms"


def launches(device: Any) -> Iterator[Row]:
    x, y, out = (device.allocate(4 * COUNT) for _ in range(3))
    launch = device.native.kernel(SOURCE, "add").attached((1,), (COUNT,), x, y, out, np.int64(COUNT))
    replay = device.capture([launch] * LAUNCHES, STREAM)

    def enqueue(call: Callable[[], object], count: int) -> None:
        for _ in range(count):
            call()
        wait(device)

    singly, at_once, one = least(partial(enqueue, launch, LAUNCHES), partial(enqueue, replay, 1),
                                 partial(enqueue, launch, 1))
    yield row("launch", singly / LAUNCHES, "", None)
    yield row("launch of a captured kernel", at_once / LAUNCHES, "launched singly", singly / LAUNCHES)
    yield row("launch and wait", one, "", None)


def copies(device: Any) -> Iterator[Row]:
    from heald_cuda import driver

    for nbytes in COPIES:
        host, back, buffer = np.ones(nbytes, "u1"), np.empty(nbytes, "u1"), device.allocate(nbytes)
        pinned = driver.allocate_host(nbytes)

        def there(host: Any = host, buffer: Any = buffer) -> None:
            device.copy_in(host, buffer, STREAM)
            wait(device)

        def here(back: Any = back, buffer: Any = buffer) -> None:
            device.copy_out(buffer, back, STREAM)
            wait(device)

        def bus(buffer: Any = buffer, pinned: int = pinned, nbytes: int = nbytes) -> None:
            device.native.enqueue((buffer,), driver.copy, buffer.pointer, pinned, nbytes, device.native.stream)
            wait(device)

        there_s, here_s, bus_s = least(there, here, bus)
        size = f"{nbytes >> 10:,} KiB"
        yield row(f"copy in, {size} ({nbytes / there_s / 1e9:.1f} GB/s)", there_s, "the bus", bus_s)
        yield row(f"copy out, {size} ({nbytes / here_s / 1e9:.1f} GB/s)", here_s, "the bus", bus_s)
        driver.free_host(pinned)
        device.free(buffer)


def session_of(op: str, x: Any, w: Any, attrs: dict[str, Any]) -> Callable[[], object]:
    """A run of ten such nodes. One number is fed and one of each result is fetched, so that copies do not count."""
    nodes = [Node("one", "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr(())}),
             Node("kept", "Const", attrs={"dtype": dtypes.float32, "value": x}),
             Node("x", "Mul", ["kept", "one"], attrs={"T": dtypes.float32}, device=NAME),
             Node("w", "Const", attrs={"dtype": dtypes.float32, "value": w}),
             *(Node(name, "Const", attrs={"dtype": dtypes.int32, "value": np.full(x.ndim, value, np.int32)})
               for name, value in (("begin", 0), ("size", 1)))]
    for i in range(10):
        nodes += [Node(f"y{i}", op, ["x", "w"], attrs={"T": dtypes.float32, **attrs}, device=NAME),
                  Node(f"m{i}", "Slice", [f"y{i}", "begin", "size"], device=NAME,
                       attrs={"T": dtypes.float32, "Index": dtypes.int32})]
    session = heald.Session(Graph(nodes), {"placement": {"fallback": "error"}, "plugins": {"block": ["simplify"]}})
    return partial(session.run, [f"m{i}" for i in range(10)], {"one": np.float32(1)})


def products() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for side in SIDES:
        a, b = (rng.normal(size=(side, side)).astype("f4") for _ in range(2))
        ours, theirs = _least(session_of("MatMul", a, b, {"transpose_a": False, "transpose_b": False}),
                              _torch(lambda torch, x, w: torch.matmul(x, w), a, b))
        yield row(f"matmul float32 {side} ({2 * side**3 / ours / 1e12:.2f} TFLOP/s)", ours, "cuBLAS by torch", theirs)
    for side, channels, filters, taps in CONVOLUTIONS:
        x = rng.normal(size=(16, side, side, channels)).astype("f4")
        w = rng.normal(size=(taps, taps, channels, filters)).astype("f4")
        attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NHWC", "dilations": [1, 1, 1, 1],
                 "explicit_paddings": [], "use_cudnn_on_gpu": True}
        ours, theirs = _least(session_of("Conv2D", x, w, attrs), _torch(
            lambda torch, x, w, pad=taps // 2: torch.nn.functional.conv2d(x, w, padding=pad),
            x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), channels_last=True))
        flops = 2 * 16 * side * side * channels * filters * taps * taps
        yield row(f"conv2d float32 {side}x{side}x{channels} to {filters}, {taps}x{taps} "
                  f"({flops / ours / 1e12:.2f} TFLOP/s)", ours, "cuDNN by torch", theirs)


def _least(ours: Callable[[], object], theirs: Callable[[], object] | None) -> tuple[float, float | None]:
    """Seconds of one of the ten calls that each function makes."""
    if theirs is None:
        return least(ours)[0] / 10, None
    first, second = least(ours, theirs)
    return first / 10, second / 10


def _torch(function: Callable[..., Any], *arrays: Any, channels_last: bool = False) -> Callable[[], object] | None:
    """Ten calls by torch on its GPU, and a wait; None without torch or its GPU. float32 as heald computes it."""
    torch = _module("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = [torch.as_tensor(np.ascontiguousarray(array), device="cuda") for array in arrays]
    if channels_last:
        tensors = [tensor.contiguous(memory_format=torch.channels_last) for tensor in tensors]

    def run() -> None:
        with torch.no_grad():
            for _ in range(10):
                function(torch, *tensors).max()
        torch.cuda.synchronize()

    return run


def layers() -> Iterator[Row]:
    """Recurrent layers with as many inputs as cells, whose weights and x are constants of the graph."""
    for cell in LAYERS:
        for cells in CELLS:
            for batch in BATCHES:
                on_gpu, on_cpu = (_session_of_layer(cell, cells, batch, name) for name in (NAME, "CPU:0"))
                label = f"{cell}, {STEPS} steps, {cells} cells, batch {batch}"
                expected, got = on_cpu(), on_gpu()
                apart = float(np.abs(got - expected).max() / expected.std())
                if not apart <= TOLERANCE:
                    raise SystemExit(f"{label}: {apart:.1e} of the standard deviation apart from CPU:0")
                ours, theirs = least(on_gpu, on_cpu)
                yield row(label, ours, "CPU:0", theirs)


def _session_of_layer(cell: str, cells: int, batch: int, name: str) -> Callable[[], Any]:
    rng, gates, states = np.random.default_rng(0), *{"LSTM": (4, 2), "GRU": (3, 1)}[cell]
    shapes = {"x": (STEPS, batch, cells), **dict.fromkeys(("h", "c")[:states], (batch, cells)),
              "w": (cells, gates * cells), "u": (cells, gates * cells), "b": (gates * cells,),
              **({"rb": (cells,)} if cell == "GRU" else {})}
    values = {key: (rng.normal(size=shape) / cells**0.5).astype("f4") for key, shape in shapes.items()}
    nodes = [Node("length", "Const", attrs={"dtype": dtypes.int32, "value": np.array(STEPS, "i4")}),
             Node("one", "Placeholder", attrs={"dtype": dtypes.float32, "shape": ShapeAttr(())}),
             *(Node(key, "Const", attrs={"dtype": dtypes.float32, "value": value}) for key, value in values.items()),
             Node("fed", "Mul", ["x", "one"], attrs={"T": dtypes.float32}, device=name),
             Node("y", f"_{cell}Sequence", ["length", *("fed" if key == "x" else key for key in values)],
                  attrs={"T": dtypes.float32}, device=name)]
    session = heald.Session(Graph(nodes), {"placement": {"fallback": "error"}})
    return partial(session.run, "y:1", {"one": np.float32(1)})


def networks(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.pb"), key=lambda path: path.stat().st_size):
        stored = np.load(path.with_suffix(".npz"))
        for batch in BATCHES:
            x = np.repeat(stored["x0"], batch, 0)
            yield from _network(path, x, batch)


def _network(path: Path, x: Any, batch: int) -> Iterator[Row]:
    on_cpu, on_gpu = (heald.load(path, device=name) for name in ("CPU:0", NAME))
    expected, got = (_logits(model(x)) for model in (on_cpu, on_gpu))
    apart = float(np.abs(got - expected).max() / expected.std())
    label = f"{path.stem}, batch {batch}"
    if not apart <= TOLERANCE:  # as NaN is
        raise SystemExit(f"{label}: {apart:.1e} of the logits' standard deviation apart from CPU:0")
    ours, traced = least(lambda: on_gpu(x), lambda: _run_kernel_by_kernel(on_gpu, x))
    yield row(f"{label} ({apart:.1e} apart)", ours, "kernels launched singly:", traced)
    for peer, run in _peers(path, x):
        ours, theirs = least(lambda: on_gpu(x), run)
        yield row(label, ours, peer, theirs)


def _run_kernel_by_kernel(model: heald.Model, x: Any) -> object:
    """A run that launches each kernel by itself: runs with a deadline do."""
    (name,) = model.inputs
    return model.session.run(list(model.fetched.values()), {model.fed[name]: x}, options=heald.RunOptions(timeout=600))


def _logits(results: Any) -> Any:
    """The first result of floats."""
    arrays = list(results.values()) if isinstance(results, dict) else [results]
    return next(array for array in map(np.asarray, arrays) if array.dtype.kind == "f")


def _peers(path: Path, x: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    tensorflow = _module("tensorflow")
    if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
        graph = tensorflow.compat.v1.GraphDef.FromString(path.read_bytes())
        model = heald.load(path)
        (fed,), (fetched, *_) = model.fed.values(), model.fetched.values()
        function = tensorflow.compat.v1.wrap_function(
            lambda: tensorflow.compat.v1.import_graph_def(graph, name=""), []).prune(fed, fetched)
        x_on_device = tensorflow.constant(x)
        yield "TensorFlow", lambda: function(x_on_device).numpy()
    onnx, runtime_ = path.with_suffix(".onnx"), _module("onnxruntime")
    if runtime_ is not None and onnx.exists() and "CUDAExecutionProvider" in runtime_.get_available_providers():
        session = runtime_.InferenceSession(str(onnx), providers=["CUDAExecutionProvider"])
        name = session.get_inputs()[0].name
        yield "ONNX Runtime", lambda: session.run(None, {name: x})


def _module(name: str) -> Any:
    with suppress(ImportError):
        return importlib.import_module(name)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="with networks of benchmarks/networks.py")
    parser.add_argument("--markdown", type=Path, help="the file for the table")
    args = parser.parse_args()
    try:
        device = runtime().host.open(NAME)
    except heald.errors.HealdError as error:
        print(f"no GPU: {error}", file=sys.stderr)
        raise SystemExit(NO_GPU) from None
    rows: list[Row] = []
    start = perf_counter()
    try:
        for row in chain(launches(device), copies(device), layers(), products(),
                         networks(args.folder) if args.folder else ()):
            rows.append(row)
    finally:
        text = table(device, rows, perf_counter() - start)
        print(text)
        if args.markdown:
            args.markdown.write_text(text, "utf-8")


def table(device: Any, rows: Sequence[Row], seconds: float) -> str:
    shown = device.attributes
    head = f"{shown['model']}, {shown['architecture']}, {shown['driver']}; {seconds:.0f} s"
    return f"{head}\n\n{tabulate(rows, ('work', NAME, 'peer', 'ratio'), 'pipe')}\n"


if __name__ == "__main__":
    main()
