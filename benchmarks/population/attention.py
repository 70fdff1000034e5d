"""Attention and generation loops."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import Rng, ids, normal, perturb, variable

layers = tf.keras.layers
Input = tf.keras.Input
WORDS, WIDTH, HEADS, LENGTH = 40, 32, 4, 12


def _block(x, mask=None, causal=False, norm_first=False):
    attend = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
    inner = layers.LayerNormalization()(x) if norm_first else x
    x = x + attend(inner, inner, attention_mask=mask, use_causal_mask=causal)
    x = x if norm_first else layers.LayerNormalization()(x)
    inner = layers.LayerNormalization()(x) if norm_first else x
    return x + layers.Dense(WIDTH)(layers.Dense(2 * WIDTH, activation="gelu")(inner))


def encoder(rng: Rng, blocks: int = 2, causal: bool = False, norm_first: bool = False) -> KerasModel:
    """Token ids through blocks of self-attention."""
    entry = Input((LENGTH,), dtype="int32", name="tokens")
    x = layers.Embedding(WORDS, WIDTH, embeddings_initializer="normal")(entry)
    for _ in range(blocks):
        x = _block(x, causal=causal, norm_first=norm_first)
    model = tf.keras.Model(entry, layers.Dense(WORDS)(x))
    return KerasModel(perturb(model, rng, 0.3), [{"tokens": ids(rng, WORDS, 3, LENGTH)}])


def padded_encoder(rng: Rng) -> KerasModel:
    """Attention with the mask of padded tokens, and a mean over the others."""
    entry = Input((None,), dtype="int32", name="tokens")
    x = layers.Embedding(WORDS, WIDTH, mask_zero=True, embeddings_initializer="normal")(entry)
    x = layers.MultiHeadAttention(HEADS, 8)(x, x)
    x = layers.GlobalAveragePooling1D()(x)
    tokens = ids(rng, WORDS - 1, 4, LENGTH) + 1
    for row in range(4):
        tokens[row, LENGTH - 2 * row :] = 0
    return KerasModel(perturb(tf.keras.Model(entry, layers.Dense(5)(x)), rng, 0.3), [{"tokens": tokens}])


def score_attention(rng: Rng, kind: str) -> KerasModel:
    """Attention of Luong (`Attention`) or Bahdanau (`AdditiveAttention`) over the states of a GRU."""
    query, value = Input((5, 8), name="query"), Input((None, 8), name="value")
    keys = layers.GRU(8, return_sequences=True)(value)
    attended = getattr(layers, kind)(use_scale=True)([query, keys])
    model = tf.keras.Model({"query": query, "value": value}, layers.Dense(4)(layers.Concatenate()([query, attended])))
    return KerasModel(
        perturb(model, rng), [{"query": normal(rng, 2, 5, 8, scale=1.0), "value": normal(rng, 2, 9, 8, scale=1.0)}]
    )


def grouped_queries(rng: Rng) -> KerasModel:
    """GroupedQueryAttention of Keras 3."""
    x = Input((None, WIDTH), name="x")
    y = layers.GroupQueryAttention(8, 4, 2)(x, x, use_causal_mask=True)
    return KerasModel(perturb(tf.keras.Model(x, y), rng), [{"x": normal(rng, 2, 9, WIDTH, scale=1.0)}])


def translator(rng: Rng) -> KerasModel:
    """Encoder and decoder with cross-attention and a causal mask."""
    source = Input((None,), dtype="int32", name="source")
    target = Input((None,), dtype="int32", name="target")
    embed = layers.Embedding(WORDS, WIDTH, embeddings_initializer="normal")
    memory = _block(embed(source))
    x = _block(embed(target), causal=True)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(HEADS, 8)(x, memory))
    model = tf.keras.Model({"source": source, "target": target}, layers.Dense(WORDS)(x))
    return KerasModel(perturb(model, rng, 0.3), [{"source": ids(rng, WORDS, 2, 9), "target": ids(rng, WORDS, 2, 7)}])


def vision_transformer(rng: Rng, side: int = 32, patch: int = 8) -> KerasModel:
    entry = Input((side, side, 3), name="images")
    x = layers.Conv2D(WIDTH, patch, patch)(entry)
    x = layers.Reshape(((side // patch) ** 2, WIDTH))(x)
    for _ in range(2):
        x = _block(x, norm_first=True)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    model = tf.keras.Model(entry, layers.Dense(10)(x))
    return KerasModel(perturb(model, rng), [{"images": normal(rng, 2, side, side, 3, scale=1.0)}])


class Decoder(tf.Module):
    """A causal transformer of one block, written with einsum, and rotary places on request."""

    def __init__(self, rng: Rng, rotary: bool = False) -> None:
        super().__init__()
        self.words, self.rotary = variable(rng, WORDS, WIDTH, scale=1.0), rotary
        self.qkv = variable(rng, WIDTH, 3, HEADS, WIDTH // HEADS, scale=0.3)
        self.out = variable(rng, HEADS, WIDTH // HEADS, WIDTH, scale=0.3)
        self.up, self.down = variable(rng, WIDTH, 64), variable(rng, 64, WIDTH)
        self.head = variable(rng, WIDTH, WORDS, scale=0.5)

    def _rotate(self, x: tf.Tensor) -> tf.Tensor:
        length, half = tf.shape(x)[1], WIDTH // HEADS // 2
        angles = tf.einsum(
            "t,f->tf",
            tf.cast(tf.range(length), tf.float32),
            tf.constant((100.0 ** -(np.arange(half) / half)).astype(np.float32)),
        )[None, :, None]
        left, right = tf.split(x, 2, -1)
        return tf.concat(
            [left * tf.cos(angles) - right * tf.sin(angles), right * tf.cos(angles) + left * tf.sin(angles)], -1
        )

    def logits(self, tokens: tf.Tensor) -> tf.Tensor:
        x = tf.gather(self.words, tokens)
        query, key, value = tf.unstack(tf.einsum("btw,wchd->cbthd", x, self.qkv))
        if self.rotary:
            query, key = self._rotate(query), self._rotate(key)
        scores = tf.einsum("bqhd,bkhd->bhqk", query, key) * (WIDTH // HEADS) ** -0.5
        length = tf.shape(tokens)[1]
        causal = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
        weights = tf.nn.softmax(scores - 1e9 * (1.0 - causal))
        x = x + tf.einsum("bhqk,bkhd,hdw->bqw", weights, value, self.out)
        x = x + tf.nn.silu(x @ self.up) @ self.down
        x = x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)
        return x @ self.head


def generation(rng: Rng, strategy: str, rotary: bool = False) -> Served:
    """A loop that adds tokens: the likeliest, one of the likeliest, or one of the nucleus, until all rows end."""
    decoder = Decoder(rng, rotary)

    def choose(logits: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        if strategy == "greedy":
            return tf.argmax(logits, -1, tf.int32)
        if strategy == "top k":
            values, indices = tf.math.top_k(logits, 5)
            drawn = tf.random.stateless_categorical(values, 1, [7, step], tf.int32)
            return tf.gather(indices, drawn, batch_dims=1)[:, 0]
        order = tf.argsort(logits, direction="DESCENDING")
        ordered = tf.gather(logits, order, batch_dims=1)
        before = tf.cumsum(tf.nn.softmax(ordered), -1, exclusive=True)
        drawn = tf.random.stateless_categorical(tf.where(before < 0.8, ordered, -1e9), 1, [5, step], tf.int32)
        return tf.gather(order, drawn, batch_dims=1)[:, 0]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32, name="prompt"),
            tf.TensorSpec([], tf.int32, name="steps"),
        ]
    )
    def generate(prompt: tf.Tensor, steps: tf.Tensor) -> dict[str, tf.Tensor]:
        tokens, ended, step = prompt, tf.zeros([tf.shape(prompt)[0]], tf.bool), tf.constant(0)
        while step < steps and not tf.reduce_all(ended):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(tokens, tf.TensorShape([None, None]))])
            word = tf.where(ended, 0, choose(decoder.logits(tokens)[:, -1], step))
            ended = tf.logical_or(ended, word == 3)
            tokens = tf.concat([tokens, word[:, None]], 1)
            step += 1
        return {"tokens": tokens, "steps": step, "logits": decoder.logits(tokens)[:, -1]}

    calls = [
        {"prompt": ids(rng, WORDS, rows, length), "steps": np.int32(steps)}
        for rows, length, steps in ((2, 4, 10), (1, 1, 6))
    ]
    return Served(decoder, {"serving_default": generate}, calls)


def cached_generation(rng: Rng) -> Served:
    """Keys and values of earlier tokens stay in buffers that each step updates."""
    decoder, length = Decoder(rng), 16

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="first")])
    def generate(first: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.shape(first)[0]
        keys = tf.zeros([rows, length, HEADS, WIDTH // HEADS])
        values, token = tf.zeros_like(keys), first
        words = tf.TensorArray(tf.int32, length)
        for step in tf.range(length):
            x = tf.gather(decoder.words, token)
            query, key, value = tf.unstack(tf.einsum("bw,wchd->cbhd", x, decoder.qkv))
            here = tf.one_hot(step, length)[None, :, None, None]
            keys, values = keys + here * key[:, None], values + here * value[:, None]
            scores = tf.einsum("bhd,bkhd->bhk", query, keys) * 0.35
            scores = tf.where(tf.range(length) <= step, scores, -1e9)
            x = x + tf.einsum("bhk,bkhd,hdw->bw", tf.nn.softmax(scores), values, decoder.out)
            token = tf.argmax(tf.nn.silu(x @ decoder.up) @ decoder.down @ decoder.head, -1, tf.int32)
            words = words.write(step, token)
        return {"tokens": tf.transpose(words.stack()), "keys": keys}

    return Served(decoder, {"serving_default": generate}, [{"first": ids(rng, WORDS, rows)} for rows in (3, 1)])


def beam_search(rng: Rng, beams: int = 3) -> Served:
    """The likeliest sequences of a GRU's words, with their scores, by a loop over TensorArrays."""
    embed, cell = variable(rng, WORDS, 16, scale=1.0), tf.keras.layers.GRUCell(16)
    cell.build((None, 16))
    head, holder = variable(rng, 16, WORDS, scale=1.0), tf.Module()
    holder.parts = embed, head
    holder.cell = cell

    @tf.function(input_signature=[tf.TensorSpec([16], tf.float32, name="state")])
    def search(state: tf.Tensor) -> dict[str, tf.Tensor]:
        states = tf.tile(state[None], [beams, 1])
        scores = tf.concat([[0.0], tf.fill([beams - 1], -1e9)], 0)
        words, parents = tf.TensorArray(tf.int32, 8), tf.TensorArray(tf.int32, 8)
        last = tf.fill([beams], 1)
        for step in tf.range(8):
            output, states = cell(tf.gather(embed, last), states)
            states = states[0] if isinstance(states, list | tuple) else states
            totals = scores[:, None] + tf.nn.log_softmax(output @ head)
            scores, flat = tf.math.top_k(tf.reshape(totals, [-1]), beams)
            parent, last = flat // WORDS, flat % WORDS
            states = tf.gather(states, parent)
            words, parents = words.write(step, last), parents.write(step, parent)
        beam, path = tf.range(beams), tf.TensorArray(tf.int32, 8)
        all_words, all_parents = words.stack(), parents.stack()
        for step in tf.range(7, -1, -1):
            path = path.write(step, tf.gather(all_words[step], beam))
            beam = tf.gather(all_parents[step], beam)
        return {"scores": scores, "words": tf.transpose(path.stack())}

    return Served(holder, {"serving_default": search}, [{"state": normal(rng, 16, scale=1.0)} for _ in range(2)])


def linear_attention(rng: Rng) -> Served:
    """Attention by a running sum of outer products, with tf.scan."""
    holder = tf.Module()
    holder.q, holder.k, holder.v = (variable(rng, 8, 8) for _ in range(3))

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float32, name="x")])
    def attend(x: tf.Tensor) -> dict[str, tf.Tensor]:
        q, k, v = tf.nn.elu(x @ holder.q) + 1, tf.nn.elu(x @ holder.k) + 1, x @ holder.v
        sums = tf.scan(lambda state, pair: state + tf.tensordot(pair[0], pair[1], 0), (k, v), tf.zeros([8, 8]))
        return {"y": tf.einsum("td,tdv->tv", q, sums) / tf.reduce_sum(q * tf.cumsum(k), -1, keepdims=True)}

    return Served(holder, {"serving_default": attend}, [{"x": normal(rng, length, 8, scale=1.0)} for length in (9, 2)])


def windows(rng: Rng) -> Served:
    """Attention in shifted windows of an image, with a bias for each relative place."""
    holder = tf.Module()
    holder.qkv, holder.bias = variable(rng, 16, 48), variable(rng, 49, 2, scale=1.0)
    side = np.arange(4)
    places = np.stack(np.meshgrid(side, side, indexing="ij")).reshape(2, -1)
    offsets = places[:, :, None] - places[:, None] + 3
    index = tf.constant(offsets[0] * 7 + offsets[1])

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 16], tf.float32, name="x")])
    def attend(x: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.roll(x, [-2, -2], [1, 2])
        x = tf.transpose(tf.reshape(x, [-1, 2, 4, 2, 4, 16]), [0, 1, 3, 2, 4, 5])
        x = tf.reshape(x, [-1, 16, 16])
        q, k, v = tf.unstack(tf.reshape(x @ holder.qkv, [-1, 16, 3, 2, 8]), axis=2)
        scores = tf.einsum("nqhd,nkhd->nhqk", q, k) + tf.transpose(tf.gather(holder.bias, index), [2, 0, 1])
        y = tf.einsum("nhqk,nkhd->nqhd", tf.nn.softmax(scores), v)
        y = tf.transpose(tf.reshape(y, [-1, 2, 2, 4, 4, 16]), [0, 1, 3, 2, 4, 5])
        return {"y": tf.roll(tf.reshape(y, [-1, 8, 8, 16]), [2, 2], [1, 2])}

    return Served(holder, {"serving_default": attend}, [{"x": normal(rng, 2, 8, 8, 16, scale=1.0)}])
