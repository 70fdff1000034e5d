"""Measured times of a traced run, given back, replace the modelled times of placement."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from harness.device_pairs import assigned_devices, rows, run_traced
from heald.errors import DataLoss, HealdError, InvalidArgument, NotFound
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.graphs.session.step_statistics import read_statistics
from heald_sim.device import Sim

pytestmark = pytest.mark.usefixtures("graphs_as_written")

CHAIN = graph(placeholder("x", (64, 64)), node("a", "Square", "x"), node("n", "Neg", "a"), node("r", "Relu", "n"),
              node("z", "Square", "r"))
X = np.linspace(-2, 2, 64 * 64, dtype=np.float32).reshape(64, 64)
FAST = {"ops": ["Neg", "Relu"], "launch_latency": 1e-9, "enqueue": 1e-9, "copy_latency": 1e-9, "link_bandwidth": 1e13}


def make_session(statistics: str | None = None) -> heald.Session:
    """A session with a SIM that claims to be very fast. Only the CPU has Square."""
    return heald.Session(CHAIN, {"placement": {"order": ["SIM", "CPU"], "statistics": statistics},
                                 "plugin": {"sim": FAST}})


def statistics(*rows: tuple[str, str, int]) -> bytes:
    """A RunMetadata with these rows: device, name, nanoseconds."""
    message = message_class("RunMetadata")()
    for device, name, nanos in rows:
        message.step_stats.dev_stats.add(device=device).node_stats.add(node_name=name, all_end_rel_nanos=nanos)
    return message.SerializeToString()


def test_a_device_that_is_slower_than_it_claims_loses_its_nodes_once_it_is_measured(tmp_path, monkeypatch):
    """The model's 0.6 us stay on SIM; by its clock, a kernel and a copy take 50 us each."""
    monkeypatch.setattr(Sim, "elapsed", lambda *_: 5e-5)
    session = make_session()
    assert (assigned_devices(session)["n"], assigned_devices(session)["r"]) == ("SIM:0", "SIM:0")
    metadata = heald.RunMetadata()
    expected = session.run("z", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    metadata.dump(tmp_path / "steps.pb")
    again = make_session(str(tmp_path / "steps.pb"))
    assert set(assigned_devices(again).values()) == {"CPU:0"}
    reason = rows(again)["n"]["reason"]
    assert reason.startswith("cost: 2 nodes at 8.55 us on CPU:0 instead of ")
    assert reason.endswith("of transfers; 2 of 4 kernel times are measured")
    result, trace = run_traced(again, "z", {"x": X})
    assert np.array_equal(result, expected)
    assert {event.device for event in trace.events} == {"CPU:0"}


def test_rows_count_for_their_device_alone_and_files_may_be_joined(tmp_path):
    """The CPU's model is 4.3 us a node, the rest of SIM's is below."""
    file = tmp_path / "steps.pb"
    slow = statistics(("/job:localhost/replica:0/task:0/device:SIM:0", "n", 50_000))
    file.write_bytes(slow)
    assert assigned_devices(make_session(str(file)))["n"] == "CPU:0"
    file.write_bytes(slow + statistics(("/device:CPU:0", "r", 100_000)))
    assert assigned_devices(make_session(str(file)))["n"] == "SIM:0"
    file.write_bytes(statistics(("/device:SIM:1", "n", 50_000), ("/device:SIM:0", "other", 50_000)))
    assert assigned_devices(make_session(str(file)))["n"] == "SIM:0"


def test_a_measured_transfer_counts_for_the_node_that_waits_for_it(tmp_path):
    file = tmp_path / "steps.pb"
    file.write_bytes(statistics(("/device:SIM:0", "z:copy", 50_000)))
    session = make_session(str(file))
    assert assigned_devices(session)["n"] == "CPU:0"
    assert "and 50 us of transfers" in rows(session)["n"]["reason"]


def test_the_transfer_to_a_node_is_not_the_one_from_it(tmp_path):
    """Into n 50 us, out of n as modelled: 1 ns and 16 KiB at 10 TB/s."""
    file = tmp_path / "steps.pb"
    file.write_bytes(statistics(("/device:SIM:0", "n:copy", 50_000)))
    session = heald.Session(graph(placeholder("x", (64, 64)), node("a", "Square", "x"), node("n", "Neg", "a"),
                                  node("z", "Square", "n")),
                            {"placement": {"order": ["SIM", "CPU"], "statistics": str(file)}, "plugin": {"sim": FAST}})
    assert "and 50 us of transfers" in rows(session)["n"]["reason"]


def test_times_of_a_row_are_averaged_and_microseconds_serve_without_nanoseconds(tmp_path):
    file = tmp_path / "steps.pb"
    message = message_class("RunMetadata").FromString(statistics(("/device:CPU:0", "n", 1000), ("CPU:0", "n", 3000)))
    message.step_stats.dev_stats[0].node_stats.add(node_name="m", all_end_rel_micros=5)
    file.write_bytes(message.SerializeToString())
    assert read_statistics(str(file)) == {("n", "CPU:0"): pytest.approx(2e-6), ("m", "CPU:0"): pytest.approx(5e-6)}


@pytest.mark.parametrize(("content", "error", "why"), [
    (b"", InvalidArgument, "has no step statistics, expected rows of a traced run"),
    (b"\xff\xff", DataLoss, "this is not a RunMetadata"),
    (statistics(("what? no", "n", 1)), InvalidArgument, "'what[?] no' is not a device name"),
    (statistics(("CPU:0", "n", -1000)), InvalidArgument, "is below 0"),
])
def test_a_file_that_has_no_times_is_an_error_with_its_place(tmp_path, content, error, why):
    file = tmp_path / "steps.pb"
    file.write_bytes(content)
    with pytest.raises(error, match=why) as caught:
        make_session(str(file))
    assert caught.value.location is not None
    assert caught.value.location.file == str(file)


@pytest.mark.parametrize("path", ["", "nowhere/steps.pb", "\0", "."])
def test_a_path_without_a_file_is_an_error(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound if "nowhere" in path else HealdError):
        make_session(path)
