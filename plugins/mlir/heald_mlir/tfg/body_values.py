"""The inputs of parsed nodes: values of the text as names of tensors in a graph or a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..lexer import Lexer
from .body_parser import Body, GetResult, ParsedNode, Return, Use
from .element_types import CONTROL, OPAQUE
from .node_builder import NodeBuilder, strings
from .node_section import RESULTS
from .result_types import Declarations


class Tensor(NamedTuple):
    """A value: its spelling as an input, its type, the position of its definition."""

    text: str
    type: str
    at: int


class ParsedArgument(NamedTuple):
    """An argument of a function: the name of its value, its name, its type."""

    value: str
    name: str
    type: str
    at: int


class Resolved(NamedTuple):
    """A node, its data inputs, and uses of control tokens that it has besides its own."""

    node: ParsedNode
    inputs: list[str]
    hoisted: Sequence[Use]


class Scope:
    """The values of a body. A pack has the tensors of one name."""

    def __init__(self, reader: Lexer, generic: bool = False) -> None:
        self.reader = reader
        self.generic = generic  # True where operations may have no types
        self.packs: dict[str, list[Tensor]] = {}

    def define(self, name: str, tensors: list[Tensor], at: int) -> None:
        """Raises MalformedText for a name that is defined already."""
        if name in self.packs:
            raise self.reader.error(f"redefinition of SSA value '{name}'", at)
        self.packs[name] = tensors

    def define_node(self, node: ParsedNode, tensors: list[Tensor]) -> None:
        """Give the names of a node's results their tensors, of which the control token is the last."""
        if not node.name:
            raise self.reader.error("a node of a graph needs a name", node.where, hint='write name("...")')
        bound = sum([count for _, count in node.results])
        if bound != len(tensors):
            raise self.reader.error(f"operation defines {len(tensors)} results but was provided {bound} to bind",
                                    node.at)
        start = 0
        for name, count in node.results:
            self.define(name, tensors[start:start + count], node.at)
            start += count

    def use(self, use: Use) -> Tensor:
        """The tensor of a use. Raises MalformedText for an unknown value."""
        pack = self.packs.get(use.name) or self.find_captured(use)
        if pack is None:
            raise self.reader.error(f"use of undeclared SSA value name '{use.name}'", use.at)
        if use.number >= len(pack):
            raise self.reader.error("reference to invalid result number", use.at)
        return pack[use.number]

    def find_captured(self, use: Use) -> list[Tensor] | None:
        """The pack of a value of an outer scope; None where it has none."""
        return None

    def tensor_of_type(self, use: Use, of: str) -> Tensor:
        """The tensor of a use as a value of a type. Raises MalformedText for another type."""
        tensor = self.use(use)
        if tensor.type != of and tensor.type is not of:
            raise self.reader.error(
                f"use of value '{use.name}' expects different type than prior uses: '{of}' vs '{tensor.type}'", use.at,
                (tensor.at, "prior use here"))
        return tensor

    def inputs(self, node: ParsedNode) -> list[str]:
        """The data inputs of a node as the text spells them."""
        types = node.tail.operands
        if self.generic and not node.tail.typed:
            return [self.use(use).text for use in node.inputs]
        if len(types) != len(node.inputs):
            raise self.reader.error(f"custom op 'tfg.{node.op}' got {len(node.inputs)} non-control operands, but the "
                                    f"type defines {len(types)} input types", node.where)
        tensors = [self.tensor_of_type(use, of).text for use, of in zip(node.inputs, types, strict=True)]
        return tensors if CONTROL not in types else sorted(tensors, key=_is_control)

    def controls_of(self, uses: Sequence[Use]) -> list[str]:
        """Control inputs as the text spells them."""
        return [self.control(use) for use in uses]

    def control(self, use: Use) -> str:
        """The spelling of a control input."""
        return self.tensor_of_type(use, CONTROL).text


    def result_types(self, node: ParsedNode) -> tuple[str, ...]:
        """The types of a node's results, without its control token."""
        if self.generic and not node.tail.typed:
            return (OPAQUE,) * (sum([count for _, count in node.results]) - 1)
        return node.tail.results


def _is_control(text: str) -> bool:
    return text.startswith("^")


def graph_scope(reader: Lexer, body: Body) -> Scope:
    """The values of a graph: results are counted."""
    scope = Scope(reader)
    for node in body.nodes:
        name = node.name
        tensors = [Tensor(f"{name}:{i}" if i else name, of, node.at) for i, of in enumerate(node.tail.results)]
        scope.define_node(node, [*tensors, Tensor(f"^{name}", CONTROL, node.at)])
    return scope


def function_scope(reader: Lexer, body: Body, arguments: Sequence[ParsedArgument], builder: NodeBuilder,
                   declarations: Declarations, generic: bool) -> Scope:
    """The values of a function: arguments by name, results by the output argument of the op."""
    scope = Scope(reader, generic)
    for argument in arguments:
        scope.define(argument.value, [Tensor(argument.name, argument.type, argument.at)], argument.at)
    for argument in arguments:
        scope.packs.setdefault(f"{argument.value}.ctl", [Tensor(f"^{argument.name}", CONTROL, argument.at)])
    define_nodes(scope, body, builder, declarations)
    for get_result in body.get_results:
        _define_get_result(scope, get_result)
    return scope


def define_nodes(scope: Scope, body: Body, builder: NodeBuilder, declarations: Declarations) -> None:
    """Define the results of the nodes in a function."""
    spelled: dict[tuple[str, int], list[str]] = {}
    for node in body.nodes:
        key = (node.op, id(node.tail))
        if key not in spelled:
            spelled[key] = [] if scope.generic or node.regions else _outputs(node, builder, declarations)
        outputs = spelled[key]
        tensors = [Tensor(f"{node.name}:{outputs[i]}" if i < len(outputs) else f"{node.name}:output:{i}", of, node.at)
                   for i, of in enumerate(scope.result_types(node))]
        scope.define_node(node, [*tensors, Tensor(f"^{node.name}", CONTROL, node.at)])


def _outputs(node: ParsedNode, builder: NodeBuilder, declarations: Declarations) -> list[str]:
    """The spelling of each result behind the node's name."""
    section = builder.section(node)
    declared = declarations.get(node.op)
    results = () if declared is None else declared.results(section.values)
    outputs = [f"{result.argument}:{i}" for result in results for i in range(len(result.types))]
    return [*outputs, *strings(section.heald_attributes.get(RESULTS))]


def _define_get_result(scope: Scope, get_result: GetResult) -> None:
    source = scope.tensor_of_type(get_result.source, OPAQUE)
    node, colon, _ = source.text.partition(":")
    if not colon:
        raise scope.reader.error("'tfg.get_result' op takes a result of an operation, and this is an argument",
                                 get_result.source.at)
    tensor = Tensor(f"{node}:{get_result.output}:{get_result.number}", OPAQUE, get_result.at)
    scope.define(get_result.result, [tensor], get_result.at)


def returned_tensors(scope: Scope, returns: Return) -> tuple[list[str], list[str]]:
    """The tensors that a function returns, and the nodes of its control results."""
    tensors = [scope.tensor_of_type(use, of).text for use, of in zip(returns.results, returns.types, strict=True)]
    return tensors, [scope.control(use)[1:] for use, _ in returns.controls]


