"""Epilogues: elementwise steps on each sum of a product before it is written, such as bias, activation, residual."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import NamedTuple

from heald.api import DType

from .c_text import write_lines
from .element_types import load, memory_type, register_type, store
from .expression import Step, result_types, statements
from .kernel_parts import Pointer
from .plan import INPUT

CHANNEL, FULL = "channel", "full"


class Epilogue(NamedTuple):
    """Steps over value 0, the sum, and values 1 ..., further inputs of the node that follow the product's own two.

    Each such operand has its type and is either a vector of one element a channel (column), or of the output's shape.
    """

    steps: tuple[Step, ...] = ()
    operands: tuple[tuple[DType, str], ...] = ()

    def types(self, dtype: DType) -> list[DType]:
        return result_types(self.steps, [dtype, *(operand for operand, _ in self.operands)])

    def result(self, dtype: DType) -> DType:
        """The output's type, for sums of this type."""
        return self.types(dtype)[-1] if self.steps else dtype

    def pointers(self, channels: int, results: int) -> list[Pointer]:
        """The operands as parameters: vectors of so many channels, or tensors of so many results."""
        counts = {CHANNEL: channels, FULL: results}
        return [Pointer(f"e{i}", INPUT, i + 1, memory_type(dtype), counts[kind])
                for i, (dtype, kind) in enumerate(self.operands, 1)]

    def text(self, dtype: DType, channel: str, index: str) -> list[str]:
        """Statements from v0 to the output at `index`, for the channel at `channel`."""
        types = self.types(dtype)
        lines = []
        for number, (operand, kind) in enumerate(self.operands, 1):
            value = load(operand, f"e{number}", channel if kind == CHANNEL else index)
            lines.append(f"const {register_type(operand)} v{number} = {value};")
        lines += write_lines([*statements(self.steps, types, len(self.operands) + 1)])
        return [*lines, store(self.result(dtype), "y0", index, f"v{len(types) - 1 if self.steps else 0}")]

    def name(self, base: str) -> str:
        return "_".join([base, *(step.op for step in self.steps[:4])])


def bias(dtype: DType, *activation: Step) -> Epilogue:
    """A bias for each channel, then steps over value 2."""
    return Epilogue((Step("AddV2", (0, 1)), *activation), ((dtype, CHANNEL),))


def indent_lines(lines: Sequence[str], by: int) -> str:
    return indent("\n".join(lines), " " * by)
