"""The dialect `corert`: sets of attributes, which programs fill one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from heald.api import Chain, HostKernels, HostType, errors


class OpAttributes:
    """Attributes by name, with the types of programs. Chains order the kernels that add to it."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def add(self, key: str, value: Any) -> None:
        """Raises InvalidArgument for a name that has a value."""
        if key in self.values:
            raise errors.InvalidArgument(f"the attribute '{key}' is set already", hint="set each attribute once")
        self.values[key] = value


OpAttributesType = Annotated[OpAttributes, HostType("!corert.opattrs", lambda it: isinstance(it, OpAttributes))]
Text = Annotated[str, HostType("!tfrt.string", lambda payload: isinstance(payload, str))]
Typed = Annotated[Any, HostType("an attribute", typed=True)]

ELEMENT_KINDS = ("bool", "i32", "i64", "f32", "f64", "dtype", "dense", "aggregate", "shape", "str")
ARRAYS = ("i32", "i64", "f32")


def register(kernels: HostKernels) -> None:
    kernels.kernel("corert.create_op_attrs")(create_op_attrs)
    for name in ELEMENT_KINDS:
        kernels.kernel(f"corert.op_attrs_set.{name}")(_setter(name))
    for name in ARRAYS:
        kernels.kernel(f"corert.op_attrs_set_array.{name}")(_setter(""))


def create_op_attrs() -> OpAttributesType:
    """Return an empty set."""
    return OpAttributes()


def _setter(name: str) -> Callable[..., Any]:
    def set_attribute(attrs: OpAttributesType, chain: Chain, *, key: Text, value: Typed) -> Chain:
        """Add an attribute. Raises InvalidArgument for a name that has a value already."""
        attrs.add(key, bool(value) if name == "bool" else value)

    return set_attribute


def pairs(entries: tuple[Any, ...]) -> dict[str, Any]:
    """Attributes as a call has them, pairs of name and value. Raises InvalidArgument for anything else."""
    attributes: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2 or not isinstance(entry[0], str):
            raise errors.InvalidArgument("each op_attr should be a key-value pair, where the key is a string")
        attributes[entry[0]] = entry[1]
    return attributes
