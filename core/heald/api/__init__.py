"""The versioned public contract of plugins: a plugin imports this package and nothing else of heald.

Names are imported when they are first used (PEP 562), so that a plugin's light module loads only the parts that it
names. `heald.api.cli` has the building blocks of commands; it is imported by name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import errors
    from ..errors import HealdError, InvalidArgument, Unavailable
    from ..graphs.compiler.patterns import Known, Match, Pattern, Rule, rewrite
    from ..graphs.compiler.resolve import Resolved
    from ..graphs.graph.function import Function
    from ..graphs.graph.graph import Graph, Input, Node, Versions, topological_order
    from ..graphs.graph.rewriting import constant, new_name, placed_like, pruned, without_idle_controls
    from ..runtime.contract.allocator import AllocatorStats, HostAllocator, PlainAllocator
    from ..runtime.contract.api_version import API
    from ..runtime.contract.compiler import Compiler, PlacedPart, group_digest
    from ..runtime.contract.device import STREAM, Buffer, Device, Event, Stream, own_method
    from ..runtime.contract.device_limits import DeviceLimits
    from ..runtime.contract.device_queues import DeviceQueues
    from ..runtime.contract.graph_pass import PassContext
    from ..runtime.contract.hookspecs import (
        CommandRegistrar,
        CompilerRegistrar,
        DeviceRegistrar,
        Factory,
        FactoryRegistrar,
        KernelPackRegistrar,
        LoaderRegistrar,
        OpHandlerRegistrar,
        OpRegistrar,
        PassRegistrar,
        SessionRegistrar,
        hookimpl,
    )
    from ..runtime.contract.host_kernel import Callee, HostKernels
    from ..runtime.contract.host_type import F32, F64, I1, I32, I64, Chain, HostType, String, Tensor
    from ..runtime.contract.kernel import (
        ANY,
        Alias,
        Attachable,
        Bind,
        BindFunction,
        Bound,
        Declined,
        Find,
        FusedOp,
        FusionDef,
        KernelDef,
        Kernels,
        PatternDef,
    )
    from ..runtime.contract.loader import (
        Description,
        Initializer,
        Loader,
        LoadOptions,
        SignatureDef,
        Source,
        TensorInfo,
    )
    from ..runtime.contract.op import Attrs, MetadataFunction, MetadataRule, OpDef
    from ..runtime.contract.op_attrs import OpAttrs
    from ..runtime.contract.op_handler import OpFunction, OpHandler, OpHandlerContext, OpInvocation
    from ..runtime.contract.op_spec import OpSpec
    from ..runtime.contract.op_table import OpCost, OpTable
    from ..runtime.contract.operator_table import OperatorTable
    from ..runtime.contract.rendezvous import Rendezvous, RendezvousKey
    from ..runtime.contract.session import SessionInterface
    from ..runtime.contract.work_queue import ConcurrentWorkQueue, Task, WorkQueueConfig
    from ..runtime.executor.step import Step
    from ..runtime.host_kernels.waiting import Turns, await_payloads, run_or_promise
    from ..runtime.program.host_program import NATIVE
    from ..runtime.support.disk_cache import DiskCache
    from ..runtime.support.fork_safety import inherited
    from ..runtime.support.install import Library, install_hint
    from ..runtime.support.whole_file import make_folders, write_whole
    from ..runtime.values import dtypes, geometry, wire
    from ..runtime.values.async_value import DEAD, AsyncValue, available, failed
    from ..runtime.values.attribute_values import Func, ShapeAttr
    from ..runtime.values.dtypes import DType
    from ..runtime.values.layouts import CooTensor, ScalarTensor
    from ..runtime.values.tensor import (
        MOST_DIMS,
        Shape,
        TensorMetadata,
        ValueInfo,
        constant_info,
        info,
        merge_shapes,
        shape_text,
    )
    from ..runtime.values.tensor_proto import TensorValue

_NAMES = {  # module -> its public names
    "graphs.compiler.patterns": ("Known", "Match", "Pattern", "Rule", "rewrite"),
    "graphs.compiler.resolve": ("Resolved",),
    "runtime.contract.allocator": ("AllocatorStats", "HostAllocator", "PlainAllocator"),
    "runtime.contract.api_version": ("API",),
    "runtime.contract.compiler": ("Compiler", "PlacedPart", "group_digest"),
    "runtime.contract.device": ("STREAM", "Buffer", "Device", "Event", "Stream", "own_method"),
    "runtime.contract.device_limits": ("DeviceLimits",),
    "runtime.contract.device_queues": ("DeviceQueues",),
    "runtime.contract.graph_pass": ("PassContext",),
    "runtime.contract.hookspecs": (
        "CommandRegistrar", "CompilerRegistrar", "DeviceRegistrar", "Factory", "FactoryRegistrar",
        "KernelPackRegistrar", "LoaderRegistrar", "OpHandlerRegistrar", "OpRegistrar", "PassRegistrar",
        "SessionRegistrar", "hookimpl"),
    "runtime.contract.host_kernel": ("Callee", "HostKernels"),
    "runtime.contract.host_type": ("F32", "F64", "I1", "I32", "I64", "Chain", "HostType", "String", "Tensor"),
    "runtime.contract.kernel": (
        "ANY", "Alias", "Attachable", "Bind", "BindFunction", "Bound", "Declined", "Find", "FusedOp", "FusionDef",
        "KernelDef", "Kernels", "PatternDef"),
    "runtime.contract.loader": (
        "Description", "Initializer", "Loader", "LoadOptions", "SignatureDef", "Source", "TensorInfo"),
    "runtime.contract.op": ("Attrs", "MetadataFunction", "MetadataRule", "OpDef"),
    "runtime.contract.op_attrs": ("OpAttrs",),
    "runtime.contract.op_handler": ("OpFunction", "OpHandler", "OpHandlerContext", "OpInvocation"),
    "runtime.contract.op_spec": ("OpSpec",),
    "runtime.contract.op_table": ("OpCost", "OpTable"),
    "runtime.contract.operator_table": ("OperatorTable",),
    "runtime.contract.rendezvous": ("Rendezvous", "RendezvousKey"),
    "runtime.contract.session": ("SessionInterface",),
    "runtime.contract.work_queue": ("ConcurrentWorkQueue", "Task", "WorkQueueConfig"),
    "errors": ("InvalidArgument", "Unavailable", "HealdError"),
    "runtime.executor.step": ("Step",),
    "runtime.host_kernels.waiting": ("Turns", "await_payloads", "run_or_promise"),
    "graphs.graph.function": ("Function",),
    "graphs.graph.graph": ("Graph", "Input", "Node", "Versions", "topological_order"),
    "graphs.graph.rewriting": ("constant", "new_name", "placed_like", "pruned", "without_idle_controls"),
    "runtime.program.host_program": ("NATIVE",),
    "runtime.support.disk_cache": ("DiskCache",),
    "runtime.support.fork_safety": ("inherited",),
    "runtime.support.install": ("Library", "install_hint"),
    "runtime.support.whole_file": ("make_folders", "write_whole"),
    "runtime.values.attribute_values": ("Func", "ShapeAttr"),
    "runtime.values.async_value": ("DEAD", "AsyncValue", "available", "failed"),
    "runtime.values.dtypes": ("DType",),
    "runtime.values.layouts": ("CooTensor", "ScalarTensor"),
    "runtime.values.tensor": (
        "MOST_DIMS", "Shape", "TensorMetadata", "ValueInfo", "constant_info", "info", "merge_shapes", "shape_text"),
    "runtime.values.tensor_proto": ("TensorValue",),
}
_MODULES = {"dtypes": "runtime.values.dtypes", "errors": "errors", "geometry": "runtime.values.geometry",
            "wire": "runtime.values.wire"}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "ANY",
    "API",
    "DEAD",
    "F32",
    "F64",
    "I1",
    "I32",
    "I64",
    "MOST_DIMS",
    "NATIVE",
    "STREAM",
    "Alias",
    "AllocatorStats",
    "AsyncValue",
    "Attachable",
    "Attrs",
    "Bind",
    "BindFunction",
    "Bound",
    "Buffer",
    "Callee",
    "Chain",
    "CommandRegistrar",
    "Compiler",
    "CompilerRegistrar",
    "ConcurrentWorkQueue",
    "CooTensor",
    "DType",
    "Declined",
    "Description",
    "Device",
    "DeviceLimits",
    "DeviceQueues",
    "DeviceRegistrar",
    "DiskCache",
    "Event",
    "Factory",
    "FactoryRegistrar",
    "Find",
    "Func",
    "Function",
    "FusedOp",
    "FusionDef",
    "Graph",
    "HealdError",
    "HostAllocator",
    "HostKernels",
    "HostType",
    "Initializer",
    "Input",
    "InvalidArgument",
    "KernelDef",
    "KernelPackRegistrar",
    "Kernels",
    "Known",
    "Library",
    "LoadOptions",
    "Loader",
    "LoaderRegistrar",
    "Match",
    "MetadataFunction",
    "MetadataRule",
    "Node",
    "OpAttrs",
    "OpCost",
    "OpDef",
    "OpFunction",
    "OpHandler",
    "OpHandlerContext",
    "OpHandlerRegistrar",
    "OpInvocation",
    "OpRegistrar",
    "OpSpec",
    "OpTable",
    "OperatorTable",
    "PassContext",
    "PassRegistrar",
    "Pattern",
    "PatternDef",
    "PlacedPart",
    "PlainAllocator",
    "Rendezvous",
    "RendezvousKey",
    "Resolved",
    "Rule",
    "ScalarTensor",
    "SessionInterface",
    "SessionRegistrar",
    "Shape",
    "ShapeAttr",
    "SignatureDef",
    "Source",
    "Step",
    "Stream",
    "String",
    "Task",
    "Tensor",
    "TensorInfo",
    "TensorMetadata",
    "TensorValue",
    "Turns",
    "Unavailable",
    "ValueInfo",
    "Versions",
    "WorkQueueConfig",
    "available",
    "await_payloads",
    "constant",
    "constant_info",
    "dtypes",
    "errors",
    "failed",
    "geometry",
    "group_digest",
    "hookimpl",
    "info",
    "inherited",
    "install_hint",
    "make_folders",
    "merge_shapes",
    "new_name",
    "own_method",
    "placed_like",
    "pruned",
    "rewrite",
    "run_or_promise",
    "shape_text",
    "topological_order",
    "wire",
    "without_idle_controls",
    "write_whole",
]

if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name):
        from importlib import import_module

        if name in _MODULES:
            value = import_module(f"heald.{_MODULES[name]}")
        elif name in _WHERE:
            value = getattr(import_module(f"heald.{_WHERE[name]}"), name)
        else:
            raise AttributeError(f"module 'heald.api' has no attribute '{name}'")
        globals()[name] = value
        return value

    def __dir__():
        return __all__
