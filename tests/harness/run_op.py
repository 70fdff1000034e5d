"""Runs one op with its metadata function and its best kernel, as a session would, without a graph around it."""

from __future__ import annotations

from typing import Any

import numpy as np
from heald.runtime.contract.device import DeviceType
from heald.runtime.contract.kernel import Bind, Declined, KernelPack
from heald.runtime.contract.op import infer
from heald.runtime.host.registries import Registries
from heald.runtime.values.dtypes import of_numpy
from heald.runtime.values.tensor import constant_info
from heald_cpu.device import Cpu
from heald_tf_ops.plugin import OPS, SEQUENCE_OPS

REGISTRIES = Registries()
REGISTRIES.ops.add_table(OPS, "tf_ops")
REGISTRIES.ops.add_table(SEQUENCE_OPS, "tf_ops")
REGISTRIES.device_types.add(DeviceType("CPU", "heald_cpu.device:scan", None, 0, "cpu"))
REGISTRIES.kernels.add_pack(KernelPack("CPU", "heald_cpu.kernels:register_kernels", 0, "cpu", is_of_device_plugin=True))


def run_op(name: str, inputs: list[np.ndarray[Any, Any]], attrs: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Outputs of op `name`; attributes it lacks get their defaults. Raises what metadata or kernel raise."""
    op = REGISTRIES.ops.get(name)
    attrs = {n: a.default for n, a in op.attrs.items() if n not in attrs} | attrs
    infos = [constant_info(np.asarray(x)) for x in inputs]
    rule = REGISTRIES.ops.metadata(op)
    values = {t for t, e in enumerate(op.expand_inputs(attrs)) if rule is not None and e.arg in rule.values}
    for i, info in enumerate(infos):
        if i not in values:
            info.value = None
    outputs = tuple(o.meta for o in infer(op, rule, attrs, infos))
    for kernel in REGISTRIES.kernels.candidates(name, "CPU"):
        if kernel.refuses(attrs):
            continue
        bound = kernel.bind(Bind("node", name, attrs, tuple(infos), outputs, Cpu(0), None, {}))
        if isinstance(bound, Declined):
            continue
        if bound is None:
            sources = [kernel.aliases(attrs)[i] for i in range(len(outputs))]
            return [np.asarray(inputs[s]).reshape(o.dims) for s, o in zip(sources, outputs, strict=True)]
        if kernel.allocates:
            with np.errstate(all="ignore"):
                result = bound(*inputs)
            return list(result) if isinstance(result, tuple) else [result]
        results = [np.empty(o.dims, o.dtype.numpy) for o in outputs]
        with np.errstate(all="ignore"):
            getattr(bound, "run", bound)(*inputs, *results)
        return results
    raise AssertionError(f"no kernel for {name} {attrs}: {REGISTRIES.kernels.failures}")


def outputs(name: str, *inputs: Any, **attrs: Any) -> list[np.ndarray[Any, Any]]:
    """`run_op` with the attributes of types and counts taken from the inputs."""
    arrays = [np.asarray(x) for x in inputs]
    return run_op(name, arrays, attributes(name, arrays, attrs))


def attributes(name: str, inputs: list[np.ndarray[Any, Any]], attrs: dict[str, Any]) -> dict[str, Any]:
    """`attrs`, the defaults, and types and counts as the inputs have them; lists of inputs are equally long."""
    defined = REGISTRIES.ops.get(name)
    defaults: dict[str | None, Any] = {n: a.default for n, a in defined.attrs.items()}
    lists = [bool(arg.number_attr or arg.type_list_attr) for arg in defined.inputs]
    remaining = list(inputs)
    for arg, is_list in zip(defined.inputs, lists, strict=True):
        count = (len(inputs) - lists.count(False)) // lists.count(True) if is_list else 1
        group, remaining = remaining[:count], remaining[count:]
        types = tuple(of_numpy(x.dtype) for x in group)
        defaults |= {arg.number_attr: count, arg.type_list_attr: types} | ({arg.type_attr: types[0]} if types else {})
    return {n: v for n, v in (defaults | attrs).items() if n is not None}
