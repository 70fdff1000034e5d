"""The parser of graphs: the text of a module becomes the bytes of a GraphDef, and these a Graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from heald.api import Graph, errors, wire
from heald.graphs.graph import Versions, graphdef
from heald.runtime.values import Buffer

from ... import attributes as a
from ...lexer import MalformedText
from ..regions.region_forms import FORMS, REGION_OPS, FunctionNames
from ..signatures.result_types import Declarations
from ..signatures.signature import FUNCTION, HEAD, NODE, TAIL, Signature, head, read_signature, tail
from ..signatures.signature_reader import element_text
from ..values.element_types import CONTROL, OPAQUE
from ..values.faults import ExportFault
from ..values.graph_layout import (
    FUNCTIONS,
    LAYOUT,
    LayoutError,
    assemble_graph_def,
    message,
    order_functions,
    read_layout,
    usual_layout,
)
from .body_values import Resolved, Scope, function_scope, graph_scope, returned_tensors, types_of_results
from .fault_order import OrderedReader
from .inherent_attributes import drop_other_kinds
from .module_reader import GraphReader, ParsedFunction, ParsedGraph
from .node_builder import NodeBuilder, data
from .parsed_body import Body, ParsedNode, Region, Return
from .region_builder import RegionBuilder
from .verifier import Verifier

_NO_UTF8 = re.compile("[\udc80-\udcff]")  # bytes of the file that are none


_SEVERAL = "Can't export module with two different tfg.graph"
_MARKER = re.compile(r"^// -----[^\n]*$", re.MULTILINE)  # between the pieces of a file


def read_graph(text: str, file: str, ops: Any, verify: bool = True) -> Graph:
    """The graph in a text. `ops`: the registry of ops. `verify`: False leaves out the checks of `verifier`.

    Raises MalformedText with file, line and column, ResourceExhausted for constants beyond the memory budget.
    """
    try:
        reader = GraphReader(text, file)
        module = reader.module()
        if len(module.graphs) > 1:
            reader.report_export(_SEVERAL, module.places[1], "heald.tfg.loads_all reads texts of several graphs")
        return _build_graph(reader, module.graphs[0] if module.graphs else _NO_GRAPH, module.functions, ops, verify)
    except MalformedText as fault:
        raise _first_fault(fault, text, file, 1, ops, verify) from None


def read_graphs(text: str, file: str, ops: Any, verify: bool = True) -> list[Graph]:
    """The graphs in all pieces of a text, each with the functions of its piece. Raises as `read_graph`."""
    graphs: list[Graph] = []
    line = 1
    for piece in _MARKER.split(text):
        try:
            reader = GraphReader(piece, file, line)
            module = reader.module()
            parsed_graphs = module.graphs or ([_NO_GRAPH] if module.functions else [])
            graphs += [_build_graph(reader, graph, module.functions, ops, verify) for graph in parsed_graphs]
        except MalformedText as fault:
            raise _first_fault(fault, piece, file, line, ops, verify) from None
        line += piece.count("\n")
    return graphs


def _first_fault(fault: MalformedText, text: str, file: str, line: int, ops: Any, verify: bool) -> MalformedText:
    """The fault of a text that TensorFlow finds first: it parses, verifies and exports a text as a whole."""
    reader = OrderedReader(text, file, line)
    try:
        module = reader.module()
    except MalformedText as parser_fault:
        return parser_fault
    faults = reader.faults
    if not isinstance(fault, ExportFault):
        faults.append(fault)
    elif not faults:
        try:
            for graph in module.graphs or [_NO_GRAPH]:
                GraphBuilder(reader, module.functions, ops, verify).graph(graph)
        except MalformedText as verifier_fault:
            faults.append(verifier_fault)
        except errors.HealdError:
            return fault
    return min(faults or [fault, *reader.export_faults], key=_place)


def _place(fault: MalformedText) -> tuple[int, int]:
    location = fault.location
    return (0, 0) if location is None else (location.line or 0, location.column or 0)


_NO_GRAPH = ParsedGraph(None, {}, Body([], [], None))


def _build_graph(reader: GraphReader, graph: ParsedGraph, functions: Sequence[ParsedFunction], ops: Any, verify: bool,
                 ) -> Graph:
    try:
        raw = b"".join(GraphBuilder(reader, functions, ops, verify).graph(graph))
    except errors.ResourceExhausted as error:
        raise error.at(location=errors.Location(reader.file)) from None
    except errors.InvalidArgument as error:
        if error.location is not None:
            raise
        odd = _NO_UTF8.search(reader.source)  # in a name, which must be UTF-8
        raise reader.error(error.message, odd.start() if odd else 0) from None
    try:
        graph_def = graphdef.read(memoryview(raw))
    except errors.HealdError as error:
        position = _position_of_node(error.node, graph, functions)
        raise reader.error(error.message, position, hint=error.hint) from error
    assigned = {node.name: node.assigned_device for node in graph.body.nodes if node.assigned_device}
    if assigned:
        graph_def = graph_def.replace(nodes=[
            graph_def[name].replace(assigned_device=device) for name, device in assigned.items()])
    return graph_def


def _position_of_node(node: str | None, graph: ParsedGraph, functions: Sequence[ParsedFunction]) -> int:
    """The position of a node of this name; the start of the text where there is none."""
    bodies = [graph.body, *(function.body for function in functions)]
    return next((body_node.where for body in bodies for body_node in reversed(body.nodes) if body_node.name == node), 0)


class GraphBuilder:
    """Makes the GraphDef of a parsed module."""

    def __init__(self, reader: GraphReader, functions: Sequence[ParsedFunction], ops: Any, verify: bool) -> None:
        self._reader = reader
        self._functions = functions
        self._builder = NodeBuilder(reader)
        self._names = FunctionNames(function.signature.name for function in functions)
        self._region_functions: dict[str, list[Buffer]] = {}
        self._signatures = {function.signature.name: function.signature for function in functions}
        self._declarations = Declarations(ops, self._signatures.get)
        self.verify = verify
        self._verifier = Verifier(reader, self._signatures)
        self._regions = RegionBuilder(reader, self._builder, self._declarations, self)

    def graph(self, graph: ParsedGraph) -> list[Buffer]:
        """The buffers of the GraphDef."""
        nodes = self._nodes(graph.body, graph_scope(self._reader, graph.body))
        functions = {function.signature.name: self._function_or_located_error(function) for function in self._functions}
        ordered = order_functions(functions | self._region_functions, graph.attributes.get(FUNCTIONS))
        gradients = {function.signature.name: function.gradient for function in self._functions
                     if function.gradient is not None}
        runs = usual_layout(len(nodes), len(ordered), gradients, ordered)
        if graph.versions is None:
            runs = runs[:-1]
        elif LAYOUT in graph.attributes:
            with suppress(LayoutError):  # the text was edited: its own parts count
                runs = read_layout(graph.attributes[LAYOUT], runs, graph.versions, gradients, [*ordered])
        return assemble_graph_def(runs, nodes, [*ordered.values()], graph.versions or Versions())

    def _nodes(self, body: Body, scope: Scope) -> list[list[Buffer]]:
        """The NodeDefs of a body."""
        return self._messages(self._resolve_nodes(body, scope), scope)

    def _resolve_nodes(self, body: Body, scope: Scope) -> list[Resolved]:
        """The nodes of a body with their data inputs. Regions become functions."""
        ops = {node.op for node in body.nodes}
        if not ops.isdisjoint(FORMS):
            for node in body.nodes:
                if node.op in FORMS:
                    self.check(node)
        if scope.misbound is None and ops.isdisjoint(REGION_OPS):
            return [Resolved(node, scope.inputs(node), []) for node in body.nodes]
        resolved = []
        for node in body.nodes:
            if node.op in REGION_OPS:
                resolved.append(self._regions.build_functional_node(node, scope))
            else:
                resolved.append(Resolved(node, scope.inputs(node), []))
            scope.check_bound(node)
        return resolved

    def _messages(self, resolved: Sequence[Resolved], scope: Scope) -> list[list[Buffer]]:
        message_of, controls_of = self._builder.message, scope.controls_of
        messages, at = [], 0
        try:
            for node, inputs, hoisted in resolved:
                at = node.at
                messages.append(message_of(node, [*inputs, *controls_of([*node.controls, *hoisted])]))
        except errors.InvalidArgument as error:
            raise self._located_error(error, at) from None
        return messages

    def _function_or_located_error(self, function: ParsedFunction) -> list[Buffer]:
        try:
            return self._function(function)
        except errors.InvalidArgument as error:
            raise self._located_error(error, function.at) from None

    def _located_error(self, error: errors.InvalidArgument, at: int) -> errors.InvalidArgument:
        """The error with a place, which that of a name without UTF-8 lacks."""
        return error if error.location is not None else self._reader.error(error.message, at)

    def check(self, node: ParsedNode) -> None:
        """Raises MalformedText for control flow that does not fit its functions."""
        if self.verify:
            self._verifier.check(node)
            node.tail = node.tail._replace(attributes=drop_other_kinds(node.op, node.tail.attributes))

    def new_name(self, name: str) -> str:
        """A name that no function has."""
        return self._names.new(name)

    def resolve(self, region: Region, scope: Scope) -> list[Resolved]:
        """The nodes of a region with their data inputs, and with them all values that the region captures."""
        resolved = self._resolve_nodes(region.body, scope)
        for get_result in region.body.get_results:
            raise self._reader.error("'tfg.get_result' op expects parent op 'tfg.func'", get_result.at)
        early = region.body.early
        if early is not None:
            raise self._reader.error(f"'tfg.{early.op}' op must be the last operation in the parent block", early.at)
        returns = region.body.returned
        if returns is not None:
            if returns.condition is None:
                returned_tensors(scope, returns._replace(controls=[]))
            else:
                with scope.uses_without_meaning():  # the values behind a condition: those of the loop, in a GraphDef
                    returned_tensors(scope, returns._replace(controls=[]))
                scope.tensor_of_type(*returns.condition)
        return resolved

    def add_region(self, signature: Signature, region: Region, scope: Scope, resolved: Sequence[Resolved]) -> None:
        """Add the function of a region to the library."""
        nodes = self._messages(resolved, scope)
        returns = region.body.returned
        assert returns is not None
        if returns.condition is not None:
            tensors = [scope.tensor_of_type(*returns.condition).text]
        else:
            tensors, _ = returned_tensors(scope, returns._replace(controls=[]))
            captured = len(signature.outputs) - len(tensors)
            tensors += [argument.name for argument in signature.inputs[len(signature.inputs) - captured:]]
        controls = scope.controls_of([use for use, _ in returns.controls])
        names = tuple([f"control_{index}" for index in range(len(controls))])
        region_signature = Signature(**{
            **signature.__dict__, "control_outputs": names,
            "ret": {output.name: text for output, text in zip(signature.outputs, tensors, strict=True)},
            "control_ret": {name: text[1:] for name, text in zip(names, controls, strict=True)}})
        self._signatures[region_signature.name] = region_signature
        out: list[Buffer] = [head(region_signature)]
        for buffers in nodes:
            out += message(NODE, buffers)
        self._region_functions[region_signature.name] = [*out, tail(region_signature)]

    def _function(self, function: ParsedFunction) -> list[Buffer]:
        scope = function_scope(self._reader, function.body, function.arguments, self._builder, self._declarations,
                               function.generic)
        nodes = self._nodes(function.body, scope)
        returns = function.body.returned
        if returns is None or returns.op != "return":
            last = returns.op if returns is not None else function.body.last
            raise self._reader.error("'tfg.func' op expects body to be terminated with a tfg.return, but got: "
                                     f"tfg.{last}", function.at)
        signature = self._signature_with_returns(function, returns, scope)
        if function.fault is not None:
            self._reader.report(function.fault)
        if function.body.early is not None:
            early = function.body.early
            raise self._reader.error(f"'tfg.{early.op}' op must be the last operation in the parent block", early.at)
        if function.nameless is not None:
            at, words = function.nameless
            self._reader.report_export(words, at, 'write {tfg.name = "..."} behind the type')
        return _exact_function(function, signature, nodes)

    def _signature_with_returns(self, function: ParsedFunction, returns: Return, scope: Scope) -> Signature:
        """The signature with the tensors and nodes that the function returns."""
        signature = function.signature
        tensors, controls = returned_tensors(scope, returns)
        self._check_returns(function, returns)
        names = signature.control_outputs
        if not names:
            names = tuple([self._name_of_control(attributes, use.at) for use, attributes in returns.controls])
        if len(names) != len(controls):
            raise self._reader.error(f"'tfg.return' op expected {len(names)} control operands but got {len(controls)}",
                                     returns.at)
        parts = dict(signature.__dict__)
        parts["ret"] = {output.name: text for output, text in zip(signature.outputs, tensors, strict=True)}
        parts["control_outputs"] = names
        parts["control_ret"] = dict(zip(names, controls, strict=True))
        return Signature(**parts)


    def _name_of_control(self, attributes: Mapping[str, a.Attribute], at: int) -> str:
        name = attributes.get("tfg.name")
        if isinstance(name, a.StringAttr):
            return name.value
        self._reader.report_export("Control result is missing 'tfg.name'", at,
                                   'write {tfg.name = "..."} behind the control token')
        return ""

    def _has_untold_type(self, function: ParsedFunction, returns: Return, index: int) -> bool:
        """True for a result whose type its node does not tell, for an unknown op or for an attribute that it lacks."""
        if index >= len(returns.results):
            return False
        use = returns.results[index]
        node = next((node for node in function.body.nodes if any(name == use.name for name, _ in node.results)), None)
        declaration = None if node is None else self._declarations.get(node.op)
        if node is None or declaration is None:
            return node is not None
        results = declaration.results(self._builder.section(node).values)
        types = [of for result in results for of in result.types]
        return use.number >= len(types) or types[use.number] == OPAQUE

    def _check_returns(self, function: ParsedFunction, returns: Return) -> None:
        """Raises MalformedText for results of other numbers or types than the function has."""
        name = function.signature.name
        types = (*types_of_results(returns, function.generic), *(CONTROL,) * len(returns.controls))
        expected = function.results
        count = len(returns.results) + len(returns.controls)
        if count < len(expected):
            raise self._reader.error(f"'tfg.func' op expects {len(expected)} returned values but tfg.return has "
                                     f"{count} operands", function.at)
        if function.generic and count > len(expected):
            self._reader.report_export(f"Can't export function {name} because missing attributes for result "
                                       f"#{len(expected)}", function.at,
                                       "the control results of a generic function are among its results")
        for index, (of, stated) in enumerate(zip(types, expected, strict=False)):
            if self.verify and not _same_element(of, stated) and not (
                    of == OPAQUE and self._has_untold_type(function, returns, index)):
                raise self._reader.error(f"'tfg.func' op type mismatch for returned value #{index}, expected "
                                         f"'{stated}' but got '{of}'", function.at)
        index = len(expected)
        if len(types) > index and types[index] != CONTROL:
            raise self._reader.error(f"'tfg.func' op returned value #{index} overflow the expected {index} returned "
                                     f"value for function {name}, expected a ControlType but got '{types[index]}'",
                                     function.at)
        if CONTROL in types[:len(returns.results)]:
            raise self._reader.error("'tfg.return' op expected as many control result attributes as there are control "
                                     "operands", returns.at)


def _same_element(one: str, other: str) -> bool:
    """True for types that are one, and for tensors of one element type."""
    return one == other or (OPAQUE not in (one, other) and CONTROL not in (one, other) and other.startswith("tensor<")
                            and element_text(one) == element_text(other))


def _exact_function(function: ParsedFunction, signature: Signature, nodes: Sequence[list[Buffer]]) -> list[Buffer]:
    """The buffers of a FunctionDef, with the bytes that were kept unless the text was edited since."""
    kept_bytes = {name: data(value.value) for name in (HEAD, TAIL, FUNCTION)
                  if isinstance(value := function.attributes.get(name), a.StringAttr)}
    try:
        if FUNCTION in kept_bytes and _same_function(kept_bytes[FUNCTION], signature, nodes, function.generic):
            return [kept_bytes[FUNCTION]]
        head_bytes, tail_bytes = kept_bytes.get(HEAD, head(signature)), kept_bytes.get(TAIL, tail(signature))
        is_kept = HEAD in kept_bytes or TAIL in kept_bytes
        if is_kept and read_signature(head_bytes + tail_bytes).printed_signature(function.generic) != signature:
            head_bytes, tail_bytes = head(signature), tail(signature)
    except errors.HealdError:
        head_bytes, tail_bytes = head(signature), tail(signature)
    out: list[Buffer] = [head_bytes]
    for buffers in nodes:
        out += message(NODE, buffers)
    return [*out, tail_bytes]


def _same_function(raw: bytes, signature: Signature, nodes: Sequence[list[Buffer]], generic: bool) -> bool:
    """True when a FunctionDef has this signature and these nodes."""
    node_bytes = [raw[at:end] for number, _, at, end in wire.fields(raw, 0, len(raw)) if number == NODE]
    return read_signature(raw).printed_signature(generic) == signature and node_bytes == [
        b"".join(buffers) for buffers in nodes]
