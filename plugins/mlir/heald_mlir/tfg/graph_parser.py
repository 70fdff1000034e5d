"""The parser of graphs: the text of a module becomes the bytes of a GraphDef, and these a Graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from heald.api import Graph, errors, wire
from heald.graphs.graph import Versions, graphdef
from heald.runtime.values import Buffer

from .. import attributes as a
from . import dialect_attributes as d
from .body_parser import Body, BodyReader, ParsedNode, Region, Return
from .body_values import ParsedArgument, Resolved, Scope, function_scope, graph_scope, returned_tensors
from .element_types import CONTROL, OPAQUE
from .function_printer import FUNCTION, HEAD, TAIL
from .graph_layout import LAYOUT, LayoutError, assemble_graph_def, message, read_layout, usual_layout
from .node_builder import NodeBuilder, data
from .region_builder import RegionBuilder
from .region_forms import FORMS, FunctionNames
from .region_verifier import RegionVerifier
from .result_types import Declarations, tensor_type
from .signature import NODE, Argument, Signature, head, read_signature, tail
from .signature_reader import SignatureReader
from .verifier import Verifier, compatible

_VISIBILITIES = ("private", "public", "nested")


class ParsedFunction(NamedTuple):
    """A function as it was written, before its values are resolved."""

    signature: Signature
    arguments: list[ParsedArgument]
    generic: bool
    gradient: str | None
    attributes: Mapping[str, a.Attribute]
    body: Body
    at: int


class ParsedGraph(NamedTuple):
    versions: Versions
    attributes: Mapping[str, a.Attribute]
    body: Body


_NO_UTF8 = re.compile("[\udc80-\udcff]")  # bytes of the file that are none


def read_graph(text: str, file: str, ops: Any, verify: bool = True) -> Graph:
    """The graph in a text. `ops`: the registry of ops. `verify`: False leaves out the checks of `verifier`.

    Raises MalformedText with file, line and column, ResourceExhausted for constants beyond the memory budget.
    """
    reader = GraphReader(text, file)
    graph, functions = reader.module()
    try:
        raw = b"".join(GraphBuilder(reader, functions, ops, verify).graph(graph))
    except errors.ResourceExhausted as error:
        raise error.at(location=errors.Location(file)) from None
    except errors.InvalidArgument as error:
        if error.location is not None:
            raise
        odd = _NO_UTF8.search(text)  # in a name, which must be UTF-8
        raise reader.error(error.message, odd.start() if odd else 0) from None
    try:
        graph_def = graphdef.read(memoryview(raw))
    except errors.HealdError as error:
        position = _position_of_node(reader, error.node, graph, functions)
        raise reader.error(error.message, position, hint=error.hint) from error
    assigned = {node.name: node.assigned_device for node in graph.body.nodes if node.assigned_device} if graph else {}
    if assigned:
        graph_def = graph_def.replace(nodes=[
            graph_def[name].replace(assigned_device=device) for name, device in assigned.items()])
    return graph_def


def _position_of_node(reader: BodyReader, node: str | None, graph: ParsedGraph, functions: Sequence[ParsedFunction],
                      ) -> int:
    """The position of a node of this name; the start of the text where there is none."""
    bodies = [graph.body, *(function.body for function in functions)]
    return next((body_node.where for body in bodies for body_node in reversed(body.nodes) if body_node.name == node), 0)


class GraphReader(BodyReader):
    """A parser of modules with at most one graph."""

    def module(self) -> tuple[ParsedGraph, list[ParsedFunction]]:
        """Parse a module, or its operations without `module { }` around them."""
        wrapped = self.kind == "word" and self.text in ("module", "builtin.module")
        if wrapped:
            self.advance()
            if self.kind == "symbol":
                self.symbol_name()
            if self.accept("attributes"):
                self.dictionary()
            self.expect("{", " to begin a region")
        graph: ParsedGraph | None = None
        functions: dict[str, ParsedFunction] = {}
        while self.kind != "end" and not (wrapped and self.text == "}"):
            at, word = self.at, self.text if self.kind == "word" else ""
            if word == "tfg.graph":
                if graph is not None:
                    raise self.error("expected no more than one 'tfg.graph' op in a module", at)
                graph = self.graph()
            elif word == "tfg.func":
                function = self.function()
                if function.signature.name in functions:
                    raise self.error(f"redefinition of symbol named '{function.signature.name}'", at,
                                     (functions[function.signature.name].at, "see existing symbol definition here"))
                functions[function.signature.name] = function
            elif self.kind in ("alias", "type"):
                self.alias_definition()
            else:
                raise self.error(f"custom op '{word}' is unknown" if word else "expected operation name in quotes",
                                 hint="a module of graphs has tfg.graph and tfg.func")
        if wrapped:
            self.expect("}", " to end a region")
        while self.kind != "end":
            if self.kind not in ("alias", "type"):
                raise self.error("expected the end of the text behind the module")
            self.alias_definition()
        return graph or ParsedGraph(Versions(), {}, Body([], [], None)), list(functions.values())

    def graph(self) -> ParsedGraph:
        """Parse `tfg.graph #tf_type.version<...> attributes {...} {...}`."""
        self.advance()
        at = self.at
        version = self.attribute()
        if not isinstance(version, d.VersionAttr):
            raise self.error("invalid kind of attribute specified, expected #tf_type.version", at)
        attributes = self.dictionary() if self.accept("attributes") else {}
        body = self.body()
        if body.returned is not None:
            raise self.error(f"'tfg.{body.returned.op}' op expects parent op 'tfg.func'", body.returned.at)
        if body.get_results:
            raise self.error("'tfg.get_result' op expects parent op 'tfg.func'", body.get_results[0].at)
        return ParsedGraph(Versions(version.producer, version.min_consumer, version.bad_consumers), attributes, body)

    def function(self) -> ParsedFunction:
        """Parse `tfg.func generic @name(arguments) -> (results) attributes {...} {...}`."""
        at = self.at
        self.advance()
        if self.kind == "word" and self.text in _VISIBILITIES:
            self.advance()
        generic = self.accept("generic")
        name = self.symbol_name()
        signatures = SignatureReader(self)
        arguments = self.comma_list("(", ")", lambda: self.argument(signatures))
        results: list[tuple[str, Argument]] = []
        if self.accept("->"):
            results = self.comma_list("(", ")", lambda: self.result(signatures))
        attributes = self.dictionary() if self.accept("attributes") else {}
        parts = signatures.attributes(attributes, at)
        body = self.body()
        gradient = parts.pop("gradient", None)
        outputs = tuple([output for of, output in results if of != CONTROL])
        if "control_outputs" not in parts:
            parts["control_outputs"] = tuple([output.name for of, output in results if of == CONTROL])
        signature = Signature(name, tuple([argument for _, argument in arguments]), outputs, **parts)
        values = [argument for argument, _ in arguments]
        return ParsedFunction(signature, values, generic, gradient, attributes, body, at)

    def argument(self, signatures: SignatureReader) -> tuple[ParsedArgument, Argument]:
        """Parse `%name: type {attributes}`."""
        at, value = self.at, self.take("value", "SSA identifier")
        self.expect(":")
        of = str(self.type())
        attributes = self.dictionary() if self.text == "{" and self.kind == "punctuation" else {}
        argument = signatures.argument(of, attributes, at)
        if not argument.name:
            argument = Argument(**{**argument.__dict__, "name": value[1:]})
        return ParsedArgument(value, argument.name, of, at), argument

    def result(self, signatures: SignatureReader) -> tuple[str, Argument]:
        """Parse `type {attributes}`."""
        at, of = self.at, str(self.type())
        attributes = self.dictionary() if self.text == "{" and self.kind == "punctuation" else {}
        return of, signatures.argument(of, attributes, at)


class GraphBuilder:
    """Makes the GraphDef of a parsed module."""

    def __init__(self, reader: GraphReader, functions: Sequence[ParsedFunction], ops: Any, verify: bool) -> None:
        self._reader = reader
        self._functions = functions
        self._builder = NodeBuilder(reader)
        self._names = FunctionNames(function.signature.name for function in functions)
        self._region_functions: list[list[Buffer]] = []
        self._signatures = {function.signature.name: function.signature for function in functions}
        self._declarations = Declarations(ops, self._signatures.get)
        self._verify = verify
        self._verifier = Verifier(reader, self._signatures)
        self._region_verifier = RegionVerifier(reader)
        self._regions = RegionBuilder(reader, self._builder, self._declarations, self)

    def graph(self, graph: ParsedGraph) -> list[Buffer]:
        """The buffers of the GraphDef."""
        nodes = self._nodes(graph.body, graph_scope(self._reader, graph.body))
        functions = [self._function_or_located_error(function) for function in self._functions] + self._region_functions
        gradients = {function.signature.name: function.gradient for function in self._functions
                     if function.gradient is not None}
        names = [function.signature.name for function in self._functions]
        runs = usual_layout(len(nodes), len(functions), gradients, names)
        if LAYOUT in graph.attributes:
            with suppress(LayoutError):  # the text was edited: its own parts count
                runs = read_layout(graph.attributes[LAYOUT], runs, graph.versions, gradients, names)
        return assemble_graph_def(runs, nodes, functions, graph.versions)

    def _nodes(self, body: Body, scope: Scope) -> list[list[Buffer]]:
        """The NodeDefs of a body."""
        return self._messages(self._resolve_nodes(body, scope), scope)

    def _resolve_nodes(self, body: Body, scope: Scope) -> list[Resolved]:
        """The nodes of a body with their data inputs. Regions become functions."""
        for node in body.nodes:
            if node.op in FORMS:
                self.check(node)
            elif node.regions and self._verify:
                self._region_verifier.check(node)
        return [self._regions.build_functional_node(node, scope) if node.regions
                else Resolved(node, scope.inputs(node), []) for node in body.nodes]

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
        if self._verify:
            self._verifier.check(node)

    def new_name(self, name: str) -> str:
        """A name that no function has."""
        return self._names.new(name)

    def resolve(self, region: Region, scope: Scope) -> list[Resolved]:
        """The nodes of a region with their data inputs, and with them all values that the region captures."""
        resolved = self._resolve_nodes(region.body, scope)
        returns = region.body.returned
        assert returns is not None
        returned_tensors(scope, returns._replace(controls=[]))
        if returns.condition is not None:
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
        self._region_functions.append([*out, tail(region_signature)])

    def _function(self, function: ParsedFunction) -> list[Buffer]:
        scope = function_scope(self._reader, function.body, function.arguments, self._builder, self._declarations,
                               function.generic)
        nodes = self._nodes(function.body, scope)
        returns = function.body.returned
        if returns is None or returns.op != "return":
            body = function.body.nodes
            last = returns.op if returns is not None else body[-1].op if body else ""
            raise self._reader.error(
                f"'tfg.func' op expects body to be terminated with a tfg.return, but got: tfg.{last}" if last else
                "custom op 'tfg.func' expected non-empty function body", function.at)
        signature = self._signature_with_returns(function, returns, scope)
        return _exact_function(function, signature, nodes)

    def _signature_with_returns(self, function: ParsedFunction, returns: Return, scope: Scope) -> Signature:
        """The signature with the tensors and nodes that the function returns."""
        signature = function.signature
        tensors, controls = returned_tensors(scope, returns)
        if len(tensors) != len(signature.outputs):
            raise self._reader.error(f"'tfg.func' op expects {len(signature.outputs)} returned values but tfg.return "
                                     f"has {len(tensors)} operands", function.at)
        for index, (of, output) in enumerate(zip(returns.types, signature.outputs, strict=True)):
            expected = OPAQUE if function.generic else tensor_type(output.type)
            if self._verify and not compatible(of, expected):
                raise self._reader.error(f"'tfg.func' op type mismatch for returned value #{index}, expected "
                                         f"'{expected}' but got '{of}'", function.at)
        names = signature.control_outputs
        if not names:
            names = tuple([name.value if isinstance(name := attributes.get("tfg.name"), a.StringAttr) else ""
                           for _, attributes in returns.controls])
        if len(names) != len(controls):
            raise self._reader.error(f"'tfg.return' op expected {len(names)} control operands but got {len(controls)}",
                                     returns.at)
        parts = dict(signature.__dict__)
        parts["ret"] = {output.name: text for output, text in zip(signature.outputs, tensors, strict=True)}
        parts["control_outputs"] = names
        parts["control_ret"] = dict(zip(names, controls, strict=True))
        return Signature(**parts)


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
