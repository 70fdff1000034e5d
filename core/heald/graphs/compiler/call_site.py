"""CallSite: one node that calls functions of its graph, and how the program's call passes arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument
from ...runtime.contract.structural import (
    CALL,
    CONTROL_FLOW,
    FRAME_OP,
    IDENTITY,
    OF_SWITCHES,
    STATEFUL_CALL,
    OfElements,
    branch,
    is_true,
)
from ...runtime.support.records import NamedTuple
from ...runtime.values import dtypes
from ...runtime.values.attribute_values import Func
from ...runtime.values.dtypes import DType
from ...runtime.values.tensor import TensorMetadata, ValueInfo
from ..graph.graph import Function, Graph, Node
from .function_body import FunctionBody, argument_types
from .pass_manager import NodeFacts
from .prune import Tensor
from .resolve import Resolved

COND = "cond"  # the attribute of a loop's condition, whose function returns no loop variables
_BRANCHES = {"heald.if", "heald.case"}


class CallSite(NamedTuple):
    """A node that calls functions.

    `types`: the types of the functions' arguments.
    `results`: the types of the results that the node's functions return, but for the condition of a loop.
    `varying`: the number of the node's leading arguments that differ from call to call: the variables of a frame, the
        state of a function of elements, 0 for other nodes.
    `added`: the arguments that the kernel itself adds: the number of a loop's turn, the components of an element.
    `added_at`: the index of the first of them among the functions' arguments.
    `dropped`: the arguments, by index among the node's own, that the functions have as constants.
    `functions`: the names of the program's functions.
    `has_effects`: True when a function returns a chain behind its results.
    """

    entry: Resolved
    types: tuple[DType, ...]
    results: tuple[DType, ...]
    varying: int = 0
    added: tuple[TensorMetadata, ...] = ()
    added_at: int = 0
    dropped: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    has_effects: bool = False

    @property
    def code(self) -> str:
        return CONTROL_FLOW[self.entry.op.name].code

    @property
    def leading(self) -> int:
        return CONTROL_FLOW[self.entry.op.name].leading

    @property
    def argument_inputs(self) -> range:
        """The indices of the node's inputs that are arguments of its functions."""
        return range(self.leading, len(self.entry.inputs) - CONTROL_FLOW[self.entry.op.name].trailing)

    def argument_index(self, index: int) -> int:
        """Return the index of a node's own argument among the arguments of its functions."""
        return index if index < self.added_at else index + len(self.added)

    @property
    def is_loop(self) -> bool:
        return CONTROL_FLOW[self.entry.op.name].is_loop

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the program's call."""
        frame = {"variables": self.varying, "exits": len(self.entry.output_tensors)}
        is_frame, elements = self.entry.op.name == FRAME_OP, CONTROL_FLOW[self.entry.op.name].elements
        chain = {"chain": True} if (self.is_loop or is_frame or elements) and self.has_effects else {}
        scalar = {"scalar": True} if OF_SWITCHES in self.entry.node.attrs else {}
        passed = {} if elements is None else self._attrs_of_elements(elements)
        return (frame if is_frame else {}) | chain | scalar | passed

    def _attrs_of_elements(self, elements: OfElements) -> dict[str, Any]:
        passed = {key: self.entry.attrs[key] for key in elements.passed}
        if not self.leading:
            return {**passed, "name": self.entry.node.name}
        trailing = CONTROL_FLOW[self.entry.op.name].trailing
        if trailing:
            passed["trailing"] = trailing
        return {**passed, "element_types": tuple(meta.dtype for meta in self.added)}

    @property
    def inputs(self) -> list[int]:
        """The indices of the node's inputs that the program's call takes."""
        dropped_inputs = {index + self.leading for index in self.dropped}
        return [index for index in range(len(self.entry.inputs)) if index not in dropped_inputs]

    @property
    def forwarded_inputs(self) -> dict[int, int]:
        """The outputs of the node that are inputs of it, by index: a loop's variables that never change."""
        return {index: index + self.leading for index in self.dropped} if self.is_loop else {}

    def program_results(self, body: FunctionBody, label: str) -> tuple[Tensor, ...]:
        """Return the results of a function that the program's function returns."""
        expected_count = 1 if label == COND else len(self.results)
        if len(body.results) != expected_count:
            raise InvalidArgument(f"function '{label}' returns {len(body.results)} values, "
                                  f"{expected_count} are expected")
        dropped = self.dropped if self.is_loop and label != COND else ()
        return tuple(result for index, result in enumerate(body.results) if index not in dropped)

    def argument_metadata(self, infos: Sequence[ValueInfo], body: FunctionBody) -> list[TensorMetadata]:
        """Return dtype and shape of each argument, as far as they are the same in every call.

        `infos` has the arguments of the first call. `body` is the function that makes the arguments of the next call.
        An argument that a loop changes from one iteration to the next has an unknown shape.
        """
        argument_metadata = [info.meta if self.is_constant(body, index) else TensorMetadata(info.dtype, None)
                             for index, info in enumerate(infos)]
        return [*argument_metadata[: self.added_at], *self.added, *argument_metadata[self.added_at :]]

    def is_constant(self, body: FunctionBody, index: int) -> bool:
        """True when this argument is the same in every call: a loop's body returns it as it is."""
        if not self.is_loop:
            return index >= self.varying
        name, output = body.results[index] if index < len(body.results) else ("", 0)
        while name in body.graph and body.graph[name].op == IDENTITY and body.graph[name].inputs:
            name, _, output = body.graph[name].inputs[0]
        return (name, output) == (body.arguments[self.argument_index(index)], 0)


def call_site(entry: Resolved, functions: Mapping[str, Function]) -> CallSite:
    """Return the call of a node, with all arguments. `functions`: the functions of the graph."""
    flow = CONTROL_FLOW[entry.op.name]
    own_types = tuple(tensor.dtype for tensor in entry.input_tensors[flow.leading : len(entry.inputs) - flow.trailing])
    if flow.elements is not None:
        return _site_of_elements(entry, flow.elements, own_types, functions)
    outputs = tuple(tensor.dtype for tensor in entry.output_tensors)
    varying = entry.attrs["variables"] if entry.op.name == FRAME_OP else 0
    if varying > len(own_types):
        raise InvalidArgument(f"a frame of {varying} variables has {len(own_types)} inputs")
    added = (TensorMetadata(dtypes.int32, ()),) * flow.extra
    return CallSite(entry, (dtypes.int32,) * flow.extra + own_types, own_types[:varying] + outputs, varying, added)


def _site_of_elements(
    entry: Resolved, elements: OfElements, own_types: tuple[DType, ...], functions: Mapping[str, Function]
) -> CallSite:
    """Return the call of a function of elements. Its signature has the types of an element's components."""
    ((_, func),) = labelled_functions(entry)
    state = len(entry.attrs[elements.state]) if elements.state else 0
    arguments = argument_types(functions[func.name], func) if func.name in functions else ()
    components = arguments[state : state + len(arguments) - len(own_types)]
    results: list[DType] = []
    for result in elements.results:
        results += entry.attrs[result] if isinstance(result, str) else [result]
    types = own_types[:state] + components + own_types[state:]
    return CallSite(entry, types, tuple(results), state, tuple(TensorMetadata(dtype, None) for dtype in components),
                    state)


def labelled_functions(entry: Resolved) -> list[tuple[str, Func]]:
    """Return the functions that a node names, each with its attribute and, in a list, its index."""
    functions: list[tuple[str, Func]] = []
    for name in CONTROL_FLOW[entry.op.name].functions:
        value = entry.attrs[name]
        if isinstance(value, tuple):
            functions += [(f"{name}_{index}", func) for index, func in enumerate(value)]
        else:
            functions.append((name, value))
    return functions


def calls_of_known_branches(graph: Graph, facts: NodeFacts) -> list[Node]:
    """Return the nodes whose branch is known before the run, as calls of that branch."""
    deciding = [node for node in graph if node.op in CONTROL_FLOW and CONTROL_FLOW[node.op].code in _BRANCHES]
    if not deciding:
        return []
    inferred = facts.infer(graph)
    return [call for node in deciding for call in _call_of_known_branch(node, facts.resolve(node), inferred)]


def _call_of_known_branch(
    node: Node, entry: Resolved | None, inferred: Mapping[str, tuple[ValueInfo, ...]]
) -> Iterator[Node]:
    if entry is None:
        return
    name, index = entry.inputs[0]
    outputs = inferred.get(name, ())
    if index >= len(outputs) or not outputs[index].is_known:
        return
    value, is_case = outputs[index].value, CONTROL_FLOW[node.op].code == "heald.case"
    if (is_case or OF_SWITCHES in node.attrs) and outputs[index].meta.shape != ():
        return  # the run raises the error
    funcs = [func for _, func in labelled_functions(entry)]
    selected = branch(funcs, value) if is_case else funcs[0 if is_true(value) else 1]
    internal_attrs: dict[str, Any] = {
        key: value for key, value in node.attrs.items() if key.startswith("_") and key != OF_SWITCHES}
    types = {"Tin": entry.attrs["Tin"], "Tout": entry.attrs["Tout"]}
    yield Node(node.name, STATEFUL_CALL if entry.op.stateful else CALL, node.inputs[1:], controls=node.controls,
               device=node.device, attrs={"f": selected, **types, **internal_attrs})
