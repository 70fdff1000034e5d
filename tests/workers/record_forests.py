"""Recordings of decision forests, by the libraries that made them.

    python tests/workers/record_forests.py train models           # by ydf 0.16: models of every kind, each in a folder
    python tests/workers/record_forests.py record models out.npz  # by TF-DF 1.12 on TensorFlow 2.19.0: their results
    python tests/workers/record_forests.py save saved             # by TF-DF: SavedModels, their inputs and results
    python tests/workers/record_forests.py shrink saved/NAME      # by heald: without functions that no signature calls

ydf and TF-DF need environments of their own: tensorflow==2.19.0, tensorflow_decision_forests==1.12.0, tf_keras and
ydf==0.11.0 for the latter, and TF_USE_LEGACY_KERAS=1. An archive has the files of each model, the six banks of its op,
predictions, words and leaves. `tests/data/decision_forests` keeps them; all SavedModels but `binary` are shrunk.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

TRAINING_EXAMPLES, RECORDED_EXAMPLES, SAVED_EXAMPLES = 150, 16, 24
BANKS = ("numerical_features", "boolean_features", "categorical_int_features", "categorical_set_int_features_values",
         "categorical_set_int_features_row_splits_dim_1", "categorical_set_int_features_row_splits_dim_2")


def training_data(rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """Columns of every kind, and a score that depends on all of them."""
    n = TRAINING_EXAMPLES
    x, w = rng.normal(size=n).astype(np.float32), rng.random(n).astype(np.float32)
    x[rng.random(n) < 0.15] = np.nan
    b, k = rng.random(n) > 0.5, rng.integers(0, 6, n)
    c = np.array(["red", "green", "blue", ""], object)[rng.choice(4, n, p=[0.35, 0.3, 0.25, 0.1])]
    t = np.empty(n, object)
    t[:] = [list(np.array(["a", "b", "c", "d", "e"])[rng.random(5) < 0.4]) for _ in range(n)]
    u = np.empty(n, object)
    u[:] = [list(np.array(["p", "q", "r"])[rng.random(3) < 0.5]) for _ in range(n)]
    has_a = np.array(["a" in words for words in t])
    score = np.nan_to_num(x) + 2 * b + (c == "red") * 1.5 + has_a * 1.3 + w + (k > 3) + (k == 1) * 2
    return {"x": x, "w": w, "b": b, "c": c, "k": k, "t": t, "u": u}, score


def train(folder: Path) -> None:
    """Train small models of every kind that the ops take."""
    import ydf
    from ydf import Feature, Semantic, Task

    data, score = training_data(np.random.default_rng(7))
    two, three = (score > np.median(score)).astype(int), np.digitize(score, np.quantile(score, [0.33, 0.66]))
    words = np.array(["low", "mid", "high"], object)[three]
    features = {"x": Feature("x", Semantic.NUMERICAL), "w": Feature("w", Semantic.NUMERICAL),
                "b": Feature("b", Semantic.BOOLEAN), "c": Feature("c", Semantic.CATEGORICAL, min_vocab_frequency=1),
                "k": Feature("k", Semantic.CATEGORICAL, is_already_integerized=True),
                **{name: Feature(name, Semantic.CATEGORICAL_SET, min_vocab_frequency=1) for name in "tu"}}
    bins = [Feature(name, Semantic.DISCRETIZED_NUMERICAL) for name in "xw"]
    boosted = {"num_trees": 3, "max_depth": 4, "validation_ratio": 0.0, "min_examples": 3}
    bagged = {"num_trees": 3, "max_depth": 4, "compute_oob_performances": False, "min_examples": 3}
    trees, forest = ydf.GradientBoostedTreesLearner, ydf.RandomForestLearner
    number = score.astype(np.float32)
    has_a, has_q = (np.array([word in words for words in data[column]]) for column, word in ("ta", "uq"))
    rows: dict[str, tuple[Any, str, Any, dict[str, Any]]] = {  # learner, columns, label, options
        "gbt_binary": (trees, "xwbck", two, {}), "gbt_words": (trees, "xwbckt", words, {}),
        "gbt_sets": (trees, "xt", two, {}), "gbt_two_sets": (trees, "tu", has_a ^ has_q, {}),
        "gbt_regression": (trees, "xwbc", number, {"task": Task.REGRESSION}),
        "gbt_poisson": (trees, "xw", np.abs(np.round(number)), {"task": Task.REGRESSION, "loss": "POISSON"}),
        "gbt_logits": (trees, "xwb", two, {"apply_link_function": False}),
        "gbt_logits3": (trees, "xwb", three, {"apply_link_function": False}),
        "gbt_oblique": (trees, "xwk", two, {"split_axis": "SPARSE_OBLIQUE"}),
        "gbt_local": (trees, "xbc", two, {"missing_value_policy": "LOCAL_IMPUTATION"}),
        "gbt_local_numbers": (trees, "xw", two, {"missing_value_policy": "LOCAL_IMPUTATION"}),
        "gbt_local_sets": (trees, "xt", two, {"missing_value_policy": "LOCAL_IMPUTATION"}),
        "rf_local": (forest, "xbckt", words, {"missing_value_policy": "LOCAL_IMPUTATION"}),
        "gbt_random": (trees, "xbc", two, {"missing_value_policy": "RANDOM_LOCAL_IMPUTATION"}),
        "gbt_discretized": (trees, "", two, {"features": bins, "num_discretized_numerical_bins": 16}),
        "gbt_na": (trees, "xc", np.isnan(data["x"]) ^ (data["c"] == "red"), {"allow_na_conditions": True}),
        "gbt_ranking": (trees, "xwbc", three.astype(np.float32), {"task": Task.RANKING, "ranking_group": "g"}),
        "rf_binary": (forest, "xwbck", two, {}), "rf_votes3": (forest, "xwbc", words, {"winner_take_all": True}),
        "rf_mean3": (forest, "xwt", words, {"winner_take_all": False}),
        "rf_regression": (forest, "xwbck", number, {"task": Task.REGRESSION}),
        "uplift_categorical": (forest, "xw", two, {"task": Task.CATEGORICAL_UPLIFT, "uplift_treatment": "v"}),
        "uplift_numerical": (forest, "xw", number, {"task": Task.NUMERICAL_UPLIFT, "uplift_treatment": "v"}),
    }
    data["g"] = np.array([f"q{index // 10}" for index in range(TRAINING_EXAMPLES)], object)
    data["v"] = np.array(["A", "B"], object)[np.arange(TRAINING_EXAMPLES) % 2]
    for name, (learner, columns, label, options) in rows.items():
        options = {**(boosted if learner is trees else bagged), "features": [features[c] for c in columns], **options}
        model = learner(label="y", **options).train({**data, "y": label}, verbose=0)
        (folder / name).mkdir(parents=True)
        prefix = "" if name == "gbt_regression" else name[-4:]
        model.save(str(folder / name), ydf.ModelIOOptions(file_prefix=prefix), pure_serving=True)
    reverse_features(folder)


def reverse_features(folder: Path) -> None:
    """Add a model whose header has its input features in the reverse order."""
    from yggdrasil_decision_forests.model import abstract_model_pb2

    changed = shutil.copytree(folder / "gbt_binary", folder / "gbt_reversed")
    file = changed / "naryheader.pb"
    header = abstract_model_pb2.AbstractModel.FromString(file.read_bytes())
    header.input_features[:] = [*header.input_features][::-1]
    file.write_bytes(header.SerializeToString())


def bank_inputs(header: Any, data_spec: Any, rng: np.random.Generator) -> list[Any]:
    """Values for the six banks of a model: missing ones, infinities, indices beyond the vocabularies."""
    from yggdrasil_decision_forests.dataset.data_spec_pb2 import ColumnType

    kinds = [ColumnType.Name(data_spec.columns[index].type) for index in header.input_features]
    n, set_count = RECORDED_EXAMPLES, kinds.count("CATEGORICAL_SET")
    x = rng.normal(size=(n, sum("NUMERICAL" in kind for kind in kinds))).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[-2:] = [[-np.inf], [np.inf]]
    b = rng.choice(np.float32([0, 1, 0.5, 0.49, 2, -1, np.nan]), (n, kinds.count("BOOLEAN")))
    c = rng.integers(-3, 10, (n, kinds.count("CATEGORICAL"))).astype(np.int32)
    sets = [[-1] if rng.random() < 0.2 else rng.integers(-2, 9, rng.integers(0, 5)) for _ in range(n * set_count)]
    set_splits = np.cumsum([0, *map(len, sets)])
    example_splits = np.arange(0, n * set_count + 1, set_count) if set_count else np.zeros(1)
    banks = [bank if bank.size else bank[:0] for bank in (x, b, c)]
    values = np.int32([word for words in sets for word in words])
    return [*banks, values, np.int64(set_splits), np.int64(example_splits)]


def output_width(header: Any, data_spec: Any) -> int:
    """The number of columns of a model's predictions."""
    class_count = data_spec.columns[header.label_col_idx].categorical.number_of_unique_values - 1
    is_logit = class_count == 2 and not header.classification_outputs_probabilities
    return class_count if header.task == 1 and not is_logit else 1


def record(models: Path, archive: Path) -> None:
    """Run all models by TF-DF's ops, and write files, inputs and results."""
    from yggdrasil_decision_forests.dataset import data_spec_pb2
    from yggdrasil_decision_forests.model import abstract_model_pb2

    arrays: dict[str, Any] = {}
    rng = np.random.default_rng(3)
    for folder in sorted(models.iterdir()):
        prefix = next(folder.glob("*done")).name.removesuffix("done")
        header = abstract_model_pb2.AbstractModel.FromString((folder / f"{prefix}header.pb").read_bytes())
        data_spec = data_spec_pb2.DataSpecification.FromString((folder / f"{prefix}data_spec.pb").read_bytes())
        banks, width = bank_inputs(header, data_spec, rng), output_width(header, data_spec)
        dense, words = run_ops(folder, prefix, banks, width)
        results = {"dense": dense, "words": np.array(words.tolist(), "S"),
                   "leaves": run_ops(folder, prefix, banks, width, gives_leaves=True)}
        results |= {str(index): bank for index, bank in enumerate(banks)}
        results |= {f"file/{file.name}": np.frombuffer(file.read_bytes(), "u1") for file in sorted(folder.iterdir())}
        arrays |= {f"{folder.name}/{key}": array for key, array in results.items()}
    np.savez_compressed(archive, **arrays)


def run_ops(folder: Path, prefix: str, banks: list[Any], width: int, *, gives_leaves: bool = False) -> Any:
    """The predictions and words of a model, or its leaves. Eager ops would share one model: a session runs them."""
    import tensorflow as tf
    from tensorflow_decision_forests.tensorflow.ops.inference import op

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle = op.SimpleMLCreateModelResource(shared_name="model")
        load = op.SimpleMLLoadModelFromPathWithHandle(
            model_handle=handle, path=str(folder), file_prefix=prefix, output_types=["LEAVES"] if gives_leaves else [])
        inputs = dict(zip(BANKS, banks, strict=True))
        results = (op.SimpleMLInferenceLeafIndexOpWithHandle(**inputs, model_handle=handle) if gives_leaves else
                   op.SimpleMLInferenceOpWithHandle(**inputs, model_handle=handle, dense_output_dim=width))
        session.run(load)
        return session.run(results)


def save(folder: Path) -> None:
    """Train models by TF-DF's Keras, save them, and record a call of each signature."""
    import tensorflow as tf
    from tensorflow_decision_forests import keras

    usage, semantic, task = keras.FeatureUsage, keras.FeatureSemantic, keras.Task
    data, score = training_data(np.random.default_rng(11))
    columns = {"x": data["x"], "flag": data["b"].astype(np.int64), "k": data["k"], "c": data["c"].astype("S"),
               "t": tf.ragged.constant(list(data["t"]), dtype=tf.string),
               "g": np.array([f"q{index // 10}" for index in range(TRAINING_EXAMPLES)])}
    three = np.digitize(score, np.quantile(score, [0.33, 0.66]))
    usages = {"x": usage("x", semantic.NUMERICAL), "flag": usage("flag", semantic.NUMERICAL),
              "k": usage("k", semantic.CATEGORICAL), "c": usage("c", semantic.CATEGORICAL, min_vocab_frequency=1),
              "t": usage("t", semantic.CATEGORICAL_SET, min_vocab_frequency=1)}
    trees, forest = keras.GradientBoostedTreesModel, keras.RandomForestModel
    rows: dict[str, tuple[Any, list[str], Any, dict[str, Any]]] = {
        "binary": (trees, ["x", "flag", "k", "c"], (score > np.median(score)).astype(int), {"validation_ratio": 0.0}),
        "classes": (trees, ["x", "t"], three, {"validation_ratio": 0.0}),
        "forest": (forest, ["x", "flag", "k", "c"], score.astype(np.float32), {"task": task.REGRESSION}),
        "ranking": (trees, ["x", "flag"], three.astype(np.float32),
                    {"task": task.RANKING, "ranking_group": "g", "validation_ratio": 0.0}),
    }
    for name, (maker, names, label, options) in rows.items():
        model = maker(features=[usages[key] for key in names], exclude_non_specified_features=True, num_trees=3,
                      max_depth=4, min_examples=3, verbose=0, **options)
        fed = names + ["g"] * (name == "ranking")
        model.fit(tf.data.Dataset.from_tensor_slices(({key: columns[key] for key in fed}, label)).batch(40), verbose=0)
        inputs = saved_inputs(fed)
        record_call(model, inputs, folder / name)


def saved_inputs(names: list[str]) -> dict[str, Any]:
    """Inputs of a SavedModel, with missing values and unknown words."""
    import tensorflow as tf

    rng, n = np.random.default_rng(12), SAVED_EXAMPLES
    x = rng.normal(size=n).astype(np.float32)
    x[::5] = np.nan
    words = [list(np.array(["a", "b", "c", "d", "zz"])[rng.random(5) < 0.4]) for _ in range(n)]
    words[3], words[4] = [""], []
    values = {"x": x, "flag": rng.integers(0, 2, n), "k": rng.integers(-2, 8, n), "g": np.full(n, b"q"),
              "c": np.array([b"red", b"green", b"blue", b"", b"violet"])[rng.integers(0, 5, n)],
              "t": tf.ragged.constant(words, dtype=tf.string)}
    return {name: values[name] if name == "t" else tf.constant(values[name]) for name in names}


def record_call(model: Any, inputs: dict[str, Any], folder: Path) -> None:
    """Save a model, and the result of its signature for these inputs. A set of words has a signature of its own."""
    import tensorflow as tf

    def serve(x: Any, words: Any, splits: Any) -> dict[str, Any]:
        return {"output": model({"x": x, "t": tf.RaggedTensor.from_row_splits(words, splits, validate=False)})}

    model(inputs)
    options = {}
    if "t" in inputs:
        specs = [tf.TensorSpec([None], dtype, name) for dtype, name in ((tf.float32, "x"), (tf.string, "words"),
                                                                        (tf.int64, "splits"))]
        options = {"signatures": tf.function(serve, input_signature=specs)}
        sets = inputs.pop("t")
        inputs |= {"words": sets.values, "splits": sets.row_splits}
    model.save(str(folder / "model"), **options)
    (result,) = tf.saved_model.load(str(folder / "model")).signatures["serving_default"](**inputs).items()
    calls = {f"in/{name}": value.numpy().astype("S") if value.dtype == tf.string else value.numpy()
             for name, value in inputs.items()}
    np.savez_compressed(folder / "calls.npz", **calls, **{f"out/{result[0]}": result[1].numpy()})
    for name in ("keras_metadata.pb", "fingerprint.pb"):
        (folder / "model" / name).unlink(missing_ok=True)


def shrink(folder: Path) -> None:
    """Leave out of a SavedModel the functions that no node calls, and its objects."""
    from heald.graphs.protobuf import message_class

    file = folder / "model" / "saved_model.pb"
    saved = message_class("SavedModel").FromString(file.read_bytes())
    graph = saved.meta_graphs[0].graph_def
    functions = {function.signature.name: function for function in graph.library.function}
    waiting, needed = list(graph.node), set()
    while waiting:
        names = {attr.func.name for attr in waiting.pop().attr.values() if attr.HasField("func")} & functions.keys()
        waiting += [node for name in names - needed for node in functions[name].node_def]
        needed |= names
    for name in functions.keys() - needed:
        graph.library.function.remove(functions[name])
    saved.meta_graphs[0].ClearField("object_graph_def")
    for node in (*graph.node, *(node for function in graph.library.function for node in function.node_def)):
        node.attr.pop("_output_shapes", None)
        node.ClearField("experimental_debug_info")
    file.write_bytes(saved.SerializeToString(deterministic=True))


if __name__ == "__main__":
    {"train": train, "record": record, "save": save, "shrink": shrink}[sys.argv[1]](*map(Path, sys.argv[2:]))
