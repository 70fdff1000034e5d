"""Plans of CUDA texts, run on the host: the C++ compiler compiles the very text."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from fake_cuda.host_compiler import host_kernel
from heald_kernel_text import INPUT, OUTPUT, SCRATCH, SIZE, KernelText, Plan

GUARD = 64  # bytes behind each buffer, which no text may write
POISON = 0xA5


def run_on_host(plan: Plan, inputs: list[Any], outputs: list[tuple[Any, tuple[int, ...]]]) -> list[Any]:
    """The outputs, of these NumPy dtypes and shapes. Elements that the plan does not write are poison."""
    results = [_buffer(int(np.prod(shape)) * np.dtype(dtype).itemsize) for dtype, shape in outputs]
    buffers = {INPUT: [np.frombuffer(np.ascontiguousarray(x).tobytes() + bytes(GUARD), np.uint8) for x in inputs],
               OUTPUT: results, SCRATCH: [_buffer(nbytes) for nbytes in plan.scratch]}
    for text in plan.launches:
        _launch(text, buffers)
    for buffer in (*results, *buffers[SCRATCH]):
        assert (buffer[-GUARD:] == POISON).all(), "a kernel wrote beyond its buffer"
    return [buffer[:-GUARD].view(dtype).reshape(shape) for buffer, (dtype, shape) in zip(results, outputs, strict=True)]


def _buffer(nbytes: int) -> Any:
    return np.full(nbytes + GUARD, POISON, np.uint8)


def _launch(text: KernelText, buffers: dict[str, list[Any]]) -> None:
    kernel = host_kernel(text.source, text.name)
    assert len(kernel.parameters) == len(text.arguments), text.name
    values = [ctypes.c_uint64(a.value & (1 << 64) - 1) if a.kind == SIZE else
              ctypes.c_uint64(buffers[a.kind][a.value].__array_interface__["data"][0]) for a in text.arguments]
    addresses = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
    grid = [items // local for items, local in zip(text.global_size, text.local_size, strict=True)]
    blocks, threads = (*grid, 1, 1)[:3], (*text.local_size, 1, 1)[:3]
    assert kernel.run(*blocks, *threads, addresses) == 0, f"{text.name}: a barrier that some threads do not reach"
