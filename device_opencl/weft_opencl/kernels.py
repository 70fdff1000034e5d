"""The kernels. Imported when somebody first asks for a device of type OPENCL.

A few templates over one table. Operands are seen as matrices of the output's rows and columns, of which each has all
rows or one, and all columns or one: so no index is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
from weft.api import Bind, Declined, Kernels

Shape = tuple[int, ...]
Bound = Callable[..., None] | Declined
FLOAT, BOTH = ("float32",), ("float32", "int32")
TYPES = {"float32": "float", "int32": "int"}
SIZED = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
         "float32", "float64")
GROUP = 64

# op -> (expression of x and y, types). W is the type to compute in: unsigned where int would overflow. A NaN stays one.
ELEMENTWISE: dict[str, tuple[str, tuple[str, ...]]] = {
    "AddV2": ("(W)x + (W)y", BOTH),
    "BiasAdd": ("(W)x + (W)y", BOTH),
    "Exp": ("exp(x)", FLOAT),
    "Maximum": ("x > y || x != x ? x : y", BOTH),
    "Minimum": ("x < y || x != x ? x : y", BOTH),
    "Mul": ("(W)x * (W)y", BOTH),
    "Neg": ("-(W)x", BOTH),
    "Relu": ("x < 0 ? 0 : x", BOTH),
    "Relu6": ("x < 0 ? 0 : x > 6 ? 6 : x", BOTH),
    "Rsqrt": ("rsqrt(x)", FLOAT),
    "Sigmoid": ("1 / (1 + exp(-x))", FLOAT),
    "Sqrt": ("sqrt(x)", FLOAT),
    "Sub": ("(W)x - (W)y", BOTH),
    "Tanh": ("tanh(x)", FLOAT),
}
WHEN = {"BiasAdd": lambda attrs: attrs["data_format"] != "NCHW"}
ALIASES: dict[str, tuple[str, ...]] = {"Identity": (), "Reshape": ("shape",), "Squeeze": (), "ExpandDims": ("dim",)}

HEAD = """
typedef {type} T;
typedef {wide} W;
kernel void {name}({inputs}, global T *restrict out, const ulong rows, const ulong columns{more}) {{
    const size_t column = get_global_id(0), row = get_global_id(1);
    if (row >= rows || column >= columns) return;
"""
ELEMENT = HEAD + """    {loads}
    out[row * columns + column] = (T)({expression});
}}
"""
MATMUL = HEAD + """
    W sum = 0;
    for (size_t k = 0; k < inner; ++k)
        sum += (W)a[{left}] * (W)b[{right}];
    out[row * columns + column] = (T)sum;
}}
"""


def register(kernels: Kernels) -> None:
    for op, (expression, types) in ELEMENTWISE.items():
        kernels.kernel(op, dtypes={"T": types}, when=WHEN.get(op))(partial(elementwise, expression))
    kernels.kernel("MatMul", dtypes={"T": BOTH})(matmul)
    for op, host in ALIASES.items():
        kernels.kernel(op, dtypes={"T": SIZED}, alias={0: 0}, host=host)(alias)


def elementwise(expression: str, b: Bind) -> Bound:
    output, names = b.outputs[0], "xy"[: len(b.inputs)]
    grid = as_matrix([i.meta.dims for i in b.inputs], output.dims)
    if grid is None:
        return b.decline("its operands broadcast along more than rows and columns")
    loads = " ".join(f"const T {x} = {x}s[{index}];" for x, index in zip(names, grid.indices, strict=True))
    source = _text(ELEMENT, b, [f"{x}s" for x in names], more="", loads=loads, expression=expression)
    return _launcher(b, source, grid.rows, grid.columns)


def matmul(b: Bind) -> Bound:
    rows, columns = b.outputs[0].dims
    inner = b.inputs[0].meta.dims[not b.attrs["transpose_a"]]
    a = "k * rows + row" if b.attrs["transpose_a"] else "row * inner + k"
    other = "column * inner + k" if b.attrs["transpose_b"] else "k * columns + column"
    source = _text(MATMUL, b, ["a", "b"], more=", const ulong inner", left=a, right=other)
    return _launcher(b, source, rows, columns, np.uint64(inner))


def alias(_b: Bind) -> None:
    return None  # output 0 is the buffer of input 0: there is nothing to launch


class Grid(NamedTuple):
    rows: int
    columns: int
    indices: tuple[str, ...]  # of each operand's element, for the output's row and column


INDEX = {(True, True): "row * columns + column", (False, True): "column", (True, False): "row", (False, False): "0"}


def as_matrix(operands: Sequence[Shape], output: Shape) -> Grid | None:
    """The output as rows and columns such that each operand has all of either, or one; None if it cannot be."""
    padded = [(1,) * (len(output) - len(shape)) + shape for shape in operands]
    for split in range(len(output) + 1):
        parts = [[(part, whole) for part, whole in ((shape[:split], output[:split]), (shape[split:], output[split:]))]
                 for shape in padded]
        if all(part == whole or prod(part) == 1 for pair in parts for part, whole in pair):
            indices = tuple(INDEX[pair[0][0] == pair[0][1], pair[1][0] == pair[1][1]] for pair in parts)
            return Grid(prod(output[:split]), prod(output[split:]), indices)
    return None


def _text(template: str, b: Bind, inputs: Sequence[str], **parts: str) -> str:
    type_name = TYPES[b.outputs[0].dtype.name]
    arguments = ", ".join(f"global const T *restrict {name}" for name in inputs)
    return template.format(name=b.op, type=type_name, wide="uint" if type_name == "int" else type_name,
                           inputs=arguments, **parts)


def _launcher(b: Bind, source: str, rows: int, columns: int, *more: np.uint64) -> Bound:
    """A work-item an element, in groups of two shapes only: some drivers compile for each."""
    launch = b.device.native.kernel(source, b.op)
    wide, high = (GROUP, 1) if columns >= GROUP else (1, GROUP)
    size = -(-columns // wide) * wide, -(-rows // high) * high
    scalars = np.uint64(rows), np.uint64(columns), *more
    return lambda *buffers: launch(size, (wide, high), *buffers, *scalars)
