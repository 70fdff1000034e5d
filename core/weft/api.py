"""The versioned public contract of plugins, re-exports only: a plugin imports this module and nothing else of weft."""

from . import dtypes, errors, geometry, wire
from .allocator import AllocatorStats, HostAllocator, PlainAllocator
from .async_value import DEAD, AsyncValue, available, failed
from .device import STREAM, Device
from .disk_cache import DiskCache
from .dtypes import DType
from .errors import Unavailable
from .forked import inherited
from .graph import Graph, Input, Node, ShapeAttr, topological_order
from .graph_pass import PassContext
from .hookspecs import DeviceRegistrar, KernelPackRegistrar, OpRegistrar, PassRegistrar, hookimpl
from .host_kernel import Callee, HostKernels
from .host_type import F32, F64, I1, I32, I64, Chain, HostType, String, Tensor
from .kernel import Attachable, Bind, Declined, FusedOp, Kernels
from .op import Attrs
from .op_spec import OpSpec
from .resolve import Resolved
from .rewriting import constant, new_name, placed_like, pruned, without_idle_controls
from .running.step import Step
from .tensor import Shape, TensorMetadata, ValueInfo, info, merge_shapes, shape_text
from .tensor_proto import TensorValue
from .work_queue import ConcurrentWorkQueue, WorkQueueConfig

API = (1, 0)  # major: what breaks plugins; minor: what adds to them

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
