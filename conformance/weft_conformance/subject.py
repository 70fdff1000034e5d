"""The device under test, and what cases ask of it: buffers and copies by hand, and graphs that run on it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import weft
from weft.api import STREAM, Device, dtypes
from weft.errors import WeftWarning
from weft.graph.graph import Graph, Node

from .settings import Settings
from .verdict import Broken, NotApplicable, expect

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = np.ndarray[Any, Any]
REFERENCE = "CPU:0"


class Subject:
    """One device, opened and probed. Raises weft's NotFound and Unavailable, which say why it cannot be used."""

    def __init__(self, name: str, settings: Settings | None = None) -> None:
        self.name = name
        self.type = name.partition(":")[0]
        self.settings = settings or Settings()
        self.host = weft.default_host()
        self.device: Device = self.host.open(name)
        self.host_visible = bool(self.device.attributes.get("host_visible"))

    def size(self, full: int, quick: int) -> int:
        """How many, or how large: of the full suite, or of the quick one."""
        return quick if self.settings.quick else full

    # Buffers and copies by hand, as the runtime does them.

    def allocate(self, nbytes: int) -> Any:
        """A buffer that must be had. Raises Broken."""
        buffer = self.device.allocate(nbytes)
        expect(buffer is not None, f"{nbytes} bytes cannot be allocated", expected="a buffer", got=None,
               rule="Device.allocate")
        return buffer

    @contextmanager
    def buffers(self, *sizes: int) -> Iterator[list[Any]]:
        """Buffers for a while."""
        taken: list[Any] = []
        try:
            taken += [self.allocate(nbytes) for nbytes in sizes]
            yield taken
        finally:
            self.finish()
            for buffer in taken:
                self.device.free(buffer)

    def enqueue_in(self, host: Array, buffer: Any) -> None:
        self.device.copy_in(host, buffer, STREAM)

    def enqueue_out(self, buffer: Any, host: Array) -> None:
        self.device.copy_out(buffer, host, STREAM)

    def finish(self) -> None:
        """Wait for all that was enqueued."""
        self.device.synchronize(self.device.record(STREAM))

    def read(self, buffer: Any, nbytes: int, before: int = 0xA5) -> Array:
        """The first bytes of a buffer, copied out over an array that was full of `before`."""
        host = np.full(nbytes, before, np.uint8)
        self.enqueue_out(buffer, host)
        self.finish()
        return host

    # Graphs.

    def session(self, nodes: Iterable[Node]) -> weft.Session:
        return weft.Session(Graph(list(nodes)))

    def run(self, nodes: Iterable[Node], fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """The fetched values of a graph, whose nodes all run where they ask to. Raises Broken where they do not."""
        with self.session(nodes) as session:
            results: list[Array] = session.run(list(fetches), feeds)
            self.expect_placed(session)
            return results

    def expect_placed(self, session: weft.Session) -> None:
        for row in session.placement().values():
            asked = row.requested == self.name
            expect(not asked or row.device == self.name, f"node '{row.node}' ({row.op}) runs elsewhere",
                   expected=self.name, got=f"{row.device}: {row.reason}", rule="placement")

    def kernels(self) -> list[Any]:
        """What packs have registered for this type of device."""
        self.host.registries.kernels.load(self.type)
        return [k for k in self.host.registries.kernels.loaded() if k.device_type == self.type]

    def has_kernel(self, op: str, **attrs: Any) -> bool:
        return any(k.refuses(attrs) is None for k in self.host.registries.kernels.candidates(op, self.type))


@contextmanager
def tolerant_of_fallback() -> Iterator[None]:
    """Nodes in here may run elsewhere than they ask to, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeftWarning)
        yield


@contextmanager
def whatever_comes(what: str, *, expected: str, rule: str) -> Iterator[None]:
    """An exception in here breaks the rule."""
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
