"""The protocol's names of element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heald.api import DType, TensorInfo, dtypes
from heald.errors import InvalidArgument, Unimplemented

# By name: the element type, and the enumerator of a model's configuration.
_ROWS = (
    ("BOOL", dtypes.bool_, "BOOL"), ("UINT8", dtypes.uint8, "UINT8"), ("UINT16", dtypes.uint16, "UINT16"),
    ("UINT32", dtypes.uint32, "UINT32"), ("UINT64", dtypes.uint64, "UINT64"), ("INT8", dtypes.int8, "INT8"),
    ("INT16", dtypes.int16, "INT16"), ("INT32", dtypes.int32, "INT32"), ("INT64", dtypes.int64, "INT64"),
    ("FP16", dtypes.float16, "FP16"), ("FP32", dtypes.float32, "FP32"), ("FP64", dtypes.float64, "FP64"),
    ("BYTES", dtypes.string, "STRING"), ("BF16", dtypes.bfloat16, "BF16"))
_DTYPES = {name: dtype for name, dtype, _ in _ROWS}
_NAMES = {dtype: name for name, dtype, _ in _ROWS}
_CONFIG_NAMES = {dtype: f"TYPE_{name}" for _, dtype, name in _ROWS}
RAW_TYPES = ("FP16", "BF16")  # types that JSON and typed contents lack


def dtype_of(datatype: str, tensor: str) -> DType:
    """Raises InvalidArgument for a name that is none."""
    dtype = _DTYPES.get(datatype)
    if dtype is None:
        raise InvalidArgument(f"input '{tensor}' has the datatype '{datatype}', not one of {', '.join(_DTYPES)}")
    return dtype


def check_datatypes(model: str, infos: Mapping[str, TensorInfo], arrays: Mapping[str, Any]) -> None:
    """Raises InvalidArgument, with Triton's text, for an array of another type than its input's."""
    for name, array in arrays.items():
        wanted = infos[name].meta.dtype if name in infos else None
        dtype = dtypes.of_numpy(array.dtype)
        if wanted is not None and dtype is not wanted:
            raise InvalidArgument(f"inference input '{name}' data-type is '{datatype_of(dtype)}', but model '{model}' "
                                  f"expects '{datatype_of(wanted)}'")


def datatype_of(dtype: DType) -> str:
    """The name; a type of TensorFlow alone keeps TensorFlow's."""
    return _NAMES.get(dtype, dtype.tf_name.upper())


def known_datatype_of(dtype: DType, tensor: str) -> str:
    """Raises Unimplemented for a type without a name."""
    if dtype not in _NAMES:
        raise Unimplemented(f"output '{tensor}' is of {dtype}, for which the protocol has no datatype")
    return _NAMES[dtype]


def config_type_of(dtype: DType) -> str:
    return _CONFIG_NAMES.get(dtype, "TYPE_INVALID")
