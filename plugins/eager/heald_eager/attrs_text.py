"""Attributes of ops as TFRT prints them: a line for each, with its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heald.api import DType, ShapeAttr
from heald.errors import display_text
from heald.runtime.program import ELEMENT_TYPES, ShapeAttribute, number_type
from heald.runtime.values import of_numpy

LARGEST_SHOWN_ELEMENTS = 5  # of an array
LARGEST_TEXT_CHARACTERS = 200  # characters of a value
_PREFIXES = (("float", "F"), ("bfloat", "BF"), ("uint", "UI"), ("int", "I"), ("complex", "COMPLEX"))


def attrs_text(attrs: Mapping[str, Any]) -> str:
    """The number of attributes, then a line for each: name, type and value, in the order of the names."""
    if not attrs:
        return "OpAttrs is empty"
    texts = {name: display_text(value_text(attrs[name]), LARGEST_TEXT_CHARACTERS) for name in sorted(attrs)}
    lines = [f"  '{name}' type={type_name(attrs[name])} value={text}" for name, text in texts.items()]
    return "\n".join([f"OpAttrs contains {len(attrs)} entries:", *lines])


def type_name(value: Any) -> str:
    """The type of an attribute; of an array the type of its elements, AGGREGATE when they differ."""
    dtype = number_type(value)
    if dtype is not None:
        return _upper_name(dtype)
    if isinstance(value, str | bytes):
        return "CHAR"
    if isinstance(value, DType):
        return "DTYPE"
    if value is None or isinstance(value, ShapeAttribute | ShapeAttr):
        return "SHAPE"
    if isinstance(value, tuple):
        kinds = {type_name(element) for element in value}
        nested = any(isinstance(element, tuple | str | bytes) for element in value)
        return kinds.pop() if len(kinds) == 1 and not nested else "AGGREGATE"
    return "DENSE" if hasattr(value, "dtype") else type(value).__name__.upper()


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:e}"
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
        return f'"{text}"'
    if isinstance(value, DType):
        return ELEMENT_TYPES.get(value.name, value.name)
    if value is None:
        return "*"
    if isinstance(value, ShapeAttribute | ShapeAttr):
        return _list_text(["?" if dim is None else str(dim) for dim in value])
    if isinstance(value, tuple):
        ellipsis = "..." if len(value) > LARGEST_SHOWN_ELEMENTS else ""
        return f"[{', '.join(map(value_text, value[:LARGEST_SHOWN_ELEMENTS]))}{ellipsis}]"
    array = value.array() if callable(getattr(value, "array", None)) else value
    if hasattr(array, "tobytes"):
        elements = value_text(tuple(array.reshape(-1)[:LARGEST_SHOWN_ELEMENTS + 1].tolist()))
        dtype, shape = value_text(of_numpy(array.dtype)), _list_text(map(str, array.shape))
        return f"dtype = {dtype}, shape = {shape}, values = {elements}"
    return repr(value)


def _list_text(items: Any) -> str:
    return f"[{', '.join(items)}]"


def _upper_name(dtype: DType) -> str:
    if dtype.name == "bool":
        return "BOOL"
    for prefix, short in _PREFIXES:
        if dtype.name.startswith(prefix):
            return short + dtype.name.removeprefix(prefix)
    return dtype.name.upper()
