"""The inputs of parsed nodes: values of the text as names of tensors in a graph or a function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ..signatures.result_types import Declarations
from ..values.element_types import CONTROL, OPAQUE
from ..values.node_section import RESULTS
from .body_parser import BodyReader
from .node_builder import NodeBuilder, strings
from .parsed_body import Body, GetResult, ParsedNode, Return, Use


class Tensor(NamedTuple):
    """A value: its spelling as an input, its type, the position of its definition.

    `fault`: the reason for which no GraphDef has an input of this value.
    """

    text: str
    type: str
    at: int
    fault: str = ""


class ParsedArgument(NamedTuple):
    """An argument of a function: the name of its value, its name, its type. `token`: the name of its control token,
    which is that of the value with `.ctl` where it is empty."""

    value: str
    name: str
    type: str
    at: int
    token: str = ""


class Resolved(NamedTuple):
    """A node, its data inputs, and uses of control tokens that it has besides its own."""

    node: ParsedNode
    inputs: list[str]
    hoisted: Sequence[Use]


_NAMELESS = "Can't export graph with missing op-name"
_NO_GET_RESULT = "Missing get_result operation as input"
_HINTS = {_NAMELESS: 'the node of {} needs name("...")', _NO_GET_RESULT: 'write get_result({}) "output" : 0'}


class Scope:
    """The values of a body. A pack has the tensors of one name."""

    def __init__(self, reader: BodyReader, generic: bool = False) -> None:
        self.reader = reader
        self.generic = generic  # True where operations may have no types
        self.packs: dict[str, list[Tensor]] = {}
        self.misbound: tuple[ParsedNode, int, int] | None = None  # a node, its results, and how many have names

    def define(self, name: str, tensors: list[Tensor], at: int) -> None:
        """Raises MalformedText for a name that is defined already."""
        if name in self.packs:
            raise self.reader.error(f"redefinition of SSA value '{name}'", at)
        self.packs[name] = tensors

    def define_node(self, node: ParsedNode, tensors: list[Tensor]) -> None:
        """Give the names of a node's results their tensors, behind which are the control tokens."""
        if not node.results:
            return
        bound = sum([count for _, count in node.results])
        if bound != len(tensors) and self.misbound is None:
            self.misbound = node, len(tensors), bound
        start = 0
        for name, count in node.results:
            self.define(name, tensors[start:start + count], node.at)
            start += count

    def check_bound(self, node: ParsedNode) -> None:
        """Raises MalformedText for a node that has other numbers of names than of results. Its operands come first."""
        if self.misbound is not None and self.misbound[0] is node:
            _, count, bound = self.misbound
            raise self.reader.error(f"operation defines {count} results but was provided {bound} to bind", node.at)

    def use(self, use: Use) -> Tensor:
        """The tensor of a use. Raises MalformedText for an unknown value."""
        pack = self.packs.get(use.name) or self.find_captured(use)
        if pack is None:
            raise self.reader.error("use of undeclared SSA value name", use.at, hint=f"no value is called {use.name}")
        if use.number >= len(pack):
            if pack and use.at < pack[0].at:  # a value of its own, which is never defined
                raise self.reader.error("use of undeclared SSA value name", use.at,
                                        hint=f"{use.name} has {len(pack)} values")
            raise self.reader.error("reference to invalid result number", use.at)
        return pack[use.number]

    def find_captured(self, use: Use) -> list[Tensor] | None:
        """The pack of a value of an outer scope; None where it has none."""
        return None

    @contextmanager
    def uses_without_meaning(self) -> Iterator[None]:
        """Uses in this context are checked, and no region captures their values."""
        yield

    def tensor_of_type(self, use: Use, of: str) -> Tensor:
        """The tensor of a use as a value of a type. Raises MalformedText for another type."""
        return self.check_fault(use, self.value_of_type(use, of))

    def check_fault(self, use: Use, tensor: Tensor) -> Tensor:
        """Raises MalformedText for a tensor that is no input."""
        if tensor.fault:
            self.reader.report_export(tensor.fault, use.at, _HINTS.get(tensor.fault, "").format(use.name) or None)
        return tensor

    def value_of_type(self, use: Use, of: str) -> Tensor:
        """The tensor of a use, which need not be an input. Raises MalformedText for another type."""
        tensor = self.use(use)
        if tensor.type != of and tensor.type is not of:
            if use.at < tensor.at:
                raise self.reader.error(
                    f"definition of SSA value '{use.name}#{use.number}' has type '{tensor.type}'",
                    self.reader.position_of_value(use.name, tensor.at),
                    (use.at, f"previously used here with type '{of}'"))
            raise self.reader.error(
                f"use of value '{use.name}' expects different type than prior uses: '{of}' vs '{tensor.type}'", use.at,
                (self.reader.position_of_value(use.name, tensor.at), "prior use here"))
        return tensor

    def inputs(self, node: ParsedNode) -> list[str]:
        """The inputs of a node that stand in parentheses, as the text spells them: control tokens are the last."""
        tail, uses = node.tail, node.inputs
        if self.generic and not tail.typed:
            return [self.check_fault(use, self.use(use)).text for use in uses]
        types, count = tail.operands, len(uses)
        if len(types) != count:
            if tail.counted and tail.typed:
                raise self.reader.error(f"custom op 'tfg.{node.op}' got {count} non-control operands, but the type "
                                        f"defines {len(types)} input types", self.reader.position_of_types(node))
            types = (*types, *(CONTROL,) * count)[:count]
        packs = self.packs
        tensors = []
        for use, of in zip(uses, types, strict=True):
            name, number, _ = use
            pack = packs.get(name)
            if pack is not None and number < len(pack) and pack[number].type == of and not pack[number].fault:
                tensors.append(pack[number].text)
            else:
                tensors.append(self.tensor_of_type(use, of).text)
        if CONTROL in types:
            self._check_order(node, types)
        return tensors

    def _check_order(self, node: ParsedNode, types: Sequence[str]) -> None:
        """Raises MalformedText for a tensor behind a control token."""
        first = types.index(CONTROL)
        for index in range(first, len(types)):
            if types[index] != CONTROL:
                raise self.reader.error(f"'tfg.{node.op}' op found non-control input in position #{index} after "
                                        f"control input in position #{first}", node.where)

    def controls_of(self, uses: Sequence[Use]) -> list[str]:
        """Control inputs as the text spells them."""
        return [self.control(use) for use in uses]

    def control(self, use: Use) -> str:
        """The spelling of a control input."""
        return self.tensor_of_type(use, CONTROL).text

    def result_types(self, node: ParsedNode) -> tuple[str, ...]:
        """The types of a node's results, without its control token."""
        if self.generic and not node.tail.typed:
            return (OPAQUE,) * max(0, sum([count for _, count in node.results]) - 1)
        return node.tail.results


def _tensors_of(node: ParsedNode, data: Sequence[tuple[str, str]], types: Sequence[str]) -> list[Tensor]:
    """The values of a node. `data`: the spelling of each result, and its fault."""
    if not node.name:
        return [Tensor("", of, node.at, _NAMELESS) for of in (*types, *(CONTROL,) * node.tail.tokens)]
    tensors = [Tensor(text, of, node.at, fault) for (text, fault), of in zip(data, types, strict=True)]
    return tensors + [Tensor(f"^{node.name}", CONTROL, node.at)] * node.tail.tokens


_new = tuple.__new__  # half the time of calling Tensor


def graph_scope(reader: BodyReader, body: Body) -> Scope:
    """The values of a graph: results are counted."""
    scope = Scope(reader)
    for node in body.nodes:
        name, tail, at = node.name, node.tail, node.at
        types, results = tail.results, node.results
        if not name or tail.tokens != 1:
            data = [(f"{name}:{i}" if i else name, "") for i in range(len(types))]
            scope.define_node(node, _tensors_of(node, data, types))
            continue
        token = _new(Tensor, (f"^{name}", CONTROL, at, ""))
        if len(types) == 1 and len(results) == 2 and results[0][1] == results[1][1] == 1:  # most nodes
            scope.define(results[0][0], [_new(Tensor, (name, types[0], at, ""))], at)
            scope.define(results[1][0], [token], at)
            continue
        scope.define_node(node, [*[Tensor(f"{name}:{i}" if i else name, of, at) for i, of in enumerate(types)], token])
    return scope


def function_scope(reader: BodyReader, body: Body, arguments: Sequence[ParsedArgument], builder: NodeBuilder,
                   declarations: Declarations, generic: bool) -> Scope:
    """The values of a function: arguments by name, results by the output argument of the op."""
    scope = Scope(reader, generic)
    for argument in arguments:
        scope.define(argument.value, [Tensor(argument.name, argument.type, argument.at)], argument.at)
    for argument in arguments:
        scope.packs.setdefault(argument.token or f"{argument.value}.ctl",
                               [Tensor(f"^{argument.name}", CONTROL, argument.at)])
    define_nodes(scope, body, builder, declarations)
    for get_result in body.get_results:
        _define_get_result(scope, get_result)
    return scope


def define_nodes(scope: Scope, body: Body, builder: NodeBuilder, declarations: Declarations) -> None:
    """Define the results of the nodes in a function."""
    outputs_of: dict[tuple[str, int], tuple[bool, list[str]]] = {}
    for node in body.nodes:
        key = (node.op, id(node.tail))
        if key not in outputs_of:
            outputs_of[key] = (False, []) if scope.generic or node.regions else _outputs(node, builder, declarations)
        is_known, outputs = outputs_of[key]
        types = scope.result_types(node)
        fault = _NO_GET_RESULT if scope.generic else f"Result #0 of op '{node.op}' is out of range" if is_known else ""
        data = [(f"{node.name}:{outputs[i]}", "") if i < len(outputs) else (f"{node.name}:output:{i}", fault)
                for i in range(len(types))]
        scope.define_node(node, _tensors_of(node, data, types))


def _outputs(node: ParsedNode, builder: NodeBuilder, declarations: Declarations) -> tuple[bool, list[str]]:
    """True for a declared op, and the spelling of each result behind the node's name."""
    section = builder.section(node)
    values = section.values
    if node.tail.dropped:
        values = {**{name: builder.value(name, value, node) for name, value in node.tail.dropped.items()}, **values}
    declared = declarations.get(node.op)
    results = () if declared is None else declared.results(values)
    outputs = [f"{result.argument}:{i}" for result in results for i in range(len(result.types))]
    return declared is not None, [*outputs, *strings(section.heald_attributes.get(RESULTS))]


def _define_get_result(scope: Scope, get_result: GetResult) -> None:
    source = scope.value_of_type(get_result.source, OPAQUE)
    if source.fault != _NO_GET_RESULT:
        scope.check_fault(get_result.source, source)
    node, colon, _ = source.text.partition(":")
    if not colon and not source.fault:
        raise scope.reader.error("'tfg.get_result' op takes a result of an operation, and this is an argument",
                                 get_result.source.at)
    tensor = Tensor(f"{node}:{get_result.output}:{get_result.number}", OPAQUE, get_result.at)
    if get_result.result:
        scope.define(get_result.result, [tensor], get_result.at)


def types_of_results(returns: Return, generic: bool) -> tuple[str, ...]:
    """The types of all results of a terminator. Results without a type are control tokens, as in a node."""
    count = len(returns.results)
    rest = OPAQUE if generic and not returns.typed else CONTROL
    return (*returns.types, *(rest,) * count)[:count]


def returned_tensors(scope: Scope, returns: Return) -> tuple[list[str], list[str]]:
    """The tensors that a function returns, and the nodes of its control results."""
    for (use, _), of in zip(returns.controls, returns.types[len(returns.results):], strict=False):
        scope.value_of_type(use, of)
        if of != CONTROL:
            raise scope.reader.error("'tfg.return' op expected as many control result attributes as there are control "
                                     "operands", returns.at)
    types = types_of_results(returns, scope.generic)
    tensors = [scope.tensor_of_type(use, of).text for use, of in zip(returns.results, types, strict=True)]
    return tensors, [scope.control(use)[1:] for use, _ in returns.controls]
