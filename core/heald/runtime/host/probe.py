"""Probe: a device is offered only after a copy and a kernel returned the right result on it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

import numpy as np

from ...errors import Unavailable
from ..contract.device import STREAM, Device
from ..contract.device_limits import DeviceLimits
from ..contract.kernel import Bind, Declined, check_bound, run_of
from ..support.disk_cache import DiskCache
from ..support.remedy import device_remedy
from ..values.dtypes import float32
from ..values.tensor import info
from .registries import Registries

PROBE_SHAPE = (16,)
OPENING, COPY_IN, KERNEL, COPY_OUT = "its opening", "a copy in", "a kernel", "a copy out"


class CheckedWork:
    """The work that a device under a check was given last."""

    def __init__(self) -> None:
        self.work = OPENING


running_check: ContextVar[CheckedWork | None] = ContextVar("running_check", default=None)


def note_work(work: str) -> None:
    """Name the work that a device is given next, for the error of a check."""
    check = running_check.get()
    if check is not None:
        check.work = work


def wait_in_check(device: Device) -> None:
    """Under a check, wait until the device has done its work so far: the one wait of a probe cannot tell pieces
    apart."""
    if running_check.get() is not None:
        device.synchronize(device.record(STREAM))


def probe_once(device: Device, registries: Registries, plugin: str) -> None:
    """Probe a device, unless a probe with this plugin, driver and hardware succeeded before, in any process. A device
    that does not name its driver is always probed. Raises as `probe` does."""
    driver = device.attributes.get("driver")
    key = "\n".join((plugin, device.type, device.uid, str(driver)))
    cache = DiskCache("probes")
    if driver is None or cache.get(key) is None:
        probe(device, registries, plugin)
        if driver is not None:
            cache.put(key, key.encode())


def probe(device: Device, registries: Registries, plugin: str) -> None:
    """Copy in, add, copy out. Raises Unavailable when the sum is wrong, and every exception of the device."""
    x = np.arange(PROBE_SHAPE[0], dtype=np.float32)
    if device.attributes.get("host_visible"):
        result = np.zeros_like(x)
        added = run_probe_kernel(device, registries, (x, x), result)
    else:
        note_work(COPY_IN)
        inputs, output = [_buffer(device, x) for _ in range(2)], _buffer(device, np.zeros_like(x))
        wait_in_check(device)
        note_work(KERNEL)
        added = run_probe_kernel(device, registries, inputs, output)
        wait_in_check(device)
        note_work(COPY_OUT)
        result = np.full_like(x, np.nan)
        device.copy_out(output, result, STREAM)
        device.synchronize(device.record(STREAM))
        for buffer in (*inputs, output):
            device.free(buffer)
    expected = x + x if added else np.zeros_like(x)
    if np.isnan(result).any():
        raise Unavailable(f"synchronize of {device.type} (plugin {plugin}) returned before a copy out had ended",
                          hint=device_remedy(plugin))
    if not np.array_equal(result, expected):
        raise Unavailable(f"a probe on {device.type} returned {result[:4]}..., expected {expected[:4]}...",
                          hint="the device or its driver computes wrongly")


def run_probe_kernel(
    device: Device, registries: Registries, inputs: Sequence[object], output: object,
    shape: tuple[int, ...] = PROBE_SHAPE,
) -> bool:
    """Run the device type's first float32 kernel of an op that an op set names for this, if it has one."""
    meta = info(float32, shape)
    attrs = {"T": float32}
    for kernel in (k for op in registries.ops.probes() for k in registries.kernels.candidates(op, device.type)):
        if kernel.refuses(attrs) is None:
            node = Bind("probe", kernel.op, attrs, (meta, meta), (meta.meta,), device, STREAM, {})
            bound = kernel.bind(node)
            check_bound(bound, kernel.pack, kernel.op)
            if isinstance(bound, Declined) or bound is None or node.scratch_sizes:
                continue
            run_of(bound)(*inputs, output)
            return True
    return False


def _buffer(device: Device, host: np.ndarray[tuple[int], np.dtype[np.float32]]) -> object:
    buffer = device.allocate(DeviceLimits.of(device.attributes).allocation(host.nbytes))
    if buffer is None:
        raise Unavailable(f"{device.type} has no memory for {host.nbytes} bytes")
    device.copy_in(host, buffer, STREAM)
    return buffer
