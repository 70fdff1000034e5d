"""The versioned public contract of plugins: a plugin imports this package and nothing else of heald.

Names are imported when they are first used (PEP 562), so that a plugin's light module loads only what it names.
`heald.api.cli` has the building blocks of commands; it is imported by name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import errors
    from ..compiler.patterns import Known, Match, Pattern, Rule, rewrite
    from ..compiler.resolve import Resolved
    from ..contract.allocator import AllocatorStats, HostAllocator, PlainAllocator
    from ..contract.api_version import API
    from ..contract.device import STREAM, Buffer, Device, Event, Stream
    from ..contract.graph_pass import PassContext
    from ..contract.hookspecs import (
        CommandRegistrar,
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
    from ..contract.host_kernel import Callee, HostKernels
    from ..contract.host_type import F32, F64, I1, I32, I64, Chain, HostType, String, Tensor
    from ..contract.kernel import (
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
    from ..contract.loader import Description, Initializer, Loader, LoadOptions, SignatureDef, Source, TensorInfo
    from ..contract.op import Attrs, MetadataFunction, MetadataRule, OpDef
    from ..contract.op_attrs import OpAttrs
    from ..contract.op_handler import OpFunction, OpHandler, OpHandlerContext, OpInvocation
    from ..contract.op_spec import OpSpec
    from ..contract.op_table import OpCost, OpTable
    from ..contract.operator_table import OperatorTable
    from ..contract.rendezvous import Rendezvous, RendezvousKey
    from ..contract.session import SessionInterface
    from ..contract.work_queue import ConcurrentWorkQueue, Task, WorkQueueConfig
    from ..errors import HealdError, InvalidArgument, Unavailable
    from ..executor.step import Step
    from ..graph.function import Function
    from ..graph.graph import Graph, Input, Node, Versions, topological_order
    from ..graph.rewriting import constant, new_name, placed_like, pruned, without_idle_controls
    from ..program.host_program import NATIVE
    from ..protobuf import wire
    from ..support.disk_cache import DiskCache
    from ..support.fork_safety import inherited
    from ..support.install import Library, install_hint
    from ..support.whole_file import make_folders, write_whole
    from ..values import dtypes, geometry
    from ..values.async_value import DEAD, AsyncValue, available, failed
    from ..values.attribute_values import Func, ShapeAttr
    from ..values.dtypes import DType
    from ..values.layouts import CooTensor, ScalarTensor
    from ..values.tensor import (
        MOST_DIMS,
        Shape,
        TensorMetadata,
        ValueInfo,
        constant_info,
        info,
        merge_shapes,
        shape_text,
    )
    from ..values.tensor_proto import TensorValue

_NAMES = {  # module -> its public names
    "compiler.patterns": ("Known", "Match", "Pattern", "Rule", "rewrite"),
    "compiler.resolve": ("Resolved",),
    "contract.allocator": ("AllocatorStats", "HostAllocator", "PlainAllocator"),
    "contract.api_version": ("API",),
    "contract.device": ("STREAM", "Buffer", "Device", "Event", "Stream"),
    "contract.graph_pass": ("PassContext",),
    "contract.hookspecs": ("CommandRegistrar", "DeviceRegistrar", "Factory", "FactoryRegistrar", "KernelPackRegistrar",
                           "LoaderRegistrar", "OpHandlerRegistrar", "OpRegistrar", "PassRegistrar", "SessionRegistrar",
                           "hookimpl"),
    "contract.host_kernel": ("Callee", "HostKernels"),
    "contract.host_type": ("F32", "F64", "I1", "I32", "I64", "Chain", "HostType", "String", "Tensor"),
    "contract.kernel": ("ANY", "Alias", "Attachable", "Bind", "BindFunction", "Bound", "Declined", "Find", "FusedOp",
                        "FusionDef", "KernelDef", "Kernels", "PatternDef"),
    "contract.loader": ("Description", "Initializer", "Loader", "LoadOptions", "SignatureDef", "Source", "TensorInfo"),
    "contract.op": ("Attrs", "MetadataFunction", "MetadataRule", "OpDef"),
    "contract.op_attrs": ("OpAttrs",),
    "contract.op_handler": ("OpFunction", "OpHandler", "OpHandlerContext", "OpInvocation"),
    "contract.op_spec": ("OpSpec",),
    "contract.op_table": ("OpCost", "OpTable"),
    "contract.operator_table": ("OperatorTable",),
    "contract.rendezvous": ("Rendezvous", "RendezvousKey"),
    "contract.session": ("SessionInterface",),
    "contract.work_queue": ("ConcurrentWorkQueue", "Task", "WorkQueueConfig"),
    "errors": ("InvalidArgument", "Unavailable", "HealdError"),
    "executor.step": ("Step",),
    "graph.function": ("Function",),
    "graph.graph": ("Graph", "Input", "Node", "Versions", "topological_order"),
    "graph.rewriting": ("constant", "new_name", "placed_like", "pruned", "without_idle_controls"),
    "program.host_program": ("NATIVE",),
    "support.disk_cache": ("DiskCache",),
    "support.fork_safety": ("inherited",),
    "support.install": ("Library", "install_hint"),
    "support.whole_file": ("make_folders", "write_whole"),
    "values.attribute_values": ("Func", "ShapeAttr"),
    "values.async_value": ("DEAD", "AsyncValue", "available", "failed"),
    "values.dtypes": ("DType",),
    "values.layouts": ("CooTensor", "ScalarTensor"),
    "values.tensor": ("MOST_DIMS", "Shape", "TensorMetadata", "ValueInfo", "constant_info", "info", "merge_shapes",
                      "shape_text"),
    "values.tensor_proto": ("TensorValue",),
}
_MODULES = {"dtypes": "values.dtypes", "errors": "errors", "geometry": "values.geometry", "wire": "protobuf.wire"}
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
    "ConcurrentWorkQueue",
    "CooTensor",
    "DType",
    "Declined",
    "Description",
    "Device",
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
    "Unavailable",
    "ValueInfo",
    "Versions",
    "WorkQueueConfig",
    "available",
    "constant",
    "constant_info",
    "dtypes",
    "errors",
    "failed",
    "geometry",
    "hookimpl",
    "info",
    "inherited",
    "install_hint",
    "make_folders",
    "merge_shapes",
    "new_name",
    "placed_like",
    "pruned",
    "rewrite",
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
