"""The texts of all families of kernels, by target and op, and the digests that tests/data/kernel_texts.json records.

Record them again after a change of texts on purpose: PYTHONPATH=tests python -m harness.text_corpus
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from harness.kernel_text_nodes import node
from harness.network_problems import problems
from heald.errors import Unimplemented
from heald.runtime.values import dtypes
from heald_kernel_text import (
    CUDA_GPU,
    METAL_GPU,
    NODES,
    OPENCL_CPU,
    OPENCL_GPU,
    WGSL_GPU,
    KernelText,
    Literal,
    Plan,
    Step,
    Target,
    elementwise,
    has,
)
from heald_kernel_text.arg_extreme import BETTER, arg_extreme
from heald_kernel_text.element_types import ELEMENTS
from heald_kernel_text.elementwise_ops import MORE_OPERANDS, OPS
from heald_kernel_text.gather import gather
from heald_kernel_text.recurrent_cells import ACTIVATIONS
from heald_kernel_text.reduction import reduce
from heald_kernel_text.reduction_ops import REDUCTIONS
from heald_kernel_text.softmax import softmax

FILE = Path(__file__).parent.parent / "data" / "kernel_texts.json"
TARGETS = {"OpenCL C, CPU": OPENCL_CPU, "OpenCL C, GPU": OPENCL_GPU, "CUDA C": CUDA_GPU,
           "Metal": METAL_GPU, "WGSL": WGSL_GPU}
SHAPES = (((3,),) * 4, ((2, 40),) * 4, ((4, 1, 3), (1, 5, 1), (4, 5, 3), (3,)), ((2, 3, 4, 5), (2, 1, 1, 5), (5,), ()))
AXES = (((7,), (0,)), ((3, 40), (1,)), ((3, 40), (0,)), ((2, 3, 4, 5), (1, 3)), ((2, 3, 4, 5), (0, 2)), ((2, 0), (1,)),
        ((4, 5), ()), ((1 << 14,), (0,)))
FLOATS = [d for d in ELEMENTS if d.kind == "f"]


def _elementwise_plans(target: Target) -> Iterator[tuple[str, Callable[[], Plan]]]:
    for op, row in OPS.items():
        literals = tuple(Literal(0.1 + i) for i in range(len(MORE_OPERANDS.get(op, ()))))
        count = row.arity - len(literals)
        for dtype, shapes in product((d for d in ELEMENTS if has(op, d)), SHAPES):
            types = [dtypes.bool_] * row.typed_by + [dtype] * (row.arity - row.typed_by)
            steps = (Step(op, tuple(range(row.arity))),)
            yield op, partial(elementwise, target, steps, list(zip(types, shapes, strict=False)))
            if literals:
                operands = list(zip(types[:count], shapes, strict=False))
                yield op, partial(elementwise, target, (Step(op, (*range(count), *literals)),), operands)


def _chain_plans(target: Target) -> Iterator[tuple[str, Callable[[], Plan]]]:
    for dtype, shapes in product(ELEMENTS, SHAPES):
        if dtype.kind == "b":
            continue
        steps = [Step("AddV2", (0, 1)), Step("Maximum", (3, 2)), Step("Sub", (4, Literal(1))), Step("Greater", (5, 0)),
                 Step("Select", (6, 5, 1)), Step("Mul", (Literal(-3), 7))]
        yield "chain", partial(elementwise, target, steps, [(dtype, shape) for shape in shapes[:3]], outputs=(5, 6, 8))
    for source, result in product(ELEMENTS, ELEMENTS):
        yield "Cast", partial(elementwise, target, (Step("Cast", (0,), result),), [(source, (3, 4))])
    for name, activation in ACTIVATIONS.items():
        yield f"activation {name}", partial(elementwise, target, activation, [(dtypes.float32, (3, 40))])
    for value in (0.0, -1.5, float("inf"), float("-inf"), float("nan"), 1e300):
        for dtype in FLOATS:
            yield "literal", partial(elementwise, target, (Step("AddV2", (0, Literal(value))),), [(dtype, (3,))])


def _reduction_plans(target: Target) -> Iterator[tuple[str, Callable[[], Plan]]]:
    for (op, reduction), dtype, (shape, axes) in product(REDUCTIONS.items(), ELEMENTS, AXES):
        if any(dtype.kind in classes for classes in reduction.trees):
            yield op, partial(reduce, target, op, dtype, shape, axes)
    for op, dtype, axis in product(BETTER, ELEMENTS, range(3)):
        yield op, partial(arg_extreme, target, op, dtype, (3, 4, 5), axis, dtypes.int64 if axis else dtypes.int32)
    for op, dtype in product(("Softmax", "LogSoftmax"), FLOATS):
        yield op, partial(softmax, target, op, dtype, 3, 40)
    for itemsize, indices in product((1, 2, 4, 8), (dtypes.int32, dtypes.int64)):
        yield "gather", partial(gather, target, itemsize, indices, batch=2, outer=3, length=4, inner=5, picks=6)


def _network_plans(target: Target) -> Iterator[tuple[str, Callable[[], Plan]]]:
    for problem in problems():
        yield f"networks: {problem.bind.op}", partial(problem.plan, target)


def _recurrent_plans(target: Target) -> Iterator[tuple[str, Callable[[], Plan]]]:
    cell = [np.zeros(shape, np.float32) for shape in ((1, 2), (1, 3), (1, 3), (5, 12), (3,), (3,), (3,), (12,))]
    for attrs in ({}, {"cell_clip": 3.0, "use_peephole": True}):
        b = node("LSTMBlockCell", cell, {"T": dtypes.float32} | attrs)
        yield "LSTMBlockCell", partial(NODES["LSTMBlockCell"].make, target, b)


FAMILIES = (_elementwise_plans, _chain_plans, _reduction_plans, _network_plans, _recurrent_plans)


def texts(target: Target) -> Iterator[tuple[str, KernelText]]:
    """Yield op and launch; ops without a text in this dialect are left out."""
    for family in FAMILIES:
        for op, make in family(target):
            try:
                launches = make().launches
            except Unimplemented:
                continue
            for text in launches:
                yield op, text


def digests() -> dict[str, dict[str, str]]:
    """By target and op: the digest of its texts in order."""
    hashes: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(sha256))
    for name, target in TARGETS.items():
        for op, text in texts(target):
            launch = f"{text.name} {text.arguments} {text.global_size} {text.local_size}\n{text.source}"
            hashes[name][op].update(launch.encode())
    return {target: {op: digest.hexdigest()[:16] for op, digest in ops.items()} for target, ops in hashes.items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(digests(), indent=1) + "\n")
