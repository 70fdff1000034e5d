"""The kernels of CPU:0 beside the same maths in NumPy, as a user would write it: about a million elements each.

    OPENBLAS_NUM_THREADS=1 python benchmarks/kernels.py [WORD ...]    (only rows with one of these words in their name)

A step of a session runs one node: its inputs are fed, its first output is a new array, as NumPy's is. Inputs that
determine shapes (an axis, paddings, a size) are constants. A check first compares the results of both sides. They run
in turns, and the least time of each counts. A ratio below 1 means that heald is faster. On a busy machine products on
several threads wait for the slowest thread, for milliseconds at a time: hence the variable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import heald
import ml_dtypes
import numpy as np
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from numpy.lib.stride_tricks import sliding_window_view
from tabulate import tabulate
from timing import TURN, Work, least, seconds

ENOUGH = 0.6  # seconds that a row takes, unless it needs more for so many turns
TURNS = 4
MUCH = 1.3

RNG = np.random.default_rng(0)
SIDE = 1024
X, Y, Z = RNG.standard_normal((3, SIDE, SIDE), np.float32)
POSITIVE, OTHER = np.abs(X) + np.float32(0.1), np.abs(Y) + np.float32(0.1)
VECTOR = X[0].copy()
LOGITS = RNG.standard_normal((1000, SIDE), np.float32)
IS, JS = RNG.integers(1, 1000, (2, SIDE, SIDE), np.int32)
LONGS, LONGS_2 = IS.astype(np.int64), JS.astype(np.int64)
MASK, MASK_2 = X > 0, Y > 0
C, D = X + 1j * Y, Y + 1j * Z
A, B = RNG.standard_normal((2, 512, 512), np.float32)
BATCH_A, BATCH_B = RNG.standard_normal((2, 64, 128, 128), np.float32)
PICKS = RNG.integers(0, SIDE, SIDE, np.int32)
PAIRS = RNG.integers(0, SIDE, (1 << 16, 2), np.int32)
IDS = np.sort(PICKS)
CLASSES = RNG.integers(0, 100, 10_000, np.int32)
IMAGES = RNG.standard_normal((5, 56, 56, 64), np.float32)
LARGE = RNG.random((1, 112, 112, 3), np.float32)
FILTER = RNG.standard_normal((3, 3, 64, 64), np.float32)
TAPS = RNG.standard_normal((3, 3, 64, 1), np.float32)
SCALE, OFFSET, MEAN, VARIANCE = RNG.random((4, 64), np.float32)


class Row(NamedTuple):
    op: str
    attrs: dict[str, Any]
    inputs: tuple[Any, ...]  # arrays are fed, a list is one input of several arrays; all other inputs are constants
    numpy: Callable[..., Any]  # takes the arrays
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.op} {self.note}".rstrip()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def erf(x: np.ndarray) -> np.ndarray:
    from scipy import special

    return special.erf(x)


def batch_norm(x: np.ndarray, scale: np.ndarray, offset: np.ndarray, *moments: np.ndarray) -> np.ndarray:
    mean, variance = moments or (x.mean((0, 1, 2)), x.var((0, 1, 2)))
    return (x - mean) * (scale / np.sqrt(variance + np.float32(1e-3))) + offset


def windows_of(x: np.ndarray) -> np.ndarray:
    """The 3x3 windows of padded images, each as [height, width, channel]."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return sliding_window_view(padded, (3, 3), (1, 2)).transpose(0, 1, 2, 4, 5, 3)


def conv(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (windows_of(x).reshape(-1, 9 * x.shape[-1]) @ w.reshape(-1, w.shape[-1])).reshape(*x.shape[:-1], -1)


def depthwise(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.einsum("nhwijc,ijc->nhwc", windows_of(x), w[..., 0])


def blocks(x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c)


def bilinear(x: np.ndarray) -> np.ndarray:
    """Twice as high and wide, with half-pixel centers."""
    for axis in (1, 2):
        length = x.shape[axis]
        places = ((np.arange(2 * length) + 0.5) / 2 - 0.5).clip(0, length - 1)
        lower = places.astype(int)
        weight = (places - lower).astype(x.dtype).reshape(-1, *(1,) * (3 - axis))
        first, second = x.take(lower, axis), x.take(np.minimum(lower + 1, length - 1), axis)
        x = first + (second - first) * weight
    return x


def one_hot(classes: np.ndarray, on: np.ndarray, off: np.ndarray) -> np.ndarray:
    return np.where(classes[:, None] == np.arange(100), on, off)


def segment_sum(x: np.ndarray, ids: np.ndarray) -> np.ndarray:
    out = np.zeros((ids[-1] + 1, *x.shape[1:]), x.dtype)
    np.add.at(out, ids, x)
    return out


def top_k(x: np.ndarray) -> np.ndarray:
    places = np.argpartition(-x, 10, -1)[:, :10]
    return -np.sort(-np.take_along_axis(x, places, -1), -1)


def scatter(indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    out = np.zeros((SIDE, SIDE), updates.dtype)
    np.add.at(out, tuple(indices.T), updates)
    return out


def elementwise() -> Iterator[Row]:
    for op, function in {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide,
                         "Maximum": np.maximum}.items():
        yield Row(op, {}, (X, Y), function)
    for op, function in {
        "Abs": np.abs, "Neg": np.negative, "Square": np.square, "Exp": np.exp, "Tanh": np.tanh, "Sin": np.sin,
        "Floor": np.floor, "Round": np.round, "Sign": np.sign, "Sigmoid": sigmoid,
        "Softplus": lambda x: np.logaddexp(x, np.float32(0)), "Softsign": lambda x: x / (1 + np.abs(x)),
        "Elu": lambda x: np.where(x > 0, x, np.expm1(x)), "Relu": lambda x: np.maximum(x, 0),
        "Relu6": lambda x: x.clip(0, 6), "IsNan": np.isnan,
    }.items():
        yield Row(op, {}, (X,), function)
    for op, function in {"Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x), "Log": np.log, "Log1p": np.log1p}.items():
        yield Row(op, {}, (POSITIVE,), function)
    if find_spec("scipy"):
        yield Row("Erf", {}, (X,), erf)
    yield Row("AddV2", {}, (X, VECTOR), np.add, "of a row")
    yield Row("LeakyRelu", {"alpha": 0.2}, (X,), lambda x: np.where(x > 0, x, x * np.float32(0.2)))
    yield Row("SquaredDifference", {}, (X, Y), lambda x, y: (x - y) ** 2)
    yield Row("Pow", {}, (POSITIVE, Y), np.power)
    yield Row("FloorDiv", {}, (X, OTHER), lambda x, y: np.floor(x / y), "float")
    yield Row("FloorMod", {}, (X, OTHER), np.mod, "float")
    yield Row("DivNoNan", {}, (X, OTHER), lambda x, y: np.where(y == 0, 0, x / y))
    yield Row("AddN", {}, ([X, Y, Z],), lambda x, y, z: x + y + z, "of 3")
    low, high = np.float32([-0.5, 0.5])
    yield Row("ClipByValue", {}, (X, np.array(low), np.array(high)), np.clip)
    for op, function in {"Greater": np.greater, "Equal": np.equal}.items():
        yield Row(op, {}, (X, Y), function)
    yield Row("LogicalAnd", {}, (MASK, MASK_2), np.logical_and)
    yield Row("SelectV2", {}, (MASK, X, Y), np.where)
    for op, function in {"AddV2": np.add, "FloorDiv": np.floor_divide, "FloorMod": np.mod,
                         "BitwiseAnd": np.bitwise_and, "LeftShift": np.left_shift}.items():
        yield Row(op, {}, (IS, JS % 30 if op == "LeftShift" else JS), function, "int32")
    for op, function in {"FloorDiv": np.floor_divide, "FloorMod": np.mod}.items():
        yield Row(op, {}, (LONGS, LONGS_2), function, "int64")
    yield Row("Mul", {}, (C, D), np.multiply, "complex64")
    yield Row("ComplexAbs", {}, (C,), np.abs)


def casts() -> Iterator[Row]:
    for x, to in ((X, np.int32), (X, np.float64), (X, np.float16), (X, ml_dtypes.bfloat16), (IS, np.float32),
                  (LONGS, np.int32), (MASK, np.float32), (X, np.bool_)):
        target = np.dtype(to)
        yield Row("Cast", {"DstT": dtypes.of_numpy(target)}, (x,), lambda x, to=target: x.astype(to),
                  f"{x.dtype} to {target}")


def reductions() -> Iterator[Row]:
    for op, function in {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Prod": np.prod}.items():
        for axis in (1, 0):
            yield Row(op, {}, (X, (axis,)), partial(function, axis=axis), f"axis {axis}")
    yield Row("Sum", {}, (X, (0, 1)), np.sum, "of all")
    yield Row("All", {}, (MASK, (1,)), partial(np.all, axis=1), "axis 1")
    for axis in (1, 0):
        yield Row("ArgMax", {}, (X, axis), partial(np.argmax, axis=axis), f"axis {axis}")
        yield Row("Cumsum", {}, (X, axis), partial(np.cumsum, axis=axis), f"axis {axis}")
    yield Row("L2Loss", {}, (X,), lambda x: (x * x).sum() / 2)
    yield Row("Softmax", {}, (LOGITS,), softmax)
    yield Row("LogSoftmax", {}, (LOGITS,), log_softmax)
    yield Row("TopKV2", {}, (X, 10), top_k, "10 of rows")
    yield Row("SegmentSum", {}, (X, IDS), segment_sum)
    yield Row("UnsortedSegmentSum", {}, (X, PICKS, SIDE), segment_sum_into)


def segment_sum_into(x: np.ndarray, ids: np.ndarray) -> np.ndarray:
    out = np.zeros((SIDE, *x.shape[1:]), x.dtype)
    np.add.at(out, ids, x)
    return out


def products() -> Iterator[Row]:
    yield Row("MatMul", {}, (A, B), np.matmul, "512")
    yield Row("MatMul", {"transpose_b": True}, (A, B), lambda a, b: a @ b.T, "512, transposed")
    yield Row("BatchMatMulV2", {}, (BATCH_A, BATCH_B), np.matmul, "64 of 128")
    yield Row("Einsum", {"equation": "bij,bjk->bik"}, ([BATCH_A, BATCH_B],),
              partial(np.einsum, "bij,bjk->bik", run_passes=True))


def arrays() -> Iterator[Row]:
    yield Row("Transpose", {}, (X, (1, 0)), lambda x: x.T.copy())
    for axis in (0, 1):
        yield Row("ConcatV2", {}, ([X, Y], axis), lambda *xs, axis=axis: np.concatenate(xs, axis), f"axis {axis}")
        yield Row("GatherV2", {}, (X, PICKS, axis), partial(np.take, axis=axis), f"axis {axis}")
    yield Row("GatherNd", {}, (X, PAIRS), lambda x, i: x[tuple(i.T)], "of 65,536 elements")
    yield Row("ScatterNd", {}, (PAIRS, X.ravel()[: 1 << 16].copy(), (SIDE, SIDE)), scatter, "of 65,536 elements")
    yield Row("Pack", {"axis": 1}, ([X, Y],), lambda *xs: np.stack(xs, 1), "axis 1")
    yield Row("OneHot", {}, (CLASSES, 100, np.array(1, np.float32), np.array(0, np.float32)), one_hot, "100 of 10,000")
    yield Row("Where", {}, (MASK,), np.argwhere)
    yield Row("StridedSlice", {"begin_mask": 3, "end_mask": 3}, (X, (0, 0), (0, 0), (2, 2)),
              lambda x: x[::2, ::2].copy(), "::2, ::2")
    yield Row("Slice", {}, (X, (10, 10), (1000, 1000)), lambda x: x[10:1010, 10:1010].copy())
    yield Row("ReverseV2", {}, (X, (1,)), lambda x: x[:, ::-1].copy())
    yield Row("Tile", {}, (X[:512, :512].copy(), (2, 2)), lambda x: np.tile(x, (2, 2)))
    yield Row("BroadcastTo", {}, (VECTOR, (SIDE, SIDE)), lambda x: np.broadcast_to(x, (SIDE, SIDE)).copy())
    yield Row("Pad", {}, (X, ((1, 1), (1, 1))), lambda x: np.pad(x, 1))
    yield Row("MirrorPad", {"mode": "REFLECT"}, (X, ((1, 1), (1, 1))), lambda x: np.pad(x, 1, "reflect"))
    yield Row("Fill", {}, ((SIDE, SIDE), np.array(1, np.float32)), lambda value: np.full((SIDE, SIDE), value))
    yield Row("ZerosLike", {}, (X,), lambda x: np.full(x.shape, 0, x.dtype))
    yield Row("Range", {}, (0, 1 << 20, 1), lambda: np.arange(1 << 20, dtype=np.int32))
    yield Row("MatrixBandPart", {}, (X, np.array(-1), np.array(0)), lambda x, _low, _high: np.tril(x))


def images() -> Iterator[Row]:
    one = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    yield Row("BiasAdd", {}, (IMAGES, SCALE), np.add)
    yield Row("FusedBatchNormV3", {"is_training": False, "epsilon": 1e-3}, (IMAGES, SCALE, OFFSET, MEAN, VARIANCE),
              batch_norm)
    yield Row("FusedBatchNormV3", {"epsilon": 1e-3}, (IMAGES, SCALE, OFFSET, MEAN[:0], VARIANCE[:0]),
              lambda x, scale, offset, *_: batch_norm(x, scale, offset), "in training")
    yield Row("Conv2D", one, (IMAGES[:1], FILTER), conv, "3x3")
    yield Row("Conv2D", one, (IMAGES[:1], FILTER[1:2, 1:2].copy()),
              lambda x, w: (x.reshape(-1, 64) @ w[0, 0]).reshape(x.shape), "1x1")
    yield Row("DepthwiseConv2dNative", one, (IMAGES, TAPS), depthwise, "3x3")
    two = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    yield Row("MaxPool", two, (IMAGES,), lambda x: blocks(x).max((2, 4)), "2x2")
    yield Row("AvgPool", two, (IMAGES,), lambda x: blocks(x).mean((2, 4)), "2x2")
    yield Row("ResizeBilinear", {"half_pixel_centers": True}, (LARGE, (224, 224)), bilinear)
    yield Row("ResizeNearestNeighbor", {}, (LARGE, (224, 224)), lambda x: x.repeat(2, 1).repeat(2, 2))
    yield Row("SpaceToDepth", {"block_size": 2}, (IMAGES,),
              lambda x: blocks(x).transpose(0, 1, 3, 2, 4, 5).reshape(len(x), 28, 28, -1))


def works(row: Row) -> tuple[Work, Work]:
    """A session's step, and NumPy's. Both have run, and agree."""
    op, attrs, nodes, feeds = runtime().host.registries.ops.get(row.op), {}, [], {}
    for arg, input_value in zip(op.inputs, row.inputs, strict=True):
        several = input_value if isinstance(input_value, list) else [input_value]
        for value in several:
            array = value if isinstance(value, np.ndarray) else np.array(value, np.int32)
            name, dtype = f"i{len(nodes)}", dtypes.of_numpy(array.dtype)
            attrs[arg.type_attr] = dtype
            if value is array:
                feeds[name] = array
                nodes.append(Node(name, "Placeholder", attrs={"dtype": dtype, "shape": ShapeAttr(array.shape)}))
            else:
                nodes.append(Node(name, "Const", attrs={"dtype": dtype, "value": array}))
        attrs[arg.number_attr] = len(several)
    attrs = {name: value for name, value in (attrs | row.attrs).items() if name is not None}
    node = Node("node", row.op, [n.name for n in nodes], attrs=attrs, device="CPU:0")
    ours = partial(heald.Session(Graph([*nodes, node])).make_callable("node", list(feeds)), *feeds.values())
    theirs = partial(row.numpy, *feeds.values())
    got, want = ours(), np.asarray(theirs())
    assert got.shape == want.shape, f"{row.name}: {got.shape}, {want.shape}"
    np.testing.assert_allclose(got.astype(complex), want.astype(complex), 1e-4, 1e-3, err_msg=row.name)
    return ours, theirs


def main() -> None:
    table = [row for part in (elementwise, casts, reductions, products, arrays, images) for row in part()]
    words, names = [word.lower() for word in sys.argv[1:]], []
    for row in table:
        if words and not any(word in row.name.lower() for word in words):
            continue
        ours, theirs = works(row)
        turns = ENOUGH / (seconds(ours, TURN) + seconds(theirs, TURN)) / TURN
        a, b = least(ours, theirs, turns=max(TURNS, int(turns)))
        names.append((a / b, row.name, a, b))
    names.sort()
    print(tabulate([[name, f"{a * 1e6:,.0f} us", f"{b * 1e6:,.0f} us", f"{ratio:.2f}"] for ratio, name, a, b in names],
                   ["", "heald", "NumPy", "ratio"], disable_numparse=True))
    slow = [f"{name} ({ratio:.2f})" for ratio, name, *_ in names if ratio > MUCH]
    print(f"\n{len(slow)} of {len(names)} above {MUCH}: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
