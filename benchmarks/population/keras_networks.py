"""keras.applications: a network of every family, without weights of its own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from cases import KerasModel
from weights import BATCHES, Rng, calibrate, normal, perturb


def network(
    rng: Rng, name: str, side: int = 96, batch: int = 2, activation: str | None = None, arguments: Any = None
) -> KerasModel:
    """The network with ten classes."""
    model = getattr(tf.keras.applications, name)(
        weights=None, classes=10, input_shape=(side, side, 3), classifier_activation=activation, **(arguments or {})
    )
    perturb(model, rng)
    calibrate(model, [normal(rng, 4, side, side, 3, scale=1.0) for _ in range(BATCHES)])
    return KerasModel(model, [{"images": normal(rng, batch, side, side, 3, scale=1.0)}])


def backbone(rng: Rng, name: str, side: int = 96, pooling: str = "avg") -> KerasModel:
    """The network without its head."""
    model = getattr(tf.keras.applications, name)(
        weights=None, include_top=False, input_shape=(side, side, 3), pooling=pooling
    )
    perturb(model, rng)
    calibrate(model, [normal(rng, 4, side, side, 3, scale=1.0) for _ in range(BATCHES)])
    return KerasModel(model, [{"images": normal(rng, 1, side, side, 3, scale=1.0)}])


def with_preprocessing(rng: Rng, name: str, module: str, side: int = 64) -> KerasModel:
    """The network behind its own preprocess_input and a resize, as bytes of pixels come in."""
    layers, applications = tf.keras.layers, tf.keras.applications
    preprocess = getattr(applications, module).preprocess_input
    base = getattr(applications, name)(weights=None, include_top=False, input_shape=(side, side, 3), pooling="avg")
    pixels = tf.keras.Input((None, None, 3), name="pixels")
    resized = layers.Resizing(side, side)(pixels)
    scaled = layers.Lambda(preprocess, output_shape=(side, side, 3))(resized)
    model = tf.keras.Model(pixels, layers.Dense(5)(base(scaled)))
    perturb(model, rng)
    calibrate(model, [rng.uniform(0, 255, (4, 80, 90, 3)).astype("float32") for _ in range(BATCHES)])
    return KerasModel(
        model,
        [
            {"pixels": rng.uniform(0, 255, (2, 80, 90, 3)).astype("float32")},
            {"pixels": rng.uniform(0, 255, (1, 50, 64, 3)).astype("float32")},
        ],
    )
