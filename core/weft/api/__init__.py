"""The versioned public contract of plugins, re-exports only: a plugin imports this package and nothing else of weft.

`weft.api.cli` has what commands are made of; it is imported by name.
"""

from .. import errors
from ..compiler.resolve import Resolved
from ..contract.allocator import AllocatorStats, HostAllocator, PlainAllocator
from ..contract.api_version import API
from ..contract.device import STREAM, Device
from ..contract.graph_pass import PassContext
from ..contract.hookspecs import (
    CommandRegistrar,
    DeviceRegistrar,
    KernelPackRegistrar,
    OpRegistrar,
    PassRegistrar,
    hookimpl,
)
from ..contract.host_kernel import Callee, HostKernels
from ..contract.host_type import F32, F64, I1, I32, I64, Chain, HostType, String, Tensor
from ..contract.kernel import Attachable, Bind, Declined, FusedOp, Kernels
from ..contract.op import Attrs
from ..contract.op_spec import OpSpec
from ..contract.work_queue import ConcurrentWorkQueue, WorkQueueConfig
from ..errors import Unavailable
from ..executor.step import Step
from ..graph.graph import Graph, Input, Node, ShapeAttr, topological_order
from ..graph.rewriting import constant, new_name, placed_like, pruned, without_idle_controls
from ..op_set import geometry
from ..protobuf import wire
from ..support.disk_cache import DiskCache
from ..support.fork_safety import inherited
from ..values import dtypes
from ..values.async_value import DEAD, AsyncValue, available, failed
from ..values.dtypes import DType
from ..values.tensor import Shape, TensorMetadata, ValueInfo, info, merge_shapes, shape_text
from ..values.tensor_proto import TensorValue

__all__ = [
    "API",
    "DEAD",
    "F32",
    "F64",
    "I1",
    "I32",
    "I64",
    "STREAM",
    "AllocatorStats",
    "AsyncValue",
    "Attachable",
    "Attrs",
    "Bind",
    "Callee",
    "Chain",
    "CommandRegistrar",
    "ConcurrentWorkQueue",
    "DType",
    "Declined",
    "Device",
    "DeviceRegistrar",
    "DiskCache",
    "FusedOp",
    "Graph",
    "HostAllocator",
    "HostKernels",
    "HostType",
    "Input",
    "KernelPackRegistrar",
    "Kernels",
    "Node",
    "OpRegistrar",
    "OpSpec",
    "PassContext",
    "PassRegistrar",
    "PlainAllocator",
    "Resolved",
    "Shape",
    "ShapeAttr",
    "Step",
    "String",
    "Tensor",
    "TensorMetadata",
    "TensorValue",
    "Unavailable",
    "ValueInfo",
    "WorkQueueConfig",
    "available",
    "constant",
    "dtypes",
    "errors",
    "failed",
    "geometry",
    "hookimpl",
    "info",
    "inherited",
    "merge_shapes",
    "new_name",
    "placed_like",
    "pruned",
    "shape_text",
    "topological_order",
    "wire",
    "without_idle_controls",
]
