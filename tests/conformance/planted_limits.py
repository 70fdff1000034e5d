"""A plugin of the tests alone: one device whose kernels are right for small operands, and wrong beyond a limit."""

from __future__ import annotations

from copy import copy

import numpy as np
from heald.api import hookimpl
from heald_cpu.device import Cpu
from heald_cpu.kernels import nn
from heald_cpu.kernels.conv import convolution

HEALD_API = (1, 0)
MOST_GROUPS = 65_535
GROUP = 64  # elements


class Narrow(Cpu):
    type = "NARROW"


def negate(_):
    """Elements beyond the largest grid stay zeros."""

    def run(x, out):
        limit = MOST_GROUPS * GROUP
        flat, source = out.reshape(-1), x.reshape(-1)
        np.negative(source[:limit], flat[:limit])
        flat[limit:] = 0

    return run


def softmax(_):
    """Exponentials of large numbers are infinite."""

    def run(x, out):
        powers = np.exp(x.astype(np.float32))
        out[...] = powers / powers.sum(-1, keepdims=True)

    return run


def convolve(b):
    """Dilations shape the output alone."""
    if b.attrs["padding"] != "SAME":
        return b.decline("it pads")
    dense = copy(b)
    dense.attrs = {**b.attrs, "dilations": (1, 1, 1, 1)}
    return convolution(dense)


def register(kernels):
    kernels.kernel("Neg", dtypes={"T": "float32"})(negate)
    kernels.kernel("Softmax", dtypes={"T": "float16"})(softmax)
    kernels.kernel("Conv2D", dtypes={"T": "float32"})(convolve)
    kernels.kernel("FusedBatchNormV3", dtypes={"T": "float32", "U": "float32"},
                   when=lambda attrs: not attrs["is_training"], inplace={0: 0})(nn.fused_batch_norm)


@hookimpl
def heald_devices(registry):
    registry.device(type="NARROW", scan=lambda config: [Narrow(0)], kernels=register)
