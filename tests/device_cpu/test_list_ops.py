"""Lists of tensors. TensorFlow 2.21 gave the same results and kinds of errors for the same graphs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.op_chain import Chain
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from heald_cpu.resources.tensor_list import TensorList
from plugins_for_tests import kept_plugin

X = [[1.0, 2.0], [3.0, 4.0]]
ANY = -1  # an element shape of which nothing is known
FLOAT, INT, TEXT, VARIANT = dtypes.float32, dtypes.int32, dtypes.string, dtypes.variant
Made = Callable[[Chain], Any]


def empty(c: Chain, shape: Any = ANY, max_num_elements: int = -1, dtype: Any = dtypes.float32) -> str:
    return c("EmptyTensorList", np.int32(shape), max_num_elements, element_dtype=dtype)


def reserve(c: Chain, shape: Any, count: Any, dtype: Any = dtypes.float32) -> str:
    return c("TensorListReserve", np.int32(shape), count, element_dtype=dtype)


def rows(c: Chain, tensor: Any = X, shape: Any = ANY) -> str:
    return c("TensorListFromTensor", tensor, np.int32(shape))


def push(c: Chain, handle: str, *tensors: Any) -> str:
    for tensor in tensors:
        handle = c("TensorListPushBack", handle, tensor)
    return handle


def write(c: Chain, handle: str, index: Any, item: Any, **attrs: Any) -> str:
    return c("TensorListSetItem", handle, index, item, **attrs)


def get(c: Chain, handle: str, index: Any, shape: Any = ANY, dtype: Any = dtypes.float32) -> str:
    return c("TensorListGetItem", handle, index, np.int32(shape), element_dtype=dtype)


def pop(c: Chain, handle: str, shape: Any = ANY, dtype: Any = dtypes.float32) -> str:
    return c("TensorListPopBack", handle, np.int32(shape), element_dtype=dtype)


def second(name: str) -> str:
    return f"{name[:-2]}:1"


def stack(c: Chain, handle: str, shape: Any = ANY, count: int = -1, dtype: Any = dtypes.float32) -> str:
    return c("TensorListStack", handle, np.int32(shape), num_elements=count, element_dtype=dtype)


def size(c: Chain, handle: str) -> str:
    return c("TensorListLength", handle)


def shape_of(c: Chain, handle: str, dtype: Any = INT) -> str:
    return c("TensorListElementShape", handle, shape_type=dtype)


def gather(c: Chain, handle: str, indices: Any, shape: Any = ANY) -> str:
    return c("TensorListGather", handle, np.int32(indices), np.int32(shape))


def scatter(c: Chain, tensor: Any, indices: Any, shape: Any = ANY, count: int = -1) -> str:
    return c("TensorListScatterV2", tensor, np.int32(indices), np.int32(shape), count)


def scatter_into(c: Chain, handle: str, tensor: Any, indices: Any) -> str:
    return c("TensorListScatterIntoExistingList", handle, tensor, indices)


def concat(c: Chain, handle: str, shape: Any = ANY, lengths: Any = ()) -> list[str]:
    first = c("TensorListConcatV2", handle, np.int32(shape), np.int64(lengths))
    return [first, second(first)]


def concat_v1(c: Chain, handle: str, shape: Any = None) -> list[str]:
    first = c("TensorListConcat", handle, element_shape=shape)
    return [first, second(first)]


def split(c: Chain, tensor: Any, lengths: Any, shape: Any = ANY) -> str:
    return c("TensorListSplit", tensor, np.int32(shape), np.int64(lengths))


def several(c: Chain, *handles: str) -> str:
    return c("Pack", list(handles), T=VARIANT)


def push_batch(c: Chain, handles: str, tensor: Any) -> str:
    return c("TensorListPushBackBatch", handles, tensor)


def join(c: Chain, a: str, b: str, dtype: Any = dtypes.float32) -> str:
    return c("TensorListConcatLists", a, b, element_dtype=dtype)


def add(c: Chain, *handles: str) -> str:
    return c("AddN", list(handles))


def like(c: Chain, handle: str) -> str:
    return c("ZerosLike", handle)


def one_of(c: Chain, handles: str, index: int) -> str:
    """A handle out of a vector of them."""
    return c("GatherV2", handles, np.int32(index), np.int32(0))


def uneven(c: Chain, shape: Any = ANY) -> str:
    return push(c, empty(c, shape), [[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]])


def nested_list(c: Chain) -> str:
    return push(c, empty(c, [], dtype=VARIANT), rows(c, [[1.0, 2.0]]))


SIX = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
GIVES: dict[str, tuple[Made, list[Any]]] = {
    "empty, of any shape": (lambda c: [shape_of(c, empty(c)), size(c, empty(c))], [-1, 0]),
    "empty, of scalars": (lambda c: [shape_of(c, empty(c, []))], [[]]),
    "empty, of vectors": (lambda c: [shape_of(c, empty(c, [-1, 2]), dtypes.int64)], [[-1, 2]]),
    "push": (lambda c: [stack(c, push(c, empty(c), [1.0, 2.0], [3.0, 4.0]))], [X]),
    "push scalars": (lambda c: [stack(c, push(c, empty(c), 1.0, 2.0))], [[1, 2]]),
    "push texts": (lambda c: [stack(c, push(c, empty(c, dtype=TEXT), [b"a", b"b"]), dtype=TEXT)], [[[b"a", b"b"]]]),
    "push beyond a negative bound": (lambda c: [size(c, push(c, empty(c, max_num_elements=-5), 1.0))], [1]),
    "push twice onto one list": (
        lambda c: [(x := push(c, empty(c), 1.0)) and stack(c, push(c, x, 2.0)), stack(c, push(c, x, 3.0)), stack(c, x)],
        [[1, 2], [1, 3], [1]]),
    "pop": (lambda c: [size(c, x := pop(c, push(c, empty(c), 1.0, [2.0]))), second(x)], [1, [2]]),
    "push after pop": (
        lambda c: [stack(c, push(c, pop(c, x := push(c, empty(c), 1.0, 2.0)), 3.0)), stack(c, x)], [[1, 3], [1, 2]]),
    "pop what is not there": (lambda c: [second(pop(c, reserve(c, [2], 1)))], [[0, 0]]),
    "get what is not there": (lambda c: [get(c, reserve(c, [2], 2), 0)], [[0, 0]]),
    "get a text that is not there": (lambda c: [get(c, reserve(c, [1], 2, TEXT), 0, dtype=TEXT)], [[b""]]),
    "get, shape asked for": (lambda c: [get(c, reserve(c, ANY, 2), 0, [3])], [[0, 0, 0]]),
    "get, shape of another": (lambda c: [get(c, write(c, reserve(c, ANY, 3), 1, [1.0, 2.0]), 0)], [[0, 0]]),
    "get by a vector of one": (lambda c: [get(c, rows(c), [1])], [[3, 4]]),
    "set": (lambda c: [stack(c, write(c, rows(c), 0, [9.0, 8.0]))], [[[9, 8], [3, 4]]]),
    "set leaves the list": (lambda c: [stack(c, x := rows(c)), stack(c, write(c, x, 0, [9.0, 8.0])), stack(c, x)],
                            [X, [[9, 8], [3, 4]], X]),
    "set beyond": (lambda c: [stack(c, write(c, reserve(c, [2], 1), 2, [1.0, 2.0],
                                             resize_if_index_out_of_bounds=True))],
                   [[[0, 0], [0, 0], [1, 2]]]),
    "stack what is not there": (lambda c: [stack(c, reserve(c, [2], 2), count=2)], [[[0, 0], [0, 0]]]),
    "stack nothing": (lambda c: [stack(c, reserve(c, [2], 0))], [np.zeros((0, 2))]),
    "stack nothing in it": (lambda c: [stack(c, push(c, empty(c), np.zeros((0, 2)), np.zeros((0, 2))))],
                            [np.zeros((2, 0, 2))]),
    "stack, shape of another": (lambda c: [stack(c, write(c, reserve(c, ANY, 2), 1, [5.0, 6.0]))], [[[0, 0], [5, 6]]]),
    "rows": (lambda c: [stack(c, rows(c)), shape_of(c, rows(c)), shape_of(c, rows(c, shape=[-1]))], [X, -1, [-1]]),
    "longer": (lambda c: [stack(c, c("TensorListResize", rows(c), 3))], [[[1, 2], [3, 4], [0, 0]]]),
    "shorter": (lambda c: [stack(c, c("TensorListResize", rows(c), 1))], [[[1, 2]]]),
    "gather": (lambda c: [gather(c, rows(c), [1, 0, 1])], [[[3, 4], [1, 2], [3, 4]]]),
    "gather nothing": (lambda c: [gather(c, rows(c, shape=[2]), [])], [np.zeros((0, 2))]),
    "gather what is not there": (lambda c: [gather(c, reserve(c, [2], 2), [1, 0])], [[[0, 0], [0, 0]]]),
    "gather by a matrix": (lambda c: [gather(c, rows(c), [[1, 0]])], [[[3, 4], [1, 2]]]),
    "gather by a scalar": (lambda c: [gather(c, rows(c), 1)], [[[3, 4]]]),
    "scatter": (lambda c: [stack(c, x := scatter(c, X, [2, 0])), shape_of(c, x)], [[[3, 4], [0, 0], [1, 2]], -1]),
    "scatter into more": (lambda c: [size(c, scatter(c, X, [2, 0], count=5))], [5]),
    "scatter twice to one": (lambda c: [stack(c, scatter(c, X, [0, 0]))], [[[3, 4]]]),
    "scatter by a matrix": (lambda c: [stack(c, scatter(c, X, [[1], [0]]))], [[[3, 4], [1, 2]]]),
    "scatter without a count": (lambda c: [stack(c, c("TensorListScatter", X, [1, 0], np.int32(ANY)))],
                                [[[3, 4], [1, 2]]]),
    "scatter into a list": (lambda c: [stack(c, scatter_into(c, reserve(c, [2], 3), X, [2, 0]))],
                            [[[3, 4], [0, 0], [1, 2]]]),
    "concat": (lambda c: concat(c, uneven(c)), [SIX, [1, 2]]),
    "concat, shape asked for": (lambda c: concat(c, uneven(c), [-1, 2]), [SIX, [1, 2]]),
    "concat nothing": (lambda c: concat(c, empty(c, [-1, 2])), [np.zeros((0, 2)), []]),
    "concat what is not there": (lambda c: concat(c, reserve(c, [-1, 2], 2), lengths=[1, 2]),
                                 [np.zeros((3, 2)), [1, 2]]),
    "concat, length known": (lambda c: concat(c, reserve(c, [3, 2], 2)), [np.zeros((6, 2)), [3, 3]]),
    "concat, other lengths said": (lambda c: concat(c, reserve(c, [3, 2], 2), lengths=[1, 2]),
                                   [np.zeros((3, 2)), [1, 2]]),
    "concat, length of another": (lambda c: concat(c, write(c, reserve(c, ANY, 3), 1, [[1.0, 2.0]])),
                                  [[[0, 0], [1, 2], [0, 0]], [1, 1, 1]]),
    "concat, version 1": (lambda c: concat_v1(c, uneven(c), [None, 2]), [SIX, [1, 2]]),
    "concat, version 1, length of another": (
        lambda c: concat_v1(c, write(c, reserve(c, [-1, 2], 2), 0, [[1.0, 2.0]])), [[[1, 2], [0, 0]], [1, 1]]),
    "split": (lambda c: concat(c, split(c, SIX, [1, 0, 2])), [SIX, [1, 0, 2]]),
    "split into nothing": (lambda c: [size(c, split(c, np.zeros((0, 2)), []))], [0]),
    "split, of a shape": (lambda c: [shape_of(c, x := split(c, np.float32(SIX), [1, 2], [-1, 2])), get(c, x, 1)],
                          [[-1, 2], [[3, 4], [5, 6]]]),
    "push to several": (
        lambda c: [stack(c, one_of(c, x := push_batch(
                       c, several(c, empty(c, max_num_elements=0), rows(c, [[0.0, 0.0]])), X), 0)),
                   stack(c, one_of(c, x, 1))], [[[1, 2]], [[0, 0], [3, 4]]]),
    "join": (lambda c: [stack(c, join(c, rows(c, [[1.0, 2.0]]), rows(c, [[3.0, 4.0]])))], [X]),
    "join several": (
        lambda c: [stack(c, one_of(c, join(c, several(c, rows(c, X[:1])), several(c, rows(c, X[1:]))), 0))], [X]),
    "add": (lambda c: [stack(c, add(c, rows(c), rows(c), rows(c, [[1.0, 1.0], [0.0, 0.0]])))], [[[3, 5], [6, 8]]]),
    "add one": (lambda c: [stack(c, add(c, rows(c)))], [X]),
    "add what is not there": (
        lambda c: [stack(c, add(c, x := reserve(c, [2], 3), write(c, x, 1, [1.0, 2.0])))], [[[0, 0], [1, 2], [0, 0]]]),
    "add, shapes together": (lambda c: [shape_of(c, add(c, empty(c, [2, -1]), empty(c, [-1, 3])))], [[2, 3]]),
    "zeros like": (lambda c: [stack(c, like(c, rows(c)))], [[[0, 0], [0, 0]]]),
    "zeros like what is not there": (lambda c: [get(c, like(c, write(c, reserve(c, ANY, 2), 1, [1.0])), 1)], [[0]]),
    "lists of lists": (lambda c: [stack(c, get(c, nested_list(c), 0, dtype=VARIANT))], [[[1, 2]]]),
    "lists of lists, stacked": (
        lambda c: [stack(c, one_of(c, stack(c, nested_list(c), dtype=VARIANT), 0))], [[[1, 2]]]),
    "lists of lists, added": (
        lambda c: [stack(c, get(c, add(c, nested_list(c), nested_list(c)), 0, dtype=VARIANT))], [[[2, 4]]]),
    "lists of lists, zeros": (lambda c: [stack(c, get(c, like(c, nested_list(c)), 0, dtype=VARIANT))], [[[0, 0]]]),
    "lists as rows": (
        lambda c: [stack(c, get(c, rows(c, several(c, rows(c), rows(c, [[5.0]])), []), 1, dtype=VARIANT))], [[[5]]]),
}


@pytest.mark.parametrize("fed", [False, True], ids=["constants", "fed"])
@pytest.mark.parametrize("name", GIVES)
def test_ops_on_lists_give(name: str, fed: bool) -> None:
    make, expected = GIVES[name]
    chain = Chain()
    chain.gives(make(chain), expected, fed=fed)


REFUSED: dict[str, Made] = {
    "a shape that is another scalar": lambda c: size(c, empty(c, 3)),
    "a matrix as a shape": lambda c: size(c, empty(c, [[1]])),
    "a length below -1": lambda c: size(c, empty(c, [-2])),
    "a bound that is a vector": lambda c: size(c, c("EmptyTensorList", np.int32(ANY), [1])),
    "more than the bound": lambda c: size(c, push(c, empty(c, max_num_elements=1), 1.0, 2.0)),
    "more than the bound of joined lists": lambda c: size(c, push(c, join(c, push(c, empty(c, max_num_elements=2), 1.0),
                                                                          push(c, empty(c), 2.0)), 3.0)),
    "push of another shape": lambda c: size(c, push(c, empty(c, [2]), [1.0])),
    "push of another type": lambda c: size(c, push(c, empty(c, [2], dtype=INT), [1.0, 2.0])),
    "pop of nothing": lambda c: second(pop(c, empty(c))),
    "pop of an unknown shape": lambda c: second(pop(c, reserve(c, ANY, 2))),
    "pop of another type": lambda c: second(pop(c, rows(c), dtype=INT)),
    "reserve fewer than none": lambda c: size(c, reserve(c, ANY, -1)),
    "reserve a vector": lambda c: size(c, reserve(c, ANY, [2])),
    "get below": lambda c: get(c, rows(c), -1),
    "get beyond": lambda c: get(c, rows(c), 2),
    "get an unknown shape": lambda c: get(c, reserve(c, ANY, 3), 0),
    "get a shape known in part": lambda c: get(c, reserve(c, [-1], 3), 0, [-1]),
    "get of two shapes": lambda c: get(c, write(c, write(c, reserve(c, ANY, 3), 1, [1.0, 2.0]), 2, [1.0]), 0),
    "get a shape that contradicts": lambda c: get(c, reserve(c, [2], 2), 0, [3]),
    "get another type": lambda c: get(c, rows(c), 0, dtype=INT),
    "get a variant of unknown shape": lambda c: size(c, get(c, reserve(c, ANY, 2, VARIANT), 0, dtype=VARIANT)),
    "a variant that is not there": lambda c: size(c, get(c, reserve(c, [], 2, VARIANT), 0, dtype=VARIANT)),
    "several handles": lambda c: size(c, several(c, rows(c), rows(c))),
    "set beyond": lambda c: size(c, write(c, rows(c), 2, [1.0, 2.0])),
    "set below": lambda c: size(c, write(c, rows(c), -1, [1.0, 2.0])),
    "set another shape": lambda c: size(c, write(c, reserve(c, [2], 2), 0, [1.0])),
    "set another type": lambda c: size(c, write(c, rows(c), 0, np.int32([1, 2]))),
    "stack another number": lambda c: stack(c, rows(c), count=3),
    "stack nothing of unknown shape": lambda c: stack(c, reserve(c, [-1], 0)),
    "stack what is not there, of unknown shape": lambda c: stack(c, reserve(c, [-1], 1)),
    "stack two shapes": lambda c: stack(c, push(c, empty(c), [1.0], [1.0, 2.0])),
    "stack another shape": lambda c: stack(c, push(c, empty(c), [1.0]), [2]),
    "stack another type": lambda c: stack(c, rows(c), dtype=INT),
    "rows of a scalar": lambda c: size(c, rows(c, 1.0)),
    "rows of another shape": lambda c: size(c, rows(c, X, [3])),
    "a negative size": lambda c: size(c, c("TensorListResize", rows(c), -3)),
    "a vector of sizes": lambda c: size(c, c("TensorListResize", rows(c), [3])),
    "gather nothing of unknown shape": lambda c: gather(c, rows(c), []),
    "gather beyond": lambda c: gather(c, rows(c), [2]),
    "gather beyond what has a shape": lambda c: gather(c, rows(c, shape=[2]), [2]),
    "gather below": lambda c: gather(c, rows(c), [-1]),
    "gather what is not there, of unknown shape": lambda c: gather(c, reserve(c, ANY, 2), [1, 0]),
    "scatter beyond": lambda c: size(c, scatter(c, X, [2, 0], count=2)),
    "scatter below": lambda c: size(c, scatter(c, X, [-2, 0])),
    "scatter into fewer than none": lambda c: size(c, scatter(c, X, [2, 0], count=-2)),
    "scatter, other rows": lambda c: size(c, scatter(c, X, [2])),
    "scatter another shape": lambda c: size(c, scatter(c, X, [2, 0], [3])),
    "scatter a scalar": lambda c: size(c, scatter(c, 1.0, [0])),
    "scatter into a list by a matrix": lambda c: size(c, scatter_into(c, rows(c), X, [[1, 0]])),
    "scatter into a list, other rows": lambda c: size(c, scatter_into(c, rows(c), X, [1])),
    "scatter into a list of another type": lambda c: size(c, scatter_into(c, reserve(c, [2], 1, INT), X, [1, 0])),
    "concat, another first length": lambda c: concat(c, uneven(c), [1, 2]),
    "concat, another shape": lambda c: concat(c, uneven(c), [-1, 3]),
    "concat of scalars": lambda c: concat(c, push(c, empty(c), 1.0)),
    "concat as scalars": lambda c: concat(c, uneven(c), []),
    "concat nothing of unknown shape": lambda c: concat(c, empty(c)),
    "concat, lengths missing": lambda c: concat(c, reserve(c, [-1, 2], 2), lengths=[1]),
    "concat, shape unknown": lambda c: concat(c, reserve(c, ANY, 3), lengths=[1, 2, 3]),
    "concat of two ranks": lambda c: concat(c, push(c, empty(c), [1.0], [[1.0]])),
    "concat, version 1, as scalars": lambda c: concat_v1(c, uneven(c), []),
    "concat, version 1, lengths unknown": lambda c: concat_v1(c, reserve(c, [-1, 2], 2), [None, 2]),
    "split into less": lambda c: size(c, split(c, SIX, [1, 1])),
    "split into more": lambda c: size(c, split(c, SIX, [1, 3])),
    "split, a negative length": lambda c: size(c, split(c, SIX, [-1, 4])),
    "split, another shape": lambda c: size(c, split(c, SIX, [1, 2], [-1, 3])),
    "split into scalars": lambda c: size(c, split(c, SIX, [1, 2], [])),
    "split by a matrix": lambda c: size(c, split(c, SIX, [[1, 2]])),
    "split a scalar": lambda c: size(c, split(c, 1.0, [1])),
    "push to several, other rows": lambda c: push_batch(c, several(c, empty(c), empty(c)), [[1.0, 2.0]]),
    "push to several, a scalar handle": lambda c: push_batch(c, empty(c), [[1.0, 2.0]]),
    "push to several, another shape": lambda c: push_batch(c, several(c, empty(c, [3])), [[1.0, 2.0]]),
    "push to several, another type": lambda c: push_batch(c, several(c, empty(c, dtype=INT)), [[1.0, 2.0]]),
    "push to several, a scalar": lambda c: push_batch(c, several(c, empty(c)), 1.0),
    "join of other shapes": lambda c: size(c, join(c, rows(c, shape=[2]), rows(c))),
    "join of other types": lambda c: size(c, join(c, empty(c), empty(c, dtype=INT))),
    "join one and several": lambda c: size(c, join(c, several(c, rows(c)), rows(c))),
    "add, other lengths": lambda c: size(c, add(c, rows(c), rows(c, [[1.0, 2.0]]))),
    "add, other types": lambda c: size(c, add(c, empty(c), empty(c, dtype=INT))),
    "add, other shapes": lambda c: size(c, add(c, empty(c, [2]), empty(c, [3]))),
    "add, other elements": lambda c: size(c, add(c, push(c, empty(c), [1.0, 2.0]), push(c, empty(c), [1.0]))),
    "add texts": lambda c: size(c, add(c, *[push(c, empty(c, dtype=TEXT), b"a")] * 2)),
    "add truths": lambda c: size(c, add(c, *[push(c, empty(c, dtype=dtypes.bool_), np.True_)] * 2)),
    "add several": lambda c: size(c, add(c, several(c, empty(c)), several(c, empty(c)))),
    "zeros like texts": lambda c: size(c, like(c, push(c, empty(c, dtype=TEXT), b"a"))),
    "zeros like several": lambda c: size(c, like(c, several(c, empty(c)))),
}


@pytest.mark.parametrize("fed", [False, True], ids=["constants", "fed"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_tensor_that_does_not_fit_a_list_is_an_invalid_argument(name: str, fed: bool) -> None:
    chain = Chain()
    fetches = REFUSED[name](chain)
    fetches = fetches if isinstance(fetches, list) else [fetches]
    with pytest.raises(InvalidArgument) as caught:
        chain.run([size(chain, one_of(chain, f, 0)) if name.startswith("push to several") else f for f in fetches],
                  fed=fed)
    assert caught.value.node


SHAPES: dict[str, tuple[Made, str]] = {
    "get": (lambda c: get(c, reserve(c, [-1, 2], 3), 0), "[?,2]"),
    "get, shape asked for": (lambda c: get(c, reserve(c, [-1, 2], 3), 0, [3, -1]), "[3,2]"),
    "get, nothing known": (lambda c: get(c, reserve(c, ANY, 3), 0), "<unknown rank>"),
    "get what was set": (lambda c: get(c, write(c, reserve(c, [2], 3), 0, [1.0, 2.0]), 0), "[2]"),
    "get of a longer list": (lambda c: get(c, c("TensorListResize", reserve(c, [2], 3), 4), 0), "[2]"),
    "get of joined lists": (lambda c: get(c, join(c, reserve(c, [2, -1], 1), reserve(c, [-1, 3], 1)), 0), "[2,3]"),
    "get of sums": (lambda c: get(c, add(c, reserve(c, [2, -1], 1), reserve(c, [-1, 3], 1)), 0), "[2,3]"),
    "get of zeros": (lambda c: get(c, like(c, reserve(c, [2], 1)), 0), "[2]"),
    "pop": (lambda c: second(pop(c, push(c, empty(c, [-1, 2]), [[1.0, 2.0]]), [3, 2])), "[?,2]"),
    "stack": (lambda c: stack(c, reserve(c, [-1, 2], 3), [3, -1]), "[?,3,2]"),
    "stack a number": (lambda c: stack(c, reserve(c, [2], 5), count=5), "[5,2]"),
    "gather": (lambda c: gather(c, rows(c, X, [2]), [1, 0, 1]), "[3,2]"),
    "concat": (lambda c: concat(c, reserve(c, [3, -1], 2), [-1, 5])[0], "[?,5]"),
    "lengths": (lambda c: concat(c, reserve(c, [3, 2], 2))[1], "[?]"),
    "of shapes": (lambda c: shape_of(c, reserve(c, [2, -1], 1)), "[2]"),
    "push to several": (lambda c: get(c, one_of(c, push_batch(c, several(c, empty(c, [2])), [[1.0, 2.0]]), 0), 0),
                        "<unknown rank>"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_handle_gives_its_types_before_the_run(name: str) -> None:
    """As far as TensorFlow knows it."""
    make, shape = SHAPES[name]
    chain = Chain()
    assert chain.static_shape(make(chain)).endswith(shape)


def get_written(c: Chain, item: Any, element: int = 0) -> str:
    return get(c, write(c, rows(c), 1, item), element)


ROWS: dict[str, tuple[Made, str, Any]] = {  # the shape that is known before the run, and the value
    "a row": (lambda c: get(c, rows(c), 0), "[2]", X[0]),
    "beside a row like the others": (lambda c: get_written(c, np.float32([5, 6])), "[2]", X[0]),
    "beside another row": (lambda c: get_written(c, np.float32([5])), "<unknown rank>", X[0]),
    "another row": (lambda c: get_written(c, np.float32([5]), 1), "<unknown rank>", [5]),
    "beside a push": (lambda c: get(c, push(c, rows(c), np.float32(7)), 2), "<unknown rank>", 7),
    "of a shorter list": (lambda c: get(c, c("TensorListResize", rows(c), 1), 0), "<unknown rank>", X[0]),
    "a part": (lambda c: get(c, c("TensorListSplit", X, np.int32(ANY), np.int64([1, 1])), 1), "<unknown rank>", X[1:]),
    "stacked": (lambda c: stack(c, rows(c)), "[?,2]", X),
    "of a sum": (lambda c: get(c, c("AddN", [rows(c), rows(c)]), 0), "<unknown rank>", [2, 4]),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_list_of_rows_knows_their_shape_though_it_takes_others(name: str) -> None:
    make, shape, value = ROWS[name]
    chain = Chain()
    read = make(chain)
    assert chain.static_shape(read).endswith(shape)
    assert chain.run([read])[0].tolist() == value


def test_an_element_of_another_shape_than_was_asked_for_is_an_error() -> None:
    chain = Chain()
    with pytest.raises(InvalidArgument, match=r"has shape \[2\], asked for was \[3\]"):
        chain.run([get(chain, rows(chain), 0, [3])])


@pytest.mark.parametrize("make", [
    lambda c: size(c, reserve(c, ANY, 2**31 - 1)),
    lambda c: size(c, c("TensorListResize", rows(c), 2**31 - 1)),
    lambda c: size(c, write(c, rows(c), 2**31 - 1, 1.0, resize_if_index_out_of_bounds=True)),
    lambda c: size(c, scatter(c, [1.0], [2**31 - 2])),
    lambda c: size(c, scatter_into(c, rows(c), [1.0], [2**31 - 2])),
    lambda c: get(c, reserve(c, [2**31 - 1, 2**31 - 1], 1), 0),
], ids=["reserve", "resize", "set", "scatter", "scatter into", "an element"])
def test_a_list_larger_than_the_memory_is_an_error(make: Made) -> None:
    chain = Chain()
    with pytest.raises((ResourceExhausted, InvalidArgument)):
        chain.run([make(chain)])


def test_a_push_copies_no_element() -> None:
    tensors = [np.float32([i]) for i in range(100)]
    lists = [TensorList(dtypes.float32, None, [])]
    for tensor in tensors:
        lists.append(lists[-1].with_pushed(tensor))
    assert all(a is b for a, b in zip(lists[-1].cells, tensors, strict=True))
    assert [one.count for one in lists] == [len(one.cells) for one in lists] == list(range(101))


def listed(reserved: TensorList) -> list[Any]:
    return [None if cell is None else cell.tolist() for cell in reserved.cells]


def reserved_list(count: int) -> TensorList:
    return TensorList(dtypes.float32, None, [], count=count, filled=0)


def test_writes_of_successive_elements_copy_none_of_them() -> None:
    tracemalloc.start()
    lists = [reserved_list(1000)]
    for index in range(1000):
        lists.append(lists[-1].with_element(index, np.float32(index)))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 1 << 20  # copies of the cells would take 4 MB
    assert listed(lists[-1]) == list(range(1000))
    for count in (0, 1, 500, 999):
        assert (lists[count].count, listed(lists[count])) == (1000, [*range(count), *[None] * (1000 - count)])


def test_lists_that_share_their_cells_differ_where_both_are_written() -> None:
    first = reserved_list(3).with_element(0, np.float32(1))
    one, other = first.with_element(1, np.float32(2)), first.with_element(1, np.float32(3))
    last = one.with_element(2, np.float32(4))
    changed = last.with_element(0, np.float32(5))
    assert [listed(x) for x in (first, one, other, last, changed)] == [
        [1, None, None], [1, 2, None], [1, 3, None], [1, 2, 4], [5, 2, 4]]
    assert [x.cell(2) for x in (first, one, other)] == [None] * 3


@pytest.mark.parametrize(("change", "cells"), [
    (lambda x: x.with_element(2, np.float32(9)), [1, None, 9, None]),
    (lambda x: x.with_element(3, np.float32(9)).with_element(1, np.float32(8)), [1, 8, None, 9]),
    (lambda x: x.with_pushed(np.float32(9)), [1, None, None, None, 9]),
    (lambda x: x.without_last(), [1, None, None]),
    (lambda x: x.without_last().without_last().without_last().without_last(), []),
    (lambda x: x.without_last().with_pushed(np.float32(9)), [1, None, None, 9]),
    (lambda x: x.with_count(2), [1, None]),
    (lambda x: x.with_count(0).with_pushed(np.float32(9)), [9]),
    (lambda x: x.with_count(6).with_element(1, np.float32(9)), [1, 9, None, None, None, None]),
], ids=["behind a gap", "backwards", "push", "pop", "pop all", "pop and push", "shorter", "empty", "longer"])
def test_a_reserved_list_changes_as_a_list_of_empty_cells(change: Callable[[TensorList], TensorList],
                                                         cells: list[Any]) -> None:
    start = reserved_list(4).with_element(0, np.float32(1))
    start.with_element(1, np.float32(7))  # shares the cells
    assert listed(change(start)) == cells
    assert listed(start) == [1, None, None, None]


def test_two_loops_may_write_to_one_reserved_list() -> None:
    chain = Chain()
    handle = reserve(chain, [], 3)
    one = write(chain, write(chain, handle, 0, np.float32(1)), 1, np.float32(2))
    other = write(chain, write(chain, handle, 0, np.float32(3)), 2, np.float32(4))
    fetches = [stack(chain, one, []), stack(chain, other, []), stack(chain, handle, [])]
    assert [x.tolist() for x in chain.run(fetches)] == [[1, 2, 0], [3, 0, 4], [0, 0, 0]]


POISON = kept_plugin.CONFIG | {"debug": {"poison": True}}


KEEPERS: dict[str, tuple[Callable[[Chain, str], str], Any]] = {
    "push": (lambda c, x: stack(c, push(c, empty(c), x)), [X]),
    "set": (lambda c, x: stack(c, write(c, reserve(c, ANY, 1), 0, x)), [X]),
    "rows": (lambda c, x: stack(c, rows(c, x)), X),
    "split": (lambda c, x: concat(c, split(c, x, [1, 1]))[0], X),
    "scatter": (lambda c, x: stack(c, scatter(c, x, [0, 1])), X),
    "scatter without a count": (lambda c, x: stack(c, c("TensorListScatter", x, np.int32([0, 1]), np.int32(ANY))), X),
    "scatter into a list": (lambda c, x: stack(c, scatter_into(c, reserve(c, ANY, 2), x, [0, 1])), X),
    "push to several": (lambda c, x: stack(c, one_of(c, push_batch(c, several(c, empty(c), empty(c)), x), 1)), X[1:]),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_a_list_keeps_what_is_no_buffer_of_the_frame(name: str) -> None:
    make, want = KEEPERS[name]
    chain = Chain()
    read = make(chain, chain("Identity", chain("AddV2", X, np.zeros((2, 2)))))
    assert chain.run([read], fed=True, config=POISON)[0].tolist() == want


def test_a_pushed_tensor_stays_as_it_was_while_buffers_are_used_again() -> None:
    later = [node(f"n{i}", "Neg", f"n{i - 1}" if i else "b") for i in range(4)]
    handles = [Node("e", "EmptyTensorList", ("any", "most"), attrs={"element_dtype": FLOAT, "shape_type": INT})]
    for before, name, tensor in (("e", "l0", "a"), ("l0", "l1", "x"), ("l1", "l2", "n1")):
        handles.append(Node(name, "TensorListPushBack", (before, tensor), attrs={"element_dtype": FLOAT}))
    session = heald.Session(graph(
        const("any", -1, np.int32), const("most", -1, np.int32), placeholder("x", (3,)), node("a", "Neg", "x"),
        node("b", "AddV2", "a", "x"), *later, *handles,
        Node("y", "TensorListStack", ("l2", "any", "^n3"), attrs={"element_dtype": FLOAT, "num_elements": 3})), POISON)
    step = session.make_callable(["y", "n3"], ["x"])
    for i in range(3):
        x = np.float32([1, 2, 3]) + i
        y, other = step(x)
        assert y.tolist() == [(-x).tolist(), x.tolist(), [0, 0, 0]]
        y[:], other[:], x[:] = -1, -2, -3


def test_a_tensor_read_from_a_list_is_the_callers_own() -> None:
    chain = Chain()
    handle = push(chain, rows(chain), np.float32([5, 6]))
    fetches = [get(chain, handle, 2), get(chain, handle, 2), get(chain, handle, 0), second(pop(chain, handle))]
    with heald.Session(chain.graph()) as session:
        for _ in range(2):
            fetched = session.run(fetches)
            assert [x.tolist() for x in fetched] == [[5, 6], [5, 6], [1, 2], [5, 6]]
            for i, x in enumerate(fetched):
                x[:] = -i
            assert [x[0] for x in fetched] == [0, -1, -2, -3]
