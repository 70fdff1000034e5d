"""Random attributes of nodes: values that an op permits, attributes that no op declares, and their AttrValues."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from builders.random_tensors import TEXTS, random_tensor
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.contract.op import REQUIRED, AttrDef
from heald.runtime.values import dtypes
from heald.runtime.values.dtypes import DType

NAMELESS = ("int2", "uint2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn")  # in MLIR
IMPORTED = tuple(dtype for dtype in dtypes.ALL if dtype.name not in NAMELESS)
TYPES = tuple(dtype for dtype in IMPORTED if dtype.kind != "o" or dtype is dtypes.string)
COMMON = tuple(map(dtypes.named, ("float32", "int32", "bool", "int64", "string", "float16", "resource", "variant")))
EXTRA = ("_class", "_output_shapes", "_dotted.name", "_XlaCompile", "_number", "_text", "_unset", "_types", "_list",
         "_shape", "_tensor", "_float", "_floats", "_bools", "_shapes", "_quoted name")
FIELDS = {"type": "type", "bool": "b", "int": "i", "float": "f", "string": "s", "shape": "shape", "tensor": "tensor",
          "func": "func"}
_KINDS = {DType: "type", bool: "bool", int: "int", float: "float", bytes: "string", str: "string", tuple: "shape"}
_MESSAGES = {"TensorProto": "tensor", "NameAttrList": "func"}


def func(rng: Random, name: str) -> Any:
    """The NameAttrList of a function."""
    message: Any = message_class("NameAttrList")(name=name)
    if rng.random() < 0.1:
        message.attr["_hint"].i = 3
    return message


def shape(rng: Random) -> tuple[int, ...] | None:
    return rng.choice((None, (), (2,), (-1,), (-1, 3), (2, -1, 0)))


def value(rng: Random, attr: AttrDef, functions: Sequence[str]) -> Any:
    """A value that the attribute of an op permits: often its default."""
    if attr.default is not REQUIRED and rng.random() < 0.6:
        return attr.default
    kind = attr.type.removeprefix("list(").removesuffix(")")
    if kind == attr.type:
        return _item(rng, attr, kind, functions)
    count = max(attr.minimum or 0, rng.choice((0, 1, 2, 3)))
    return tuple(_item(rng, attr, kind, functions) for _ in range(count))


def _item(rng: Random, attr: AttrDef, kind: str, functions: Sequence[str]) -> Any:
    if kind == "type":
        return rng.choice(attr.allowed or (*COMMON, *TYPES))
    if kind == "int" and attr.type == "int":
        return max(attr.minimum or 0, rng.choice((0, 1, 2, 3)))
    return {"string": lambda: rng.choice(attr.allowed or TEXTS), "float": lambda: rng.choice((0.0, 0.1, -2.5, 1e20)),
            "int": lambda: rng.choice((0, 1, 2, 3, -1, 1 << 40)), "bool": lambda: rng.random() < 0.5,
            "shape": lambda: shape(rng), "tensor": lambda: random_tensor(rng, rng.choice(TYPES)),
            "func": lambda: func(rng, rng.choice(functions) if functions else "missing")}[kind]()


def undeclared_value(rng: Random, name: str, outputs: int, node: str) -> Any:
    """The value of an attribute that no op declares; None for one that has only a name."""
    values: dict[str, Any] = {
        "_class": ([f"loc:@{node}".encode()], "list(string)"),
        "_output_shapes": ([shape(rng) for _ in range(outputs)], "list(shape)"), "_dotted.name": True,
        "_XlaCompile": False, "_number": -5, "_text": rng.choice(TEXTS), "_types": (TYPES[:3], "list(type)"),
        "_list": ((), "list(int)"), "_shape": (shape(rng), "shape"), "_tensor": random_tensor(rng, rng.choice(TYPES)),
        "_float": rng.choice((0.1, 1e30, float("inf"), -0.0)), "_floats": ((0.5, 1e-9), "list(float)"),
        "_bools": ((True, False), "list(bool)"), "_shapes": ([shape(rng), (1, 2)], "list(shape)"), "_quoted name": 1}
    return values.get(name)


def put_attribute(attr: Any, value: Any) -> None:
    """Write an AttrValue: a value of a plain kind, or `(value, kind)` where the value alone does not tell its kind."""
    kind = _MESSAGES.get(type(value).__name__) or _KINDS.get(type(value), "shape")
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        value, kind = value
    if not kind.startswith("list("):
        _put_one(attr, kind, value)
        return
    attr.list.SetInParent()
    for item in value:
        _put_item(attr.list, kind[5:-1], item)


def _put_one(attr: Any, kind: str, value: Any) -> None:
    if kind == "shape":
        attr.shape.SetInParent()
        _put_shape(attr.shape, value)
    elif kind == "tensor":
        attr.tensor.CopyFrom(value)
    elif kind == "func":
        attr.func.CopyFrom(value)
    else:
        setattr(attr, FIELDS[kind], _plain(kind, value))


def _put_item(items: Any, kind: str, value: Any) -> None:
    if kind == "shape":
        _put_shape(items.shape.add(), value)
    elif kind in ("tensor", "func"):
        getattr(items, FIELDS[kind]).add().CopyFrom(value)
    else:
        getattr(items, FIELDS[kind]).append(_plain(kind, value))


def _plain(kind: str, value: Any) -> Any:
    if kind == "type":
        return value.number
    return value.encode() if kind == "string" and isinstance(value, str) else value


def _put_shape(message: Any, dims: tuple[int | None, ...] | None) -> None:
    """Write a shape; a second dimension that is unknown has a name, which MLIR has no place for."""
    if dims is None:
        message.unknown_rank = True
    for index, size in enumerate(dims or ()):
        message.dim.add(size=-1 if size is None else size, name="batch" if index and size == -1 else "")
