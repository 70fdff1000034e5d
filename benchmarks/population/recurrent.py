"""Recurrent networks of Keras: cells, activations, masks, states and directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from cases import KerasModel
from weights import Rng, ids, normal, perturb

layers = tf.keras.layers
Input = tf.keras.Input
STEPS, WIDTH, WORDS = 12, 6, 30


def _sequences(rng: Rng, batch: int = 3, steps: int = STEPS) -> np.ndarray:
    return normal(rng, batch, steps, WIDTH, scale=1.0)


def _padded_ids(rng: Rng, batch: int = 4) -> np.ndarray:
    tokens = ids(rng, WORDS - 1, batch, STEPS) + 1
    for row in range(batch):
        tokens[row, STEPS - 3 * row :] = 0
    return tokens


def layer(rng: Rng, cell: str, arguments: Any = None, units: int = 8, steps: int | None = None) -> KerasModel:
    """One recurrent layer and a dense one, for sequences of any length or of `steps`."""
    model = tf.keras.Sequential(
        [Input((steps, WIDTH)), getattr(layers, cell)(units, **(arguments or {})), layers.Dense(3)]
    )
    perturb(model, rng)
    lengths = [steps or STEPS, steps or 5]
    return KerasModel(model, [{"x": _sequences(rng, steps=length)} for length in lengths])


def masked_words(rng: Rng, cell: str, arguments: Any = None) -> KerasModel:
    """Embeddings with a mask; zeros end the rows."""
    model = tf.keras.Sequential(
        [
            Input((None,), dtype="int32"),
            layers.Embedding(WORDS, 10, mask_zero=True),
            getattr(layers, cell)(8, **(arguments or {})),
            layers.Dense(4),
        ]
    )
    perturb(model, rng)
    model.layers[0].set_weights([normal(rng, WORDS, 10, scale=1.0)])
    return KerasModel(model, [{"tokens": _padded_ids(rng)}])


def masked_values(rng: Rng, cell: str) -> KerasModel:
    """The layer Masking, on steps whose values are all -1."""
    model = tf.keras.Sequential(
        [
            Input((None, WIDTH)),
            layers.Masking(-1.0),
            getattr(layers, cell)(8, return_sequences=True),
            layers.TimeDistributed(layers.Dense(2)),
        ]
    )
    perturb(model, rng)
    x = _sequences(rng)
    x[0, 4:] = x[1, :3] = -1.0
    return KerasModel(model, [{"x": x}])


def bidirectional(rng: Rng, cell: str, merge: str, stacked: bool = False, masked: bool = False) -> KerasModel:
    x = entry = Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, 10, mask_zero=masked)(x)
    if stacked:
        x = layers.Bidirectional(getattr(layers, cell)(6, return_sequences=True), merge_mode=merge)(x)
    x = layers.Bidirectional(getattr(layers, cell)(5), merge_mode=merge)(x)
    model = perturb(tf.keras.Model(entry, layers.Dense(4)(x)), rng, 0.3)
    model.layers[1].set_weights([normal(rng, WORDS, 10, scale=1.0)])
    return KerasModel(model, [{"tokens": _padded_ids(rng)}])


def stateful(rng: Rng, cell: str) -> KerasModel:
    """The state goes on from call to call."""
    entry = Input(batch_shape=(2, 4, WIDTH))
    model = tf.keras.Model(entry, layers.Dense(3)(getattr(layers, cell)(7, stateful=True)(entry)))
    perturb(model, rng)
    return KerasModel(model, [{"x": _sequences(rng, 2, 4)} for _ in range(3)])


def with_states(rng: Rng, cell: str) -> KerasModel:
    """States are inputs and outputs, as in a decoder of one step at a time."""
    number = 2 if cell == "LSTM" else 1
    x = Input((None, WIDTH), name="x")
    starts = [Input((7,), name=f"state_{index}") for index in range(number)]
    outputs = getattr(layers, cell)(7, return_sequences=True, return_state=True)(x, initial_state=starts)
    model = perturb(
        tf.keras.Model(
            {"x": x, **{f"state_{i}": start for i, start in enumerate(starts)}},
            {"y": outputs[0], **{f"next_{i}": out for i, out in enumerate(outputs[1:])}},
        ),
        rng,
    )
    return KerasModel(
        model, [{"x": _sequences(rng), **{f"state_{index}": normal(rng, 3, 7, scale=1.0) for index in range(number)}}]
    )


def stacked_cells(rng: Rng, kinds: list[str]) -> KerasModel:
    cells = [getattr(layers, f"{kind}Cell")(6 + index) for index, kind in enumerate(kinds)]
    model = tf.keras.Sequential([Input((None, WIDTH)), layers.RNN(cells, return_sequences=True), layers.Dense(2)])
    return KerasModel(perturb(model, rng), [{"x": _sequences(rng)}])


def convolutional(rng: Rng, rank: int, arguments: Any = None) -> KerasModel:
    """ConvLSTM1D, 2D or 3D."""
    shape = (5, *[6] * rank, 2)
    cell = getattr(layers, f"ConvLSTM{rank}D")
    model = tf.keras.Sequential(
        [Input(shape), cell(3, 3, padding="same", **(arguments or {})), layers.Flatten(), layers.Dense(4)]
    )
    return KerasModel(perturb(model, rng), [{"x": normal(rng, 2, *shape, scale=1.0)}])


def encoder_decoder(rng: Rng, cell: str) -> KerasModel:
    """A sequence to a vector, repeated to another sequence."""
    model = tf.keras.Sequential(
        [
            Input((STEPS, WIDTH)),
            getattr(layers, cell)(8),
            layers.RepeatVector(7),
            getattr(layers, cell)(8, return_sequences=True),
            layers.TimeDistributed(layers.Dense(5, activation="softmax")),
        ]
    )
    return KerasModel(perturb(model, rng, 0.4), [{"x": _sequences(rng)}])


def characters(rng: Rng) -> KerasModel:
    """A language model of characters: one-hot codes, two layers, dropout, logits of each step."""
    x = entry = Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, 16)(x)
    for _ in range(2):
        x = layers.Dropout(0.2)(layers.GRU(16, return_sequences=True)(x))
    model = perturb(tf.keras.Model(entry, layers.Dense(WORDS)(x)), rng)
    model.layers[1].set_weights([normal(rng, WORDS, 16, scale=1.0)])
    return KerasModel(model, [{"characters": ids(rng, WORDS, 2, length)} for length in (20, 1)])


def time_major(rng: Rng) -> KerasModel:
    """Keras 2 alone: steps are the first dimension."""
    model = tf.keras.Sequential([Input(batch_shape=(None, 3, WIDTH)), layers.LSTM(8, time_major=True), layers.Dense(2)])
    return KerasModel(perturb(model, rng), [{"x": np.swapaxes(_sequences(rng), 0, 1)}])
