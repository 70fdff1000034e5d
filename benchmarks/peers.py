"""The time of one run of a tiny graph in heald, ONNX Runtime and TensorFlow: chains of 2x2 additions.

    python benchmarks/peers.py

All do the same additions one by one on one thread, the calling thread unless a row names another, and return equal
results. Graph optimisation is off everywhere, so that nothing is folded or fused. They run in turn in one process, and
each ratio is the median over the rounds. A peer that is not installed is left out. The peers belong into an environment
of their own, for heald never needs them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median

import heald
import numpy as np
from chains import X, Y, chain, heald_chain, numpy_chain
from heald.api import install_hint
from tabulate import tabulate
from timing import in_turn, ratio, seconds

LENGTHS = (1, 100, 1000)
ROUNDS = 51
TURN = 4e-3  # seconds, for all alike: on a busy machine longer turns are interrupted more

Runs = dict[str, Callable[[], np.ndarray]]


def onnxruntime_chain(length: int) -> Runs:
    import onnxruntime
    from onnx import TensorProto, helper

    names = ["x", *[f"add{i}" for i in range(length)]]
    nodes = [helper.make_node("Add", [names[i], "y"], [names[i + 1]]) for i in range(length)]
    # Unknown shapes: with static ones ONNX Runtime makes a memory pattern, and takes a third longer.
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for name in ("x", "y", names[-1]))
    model = helper.make_model(helper.make_graph(nodes, "chain", [x, y], [z]), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 14)])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fetches, feeds = names[-1:], {"x": X, "y": Y}
    binding, out = session.io_binding(), np.empty((2, 2), np.float32)
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output(names[-1], "cpu", 0, np.float32, out.shape, out.ctypes.data)

    def run_bound() -> np.ndarray:
        session.run_with_iobinding(binding)
        return out

    return {"ONNX Runtime": lambda: session.run(fetches, feeds)[0],
            "ONNX Runtime, run_with_iobinding (arrays bound once)": run_bound}


def tensorflow_chain(length: int) -> Runs:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    v1 = tf.compat.v1
    graph_def = v1.GraphDef.FromString(heald.graphdef.dumps(chain(length)))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    fetch, feeds = f"add{length - 1}:0", {"x:0": X, "y:0": Y}

    def session(threads: int, executor: str = "") -> v1.Session:
        config = v1.ConfigProto(inter_op_parallelism_threads=threads, intra_op_parallelism_threads=1)
        config.experimental.executor_type = executor
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.rewrite_options.constant_folding = config.graph_options.rewrite_options.OFF
        return v1.Session(graph=graph, config=config)

    pool, single = session(1), session(-1, "SINGLE_THREADED_EXECUTOR")
    caller = session(-1)  # on the thread that calls: its fastest, but for the experimental executor
    step = caller.make_callable(fetch, list(feeds))
    return {"TensorFlow": lambda: caller.run(fetch, feeds),
            "TensorFlow, make_callable": lambda: step(X, Y),
            "TensorFlow, SINGLE_THREADED_EXECUTOR": lambda: single.run(fetch, feeds),
            "TensorFlow, pool of one thread": lambda: pool.run(fetch, feeds)}


PEERS = (  # packages, as imported and as installed, and the chains
    ("ONNX Runtime", ("onnxruntime", "onnx"), "onnxruntime onnx", onnxruntime_chain),
    ("TensorFlow", ("tensorflow",), "tensorflow-cpu", tensorflow_chain),
)


def measure(length: int, peers: list[Callable[[int], Runs]]) -> dict[str, tuple[float, ...]]:
    """Seconds of a run in each round, for each way to do the additions."""
    runs: Runs = {"NumPy": numpy_chain(length), "heald": heald_chain(length)}
    for peer in peers:
        runs |= peer(length)
    expected = runs["NumPy"]()
    for name, run in runs.items():
        assert np.array_equal(run(), expected), name
    repeats = [max(round(TURN / min(seconds(run, 1) for _ in range(20))), 1) for run in runs.values()]
    return dict(zip(runs, in_turn(list(runs.values()), repeats, ROUNDS), strict=True))


def microseconds(times: tuple[float, ...]) -> str:
    return f"{median(times) * 1e6:.2f} us"


def row(length: int, times: dict[str, tuple[float, ...]]) -> list[str]:
    ours = times["heald"]
    cells = [f"{length:,} chained 2x2 additions", microseconds(ours), microseconds(times["NumPy"]),
             f"{ratio(ours, times['NumPy']):.2f}"]
    if "ONNX Runtime" in times:
        cells += [microseconds(times["ONNX Runtime"]), f"{ratio(ours, times['ONNX Runtime']):.2f}"]
    if "TensorFlow" in times:
        cells += [microseconds(times["TensorFlow"]), f"{ratio(times['TensorFlow'], ours):.1f}"]
    return cells


def main() -> None:
    there = [peer for peer in PEERS if all(map(find_spec, peer[1]))]
    measured = {length: measure(length, [make for *_, make in there]) for length in LENGTHS}
    headers = ["work", "heald", "NumPy", "heald/NumPy"]
    for name, *_ in there:
        headers += [name, f"heald/{name}" if name == "ONNX Runtime" else f"{name}/heald"]
    print(tabulate([row(*entry) for entry in measured.items()], headers, disable_numparse=True))

    others = [name for name in measured[1] if "," in name]
    if others:
        table = [[name, *[f"{microseconds(times[name])} ({ratio(times[name], times['heald']):.2f})"
                          for times in measured.values()]] for name in others]
        print()
        print(tabulate(table, ["other ways (their time / heald's)", *[f"{n:,}" for n in measured]],
                       disable_numparse=True))
    for peer in PEERS:
        if peer not in there:
            print(f"\n{peer[0]} is left out: in an environment of its own, {install_hint(*peer[2].split())}")


if __name__ == "__main__":
    main()
