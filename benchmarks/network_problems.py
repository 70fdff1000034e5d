"""Record the problems that networks give to a device with kernel texts: nodes and fused nodes without weights.

    python benchmarks/network_problems.py [--folder DIR] [--output FILE] [NAME ...]

DIR has the networks that networks.py made. Each is linked for a device whose kernels compute nothing. FILE, by default
tests/data/network_problems.json, has each distinct problem once with the networks that have it. Tests make the kernel
texts of the networks from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.api import Bind, Declined, DeviceRegistrar, DType, Kernels, TensorMetadata, ValueInfo, errors, hookimpl
from heald_example_device.device import Example
from heald_kernel_text import ALIASES, CUDA_GPU, FUSIONS, NODES
from networks import NETWORKS

HEALD_API = (1, 0)
FILE = Path(__file__).parent.parent / "tests" / "data" / "network_problems.json"
MOST_VALUES = 32  # elements of a known input that are recorded: shapes, axes, numbers

recorded: list[dict[str, Any]] = []


class Recorder(Example):
    """A device with the memory of the example's, whose kernels write nothing."""

    type = "RECORDER"


def scan(_config: Any) -> Iterator[Recorder]:
    yield Recorder(0, 1 << 34)


def register_kernels(kernels: Kernels) -> None:
    for op, row in NODES.items():
        kernels.kernel(op, dtypes=row.dtypes, host=row.host)(partial(bind, row))
    for name, fused in FUSIONS.items():
        kernels.fusion(name, ops=fused.ops, heads=fused.heads, priority=fused.priority)(partial(bind, fused))
    for op, host in ALIASES.items():
        kernels.kernel(op, alias={0: 0}, host=host)(lambda _: None)


def bind(row: Any, b: Bind) -> Callable[..., None] | Declined:
    if b.node == "probe":
        return partial(b.device.native.elementwise("add", np.dtype(np.float32), b.outputs[0].size), b.stream)
    try:
        row.make(CUDA_GPU, b)
    except errors.Unimplemented as error:
        return b.decline(error.message)
    recorded.append(problem(b))
    return lambda *_: None


def problem(b: Bind) -> dict[str, Any]:
    """A bound node as JSON: op, attributes, inputs (type, shape, small known values), outputs, fused ops."""
    return {
        "op": b.op, "attrs": attributes(b.attrs), "inputs": [value(info) for info in b.inputs],
        "outputs": [metadata(meta) for meta in b.outputs],
        "fused": [[fused_op.op, attributes(fused_op.attrs), fused_op.args, fused_op.results,
                   [metadata(m) for m in fused_op.outputs]]
                  for fused_op in b.fused],
    }


def metadata(meta: TensorMetadata) -> list[Any]:
    return [meta.dtype.name, list(meta.dims)]


def value(info: ValueInfo) -> list[Any]:
    elements = info.value if info.is_known and info.size <= MOST_VALUES else None
    small = elements is not None and (elements.size == 1 or info.dtype.kind == "i")
    return metadata(info.meta) + ([elements.reshape(-1).tolist()] if small else [])


def attributes(attrs: Any) -> dict[str, Any]:
    """The attributes that are numbers, texts, types, or lists of them."""
    plain = {}
    for name, value in attrs.items():
        if isinstance(value, DType):
            plain[name] = {"type": value.name}
        elif isinstance(value, (bool, int, float, str)) or (
                isinstance(value, (list, tuple)) and all(isinstance(e, (int, float, str)) for e in value)):
            plain[name] = value
    return {name: value for name, value in sorted(plain.items()) if not name.startswith("_")}


@hookimpl
def heald_devices(registry: DeviceRegistrar) -> None:
    registry.device(type="RECORDER", scan="network_problems:scan", kernels="network_problems:register_kernels")


def problems_of(path: Path) -> list[str]:
    """The distinct problems of one network, each as JSON."""
    recorded.clear()
    heald.load(path, device="RECORDER:0")(np.load(path.with_suffix(".npz"))["x0"])
    return sorted({json.dumps(problem, separators=(",", ":")) for problem in recorded})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(NETWORKS))
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "networks")
    parser.add_argument("--output", type=Path, default=FILE)
    options = parser.parse_args()
    heald.register(sys.modules["network_problems"])
    networks: dict[str, list[str]] = {}
    for name in options.names:
        for problem in problems_of(options.folder / f"{name}.pb"):
            networks.setdefault(problem, []).append(name)
    rows = [json.dumps([names, json.loads(problem)], separators=(",", ":"))
            for problem, names in sorted(networks.items())]
    options.output.write_text("[\n" + ",\n".join(rows) + "\n]\n")
    print(f"{len(rows)} problems of {len(options.names)} networks: {options.output}")
    return 0


if __name__ == "__main__":
    from network_problems import main as run  # the module that the device's names lead to

    sys.exit(run())
