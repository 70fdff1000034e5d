"""Preprocessing layers of Keras, in all output modes, alone and before a small network."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import Rng, normal, perturb

layers = tf.keras.layers
Input = tf.keras.Input
TEXTS = np.array(
    [
        b"The film was very good, and not long",
        b"Bad plot! Boring actors.",
        b"brilliant",
        b"",
        b"A plot unknown to the actors was very, very BAD",
    ],
    object,
)
WORDS = ["the", "film", "was", "good", "bad", "very", "plot", "actors", "boring", "brilliant", "and", "not", "long"]
COLOURS = np.array([[b"red"], [b"green"], [b"violet"], [b""], [b"blue"]], object)


def _serve(functions: dict[str, Any], inputs: dict[str, np.ndarray]) -> Served:
    """Layers of the same input, in one signature."""
    holder = tf.Module()
    holder.layers = functions
    ((name, array),) = inputs.items()
    spec = tf.TensorSpec([None, *array.shape[1:]], tf.as_dtype(array.dtype), name=name)

    def serve(x):
        return {key: function(x) for key, function in functions.items()}

    return Served(holder, {"serving_default": tf.function(serve, input_signature=[spec])}, [inputs, {name: array[:2]}])


def vectorized_text(rng: Rng, mode: str, arguments: Any = None) -> Served:
    words = layers.TextVectorization(output_mode=mode, **(arguments or {}))
    words.adapt(TEXTS)
    return _serve({"text": words}, {"texts": TEXTS})


def text_classifier(rng: Rng) -> Served:
    """Strings to classes: vectorization, embeddings, convolutions."""
    words = layers.TextVectorization(output_sequence_length=10, vocabulary=WORDS)
    body = perturb(
        tf.keras.Sequential(
            [
                Input((10,), dtype="int64"),
                layers.Embedding(len(WORDS) + 2, 16),
                layers.Conv1D(12, 3, activation="relu"),
                layers.GlobalMaxPooling1D(),
                layers.Dense(3, activation="softmax"),
            ]
        ),
        rng,
        0.5,
    )
    holder = tf.Module()
    holder.words, holder.body = words, body

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def classify(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"classes": body(words(texts))}

    return Served(holder, {"serving_default": classify}, [{"texts": TEXTS}, {"texts": TEXTS[:1]}])


def looked_up_strings(rng: Rng) -> Served:
    modes = {
        mode: layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode=mode, num_oov_indices=2)
        for mode in ("int", "one_hot", "multi_hot", "count")
    }
    return _serve(modes, {"colours": COLOURS})


def weighted_strings(rng: Rng) -> Served:
    weights = {"vocabulary": ["red", "green", "blue"], "idf_weights": [0.5, 1.5, 2.5]}
    return _serve({"tf_idf": layers.StringLookup(output_mode="tf_idf", **weights)}, {"colours": COLOURS})


def inverted_strings(rng: Rng) -> Served:
    words = ["red", "green", "blue"]
    forward, back = layers.StringLookup(vocabulary=words), layers.StringLookup(vocabulary=words, invert=True)
    return _serve({"again": tf.keras.Sequential([forward, back])}, {"colours": COLOURS})


def looked_up_integers(rng: Rng) -> Served:
    modes = {
        mode: layers.IntegerLookup(vocabulary=[10, 20, 30], output_mode=mode, num_oov_indices=2)
        for mode in ("int", "one_hot", "multi_hot", "count")
    }
    return _serve(modes, {"numbers": np.array([[10], [25], [30], [-7]], np.int64)})


def encoded_categories(rng: Rng) -> Served:
    modes = {mode: layers.CategoryEncoding(6, output_mode=mode) for mode in ("multi_hot", "count")}
    return _serve(modes, {"categories": rng.integers(0, 6, (4, 3)).astype(np.int64)})


def discretization(rng: Rng) -> Served:
    bins = [-1.0, 0.0, 0.5, 2.0]
    modes = {mode: layers.Discretization(bins, output_mode=mode) for mode in ("int", "one_hot", "multi_hot", "count")}
    return _serve(modes, {"x": normal(rng, 6, 1, scale=1.5)})


def hashed_strings(rng: Rng) -> Served:
    modes = {
        "farm": layers.Hashing(50),
        "sip": layers.Hashing(50, salt=[11, 22]),
        "masked": layers.Hashing(50, mask_value=""),
        "one_hot": layers.Hashing(5, output_mode="one_hot"),
    }
    return _serve(modes, {"colours": COLOURS})


def hashed_integers(rng: Rng) -> Served:
    return _serve(
        {"int": layers.Hashing(30), "count": layers.Hashing(7, output_mode="count")},
        {"numbers": rng.integers(-1000, 1000, (5, 1)).astype(np.int64)},
    )


def hashed_crossing(rng: Rng) -> Served:
    """Pairs of a string and a number."""
    crossing, holder = layers.HashedCrossing(20), tf.Module()
    encoded = layers.HashedCrossing(6, output_mode="one_hot")
    holder.crossings = crossing, encoded

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 1], tf.string, name="colour"),
            tf.TensorSpec([None, 1], tf.int64, name="number"),
        ]
    )
    def cross(colour: tf.Tensor, number: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"crossed": crossing((colour, number)), "encoded": encoded((colour, number))}

    return Served(
        holder, {"serving_default": cross}, [{"colour": COLOURS, "number": np.arange(5, dtype=np.int64)[:, None]}]
    )


def normalization(rng: Rng) -> KerasModel:
    scale = layers.Normalization()
    scale.adapt(normal(rng, 50, 4, scale=3.0) + 5)
    model = tf.keras.Sequential([Input((4,)), scale, layers.Dense(3, activation="tanh"), layers.Dense(2)])
    return KerasModel(perturb(model, rng), [{"x": normal(rng, 5, 4, scale=3.0) + 5}])


def resized_images(rng: Rng) -> Served:
    """All interpolations, and the crops."""
    methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
    if getattr(tf.keras, "__version__", "2").startswith("3"):
        methods = ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")
    modes = {method: layers.Resizing(9, 13, interpolation=method) for method in methods}
    modes["cropped"] = layers.CenterCrop(6, 5)
    modes["aspect"] = layers.Resizing(7, 7, crop_to_aspect_ratio=True)
    return _serve(modes, {"images": rng.uniform(0, 255, (3, 12, 10, 3)).astype(np.float32)})


def augmented_images(rng: Rng) -> KerasModel:
    """Layers that augment in training, and hand images on in serving."""
    model = tf.keras.Sequential(
        [
            Input((16, 16, 3)),
            layers.Rescaling(1 / 127.5, -1.0),
            layers.RandomFlip(),
            layers.RandomRotation(0.2),
            layers.RandomZoom(0.2),
            layers.RandomContrast(0.2),
            layers.RandomTranslation(0.1, 0.1),
            layers.RandomCrop(12, 12),
            layers.Conv2D(4, 3),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3),
        ]
    )
    return KerasModel(perturb(model, rng), [{"images": rng.uniform(0, 255, (2, 16, 16, 3)).astype(np.float32)}])


def mel_spectrogram(rng: Rng) -> Served:
    """The layer of Keras 3."""
    layer = layers.MelSpectrogram(
        fft_length=256, sequence_stride=64, sampling_rate=4000, num_mel_bins=16, max_freq=2000
    )
    return _serve({"mel": layer}, {"sound": normal(rng, 3, 1000, scale=0.3)})


def stft_spectrogram(rng: Rng) -> Served:
    """The layer of Keras 3, in its modes."""
    modes = {
        mode: layers.STFTSpectrogram(mode=mode, frame_length=64, frame_step=32, fft_length=64)
        for mode in ("magnitude", "log", "psd")
    }
    return _serve(modes, {"sound": normal(rng, 3, 400, 1, scale=0.3)})


def mixed_features(rng: Rng) -> KerasModel:
    """Strings, numbers and categories in one Keras model, as tables are served."""
    entries = {
        "colour": Input((1,), dtype="string", name="colour"),
        "age": Input((1,), name="age"),
        "rooms": Input((1,), dtype="int64", name="rooms"),
    }
    colour = layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode="one_hot")(entries["colour"])
    age = layers.Normalization(mean=40.0, variance=100.0)(entries["age"])
    rooms = layers.IntegerLookup(vocabulary=[1, 2, 3], output_mode="one_hot")(entries["rooms"])
    x = layers.Dense(8, activation="relu")(layers.Concatenate()([colour, age, rooms]))
    model = perturb(tf.keras.Model(entries, layers.Dense(1, activation="sigmoid")(x)), rng, 0.3)
    return KerasModel(
        model,
        [
            {
                "colour": COLOURS,
                "age": rng.uniform(20, 60, (5, 1)).astype(np.float32),
                "rooms": np.array([[1], [2], [9], [3], [0]], np.int64),
            }
        ],
    )
