"""The device GPU over the fake driver: memory, streams, copies, faults, capture, arrays of other libraries."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fake_cuda.foreign_library import ForeignTensor
from harness.threads import in_threads
from heald.api import STREAM, dtypes, errors

TESTS = Path(__file__).parents[1]
TEXT = """
extern "C" __global__ void scale(const float* __restrict__ x, float* __restrict__ y, float by, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}
"""
X = np.arange(1000, dtype=np.float32)
GRID, BLOCK = (4,), (256,)


def upload(device: Any, array: np.ndarray[Any, Any]) -> Any:
    buffer = device.allocate(array.nbytes)
    device.copy_in(array, buffer, STREAM)
    return buffer


def download(device: Any, buffer: Any, like: np.ndarray[Any, Any] = X) -> np.ndarray[Any, Any]:
    host = np.empty_like(like)
    device.copy_out(buffer, host, STREAM)
    device.synchronize(device.record(STREAM))
    return host


def scale(device: Any, x: Any, y: Any, by: float) -> None:
    device.native.kernel(TEXT, "scale")(GRID, BLOCK, x, y, np.float32(by), np.int64(X.size))


def test_a_kernel_waits_for_the_copy_in_and_the_copy_out_for_the_kernel(gpu: Any) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    scale(gpu, x, y, 3)
    assert np.array_equal(download(gpu, y), 3 * X)


def test_a_copy_in_waits_for_the_kernels_that_read_its_buffer(gpu: Any) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    scale(gpu, x, y, 3)
    gpu.copy_in(X[::-1].copy(), x, STREAM)
    scale(gpu, x, x, 1)
    assert np.array_equal(download(gpu, y), 3 * X)
    assert np.array_equal(download(gpu, x), X[::-1])


def test_a_kernel_waits_for_the_copy_out_of_the_buffer_that_it_overwrites(gpu: Any) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    first = np.empty_like(X)
    scale(gpu, x, y, 2)
    gpu.copy_out(y, first, STREAM)
    scale(gpu, x, y, 5)
    assert np.array_equal(download(gpu, y), 5 * X)
    assert np.array_equal(first, 2 * X)


def test_a_copy_of_one_buffer_waits_for_no_kernel_of_others(gpu: Any, fake: ModuleType) -> None:
    x, y, other = upload(gpu, X), gpu.allocate(X.nbytes), gpu.allocate(X.nbytes)
    gpu.synchronize(gpu.record(STREAM))
    scale(gpu, x, y, 3)
    waits = fake.state.calls["wait"]
    gpu.copy_in(X, other, STREAM)
    assert fake.state.calls["wait"] == waits


def test_a_freed_buffer_serves_the_enqueued_work(gpu: Any) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    scale(gpu, x, y, 3)
    gpu.free(x)
    assert np.array_equal(download(gpu, y), 3 * X)


def test_a_dropped_buffer_is_freed_with_the_next_allocation(gpu: Any, fake: ModuleType) -> None:
    upload(gpu, X)
    assert fake.state.used[0] == X.nbytes
    other = gpu.allocate(8)
    gpu.synchronize(gpu.record(STREAM))
    assert fake.state.used[0] == other.nbytes


def test_long_copies_go_in_pieces_through_few_pinned_blocks(
    gpu: Any, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heald_cuda import staging

    monkeypatch.setattr(staging, "LARGEST_STAGED_BYTES", 2 * staging.BLOCK_BYTES)
    long = np.arange(3 * staging.BLOCK_BYTES // 4 + 12345, dtype=np.float32)  # more than may be in flight
    buffer = upload(gpu, long)
    assert np.array_equal(download(gpu, buffer, long), long)
    assert fake.state.used[None] < staging.LARGEST_STAGED_BYTES + staging.BLOCK_BYTES


@pytest.mark.parametrize("processors", [1, 2, 64])
def test_long_copies_of_several_threads_are_whole(
    gpus: Callable[..., Any], fake: ModuleType, monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    """Each thread copies an array of its own there and back, more than once."""
    from heald_cuda import host_copies, staging

    monkeypatch.setattr(host_copies, "count_processors", lambda: processors)
    monkeypatch.setattr(staging, "LARGEST_STAGED_BYTES", 4 * staging.BLOCK_BYTES)
    (gpu, *_) = gpus()

    def work(thread: int) -> None:
        for turn in range(3):
            long = np.full(staging.FEWEST_SHARED_BYTES // 4 + 100_001 * thread, 10 * thread + turn, np.float32)
            buffer = upload(gpu, long)
            assert np.array_equal(download(gpu, buffer, long), long)
            gpu.free(buffer)

    in_threads(work, 3)


def test_all_threads_that_wait_for_a_long_download_have_it(gpu: Any) -> None:
    from heald_cuda import staging

    long = np.arange(staging.FEWEST_SHARED_BYTES // 4 + 5, dtype=np.float32)
    buffer, target = upload(gpu, long), np.zeros_like(long)
    gpu.copy_out(buffer, target, STREAM)
    event = gpu.record(STREAM)

    def wait(_thread: int) -> None:
        gpu.synchronize(event)
        assert np.array_equal(target, long)

    in_threads(wait, 4)


def test_an_upload_that_fails_reads_its_array_no_more(
    gpu: Any, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heald_cuda import staging
    from heald_cuda.host_copies import HostCopies

    started, ended, start = [], [], HostCopies.start

    def note(copies: HostCopies, *arguments: int) -> Callable[[], object]:
        started.append(arguments)
        wait = start(copies, *arguments)
        return lambda: (wait(), ended.append(arguments))

    monkeypatch.setattr(HostCopies, "start", note)
    long = np.ones(4 * staging.BLOCK_BYTES, np.uint8)
    buffer = gpu.allocate(long.nbytes)
    fake.plant("copy")
    with pytest.raises(errors.HealdError):
        gpu.copy_in(long, buffer, STREAM)
    assert started
    assert started == ended


@pytest.mark.parametrize("processors", [1, 2])
def test_a_copy_is_done_where_no_thread_starts_any_more(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    from heald_cuda import host_copies

    monkeypatch.setattr(host_copies, "count_processors", lambda: processors)
    copies, target = host_copies.HostCopies(), np.zeros_like(X)
    copies.start(target.ctypes.data, X.ctypes.data, 4)()
    copies.close()
    copies.start(target.ctypes.data, X.ctypes.data, X.nbytes)()
    assert np.array_equal(target, X)


def test_memory_that_is_refused_is_asked_for_again_when_work_is_done(
    gpus: Callable[..., Any], fake: ModuleType
) -> None:
    (gpu, *_) = gpus(memory="100%")
    half = fake.MEMORY // 2 + 1
    first = gpu.allocate(half)
    gpu.free(first)  # the pool has it back behind the enqueued work only
    second = gpu.allocate(half)
    assert second is not None
    assert gpu.allocate(half) is None
    assert gpu.figures() == f"{half} of {fake.MEMORY} bytes in use"


def test_the_limit_of_config_holds(gpus: Callable[..., Any]) -> None:
    (gpu, *_) = gpus(memory=1000)
    buffer = gpu.allocate(800)
    assert gpu.allocate(300) is None
    gpu.free(buffer)
    assert gpu.allocate(300) is not None


def test_the_driver_without_memory_is_none_and_its_figures_are_told(gpu: Any, fake: ModuleType) -> None:
    fake.plant("allocate", fake.OUT_OF_MEMORY)
    fake.plant("allocate", fake.OUT_OF_MEMORY)
    assert gpu.allocate(300) is None
    assert "the GPU has" in gpu.figures()
    assert gpu.allocate(300) is not None


@pytest.mark.parametrize("call", ["launch", "copy", "synchronize", "record", "allocate"])
def test_a_sticky_error_loses_the_device_for_good(gpu: Any, fake: ModuleType, call: str) -> None:
    x = upload(gpu, X)
    fake.plant(call)

    def work() -> None:
        scale(gpu, x, gpu.allocate(X.nbytes), 2)
        download(gpu, x)

    with pytest.raises(errors.Unavailable, match=r"the device was lost.*CUDA_ERROR_ILLEGAL_ADDRESS"):
        work()
    for again in (lambda: gpu.allocate(4), lambda: gpu.record(STREAM), lambda: gpu.copy_in(X, x, STREAM)):
        with pytest.raises(errors.Unavailable, match="the device was lost"):
            again()
    gpu.free(x)  # nothing is left to free


def test_an_error_that_is_not_sticky_leaves_the_device_usable(gpu: Any, fake: ModuleType) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    fake.plant("launch", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    with pytest.raises(errors.Internal, match="CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        scale(gpu, x, y, 2)
    scale(gpu, x, y, 2)
    assert np.array_equal(download(gpu, y), 2 * X)


def test_captured_kernels_are_replayed_as_one_launch(gpu: Any, fake: ModuleType) -> None:
    x, y, z = upload(gpu, X), gpu.allocate(X.nbytes), gpu.allocate(X.nbytes)
    kernel = gpu.native.kernel(TEXT, "scale")
    calls = [kernel.attached(GRID, BLOCK, a, b, np.float32(by), np.int64(X.size))
             for a, b, by in ((x, y, 2), (y, z, 3))]
    replay = gpu.capture(calls, STREAM)
    launches = fake.state.calls["launch"]
    gpu.copy_in(X + 1, x, STREAM)
    replay()
    assert np.array_equal(download(gpu, z), 6 * (X + 1))
    assert fake.state.calls["launch"] == launches
    del replay
    gc.collect()
    gpu.capture(calls, STREAM)
    assert len(fake.state.graphs) == 1  # the first was destroyed


def test_a_kernel_that_waits_cannot_be_captured(gpu: Any) -> None:
    upload(gpu, X)
    with pytest.raises(errors.Internal, match=r"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.*says `captures = False`"):
        gpu.capture([lambda: gpu.synchronize(gpu.record(STREAM))], STREAM)
    assert np.array_equal(download(gpu, upload(gpu, X)), X)


def test_a_kernel_that_allocates_cannot_be_captured_and_leaves_the_device_usable(gpu: Any) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    scale(gpu, x, y, 2)  # loads the kernel

    def allocates() -> None:
        scale(gpu, x, y, 2)
        gpu.allocate(4)

    with pytest.raises(errors.Internal, match=r"memory is allocated while .* captured; .*says `captures = False`"):
        gpu.capture([allocates], STREAM)
    scale(gpu, x, y, 3)
    assert np.array_equal(download(gpu, y), 3 * X)


def test_memory_that_is_freed_during_a_capture_is_freed_once_and_behind_it(gpu: Any, fake: ModuleType) -> None:
    x, y, freed = upload(gpu, X), gpu.allocate(X.nbytes), gpu.allocate(4)
    scale(gpu, x, y, 3)

    def frees() -> None:
        scale(gpu, x, y, 2)
        gpu.free(freed)

    replay = gpu.capture([frees], STREAM)
    replay()
    replay()
    before = fake.state.calls["free"]
    gpu.allocate(4)
    assert fake.state.calls["free"] == before + 1
    assert np.array_equal(download(gpu, y), 2 * X)


def test_a_copy_between_gpus_comes_behind_the_work_of_both(gpus: Callable[..., Any]) -> None:
    one, two = gpus()
    assert two.reaches(one)
    assert not two.reaches(two)
    x, y, target = upload(one, X), one.allocate(X.nbytes), upload(two, X)
    scale(one, x, y, 7)
    assert two.copy_peer(y, target, STREAM)
    scale(one, x, y, 9)  # overwrites the source
    result = two.allocate(X.nbytes)
    scale(two, target, result, 1)
    assert np.array_equal(download(two, result), 7 * X)
    assert np.array_equal(download(one, y), 9 * X)
    assert not two.copy_peer(np.zeros(3), target, STREAM)


def test_elapsed_is_the_time_between_two_events(gpu: Any) -> None:
    first = gpu.record(STREAM)
    gpu.synchronize(first)
    assert gpu.elapsed(first, first) == 0
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    events = [gpu.record(STREAM)]
    for _ in range(2):
        scale(gpu, x, y, 2)
        events.append(gpu.record(STREAM))
    gpu.synchronize(events[-1])
    first, both = gpu.elapsed(events[0], events[1]), gpu.elapsed(events[0], events[2])
    assert 0 < first < both
    assert gpu.elapsed(events[1], events[2]) == pytest.approx(both - first)


def test_an_array_of_another_library_is_a_buffer_without_a_copy(gpu: Any, fake: ModuleType) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    gpu.synchronize(gpu.record(STREAM))
    tensor = ForeignTensor(x.pointer, X.shape)
    copies = fake.state.calls["copy"]
    adopted = gpu.adopt(tensor)
    assert tensor.streams == [gpu.native.stream]  # its library orders its work before ours
    scale(gpu, adopted, y, 2)
    gpu.free(adopted)
    assert fake.state.calls["copy"] == copies
    assert np.array_equal(download(gpu, y), 2 * X)
    assert np.array_equal(download(gpu, x), X)  # the memory is still its library's
    assert gpu.adopt(ForeignTensor(x.pointer, X.shape, ordinal=1)) is None
    assert gpu.adopt(X) is None
    with pytest.raises(errors.InvalidArgument, match="not C-contiguous"):
        gpu.adopt(ForeignTensor(x.pointer, (10, 100), strides=(1, 10)))
    with pytest.raises(errors.InvalidArgument, match=r"at 0x\w+, no multiple of 256 bytes; give x.clone"):
        gpu.adopt(ForeignTensor(x.pointer + 4, (10,)))


def test_a_buffer_shows_itself_to_other_libraries(gpu: Any) -> None:
    x = upload(gpu, X)
    view = gpu.native.view(x, dtypes.float32, (10, 100))
    shown = view.__cuda_array_interface__
    assert (shown["shape"], shown["typestr"], shown["data"]) == ((10, 100), "<f4", (x.pointer, False))
    assert shown["stream"] == gpu.native.stream == gpu.native.__cuda_stream__()[1]
    assert view.__dlpack_device__() == (2, 0)
    with pytest.raises(TypeError, match="copy it out first"):
        np.asarray(x)


def test_other_libraries_enqueue_behind_the_copies_of_their_buffers(gpu: Any, fake: ModuleType) -> None:
    x, y = upload(gpu, X), gpu.allocate(X.nbytes)
    gpu.native.enqueue((x, y), fake.copy, y.pointer, x.pointer, X.nbytes, gpu.native.stream)
    assert np.array_equal(download(gpu, y), X)


def test_arguments_are_buffers_and_numpy_scalars(gpu: Any) -> None:
    with pytest.raises(errors.InvalidArgument, match=r"an argument of a launch is int; give buffers and NumPy scalars"):
        gpu.native.kernel(TEXT, "scale")(GRID, BLOCK, 1, 2, 3, 4)


def test_a_kernel_that_the_text_lacks_is_named(gpu: Any) -> None:
    with pytest.raises(errors.Internal, match=r"kernel 'other' does not load.*CUDA_ERROR_NOT_FOUND"):
        gpu.native.kernel(TEXT, "other")


def test_config_chooses_among_the_gpus(gpus: Callable[..., Any]) -> None:
    assert [device.attributes["model"] for device in gpus(devices=("gpu 1",))] == ["Fake GPU 1"]
    with pytest.raises(errors.Unavailable, match=r"config leaves none of the GPUs: 'Fake GPU 0'.*\[plugin.cuda\]"):
        gpus(devices=("H100",))
    with pytest.raises(ValueError, match="compute = 'int4': one of float32, tf32"):
        gpus(compute="int4")
    with pytest.raises(errors.InvalidArgument, match="write a share such as '80%'"):
        gpus(memory="0%")


def test_a_closed_device_leaves_the_driver_nothing(fake: ModuleType) -> None:
    from heald_cuda.device import scan
    from heald_cuda.plugin import Config

    device = scan(Config())[0]
    device.open()
    buffer = upload(device, X)
    device.free(buffer)
    device.close()
    state = fake.state
    assert (state.open[0], state.streams, state.events, state.used[0], state.used[None]) == (0, {}, {}, 0, 0)


def test_a_forked_child_gets_an_error_and_the_parent_goes_on(gpu: Any) -> None:
    x = upload(gpu, X)
    gpu.synchronize(gpu.record(STREAM))
    child = os.fork()
    if not child:
        try:
            gpu.allocate(4)
        except errors.Unavailable as error:
            os._exit("belongs to the process that forked" in str(error))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert np.array_equal(download(gpu, x), X)


@pytest.mark.usefixtures("fake")
def test_a_process_that_ends_with_an_open_gpu_says_nothing() -> None:
    code = """
import numpy as np, heald
from builders.graphs import graph, node, placeholder
session = heald.Session(graph(placeholder("x", (3,)), node("y", "Neg", "x", device="GPU:0")))
print(session.run("y", {"x": np.ones(3, np.float32)}))
"""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("HEALD_")}
    environ |= {"HEALD_PLUGINS__LOAD": f'["{TESTS / "fake_cuda" / "plugin.py"}"]', "PYTHONPATH": str(TESTS)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environ,
                          check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[-1. -1. -1.]\n", "")


def bind_op(device: Any, op: str, result: tuple[int, ...], *shapes: tuple[int, ...], **attrs: Any) -> Any:
    """The plugin's own kernel of an op, for operands of these shapes."""
    from heald.runtime.contract.kernel import Bind
    from heald.runtime.values.tensor import TensorMetadata, ValueInfo
    from heald_cuda.kernels import bind
    from heald_kernel_text import NODES

    inputs = tuple(ValueInfo(TensorMetadata(dtypes.float32, shape)) for shape in shapes)
    outputs = (TensorMetadata(dtypes.float32, result),)
    return bind(NODES[op], Bind("n", op, attrs, inputs, outputs, device, STREAM, {}))


@pytest.mark.parametrize(("op", "result", "shapes", "attrs"), [
    ("Softmax", (201, 20), [(200, 20)], {}),
    ("MatMul", (40, 7), [(5, 6), (6, 7)], {"transpose_a": False, "transpose_b": False}),
    ("Unpack", (60,), [(2, 6)], {"axis": 0}),
])
def test_a_kernel_declines_operands_whose_sizes_contradict_each_other(
    op: str, result: tuple[int, ...], shapes: list[tuple[int, ...]], attrs: dict[str, Any], gpu: Any
) -> None:
    assert "contradict each other" in bind_op(gpu, op, result, *shapes, **attrs).reason


@pytest.mark.parametrize("sizes", [(15_996, 16_000), (16_000, 4)])
def test_attach_compares_the_buffers(sizes: tuple[int, int], gpu: Any) -> None:
    kernel = bind_op(gpu, "Softmax", (200, 20), (200, 20))
    kernel.attach((gpu.allocate(16_000),), (gpu.allocate(16_000),))
    x, y = map(gpu.allocate, sizes)
    with pytest.raises(errors.InvalidArgument, match=f"a buffer of {min(sizes)} bytes, where kernel 'Softmax' touches"):
        kernel.attach((x,), (y,))
