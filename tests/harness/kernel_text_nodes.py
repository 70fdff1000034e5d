"""Nodes as kernel text sees them, and how near its results must come to the CPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.run_op import REGISTRIES, run_op
from heald.runtime.contract.kernel import Bind
from heald.runtime.contract.op import infer
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info
from heald_cpu.device import Cpu
from heald_kernel_text import NODES, Target
from workers.run_plan import run_plan

TOLERANCE = {"float64": 1e-11, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def node(op: str, inputs: list[Any], attrs: dict[str, Any]) -> Bind:
    """The `Bind` of a device's bind function, with the values of host inputs."""
    definition = REGISTRIES.ops.get(op)
    attrs = {n: a.default for n, a in definition.attrs.items() if n not in attrs} | attrs
    infos = [constant_info(np.asarray(x)) for x in inputs]
    outputs = tuple(o.meta for o in infer(definition, REGISTRIES.ops.metadata(definition), attrs, infos))
    return Bind("node", op, attrs, tuple(infos), outputs, Cpu(0), None, {})


def on_device(target: Target, b: Bind, inputs: list[Any]) -> list[Any]:
    plan = NODES[b.op].make(target, b)
    return run_plan(plan, inputs, [(o.dtype.numpy, o.dims) for o in b.outputs])


def check(target: Target, op: str, inputs: list[Any], **attrs: Any) -> None:
    """Compare the device's results with the CPU's kernel."""
    for attr, source in (("T", 0), ("SrcT", 0), ("Tparams", 0), ("Tindices", 1)):
        if attr in REGISTRIES.ops.get(op).attrs and attr not in attrs:
            attrs[attr] = dtypes.of_numpy(inputs[source].dtype)
    got = on_device(target, node(op, inputs, attrs), inputs)
    for one, other in zip(got, run_op(op, inputs, attrs), strict=True):
        assert_near(one, other)


def assert_near(got: Any, want: Any, tolerance: float | None = None) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if dtypes.of_numpy(want.dtype).kind == "f":
        limit = tolerance or TOLERANCE[want.dtype.name]
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), limit, limit)
    else:
        np.testing.assert_array_equal(got, want)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Small numbers of any type. Narrow floats are exact in products and sums."""
    if dtypes.of_numpy(np.dtype(dtype)).kind == "f":
        return (rng.integers(-16, 17, shape) / 8).astype(dtype)
    return rng.integers(0 if np.dtype(dtype).kind in "ub" else -9, 2 if dtype == np.bool_ else 10, shape).astype(dtype)
