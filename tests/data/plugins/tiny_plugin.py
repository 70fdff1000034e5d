"""A third party in one file: a device, an op set of one op, and kernels. It knows neither TensorFlow's ops nor the CPU.

Its device works on host memory.
"""

from pathlib import Path

from heald.api import MetadataRule, OpTable, hookimpl, info

HEALD_API = (1, 0)


class Tiny:
    type = "TINY"
    uid = "tiny0"
    attributes = {"host_visible": True}  # noqa: RUF012 - as short as a device can be

    def open(self): ...

    def close(self): ...

    def allocate(self, nbytes):
        import numpy as np

        return np.empty(nbytes, np.uint8)

    def free(self, buffer): ...

    def copy_in(self, host, buffer, stream):
        buffer[: host.nbytes] = host.reshape(-1).view("u1")

    def copy_out(self, buffer, host, stream):
        host.reshape(-1).view("u1")[:] = buffer[: host.nbytes]

    def record(self, stream): ...

    def synchronize(self, event): ...


def scan(config):
    yield Tiny()


def register(kernels):
    kernels.kernel("Identity", alias={0: 0})(lambda bind: None)

    @kernels.kernel("Tiny>Plus", dtypes={"T": ("float32",)})
    def plus(bind):
        def run(x, y, out):
            out[...] = x + y

        return run


@hookimpl
def heald_devices(registry):
    registry.device(type="TINY", scan=scan, kernels=register)


@hookimpl
def heald_ops(registry):
    rule = MetadataRule(lambda attrs, x, y: info(x.dtype, y.shape if x.shape is None else x.shape))
    rows = Path(__file__).parent / "tiny_ops.tsv"
    registry.add_table(OpTable(rows, rules={"Tiny>Plus": rule}.get, probe="Tiny>Plus"))
