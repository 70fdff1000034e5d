"""The level of parts finds devices whose parts are at the wrong place, of the wrong moment, or given away."""

from __future__ import annotations

from pathlib import Path

import heald_conformance
import pytest
from conformance.reports import Report
from heald_conformance import NotApplicable, Settings

PLUGIN = f'["{Path(__file__).parent / "planted_parts.py"}"]'
BYTES = "parts.a_part_has_the_bytes_from_its_start_on"
SUM = "parts.a_part_of_a_part_begins_at_the_sum_of_their_starts"
MOMENT = "parts.a_part_shows_what_its_whole_has_when_work_reads_it"
FREED = "parts.work_on_a_part_keeps_the_memory_of_its_freed_whole"
KERNELS = "parts.kernels_read_a_part_of_a_value_in_its_place"
FOUND = {  # device -> the cases that must fail, and no others; without their parameters
    "PARTING:0": set(), "UNMOVED:0": {BYTES, SUM, KERNELS}, "FLAT:0": {SUM}, "FROZEN:0": {MOMENT, KERNELS},
    "GREEDY:0": {FREED}, "PARTLESS:0": {BYTES, SUM, MOMENT, FREED, KERNELS},
}


def test_devices_with_wrong_parts_are_found(tmp_path):
    names = [argument for name in FOUND for argument in ("--device", name)]
    report = Report(tmp_path, *names, "-k", "parts", plugins=PLUGIN)
    faults = {device: {name.partition("[")[0] for d, name in report.failures if d == device} for device in FOUND}
    assert faults == FOUND
    assert "rule:     Device.part: part(buffer, start, nbytes)" in report.failures["FLAT:0", SUM]
    assert {name for device, name in report.skipped if device == "PARTING:0"} == {
        f"{KERNELS}[{op}]" for op in ("Slice", "StridedSlice", "Split")}


@pytest.mark.parametrize("case", [BYTES, SUM, MOMENT, FREED, KERNELS])
def test_a_simulator_passes_and_a_device_without_parts_is_skipped(case):
    heald_conformance.case(case)("SIM:0", Settings(quick=True))
    with pytest.raises(NotApplicable, match="no part_alignment"):
        heald_conformance.case(case)("EXAMPLE:0", Settings(quick=True))
