"""The Python signature and the docstring of an op, from its declaration."""

from __future__ import annotations

import keyword
import re
from inspect import Parameter, Signature
from typing import Any

from heald.api import DType, OpDef
from heald.runtime.contract import REQUIRED, ArgDef, AttrDef, attr_text

INPUT, INPUTS, HANDLE = "Input", "Sequence[Input]", "TensorHandle"
_ATTR_TYPES = {"string": "str | bytes", "int": "int", "float": "float", "bool": "bool", "type": "Type",
               "shape": "Shape", "tensor": "Input", "func": "str"}
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def python_name(op: str) -> str:
    """The name of an op as a Python function: "MatMul" is mat_mul, "Conv2D" is conv2d, "Assert" is assert_."""
    name = "_".join(_WORDS.sub("_", part).lower() for part in op.split(">"))
    return f"{name}_" if keyword.iskeyword(name) else name


def op_signature(op: OpDef) -> Signature:
    """The inputs by position, the attributes by keyword, with annotations as text.

    An attribute that the inputs determine has the default `...`, and so has one whose default is no Python literal.
    """
    inferred = {name for arg in op.inputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    used_names: set[str] = set()
    inputs = [Parameter(_unused_name(arg.name, used_names), Parameter.POSITIONAL_ONLY,
                        annotation=INPUTS if _is_list(arg) else INPUT) for arg in op.inputs]
    attrs = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=_annotation(attr.type),
                       default=... if name in inferred else _default(attr))
             for name, attr in op.attrs.items() if _is_unused_name(name, used_names)]
    return Signature([*inputs, *attrs], return_annotation=_return_annotation(op))


def documentation(op: OpDef) -> str:
    """The docstring: inputs, outputs and attributes with their types and defaults."""
    inputs = ", ".join(_arg_text(arg) for arg in op.inputs)
    outputs = ", ".join(_arg_text(arg) for arg in op.outputs)
    attrs = "".join(f"\n    {_attr_text(attr)}" for attr in op.attrs.values())
    return f"Op {op.name}: ({inputs}) -> ({outputs}).{attrs and f'{chr(10)}{chr(10)}Attributes:{attrs}'}"


def _unused_name(name: str, used_names: set[str]) -> str:
    """A Python name that no other parameter has; inputs are given by position, so the name is free to choose."""
    while keyword.iskeyword(name) or name in used_names:
        name += "_"
    used_names.add(name)
    return name


def _is_unused_name(name: str, used_names: set[str]) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in used_names


def _is_list(arg: ArgDef) -> bool:
    return arg.number_attr is not None or arg.type_list_attr is not None


def _annotation(kind: str) -> str:
    return f"Sequence[{_ATTR_TYPES[kind[5:-1]]}]" if kind.startswith("list(") else _ATTR_TYPES[kind]


def _default(attr: AttrDef) -> Any:
    """The default as a Python literal, Parameter.empty for an attribute that must be given, else `...`."""
    value = attr.default
    if value is REQUIRED:
        return Parameter.empty
    if isinstance(value, bytes) and value.isascii():
        return value.decode("ascii")
    if isinstance(value, DType):
        return value.name
    is_literal = isinstance(value, bool | int | str) or (isinstance(value, float) and abs(value) < float("inf"))
    return value if is_literal or (isinstance(value, tuple) and not value) else ...


def _return_annotation(op: OpDef) -> str:
    if any(_is_list(arg) for arg in op.outputs):
        return f"{HANDLE} | tuple[{HANDLE}, ...]"
    if len(op.outputs) == 1:
        return HANDLE
    return f"tuple[{', '.join([HANDLE] * len(op.outputs)) or '()'}]"


def _arg_text(arg: ArgDef) -> str:
    kind = arg.type_attr or arg.type_list_attr or (arg.dtype.name if arg.dtype is not None else "any")
    return f"{arg.name}: {kind}{'[]' if arg.number_attr is not None else ''}"


def _attr_text(attr: AttrDef) -> str:
    default = "" if attr.default is REQUIRED else f" = {attr_text(attr.default)}"
    return f"{attr.name}: {attr.type}{default}"
