"""Functions as text: the signature, and the body of a concrete or a generic function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from heald.api import Input, Node, errors, wire
from heald.graphs.graph import AttrPlaceholder, Function, parse_input
from heald.runtime.values import Buffer

from ...attribute_text import symbol_text
from ...lexer import escaped_bytes
from ..signatures.node_texts import Fragments, NodeText, braces
from ..signatures.result_types import tensor_type
from ..signatures.signature import FUNCTION, HEAD, NODE, TAIL, Signature, head, read_signature, tail
from ..signatures.signature_text import argument_text, attribute_texts
from ..values.element_types import CONTROL, OPAQUE
from ..values.node_section import RESULTS, quoted_text
from .body_printer import Context, GraphBody, input_texts, missing
from .value_names import ValueNames, identifier


def function_text(function: Function, context: Context, gradient: str | None) -> Fragments:
    """The text of a function, in fragments. `gradient`: the name of the function that is its gradient."""
    try:
        signature = read_signature(function.raw)
        generic = signature.is_generic() or any(map(_has_placeholder, function.nodes.values()))
        body = (GenericBody if generic else FunctionBody)(function, signature, context, ValueNames())
        body.name_arguments()
        lines = [*body.lines("    "), *body.end()]
    except errors.HealdError as error:
        raise type(error)(f"function '{function.name}': {error.message}", node=error.node, op=error.op,
                          hint=error.hint) from None
    if generic and context.canonical:
        gradient = None  # TensorFlow forgets it
    texts = attribute_texts(signature, generic, gradient)
    if not context.canonical:
        heald_texts = _heald_texts(function.raw, signature.printed_signature(generic))
        texts |= {name: [text] for name, text in heald_texts.items()}
    return [*_header(signature, generic, body.arguments, texts), *lines, "  }\n"]


def _has_placeholder(node: Node) -> bool:
    return any(isinstance(value, AttrPlaceholder) for value in node.attrs.values())


def _header(signature: Signature, generic: bool, names: Mapping[str, str], texts: Mapping[str, Fragments]) -> Fragments:
    """The lines in front of the body. TensorFlow indents them as if names were never in quotes."""
    shown = [f"{names[argument.name]}: {argument_text(argument, generic)}" for argument in signature.inputs]
    results = [argument_text(output, generic) for output in signature.outputs]
    if generic:
        results += [f"{CONTROL} {{tfg.name = {quoted_text(name)}}}" for name in signature.control_outputs]
    separator = ", \n" + " " * len(f"  tfg.func @{signature.name}(")
    out = [f"  tfg.func {'generic ' if generic else ''}{symbol_text(signature.name)}(", separator.join(shown), ")\n"]
    if results:
        out += ["       -> (", ", \n           ".join(results), ")\n"]
    attributes = braces(texts)
    return [*out, *(["   attributes", *attributes, " {\n"] if attributes else ["   {\n"])]


def _heald_texts(raw: Buffer, signature: Signature) -> dict[str, str]:
    """The attributes that lead from the text of a function to its bytes."""
    parts = fields_around_nodes(raw)
    if parts is None:
        return {FUNCTION: f'"{escaped_bytes(bytes(raw))}"'}
    return {name: f'"{escaped_bytes(part)}"' for name, part, usual in zip(
        (HEAD, TAIL), parts, (head(signature), tail(signature)), strict=True) if part != usual}


def fields_around_nodes(raw: Buffer) -> tuple[bytes, bytes] | None:
    """The fields of a FunctionDef before and behind its nodes; None where they are between nodes, too."""
    parts: tuple[list[Buffer], list[Buffer]] = ([], [])
    behind, at = 0, 0
    for number, _, _, end in wire.fields(raw, 0, len(raw)):
        if number == NODE and parts[1]:
            return None
        if number >= NODE:
            behind = 1
        if number != NODE:
            parts[behind].append(raw[at:end])
        at = end
    return b"".join(parts[0]), b"".join(parts[1])


class FunctionBody(GraphBody):
    """The body of a concrete function: inputs are arguments, or elements of output arguments of nodes.

    `arguments`, `shadows`: the values of the arguments, and of their control tokens, by name.
    """

    generic = False

    def __init__(self, function: Function, signature: Signature, context: Context, names: ValueNames) -> None:
        super().__init__(function.nodes, context, names)
        self.signature = signature
        self.region_nodes = context.choice.nodes.get(function.name, {})
        self.arguments: dict[str, str] = {}
        self.shadows: dict[str, str] = {}
        self.types = {argument.name: OPAQUE if self.generic else tensor_type(argument.type)
                      for argument in signature.inputs}
        self.node_texts: dict[str, NodeText] = {}
        self.undeclared: dict[str, dict[str, int]] = {}  # by node: indices of results that its op does not declare

    def name_arguments(self) -> None:
        """Name the arguments after those of the function."""
        for argument in self.signature.inputs:
            if not argument.name:  # nothing in a body has a control edge from it
                self.arguments[argument.name] = self.names.next_numbered()
                continue
            name = identifier(argument.name)
            self.arguments[argument.name] = self.names.unique_name(name)
            self.shadows[argument.name] = self.names.unique_name(f"{name}.ctl")

    def lines(self, indent: str) -> Fragments:
        self.node_texts = {node.name: self.texts.of(node, input_texts(node)) for node in self.nodes.values()}
        for source in self.uses():
            if source.node in self.nodes and self.declared_index(source) is None:
                indices = self.undeclared.setdefault(source.node, {})
                indices.setdefault(_port(source), len(self.node_texts[source.node].types) + len(indices))
        for node in self.nodes.values():
            more = self.undeclared.get(node.name, {})
            if more:
                result_names = f"[{', '.join(map(quoted_text, more))}]"
                self.node_texts[node.name] = self.texts.of(node, input_texts(node), {RESULTS: result_names})
            self.define(node, self.node_texts[node.name].types + (OPAQUE,) * len(more))
        out: Fragments = []
        for node in self.nodes.values():
            self.line(node, self.node_texts[node.name], indent, out)
        return out

    def uses(self) -> Iterator[Input]:
        """The tensors that nodes take and that are returned."""
        for node in self.nodes.values():
            yield from node.inputs
        yield from self.returned_inputs()

    def returned_inputs(self) -> list[Input]:
        """The tensors that are returned, in order."""
        ret = self.signature.ret
        return [parse_input(ret[output.name]) for output in self.signature.outputs if output.name in ret]

    def declared_index(self, source: Input) -> int | None:
        """The index of a tensor among the results that the op of its node declares."""
        start = 0
        for argument, types in self.node_texts[source.node].results or ():
            if argument == source.output:
                return start + source.index if source.index < len(types) else None
            start += len(types)
        return None

    def operand(self, node: Node | None, source: Input) -> tuple[str, str]:
        if source.node in self.arguments and source.node not in self.nodes:
            return self.arguments[source.node], self.types[source.node]
        values = self.values.get(source.node)
        if values is None:
            raise missing(node, source.node)
        index = self.declared_index(source)
        if index is None:
            index = self.undeclared[source.node][_port(source)]
        return values.result(index), values.types[index]

    def control(self, node: Node | None, source: str) -> str:
        if source in self.shadows and source not in self.nodes:
            return self.shadows[source]
        return super().control(node, source)

    def end(self) -> Fragments:
        """The line that returns results and control results."""
        tensors = [self.operand(None, source) for source in self.returned_inputs()]
        controls = [(name, self.control(None, self.signature.control_ret[name]))
                    for name in self.signature.control_outputs if name in self.signature.control_ret]
        shown = f"({', '.join([value for value, _ in tensors])})" if tensors else ""
        if controls:
            tokens = [value if self.generic else f"{value} {{tfg.name = {quoted_text(name)}}}"
                      for name, value in controls]
            shown += f" [{', '.join(tokens)}]"
        types = f" : {', '.join([of for _, of in tensors])}" if tensors else ""
        return [f"    return{shown}{types}\n"]


def _port(source: Input) -> str:
    return "" if source.output is None else f"{source.output}:{source.index}"


class GenericBody(FunctionBody):
    """The body of a generic function: each node has one opaque result, of which `get_result` takes tensors.

    TensorFlow's importer puts a node that is used before it is read in front of its first user.
    """

    generic = True
    filled = False

    def lines(self, indent: str) -> Fragments:
        self.get_results: dict[Input, str] = {}
        order = self.order()
        for line in order:
            if isinstance(line, Input):
                self.get_results[line] = self.names.next_numbered()
            else:
                self.define(line, (OPAQUE,))
        out: Fragments = []
        for line in order:
            if isinstance(line, Input):
                result = f'get_result({self.values[line.node].name}) "{line.output or ""}" : {line.index}'
                out.append(f"{indent}{self.get_results[line]} = {result}\n")
            else:
                self.line(line, self.texts.of(line, input_texts(line)), indent, out)
        return out

    def order(self) -> list[Node | Input]:
        """Nodes in the order of the text, each tensor in front of its first user."""
        order: list[Node | Input | None] = []
        places: dict[str, int] = {}  # of nodes that are used before they are read
        taken_tensors: set[Input] = set()

        def use(source: str) -> None:
            if self.context.canonical and source in self.nodes and source not in places:
                places[source] = len(order)
                order.append(None)

        def take(source: Input) -> None:
            if source.node not in self.nodes:
                return
            use(source.node)
            if source not in taken_tensors:
                taken_tensors.add(source)
                order.append(source)

        for node in self.nodes.values():
            for source in node.inputs:
                take(source)
            for control in node.controls:
                use(control)
            if places.setdefault(node.name, len(order)) == len(order):
                order.append(node)
            else:
                order[places[node.name]] = node
        for source in self.returned_inputs():
            take(source)
        return [line for line in order if line is not None]

    def operand(self, node: Node | None, source: Input) -> tuple[str, str]:
        if source in self.get_results:
            return self.get_results[source], OPAQUE
        if source.node not in self.arguments:
            raise missing(node, source.node)
        return self.arguments[source.node], OPAQUE
