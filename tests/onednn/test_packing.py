"""Weights that threads lay anew: results, errors, and the threads' end."""

from __future__ import annotations

import threading
import time

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import ALONE, compare, conv, library, numbers
from harness.threads import in_threads
from heald_onednn import packing, products
from heald_onednn.packing import Packed, packers


@pytest.fixture
def packing_in_threads(monkeypatch):
    """Packing in threads for arrays of any size and any number of cores."""
    monkeypatch.setattr(packing, "SMALLEST_THREADED_BYTES", 0)
    monkeypatch.setattr(library(), "threads", 2)


def packer_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "heald-onednn-packer"]


@pytest.mark.usefixtures("packing_in_threads")
def test_kernels_whose_weights_are_packed_by_threads_give_what_numpys_give(monkeypatch):
    added, add = [], packers().add
    monkeypatch.setattr(packers(), "add", lambda packed: (added.append(packed), add(packed)))
    nodes, last = [placeholder("x")], "x"
    for i, taps in enumerate((1, 3, 5)):
        nodes += [const(f"w{i}", numbers(taps, taps, 64, 64) / 64), conv(f"y{i}", last, f"w{i}"),
                  node(f"r{i}", "Relu", f"y{i}")]
        last = f"r{i}"
    compare(nodes, {"x": numbers(1, 28, 28, 64)}, last, close=1e-5)
    assert len(added) == 3


@pytest.mark.usefixtures("packing_in_threads")
def test_packed_weights_are_made_once_for_all_their_readers():
    makes = []

    def make():
        makes.append(threading.get_ident())
        time.sleep(0.01)
        return np.zeros(1, np.uint8)

    packed = packing.pack_in_thread(1, make)
    arrays = []
    in_threads(lambda _: arrays.append(packed()))
    assert len(makes) == 1
    assert all(array is arrays[0] for array in arrays)


def test_small_arrays_are_made_at_once():
    assert packing.pack_in_thread(100, lambda: np.ones(1, np.uint8)).tolist() == [1]


@pytest.mark.usefixtures("packing_in_threads")
def test_an_error_of_packing_is_raised_to_the_reader_and_threads_go_on():
    def fail():
        raise MemoryError("of 1 byte")

    failing, packed = packing.pack_in_thread(1, fail), packing.pack_in_thread(1, lambda: np.ones(1, np.uint8))
    for _ in range(2):
        with pytest.raises(MemoryError, match="of 1 byte"):
            failing()
    assert packed().tolist() == [1]


@pytest.mark.usefixtures("packing_in_threads")
def test_a_thread_without_memory_is_told_of_with_the_node(monkeypatch):
    def fail(*_):
        raise MemoryError("of 1 byte")

    monkeypatch.setattr(products, "pack_array", fail)
    nodes = [placeholder("x"), const("w", numbers(1, 1, 8, 8)), conv("y", "x", "w"), node("z", "Neg", "y")]
    with (heald.Session(graph(*nodes), ALONE) as session,
          pytest.raises(heald.errors.ResourceExhausted, match="of 1 byte") as caught):
        session.run("z", {"x": numbers(1, 9, 9, 8)})
    assert caught.value.node == "y"


@pytest.mark.usefixtures("packing_in_threads")
def test_threads_end_when_nothing_is_left_to_do():
    arrays = [packing.pack_in_thread(1, lambda: np.ones(1, np.uint8)) for _ in range(20)]
    assert len(packer_threads()) <= 2
    for array in arrays:
        array()
    for thread in packer_threads():
        thread.join(10)
    assert not packer_threads()


def test_a_child_makes_the_array_that_a_thread_of_its_parent_was_packing():
    has_begun, goes_on = threading.Event(), threading.Event()

    def make():
        if not has_begun.is_set():
            has_begun.set()
            goes_on.wait(10)
        return np.ones(1, np.uint8)

    packed = Packed(make)
    thread_of_parent = threading.Thread(target=packed)
    thread_of_parent.start()
    assert has_begun.wait(10)
    packed.forked()
    packers().forked()
    packers().add(packed)
    assert packed().tolist() == [1]
    goes_on.set()
    thread_of_parent.join(10)
