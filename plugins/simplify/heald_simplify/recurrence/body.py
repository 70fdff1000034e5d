"""Evaluation of a loop's functions: from values of the arguments to values of the results.

A tensor that no recurrent cell has is None, and so is all that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from heald.api import DType, Function, HealdError, Input, Node, Resolved

from .body_values import Matrix, Scalar, Value, Values
from .polynomials import Activation, Algebra, Block, Item, Polynomial, Source, Vector, constant

MOST_NODES = 400  # of a body; Keras's largest has a hundred
HARMLESS = frozenset({"Const", "Identity", "NoOp", "ReadVariableOp"})
ARRAYS = frozenset({"TensorArrayReadV3", "TensorArrayWriteV3"})  # each is a part of the cell, or the loop stays
EFFECTLESS = ARRAYS | {"ReadVariableOp"}  # stateful ops that change nothing else
UNKNOWN: Values = (None,)
Resolve = Callable[[Node], Resolved | None]
Shapes = Mapping[int, tuple[int | None, ...] | None]  # of the elements of input lists, by argument index


class Outside(NamedTuple):
    """Facts about tensors outside the loop: as weights, if their shape is known, the width of a matrix of zeros, and
    the flow of an input array."""

    weights: Callable[[Source], Block | None]
    width_of_zeros: Callable[[Input], int | None]
    input_flow: Callable[[Input], Input | None]


class BodyEvaluation:
    """One function of a loop, with values of its arguments."""

    def __init__(
        self, function: Function, arguments: Sequence[Value | None], dtypes: Sequence[DType | None],
        item_shapes: Shapes, rules: RuleTable, resolve: Resolve, algebra: Algebra, outside: Outside,
    ) -> None:
        self._function = function
        self._dtypes = {arg.name: dtype for arg, dtype in zip(function.inputs, dtypes, strict=True)}
        self._arguments = {arg.name: value for arg, value in zip(function.inputs, arguments, strict=True)}
        self._item_shapes = item_shapes
        self._rules = rules
        self._resolve = resolve
        self.algebra = algebra
        self.outside = outside
        self.needs_single_row = False  # a matrix loses the axis of its rows
        self.needs_equal_rows = False  # matrices are side by side, which broadcasts none of them
        self.zeros: set[Input] = set()  # that take the place of masked rows
        self.row_counts: set[int] = set()  # of constants that take the place of matrices
        self._values: dict[str, Values] = {}

    def results(self) -> list[Value | None] | None:
        """The values of the results. None for a function with effects, and for one that is too large."""
        function = self._function
        if len(function.nodes) > MOST_NODES or not all(map(self._is_plain, function.nodes.values())):
            return None
        results = [self._value_of_result(function.ret.get(arg.name)) for arg in function.outputs]
        if not self._arrays_fit():
            return None
        waited = {name for node in function.nodes.values() for name in node.controls}
        for name in waited.union(function.control_ret.values()) - self._values.keys():
            if name not in function.nodes or function.nodes[name].op not in HARMLESS:
                return None
        return results

    def _arrays_fit(self) -> bool:
        """True where each array is read or written once, by a node that a result needs."""
        nodes = [node for node in self._function.nodes.values() if node.op in ARRAYS]
        handles = {self.value(node.inputs[0]) for node in nodes}
        return len(handles) == len(nodes) and None not in handles and all(
            self._values.get(node.name, UNKNOWN)[0] is not None for node in nodes)

    def _is_plain(self, node: Node) -> bool:
        """True for a node without effect whose inputs have the types of its op."""
        entry = self._resolve(node)
        if entry is None or (entry.op.stateful and node.op not in EFFECTLESS):
            return False
        return all(self._dtype(source) is tensor.dtype
                   for source, tensor in zip(node.inputs, entry.input_tensors, strict=True))

    def _dtype(self, tensor: Input) -> DType | None:
        """The element type of a tensor of the function, None for a tensor that no node has."""
        node = self._function.nodes.get(tensor.node)
        if node is None:
            return self._dtypes.get(tensor.node)
        entry = self._resolve(node)
        outputs = [] if entry is None else [output.dtype for output in entry.output_tensors
                                            if tensor.output in (None, output.arg)]
        return outputs[tensor.index] if tensor.index < len(outputs) else None

    def _value_of_result(self, tensor: Input | None) -> Value | None:
        return None if tensor is None else self.value(tensor)

    def value(self, tensor: Input) -> Value | None:
        """The value of a tensor of the function. Its nodes are evaluated sources first."""
        stack = [tensor.node]
        begun: set[str] = set()
        while stack:
            name = stack[-1]
            node = self._function.nodes.get(name)
            if node is None or name in self._values:
                stack.pop()
                continue
            missing = [source.node for source in node.inputs
                       if source.node in self._function.nodes and source.node not in self._values]
            if missing and name not in begun:
                begun.add(name)
                stack += missing
                continue
            self._values[name] = UNKNOWN if missing else self._evaluate(node)  # a circle stays unknown
            stack.pop()
        if tensor.node not in self._function.nodes:
            return self._arguments.get(tensor.node)
        entry = self._resolve(self._function.nodes[tensor.node])
        values = self._values[tensor.node]
        if entry is None or len(values) != len(entry.output_tensors):
            return None
        values = tuple(value for value, output in zip(values, entry.output_tensors, strict=True)
                       if tensor.output in (None, output.arg))
        return values[tensor.index] if tensor.index < len(values) else None

    def _evaluate(self, node: Node) -> Values:
        entry, rule = self._resolve(node), self._rules.get(node.op)
        if entry is None or rule is None:
            return UNKNOWN
        try:
            return rule(self, entry, [self.value(source) for source in node.inputs])
        except HealdError:  # a malformed constant: running the node raises the error
            return UNKNOWN

    def weights(self, value: Value | None) -> Block | None:
        return self.outside.weights(value) if isinstance(value, Source) else value if isinstance(value, Block) else None

    def matrix(self, value: Value | None, width: int) -> Matrix | None:
        """A value as a matrix of this width: a matrix, weights that are equal for all rows, or a number."""
        if isinstance(value, Matrix):
            return value if value.width == width else None
        if isinstance(value, Scalar):
            return Matrix(constant(value.value), width)
        weights = self.weights(value)
        if weights is None or weights.width != width or (weights.rows is not None and weights.height != 1):
            return None
        return Matrix(self.algebra.polynomial(Vector(as_vector(weights))), width, is_row=True)

    def activation(self, op: str, argument: Polynomial) -> Polynomial:
        return self.algebra.polynomial(Activation(op, argument))

    def item_shape(self, index: int) -> tuple[int | None, ...] | None:
        return self._item_shapes.get(index)

    def item(self, index: int) -> Value | None:
        """The element of an input list for this step."""
        shape = self._item_shapes.get(index)
        if shape is None or len(shape) != 2 or shape[1] is None:
            return None
        return Matrix(self.algebra.polynomial(Item(index)), shape[1])


Rule = Callable[[BodyEvaluation, Resolved, list[Value | None]], Values]


class RuleTable(dict[str, Rule]):
    """The rules of ops, by name."""

    def rule(self, *ops: str) -> Callable[[Rule], Rule]:
        """A decorator of the rule of these ops."""
        def register(rule: Rule) -> Rule:
            self.update(dict.fromkeys(ops, rule))
            return rule

        return register


def as_vector(weights: Block) -> Block:
    """A row of weights in the one form that a vector has in polynomials."""
    return weights if weights.rows is None else weights._replace(is_row=True)


def fits_shape(stated: np.ndarray[Any, Any], shape: tuple[int | None, ...] | None) -> bool:
    """True where a list's element shape, with -1 for unknown sizes, is sure to be that of tensors of this shape."""
    if stated.ndim != 1 or shape is None:
        return shape is not None and stated.ndim == 0 and stated == -1
    return len(stated) == len(shape) and all(stated_size in (-1, size) for stated_size, size in
                                             zip(stated.tolist(), shape, strict=True))
