"""Structured outputs: CRF, Viterbi, alignments, filters, graphs of nodes and edges."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import Served
from weights import Rng, ids, normal, variable

TAGS = 5


def tagger(rng: Rng) -> Served:
    """CRF: the best tags by Viterbi with tf.scan and a loop back, masked by lengths."""
    holder = tf.Module()
    holder.moves, holder.w = variable(rng, TAGS, TAGS, scale=1.0), variable(rng, 8, TAGS, scale=1.0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 8], tf.float32, name="x"),
            tf.TensorSpec([None], tf.int32, name="lengths"),
        ]
    )
    def tag(x: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        unary = tf.transpose(tf.tensordot(x, holder.w, 1), [1, 0, 2])
        steps = tf.shape(unary)[0]
        score, back = unary[0], tf.TensorArray(tf.int32, steps)
        back = back.write(0, tf.zeros_like(tf.cast(unary[0], tf.int32)))
        for step in tf.range(1, steps):
            totals = score[:, :, None] + holder.moves
            best = tf.reduce_max(totals, 1) + unary[step]
            inside = (step < lengths)[:, None]
            pointers = tf.where(inside, tf.argmax(totals, 1, tf.int32), tf.range(TAGS))
            score, back = tf.where(inside, best, score), back.write(step, pointers)
        last = tf.argmax(score, -1, tf.int32)
        path = tf.TensorArray(tf.int32, steps).write(steps - 1, last)
        for step in tf.range(steps - 1, 0, -1):
            last = tf.gather(back.read(step), last, batch_dims=1)
            path = path.write(step - 1, last)
        tags = tf.where(tf.sequence_mask(lengths, steps), tf.transpose(path.stack()), -1)
        return {"tags": tags, "score": tf.reduce_max(score, -1)}

    return Served(
        holder,
        {"serving_default": tag},
        [
            {"x": normal(rng, 3, 9, 8, scale=1.0), "lengths": np.array([9, 4, 1], np.int32)},
            {"x": normal(rng, 1, 2, 8, scale=1.0), "lengths": np.array([2], np.int32)},
        ],
    )


def sequence_likelihood(rng: Rng) -> Served:
    """CRF: log-likelihoods of given tags, with foldl and logsumexp."""
    holder = tf.Module()
    holder.moves = variable(rng, TAGS, TAGS, scale=1.0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, TAGS], tf.float32, name="unary"),
            tf.TensorSpec([None, None], tf.int32, name="tags"),
        ]
    )
    def evaluate(unary: tf.Tensor, tags: tf.Tensor) -> dict[str, tf.Tensor]:
        by_step = tf.transpose(unary, [1, 0, 2])
        total = tf.foldl(
            lambda alpha, u: tf.reduce_logsumexp(alpha[:, :, None] + holder.moves, 1) + u, by_step[1:], by_step[0]
        )
        score = tf.reduce_sum(tf.gather(unary, tags, batch_dims=2), 1)
        pairs = tf.stack([tags[:, :-1], tags[:, 1:]], -1)
        return {
            "likelihood": score + tf.reduce_sum(tf.gather_nd(holder.moves, pairs), 1) - tf.reduce_logsumexp(total, -1)
        }

    return Served(
        holder,
        {"serving_default": evaluate},
        [{"unary": normal(rng, 3, 7, TAGS, scale=1.0), "tags": ids(rng, TAGS, 3, 7)}],
    )


def pointer_network(rng: Rng) -> Served:
    """Cities are visited one by one: a mask hides visited ones."""
    holder = tf.Module()
    holder.w, holder.v, holder.start = (
        variable(rng, 2, 12, scale=1.0),
        variable(rng, 12, 12),
        variable(rng, 12, scale=1.0),
    )

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="cities")])
    def route(cities: tf.Tensor) -> dict[str, tf.Tensor]:
        keys, number = tf.tanh(cities @ holder.w), tf.shape(cities)[0]
        query, free = holder.start + 0.0, tf.ones([number], tf.bool)
        order = tf.TensorArray(tf.int32, number)
        length, step = tf.constant(0.0), tf.constant(0)
        while tf.reduce_any(free):
            scores = tf.where(free, tf.linalg.matvec(keys, query), -np.inf)
            city = tf.argmax(scores, output_type=tf.int32)
            order = order.write(step, city)
            free = tf.tensor_scatter_nd_update(free, [[city]], [False])
            length += tf.reduce_max(scores)
            query = tf.tanh(tf.linalg.matvec(holder.v, query) + keys[city])
            step += 1
        return {"order": order.stack(), "score": length}

    return Served(
        holder, {"serving_default": route}, [{"cities": normal(rng, number, 2, scale=1.0)} for number in (7, 3)]
    )


def alignment(rng: Rng) -> Served:
    """Dynamic time warping with nested loops, and the edit distance of words."""
    holder = tf.Module()

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.float32, name="a"), tf.TensorSpec([None], tf.float32, name="b")]
    )
    def align(a: tf.Tensor, b: tf.Tensor) -> dict[str, tf.Tensor]:
        cost = tf.abs(a[:, None] - b)
        row = tf.concat([[0.0], tf.fill([tf.shape(b)[0]], np.inf)], 0)
        for i in tf.range(tf.shape(a)[0]):
            left = tf.constant(np.inf, tf.float32)
            cells = tf.TensorArray(tf.float32, tf.shape(row)[0]).write(0, left)
            for j in tf.range(1, tf.shape(row)[0]):
                left = cost[i, j - 1] + tf.minimum(tf.minimum(row[j], row[j - 1]), left)
                cells = cells.write(j, left)
            row = cells.stack()
            row.set_shape([None])
        return {"distance": row[1:], "total": row[-1]}

    return Served(
        holder,
        {"serving_default": align},
        [{"a": normal(rng, n, scale=1.0), "b": normal(rng, m, scale=1.0)} for n, m in ((6, 8), (3, 2))],
    )


def edit_distances(rng: Rng) -> Served:
    holder = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, name="a"),
            tf.TensorSpec([None, None], tf.int32, name="b"),
        ]
    )
    def measure(a: tf.Tensor, b: tf.Tensor) -> dict[str, tf.Tensor]:
        first, second = tf.sparse.from_dense(a), tf.sparse.from_dense(b)
        return {"plain": tf.edit_distance(first, second, normalize=False), "normal": tf.edit_distance(first, second)}

    return Served(holder, {"serving_default": measure}, [{"a": ids(rng, 4, 5, 6) + 1, "b": ids(rng, 4, 5, 7) + 1}])


def kalman_filter(rng: Rng) -> Served:
    """Predictions and corrections, with inverses of small matrices in a loop."""
    holder = tf.Module()
    holder.move = tf.Variable(np.array([[1, 0.1], [0, 1]], np.float32))
    holder.noise, holder.look = tf.Variable(0.01 * np.eye(2, dtype=np.float32)), tf.Variable([[1.0, 0.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, name="z")])
    def track(z: tf.Tensor) -> dict[str, tf.Tensor]:
        def step(state, observed):
            x, p = state
            x = holder.move @ x
            p = holder.move @ p @ tf.transpose(holder.move) + holder.noise
            s = holder.look @ p @ tf.transpose(holder.look) + 0.1
            gain = p @ tf.transpose(holder.look) @ tf.linalg.inv(s)
            return x + gain @ (observed[:, None] - holder.look @ x), p - gain @ holder.look @ p

        x, p = tf.scan(step, z, (tf.zeros([2, 1]), tf.eye(2)))
        return {"x": x[..., 0], "p": p, "det": tf.linalg.det(p) + x[:, 0, 0]}

    return Served(holder, {"serving_default": track}, [{"z": normal(rng, length, 1, scale=1.0)} for length in (20, 4)])


def graph_network(rng: Rng, aggregate: str) -> Served:
    """Messages along edges, aggregated at nodes by segments."""
    holder = tf.Module()
    holder.w, holder.u = variable(rng, 12, 8, scale=0.4), variable(rng, 14, 6, scale=0.4)
    reduce = {
        "sum": tf.math.unsorted_segment_sum,
        "mean": tf.math.unsorted_segment_mean,
        "max": tf.math.unsorted_segment_max,
        "sqrt": tf.math.unsorted_segment_sqrt_n,
    }[aggregate]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 6], tf.float32, name="nodes"),
            tf.TensorSpec([None, 2], tf.int32, name="edges"),
        ]
    )
    def propagate(nodes: tf.Tensor, edges: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in tf.range(3):
            ends = tf.concat([tf.gather(nodes, edges[:, 0]), tf.gather(nodes, edges[:, 1])], 1)
            messages = tf.nn.relu(ends @ holder.w)
            sums = tf.maximum(reduce(messages, edges[:, 1], tf.shape(nodes)[0]), -10.0)
            nodes = tf.tanh(tf.concat([nodes, sums], 1) @ holder.u)
        return {"nodes": nodes, "graph": tf.reduce_mean(nodes, 0)}

    return Served(
        holder,
        {"serving_default": propagate},
        [{"nodes": normal(rng, n, 6, scale=1.0), "edges": ids(rng, n, 3 * n, 2)} for n in (8, 3)],
    )


def graph_attention(rng: Rng) -> Served:
    """Softmax over the edges of each node, and sparse products."""
    holder = tf.Module()
    holder.w, holder.a = variable(rng, 6, 5), variable(rng, 10, 1, scale=1.0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 6], tf.float32, name="nodes"),
            tf.TensorSpec([None, 2], tf.int64, name="edges"),
        ]
    )
    def attend(nodes: tf.Tensor, edges: tf.Tensor) -> dict[str, tf.Tensor]:
        h, number = nodes @ holder.w, tf.shape(nodes, tf.int64)[0]
        scores = tf.nn.leaky_relu(tf.concat([tf.gather(h, edges[:, 0]), tf.gather(h, edges[:, 1])], 1) @ holder.a)[:, 0]
        weights = tf.sparse.softmax(tf.SparseTensor(edges, scores, tf.stack([number, number])))
        return {"nodes": tf.sparse.sparse_dense_matmul(weights, h), "sum": tf.sparse.reduce_sum(weights, 0)}

    def edges(n: int) -> np.ndarray:
        return np.array([(i, j) for i in range(n) for j in range(n) if i == j or rng.random() < 0.4], np.int64)

    return Served(
        holder,
        {"serving_default": attend},
        [{"nodes": normal(rng, n, 6, scale=1.0), "edges": edges(n)} for n in (7, 2)],
    )
