"""A kernel writes every output, returns no other array, and changes no input; the error names a kernel that does."""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import HealdError, PluginError
from heald.graphs.graph.attr_value import ShapeAttr
from heald.runtime.executor.array_contract import check_first_run, checked_run_function
from heald.runtime.executor.frame import Frame
from heald.runtime.executor.step import RunOptions
from heald.runtime.service.prepared_step import LARGEST_VARIANT_COUNT
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin(name) for name in ("contracts", "tests")]}}
POISON = CONFIG | {"debug": {"poison": True}}
X = np.float32([1, 2, 3])
NONSENSE = np.full(12, 0xCB, np.uint8).view(np.float32).tolist()


def cube(how, source="x", op="Cube", name="y"):
    return node(name, f"Contract>{op}", source, how=how)


BINDINGS = {  # nodes in which a cube of (1, 2, 3) is made: y
    "alone": lambda how: [placeholder("x", (3,)), cube(how)],
    "attached": lambda how: [placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Neg", "a"),
                             cube(how, "b", "CubeAttached", "c"), node("d", "Neg", "c"), node("y", "Neg", "d")],
    "between buffers": lambda how: [placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Neg", "a"),
                                    cube(how, "b", name="c"), node("d", "Neg", "c"), node("y", "Neg", "d")],
    "with its step": lambda how: [placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Neg", "a"),
                                  cube(how, "b", "CubeWithStep")],
    "behind an asynchronous kernel": lambda how: [
        placeholder("x", (3,)), const("zero", [0, 0, 0]), node("later", "Test>Later", "x", "zero"), cube(how, "later")],
    "of a value that dies there": lambda how: [
        placeholder("x", (3,)), const("i", [0, 1, 2], np.int32), node("own", "DynamicStitch", "i", "x", N=1),
        node("a", "EnsureShape", "own", shape=ShapeAttr((3,))), cube(how, "a", name="c"), node("d", "Neg", "c"),
        node("y", "Neg", "d")],
    "of any shape": lambda how: [placeholder("x"), cube(how)],
    "of a constant": lambda how: [placeholder("x", (3,)), const("c", X), cube(how, "c", name="k"),
                                  node("zero", "Sub", "x", "x"), node("y", "AddV2", "k", "zero")],
}


def step_of(binding, how, config):
    """The step of a binding, on the dynamic variant if it takes any shape."""
    step = heald.Session(graph(*BINDINGS[binding](how)), config).make_callable("y", ["x"])
    if binding == "of any shape":
        for n in range(4, 4 + LARGEST_VARIANT_COUNT):
            with suppress(HealdError):
                step(np.zeros(n, np.float32))
    return step


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("how", ["returns", "returns_a_tuple"])
@pytest.mark.parametrize("config", [CONFIG, POISON], ids=["plain", "poison"])
def test_a_kernel_that_returns_an_array_in_place_of_writing_it_is_named(binding, how, config):
    step = step_of(binding, how, config)
    with pytest.raises(PluginError, match=r"Contract>Cube\w* \(plugin .*contracts.*\) returned an array") as caught:
        step(X)
    assert caught.value.node in ("y", "c", "k")
    assert "allocates=True" in caught.value.hint


@pytest.mark.parametrize("binding", [binding for binding in BINDINGS if binding != "of a constant"])
@pytest.mark.parametrize(("how", "what"), [("changes", "(an|its) input"), ("changes_past_numpy", "its input 0")])
def test_a_kernel_that_changes_its_input_is_named_with_poison(binding, how, what):
    step = step_of(binding, how, POISON)
    with pytest.raises(PluginError, match=rf"Contract>Cube\w* \(plugin .*contracts.*\) changed {what}") as caught:
        step(X.copy())
    assert caught.value.node in ("y", "c", "k")
    assert caught.value.device == "CPU:0"


def test_a_constant_is_no_array_that_a_kernel_can_change():
    with pytest.raises(PluginError, match="Contract>Cube failed with ValueError: output array is read-only"):
        step_of("of a constant", "changes", CONFIG)(X)


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_kernel_that_writes_nothing_gives_nonsense_with_poison_each_time(binding):
    step = step_of(binding, "writes_nothing", POISON)
    assert [step(X).tolist() for _ in range(3)] == [NONSENSE] * 3


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("how", ["writes", "writes_and_counts"])
@pytest.mark.parametrize("config", [CONFIG, POISON], ids=["plain", "poison"])
def test_a_kernel_may_return_its_output_or_what_is_no_array(binding, how, config):
    step = step_of(binding, how, config)
    assert [step(x).tolist() for x in (X, X, X)] == [[1, 8, 27]] * 3


@pytest.mark.parametrize("config", [CONFIG, POISON], ids=["plain", "poison"])
def test_a_kernel_that_returns_an_array_is_named_in_a_traced_run_too(config):
    session = heald.Session(graph(*BINDINGS["between buffers"]("returns")), config)
    with pytest.raises(PluginError, match="returned an array"):
        session.run("y", {"x": X}, options=RunOptions(trace=True))


def test_a_kernel_on_a_device_that_writes_nothing_gives_nonsense_with_poison():
    nodes = [placeholder("x", (3,)), node("y", "Contract>Cube", "x", how="writes_nothing", device="EXAMPLE:0")]
    step = heald.Session(graph(*nodes), POISON).make_callable("y", ["x"])
    assert [step(X).tolist() for _ in range(2)] == [NONSENSE] * 2


def test_a_kernel_on_a_device_that_returns_an_array_is_named():
    nodes = [placeholder("x", (3,)), node("y", "Contract>Cube", "x", how="returns", device="EXAMPLE:0")]
    with pytest.raises(PluginError, match="returned an array") as caught:
        heald.Session(graph(*nodes), CONFIG).run("y", {"x": X})
    assert (caught.value.node, caught.value.device) == ("y", "EXAMPLE:0")


def test_an_output_over_its_input_is_neither_overwritten_nor_compared():
    x, y = np.float32([1, 2]), np.float32([3, 4])
    poisoned = []
    run = checked_run_function(np.add, [poisoned.append], kernel=None)
    run(x, y, x)
    assert (x.tolist(), poisoned) == ([4, 6], [])
    out = np.empty_like(x)
    run(x, y, out)
    assert len(poisoned) == 1


def test_calls_are_checked_in_the_first_run_and_replaced_by_themselves():
    calls, checked_results = [lambda: 1, lambda: None, lambda: 3], []
    frame = Frame([], list(calls), [], [], range(len(calls)))
    check_first_run(frame, lambda index, returned: checked_results.append((index, returned)))
    for _ in range(2):
        for call in frame.calls:
            call()
    assert checked_results == [(0, 1), (2, 3)]
    assert frame.calls == calls


def test_a_frame_that_is_never_run_is_freed_with_its_last_reference():
    gc.disable()
    try:
        frame = Frame([], [lambda: None], [], [], [0])
        check_first_run(frame, lambda index, returned: None)
        frame_reference = weakref.ref(frame)
        block = weakref.ref(frame.calls[0])
        del frame
        assert (frame_reference(), block()) == (None, None)
    finally:
        gc.enable()
