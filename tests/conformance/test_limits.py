"""The level of limits finds kernels that are right for small operands alone, and accepts refusals."""

from __future__ import annotations

from pathlib import Path

import heald_conformance
import numpy as np
import pytest
from conformance.reports import Report
from heald.api import dtypes, errors
from heald_conformance import NotApplicable, Settings
from heald_conformance.arrays import fixed_size_types
from heald_conformance.levels import limits
from heald_conformance.levels.limits import first_type, read_inputs
from heald_conformance.long_samples import LONG_FORMS, MANY, long_sample
from heald_conformance.subject import Subject

PLUGIN = f'["{Path(__file__).parent / "planted_limits.py"}"]'
ROWS_CASE = "limits.a_kernel_with_many_rows_or_elements_agrees_with_the_cpu"


def test_kernels_that_are_wrong_beyond_a_limit_are_found_and_no_others(tmp_path):
    report = Report(tmp_path, "--device", "NARROW:0", "-k", "kernel or limits", plugins=PLUGIN)
    assert {name for _, name in report.failures} == {
        f"{ROWS_CASE}[Neg-elements]", "limits.a_dilated_convolution_agrees_with_the_cpu[Conv2D]",
        "limits.an_exponential_of_large_numbers_agrees_with_the_cpu[Softmax-float16]"}


def test_a_device_with_the_inference_form_alone_passes(tmp_path):
    report = Report(tmp_path, "--device", "NARROW:0", "-k", "FusedBatchNormV3", plugins=PLUGIN)
    assert not report.failures
    names = {name for _, name in report.names - report.skipped.keys()}
    assert {"kernels.a_kernel_agrees_with_the_cpu[FusedBatchNormV3-float32]",
            "kernels.a_kernel_writes_every_element_of_its_outputs[FusedBatchNormV3]",
            "limits.a_batch_norm_of_inference_agrees_with_the_cpu[FusedBatchNormV3]",
            f"{ROWS_CASE}[FusedBatchNormV3-channels]"} <= names


@pytest.mark.parametrize("op", LONG_FORMS)
def test_every_form_is_long_and_has_the_types_of_its_op(op):
    on = Subject("SIM:0")
    definition = on.host.registries.ops.get(op)
    for form in LONG_FORMS[op].values():
        sample = long_sample(definition, first_type(on, op), form, read_inputs(on, op))
        assert max(max(x.shape, default=0) for x in sample.inputs) * 64 >= MANY
        assert [x.dtype for x in sample.inputs] == [t.dtype.numpy for t in definition.expand_inputs(sample.attrs)]


@pytest.mark.parametrize("form", ["Softmax-rows", "Conv2D-filters", "GatherV2-rows", "OneHot-rows", "Split-columns"])
def test_a_form_is_tried_on_a_device_with_all_kernels(form):
    heald_conformance.case(f"{ROWS_CASE}[{form}]")("SIM:0", Settings(quick=True))  # it raises where none is tried


def test_a_typed_refusal_of_a_large_tensor_is_no_failure(monkeypatch):
    def refuse(*_):
        raise errors.ResourceExhausted("64 MiB is the largest buffer")

    with monkeypatch.context() as patch:
        real = limits.apply
        patch.setattr(limits, "apply", lambda on, op, sample, site, fed: (
            refuse() if site is on.here else real(on, op, sample, site, fed)))
        with pytest.raises(NotApplicable, match="64 MiB is the largest buffer"):
            heald_conformance.case(f"{ROWS_CASE}[Neg-rows]")("SIM:0")


def test_tensors_of_2_gib_need_a_machine_with_memory(monkeypatch):
    monkeypatch.setattr(limits.system_memory, "available_memory", lambda: 1 << 30)
    for case in ("a_copy_of_more_than_2_gib_is_bit_exact", "a_tensor_of_more_than_2_gib_is_computed_or_refused"):
        with pytest.raises(NotApplicable, match="1024 MiB of free memory, 8192 are needed"):
            heald_conformance.case(f"limits.{case}")("CPU:0")
        assert not heald_conformance.case(f"limits.{case}")("CPU:0", Settings(quick=True))


@pytest.mark.parametrize("type_name", ["float32", "int8", "bool"])
def test_a_wide_tensor_is_compared_to_its_end(type_name, monkeypatch):
    monkeypatch.setattr(limits, "LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "CHUNK", 1 << 16)
    heald_conformance.case(f"limits.a_tensor_of_more_than_2_gib_is_computed_or_refused[{type_name}]")("SIM:0")
    x = limits.sparse_vector(dtypes.named(type_name))
    assert (x.nbytes, bool(x[-1])) == (1 << 20, True)


def test_rows_of_extreme_numbers_are_arrays_of_every_float_type():
    for dtype in (d for d in fixed_size_types() if d.kind == "f"):
        with np.errstate(all="ignore"):
            assert limits.extreme_rows(dtype, 4).dtype == dtype.numpy
