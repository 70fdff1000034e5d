"""Tables, time series and small numerical models."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import Rng, calibrate, normal, perturb, variable

layers = tf.keras.layers
Input = tf.keras.Input
ACTIVATIONS = ("relu", "elu", "selu", "softplus", "softsign", "swish", "gelu", "hard_sigmoid", "exponential", "tanh")


def activations(rng: Rng) -> KerasModel:
    """One layer for each activation of Keras."""
    entry = Input((6,))
    branches = [layers.Dense(4, activation=name)(entry) for name in ACTIVATIONS]
    branches += [
        layers.LeakyReLU()(layers.Dense(4)(entry)),
        layers.PReLU()(layers.Dense(4)(entry)),
        layers.ReLU(2.0, 0.1, 0.2)(layers.Dense(4)(entry)),
        layers.ELU(0.5)(layers.Dense(4)(entry)),
        layers.Softmax()(layers.Dense(4)(entry)),
    ]
    return KerasModel(
        perturb(tf.keras.Model(entry, layers.Concatenate()(branches)), rng), [{"x": normal(rng, 5, 6, scale=1.0)}]
    )


def tabular_network(rng: Rng) -> KerasModel:
    """Residual blocks with batch statistics, dropout and noise."""
    x = entry = Input((10,))
    for _ in range(3):
        y = layers.BatchNormalization()(layers.Dense(10, activation="relu")(x))
        x = layers.Add()([x, layers.GaussianNoise(0.1)(layers.Dropout(0.3)(y))])
    model = perturb(tf.keras.Model(entry, layers.Dense(1)(x)), rng)
    calibrate(model, [normal(rng, 16, 10, scale=1.0) for _ in range(4)])
    return KerasModel(model, [{"x": normal(rng, 6, 10, scale=1.0)}])


def temporal_convolutions(rng: Rng) -> KerasModel:
    """TCN: causal dilated convolutions with residuals, over steps of any number."""
    x = entry = Input((None, 3))
    for rate in (1, 2, 4):
        y = layers.Conv1D(8, 3, padding="causal", dilation_rate=rate, activation="relu")(x)
        y = layers.SpatialDropout1D(0.1)(layers.LayerNormalization()(y))
        x = layers.Add()([layers.Conv1D(8, 1)(x), y])
    x = layers.Conv1DTranspose(4, 3, 2, padding="same")(layers.MaxPooling1D(2)(x))
    return KerasModel(
        perturb(tf.keras.Model(entry, layers.Dense(2)(x)), rng),
        [{"x": normal(rng, 2, n, 3, scale=1.0)} for n in (20, 9)],
    )


def basis_expansion(rng: Rng) -> KerasModel:
    """N-BEATS: blocks that subtract their backcasts and add their forecasts."""
    residual = entry = Input((12,))
    forecast = None
    for _ in range(3):
        h = layers.Dense(16, activation="relu")(residual)
        residual = layers.Subtract()([residual, layers.Dense(12)(h)])
        part = layers.Dense(4)(h)
        forecast = part if forecast is None else layers.Add()([forecast, part])
    return KerasModel(perturb(tf.keras.Model(entry, forecast), rng), [{"x": normal(rng, 3, 12, scale=1.0)}])


def feature_selection(rng: Rng) -> Served:
    """TabNet: sparsemax masks choose features step by step."""
    holder = tf.Module()
    holder.w, holder.out = variable(rng, 8, 8, scale=1.0), variable(rng, 8, 3, scale=0.6)

    def sparsemax(z: tf.Tensor) -> tf.Tensor:
        ordered = tf.sort(z, direction="DESCENDING")
        sums = tf.cumsum(ordered, -1)
        ranks = tf.range(1, 9, dtype=tf.float32)
        number = tf.reduce_sum(tf.cast(1 + ranks * ordered > sums, tf.int32), -1)
        tau = (tf.gather(sums, number - 1, batch_dims=1) - 1) / tf.cast(number, tf.float32)
        return tf.maximum(z - tau[:, None], 0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        prior, total = tf.ones_like(x), tf.zeros([tf.shape(x)[0], 3])
        for _ in range(3):
            mask = sparsemax(prior * (x @ holder.w))
            prior *= 1.3 - mask
            total += tf.nn.relu((mask * x) @ holder.out)
        return {"y": total, "mask": mask}

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 5, 8, scale=1.0)}])


def gaussian_process(rng: Rng) -> Served:
    """Predictions with deviations, by Cholesky and triangular solves."""
    holder = tf.Module()
    holder.x, holder.y = variable(rng, 15, 2, scale=1.0), variable(rng, 15, 1, scale=1.0)

    def kernel(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.exp(-0.5 * tf.reduce_sum(tf.math.squared_difference(a[:, None], b[None]), -1))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def predict(x: tf.Tensor) -> dict[str, tf.Tensor]:
        lower = tf.linalg.cholesky(kernel(holder.x, holder.x) + 0.1 * tf.eye(15))
        across = kernel(holder.x, x)
        mean = tf.transpose(across) @ tf.linalg.cholesky_solve(lower, holder.y)
        v = tf.linalg.triangular_solve(lower, across)
        return {"mean": mean[:, 0], "deviation": tf.sqrt(1.0 - tf.reduce_sum(v * v, 0))}

    return Served(holder, {"serving_default": predict}, [{"x": normal(rng, 6, 2, scale=1.0)}])


def clusters(rng: Rng) -> Served:
    """k-means: rounds of assignments and means, until nothing moves."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="points")])
    def fit(points: tf.Tensor) -> dict[str, tf.Tensor]:
        centres, moved, rounds = points[:3], tf.constant(1.0), tf.constant(0)
        labels = tf.zeros([tf.shape(points)[0]], tf.int32)
        while moved > 1e-6 and rounds < 20:
            labels = tf.argmin(tf.reduce_sum((points[:, None] - centres) ** 2, -1), 1, tf.int32)
            means = tf.math.unsorted_segment_mean(points, labels, 3)
            moved, centres, rounds = tf.reduce_max(tf.abs(means - centres)), means, rounds + 1
        return {"labels": labels, "centres": centres, "rounds": rounds}

    return Served(holder, {"serving_default": fit}, [{"points": normal(rng, n, 2, scale=1.0)} for n in (20, 5)])


def principal_components(rng: Rng) -> Served:
    """Projections by singular values, with squares, as signs are free."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, name="x")])
    def project(x: tf.Tensor) -> dict[str, tf.Tensor]:
        centred = x - tf.reduce_mean(x, 0)
        s, _, v = tf.linalg.svd(centred)
        values, _ = tf.linalg.eigh(tf.matmul(centred, centred, transpose_a=True))
        return {
            "s": s,
            "squares": (centred @ v[:, :2]) ** 2,
            "values": values / 10,
            "q": tf.abs(tf.linalg.qr(centred)[1]),
        }

    return Served(holder, {"serving_default": project}, [{"x": normal(rng, 12, 6, scale=1.0)}])


def survival(rng: Rng) -> Served:
    """Distributions: special functions of a network's parameters."""
    holder = tf.Module()
    holder.w = variable(rng, 5, 3, scale=0.5)

    @tf.function(
        input_signature=[tf.TensorSpec([None, 5], tf.float32, name="x"), tf.TensorSpec([None], tf.float32, name="time")]
    )
    def evaluate(x: tf.Tensor, time: tf.Tensor) -> dict[str, tf.Tensor]:
        shape, rate, mean = tf.unstack(tf.nn.softplus(x @ holder.w) + 0.5, axis=1)
        return {
            "gamma": tf.math.igammac(shape, rate * time),
            "beta": tf.math.betainc(shape, rate, tf.sigmoid(time)),
            "normal": 0.5 * tf.math.erfc((time - mean) / np.sqrt(2.0)),
            "log": tf.math.lgamma(shape) + tf.math.digamma(rate),
            "zeta": tf.math.zeta(shape + 1.5, rate),
            "bessel": tf.math.bessel_i0e(time),
        }

    return Served(
        holder,
        {"serving_default": evaluate},
        [{"x": normal(rng, 6, 5, scale=1.0), "time": rng.uniform(0.2, 3, 6).astype(np.float32)}],
    )


def differential_equation(rng: Rng) -> Served:
    """A neural ODE: Runge-Kutta steps until the time has come."""
    holder = tf.Module()
    holder.w, holder.u = variable(rng, 3, 8, scale=0.8), variable(rng, 8, 3, scale=0.8)

    @tf.function(
        input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([], tf.float32, name="end")]
    )
    def solve(x: tf.Tensor, end: tf.Tensor) -> dict[str, tf.Tensor]:
        def slope(state: tf.Tensor) -> tf.Tensor:
            return tf.tanh(state @ holder.w) @ holder.u

        time, h = tf.constant(0.0), tf.constant(0.125)
        while time < end:
            k1 = slope(x)
            k2 = slope(x + h / 2 * k1)
            k3 = slope(x + h / 2 * k2)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3))
            time += h
        return {"x": x, "time": time}

    return Served(
        holder,
        {"serving_default": solve},
        [{"x": normal(rng, 3, 3, scale=1.0), "end": np.float32(end)} for end in (1.0, 0.3)],
    )
