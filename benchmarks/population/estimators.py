"""Models that tf.estimator trains for some steps and exports, of TensorFlow 2.15."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from cases import Exported
from weights import Rng, normal

STEPS = 30
COLUMNS = [
    tf.feature_column.numeric_column("x", [4]),
    tf.feature_column.indicator_column(
        tf.feature_column.categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"])
    ),
]


def _data(rng: Rng, rows: int = 64) -> tuple[dict[str, np.ndarray], np.ndarray]:
    x = normal(rng, rows, 4, scale=1.0)
    colours = np.array(["red", "green", "blue"], object)[rng.integers(0, 3, rows)]
    return {"x": x, "colour": colours}, (x[:, 0] + (colours == "red") > 0).astype(np.int32)


def _example(features: dict[str, np.ndarray], row: int) -> bytes:
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=features["x"][row].tolist())),
                "colour": tf.train.Feature(bytes_list=tf.train.BytesList(value=[features["colour"][row].encode()])),
            }
        )
    ).SerializeToString()


def _export(
    estimator: Any, rng: Rng, folder: Path, signature: str, raw: bool, labels: Callable | None = None
) -> Exported:
    features, classes = _data(rng)
    targets = classes.astype(np.float32) if labels is None else labels(features, classes)

    def feed() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices((features, targets)).batch(16).repeat()

    estimator.train(feed, steps=STEPS)
    if raw:
        specs = {"x": tf.TensorSpec([None, 4], tf.float32), "colour": tf.TensorSpec([None], tf.string)}

        def receiver() -> Any:
            feeds = {name: tf.compat.v1.placeholder(spec.dtype, spec.shape, name) for name, spec in specs.items()}
            return tf.estimator.export.ServingInputReceiver(feeds, feeds)

        call = {"x": features["x"][:5], "colour": features["colour"][:5].astype("S").astype(object)}
    else:
        receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(
            tf.feature_column.make_parse_example_spec(COLUMNS)
        )
        rows = np.empty(5, object)
        rows[:] = [_example(features, row) for row in range(5)]
        call = {"examples": rows}
    path = Path(estimator.export_saved_model(str(folder / "export"), receiver).decode())
    return Exported(str(path.relative_to(folder)), [call], call=signature)


def canned_estimator(rng: Rng, folder: Path, name: str, signature: str, arguments: Any = None) -> Exported:
    """An Estimator that TensorFlow brings, behind parsed tf.Examples."""
    config = tf.estimator.RunConfig(str(folder / "training"), tf_random_seed=11)
    columns = (
        {"linear_feature_columns": COLUMNS, "dnn_feature_columns": COLUMNS}
        if "Combined" in name
        else {"feature_columns": COLUMNS}
    )
    estimator = getattr(tf.estimator, name)(config=config, **columns, **(arguments or {}))
    labels = None if "Regressor" in name else lambda features, classes: classes
    return _export(estimator, rng, folder, signature, raw=False, labels=labels)


def custom_estimator(rng: Rng, folder: Path) -> Exported:
    """A model function with its own graph, as code of TensorFlow 1 has it, behind raw tensors."""
    v1 = tf.compat.v1

    def model(features: dict[str, Any], labels: Any, mode: str) -> Any:
        dense = v1.feature_column.input_layer(features, COLUMNS)
        h = tf.nn.relu(dense @ v1.get_variable("w", [7, 8], initializer=v1.glorot_uniform_initializer(seed=3)))
        logits = h @ v1.get_variable("u", [8, 2], initializer=v1.glorot_uniform_initializer(seed=4))
        classes = {"classes": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(
                mode, classes, export_outputs={"serving_default": tf.estimator.export.PredictOutput(classes)}
            )
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        train = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    estimator = tf.estimator.Estimator(model, str(folder / "training"), tf.estimator.RunConfig(tf_random_seed=11))
    return _export(estimator, rng, folder, "serving_default", raw=True, labels=lambda features, classes: classes)


canned_estimator.wants_folder = custom_estimator.wants_folder = True  # type: ignore[attr-defined]
