"""The device under test, as cases use it: buffers and copies without the runtime, and graphs that run on it.

Results are compared with the reference: heald-cpu's own kernels on CPU:0. Other packs for the CPU are not asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import heald
import numpy as np
from heald.api import STREAM, Device, DeviceLimits, Graph, Node, dtypes
from heald.errors import HealdWarning, NotFound
from heald.runtime.config import load_config
from heald.runtime.service import Runtime

from .settings import Settings
from .verdict import Broken, NotApplicable, expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heald.runtime.contract import KernelDef

Array = np.ndarray[Any, Any]
REFERENCE = "CPU:0"
OWN = "cpu"  # the pack of heald-cpu


class Site(NamedTuple):
    """A device, and the runtime whose kernels serve it; None for the runtime of the process."""

    name: str
    runtime: Runtime | None

    def session(self, nodes: Iterable[Node]) -> heald.Session:
        return heald.Session(Graph(list(nodes)), self.runtime)


def pinned_runtime(pack: str | None = None) -> Runtime:
    """The runtime in which heald-cpu's kernels serve CPU:0, and the kernels of `pack` come before all others."""
    return _pinned_runtime(pack, len(heald.default_host().registries.kernels.packs()))


@cache
def _pinned_runtime(pack: str | None, _count: int) -> Runtime:
    """As `pinned_runtime`, anew when a plugin was registered: `_count` is the number of all packs."""
    kernels = heald.default_host().registries.kernels
    for device_type in ["CPU"] if pack is None else heald.default_host().preference():
        kernels.load(device_type)
    first = {kernel.op: OWN for kernel in kernels.loaded_kernels() if kernel.pack == OWN}
    return Runtime(load_config({"kernels": first | {k.op: k.pack for k in kernels.loaded_kernels() if k.pack == pack}}))


class Subject:
    """One device, opened and probed.

    `here`: the device with the kernels under test: on CPU:0 the installed ones, or with `settings.pack` its own alone.
    `reference`: CPU:0 with heald-cpu's own kernels.

    Raises heald's NotFound and Unavailable with the reason if it cannot be used, and NotFound for a pack without
    kernels for it.
    """

    def __init__(self, name: str, settings: Settings | None = None) -> None:
        self.name = name
        self.type = name.partition(":")[0]
        self.settings = settings or Settings()
        self.pack = self.settings.pack
        is_installed = name == REFERENCE and self.pack is None
        self.here = Site(name, None if is_installed else pinned_runtime(self.pack))
        self.reference = Site(REFERENCE, pinned_runtime())
        self.host = heald.default_host() if self.here.runtime is None else self.here.runtime.host
        self.device: Device = self.host.open(name)
        self.host_visible = bool(self.device.attributes.get("host_visible"))
        if self.pack is not None and not self.kernels():
            packs = sorted({kernel.pack for kernel in self.registered_kernels()})
            raise NotFound(f"plugin {self.pack} has no kernels for {self.type}", device=name,
                           hint=f"these have: {', '.join(packs) or 'none'}")

    def size(self, full: int, quick: int) -> int:
        """A number or size of a case: `full` in the full suite, `quick` in the quick one."""
        return quick if self.settings.quick else full

    # Buffers and copies, with the calls that the runtime makes.

    def allocate(self, nbytes: int) -> Any:
        """Allocate a buffer. Raises Broken where the device returns None."""
        buffer = self.device.allocate(DeviceLimits.of(self.device.attributes).allocation(nbytes))
        expect(buffer is not None, f"{nbytes} bytes cannot be allocated", expected="a buffer", got=None,
               rule="Device.allocate")
        return buffer

    @contextmanager
    def buffers(self, *sizes: int) -> Iterator[list[Any]]:
        """Allocate buffers, and free them at the end of the block."""
        buffers: list[Any] = []
        try:
            buffers += [self.allocate(nbytes) for nbytes in sizes]
            yield buffers
        finally:
            self.finish()
            for buffer in buffers:
                self.device.free(buffer)

    def enqueue_in(self, host: Array, buffer: Any) -> None:
        self.device.copy_in(host, buffer, STREAM)

    def enqueue_out(self, buffer: Any, host: Array) -> None:
        self.device.copy_out(buffer, host, STREAM)

    def finish(self) -> None:
        """Wait until all enqueued work is done."""
        self.device.synchronize(self.device.record(STREAM))

    def read(self, buffer: Any, nbytes: int, before: int = 0xA5) -> Array:
        """The first bytes of a buffer, copied to an array whose bytes were `before`."""
        host = np.full(nbytes, before, np.uint8)
        self.enqueue_out(buffer, host)
        self.finish()
        return host

    # Graphs.

    def session(self, nodes: Iterable[Node]) -> heald.Session:
        return self.here.session(nodes)

    def run(self, nodes: Iterable[Node], fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Run a graph and return the fetched values. Raises Broken if a node runs elsewhere than requested."""
        with self.session(nodes) as session:
            results: list[Array] = session.run(list(fetches), feeds)
            self.expect_placed(session)
            return results

    def expect_placed(self, session: heald.Session) -> None:
        for row in session.placement().values():
            is_requested = row.requested == self.name
            expect(not is_requested or row.device == self.name, f"node '{row.node}' ({row.op}) runs elsewhere",
                   expected=self.name, got=f"{row.device}: {row.reason}", rule="placement")

    def registered_kernels(self) -> list[KernelDef]:
        """The kernels that all packs have registered for this device type."""
        self.host.registries.kernels.load(self.type)
        return [k for k in self.host.registries.kernels.loaded_kernels() if k.device_type == self.type]

    def kernels(self) -> list[KernelDef]:
        """The kernels under test: of the pack, or all. Kernels of unknown ops have a case of their own."""
        ops = self.host.registries.ops
        return [k for k in self.registered_kernels() if self.is_tested(k.pack) and k.op in ops]

    def kernels_of_unknown_ops(self) -> dict[str, tuple[KernelDef, str]]:
        """The kernels under test whose op no plugin brings, with a hint, by op."""
        self.host.registries.kernels.load(self.type)
        kernels = self.host.registries.kernels.kernels_of_unknown_ops(self.type)
        return {kernel.op: (kernel, hint) for kernel, hint in kernels if self.is_tested(kernel.pack)}

    def candidates(self, op: str) -> list[KernelDef]:
        """The kernels under test for one op."""
        return [k for k in self.host.registries.kernels.candidates(op, self.type) if self.is_tested(k.pack)]

    def is_tested(self, pack: str) -> bool:
        return self.pack in (None, pack)

    def has_kernel(self, op: str, **attrs: Any) -> bool:
        return any(k.refuses(attrs) is None for k in self.candidates(op))


@contextmanager
def tolerant_of_fallback() -> Iterator[None]:
    """Within this block, nodes may run on another device than requested without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealdWarning)
        yield


@contextmanager
def whatever_comes(what: str, *, expected: str, rule: str) -> Iterator[None]:
    """Raise Broken with this rule for any exception within the block."""
    try:
        yield
    except (Broken, NotApplicable):
        raise
    except Exception as error:
        raise Broken(what, expected=expected, got=f"{type(error).__name__}: {error}", rule=rule) from error


def placeholder(name: str, dtype: Any = dtypes.float32) -> Node:
    return Node(name, "Placeholder", attrs={"dtype": dtype})


def constant(name: str, value: Array, dtype: Any = None) -> Node:
    return Node(name, "Const", attrs={"dtype": dtype or dtypes.of_numpy(value.dtype), "value": value})
