"""The verifier of control flow with regions: attributes, operands, terminators, arguments, and the values along edges.

The checks and their order are those of TensorFlow: attributes, operands, blocks, preserved attributes, then edges.
Control flows along an edge from the op or a terminator to a region or back to the op. Values on an edge must fit in
number and element type; an opaque type fits each type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .. import attributes as a
from ..lexer import Lexer, MalformedText
from . import dialect_attributes as d
from .body_parser import ParsedNode, Region
from .constraints import I64, Constraint, list_of
from .element_types import CONTROL, OPAQUE
from .signature_reader import element_text

_OP = "tfg."
_PARENT = "parent"


_DICTIONARY = Constraint(lambda attribute: isinstance(attribute, a.DictionaryAttr),
                         "dictionary of named attribute values")
_REGION_ATTRS = Constraint(lambda attribute: isinstance(attribute, d.RegionAttrs),
                           "Region attributes, argument and result attributes.")


class RegionRule(NamedTuple):
    """The parts of a kind of op. `labels`: of its regions in texts. `leading`: its operands of one type, `width` bits.

    `preserved`: the attributes that hold those of each region.
    """

    constraints: Mapping[str, Constraint]
    labels: tuple[str, ...]
    leading: int
    width: int
    preserved: tuple[str, ...]


_RULES = {
    "If": RegionRule({"then_attrs": _DICTIONARY, "else_attrs": _DICTIONARY, "then_region_attrs": _REGION_ATTRS,
                      "else_region_attrs": _REGION_ATTRS}, ("then", "else"), 1, 1,
                     ("then_region_attrs", "else_region_attrs")),
    "Case": RegionRule({"branch_attrs": Constraint(list_of(a.DictionaryAttr), "an array of dictionaries"),
                        "region_attrs": Constraint(list_of(d.RegionAttrs), "case region preserved attributes")},
                       (), 1, 32, ("region_attrs",)),
    "While": RegionRule({"parallel_iterations": I64, "cond_attrs": _DICTIONARY, "body_attrs": _DICTIONARY,
                         "cond_region_attrs": _REGION_ATTRS, "body_region_attrs": _REGION_ATTRS},
                        ("condition", "body"), 0, 0, ("cond_region_attrs", "body_region_attrs")),
    "For": RegionRule({"body_attrs": _DICTIONARY, "region_attrs": _REGION_ATTRS}, ("body",), 3, 32,
                      ("region_attrs",)),
}


class Edge(NamedTuple):
    """Control that flows from `source` to `target`: the types of the passed values, and of the target's values."""

    source: str
    target: str
    passed: Sequence[str]
    needed: Sequence[str]


class RegionVerifier:
    """Checks nodes with regions."""

    def __init__(self, reader: Lexer) -> None:
        self._reader = reader

    def check(self, node: ParsedNode) -> None:
        """Raises MalformedText for a node whose parts do not fit."""
        kind = kind_of(node)
        rule = _RULES[kind]
        self._check_attributes(node, rule)
        for index, of in enumerate(node.tail.operands[:rule.leading]):
            if of == OPAQUE or element_text(of) != f"i{rule.width}":
                raise self._fault(node, f"operand #{index} must be tensor of {rule.width}-bit signless integer values, "
                                        f"but got '{of}'")
        self._check_blocks(node, kind, rule)
        self._check_preserved(node, kind, rule)
        self._check_condition(node)
        for edge in _edges(node, kind):
            self._check_edge(node, edge)

    def _check_attributes(self, node: ParsedNode, rule: RegionRule) -> None:
        for name, constraint in rule.constraints.items():
            attribute = node.tail.attributes.get(name)
            if attribute is not None and not constraint.holds(attribute):
                raise self._reader.error(f"custom op '{_OP}{node.op}' '{_OP}{node.op}' op attribute '{name}' failed to "
                                         f"satisfy constraint: {constraint.words}", node.where)

    def _check_blocks(self, node: ParsedNode, kind: str, rule: RegionRule) -> None:
        """Each region has a terminator, and a control token behind its values for each of them."""
        for index, region in enumerate(node.regions):
            if not (region.body.nodes or region.body.get_results or region.body.returned):
                raise self._fault(node, "expects a non-empty block")
            label = rule.labels[index] if rule.labels else f"branch #{index}"
            op = "condition" if label == "condition" else "yield"
            returned = region.body.returned.op if region.body.returned is not None else ""
            if returned != op and not (label == "body" and returned == "condition"):
                raise self._fault(node, f"{label} region must be terminated by a '{_OP}{op}'"
                                        f"{' op' if kind in ('While', 'For') else ''}")
        for index, region in enumerate(node.regions):
            types = [of for _, of, _ in region.arguments]
            half = (len(types) + 1) // 2
            controls = sum(of == CONTROL for of in types[half:])
            if len(types) % 2:
                raise self._fault(node, f"region #{index} expected same number of data values and control tokens "
                                        f"({half} vs. {len(types) - half})")
            for number, of in enumerate(types[:half]):
                if of == CONTROL:
                    raise self._fault(node, f"region #{index} argument #{number} should not be a control token")
            if controls != half:
                raise self._fault(node, f"region #{index} expected same number of data values and control tokens "
                                        f"({len(types) - controls} vs. {controls})")
        if kind == "For":
            types = _data_types(node.regions[0])
            if not types or element_text(types[0]) != "i32":
                raise self._fault(node, "expected first body block argument to be an i32 tensor")

    def _check_preserved(self, node: ParsedNode, kind: str, rule: RegionRule) -> None:
        """The attributes of a region's arguments and results are as many as these."""
        attributes = node.tail.attributes
        preserved: list[a.Attribute | None] = [attributes.get(name) for name in rule.preserved]
        if kind == "Case":
            calls, kept = attributes.get("branch_attrs"), preserved[0]
            if isinstance(calls, a.ArrayAttr) and len(calls.items) != len(node.regions):
                raise self._fault(node, f"has {len(node.regions)} regions but {len(calls.items)} branch function "
                                        "attributes")
            if isinstance(kept, a.ArrayAttr) and len(kept.items) != len(node.regions):
                raise self._fault(node, f"expected {len(node.regions)} region attribute(s) but got {len(kept.items)}")
            preserved = list(kept.items) if isinstance(kept, a.ArrayAttr) else []
        for index, (region, value) in enumerate(zip(node.regions, preserved, strict=False)):
            if not isinstance(value, d.RegionAttrs):
                continue
            returned = region.body.returned
            results = 0 if returned is None else len(returned.types) if returned.condition is None else 1
            counts = (("argument", len(_data_types(region)), len(value.arguments.items)),
                      ("result", results, len(value.results.items)))
            for side, count, kept_count in counts:
                if count != kept_count:
                    raise self._fault(node, f"region #{index} has {count} {side}(s) but preserved attributes has "
                                            f"{kept_count}")

    def _check_condition(self, node: ParsedNode) -> None:
        for region in node.regions:
            returned = region.body.returned
            if returned is not None and returned.condition is not None:
                of = returned.condition[1]
                if of == OPAQUE or element_text(of) != "i1":
                    raise self._reader.error("'tfg.condition' op operand #0 must be tensor of 1-bit signless integer "
                                             f"values, but got '{of}'", returned.at)

    def _check_edge(self, node: ParsedNode, edge: Edge) -> None:
        where = f"along control flow edge from {edge.source} to {edge.target}: "
        if len(edge.passed) != len(edge.needed):
            raise self._fault(node, f"{where}region branch point has {len(edge.passed)} operands, but region successor "
                                    f"needs {len(edge.needed)} inputs")
        for index, (passed, needed) in enumerate(zip(edge.passed, edge.needed, strict=True)):
            if OPAQUE not in (passed, needed) and element_text(passed) != element_text(needed):
                raise self._fault(node, f"{where}successor operand type #{index} '{passed}' should match successor "
                                        f"input type #{index} '{needed}'")

    def _fault(self, node: ParsedNode, text: str) -> MalformedText:
        return self._reader.error(f"'{_OP}{node.op}' op {text}", node.where)


def kind_of(node: ParsedNode) -> str:
    """If, Case, While or For."""
    return node.op.removesuffix("Region").removeprefix("Stateless").removeprefix("Stateful")


def _edges(node: ParsedNode, kind: str) -> Iterator[Edge]:
    """The edges on which control flows, in TensorFlow's order."""
    results = node.tail.results
    if kind in ("If", "Case"):
        for region in node.regions:
            yield Edge(_terminator(region), _PARENT, _passed_types(region), results)
        return
    first = _data_types(node.regions[0])
    if kind == "While":
        condition, body = node.regions
        yield Edge(_PARENT, "Region #0", node.tail.operands, first)
        yield Edge(_terminator(condition), "Region #1", _passed_types(condition), _data_types(body))
        yield Edge(_terminator(condition), _PARENT, _passed_types(condition), results)
        yield Edge(_terminator(body), "Region #0", _passed_types(body), first)
        return
    body = node.regions[0]
    yield Edge(_PARENT, "Region #0", node.tail.operands[3:], first[1:])
    yield Edge(_terminator(body), "Region #0", _passed_types(body), first[1:])
    yield Edge(_terminator(body), _PARENT, _passed_types(body), results)


def _terminator(region: Region) -> str:
    returned = region.body.returned
    return f"Operation {_OP}{returned.op if returned is not None else ''}"


def _passed_types(region: Region) -> Sequence[str]:
    returned = region.body.returned
    return returned.types if returned is not None else ()


def _data_types(region: Region) -> list[str]:
    """The types of a region's arguments without their control tokens."""
    return [of for _, of, _ in region.arguments[:len(region.arguments) // 2]]
