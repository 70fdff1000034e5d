"""Inlining: replaces calls of a graph's functions by the functions' nodes, until no call is left.

Consumers of the call's outputs read from the function's nodes instead. The call itself becomes a NoOp behind the nodes
that the function runs for their effects (`control_ret`), so that later control edges hold. The function's first nodes
inherit the call's control inputs. Recursive calls are left, and so are calls that are nested too deep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import HealdError, InvalidArgument
from ...runtime.contract.op import REQUIRED
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import CALLS, CONST, IDENTITY, IDENTITY_N, NO_OP
from ...runtime.support.records import NamedTuple
from ...runtime.values.attribute_values import Func
from ..graph.attr_value import AttrPlaceholder
from ..graph.expansion import ExpansionLimit
from ..graph.function import Function
from ..graph.graph import Graph, Input, Node
from ..graph.rewriting import new_name
from .colocation import ATTRIBUTE, colocation_partners

DEEPEST_NESTED_CALLS = 100  # nested calls
_COLOCATED = b"loc:@"


class Inlined(NamedTuple):
    """A graph without calls.

    `replacements`: the outputs of calls to the tensors that replace them.
    `enclosing_functions`: the inlined nodes to the names of the functions around them, the outermost first.
    """

    graph: Graph
    replacements: dict[Input, Input]
    enclosing_functions: dict[str, tuple[str, ...]]


@dataclass
class Inlining:
    """The nodes of a graph while calls in it are replaced.

    `pins`: values may be dead, or belong to a loop's frame. There constants of a function wait for its call as its
        other first nodes do, to be dead with them and of that frame.
    """

    functions: Mapping[str, Function]
    ops: OpRegistry
    nodes: dict[str, Node]
    outer_functions: tuple[str, ...] = ()  # the functions around the whole graph
    pins: bool = False
    # inlined node -> the functions around it
    enclosing_functions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replacements: dict[Input, Input] = field(default_factory=dict)  # output of a call -> the tensor that replaces it

    def __post_init__(self) -> None:
        self.used_names = set(self.nodes)
        self.limit = ExpansionLimit(len(self.nodes), self.functions)
        self.text = 0  # characters that names of calls add to names of nodes
        self.replaced: dict[str, Node] = {}  # calls by name
        self.mortal: dict[str, set[int]] = {}  # by call whose control inputs are dead with it: arguments that are, too
        # nodes that may be dead: those of calls in `mortal`, and of calls among these
        self.mortal_nodes: set[str] = set()
        self.calls_with_effects: set[str] = set()  # calls of functions that have effects

    def expand(self, call: Node, function: Function, attrs: Mapping[str, Any]) -> list[Node]:
        """Add the nodes that replace a call, record its outputs, and return the nodes.

        Raises InvalidArgument when the call does not fit its function, ResourceExhausted for too many nodes.
        """
        if len(call.inputs) != len(function.inputs):
            raise InvalidArgument(f"function '{function.name}' takes {len(function.inputs)} arguments, "
                                  f"{len(call.inputs)} are given", node=call.name, op=call.op)
        self.text += len(call.name) * len(function.nodes)
        self.limit.check(len(self.nodes) + len(function.nodes), self.text, call)
        self.replaced[call.name] = call
        if function.control_ret:
            self.calls_with_effects.add(call.name)
        body = _InlinedBody(self, call, function, attrs)
        for index, output in enumerate(body.output_tensors()):
            self.replacements[Input(call.name, None, index)] = output
        self.nodes[call.name] = Node(call.name, NO_OP, controls=body.effect_controls(), device=call.device)
        new_nodes = [*body.before, *(body.graph_node(node) for node in function.nodes.values())]
        if body.pins:
            self.mortal_nodes.update(node.name for node in new_nodes)
        self.nodes.update((node.name, node) for node in new_nodes)
        inside = (*self.enclosing_functions.get(call.name, self.outer_functions), function.name)
        self.enclosing_functions.update((node.name, inside) for node in new_nodes)
        return new_nodes

    def function_of_call(self, node: Node) -> tuple[Function, Mapping[str, Any]] | None:
        """Return the function that a node calls, with its attributes.

        None for other nodes, for recursive calls, and for calls that are nested too deep.
        """
        target = node.attrs.get("f") if node.op in CALLS else Func(node.op, node.attrs)
        inside = self.enclosing_functions.get(node.name, self.outer_functions)
        if not isinstance(target, Func) or target.name in inside or len(inside) >= DEEPEST_NESTED_CALLS:
            return None
        function = self.functions.get(target.name)
        return None if function is None else (function, target.attrs)

    def make_graph(self, graph: Graph, results: Collection[str] = ()) -> Graph:
        """Return the graph after all calls are replaced. Nodes that it called stay under the names `results`: each is
        an Identity or IdentityN of its outputs then."""
        nodes = self.nodes | {name: self._identity_of_results(self.replaced[name])
                              for name in results if name in self.replaced}
        rewired = [self._with_replaced_inputs(node) for node in nodes.values()]
        return graph.replace(without=graph.nodes.keys() - nodes.keys(), nodes=rewired)

    def _identity_of_results(self, call: Node) -> Node:
        types = call.attrs.get("Tout", call.attrs.get("T", ()))
        if not types:
            return self.nodes[call.name]
        op, attr = (IDENTITY, types[0]) if len(types) == 1 else (IDENTITY_N, types)
        waits = self.nodes[call.name].controls if call.name in self.calls_with_effects else ()
        return Node(call.name, op, [Input(call.name, None, index) for index in range(len(types))], device=call.device,
                    controls=waits, attrs={"T": attr})

    def _with_replaced_inputs(self, node: Node) -> Node:
        inputs = [self.final_tensor(tensor) for tensor in node.inputs]
        node = node if inputs == list(node.inputs) else node.replace(inputs=inputs)
        partners = colocation_partners(node)
        if self.replaced.keys().isdisjoint(partners):
            return node
        groups = (_COLOCATED + self._final_partner(name).encode("utf-8", "surrogateescape") for name in partners)
        return node.replace(attrs={ATTRIBUTE: tuple(dict.fromkeys(groups))})

    def _final_partner(self, name: str) -> str:
        """Return the node of a call's first output for colocation: nothing but controls needs the call's own name."""
        source = self.final_tensor(Input(name, None, 0))
        return source.node if source.node in self.nodes else name

    def final_tensor(self, tensor: Input) -> Input:
        """Return the tensor that replaces this one once all calls are inlined."""
        passed = []
        while tensor in self.replacements:
            passed.append(tensor)
            tensor = self.replacements[tensor]
        self.replacements.update(dict.fromkeys(passed, tensor))
        return tensor


@dataclass
class _InlinedBody:
    """The nodes of a function, as they replace one call."""

    graph: Inlining
    call: Node
    function: Function
    attrs: Mapping[str, Any]

    def __post_init__(self) -> None:
        arguments = (arg.name for arg in self.function.inputs)
        self.arguments = dict(zip(arguments, self.call.inputs, strict=True))
        self.names = {name: new_name(f"{self.call.name}/{name}", self.graph.used_names) for name in self.function.nodes}
        self.before: list[Node] = []
        self.waits = self.call.controls
        state, mortal = self.graph, self.graph.mortal.get(self.call.name, set())
        self.pins = state.pins or self.call.name in state.mortal_nodes or self.call.name in state.mortal
        self.mortal = {arg.name for index, arg in enumerate(self.function.inputs) if index in mortal}
        if len(self.waits) > 1:  # then each first node needs one edge only
            self.waits = self._add_gate(self.waits)
        elif self.pins and not self.waits and self.call.inputs:
            self.waits = self._add_pivots()

    def _add_gate(self, waits: Sequence[str]) -> tuple[str, ...]:
        name = new_name(f"{self.call.name}/called", self.graph.used_names)
        self.before.append(Node(name, NO_OP, controls=waits, device=self.call.device))
        return (name,)

    def _add_pivots(self) -> tuple[str, ...]:
        """Add Identities of the arguments, for nodes that would wait for nothing. One dead argument is enough."""
        types = [dtype for arg in self.function.inputs for dtype in arg.expand(self.attrs)]
        pivots = [Node(new_name(f"{self.call.name}/pivot", self.graph.used_names), IDENTITY, [source],
                       device=self.call.device, attrs={"T": dtype})
                  for source, dtype in zip(self.call.inputs, types, strict=True)]
        self.before += pivots
        names = [node.name for node in pivots]
        return self._add_gate(names) if len(names) > 1 else tuple(names)

    def output_tensors(self) -> list[Input]:
        return [self.graph_tensor(self.function.ret[output.name]) for output in self.function.outputs]

    def effect_controls(self) -> list[str]:
        control_results = self.graph_controls(self.function.control_ret.values())
        return control_results or list(self.waits)

    def graph_node(self, node: Node) -> Node:
        inputs = [self.graph_tensor(tensor) for tensor in node.inputs]
        controls = self.graph_controls(node.controls)
        if self._waits_for_call(node):
            controls = list(dict.fromkeys((*controls, *self.waits)))
        attrs = {key: self._filled_attribute(value, node) for key, value in node.attrs.items()}
        changed = {key: value for key, value in attrs.items() if value is not node.attrs[key]}
        if "_class" in attrs:
            changed["_class"] = self._class_within_body(attrs["_class"])
        return node.replace(name=self.names[node.name], inputs=inputs, controls=controls, attrs=changed,
                            device=node.device or self.call.device)

    def _waits_for_call(self, node: Node) -> bool:
        """True for a first node of the function, unless one of its inputs is dead whenever the control input is."""
        first = all(name in self.arguments for name in (*(i.node for i in node.inputs), *node.controls))
        return first and (self.pins or node.op != CONST) and all(i.node not in self.mortal for i in node.inputs)

    def graph_controls(self, names: Iterable[str]) -> list[str]:
        where = (self.arguments[n].node if n in self.arguments else self.names[n] for n in names)
        return list(dict.fromkeys(where))

    def graph_tensor(self, tensor: Input) -> Input:
        """Return the tensor of the graph that replaces a tensor of the function."""
        if tensor.node in self.arguments:
            return self.arguments[tensor.node]
        node = self.function.nodes[tensor.node]
        return Input(self.names[tensor.node], None, self._output_index(node, tensor))

    def _output_index(self, node: Node, tensor: Input) -> int:
        """Return the index of an output. For a node that cannot run any index serves: its consumers get its error."""
        if tensor.output is None:
            return tensor.index
        called = self.graph.functions.get(node.op)
        try:
            op = self.graph.ops.get(node.op)
            outputs, declared = op.outputs, op.attrs
        except HealdError:
            if called is None:
                return tensor.index
            outputs, declared = called.outputs, {}
        attrs: dict[str, Any] = {name: a.default for name, a in declared.items() if a.default is not REQUIRED}
        attrs |= {key: self._filled_attribute(value, node) for key, value in node.attrs.items()}
        start = 0
        for arg in outputs:
            if arg.name == tensor.output:
                break
            start += _tensor_count(arg, attrs)
        return start + tensor.index

    def _filled_attribute(self, value: Any, node: Node) -> Any:
        """Return an attribute's value with the function's attributes filled in.

        Raises InvalidArgument for an attribute that the call does not give.
        """
        if isinstance(value, AttrPlaceholder):
            if value.name not in self.attrs:
                raise InvalidArgument(f"function '{self.function.name}' is called without its attribute "
                                      f"'{value.name}'", node=self.call.name, op=self.call.op)
            return self.attrs[value.name]
        if isinstance(value, Func) and any(isinstance(v, AttrPlaceholder) for v in value.attrs.values()):
            return Func(value.name, {key: self._filled_attribute(v, node) for key, v in value.attrs.items()})
        return value

    def _class_within_body(self, groups: Any) -> tuple[bytes, ...]:
        """Keep colocation with nodes of the function. Other partners belong to another graph."""
        names = [item.removeprefix(_COLOCATED).decode("utf-8", "replace") for item in groups
                 if isinstance(item, bytes)] if isinstance(groups, tuple) else []
        return tuple(_COLOCATED + self.names[name].encode() for name in names if name in self.names)


def _tensor_count(arg: Any, attrs: Mapping[str, Any]) -> int:
    """Return the number of tensors of an output."""
    if arg.type_list_attr is not None:
        types = attrs.get(arg.type_list_attr)
        return len(types) if isinstance(types, tuple) else 0
    number = attrs.get(arg.number_attr) if arg.number_attr is not None else 1
    return number if isinstance(number, int) else 0


def inline(
    graph: Graph, ops: OpRegistry, kept_calls: Collection[str] = (), outer_functions: tuple[str, ...] = (), *,
    pins: bool = False, results: Collection[str] = (),
) -> Inlined:
    """Replace the calls of a graph's functions, but for the nodes named in `kept_calls`.

    `outer_functions`: the functions that the whole graph belongs to; their calls are recursive.
    `pins`: as of `Inlining`.
    `results`: names of calls under which Identities give their outputs afterwards.

    Raises InvalidArgument for calls that do not fit their functions, ResourceExhausted for too many nodes.
    """
    state = Inlining(graph.functions, ops, dict(graph.nodes), outer_functions, pins)
    waiting = [node for node in graph if node.name not in kept_calls]
    while waiting:
        node = waiting.pop()
        called = state.function_of_call(node)
        if called is not None:
            waiting += state.expand(node, *called)
    if not state.replaced:
        return Inlined(graph, {}, {})
    inlined_graph = state.make_graph(graph, results)
    return Inlined(inlined_graph, {tensor: state.final_tensor(tensor) for tensor in state.replacements},
                   state.enclosing_functions)
