"""Hash tables of all kinds, with the files and keys that they begin with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf
from cases import Served
from weights import Rng, variable

WORDS = ["red", "green", "blue", "dark red"]
ASKED = np.array([b"red", b"violet", b"dark red", b"", b"blue"], object)
WORDS_SPEC = tf.TensorSpec([None], tf.string, name="words")


def _calls() -> list[dict[str, np.ndarray]]:
    return [{"words": ASKED}, {"words": ASKED[3:]}]


def static_strings(rng: Rng) -> Served:
    """Strings to numbers and numbers to strings."""
    holder, lookup = tf.Module(), tf.lookup
    holder.there = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(WORDS, tf.range(4, dtype=tf.int64)), -1)
    holder.back = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(tf.range(4, dtype=tf.int64), WORDS), "?")
    holder.weights = lookup.StaticHashTable(
        lookup.KeyValueTensorInitializer(WORDS, rng.normal(0, 1, 4).astype(np.float32)), 0.0
    )

    @tf.function(input_signature=[WORDS_SPEC])
    def look(words: tf.Tensor) -> dict[str, tf.Tensor]:
        indices = holder.there.lookup(words)
        return {
            "indices": indices,
            "next": holder.back.lookup(indices + 1),
            "weights": holder.weights.lookup(words),
            "size": holder.there.size(),
        }

    return Served(holder, {"serving_default": look}, _calls())


def vocabulary_file(rng: Rng, folder: Path) -> Served:
    """A vocabulary in an asset file, with buckets for other words, and embeddings."""
    path = folder / "vocabulary.txt"
    path.write_text("\n".join(WORDS) + "\n")
    holder = tf.Module()
    initializer = tf.lookup.TextFileInitializer(
        str(path), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    holder.table = tf.lookup.StaticVocabularyTable(initializer, 3)
    holder.embeddings = variable(rng, 7, 4, scale=1.0)

    @tf.function(input_signature=[WORDS_SPEC])
    def embed(words: tf.Tensor) -> dict[str, tf.Tensor]:
        indices = holder.table.lookup(words)
        return {"indices": indices, "embedded": tf.gather(holder.embeddings, indices)}

    return Served(holder, {"serving_default": embed}, _calls())


def columns_of_a_file(rng: Rng, folder: Path) -> Served:
    """Keys and values in the columns of a file."""
    path = folder / "columns.tsv"
    path.write_text("".join(f"{word}\t{index * 10}\t{index / 4}\n" for index, word in enumerate(WORDS)))
    holder, lookup = tf.Module(), tf.lookup
    holder.numbers = lookup.StaticHashTable(
        lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter="\t"), -7
    )
    holder.shares = lookup.StaticHashTable(
        lookup.TextFileInitializer(str(path), tf.string, 0, tf.float32, 2, delimiter="\t"), -1.0
    )

    @tf.function(input_signature=[WORDS_SPEC])
    def look(words: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"numbers": holder.numbers.lookup(words), "shares": holder.shares.lookup(words)}

    return Served(holder, {"serving_default": look}, _calls())


vocabulary_file.wants_folder = columns_of_a_file.wants_folder = True  # type: ignore[attr-defined]


def mutable(rng: Rng) -> Served:
    """A table that counts words from call to call."""
    holder = tf.Module()
    holder.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    holder.counts.insert(["red"], tf.constant([5], tf.int64))

    @tf.function(input_signature=[WORDS_SPEC])
    def count(words: tf.Tensor) -> dict[str, tf.Tensor]:
        unique, _, numbers = tf.unique_with_counts(words, tf.int64)
        holder.counts.insert(unique, holder.counts.lookup(unique) + numbers)
        return {"counts": holder.counts.lookup(words), "size": holder.counts.size()}

    return Served(holder, {"serving_default": count}, _calls())


def dense(rng: Rng) -> Served:
    """A dense table of vectors by integers, which belongs to one call."""
    holder = tf.Module()
    holder.rows = variable(rng, 2, 2, scale=1.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="keys")])
    def look(keys: tf.Tensor) -> dict[str, tf.Tensor]:
        empty, deleted, zero = tf.constant(-1, tf.int64), tf.constant(-2, tf.int64), tf.zeros([2])
        table = tf.raw_ops.MutableDenseHashTableV2(
            empty_key=empty, deleted_key=deleted, value_dtype=tf.float32, value_shape=[2]
        )
        tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=tf.constant([3, 5], tf.int64), values=holder.rows)
        before = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=zero)
        tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=before + 1.5)
        tf.raw_ops.LookupTableRemoveV2(table_handle=table, keys=keys[:1])
        after = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=zero)
        return {"before": before, "after": after, "size": tf.raw_ops.LookupTableSizeV2(table_handle=table)}

    calls = [{"keys": np.array(keys, np.int64)} for keys in ([3, 9], [9, 5, 3])]
    return Served(holder, {"serving_default": look}, calls)


def hashed_words(rng: Rng) -> Served:
    """Hashes alone: fast, strong, and by a static table of numbers."""
    holder = tf.Module()

    @tf.function(input_signature=[WORDS_SPEC])
    def mix(words: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "fast": tf.strings.to_hash_bucket_fast(words, 1000),
            "plain": tf.strings.to_hash_bucket(words, 1000),
            "strong": tf.strings.to_hash_bucket_strong(words, 1000, [7, 11]),
        }

    return Served(holder, {"serving_default": mix}, _calls())
