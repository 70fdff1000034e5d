"""Kernels with scratch, with objects that they prepared on a device, and with results in host memory."""

from __future__ import annotations

import numpy as np
from heald.api import OpSpec, TensorMetadata, dtypes, hookimpl, info

HEALD_API = (1, 4)
BYTES = (4096, 0, 12)
released = []


@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Test>Double", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float}"],
                        metadata=lambda attrs, x: x))
    registry.add(OpSpec("Test>Returned", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float}"],
                        metadata=lambda attrs, x: x))
    registry.add(OpSpec("Test>Scaled", inputs=["x: T", "scale: T"], outputs=["y: T"], attrs=["T: {float}"],
                        metadata=lambda attrs, x, scale: x))


    registry.add(OpSpec("Test>Dims", inputs=["x: T"], outputs=["y: int32"], attrs=["T: {float}"],
                        metadata=lambda attrs, x: info(dtypes.int32, (len(x.meta.dims),))))
    registry.add(OpSpec("Test>Index", inputs=["a: T", "b: T"], outputs=["sum: T", "product: T"],
                        attrs=["T: {int32}"], metadata=lambda attrs, a, b: (a, b)))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)
    registry.kernels("SIM", register_sim)


def compute(x, out, *scratch):
    """Double x by way of the scratch, all of which is written."""
    for buffer in scratch:
        buffer.reshape(-1).view(np.uint8)[:] = 7
    part = scratch[0].reshape(-1).view(np.uint8)[: x.nbytes].view(np.float32)
    part[:] = x.reshape(-1)
    np.add(part, part, out.reshape(-1))


class Attached:
    """Checks that the scratch stands behind the outputs when it is attached."""

    def run(self, x, out, *scratch):
        assert [buffer.nbytes for buffer in scratch] == list(BYTES)
        compute(x, out, *scratch)

    def attach(self, inputs, outputs):
        (x,), (out, *scratch) = inputs, outputs
        return lambda: self.run(x, out, *scratch)


def register(kernels):
    @kernels.kernel("Test>Double")
    def double(b):
        assert [b.scratch(nbytes) for nbytes in BYTES] == [2, 3, 4]
        return Attached()

    @kernels.kernel("Test>Returned", allocates=True)
    def returned(b):
        b.scratch(4)
        return lambda x: x


def register_sim(kernels):
    from heald_sim.native import Kernel

    @kernels.kernel("Test>Double")
    def double(b):
        for nbytes in BYTES:
            b.scratch(nbytes)
        metas = tuple(TensorMetadata(dtypes.uint8, (nbytes,)) for nbytes in BYTES)
        kernel = Kernel(b.op, b.node, compute, (b.inputs[0].meta,), (*b.outputs, *metas), 1.0)
        return lambda *buffers: b.device.native.launch(b.stream, kernel, buffers)

    @kernels.kernel("Test>Scaled")
    def scaled(b):
        def make():
            scale = b.inputs[1].value
            buffer = b.device.allocate(scale.nbytes)
            b.device.copy_in(np.ascontiguousarray(scale), buffer, b.stream)
            return buffer

        def release(buffer):
            released.append(buffer)
            b.device.free(buffer)

        buffer = b.prepared("test/scale", make, release=release)
        kernel = Kernel(b.op, b.node, np.multiply, tuple(info.meta for info in b.inputs), b.outputs, 1.0)
        return lambda x, _, out: b.device.native.launch(b.stream, kernel, (x, buffer, out))

    @kernels.kernel("Test>Dims", host_outputs=True)
    def dims(b):
        shape = b.inputs[0].meta.dims
        return lambda _, out: np.copyto(out, shape)

    @kernels.kernel("Test>Index", host=("a", "b"), host_outputs=True)
    def index(b):
        def run(a, b, total, product):
            np.add(a, b, total)
            np.multiply(a, b, product)

        return run
