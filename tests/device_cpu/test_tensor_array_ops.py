"""Arrays and stacks of tensors. TensorFlow 2.21 gave the same results and kinds of errors for the same graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import heald
import numpy as np
import pytest
from builders.op_chain import Chain
from heald.errors import HealdError, InvalidArgument, ResourceExhausted, Unimplemented
from heald.runtime.values import dtypes
from plugins_for_tests import kept_plugin

POISON = kept_plugin.CONFIG | {"debug": {"poison": True}}
X = [[1.0, 2.0], [3.0, 4.0]]
SIX = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
FLOAT, INT, TEXT, BOOL = dtypes.float32, dtypes.int32, dtypes.string, dtypes.bool_


class TA(NamedTuple):
    """An array in a chain of ops, and the flow behind its last op."""

    c: Chain
    handle: str
    flow: str

    def write(self, *items: tuple[int, Any]) -> TA:
        flow = self.flow
        for index, value in items:
            flow = self.c("TensorArrayWriteV3", self.handle, index, value, flow)
        return self._replace(flow=flow)

    def read(self, index: Any, dtype: Any = FLOAT, after: Any = ()) -> str:
        return self.c("TensorArrayReadV3", self.handle, index, self.flow, dtype=dtype, after=after)

    def gather(self, indices: Any, shape: Any = None, dtype: Any = FLOAT) -> str:
        return self.c("TensorArrayGatherV3", self.handle, np.int32(indices), self.flow, element_shape=shape,
                      dtype=dtype)

    def scatter(self, indices: Any, value: Any = X) -> TA:
        return self._replace(flow=self.c("TensorArrayScatterV3", self.handle, np.int32(indices), value, self.flow))

    def split(self, lengths: Any, value: Any = SIX) -> TA:
        return self._replace(flow=self.c("TensorArraySplitV3", self.handle, value, np.int64(lengths), self.flow))

    def concat(self, shape: Any = None) -> list[str]:
        first = self.c("TensorArrayConcatV3", self.handle, self.flow, element_shape_except0=shape)
        return [first, f"{first[:-2]}:1"]

    def size(self) -> str:
        return self.c("TensorArraySizeV3", self.handle, self.flow)

    def gradient(self, source: str = "g") -> TA:
        handle = self.c("TensorArrayGradV3", self.handle, self.flow, source=source)
        return TA(self.c, handle, f"{handle[:-2]}:1")

    def gradient_with(self, prefix: Any) -> TA:
        handle = self.c("TensorArrayGradWithShape", self.handle, self.flow, np.int32(prefix), source="g")
        return TA(self.c, handle, f"{handle[:-2]}:1")

    def close(self) -> TA:
        done = self.c("TensorArrayCloseV3", self.handle, after=self.flow)
        return self._replace(flow=self.c("Identity", self.flow, after=done))

    def after(self, *names: str) -> TA:
        return self._replace(flow=self.c("Identity", self.flow, after=names))


def new(c: Chain, size: Any = 2, shape: Any = None, dtype: Any = FLOAT, **attrs: Any) -> TA:
    handle = c("TensorArrayV3", size, element_shape=shape, dtype=dtype, tensor_array_name="ta", **attrs)
    return TA(c, handle, f"{handle[:-2]}:1")


def two(c: Chain, **attrs: Any) -> TA:
    return new(c, **attrs).write((0, X[0]), (1, X[1]))


class Stack(NamedTuple):
    """A stack in a chain of ops, and its last op."""

    c: Chain
    handle: str
    last: tuple[str, ...] = ()

    def push(self, *values: Any) -> Stack:
        last = self.last
        for value in values:
            last = (self.c("StackPushV2", self.handle, value, after=last),)
        return self._replace(last=last)

    def pop(self, dtype: Any = FLOAT) -> Stack:
        return self._replace(last=(self.c("StackPopV2", self.handle, elem_type=dtype, after=self.last),))

    def close(self) -> Stack:
        return self._replace(last=(self.c("StackCloseV2", self.handle, after=self.last),))


def new_stack(c: Chain, max_size: Any = -1, dtype: Any = FLOAT) -> Stack:
    return Stack(c, c("StackV2", max_size, elem_type=dtype, stack_name="st"))


def both_pops(c: Chain) -> list[str]:
    first = new_stack(c).push([1.0], 2.0).pop()
    return [*first.last, *first.pop().last]


Made = Callable[[Chain], Any]
GIVES: dict[str, tuple[Made, list[Any]]] = {
    "flow and size": (lambda c: [(a := new(c)).flow, a.size()], [0, 2]),
    "write and read": (lambda c: [two(c).read(1)], [X[1]]),
    "write and read, of a shape": (lambda c: [two(c, shape=[2]).read(1)], [X[1]]),
    "write and read, of a shape in part": (
        lambda c: [two(c, shape=[None], identical_element_shapes=True).read(1)], [X[1]]),
    "two shapes": (lambda c: [(a := new(c).write((0, [1.0, 2.0]), (1, [3.0]))).read(0), a.read(1)], [[1, 2], [3]]),
    "behind the end": (lambda c: [new(c, dynamic_size=True).write((4, [1.0])).size()], [5]),
    "read twice": (lambda c: [(a := two(c, clear_after_read=False)).read(0, after=(x := a.read(0))), x], [X[0], X[0]]),
    "read what is not there": (lambda c: [new(c, shape=[2]).read(1)], [[0, 0]]),
    "read what is not there, shape of another": (
        lambda c: [new(c, identical_element_shapes=True).write((0, [1.0, 2.0])).read(1)], [[0, 0]]),
    "read a truth that is not there": (lambda c: [new(c, shape=[2], dtype=BOOL).read(1, BOOL)], [[False, False]]),
    "texts": (lambda c: [new(c, dtype=TEXT).write((0, [b"a", b""])).read(0, TEXT)], [[b"a", b""]]),
    "nothing in it": (lambda c: [new(c).write((0, np.zeros((0, 2)))).read(0)], [np.zeros((0, 2))]),
    "gather": (lambda c: [two(c).gather([1, 0])], [[X[1], X[0]]]),
    "gather, of a shape": (lambda c: [two(c).gather([1, 0], [None])], [[X[1], X[0]]]),
    "gather one twice": (lambda c: [two(c, clear_after_read=False).gather([1, 1])], [[X[1], X[1]]]),
    "gather nothing": (lambda c: [two(c).gather([], [2])], [np.zeros((0, 2))]),
    "gather what is not there": (lambda c: [new(c).write((0, X[0])).gather([0, 1], [2])], [[X[0], [0, 0]]]),
    "gather scalars": (lambda c: [new(c).write((0, 1.0), (1, 2.0)).gather([1, 0])], [[2, 1]]),
    "scatter": (lambda c: [new(c, 3).scatter([2, 0]).gather([0, 2])], [[X[1], X[0]]]),
    "scatter behind the end": (lambda c: [new(c, 0, dynamic_size=True).scatter([2, 0]).size()], [3]),
    "scatter nothing": (lambda c: [new(c).scatter([], np.zeros((0, 2))).size()], [2]),
    "split and concat": (lambda c: new(c).split([1, 2]).concat(), [SIX, [1, 2]]),
    "concat, of a shape": (lambda c: new(c).split([3, 0]).concat([2]), [SIX, [3, 0]]),
    "concat nothing": (lambda c: new(c, 0).concat([2]), [np.zeros((0, 2)), []]),
    "concat what is not there": (lambda c: new(c, shape=[2]).write((0, X[0])).concat(), [[1, 2, 0, 0], [2, 2]]),
    "split into more": (lambda c: [new(c, 0, dynamic_size=True).split([1, 1, 1]).size()], [3]),
    "the flow passes": (lambda c: [new(c)._replace(flow=c("Fill", np.int32([]), 7.5)).write((0, X)).flow], [7.5]),
    "gradient of nothing": (lambda c: [(g := two(c).gradient()).read(0), g.size(), g.flow], [[0, 0], 2, 0]),
    "gradients are sums": (
        lambda c: [two(c).gradient().write((0, [5.0, 6.0]), (0, [1.0, 1.0]), (0, [1.0, 2.0])).read(0)], [[7, 9]]),
    "one gradient for one source": (
        lambda c: [TA(c, (a := two(c)).gradient().handle, a.gradient().write((0, [5.0, 6.0])).flow).read(0)], [[5, 6]]),
    "other sources, other gradients": (
        lambda c: [(a := two(c)).gradient("h").after(a.gradient().write((0, [5.0, 6.0])).flow).read(0)], [[0, 0]]),
    "gradient of what is not there": (lambda c: [new(c, shape=[1]).write((0, [1.0])).gradient().read(1)], [[0]]),
    "gradient of what is behind the end": (lambda c: [new(c, shape=[1]).write((0, [1.0])).gradient().read(4)], [[0]]),
    "gradient of scalars": (lambda c: [new(c).write((0, 1.0)).gradient().read(0)], [0]),
    "gradients gathered": (lambda c: [two(c).gradient().write((0, [5.0, 6.0])).gather([0, 1])], [[[5, 6], [0, 0]]]),
    "gradients joined": (lambda c: new(c).split([1, 2]).gradient().write((0, [[5.0, 6.0]])).concat(),
                         [[[5, 6], [0, 0], [0, 0]], [1, 2]]),
    "gradients scattered": (lambda c: [two(c).gradient().scatter([0, 1]).scatter([0, 1]).gather([0, 1])],
                            [[[2, 4], [6, 8]]]),
    "gradients of more": (lambda c: [two(c).gradient_with([3]).read(0)], [np.zeros((3, 2))]),
    "gradients of more, written": (
        lambda c: [two(c, shape=[2]).gradient_with([1]).write((0, [X[0]])).read(0)], [[X[0]]]),
    "push": (lambda c: [*new_stack(c).push([1.0, 2.0]).last], [[1, 2]]),
    "pop": (both_pops, [2, [1]]),
    "push beyond a negative bound": (lambda c: [*new_stack(c, -3).push([1.0]).last], [[1]]),
    "push and pop a text": (lambda c: [*new_stack(c, dtype=TEXT).push([b"a"]).pop(TEXT).last], [[b"a"]]),
    "close twice": (lambda c: [*new_stack(c).close().close().last], []),
    "gather nothing from a closed array": (lambda c: [two(c).close().gather([], [2])], [np.zeros((0, 2))]),
    "close an array twice": (lambda c: [new(c).close().close().flow], [0]),
}


@pytest.mark.parametrize("fed", [False, True], ids=["constants", "fed"])
@pytest.mark.parametrize("name", GIVES)
def test_ops_on_arrays_and_stacks_give(name: str, fed: bool) -> None:
    make, expected = GIVES[name]
    chain = Chain()
    chain.gives(make(chain), expected, fed=fed)


REFUSED: dict[str, Made] = {
    "a negative size": lambda c: new(c, -2).flow,
    "a vector of sizes": lambda c: new(c, [2]).flow,
    "write another shape": lambda c: two(c, shape=[3]).flow,
    "write another shape than is known in part": lambda c: two(c, shape=[None, 3]).flow,
    "write another shape than the first": (
        lambda c: new(c, identical_element_shapes=True).write((0, X[0]), (1, [1.0])).flow),
    "write another type": lambda c: two(c, dtype=INT).flow,
    "write behind the end": lambda c: new(c).write((2, X)).flow,
    "write below": lambda c: new(c).write((-1, X)).flow,
    "write below, where it grows": lambda c: new(c, dynamic_size=True).write((-1, X)).flow,
    "write by a vector": lambda c: new(c).write(([1], X)).flow,
    "write twice": lambda c: new(c).write((0, X), (0, X)).flow,
    "write what was read": lambda c: (a := two(c)).after(a.read(0)).write((0, X)).flow,
    "write what was read before it was there": (
        lambda c: (a := new(c, shape=[1])).after(a.read(0)).write((0, [1.0])).flow),
    "read twice": lambda c: (a := two(c)).after(a.read(0)).read(0),
    "read by a vector": lambda c: two(c).read([0]),
    "read another type": lambda c: two(c).read(0, INT),
    "read behind the end": lambda c: new(c, shape=[1]).read(2),
    "read below": lambda c: new(c, shape=[1]).read(-1),
    "read what is not there, of a shape known in part": lambda c: new(c, shape=[None]).read(0),
    "read a text that is not there": lambda c: new(c, shape=[2], dtype=TEXT).read(1, TEXT),
    "gather another shape": lambda c: two(c).gather([1, 0], [3]),
    "gather another shape than the array's": lambda c: two(c, shape=[2]).gather([1, 0], [3]),
    "gather one twice": lambda c: two(c).gather([1, 1]),
    "gather behind the end": lambda c: two(c).gather([2]),
    "gather by a scalar": lambda c: two(c).gather(1),
    "gather two shapes": lambda c: new(c).write((0, X[0]), (1, [1.0])).gather([0, 1]),
    "gather another type": lambda c: two(c).gather([1], dtype=INT),
    "gather what is not there": lambda c: new(c).write((0, X[0])).gather([0, 1]),
    "gather nothing of unknown shape": lambda c: two(c).gather([]),
    "gather nothing, though the array has a shape": lambda c: two(c, shape=[2]).gather([]),
    "scatter behind the end": lambda c: new(c).scatter([2, 0]).flow,
    "scatter below": lambda c: new(c).scatter([-1, 0]).flow,
    "scatter, other rows": lambda c: new(c).scatter([0]).flow,
    "scatter a scalar": lambda c: new(c).scatter([0], 1.0).flow,
    "scatter by a scalar": lambda c: new(c).scatter(0).flow,
    "scatter twice": lambda c: new(c).scatter([0, 0]).flow,
    "scatter another type": lambda c: new(c, dtype=INT).scatter([0, 1]).flow,
    "scatter another shape": lambda c: new(c, shape=[3]).scatter([0, 1]).flow,
    "concat another shape": lambda c: new(c).split([1, 2]).concat([3]),
    "concat nothing": lambda c: new(c, 0).concat(),
    "concat scalars": lambda c: new(c, 1).write((0, 1.0)).concat(),
    "concat two shapes": lambda c: new(c).write((0, [[1.0, 2.0]]), (1, [[3.0]])).concat(),
    "split into less": lambda c: new(c).split([1, 1]).flow,
    "split into fewer": lambda c: new(c, 3).split([1, 2]).flow,
    "split into fewer, where it grows": lambda c: new(c, 3, dynamic_size=True).split([1, 2]).flow,
    "split a scalar": lambda c: new(c, 1).split([1], 1.0).flow,
    "split another type": lambda c: new(c, dtype=INT).split([1, 2]).flow,
    "split by a matrix": lambda c: new(c).split([[1, 2]]).flow,
    "split another shape": lambda c: new(c, shape=[1, 3]).split([1, 2]).flow,
    "the size of a closed array": lambda c: two(c).close().size(),
    "read a closed array": lambda c: two(c).close().read(0),
    "write a closed array": lambda c: two(c).close().write((0, X)).flow,
    "gather from a closed array": lambda c: two(c).close().gather([0], [2]),
    "concat a closed array": lambda c: two(c).close().concat(),
    "split into a closed array": lambda c: new(c).close().split([1, 2]).flow,
    "scatter into a closed array": lambda c: new(c).close().scatter([1, 0]).flow,
    "gradient of a closed array": lambda c: new(c).close().gradient().flow,
    "sums of two shapes": lambda c: two(c).gradient().write((0, [5.0, 6.0]), (0, [1.0])).flow,
    "sums of truths": (
        lambda c: new(c, dtype=BOOL).write((0, [True])).gradient().write((0, [True]), (0, [True])).flow),
    "sums of texts": lambda c: new(c, dtype=TEXT).write((0, [b"a"])).gradient().write((0, [b"a"]), (0, [b"b"])).flow,
    "gradient of unknown shape": lambda c: new(c).write((0, [1.0])).gradient().read(1),
    "gradient written behind the end": lambda c: new(c, shape=[1]).write((0, [1.0])).gradient().write((4, [1.0])).flow,
    "gradient read twice": lambda c: (g := two(c).gradient()).after(g.read(0)).read(0),
    "growing with a gradient": (
        lambda c: (a := new(c, dynamic_size=True).write((0, X))).after(a.gradient().flow).write((3, X)).flow),
    "gradient of a gradient": lambda c: two(c).gradient().gradient("h").flow,
    "gradient of more, another shape": lambda c: two(c).gradient_with([3]).write((0, X[0])).flow,
    "gradient of fewer than none": lambda c: two(c).gradient_with([-1]).flow,
    "gradient of a scalar more": lambda c: two(c).gradient_with(3).flow,
    "a stack as an array": lambda c: TA(c, new_stack(c).handle, c("Fill", np.int32([]), 0.0)).size(),
    "pop of nothing": lambda c: [*new_stack(c).pop().last],
    "push onto a full stack": lambda c: [*new_stack(c, 1).push(1.0, 2.0).last],
    "push onto no stack at all": lambda c: [*new_stack(c, 0).push(1.0).last],
    "a vector of bounds": lambda c: [*new_stack(c, [3]).push(1.0).last],
    "push another type": lambda c: [*new_stack(c).push(np.int32(1)).last],
    "pop another type": lambda c: [*new_stack(c).push(1.0).pop(INT).last],
    "push onto a closed stack": lambda c: [*new_stack(c).close().push(1.0).last],
    "pop off a closed stack": lambda c: [*new_stack(c).push(1.0).close().pop().last],
    "an array as a stack": lambda c: [*Stack(c, new(c).handle).push(1.0).last],
}
KINDS: dict[str, type[HealdError]] = {
    "gather nothing of unknown shape": Unimplemented, "gather nothing, though the array has a shape": Unimplemented,
    "concat nothing": Unimplemented, "pop another type": InvalidArgument,
}
CODES = {name: kind.code for name, kind in KINDS.items()}


@pytest.mark.parametrize("fed", [False, True], ids=["constants", "fed"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_tensor_that_does_not_fit_an_array_or_a_stack_is_an_error(name: str, fed: bool) -> None:
    chain = Chain()
    fetches = REFUSED[name](chain)
    with pytest.raises(KINDS.get(name, InvalidArgument)) as caught:
        chain.run(fetches if isinstance(fetches, list) else [fetches], fed=fed)
    assert caught.value.node


SHAPES: dict[str, tuple[Made, str]] = {
    "read": (lambda c: new(c, shape=[2]).read(0), "[2]"),
    "read, elements may differ": (lambda c: new(c, shape=[None, 2]).read(0), "<unknown rank>"),
    "read, elements are alike": (lambda c: new(c, shape=[None, 2], identical_element_shapes=True).read(0), "[?,2]"),
    "gather": (lambda c: new(c, shape=[2]).gather([1, 0, 1]), "[3,2]"),
    "gather, of a shape": (lambda c: new(c).gather([1, 0, 1], [None, 2]), "[3,?,2]"),
    "gradient": (lambda c: new(c, shape=[2]).gradient().read(0), "[2]"),
    "gradient of more": (lambda c: new(c, shape=[2]).gradient_with([3]).read(0), "[3,2]"),
    "concat": (lambda c: new(c).concat([2])[0], "[?,2]"),
    "flow": (lambda c: two(c).flow, "[]"),
    "push": (lambda c: new_stack(c).push([1.0, 2.0]).last[0], "[2]"),
    "pop": (lambda c: new_stack(c).push([1.0, 2.0]).pop().last[0], "<unknown rank>"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_handle_gives_its_types_before_the_run(name: str) -> None:
    """At least what TensorFlow knows."""
    make, shape = SHAPES[name]
    chain = Chain()
    assert chain.static_shape(make(chain)).endswith(shape)


@pytest.mark.parametrize("make", [
    lambda c: new(c, 2**31 - 1).size(),
    lambda c: new(c, dynamic_size=True).write((2**31 - 1, 1.0)).size(),
    lambda c: new(c, shape=[]).gradient().read(2**31 - 1),
], ids=["made", "written", "read"])
def test_more_places_than_memory_has_are_an_error(make: Made) -> None:
    chain = Chain()
    with pytest.raises(ResourceExhausted):
        chain.run([make(chain)])


def test_a_tensor_that_was_read_is_the_callers_own_and_each_run_has_its_own_array() -> None:
    chain = Chain()
    array = new(chain, clear_after_read=False).write((0, [1.0, 2.0]))
    stack = new_stack(chain).push([3.0, 4.0])
    gradient = array.gradient().write((0, [5.0, 6.0]))
    fetches = [array.read(0), array.read(0), *stack.last, *stack.pop().last, gradient.read(0)]
    with heald.Session(chain.graph()) as session:
        for _ in range(2):
            fetched = session.run(fetches)
            assert [x.tolist() for x in fetched] == [[1, 2], [1, 2], [3, 4], [3, 4], [5, 6]]
            for i, x in enumerate(fetched):
                x[:] = -i
            assert [x[0] for x in fetched] == [0, -1, -2, -3, -4]


def test_a_sum_is_made_in_memory_of_its_own() -> None:
    chain = Chain()
    once = chain("Neg", np.float32([-1, -2]))
    gradient = new(chain, shape=[2]).gradient().write((0, once), (0, once), (0, once))
    total = gradient.read(0)
    assert [x.tolist() for x in chain.run([total, once], fed=True)] == [[3, 6], [1, 2]]


KEEPERS: dict[str, tuple[Callable[[Chain, str], str], Any]] = {
    "write": (lambda c, x: new(c).write((0, x)).read(0), X),
    "scatter": (lambda c, x: new(c).scatter([0, 1], x).gather([0, 1]), X),
    "split": (lambda c, x: new(c).split([1, 1], x).concat()[0], X),
    "gradient": (lambda c, x: new(c, shape=[2, 2]).gradient().write((0, x)).read(0), X),
    "push": (lambda c, x: new_stack(c).push(x).pop().last[0], X),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_an_array_keeps_no_buffer_of_the_frame(name: str) -> None:
    make, want = KEEPERS[name]
    chain = Chain()
    read = make(chain, chain("Identity", chain("AddV2", X, np.zeros((2, 2)))))
    assert chain.run([read], fed=True, config=POISON)[0].tolist() == want
