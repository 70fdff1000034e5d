"""Runs the texts of the dialect of Python: the work-items of a group go from barrier to barrier together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from harness.evaluate_tree import FUNCTIONS, OPERATIONS, TYPES
from harness.python_dialect import Python
from heald_kernel_text import INPUT, OUTPUT, SCRATCH, SIZE, Plan, Target

PYTHON = Target(Python())


def convert(type_name: str, value: Any) -> Any:
    return int(value) if type_name in ("size_t", "offset") else np.asarray(value).astype(TYPES[type_name])[()]


def operate(operator: str, left: Any, right: Any) -> Any:
    """A condition is 0 or 1."""
    result = OPERATIONS[operator](left, right)
    return int(result) if np.asarray(result).dtype == bool else np.asarray(result)[()]


NAMES = {"convert": convert, "operate": operate, "FUNCTIONS": FUNCTIONS, "POSITIVE_INFINITY": np.float32(np.inf),
         "sizeof": lambda type_name: np.dtype(TYPES[type_name]).itemsize}


def run_plan(plan: Plan, inputs: Sequence[Any], outputs: Sequence[tuple[Any, tuple[int, ...]]]) -> list[Any]:
    """The outputs, of these types and shapes. Scratch has elements of the first one's type."""
    texts = [(text, compile(text.source, text.name, "exec")) for text in plan.launches]
    results = [np.zeros(shape, dtype) for dtype, shape in outputs]
    buffers = {INPUT: [x.reshape(-1) for x in inputs], OUTPUT: [y.reshape(-1) for y in results]}
    buffers[SCRATCH] = [np.zeros(nbytes, np.uint8).view(outputs[0][0]) for nbytes in plan.scratch]
    with np.errstate(all="ignore"):
        for text, code in texts:
            names = dict(NAMES)
            exec(code, names)  # noqa: S102 - the text of a test
            arguments = [a.value if a.kind == SIZE else buffers[a.kind][a.value] for a in text.arguments]
            for group in product(*(range(n // m) for n, m in zip(text.global_size, text.local_size, strict=True))):
                _run_group(names[text.name], text.local_size, group, arguments)
    return results


def _run_group(kernel: Any, size: tuple[int, ...], group: tuple[int, ...], arguments: Sequence[Any]) -> None:
    shared: dict[str, list[Any]] = {}
    first = [number * length for number, length in zip(group, size, strict=True)]
    items: list[Iterator[None]] = [
        kernel([at + i for at, i in zip(first, local, strict=True)], local, group, shared, *arguments)
        for local in product(*map(range, size))]
    while items:  # up to the next barrier, or the end
        items = [item for item in items if next(item, item) is None]
