"""Copies of a GPU go on streams of their own. Each wait between the streams is needed: the tests leave one out."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.api import STREAM, Node, dtypes

X = np.arange(4096, dtype=np.float32)
TEXT = """
extern "C" __global__ void scale(const float* __restrict__ x, float* __restrict__ y, float by, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}
"""


def scale(device: Any, x: Any, y: Any) -> None:
    device.native.kernel(TEXT, "scale")((16,), (256,), x, y, np.float32(2), np.int64(X.size))


def kernel_after_copy_in(device: Any, x: Any, y: Any, _: Any) -> None:
    device.copy_in(X, x, STREAM)
    scale(device, x, y)


def copy_out_after_kernel(device: Any, x: Any, y: Any, host: Any) -> None:
    scale(device, x, y)
    device.copy_out(y, host, STREAM)


def copy_in_after_kernel(device: Any, x: Any, y: Any, _: Any) -> None:
    scale(device, x, y)
    device.copy_in(X, x, STREAM)


def kernel_after_copy_out(device: Any, x: Any, y: Any, host: Any) -> None:
    device.copy_out(y, host, STREAM)
    scale(device, x, y)


def copy_in_after_copy_out(device: Any, x: Any, _: Any, host: Any) -> None:
    device.copy_out(x, host, STREAM)
    device.copy_in(X, x, STREAM)


def copy_out_after_copy_in(device: Any, x: Any, _: Any, host: Any) -> None:
    device.copy_in(X, x, STREAM)
    device.copy_out(x, host, STREAM)


def free_after_copy_out(device: Any, x: Any, _: Any, host: Any) -> None:
    device.copy_out(x, host, STREAM)
    device.free(x)


def kernel_after_copy_out_of_a_part(device: Any, x: Any, y: Any, host: Any) -> None:
    device.copy_out(device.part(y, 256, 1024), host[:256], STREAM)
    scale(device, x, y)


def copy_in_after_kernel_on_a_part(device: Any, x: Any, y: Any, _: Any) -> None:
    device.native.kernel(TEXT, "scale")((4,), (256,), device.part(x, 256, 4096), y, np.float32(2), np.int64(1024))
    device.copy_in(X, x, STREAM)


def free_after_copy_out_of_a_part(device: Any, x: Any, _: Any, host: Any) -> None:
    device.copy_out(device.part(device.part(x, 256, 1024), 256, 512), host[:128], STREAM)
    device.free(x)


ORDERS: list[Callable[..., None]] = [
    kernel_after_copy_in, copy_out_after_kernel, copy_in_after_kernel, kernel_after_copy_out, copy_in_after_copy_out,
    copy_out_after_copy_in, free_after_copy_out, kernel_after_copy_out_of_a_part, copy_in_after_kernel_on_a_part,
    free_after_copy_out_of_a_part,
]


def buffers_at_rest(device: Any) -> list[Any]:
    buffers = [device.allocate(X.nbytes) for _ in range(2)]
    for buffer in buffers:
        device.copy_in(X, buffer, STREAM)
    device.synchronize(device.record(STREAM))
    scale(device, *buffers)
    device.synchronize(device.record(STREAM))
    return buffers


@pytest.mark.parametrize("order", ORDERS)
def test_work_on_two_streams_needs_its_wait(
    gpu: Any, fake: ModuleType, monkeypatch: pytest.MonkeyPatch, order: Callable[..., None]
) -> None:
    x, y = buffers_at_rest(gpu)
    host = np.empty_like(X)
    waits = fake.state.calls["wait"]
    order(gpu, x, y, host)
    gpu.synchronize(gpu.record(STREAM))
    assert fake.state.calls["wait"] > waits

    x, y = buffers_at_rest(gpu)
    monkeypatch.setattr(fake, "wait", lambda _stream, _event: None)
    order(gpu, x, y, host)
    with pytest.raises(fake.Misuse, match="nothing orders them"):
        gpu.synchronize(gpu.record(STREAM))
    monkeypatch.undo()
    fake.state.report.clear()


def test_work_behind_a_missing_wait_reads_the_bytes_of_before(
    gpu: Any, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = buffers_at_rest(gpu)
    monkeypatch.setattr(fake, "wait", lambda _stream, _event: None)
    for _ in range(50):
        gpu.copy_in(X, gpu.allocate(X.nbytes), STREAM)
    gpu.copy_in(-X, x, STREAM)
    scale(gpu, x, y)
    with pytest.raises(fake.Misuse, match="nothing orders them"):
        gpu.synchronize(gpu.record(STREAM))
    fake.state.report.clear()
    monkeypatch.undo()
    host = np.empty_like(X)
    gpu.copy_out(y, host, STREAM)
    gpu.synchronize(gpu.record(STREAM))
    assert np.array_equal(host, 2 * X)  # not of -X, which came too late


def test_a_copy_goes_on_beside_the_kernels_of_other_buffers(gpu: Any, fake: ModuleType) -> None:
    (x, y), other = buffers_at_rest(gpu), gpu.allocate(X.nbytes)
    gpu.synchronize(gpu.record(STREAM))
    for _ in range(100):
        scale(gpu, x, y)
    behind_kernels = gpu.record(STREAM).marks[0]
    gpu.copy_in(X, other, STREAM)
    (behind_copy,) = {mark for mark in gpu.record(STREAM).marks if mark is other.copied}
    fake.synchronize(behind_copy.handle)
    assert not fake.state.events[behind_kernels.handle].is_reached


def session() -> heald.Session:
    nodes = [placeholder(name, X.shape) for name in "xy"]
    nodes += [node("a", "AddV2", "x", "y", device="GPU:0"), node("b", "Mul", "a", "y", device="GPU:0"),
              node("c", "Sub", "b", "a", device="GPU:0")]
    return heald.Session(graph(*nodes), {"plugins": {"block": ["onednn", "simplify"]}})


def test_results_leave_beside_the_kernels_behind_them(fake: ModuleType) -> None:
    with session() as of:
        for turn in range(3):
            y = X + np.float32(turn)
            a, b, c = of.run(["a", "b", "c"], {"x": X, "y": y})
            for result, value in ((a, X + y), (b, (X + y) * y), (c, (X + y) * y - (X + y))):
                np.testing.assert_allclose(result, value, rtol=1e-6)
    assert fake.state.report == []


@pytest.mark.parametrize("lost", ["all", "of kernels", "of copies"])
def test_each_kind_of_wait_is_needed_in_a_run(fake: ModuleType, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    true_wait = fake.wait

    def wait_for_some(stream: int, event: int) -> None:
        if lost != "all" and (stream == kernels) == (lost == "of copies"):
            true_wait(stream, event)

    with session() as of:
        kernels = of.host.open("GPU:0").native.stream  # type: ignore[attr-defined]
        of.run(["a", "b", "c"], {"x": X, "y": X})
        with monkeypatch.context() as patch:
            patch.setattr(fake, "wait", wait_for_some)
            with pytest.raises(Exception, match="nothing orders them"):
                of.run(["a", "b", "c"], {"x": X, "y": X + 1})
        fake.state.owed.clear()
        of.run("c", {"x": X, "y": X})
        fake.state.report.clear()


def test_a_part_of_a_value_is_read_in_its_place_and_captured(fake: ModuleType) -> None:
    device, attrs = "GPU:0", {"T": dtypes.float32}
    nodes = [placeholder("x", (4, 1024)), node("y", "Neg", "x", device=device),
             Node("p", "Unpack", ["y"], attrs=attrs | {"num": 4, "axis": 0}, device=device),
             node("a", "Exp", "p:1", device=device), node("b", "MatMul", "m", "y", device=device, transpose_a=False,
                                                          transpose_b=False),
             placeholder("m", (4, 4)), node("c", "AddV2", "b", "p:2", device=device)]
    with heald.Session(graph(*nodes), {"plugins": {"block": ["onednn", "simplify"]}}) as of:
        for turn in range(4):
            x, m = np.sin(X.reshape(4, 1024) + turn), np.eye(4, dtype=np.float32)
            a, c = of.run(["a", "c"], {"x": x, "m": m})
            np.testing.assert_allclose(a, np.exp(-x[1]), rtol=1e-5)
            np.testing.assert_allclose(c, -x - x[2], rtol=1e-5)
        executable = of.prepare(["a", "c"], ["x", "m"]).executable(((4, 1024), (4, 4)))
        assert executable.algorithms()["p"] == "shows parts of its input"
    assert "Unpack" not in {name for _, name in fake.state.kernels.values()}


def test_kernels_without_copies_wait_for_nothing(gpu: Any, fake: ModuleType) -> None:
    x, y = buffers_at_rest(gpu)
    scale(gpu, x, y)
    before = {name: fake.state.calls[name] for name in ("wait", "record", "new_event", "new_stream")}
    for _ in range(10):
        scale(gpu, x, y)
        scale(gpu, y, x)
    assert {name: fake.state.calls[name] for name in before} == before
