"""Attributes of the dialects tf_type and tfg, as data."""

from __future__ import annotations

from dataclasses import dataclass

from heald.runtime.values import Buffer

from ..attributes import ArrayAttr, Attribute, DictionaryAttr


@dataclass(frozen=True, slots=True)
class VersionAttr(Attribute):
    """`#tf_type.version<producer = 1, min_consumer = 2, bad_consumers = [3]>`."""

    producer: int
    min_consumer: int
    bad_consumers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ShapeAttr(Attribute):
    """`#tf_type.shape<1x?x3>`: unknown dimensions are -1; None for an unknown rank."""

    dims: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class FuncAttr(Attribute):
    """`#tf_type.func<@name, {attributes}>`; without a name it is empty."""

    name: str
    attrs: DictionaryAttr


@dataclass(frozen=True, slots=True)
class PlaceholderAttr(Attribute):
    """`#tf_type.placeholder<"name">`."""

    name: str


@dataclass(frozen=True, slots=True)
class FullTypeAttr(Attribute):
    """`#tf_type.full_type<...>`, as a FullTypeDef."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class TensorAttr(Attribute):
    """`dense<...> : type` or `#tf_type<tensor_proto : "0x..."> : type`, as the buffers of a TensorProto.

    `type`: the text of the type.
    """

    type: str
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class RegionAttrs(Attribute):
    """`#tfg.region_attrs<{attributes} [arguments] [results]>`."""

    attrs: DictionaryAttr
    arguments: ArrayAttr
    results: ArrayAttr
