"""The signature of a function from its text: arguments, results and attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from ... import attributes as a
from ... import types as t
from ...attribute_text import attribute_text
from ..values import dialect_attributes as d
from ..values.attribute_values import NoValue, attr_value
from ..values.element_types import CONTROL, NUMBERS, OPAQUE
from ..values.faults import FaultReporter
from .signature import Argument, AttrDef, HandleData, Values

_TEXTS = {"tfg.name": "name", "tfg.description": "description", "tfg.type_attr": "type_attr",
          "tfg.number_attr": "number_attr", "tfg.type_list_attr": "type_list_attr"}
_MAX_UNIQUE_IDS = 1 << 20  # one for each argument of a function
_UNIQUE_IDS = ("resource_arg_unique_ids_keys", "resource_arg_unique_ids_values")
_NUMBER = re.compile(r"[su]?i\d+|index")
_DIMS = re.compile(r"\*x|(?:(?:\d+|\?)x)*")
_SUBTYPES = re.compile(r"(!tf_type\.(?:resource|variant))<.*>", re.DOTALL)


class SignatureReader:
    """Turns attributes into parts of a signature. Raises MalformedText for other attributes."""

    def __init__(self, reader: FaultReporter) -> None:
        self._reader = reader

    def argument(self, of: str, attributes: Mapping[str, a.Attribute], at: int) -> Argument:
        """An argument or a result of a type, with its attributes."""
        fields: dict[str, Any] = {"type": _type_number(of)}
        values: Values = {}
        for name, attribute in attributes.items():
            if name in _TEXTS:
                fields[_TEXTS[name]] = _text(attribute)
            elif name == "tfg.is_ref":
                fields["is_ref"] = True
            elif name == "tfg.type" and isinstance(attribute, a.TypeAttr):
                fields["type"] = NUMBERS.get(str(attribute.type), 0)
            elif name == "tfg.handle_data" and isinstance(attribute, a.ArrayAttr):
                fields["handle_data"] = self._handles(attribute, at)
            elif name == "tfg.experimental_full_type" and isinstance(attribute, d.FullTypeAttr):
                fields["full_type"] = attribute.raw
            elif name == "tfg.arg_attrs" and isinstance(attribute, a.DictionaryAttr):
                values |= {key: self.value(key, item, at) for key, item in attribute.items}
            elif name.startswith("tf."):
                values[name[3:]] = self.value(name, attribute, at)
        return Argument(**fields, attrs=values)

    def check_element(self, of: str, at: int) -> None:
        """Raises MalformedText for a tensor of a number that TensorFlow does not have."""
        element = element_text(of)
        if of.startswith("tensor<") and _NUMBER.fullmatch(element):
            self._reader.report_export(f"Converting {element} to DataType", at)

    def _handles(self, attribute: a.ArrayAttr, at: int) -> tuple[HandleData, ...]:
        handles = [self._handle(item, at) for item in attribute.items]
        if None in handles:
            self._reader.report_export(f"Expected an array of tensor types, but got {attribute_text(attribute)}", at,
                                       "attribute 'tfg.handle_data'")
        return tuple([handle for handle in handles if handle is not None])

    def _handle(self, item: a.Attribute, at: int) -> HandleData | None:
        """The number of the data type of a tensor type, and its shape; None for another attribute."""
        of = item.type if isinstance(item, a.TypeAttr) else None
        number = NUMBERS.get(str(of.element)) if isinstance(of, t.ShapedType) else None
        if not isinstance(of, t.ShapedType) or of.kind != "tensor":
            return None
        if number is None:
            self._reader.report_export(f"Converting {of.element} to DataType", at, "attribute 'tfg.handle_data'")
        return number or 0, None if of.shape is None else tuple([-1 if dim is None else dim for dim in of.shape])

    def value(self, name: str, attribute: a.Attribute, at: int) -> bytes:
        """The AttrValue of an attribute."""
        try:
            return b"".join(attr_value(attribute))
        except NoValue as reason:
            self._reader.report_export(str(reason), at, f"attribute '{name}'")
            return b""

    def attributes(self, attributes: Mapping[str, a.Attribute], at: int, generic: bool = True) -> dict[str, Any]:
        """The parts of a signature that a function's attributes give, and its `gradient`.

        TensorFlow's exporter passes over other attributes, and over attributes of another kind.
        """
        parts: dict[str, Any] = {"attrs": {}}
        ids: list[tuple[int, ...] | None] = [None, None]
        for name, attribute in attributes.items():
            if name == "description":
                parts["description"] = _text(attribute)
            elif name == "is_stateful":
                parts["is_stateful"] = isinstance(attribute, a.UnitAttr)
            elif name == "gradient" and isinstance(attribute, a.SymbolRefAttr):
                parts["gradient"] = attribute.root
            elif name in _UNIQUE_IDS and isinstance(attribute, d.TensorAttr):
                ids[_UNIQUE_IDS.index(name)] = self._numbers(name, attribute, at)
            elif name == "control_output" and isinstance(attribute, a.ArrayAttr):
                if generic:
                    parts["control_outputs"] = tuple([_text(item) for item in attribute.items])
            elif name == "tfg.func_attrs" and generic and isinstance(attribute, a.DictionaryAttr):
                parts["attr_defs"] = {key: self._attr_def(item, at) for key, item in attribute.items}
            elif name.startswith("tf."):
                parts["attrs"][name[3:]] = self.value(name, attribute, at)
            elif generic and "." in name and not name.startswith("_heald."):  # TensorFlow exports those of any dialect
                parts["attrs"][name] = self.value(name, attribute, at)
        return parts | {"unique_ids": self._unique_ids(ids[0], ids[1], at)}

    def _unique_ids(self, keys: tuple[int, ...] | None, values: tuple[int, ...] | None, at: int) -> dict[int, int]:
        """The value of each key. Values without keys do not count."""
        if keys is None:
            return {}
        if values is None:
            self._reader.report_export(f"'{_UNIQUE_IDS[0]}' is present but '{_UNIQUE_IDS[1]}' is missing", at)
        elif len(keys) != len(values):
            self._reader.report_export(f"'{_UNIQUE_IDS[0]}' is not the same size as '{_UNIQUE_IDS[1]}'", at)
        return dict(zip(keys, values or (), strict=False))

    def _numbers(self, name: str, attribute: a.Attribute, at: int) -> tuple[int, ...]:
        if not isinstance(attribute, d.TensorAttr) or not attribute.type.endswith("xi32>"):
            raise self._reader.error(f"'tfg.func' op attribute '{name}' failed to satisfy constraint: 32-bit signless "
                                     "integer elements attribute", at)
        from heald.api import TensorValue, errors

        raw = b"".join(attribute.buffers)
        try:
            ids = TensorValue.read(raw, 0, len(raw))
        except errors.InvalidArgument as error:  # its shape stands for more elements than any memory has
            raise self._reader.error(f"attribute '{name}': {error.message}", at) from None
        if prod(ids.shape) > _MAX_UNIQUE_IDS:  # a short text may stand for any number of equal elements
            raise self._reader.error(f"attribute '{name}' has {prod(ids.shape)} elements, the most is "
                                     f"{_MAX_UNIQUE_IDS}", at)
        return tuple(ids.array().ravel().tolist())

    def _attr_def(self, attribute: a.Attribute, at: int) -> AttrDef:
        if not isinstance(attribute, a.DictionaryAttr):
            raise self._reader.error("expected a dictionary for each attribute in 'tfg.func_attrs'", at)
        fields = dict(attribute.items)
        minimum = fields.get("minimum")
        allowed, default = (self.value(name, fields[name], at) if name in fields else None
                            for name in ("allowed_values", "default_value"))
        kind, description = (_text(fields.get(name)) for name in ("function_type", "description"))
        least = minimum.value if isinstance(minimum, a.IntegerAttr) else None
        return AttrDef(kind, default, description, least, allowed)


def _type_number(of: str) -> int:
    """The number of the DataType of a tensor's elements; 0 for another type."""
    return 0 if of in (OPAQUE, CONTROL) else NUMBERS.get(element_text(of), 0)


def _text(attribute: a.Attribute | None) -> str:
    """The text of a string; nothing for another attribute."""
    return attribute.value if isinstance(attribute, a.StringAttr) else ""


def element_text(of: str) -> str:
    """The element type in the text of a tensor type; the text itself where it is none."""
    if not of.startswith("tensor<"):
        return of
    inside = of[7:-1]
    match = _DIMS.match(inside)
    element = inside[match.end():] if match else inside
    return _SUBTYPES.sub(r"\1", element)
