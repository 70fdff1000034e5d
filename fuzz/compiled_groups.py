"""Groups of a compiler in fuzzed programs: graphs whose nodes it takes, and runs with the compiler and without it.

The compiler's kernels are right. So a program gives the same arrays both ways, or an error both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from heald.api import API, Bind, Compiler, PlacedPart, hookimpl
from heald.errors import DeadlineExceeded, HealdError, Internal, PluginError
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.config.config import load_config
from heald.runtime.program import GROUP, ProgramDef
from heald.runtime.service.runtime import Runtime
from heald.runtime.values import dtypes

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AddV2": np.add, "Maximum": np.maximum, "Mul": np.multiply, "Neg": np.negative, "Square": np.square,
    "Sub": np.subtract, "Split": lambda axis, x, count: np.split(x, count, int(axis)), "Identity": lambda x: x,
}
NAME = "fuzzed"


class ExactCompiler(Compiler):
    """Takes the nodes of `FUNCTIONS`. Its kernels round as the CPU's, and its groups have any number of results."""

    def claim(self, part: PlacedPart) -> Iterable[Iterable[str]]:  # type: ignore[override]
        return part.split(name for name, node in part.nodes.items() if node.op.name in FUNCTIONS)

    def compile(self, group: Bind) -> Any:
        unknown_ops = [op.op for op in group.fused if op.op not in FUNCTIONS]
        if unknown_ops or any(info.dtype.kind not in "iuf" for info in group.inputs):
            return group.decline(f"{unknown_ops or 'a type'} is not for it")
        count = len(group.inputs)

        def run(*operands: Any) -> None:
            values = dict(enumerate(operands[:count]))
            for op in group.fused:
                number = (len(op.results),) if op.op == "Split" else ()
                result = FUNCTIONS[op.op](*(values[arg] for arg in op.args), *number)
                values |= zip(op.results, result if number else [result], strict=True)
            for out, result in zip(operands[count:], (values[number] for number in group.results), strict=True):
                out[...] = result

        return run


@cache
def runtime() -> Runtime:
    """A runtime with the compiler."""
    module = ModuleType("heald_fuzz_groups")

    def heald_compilers(registry: Any) -> None:
        registry.add(NAME, ExactCompiler(), device_type="CPU")

    vars(module).update(HEALD_API=API, heald_compilers=hookimpl(heald_compilers))
    with_compiler = Runtime(load_config({"passes": {"disable": ["fusion"]}}))
    with_compiler.plugins.register(module)
    return with_compiler


def has_groups(program: ProgramDef) -> bool:
    return any(call.code == GROUP for function in program.functions.values() for call in function.kernels)


def check_both_ways(run: Callable[[Any], dict[str, Any]]) -> None:
    """Run a program with the compiler and without it. Raises the error of the run without it, and Internal for results
    that differ."""
    try:
        expected = run(None)
    except (Internal, PluginError):
        raise
    except HealdError as error:
        try:
            run(runtime())
        except (Internal, PluginError):
            raise
        except HealdError:
            raise error from None
        if isinstance(error, DeadlineExceeded):
            raise
        raise Internal(f"the run with groups succeeds, the other one fails: {error}") from error
    results = run(runtime())
    for name, value in expected.items():
        if not np.array_equal(results[name], value, equal_nan=value.dtype.kind == "f"):
            raise Internal(f"{name} is {results[name]!r} with groups, and {value!r} without")


def graphs() -> list[Graph]:
    """Graphs with groups: one result and several, control edges, constants, other nodes between two groups, open
    shapes, and an op with several results."""
    chain = [_placeholder("x", (2, 3)), _constant("c", np.float32([1, 2, 3])), _node("a", "Mul", "x", "c"),
             _node("b", "Neg", "a"), _node("d", "AddV2", "b", "x")]
    between = [*chain, _node("t", "Tanh", "a"), _node("e", "Sub", "d", "t"), _node("f", "Square", "e")]
    ordered = [*chain, _node("g", "Square", "x", "^b"), _node("h", "Maximum", "g", "d")]
    parts = [_placeholder("x", (4,)), _constant("axis", np.int32(0)),
             _node("s", "Split", "axis", "x", num_split=2), _node("m", "Mul", "s", "s:1"),
             _node("n", "Sub", "s:1", "m")]
    open_shape = [_placeholder("x", (None, 3)), *between[1:]]
    by_data = [_placeholder("x", (4,)), _node("u", "Unique", "x", out_idx=dtypes.int32), _node("n", "Neg", "u"),
               _node("m", "AddV2", "n", "u")]
    return [Graph(nodes) for nodes in (chain, chain[:4], between, ordered, parts, open_shape, by_data)]


def _node(name: str, op: str, *inputs: str, **attrs: Any) -> Node:
    return Node(name, op, [*inputs], attrs={"T": dtypes.float32} | attrs)


def _placeholder(name: str, shape: tuple[int | None, ...]) -> Node:
    return Node(name, "Placeholder", attrs={"dtype": dtypes.float32, "shape": shape})


def _constant(name: str, value: Any) -> Node:
    array = np.asarray(value)
    return Node(name, "Const", attrs={"dtype": dtypes.of_numpy(array.dtype), "value": array})
