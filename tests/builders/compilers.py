"""A compiler for tests: it evaluates its groups by NumPy, and its behaviour is a value of each field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from heald.api import Bind, PlacedPart, hookimpl
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs, "AddV2": np.add, "Identity": lambda x: x, "Maximum": np.maximum, "MatMul": np.matmul,
    "Mul": np.multiply, "Neg": np.negative, "Square": np.square, "Sub": np.subtract,
    "Split": lambda axis, x: np.split(x, 2, int(axis)),
}


@dataclass
class NumPyCompiler:
    """`choose`: returns the groups of a part. `reason`: why it declines; "" to compile.

    `parts`, `groups`: all that it was shown.
    """

    choose: Callable[[PlacedPart], Iterable[Collection[str]]] = lambda part: part.split(
        name for name, node in part.nodes.items() if node.op.name in FUNCTIONS)
    reason: str = ""
    stateful: bool = False
    allocates: bool = False
    parts: list[PlacedPart] = field(default_factory=list)
    groups: list[Bind] = field(default_factory=list)

    def claim(self, part: PlacedPart) -> Iterable[Collection[str]]:
        self.parts.append(part)
        return self.choose(part)

    def compile(self, group: Bind) -> Any:
        self.groups.append(group)
        if self.reason:
            return group.decline(self.reason)
        return self.kernel(group)

    def kernel(self, group: Bind) -> Callable[..., Any]:
        count, allocates = len(group.inputs), self.allocates

        def run(*operands: Any) -> Any:
            values = dict(enumerate(operands[:count]))
            for op in group.fused:
                result = FUNCTIONS[op.op](*(values[arg] for arg in op.args))
                values |= zip(op.results, result if isinstance(result, list) else [result], strict=True)
            results = [values[number] for number in group.results]
            if allocates:
                return results if len(results) > 1 else results[0]
            for out, result in zip(operands[count:], results, strict=True):
                out[...] = result
            return None

        return run


def plugin_module(name: str, **hooks: Any) -> ModuleType:
    module = ModuleType(name)
    module.HEALD_API = (1, 4)  # type: ignore[attr-defined]
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    return module


def runtime_with(*compilers: Any, config: Any = None, device_type: str = "CPU") -> Runtime:
    """A runtime with these compilers, called tiny0, tiny1 and so on, in the order of their priority."""
    runtime = Runtime(load_config(config or {}))

    def heald_compilers(registry: Any) -> None:
        for number, compiler in enumerate(compilers):
            registry.add(f"tiny{number}", compiler, device_type=device_type, priority=-number)

    runtime.plugins.register(plugin_module("tiny_compilers", heald_compilers=heald_compilers))
    return runtime
