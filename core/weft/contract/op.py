"""Ops: what they are called, what they take and give. Device-free; kernels are another matter (see kernel.py).

The signatures of TensorFlow's ops are data (data/ops.tsv), decoded one op at a time when asked for. Plugins add more.
A metadata function tells what is known of an op's outputs from what is known of its inputs, before any kernel runs:
those of TensorFlow's ops are in weft.op_set.metadata, those of a plugin's ops in its OpSpec.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import InvalidArgument, NotFound, ResourceExhausted, closest
from ..values import dtypes
from ..values.dtypes import DType
from ..values.tensor import MOST_DIMS, MOST_ELEMENTS, TensorMetadata, ValueInfo, merge_shapes, shape_text

TABLE = Path(__file__).parent.parent / "data" / "ops.tsv"
Attrs = Mapping[str, Any]
MetadataFunction = Callable[..., "ValueInfo | tuple[ValueInfo, ...]"]
GRAPH_DEF_VERSION = 2474  # the newest GraphDef producer version whose semantics the op table describes
MOST_OUTPUTS = 1 << 16  # of one argument whose number is an attribute
REQUIRED: Any = object()  # the default of an attribute that has none


class ArgDef(NamedTuple):
    """One declared input or output of an op.

    A tensor of the fixed type `dtype`, or of the type in attribute `type_attr`. With `number_attr` it stands for that
    many tensors, with `type_list_attr` for one tensor of each type in that list.
    """

    name: str
    dtype: DType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None
    is_ref: bool = False

    def count(self, attrs: Attrs) -> int:
        """The number of tensors of this argument in a node with these attributes."""
        if self.type_list_attr is not None:
            return len(attrs[self.type_list_attr])
        return max(0, attrs[self.number_attr]) if self.number_attr is not None else 1

    def expand(self, attrs: Attrs) -> list[DType]:
        """The types of the tensors of this argument in a node with these attributes."""
        if self.type_list_attr is not None:
            return list(attrs[self.type_list_attr])
        dtype = self.dtype if self.type_attr is None else attrs[self.type_attr]
        assert dtype is not None
        return [dtype] * (attrs[self.number_attr] if self.number_attr is not None else 1)


class AttrDef(NamedTuple):
    """A declared attribute. `type` is string, int, float, bool, type, shape, tensor, func, or list(...) of one of
    these."""

    name: str
    type: str
    default: Any = REQUIRED
    minimum: int | None = None
    allowed: tuple[Any, ...] | None = None


class Tensor(NamedTuple):
    """One tensor in the expanded signature of a node."""

    arg: str
    dtype: DType


class OpDef(NamedTuple):
    """The signature of an op, and further facts about it."""

    name: str
    inputs: tuple[ArgDef, ...] = ()
    outputs: tuple[ArgDef, ...] = ()
    attrs: Mapping[str, AttrDef] = MappingProxyType({})
    stateful: bool = False
    commutative: bool = False
    deprecated: int | None = None  # refused from this GraphDef version on
    metadata: MetadataFunction | None = None
    values: tuple[str, ...] = ()  # inputs whose elements decide the outputs' metadata

    @property
    def signature(self) -> tuple[Any, ...]:
        """The parts that two declarations of one op must have in common."""
        return self.name, self.inputs, self.outputs, self.attrs, self.stateful

    def expand_inputs(self, attrs: Attrs) -> list[Tensor]:
        return [Tensor(a.name, d) for a in self.inputs for d in a.expand(attrs)]

    def count_inputs(self, attrs: Attrs) -> int:
        """The number of inputs of a node with these attributes, without expanding them."""
        return sum(arg.count(attrs) for arg in self.inputs)

    def check_outputs(self, attrs: Attrs) -> None:
        """Raises ResourceExhausted for a node with these attributes that has more than MOST_OUTPUTS outputs.

        A list of types has no limit, nor has a number that also counts inputs: the file itself spells out as many.
        """
        counted = {arg.number_attr for arg in self.inputs}
        for arg in self.outputs:
            if arg.number_attr is not None and arg.number_attr not in counted and arg.count(attrs) > MOST_OUTPUTS:
                raise ResourceExhausted(f"attribute '{arg.number_attr}' is {arg.count(attrs)}: output '{arg.name}' has "
                                        f"at most {MOST_OUTPUTS} tensors", hint="divide the tensor in several steps")

    def expand_outputs(self, attrs: Attrs) -> list[Tensor]:
        return [Tensor(a.name, d) for a in self.outputs for d in a.expand(attrs)]

    def output_index(self, name: str, index: int, attrs: Attrs) -> int:
        """The index among all outputs of tensor `index` of the output argument `name`; -1 if there is none."""
        start = 0
        for arg in self.outputs:
            count = arg.count(attrs)
            if arg.name == name:
                return start + index if index < count else -1
            start += count
        return -1


class MetadataRule(NamedTuple):
    """A metadata function, and the inputs whose elements it reads where they are known."""

    function: MetadataFunction
    values: tuple[str, ...] = ()


class OpRegistry:
    """Ops by name: TensorFlow's, and those that plugins add."""

    def __init__(self) -> None:
        self._rows: dict[str, str] | None = None
        self._known: dict[str, OpDef] = {}
        self._added: dict[str, str] = {}  # op -> plugin
        self._rules: dict[str, MetadataRule | None] = {}  # of those that were asked for

    def get(self, name: str) -> OpDef:
        """The op called `name`. Raises NotFound with the names nearest to it."""
        found = self._known.get(name)
        if found is None:
            row = self._table().get(name)
            if row is None:
                near = closest(name, [*self._table(), *self._added])
                hint = f"did you mean {' or '.join(near)}?" if near else "a plugin may bring it: weft plugins"
                raise NotFound(f"no op is called '{name}'", op=name, hint=hint)
            found = self._known[name] = _decode(name, json.loads(row))
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._added or name in self._table()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._table(), *self._added}))

    def check(self, op: OpDef) -> None:
        """Raise InvalidArgument when an op of this name exists with another signature."""
        if op.name in self and self.get(op.name).signature != op.signature:
            owner = self._added.get(op.name)
            whose = f"plugin {owner}'s" if owner else "TensorFlow's"
            raise InvalidArgument(f"op {op.name} is {whose} already, with another signature", op=op.name)

    def add(self, op: OpDef, plugin: str) -> None:
        """Add a plugin's op, checked before; naming an existing op again changes nothing."""
        if op.name not in self:
            self._known[op.name] = op
            self._added[op.name] = plugin

    def plugin_of(self, name: str) -> str | None:
        return self._added.get(name)

    def metadata(self, op: OpDef) -> MetadataRule | None:
        """The op's metadata function, or None where nobody wrote one."""
        if op.metadata is not None:
            return MetadataRule(op.metadata, op.values)
        if op.name not in self._rules:
            from ..op_set.metadata import RULES

            self._rules[op.name] = RULES.get(op.name)
        return self._rules[op.name]

    def _table(self) -> dict[str, str]:
        if self._rows is None:
            rows = TABLE.read_text("utf-8").splitlines()[1:]
            self._rows = {name: row for name, _, row in (line.partition("\t") for line in rows)}
        return self._rows


def infer(op: OpDef, rule: MetadataRule | None, attrs: Attrs, inputs: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
    """The ValueInfo of each output. Without a metadata function only their types are known.

    Raises InvalidArgument when the inputs do not fit the op, and when the metadata function contradicts the signature.
    """
    declared = op.expand_outputs(attrs)
    if rule is None:
        return tuple(ValueInfo(TensorMetadata(t.dtype, None)) for t in declared)
    result = rule.function(attrs, *inputs)
    infos = result if isinstance(result, tuple) else (result,)
    if [i.meta.dtype for i in infos] != [t.dtype for t in declared]:
        raise InvalidArgument(
            f"the metadata function of {op.name} returned {[i.dtype for i in infos]}, its signature declares "
            f"{[t.dtype for t in declared]}", op=op.name)
    for each in infos:
        _check_shape(each.meta)
    return infos


def _check_shape(meta: TensorMetadata) -> None:
    """Raises InvalidArgument for a shape that no tensor can have."""
    if meta.shape is not None and len(meta.shape) > MOST_DIMS:
        raise InvalidArgument(f"an output would have {len(meta.shape)} dimensions, a tensor has at most {MOST_DIMS}")
    if meta.is_static and meta.size > MOST_ELEMENTS:
        raise InvalidArgument(f"an output of shape {shape_text(meta.shape)} would have more than 2**63 - 1 elements")


def merge_info(a: ValueInfo, b: ValueInfo) -> ValueInfo:
    """The ValueInfo that holds all facts of two descriptions of one value. Raises InvalidArgument when they
    contradict."""
    try:
        if a.dtype is not b.dtype:
            raise ValueError(f"{a.dtype} and {b.dtype} differ")
        meta = TensorMetadata(a.dtype, merge_shapes(a.shape, b.shape))
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    return ValueInfo(meta, a.value if a.value is not None else b.value, a.dims or b.dims, a.handle or b.handle)


def attr_text(value: object) -> str:
    """An attribute's value as text for users."""
    if isinstance(value, DType):
        return value.tf_name
    if isinstance(value, tuple | list):
        return f"[{', '.join(attr_text(v) for v in value)}]"
    shape = getattr(value, "shape", None)
    return f"tensor {shape_text(shape)}" if shape is not None else repr(value)


def _decode(name: str, row: dict[str, Any]) -> OpDef:
    return OpDef(
        name,
        tuple(_decode_arg(a) for a in row.get("in", ())),
        tuple(_decode_arg(a) for a in row.get("out", ())),
        {n: _decode_attr(n, a) for n, a in row.get("attr", {}).items()},
        stateful=row.get("stateful", False),
        commutative=row.get("commutative", False),
        deprecated=row.get("deprecated"),
    )


def _decode_arg(arg: dict[str, Any]) -> ArgDef:
    dtype = dtypes.named(arg["type"]) if "type" in arg else None
    return ArgDef(arg["name"], dtype, arg.get("attr"), arg.get("n"), arg.get("types"), arg.get("ref", False))


def _decode_attr(name: str, attr: dict[str, Any]) -> AttrDef:
    kind = attr["type"].removeprefix("list(").removesuffix(")")

    def value(v: Any) -> Any:
        if isinstance(v, list):
            return tuple(value(x) for x in v)
        if kind == "tensor":
            import numpy as np

            return np.array(v["v"], dtypes.named(v["t"]).numpy).reshape(v["shape"])
        if kind == "type":
            return dtypes.named(v)
        return float(v) if kind == "float" else v

    default = value(attr["default"]) if "default" in attr else REQUIRED
    allowed = value(attr["allowed"]) if "allowed" in attr else None
    return AttrDef(name, attr["type"], default, attr.get("min"), allowed)
