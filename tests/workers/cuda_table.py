"""The resources of CUDA texts, as a Markdown table: PYTHONPATH=tests python -m workers.cuda_table [ARCHITECTURE ...]

Each row is the texts of the networks and of the elementwise table with the same first op; figures are the most of any.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace

from harness.network_problems import problems
from harness.nvrtc import Entry, compile_texts, join_texts
from heald.runtime.values import dtypes
from heald_kernel_text import CUDA_GPU, KernelText, Step, elementwise, has
from heald_kernel_text.elementwise_ops import OPS
from tabulate import tabulate

AT_ONCE = 16  # texts in a program


def texts() -> dict[str, list[KernelText]]:
    """The distinct texts by row."""
    texts_by_row: dict[str, dict[str, KernelText]] = defaultdict(dict)
    for products in ("float32", "tf32", "bfloat16"):
        for problem in problems():
            for text in problem.plan(replace(CUDA_GPU, products=products)).launches:
                has_cores = "heald_mma" in text.source
                if products == "float32" or has_cores:
                    row = text.name.split("_")[0]
                    texts_by_row[f"{row}, {products}"
                                 if row in ("Conv2D", "MatMul", "Einsum") else row][text.source] = text
    for op, row in OPS.items():
        if has(op, dtypes.float32):
            operands = [(dtypes.bool_, (3,))] * row.typed_by + [(dtypes.float32, (3,))] * (row.arity - row.typed_by)
            (text,) = elementwise(CUDA_GPU, (Step(op, tuple(range(row.arity))),), operands).launches
            texts_by_row["elementwise table"][text.source] = text
    ops = {op for op in texts_by_row if op in OPS}
    for op in ops:
        texts_by_row["elementwise chains"] |= texts_by_row.pop(op)
    return {row: list(texts_of_row.values()) for row, texts_of_row in sorted(texts_by_row.items())}


def entries(row: list[KernelText], architecture: str) -> list[Entry]:
    parts = [row[start : start + AT_ONCE] for start in range(0, len(row), AT_ONCE)]
    return [entry for part in parts for entry in compile_texts(join_texts(part), architecture).values()]


def main() -> None:
    architectures = sys.argv[1:] or ["sm_90"]
    rows = []
    for name, row in texts().items():
        cells: list[object] = [name, len(row)]
        for architecture in architectures:
            entry_points = entries(row, architecture)
            cells += [max(e.registers for e in entry_points), sum(e.spilled for e in entry_points)]
        rows.append([*cells, max(e.shared for e in entry_points)])
    columns = [column for architecture in architectures for column in (f"registers, {architecture}", "spilled")]
    print(tabulate(rows, ["texts of", "texts", *columns, "shared memory"], tablefmt="github"))


if __name__ == "__main__":
    main()
