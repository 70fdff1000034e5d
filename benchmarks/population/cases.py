"""The forms of a model, saved as its users save it, with inputs and TensorFlow's answers.

A maker returns one of three forms:

    KerasModel  saved by Keras: `export` of Keras 3, `save` of Keras 2
    Served      a tf.function with its holder, saved by tf.saved_model.save
    Graph       a graph of TensorFlow 1: frozen, SavedModel, checkpoint with .meta, or GraphDef with its initialisers

The answers come from the saved files, loaded anew: the maker's objects take no part. Calls run in turn on one loaded
model, so that state counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
Call = Mapping[str, np.ndarray]
Runner = Callable[[Call], dict[str, np.ndarray]]
LEAST_DEVIATION = 1e-3  # of each output that has several numbers
TIMED_SECONDS = 0.5
MOST_RUNS = 200


@dataclass
class KerasModel:
    """A model of Keras. `calls` have the names of its inputs; a model with one input may use any name."""

    model: Any
    calls: Sequence[Call]
    tolerance: str = "float32"


@dataclass
class Served:
    """Functions by signature. Only the signature `call` is called."""

    holder: Any
    functions: Mapping[str, Any]
    calls: Sequence[Call]
    tolerance: str = "float32"
    call: str = "serving_default"


@dataclass
class Graph:
    """A graph with tensors by name. `before` runs once; `targets` run with each call.

    `main_op` and `assets` belong to the form SavedModel.
    """

    graph: Any
    feeds: Mapping[str, Any]
    fetches: Mapping[str, Any]
    calls: Sequence[Call]
    form: str = "frozen"
    before: Sequence[Any] = ()
    targets: Sequence[Any] = ()
    tolerance: str = "float32"
    main_op: Any = None
    assets: Sequence[Any] = field(default_factory=list)


@dataclass
class Exported:
    """A SavedModel that another exporter has written into the folder."""

    path: str
    calls: Sequence[Call]
    tolerance: str = "float32"
    call: str = "serving_default"


Form = KerasModel | Served | Graph | Exported


def save_form(form: Form, folder: Path) -> dict[str, Any]:
    """Write the model's files. The result describes them."""
    if isinstance(form, Graph):
        return _save_graph(form, folder)
    description = {"path": "model", "signature": "serving_default"}
    if isinstance(form, Exported):
        return {"path": form.path, "signature": form.call}
    if isinstance(form, Served):
        tf.saved_model.save(form.holder, str(folder / "model"), signatures=dict(form.functions))
        return {**description, "signature": form.call}
    if getattr(tf.keras, "__version__", "2").startswith("3"):
        form.model.export(str(folder / "model"), verbose=False)
    else:
        form.model.save(str(folder / "model"), save_format="tf", include_optimizer=False)
    return description


def _save_graph(form: Graph, folder: Path) -> dict[str, Any]:
    description = {
        "feeds": {name: tensor.name for name, tensor in form.feeds.items()},
        "fetches": {name: tensor.name for name, tensor in form.fetches.items()},
    }
    if form.form == "session":
        (folder / "graph.pb").write_bytes(form.graph.as_graph_def(add_shapes=True).SerializeToString())
        return {
            **description,
            "path": "graph.pb",
            "before": [op.name for op in form.before],
            "targets": [op.name for op in form.targets],
        }
    with v1.Session(graph=form.graph) as session, form.graph.as_default():
        for op in form.before:
            session.run(op)
        return {**description, **_SAVERS[form.form](form, session, folder)}


def _save_frozen(form: Graph, session: Any, folder: Path) -> dict[str, Any]:
    frozen = v1.graph_util.convert_variables_to_constants(
        session, form.graph.as_graph_def(), [tensor.op.name for tensor in form.fetches.values()]
    )
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
    return {"path": "frozen.pb"}


def _save_checkpoint(form: Graph, session: Any, folder: Path) -> dict[str, Any]:
    v1.train.Saver().save(session, str(folder / "model.ckpt"))
    return {"path": "model.ckpt"}


def _save_saved_model(form: Graph, session: Any, folder: Path) -> dict[str, Any]:
    builder = v1.saved_model.Builder(str(folder / "model"))
    signature = v1.saved_model.predict_signature_def(dict(form.feeds), dict(form.fetches))
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        signature_def_map={"serving_default": signature},
        main_op=form.main_op,
        assets_collection=list(form.assets) or None,
    )
    builder.save()
    return {"path": "model", "signature": "serving_default", "feeds": None, "fetches": None}


_SAVERS = {"frozen": _save_frozen, "checkpoint": _save_checkpoint, "saved model": _save_saved_model}


def open_case(folder: Path, description: Mapping[str, Any]) -> Runner:
    """The saved model in TensorFlow: a function from inputs to outputs."""
    path = folder / description["path"]
    if description.get("feeds") is None:
        return _open_saved_model(path, description["signature"])
    graph = tf.Graph()
    session = v1.Session(graph=graph)
    with graph.as_default():
        if path.suffix == ".pb":
            v1.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name="")
            for name in description.get("before", ()):
                session.run(graph.get_operation_by_name(name))
        else:
            v1.train.import_meta_graph(f"{path}.meta").restore(session, str(path))
    fetched = [
        {name: graph.get_tensor_by_name(tensor) for name, tensor in description["fetches"].items()},
        [graph.get_operation_by_name(name) for name in description.get("targets", ())],
    ]
    return lambda call: session.run(fetched, {description["feeds"][name]: array for name, array in call.items()})[0]


def _open_saved_model(path: Path, signature: str) -> Runner:
    loaded = tf.saved_model.load(str(path))
    function = loaded.signatures[signature]

    def run(call: Call) -> dict[str, np.ndarray]:
        assert loaded is not None  # its variables live as long as it does
        results = function(
            **{
                name: tf.constant(array, function.structured_input_signature[1][name].dtype)
                for name, array in call.items()
            }
        )
        return {name: result.numpy() for name, result in results.items()}

    return run


def signature_calls(folder: Path, description: Mapping[str, Any], calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The calls with the signature's names of inputs: a single input may have another name."""
    if description.get("feeds") is not None:
        return [dict(call) for call in calls]
    loaded = tf.saved_model.load(str(folder / description["path"]))
    names = list(loaded.signatures[description["signature"]].structured_input_signature[1])
    if len(names) == 1:
        return [dict.fromkeys(names, *call.values()) for call in calls]
    return [{name: call[name] for name in names} for call in calls]


def check_answers(answers: Sequence[Call]) -> None:
    """Raise ValueError for a model whose outputs hardly vary, or are no numbers."""
    for name in answers[0]:
        arrays = [np.asarray(answer[name]) for answer in answers]
        if arrays[0].dtype.kind in "fV" and sum(array.size for array in arrays) > 1:
            flat = np.concatenate([array.astype(np.float64).ravel() for array in arrays])
            if not np.isfinite(flat).any():
                raise ValueError(f"output {name} is not finite")
            deviation = float(np.std(flat[np.isfinite(flat)]))
            if deviation <= LEAST_DEVIATION:
                raise ValueError(f"output {name} has a standard deviation of {deviation:.1e}")
    texts = {(name, str(array)) for answer in answers for name, array in answer.items()}
    sizes = [np.asarray(array) for answer in answers for array in answer.values()]
    if len(texts) == 1 and all(array.size == 1 for array in sizes) and len(answers) > 1:
        raise ValueError("the outputs of all calls are equal")


def time_case(run: Runner, calls: Sequence[Call]) -> float:
    """Median seconds of a call."""
    times: list[float] = []
    end = perf_counter() + TIMED_SECONDS
    while len(times) < 3 or (perf_counter() < end and len(times) < MOST_RUNS):
        call = calls[len(times) % len(calls)]
        start = perf_counter()
        run(call)
        times.append(perf_counter() - start)
    return median(times)


def say_failure(name: str, error: BaseException) -> None:
    print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:600]}", file=sys.stderr)
