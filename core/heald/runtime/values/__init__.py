"""Values: the types of data that pass between nodes, and their description before a run.

Everything here but AsyncValue is immutable or never written after construction. The room knows no op, no graph and no
device. Importing it loads no NumPy; arrays are made when their elements are asked for. No module here writes to an
array that it was given.

`dtypes`: Element types, by TensorFlow's number and name and by NumPy's dtype.
`tensor`: TensorMetadata (type and shape), ValueInfo (metadata and known elements), the order of merging shapes.
`attribute_values`: ShapeAttr and Func, values of attributes that Python has no class for.
`layouts`: ScalarTensor and CooTensor, host tensors beside dense arrays.
`tensor_proto`: TensorValue, a constant of a file: elements stay a view of the file until they are asked for.
`computed_info`: ComputedInfo, the facts about a constant whose elements are computed when they are asked for.
`foreign_array`: ForeignArray, an array of another library in a device's memory.
`geometry`, `wire`: Index arithmetic of shapes; the fields of protobuf's binary form, in place.
`async_value`: AsyncValue, the future that connects kernels, and DEAD, the value of a branch not taken.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from . import layouts as layouts
    from .async_value import error_among as error_among
    from .async_value import when_available as when_available
    from .dtypes import of_numpy as of_numpy
    from .layouts import COO as COO
    from .layouts import DENSE as DENSE
    from .layouts import SCALAR as SCALAR
    from .layouts import broadcast as broadcast
    from .layouts import coo_of as coo_of
    from .layouts import fill_dense as fill_dense
    from .layouts import layout_of as layout_of
    from .tensor import fits as fits
    from .tensor_proto import read_shape as read_shape
    from .wire import Buffer as Buffer

if not TYPE_CHECKING:  # with it, mypy would take every name for an export
    __getattr__ = lazy_exports(__name__, {
        ".async_value": ("error_among", "when_available"),
        ".dtypes": ("of_numpy",),
        ".layouts": ("COO", "DENSE", "SCALAR", "broadcast", "coo_of", "fill_dense", "layout_of"),
        ".tensor": ("fits",),
        ".tensor_proto": ("read_shape",),
        ".wire": ("Buffer",),
    })
