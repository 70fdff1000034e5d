"""The CUDA driver and its compiler: every call that this plugin makes to them, as functions over plain numbers.

Handles and addresses are ints. A function whose work belongs to a context needs that context on its thread (`enter`).
Every function raises DriverError for a code that is no success. Tests put a driver of their own in this module's place.
Only `foreign`, for arrays of other libraries, imports CUDA's packages beside it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from io import StringIO
from typing import Any, NamedTuple

from heald.api import Unavailable, install_hint

LIBRARY = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
INSTALL = "install NVIDIA's driver; 'nvidia-smi' tells whether it works"
OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
STREAM_NON_BLOCKING = 1
CAPTURE_OF_THIS_THREAD = 1
STD = "c++17"


class DriverError(Exception):
    """A call failed. `name`: the driver's name of the code, such as CUDA_ERROR_OUT_OF_MEMORY."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{text} ({name})")
        self.name = name


class Description(NamedTuple):
    """A GPU. `memory`: bytes; `clock`: Hz; `bus_width`: bits; `memory_clock`: Hz; `driver`: its CUDA version."""

    ordinal: int
    name: str
    uuid: str
    bus: str
    memory: int
    capability: tuple[int, int]
    multiprocessors: int
    clock: int
    memory_clock: int
    bus_width: int
    driver: tuple[int, int]


class Context(NamedTuple):
    """An open GPU: its context, shared by all libraries of the process, and a memory pool of heald's own."""

    ordinal: int
    handle: int
    pool: int


def probe() -> None:
    """Look for the driver: load it, initialise it, compare its version with the compiler's. Raises Unavailable."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise Unavailable(f"there is no CUDA driver: {error}", hint=INSTALL) from None
    try:
        from cuda.bindings import driver, nvrtc
    except ImportError as error:
        raise Unavailable(f"cuda-bindings cannot be imported: {error}", hint=install_hint("heald-cuda")) from error
    (code,) = driver.cuInit(0)
    if code:
        raise Unavailable(f"the CUDA driver does not start: {_error(code)}", hint=INSTALL)
    (_, *compiler), version = nvrtc.nvrtcVersion(), _version()
    if version[0] < compiler[0]:
        raise Unavailable(f"the driver is of CUDA {_version_text(version)}, the compiler of {_version_text(compiler)}",
                          hint=f"update the driver to one of CUDA {compiler[0]}")


def devices() -> list[Description]:
    """The GPUs, in the driver's order. Called after `probe`."""
    d = _driver()
    kinds, descriptions = d.CUdevice_attribute, []
    for ordinal in range(_ask(d.cuDeviceGetCount())):
        device = _ask(d.cuDeviceGet(ordinal))

        def attribute(name: str, of: Any = device) -> int:
            return int(_ask(d.cuDeviceGetAttribute(getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}"), of)))

        descriptions.append(Description(
            ordinal, _text(_ask(d.cuDeviceGetName(256, device))), bytes(_ask(d.cuDeviceGetUuid(device)).bytes).hex(),
            _text(_ask(d.cuDeviceGetPCIBusId(32, device))), int(_ask(d.cuDeviceTotalMem(device))),
            (attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
            attribute("MULTIPROCESSOR_COUNT"), attribute("CLOCK_RATE") * 1000, attribute("MEMORY_CLOCK_RATE") * 1000,
            attribute("GLOBAL_MEMORY_BUS_WIDTH"), _version()))
    return descriptions


def open_context(ordinal: int) -> Context:
    """The GPU's primary context, with a pool whose memory the other GPUs may access where the hardware lets them."""
    d = _driver()
    device = _ask(d.cuDeviceGet(ordinal))
    handle = int(_ask(d.cuDevicePrimaryCtxRetain(device)))
    enter(handle)
    properties = d.CUmemPoolProps()
    properties.allocType = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = ordinal
    pool = _ask(d.cuMemPoolCreate(properties))
    keep = d.cuuint64_t(2**64 - 1)  # freed memory stays with the pool until `trim`
    _ask(d.cuMemPoolSetAttribute(pool, d.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, keep))
    for other in range(_ask(d.cuDeviceGetCount())):
        if other != ordinal and _ask(d.cuDeviceCanAccessPeer(_ask(d.cuDeviceGet(other)), device)):
            access = d.CUmemAccessDesc()
            access.location.type, access.location.id = properties.location.type, other
            access.flags = d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            _ask(d.cuMemPoolSetAccess(pool, [access], 1))
    return Context(ordinal, handle, int(pool))


def close_context(context: Context) -> None:
    d = _driver()
    _ask(d.cuMemPoolDestroy(context.pool))
    _ask(d.cuDevicePrimaryCtxRelease(_ask(d.cuDeviceGet(context.ordinal))))


def enter(context: int) -> None:
    """Make a context the current one of this thread."""
    _ask(_driver().cuCtxSetCurrent(context))


def can_access(ordinal: int, peer: int) -> bool:
    d = _driver()
    return bool(_ask(d.cuDeviceCanAccessPeer(_ask(d.cuDeviceGet(ordinal)), _ask(d.cuDeviceGet(peer)))))


def new_stream() -> int:
    return int(_ask(_driver().cuStreamCreate(STREAM_NON_BLOCKING)))


def new_event() -> int:
    return int(_ask(_driver().cuEventCreate(0)))  # with times


def destroy(kind: str, handle: int) -> None:
    """Destroy a `stream`, an `event` or a `graph`. Work that uses it goes on."""
    d = _driver()
    _ask({"stream": d.cuStreamDestroy, "event": d.cuEventDestroy, "graph": d.cuGraphExecDestroy}[kind](handle))


def record(event: int, stream: int) -> None:
    _ask(_driver().cuEventRecord(event, stream))


def wait(stream: int, event: int) -> None:
    """Have the later work of a stream wait for a recorded event, of this GPU or another."""
    _ask(_driver().cuStreamWaitEvent(stream, event, 0))


def synchronize(event: int) -> None:
    """Block until a recorded event has happened, without the GIL."""
    _ask(_driver().cuEventSynchronize(event))


def elapsed(start: int, end: int) -> float:
    """Seconds from one event to another. Both have happened."""
    return float(_ask(_driver().cuEventElapsedTime(start, end))) / 1e3


def allocate(context: Context, nbytes: int, stream: int) -> int:
    """The address of memory that later work of the stream may use."""
    return int(_ask(_driver().cuMemAllocFromPoolAsync(nbytes, context.pool, stream)))


def free(address: int, stream: int) -> None:
    """Free memory behind the work of the stream."""
    _ask(_driver().cuMemFreeAsync(address, stream))


def trim(context: Context) -> int:
    """Give the pool's unused memory back to the GPU. Returns the GPU's free bytes."""
    d = _driver()
    _ask(d.cuMemPoolTrimTo(context.pool, 0))
    return int(_ask(d.cuMemGetInfo())[0])


def allocate_host(nbytes: int) -> int:
    """The address of host memory that no system moves, which copies reach without the driver's help."""
    return int(_ask(_driver().cuMemHostAlloc(nbytes, 1)))  # for all contexts


def free_host(address: int) -> None:
    _ask(_driver().cuMemFreeHost(address))


def copy(target: int, source: int, nbytes: int, stream: int) -> None:
    """Enqueue a copy between any two memories: the addresses tell which."""
    _ask(_driver().cuMemcpyAsync(target, source, nbytes, stream))


def compile_text(source: str, architecture: str, options: Sequence[str]) -> tuple[bytes, str]:
    """Compile to a cubin. Returns it, or no bytes and the compiler's log. Works without a driver."""
    from cuda.core import Program, ProgramOptions

    log = StringIO()
    macros = [option.removeprefix("-D") for option in options]
    try:
        program = Program(source, "c++", ProgramOptions(arch=architecture, std=STD, define_macro=macros or None))
        return bytes(program.compile("cubin", logs=log).code), ""
    except Exception as error:  # noqa: BLE001 - of a class that cuda-core does not export
        return b"", f"{log.getvalue()}\n{error}"


def function(binary: bytes, name: str) -> int:
    """Load a cubin into the current context. Returns its kernel of this name."""
    d = _driver()
    return int(_ask(d.cuModuleGetFunction(_ask(d.cuModuleLoadData(binary)), name.encode())))


def launch(kernel: int, grid: Sequence[int], block: Sequence[int], shared: int, stream: int, arguments: int) -> None:
    """Enqueue a kernel. `arguments`: the address of an array of the arguments' addresses; both are read now."""
    _ask(_driver().cuLaunchKernel(kernel, *grid, *block, shared, stream, arguments, 0))


def capture(stream: int, enqueue: Callable[[], None]) -> int:
    """Call `enqueue`, and make a graph of the work that it enqueues on the stream. None of the work runs."""
    d = _driver()
    _ask(d.cuStreamBeginCapture(stream, d.CUstreamCaptureMode(CAPTURE_OF_THIS_THREAD)))
    try:
        enqueue()
    except BaseException:
        code, begun = d.cuStreamEndCapture(stream)
        if not code:
            d.cuGraphDestroy(begun)
        raise
    graph = _ask(d.cuStreamEndCapture(stream))
    try:
        return int(_ask(d.cuGraphInstantiate(graph, 0)))
    finally:
        d.cuGraphDestroy(graph)


def replay(graph: int, stream: int) -> None:
    _ask(_driver().cuGraphLaunch(graph, stream))


@cache
def _driver() -> Any:
    from cuda.bindings import driver

    return driver


def _ask(answer: tuple[Any, ...]) -> Any:
    """The value behind the code of an answer. Raises DriverError."""
    code, *values = answer
    if code:
        raise _error(code)
    return values[0] if len(values) == 1 else values or None


def _error(code: Any) -> DriverError:
    text = _driver().cuGetErrorString(code)[-1]
    return DriverError(code.name, _text(text) if text else "the driver failed")


def _version_text(version: Sequence[int]) -> str:
    return f"{version[0]}.{version[1]}"


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace").strip()


def _version() -> tuple[int, int]:
    version = int(_ask(_driver().cuDriverGetVersion()))
    return version // 1000, version % 1000 // 10
