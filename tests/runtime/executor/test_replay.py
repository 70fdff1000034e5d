"""Kernels of a device that can capture them are replayed as one call, from a frame's second run on.

SIM reads feeds in host memory, so the first kernel of a chain has no fixed buffer and is launched by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.runtime.service.runtime import runtime
from heald_sim.kernels import StreamKernel

pytestmark = pytest.mark.usefixtures("graphs_as_written")
X = np.float32([1, -2, 3])
SIM = "SIM:0"
Captured = list[int]


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Iterator[Captured]:
    """For each capture the number of its calls; the device has captured nothing before."""
    device, counts = runtime().host.open(SIM), []
    capture = device.capture  # type: ignore[attr-defined]

    def capture_and_count(calls: Sequence[Callable[[], object]], stream: object) -> Callable[[], None]:
        counts.append(len(calls))
        return capture(calls, stream)  # type: ignore[no-any-return]

    monkeypatch.setattr(device, "capture", capture_and_count, raising=False)
    yield counts
    assert device.native.report == []


def chain(*ops: tuple[str, str]) -> Any:
    """Each op over the one before, on its device; the last is `last`."""
    names = [*(f"n{i}" for i in range(len(ops) - 1)), "last"]
    return graph(placeholder("x", (3,)), *(node(name, op, before, device=device) for name, before, (op, device)
                                           in zip(names, ["x", *names], ops, strict=False)))


def algorithms_of(session: heald.Session) -> dict[str, str]:
    return session.prepare(["last"], ["x"]).executable(((3,),)).algorithms()


def test_kernels_in_a_row_are_captured_once_behind_the_first_run(captures: Captured) -> None:
    with heald.Session(chain(("Identity", SIM), ("Neg", SIM), ("Relu", SIM), ("Square", SIM), ("Neg", SIM))) as session:
        for run in range(3):
            assert session.run("last", {"x": X + run}).tolist() == (-np.maximum(-X - run, 0) ** 2).tolist()
            assert captures == [3]
        assert algorithms_of(session)["last"] == "one of 3 kernels in one launch"
        assert algorithms_of(session)["n1"] == "launched singly: its values have no fixed buffers"


def test_kernels_on_both_sides_of_another_device_are_captured_apart(captures: Captured) -> None:
    ops = ("Neg", SIM), ("Relu", SIM), ("Square", SIM), ("Neg", "CPU:0"), ("Relu", SIM), ("Square", SIM), ("Neg", SIM)
    with heald.Session(chain(*ops)) as session:
        for _ in range(2):
            assert session.run("last", {"x": X}).tolist() == [0, 0, 0]
    assert captures == [2]  # the second part comes late, behind a value that is awaited


def test_a_kernel_by_itself_is_not_captured(captures: Captured) -> None:
    with heald.Session(chain(("Neg", SIM), ("Square", SIM))) as session:
        session.run("last", {"x": X})
        assert algorithms_of(session)["last"] == "launched singly: no kernel stands beside it"
    assert captures == []


def test_a_kernel_that_says_so_is_launched_singly(captures: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamKernel, "captures", False, raising=False)
    with heald.Session(chain(("Neg", SIM), ("Relu", SIM), ("Square", SIM))) as session:
        session.run("last", {"x": X})
        assert algorithms_of(session)["last"] == "launched singly: its kernel says so"
    assert captures == []


def test_a_traced_run_launches_each_kernel(captures: Captured) -> None:
    with heald.Session(chain(("Neg", SIM), ("Relu", SIM), ("Square", SIM))) as session:
        session.run("last", {"x": X})
        native, metadata = runtime().host.open(SIM).native, heald.RunMetadata()
        before = len(native.spans)
        session.run("last", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
        assert len(native.spans) - before == 5  # two copies, three launches
        nodes = [event.call.node for event in metadata.trace.events if event.call.op != "copy"]
        assert nodes == ["n0", "n1", "last"]
    assert captures == [2]


def test_a_device_that_declines_goes_on_launching(monkeypatch: pytest.MonkeyPatch) -> None:
    device = runtime().host.open(SIM)
    monkeypatch.setattr(device, "capture", lambda calls, stream: None, raising=False)
    with heald.Session(chain(("Neg", SIM), ("Relu", SIM), ("Neg", SIM))) as session:
        for run in range(3):
            assert session.run("last", {"x": X + run}).tolist() == (-np.maximum(-X - run, 0)).tolist()


def test_a_failing_capture_is_an_error_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    device = runtime().host.open(SIM)

    def capture(calls: object, stream: object) -> None:
        raise RuntimeError("no capture today")

    monkeypatch.setattr(device, "capture", capture, raising=False)
    with (heald.Session(chain(("Neg", SIM), ("Relu", SIM), ("Neg", SIM))) as session,
          pytest.raises(heald.errors.HealdError, match="no capture today") as raised):
        session.run("last", {"x": X})
    assert raised.value.device == SIM
