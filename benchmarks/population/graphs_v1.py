"""Graphs of TensorFlow 1.15's style: reference variables, loops of frames, queues, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from cases import Graph
from weights import Rng, ids, normal

v1 = tf.compat.v1


def in_v1(build: Callable[..., Graph]) -> Callable[..., Graph]:
    """Build in a graph with the control flow and the variables of TensorFlow 1."""

    @wraps(build)
    def maker(rng: Rng, **arguments: Any) -> Graph:
        v1.disable_control_flow_v2()
        v1.disable_resource_variables()
        with tf.Graph().as_default():
            v1.set_random_seed(7)
            return build(rng, **arguments)

    return maker


def _variable(name: str, array: np.ndarray, **arguments: Any) -> Any:
    return v1.get_variable(name, initializer=array, **arguments)


def _graph(feeds: dict, fetches: dict, calls: list, form: str, **arguments: Any) -> Graph:
    graph = v1.get_default_graph()
    if form != "session":
        arguments.setdefault("before", [v1.global_variables_initializer(), v1.tables_initializer()])
    return Graph(graph, feeds, fetches, calls, form, **arguments)


@in_v1
def perceptron(rng: Rng, form: str) -> Graph:
    x = v1.placeholder(tf.float32, [None, 8], "x")
    with v1.variable_scope("net"):
        h = tf.nn.relu(x @ _variable("w1", normal(rng, 8, 16)) + _variable("b1", normal(rng, 16, scale=0.3)))
        logits = tf.nn.bias_add(h @ _variable("w2", normal(rng, 16, 4)), _variable("b2", normal(rng, 4, scale=0.3)))
    return _graph(
        {"x": x}, {"classes": tf.nn.softmax(logits, name="classes")}, [{"x": normal(rng, 5, 8, scale=1.0)}], form
    )


@in_v1
def convolutions(rng: Rng, form: str) -> Graph:
    """Convolutions, batch normalisation in inference, pooling, local response normalisation."""
    x = v1.placeholder(tf.float32, [None, 16, 16, 3], "images")
    h = tf.nn.conv2d(x, _variable("k1", normal(rng, 3, 3, 3, 8, scale=0.3)), strides=[1, 1, 1, 1], padding="SAME")
    h, *_ = v1.nn.fused_batch_norm(
        h,
        _variable("scale", rng.uniform(0.5, 2, 8).astype(np.float32)),
        _variable("offset", normal(rng, 8, scale=0.3)),
        _variable("mean", normal(rng, 8, scale=0.3)),
        _variable("variance", rng.uniform(0.5, 2, 8).astype(np.float32)),
        is_training=False,
    )
    h = v1.nn.lrn(v1.nn.max_pool(tf.nn.relu(h), [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), 2, 1.0, 0.1, 0.75)
    h = v1.nn.dropout(h, keep_prob=v1.placeholder_with_default(1.0, [], "keep"))
    flat = tf.reshape(h, [-1, 8 * 8 * 8])
    logits = v1.nn.xw_plus_b(
        flat, _variable("w", normal(rng, 512, 5)), _variable("b", normal(rng, 5, scale=0.3)), name="logits"
    )
    return _graph({"images": x}, {"logits": logits}, [{"images": normal(rng, 2, 16, 16, 3, scale=1.0)}], form)


@in_v1
def training_switch(rng: Rng, form: str) -> Graph:
    """A placeholder chooses training or inference by tf.cond."""
    x, training = v1.placeholder(tf.float32, [None, 6], "x"), v1.placeholder_with_default(False, [], "training")
    mean = _variable("mean", normal(rng, 6, scale=0.3))
    h = v1.cond(training, lambda: x - tf.reduce_mean(x, 0), lambda: x - mean)
    logits = tf.matmul(h, _variable("w", normal(rng, 6, 3)), name="logits")
    return _graph(
        {"x": x, "training": training},
        {"logits": logits},
        [{"x": normal(rng, 4, 6, scale=1.0), "training": np.bool_(flag)} for flag in (False, True)],
        form,
    )


@in_v1
def dynamic_rnn(rng: Rng, cell: str, form: str, layers: int = 1, lengths: bool = True) -> Graph:
    """dynamic_rnn over cells of TensorFlow 1 with lengths."""
    x = v1.placeholder(tf.float32, [None, None, 5], "x")
    sizes = v1.placeholder(tf.int32, [None], "lengths") if lengths else None
    kinds = v1.nn.rnn_cell
    cells = [getattr(kinds, cell)(6) for _ in range(layers)]
    stacked = kinds.MultiRNNCell(cells) if layers > 1 else cells[0]
    outputs, state = v1.nn.dynamic_rnn(stacked, x, sizes, dtype=tf.float32)
    fetches = {"outputs": tf.identity(outputs, "outputs")}
    last = tf.nest.flatten(state)[-1]
    fetches["state"] = tf.identity(last, "state")
    before = [
        v1.group(
            *[
                v1.assign(variable, normal(rng, *variable.shape.as_list(), scale=0.4))
                for variable in v1.global_variables()
            ]
        )
    ]
    feeds = {"x": x, **({"lengths": sizes} if lengths else {})}
    call = {"x": normal(rng, 3, 7, 5, scale=1.0), **({"lengths": np.array([7, 2, 5], np.int32)} if lengths else {})}
    return _graph(feeds, fetches, [call], form, before=before)


@in_v1
def bidirectional_rnn(rng: Rng, form: str) -> Graph:
    x, sizes = v1.placeholder(tf.float32, [None, None, 5], "x"), v1.placeholder(tf.int32, [None], "lengths")
    cells = [v1.nn.rnn_cell.GRUCell(4) for _ in range(2)]
    outputs, _ = v1.nn.bidirectional_dynamic_rnn(*cells, x, sizes, dtype=tf.float32)
    before = [
        v1.group(
            *[
                v1.assign(variable, normal(rng, *variable.shape.as_list(), scale=0.4))
                for variable in v1.global_variables()
            ]
        )
    ]
    return _graph(
        {"x": x, "lengths": sizes},
        {"outputs": tf.concat(outputs, 2, name="outputs")},
        [{"x": normal(rng, 3, 6, 5, scale=1.0), "lengths": np.array([6, 3, 1], np.int32)}],
        form,
        before=before,
    )


@in_v1
def raw_rnn(rng: Rng, form: str) -> Graph:
    """A decoder that feeds its own words back, by raw_rnn."""
    start = v1.placeholder(tf.int32, [None], "start")
    table = _variable("table", normal(rng, 12, 5, scale=1.0))
    cell, head = v1.nn.rnn_cell.BasicLSTMCell(6), _variable("head", normal(rng, 6, 12, scale=1.0))

    def step(time, output, state, _):
        if output is None:
            return (
                tf.zeros_like(start, tf.bool),
                tf.gather(table, start),
                cell.zero_state(tf.shape(start)[0], tf.float32),
                tf.zeros([12]),
                None,
            )
        logits = output @ head
        return tf.fill(tf.shape(start), time >= 6), tf.gather(table, tf.argmax(logits, 1)), state, logits, None

    emitted, _, _ = v1.nn.raw_rnn(cell, step)
    kernel, bias = cell.trainable_variables
    before = [
        v1.global_variables_initializer(),
        v1.group(v1.assign(kernel, normal(rng, 11, 24, scale=0.5)), v1.assign(bias, normal(rng, 24, scale=0.3))),
    ]
    return _graph(
        {"start": start},
        {"logits": tf.identity(emitted.stack(), "logits")},
        [{"start": ids(rng, 12, 3)}],
        form,
        before=before,
    )


@in_v1
def while_loop(rng: Rng, form: str) -> Graph:
    """Frames in frames: a loop with a condition inside and an inner loop."""
    x, number = v1.placeholder(tf.float32, [None, 4], "x"), v1.placeholder(tf.int32, [], "number")
    w = _variable("w", normal(rng, 4, 4, scale=0.6))

    def body(step, state):
        state = tf.tanh(v1.cond(tf.equal(step % 2, 0), lambda: state @ w, lambda: state - 0.1))
        _, state = v1.while_loop(lambda i, _: i < step, lambda i, s: (i + 1, s * 1.1), (0, state))
        return step + 1, state

    _, state = v1.while_loop(lambda step, _: step < number, body, (tf.constant(0), x), back_prop=False)
    return _graph(
        {"x": x, "number": number},
        {"state": tf.identity(state, "state")},
        [{"x": normal(rng, 3, 4, scale=1.0), "number": np.int32(number_of)} for number_of in (5, 0)],
        form,
    )


@in_v1
def maps_and_folds(rng: Rng, form: str) -> Graph:
    """map_fn, scan and foldl in frames."""
    x = v1.placeholder(tf.float32, [None, 4], "x")
    w = _variable("w", normal(rng, 4, 4, scale=0.6))
    mapped_rows = tf.map_fn(lambda row: tf.reduce_max(row) * row, x)
    scanned = tf.scan(lambda state, row: tf.tanh(tf.linalg.matvec(w, state) + row), x, tf.zeros([4]))
    folded = tf.foldr(lambda state, row: state * 0.5 + row, x)
    return _graph(
        {"x": x},
        {
            "mapped": tf.identity(mapped_rows, "mapped"),
            "scanned": tf.identity(scanned, "scanned"),
            "folded": tf.identity(folded, "folded"),
        },
        [{"x": normal(rng, n, 4, scale=1.0)} for n in (5, 1)],
        form,
    )


@in_v1
def partitioned_variables(rng: Rng, form: str) -> Graph:
    """Variables in parts, looked up by mod and by div."""
    tokens = v1.placeholder(tf.int32, [None, None], "tokens")
    with v1.variable_scope("parts", partitioner=v1.fixed_size_partitioner(3)):
        table = v1.get_variable("table", [20, 6], initializer=v1.random_uniform_initializer(-1, 1, seed=3))
    embedded = v1.nn.embedding_lookup(table, tokens, partition_strategy="div")
    parts = [_variable(f"part_{index}", normal(rng, 7, 6, scale=1.0)) for index in range(3)]
    other = v1.nn.embedding_lookup(parts, tokens, partition_strategy="mod")
    return _graph(
        {"tokens": tokens},
        {"y": tf.reduce_sum(embedded * other, 2, name="y"), "mean": tf.reduce_mean(embedded, 1, name="mean")},
        [{"tokens": ids(rng, 20, 3, 4)}],
        form,
    )


@in_v1
def text_table(rng: Rng, form: str, folder: Path) -> Graph:
    """A vocabulary file as an asset, a table, embeddings and a mean by lengths."""
    path = folder / "words.txt"
    path.write_text("red\ngreen\nblue\n")
    texts = v1.placeholder(tf.string, [None], "texts")
    asset = tf.constant(str(path), name="words_file")
    v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
    initializer = tf.lookup.TextFileInitializer(
        asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    table = v1.lookup.StaticVocabularyTable(initializer, 2)
    words = v1.string_split(texts, " ")
    indices = tf.sparse.to_dense(
        tf.SparseTensor(words.indices, table.lookup(words.values), words.dense_shape), default_value=-1
    )
    embedded = tf.nn.embedding_lookup(_variable("table", normal(rng, 5, 4, scale=1.0)), tf.maximum(indices, 0))
    inside = tf.cast(indices >= 0, tf.float32)[..., None]
    mean = tf.math.divide_no_nan(tf.reduce_sum(embedded * inside, 1), tf.reduce_sum(inside, 1), name="mean")
    return _graph(
        {"texts": texts},
        {"mean": mean},
        [{"texts": np.array([b"red blue violet", b"green", b""], object)}],
        form,
        main_op=v1.tables_initializer(),
        assets=[asset],
    )


text_table.wants_folder = True  # type: ignore[attr-defined]


@in_v1
def momentum_training(rng: Rng, optimizer: str, form: str = "session") -> Graph:
    """The initialisers run first, and each run trains by an optimizer of TensorFlow 1."""
    x, y = v1.placeholder(tf.float32, [None, 5], "x"), v1.placeholder(tf.int32, [None], "y")
    w, b = _variable("w", normal(rng, 5, 3)), _variable("b", np.zeros(3, np.float32))
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
    makers = {
        "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adam": lambda: v1.train.AdamOptimizer(0.05),
        "adagrad": lambda: v1.train.AdagradOptimizer(0.2),
        "rmsprop": lambda: v1.train.RMSPropOptimizer(0.05, centered=True),
        "ftrl": lambda: v1.train.FtrlOptimizer(0.2, l1_regularization_strength=0.001),
        "adadelta": lambda: v1.train.AdadeltaOptimizer(1.0),
    }
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.3, step, 2, 0.5)
    maker = makers.get(optimizer, lambda: v1.train.GradientDescentOptimizer(rate))
    train = maker().minimize(loss, global_step=step, name="train")
    calls = [{"x": normal(rng, 8, 5, scale=1.0), "y": ids(rng, 3, 8)} for _ in range(4)]
    return _graph(
        {"x": x, "y": y},
        {"loss": loss, "logits": tf.identity(logits, "logits")},
        calls,
        form,
        before=[v1.global_variables_initializer()],
        targets=[train],
    )


@in_v1
def counting_initializers(rng: Rng, form: str = "session") -> Graph:
    """Random initialisers with seeds, a variable that begins with another's value, and counters."""
    x = v1.placeholder(tf.float32, [None, 4], "x")
    w = v1.get_variable("w", [4, 4], initializer=v1.glorot_uniform_initializer(seed=5))
    u = v1.get_variable("u", [4, 4], initializer=v1.truncated_normal_initializer(stddev=0.5, seed=6))
    twice = v1.get_variable("twice", initializer=2 * w.initialized_value())
    count = v1.get_variable("count", initializer=0)
    counted = v1.assign_add(count, 1)
    with tf.control_dependencies([counted]):
        y = tf.identity(x @ w + x @ u - x @ twice + tf.cast(count, tf.float32), "y")
    return _graph(
        {"x": x},
        {"y": y},
        [{"x": normal(rng, 2, 4, scale=1.0)} for _ in range(2)],
        form,
        before=[v1.variables_initializer([w, u, count]), v1.global_variables_initializer()],
    )


@in_v1
def queue(rng: Rng, kind: str, form: str = "session") -> Graph:
    """A queue is filled once; each run takes elements and returns others."""
    x = v1.placeholder(tf.float32, [None, 3], "x")
    makers = {
        "fifo": lambda: v1.FIFOQueue(20, [tf.float32], shapes=[[3]]),
        "priority": lambda: v1.PriorityQueue(20, [tf.float32], shapes=[[3]]),
        "padding": lambda: v1.PaddingFIFOQueue(20, [tf.float32], shapes=[[None]]),
    }
    source, start = makers[kind](), normal(rng, 6, 3, scale=1.0)
    if kind == "priority":
        fill = source.enqueue_many([tf.constant([5, 3, 9, 1, 7, 2], tf.int64), start])
        elements = source.dequeue_many(2)[1]
    elif kind == "padding":
        fill, elements = v1.group(*[source.enqueue([start[0, :2]]) for _ in range(4)]), source.dequeue_many(2)
    else:
        fill, elements = source.enqueue_many([start]), source.dequeue_many(2)
    with tf.control_dependencies([elements]):
        if kind == "padding":
            with tf.control_dependencies([source.enqueue([x[0]])]):
                back = source.enqueue([x[1]])
        else:
            priorities = [tf.cast(tf.range(tf.shape(x)[0]), tf.int64)] if kind == "priority" else []
            back = source.enqueue_many([*priorities, x])
    return _graph(
        {"x": x},
        {"elements": tf.identity(elements, "elements")},
        [{"x": normal(rng, 2, 3, scale=1.0)} for _ in range(2)],
        form,
        before=[fill],
        targets=[back],
    )


@in_v1
def input_placeholders(rng: Rng, form: str) -> Graph:
    """Serving that decodes tf.Examples by the ops of TensorFlow 1."""
    examples = v1.placeholder(tf.string, [None], "examples")
    row = v1.parse_example(examples, {"x": v1.FixedLenFeature([4], tf.float32), "tags": v1.VarLenFeature(tf.string)})
    tags = v1.string_to_hash_bucket_fast(row["tags"].values, 10)
    sums = v1.sparse_tensor_to_dense(tf.SparseTensor(row["tags"].indices, tags, row["tags"].dense_shape), -1)
    logits = tf.matmul(row["x"], _variable("w", normal(rng, 4, 3)), name="logits")
    rows = np.empty(2, object)
    rows[:] = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(0, 1, 4).tolist())),
                    "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"bc"][:number])),
                }
            )
        ).SerializeToString()
        for number in (2, 1)
    ]
    return _graph(
        {"examples": examples}, {"logits": logits, "tags": tf.identity(sums, "tags")}, [{"examples": rows}], form
    )


@in_v1
def resized_maps(rng: Rng, form: str) -> Graph:
    """Separable, dilated and transposed convolutions, and both resizes of TensorFlow 1."""
    x = v1.placeholder(tf.float32, [None, 12, 12, 3], "images")
    h = v1.nn.separable_conv2d(
        x,
        _variable("d", normal(rng, 3, 3, 3, 2, scale=0.4)),
        _variable("p", normal(rng, 1, 1, 6, 8, scale=0.4)),
        [1, 1, 1, 1],
        "SAME",
    )
    h = v1.image.resize_bilinear(tf.nn.crelu(h), [20, 20], align_corners=True)
    h = v1.image.resize_nearest_neighbor(h, [10, 10])
    h = tf.nn.atrous_conv2d(h, _variable("a", normal(rng, 3, 3, 16, 4, scale=0.2)), 2, "SAME")
    h = v1.nn.conv2d_transpose(
        h, _variable("t", normal(rng, 2, 2, 3, 4, scale=0.4)), tf.stack([tf.shape(x)[0], 20, 20, 3]), [1, 2, 2, 1]
    )
    return _graph(
        {"images": x},
        {"images_out": tf.sigmoid(h, name="images_out")},
        [{"images": normal(rng, 2, 12, 12, 3, scale=1.0)}],
        form,
    )


@in_v1
def residual_network(rng: Rng, form: str, blocks: int = 4) -> Graph:
    """A ResNet in the manner of slim: NCHW to NHWC, padding by hand, batch normalisation of TensorFlow 1."""
    x = v1.placeholder(tf.float32, [None, 3, 24, 24], "images")
    h = tf.transpose(x, [0, 2, 3, 1])
    widths = [3, *[8] * blocks]
    for index, (before, after) in enumerate(pairwise(widths)):
        with v1.variable_scope(f"block{index}"):
            y = tf.pad(h, [[0, 0], [1, 1], [1, 1], [0, 0]])
            y = tf.nn.conv2d(
                y, _variable("k", normal(rng, 3, 3, before, after, scale=0.2)), strides=[1, 1, 1, 1], padding="VALID"
            )
            y = tf.nn.batch_normalization(
                y,
                _variable("mean", normal(rng, after, scale=0.2)),
                _variable("variance", rng.uniform(0.5, 2, after).astype(np.float32)),
                _variable("beta", normal(rng, after, scale=0.2)),
                _variable("gamma", rng.uniform(0.5, 2, after).astype(np.float32)),
                1e-3,
            )
            h = tf.nn.relu(y if before != after else y + h)
    logits = tf.matmul(tf.reduce_mean(h, [1, 2]), _variable("w", normal(rng, 8, 5, scale=1.0)), name="logits")
    return _graph({"images": x}, {"logits": logits}, [{"images": normal(rng, 2, 3, 24, 24, scale=1.0)}], form)


@in_v1
def feature_columns(rng: Rng, form: str = "saved model") -> Graph:
    """Feature columns: buckets, embeddings, crosses, indicators into a dense layer."""
    column = tf.feature_column
    age, city = v1.placeholder(tf.float32, [None, 1], "age"), v1.placeholder(tf.string, [None, 1], "city")
    number = column.numeric_column("age")
    cities = column.categorical_column_with_vocabulary_list("city", ["Bern", "Basel", "Zug"], num_oov_buckets=1)
    buckets = column.bucketized_column(number, [20, 40, 60])
    crossed = column.indicator_column(column.crossed_column([buckets, "city"], 7))
    embedded = column.embedding_column(cities, 3, initializer=v1.random_normal_initializer(seed=2))
    features = v1.feature_column.input_layer(
        {"age": age, "city": city}, [number, buckets, crossed, embedded, column.indicator_column(cities)]
    )
    width = features.shape[1]
    logits = tf.matmul(
        features / [30.0, *[1.0] * (width - 1)], _variable("w", normal(rng, width, 2, scale=0.5)), name="logits"
    )
    call = {
        "age": rng.uniform(10, 70, (4, 1)).astype(np.float32),
        "city": np.array([[b"Bern"], [b"Genf"], [b"Zug"], [b"Basel"]], object),
    }
    return _graph({"age": age, "city": city}, {"logits": logits}, [call], form, main_op=v1.tables_initializer())


@in_v1
def hash_tables(rng: Rng, form: str = "session") -> Graph:
    """Tables of TensorFlow 1: their initialisers are nodes that the session runs."""
    words = v1.placeholder(tf.string, [None], "words")
    table = v1.lookup.StaticHashTable(
        v1.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64)), -1
    )
    indices = tf.identity(table.lookup(words), "indices")
    y = tf.gather(_variable("y", normal(rng, 6, 2, scale=1.0)), indices + 1, name="y")
    return _graph(
        {"words": words},
        {"indices": indices, "y": y},
        [{"words": np.array([b"a", b"c", b"b"], object)}],
        form,
        before=[v1.tables_initializer(), v1.global_variables_initializer()],
    )
