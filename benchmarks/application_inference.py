"""Applications that only read their variables: functions with control flow, in three forms each, and graphs of TF1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from application_forms import SEED, case_of, frozen_forms, graph_form, of_function, run_session, save_form, vary

v1 = tf.compat.v1
layers = keras.layers

WORDS = ["the", "film", "was", "good", "bad", "very", "plot", "actors", "boring", "brilliant", "and", "not", "long"]
TEXTS = np.array([b"The film was very good, and not long", b"Bad plot! Boring actors.", b"brilliant", b"",
                  b"A plot unknown to the actors was very, very BAD"], object)
LENGTH = 12  # of the texts, in words


def text_classifier(folder: Path, cell: str) -> dict[str, Any]:
    """Strings through TextVectorization; the frozen forms begin at its indices."""
    words = layers.TextVectorization(output_sequence_length=LENGTH, vocabulary=WORDS)
    body = keras.Sequential([keras.Input((LENGTH,), dtype="int64"),
                             layers.Embedding(len(WORDS) + 2, 16, mask_zero=True), getattr(layers, cell)(16),
                             layers.Dense(3, activation="softmax")])
    vary(body)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def classify(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"classes": body(words(text))}

    holder = tf.Module()
    holder.words, holder.body = words, body
    forms = {"SavedModel": save_form(folder, holder, classify)}
    of_indices = tf.function(body).get_concrete_function(tf.TensorSpec([None, LENGTH], tf.int64, name="ids"))
    forms |= frozen_forms(folder, of_indices, {"classes": 0})
    return case_of(folder, forms, {"text": TEXTS, "ids": words(TEXTS).numpy()}, {"classes": classify(TEXTS)["classes"]})


def string_lookup(folder: Path) -> dict[str, Any]:
    """Words to indices and back, with a table of its own for labels."""
    there, back = layers.StringLookup(vocabulary=WORDS), layers.StringLookup(vocabulary=WORDS, invert=True)
    labels = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(WORDS[:4], [3, 1, 4, 1]), -1)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string, name="words")])
    def look(words: tf.Tensor) -> dict[str, tf.Tensor]:
        indices = there(words)
        return {"indices": indices, "words": back(indices[:, ::-1]), "labels": labels.lookup(words),
                "joined": tf.strings.reduce_join(words, 1, separator=" ")}

    holder = tf.Module()
    holder.parts = there, back, labels
    words = np.array([[b"good", b"film", b"?"], [b"the", b"plot", b"was"]], object)
    return case_of(folder, {"SavedModel": save_form(folder, holder, look)}, {"words": words}, look(words))


def text_features(folder: Path) -> dict[str, Any]:
    """Texts as counts, tf-idf weights and pairs of words, and as the characters of their words."""
    weighted = layers.TextVectorization(output_mode="tf_idf")
    weighted.adapt(TEXTS)
    modes = {"counts": layers.TextVectorization(output_mode="count", vocabulary=WORDS), "weighted": weighted,
             "pairs": layers.TextVectorization(output_mode="multi_hot", ngrams=2, vocabulary=[*WORDS, "the film"]),
             "characters": layers.TextVectorization(split="character", vocabulary=list("abcdefgh"))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def features(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: layer(text) for name, layer in modes.items()}

    holder = tf.Module()
    holder.modes = modes
    return case_of(folder, {"SavedModel": save_form(folder, holder, features)}, {"text": TEXTS}, features(TEXTS))


def bidirectional(folder: Path) -> dict[str, Any]:
    model = keras.Sequential([keras.Input((None,), dtype="int32"), layers.Embedding(50, 16, mask_zero=True),
                              layers.Bidirectional(layers.LSTM(12, return_sequences=True)),
                              layers.Bidirectional(layers.GRU(8)), layers.Dense(4)])
    vary(model)
    rng = np.random.default_rng(SEED)
    ids = rng.integers(1, 50, (4, 15)).astype(np.int32)
    for row, length in enumerate((15, 3, 9, 1)):
        ids[row, length:] = 0
    return of_function(folder, model, lambda ids: {"logits": model(ids)}, {"ids": ids},
                       [tf.TensorSpec([None, None], tf.int32, name="ids")])


class Transformer(tf.Module):
    """Two layers of causal self-attention over at most `most` tokens."""

    def __init__(self, words: int = 40, width: int = 32, heads: int = 4, max_length: int = 24) -> None:
        super().__init__()
        rng = np.random.default_rng(SEED)

        def weights(*shape: int) -> tf.Variable:
            return tf.Variable(rng.normal(0, 1.5 * shape[0] ** -0.5, shape).astype(np.float32))

        self.heads, self.most, self.width = heads, max_length, width
        self.words = tf.Variable(rng.normal(0, 1, (words, width)).astype(np.float32))
        self.places = weights(max_length, width)
        self.layers = [[weights(width, 3 * width), weights(width, width), weights(width, 64), weights(64, width)]
                       for _ in range(2)]

    def logits(self, tokens: tf.Tensor) -> tf.Tensor:
        """[batch, length] to [batch, length, words]."""
        batch, length = tf.unstack(tf.shape(tokens))
        x = tf.gather(self.words.read_value(), tokens) + self.places[:length]
        mask = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
        for qkv, out, up, down in self.layers:
            q, k, v = (tf.transpose(tf.reshape(part, [batch, length, self.heads, -1]), [0, 2, 1, 3])
                       for part in tf.split(_layer_normalisation(x) @ qkv, 3, -1))
            scores = tf.einsum("bhqd,bhkd->bhqk", q, k) * (self.width // self.heads) ** -0.5
            mixed = tf.einsum("bhqk,bhkd->bqhd", tf.nn.softmax(scores - 1e9 * (1 - mask)), v)
            x += tf.reshape(mixed, [batch, length, self.width]) @ out
            x += tf.nn.gelu(_layer_normalisation(x) @ up) @ down
        return tf.matmul(_layer_normalisation(x), self.words, transpose_b=True)


def _layer_normalisation(x: tf.Tensor) -> tf.Tensor:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def generation(folder: Path) -> dict[str, Any]:
    """Greedy tokens and, beside them, tokens drawn by stateless random numbers; a row ends with token 0."""
    model = Transformer()

    def generate(start: tf.Tensor) -> dict[str, tf.Tensor]:
        def step(tokens: tf.Tensor, total: tf.Tensor, done: tf.Tensor) -> Any:
            logits = model.logits(tokens)[:, -1]
            best = tf.argmax(logits, -1, tf.int32)
            seed = tf.stack([SEED, tf.shape(tokens)[1]])
            drawn = tf.random.stateless_categorical(logits / 0.7, 1, seed, tf.int32)[:, 0]
            tokens_now = tf.where(done, 0, tf.where(tf.range(tf.size(best)) % 2 == 0, best, drawn))
            total += tf.gather(tf.nn.log_softmax(logits), tokens_now, batch_dims=1)
            return tf.concat([tokens, tokens_now[:, None]], 1), total, done | (tokens_now == 0)

        batch = tf.shape(start)[0]
        tokens, total, _ = tf.while_loop(
            lambda tokens, _, done: (tf.shape(tokens)[1] < model.most) & ~tf.reduce_all(done), step,
            (start, tf.zeros([batch]), tf.zeros([batch], tf.bool)),
            shape_invariants=(tf.TensorShape([None, None]), tf.TensorShape([None]), tf.TensorShape([None])))
        return {"tokens": tokens, "total": total}

    start = np.array([[3, 5], [7, 1], [2, 2]], np.int32)
    return of_function(folder, model, generate, {"start": start},
                       [tf.TensorSpec([None, None], tf.int32, name="start")])


def branching_generation(folder: Path) -> dict[str, Any]:
    """A GRU whose While has Ifs in its body, breaks out of the loop, and writes into a growing TensorArray."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.words = tf.Variable(rng.normal(0, 1, (20, 16)).astype(np.float32))
    model.gates = tf.Variable(rng.normal(0, 0.5, (32, 32)).astype(np.float32))
    model.state = tf.Variable(rng.normal(0, 0.5, (32, 16)).astype(np.float32))

    def generate(start: tf.Tensor) -> dict[str, tf.Tensor]:
        array = tf.TensorArray(tf.int32, 0, dynamic_size=True, clear_after_read=False, element_shape=[])
        token, state = start, tf.zeros([1, 16])
        for i in tf.range(30):
            x = tf.concat([tf.gather(model.words.read_value(), token)[None], state], 1)
            update, reset = tf.split(tf.sigmoid(x @ model.gates), 2, 1)
            new = tf.tanh(tf.concat([x[:, :16], reset * state], 1) @ model.state)
            state = update * state + (1 - update) * new
            token = tf.argmax(tf.linalg.matvec(model.words, state[0]), output_type=tf.int32)
            if i > 0 and tf.equal(token, array.read(i - 1)):
                token = (token + 1) % 20
            array = array.write(i, token)
            if token == 0:
                break
        return {"tokens": array.stack(), "state": state}

    return of_function(folder, model, generate, {"start": np.int32(4)}, [tf.TensorSpec([], tf.int32, name="start")])


def beam_search(folder: Path) -> dict[str, Any]:
    """Width 4 over a table of transitions, with lengths penalised and the paths traced back in a second loop."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.moves = tf.Variable(rng.normal(0, 1.5, (25, 25)).astype(np.float32))
    beams, words, max_length = 4, 25, 16

    def search(start: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = tf.size(start)
        words_taken = tf.TensorArray(tf.int32, max_length, element_shape=[None, beams])
        parents = tf.TensorArray(tf.int32, max_length, element_shape=[None, beams])
        scores = tf.tile([[0.0] + [-1e9] * (beams - 1)], [batch, 1])
        last, done = tf.tile(start[:, None], [1, beams]), tf.zeros([batch, beams], tf.bool)

        def step(i: Any, last: Any, scores: Any, done: Any, written_words: Any, parents: Any) -> Any:
            steps = tf.nn.log_softmax(tf.gather(model.moves.read_value(), last) + tf.math.sin(tf.cast(i, tf.float32)))
            only_end = tf.one_hot(0, words, 0.0, -1e9)
            step_scores = scores[:, :, None] + tf.where(done[:, :, None], only_end, steps)
            scores, flat = tf.math.top_k(tf.reshape(step_scores, [batch, -1]), beams)
            parent, word = flat // words, flat % words
            done = tf.gather(done, parent, batch_dims=1) | (word == 0)
            return i + 1, word, scores, done, written_words.write(i, word), parents.write(i, parent)

        count, _, scores, _, words_taken, parents = tf.while_loop(
            lambda i, _, __, done, *___: (i < max_length) & ~tf.reduce_all(done), step,
            (0, last, scores, done, words_taken, parents))
        path = tf.TensorArray(tf.int32, count, element_shape=[None, beams])
        word_steps, came = words_taken.stack(), parents.stack()

        def back(i: Any, beam: Any, path: Any) -> Any:
            words_of_beam = tf.gather(word_steps[i], beam, batch_dims=1)
            return i - 1, tf.gather(came[i], beam, batch_dims=1), path.write(i, words_of_beam)

        beam = tf.tile(tf.range(beams)[None], [batch, 1])
        _, _, path = tf.while_loop(lambda i, *_: i >= 0, back, (count - 1, beam, path))
        return {"paths": tf.transpose(path.stack(), [1, 2, 0]), "scores": scores / tf.cast(count, tf.float32) ** 0.6}

    return of_function(folder, model, search, {"start": np.array([1, 7, 13], np.int32)},
                       [tf.TensorSpec([None], tf.int32, name="start")])


def detection(folder: Path) -> dict[str, Any]:
    """Boxes decoded from anchors, suppressed class by class in a loop, and at once by combined suppression."""
    rng = np.random.default_rng(SEED)
    model, count, classes = tf.Module(), 200, 5
    corners = rng.uniform(0, 0.8, (count, 2))
    model.anchors = tf.Variable(np.hstack([corners, corners + rng.uniform(0.05, 0.2, (count, 2))]).astype(np.float32))

    def detect(offsets: tf.Tensor, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        boxes, scores = tf.clip_by_value(model.anchors + 0.02 * offsets, 0.0, 1.0), tf.sigmoid(logits)
        found_boxes, found_scores, found_classes = tf.zeros([0, 4]), tf.zeros([0]), tf.zeros([0], tf.int32)
        for c in tf.range(classes):
            tf.autograph.experimental.set_loop_options(shape_invariants=[
                (found_boxes, tf.TensorShape([None, 4])), (found_scores, tf.TensorShape([None])),
                (found_classes, tf.TensorShape([None]))])
            kept_boxes, soft = tf.image.non_max_suppression_with_scores(
                boxes, scores[:, c], 20, 0.4, 0.6, soft_nms_sigma=0.3)
            if tf.size(kept_boxes) > 0:
                found_boxes = tf.concat([found_boxes, tf.gather(boxes, kept_boxes)], 0)
                found_scores = tf.concat([found_scores, soft], 0)
                found_classes = tf.concat([found_classes, tf.fill(tf.shape(kept_boxes), c)], 0)
        best = tf.argsort(found_scores, direction="DESCENDING", stable=True)[:30]
        at_once = tf.image.combined_non_max_suppression(boxes[None, :, None], scores[None], 10, 25, 0.4, 0.6)
        return {"boxes": tf.gather(found_boxes, best), "scores": tf.gather(found_scores, best),
                "classes": tf.gather(found_classes, best), "combined": at_once.nmsed_boxes,
                "combined_scores": at_once.nmsed_scores, "valid": at_once.valid_detections}

    feeds = {"offsets": rng.normal(0, 1, (count, 4)), "logits": rng.normal(0, 1, (count, classes))}
    return of_function(folder, model, detect, {name: array.astype(np.float32) for name, array in feeds.items()},
                       [tf.TensorSpec([count, 4], name="offsets"), tf.TensorSpec([count, classes], name="logits")])


def crf(folder: Path) -> dict[str, Any]:
    """Viterbi decoding by tf.scan, the log of the partition function by tf.while_loop, sequences of several lengths."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.moves = tf.Variable(rng.normal(0, 1, (6, 6)).astype(np.float32))

    def decode(scores: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        steps = tf.transpose(scores, [1, 0, 2])

        def forward(best: Any, emission_and_index: Any) -> Any:
            (score, _), (emitted, i) = best, emission_and_index
            move_scores = score[:, :, None] + model.moves
            inside = (i < lengths)[:, None]
            new, came = tf.reduce_max(move_scores, 1) + emitted, tf.argmax(move_scores, 1, tf.int32)
            stay = tf.broadcast_to(tf.range(6), tf.shape(came))
            return tf.where(inside, new, score), tf.where(inside, came, stay)

        first = (steps[0], tf.zeros_like(steps[0], tf.int32))
        all_scores, came = tf.scan(forward, (steps[1:], tf.range(1, tf.shape(steps)[0])), first)
        last = tf.argmax(all_scores[-1], 1, tf.int32)
        back = tf.scan(lambda tag, came: tf.gather(came, tag, batch_dims=1), came, last, reverse=True)
        tags = tf.transpose(tf.concat([back, last[None]], 0))

        def sums(i: Any, alpha: Any) -> Any:
            new = tf.reduce_logsumexp(alpha[:, :, None] + model.moves, 1) + steps[i]
            return i + 1, tf.where((i < lengths)[:, None], new, alpha)

        _, alpha = tf.while_loop(lambda i, _: i < tf.shape(steps)[0], sums, (1, steps[0]))
        return {"tags": tf.where(tf.sequence_mask(lengths, tf.shape(tags)[1]), tags, -1),
                "score": tf.reduce_max(all_scores[-1], 1), "partition": tf.reduce_logsumexp(alpha, 1)}

    feeds = {"scores": rng.normal(0, 1, (3, 10, 6)).astype(np.float32), "lengths": np.array([10, 4, 7], np.int32)}
    return of_function(folder, model, decode, feeds, [tf.TensorSpec([None, None, 6], name="scores"),
                                                      tf.TensorSpec([None], tf.int32, name="lengths")])


def maps_and_scans(folder: Path) -> dict[str, Any]:
    """map_fn over several arrays, over ragged rows and over strings; scan, foldl and a gradient through a loop."""
    def work(x: tf.Tensor, text: tf.Tensor) -> dict[str, tf.Tensor]:
        def piece(row: tf.Tensor) -> tf.Tensor:
            return tf.cond(tf.reduce_sum(row) > 0, lambda: tf.sort(row), lambda: -row[::-1])

        ragged = tf.strings.split(text)
        lengths = tf.map_fn(lambda words: tf.reduce_sum(tf.strings.length(words)), ragged, fn_output_signature=tf.int32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            folded = tf.foldl(lambda total, row: tf.tanh(total + row) * row, x)
        return {"mapped": tf.map_fn(piece, x), "pairs": tf.map_fn(
                    lambda pair: pair[0] * pair[1], (x, tf.reverse(x, [0])), fn_output_signature=tf.float32),
                "scanned": tf.scan(lambda total, row: 0.5 * total + row, x), "folded": folded,
                "gradient": tape.gradient(folded, x), "lengths": lengths,
                "upper": tf.map_fn(tf.strings.upper, text)}

    x = np.random.default_rng(SEED).normal(0, 1, (6, 5)).astype(np.float32)
    return of_function(folder, tf.Module(), work, {"x": x, "text": TEXTS},
                       [tf.TensorSpec([None, 5], name="x"), tf.TensorSpec([None], tf.string, name="text")])


def switch_case(folder: Path) -> dict[str, Any]:
    """An expert chosen by tf.switch_case for each row, each with weights of its own, nested in tf.cond."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.experts = [tf.Variable(rng.normal(0, 1, (4, 4)).astype(np.float32)) for _ in range(3)]

    def mixture(x: tf.Tensor, experts: tf.Tensor, doubled: tf.Tensor) -> dict[str, tf.Tensor]:
        def row(values_and_expert: Any) -> tf.Tensor:
            values, expert = values_and_expert
            branches = [lambda w=w: tf.linalg.matvec(w, values) for w in model.experts]
            return tf.switch_case(expert, branches, default=lambda: tf.zeros([4]))

        y = tf.map_fn(row, (x, experts), fn_output_signature=tf.float32)
        return {"y": tf.cond(doubled, lambda: tf.cond(tf.size(x) > 4, lambda: y * 2, lambda: y * 3), lambda: y)}

    feeds = {"x": rng.normal(0, 1, (5, 4)).astype(np.float32), "experts": np.array([2, 0, 9, 1, 1], np.int32),
             "doubled": np.bool_(True)}
    return of_function(folder, model, mixture, feeds, [
        tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([None], tf.int32, name="experts"),
        tf.TensorSpec([], tf.bool, name="doubled")])


def checked_loops(folder: Path) -> dict[str, Any]:
    """Assertions in front of a cond whose branches differ in shape; loops that continue, break and call a loop."""
    @tf.function
    def collatz(n: tf.Tensor) -> tf.Tensor:
        count = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        return count

    def work(x: tf.Tensor) -> dict[str, tf.Tensor]:
        checks = [tf.debugging.assert_greater(tf.shape(x)[0], 0), tf.debugging.assert_all_finite(x, "not finite")]
        with tf.control_dependencies(checks):
            y = tf.identity(x)
        total = tf.zeros([4])
        for i in tf.range(tf.shape(y)[0]):
            if y[i, 0] > 1.0:
                continue
            for j in tf.range(4):
                if y[i, j] < -1.0:
                    break
                total = tf.tensor_scatter_nd_add(total, [[j]], [y[i, j]])
        places = tf.cond(tf.reduce_any(y > 0), lambda: tf.where(y > 0)[:3], lambda: tf.zeros([0, 2], tf.int64))
        return {"total": total, "places": places, "steps": tf.map_fn(collatz, tf.constant([1, 7, 27]))}

    x = np.random.default_rng(SEED).normal(0, 1, (6, 4)).astype(np.float32)
    return of_function(folder, tf.Module(), work, {"x": x}, [tf.TensorSpec([None, 4], name="x")])


def v1_loop(folder: Path) -> dict[str, Any]:
    """A TF1 graph: an LSTM as a while_loop that has a cond inside, with TensorArrays, over rows of several lengths."""
    rng = np.random.default_rng(SEED)
    feeds = {"x": rng.normal(0, 1, (3, 9, 5)).astype(np.float32), "lengths": np.array([9, 2, 5], np.int32)}
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x, lengths = v1.placeholder(tf.float32, [None, None, 5], "x"), v1.placeholder(tf.int32, [None], "lengths")
            kernel = tf.constant(rng.normal(0, 0.5, (13, 32)).astype(np.float32))
            bias = tf.constant(rng.normal(0, 0.5, 32).astype(np.float32))
            steps, time = tf.transpose(x, [1, 0, 2]), tf.shape(x)[1]
            inputs = tf.TensorArray(tf.float32, time).unstack(steps)
            outputs = tf.TensorArray(tf.float32, time, element_shape=[None, 8])
            zero = tf.zeros([tf.shape(x)[0], 8])

            def step(i: Any, c: Any, h: Any, outputs: Any) -> Any:
                gates = tf.concat([inputs.read(i), h], 1) @ kernel + bias
                enter, new, forget, out = tf.split(gates, 4, 1)
                c_new = c * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
                h_new = tf.tanh(c_new) * tf.sigmoid(out)
                inside = (i < lengths)[:, None]
                some = tf.cond(i >= tf.reduce_min(lengths), lambda: tf.where(inside, h_new, 0.0), lambda: h_new)
                return i + 1, tf.where(inside, c_new, c), tf.where(inside, h_new, h), outputs.write(i, some)

            _, _, h, outputs = v1.while_loop(lambda i, *_: i < time, step, (0, zero, zero, outputs))
            fetches = {"outputs": tf.transpose(outputs.stack(), [1, 0, 2]), "state": h}
            form = graph_form(folder, graph, {"x": x, "lengths": lengths}, fetches)
    finally:
        v1.enable_control_flow_v2()
    return case_of(folder, {"graph": form}, feeds, run_session(folder, form, feeds))


def dynamic_rnn_of_cells(folder: Path) -> dict[str, Any]:
    """tf.compat.v1.nn.dynamic_rnn of an LSTMCell with peepholes, with its variables and frozen as TF1 freezes."""
    from tensorflow.python.keras.layers.legacy_rnn.rnn_cell_impl import LSTMCell

    rng = np.random.default_rng(SEED)
    feeds = {"x": rng.normal(0, 1, (3, 9, 5)).astype(np.float32), "lengths": np.array([9, 2, 5], np.int32)}
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x, lengths = v1.placeholder(tf.float32, [None, None, 5], "x"), v1.placeholder(tf.int32, [None], "lengths")
            cell = LSTMCell(8, use_peepholes=True, initializer=_fixed_initializer)
            outputs, state = v1.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
            fetches = {"outputs": tf.identity(outputs, "outputs"), "state": tf.identity(state.h, "state")}
            init = v1.global_variables_initializer()
            form = graph_form(folder, graph, {"x": x, "lengths": lengths}, fetches, [init])
            with v1.Session() as session:
                session.run(init)
                frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), [*fetches])
    finally:
        v1.enable_control_flow_v2()
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
    forms = {"graph": form, "frozen": {**form, "path": "frozen.pb", "before": []}}
    return case_of(folder, forms, feeds, run_session(folder, form, feeds))


def _fixed_initializer(shape: Sequence[int], **_: Any) -> Any:
    """An initializer that gives the same values everywhere."""
    return tf.constant(np.random.default_rng(SEED).normal(0, 0.4, shape).astype(np.float32))
