"""Runs a plan of kernel texts on the OpenCL runtime that pyopencl finds: real ones before the Oclgrind interpreter."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from weft_kernel_text import INPUT, OUTPUT, SCRATCH, SIZE, KernelText, Plan

cl: Any = pytest.importorskip("pyopencl", reason="no pyopencl: kernel text is only compiled with an OpenCL runtime",
                              exc_type=ImportError)

PROBE = "__kernel void probe(__global float* x) { x[get_global_id(0)] += 1; }"


@cache
def context() -> Any:
    """A context of the first device that runs a kernel; WEFTTEST_OPENCL may name its platform."""
    wanted = os.environ.get("WEFTTEST_OPENCL", "").lower()
    try:
        platforms = [p for p in cl.get_platforms() if wanted in p.name.lower()]
    except cl.Error as error:
        pytest.skip(f"no OpenCL platform: {error}")
    reasons = []
    for platform in sorted(platforms, key=lambda p: "oclgrind" in p.name.lower()):
        for device in platform.get_devices():
            made = cl.Context([device])
            try:
                cl.Kernel(cl.Program(made, PROBE).build(), "probe")
            except cl.Error as error:
                reasons.append(f"{platform.name}: {str(error)[:200]}")
                continue
            return made
    pytest.skip(f"no OpenCL device that compiles: {reasons}")


def slow() -> bool:
    """True on the interpreter."""
    return "oclgrind" in context().devices[0].platform.name.lower()


@cache
def queue() -> Any:
    return cl.CommandQueue(context())


@cache
def compiled(source: str, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return cl.Kernel(cl.Program(context(), source).build(["-cl-std=CL1.2"], cache_dir=False), name)


def device_buffer(array: np.ndarray[Any, Any]) -> Any:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return cl.Buffer(context(), flags, hostbuf=flat if flat.size else np.zeros(1, np.uint8))


def launch(text: KernelText, buffers: dict[str, list[Any]]) -> Any:
    arguments = [np.int64(a.value) if a.kind == SIZE else buffers[a.kind][a.value] for a in text.arguments]
    return compiled(text.source, text.name)(queue(), text.global_size, text.local_size, *arguments)


def run_plan(plan: Plan, inputs: list[Any], outputs: list[tuple[Any, tuple[int, ...]]]) -> list[Any]:
    """The outputs, of these NumPy dtypes and shapes. What a plan does not write stays poison."""
    results = [np.full(shape, 0, dtype) for dtype, shape in outputs]
    for result in results:
        result.reshape(-1).view(np.uint8)[...] = 0xA5
    buffers = {
        INPUT: [device_buffer(np.asarray(x)) for x in inputs], OUTPUT: [device_buffer(r) for r in results],
        SCRATCH: [device_buffer(np.full(n, 0xA5, np.uint8)) for n in plan.scratch],
    }
    for text in plan.launches:
        launch(text, buffers)
    for result, buffer in zip(results, buffers[OUTPUT], strict=True):
        if result.size:
            cl.enqueue_copy(queue(), result.reshape(-1).view(np.uint8), buffer)
    queue().finish()
    return results
