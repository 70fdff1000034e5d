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


class _Taker(NamedTuple):
    """An op that hands its inputs, from index `first` on, to the functions in its attributes."""

    functions: tuple[str, ...]
    first: int
    types: str
    is_loop: bool = False


_LOOP = _Taker(("cond", "body"), 0, "T", is_loop=True)
_IF = _Taker(("then_branch", "else_branch"), 1, "Tin")
_CASE = _Taker(("branches",), 1, "Tin")
_CALL = _Taker(("f",), 0, "Tin")
_TAKERS = {
    "While": _LOOP, "StatelessWhile": _LOOP, "If": _IF, "StatelessIf": _IF, "Case": _CASE, "StatelessCase": _CASE,
    "PartitionedCall": _CALL, "StatefulPartitionedCall": _CALL,
}
_DEEPEST = 50


def _called(node: Node, taker: _Taker) -> list[Func] | None:
    """Return the functions that a node names, or None for malformed attributes."""
    found = [item for name in taker.functions for item in _listed(node.attrs.get(name))]
    types = node.attrs.get(taker.types)
    well = isinstance(types, tuple) and len(types) == len(node.inputs) - taker.first
    return found if well and found and all(isinstance(item, Func) for item in found) else None


class _Uses(NamedTuple):
    """The uses of the tensors in a function: by its nodes and by its outputs."""

    users: dict[str, list[tuple[Node, int]]]  # by the name of a node or argument, its consumers and their input indices
    taken: set[Input]
    returned: dict[str, list[int]]  # by the same names, the indices of the function's outputs


@dataclass
class Captures:
    """Decides which variables' handles may become values, and makes the functions that take values."""

    graph: Graph
    made: dict[str, Function] = field(default_factory=dict)
    known: dict[tuple[str, int, bool], bool] = field(default_factory=dict)
    uses: dict[str, _Uses] = field(default_factory=dict)

    def only_reads(self, node: Node, index: int, taken: Collection[Input], depth: int = 0) -> bool:
        """Return True if the node's functions only read this input. `taken` are all tensors that nodes beside it
        consume."""
        taker = _TAKERS.get(node.op)
        called = None if taker is None or index < taker.first or depth > _DEEPEST else _called(node, taker)
        if taker is None or called is None:
            return False
        if taker.is_loop and not {Input(node.name, None, index), Input(node.name, "output", index)}.isdisjoint(taken):
            return False
        return all(self._function_reads(func.name, index - taker.first, taker.is_loop, depth) for func in called)

    def _function_reads(self, name: str, index: int, returns: bool, depth: int) -> bool:
        key = (name, index, returns)
        if key not in self.known:
            self.known[key] = False  # during the check: a function that calls itself counts as no reader
            function = self.graph.functions.get(name)
            self.known[key] = function is not None and self._argument_is_read(function, index, returns, depth)
        return self.known[key]

    def _argument_is_read(self, function: Function, index: int, returns: bool, depth: int) -> bool:
        if index >= len(function.inputs):
            return False
        if function.name not in self.uses:
            self.uses[function.name] = _uses(function)
        uses, name = self.uses[function.name], function.inputs[index].name
        if any(output != index or not returns for output in uses.returned.get(name, ())):
            return False
        return all(_is_read(node) or self.only_reads(node, i, uses.taken, depth + 1)
                   for node, i in uses.users.get(name, ()))

    def handed(self, node: Node, values: Mapping[int, DType]) -> Node:
        """Return the node with values instead of handles at these input indices; `values` has their types."""
        taker = _TAKERS[node.op]
        given = {index - taker.first: dtype for index, dtype in values.items()}
        attrs: dict[str, Any] = {taker.types: _with(node.attrs[taker.types], given)}
        for name in taker.functions:
            found = node.attrs[name]
            copies = tuple(Func(self._copy(f.name, given), f.attrs) for f in _listed(found))
            attrs[name] = copies if isinstance(found, tuple) else copies[0]
        shapes = node.attrs.get("output_shapes")
        if taker.is_loop and isinstance(shapes, tuple) and len(shapes) == len(attrs[taker.types]):
            attrs["output_shapes"] = _with(shapes, dict.fromkeys(given))
        return node.replace(attrs=attrs, without_attrs=["_read_only_resource_inputs"])

    def _copy(self, name: str, values: Mapping[int, DType]) -> str:
        """Copy the function so that it takes these arguments as values, and return the copy's name."""
        key = f"{name}__of_values_{'_'.join(f'{index}.{dtype.name}' for index, dtype in sorted(values.items()))}"
        if key not in self.made:
            self.made[key] = self._with_values(self.graph.functions[name], key, values)
        return key

    def _with_values(self, function: Function, name: str, values: Mapping[int, DType]) -> Function:
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
            taken = {i: types[source.node] for i, source in enumerate(node.inputs) if source.node in types}
            if node.name in late:
                node = Node(node.name, "Identity", node.inputs, controls=node.controls, device=node.device,
                            attrs={"T": taken[0]})
            elif taken:
                node = self.handed(node, taken)
            nodes.append(node.replace(inputs=[reads.get(i.node, i) for i in node.inputs],
                                      controls=[c for c in node.controls if c not in dropped]))
        passed = {output: types[source.node] for output, source in function.ret.items() if source.node in types}
        return function.replace(
            name=name, nodes=nodes, inputs=[_of_type(arg, types) for arg in function.inputs],
            outputs=[_of_type(arg, passed) for arg in function.outputs],
            ret={output: reads.get(source.node, source) for output, source in function.ret.items()},
            control_ret={key: node for key, node in function.control_ret.items() if node not in dropped})


def _uses(function: Function) -> _Uses:
    outputs = {output.name: number for number, output in enumerate(function.outputs)}
    found = _Uses({}, set(function.ret.values()), {})
    for node in function.nodes.values():
        found.taken.update(node.inputs)
        for index, source in enumerate(node.inputs):
            found.users.setdefault(source.node, []).append((node, index))
    for output, source in function.ret.items():
        found.returned.setdefault(source.node, []).append(outputs.get(output, -1))
    return found


def _is_read(node: Node) -> bool:
    return node.op == "ReadVariableOp" and len(node.inputs) == 1


def _with(items: tuple[Any, ...], new: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(new.get(index, item) for index, item in enumerate(items))


def _of_type(arg: ArgDef, types: Mapping[str, DType]) -> ArgDef:
    return arg._replace(dtype=types[arg.name], type_attr=None) if arg.name in types else arg


def _listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
