"""Plans for nodes that compute: elementwise ops, reductions, softmax, matrix products."""

from __future__ import annotations

from itertools import combinations
from math import prod

from heald.api import Bind, errors, geometry

from .arg_extreme import arg_extreme
from .broadcast import broadcast_dims
from .dialect import Target
from .element_types import ELEMENTS
from .elementwise import elementwise
from .elementwise_ops import OPS
from .epilogue import Epilogue
from .expression import Step, node_step
from .gemm import gemm
from .gemm_problem import GemmProblem
from .lhs import Matrix
from .matmul import matmul_problem
from .plan import Plan
from .reduction import reduce
from .softmax import softmax


def ints(b: Bind, index: int) -> tuple[int, ...]:
    """The elements of a host-memory input. Raises Unimplemented unless they are known before the run."""
    value = b.inputs[index].value
    if value is None:
        raise errors.Unimplemented(f"the values of input {index} are not known before the run")
    return tuple(int(v) for v in value.reshape(-1))


ROUND_BETWEEN = ("FloorDiv", "TruncateDiv")  # TensorFlow rounds quotients to their two-byte type, then to integers
TWO_BYTES = ("float16", "bfloat16")


def elementwise_types() -> dict[str, tuple[str, ...]]:
    """The elementwise ops that are nodes by themselves, with the dtypes of their text; empty for ops of bool only."""
    types_of_op = {}
    for op, row in OPS.items():
        classes = "".join(row.trees)
        if not row.typed_by and op != "Identity":
            types_of_op[op] = () if classes == "b" else tuple(
                d.name for d in ELEMENTS if d.kind in classes and not (op in ROUND_BETWEEN and d.name in TWO_BYTES))
    return types_of_op


def elementwise_node(target: Target, b: Bind) -> Plan:
    inputs = [(x.dtype, x.meta.dims) for x in b.inputs]
    if not all(geometry.shapes_fit(x, y) for (_, x), (_, y) in combinations(inputs, 2)):
        raise errors.Unimplemented("the comparison of shapes that do not fit is decided without a kernel")
    output = b.outputs[0].dims
    if broadcast_dims([shape for _, shape in inputs]) != output:
        raise errors.Unimplemented("no kernel text for operands whose shapes differ from the output's")
    return elementwise(target, (node_step(b.op, b.attrs, len(inputs)),), inputs, shape=output)


def add_n(target: Target, b: Bind) -> Plan:
    """The plan of AddN: one launch, which adds in the order of the inputs."""
    count = len(b.inputs)
    steps = [Step("AddV2", (count + i - 2 if i > 1 else 0, i)) for i in range(1, count)] or [Step("Identity", (0,))]
    return elementwise(target, steps, [(x.dtype, x.meta.dims) for x in b.inputs], shape=b.outputs[0].dims)


def select(target: Target, b: Bind) -> Plan:
    """The plan of Select and SelectV2. A condition vector of Select chooses rows."""
    shapes = [x.meta.dims for x in b.inputs]
    if b.op == "Select" and len(shapes[0]) == 1:
        shapes[0] += (1,) * (len(b.outputs[0].dims) - 1)
    inputs = [(x.dtype, shape) for x, shape in zip(b.inputs, shapes, strict=True)]
    return elementwise(target, (Step(b.op, (0, 1, 2)),), inputs, shape=b.outputs[0].dims)


def cast(target: Target, b: Bind) -> Plan:
    if b.attrs["Truncate"]:
        raise errors.Unimplemented("no kernel text for casts that truncate floats")
    step = Step("Cast", (0,), b.outputs[0].dtype)
    return elementwise(target, (step,), [(b.inputs[0].dtype, b.outputs[0].dims)])


def reduction(target: Target, b: Bind) -> Plan:
    x = b.inputs[0].meta
    axes = geometry.reduction_axes(len(x.dims), ints(b, 1))
    return reduce(target, b.op, x.dtype, x.dims, axes)


def arg_reduction(target: Target, b: Bind) -> Plan:
    x = b.inputs[0].meta
    (axis,) = ints(b, 1)
    return arg_extreme(target, b.op, x.dtype, x.dims, axis % len(x.dims), b.outputs[0].dtype)


def softmax_node(target: Target, b: Bind) -> Plan:
    dims = b.outputs[0].dims
    return softmax(target, b.op, b.outputs[0].dtype, prod(dims[:-1]), dims[-1])


TURNED = {"MatMul": ("transpose_a", "transpose_b"), "BatchMatMulV2": ("adj_x", "adj_y")}  # attributes


def matmul_node(target: Target, b: Bind, epilogue: Epilogue | None = None) -> Plan:
    return gemm(target, "MatMul", *node_problem(b), epilogue or Epilogue())


def node_problem(b: Bind) -> tuple[GemmProblem, Matrix]:
    """The product of a MatMul or BatchMatMulV2. Raises Unimplemented."""
    turn_x, turn_y = (b.attrs[name] for name in TURNED[b.op])
    x, y = (operand.meta.dims for operand in b.inputs)
    return matmul_problem(b.outputs[0].dtype, x, y, transpose_x=turn_x, transpose_y=turn_y)
