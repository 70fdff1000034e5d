"""Signatures that build a tf.data.Dataset and consume it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import Served
from weights import Rng, normal, variable

ROWS = tf.TensorSpec([None, 4], tf.float32, name="x")


def _calls(rng: Rng) -> list[dict[str, np.ndarray]]:
    return [{"x": normal(rng, rows, 4, scale=1.0)} for rows in (7, 2)]


def loop_over_rows(rng: Rng) -> Served:
    """A Python loop over rows becomes a reduction."""
    holder = tf.Module()
    holder.w = variable(rng, 4, 4, scale=0.7)

    @tf.function(input_signature=[ROWS])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        state = tf.zeros([4])
        for row in tf.data.Dataset.from_tensor_slices(x):
            state = tf.tanh(tf.linalg.matvec(holder.w, state) + row)
        return {"state": state}

    return Served(holder, {"serving_default": run}, _calls(rng))


def batches_of_rows(rng: Rng) -> Served:
    """Rows in batches through map with a variable, and reduce."""
    holder = tf.Module()
    holder.w = variable(rng, 4, 3)

    @tf.function(input_signature=[ROWS])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.data.Dataset.from_tensor_slices(x).batch(3).map(lambda batch: tf.reduce_mean(batch @ holder.w, 0))
        total, number = rows.reduce((tf.zeros([3]), 0), lambda state, row: (state[0] + row, state[1] + 1))
        return {"total": total, "batches": number}

    return Served(holder, {"serving_default": run}, _calls(rng))


def filter_of_rows(rng: Rng) -> Served:
    """Filter, take, enumerate, zip."""
    holder = tf.Module()

    @tf.function(input_signature=[ROWS])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.data.Dataset.from_tensor_slices(x)
        pairs = tf.data.Dataset.zip((rows.filter(lambda row: row[0] > -0.5), tf.data.Dataset.range(100))).take(4)
        total = tf.zeros([4])
        for index, (row, number) in pairs.enumerate():
            total += row * tf.cast(index + number, tf.float32)
        return {"total": total}

    return Served(holder, {"serving_default": run}, _calls(rng))


def flat_map_of_rows(rng: Rng) -> Served:
    """flat_map, scan and repeat, collected in a TensorArray."""
    holder = tf.Module()

    @tf.function(input_signature=[ROWS])
    def run(x: tf.Tensor) -> dict[str, tf.Tensor]:
        numbers = tf.data.Dataset.from_tensor_slices(x).flat_map(tf.data.Dataset.from_tensor_slices).repeat(2)
        sums = numbers.scan(0.0, lambda total, number: (total + number, total + number)).skip(1).prefetch(2)
        values, index = tf.TensorArray(tf.float32, 0, dynamic_size=True), 0
        for number in sums:
            values = values.write(index, number)
            index += 1  # noqa: SIM113 - autograph turns the loop into a reduction
        return {"sums": values.stack()}

    return Served(holder, {"serving_default": run}, _calls(rng))


def padded_batches(rng: Rng) -> Served:
    """Strings split to words of different numbers, padded in batches."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")])
    def run(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.data.Dataset.from_tensor_slices(texts).map(lambda text: tf.strings.length(tf.strings.split(text)))
        longest, total = tf.constant(0), tf.constant(0)
        for batch in words.padded_batch(2, padded_shapes=[None]):
            longest = tf.maximum(longest, tf.shape(batch)[1])
            total += tf.reduce_sum(batch)
        return {"most": longest, "total": total}

    texts = np.array([b"a bc def", b"gh", b"i j k l m"], object)
    return Served(holder, {"serving_default": run}, [{"texts": texts}, {"texts": texts[:1]}])
