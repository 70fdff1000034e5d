"""Structural ops are declared as in TensorFlow's op set, and known without it."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import FLOAT, const, node
from heald.errors import InvalidArgument
from heald.graphs.compiler.infer_node import infer_node
from heald.graphs.compiler.resolve import resolve
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract import structural
from heald.runtime.contract.op_registry import OpRegistry
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_tf_ops.plugin import OPS

NO_ELEMENTS = structural.ControlFlow("", ())
CORE_ALONE = OpRegistry(structural.OPS)
OTHERS = {"CHAIN_CODES", "KEEPING_CODES", "ITERATORS"}  # codes, and ops that the op set alone declares
ROLES = {name: value for name, value in vars(structural).items()
         if name.isupper() and isinstance(value, frozenset) and name not in OTHERS}


@pytest.mark.parametrize("name", sorted({*structural.OPS} - {structural.FRAME_OP}))  # heald's own op
def test_a_structural_op_is_declared_as_in_tensorflows_op_set(name):
    declared_op, theirs = structural.OPS[name], OPS[name]
    assert declared_op.signature == theirs.signature
    assert declared_op.deprecated == theirs.deprecated


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_played_by_structural_ops(role):
    assert ROLES[role] - {name for name in OPS if structural.CONTROL_FLOW.get(name, NO_ELEMENTS).elements} <= set(
        structural.OPS)


def test_the_ops_on_datasets_are_those_of_the_op_set():
    on_datasets = {name: flow for name, flow in structural.CONTROL_FLOW.items() if flow.elements}
    assert {*on_datasets, *structural.ITERATORS, structural.MAKE_ITERATOR} <= {*OPS}
    assert {flow.code for flow in on_datasets.values()} == structural.KEEPING_CODES


def test_core_alone_knows_no_other_op():
    assert set(CORE_ALONE) == set(structural.OPS)
    assert all(CORE_ALONE.plugin_of(name) is None for name in CORE_ALONE)


def outputs(of, *others, inputs):
    """Metadata of a node's outputs by core alone, from that of its inputs."""
    return infer_node(resolve(Graph([of, *others]), CORE_ALONE)[of.name], inputs, CORE_ALONE)


def test_an_identity_gives_its_input_with_its_elements():
    input_info = constant_info(np.float32([1, 2]))
    (y,) = outputs(node("y", "Identity", "c"), const("c", [1, 2]), inputs=[input_info])
    assert (y.shape, y.value.tolist()) == ((2,), [1, 2])


def test_a_placeholder_with_default_gives_the_type_and_shape_of_both():
    default = Node("p", "PlaceholderWithDefault", ["c"], attrs={"dtype": FLOAT, "shape": ShapeAttr((None, 2))})
    (y,) = outputs(default, const("c", [[1, 2]]), inputs=[info(FLOAT, (1, 2))])
    assert (y.dtype, y.shape, y.value) == (dtypes.float32, (1, 2), None)


def test_a_default_that_does_not_fit_its_placeholder_is_refused():
    rule = CORE_ALONE.metadata(CORE_ALONE.get("PlaceholderWithDefault"))
    with pytest.raises(InvalidArgument, match=r"the default does not fit the placeholder: \[3\] and \[2\] differ"):
        rule.function({"dtype": FLOAT, "shape": (3,)}, info(FLOAT, (2,)))
