"""Recommenders: towers, crosses, factorisations, bags of embeddings, retrieval."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import Rng, ids, normal, perturb, variable

layers = tf.keras.layers
Input = tf.keras.Input
USERS, ITEMS = 50, 80


def _pairs(rng: Rng) -> list[dict[str, np.ndarray]]:
    return [{"user": ids(rng, USERS, 6, 1), "item": ids(rng, ITEMS, 6, 1)}]


def _embed(entry, number: int, width: int):
    return layers.Flatten()(layers.Embedding(number, width, embeddings_initializer="normal")(entry))


def neural_filtering(rng: Rng) -> KerasModel:
    """NCF: a product of embeddings beside a network."""
    user, item = (Input((1,), dtype="int32", name=name) for name in ("user", "item"))
    product = layers.Multiply()([_embed(user, USERS, 8), _embed(item, ITEMS, 8)])
    deep = layers.Concatenate()([_embed(user, USERS, 8), _embed(item, ITEMS, 8)])
    for width in (16, 8):
        deep = layers.Dense(width, activation="relu")(deep)
    score = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([product, deep]))
    model = perturb(tf.keras.Model({"user": user, "item": item}, score), rng)
    for layer in model.layers:
        if isinstance(layer, layers.Embedding):
            layer.set_weights([normal(rng, *weights.shape, scale=1.0) for weights in layer.get_weights()])
    return KerasModel(model, _pairs(rng))


def factorisation(rng: Rng, biased: bool = True) -> KerasModel:
    """Matrix factorisation: a dot product, with biases."""
    user, item = (Input((1,), dtype="int32", name=name) for name in ("user", "item"))
    score = layers.Dot(1)([_embed(user, USERS, 8), _embed(item, ITEMS, 8)])
    if biased:
        score = layers.Add()([score, _embed(user, USERS, 1), _embed(item, ITEMS, 1)])
    model = tf.keras.Model({"user": user, "item": item}, score)
    for layer in model.layers:
        if isinstance(layer, layers.Embedding):
            layer.set_weights([normal(rng, *weights.shape, scale=1.0) for weights in layer.get_weights()])
    return KerasModel(model, _pairs(rng))


def wide_and_deep(rng: Rng) -> KerasModel:
    numbers, category = Input((5,), name="numbers"), Input((1,), dtype="int32", name="category")
    wide = layers.Flatten()(layers.CategoryEncoding(12, output_mode="one_hot")(category))
    deep = layers.Concatenate()([numbers, _embed(category, 12, 6)])
    deep = layers.Dense(8, activation="selu")(layers.Dense(16, activation="elu")(deep))
    score = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([wide, deep]))
    model = perturb(tf.keras.Model({"numbers": numbers, "category": category}, score), rng, 0.3)
    return KerasModel(model, [{"numbers": normal(rng, 6, 5, scale=1.0), "category": ids(rng, 12, 6, 1)}])


def retrieval(rng: Rng) -> Served:
    """Two towers: the query's embedding against all items, by name, with exclusions."""
    holder = tf.Module()
    holder.items, holder.w = variable(rng, ITEMS, 16, scale=1.0), variable(rng, 10, 16)
    holder.names = tf.Variable([f"item {index}" for index in range(ITEMS)])

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 10], tf.float32, name="query"),
            tf.TensorSpec([None, None], tf.int32, name="excluded"),
        ]
    )
    def recommend(query: tf.Tensor, excluded: tf.Tensor) -> dict[str, tf.Tensor]:
        scores = tf.matmul(
            tf.math.l2_normalize(query @ holder.w, -1), tf.math.l2_normalize(holder.items, -1), transpose_b=True
        )
        scores -= 10.0 * tf.reduce_max(tf.one_hot(excluded, ITEMS), 1)
        best, indices = tf.math.top_k(scores, 7)
        return {"scores": best, "names": tf.gather(holder.names, indices)}

    return Served(
        holder,
        {"serving_default": recommend},
        [{"query": normal(rng, 3, 10, scale=1.0), "excluded": ids(rng, ITEMS, 3, 4)}],
    )


def click_model(rng: Rng) -> Served:
    """DLRM: bags of sparse ids, interactions of all pairs, a network on top."""
    holder = tf.Module()
    holder.tables = [variable(rng, size, 8, scale=1.0) for size in (20, 30, 40)]
    holder.bottom, holder.top = variable(rng, 4, 8), variable(rng, 14, 1)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 4], tf.float32, name="dense"),
            tf.TensorSpec([None, 3, 5], tf.int32, name="bags"),
        ]
    )
    def score(dense: tf.Tensor, bags: tf.Tensor) -> dict[str, tf.Tensor]:
        first = tf.nn.relu(dense @ holder.bottom)
        vectors = [
            first,
            *[
                tf.reduce_sum(tf.nn.embedding_lookup(table, bags[:, index]), 1)
                for index, table in enumerate(holder.tables)
            ],
        ]
        stacked = tf.stack(vectors, 1)
        products = tf.matmul(stacked, stacked, transpose_b=True)
        upper = tf.boolean_mask(products, np.triu(np.ones((4, 4), bool), 1), axis=1)
        return {"click": tf.sigmoid(0.1 * tf.concat([first, upper], 1) @ holder.top)[:, 0]}

    return Served(
        holder, {"serving_default": score}, [{"dense": normal(rng, 5, 4, scale=1.0), "bags": ids(rng, 20, 5, 3, 5)}]
    )


def sparse_bags(rng: Rng, combiner: str) -> Served:
    """embedding_lookup_sparse with weights; safe for empty rows."""
    holder = tf.Module()
    holder.table = variable(rng, 30, 6, scale=1.0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int64, name="ids"),
            tf.TensorSpec([None, None], tf.float32, name="weights"),
        ]
    )
    def embed(ids: tf.Tensor, weights: tf.Tensor) -> dict[str, tf.Tensor]:
        sparse = tf.sparse.from_dense(ids + 1)
        sparse = tf.sparse.map_values(lambda x: x - 1, sparse)
        weighted = tf.SparseTensor(sparse.indices, tf.gather_nd(weights, sparse.indices), sparse.dense_shape)
        return {
            "plain": tf.nn.embedding_lookup_sparse(
                holder.table, tf.sparse.fill_empty_rows(sparse, 0)[0], None, combiner=combiner
            ),
            "safe": tf.nn.safe_embedding_lookup_sparse(holder.table, sparse, weighted, combiner=combiner, default_id=0),
        }

    rows = rng.integers(0, 30, (4, 5)).astype(np.int64)
    rows[1], rows[2, 2:] = -1, -1
    return Served(
        holder, {"serving_default": embed}, [{"ids": rows, "weights": rng.uniform(0.5, 2, (4, 5)).astype(np.float32)}]
    )


def deep_and_cross(rng: Rng) -> Served:
    """DCN: crosses of all features with the first ones."""
    holder = tf.Module()
    holder.crosses = [(variable(rng, 10, 10), variable(rng, 10, scale=0.3)) for _ in range(3)]
    holder.head = variable(rng, 10, 2)

    @tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float32, name="x")])
    def score(x: tf.Tensor) -> dict[str, tf.Tensor]:
        y = x
        for w, b in holder.crosses:
            y = x * (y @ w + b) + y
        return {"score": tf.nn.softmax(y @ holder.head)}

    return Served(holder, {"serving_default": score}, [{"x": normal(rng, 6, 10, scale=0.7)}])


def sessions(rng: Rng) -> KerasModel:
    """GRU4Rec: the items of a visit to scores of the next."""
    model = tf.keras.Sequential(
        [
            Input((None,), dtype="int32"),
            layers.Embedding(ITEMS, 12, mask_zero=True),
            layers.GRU(16, reset_after=False),
            layers.Dense(ITEMS),
        ]
    )
    model.layers[0].set_weights([normal(rng, ITEMS, 12, scale=1.0)])
    rows = ids(rng, ITEMS - 1, 4, 8) + 1
    rows[0, 3:] = rows[2, 6:] = 0
    return KerasModel(perturb(model, rng), [{"items": rows}])


def sequential_attention(rng: Rng) -> KerasModel:
    """SASRec: causal attention over earlier items, scored against the item embeddings."""
    entry = Input((10,), dtype="int32", name="items")
    x = layers.Embedding(ITEMS, 16, embeddings_initializer="normal")(entry)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True))
    x = x + layers.Dense(16)(layers.Dense(16, activation="relu")(x))
    model = perturb(
        tf.keras.Model(entry, layers.Dense(ITEMS)(layers.Lambda(lambda t: t[:, -1], output_shape=(16,))(x))), rng, 0.3
    )
    return KerasModel(model, [{"items": ids(rng, ITEMS, 3, 10)}])


def autoencoder(rng: Rng) -> KerasModel:
    """Mult-VAE at serving: the mean alone, with L2-normalised inputs."""
    entry = Input((ITEMS,), name="ratings")
    x = layers.Dropout(0.5)(layers.UnitNormalization()(entry))
    x = layers.Dense(24, activation="tanh")(x)
    model = perturb(tf.keras.Model(entry, layers.Dense(ITEMS)(layers.Dense(8)(x))), rng, 0.2)
    return KerasModel(model, [{"ratings": (rng.random((3, ITEMS)) < 0.2).astype(np.float32)}])
