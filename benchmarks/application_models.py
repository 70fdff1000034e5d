"""Makes the applications that applications.py runs, with TensorFlow: models as users write and save them.

    pip install tensorflow-cpu       (in an environment of its own, without weft)
    python benchmarks/application_models.py FOLDER [NAME ...]

FOLDER/NAME has case.json, arrays.npz and the application's files, one for each form:

    SavedModel       its signature serving_default
    frozen           convert_variables_to_constants_v2, with functional control flow (If, While)
    frozen, lowered  the same with lower_control_flow: Switch, Merge, Enter, Exit
    graph            a GraphDef whose variables are initialised and changed by its nodes

case.json: {"application": text, "tolerance": largest difference, "forms": {form: {"path", "feeds" and "fetches"
(tensors by name; a SavedModel has its signature instead), "before" (nodes run once), "targets", "steps" (runs in
turn)}}}. arrays.npz has "in/NAME" and "out/NAME"; with steps, the outputs of all runs are stacked. Outputs are
TensorFlow's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
layers = keras.layers
Arrays = Mapping[str, np.ndarray]

SEED = 11
TOLERANCE = 1e-4  # of the standard deviation of an output; of a loss, relative to it
STEPS = 50  # of a training loop
GATED = v1.train.Optimizer.GATE_GRAPH  # all gradients are known before a reference variable changes
WORDS = ["the", "film", "was", "good", "bad", "very", "plot", "actors", "boring", "brilliant", "and", "not", "long"]
TEXTS = np.array([b"The film was very good, and not long", b"Bad plot! Boring actors.", b"brilliant", b"",
                  b"A plot unknown to the actors was very, very BAD"], object)
LENGTH = 12  # of the texts, in words


def text_classifier(folder: Path, cell: Any) -> dict[str, Any]:
    """Strings through TextVectorization; the frozen forms begin at its indices."""
    words = layers.TextVectorization(output_sequence_length=LENGTH, vocabulary=WORDS)
    body = keras.Sequential([keras.Input((LENGTH,), dtype="int64"),
                             layers.Embedding(len(WORDS) + 2, 16, mask_zero=True), cell,
                             layers.Dense(3, activation="softmax")])
    _vary(body)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def classify(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"classes": body(words(text))}

    holder = tf.Module()
    holder.words, holder.body = words, body
    forms = {"SavedModel": _saved(folder, holder, classify)}
    of_indices = tf.function(body).get_concrete_function(tf.TensorSpec([None, LENGTH], tf.int64, name="ids"))
    forms |= _frozen(folder, of_indices, {"classes": 0})
    return _case(folder, forms, {"text": TEXTS, "ids": words(TEXTS).numpy()}, {"classes": classify(TEXTS)["classes"]})


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
    return _case(folder, {"SavedModel": _saved(folder, holder, look)}, {"words": words}, look(words))


def bidirectional(folder: Path) -> dict[str, Any]:
    model = keras.Sequential([keras.Input((None,), dtype="int32"), layers.Embedding(50, 16, mask_zero=True),
                              layers.Bidirectional(layers.LSTM(12, return_sequences=True)),
                              layers.Bidirectional(layers.GRU(8)), layers.Dense(4)])
    _vary(model)
    rng = np.random.default_rng(SEED)
    ids = rng.integers(1, 50, (4, 15)).astype(np.int32)
    for row, length in enumerate((15, 3, 9, 1)):
        ids[row, length:] = 0
    return _of_function(folder, model, lambda ids: {"logits": model(ids)}, {"ids": ids},
                        [tf.TensorSpec([None, None], tf.int32, name="ids")])


class Transformer(tf.Module):
    """Two layers of causal self-attention over at most `most` tokens."""

    def __init__(self, words: int = 40, width: int = 32, heads: int = 4, most: int = 24) -> None:
        super().__init__()
        rng = np.random.default_rng(SEED)

        def weights(*shape: int) -> tf.Variable:
            return tf.Variable(rng.normal(0, 1.5 * shape[0] ** -0.5, shape).astype(np.float32))

        self.heads, self.most, self.width = heads, most, width
        self.words, self.places = tf.Variable(rng.normal(0, 1, (words, width)).astype(np.float32)), weights(most, width)
        self.layers = [[weights(width, 3 * width), weights(width, width), weights(width, 64), weights(64, width)]
                       for _ in range(2)]

    def logits(self, tokens: tf.Tensor) -> tf.Tensor:
        """[batch, length] to [batch, length, words]."""
        batch, length = tf.unstack(tf.shape(tokens))
        x = tf.gather(self.words.read_value(), tokens) + self.places[:length]
        mask = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
        for qkv, out, up, down in self.layers:
            q, k, v = (tf.transpose(tf.reshape(part, [batch, length, self.heads, -1]), [0, 2, 1, 3])
                       for part in tf.split(_normalised(x) @ qkv, 3, -1))
            scores = tf.einsum("bhqd,bhkd->bhqk", q, k) * (self.width // self.heads) ** -0.5
            mixed = tf.einsum("bhqk,bhkd->bqhd", tf.nn.softmax(scores - 1e9 * (1 - mask)), v)
            x += tf.reshape(mixed, [batch, length, self.width]) @ out
            x += tf.nn.gelu(_normalised(x) @ up) @ down
        return tf.matmul(_normalised(x), self.words, transpose_b=True)


def _normalised(x: tf.Tensor) -> tf.Tensor:
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
            chosen = tf.where(done, 0, tf.where(tf.range(tf.size(best)) % 2 == 0, best, drawn))
            total += tf.gather(tf.nn.log_softmax(logits), chosen, batch_dims=1)
            return tf.concat([tokens, chosen[:, None]], 1), total, done | (chosen == 0)

        batch = tf.shape(start)[0]
        tokens, total, _ = tf.while_loop(
            lambda tokens, _, done: (tf.shape(tokens)[1] < model.most) & ~tf.reduce_all(done), step,
            (start, tf.zeros([batch]), tf.zeros([batch], tf.bool)),
            shape_invariants=(tf.TensorShape([None, None]), tf.TensorShape([None]), tf.TensorShape([None])))
        return {"tokens": tokens, "total": total}

    start = np.array([[3, 5], [7, 1], [2, 2]], np.int32)
    return _of_function(folder, model, generate, {"start": start},
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

    return _of_function(folder, model, generate, {"start": np.int32(4)}, [tf.TensorSpec([], tf.int32, name="start")])


def beam_search(folder: Path) -> dict[str, Any]:
    """Width 4 over a table of transitions, with lengths penalised and the paths traced back in a second loop."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.moves = tf.Variable(rng.normal(0, 1.5, (25, 25)).astype(np.float32))
    beams, words, most = 4, 25, 16

    def search(start: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = tf.size(start)
        words_taken = tf.TensorArray(tf.int32, most, element_shape=[None, beams])
        parents = tf.TensorArray(tf.int32, most, element_shape=[None, beams])
        scores = tf.tile([[0.0] + [-1e9] * (beams - 1)], [batch, 1])
        last, done = tf.tile(start[:, None], [1, beams]), tf.zeros([batch, beams], tf.bool)

        def step(i: Any, last: Any, scores: Any, done: Any, taken: Any, parents: Any) -> Any:
            steps = tf.nn.log_softmax(tf.gather(model.moves.read_value(), last) + tf.math.sin(tf.cast(i, tf.float32)))
            only_end = tf.one_hot(0, words, 0.0, -1e9)
            each = scores[:, :, None] + tf.where(done[:, :, None], only_end, steps)
            scores, flat = tf.math.top_k(tf.reshape(each, [batch, -1]), beams)
            parent, word = flat // words, flat % words
            done = tf.gather(done, parent, batch_dims=1) | (word == 0)
            return i + 1, word, scores, done, taken.write(i, word), parents.write(i, parent)

        count, _, scores, _, words_taken, parents = tf.while_loop(
            lambda i, _, __, done, *___: (i < most) & ~tf.reduce_all(done), step,
            (0, last, scores, done, words_taken, parents))
        path = tf.TensorArray(tf.int32, count, element_shape=[None, beams])
        taken, came = words_taken.stack(), parents.stack()

        def back(i: Any, beam: Any, path: Any) -> Any:
            return i - 1, tf.gather(came[i], beam, batch_dims=1), path.write(i, tf.gather(taken[i], beam, batch_dims=1))

        beam = tf.tile(tf.range(beams)[None], [batch, 1])
        _, _, path = tf.while_loop(lambda i, *_: i >= 0, back, (count - 1, beam, path))
        return {"paths": tf.transpose(path.stack(), [1, 2, 0]), "scores": scores / tf.cast(count, tf.float32) ** 0.6}

    return _of_function(folder, model, search, {"start": np.array([1, 7, 13], np.int32)},
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
            chosen, soft = tf.image.non_max_suppression_with_scores(
                boxes, scores[:, c], 20, 0.4, 0.6, soft_nms_sigma=0.3)
            if tf.size(chosen) > 0:
                found_boxes = tf.concat([found_boxes, tf.gather(boxes, chosen)], 0)
                found_scores = tf.concat([found_scores, soft], 0)
                found_classes = tf.concat([found_classes, tf.fill(tf.shape(chosen), c)], 0)
        best = tf.argsort(found_scores, direction="DESCENDING", stable=True)[:30]
        at_once = tf.image.combined_non_max_suppression(boxes[None, :, None], scores[None], 10, 25, 0.4, 0.6)
        return {"boxes": tf.gather(found_boxes, best), "scores": tf.gather(found_scores, best),
                "classes": tf.gather(found_classes, best), "combined": at_once.nmsed_boxes,
                "combined_scores": at_once.nmsed_scores, "valid": at_once.valid_detections}

    feeds = {"offsets": rng.normal(0, 1, (count, 4)), "logits": rng.normal(0, 1, (count, classes))}
    return _of_function(folder, model, detect, {name: array.astype(np.float32) for name, array in feeds.items()},
                        [tf.TensorSpec([count, 4], name="offsets"), tf.TensorSpec([count, classes], name="logits")])


def crf(folder: Path) -> dict[str, Any]:
    """Viterbi decoding by tf.scan, the log of the partition function by tf.while_loop, sequences of several lengths."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.moves = tf.Variable(rng.normal(0, 1, (6, 6)).astype(np.float32))

    def decode(scores: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        steps = tf.transpose(scores, [1, 0, 2])

        def forward(best: Any, given: Any) -> Any:
            (score, _), (emitted, i) = best, given
            each = score[:, :, None] + model.moves
            inside = (i < lengths)[:, None]
            new, came = tf.reduce_max(each, 1) + emitted, tf.argmax(each, 1, tf.int32)
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
    return _of_function(folder, model, decode, feeds, [tf.TensorSpec([None, None, 6], name="scores"),
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
    return _of_function(folder, tf.Module(), work, {"x": x, "text": TEXTS},
                        [tf.TensorSpec([None, 5], name="x"), tf.TensorSpec([None], tf.string, name="text")])


def switch_case(folder: Path) -> dict[str, Any]:
    """An expert chosen by tf.switch_case for each row, each with weights of its own, nested in tf.cond."""
    rng = np.random.default_rng(SEED)
    model = tf.Module()
    model.experts = [tf.Variable(rng.normal(0, 1, (4, 4)).astype(np.float32)) for _ in range(3)]

    def mixture(x: tf.Tensor, experts: tf.Tensor, doubled: tf.Tensor) -> dict[str, tf.Tensor]:
        def row(given: Any) -> tf.Tensor:
            values, expert = given
            branches = [lambda w=w: tf.linalg.matvec(w, values) for w in model.experts]
            return tf.switch_case(expert, branches, default=lambda: tf.zeros([4]))

        y = tf.map_fn(row, (x, experts), fn_output_signature=tf.float32)
        return {"y": tf.cond(doubled, lambda: tf.cond(tf.size(x) > 4, lambda: y * 2, lambda: y * 3), lambda: y)}

    feeds = {"x": rng.normal(0, 1, (5, 4)).astype(np.float32), "experts": np.array([2, 0, 9, 1, 1], np.int32),
             "doubled": np.bool_(True)}
    return _of_function(folder, model, mixture, feeds, [
        tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([None], tf.int32, name="experts"),
        tf.TensorSpec([], tf.bool, name="doubled")])


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
            steps, most = tf.transpose(x, [1, 0, 2]), tf.shape(x)[1]
            given = tf.TensorArray(tf.float32, most).unstack(steps)
            made = tf.TensorArray(tf.float32, most, element_shape=[None, 8])
            zero = tf.zeros([tf.shape(x)[0], 8])

            def step(i: Any, c: Any, h: Any, made: Any) -> Any:
                gates = tf.concat([given.read(i), h], 1) @ kernel + bias
                enter, new, forget, out = tf.split(gates, 4, 1)
                c_new = c * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
                h_new = tf.tanh(c_new) * tf.sigmoid(out)
                inside = (i < lengths)[:, None]
                some = tf.cond(i >= tf.reduce_min(lengths), lambda: tf.where(inside, h_new, 0.0), lambda: h_new)
                return i + 1, tf.where(inside, c_new, c), tf.where(inside, h_new, h), made.write(i, some)

            _, _, h, made = v1.while_loop(lambda i, *_: i < most, step, (0, zero, zero, made))
            fetches = {"outputs": tf.transpose(made.stack(), [1, 0, 2]), "state": h}
            form = _graph(folder, graph, {"x": x, "lengths": lengths}, fetches)
    finally:
        v1.enable_control_flow_v2()
    return _case(folder, {"graph": form}, feeds, _run_session(folder, form, feeds))


def dynamic_rnn_of_cells(folder: Path) -> dict[str, Any]:
    """tf.compat.v1.nn.dynamic_rnn of an LSTMCell with peepholes, with its variables and frozen as TF1 freezes."""
    from tensorflow.python.keras.layers.legacy_rnn.rnn_cell_impl import LSTMCell

    rng = np.random.default_rng(SEED)
    feeds = {"x": rng.normal(0, 1, (3, 9, 5)).astype(np.float32), "lengths": np.array([9, 2, 5], np.int32)}
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x, lengths = v1.placeholder(tf.float32, [None, None, 5], "x"), v1.placeholder(tf.int32, [None], "lengths")
            cell = LSTMCell(8, use_peepholes=True, initializer=_varied)
            outputs, state = v1.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
            fetches = {"outputs": tf.identity(outputs, "outputs"), "state": tf.identity(state.h, "state")}
            init = v1.global_variables_initializer()
            form = _graph(folder, graph, {"x": x, "lengths": lengths}, fetches, [init])
            with v1.Session() as session:
                session.run(init)
                frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), [*fetches])
    finally:
        v1.enable_control_flow_v2()
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
    forms = {"graph": form, "frozen": {**form, "path": "frozen.pb", "before": []}}
    return _case(folder, forms, feeds, _run_session(folder, form, feeds))


def _varied(shape: Sequence[int], **_: Any) -> Any:
    """An initializer that gives the same values everywhere."""
    return tf.constant(np.random.default_rng(SEED).normal(0, 0.4, shape).astype(np.float32))


def training(folder: Path, optimizer: Callable[[], Any], *, resources: bool) -> dict[str, Any]:
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
        form = _graph(folder, graph, {"x": x, "y": y}, {"loss": loss}, [init], [train], STEPS)
    return _case(folder, {"graph": form}, feeds, _run_session(folder, form, feeds))


def training_of_embeddings(folder: Path, optimizer: Callable[[], Any], *, resources: bool) -> dict[str, Any]:
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
        form = _graph(folder, graph, {"ids": ids, "y": y}, {"loss": loss}, [v1.global_variables_initializer()], [train],
                      STEPS)
    return _case(folder, {"graph": form}, feeds, _run_session(folder, form, feeds))


def training_on_device(folder: Path) -> dict[str, Any]:
    """A SavedModel whose signature trains a Keras GRU by a step of Keras' Adam, and returns the loss."""
    model = keras.Sequential([keras.Input((7, 4)), layers.GRU(8), layers.Dense(1)])
    _vary(model)
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
    holder.model, holder.optimizer_state = model, [each.value for each in optimizer.variables]
    form = {**_saved(folder, holder, train), "steps": STEPS}
    losses = [train(*map(tf.constant, feeds.values()))["loss"].numpy() for _ in range(STEPS)]
    return _case(folder, {"SavedModel": form}, feeds, {"loss": np.stack(losses)})


def training_of_a_loop(folder: Path) -> dict[str, Any]:
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
        form = _graph(folder, graph, {"x": x, "y": y}, {"loss": loss}, [v1.global_variables_initializer()], [train],
                      STEPS)
    return _case(folder, {"graph": form}, feeds, _run_session(folder, form, feeds))


def _vary(model: Any) -> None:
    rng = np.random.default_rng(SEED)
    for weights in model.weights:
        weights.assign(rng.normal(0, 0.4, weights.shape))


def _of_function(
    folder: Path, holder: Any, function: Callable[..., Any], feeds: Arrays, signature: Sequence[Any]
) -> dict[str, Any]:
    """An application of one function in three forms. The function returns a dict."""
    traced = tf.function(function, input_signature=signature)
    if not isinstance(holder, tf.Module):  # a Keras model
        model, holder = holder, tf.Module()
        holder.model = model
    concrete = traced.get_concrete_function()
    forms = {"SavedModel": _saved(folder, holder, traced)}
    names = {name: index for index, name in enumerate(sorted(concrete.structured_outputs))}
    forms |= _frozen(folder, concrete, names)
    return _case(folder, forms, feeds, traced(*(tf.constant(array) for array in feeds.values())))


def _saved(folder: Path, holder: Any, function: Any) -> dict[str, Any]:
    holder.serve = function
    tf.saved_model.save(holder, str(folder / "saved_model"), signatures=function)
    return {"path": "saved_model"}


def _frozen(folder: Path, concrete: Any, names: Mapping[str, int]) -> dict[str, Any]:
    forms = {}
    for form, path, lowered in (("frozen", "frozen.pb", False), ("frozen, lowered", "lowered.pb", True)):
        frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lowered)
        (folder / path).write_bytes(frozen.graph.as_graph_def().SerializeToString())
        forms[form] = {"path": path, "feeds": {tensor.op.name: tensor.name for tensor in frozen.inputs},
                       "fetches": {name: frozen.outputs[index].name for name, index in names.items()}}
    return forms


def _graph(
    folder: Path, graph: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any], before: Sequence[Any] = (),
    targets: Sequence[Any] = (), steps: int = 0,
) -> dict[str, Any]:
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return {"path": "graph.pb", "feeds": {name: tensor.name for name, tensor in feeds.items()},
            "fetches": {name: tensor.name for name, tensor in fetches.items()},
            "before": [op.name for op in before], "targets": [op.name for op in targets], "steps": steps}


def _run_session(folder: Path, form: Mapping[str, Any], feeds: Arrays) -> dict[str, np.ndarray]:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(v1.GraphDef.FromString((folder / form["path"]).read_bytes()), name="")
    given = {tensor: feeds[name] for name, tensor in form["feeds"].items()}
    fetched, steps = [*form["fetches"].values(), *form.get("targets", ())], form.get("steps", 0)
    with v1.Session(graph=graph) as session:
        for node in form.get("before", ()):
            session.run(node)
        runs = [session.run(fetched, given) for _ in range(steps or 1)]
    columns = zip(*(run[:len(form["fetches"])] for run in runs), strict=True)
    return {name: np.stack(column) if steps else column[0]
            for name, column in zip(form["fetches"], columns, strict=True)}


def _runs(folder: Path, name: str, form: Mapping[str, Any], feeds: Arrays) -> bool:
    """True if TensorFlow itself runs the file that it made; else the reason is printed."""
    if "fetches" not in form:
        return True
    try:
        _run_session(folder, form, feeds)
    except (tf.errors.OpError, ValueError) as error:
        print(f"{folder.name}, {name}: left out, since TensorFlow cannot run it: {str(error).splitlines()[0]}",
              file=sys.stderr)
        return False
    return True


def _case(folder: Path, forms: Mapping[str, Any], feeds: Arrays, results: Mapping[str, Any]) -> dict[str, Any]:
    arrays = {f"in/{name}": np.asarray(array) for name, array in feeds.items()}
    arrays |= {f"out/{name}": np.asarray(value) for name, value in results.items()}
    plain = {name: array.astype(bytes) if array.dtype == object else array for name, array in arrays.items()}
    np.savez(folder / "arrays.npz", **plain)
    return {"tolerance": TOLERANCE,
            "forms": {name: form for name, form in forms.items() if _runs(folder, name, form, feeds)}}


def _momentum() -> Any:
    return v1.train.MomentumOptimizer(0.05, 0.9)


APPLICATIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "text classifier, LSTM": lambda folder: text_classifier(folder, layers.LSTM(16)),
    "text classifier, GRU": lambda folder: text_classifier(folder, layers.GRU(16)),
    "string lookup": string_lookup,
    "masked bidirectional RNN": bidirectional,
    "generation, transformer": generation,
    "generation, GRU with branches": branching_generation,
    "beam search": beam_search,
    "detection": detection,
    "CRF": crf,
    "map_fn, scan, foldl": maps_and_scans,
    "switch_case": switch_case,
    "TF1 loop of TensorArrays": v1_loop,
    "TF1 dynamic_rnn of LSTMCell": dynamic_rnn_of_cells,
    "training, momentum, resources": lambda folder: training(folder, _momentum, resources=True),
    "training, momentum, references": lambda folder: training(folder, _momentum, resources=False),
    "training, Adam, resources": lambda folder: training(folder, v1.train.AdamOptimizer, resources=True),
    "training, Adam, references": lambda folder: training(folder, v1.train.AdamOptimizer, resources=False),
    "training, SGD, references": lambda folder: training(
        folder, lambda: v1.train.GradientDescentOptimizer(0.05), resources=False),
    "training, embeddings, momentum, resources": lambda folder: training_of_embeddings(
        folder, _momentum, resources=True),
    "training, embeddings, momentum, references": lambda folder: training_of_embeddings(
        folder, _momentum, resources=False),
    "training, embeddings, Adam, resources": lambda folder: training_of_embeddings(
        folder, v1.train.AdamOptimizer, resources=True),
    "training of an LSTM's loop": training_of_a_loop,
    "training signature, GRU, Adam": training_on_device,
}


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tf.get_logger().setLevel("ERROR")
    failed = False
    names = [name for name in APPLICATIONS if not sys.argv[2:] or any(word in name for word in sys.argv[2:])]
    for name in names:
        folder = Path(sys.argv[1]) / name.replace(",", "").replace("'", "").replace(" ", "_").lower()
        folder.mkdir(parents=True, exist_ok=True)
        keras.utils.set_random_seed(SEED)
        try:
            case = {"application": name, **APPLICATIONS[name](folder)}
        except Exception as error:  # noqa: BLE001 - the others are made all the same
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
            continue
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
        print(name)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
