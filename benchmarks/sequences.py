"""Networks of sequences, made of Keras layers as users write them: an encoder of texts like BERT, an LSTM and a GRU."""

from __future__ import annotations

from typing import Any

import numpy as np

LENGTH, WORDS, WIDTH, HEADS, INNER, LAYERS = 128, 30522, 512, 8, 2048, 4  # of the encoder
STEPS, FEATURES, UNITS = 64, 128, 256  # of the LSTM and the GRU
CLASSES = 64
SPREAD = 0.06  # standard deviation of the weights of attention, large enough to tell the places of a text apart


def encoder() -> Any:
    """An encoder from tokens, int32 [batch, 128], to logits at the first token, normalised after each addition."""
    from keras import Input, Model, initializers, layers, ops

    def layer_normalisation(x: Any) -> Any:
        return layers.LayerNormalization(epsilon=1e-12)(x)

    tokens = Input((LENGTH,), dtype="int32")
    positions = layers.Embedding(LENGTH, WIDTH)(ops.arange(LENGTH))
    x = layer_normalisation(layers.Embedding(WORDS, WIDTH)(tokens) + positions)
    for _ in range(LAYERS):
        weights = initializers.RandomNormal(stddev=SPREAD)
        x = layer_normalisation(x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS, kernel_initializer=weights)(x, x))
        x = layer_normalisation(x + layers.Dense(WIDTH)(layers.Dense(INNER, activation="gelu")(x)))
    pooled = layers.Dense(WIDTH, activation="tanh")(x[:, 0])
    return Model(tokens, layers.Dense(CLASSES)(pooled))


def texts(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, WORDS, (1, LENGTH), np.int32)


def lstm() -> Any:
    """An LSTM from [batch, 64, 128] to logits of the last state, with the loop that Keras makes by default."""
    from keras import Input, Model, layers

    signal = Input((STEPS, FEATURES))
    return Model(signal, layers.Dense(CLASSES)(layers.LSTM(UNITS)(signal)))


def gru() -> Any:
    """A GRU from [batch, 64, 128] to logits of the last state, with the loop that Keras makes by default."""
    from keras import Input, Model, layers

    signal = Input((STEPS, FEATURES))
    return Model(signal, layers.Dense(CLASSES)(layers.GRU(UNITS)(signal)))


def signals(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((1, STEPS, FEATURES), np.float32)


def vary(model: Any, rng: np.random.Generator) -> None:
    """Vary the vectors of a model, which begin as zeros and ones."""
    for weights in model.weights:
        if len(weights.shape) == 1:
            weights.assign_add(rng.normal(0, 0.1, weights.shape))
