"""Region control flow as text: `IfRegion`, `CaseRegion`, `WhileRegion` and `ForRegion` with their bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heald.api import Node, errors
from heald.graphs.graph import Func, Function, attr_bytes

from ..regions.region_forms import (
    DEEPEST_REGIONS,
    FORMS,
    OUTPUT_SHAPES,
    REGION,
    RegionForm,
    called_functions,
    shown_name,
)
from ..signatures.node_texts import Fragments, NodeText, braces
from ..signatures.signature import Signature, read_signature
from ..signatures.signature_text import argument_attributes, attribute_texts
from ..values.attribute_forms import form_of
from ..values.element_types import CONTROL
from ..values.names import op_name
from ..values.node_section import quoted_text
from .body_printer import GraphBody
from .function_printer import FunctionBody
from .value_names import ValueNames

Operand = tuple[str, str]  # a value and its type


class RegionBody(FunctionBody):
    """The body of a function in the scope of another body."""

    def __init__(self, outer: GraphBody, function: Function, operands: Sequence[Operand], controls: Sequence[str],
                 counts: ValueNames) -> None:
        signature = read_signature(function.raw)
        super().__init__(function, signature, outer.context, counts)
        names = [argument.name for argument in signature.inputs]
        self.depth = outer.depth + 1
        self.arguments = dict(zip(names, [value for value, _ in operands], strict=True))
        self.shadows = dict(zip(names, controls, strict=True))
        self.types = dict(zip(names, [of for _, of in operands], strict=True))

    def terminator(self, loop: Sequence[Operand] | None, captured: int) -> str:
        """The line that ends the region: a condition for the loop's values `loop`, else a yield.

        `captured`: the number of a loop's captured values, which its body does not yield.
        """
        operands = [self.operand(None, source) for source in self.returned_inputs()]
        controls = [self.control(None, self.signature.control_ret[name]) for name in self.signature.control_outputs
                    if name in self.signature.control_ret]
        tokens = f" [{', '.join(controls)}]" if controls else ""
        if loop is None:
            operands = operands[:len(operands) - captured]
            return f"yield{_values_text(operands)}{tokens}{_types_text(operands)}"
        condition, of = operands[0]
        return f"condition {condition} : {of}{' ' if loop else ''}{_values_text(loop)}{tokens}{_types_text(loop)}"


def _values_text(values: Sequence[Operand]) -> str:
    return f"({', '.join([value for value, _ in values])})" if values else ""


def _types_text(values: Sequence[Operand]) -> str:
    return f" : {', '.join([of for _, of in values])}" if values else ""


def region_op(body: GraphBody, node: Node, text: NodeText, indent: str) -> Fragments:
    """The text of a node with regions, in fragments. Raises InvalidArgument for functions that do not exist or fit."""
    form = FORMS[node.op]
    values = body.values[node.name]
    operands = [body.operand(node, source) for source in node.inputs]
    captured = body.region_nodes[node.name]
    shown = operands[:len(operands) - captured]
    leading, data = shown[:form.leading], shown[form.leading:]
    tokens = f" [{', '.join([body.control(node, name) for name in node.controls])}]" if node.controls else ""
    out = [indent, values.bound, " = ", op_name(f"{node.op}Region")]
    kind = node.op.removeprefix("Stateless").removeprefix("Stateful")
    out.append({"If": f" {leading[0][0]}{tokens} then " if leading else "",
                "Case": f" {leading[0][0]}{tokens} " if leading else "",
                "While": f"{_values_text(data)}{tokens} ",
                "For": f"{_values_text(data)}{tokens} from {' to '.join([v for v, _ in leading[:2]])} by "
                       f"{leading[-1][0] if leading else ''} "}[kind])
    functions = [body.function_of(node, call) for call in called_functions(node)]
    for index, function in enumerate(functions):
        out.append(_BETWEEN[kind] if index else "")
        out += _region(body, node, form, function, index, captured, operands, indent)
    out += braces(_attributes(body, node, text, form, functions))
    types = values.types
    shown = leading if kind in ("If", "Case") else shown
    results = f"({', '.join(types)})" if len(types) != 1 or kind == "For" else types[0]
    if shown or types:
        arrow = f" -> {results}" if types or kind != "For" else ""
        out.append(f" : ({', '.join([of for _, of in shown])}){arrow}")
    return [*out, "\n"]


_BETWEEN = {"If": " else ", "Case": ", ", "While": " do ", "For": ""}


def _region(body: GraphBody, node: Node, form: RegionForm, function: Function, index: int, captured: int,
            operands: Sequence[Operand], indent: str) -> Fragments:
    if body.depth >= DEEPEST_REGIONS:
        raise errors.InvalidArgument(f"regions are nested deeper than {DEEPEST_REGIONS} levels", node=node.name,
                                     op=node.op)
    own = len(operands) - captured
    data = list(operands[form.leading:own])
    if form.leading == 3:
        data.insert(0, operands[0])  # the index of a For has the type of its start
    counts = ValueNames(body.names.counter, body.names.number, body.names.used)
    counts.arguments = body.names.arguments
    label = ""
    first = own if form.loop else form.leading
    captured_controls = [body.token(node, source.node) for source in node.inputs[first:]]
    if form.loop:
        data = [(counts.next_argument(), of) for _, of in data]
        controls = [counts.next_argument() for _ in data]
        shown = [*[f"{value}: {of}" for value, of in data], *[f"{value}: {CONTROL}" for value in controls]]
        label = f"{indent}^bb0({', '.join(shown)}):\n" if shown else ""
        inner = RegionBody(body, function, [*data, *operands[own:]], [*controls, *captured_controls], counts)
    else:
        inner = RegionBody(body, function, data, captured_controls, counts)
    lines = inner.lines(f"{indent}  ")
    condition = data if form.loop and form.leading == 0 and index == 0 else None
    return ["{\n", label, *lines, f"{indent}  {inner.terminator(condition, captured)}\n", f"{indent}}}"]


def _attributes(body: GraphBody, node: Node, text: NodeText, form: RegionForm, functions: Sequence[Function],
                ) -> dict[str, Fragments]:
    """The texts of a region op's attributes."""
    hidden = {*form.implied, *form.functions, REGION, *((OUTPUT_SHAPES,) if body.context.canonical else ())}
    texts = {name: shown for name, shown in text.section.texts.items() if name not in hidden}
    for name, value in (("_mlir_name", node.name), ("_mlir_device", node.device),
                        ("_mlir_assigned_device", node.assigned_device)):
        if value:
            texts[name] = [quoted_text(value)]
    calls = [_call(func) for func in called_functions(node)]
    captured = body.region_nodes[node.name]
    regions = [_region_attributes(function, form, captured, is_condition=form.functions[0] == "cond" and index == 0)
               for index, function in enumerate(functions)]
    if form.functions == ("branches",):
        (call, region), = form.regions
        return texts | {call: [f"[{', '.join(calls)}]"], region: [f"[{', '.join(regions)}]"]}
    for (call, region), shown, attributes in zip(form.regions, calls, regions, strict=True):
        texts |= {call: [shown], region: [attributes]}
    return texts


def _call(called_function: Func) -> str:
    return _dictionary_text({name: form_of(attr_bytes(value)).text for name, value in called_function.attrs.items()})


def _region_attributes(function: Function, form: RegionForm, captured: int, *, is_condition: bool) -> str:
    signature = read_signature(function.raw)
    shown_inputs = signature.inputs[:len(signature.inputs) - captured] if form.loop else ()
    shown_outputs = signature.outputs[:len(signature.outputs) - (0 if is_condition else captured)]
    attrs = {name: value for name, value in signature.attrs.items() if name != REGION}
    texts = attribute_texts(_with_attrs(signature, attrs), False, None)
    texts["sym_name"] = [quoted_text(shown_name(function))]
    inputs = [_dictionary_text(argument_attributes(argument, False)) for argument in shown_inputs]
    outputs = [_dictionary_text(argument_attributes(output, False)) for output in shown_outputs]
    return f"#tfg.region_attrs<{_dictionary_text(texts)} [{', '.join(inputs)}] [{', '.join(outputs)}]>"


def _with_attrs(signature: Signature, attrs: Mapping[str, bytes]) -> Signature:
    return Signature(**{**signature.__dict__, "attrs": dict(attrs)})


def _dictionary_text(texts: Mapping[str, Fragments]) -> str:
    return "".join(braces(texts)).lstrip() if texts else "{}"
