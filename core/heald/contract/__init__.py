"""Contract: the interfaces that plugins implement, and the hooks that register their implementations.

Plugin authors import these names from `heald.api`, whose names are only ever added to. The room has protocols,
declarations and registries. It opens no device, starts no thread, reads no configuration and imports no plugin. A
registry imports a plugin's code when its device type, op or kernel is first asked for. Core names no vendor here and
owns no device.

`hookspecs`: The hooks of a plugin, and the registry that each hook receives.
`device`: The protocol of a device, device names and requests, announced device types.
`device_cost`: The figures by which placement compares devices.
`op`, `op_spec`: Signatures of ops and their metadata functions; the notation in which a plugin declares its own op.
`structural`, `structural_metadata`: The ops that the compiler itself interprets; their metadata functions.
`op_handler`, `op_attrs`: Components that execute eager ops; the attributes of a call.
`kernel`: Kernels of ops: registration, bind and attach, fusions, patterns.
`prepared`: The objects that kernels make of constants, and what they are made from.
`host_kernel`, `host_type`: Kernels of host programs, declared by their signature; the types of registers without
    tensors.
`allocator`, `work_queue`: The protocols of host memory and of task queues.
`rendezvous`: The protocol through which Send and Recv nodes exchange tensors, and its keys.
`graph_pass`: Graph passes, their context and their order.
`loader`: Loaders of file formats; a Source is one opened file.
`command`: Commands of the program `heald`.
`session`: Sessions of plugins, chosen by the prefix of a target.
`claims`: Entries that plugins register by name, where no entry replaces another.
`api_version`: The version of the contract (`HEALD_API` in a plugin's module).
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .host_kernel import HostKernel as HostKernel
    from .host_kernel import HostKernelRegistry as HostKernelRegistry
    from .kernel import KernelDef as KernelDef
    from .kernel import run_of as run_of
    from .op import REQUIRED as REQUIRED
    from .op import ArgDef as ArgDef
    from .op import OpRegistry as OpRegistry

__getattr__ = lazy_exports(__name__, {
    ".host_kernel": ("HostKernel", "HostKernelRegistry"), ".kernel": ("KernelDef", "run_of"),
    ".op": ("REQUIRED", "ArgDef", "OpRegistry"),
})
