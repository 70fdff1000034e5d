"""Calls one op like a function: attributes of types and counts are taken from the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from harness.run_op import REGISTRIES, run_op
from heald.runtime.values import dtypes


def call(op: str, *inputs: Any, **attrs: Any) -> Any:
    """The output of `op`, a list where there are several; a list of arrays stands for an input of several tensors."""
    defined = REGISTRIES.ops.get(op)
    attributes = {name: attr.default for name, attr in defined.attrs.items()}
    arrays = []
    for arg, component in zip(defined.inputs, inputs, strict=True):
        tensors = [np.asarray(x) for x in (component if arg.number_attr else [component])]
        attributes[arg.number_attr] = len(tensors)
        if tensors:
            attributes[arg.type_attr] = dtypes.of_numpy(tensors[0].dtype)
        arrays += tensors
    outputs = run_op(op, arrays, {name: value for name, value in (attributes | attrs).items() if name is not None})
    return outputs[0] if len(outputs) == 1 else outputs


def same(got: np.ndarray[Any, Any] | Sequence[Any], *want: Any) -> None:
    """Equal types, shapes and elements."""
    for actual, expected in zip(got if len(want) > 1 else [got], map(np.asarray, want), strict=True):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(actual, expected)
