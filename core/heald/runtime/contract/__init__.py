"""Contract: the interfaces that plugins implement, and the hooks that register their implementations.

Plugin authors import these names from `heald.api`, whose names are only ever added to. The room has protocols,
declarations and registries. It opens no device, starts no thread, reads no configuration and imports no plugin. A
registry imports a plugin's code when its device type, op or kernel is first asked for. Core names no vendor here and
owns no device.

`hookspecs`: The hooks of a plugin, and the registry that each hook receives.
`device`: The protocol of a device, device names and requests, announced device types.
`device_cost`, `device_limits`, `placement`: The figures by which placement compares devices, and the bounds of their
    memory; its result.
`device_queues`: The streams of a device for copies beside its kernels.
`op`, `op_spec`: Signatures of ops and their metadata functions; the notation in which a plugin declares its own op.
`op_table`, `op_registry`: An op set as data; the ops of core and of all plugins by name.
`operator_table`: The ops behind the operators of handles.
`attribute_forms`: The forms in which attributes are written, and seen by kernels.
`structural`, `structural_metadata`: The ops that the compiler itself interprets; their metadata functions.
`op_handler`, `op_attrs`: Components that execute eager ops; the attributes of a call.
`kernel`: Kernels of ops: registration, bind and attach, fusions, patterns.
`prepared`: The objects that kernels make of constants, and the constants and ops behind them.
`host_kernel`, `host_type`: Kernels of host programs, declared by their signature; the types of registers without
    tensors.
`allocator`, `work_queue`: The protocols of host memory and of task queues.
`rendezvous`: The protocol through which Send and Recv nodes exchange tensors, and its keys.
`graph_pass`: Graph passes, their context and their order.
`compiler`: Compilers, which take groups of placed nodes.
`loader`, `model`: Loaders of file formats, where a Source is one opened file; the models that `heald.load` returns.
`command`: Commands of the program `heald`.
`session`: Sessions of plugins, chosen by the prefix of a target.
`claims`: Entries that plugins register by name, where no entry replaces another.
`api_version`: The version of the contract (`HEALD_API` in a plugin's module).
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .attribute_forms import check_attributes as check_attributes
    from .attribute_forms import convert_attribute as convert_attribute
    from .compiler import CompilerEntry as CompilerEntry
    from .device import DeviceName as DeviceName
    from .device import load_callable as load_callable
    from .graph_pass import PRE_PLACEMENT as PRE_PLACEMENT
    from .graph_pass import GraphPass as GraphPass
    from .host_kernel import HostKernel as HostKernel
    from .host_kernel import HostKernelRegistry as HostKernelRegistry
    from .kernel import KernelDef as KernelDef
    from .kernel import run_of as run_of
    from .op import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
    from .op import OP_SET_PLUGIN as OP_SET_PLUGIN
    from .op import REQUIRED as REQUIRED
    from .op import ArgDef as ArgDef
    from .op import AttrDef as AttrDef
    from .op import attr_text as attr_text
    from .op_registry import OpRegistry as OpRegistry
    from .placement import Assignment as Assignment
    from .placement import Placement as Placement
    from .session import in_this_process as in_this_process
    from .structural import CONST as CONST
    from .structural import CONTROL_TRIGGER as CONTROL_TRIGGER
    from .structural import NO_KERNEL as NO_KERNEL
    from .structural import NO_OP as NO_OP
    from .structural import PLACEHOLDER as PLACEHOLDER

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".attribute_forms": ("check_attributes", "convert_attribute"),
        ".compiler": ("CompilerEntry",),
        ".device": ("DeviceName", "load_callable"),
        ".graph_pass": ("GraphPass", "PRE_PLACEMENT"),
        ".host_kernel": ("HostKernel", "HostKernelRegistry"),
        ".kernel": ("KernelDef", "run_of"),
        ".op": ("ArgDef", "AttrDef", "GRAPH_DEF_VERSION", "OP_SET_PLUGIN", "REQUIRED", "attr_text"),
        ".op_registry": ("OpRegistry",),
        ".placement": ("Assignment", "Placement"),
        ".session": ("in_this_process",),
        ".structural": ("CONST", "CONTROL_TRIGGER", "NO_KERNEL", "NO_OP", "PLACEHOLDER"),
    })
