"""The roofline of a run: the work of its calls, and the rates that this machine reaches.

The work is that of the ops by their definitions. The rates are measured when the report is made: a copy by NumPy, and
a product of matrices, where the faster of NumPy and this runtime counts. They bound calls on host memory alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from heald import Model
    from heald.api import OpCost

PRODUCT_DEVICE = "CPU:0"
PRODUCT_SIDE = 512  # of the matrices that this runtime multiplies; 0.6 ms fit between the turns of a busy machine
PRODUCTS = 100  # of which the fastest counts


class Roofline(NamedTuple):
    """`ceilings`: GFLOP/s and GB/s of the machine. `works`: the work of nodes by name. `product`: the product that was
    fastest, in words."""

    ceilings: Mapping[str, float]
    works: Mapping[str, OpCost]
    product: str = ""


def measure_roofline(model: Model, feeds: Mapping[str, Any]) -> Roofline:
    """Measure the machine, and return it with the work of each node for these feeds. They are by tensor."""
    from heald_tools.node_times import SIDE, ceilings, op_costs

    rates, own_rate, product = ceilings(), _product_rate(), f"NumPy, of {SIDE} x {SIDE} matrices"
    if own_rate > rates["gflops"]:
        rates["gflops"], product = own_rate, f"heald on {PRODUCT_DEVICE}, of {PRODUCT_SIDE} x {PRODUCT_SIDE} matrices"
    prepared = model.session.prepare([*model.fetched.values()], tuple(feeds))
    return Roofline(rates, op_costs(prepared.linked_executable(tuple(value.shape for value in feeds.values()))),
                    product)


def _product_rate() -> float:
    """Return the GFLOP/s of a product of two matrices by this runtime on the host; 0 where no kernel does it."""
    import numpy as np
    from heald import Session
    from heald.api import Graph, Node, dtypes
    from heald.errors import HealdError

    side, f32 = PRODUCT_SIDE, dtypes.float32
    graph = Graph([Node("a", "Placeholder", attrs={"dtype": f32}), Node("b", "MatMul", ["a", "a"], attrs={"T": f32})])
    feeds, seconds = {"a": np.ones((side, side), np.float32)}, []
    try:
        with Session(graph, device=PRODUCT_DEVICE, target="local") as session:
            for _ in range(PRODUCTS):
                started = perf_counter()
                session.run("b", feeds)
                seconds.append(perf_counter() - started)
    except HealdError:
        return 0.0
    return float(2 * side**3 / min(seconds) / 1e9)


def roofline_row(roofline: Roofline, devices: set[str]) -> dict[str, Any]:
    """Return the rates as JSON's values, with the devices that they bound, those that they do not bound, and how the
    rates were measured."""
    from heald import default_host
    from heald_tools.node_times import BANDWIDTH_MEGABYTES

    on_host = [device for device in sorted(devices) if device == "host" or default_host().is_host_visible(device)]
    return {**roofline.ceilings, "devices": on_host, "others": sorted(devices - {*on_host}),
            "product": roofline.product, "copy": f"NumPy, of {BANDWIDTH_MEGABYTES} MiB"}
