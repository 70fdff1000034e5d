"""Signatures that train, gradients as outputs, initialisers with effects, guards."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import Served
from weights import Rng, normal, perturb, variable

layers = tf.keras.layers


def _batches(rng: Rng, number: int = 4) -> list[dict[str, np.ndarray]]:
    return [{"x": normal(rng, 8, 5, scale=1.0), "y": rng.integers(0, 3, 8).astype(np.int32)} for _ in range(number)]


def optimizer_steps(rng: Rng, name: str, arguments: dict | None = None) -> Served:
    """A signature that trains a network by Keras's optimizer, and one that predicts."""
    model = perturb(
        tf.keras.Sequential([tf.keras.Input((5,)), layers.Dense(8, activation="tanh"), layers.Dense(3)]), rng
    )
    optimizer = getattr(tf.keras.optimizers, name)(**(arguments or {}))
    optimizer.build(model.trainable_variables)
    holder = tf.Module()
    holder.model, holder.weights = model, model.trainable_variables
    if not getattr(tf.keras, "__version__", "2").startswith("3"):
        holder.optimizer = optimizer
    holder.slots = list(optimizer.variables) if not callable(optimizer.variables) else list(optimizer.variables())
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(
        input_signature=[tf.TensorSpec([None, 5], tf.float32, name="x"), tf.TensorSpec([None], tf.int32, name="y")]
    )
    def train(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return {"loss": loss, "logits": model(x)}

    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.float32, name="x")])
    def predict(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": model(x)}

    return Served(holder, {"serving_default": predict, "train": train}, _batches(rng), call="train")


def convolution_training(rng: Rng) -> Served:
    """Gradients through convolutions, pooling and batch statistics, by hand-written descent."""
    holder = tf.Module()
    holder.kernel, holder.head = variable(rng, 3, 3, 2, 4, scale=0.4), variable(rng, 4, 3, scale=0.5)
    holder.scale, holder.offset = tf.Variable(tf.ones(4)), tf.Variable(tf.zeros(4))
    holder.parts = [holder.kernel, holder.head, holder.scale, holder.offset]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 8, 8, 2], tf.float32, name="x"),
            tf.TensorSpec([None], tf.int32, name="y"),
        ]
    )
    def train(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            h = tf.nn.conv2d(x, holder.kernel, 1, "SAME")
            h, *_ = tf.compat.v1.nn.fused_batch_norm(h, holder.scale, holder.offset)
            h = tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "VALID") + tf.nn.avg_pool2d(h, 2, 2, "VALID")
            logits = tf.reduce_mean(h, [1, 2]) @ holder.head
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        for part, gradient in zip(holder.parts, tape.gradient(loss, holder.parts), strict=True):
            part.assign_sub(0.1 * gradient)
        return {"loss": loss, "logits": logits}

    calls = [{"x": normal(rng, 6, 8, 8, 2, scale=1.0), "y": rng.integers(0, 3, 6).astype(np.int32)} for _ in range(3)]
    return Served(holder, {"serving_default": train}, calls)


def recurrent_training(rng: Rng) -> Served:
    """Gradients through the loop of a GRU."""
    model = perturb(tf.keras.Sequential([tf.keras.Input((None, 4)), layers.GRU(6), layers.Dense(2)]), rng)
    holder = tf.Module()
    holder.model, holder.weights = model, model.trainable_variables

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 4], tf.float32, name="x"),
            tf.TensorSpec([None, 2], tf.float32, name="y"),
        ]
    )
    def train(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        weights = model.trainable_variables
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, weights), 1.0)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(0.2 * gradient)
        return {"loss": loss, "norm": norm}

    return Served(
        holder,
        {"serving_default": train},
        [{"x": normal(rng, 3, 7, 4, scale=1.0), "y": normal(rng, 3, 2, scale=1.0)} for _ in range(3)],
    )


def saliency(rng: Rng) -> Served:
    """Gradients of the best class by the pixels."""
    holder = tf.Module()
    holder.kernel, holder.head = variable(rng, 3, 3, 3, 6, scale=0.4), variable(rng, 6, 4, scale=1.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 10, 10, 3], tf.float32, name="images")])
    def explain(images: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(images)
            logits = tf.reduce_mean(tf.nn.elu(tf.nn.conv2d(images, holder.kernel, 2, "SAME")), [1, 2]) @ holder.head
            best = tf.reduce_max(logits, 1)
        return {"logits": logits, "saliency": 10 * tf.abs(tape.gradient(best, images))}

    return Served(holder, {"serving_default": explain}, [{"images": normal(rng, 2, 10, 10, 3, scale=1.0)}])


def custom_gradients(rng: Rng) -> Served:
    """Reversed and straight-through gradients, in a signature that returns them."""
    holder = tf.Module()
    holder.w = variable(rng, 5, 4, scale=0.6)

    @tf.custom_gradient
    def reverse(x):
        return x * 1.0, lambda upstream: -2.0 * upstream

    @tf.custom_gradient
    def round_through(x):
        return tf.round(x), lambda upstream: upstream

    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = round_through(4.0 * tf.tanh(reverse(x) @ holder.w)) / 4.0
            total = tf.reduce_sum(y * y)
        return {"y": y, "gradient": tape.gradient(total, x)}

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 4, 5, scale=1.0)}])


def second_derivatives(rng: Rng) -> Served:
    """Jacobian and Hessian of a small function, in functions of functions."""
    holder = tf.Module()
    holder.w = variable(rng, 4, 4, scale=0.6)

    @tf.function(input_signature=[tf.TensorSpec([4], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.tanh(tf.linalg.matvec(holder.w, x)) ** 2)
            gradient = inner.gradient(y, x)
        return {"gradient": gradient, "hessian": outer.jacobian(gradient, x, experimental_use_pfor=False)}

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 4, scale=1.0)} for _ in range(2)])


def moving_averages(rng: Rng) -> Served:
    """Statistics that each call updates, and outputs by them."""
    holder = tf.Module()
    holder.mean, holder.square = tf.Variable(tf.zeros(4)), tf.Variable(tf.ones(4))
    holder.count = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def normalise(x: tf.Tensor) -> dict[str, tf.Tensor]:
        mean, variance = tf.nn.moments(x, 0)
        holder.mean.assign(0.9 * holder.mean + 0.1 * mean)
        holder.square.assign_add(0.1 * (variance - holder.square))
        holder.count.assign_add(tf.shape(x, tf.int64)[0])
        return {"y": (x - holder.mean) * tf.math.rsqrt(holder.square + 1e-3), "count": holder.count.read_value()}

    return Served(
        holder, {"serving_default": normalise}, [{"x": normal(rng, rows, 4, scale=2.0)} for rows in (3, 5, 2)]
    )


def shape_guards(rng: Rng) -> Served:
    """Shape guards and assertions before the work."""
    holder = tf.Module()
    holder.w = variable(rng, 6, 3)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.float32, name="x"),
            tf.TensorSpec([None], tf.int32, name="rows"),
        ]
    )
    def run(x: tf.Tensor, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        tf.debugging.assert_shapes([(x, ("n", 6)), (rows, ("m",))])
        tf.debugging.assert_less(rows, tf.shape(x)[0], message="a row beyond the end")
        tf.debugging.assert_all_finite(x, "x is not finite")
        tf.debugging.Assert(tf.reduce_all(rows >= 0), [rows])
        with tf.control_dependencies([tf.debugging.assert_rank(x, 2)]):
            return {"y": tf.gather(tf.ensure_shape(x, [None, 6]), rows) @ holder.w}

    return Served(
        holder, {"serving_default": run}, [{"x": normal(rng, 5, 6, scale=1.0), "rows": np.array([4, 0, 2], np.int32)}]
    )


def structured_signature(rng: Rng) -> Served:
    """Nested functions, one of them recursive by while, and a signature of several outputs of several types."""
    holder = tf.Module()
    holder.w = variable(rng, 3, 3, scale=0.8)

    @tf.function
    def power(x, n):
        result = tf.eye(3)
        while n > 0:
            if n % 2 == 1:
                result = result @ x
            x, n = x @ x, n // 2
        return result

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n"), tf.TensorSpec([3], tf.float32, name="x")])
    def run(n: tf.Tensor, x: tf.Tensor) -> dict[str, tf.Tensor]:
        matrix = power(holder.w, n)
        branch = tf.switch_case(n % 3, [lambda: x, lambda: x * 2 + 1, lambda: tf.reverse(x, [0])], default=lambda: x)
        return {"y": tf.linalg.matvec(matrix, branch), "n": n * 2, "text": tf.strings.as_string(n)}

    return Served(
        holder, {"serving_default": run}, [{"n": np.int32(n), "x": normal(rng, 3, scale=1.0)} for n in (0, 1, 5)]
    )
