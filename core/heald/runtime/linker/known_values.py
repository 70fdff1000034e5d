"""KnownValues: constants and folded values of a function, in the memory of the calls that read them.

A weight is kept once. A constant that a kernel has packed, and that no bound kernel reads (`reads`), has no array here.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from ...errors import ResourceExhausted
from ..contract.device import STREAM, Device
from ..host.host import Host
from ..host.host_memory import RelaidConstant
from ..program.host_program import COPY, HOST, RUNTIME_CODES, ProgramFunction
from ..support.aligned_array import is_solid
from ..values.computed_info import ComputedInfo
from ..values.tensor import ValueInfo
from .candidates import Candidates
from .folding import laid_out_bytes
from .shared_by_links import SharedByLinks

LARGEST_TEMPORARY_BYTES = 256 << 20  # of arrays that are laid out for uploads alone, and not awaited yet


class Uploads:
    """The constants on their way to a device. `arrays` keeps the memory that the device may still read."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.buffers: list[tuple[int, Any]] = []  # by register
        self.arrays: list[Any] = []
        self.temporary_bytes = 0


class KnownValues:
    """`frozen`: registers with the same value in every link of the program."""

    def __init__(
        self, function: ProgramFunction, frozen: Collection[int], candidates: Candidates, host: Host,
        shared: SharedByLinks,
    ) -> None:
        self._function = function
        self._frozen = frozen
        self._candidates = candidates
        self._host = host
        self._shared = shared
        self._uploads: dict[int, Uploads] = {}  # by stream

    def memory(self) -> dict[int, int]:
        """For each register return the stream whose memory holds it, HOST for host memory."""
        memory: dict[int, int] = dict.fromkeys(range(len(self._function.register_types)), HOST)
        for call in self._function.kernels:
            if call.code == COPY:
                memory[call.results[0]] = call.stream if call.attrs["to"] == "device" else HOST
            elif call.code not in RUNTIME_CODES and not call.is_host_kernel:
                memory |= dict.fromkeys(call.results, self._candidates.result_memory(call))
        return memory

    def preset(self, register: int, value: Any, memory: int) -> Any:
        """Return a known value in the memory of its register. A value that all links share is uploaded once."""
        if memory == HOST:
            return value if is_solid(value) else self._laid_out_value(register, value)
        if register in self._frozen and register in self._shared.uploaded:
            return self._shared.uploaded[register]
        uploads = self._uploads.setdefault(memory, Uploads(self._candidates.devices[memory]))
        try:
            laid_out = value if is_solid(value) else self._laid_out_value(register, value).array()
            buffer = self._host.device_memory.enter(uploads.device, laid_out, "a constant")
        except Exception as error:  # noqa: BLE001 - raised again, typed
            with suppress(Exception):
                self.await_uploads()  # the device may still read the earlier arrays
            raise self._host.fault(uploads.device, error)  # noqa: B904 - the cause is set there
        self._shared.buffers.append((uploads.device.free, buffer))
        uploads.buffers.append((register, buffer))
        uploads.arrays.append(laid_out)
        uploads.temporary_bytes += 0 if laid_out is value else laid_out.nbytes
        if uploads.temporary_bytes > LARGEST_TEMPORARY_BYTES:
            self.await_uploads()
        return buffer

    def await_uploads(self) -> None:
        """Wait once for each device that receives values. Then they belong to all links of the program.

        Raises the typed error of a device.
        """
        while self._uploads:
            _, uploads = self._uploads.popitem()
            try:
                uploads.device.synchronize(uploads.device.record(STREAM))
            except Exception as error:  # noqa: BLE001 - raised again, typed
                raise self._host.fault(uploads.device, error)  # noqa: B904 - the cause is set there
            self._shared.uploaded.update((r, buffer) for r, buffer in uploads.buffers if r in self._frozen)

    def elements(self, register: int, info: ValueInfo) -> Any:
        """Return the elements of a known value. Raises ResourceExhausted when they need memory and it is short."""
        if not isinstance(info, ComputedInfo):
            return info.value
        node = self._node_of(register)
        try:
            return self._host.memory.lend(laid_out_bytes(info.meta), f"constant '{node}' {info.meta}",
                                          lambda: info.value)
        except ResourceExhausted as error:
            raise error.at(node=node)  # noqa: B904 - the same error, with its node

    def _node_of(self, register: int) -> str:
        return next((call.node for call in self._function.kernels if register in call.results), "")

    def _laid_out_value(self, register: int, value: Any) -> RelaidConstant:
        """Return the value as calls read it, one object for all links that share it."""
        laid = RelaidConstant(value, self._host.memory, self._node_of(register))
        return self._shared.laid_out.setdefault(register, laid) if register in self._frozen else laid
