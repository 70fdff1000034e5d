"""Host: the environment that programs run in.

A Host owns the devices of this process, their memory, one work queue, one host allocator, the memory budget, and the
objects that programs share. Nothing is scanned, opened, imported or started before it is first asked for. This room
knows no graph, no program and no session. It names no vendor. Finalizers of frames and buffers call no device and
wait for no lock.

`host`: The Host: a DeviceSet with work queue, allocator and memory budget; cancellation and diagnostics.
`device_set`: The DeviceSet: records of devices, scan, opening, placement's order of devices, loss of a device.
`device_record`, `scan`: One scanned device; the checks of a plugin's scan. `device_fault` finds the owner of a fault.
`forked_devices`: The refusal of a parent's devices in a forked child.
`registries`: The ops, device types, kernels, allocators, work queues and passes that plugins registered.
`probe`: The test that a device passes before it is offered. `device_check`: The waits of a device, by kind of work,
which `check_limit` bounds.
`device_memory`: Buffers of devices: allocation, upload of constants, deferred release.
`stream_waiter`: The thread that waits for a device's events and makes values available.
`host_memory`: The budget of large arrays in host memory. `allocators/` provides the memory.
`bound_call_cache`: The bound calls that are kept for later runs, bounded by bytes.
`kernel_context`: NumPy's error state and the denormal mode of threads that run kernels.
`parallel`: Jobs: work of one thread that idle threads of the queue help with. `work_queues/` has the queues.
`rendezvous`: The rendezvous of a step within one process.
`cancellation`, `resources`: Cancel tokens; the named objects that several calls share.
`file_policy`: The files that ops may open.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .allocators import make_allocator as make_allocator
    from .bound_call_cache import bytes_of_call as bytes_of_call
    from .device_check import WAIT_CHECKS as WAIT_CHECKS
    from .device_check import Waits as Waits
    from .file_policy import refusal as refusal
    from .host import Host as Host
    from .kernel_context import KERNEL_MODES as KERNEL_MODES
    from .kernel_context import KernelContext as KernelContext
    from .kernel_context import ModeWords as ModeWords
    from .rendezvous import LocalRendezvous as LocalRendezvous
    from .resources import Resources as Resources
    from .work_queues import make_work_queue as make_work_queue

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".allocators": ("make_allocator",),
        ".bound_call_cache": ("bytes_of_call",),
        ".device_check": ("WAIT_CHECKS", "Waits"),
        ".file_policy": ("refusal",),
        ".host": ("Host",),
        ".kernel_context": ("KERNEL_MODES", "KernelContext", "ModeWords"),
        ".rendezvous": ("LocalRendezvous",),
        ".resources": ("Resources",),
        ".work_queues": ("make_work_queue",),
    })
