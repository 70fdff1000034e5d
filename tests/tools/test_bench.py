"""heald bench: the fields of its report, without a bound on any time."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import Node, OpCost, TensorValue
from heald.graphs.graph.attr_value import ShapeAttr
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_tf_ops.op_cost import op_cost
from heald_tools import peers, streams, turns
from heald_tools.made_up_strings import example

SHORT = ["--duration", "0.01"]


@pytest.fixture
def layer(saved):
    return saved(placeholder("x", (None, 8)), const("w", np.ones((8, 4))),
                 node("product", "MatMul", "x", "w", transpose_a=False, transpose_b=False),
                 node("y", "Relu", "product"))


def test_json_has_the_times_of_runs_and_the_memory(command, layer):
    report = json.loads(command("bench", layer, "--json", "--batch", "3", *SHORT).out)
    (row,) = report["runtimes"]
    assert (row["runtime"], report["batch"]) == ("heald", 3)
    assert 0 < row["min"] <= row["p50"] <= row["p90"] <= row["p99"]
    assert row["per_second"] == pytest.approx(3 / row["p50"] * 1e3)
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


def interrupted_lasting(count):
    """In the place of `lasting`: Ctrl-C comes after so many turns."""
    def yield_turns(*_):
        yield from range(count)
        raise KeyboardInterrupt

    return yield_turns


def test_ctrl_c_reports_the_runs_so_far(command, layer, monkeypatch):
    monkeypatch.setattr(turns, "lasting", interrupted_lasting(2))
    done = command("bench", layer)
    assert done.status == 130
    assert "interrupted, these are the runs before it" in done.out
    assert ["heald"] in [line[:1] for line in done.words]
    report = json.loads(command("bench", layer, "--json").out)
    assert report["interrupted"]
    assert 0 < report["runtimes"][0]["p50"] <= report["runtimes"][0]["p99"]


def test_ctrl_c_reports_every_runtime_that_was_timed(command, layer, monkeypatch):
    def half(args, model, feeds):
        return lambda: [np.maximum(feeds["x"] @ np.ones((8, 4), np.float32), 0)]

    monkeypatch.setattr(peers, "OPENERS", {"json": half})
    monkeypatch.setattr(turns, "lasting", interrupted_lasting(1))
    report = json.loads(command("bench", layer, "--against", "json", "--json").out)
    assert [row["runtime"] for row in report["runtimes"]] == ["heald", "json"]
    assert report["runtimes"][1]["ratio"] > 0


def test_ctrl_c_before_the_first_run_is_told(command, layer, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(heald, "load", interrupt)
    assert command("bench", layer)[:2] == (130, f"{layer}: interrupted before a run was timed\n")


def test_ctrl_c_ends_all_streams_after_their_runs(command, layer, monkeypatch):
    def wait_for_runs(*_):
        yield 0
        raise KeyboardInterrupt

    monkeypatch.setattr(streams, "lasting", wait_for_runs)
    done = command("bench", layer, "--streams", "2", "--json", "report.json")
    assert done.status == 130
    report = json.loads(Path("report.json").read_text("utf-8"))
    assert (report["streams"], report["runtimes"][0]["runs"] > 0) == (2, True)


TELLING = """
import itertools, sys
import numpy as np
from heald.api import hookimpl
HEALD_API = (1, 0)

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=50)

def register(kernels):
    @kernels.kernel("Relu", dtypes={"T": "float32"})
    def relu(b):
        calls = itertools.count()
        def run(x, out):
            np.maximum(x, 0, out)
            if next(calls) == 20_000:  # more than one turn of 10 ms has
                print("turns are timed", file=sys.stderr, flush=True)
        return run
"""
WITH_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which the background jobs of a shell ignore
from heald.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_reaches_the_process_of_one_of_several_models(layer, tmp_path):
    (tmp_path / "telling.py").write_text(TELLING)
    process = subprocess.Popen([sys.executable, "-c", WITH_CTRL_C, "bench", layer, layer, "--duration", "600",
                                "--json", "--plugin", "telling.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    assert process.stderr.readline() == "turns are timed\n"
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    (report,) = json.loads(stdout)
    assert report["interrupted"]


def test_several_models_have_a_report_each(command, layer, digits):
    done = command("bench", layer, digits / "frozen.pb", "--json", "report.json", "--html", "report.html", *SHORT)
    assert done.status == 0
    assert done.out.endswith("\nwrote report.json and report.html\n")
    reports = json.loads(Path("report.json").read_text("utf-8"))
    assert [report["model"] for report in reports] == [layer, str(digits / "frozen.pb")]
    page = Path("report.html").read_text("utf-8")
    assert [text in page for text in ("<h2>", "p99", "frozen.pb", "<script")] == [True, True, True, False]


def test_a_model_that_fails_does_not_end_the_others(command, layer):
    done = command("bench", "missing.pb", layer, "--json", *SHORT)
    assert done.status == 1
    assert [report["model"] for report in json.loads(done.out)] == [layer]


def test_streams_run_at_once_and_give_their_throughput(command, layer):
    report = json.loads(command("bench", layer, "--streams", "3", "--batch", "2", "--json", "--duration", "0.05").out)
    (row,) = report["runtimes"]
    assert (report["streams"], row["runs"] >= 15) == (3, True)
    assert 0 < row["min"] <= row["p50"] <= row["p90"] <= row["p99"]
    assert row["per_second"] > 0
    assert "milliseconds a run, batch 1, 3 streams" in command("bench", layer, "--streams", "3", *SHORT).out


def test_an_error_of_a_stream_is_the_error_of_the_command():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        streams.time_streams(fail, 2, 5.0, "", streams.StreamTimes())


@pytest.mark.parametrize(("options", "expected"), [
    (("--hint", "latency"), (1, None)), (("--hint", "throughput"), (4, 1)),
    (("--hint", "throughput", "--streams", "2"), (2, 2)), (("--hint", "throughput", "--threads", "3"), (4, 3)),
])
def test_a_hint_is_the_default_of_streams_and_threads(command, layer, monkeypatch, options, expected):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "7")  # so that they are put back
    monkeypatch.setattr("heald_tools.doctor.usable_cores", lambda: 4)
    report = json.loads(command("bench", layer, "--json", *options, *SHORT).out)
    assert (report["streams"], report["threads"]) == expected


@pytest.mark.parametrize(("options", "message"), [
    (("--against", "tensorflow", "--streams", "2"), "--against compares one stream: the runtimes take turns"),
    (("--json", "other.pb"), "--json 'other.pb' is no .json file"),
    (("--html", "page.txt"), "--html 'page.txt' is no .html file"),
])
def test_options_that_contradict_are_told(command, layer, monkeypatch, options, message):
    monkeypatch.setattr(peers, "find_spec", lambda _: True)
    done = command("bench", layer, *options)
    assert done.status == 1
    assert f"error: {message}" in done.err


@pytest.mark.parametrize("duration", ["-1", "nan", "inf", "soon"])
def test_a_duration_is_a_number_of_seconds(command, layer, duration):
    assert command("bench", layer, f"--duration={duration}").status == 2


def test_an_input_that_cannot_be_guessed_must_be_given(command, saved):
    values = saved(placeholder("x", None), node("y", "Identity", "x"))
    assert "--input x=FILE.npy" in command("bench", values, *SHORT).err
    command("bench", values, "--input", "x=[1.5]", *SHORT)


@pytest.mark.parametrize(("op", "attrs"), [
    ("StringLength", {"unit": b"BYTE"}), ("StringToNumber", {"out_type": dtypes.float32}),
    ("DecodeRaw", {"out_type": dtypes.complex128, "little_endian": True}), ("DecodeJpeg", {"channels": 3}),
    ("DecodePng", {"channels": 1, "dtype": dtypes.uint8}), ("DecodeWav", {"desired_channels": 1}),
])
def test_strings_are_made_up_in_the_form_that_the_model_reads(command, saved, op, attrs):
    model = saved(placeholder("s", (None, 1), dtypes.string), const("scalar", [], np.int32),
                  node("one", "Reshape", "s", "scalar", T=dtypes.string), Node("y", op, ["one"], attrs=attrs))
    assert "runtimes" in json.loads(command("bench", model, "--json", *SHORT).out)


def test_strings_that_no_form_fits_are_refused_with_the_error_of_the_first(command, saved):
    model = saved(placeholder("s", (None,), dtypes.string), const("no", []),
                  Node("y", "DecodeCSV", ["s", "no", "no", "no"], attrs={"OUT_TYPE": [dtypes.float32] * 3}))
    assert "Expect 3 fields but have 1" in command("bench", model, *SHORT).err


def strings(name, value):
    return Node(name, "Const", attrs={"dtype": dtypes.string, "value": TensorValue(np.array(value, object))})


@pytest.mark.parametrize("op", ["ParseExample", "ParseExampleV2"])
def test_an_example_has_the_features_that_its_parser_requires(command, saved, op):
    names, types = [b"a", b"b" * 200, b"c"], [dtypes.float32, dtypes.int64, dtypes.string]
    defaults = [const("default_0", []), const("default_1", [], np.int64),
                strings("default_2", [])]
    attrs = {"Tdense": types, "dense_shapes": [ShapeAttr((2, 3)), ShapeAttr(()), ShapeAttr((1,))],
             "sparse_types": [dtypes.int64]}
    if op == "ParseExampleV2":
        keys = [strings("sparse", [b"d"]), strings("keys", names), strings("ragged", [])]
        attrs |= {"num_sparse": 1, "ragged_value_types": [], "ragged_split_types": []}
    else:
        keys = [strings("sparse", b"d"), *(strings(f"key_{index}", name) for index, name in enumerate(names))]
        attrs |= {"Nsparse": 1, "Ndense": 3}
    nodes = [strings("no_names", []), *keys, *defaults]
    parser = Node("y", op, ["s", *(node.name for node in nodes)], attrs=attrs)
    model = saved(placeholder("s", (None,), dtypes.string), *nodes, parser)
    assert "runtimes" in json.loads(command("bench", model, "--json", *SHORT).out)


def test_a_feature_of_any_claimed_size_is_left_out():
    assert example([(b"a", dtypes.float32, (1 << 40, 8))]) == example([])


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
    ("Einsum", {"equation": b"aecd,abcd->acbe"}, [of((1, 12, 4, 8)), of((1, 12, 4, 8))], of((1, 4, 12, 12)),
     2 * 4 * 12 * 12 * 8),
    ("Einsum", {"equation": "...ij, ...jk -> ...ik"}, [of((3, 2, 4)), of((4, 5))], of((3, 2, 5)), 2 * 3 * 2 * 5 * 4),
    ("Einsum", {"equation": b"ij->j"}, [of((4, 5))], of((5,)), 20),
    ("Einsum", {"equation": b"ij->ji"}, [of((4, 5))], of((5, 4)), 20),
    ("Einsum", {"equation": b"i,i->"}, [of((7,)), of((7,))], of(()), 14),
    ("Einsum", {"equation": b"a...,a...->..."}, [of((3, 2)), of((3, 2))], of((2,)), 12),
])
def test_the_work_of_a_node_is_counted_from_its_shapes(op, attrs, inputs, output, flops):
    assert op_cost(op, attrs, inputs, [output]) == OpCost(flops, sum(m.nbytes for m in (*inputs, output)))


def test_unknown_work_is_not_counted():
    assert op_cost("Tanh", {}, [of((None, 5))], [of(None)]) == OpCost(0, 0)
