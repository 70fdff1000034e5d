"""The versioned public contract of plugins, re-exports only: a plugin imports this module and nothing else of weft."""

from . import dtypes, errors, geometry
from .allocator import AllocatorStats, PlainAllocator
from .async_value import DEAD, AsyncValue, available, failed
from .dtypes import DType
from .errors import Unavailable
from .hookspecs import DeviceRegistrar, KernelPackRegistrar, OpRegistrar, hookimpl
from .kernel import Attachable, Bind, Declined, Kernels
from .op import Attrs
from .op_spec import OpSpec
from .tensor import TensorMetadata, ValueInfo, info

API = (1, 0)  # major: what breaks plugins; minor: what adds to them

__all__ = [
    "API", "DEAD", "AllocatorStats", "AsyncValue", "Attachable", "Attrs", "Bind", "DType", "Declined",
    "DeviceRegistrar",
    "KernelPackRegistrar", "Kernels",
    "OpRegistrar", "OpSpec", "PlainAllocator", "TensorMetadata",
    "Unavailable", "ValueInfo", "available", "dtypes", "errors", "failed", "geometry", "hookimpl", "info",
]
