"""Checks of control flow with regions, in the order and the words of TensorFlow's verifier.

The attributes of the form are checked while an op is parsed; its regions, their arguments and ends, and the types along
each edge between them, when its values are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ... import attributes as a
from ..regions.region_forms import FORMS, RegionForm
from ..signatures.signature_reader import element_text
from ..values import dialect_attributes as d
from ..values.element_types import CONTROL, OPAQUE
from .parsed_body import ParsedNode, Region

_DICTIONARY = "dictionary of named attribute values"
_REGION = "Region attributes, argument and result attributes."
_ELEMENTS = {"If": ("i1", 1), "Case": ("i32", 1), "For": ("i32", 3)}  # of the first operands, and how many these are
_BITS = {"i1": "1-bit", "i32": "32-bit"}


class Edge(NamedTuple):
    """A way of values: the texts of its ends, the types that leave and the types that arrive."""

    source: str
    target: str
    given: Sequence[str]
    expected: Sequence[str]


def kind_of(op: str) -> str:
    """If, Case, While or For."""
    return op.removesuffix("Region").removeprefix("Stateless").removeprefix("Stateful")


def attribute_fault(op: str, attributes: Mapping[str, a.Attribute]) -> str | None:
    """The fault of an attribute that the form of a control flow op declares; None for good ones."""
    for name, constraint in _constraints(op, attributes):
        return f"'tfg.{op}' op attribute '{name}' failed to satisfy constraint: {constraint}"
    return None


def _constraints(op: str, attributes: Mapping[str, a.Attribute]) -> Iterator[tuple[str, str]]:
    """The attributes of other kinds than declared, and what they should be."""
    many = kind_of(op) == "Case"
    for call, region in FORMS[op.removesuffix("Region")].regions:
        kinds: tuple[tuple[str, type[a.Attribute], str], ...] = (
            (call, a.DictionaryAttr, "an array of dictionaries" if many else _DICTIONARY),
            (region, d.RegionAttrs, "case region preserved attributes" if many else _REGION))
        for name, kind, constraint in kinds:
            value = attributes.get(name)
            if value is None:
                continue
            items = value.items if many and isinstance(value, a.ArrayAttr) else (value,)
            if (many and not isinstance(value, a.ArrayAttr)) or not all(isinstance(item, kind) for item in items):
                yield name, constraint
    iterations = attributes.get("parallel_iterations")
    if kind_of(op) == "While" and iterations is not None and not (
            isinstance(iterations, a.IntegerAttr) and str(iterations.type) == "i64"):
        yield "parallel_iterations", "64-bit signless integer attribute"


def region_fault(node: ParsedNode, verify: bool) -> tuple[str, int] | None:
    """The fault of a control flow op with regions in the words of TensorFlow, and its place; None for a good op.

    `verify`: False leaves out what a GraphDef may have: other types than its functions, and other attributes.
    """
    kind = kind_of(node.op)
    form = FORMS[node.op.removesuffix("Region")]
    faults = chain(_blocks(node), _operands(node, kind) if verify else (), _arguments(node, kind),
                   _ends(node, kind), _preserved(node, form, kind) if verify else ())
    for text in faults:
        return f"'tfg.{node.op}' op {text}", node.where
    if not verify:
        return None
    condition = node.regions[0].body.returned if node.regions else None
    if condition is not None and condition.condition is not None and element_text(condition.condition[1]) != "i1":
        return ("'tfg.condition' op operand #0 must be tensor of 1-bit signless integer values, but got "
                f"'{condition.condition[1]}'", condition.at)
    for region in node.regions:
        returned = region.body.returned
        fault = None if returned is None else tensor_fault(
            returned.types, "operand", 0 if returned.condition is None else 1)
        if returned is not None and fault is not None:
            return f"'tfg.{returned.op}' op {fault}", returned.at
    for edge in _edges(node, kind):
        fault = _edge_fault(edge)
        if fault is not None:
            return (f"'tfg.{node.op}' op along control flow edge from {edge.source} to {edge.target}: {fault}",
                    node.where)
    return None


def _blocks(node: ParsedNode) -> Iterator[str]:
    for index, region in enumerate(node.regions):
        if region.body.blocks > 1:
            yield f"expects region #{index} to have 0 or 1 blocks"
        if region.body.is_empty:
            yield "expects a non-empty block"


def _operands(node: ParsedNode, kind: str) -> Iterator[str]:
    if kind == "While" and "parallel_iterations" not in node.tail.attributes:
        yield "requires attribute 'parallel_iterations'"
    element, count = _ELEMENTS.get(kind, ("", 0))
    for index, of in enumerate(node.tail.operands[:count]):
        if element_text(of) != element:
            yield f"operand #{index} must be tensor of {_BITS[element]} signless integer values, but got '{of}'"
    fault = tensor_fault(node.tail.operands[count:], "operand", count) or result_fault(node)
    if fault is not None:
        yield fault


def tensor_fault(types: Sequence[str], what: str, first: int = 0) -> str | None:
    """The fault of types that are no tensors. `first`: the index of the first operand or result."""
    for index, of in enumerate(types, first):
        if not of.startswith(("tensor<", OPAQUE)):
            return f"{what} #{index} must be variadic of  or opaque tensor type, but got '{of}'"
    return None


def result_fault(node: ParsedNode) -> str | None:
    """The fault of the results of control flow, whose last one is its control token."""
    return tensor_fault((*node.tail.results, *(CONTROL,) * (node.tail.tokens - 1)), "result")


def _arguments(node: ParsedNode, kind: str) -> Iterator[str]:
    for index, region in enumerate(node.regions):
        types = [of for _, of, _ in region.arguments]
        tokens = types.count(CONTROL)
        values = len(types) - tokens
        if kind == "For" and not types:
            yield "expected the body block to have at least have the loop index as an argument"
        if values != tokens:
            yield f"region #{index} expected same number of data values and control tokens ({values} vs. {tokens})"
        for position, of in enumerate(types):
            if (of == CONTROL) != (position >= values):
                yield f"region #{index} argument #{position} should {'' if position >= values else 'not '}be a " \
                      "control token"
    if kind == "For" and element_text(node.regions[0].arguments[0][1]) != "i32":
        yield "expected first body block argument to be an i32 tensor"


def _preserved(node: ParsedNode, form: RegionForm, kind: str) -> Iterator[str]:
    """Faults of the attributes that keep those of arguments and results."""
    attributes = node.tail.attributes
    if kind == "Case":
        calls, written = (attributes.get(name) for name in form.regions[0])
        if isinstance(calls, a.ArrayAttr) and len(calls.items) != len(node.regions):
            yield f"has {len(node.regions)} regions but {len(calls.items)} branch function attributes"
        infos: Sequence[a.Attribute | None] = written.items if isinstance(written, a.ArrayAttr) else ()
        if isinstance(written, a.ArrayAttr) and len(infos) != len(node.regions):
            yield f"expected {len(node.regions)} region attribute(s) but got {len(infos)}"
    else:
        infos = [attributes.get(name) for _, name in form.regions]
    for index, (region, info) in enumerate(zip(node.regions, infos, strict=False)):
        if isinstance(info, d.RegionAttrs):
            pairs = ((len(_data(region)), "argument", info.arguments), (_result_count(region), "result", info.results))
            for count, what, kept in pairs:
                if count != len(kept.items):
                    yield f"region #{index} has {count} {what}(s) but preserved attributes has {len(kept.items)}"


def _result_count(region: Region) -> int:
    """The results of a region's function: a condition has one."""
    returned = region.body.returned
    return 0 if returned is None else 1 if returned.condition is not None else len(returned.results)


def _data(region: Region) -> list[str]:
    """The types of a region's arguments without control tokens."""
    return [of for _, of, _ in region.arguments if of != CONTROL]


def _ends(node: ParsedNode, kind: str) -> Iterator[str]:
    for index, region in enumerate(node.regions):
        expected = "condition" if kind == "While" and index == 0 else "yield"
        returned = region.body.returned
        if returned is None or returned.op != expected:
            yield (f"branch region #{index} is not terminated by a 'tfg.yield' op" if kind == "Case" else
                   f"{('then', 'else')[index]} region must be terminated by a 'tfg.yield'" if kind == "If" else
                   f"{'condition' if expected == 'condition' else 'body'} region must be terminated by a "
                   f"'tfg.{expected}' op")


def _edges(node: ParsedNode, kind: str) -> Iterator[Edge]:
    ends = [region.body.returned.types if region.body.returned else () for region in node.regions]
    results = node.tail.results
    if kind in ("If", "Case"):
        for index, region in enumerate(node.regions):
            yield Edge("parent", f"Region #{index}", (), _data(region))
        for types in ends:
            yield Edge("Operation tfg.yield", "parent", types, results)
        return
    first = _data(node.regions[0])
    if kind == "For":
        yield Edge("parent", "Region #0", node.tail.operands[3:], first[1:])
        yield Edge("Operation tfg.yield", "Region #0", ends[0], first[1:])
        yield Edge("Operation tfg.yield", "parent", ends[0], results)
        return
    yield Edge("parent", "Region #0", node.tail.operands, first)
    yield Edge("Operation tfg.condition", "Region #1", ends[0], _data(node.regions[1]))
    yield Edge("Operation tfg.condition", "parent", ends[0], results)
    yield Edge("Operation tfg.yield", "Region #0", ends[1], first)


def _edge_fault(edge: Edge) -> str | None:
    if len(edge.given) != len(edge.expected):
        return (f"region branch point has {len(edge.given)} operands, but region successor needs {len(edge.expected)} "
                "inputs")
    for index, (of, expected) in enumerate(zip(edge.given, edge.expected, strict=True)):
        if element_text(of) != element_text(expected):
            return (f"successor operand type #{index} '{of}' should match successor input type #{index} '{expected}'")
    return None
