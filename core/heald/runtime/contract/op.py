"""Ops: their names, inputs, outputs and attributes. Device-free; kernels are another matter (see kernel.py).

Plugins bring ops: one by one (OpSpec) or a whole op set as a table (OpTable). Core brings the ops that its compiler
interprets. A metadata function derives facts about an op's outputs from facts about its inputs, before any kernel runs.
An OpSpec has its own metadata function, a table has one for each op.

Checks of shapes and types live in metadata functions only. A kernel gets shapes that its metadata function accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...errors import InvalidArgument, ResourceExhausted, Unimplemented
from ..support.records import NamedTuple
from ..values.dtypes import DType
from ..values.tensor import LARGEST_ELEMENT_COUNT, MOST_DIMS, TensorMetadata, ValueInfo, merge_shapes, shape_text

# Every declared attribute, defaults included: strings as str, types as DType, shapes as tuple or None, lists as tuples.
Attrs = Mapping[str, Any]  # the attributes of a node, as metadata functions and kernels see them
MetadataFunction = Callable[..., "ValueInfo | tuple[ValueInfo, ...]"]  # (attrs, *inputs): the ValueInfo of each output
GRAPH_DEF_VERSION = 2474  # the newest GraphDef producer version that is read
LARGEST_OUTPUT_COUNT = 1 << 16  # of one argument whose number is an attribute
REQUIRED: Any = object()  # the default of an attribute that has none
OP_SET_PLUGIN = "tf_ops"  # the plugin that brings TensorFlow's ops


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


class SignatureTensor(NamedTuple):
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
    for_effect: bool = False  # the outputs repeat the inputs or are records for tools: they are no results of a model

    @property
    def signature(self) -> tuple[Any, ...]:
        """The parts that two declarations of one op must have in common."""
        attrs = {name: attr._replace(default=_comparable(attr.default)) for name, attr in self.attrs.items()}
        return self.name, self.inputs, self.outputs, attrs, self.stateful

    def expand_inputs(self, attrs: Attrs) -> list[SignatureTensor]:
        return [SignatureTensor(a.name, d) for a in self.inputs for d in a.expand(attrs)]

    def count_inputs(self, attrs: Attrs) -> int:
        """The number of inputs of a node with these attributes, without expanding them."""
        return sum(arg.count(attrs) for arg in self.inputs)

    def check_outputs(self, attrs: Attrs) -> None:
        """Raises ResourceExhausted for a node with these attributes that has more than LARGEST_OUTPUT_COUNT outputs.

        A list of types has no limit, nor has a number that also counts inputs: the file itself spells out as many.
        """
        counted = {arg.number_attr for arg in self.inputs}
        for arg in self.outputs:
            if (arg.number_attr is not None and arg.number_attr not in counted
                    and arg.count(attrs) > LARGEST_OUTPUT_COUNT):
                raise ResourceExhausted(f"attribute '{arg.number_attr}' is {arg.count(attrs)}: output '{arg.name}' has "
                                        f"at most {LARGEST_OUTPUT_COUNT} tensors",
                                        hint="divide the tensor in several steps")

    def check_references(self) -> None:
        """Raises Unimplemented for an op on references: kernels have none."""
        for arg in (*self.inputs, *self.outputs):
            if arg.is_ref:
                raise Unimplemented(
                    f"op {self.name} works on references ('{arg.name}'), and no graph pass put an op on resources in "
                    "its place: no pass knows the op, or its input is no reference, or the pass is disabled",
                    hint="write the graph with the op's form for resources")

    def expand_outputs(self, attrs: Attrs) -> list[SignatureTensor]:
        return [SignatureTensor(a.name, d) for a in self.outputs for d in a.expand(attrs)]

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
    for info in infos:
        _check_shape(info.meta)
    return infos


def _check_shape(meta: TensorMetadata) -> None:
    """Raises InvalidArgument for a shape that no tensor can have."""
    if meta.shape is not None and len(meta.shape) > MOST_DIMS:
        raise InvalidArgument(f"an output would have {len(meta.shape)} dimensions, a tensor has at most {MOST_DIMS}")
    if meta.is_static and meta.size > LARGEST_ELEMENT_COUNT:
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


def _comparable(value: Any) -> Any:
    """A default in a form whose `==` gives one truth value; the comparison of arrays gives one for each element."""
    return (value.dtype.str, value.shape, value.tobytes()) if hasattr(value, "tobytes") else value


def attr_text(value: object) -> str:
    """An attribute's value as text for users."""
    if isinstance(value, DType):
        return value.tf_name
    if isinstance(value, tuple | list):
        return f"[{', '.join(attr_text(v) for v in value)}]"
    shape = getattr(value, "shape", None)
    return f"tensor {shape_text(shape)}" if shape is not None else repr(value)
