"""A process that runs plans of kernel texts for the tests, which have no driver in their own: see run_plan.

First it reports its device, or the reason why it has none. Then it answers each (plan, inputs, outputs) with the
arrays, or with the text of the driver's exception. Requests on stdin and answers on stdout are pickled.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import warnings
from functools import cache
from typing import Any, BinaryIO

import numpy as np
import pyopencl as cl
from heald_kernel_text import INPUT, OUTPUT, SCRATCH, SIZE, KernelText, Plan

PROBE = "__kernel void probe(__global float* x) { x[get_global_id(0)] += 1; }"
Outputs = list[tuple[Any, tuple[int, ...]]]


def open_device() -> cl.Context:
    """A context of the first device that compiles a kernel, of the Oclgrind interpreter last. Raises LookupError."""
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise LookupError(f"no OpenCL platform: {error}") from None
    reasons = []
    for platform in sorted(platforms, key=lambda p: "oclgrind" in p.name.lower()):
        for device in platform.get_devices():
            context = cl.Context([device])
            try:
                cl.Kernel(cl.Program(context, PROBE).build(cache_dir=False), "probe")
            except cl.Error as error:
                reasons.append(f"{platform.name}: {str(error)[:200]}")
                continue
            return context
    raise LookupError(f"no OpenCL device that compiles: {reasons}")


class Worker:
    def __init__(self, context: cl.Context) -> None:
        self._context = context
        self._queue = cl.CommandQueue(context)
        self._compiled = cache(self._compile)

    def run(self, plan: Plan, inputs: list[Any], outputs: Outputs) -> list[Any]:
        """The outputs, of these NumPy dtypes and shapes. Elements that a plan does not write stay poison."""
        results = [np.full(shape, 0, dtype) for dtype, shape in outputs]
        for result in results:
            result.reshape(-1).view(np.uint8)[...] = 0xA5
        buffers = {
            INPUT: [self._buffer(np.asarray(x)) for x in inputs], OUTPUT: [self._buffer(r) for r in results],
            SCRATCH: [self._buffer(np.full(n, 0xA5, np.uint8)) for n in plan.scratch],
        }
        for text in plan.launches:
            self._launch(text, buffers)
        for result, buffer in zip(results, buffers[OUTPUT], strict=True):
            if result.size:
                cl.enqueue_copy(self._queue, result.reshape(-1).view(np.uint8), buffer)
        self._queue.finish()
        return results

    def _compile(self, source: str, name: str) -> cl.Kernel:
        return cl.Kernel(cl.Program(self._context, source).build(["-cl-std=CL1.2"], cache_dir=False), name)

    def _launch(self, text: KernelText, buffers: dict[str, list[cl.Buffer]]) -> None:
        arguments = [np.int64(a.value) if a.kind == SIZE else buffers[a.kind][a.value] for a in text.arguments]
        self._compiled(text.source, text.name)(self._queue, text.global_size, text.local_size, *arguments)

    def _buffer(self, array: np.ndarray[Any, Any]) -> cl.Buffer:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return cl.Buffer(self._context, flags, hostbuf=flat if flat.size else np.zeros(1, np.uint8))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    def answer(*parts: Any) -> None:
        pickle.dump(parts, answers)
        answers.flush()

    try:
        context = open_device()
    except LookupError as error:
        answer(None, str(error))
        return
    answer(context.devices[0].platform.name.strip(), "")
    worker = Worker(context)
    while True:
        try:
            request = pickle.load(requests)  # noqa: S301 - of the tests that started this
        except EOFError:
            return
        try:
            answer(worker.run(*request), "")
        except Exception:  # noqa: BLE001 - the test that asked is told
            answer(None, traceback.format_exc())


if __name__ == "__main__":
    warnings.simplefilter("ignore", cl.CompilerWarning)
    binary_output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a driver is no answer
    serve(sys.stdin.buffer, binary_output)
