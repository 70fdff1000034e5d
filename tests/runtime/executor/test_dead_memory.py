"""With `[debug] poison`, a kernel that reads memory which is not its own any more gives nonsense, each time."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import InvalidArgument
from heald.runtime.executor.dead_memory import poisoning_calls
from plugins_for_tests import kept_plugin

PLAIN = kept_plugin.CONFIG | {"debug": {"poison": False}}
POISON = kept_plugin.CONFIG | {"debug": {"poison": True}}
X = np.float32([1, 2, 3])
NONSENSE = kept_plugin.poison(X)

COPIED = (placeholder("x", (3,)), node("a", "Kept>Copy", "x"))
FAULTS = {
    "an input that is kept and not declared as retained": (
        *COPIED, node("k", "Kept>Keep", "a", declared=False), node("y", "Kept>Recall", "k", of="k")),
    "a view of an input that is kept": (
        *COPIED, node("v", "Identity", "a"), node("k", "Kept>Keep", "v", declared=False),
        node("y", "Kept>Recall", "k", of="k")),
    "a small feed that is kept": (
        placeholder("x", (3,)), node("k", "Kept>Keep", "x", declared=False), node("b", "AddV2", "x", "x"),
        node("c", "Sub", "k", "b"), node("y", "Kept>Recall", "c", of="k")),
    "a new output that is the input": (*COPIED, node("y", "Kept>Itself", "a")),
    "an output that is expected to be what the last run left": (
        *COPIED, node("o", "Kept>Once", "a"), node("y", "Kept>Copy", "o")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_declaration_goes_unseen_without_poison_and_shows_with_it(fault):
    outcomes = {}
    for config in (PLAIN, POISON):
        step = heald.Session(graph(*FAULTS[fault]), config).make_callable("y", ["x"])
        step(X)
        outcomes[config["debug"]["poison"]] = step(X).tolist()
    assert outcomes == {False: X.tolist(), True: NONSENSE.tolist()}


@pytest.mark.parametrize("device", ["CPU:0", "EXAMPLE:0"])
def test_right_kernels_give_the_same_with_poison_whatever_their_memory(device):
    nodes = [placeholder("x", (3,)), node("a", "Neg", "x", device=device), node("b", "Neg", "a", device=device),
             node("c", "Mul", "a", "b", device=device), node("y", "Kept>Copy", "c")]
    step = heald.Session(graph(*nodes), POISON).make_callable("y", ["x"])
    for _ in range(3):
        assert step(X).tolist() == (-X * X).tolist()


def test_an_error_finds_its_call_with_poison_too():
    nodes = [*COPIED, node("b", "Neg", "a"), node("bad", "Reshape", "b", "shape", Tshape=heald.api.dtypes.int32),
             placeholder("shape", (1,), heald.api.dtypes.int32), node("y", "Neg", "bad")]
    step = heald.Session(graph(*nodes), POISON).make_callable("y", ["x", "shape"])
    for _ in range(2):
        with pytest.raises(InvalidArgument) as caught:
            step(X, np.int32([2]))
        assert caught.value.node == "bad"
        assert step(X, np.int32([3])).tolist() == X.tolist()


def test_a_frame_without_poison_has_the_kernels_own_calls():
    nodes = graph(*COPIED, node("y", "Kept>Copy", "a"))
    for config in (PLAIN, POISON):
        executable = heald.Session(nodes, config).prepare("y", ["x"]).executable()
        executable.make_frame()  # which looks at what its calls return, once
        frame = executable.make_frame()
        names = [getattr(call, "__qualname__", "") for call in frame.calls]
        assert any("poison" in name for name in names) == (config is POISON)


def test_memory_is_poisoned_when_it_is_made_after_the_last_read_and_as_a_whole_at_the_end():
    first, second = np.zeros(2, np.uint8), np.zeros(2, np.uint8)
    memory = {1: first, 2: second, 3: first}  # 3 takes 1's place
    outcomes = []

    def call():
        outcomes.append((int(first[0]) == 0xCB, int(second[0]) == 0xCB))
        first[:] = second[:] = 1

    for run in poisoning_calls([call] * 5, [{0, 1}, {1, 2}, {2, 3}, {3}, {0}], memory):
        run()
        outcomes.append((int(first[0]) == 0xCB, int(second[0]) == 0xCB))
    assert outcomes == [(True, True), (False, False),  # writes 1
                        (False, False), (True, False),  # reads 1 for the last time, writes 2
                        (True, False), (False, True),  # reads 2 for the last time, writes 3
                        (False, True), (True, False),  # reads 3 for the last time
                        (True, False), (True, True)]


def test_memory_that_is_taken_over_in_place_is_not_poisoned():
    block = np.zeros(2, np.uint8)
    calls = poisoning_calls([lambda: block.fill(1), lambda: block.fill(2), lambda: None],
                            [{1}, {1, 2}, {2}], {1: block, 2: block})
    outcomes = []
    for call in calls:
        call()
        outcomes.append(block.tolist())
    assert outcomes == [[1, 1], [2, 2], [0xCB, 0xCB]]
    assert poisoning_calls([], [], {1: block}) == []
