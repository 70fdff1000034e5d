"""Plans for fused nodes: chains of elementwise ops, and products with an elementwise epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heald.api import Bind, FusedOp, errors

from .broadcast import Dims
from .dialect import Target
from .elementwise import elementwise
from .epilogue import CHANNEL, FULL, Epilogue
from .expression import Literal, Step, node_step
from .image_plans import channels, convolution, depthwise, normalisation
from .math_plans import elementwise_types, matmul_node
from .plan import Plan

NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
BY_SHAPES = ("Equal", "NotEqual")  # the shapes alone may decide the result
HEADS = {"BatchMatMulV2": matmul_node, "Conv2D": convolution, "DepthwiseConv2dNative": depthwise, "MatMul": matmul_node}
OPS = (*(op for op in elementwise_types() if op not in BY_SHAPES), "BiasAdd", "Cast", "Identity", "SelectV2", *NORMS)


def chain(target: Target, b: Bind) -> Plan:
    """The plan of elementwise ops without a product."""
    steps = Steps(b, b.fused)
    inputs = steps.inputs()
    operands = [(b.inputs[i].dtype, steps.shape(i)) for i in inputs]
    return elementwise(target, steps.renumbered_steps(inputs), operands, shape=b.outputs[0].dims).over(inputs)


class Product(NamedTuple):
    """A product and the elementwise ops over its results. `args`: the inputs that the head and the epilogue read."""

    head: Bind
    epilogue: Epilogue
    args: tuple[int, ...]


def fused_product(b: Bind) -> Product:
    """The product among fused nodes. Raises Unimplemented."""
    heads = [node for node in b.fused if node.op in HEADS]
    if not heads:
        raise errors.Unimplemented("there is no product among these nodes")
    head = heads[0]
    steps = Steps(b, [node for node in b.fused if node is not head])
    inputs = steps.inputs()
    operands = tuple((b.inputs[i].dtype, _kind(steps.shape(i), b.outputs[0].dims)) for i in inputs)
    epilogue = Epilogue(steps.renumbered_steps([head.results[0], *inputs]), operands)
    inputs_of_head = tuple(b.inputs[a] for a in head.args)
    alone = Bind(b.node, head.op, head.attrs, inputs_of_head, head.outputs, b.device, b.stream, {})
    return Product(alone, epilogue, (*head.args, *inputs))


def product(target: Target, b: Bind) -> Plan:
    """The plan of a product and the elementwise ops over its results."""
    head, epilogue, args = fused_product(b)
    return HEADS[head.op](target, head, epilogue).over(args)


def _kind(shape: Dims, output: Dims) -> str:
    """FULL or CHANNEL: the way an operand broadcasts against the output. Raises Unimplemented for other shapes."""
    if shape == output:
        return FULL
    if shape and shape[-1] == output[-1] and set(shape[:-1]) <= {1}:
        return CHANNEL
    raise errors.Unimplemented(f"an operand of shape {list(shape)} after a product of shape {list(output)}")


class Steps:
    """Fused ops as expression steps. Operands are values of `Bind.fused`, earlier steps, or literals."""

    def __init__(self, b: Bind, fused: Sequence[FusedOp]) -> None:
        self._b = b
        self._shapes: dict[int, Dims] = {}  # of inputs that broadcast in another shape than their own
        self._made: dict[int, int] = {}  # from a value to the step that computes it
        self._steps: list[Step] = []  # values by number, steps as -1 - number
        for fused_op in fused:
            count, first = len(fused_op.args), len(self._steps)
            for step in self._own_steps(fused_op):
                args = [a if isinstance(a, Literal) else fused_op.args[a] if a < count else -1 - (first + a - count)
                        for a in step.args]
                self._steps.append(step._replace(args=self._with_literals(args)))
            self._made[fused_op.results[0]] = len(self._steps) - 1

    def shape(self, value: int) -> Dims:
        return self._shapes.get(value, self._b.inputs[value].meta.dims)

    def inputs(self) -> list[int]:
        """The indices of the inputs that the steps read."""
        count = len(self._b.inputs)
        return sorted({a for step in self._steps for a in step.args if not isinstance(a, Literal) and 0 <= a < count})

    def renumbered_steps(self, operands: Sequence[int]) -> tuple[Step, ...]:
        """The steps with operands renumbered: the given values first, then the steps."""
        number = {value: i for i, value in enumerate(operands)}
        first = len(operands)

        def of(arg: int | Literal) -> int | Literal:
            if isinstance(arg, Literal):
                return arg
            if arg in number:
                return number[arg]
            return first + (-1 - arg if arg < 0 else self._made[arg])

        return tuple(step._replace(args=tuple(map(of, step.args))) for step in self._steps)

    def _own_steps(self, node: FusedOp) -> Sequence[Step]:
        """Steps over the op's own arguments."""
        if node.op == "Cast":
            if node.attrs["Truncate"]:
                raise errors.Unimplemented("no kernel text for casts that truncate floats")
            return (Step("Cast", (0,), node.outputs[0].dtype),)
        if node.op != "BiasAdd" and node.op not in NORMS:
            return (node_step(node.op, node.attrs, len(node.args)),)
        for value in node.args[1:]:
            vector = channels(node.attrs, self._input(value)[-1], len(node.outputs[0].dims))
            if self._shapes.setdefault(value, vector) != vector:
                raise errors.Unimplemented("one vector is that of channels in two layouts")
        return (Step("AddV2", (0, 1)),) if node.op == "BiasAdd" else normalisation(node.attrs, node.outputs[0].dtype)

    def _input(self, value: int) -> Dims:
        if value >= len(self._b.inputs):
            raise errors.Unimplemented("a vector of channels that is computed by the same kernel")
        return self._b.inputs[value].meta.dims

    def _with_literals(self, args: Sequence[int | Literal]) -> tuple[int | Literal, ...]:
        """The operands of a step. In a binary step, one operand that is a known number becomes a literal."""
        number_operands = [i for i, a in enumerate(args) if not isinstance(a, Literal) and self._is_number(a)]
        if len(args) != 2 or len(number_operands) != 1 or any(isinstance(a, Literal) for a in args):
            return tuple(args)
        return tuple(Literal(self._number(a)) if i in number_operands else a for i, a in enumerate(args))  # type: ignore[arg-type]

    def _is_number(self, value: int) -> bool:
        """True for an input of one float that is known before the run."""
        if not 0 <= value < len(self._b.inputs):
            return False
        info = self._b.inputs[value]
        return info.value is not None and info.size == 1 and info.dtype.kind == "f"

    def _number(self, value: int) -> float:
        number = self._b.inputs[value].value
        assert number is not None
        return float(number.reshape(-1)[0])
