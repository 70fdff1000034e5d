"""Pass `lower-control-flow`, on request: If, Case and While become control flow of TensorFlow 1, without functions.

The nodes and edges are those of TensorFlow's own lowering (lower_if_op.cc, lower_case_op.cc, lower_while_op.cc), apart
from numbers in names and colocation: If becomes Switch and Merge, Case becomes _SwitchN and Merge, While becomes Enter,
Merge, LoopCond, Switch, NextIteration and Exit. Bodies are inlined. Calls are inlined too, for they may hide further
control flow; recursive calls stay. Consumers read Merges and Exits. The node itself stays as a NoOp behind them, for
control edges; a kept node is an Identity or IdentityN of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ....errors import InvalidArgument, Unimplemented
from ....runtime.contract.graph_pass import PassContext
from ....runtime.contract.structural import (
    CASES,
    ENTER,
    EXIT,
    IDENTITY,
    IFS,
    LOOP_COND,
    MERGE,
    NEXT_ITERATION,
    NO_OP,
    STATEFUL_CALL,
    SWITCH,
    SWITCH_N,
    V1_CONTROL_FLOW,
    WHILES,
)
from ....runtime.values import dtypes
from ....runtime.values.attribute_values import Func
from ....runtime.values.dtypes import DType
from ...graph.graph import Function, Graph, Input, Node
from ...graph.rewriting import new_name
from ..function_body import with_partitioned_calls
from ..inline import Inlining


def lower_control_flow(graph: Graph, context: PassContext) -> Graph:
    """Raises InvalidArgument for nodes that do not fit their functions, Unimplemented for conditions that are not of
    type bool, ResourceExhausted for too many nodes."""
    calls = with_partitioned_calls(graph)
    pins = any(node.op in V1_CONTROL_FLOW for node in graph)
    state = Inlining(calls.functions, context.ops, dict(calls.nodes), pins=pins)
    waiting = [*calls]
    while waiting:
        node = waiting.pop()
        lowering = _LOWERINGS.get(node.op)
        called = None if lowering else state.function_of_call(node)
        if lowering is not None:
            waiting += _Lowering(state, node).make_nodes(lowering)
        elif called is not None:
            waiting += state.expand(node, *called)
    return with_partitioned_calls(state.make_graph(calls, context.kept)) if state.replaced else graph


class _Lowering:
    """The nodes that replace one node of functional control flow."""

    def __init__(self, state: Inlining, node: Node) -> None:
        self.node, self._state = node, state
        self.nodes: list[Node] = []
        self.invariant: set[Input] = set()  # tensors that are never dead within a loop

    def make_nodes(self, lowering: Callable[[_Lowering], tuple[Sequence[Input], Sequence[str]]]) -> list[Node]:
        """Add the nodes of a lowering, which returns the results and the nodes that end it, to the graph."""
        results, ends = lowering(self)
        state, name = self._state, self.node.name
        state.replaced[name] = self.node
        if any(function.control_ret for function in self._functions()):
            state.calls_with_effects.add(name)
        state.replacements.update({Input(name, None, index): result for index, result in enumerate(results)})
        state.nodes[name] = Node(name, NO_OP, controls=ends, device=self.node.device)
        state.nodes.update((node.name, node) for node in self.nodes)
        if name in state.mortal_nodes:
            state.mortal_nodes.update(node.name for node in self.nodes)
        inside = state.enclosing_functions.get(name, state.outer_functions)
        state.enclosing_functions.update((node.name, inside) for node in self.nodes)
        return self.nodes

    def add_node(
        self, label: str, op: str, inputs: Sequence[Input], *, controls: Sequence[str] = (), **attrs: Any
    ) -> Input:
        """Add a node, and return its first output."""
        name = new_name(f"{self.node.name}/{label}", self._state.used_names)
        self.nodes.append(Node(name, op, inputs, controls=controls, device=self.node.device, attrs=attrs))
        return Input(name)

    def add_call(self, label: str, function: str, arguments: Sequence[Input], types: tuple[tuple[DType, ...],
             tuple[DType, ...]], control: Input, index: int | None = None) -> str:
        """Add a call of the function in an attribute, which waits for `control`, and return its name."""
        func = self.node.attrs.get(function)
        func = func[index] if index is not None and isinstance(func, tuple) else func
        if not isinstance(func, Func):
            raise InvalidArgument(f"attribute '{function}' names no function", node=self.node.name, op=self.node.op)
        name = self.add_node(label, STATEFUL_CALL, arguments, controls=[control.node], f=func, Tin=types[0],
                             Tout=types[1]).node
        alive = {*self.invariant, *self.node.inputs}
        self._state.mortal[name] = {at for at, argument in enumerate(arguments) if argument not in alive}
        return name

    def _functions(self) -> Iterator[Function]:
        for value in self.node.attrs.values():
            for func in value if isinstance(value, tuple) else (value,):
                if isinstance(func, Func) and func.name in self._state.functions:
                    yield self._state.functions[func.name]

    def function_of_attribute(self, attr: str) -> Function | None:
        """Return the function that an attribute names, if the graph has it."""
        func = self.node.attrs.get(attr)
        return self._state.functions.get(func.name) if isinstance(func, Func) else None

    def type_list(self, attr: str) -> tuple[DType, ...]:
        attribute = self.node.attrs.get(attr, ())
        if not isinstance(attribute, tuple) or not all(isinstance(dtype, DType) for dtype in attribute):
            raise InvalidArgument(f"attribute '{attr}' is no list of types", node=self.node.name, op=self.node.op)
        return attribute

    def typed_inputs(self, inputs: Sequence[Input], types: Sequence[DType]) -> list[tuple[Input, DType]]:
        if len(inputs) != len(types):
            raise InvalidArgument(f"the node has {len(inputs)} arguments, its attributes give {len(types)} types",
                                  node=self.node.name, op=self.node.op)
        return [*zip(inputs, types, strict=True)]


def _not_bool(node: Node) -> Unimplemented:
    return Unimplemented(f"the condition of '{node.name}' is not of type bool, as a Switch needs", node=node.name,
                         op=node.op, hint="put a comparison in front of it")


def _output(tensor: Input, index: int) -> Input:
    return tensor._replace(index=index)


def _if(lowering: _Lowering) -> tuple[list[Input], list[str]]:
    node = lowering.node
    if node.attrs.get("Tcond") is not dtypes.bool_:
        raise _not_bool(node)
    predicate, *arguments = node.inputs
    switch = lowering.add_node("switch_pred", SWITCH, [predicate, predicate], controls=node.controls, T=dtypes.bool_)
    pivots = [lowering.add_node(f"pivot_{side}", IDENTITY, [_output(switch, index)], T=dtypes.bool_)
              for index, side in enumerate("ft")]
    switches = [lowering.add_node(source.node.rpartition("/")[2], SWITCH, [source, predicate], T=dtype)
                for source, dtype in lowering.typed_inputs(arguments, lowering.type_list("Tin"))]
    return _branches(lowering, switches, pivots, [("else", "else_branch", None), ("then", "then_branch", None)])


def _case(lowering: _Lowering) -> tuple[list[Input], list[str]]:
    node = lowering.node
    branch_index, *arguments = node.inputs
    branches = node.attrs.get("branches", ())
    count = len(branches)
    switch = lowering.add_node("branch_index", SWITCH_N, [branch_index, branch_index], controls=node.controls,
                               T=dtypes.int32, num_outs=count)
    pivots = [lowering.add_node("pivot", IDENTITY, [_output(switch, index)], T=dtypes.int32) for index in range(count)]
    switches = [lowering.add_node(source.node.rpartition("/")[2], SWITCH_N, [source, branch_index], T=dtype,
                                  num_outs=count)
                for source, dtype in lowering.typed_inputs(arguments, lowering.type_list("Tin"))]
    return _branches(lowering, switches, pivots, [("branch", "branches", index) for index in range(count)])


def _branches(
    lowering: _Lowering, switches: Sequence[Input], pivots: Sequence[Input],
    functions: Sequence[tuple[str, str, int | None]],
) -> tuple[list[Input], list[str]]:
    """Add the calls of branches and the Merges behind them. Branch i reads output i of every Switch."""
    types = lowering.type_list("Tin"), lowering.type_list("Tout")
    calls = [lowering.add_call(label, function, [_output(switch, i) for switch in switches], types, pivots[i], index)
             for i, (label, function, index) in enumerate(functions)]
    merges = [lowering.add_node("merge", MERGE, [Input(call, None, i) for call in calls], T=dtype, N=len(calls))
              for i, dtype in enumerate(types[1])]
    pivot_type = dtypes.bool_ if lowering.node.op in IFS else dtypes.int32
    # TensorFlow's Merge waits for the calls itself. Its graph optimizer, run afterwards, loses the live side then.
    ends = [lowering.add_node("branch_end", IDENTITY, [pivot], controls=[call], T=pivot_type)
            for pivot, call in zip(pivots, calls, strict=True)]
    return merges, [lowering.add_node("branch_executed", MERGE, ends, T=pivot_type, N=len(ends)).node]


def _while(lowering: _Lowering) -> tuple[list[Input], list[str]]:
    node, types = lowering.node, lowering.type_list("T")
    carried = [index for index in range(len(types)) if not _is_invariant(lowering, index)] or [*range(len(types))]
    if not carried:
        raise Unimplemented(f"the loop '{node.name}' has no values, so it has no frame", node=node.name, op=node.op)
    tested = lowering.function_of_attribute("cond")
    if tested is not None and [output.dtype for output in tested.outputs] != [dtypes.bool_]:
        raise _not_bool(node)
    before = [lowering.add_node("LoopControlInputs", NO_OP, (), controls=node.controls).node] if node.controls else []
    frame = {"frame_name": node.name.encode(), "parallel_iterations": node.attrs.get("parallel_iterations", 10)}
    enters = [lowering.add_node("enter", ENTER, [source], controls=before, T=dtype, is_constant=index not in carried,
                                **frame)
              for index, (source, dtype) in enumerate(lowering.typed_inputs(node.inputs, types))]
    lowering.invariant = {enter for index, enter in enumerate(enters) if index not in carried}
    heads, bodies = [*enters], [*enters]
    for index in carried:
        heads[index] = lowering.add_node("merge", MERGE, [enters[index]] * 2, T=types[index], N=2)
    condition = lowering.add_call("cond", "cond", heads, (types, (dtypes.bool_,)), heads[carried[0]])
    turn = lowering.add_node("loop_cond", LOOP_COND, [Input(condition)])
    for index in carried:
        label = f"{node.inputs[index].node.rpartition('/')[2]}_switch"
        bodies[index] = _output(lowering.add_node(label, SWITCH, [heads[index], turn], T=types[index]), 1)
    pivot = lowering.add_node("loop_body_control", IDENTITY, [bodies[carried[0]]], T=types[carried[0]])
    body = lowering.add_call("body", "body", bodies, (types, types), pivot)
    results = [*node.inputs]
    for index in carried:
        results[index] = lowering.add_node("exit", EXIT, [_output(bodies[index], 0)], T=types[index])
        back = lowering.add_node("next_iteration", NEXT_ITERATION, [Input(body, None, index)], controls=[body],
                                 T=types[index])
        merge = next(at for at, candidate in enumerate(lowering.nodes) if candidate.name == heads[index].node)
        lowering.nodes[merge] = lowering.nodes[merge].replace(inputs=[enters[index], back])
    return results, [results[index].node for index in carried]


def _is_invariant(lowering: _Lowering, index: int) -> bool:
    """True for a resource that the body returns as it got it: it needs no Merge, Switch and Exit."""
    function = lowering.function_of_attribute("body")
    if function is None or lowering.type_list("T")[index] is not dtypes.resource or index >= len(function.outputs):
        return False
    return function.ret[function.outputs[index].name] == Input(function.inputs[index].name)


_LOWERINGS: dict[str, Callable[[_Lowering], tuple[Sequence[Input], Sequence[str]]]] = {
    **dict.fromkeys(IFS, _if), **dict.fromkeys(CASES, _case), **dict.fromkeys(WHILES, _while)}
