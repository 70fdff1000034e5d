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
        called = None if lowering else state.called(node)
        if lowering is not None:
            waiting += _Lowering(state, node).made_by(lowering)
        elif called is not None:
            waiting += state.expand(node, *called)
    return with_partitioned_calls(state.finished(calls, context.kept)) if state.replaced else graph


class _Lowering:
    """The nodes that replace one node of functional control flow."""

    def __init__(self, state: Inlining, node: Node) -> None:
        self.node, self._state = node, state
        self.made: list[Node] = []
        self.invariant: set[Input] = set()  # tensors that are never dead within a loop

    def made_by(self, lowering: Callable[[_Lowering], tuple[Sequence[Input], Sequence[str]]]) -> list[Node]:
        """Add the nodes of a lowering, which returns the results and the nodes that end it, to the graph."""
        results, ends = lowering(self)
        state, name = self._state, self.node.name
        state.replaced[name] = self.node
        if any(function.control_ret for function in self._functions()):
            state.acting.add(name)
        state.given.update({Input(name, None, index): result for index, result in enumerate(results)})
        state.nodes[name] = Node(name, NO_OP, controls=ends, device=self.node.device)
        state.nodes.update((node.name, node) for node in self.made)
        if name in state.within:
            state.within.update(node.name for node in self.made)
        inside = state.callers.get(name, state.around)
        state.callers.update((node.name, inside) for node in self.made)
        return self.made

    def add(
        self, label: str, op: str, inputs: Sequence[Input], *, controls: Sequence[str] = (), **attrs: Any
    ) -> Input:
        """Add a node, and return its first output."""
        name = new_name(f"{self.node.name}/{label}", self._state.taken)
        self.made.append(Node(name, op, inputs, controls=controls, device=self.node.device, attrs=attrs))
        return Input(name)

    def call(self, label: str, function: str, arguments: Sequence[Input], types: tuple[tuple[DType, ...],
             tuple[DType, ...]], control: Input, index: int | None = None) -> str:
        """Add a call of the function in an attribute, which waits for `control`, and return its name."""
        func = self.node.attrs.get(function)
        func = func[index] if index is not None and isinstance(func, tuple) else func
        if not isinstance(func, Func):
            raise InvalidArgument(f"attribute '{function}' names no function", node=self.node.name, op=self.node.op)
        name = self.add(label, STATEFUL_CALL, arguments, controls=[control.node], f=func, Tin=types[0],
                        Tout=types[1]).node
        alive = {*self.invariant, *self.node.inputs}
        self._state.mortal[name] = {at for at, argument in enumerate(arguments) if argument not in alive}
        return name

    def _functions(self) -> Iterator[Function]:
        for value in self.node.attrs.values():
            for func in value if isinstance(value, tuple) else (value,):
                if isinstance(func, Func) and func.name in self._state.functions:
                    yield self._state.functions[func.name]

    def function(self, attr: str) -> Function | None:
        """Return the function that an attribute names, if the graph has it."""
        func = self.node.attrs.get(attr)
        return self._state.functions.get(func.name) if isinstance(func, Func) else None

    def types(self, attr: str) -> tuple[DType, ...]:
        found = self.node.attrs.get(attr, ())
        if not isinstance(found, tuple) or not all(isinstance(dtype, DType) for dtype in found):
            raise InvalidArgument(f"attribute '{attr}' is no list of types", node=self.node.name, op=self.node.op)
        return found

    def pairs(self, inputs: Sequence[Input], types: Sequence[DType]) -> list[tuple[Input, DType]]:
        if len(inputs) != len(types):
            raise InvalidArgument(f"the node has {len(inputs)} arguments, its attributes give {len(types)} types",
                                  node=self.node.name, op=self.node.op)
        return [*zip(inputs, types, strict=True)]


def _not_bool(node: Node) -> Unimplemented:
    return Unimplemented(f"the condition of '{node.name}' is not of type bool, as a Switch needs", node=node.name,
                         op=node.op, hint="put a comparison in front of it")


def _port(tensor: Input, index: int) -> Input:
    return tensor._replace(index=index)


def _if(made: _Lowering) -> tuple[list[Input], list[str]]:
    node = made.node
    if node.attrs.get("Tcond") is not dtypes.bool_:
        raise _not_bool(node)
    chosen, *arguments = node.inputs
    switch = made.add("switch_pred", SWITCH, [chosen, chosen], controls=node.controls, T=dtypes.bool_)
    pivots = [made.add(f"pivot_{side}", IDENTITY, [_port(switch, index)], T=dtypes.bool_)
              for index, side in enumerate("ft")]
    switches = [made.add(source.node.rpartition("/")[2], SWITCH, [source, chosen], T=dtype)
                for source, dtype in made.pairs(arguments, made.types("Tin"))]
    return _branches(made, switches, pivots, [("else", "else_branch", None), ("then", "then_branch", None)])


def _case(made: _Lowering) -> tuple[list[Input], list[str]]:
    node = made.node
    chosen, *arguments = node.inputs
    branches = node.attrs.get("branches", ())
    count = len(branches)
    switch = made.add("branch_index", SWITCH_N, [chosen, chosen], controls=node.controls, T=dtypes.int32,
                      num_outs=count)
    pivots = [made.add("pivot", IDENTITY, [_port(switch, index)], T=dtypes.int32) for index in range(count)]
    switches = [made.add(source.node.rpartition("/")[2], SWITCH_N, [source, chosen], T=dtype, num_outs=count)
                for source, dtype in made.pairs(arguments, made.types("Tin"))]
    return _branches(made, switches, pivots, [("branch", "branches", index) for index in range(count)])


def _branches(
    made: _Lowering, switches: Sequence[Input], pivots: Sequence[Input],
    functions: Sequence[tuple[str, str, int | None]],
) -> tuple[list[Input], list[str]]:
    """Add the calls of branches and the Merges behind them. Branch i reads output i of every Switch."""
    types = made.types("Tin"), made.types("Tout")
    calls = [made.call(label, function, [_port(switch, i) for switch in switches], types, pivots[i], index)
             for i, (label, function, index) in enumerate(functions)]
    merges = [made.add("merge", MERGE, [Input(call, None, i) for call in calls], T=dtype, N=len(calls))
              for i, dtype in enumerate(types[1])]
    pivot_type = dtypes.bool_ if made.node.op in IFS else dtypes.int32
    # TensorFlow's Merge waits for the calls itself. Its graph optimizer, run afterwards, loses the live side then.
    ends = [made.add("branch_end", IDENTITY, [pivot], controls=[call], T=pivot_type)
            for pivot, call in zip(pivots, calls, strict=True)]
    return merges, [made.add("branch_executed", MERGE, ends, T=pivot_type, N=len(ends)).node]


def _while(made: _Lowering) -> tuple[list[Input], list[str]]:
    node, types = made.node, made.types("T")
    carried = [index for index in range(len(types)) if not _is_invariant(made, index)] or [*range(len(types))]
    if not carried:
        raise Unimplemented(f"the loop '{node.name}' has no values, so it has no frame", node=node.name, op=node.op)
    tested = made.function("cond")
    if tested is not None and [output.dtype for output in tested.outputs] != [dtypes.bool_]:
        raise _not_bool(node)
    before = [made.add("LoopControlInputs", NO_OP, (), controls=node.controls).node] if node.controls else []
    frame = {"frame_name": node.name.encode(), "parallel_iterations": node.attrs.get("parallel_iterations", 10)}
    enters = [made.add("enter", ENTER, [source], controls=before, T=dtype, is_constant=index not in carried, **frame)
              for index, (source, dtype) in enumerate(made.pairs(node.inputs, types))]
    made.invariant = {enter for index, enter in enumerate(enters) if index not in carried}
    heads, bodies = [*enters], [*enters]
    for index in carried:
        heads[index] = made.add("merge", MERGE, [enters[index]] * 2, T=types[index], N=2)
    condition = made.call("cond", "cond", heads, (types, (dtypes.bool_,)), heads[carried[0]])
    turn = made.add("loop_cond", LOOP_COND, [Input(condition)])
    for index in carried:
        label = f"{node.inputs[index].node.rpartition('/')[2]}_switch"
        bodies[index] = _port(made.add(label, SWITCH, [heads[index], turn], T=types[index]), 1)
    pivot = made.add("loop_body_control", IDENTITY, [bodies[carried[0]]], T=types[carried[0]])
    body = made.call("body", "body", bodies, (types, types), pivot)
    results = [*node.inputs]
    for index in carried:
        results[index] = made.add("exit", EXIT, [_port(bodies[index], 0)], T=types[index])
        back = made.add("next_iteration", NEXT_ITERATION, [Input(body, None, index)], controls=[body], T=types[index])
        merge = next(at for at, each in enumerate(made.made) if each.name == heads[index].node)
        made.made[merge] = made.made[merge].replace(inputs=[enters[index], back])
    return results, [results[index].node for index in carried]


def _is_invariant(made: _Lowering, index: int) -> bool:
    """True for a resource that the body returns as it got it: it needs no Merge, Switch and Exit."""
    function = made.function("body")
    if function is None or made.types("T")[index] is not dtypes.resource or index >= len(function.outputs):
        return False
    return function.ret[function.outputs[index].name] == Input(function.inputs[index].name)


_LOWERINGS: dict[str, Callable[[_Lowering], tuple[Sequence[Input], Sequence[str]]]] = {
    **dict.fromkeys(IFS, _if), **dict.fromkeys(CASES, _case), **dict.fromkeys(WHILES, _while)}
