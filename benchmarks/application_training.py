"""Training loops: the loss of each step, with resource variables and with reference variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from application_forms import SEED, case_of, graph_form, run_session, save_form, vary

v1 = tf.compat.v1
layers = keras.layers

STEPS = 50
GATED = v1.train.Optimizer.GATE_GRAPH  # all gradients are known before a reference variable changes


def momentum() -> Any:
    return v1.train.MomentumOptimizer(0.05, 0.9)


def adam() -> Any:
    return v1.train.AdamOptimizer()


def descent() -> Any:
    return v1.train.GradientDescentOptimizer(0.05)


def dense(folder: Path, optimizer: Callable[[], Any], *, resources: bool) -> dict[str, Any]:
    """A network of two layers and a batch normalisation's moving mean; the loss of each step."""
    rng = np.random.default_rng(SEED)
    feeds = {"x": rng.normal(0, 1, (64, 8)).astype(np.float32)}
    feeds["y"] = np.tanh(feeds["x"] @ rng.normal(0, 1, (8, 1))).astype(np.float32)
    with tf.Graph().as_default() as graph, v1.variable_scope("net", use_resource=resources):
        x, y = v1.placeholder(tf.float32, [None, 8], "x"), v1.placeholder(tf.float32, [None, 1], "y")
        first = v1.get_variable("first", initializer=rng.normal(0, 0.5, (8, 16)).astype(np.float32))
        bias = v1.get_variable("bias", initializer=np.zeros(16, np.float32))
        last = v1.get_variable("last", initializer=rng.normal(0, 0.5, (16, 1)).astype(np.float32))
        mean = v1.get_variable("mean", initializer=np.zeros(16, np.float32), trainable=False)
        hidden = x @ first + bias
        moved = mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(hidden, 0))
        with tf.control_dependencies([moved]):
            loss = tf.reduce_mean(tf.square(tf.tanh(hidden - 0.01 * mean.read_value()) @ last - y))
        train = optimizer().minimize(loss, gate_gradients=GATED)
        init = v1.global_variables_initializer()
        form = graph_form(folder, graph, {"x": x, "y": y}, {"loss": loss}, [init], [train], STEPS)
    return case_of(folder, {"graph": form}, feeds, run_session(folder, form, feeds))


def embeddings(folder: Path, optimizer: Callable[[], Any], *, resources: bool) -> dict[str, Any]:
    """Sparse gradients: rows of a table by indices, some of them twice."""
    rng = np.random.default_rng(SEED)
    feeds = {"ids": rng.integers(0, 30, (8, 6)).astype(np.int32), "y": rng.normal(0, 1, (8, 1)).astype(np.float32)}
    with tf.Graph().as_default() as graph, v1.variable_scope("net", use_resource=resources):
        ids, y = v1.placeholder(tf.int32, [None, 6], "ids"), v1.placeholder(tf.float32, [None, 1], "y")
        table = v1.get_variable("table", initializer=rng.normal(0, 0.5, (30, 4)).astype(np.float32))
        out = v1.get_variable("out", initializer=rng.normal(0, 0.5, (4, 1)).astype(np.float32))
        pooled = tf.reduce_mean(v1.nn.embedding_lookup(table, ids), 1)
        loss = tf.reduce_mean(tf.square(pooled @ out - y))
        train = optimizer().minimize(loss, gate_gradients=GATED)
        init = v1.global_variables_initializer()
        form = graph_form(folder, graph, {"ids": ids, "y": y}, {"loss": loss}, [init], [train], STEPS)
    return case_of(folder, {"graph": form}, feeds, run_session(folder, form, feeds))


def keras_signature(folder: Path) -> dict[str, Any]:
    """A SavedModel whose signature trains a Keras GRU by a step of Keras' Adam, and returns the loss."""
    model = keras.Sequential([keras.Input((7, 4)), layers.GRU(8), layers.Dense(1)])
    vary(model)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)

    @tf.function(input_signature=[tf.TensorSpec([None, 7, 4], name="x"), tf.TensorSpec([None, 1], name="y")])
    def train(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return {"loss": loss}

    rng = np.random.default_rng(SEED)
    feeds = {"x": rng.normal(0, 1, (16, 7, 4)).astype(np.float32)}
    feeds["y"] = feeds["x"].sum((1, 2))[:, None] / 5
    holder = tf.Module()
    holder.model, holder.optimizer_state = model, [variable.value for variable in optimizer.variables]
    form = {**save_form(folder, holder, train), "steps": STEPS}
    losses = [train(*map(tf.constant, feeds.values()))["loss"].numpy() for _ in range(STEPS)]
    return case_of(folder, {"SavedModel": form}, feeds, {"loss": np.stack(losses)})


def lstm_loop(folder: Path) -> dict[str, Any]:
    """Gradients through an LSTM's While, clipped by their norm, with Adam."""
    rng = np.random.default_rng(SEED)
    feeds = {"x": rng.normal(0, 1, (16, 7, 4)).astype(np.float32)}
    feeds["y"] = feeds["x"].sum((1, 2))[:, None] / 5
    with tf.Graph().as_default() as graph, v1.variable_scope("net", use_resource=True):
        x, y = v1.placeholder(tf.float32, [None, 7, 4], "x"), v1.placeholder(tf.float32, [None, 1], "y")
        kernel = v1.get_variable("kernel", initializer=rng.normal(0, 0.4, (12, 32)).astype(np.float32))
        out = v1.get_variable("out", initializer=rng.normal(0, 0.5, (8, 1)).astype(np.float32))
        steps, zero = tf.transpose(x, [1, 0, 2]), tf.zeros([tf.shape(x)[0], 8])

        def step(i: Any, c: Any, h: Any) -> Any:
            enter, new, forget, leave = tf.split(tf.concat([steps[i], h], 1) @ kernel, 4, 1)
            c = c * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
            return i + 1, c, tf.tanh(c) * tf.sigmoid(leave)

        _, _, h = tf.while_loop(lambda i, *_: i < 7, step, (0, zero, zero))
        loss = tf.reduce_mean(tf.square(h @ out - y))
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, [kernel, out]), 1.0)
        train = v1.train.AdamOptimizer(0.02).apply_gradients(zip(gradients, [kernel, out], strict=True))
        init = v1.global_variables_initializer()
        form = graph_form(folder, graph, {"x": x, "y": y}, {"loss": loss}, [init], [train], STEPS)
    return case_of(folder, {"graph": form}, feeds, run_session(folder, form, feeds))
