"""The fake driver finds the mistakes that a GPU may hide: each is planted once."""

from __future__ import annotations

import ctypes
from types import ModuleType

import numpy as np
import pytest
from fake_cuda.host_compiler import host_kernel, signature, without_ptx

COPY = """
extern "C" __global__ void copy(const float* x, float* y, long long n) {
  for (long long i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}
"""
BARRIER = """
extern "C" __global__ void turn(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x];
}
"""
DIVERGED = BARRIER.replace("  __syncthreads();", "  if (threadIdx.x < 7) __syncthreads();")
WARP = """
extern "C" __global__ void sums(float* x) {
  float v = x[threadIdx.x];
  for (int m = 16; m; m >>= 1) v += __shfl_xor_sync(0xffffffffu, v, m);
  x[threadIdx.x] = v;
}
"""


@pytest.fixture
def streams(fake: ModuleType) -> tuple[object, int, int]:
    context = fake.open_context(0)
    fake.enter(context.handle)
    return context, fake.new_stream(), fake.new_stream()


def launch(fake: ModuleType, text: str, name: str, stream: int, *values: int, block: int = 64) -> None:
    slots = (ctypes.c_uint64 * len(values))(*values)
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(slots) + 8 * n for n in range(len(values))))
    fake.launch(fake.function(text.encode(), name), (1, 1, 1), (block, 1, 1), 0, stream, ctypes.addressof(pointers))


def waits(fake: ModuleType, stream: int) -> None:
    event = fake.new_event()
    fake.record(event, stream)
    fake.synchronize(event)


def run_until_fault(fake: ModuleType, text: str, stream: int) -> None:
    with pytest.raises(fake.Misuse, match=text):
        waits(fake, stream)
    fake.state.report.clear()


def test_a_missing_wait_is_found(fake: ModuleType, streams: tuple[object, int, int]) -> None:
    context, one, two = streams
    x, y = (fake.allocate(context, 256, one) for _ in range(2))
    launch(fake, COPY, "copy", one, x, y, 64)
    launch(fake, COPY, "copy", two, y, x, 64)
    run_until_fault(fake, "nothing orders them", two)


def test_the_same_with_a_wait_is_right(fake: ModuleType, streams: tuple[object, int, int]) -> None:
    context, one, two = streams
    x, y = (fake.allocate(context, 256, one) for _ in range(2))
    launch(fake, COPY, "copy", one, x, y, 64)
    event = fake.new_event()
    fake.record(event, one)
    fake.wait(two, event)
    launch(fake, COPY, "copy", two, y, x, 64)
    waits(fake, two)


def test_a_use_after_free_is_found(fake: ModuleType, streams: tuple[object, int, int]) -> None:
    context, one, _ = streams
    x, y = (fake.allocate(context, 256, one) for _ in range(2))
    fake.free(x, one)
    launch(fake, COPY, "copy", one, x, y, 64)
    run_until_fault(fake, "which was freed", one)


def test_a_write_beyond_the_end_is_found(fake: ModuleType, streams: tuple[object, int, int]) -> None:
    context, one, _ = streams
    x, y = fake.allocate(context, 512, one), fake.allocate(context, 256, one)
    launch(fake, COPY, "copy", one, x, y, 65)
    run_until_fault(fake, "wrote beyond", one)


def test_memory_of_the_host_is_no_argument(fake: ModuleType, streams: tuple[object, int, int]) -> None:
    context, one, _ = streams
    host = np.zeros(64, np.float32)
    with pytest.raises(fake.Misuse, match="argument x is no device memory"):
        launch(fake, COPY, "copy", one, host.ctypes.data, fake.allocate(context, 256, one), 64)


def test_a_barrier_that_some_threads_miss_is_found(fake: ModuleType, streams: tuple[object, int, int]) -> None:
    context, one, _ = streams
    x = fake.allocate(context, 256, one)
    launch(fake, DIVERGED, "turn", one, x)
    run_until_fault(fake, "do not reach a barrier", one)


@pytest.mark.parametrize(("text", "name", "expected"), [
    (BARRIER, "turn", lambda x: x[::-1]), (WARP, "sums", lambda x: np.repeat(x.reshape(2, 32).sum(1), 32))])
@pytest.mark.usefixtures("fake")
def test_barriers_and_shuffles_do_what_a_gpu_does(text: str, name: str, expected: object) -> None:
    x = np.arange(64, dtype=np.float32)
    y = x.copy()
    slot = ctypes.c_void_p(y.ctypes.data)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(slot))
    assert host_kernel(text, name).run(1, 1, 1, 64, 1, 1, ctypes.addressof(pointers)) == 0
    assert np.array_equal(y, expected(x))  # type: ignore[operator]


def test_a_signature_tells_reads_from_writes() -> None:
    text = "KERNEL(1, 1, 1) f(GLOBAL const f32* RESTRICT x, GLOBAL u16* RESTRICT y, const i64 n) {\n}"
    assert [tuple(p) for p in signature(text, "f") or ()] == [
        ("x", 8, True, False), ("y", 8, True, True), ("n", 8, False, False)]
    assert signature(text, "g") is None


def test_functions_in_ptx_are_left_to_the_header() -> None:
    text = 'FUNCTION f32 f(u16 h) { f32 x; if (h) { asm("c;" : "=f"(x)); } return x; }\nFUNCTION f32 g() { return 1; }'
    assert without_ptx(text) == "\nFUNCTION f32 g() { return 1; }"
