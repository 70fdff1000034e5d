"""Seeded weights and calibrated batch statistics, so that the outputs of untrained models vary with their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Rng = np.random.Generator
BATCHES = 4  # for the statistics
MOMENTUM = 0.3  # the last batches count bound


def normal(rng: Rng, *shape: int, scale: float | None = None) -> np.ndarray:
    """Normal numbers of float32, with the deviation of a layer's weights by default."""
    fan_in = int(np.prod(shape[:-1])) or 1
    return rng.normal(0, scale or fan_in**-0.5, shape).astype(np.float32)


def variable(rng: Rng, *shape: int, scale: float | None = None) -> tf.Variable:
    return tf.Variable(normal(rng, *shape, scale=scale))


def ids(rng: Rng, bound: int, *shape: int) -> np.ndarray:
    return rng.integers(0, bound, shape).astype(np.int32)


def perturb(model: Any, rng: Rng, deviation: float = 0.1) -> Any:
    """Add noise to biases, scales and other vectors, which start as zeros or ones. Statistics stay."""
    for weight in model.weights:
        if (
            len(weight.shape) == 1
            and "moving" not in getattr(weight, "path", weight.name)
            and "float" in str(weight.dtype)
        ):
            weight.assign(weight + rng.normal(0, deviation, weight.shape).astype(np.float32))
    return model


def calibrate(model: Any, batches: Sequence[Any]) -> Any:
    """Set the moving statistics of batch normalisation by some batches."""
    for layer in model._flatten_layers():
        if hasattr(layer, "moving_mean") and hasattr(layer, "momentum"):
            layer.momentum = MOMENTUM
    for batch in batches:
        model(batch, training=True)
    return model
