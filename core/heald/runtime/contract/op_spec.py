"""OpSpec: the declaration of a plugin's op, in the short notation of TensorFlow's REGISTER_OP.

    OpSpec("MyCo>Gelu", inputs=["x: T"], outputs=["y: T"], attrs=["T: {half, float}"], metadata=lambda attrs, x: x)

Arguments: `x: float`, `x: T` (an attribute of type `type` or `list(type)`), `xs: N * T`, `r: Ref(T)`.

Attributes: `n: int >= 1 = 2`, `mode: {'A', 'B'} = 'A'`, `T: {half, float}`, `strides: list(int)`, `keep: bool = false`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...errors import InvalidArgument
from ..support.records import NamedTuple
from ..values import dtypes
from ..values.tensor import ValueInfo
from .op import REQUIRED, ArgDef, AttrDef, Attrs, MetadataFunction, OpDef

_ATTR = re.compile(
    r"(?P<name>\w+)\s*:\s*(?P<type>\{[^}]*\}|list\(\w+\)|\w+)\s*(>=\s*(?P<min>-?\d+)\s*)?(=\s*(?P<default>.+))?"
)
_ARG = re.compile(r"(?P<name>\w+)\s*:\s*((?P<number>\w+)\s*\*\s*)?(?P<ref>Ref\()?(?P<type>\w+)\)?")
_KINDS = ("string", "int", "float", "bool", "type", "shape", "tensor", "func")


class OpSpec(NamedTuple):
    """A plugin's op.

    `metadata(attrs, *inputs)`: Receives a ValueInfo for each input tensor, and returns that of the output, or a tuple
        for several. The tensors of a list argument `xs: N * T` are inputs of their own. `attrs` has every declared
        attribute, defaults included: strings as str, types as DType, shapes as tuple or None, lists as tuples. Raises
        InvalidArgument for inputs that do not fit. An input that the function returns stands for its type and shape,
        not for its elements. Without a metadata function only the types of the outputs are known.
    `values`: The names of the inputs whose elements `metadata` reads where they are known.
    `stateful`: True when two calls with equal inputs may return different results, or have effects.
    """

    name: str
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    attrs: Sequence[str] = ()
    metadata: MetadataFunction | None = None
    values: Sequence[str] = ()
    stateful: bool = False

    def definition(self) -> OpDef:
        """Return the OpDef that this declares. Raises InvalidArgument when the notation is wrong."""
        attrs = {a.name: a for a in map(self._attr, self.attrs)}
        inputs = tuple(self._arg(text, attrs) for text in self.inputs)
        outputs = tuple(self._arg(text, attrs) for text in self.outputs)
        for name in self.values:
            if name not in {a.name for a in inputs}:
                raise InvalidArgument(f"`values` names '{name}', which is no input of {self.name}", op=self.name)
        metadata = None if self.metadata is None else partial(_without_values, self.metadata)
        return OpDef(self.name, inputs, outputs, attrs, self.stateful, metadata=metadata, values=tuple(self.values))

    def _arg(self, text: str, attrs: dict[str, AttrDef]) -> ArgDef:
        match = _ARG.fullmatch(text.strip())
        if match is None:
            raise InvalidArgument(f"cannot read the argument '{text}' of op {self.name}", op=self.name,
                                  hint="write it as 'x: T', 'x: float' or 'xs: N * T'")
        kind, number, ref = match["type"], match["number"], match["ref"] is not None
        if kind not in attrs:
            return ArgDef(match["name"], dtypes.named(kind), number_attr=number, is_ref=ref)
        if attrs[kind].type == "list(type)":
            return ArgDef(match["name"], type_list_attr=kind, is_ref=ref)
        return ArgDef(match["name"], type_attr=kind, number_attr=number, is_ref=ref)

    def _attr(self, text: str) -> AttrDef:
        match = _ATTR.fullmatch(text.strip())
        if match is None:
            raise InvalidArgument(f"cannot read the attribute '{text}' of op {self.name}", op=self.name,
                                  hint="write it as 'T: {half, float}', 'n: int >= 1' or 'keep: bool = false'")
        kind, allowed = self._kind(match["type"])
        default = REQUIRED if match["default"] is None else self._value(kind, match["default"])
        return AttrDef(match["name"], kind, default, None if match["min"] is None else int(match["min"]), allowed)

    def _kind(self, text: str) -> tuple[str, tuple[Any, ...] | None]:
        if not text.startswith("{"):
            if text.removeprefix("list(").removesuffix(")") not in _KINDS:
                raise InvalidArgument(f"'{text}' is not a kind of attribute", op=self.name,
                                      hint=f"known: {', '.join(_KINDS)} and list(...) of each")
            return text, None
        items = [item.strip() for item in text[1:-1].split(",") if item.strip()]
        if all(item[0] in "'\"" for item in items):
            return "string", tuple(item[1:-1] for item in items)
        return "type", tuple(dtypes.named(item) for item in items)

    def _value(self, kind: str, text: str) -> Any:
        if kind == "type":
            return dtypes.named(text.removeprefix("DT_").lower())
        try:
            value = ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
        except (ValueError, SyntaxError):
            raise InvalidArgument(f"'{text}' is not a default of type {kind}", op=self.name) from None
        return tuple(value) if isinstance(value, list) else value


def _without_values(metadata: MetadataFunction, attrs: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    """The result of a plugin's metadata function, without known elements. A function that returns its input `x` means a
    value like `x`: the output does not have the known elements of the input."""
    result = metadata(attrs, *inputs)
    infos = result if isinstance(result, tuple) else (result,)
    return tuple(ValueInfo(i.meta, handle=i.handle) if any(i is x for x in inputs) else i for i in infos)
