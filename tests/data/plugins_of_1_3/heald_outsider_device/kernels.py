"""The kernels. heald imports this module when a device of type OUTSIDER_DEVICE is first opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from heald.api import Bind, Declined, Kernels

FLOATS = ("float32", "float16")
ELEMENTWISE = {
    "AddV2": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Maximum": "maximum",
    "Neg": "negative",
    "Relu": "relu",
    "OutsiderDevice>Gelu": "gelu",
}


def register_kernels(kernels: Kernels) -> None:
    for op, instruction in ELEMENTWISE.items():
        kernels.kernel(op, dtypes={"T": FLOATS})(partial(elementwise, instruction))
    kernels.fusion("Sequence", ops=ELEMENTWISE)(sequence)
    kernels.kernel("MatMul", dtypes={"T": FLOATS}, when=lambda attrs: not attrs["transpose_a"])(matmul)
    kernels.kernel("Identity", alias={0: 0})(alias)
    kernels.kernel("Reshape", alias={0: 0}, host=["shape"])(alias)


def elementwise(instruction: str, b: Bind) -> Callable[..., None] | Declined:
    output = b.outputs[0]
    if any(x.shape != output.shape for x in b.inputs):
        return b.decline("shapes differ; broadcasting is not implemented")
    launch = b.device.native.elementwise(instruction, output.dtype.numpy, output.size)
    return partial(launch, b.stream)


def sequence(b: Bind) -> Callable[..., None] | Declined:
    """Bind several elementwise nodes as one launch."""
    output = b.outputs[0]
    if any(x.meta != output for x in b.inputs):
        return b.decline("shapes differ; broadcasting is not implemented")
    steps = [(ELEMENTWISE[fused_op.op], fused_op.args) for fused_op in b.fused]
    return partial(b.device.native.sequence(steps, output.dtype.numpy, output.size), b.stream)


def matmul(b: Bind) -> Callable[..., None] | Declined:
    weights = b.inputs[1].value
    if weights is None:
        return b.decline("the second matrix is not constant")
    columns = weights if b.attrs["transpose_b"] else weights.T
    packed = b.prepared("outsider_device-1/columns", lambda: b.device.native.upload(np.ascontiguousarray(columns)))
    (rows, inner), dtype = b.inputs[0].meta.dims, b.outputs[0].dtype.numpy
    launch = b.device.native.matmul(dtype, rows, inner, len(columns))
    return lambda x, _weights, output: launch(b.stream, x, packed, output)


def alias(_b: Bind) -> None:
    return None  # output 0 is the buffer of input 0: no launch is needed
