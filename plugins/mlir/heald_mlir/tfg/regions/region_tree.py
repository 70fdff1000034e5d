"""The graph with its regions inside their nodes, as the text shows it, for passes that move nodes across regions.

A `Body` is the graph, a function, or a region. Its operations name their operands as objects, so a value that a region
captures is the value itself: no argument stands for it. `RegionTree.graph_with` makes a graph of changed bodies again.
It gives each region the arguments that its captured values need, as the reader of text does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from heald.api import Graph, Input, Node, PassContext, dtypes, wire
from heald.graphs.graph import Function, graphdef
from heald.runtime.values import Buffer

from ..signatures.result_types import Declarations, Result
from ..signatures.signature import NODE, Argument, Signature, head, read_signature, tail
from ..values.element_types import NUMBERS
from ..values.graph_layout import FUNCTION, LIBRARY
from ..values.node_section import read_values
from .region_choice import choose_regions
from .region_forms import DEEPEST_REGIONS, FORMS, OUTPUT_SHAPES, REGION, RegionForm, called_functions

_COLOCATED = b"loc:@"
_DEAD_VALUE_OPS = frozenset(("LoopCond", "_SwitchN", *(f"{kind}{op}" for kind in ("", "Ref") for op in (
    "Enter", "Exit", "Merge", "NextIteration", "Switch"))))
RESULT_SHAPES = (OUTPUT_SHAPES, "_output_shapes")


@dataclass(eq=False, slots=True)
class Parameter:
    """An argument of a function, or of a loop's region."""

    argument: Argument
    body: Body


@dataclass(eq=False, slots=True)
class Operation:
    """A node in a body. `inputs` of a node with regions are without the values that its regions capture."""

    node: Node
    body: Body
    inputs: list[Tensor] = field(default_factory=list)
    controls: list[Operation | Parameter] = field(default_factory=list)
    regions: list[Body] = field(default_factory=list)
    name: str = ""

    @property
    def form(self) -> RegionForm:
        return FORMS[self.node.op]


class Tensor(NamedTuple):
    """A result of an operation, or an argument. `output`: None for an argument and for an undeclared result."""

    source: Operation | Parameter
    output: str | None
    index: int  # type: ignore[assignment]  # hides tuple.index


@dataclass(eq=False, slots=True)
class Body:
    """A graph, a function or a region. `owner`: the operation of a region. `signature`: None for the graph.

    `operations`: those whose body this is, and others that have left it.
    """

    owner: Operation | None
    signature: Signature | None
    parameters: list[Parameter] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    returned: dict[str, Tensor] = field(default_factory=dict)
    control_returned: dict[str, Operation | Parameter] = field(default_factory=dict)

    def current_operations(self) -> Iterator[Operation]:
        return (operation for operation in self.operations if operation.body is self)

    def is_within(self, region: Body) -> bool:
        """True for the region itself and for regions inside of it."""
        body: Body | None = self
        while body is not None and body is not region:
            body = None if body.owner is None else body.owner.body
        return body is not None


class RegionTree:
    """The bodies of a graph. `roots`: the graph's, whose name is None, and those of functions that are no regions."""

    def __init__(self, graph: Graph, ops: Any) -> None:
        self._graph = graph
        self._signatures = {name: read_signature(function.raw) for name, function in graph.functions.items()}
        self._declarations = Declarations(ops, self._signatures.get)
        self._results: dict[Node, tuple[Result, ...]] = {}
        self._choice = choose_regions(graph, self._declarations)
        self.roots: dict[str | None, Body] = {None: self._read_body(None, None, {}, 0)}
        for name in graph.functions:
            if name not in self._choice.functions:
                self.roots[name] = self._read_body(name, None, {}, 0)

    # from the graph to bodies

    def _read_body(self, name: str | None, owner: Operation | None, captured: Mapping[str, Tensor], depth: int) -> Body:
        """The body of a function, or of the graph. `captured`: the outer tensors that arguments stand for."""
        nodes = self._graph.nodes if name is None else self._graph.functions[name].nodes
        body = Body(owner, None if name is None else self._signatures[name])
        scope: dict[str, Operation | Parameter | Tensor] = {**captured}
        if body.signature is not None:
            for argument in body.signature.inputs:
                if argument.name not in captured:
                    body.parameters.append(Parameter(argument, body))
                    scope[argument.name] = body.parameters[-1]
        body.operations = [Operation(node, body, name=node.name) for node in nodes.values()]
        scope.update({operation.name: operation for operation in body.operations})
        region_nodes = self._choice.nodes.get(name, {}) if depth < DEEPEST_REGIONS else {}
        for operation in body.operations:
            operation.inputs = [self._tensor(source, scope) for source in operation.node.inputs]
            operation.controls = [_source(scope[control]) for control in operation.node.controls]
        for operation in body.operations:
            if operation.name in region_nodes:
                self._read_regions(operation, region_nodes[operation.name], depth)
        if name is not None:
            self._read_returned(body, self._graph.functions[name], scope)
        return body

    def _tensor(self, source: Input, scope: Mapping[str, Operation | Parameter | Tensor]) -> Tensor:
        target = scope[source.node]
        if isinstance(target, Tensor):
            return target
        if source.output is not None or isinstance(target, Parameter):
            return Tensor(target, source.output, source.index)
        index = source.index
        for result in self.results(target.node):
            if index < len(result.types):
                return Tensor(target, result.argument, index)
            index -= len(result.types)
        return Tensor(target, None, source.index)

    def _read_regions(self, operation: Operation, captured_count: int, depth: int) -> None:
        form, node = operation.form, operation.node
        count = captured_count if form.loop else len(operation.inputs) - form.leading
        own = len(operation.inputs) - count
        captured = operation.inputs[own:]
        del operation.inputs[own:]
        for call in called_functions(node):
            inputs = self._signatures[call.name].inputs
            names = [argument.name for argument in inputs[len(inputs) - count:]]
            operation.regions.append(self._read_body(
                call.name, operation, dict(zip(names, captured, strict=True)), depth + 1))
        if form.loop and count:
            body = operation.regions[-1]
            for name in [*body.returned][-count:]:
                del body.returned[name]

    def _read_returned(self, body: Body, function: Function, scope: Mapping[str, Operation | Parameter | Tensor],
                       ) -> None:
        for output in function.outputs:
            if output.name in function.ret:
                body.returned[output.name] = self._tensor(function.ret[output.name], scope)
        for name, node in function.control_ret.items():
            body.control_returned[name] = _source(scope[node])

    def results(self, node: Node) -> tuple[Result, ...]:
        """The declared results of a node; empty for an unknown op."""
        if node not in self._results:
            declaration = self._declarations.get(node.op)
            self._results[node] = () if declaration is None else declaration.results(read_values(node.raw))
        return self._results[node]

    def type_number(self, tensor: Tensor) -> int:
        """The number of a tensor's type; 0 for an unknown one."""
        if isinstance(tensor.source, Parameter):
            return tensor.source.argument.type
        types = next((result.types for result in self.results(tensor.source.node)
                      if result.argument == tensor.output), ())
        return NUMBERS.get(types[tensor.index][9:-1], 0) if tensor.index < len(types) else 0

    # from bodies to a graph

    def graph_with(self, changed: Collection[str | None]) -> Graph:
        """The graph with the roots of these names as they are now."""
        writer = _GraphWriter(self)
        bodies = {name: writer.write_body(self.roots[name]) for name in changed}
        functions = [self._function(body, nodes) for body, nodes in writer.regions]
        functions += [self._function(self.roots[name], nodes) for name, nodes in bodies.items() if name is not None]
        region_names = {name for root in changed for name in _region_names(self.roots[root])}
        gone = region_names - {function.name for function in functions}
        if None not in bodies:
            return self._graph.replace(functions=functions, without_functions=gone)
        nodes = {node.name: node for node in bodies[None]}
        return self._graph.replace(
            nodes=[node for name, node in nodes.items() if node is not self._graph.nodes.get(name)],
            without=self._graph.nodes.keys() - nodes.keys(), functions=functions or None, without_functions=gone)

    def _function(self, body: Body, nodes: Sequence[Node]) -> Function:
        assert body.signature is not None
        function = self._graph.functions[body.signature.name]
        if body.owner is None:
            control_ret = {name: token_name for name, token in body.control_returned.items()
                           if (token_name := _local_name(token, body)) is not None}
            return function.replace(
                nodes=nodes, ret={name: _spelled(tensor, _NO_ARGUMENTS) for name, tensor in body.returned.items()},
                control_ret=control_ret if control_ret != function.control_ret else None)
        raw: list[Buffer] = [head(body.signature), *(wire.put_bytes(NODE, bytes(node.raw)) for node in nodes),
                             tail(body.signature)]
        library = wire.put_bytes(LIBRARY, wire.put_bytes(FUNCTION, b"".join(raw)))
        return graphdef.loads(library).functions[function.name]


def bodies_within(root: Body) -> Iterator[Body]:
    """The body and all regions in it."""
    waiting = [root]
    while waiting:
        body = waiting.pop()
        yield body
        waiting += [region for operation in body.current_operations() for region in operation.regions]


def _region_names(body: Body) -> Iterator[str]:
    """The names of the functions of all regions, of removed operations too."""
    for operation in body.operations:
        for region in operation.regions:
            assert region.signature is not None
            yield region.signature.name
            yield from _region_names(region)


def operand_sources(operation: Operation) -> Iterator[Operation | Parameter]:
    """The sources of the operands of an operation, then of its control inputs."""
    yield from (tensor.source for tensor in operation.inputs)
    yield from operation.controls


def returned_sources(body: Body) -> Iterator[Operation | Parameter]:
    """The sources of the results of a body, then of its control results."""
    yield from (tensor.source for tensor in body.returned.values())
    yield from body.control_returned.values()


def colocation_partners(node: Node) -> list[str]:
    """The nodes that a node is colocated with."""
    groups = node.attrs.get("_class")
    return [group.removeprefix(_COLOCATED).decode("utf-8", "replace")
            for group in (groups if isinstance(groups, tuple) else ()) if isinstance(group, bytes)]


def is_stateless(node: Node, graph: Graph, context: PassContext) -> bool:
    """True for a node without effects that neither reads a reference nor handles dead values."""
    if node.op in graph.functions or node.op in _DEAD_VALUE_OPS:
        return False
    entry = context.resolve(node)
    return entry is not None and not entry.op.stateful and not any(
        tensor.is_ref for tensor in (*entry.op.inputs, *entry.op.outputs))


def has_effects(operation: Operation, graph: Graph, context: PassContext) -> bool:
    """True where a node in a region of the operation has effects, or is unknown."""
    bodies = (body for region in operation.regions for body in bodies_within(region))
    return any(not inner.regions and not is_stateless(inner.node, graph, context)
               for body in bodies for inner in body.current_operations())


def _source(target: Operation | Parameter | Tensor) -> Operation | Parameter:
    return target.source if isinstance(target, Tensor) else target


class _Arguments(NamedTuple):
    """The arguments of a region that stand for captured tensors, by tensor and by the source of a control token."""

    tensors: Mapping[Tensor, str]
    sources: Mapping[Operation | Parameter, str]


_NO_ARGUMENTS = _Arguments({}, {})


def _spelled(tensor: Tensor, captured: _Arguments) -> Input:
    """A tensor as an input of a node in a function."""
    if tensor in captured.tensors:
        return Input(captured.tensors[tensor], None, 0)
    if isinstance(tensor.source, Parameter):
        return Input(tensor.source.argument.name, None, 0)
    return Input(tensor.source.name, tensor.output, tensor.index)


class _Captures(NamedTuple):
    """The tensors and control tokens from outside that the regions of an operation use, in order."""

    tensors: list[Tensor]
    tokens: list[Operation | Parameter]


class _GraphWriter:
    """Makes nodes of bodies. `regions`: the body of each written region, with its nodes."""

    def __init__(self, tree: RegionTree) -> None:
        self._tree = tree
        self._captures: dict[Operation, _Captures] = {}
        self.regions: list[tuple[Body, list[Node]]] = []

    def write_body(self, body: Body, captured: _Arguments = _NO_ARGUMENTS) -> list[Node]:
        """The nodes of a body. `captured`: the arguments of a region."""
        return [self._write_operation(operation, body, captured) for operation in body.current_operations()]

    def _write_operation(self, operation: Operation, body: Body, captured: _Arguments) -> Node:
        node = operation.node
        tensors, tokens = operation.inputs, operation.controls
        attrs: dict[str, Any] = {}
        if operation.regions:
            captures = self._captures_of(operation)
            tensors, tokens = [*tensors, *captures.tensors], [*tokens, *captures.tokens]
            attrs = self._implied_attributes(operation, captures.tensors)
            self._write_regions(operation, captures.tensors)
        controls = self._controls(tokens, body, captured)
        inputs = [self._graph_input(tensor) if body.signature is None else _spelled(tensor, captured)
                  for tensor in tensors]
        if not operation.regions and operation.name == node.name and tuple(inputs) == node.inputs and (
                tuple(controls) == node.controls):
            return node
        return node.replace(name=operation.name, inputs=inputs, controls=controls, attrs=attrs or None)

    def _graph_input(self, tensor: Tensor) -> Input:
        assert isinstance(tensor.source, Operation)
        index = tensor.index
        for result in self._tree.results(tensor.source.node) if tensor.output is not None else ():
            if result.argument == tensor.output:
                break
            index += len(result.types)
        return Input(tensor.source.name, None, index)

    def _controls(self, tokens: Iterable[Operation | Parameter], body: Body, captured: _Arguments) -> list[str]:
        """The control inputs that a body can name: others are those of the operation around it."""
        names = [_local_name(token, body) or captured.sources.get(token) for token in tokens]
        return [*dict.fromkeys(name for name in names if name is not None)]

    def _captures_of(self, operation: Operation) -> _Captures:
        if operation not in self._captures:
            tensors: dict[Tensor, None] = {}
            tokens: dict[Operation | Parameter, None] = {}
            for region in operation.regions:
                for inner in region.current_operations():
                    captures = self._captures_of(inner) if inner.regions else _Captures([], [])
                    tensors |= dict.fromkeys((*inner.inputs, *captures.tensors))
                    tokens |= dict.fromkeys((*inner.controls, *captures.tokens))
                tensors |= dict.fromkeys(region.returned.values())
                tokens |= dict.fromkeys(region.control_returned.values())
            outer = [tensor for tensor in tensors if not _is_of(tensor.source, operation)]
            sources = {tensor.source for tensor in outer}
            self._captures[operation] = _Captures(outer, [
                token for token in tokens if token not in sources and not _is_of(token, operation)])
        return self._captures[operation]

    def _write_regions(self, operation: Operation, captured: Sequence[Tensor]) -> None:
        used_names = {name for region in operation.regions for name in (
            *(parameter.argument.name for parameter in region.parameters),
            *(inner.name for inner in region.current_operations()))}
        free_names = (name for number in range(len(used_names) + len(captured))
                      if (name := f"arg{number}") not in used_names)
        names = dict(zip(captured, free_names, strict=False))
        scope = _Arguments(names, {tensor.source: name for tensor, name in reversed([*names.items()])})
        arguments = [Argument(name, type=self._tree.type_number(tensor)) for tensor, name in names.items()]
        for index, region in enumerate(operation.regions):
            nodes = self.write_body(region, scope)
            carries = operation.form.loop and index == len(operation.regions) - 1
            region.signature = self._region_signature(region, arguments if carries else [], arguments, scope)
            self.regions.append((region, nodes))

    def _region_signature(self, region: Body, carried: Sequence[Argument], arguments: Sequence[Argument],
                          scope: _Arguments) -> Signature:
        assert region.signature is not None
        signature = region.signature
        outputs = [output for output in signature.outputs if output.name in region.returned]
        used_names = {output.name for output in outputs}
        ret = {name: str(_spelled(tensor, scope)) for name, tensor in region.returned.items()}
        for argument in carried:
            name = f"{argument.name}_result"
            while name in used_names:
                name += "_"
            outputs.append(replace(argument, name=name))
            ret[name] = argument.name
        controls = {name: spelled for name, token in region.control_returned.items()
                    if (spelled := self._controls([token], region, scope))}
        return replace(signature, inputs=(*(parameter.argument for parameter in region.parameters), *arguments),
                       outputs=tuple(outputs), ret=ret, control_outputs=tuple(controls),
                       control_ret={name: spelled[0] for name, spelled in controls.items()})

    def _implied_attributes(self, operation: Operation, captured: Sequence[Tensor]) -> dict[str, Any]:
        """The attributes of a node with regions that follow from its operands."""
        form, node = operation.form, operation.node
        data = [*operation.inputs[form.leading:], *captured]
        types = tuple(dtypes.numbered(self._tree.type_number(tensor)) for tensor in data)
        if not form.loop:
            return {"Tin": types}
        attrs: dict[str, Any] = {"T": types, REGION: len(captured) or True}
        for name in RESULT_SHAPES:
            shapes = node.attrs.get(name)
            if isinstance(shapes, tuple) and shapes and len(shapes) != len(types):
                own = len(types) - len(captured)
                attrs[name] = (*shapes, *(None,) * own)[:own] + (None,) * len(captured)
        return attrs


def _local_name(token: Operation | Parameter, body: Body) -> str | None:
    if token.body is not body:
        return None
    return token.argument.name if isinstance(token, Parameter) else token.name


def _is_of(source: Operation | Parameter, operation: Operation) -> bool:
    """True for a source in a region of the operation itself."""
    return source.body.owner is operation
