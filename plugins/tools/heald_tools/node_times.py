"""heald bench --nodes: the time of each kernel call, and its rates beside the machine's ceilings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from heald import RunMetadata, RunOptions, default_host
from heald.api.cli import say
from heald.runtime.program import RUNTIME_CODES

if TYPE_CHECKING:
    from heald import Model
    from heald.api import OpCost
    from heald.runtime.executor import Executable

RUNS = 20
SIDE = 1024  # side of the matrices whose product measures the machine's arithmetic
BANDWIDTH_MEGABYTES = 64  # size of the array whose copy measures the machine's bandwidth


def node_times(model: Model, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Measure each kernel call in traced runs.

    `nodes` has a row for each call, the longest first: device, clock, kernel and its way of working, median
    milliseconds of the clock, GFLOP/s, GB/s. `ceilings` has the machine's rates in the same units, and `on_host` of a
    row says that they bound it.
    """
    fed = {model.fed[name]: value for name, value in feeds.items()}
    fetches = list(model.fetched.values())
    ms_of_node: dict[str, list[float]] = defaultdict(list)
    calls: dict[str, tuple[Any, str, str]] = {}
    for _ in range(RUNS):
        metadata = RunMetadata()
        model.session.run(fetches, fed, options=RunOptions(trace=True), metadata=metadata)
        assert metadata.trace is not None
        for event, _ in metadata.trace.calls():
            if event.call.code not in RUNTIME_CODES:
                calls[event.call.node] = event.call, event.device, event.clock
                ms_of_node[event.call.node].append(event.duration_ns / 1e6)
    prepared = model.session.prepare(fetches, tuple(fed))
    executable = prepared.linked_executable(tuple(value.shape for value in fed.values()))
    works, algorithms = op_costs(executable), executable.algorithms()
    rows = []
    for name, (call, device, clock) in calls.items():
        ms = median(ms_of_node[name])
        flops, nbytes = work_of_call(call, works)
        rows.append({"node": name, "device": device, "clock": clock, "kernel": call.code,
                     "how": algorithms.get(name, ""), "calls": len(ms_of_node[name]) // RUNS, "ms": ms,
                     "gflops": _rate(flops, ms), "gbs": _rate(nbytes, ms),
                     "on_host": device == "host" or default_host().is_host_visible(device)})
    return {"ceilings": ceilings(), "nodes": sorted(rows, key=lambda row: -row["ms"])}


def work_of_call(call: Any, works: Mapping[str, OpCost]) -> tuple[int, int]:
    """Return a call's floating-point operations, those of fused nodes included, and the bytes that it moves."""
    done = [works[node] for node in call.fused or (call.node,) if node in works]
    flops, nbytes = sum(work.flops for work in done), sum(work.nbytes for work in done)
    if call.fused:
        nbytes = works[call.node].nbytes if call.node in works else 0
    return flops, nbytes


def _rate(amount: float, ms: float) -> float | None:
    """Return billions in a second, or None for a time that no clock resolves."""
    return amount / ms / 1e6 if ms > 0 else None


def op_costs(executable: Executable) -> dict[str, OpCost]:
    """Return the cost of each node whose op set knows it."""
    metas, ops = executable.metas, default_host().registries.ops
    costs = {call.node: ops.cost(call.op, call.attrs, [metas[a] for a in call.args], [metas[r] for r in call.results])
             for call in executable.function.kernels if call.code not in RUNTIME_CODES}
    return {node: cost for node, cost in costs.items() if cost is not None}


def ceilings() -> dict[str, float]:
    """Measure this machine now: GFLOP/s of NumPy's product of two matrices, GB/s of its copy of an array."""
    import numpy as np

    a = np.ones((SIDE, SIDE), np.float32)
    product, block = np.empty_like(a), np.ones(BANDWIDTH_MEGABYTES << 18, np.float32)
    copy = np.empty_like(block)
    return {"gflops": 2 * SIDE**3 / _least(lambda: np.matmul(a, a, product)) / 1e9,
            "gbs": 2 * block.nbytes / _least(lambda: np.copyto(copy, block)) / 1e9}


def _least(work: Any) -> float:
    times = []
    for _ in range(10):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)


def tell_node_times(report: Mapping[str, Any], row_limit: int | None) -> None:
    from heald.api.cli import show

    tops, rows = report["ceilings"], report["nodes"]
    totals: dict[str, float] = defaultdict(float)  # by clock: times of two clocks have no sum
    for row in rows:
        totals[row["clock"]] += row["ms"]
    if len(totals) > 1:
        say(f"times are of the clocks of {', '.join(totals)}; a share is of the time on the row's clock")
    say(f"\nkernel calls, medians of {RUNS} traced runs; NumPy reaches {tops['gflops']:.0f} GFLOP/s (a product of "
        f"matrices) and {tops['gbs']:.1f} GB/s (a copy) here. GFLOP/s are of the op as it is defined: a kernel that "
        "needs fewer multiplications may exceed the most")
    how = ("how",) if any(row["how"] for row in rows) else ()
    where = () if all(row["on_host"] for row in rows) else ("device",)
    show([{"node": row["node"], "device": row["device"], "kernel": row["kernel"], "how": row["how"],
           "ms": f"{row['ms']:.3f}", "share": f"{row['ms'] / (totals[row['clock']] or 1.0):.1%}",
           "GFLOP/s": _text(row["gflops"]), "of the most": _part(row, "gflops", tops),
           "GB/s": _text(row["gbs"]), "of the most ": _part(row, "gbs", tops)} for row in rows[:row_limit]],
         ("node", *where, "kernel", *how, "ms", "share", "GFLOP/s", "of the most", "GB/s", "of the most "),
         cut=("node",))
    if row_limit is not None and len(rows) > row_limit:
        others = rows[row_limit:]
        ms_of_others = [(clock, sum(row["ms"] for row in others if row["clock"] == clock)) for clock in totals]
        say(f"{len(others)} more take " + " and ".join(
            f"{ms:.3f} ms" + (f" of {clock}'s clock" if len(totals) > 1 else "") for clock, ms in ms_of_others if ms)
            + " together: --all")


def _text(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}"


def _part(row: Mapping[str, Any], key: str, tops: Mapping[str, float]) -> str:
    """Return the part of this machine's rate. It bounds calls on host memory alone."""
    return f"{row[key] / tops[key]:.0%}" if row["on_host"] and row[key] is not None else ""
