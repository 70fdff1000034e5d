"""A plugin of the tests alone: kernels that keep arrays beyond their call, and that say so or do not."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from heald.api import AsyncValue, OpSpec, hookimpl, info

HEALD_API = (1, 0)
CONFIG = {"plugins": {"load": ["plugins_for_tests.kept_plugin"]}}
kept = defaultdict(list)  # node -> the arrays that it was given, one for each run


@hookimpl
def heald_ops(registry):
    for name in ("Copy", "Keep", "KeepOnDevice", "Recall", "Itself", "Start", "Once"):
        registry.add(OpSpec(f"Kept>{name}", inputs=["x: T"], outputs=["y: T"], stateful=name == "Keep",
                            attrs=["T: type", "declared: bool = true", "of: string = ''"],
                            metadata=lambda attrs, x: info(x.dtype, x.shape)))
    registry.add(OpSpec("Kept>KeepLater", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                        metadata=lambda attrs, x: info(x.dtype, x.shape)))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)
    registry.kernels("EXAMPLE", lambda kernels: kernels.kernel("Kept>KeepOnDevice", retains=["x"])(keep))


def keep(b):
    def run(x, out):
        kept[b.node].append(x)
        out[...] = x
    return run


def copy(x, out):
    out[...] = x


def register(kernels):
    kernels.kernel("Kept>Copy")(lambda b: copy)
    kernels.kernel("Kept>Keep", when=lambda attrs: attrs["declared"], retains=["x"])(keep)
    kernels.kernel("Kept>Keep", when=lambda attrs: not attrs["declared"])(keep)
    kernels.kernel("Kept>KeepOnDevice", retains=["x"])(keep)

    @kernels.kernel("Kept>KeepLater", asynchronous=True, step=True, retains=["x"])
    def keep_later(b):
        def run(step, x):
            kept[b.node].append(x)
            value = AsyncValue()
            step.host.work_queue.add_task(lambda: value.emplace(x + 0))
            return value
        return run

    @kernels.kernel("Kept>Recall")
    def recall(b):
        """The last input of the node `of`."""
        def run(x, out):
            out[...] = kept[b.attrs["of"]][-1]
        return run

    kernels.kernel("Kept>Itself", allocates=True)(lambda b: lambda x: x)  # no copy, and does not say so
    kernels.kernel("Kept>Start", allocates=True)(lambda b: lambda x: x[:1])  # nor this one

    @kernels.kernel("Kept>Once")
    def once(b):
        return Once()


class Once:
    """Writes its buffer in the first run, as if it had no other user."""

    def run(self, x, out):
        out[...] = x

    def attach(self, inputs, outputs):
        written = []

        def call():
            if not written:
                self.run(*inputs, *outputs)
                written.append(True)

        return call


def poison(array):
    """An array of this type and shape as poison looks."""
    return np.full(array.nbytes, 0xCB, np.uint8).view(array.dtype).reshape(array.shape)
