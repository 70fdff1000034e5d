"""Element types: one DType object for each.

`number` is the value of TensorFlow's DataType enum, `tf_name` the name in attributes of ops, `name` NumPy's name. NumPy
is imported when `DType.numpy` is first asked for, and ml_dtypes for the types that NumPy lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgument, Unimplemented, closest

if TYPE_CHECKING:
    import numpy as np

REF = 100  # a reference type's number is its value type's plus 100


class DType:
    """An element type. There is one object per type, so types are compared by identity."""

    __slots__ = ("_numpy", "itemsize", "kind", "name", "number", "tf_name")

    def __init__(self, number: int, tf_name: str, name: str, kind: str, itemsize: int) -> None:
        self.number = number
        self.tf_name = tf_name
        self.name = name
        self.kind = kind  # f float, i int, u unsigned, b bool, c complex, q quantised, o anything else
        self.itemsize = itemsize  # bytes; 0 where an element has no fixed size
        self._numpy: np.dtype[Any] | None = None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of arrays with this element type. Strings are object arrays of bytes. Resources and variants
        are object arrays of their objects, mostly scalars. Quantised numbers are integers in a field of the type's
        name, as in TensorFlow: NumPy keeps them apart from plain integers.

        Raises Unimplemented for types of ml_dtypes where it is missing or too old.
        """
        if self._numpy is None:
            self._numpy = _numpy_dtype(self)
        return self._numpy

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)


_ROWS = (
    (1, "float", "float32", "f", 4), (2, "double", "float64", "f", 8), (3, "int32", "int32", "i", 4),
    (4, "uint8", "uint8", "u", 1), (5, "int16", "int16", "i", 2), (6, "int8", "int8", "i", 1),
    (7, "string", "string", "o", 0), (8, "complex64", "complex64", "c", 8), (9, "int64", "int64", "i", 8),
    (10, "bool", "bool", "b", 1), (11, "qint8", "qint8", "q", 1), (12, "quint8", "quint8", "q", 1),
    (13, "qint32", "qint32", "q", 4), (14, "bfloat16", "bfloat16", "f", 2), (15, "qint16", "qint16", "q", 2),
    (16, "quint16", "quint16", "q", 2), (17, "uint16", "uint16", "u", 2), (18, "complex128", "complex128", "c", 16),
    (19, "half", "float16", "f", 2), (20, "resource", "resource", "o", 0), (21, "variant", "variant", "o", 0),
    (22, "uint32", "uint32", "u", 4), (23, "uint64", "uint64", "u", 8), (24, "float8_e5m2", "float8_e5m2", "f", 1),
    (25, "float8_e4m3fn", "float8_e4m3fn", "f", 1), (26, "float8_e4m3fnuz", "float8_e4m3fnuz", "f", 1),
    (27, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz", "f", 1), (28, "float8_e5m2fnuz", "float8_e5m2fnuz", "f", 1),
    (29, "int4", "int4", "i", 1), (30, "uint4", "uint4", "u", 1), (31, "int2", "int2", "i", 1),
    (32, "uint2", "uint2", "u", 1), (33, "float4_e2m1fn", "float4_e2m1fn", "f", 1),
)

ALL = tuple(DType(*row) for row in _ROWS)
_BY_NUMBER = {d.number: d for d in ALL}
_BY_NAME = {d.name: d for d in ALL} | {d.tf_name: d for d in ALL}

float16, float32, float64 = _BY_NAME["float16"], _BY_NAME["float32"], _BY_NAME["float64"]
bfloat16 = _BY_NAME["bfloat16"]
int8, int16, int32, int64 = (_BY_NAME[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_BY_NAME[f"uint{n}"] for n in (8, 16, 32, 64))
bool_, string = _BY_NAME["bool"], _BY_NAME["string"]
complex64, complex128 = _BY_NAME["complex64"], _BY_NAME["complex128"]
resource, variant = _BY_NAME["resource"], _BY_NAME["variant"]

_NUMPY_ITSELF = frozenset("fiubc")
_QUANTISED_NUMBERS = {"qint8": "i1", "quint8": "u1", "qint16": "i2", "quint16": "u2", "qint32": "i4"}
_BY_NUMPY: dict[Any, DType] = {}


def numbered(number: int) -> DType:
    """The type with this DataType number. The number of a reference type returns its value type. Raises InvalidArgument
    for an unknown number."""
    dtype = _BY_NUMBER.get(number - REF if number > REF else number)
    if dtype is None:
        raise InvalidArgument(f"{number} is not the number of a data type")
    return dtype


def named(name: str) -> DType:
    """The type with this name, NumPy's or TensorFlow's. Raises InvalidArgument for an unknown name."""
    dtype = _BY_NAME.get(name)
    if dtype is None:
        type_names = [known_dtype.name for known_dtype in ALL]
        similar_names = closest(str(name), type_names, limit=1)
        raise InvalidArgument(f"'{name}' is not a data type",
                              hint=f"did you mean {similar_names[0]}?" if similar_names else
                              f"known: {', '.join(type_names)}")
    return dtype


def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The type of arrays with this NumPy dtype. Text and object arrays are strings. Raises InvalidArgument for a dtype
    without a counterpart."""
    element_type = _BY_NUMPY.get(dtype)
    if element_type is None:
        element_type = string if dtype.kind in "OSU" else _BY_NAME.get(dtype.name) or _quantised(dtype)
        if element_type is None or element_type.kind not in _NUMPY_ITSELF | {"o", "q"}:
            raise InvalidArgument(f"NumPy's dtype {dtype} has no data type of TensorFlow",
                                  hint="convert the array first, with array.astype(...)")
        _BY_NUMPY[dtype] = element_type
    return element_type


def _quantised(dtype: np.dtype[Any]) -> DType | None:
    element_type = _BY_NAME.get(dtype.names[0]) if dtype.names else None
    is_quantised = element_type is not None and element_type.kind == "q" and element_type.numpy == dtype
    return element_type if is_quantised else None


def from_numpy(value: Any) -> DType:
    """The type that a NumPy dtype, a scalar type, or Python's bool, int, float or complex names. Raises InvalidArgument
    for another object."""
    import numpy as np

    if isinstance(value, DType):
        return value
    if not isinstance(value, np.dtype | type):
        raise InvalidArgument(f"a {type(value).__name__} names no data type")
    if isinstance(value, type) and not issubclass(value, np.generic | bool | int | float | complex | str | bytes):
        raise InvalidArgument(f"the class {value.__name__} names no data type")
    return of_numpy(np.dtype(value))


def _numpy_dtype(dtype: DType) -> np.dtype[Any]:
    import numpy as np

    if dtype.kind == "o":
        return np.dtype(object)
    if dtype.kind in _NUMPY_ITSELF:
        try:
            return np.dtype(dtype.name)
        except TypeError:
            return _extension_type(dtype)
    return np.dtype([(dtype.name, _QUANTISED_NUMBERS[dtype.name])])


def _extension_type(dtype: DType) -> np.dtype[Any]:
    import numpy as np

    from ..support.install import install_hint

    try:
        import ml_dtypes
    except ImportError:
        raise Unimplemented(f"arrays of type {dtype.name} need the package ml_dtypes",
                            hint=install_hint("ml_dtypes")) from None
    kind = getattr(ml_dtypes, dtype.name, None)
    if kind is None:
        raise Unimplemented(f"this version of ml_dtypes has no {dtype.name}",
                            hint=install_hint("ml_dtypes", upgrade=True))
    numpy_dtype: np.dtype[Any] = np.dtype(kind)
    return numpy_dtype
