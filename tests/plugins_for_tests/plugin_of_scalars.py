"""A plugin of the tests alone: ops on int32 scalars that no pass knows, and one that writes down its inputs."""

from __future__ import annotations

import numpy as np
from heald.api import OpSpec, hookimpl, info

HEALD_API = (1, 0)
MODULUS = 101
logged: list[tuple[str, int]] = []  # node and input of each Log


@hookimpl
def heald_ops(registry):
    for name in ("Add", "Mul"):
        registry.add(OpSpec(f"Scalar>{name}", ["x: T", "y: T"], ["z: T"], ["T: type"],
                            metadata=lambda _, x, __: info(x.dtype, x.shape)))
    registry.add(OpSpec("Scalar>Log", ["x: T"], ["y: T"], ["T: type"], stateful=True,
                        metadata=lambda _, x: info(x.dtype, x.shape)))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)


def register(kernels):
    @kernels.kernel("Scalar>Add")
    def add(_):
        return lambda x, y, out: np.copyto(out, (x + y) % MODULUS)

    @kernels.kernel("Scalar>Mul")
    def multiply(_):
        return lambda x, y, out: np.copyto(out, x * y % MODULUS)

    @kernels.kernel("Scalar>Log")
    def log(b):
        def run(x, out):
            logged.append((b.node.rpartition("/")[2], int(x)))
            np.copyto(out, x)
        return run
