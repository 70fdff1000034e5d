"""Other runtimes with the same model, for heald bench --against. No other module imports these runtimes."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from heald.api import install_hint
from heald.api.cli import ticking
from heald.errors import InvalidArgument, Unavailable

if TYPE_CHECKING:
    from heald import Model

Run = Callable[[], Sequence[Any]]  # returns the outputs, in the order of heald's


@dataclass(frozen=True)
class Peer:
    """A runtime that has loaded the model and run it once. `first_ms` includes the runtime's import."""

    name: str
    run: Run
    first_ms: float


def check_runtimes(names: Sequence[str]) -> None:
    """Raise InvalidArgument for an unknown runtime, Unavailable for a runtime that is not installed."""
    for name in names:
        if name not in OPENERS:
            raise InvalidArgument(f"'{name}' is no runtime to compare with", hint=f"known: {', '.join(OPENERS)}")
        if find_spec(name) is None:
            raise Unavailable(f"{name} is not installed", hint=install_hint(_DISTRIBUTIONS.get(name, name)))


def peers(names: Sequence[str], args: Namespace, model: Model, feeds: Mapping[str, Any]) -> list[Peer]:
    """Open these runtimes, ready to run. Raises Unavailable when a runtime cannot read the model's format."""
    opened = []
    for name in names:
        started = perf_counter()
        with ticking(f"opening {name}"):
            run = OPENERS[name](args, model, feeds)
            run()
        opened.append(Peer(name, run, (perf_counter() - started) * 1e3))
    return opened


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """Return the largest difference between two runtimes' outputs, in standard deviations of the second's outputs."""
    import numpy as np

    return max(float(np.abs(np.asarray(b, np.float64) - a).max() / (np.std(b) or 1.0))
               for a, b in zip(ours, theirs, strict=True))


def _tensorflow(args: Namespace, model: Model, feeds: Mapping[str, Any]) -> Run:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(args.threads or 0)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads or 0)
    if Path(args.model).is_dir():
        loaded = tf.saved_model.load(args.model, tags=args.tags)
        function = loaded.signatures[args.signature or "serving_default"]
        tensors = {name: tf.constant(value) for name, value in feeds.items()}

        def run() -> list[Any]:
            tensors_by_name = function(**tensors)
            return [tensors_by_name[name].numpy() for name in model.outputs]

        return run
    session = tf.compat.v1.Session(graph=_import_graph(tf, args.model), config=tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=args.threads or 0, inter_op_parallelism_threads=args.threads or 0))
    step = session.make_callable([_port(t) for t in model.fetched.values()], [_port(t) for t in model.fed.values()])
    values = [feeds[name] for name in model.fed]
    return lambda: list(step(*values))


def _import_graph(tf: Any, path: str) -> Any:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(Path(path).read_bytes()), name="")
    return graph


def _onnxruntime(args: Namespace, model: Model, feeds: Mapping[str, Any]) -> Run:
    """Run MODEL.onnx beside the model, or tf2onnx's conversion of the model."""
    import onnxruntime

    file = Path(args.model).with_suffix(".onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads or 0
    what = str(file) if file.is_file() else _convert_model(args, model)
    session: Any = onnxruntime.InferenceSession(what, options, providers=["CPUExecutionProvider"])
    inputs = dict(zip((i.name for i in session.get_inputs()), (feeds[name] for name in model.fed), strict=True))
    return lambda: list(session.run(None, inputs))


def _convert_model(args: Namespace, model: Model) -> bytes:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tf2onnx

    if Path(args.model).is_dir() or find_spec("tf2onnx") is None:
        raise Unavailable(f"there is no {Path(args.model).with_suffix('.onnx')} to run",
                          hint="python -m tf2onnx.convert makes one; of a .pb it is made here if tf2onnx is installed")
    import tensorflow as tf

    proto, _ = tf2onnx.convert.from_graph_def(
        tf.compat.v1.GraphDef.FromString(Path(args.model).read_bytes()), opset=17,
        input_names=[_port(t) for t in model.fed.values()], output_names=[_port(t) for t in model.fetched.values()])
    return bytes(proto.SerializeToString())


def _openvino(args: Namespace, model: Model, feeds: Mapping[str, Any]) -> Run:
    import openvino

    core = openvino.Core()
    settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}  # as all others
    if args.threads:
        settings["INFERENCE_NUM_THREADS"] = args.threads
    read = core.read_model(args.model)
    values = [feeds[name] for name in model.fed]
    read.reshape({port: list(value.shape) for port, value in zip(read.inputs, values, strict=True)})
    request = core.compile_model(read, "CPU", settings).create_infer_request()
    return lambda: list(request.infer(values).values())


def _port(tensor: str) -> str:
    return tensor if ":" in tensor else f"{tensor}:0"


_DISTRIBUTIONS = {"tensorflow": "tensorflow-cpu"}
OPENERS: dict[str, Callable[[Namespace, Any, Mapping[str, Any]], Run]] = {
    "tensorflow": _tensorflow, "onnxruntime": _onnxruntime, "openvino": _openvino,
}
