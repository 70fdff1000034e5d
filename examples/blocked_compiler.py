"""A compiler: element-wise nodes of the CPU as one kernel, which goes through all of them block by block.

    HEALD_PLUGINS__LOAD=examples/blocked_compiler.py heald explain model.pb
    pytest --pyargs heald_conformance --plugin examples/blocked_compiler.py --compiler blocked

It shows the form of a compiler, and takes memory for one block where the nodes alone take whole tensors. The CPU's
own kernels use all cores, and are faster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
from heald.api import Bind, Compiler, CompilerRegistrar, Declined, FusedOp, PlacedPart, dtypes, hookimpl

HEALD_API = (1, 4)
BLOCK = 1 << 16  # elements of a block: some blocks of float32 fit in the second cache
UFUNCS: Mapping[str, Callable[..., Any]] = {
    "Abs": np.absolute, "Add": np.add, "AddV2": np.add, "Maximum": np.maximum, "Minimum": np.minimum,
    "Mul": np.multiply, "Neg": np.negative, "Square": np.square, "Sub": np.subtract,
}


class BlockedCompiler(Compiler):
    """Claims connected element-wise nodes of float32, and declines a group of several shapes."""

    def claim(self, part: PlacedPart) -> Iterable[Collection[str]]:
        able = [name for name, node in part.nodes.items()
                if node.op.name in UFUNCS and node.attrs["T"] is dtypes.float32]
        return [group for group in part.split(able) if len(group) > 1]

    def compile(self, group: Bind) -> Callable[..., None] | Declined:
        shapes = {meta.dims for op in group.fused for meta in op.outputs}
        shapes |= {info.meta.dims for info in group.inputs}
        if len(shapes) > 1:
            return group.decline("its tensors differ in shape")
        return BlockedKernel(group.fused, len(group.inputs), group.results)


class BlockedKernel:
    """The kernel of one group. Its temporary blocks belong to one call, so several threads may run it."""

    def __init__(self, ops: tuple[FusedOp, ...], inputs: int, results: tuple[int, ...]) -> None:
        self._steps = [(UFUNCS[op.op], op.args, op.results[0]) for op in ops]
        self._inputs, self._results = inputs, results
        self.how = f"{len(ops)} nodes over blocks of {BLOCK} elements"

    def __call__(self, *operands: Any) -> None:
        values = dict(enumerate(operand.reshape(-1) for operand in operands[: self._inputs]))
        values |= zip(self._results, (operand.reshape(-1) for operand in operands[self._inputs :]), strict=True)
        inner = {result: np.empty(BLOCK, np.float32) for _, _, result in self._steps if result not in values}
        for start in range(0, operands[0].size, BLOCK):
            block = {number: value[start : start + BLOCK] for number, value in values.items()}
            length = len(block[0])
            block |= {number: value[:length] for number, value in inner.items()}
            for ufunc, args, result in self._steps:
                ufunc(*(block[arg] for arg in args), out=block[result])


@hookimpl
def heald_compilers(registry: CompilerRegistrar) -> None:
    registry.add("blocked", BlockedCompiler(), device_type="CPU")
