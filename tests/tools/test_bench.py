"""heald bench: the fields of its report, without a bound on any time."""

import json
import os

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import OpCost
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_tf_ops.op_cost import op_cost
from heald_tools import peers

SHORT = ["--seconds", "0.01"]


@pytest.fixture
def layer(saved):
    return saved(placeholder("x", (None, 8)), const("w", np.ones((8, 4))),
                 node("product", "MatMul", "x", "w", transpose_a=False, transpose_b=False),
                 node("y", "Relu", "product"))


def test_json_has_the_times_of_runs_and_the_memory(command, layer):
    report = json.loads(command("bench", layer, "--json", "--batch", "3", *SHORT).out)
    (row,) = report["runtimes"]
    assert (row["runtime"], report["batch"]) == ("heald", 3)
    assert 0 < row["min"] <= row["median"] <= row["p90"] <= row["p99"]
    assert row["per_second"] == pytest.approx(3 / row["median"] * 1e3)
    assert row["runs"] >= 5
    assert report["peak_memory"] >= report["memory_before"]
    assert "nodes" not in report


def test_each_kernel_call_is_beside_what_the_machine_can_do(command, layer):
    report = json.loads(command("bench", layer, "--json", "--nodes", "--batch", "5", *SHORT).out)
    rows = {row["node"]: row for row in report["nodes"]}
    assert rows.keys() >= {"product", "y"}
    product = rows["product"]
    assert product["gflops"] * product["ms"] * 1e6 == pytest.approx(2 * 5 * 8 * 4)
    assert product["gbs"] * product["ms"] * 1e6 == pytest.approx(4 * (5 * 8 + 8 * 4 + 5 * 4))
    assert min(report["ceilings"].values()) > 0
    text = command("bench", layer, "--nodes", *SHORT).out
    assert "of the most" in text


def test_calls_on_a_device_with_a_queue_have_the_rates_of_the_device(command, layer):
    """SIM needs 4 us for a launch by its virtual clock, and a call is enqueued much faster than its flops claim."""
    report = json.loads(command("bench", layer, "--json", "--nodes", "--device", "SIM:0", *SHORT).out)
    rows = [row for row in report["nodes"] if row["device"] == "SIM:0"]
    assert {row["node"] for row in rows} >= {"product", "y"}
    assert all(4e-3 <= row["ms"] <= 10e-3 and not row["on_host"] for row in rows)
    assert "of the most" not in command("bench", layer, "--nodes", "--device", "SIM:0", *SHORT).out.split("\n\n")[-1]


def test_other_runtimes_take_turns_and_their_results_are_compared(command, layer, monkeypatch):
    def twice(args, model, feeds):
        return lambda: [2 * np.maximum(feeds["x"] @ np.ones((8, 4), np.float32), 0)]

    monkeypatch.setattr(peers, "OPENERS", {"json": twice})  # a package that is there
    report = json.loads(command("bench", layer, "--json", "--batch", "9", "--against", "json", *SHORT).out)
    ours, theirs = report["runtimes"]
    assert (ours["runtime"], theirs["runtime"]) == ("heald", "json")
    assert theirs["ratio"] > 0
    assert theirs["difference"] > 0.1
    assert "others_difference" not in report
    stdout = command("bench", layer, "--against", "json", *SHORT).out
    assert "below 1 of heald / theirs heald is faster" in stdout


def test_the_distance_of_the_others_from_each_other_tells_the_weight_of_rounding(command, layer, monkeypatch):
    def times(factor):
        return lambda args, model, feeds: lambda: [factor * np.maximum(feeds["x"] @ np.ones((8, 4), np.float32), 0)]

    monkeypatch.setattr(peers, "OPENERS", {"json": times(1.0), "ast": times(1.5)})
    report = json.loads(command("bench", layer, "--json", "--batch", "9", "--against", "json,ast", *SHORT).out)
    _, same, half = report["runtimes"]
    assert same["difference"] < 1e-5
    assert report["others_difference"] == pytest.approx(half["difference"], rel=1e-3)
    assert "from each other" in command("bench", layer, "--batch", "9", "--against", "json,ast", *SHORT).out


def test_threads_are_those_of_the_libraries_and_of_heald_itself(command, layer, monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "HEALD_WORK_QUEUE__THREADS"):
        monkeypatch.setenv(name, "7")  # so that they are put back
    load, threads = heald.load, []

    def run_watched(*args, **kwargs):
        model = load(*args, **kwargs)
        threads.append(model.session.host.work_queue.parallelism_level)
        return model

    monkeypatch.setattr(heald, "load", run_watched)
    assert command("bench", layer, "--threads", "3", *SHORT).status == 0
    assert (os.environ["OMP_NUM_THREADS"], threads) == ("3", [3])


@pytest.mark.parametrize(("name", "message"), [
    ("caffe", "known: tensorflow, onnxruntime, openvino"),
    ("onnxruntime", "pip install onnxruntime"),
])
def test_a_runtime_that_is_not_there_is_told_with_the_remedy(command, layer, monkeypatch, name, message):
    monkeypatch.setattr(peers, "find_spec", lambda _: None)
    assert message in command("bench", layer, "--against", name, *SHORT).err


def test_an_input_that_cannot_be_guessed_must_be_given(command, saved):
    words = saved(placeholder("s", (None,), dtypes.string), node("t", "Identity", "s", T=dtypes.string))
    assert "--input s=FILE.npy" in command("bench", words, *SHORT).err
    command("bench", words, "--input", 's=["a"]', *SHORT)


def of(shape, dtype=dtypes.float32):
    return TensorMetadata(dtype, shape)


@pytest.mark.parametrize(("op", "attrs", "inputs", "output", "flops"), [
    ("MatMul", {"transpose_a": True}, [of((7, 3)), of((7, 5))], of((3, 5)), 2 * 3 * 5 * 7),
    ("BatchMatMulV2", {"adj_x": False}, [of((2, 3, 7)), of((2, 7, 5))], of((2, 3, 5)), 2 * 2 * 3 * 5 * 7),
    ("Conv2D", {}, [of((1, 8, 8, 4)), of((3, 3, 4, 6))], of((1, 6, 6, 6)), 2 * 6 * 6 * 6 * 3 * 3 * 4),
    ("DepthwiseConv2dNative", {}, [of((1, 8, 8, 4)), of((3, 3, 4, 1))], of((1, 6, 6, 4)), 2 * 6 * 6 * 4 * 9),
    ("Mean", {}, [of((4, 5)), of((), dtypes.int32)], of((4,)), 20),
    ("Tanh", {}, [of((4, 5))], of((4, 5)), 20),
    ("Reshape", {}, [of((4, 5)), of((1,), dtypes.int32)], of((20,)), 0),
])
def test_the_work_of_a_node_is_counted_from_its_shapes(op, attrs, inputs, output, flops):
    assert op_cost(op, attrs, inputs, [output]) == OpCost(flops, sum(m.nbytes for m in (*inputs, output)))


def test_unknown_work_is_not_counted():
    assert op_cost("Tanh", {}, [of((None, 5))], [of(None)]) == OpCost(0, 0)
