"""Full types that TensorFlow adds to nodes of certain ops on import, as its op registry has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from heald.api import dtypes
from heald.runtime.values import Buffer

from .result_types import type_number, type_numbers

TABLE = Path(__file__).parent / "full_types.tsv"
_ATTRIBUTE = re.compile(r"\{(\w+)\}|\[(\w+)\]")
_NAMED = ("float", "double", "half", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "complex64", "complex128", "bool", "string")
_NAMES = {dtypes.named(name).number: name for name in _NAMED} | {dtypes.variant.number: "legacy_variant"}


def added_full_type(op: str, value: Callable[[str], Buffer]) -> str | None:
    """The full type of a node's outputs as text, or None for an op without one.

    `value`: returns the AttrValue of an attribute, or of its default.
    """
    template = _templates().get(op)
    if template is None:
        return None
    text = _ATTRIBUTE.sub(lambda match: _types(match, value), template)
    return text if "[" in template else text.replace("<tensor<legacy_variant>>", "")  # as TensorFlow does


def _types(match: re.Match[str], value: Callable[[str], Buffer]) -> str:
    one, several = match.groups()
    if one is not None:
        return _name(type_number(value(one)))
    return f"product<{', '.join(f'tensor<{_name(number)}>' for number in type_numbers(value(several)))}>"


def _name(number: int) -> str:
    """The full type of a DataType: references and quantised types have none."""
    return _NAMES.get(number, "unset")


@cache
def _templates() -> Mapping[str, str]:
    lines = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {op: template for template, ops in lines for op in ops.split()}
