"""A plugin of the tests alone: devices like the example's, each with one fault. The conformance suite must find it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count

import numpy as np
from heald.api import hookimpl
from heald_cpu.device import Cpu
from heald_example_device import kernels as example
from heald_example_device.device import Example
from heald_example_device.native import Native

HEALD_API = (1, 0)
LARGE = 4096  # bytes from which some faults show, so that the small copies of the probe find none
NEVER = 1  # a stream without a wait
_scans = count()


class LosesLastByte(Example):
    type = "LOSSY"

    def copy_in(self, host, buffer, stream):
        array_bytes = host.reshape(-1).view(np.uint8)
        super().copy_in(array_bytes[: array_bytes.size - array_bytes.size % 2], buffer, stream)


class WritesWholeWords(Example):
    type = "SPILLING"

    def copy_in(self, host, buffer, stream):
        array_bytes = host.reshape(-1).view(np.uint8)
        rounded = -array_bytes.size % 4 + array_bytes.size
        super().copy_in(np.resize(array_bytes, min(rounded, buffer.nbytes)), buffer, stream)


class ReturnsTooEarly(Example):
    type = "EAGER"

    def copy_out(self, buffer, host, stream):
        super().copy_out(buffer, host, NEVER if host.nbytes > LARGE else stream)


class UnorderedNative(Native):
    def write(self, stream, host, buffer):
        super().write(stream, host, buffer)
        queue = self.streams[stream]
        if len(queue) > 3:
            queue.rotate(1)


class IsOutOfOrder(Example):
    type = "UNORDERED"

    def open(self):
        super().open()
        self.native = UnorderedNative()


class CountsBackwards(Example):
    type = "BACKWARDS"

    def elapsed(self, start, end):
        return -1e-3 * (start is not end)


class ComputesWrongly(Example):
    type = "WRONG"


class DeclinesTooLittle(Example):
    type = "STUBBORN"


class AddsToItsOutput(Example):
    type = "ADDING"


class ReturnsItsResult(Example):
    type = "RETURNING"


class ChangesItsInput(Example):
    type = "CHANGING"


class FusesWrongly(Example):
    type = "FUSING"


class ForgetsFailures(Example):
    type = "FORGIVING"

    def synchronize(self, event):
        """Work that fails is forgotten, as by a driver whose status nobody reads."""
        with suppress(Exception):
            super().synchronize(event)
        while not event.reached:
            super().synchronize(event)


class PassesOn(Cpu):
    type = "PASSING"
    ops = ("BatchToSpaceND", "InvertPermutation", "MatrixBandPart", "ReverseSequence", "ReverseV2", "StringUpper",
           "TensorScatterUpdate", "UniqueV2")


class NeverFrees(Example):
    type = "LEAKY"

    def free(self, buffer):
        pass


class KeepsBuffers(Example):
    type = "HOARDING"

    def allocate(self, nbytes):
        buffer = super().allocate(nbytes)
        self.__dict__.setdefault("kept", []).append(buffer)
        return buffer


class FreesAtOnce(Example):
    type = "HASTY"

    def free(self, buffer):
        buffer.elements(np.dtype(np.uint8), buffer.nbytes)[:] = 0
        super().free(buffer)


class RaisesWithoutMemory(Example):
    type = "RAISING"

    def allocate(self, nbytes):
        buffer = super().allocate(nbytes)
        if buffer is None:
            raise MemoryError("no memory")
        return buffer


class ChangesItsName(Example):
    type = "RENAMED"

    def __init__(self, index, memory):
        super().__init__(index, memory)
        self.uid = f"scan{next(_scans)}"


class OpensWhenScanned(Example):
    type = "OPENED"

    def __init__(self, index, memory):
        super().__init__(index, memory)
        self.open()


class WrapsFromMemory(Example):
    type = "FORGETFUL"

    def wrap(self, host):
        """The buffer that this address had before."""
        wrapped = self.__dict__.setdefault("wrapped", {})
        if host.nbytes <= 2 * LARGE:
            return None
        if host.ctypes.data not in wrapped:
            buffer = super().allocate(host.nbytes)
            super().copy_in(host, buffer, 0)
            wrapped[host.ctypes.data] = host, buffer
        return wrapped[host.ctypes.data][1]

    def free(self, buffer):
        if all(buffer is not array for _, array in self.__dict__.get("wrapped", {}).values()):
            super().free(buffer)


class WritesWrapped(Example):
    type = "WRITING"

    def wrap(self, host):
        if host.nbytes <= 2 * LARGE:
            return None
        buffer = super().allocate(host.nbytes)
        super().copy_in(host, buffer, 0)
        buffer.host = host
        return buffer

    def free(self, buffer):
        if hasattr(buffer, "host"):
            buffer.host.reshape(-1).view(np.uint8)[0] ^= 1
        super().free(buffer)


DEVICES = (FusesWrongly, ForgetsFailures, AddsToItsOutput, ReturnsItsResult, ChangesItsInput, PassesOn, LosesLastByte,
           WritesWholeWords, ReturnsTooEarly, IsOutOfOrder, CountsBackwards, ComputesWrongly, DeclinesTooLittle,
           NeverFrees, KeepsBuffers, FreesAtOnce, RaisesWithoutMemory, ChangesItsName, OpensWhenScanned,
           WrapsFromMemory, WritesWrapped)


def scan_of(kind):
    return lambda config: iter([kind(0) if issubclass(kind, Cpu) else kind(0, 1 << 26)])


def register_wrong(kernels):
    example.register_kernels(kernels)

    @kernels.kernel("Maximum", dtypes={"T": "float16"}, priority=1)
    def minimum(b):
        return example.elementwise("subtract", b)


def register_stubborn(kernels):
    example.register_kernels(kernels)

    @kernels.kernel("Mul", dtypes={"T": "float16"}, priority=1)
    def multiply(b):
        """As if both inputs had the output's shape."""
        return partial(b.device.native.elementwise("multiply", np.dtype(np.float16), b.outputs[0].size), b.stream)


def register_adding(kernels):
    example.register_kernels(kernels)

    @kernels.kernel("Neg", dtypes={"T": "float16"}, priority=1)
    def subtract(b):
        """As if the output were full of zeros."""
        launch = b.device.native.elementwise("subtract", np.dtype(np.float16), b.outputs[0].size)
        return lambda x, out: launch(b.stream, out, x, out)


def register_returning(kernels):
    example.register_kernels(kernels)

    @kernels.kernel("Neg", dtypes={"T": "float16"}, priority=1)
    def negative(b):
        return lambda x, out: np.zeros(b.outputs[0].dims, np.float16)


def register_changing(kernels):
    example.register_kernels(kernels)

    @kernels.kernel("Neg", dtypes={"T": "float16"}, priority=1)
    def negative(b):
        launch = b.device.native.elementwise("negative", np.dtype(np.float16), b.outputs[0].size)

        def run(x, out):
            launch(b.stream, x, out)
            launch(b.stream, x, x)

        return run


def register_fusing(kernels):
    """Of three nodes and more the fused kernel forgets the last one."""
    example.register_kernels(kernels)

    @kernels.fusion("Shorter", ops=["AddV2", "Mul", "Neg"], priority=1)
    def sequence(b):
        if len(b.fused) < 3:
            return b.decline("too few")
        b.fused = b.fused[:-1]
        return example.sequence(b)


def register_passing(kernels):
    """Every op gives its first input, in the shape of its output."""

    def pass_on(b):
        if b.op == "UniqueV2":
            return lambda x, axis: (x, np.arange(x.size, dtype=b.outputs[1].dtype.numpy))
        return lambda x, *others: np.copyto(others[-1], x.reshape(others[-1].shape))

    for op in PassesOn.ops:
        kernels.kernel(op, allocates=op == "UniqueV2")(pass_on)


def enqueue_failure(b):
    """A kernel of `failing_work`: its work fails on the stream, behind its launch."""
    return lambda _x, out: b.device.native.write(b.stream, FailingArray(), out)


class FailingArray:
    """An array that the stream cannot read when it comes to it."""

    dtype, size = np.dtype(np.float32), 1

    def reshape(self, *_dims):
        raise OSError("the driver reports a fault")


KERNELS = {FusesWrongly: register_fusing, AddsToItsOutput: register_adding, ReturnsItsResult: register_returning,
           ChangesItsInput: register_changing, ComputesWrongly: register_wrong, DeclinesTooLittle: register_stubborn,
           PassesOn: register_passing}


@hookimpl
def heald_devices(registry):
    for kind in DEVICES:
        register = KERNELS.get(kind, "heald_example_device.kernels:register_kernels")
        registry.device(type=kind.type, scan=scan_of(kind), kernels=register)
