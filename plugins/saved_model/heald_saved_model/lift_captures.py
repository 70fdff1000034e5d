"""Captured variables become values: functions of control flow that only read a variable's handle take its value.

A branch or a loop's body takes a variable's handle as one more argument. The value may replace the handle when the
function only reads it, hands it on to such functions, or returns it unchanged from a loop. (A loop's body returns all
its arguments.) The function is copied under another name, without the reads. A read that waits for other nodes stays as
an Identity, for its consumers wait for these nodes, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heald.api import DType, Graph, Input, Node
from heald.graphs.graph import Func, Function
from heald.runtime.contract import ArgDef


class _FunctionOp(NamedTuple):
    """An op that hands its inputs, from index `first` on, to the functions in its attributes."""

    functions: tuple[str, ...]
    first: int
    types: str
    is_loop: bool = False


_LOOP_OP = _FunctionOp(("cond", "body"), 0, "T", is_loop=True)
_IF_OP = _FunctionOp(("then_branch", "else_branch"), 1, "Tin")
_CASE_OP = _FunctionOp(("branches",), 1, "Tin")
_CALL_OP = _FunctionOp(("f",), 0, "Tin")
_FUNCTION_OPS = {
    "While": _LOOP_OP, "StatelessWhile": _LOOP_OP, "If": _IF_OP, "StatelessIf": _IF_OP,
    "Case": _CASE_OP, "StatelessCase": _CASE_OP, "PartitionedCall": _CALL_OP, "StatefulPartitionedCall": _CALL_OP,
}
_LARGEST_DEPTH = 50


def _functions_of(node: Node, function_op: _FunctionOp) -> list[Func] | None:
    """Return the functions that a node names, or None for malformed attributes."""
    functions = [item for name in function_op.functions for item in _as_tuple(node.attrs.get(name))]
    types = node.attrs.get(function_op.types)
    is_well_formed = isinstance(types, tuple) and len(types) == len(node.inputs) - function_op.first
    return functions if is_well_formed and functions and all(isinstance(item, Func) for item in functions) else None


class _Uses(NamedTuple):
    """The uses of the tensors in a function: by its nodes and by its outputs."""

    users: dict[str, list[tuple[Node, int]]]  # by the name of a node or argument, its consumers and their input indices
    consumed: set[Input]
    returned: dict[str, list[int]]  # by the same names, the indices of the function's outputs


@dataclass
class Captures:
    """Decides which variables' handles may become values, and makes the functions that take values."""

    graph: Graph
    copies: dict[str, Function] = field(default_factory=dict)
    only_read: dict[tuple[str, int, bool], bool] = field(default_factory=dict)
    uses: dict[str, _Uses] = field(default_factory=dict)

    def only_reads(self, node: Node, index: int, consumed: Collection[Input], depth: int = 0) -> bool:
        """Return True if the node's functions only read this input. `consumed` are all tensors that nodes beside it
        consume."""
        function_op = _FUNCTION_OPS.get(node.op)
        if function_op is None or index < function_op.first or depth > _LARGEST_DEPTH:
            return False
        functions = _functions_of(node, function_op)
        if functions is None:
            return False
        results = {Input(node.name, None, index), Input(node.name, "output", index)}
        if function_op.is_loop and not results.isdisjoint(consumed):
            return False
        argument, is_loop = index - function_op.first, function_op.is_loop
        return all(self._function_reads(func.name, argument, is_loop, depth) for func in functions)

    def _function_reads(self, name: str, index: int, returns: bool, depth: int) -> bool:
        key = (name, index, returns)
        if key not in self.only_read:
            self.only_read[key] = False  # during the check: a function that calls itself counts as no reader
            function = self.graph.functions.get(name)
            self.only_read[key] = function is not None and self._argument_is_read(function, index, returns, depth)
        return self.only_read[key]

    def _argument_is_read(self, function: Function, index: int, returns: bool, depth: int) -> bool:
        if index >= len(function.inputs):
            return False
        if function.name not in self.uses:
            self.uses[function.name] = _uses(function)
        uses, name = self.uses[function.name], function.inputs[index].name
        if any(output != index or not returns for output in uses.returned.get(name, ())):
            return False
        return all(_is_read(node) or self.only_reads(node, i, uses.consumed, depth + 1)
                   for node, i in uses.users.get(name, ()))

    def with_values(self, node: Node, values: Mapping[int, DType]) -> Node:
        """Return the node with values instead of handles at these input indices; `values` has their types."""
        function_op = _FUNCTION_OPS[node.op]
        argument_types = {index - function_op.first: dtype for index, dtype in values.items()}
        attrs: dict[str, Any] = {function_op.types: _with_items(node.attrs[function_op.types], argument_types)}
        for name in function_op.functions:
            function_attr = node.attrs[name]
            copies = tuple(Func(self._copy(f.name, argument_types), f.attrs) for f in _as_tuple(function_attr))
            attrs[name] = copies if isinstance(function_attr, tuple) else copies[0]
        shapes = node.attrs.get("output_shapes")
        if function_op.is_loop and isinstance(shapes, tuple) and len(shapes) == len(attrs[function_op.types]):
            attrs["output_shapes"] = _with_items(shapes, dict.fromkeys(argument_types))
        return node.replace(attrs=attrs, without_attrs=["_read_only_resource_inputs"])

    def _copy(self, name: str, values: Mapping[int, DType]) -> str:
        """Copy the function so that it takes these arguments as values, and return the copy's name."""
        key = f"{name}__of_values_{'_'.join(f'{index}.{dtype.name}' for index, dtype in sorted(values.items()))}"
        if key not in self.copies:
            self.copies[key] = self._copy_with_values(self.graph.functions[name], key, values)
        return key

    def _copy_with_values(self, function: Function, name: str, values: Mapping[int, DType]) -> Function:
        types = {function.inputs[index].name: dtype for index, dtype in values.items()}
        reads, late, nodes = {}, set(), []
        for node in function.nodes.values():
            if _is_read(node) and node.inputs[0].node in types:
                reads[node.name] = Input(node.name, "output", 0) if node.controls else node.inputs[0]
                late |= {node.name} if node.controls else set()
        dropped = reads.keys() - late
        for node in function.nodes.values():
            if node.name in dropped:
                continue
            input_types = {i: types[source.node] for i, source in enumerate(node.inputs) if source.node in types}
            if node.name in late:
                node = Node(node.name, "Identity", node.inputs, controls=node.controls, device=node.device,
                            attrs={"T": input_types[0]})
            elif input_types:
                node = self.with_values(node, input_types)
            nodes.append(node.replace(inputs=[reads.get(i.node, i) for i in node.inputs],
                                      controls=[c for c in node.controls if c not in dropped]))
        types_of_outputs = {output: types[source.node] for output, source in function.ret.items()
                            if source.node in types}
        return function.replace(
            name=name, nodes=nodes, inputs=[_of_type(arg, types) for arg in function.inputs],
            outputs=[_of_type(arg, types_of_outputs) for arg in function.outputs],
            ret={output: reads.get(source.node, source) for output, source in function.ret.items()},
            control_ret={key: node for key, node in function.control_ret.items() if node not in dropped})


def _uses(function: Function) -> _Uses:
    outputs = {output.name: number for number, output in enumerate(function.outputs)}
    uses = _Uses({}, set(function.ret.values()), {})
    for node in function.nodes.values():
        uses.consumed.update(node.inputs)
        for index, source in enumerate(node.inputs):
            uses.users.setdefault(source.node, []).append((node, index))
    for output, source in function.ret.items():
        uses.returned.setdefault(source.node, []).append(outputs.get(output, -1))
    return uses


def _is_read(node: Node) -> bool:
    return node.op == "ReadVariableOp" and len(node.inputs) == 1


def _with_items(items: tuple[Any, ...], new: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(new.get(index, item) for index, item in enumerate(items))


def _of_type(arg: ArgDef, types: Mapping[str, DType]) -> ArgDef:
    return arg._replace(dtype=types[arg.name], type_attr=None) if arg.name in types else arg


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
