"""Loops: the nodes of one frame become a While or, where they do not have its structure, a `_Frame`.

A loop has the structure of a While when each variable is Merge(Enter, NextIteration), followed by a Switch on LoopCond
whose first output only leaves the loop, and every value of the next iteration is alive exactly when LoopCond is true.
Nodes that LoopCond needs become the function `cond`, all others the function `body`. Nodes that both need are copied.

The body of a `_Frame` is one iteration of the frame with all its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import Unimplemented
from ...runtime.contract.structural import (
    ENTERS,
    EXITS,
    FRAME_OP,
    IDENTITY,
    LOOP_COND,
    MERGE,
    MERGES,
    NEXT_ITERATIONS,
    OF_SWITCHES,
    STATELESS_WHILE,
    SWITCH,
    WHILE,
)
from ...runtime.support.records import NamedTuple
from ...runtime.values import dtypes
from ...runtime.values.attribute_values import Func
from ...runtime.values.dtypes import DType
from ..graph.node import Input, Node
from ..graph.rewriting import constant
from ..graph.traversal import ancestors
from .conditionals import FunctionPart, FunctionWriter, sibling_name
from .function_library import FunctionLibrary
from .liveness import Conditional, Liveness, LoopFacts, Region

_MOST_GROUPING_ROUNDS = 8  # in which groups of variables are divided


class LoopNode(NamedTuple):
    """A node that replaces a loop. `exits`: by output of an Exit, the output of the node. `before`: nodes that give
    initial values. `facts`: the facts that liveness depends on."""

    node: Node
    exits: Mapping[Input, Input]
    before: Sequence[Node]
    facts: LoopFacts


class _Variable(NamedTuple):
    """A tensor that changes from one iteration to the next. `tensor`: In the loop. `initial`: Before the loop. `next`:
    Its value in the next iteration, a tensor of the loop."""

    tensor: Input
    initial: Input
    next: Input


@dataclass
class _LoopNodes:
    """The connected nodes of a frame, in topological order, and their roles."""

    nodes: dict[str, Node]
    library: FunctionLibrary
    loops: Mapping[str, LoopFacts]  # loops in this loop

    def __post_init__(self) -> None:
        self.enters = [node for node in self.nodes.values() if node.op in ENTERS]
        self.exits = [node for node in self.nodes.values() if node.op in EXITS]
        first = next((node for node in self.nodes.values() if node.op == LOOP_COND), self.enters[0])
        self.scope = first.name
        self.variables: list[_Variable] = []
        self.constants: dict[Input, Input] = {}  # by tensor in the loop, the tensor before it
        self.before: list[Node] = []
        self.is_plain = True  # False for variables that a While cannot have
        self.controls = self._controls_of_loop()
        self._check_next_iterations()
        self._find_variables()

    def _controls_of_loop(self) -> tuple[str, ...]:
        """Return the nodes before the loop that the loop runs after."""
        controls: dict[str, None] = {}
        for node in self.nodes.values():
            controls.update(dict.fromkeys(node.controls if node.op in ENTERS else [
                name for name in node.controls if name not in self.nodes]))
        return tuple(controls)

    def _check_next_iterations(self) -> None:
        following = {node.name for node in self.nodes.values() if node.op in NEXT_ITERATIONS}
        for node in self.nodes.values():
            if not following.isdisjoint(node.controls) or (
                    node.op not in MERGES and any(tensor.node in following for tensor in node.inputs)):
                raise Unimplemented("only a Merge may take the output of NextIteration", node=node.name, op=node.op,
                                    hint="write the loop as tf.while_loop does")

    def constant(self, preferred_name: str, value: object, controls: Sequence[str] = ()) -> Node:
        array = np.asarray(value)
        node = constant(self.library.node_name(preferred_name), array).replace(controls=controls)
        self.library.record_node(node.name, [dtypes.of_numpy(array.dtype)])
        return node

    def _find_variables(self) -> None:
        variable_enters = {node.name: node for node in self.enters if not node.attrs.get("is_constant")}
        direct = {tensor.node for node in self.nodes.values() for tensor in node.inputs
                  if tensor.node in variable_enters and node.op not in MERGES}
        direct |= {name for node in self.nodes.values() for name in node.controls if name in variable_enters}
        indexed = {tensor.node for node in self.nodes.values() for tensor in node.inputs if tensor.index == 1}
        for merge in [node for node in self.nodes.values() if node.op in MERGES]:
            sources = [self.nodes[tensor.node] for tensor in merge.inputs if tensor.node in self.nodes]
            if not any(source.op in NEXT_ITERATIONS for source in sources):
                direct |= {source.name for source in sources if source.name in variable_enters}
                continue
            self._add_variable(merge, sources, variable_enters, counted=merge.name in indexed)
        for name in direct:
            self._add_first_only(variable_enters[name])
        self.constants = {Input(node.name): node.inputs[0] for node in self.enters if node.name not in variable_enters}

    def _add_variable(
        self, merge: Node, sources: Sequence[Node], variable_enters: Mapping[str, Node], *, counted: bool
    ) -> None:
        first = next((index for index, source in enumerate(sources) if source.name in variable_enters), None)
        if first is None or len(merge.inputs) != 2 or sources[1 - first].op not in NEXT_ITERATIONS:
            raise Unimplemented("a Merge that takes NextIteration must have two inputs, the other one an Enter that is "
                                "not constant", node=merge.name, op=merge.op,
                                hint="write the loop as tf.while_loop does")
        enter, following = sources[first], sources[1 - first]
        variable_tensor = Input(merge.name)
        if merge.controls:  # the Merge stays, as it waits for nodes that may be dead
            variable_tensor = Input(self.library.node_name(f"{merge.name}/variable"))
            self.library.record_node(variable_tensor.node, [self.library.dtype(Input(merge.name))])
        self.variables.append(_Variable(variable_tensor, enter.inputs[0], Input(following.name)))
        if merge.controls:
            self.is_plain = False
            self.nodes[merge.name] = merge.replace(op=MERGE, inputs=[variable_tensor], attrs={"N": 1})
        else:
            del self.nodes[merge.name]
        if counted:
            start = self.constant(f"{merge.name}/value_index", np.int32(first))
            later = self.constant(f"{merge.name}/value_index", np.int32(1 - first), [following.name])
            self.before.append(start)
            self.nodes[later.name] = later
            self.variables.append(_Variable(Input(merge.name, None, 1), Input(start.name), Input(later.name)))

    def _add_first_only(self, enter: Node) -> None:
        """Add a variable that is alive in the first iteration only: its next value is an output of a Switch that is
        never chosen."""
        self.is_plain = False
        never = self.constant(f"{enter.name}/never", np.bool_(0))
        dtype = self.library.dtype(Input(enter.name))
        switch = Node(self.library.node_name(f"{enter.name}/Switch"), SWITCH, [enter.name, never.name],
                      attrs={"T": dtype})
        self.library.record_node(switch.name, [dtype, dtype])
        self.nodes |= {never.name: never, switch.name: switch}
        self.variables.append(_Variable(Input(enter.name), enter.inputs[0], Input(switch.name, None, 1)))

    def show_dead_variables(self) -> None:
        """Add a node for each variable that control edges come from, since the variable may be dead."""
        before = {name for node in self.nodes.values() for name in node.controls}
        for index, (tensor, initial, following) in enumerate(self.variables):
            if tensor.node in before and tensor.node not in self.iteration_nodes():
                variable_tensor = Input(self.library.node_name(f"{tensor.node}/variable"))
                dtype = self.library.dtype(tensor)
                self.library.record_node(variable_tensor.node, [dtype])
                self.nodes = {tensor.node: Node(tensor.node, IDENTITY, [variable_tensor], attrs={"T": dtype})} | {
                    name: node for name, node in self.nodes.items() if name != tensor.node}
                self.variables[index] = _Variable(variable_tensor, initial, following)

    def function_arguments(self) -> tuple[dict[Input, Input], list[Input], list[DType]]:
        """Return the arguments of the loop's functions by tensor of the loop, the inputs of the loop, and the types."""
        local: dict[Input, Input] = {}
        inputs: list[Input] = []
        types: list[DType] = []
        for variable in self.variables:
            local[variable.tensor] = self.library.argument_tensor(len(inputs))
            inputs.append(variable.initial)
            types.append(self.library.dtype(variable.tensor))
        arguments_by_source: dict[Input, Input] = {}  # several Enters may take the same constant into the loop
        for tensor, outside in self.constants.items():
            if outside not in arguments_by_source:
                arguments_by_source[outside] = self.library.argument_tensor(len(inputs))
                inputs.append(outside)
                types.append(self.library.dtype(outside))
            local[tensor] = arguments_by_source[outside]
        return local, inputs, types

    def iteration_nodes(self) -> dict[str, Node]:
        """Return the nodes of one iteration."""
        return {name: node for name, node in self.nodes.items() if node.op not in ENTERS}

    def tensor_before_repetition(self, tensor: Input) -> Input:
        """Return the tensor that an Exit or NextIteration without control inputs repeats; of others, the own one."""
        node = self.nodes[tensor.node]
        repeats = node.op in EXITS or node.op in NEXT_ITERATIONS
        return node.inputs[0] if repeats and not node.controls else tensor


def functional_loop(nodes: dict[str, Node], library: FunctionLibrary, loops: Mapping[str, LoopFacts]) -> LoopNode:
    """Return the node that replaces a loop.

    `nodes`: The connected nodes of its frame, in topological order but for edges from NextIteration: with its Enters
    and Exits, and with loops in it as nodes. `loops`: Facts about these nodes.

    Raises Unimplemented for a Merge of NextIterations that is not written as tf.while_loop does.
    """
    loop = _LoopNodes(nodes, library, loops)
    while_node = _WhileAttempt(loop).while_node() if loop.is_plain else None
    return while_node or _make_frame(loop)


class _WhileAttempt:
    """The attempt to write a loop as While."""

    def __init__(self, loop: _LoopNodes) -> None:
        base = Region()
        source_regions = {tensor.node: base for tensor in loop.constants}
        source_regions |= {variable.tensor.node: base for variable in loop.variables}
        self.loop, self.library = loop, loop.library
        self.nodes = loop.iteration_nodes()
        self.live = Liveness(self.nodes, source_regions, base, loop.loops)
        self.local, self.inputs, self.types = loop.function_arguments()

    def while_node(self) -> LoopNode | None:
        """Return the While, or None when the loop does not have its structure."""
        conditions = [node for node in self.nodes.values() if node.op == LOOP_COND]
        if len(conditions) != 1:
            return None
        condition = conditions[0]
        choice = self.live.conditional(Input(condition.name))
        if choice is None or not self._next_values_are_alive(choice):
            return None
        head, body = self._split_by_liveness(choice)
        if condition.name not in head or not self._is_separable(head, body, choice):
            return None
        tested = ancestors(head, [condition.name])
        copied = self._nodes_shared_with_body(head, body)
        if any(self.library.has_effects(name) and (name in copied or name not in tested) for name in head):
            return None
        choice.structured = False  # its sides are no branches of an If
        return self._make_while(condition, choice, {name: node for name, node in head.items() if name in tested},
                                {name: head.get(name) or body[name] for name in self.nodes
                                 if name in body or name in copied})

    def _next_values_are_alive(self, choice: Conditional) -> bool:
        """True when the variables have new values exactly if the loop goes on."""
        return all(self.live.regions[variable.next.node] is choice.sides[1] for variable in self.loop.variables)

    def _split_by_liveness(self, choice: Conditional) -> tuple[dict[str, Node], dict[str, Node]]:
        """Return the nodes that are alive in every iteration, and the nodes that are alive if the loop goes on.

        The latter take the data of the loop's Switches instead of their outputs."""
        head, body = {}, {}
        for name, node in self.nodes.items():
            side = self._side_of_region(self.live.regions[name], choice)
            if side == 1:
                body[name] = node.replace(inputs=[self._switched_data(tensor, choice) for tensor in node.inputs])
            elif side is None and self.live.gates.get(name) is not choice:
                head[name] = node
        return head, body

    @staticmethod
    def _side_of_region(region: Region, choice: Conditional) -> int | None:
        for side, inside in enumerate(choice.sides):
            if inside.is_around(region):
                return side
        return None

    def _switched_data(self, tensor: Input, choice: Conditional) -> Input:
        """Return the tensor that an output of the loop's Switches repeats."""
        return self.nodes[tensor.node].inputs[0] if self.live.gates.get(tensor.node) is choice else tensor

    def _is_separable(self, head: Mapping[str, Node], body: Mapping[str, Node], choice: Conditional) -> bool:
        """True when the head needs nothing of the body, and only variables and constants leave the loop."""
        for name, node in self.nodes.items():
            if name in head:
                sources = (*(tensor.node for tensor in node.inputs), *node.controls)
                if any(source in self.nodes and source not in head for source in sources):
                    return False
            elif name not in body and self.live.gates.get(name) is not choice and (
                    node.op not in EXITS or node.controls):
                return False
        return all(self._switched_data(end.inputs[0], choice) in self.local for end in self.loop.exits)

    def _nodes_shared_with_body(self, head: Mapping[str, Node], body: Mapping[str, Node]) -> set[str]:
        """Return the nodes of the head whose values the body needs."""
        copied: set[str] = set()
        stack = [tensor.node for node in body.values() for tensor in node.inputs]
        while stack:
            name = stack.pop()
            if name in head and name not in copied:
                copied.add(name)
                stack += [tensor.node for tensor in head[name].inputs]
        return copied

    def _make_while(
        self, condition: Node, choice: Conditional, head: Mapping[str, Node], body: Mapping[str, Node]
    ) -> LoopNode:
        loop, library = self.loop, self.library
        name = library.node_name(sibling_name(loop.scope, WHILE))
        functions = [library.function_name(f"{name}/{part}") for part in ("cond", "body")]
        tested = Input(condition.name) if condition.controls else condition.inputs[0]
        new = [self._switched_data(loop.tensor_before_repetition(variable.next), choice) for variable in loop.variables]
        same = _one_by_argument(loop.constants, self.local)
        for function, nodes, results in zip(functions, (head, body), ([tested], [*new, *same]), strict=True):
            part = FunctionPart(function, [*nodes], self.local, self.types, results)
            FunctionWriter(nodes, self.live, library).add_function(part)
        has_effects = any(library.has_effects(member) for member in (*head, *body))
        attrs = {"T": tuple(self.types), "cond": Func(functions[0]), "body": Func(functions[1]),
                 "parallel_iterations": loop.enters[0].attrs.get("parallel_iterations", 10), OF_SWITCHES: True}
        node = Node(name, WHILE if has_effects else STATELESS_WHILE, self.inputs, controls=loop.controls, attrs=attrs)
        library.record_node(name, self.types, has_effects=has_effects)
        positions = {library.argument_tensor(index): index for index in range(len(self.types))}
        exits = {Input(end.name): Input(name, None, positions[self.local[self._switched_data(end.inputs[0], choice)]])
                 for end in loop.exits}
        read = {tensor for member in head.values() for tensor in member.inputs} | {tested}
        decisive = {positions[self.local[tensor]] for tensor in read if tensor in self.local}
        return LoopNode(node, exits, loop.before, LoopFacts(len(loop.variables), decisive))


def _one_by_argument(tensors: Iterable[Input], local: Mapping[Input, Input]) -> list[Input]:
    """Return the first of the tensors for each argument, in order."""
    first: dict[Input, Input] = {}
    for tensor in tensors:
        first.setdefault(local[tensor], tensor)
    return [*first.values()]


def _make_frame(loop: _LoopNodes) -> LoopNode:
    """Return the loop as `_Frame`."""
    library = loop.library
    loop.show_dead_variables()
    nodes = loop.iteration_nodes()
    live = _frame_liveness(loop, nodes)
    certain = _exits_are_alive(loop, live)
    local, inputs, types = loop.function_arguments()
    new = [loop.tensor_before_repetition(variable.next) for variable in loop.variables]
    results = [*new, *(loop.tensor_before_repetition(Input(end.name)) for end in loop.exits)]
    live.keep_outside([tensor for tensor in results if tensor.node in nodes], ())
    name = library.node_name(sibling_name(loop.scope, "Frame"))
    function = library.function_name(f"{name}/body")
    FunctionWriter(nodes, live, library).add_function(FunctionPart(function, list(nodes), local, types, results))
    types_out = [library.dtype(Input(end.name)) for end in loop.exits]
    count = len(loop.variables)
    attrs = {"T": tuple(types), "Tout": tuple(types_out), "body": Func(function), "variables": count}
    library.record_node(name, types_out, has_effects=True)
    exits = {Input(end.name): Input(name, None, index) for index, end in enumerate(loop.exits)}
    node = Node(name, FRAME_OP, inputs, controls=loop.controls, attrs=attrs)
    return LoopNode(node, exits, loop.before, LoopFacts(count, outputs_may_die=not certain))


def _frame_liveness(loop: _LoopNodes, nodes: Mapping[str, Node]) -> Liveness:
    """Return the liveness of one iteration, in which variables may be dead.

    All variables are alive at first. Variables whose next values are in one region stay alive together.
    """
    groups = [0] * len(loop.variables)
    for _ in range(_MOST_GROUPING_ROUNDS):
        live = _liveness_by_groups(loop, nodes, groups)
        numbers: dict[tuple[int, Region], int] = {}
        divided = [numbers.setdefault((group, live.region_of(variable.next)), len(numbers))
                   for variable, group in zip(loop.variables, groups, strict=True)]
        if divided == groups:
            return live
        groups = divided
    return _liveness_by_groups(loop, nodes, range(len(groups)))


def _liveness_by_groups(loop: _LoopNodes, nodes: Mapping[str, Node], groups: Sequence[int]) -> Liveness:
    """Return the liveness of an iteration in which the variables of each group are alive together."""
    base = Region()
    regions = {group: base.opaque() for group in groups} if len(set(groups)) > 1 else dict.fromkeys(groups, base)
    source_regions = {tensor.node: base for tensor in loop.constants}
    source_regions |= {variable.tensor.node: regions[group]
                       for variable, group in zip(loop.variables, groups, strict=True)}
    return Liveness(nodes, source_regions, base, loop.loops)


def _exits_are_alive(loop: _LoopNodes, live: Liveness) -> bool:
    """True when all Exits have values in the last iteration, and in no other one."""
    going_on = {live.region_of(variable.next) for variable in loop.variables}
    leaving = {live.regions[end.name] for end in loop.exits}
    if not going_on:
        return leaving <= {live.base}
    side = going_on.pop()
    choice = side.conditional
    return not going_on and choice is not None and choice.region is live.base and (
        len(choice.sides) == 2 and leaving <= {choice.sides[1 - side.side]})
