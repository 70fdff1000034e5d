"""Makes the recurrent layers that recurrent.py times: layers of Keras, and dynamic_rnn of TensorFlow 1.

    pip install tensorflow-cpu tf2onnx       (in an environment of its own, without heald)
    python benchmarks/recurrent_models.py FOLDER [WORD ...]

FOLDER/NAME has the files that application_forms.py describes: frozen.pb, a SavedModel, arrays.npz and case.json.
model.onnx is there where tf2onnx makes one LSTM or GRU of the loop. tf2onnx may be left out.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported

import keras
import numpy as np
import tensorflow as tf
from application_forms import SEED, case_of, of_function, run_session

v1 = tf.compat.v1

SIZES = ((20, 16, 32, 1), (100, 1, 50, 2), (100, 64, 128, 1), (100, 64, 256, 8))  # steps, features, units, batch
USUAL = (100, 64, 128, 1)
OPSET = 17
SPREAD = 0.1  # standard deviation of the weights: larger ones amplify the last bit of each step

Size = tuple[int, int, int, int]
Layer = Callable[[int], Any]
Case = Callable[[Path], dict[str, Any]]


def sequence_of(size: Size) -> np.ndarray:
    steps, features, _, batch = size
    return np.random.default_rng(SEED).standard_normal((batch, steps, features), np.float32)


def keras_case(
    folder: Path, layer: Layer, size: Size = USUAL, *, masked: bool = False, unknown_time: bool = False
) -> dict[str, Any]:
    """A layer of Keras over a fixed batch. With a mask, each row ends at another step."""
    steps, features, units, batch = size
    x = sequence_of(size)
    source = keras.Input((None if unknown_time else steps, features), batch_size=batch)
    hidden = source
    if masked:
        for row in range(batch):
            x[row, steps - row * steps // (2 * batch) - 1 :] = 0
        hidden = keras.layers.Masking()(source)
    model = keras.Model(source, layer(units)(hidden))
    _vary(model.weights)

    def serve(x: Any) -> dict[str, Any]:
        return {"y": model(x, training=False)}

    signature = tf.TensorSpec((batch, None if unknown_time else steps, features), tf.float32, "x")
    case = of_function(folder, model, serve, {"x": x}, [signature])
    _write_onnx(folder, tf.function(serve, input_signature=[signature]))
    return case


def _vary(weights: Sequence[Any]) -> None:
    rng = np.random.default_rng(SEED)
    for variable in weights:
        variable.assign(rng.normal(0, SPREAD, variable.shape))


def dynamic_rnn(folder: Path, cell: str, size: Size = USUAL, *, frames: bool, lengths: bool) -> dict[str, Any]:
    """dynamic_rnn over an unknown batch and time, with frames or with functions, frozen and as a SavedModel."""
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells

    steps, features, units, batch = size
    feeds: dict[str, Any] = {"x": sequence_of(size)}
    (v1.disable_control_flow_v2 if frames else v1.enable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as graph:
            inputs = {"x": v1.placeholder(tf.float32, [None, None, features], "x")}
            if lengths:
                inputs["lengths"] = v1.placeholder(tf.int32, [None], "lengths")
                feeds["lengths"] = np.array([steps - row * steps // (2 * batch) for row in range(batch)], np.int32)
            outputs, _ = v1.nn.dynamic_rnn(getattr(cells, cell)(units), inputs["x"], inputs.get("lengths"),
                                           dtype=tf.float32)
            y = tf.identity(outputs, "y")
            with v1.Session() as session:
                _load_variables(session)
                v1.saved_model.simple_save(session, str(folder / "saved_model"), inputs, {"y": y})
                frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    finally:
        v1.enable_control_flow_v2()
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
    form = {"path": "frozen.pb", "feeds": {name: tensor.name for name, tensor in inputs.items()},
            "fetches": {"y": y.name}}
    _write_onnx(folder, frozen, [tensor.name for tensor in inputs.values()])
    return case_of(folder, {"SavedModel": {"path": "saved_model"}, "frozen": form}, feeds,
                   run_session(folder, form, feeds))


def _load_variables(session: Any) -> None:
    rng = np.random.default_rng(SEED)
    session.run(v1.global_variables_initializer())
    for variable in v1.global_variables():
        variable.load(rng.normal(0, SPREAD, variable.shape).astype(np.float32), session)


def _write_onnx(folder: Path, source: Any, inputs: Sequence[str] = ()) -> None:
    """Write model.onnx, if tf2onnx is there and makes one op of the loop. `source`: a function, or a frozen graph."""
    if find_spec("tf2onnx") is None:
        return
    import tf2onnx

    try:
        if inputs:
            model, _ = tf2onnx.convert.from_graph_def(source, input_names=[*inputs], output_names=["y:0"], opset=OPSET)
        else:
            model, _ = tf2onnx.convert.from_function(source, source.input_signature, opset=OPSET)
    except Exception as error:  # noqa: BLE001 - tf2onnx raises errors of all kinds
        print(f"{folder.name}: no model.onnx: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return
    ops = {node.op_type for node in model.graph.node}
    if ops & {"LSTM", "GRU"} and "Loop" not in ops:
        (folder / "model.onnx").write_bytes(model.SerializeToString())


def both_ways(units: int) -> Any:
    return keras.layers.Bidirectional(keras.layers.LSTM(units))


def cases() -> dict[str, Case]:
    lstm, gru = keras.layers.LSTM, keras.layers.GRU
    listed: dict[str, Case] = {}
    for name, layer in (("LSTM", lstm), ("GRU", gru)):
        for size in SIZES:
            listed[f"{name} {' '.join(map(str, size))}"] = partial(keras_case, layer=layer, size=size)
        listed |= {
            f"{name} masked": partial(keras_case, layer=layer, size=(100, 64, 128, 4), masked=True),
            f"{name} relu": partial(keras_case, layer=partial(layer, activation="relu")),
            f"{name} unknown time": partial(keras_case, layer=layer, unknown_time=True)}
        cell = f"{name}Cell"
        for frames in (True, False):
            form = "frames" if frames else "functions"
            listed |= {
                f"dynamic_rnn {cell} {form}": partial(dynamic_rnn, cell=cell, frames=frames, lengths=False),
                f"dynamic_rnn {cell} {form} lengths": partial(dynamic_rnn, cell=cell, size=(100, 64, 128, 4),
                                                              frames=frames, lengths=True)}
    listed["LSTM bidirectional"] = partial(keras_case, layer=both_ways)
    return listed


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tf.get_logger().setLevel("ERROR")
    for name, make in cases().items():
        if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
            continue
        folder = Path(sys.argv[1]) / name.replace(" ", "_")
        folder.mkdir(parents=True, exist_ok=True)
        keras.utils.set_random_seed(SEED)
        (folder / "case.json").write_text(json.dumps({"application": name, **make(folder)}, indent=1) + "\n")
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
