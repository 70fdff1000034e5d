"""The problems of the networks, which benchmarks/network_problems.py recorded, as a device's kernels meet them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness.run_op import REGISTRIES
from heald.runtime.contract.kernel import Bind, FusedOp
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo
from heald_cpu.device import Cpu
from heald_kernel_text import FUSIONS, NODES, Plan, Target

FILE = Path(__file__).parent.parent / "data" / "network_problems.json"


class Problem(NamedTuple):
    """A node or fused node, and the networks that have it."""

    networks: list[str]
    bind: Bind

    def plan(self, target: Target) -> Plan:
        """The launches for this target. Raises Unimplemented."""
        return (NODES.get(self.bind.op) or FUSIONS[self.bind.op]).make(target, self.bind)


@cache
def problems() -> list[Problem]:
    return [Problem(networks, _bind(row)) for networks, row in json.loads(FILE.read_text())]


def _bind(row: Mapping[str, Any]) -> Bind:
    inputs = tuple(ValueInfo(_metadata(value), _value(value)) for value in row["inputs"])
    fused = tuple(FusedOp(op, _attributes(op, attrs), tuple(args), tuple(results), tuple(map(_metadata, outputs)))
                  for op, attrs, args, results, outputs in row.get("fused", ()))
    return Bind("node", row["op"], _attributes(row["op"], row["attrs"]), inputs,
                tuple(map(_metadata, row["outputs"])), Cpu(0), None, {}, fused)


def _metadata(value: list[Any]) -> TensorMetadata:
    return TensorMetadata(dtypes.named(value[0]), tuple(value[1]))


def _value(value: list[Any]) -> Any:
    dtype, shape, *elements = value
    return np.array(elements[0], dtypes.named(dtype).numpy).reshape(shape) if elements else None


def _attributes(op: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
    definition = REGISTRIES.ops.get(op) if op not in FUSIONS else None
    defaults = dict(_defaults(definition.attrs)) if definition else {}
    return defaults | {name: _attribute(value) for name, value in recorded.items()}


def _defaults(attrs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, attr in attrs.items():
        if attr.default is not None:
            yield name, attr.default


def _attribute(value: Any) -> Any:
    if isinstance(value, dict):
        return dtypes.named(value["type"])
    return tuple(value) if isinstance(value, list) else value
