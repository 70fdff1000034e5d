"""Networks of keras.applications and of sequences: run, checked on their logits, timed against TensorFlow.

    python benchmarks/networks.py [--folder DIR] [--device DEVICE[,DEVICE ...]] [NAME ...]

Making and timing need the package tensorflow-cpu (in an environment of its own: heald never needs it). Networks that
the folder has already are checked without it. Other devices than CPU:0 are timed against CPU:0. With several devices
each layer runs on the next one in turn, which checks split networks and shows the cost of the split. Untrained networks
return nearly the same output for every input, so comparing outputs would prove nothing. Therefore batch normalisations
get the statistics of real activations first, and networks of sequences get larger weights.
A frozen GraphDef and NAME.npz (x0, x1: inputs; y0, y1: TensorFlow's logits) are kept for each.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import heald
import numpy as np
import sequences
from heald.api import TensorInfo
from heald_tools.peers import difference
from tabulate import tabulate
from timing import seconds, time_pairs

SEED = 11
TOLERANCE = 1e-4  # of the logits' standard deviation


def smooth_images(rng: np.random.Generator, count: int, size: int, scale: float) -> np.ndarray:
    """Waves of random direction and frequency in each channel, with some noise: [count, size, size, 3] in 0..scale."""
    axis = np.linspace(0, 6, size)
    fy, fx = rng.uniform(0.3, 3, (2, count, 1, 1, 3))
    phase = rng.uniform(0, 6, (count, 1, 1, 3))
    waves = 0.5 + 0.4 * np.sin(fy * axis[:, None, None] + phase) * np.cos(fx * axis[None, :, None] - phase)
    noisy = waves + rng.normal(0, 0.05, waves.shape)
    return (noisy.clip(0, 1) * scale).astype(np.float32)


def calibrate(model: Any, batch: np.ndarray, rng: np.random.Generator) -> None:
    """Batch normalisations take the statistics of real activations; their scales and shifts are varied."""
    import keras

    norms = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    for layer in norms:
        layer.momentum = 0.0
    model(batch, training=True)
    for layer in norms:
        weights = layer.get_weights()
        if layer.scale:
            weights[0] *= rng.uniform(0.7, 1.3, weights[0].shape)
        weights[int(layer.scale)] += rng.normal(0, 0.2, weights[int(layer.scale)].shape)
        layer.set_weights(weights)


class Network(NamedTuple):
    """The makers of a Keras model and of its input of batch 1, and the change to its untrained weights."""

    model: Callable[[], Any]
    batch: Callable[[np.random.Generator], np.ndarray]
    varied: Callable[[Any, np.random.Generator], None]


def of_images(name: str, size: int, scale: float = 1.0) -> Network:
    """The network of this name of keras.applications, for images of values up to `scale`."""
    def model() -> Any:
        import keras

        return getattr(keras.applications, name)(weights=None, classifier_activation=None, input_shape=(size, size, 3))

    return Network(model, lambda rng: smooth_images(rng, 1, size, scale),
                   lambda model, rng: calibrate(model, smooth_images(rng, 8, size, scale), rng))


NETWORKS = {
    "mobilenetv2": of_images("MobileNetV2", 224),
    "resnet50": of_images("ResNet50", 224),
    "efficientnetb0": of_images("EfficientNetB0", 224, 255.0),
    "densenet121": of_images("DenseNet121", 224),
    "inceptionv3": of_images("InceptionV3", 299),
    "encoder": Network(sequences.encoder, sequences.texts, sequences.vary),
    "lstm": Network(sequences.lstm, sequences.signals, sequences.vary),
    "gru": Network(sequences.gru, sequences.signals, sequences.vary),
}


def make(name: str, folder: Path) -> None:
    """Write NAME.pb and NAME.npz."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    network = NETWORKS[name]
    keras.backend.clear_session()
    keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    model = network.model()
    network.varied(model, rng)
    inputs = {f"x{i}": network.batch(rng) for i in range(2)}
    signature = tf.TensorSpec((None, *inputs["x0"].shape[1:]), inputs["x0"].dtype, name="x")
    frozen = convert_variables_to_constants_v2(  # loops stay While, which tf2onnx makes one LSTM of
        tf.function(lambda x: model(x, training=False)).get_concrete_function(signature), lower_control_flow=False)
    logits = {f"y{i}": frozen(tf.constant(inputs[f"x{i}"]))[0].numpy() for i in range(2)}
    np.savez(folder / f"{name}.npz", **inputs, **logits)
    (folder / f"{name}.pb").write_bytes(frozen.graph.as_graph_def().SerializeToString())


def load(path: Path, devices: Sequence[str]) -> heald.Model:
    """The network, each layer on the next of these devices in turn."""
    graph = heald.graphdef.load(path)
    layers: dict[str, int] = {}
    nodes = []
    for node in graph.nodes.values():
        layer = layers.setdefault(node.name.rpartition("/")[0], len(layers))
        nodes.append(node.replace(device=devices[layer % len(devices)]))
    plain = heald.load(path)
    inputs = {name: TensorInfo(plain.fed[name], meta) for name, meta in plain.inputs.items()}
    outputs = {name: TensorInfo(plain.fetched[name], meta) for name, meta in plain.outputs.items()}
    return heald.Model(heald.Session(graph.replace(nodes=nodes), {"placement": {"fallback": "allow"}}), inputs, outputs)


def device_misses(model: heald.Model) -> str:
    """The nodes that run elsewhere than requested, by op."""
    rows = model.session.placement().table()
    ops = Counter(row["op"] for row in rows if row["assigned"] not in (row["requested"], "host"))
    return ", ".join(f"{count} {op}" for op, count in ops.most_common()) or "none"


def check(model: heald.Model, stored: Any) -> float:
    """The largest difference from TensorFlow's logits over both inputs, in standard deviations of the logits."""
    return difference([model(stored[f"x{i}"]) for i in range(2)], [stored[f"y{i}"] for i in range(2)])


def against_tensorflow(path: Path, model: heald.Model, x: np.ndarray) -> list[str]:
    """Median times of one image, heald's and TensorFlow's, and their ratio."""
    import tensorflow as tf

    graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    (feed,), (fetch,) = model.inputs, model.outputs
    with tf.compat.v1.Session(graph=graph) as session:
        step = session.make_callable(f"{fetch}:0", [f"{feed}:0"])
        step(x)
        ours, theirs, ratio = time_pairs(lambda: model(x), lambda: step(x), 1, 11)
    return [f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.1f} ms", f"{ratio:.2f}"]


def against_cpu(path: Path, model: heald.Model, x: np.ndarray) -> list[str]:
    """Median times of one image, there and on CPU:0, and their ratio."""
    reference = load(path, ["CPU:0"])
    reference(x)
    ours, theirs, ratio = time_pairs(lambda: model(x), lambda: reference(x), 1, 11)
    return [f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.1f} ms", f"{ratio:.2f}"]


def alone(_: Path, model: heald.Model, x: np.ndarray) -> list[str]:
    times = sorted(seconds(lambda: model(x), 1) for _ in range(11))
    return [f"{times[5] * 1e3:.1f} ms", "not installed", ""]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NETWORKS)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "networks")
    parser.add_argument("--device", default="CPU:0", help="one, or several with commas between them; CPU:0 by default")
    options = parser.parse_args()
    for name in options.names:
        if name not in NETWORKS:
            parser.error(f"no network is called {name}; there are {', '.join(NETWORKS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    have_tensorflow = importlib.util.find_spec("tensorflow") is not None
    devices = options.device.split(",")
    on_cpu = devices == ["CPU:0"]
    timed = against_cpu if not on_cpu else against_tensorflow if have_tensorflow else alone
    rows, failed = [], False
    for name in options.names or NETWORKS:
        path = options.folder / f"{name}.pb"
        if not (path.exists() and path.with_suffix(".npz").exists()):
            if not have_tensorflow:
                print(f"{name} is not in {options.folder}: making it needs tensorflow (pip install tensorflow-cpu)",
                      file=sys.stderr)
                failed = True
                continue
            make(name, options.folder)
        stored = np.load(path.with_suffix(".npz"))
        model = load(path, devices)
        difference = check(model, stored)
        failed |= difference > TOLERANCE
        verdict = "ok" if difference <= TOLERANCE else "WRONG"
        rows.append([name, len(model.session.graph.nodes), device_misses(model), f"{difference:.1e}", verdict,
                     *timed(path, model, stored["x0"])])
    print(tabulate(rows, disable_numparse=True, headers=[
        "network", "nodes", f"not on {options.device}", "difference / std", "",
        *(["heald", "TensorFlow"] if on_cpu else [options.device, "CPU:0"]), "ratio"]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
