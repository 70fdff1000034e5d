"""The saved forms of an application: files, arrays, and the results of TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
Arrays = Mapping[str, np.ndarray]

SEED = 11
TOLERANCE = 1e-4  # of the standard deviation of an output; of a loss, relative to it


def vary(model: Any) -> None:
    rng = np.random.default_rng(SEED)
    for weights in model.weights:
        weights.assign(rng.normal(0, 0.4, weights.shape))


def of_function(
    folder: Path, holder: Any, function: Callable[..., Any], feeds: Arrays, signature: Sequence[Any]
) -> dict[str, Any]:
    """An application of one function in three forms. The function returns a dict."""
    traced = tf.function(function, input_signature=signature)
    if not isinstance(holder, tf.Module):  # a Keras model
        model, holder = holder, tf.Module()
        holder.model = model
    concrete = traced.get_concrete_function()
    forms = {"SavedModel": save_form(folder, holder, traced)}
    names = {name: index for index, name in enumerate(sorted(concrete.structured_outputs))}
    forms |= frozen_forms(folder, concrete, names)
    return case_of(folder, forms, feeds, traced(*(tf.constant(array) for array in feeds.values())))


def save_form(folder: Path, holder: Any, function: Any) -> dict[str, Any]:
    holder.serve = function
    tf.saved_model.save(holder, str(folder / "saved_model"), signatures=function)
    return {"path": "saved_model"}


def frozen_forms(folder: Path, concrete: Any, names: Mapping[str, int]) -> dict[str, Any]:
    forms = {}
    for form, path, lowered in (("frozen", "frozen.pb", False), ("frozen, lowered", "lowered.pb", True)):
        frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lowered)
        (folder / path).write_bytes(frozen.graph.as_graph_def().SerializeToString())
        forms[form] = {"path": path, "feeds": {tensor.op.name: tensor.name for tensor in frozen.inputs},
                       "fetches": {name: frozen.outputs[index].name for name, index in names.items()}}
    return forms


def graph_form(
    folder: Path, graph: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any], before: Sequence[Any] = (),
    targets: Sequence[Any] = (), steps: int = 0,
) -> dict[str, Any]:
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return {"path": "graph.pb", "feeds": {name: tensor.name for name, tensor in feeds.items()},
            "fetches": {name: tensor.name for name, tensor in fetches.items()},
            "before": [op.name for op in before], "targets": [op.name for op in targets], "steps": steps}


def run_session(folder: Path, form: Mapping[str, Any], feeds: Arrays) -> dict[str, np.ndarray]:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(v1.GraphDef.FromString((folder / form["path"]).read_bytes()), name="")
    feeds_by_tensor = {tensor: feeds[name] for name, tensor in form["feeds"].items()}
    fetched, steps = [*form["fetches"].values(), *form.get("targets", ())], form.get("steps", 0)
    with v1.Session(graph=graph) as session:
        for node in form.get("before", ()):
            session.run(node)
        runs = [session.run(fetched, feeds_by_tensor) for _ in range(steps or 1)]
    columns = zip(*(run[:len(form["fetches"])] for run in runs), strict=True)
    return {name: np.stack(column) if steps else column[0]
            for name, column in zip(form["fetches"], columns, strict=True)}


def _runs(folder: Path, name: str, form: Mapping[str, Any], feeds: Arrays) -> bool:
    """True if TensorFlow itself runs the file that it made; else the reason is printed."""
    if "fetches" not in form:
        return True
    try:
        run_session(folder, form, feeds)
    except (tf.errors.OpError, ValueError) as error:
        print(f"{folder.name}, {name}: left out, since TensorFlow cannot run it: {str(error).splitlines()[0]}",
              file=sys.stderr)
        return False
    return True


def case_of(folder: Path, forms: Mapping[str, Any], feeds: Arrays, results: Mapping[str, Any]) -> dict[str, Any]:
    arrays = {f"in/{name}": np.asarray(array) for name, array in feeds.items()}
    arrays |= {f"out/{name}": np.asarray(value) for name, value in results.items()}
    plain = {name: array.astype(bytes) if array.dtype == object else array for name, array in arrays.items()}
    np.savez(folder / "arrays.npz", **plain)
    return {"tolerance": TOLERANCE,
            "forms": {name: form for name, form in forms.items() if _runs(folder, name, form, feeds)}}
