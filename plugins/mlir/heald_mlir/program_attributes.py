"""Attributes, types and locations of host programs, between the parse tree and the values of a ProgramDef."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from heald.api import DType, TensorMetadata, dtypes, errors
from heald.runtime.program import ELEMENT_TYPES, RegisterType, ShapeAttribute, is_number, number_type, typed_number

from . import attributes as a
from . import floats
from . import types as t
from .attribute_parser import AttributeParser

if TYPE_CHECKING:
    import numpy as np

_DTYPES = {text: dtypes.named(name) for name, text in ELEMENT_TYPES.items()}
_TF_TYPE = "!tf_type."  # begins the element types that MLIR's builtin dialect lacks
_ELEMENT_DIALECTS = (_TF_TYPE, "!corert.")  # as TensorFlow and TFRT write them
_SHAPE = re.compile(r"\.shape<(\*|(?:(?:\?|\d{1,18})(?:x(?:\?|\d{1,18}))*)?)>\Z", re.ASCII)
_LARGEST_DIM = 10**18 - 1  # of a shape, as the pattern above reads it; other tuples are arrays
_SHAPE_DIALECTS = ("corert", "tfrt")
_MAX_INTEGER_BITS = 64


def type_text(of: DType) -> str:
    """An element type as MLIR prints it."""
    return ELEMENT_TYPES.get(of.name, _TF_TYPE + of.name)


def dtype_of(of: t.Type) -> DType | None:
    """The element type of a name; None for another type."""
    text = str(of)
    if text.startswith(_ELEMENT_DIALECTS):
        name = text.partition(".")[2]
        return next((dtype for dtype in dtypes.ALL if dtype.name == name), None)
    return _DTYPES.get(text)


# Values of attributes

class NoValue(Exception):
    """The attribute has no value in a program."""


def value_of(attribute: a.Attribute) -> Any:
    """The value of an attribute. Raises NoValue for one that BEF cannot encode."""
    if isinstance(attribute, a.IntegerAttr | a.FloatAttr):
        dtype = dtype_of(attribute.type)
        if dtype is None or not is_number(dtype):
            raise NoValue
        if isinstance(attribute, a.FloatAttr):
            return typed_number(floats.value_of(attribute.bits, str(attribute.type)), dtype)
        return typed_number(attribute.value, dtype)
    if isinstance(attribute, a.StringAttr) and attribute.type is None:
        return attribute.value
    if isinstance(attribute, a.ArrayAttr):
        return tuple(map(value_of, attribute.items))
    if isinstance(attribute, a.TypeAttr) and (dtype := dtype_of(attribute.type)) is not None:
        return dtype
    if isinstance(attribute, a.DenseAttr):
        return _array(attribute)
    if isinstance(attribute, a.OpaqueAttr) and attribute.dialect in _SHAPE_DIALECTS:
        return _shape(attribute.body)
    raise NoValue


def attribute_of(value: Any) -> a.Attribute:
    """The attribute of a value. Raises NoValue for a value that text does not hold."""
    dtype = number_type(value)
    if dtype is not None:
        return _number(value, dtype)
    if isinstance(value, str):
        return a.StringAttr(value)
    if isinstance(value, DType):
        return a.TypeAttr(type_named(type_text(value)))
    if value is None:
        return a.OpaqueAttr("corert", ".shape<*>")
    if isinstance(value, ShapeAttribute) or _is_partial(value):
        return a.OpaqueAttr("corert", f".shape<{'x'.join('?' if dim is None else str(dim) for dim in value)}>")
    if isinstance(value, tuple):
        return a.ArrayAttr(tuple(map(attribute_of, value)))
    if callable(getattr(value, "tobytes", None)):
        return dense_of(value)
    raise NoValue


def _number(value: Any, dtype: DType) -> a.Attribute:
    of = type_named(type_text(dtype))
    if isinstance(value, complex):
        raise NoValue  # MLIR has no such attribute
    if isinstance(value, float):
        return a.FloatAttr(floats.bits_of(value, str(of)), of)
    if dtype is dtypes.int64 and not -(1 << _MAX_INTEGER_BITS - 1) <= value < 1 << _MAX_INTEGER_BITS - 1:
        raise NoValue
    return a.IntegerAttr(int(value), of)


def _is_partial(value: Any) -> bool:
    """Return True for a shape with unknown dimensions."""
    return isinstance(value, tuple) and any(dim is None for dim in value) and all(
        dim is None or (type(dim) is int and 0 <= dim <= _LARGEST_DIM) for dim in value)


def _shape(body: str) -> Any:
    match = _SHAPE.match(body)
    if match is None:
        raise NoValue
    if match[1] == "*":
        return None
    words = match[1].split("x") if match[1] else []
    if "?" in words:
        return tuple(None if dim == "?" else int(dim) for dim in words)
    return ShapeAttribute(map(int, words))


# Arrays

def _array(attribute: a.DenseAttr) -> np.ndarray[Any, Any]:
    import numpy as np

    of = attribute.type
    assert isinstance(of, t.ShapedType)
    assert of.shape is not None
    dtype = dtype_of(of.element)
    if dtype is None or not is_number(dtype) or of.kind != "tensor":
        raise NoValue
    dims = tuple(dim or 0 for dim in of.shape)
    bits = _bits_type(dtype)
    values = attribute.values if dtype.kind in "fc" else [value % (1 << 8 * dtype.itemsize)  # type: ignore[operator]
                                                          for value in attribute.values]
    flat = np.array(values, bits).reshape(-1).view(dtype.numpy)
    flat.flags.writeable = False
    if len(attribute.values) != 1:
        return flat.reshape(dims)
    try:
        return np.broadcast_to(flat.reshape(()), dims)  # a short text may stand for any number of equal elements
    except ValueError:  # more dimensions or bytes than an array has
        raise NoValue from None


def dense_of(array: Any) -> a.DenseAttr:
    """An array as an attribute. Raises NoValue for elements that are no numbers."""
    dtype = _of_numpy(array)
    bits = _bits_type(dtype)
    is_splat = array.size > 1 and not any(array.strides)
    flat = array[(slice(1),) * array.ndim].reshape(-1) if is_splat else array.reshape(-1)
    if not is_splat and flat.size > 1 and (raw := flat.tobytes()) == raw[:dtype.itemsize] * flat.size:
        flat = flat[:1]
    parts = flat.astype(dtype.numpy, copy=False).view(bits).tolist()
    if dtype.kind == "c":
        parts = list(zip(parts[::2], parts[1::2], strict=True))
    elif dtype.kind == "i":
        parts = flat.tolist()
    of = t.ShapedType("tensor", tuple(array.shape), type_named(type_text(dtype)))
    return a.DenseAttr(of, tuple(parts))


def _of_numpy(array: Any) -> DType:
    for dtype in map(dtypes.named, ELEMENT_TYPES):
        if is_number(dtype) and array.dtype == dtype.numpy:
            return dtype
    raise NoValue


def _bits_type(dtype: DType) -> str:
    """NumPy's unsigned type of the bits of an element, or of one half of a complex one."""
    return f"<u{dtype.itemsize // 2 if dtype.kind == 'c' else dtype.itemsize}"


# Types of registers

@lru_cache(maxsize=1024)
def type_named(text: str) -> t.Type:
    """The type of this text. Raises the error of the parser for a text that is no type."""
    parser = AttributeParser(text, "<type>")
    parsed_type = parser.type()
    if parser.kind != "end":
        raise parser.error("expected the end of a type")
    return parsed_type


def type_of(register: RegisterType) -> t.Type:
    """The type of a register. Raises InvalidArgument for a name that is no type of MLIR."""
    if isinstance(register, TensorMetadata):
        return t.ShapedType("tensor", register.shape, type_named(type_text(register.dtype)))
    try:
        return type_named(register)
    except errors.InvalidArgument as error:
        raise errors.InvalidArgument(f"the register type '{register}' is no type of MLIR text",
                                     hint="name types as MLIR does: i32, !my.coordinate") from error


def register_type(of: t.Type) -> RegisterType:
    """The type of a register: metadata of a tensor, else the text of the type."""
    if isinstance(of, t.ShapedType) and of.kind == "tensor" and not of.suffix:
        dtype = dtype_of(of.element)
        if dtype is not None:
            return TensorMetadata(dtype, of.shape)
    return str(of)


# Locations

def place_of(location: a.Location) -> tuple[str, errors.Location | None]:
    """The name and the place of a location: of a call the callee's, of several the first."""
    name = ""
    while True:
        if isinstance(location, a.FileLineColLoc):
            return name, errors.Location(location.file, location.line or None, location.column or None)
        if isinstance(location, a.NameLoc):
            name, location = name or location.name, location.child or a.UNKNOWN
        elif isinstance(location, a.CallSiteLoc):
            location = location.callee
        elif isinstance(location, a.FusedLoc) and location.locations:
            location = location.locations[0]
        else:
            return name, None


def location_of(name: str, location: errors.Location | None) -> a.Location:
    """The location with this name and place."""
    located = a.UNKNOWN if location is None else a.FileLineColLoc(
        location.file, location.line or 0, location.column or 0)
    if not name:
        return located
    return a.NameLoc(name, None if location is None else located)
