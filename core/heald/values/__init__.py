"""Values: the types of data that pass between nodes, and their description before a run.

Everything here but AsyncValue is immutable or never written after construction. The room knows no op, no graph and no
device. Importing it loads no NumPy; arrays are made when their elements are asked for. No module here writes to an
array that it was given.

`dtypes`: Element types, by TensorFlow's number and name and by NumPy's dtype.
`tensor`: TensorMetadata (type and shape), ValueInfo (metadata and known elements), the order of merging shapes.
`attribute_values`: ShapeAttr and Func, values of attributes that Python has no class for.
`layouts`: ScalarTensor and CooTensor, host tensors beside dense arrays.
`tensor_proto`: TensorValue, a constant of a file: elements stay a view of the file until they are asked for.
`foreign_array`: ForeignArray, an array of another library in a device's memory.
`async_value`: AsyncValue, the future that connects kernels, and DEAD, the value of a branch not taken.
"""

from typing import TYPE_CHECKING

from ..support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .tensor import fits as fits
    from .tensor_proto import read_shape as read_shape

__getattr__ = lazy_exports(__name__, {".tensor": ("fits",), ".tensor_proto": ("read_shape",)})
