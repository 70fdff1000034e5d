"""Attributes that the dialect's own ops declare, in the generic form: `"tfg.If"(...) <{properties}> {attributes}`.

Properties hold the declared attributes alone: MLIR drops others, and refuses those of another kind before it verifies.
Ops without declaration keep their name, their devices and their full type, and lose other properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from ... import attributes as a
from ...attribute_text import attribute_text
from ..regions.region_forms import FORMS, RegionForm
from ..values import dialect_attributes as d
from ..values.node_section import FULL_TYPE_NAME
from .parsed_body import ASSIGNED, DEVICE, NAME

_Kind = type[a.Attribute]
_OF_NODES = frozenset((NAME, DEVICE, ASSIGNED, FULL_TYPE_NAME))
_FUNC_WORDS = "Models the `AttrValue.value.func` proto attribute value as a pair of SymbolRef and DictionaryAttr"
_FUNCTIONAL: Mapping[str, tuple[_Kind, str]] = {
    "Tcond": (a.TypeAttr, "any type attribute"), "Tin": (a.ArrayAttr, "type array attribute"),
    "Tout": (a.ArrayAttr, "type array attribute"), "T": (a.ArrayAttr, "type array attribute"),
    "output_shapes": (a.ArrayAttr, "An array of shapes."),
    "branches": (a.ArrayAttr, "an array of functions"),
    **dict.fromkeys(("then_branch", "else_branch", "cond", "body"), (d.FuncAttr, _FUNC_WORDS)),
}
_NAMES = {
    "If": ("Tcond", "Tin", "Tout", "else_branch", "output_shapes", "then_branch"),
    "Case": ("Tin", "Tout", "branches", "output_shapes"),
    "While": ("T", "body", "cond", "output_shapes", "parallel_iterations"),
    "For": ("T", "body"),
}
_SEGMENTS: Mapping[str, _Kind] = {"operandSegmentSizes": a.DenseArrayAttr}
_OTHERS: Mapping[str, Mapping[str, _Kind]] = {
    "return": {"control_ret_attrs": a.ArrayAttr}, "get_result": {"name": a.StringAttr, "number": a.IntegerAttr},
    "yield": _SEGMENTS, "condition": _SEGMENTS,
}


def declared_attributes(op: str) -> Mapping[str, _Kind] | None:
    """The kinds of the attributes that an op of the dialect declares; None for another op."""
    if op in _OTHERS:
        return _OTHERS[op]
    kind = op.removesuffix("Region").removeprefix("Stateless").removeprefix("Stateful")
    if op in FORMS:
        return {name: a.IntegerAttr if name == "parallel_iterations" else _FUNCTIONAL[name][0] for name in _NAMES[kind]}
    form = FORMS.get(op.removesuffix("Region"))
    return None if form is None else _of_regions(form, kind)


def _of_regions(form: RegionForm, kind: str) -> Mapping[str, _Kind]:
    many = kind == "Case"
    kinds: dict[str, _Kind] = {}
    for call, region in form.regions:
        kinds |= {call: a.ArrayAttr if many else a.DictionaryAttr, region: a.ArrayAttr if many else d.RegionAttrs}
    return kinds | ({"parallel_iterations": a.IntegerAttr} if kind == "While" else {})


def property_fault(op: str, properties: Mapping[str, a.Attribute]) -> str | None:
    """The fault of properties, in the words of MLIR's parser; None for good ones."""
    for name, kind in sorted((declared_attributes(op) or {}).items()):
        value = properties.get(name)
        if value is not None and not isinstance(value, kind):
            written = attribute_text(a.DictionaryAttr(tuple(sorted(properties.items()))))
            return (f"invalid properties {written} for op tfg.{op}: Invalid attribute `{name}` in property conversion: "
                    f"{attribute_text(value)}")
    return None


def inherent_attributes(op: str, properties: Mapping[str, a.Attribute]) -> dict[str, a.Attribute]:
    """The properties that an op keeps as attributes."""
    declared = declared_attributes(op)
    names = _OF_NODES if declared is None else declared
    return {name: value for name, value in properties.items() if name in names}


def drop_other_kinds(op: str, attributes: Mapping[str, a.Attribute]) -> dict[str, a.Attribute]:
    """Attributes of functional control flow in the dialect's own form: MLIR drops declared ones of another kind."""
    declared = declared_attributes(op) or {}
    return {name: value for name, value in attributes.items() if isinstance(value, declared.get(name, a.Attribute))}


def kind_fault(op: str, attributes: Mapping[str, a.Attribute]) -> str | None:
    """The fault of attributes of functional control flow in the generic form, in the words of MLIR's verifier."""
    for name in sorted(declared_attributes(op) or {}) if op in FORMS else ():
        value = attributes.get(name)
        if value is not None and name in _FUNCTIONAL and not isinstance(value, _FUNCTIONAL[name][0]):
            return f"attribute '{name}' failed to satisfy constraint: {_FUNCTIONAL[name][1]}"
    return None
