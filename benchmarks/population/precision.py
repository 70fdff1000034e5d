"""Half types, doubles, and networks that were trained for quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import BATCHES, Rng, calibrate, ids, normal, perturb, variable

layers = tf.keras.layers


def mixed_precision(rng: Rng, policy: str, kind: str) -> KerasModel:
    """A network under a policy of mixed precision; its outputs are float32."""
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        model, calls = _NETWORKS[kind](rng)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    return KerasModel(perturb(model, rng), calls, tolerance="half")


def _dense(rng: Rng) -> tuple[Any, list[dict[str, np.ndarray]]]:
    model = tf.keras.Sequential(
        [
            tf.keras.Input((12,)),
            layers.Dense(16, activation="relu"),
            layers.LayerNormalization(),
            layers.Dense(4),
            layers.Activation("softmax", dtype="float32"),
        ]
    )
    return model, [{"x": normal(rng, 5, 12, scale=1.0)}]


def _convolutional(rng: Rng) -> tuple[Any, list[dict[str, np.ndarray]]]:
    model = tf.keras.Sequential(
        [
            tf.keras.Input((16, 16, 3)),
            layers.Conv2D(8, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.Conv2D(8, 1, activation="swish"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, dtype="float32"),
        ]
    )
    calibrate(model, [normal(rng, 8, 16, 16, 3, scale=1.0) for _ in range(BATCHES)])
    return model, [{"x": normal(rng, 2, 16, 16, 3, scale=1.0)}]


def _attention(rng: Rng) -> tuple[Any, list[dict[str, np.ndarray]]]:
    entry = tf.keras.Input((8,), dtype="int32")
    x = layers.Embedding(20, 16, embeddings_initializer="normal")(entry)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 8)(x, x)]))
    model = tf.keras.Model(entry, layers.Dense(6, dtype="float32")(x))
    return model, [{"tokens": ids(rng, 20, 2, 8)}]


def _recurrent(rng: Rng) -> tuple[Any, list[dict[str, np.ndarray]]]:
    model = tf.keras.Sequential([tf.keras.Input((6, 4)), layers.LSTM(8), layers.Dense(3, dtype="float32")])
    return model, [{"x": normal(rng, 3, 6, 4, scale=1.0)}]


_NETWORKS = {"dense": _dense, "convolutional": _convolutional, "attention": _attention, "recurrent": _recurrent}


def pure(rng: Rng, dtype: str, outputs: str | None = None) -> Served:
    """Weights, inputs and arithmetic in one type."""
    holder, kind = tf.Module(), tf.as_dtype(dtype)
    holder.w1, holder.w2 = (tf.Variable(tf.cast(normal(rng, *shape), kind)) for shape in ((10, 16), (16, 4)))

    @tf.function(input_signature=[tf.TensorSpec([None, 10], kind, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        y = tf.nn.softmax(tf.nn.relu(x @ holder.w1) @ holder.w2)
        return {"y": tf.cast(y, outputs) if outputs else y, "norm": tf.sqrt(tf.reduce_sum(x * x, 1))}

    return Served(
        holder,
        {"serving_default": run},
        [{"x": normal(rng, 4, 10, scale=1.0).astype(kind.as_numpy_dtype)}],
        tolerance="float32" if dtype == "float64" else "half",
    )


def compressed_weights(rng: Rng, dtype: str) -> Served:
    """Weights stored in half the bytes, arithmetic in float32."""
    holder = tf.Module()
    holder.w = [tf.Variable(tf.cast(normal(rng, *shape), dtype)) for shape in ((10, 16), (16, 4))]

    @tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        first, second = (tf.cast(w, tf.float32) for w in holder.w)
        return {"y": tf.nn.gelu(x @ first) @ second}

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 4, 10, scale=1.0)}])


def quantisation_aware(rng: Rng, by_channel: bool) -> Served:
    """Fake quantisation of activations and weights, as training for int8 inserts it."""
    holder = tf.Module()
    holder.kernel, holder.head = variable(rng, 3, 3, 3, 8, scale=0.3), variable(rng, 8, 4, scale=0.5)
    holder.low, holder.high = tf.Variable(-np.ones(8, np.float32)), tf.Variable(np.ones(8, np.float32) * 0.9)

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 3], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.quantization.fake_quant_with_min_max_args(x, -3.0, 3.0)
        if by_channel:
            kernel = tf.quantization.fake_quant_with_min_max_vars_per_channel(
                holder.kernel, holder.low, holder.high, narrow_range=True
            )
        else:
            kernel = tf.quantization.fake_quant_with_min_max_vars(holder.kernel, -1.0, 1.0, 8, narrow_range=True)
        y = tf.nn.relu6(tf.nn.conv2d(x, kernel, 2, "SAME"))
        pooled = tf.reduce_mean(y, [1, 2])
        return {"y": tf.quantization.fake_quant_with_min_max_vars(pooled, 0.0, 6.0) @ holder.head}

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 2, 12, 12, 3, scale=1.0)}])


def quantised_and_back(rng: Rng) -> Served:
    """quantize_and_dequantize in its forms, and quantised tensors."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        quantised = tf.quantization.quantize(x, -4.0, 4.0, tf.quint8)
        return {
            "signed": tf.quantization.quantize_and_dequantize_v2(x, -4.0, 4.0, range_given=True),
            "given": tf.quantization.quantize_and_dequantize_v2(x, -2.0, 2.0, num_bits=4, range_given=True),
            "narrow": tf.quantization.quantize_and_dequantize_v2(
                x, -3.0, 3.0, num_bits=6, range_given=True, narrow_range=True
            ),
            "back": tf.quantization.dequantize(quantised.output, quantised.output_min, quantised.output_max),
        }

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 3, 8, scale=1.0)}])


def integer_products(rng: Rng) -> Served:
    """int8 weights by hand: products in int32, scales in float32."""
    holder = tf.Module()
    holder.w = tf.Variable(rng.integers(-127, 128, (16, 6)).astype(np.int8))
    holder.scale = tf.Variable(rng.uniform(0.001, 0.01, 6).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 16], tf.float32, name="x")])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        scale = tf.reduce_max(tf.abs(x), 1, keepdims=True) / 127.0
        q = tf.cast(tf.round(x / scale), tf.int32)
        products = tf.matmul(q, tf.cast(holder.w, tf.int32))
        return {"y": tf.cast(products, tf.float32) * scale * holder.scale, "products": products}

    return Served(holder, {"serving_default": run}, [{"x": normal(rng, 3, 16, scale=1.0)}])
