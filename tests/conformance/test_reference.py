"""The reference of the conformance suite is heald-cpu's own kernels, and a kernel pack can be tested by itself."""

from __future__ import annotations

from pathlib import Path

import heald
import heald_conformance
import heald_sim.config
import heald_sim.device
import numpy as np
import pytest
from conformance.reports import Report
from heald_conformance import NotApplicable, Settings, load_settings
from heald_conformance.golden import Case, disagreements
from heald_conformance.levels.kernels import may_succeed_on_device
from heald_conformance.subject import Subject

PACKS = f'["{Path(__file__).parent / "packs.py"}"]'
REFUSED = Case("Op#1", "Op", {}, [], None, 12, "Current CPU implementation does not support it", (0, 0), None)


def test_a_wrong_pack_for_the_cpu_makes_no_right_device_fail(tmp_path):
    report = Report(tmp_path, "--device", "SIM:0", "-k", "Softmax-float32", plugins=PACKS)
    assert report.status == 0, report.output[-3000:]
    assert report.passed["SIM:0"] >= 1


def test_a_pack_for_the_cpu_is_tested_by_itself_with_its_own_ops(tmp_path):
    report = Report(tmp_path, "--pack", "packs", plugins=PACKS)
    assert {name for _, name in report.failures if name.startswith("kernels.")} == {
        "kernels.a_kernel_agrees_with_tensorflow[Softmax]", "kernels.a_kernel_agrees_with_the_cpu[Softmax-float32]"}
    assert all("[Softmax-" in name for _, name in report.failures if name.startswith("limits."))
    assert 'heald_conformance.Settings(pack="packs")' in report.output
    tested = {name for _, name in report.names}
    assert {"kernels.a_kernel_agrees_with_the_cpu[Neg-float32]",
            "kernels.a_kernel_writes_every_element_of_its_outputs[Packs>Twice]",
            "kernels.a_kernel_leaves_its_inputs_as_they_are[Packs>Twice]"} < tested
    assert all(name.startswith(("kernels.", "limits.")) for name in tested)
    assert "the kernel of packs serves it on CPU:0" in report.skipped[
        "CPU:0", "kernels.a_kernel_agrees_with_the_cpu[Packs>Twice-float32]"]


def test_a_pack_that_nobody_has_is_an_error_with_the_packs_that_exist(tmp_path):
    report = Report(tmp_path, "--pack", "pakcs")
    assert report.status != 0
    assert "plugin 'pakcs' has no kernels; these have: cpu, cuda, decision_forests" in report.output
    with pytest.raises(heald.errors.NotFound, match="plugin sim has no kernels for EXAMPLE") as caught:
        Subject("EXAMPLE:0", load_settings(pack="sim"))
    assert caught.value.hint == "these have: example_device"


@pytest.mark.parametrize(("device", "may"), [("SIM:0", True), ("CPU:0", False)])
def test_a_device_may_compute_what_tensorflows_cpu_lacks(device, may):
    assert may_succeed_on_device(Subject(device), REFUSED, [np.zeros(3)]) is may


def test_codes_of_errors_are_told_by_name():
    assert disagreements(REFUSED, [np.zeros(3)]) == [
        "Op#1: no error, TensorFlow raises Unimplemented: Current CPU implementation does not support it"]
    assert disagreements(REFUSED, heald.errors.InvalidArgument("no")) == [
        "Op#1: InvalidArgument: no; TensorFlow: Unimplemented: Current CPU implementation does not support it"]


def test_throughput_is_of_the_work_on_the_device_and_not_of_its_enqueueing():
    """SIM's clock is virtual. A kernel reads one or two arrays, writes one, and may wait for its enqueueing."""
    (figures,) = heald_conformance.case("throughput.elementwise_kernels_are_timed")("SIM:0", Settings(quick=True))
    config, count = heald_sim.config.Config(), 1 << 16
    least, longest = (count * nbytes / config.bandwidth + config.launch_latency for nbytes in (8, 12))
    assert count / (longest + 2 * config.enqueue) <= figures[0].value * 1e9 <= count / least
    (figures,) = heald_conformance.case("throughput.matrix_products_are_timed")("SIM:0", Settings(quick=True))
    assert figures[0].value * 1e9 <= config.flops


def test_kernels_that_no_clock_resolves_have_no_throughput(monkeypatch):
    monkeypatch.setattr(heald_sim.device.Sim, "elapsed", lambda *_: 0.0)
    with pytest.raises(NotApplicable, match="the clock of SIM:0 does not resolve these kernels"):
        heald_conformance.case("throughput.matrix_products_are_timed")("SIM:0", Settings(quick=True))
