"""The verifier of parsed nodes: functional control flow against the functions that it calls.

The errors have the texts of TensorFlow's own verifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ... import attributes as a
from ...lexer import Lexer, MalformedText
from ..regions.region_forms import FORMS
from ..signatures.result_types import tensor_type
from ..signatures.signature import Signature
from ..signatures.signature_reader import element_text
from ..values import dialect_attributes as d
from ..values.element_types import NUMBERS, OPAQUE
from .constraints import I64, Constraint, list_of
from .parsed_body import ParsedNode
from .region_checks import result_fault, tensor_fault

_BOOL = "tensor<*xi1>"


class Rule(NamedTuple):
    """`required`: attributes without default, by name. `leading`: the operands in front of the functions' arguments.

    `operands`, `results`: attributes with the types of these operands, and of the results. `indices`: the number of
    leading operands that are `of_indices` or opaque.
    """

    required: tuple[str, ...]
    leading: int
    operands: str
    results: str
    indices: int = 0
    of_indices: str = ""


_RULES = {
    "If": Rule(("else_branch", "then_branch"), 1, "Tin", "Tout", 1, "i1"),
    "Case": Rule(("branches",), 1, "Tin", "Tout", 1, "i32"),
    "While": Rule(("body", "cond"), 0, "T", "T"), "For": Rule(("body",), 3, "T", "T", 3, "i32"),
}
_RULE_OF = {f"{kind}{op}": rule for op, rule in _RULES.items() for kind in ("", "Stateless", "Stateful")
            if f"{kind}{op}" in FORMS}
_CONSTRAINTS: Mapping[str, Constraint] = {  # an attribute that is no list is kept, as TensorFlow keeps it
    **dict.fromkeys(("Tin", "Tout", "T"), Constraint(list_of(a.TypeAttr), "type array attribute")),
    "branches": Constraint(list_of(d.FuncAttr), "an array of functions"),
    "output_shapes": Constraint(list_of(d.ShapeAttr), "An array of shapes."),
}


class Verifier:
    """Checks nodes. `signatures`: the functions of the module by name."""

    def __init__(self, reader: Lexer, signatures: Mapping[str, Signature]) -> None:
        self._reader = reader
        self._signatures = signatures

    def check(self, node: ParsedNode) -> None:
        """Raises MalformedText for control flow that does not fit its attributes or functions."""
        rule = _RULE_OF.get(node.op)
        if rule is None:
            return
        attributes = node.tail.attributes
        for name in rule.required:
            if not isinstance(attributes.get(name), _KINDS.get(name, d.FuncAttr)):
                raise self._fault(node, f"requires attribute '{name}'")
        self._check_constraints(node)
        operands, results = node.tail.operands, node.tail.results
        if len(operands) < rule.leading:
            raise self._fault(node, f"expected {rule.leading} or more operands, but found {len(operands)}")
        self._check_leading(node, rule, operands)
        fault = tensor_fault(operands[rule.leading:], "operand", rule.leading) or result_fault(node)
        if fault is not None:
            raise self._fault(node, fault)
        data = operands[rule.leading:]
        kind = node.op.removeprefix("Stateless").removeprefix("Stateful")
        values = (operands[0], *data) if kind == "For" else data
        for label, called in _called_names(kind, attributes):
            signature = self._signatures.get(called)
            if signature is not None:
                self._check_function(node, label, signature, values, (_BOOL,) if label == "cond" else results)
        self._check_types(node, attributes.get(rule.operands), data, "argument")
        self._check_types(node, attributes.get(rule.results), results, "result")

    def _check_constraints(self, node: ParsedNode) -> None:
        for name, constraint in _CONSTRAINTS.items():
            attribute = node.tail.attributes.get(name)
            if isinstance(attribute, a.ArrayAttr) and not constraint.holds(attribute):
                raise self._fault(node, f"attribute '{name}' failed to satisfy constraint: {constraint.words}")
        iterations = node.tail.attributes.get("parallel_iterations")
        if iterations is not None and node.op.endswith("While") and not I64.holds(iterations):
            if not isinstance(iterations, a.IntegerAttr):  # TensorFlow takes one of another kind for an unknown one
                raise self._fault(node, "requires attribute 'parallel_iterations'")
            raise self._fault(node, f"attribute 'parallel_iterations' failed to satisfy constraint: {I64.words}")

    def _check_leading(self, node: ParsedNode, rule: Rule, operands: Sequence[str]) -> None:
        for index, of in enumerate(operands[:rule.indices]):
            if of != OPAQUE and element_text(of) != rule.of_indices:
                raise self._fault(node, f"operand #{index} must be  or opaque tensor type, but got '{of}'")

    def _check_types(self, node: ParsedNode, attribute: a.Attribute | None, types: Sequence[str], what: str) -> None:
        """Compare the types of operands or results with an attribute that lists them."""
        if not isinstance(attribute, a.ArrayAttr):
            return
        if len(attribute.items) != len(types):
            raise self._fault(node, f"has {len(types)} {what}s but {len(attribute.items)} {what} types")
        for index, (item, of) in enumerate(zip(attribute.items, types, strict=True)):
            if isinstance(item, a.TypeAttr) and of != OPAQUE and NUMBERS.get(str(item.type), 0) % 100 != (
                    NUMBERS.get(element_text(of), 0) % 100):
                raise self._fault(node, f"{what} #{index} is incompatible with dtype '{item.type}', got: '{of}'")

    def _check_function(self, node: ParsedNode, label: str, signature: Signature, operands: Sequence[str],
                        results: Sequence[str]) -> None:
        generic = signature.is_generic()
        inputs = [OPAQUE if generic else tensor_type(argument.type) for argument in signature.inputs]
        outputs = [OPAQUE if generic else tensor_type(argument.type) for argument in signature.outputs]
        if generic:  # its control results are results, too
            outputs += [OPAQUE] * len(signature.control_outputs)
        if len(inputs) != len(operands):
            raise self._fault(node, f"{label} function has {len(inputs)} arguments but was provided {len(operands)}")
        if len(outputs) != len(results):
            raise self._fault(node, f"{label} function has {len(outputs)} results but expected {len(results)}")
        sides = (("argument", "operand", inputs, operands), ("result", "result", outputs, results))
        for what, other, stated, provided in sides:
            for index, (of, expected) in enumerate(zip(stated, provided, strict=True)):
                if not compatible(of, expected) or (what == "result" and expected == OPAQUE != of):
                    raise self._fault(node, f"{label} function {what} #{index} type '{of}' is not compatible with "
                                            f"corresponding {other} type: '{expected}'")

    def _fault(self, node: ParsedNode, text: str) -> MalformedText:
        return self._reader.error(f"'tfg.{node.op}' op {text}", node.where)


_KINDS: Mapping[str, type[a.Attribute]] = {"branches": a.ArrayAttr}


def _called_names(kind: str, attributes: Mapping[str, a.Attribute]) -> list[tuple[str, str]]:
    """The label of each function in texts, and its name."""
    if kind == "Case":
        branches = attributes["branches"]
        items = branches.items if isinstance(branches, a.ArrayAttr) else ()
        return [(f"branch #{i}", item.name) for i, item in enumerate(items) if isinstance(item, d.FuncAttr)]
    names = {"If": ("then_branch", "else_branch"), "While": ("cond", "body"), "For": ("body",)}[kind]
    return [(name.removesuffix("_branch"), value.name) for name in names
            if isinstance(value := attributes[name], d.FuncAttr)]


def compatible(one: str, other: str) -> bool:
    """True for types of tensors with one element type."""
    return OPAQUE in (one, other) or element_text(one) == element_text(other)
