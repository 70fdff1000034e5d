"""The conformance suite passes on the devices that are there, and fails on devices that are broken."""

from __future__ import annotations

from pathlib import Path

import heald
import heald_conformance
import numpy as np
import pytest
from conformance.reports import Report
from heald.api import dtypes
from heald_conformance import Broken, SettingsError, load_settings
from heald_conformance.arrays import any_bits, fixed_size_types, generator, numbers
from heald_conformance.golden import cases
from heald_conformance.levels.kernels import Declined, apply, may_succeed_on_device
from heald_conformance.recorded import calls
from heald_conformance.samples import EXCHANGES, samples, varied_type
from heald_conformance.settings import TOLERANCES, Settings
from heald_conformance.subject import Subject
from heald_conformance.verdict import NotApplicable
from heald_sim.native import Native

HERE = Path(__file__).parent
FOUND = {  # device -> the cases that must fail, and no others; without their parameters
    "LOSSY:0": {"memory.copies_in_and_out_are_bit_exact", "memory.copies_of_any_number_of_bytes_touch_no_others",
                "memory.many_buffers_keep_their_own_bytes",
                "ordering.an_event_comes_after_all_that_was_enqueued_before_it"},
    "SPILLING:0": {"memory.copies_of_any_number_of_bytes_touch_no_others"},
    "EAGER:0": {"memory.copies_in_and_out_are_bit_exact", "memory.copies_of_any_number_of_bytes_touch_no_others",
                "memory.a_large_copy_is_bit_exact", "memory.a_feed_that_has_changed_is_read_anew",
                "ordering.a_buffer_that_is_freed_serves_what_was_enqueued",
                "ordering.an_event_comes_after_all_that_was_enqueued_before_it",
                "ordering.a_wait_ends_after_the_work_before_it",
                "ordering.a_kernel_sees_the_copy_before_it_and_is_seen_by_the_one_after",
                "kernels.a_kernel_agrees_with_the_cpu",
                "kernels.a_fused_kernel_agrees_with_the_cpu",
                "kernels.a_random_chain_is_the_same_with_fusions_and_without"},
    "UNORDERED:0": {"ordering.work_on_one_stream_is_done_in_order",
                    "ordering.events_are_waited_for_in_any_order_and_more_than_once"},
    "BACKWARDS:0": {"ordering.the_times_between_events_add_up"},
    "ADDING:0": {"kernels.a_kernel_writes_every_element_of_its_outputs"},
    "RETURNING:0": {"kernels.a_kernel_returns_no_array_in_place_of_its_outputs", "kernels.a_kernel_agrees_with_the_cpu",
                    "kernels.a_kernel_agrees_with_tensorflow"},
    "CHANGING:0": {"kernels.a_kernel_leaves_its_inputs_as_they_are"},
    "WRONG:0": {"kernels.a_kernel_agrees_with_the_cpu"},
    "STUBBORN:0": {"kernels.a_kernel_agrees_with_the_cpu"},
    "PASSING:0": {"kernels.a_kernel_agrees_with_the_cpu", "kernels.a_kernel_agrees_with_tensorflow"},
    "FUSING:0": {"kernels.a_random_chain_is_the_same_with_fusions_and_without",
                 "faults.work_that_fails_behind_its_launch_is_an_error_with_its_device"},
    "FORGIVING:0": {"faults.work_that_fails_behind_its_launch_is_an_error_with_its_device"},
    "LEAKY:0": {"memory.freed_memory_serves_later_requests"},
    "HOARDING:0": {"faults.sessions_leave_nothing_behind"},
    "HASTY:0": {"ordering.a_buffer_that_is_freed_serves_what_was_enqueued"},
    "RAISING:0": {"memory.an_allocation_without_memory_returns_none"},
    "RENAMED:0": {"discovery.a_second_scan_finds_the_same_devices_in_the_same_order"},
    "OPENED:0": {"discovery.a_scan_opens_no_device"},
    "FORGETFUL:0": {"memory.a_feed_that_has_changed_is_read_anew"},
    "WRITING:0": {"memory.a_wrapped_array_is_read_and_not_written", "memory.a_feed_that_has_changed_is_read_anew"},
}


def test_the_devices_that_are_there_pass(tmp_path):
    report = Report(tmp_path, "--device", "CPU:0", "--device", "EXAMPLE:0")
    assert report.status == 0, report.output[-3000:]
    assert not report.failures
    assert "heald conformance: figures" in report.output
    assert "EXAMPLE:0  a launch, in a chain of" in report.output


def test_devices_with_a_fault_fail_just_where_it_is(tmp_path):
    names = [argument for name in FOUND for argument in ("--device", name)]
    report = Report(tmp_path, *names, "--conformance-config", str(HERE / "planted.toml"), "-k", "not another_process",
                    plugins=f'["{HERE / "planted.py"}"]')
    assert report.status == 1, report.output[-3000:]
    assert "it does not fail" in report.failures["WRONG:0", "kernels.a_kernel_agrees_with_the_cpu[Neg-float32]"]
    assert ("LOSSY:0", "memory.copies_of_no_bytes_do_nothing") in report.skipped  # as an expected failure
    faults = {device: {name.partition("[")[0] for d, name in report.failures if d == device} for device in FOUND}
    assert faults == FOUND
    wrong = [name for device, name in report.failures if device == "WRONG:0" and not name.endswith("[Neg-float32]")]
    assert wrong == ["kernels.a_kernel_agrees_with_the_cpu[Maximum-float16]"]
    passing = {name.partition("[")[2].partition("-")[0] for d, name in report.failures
               if d == "PASSING:0" and "agrees_with_the_cpu" in name}
    assert passing == {"BatchToSpaceND", "InvertPermutation", "MatrixBandPart", "ReverseSequence", "ReverseV2",
                       "StringUpper]", "TensorScatterUpdate", "UniqueV2"}
    message = report.failures["SPILLING:0", "memory.copies_of_any_number_of_bytes_touch_no_others[5]"]
    for part in ("copies of any number of bytes touch no others: 5", "5 bytes copied into a larger buffer",
                 "expected: bytes ", "came:     bytes ", "rule:     Device.copy_in: copy_in(host, buffer, stream)",
                 'again:    heald_conformance.case("memory.'):
        assert part in message


def test_a_device_that_is_not_there_is_named_with_the_reason(tmp_path):
    report = Report(tmp_path, "--device", "NOWHERE:0")
    assert report.status != 0
    assert "NOWHERE:0 cannot be tested" in report.output
    assert "no plugin brings the device type NOWHERE" in report.output


def test_a_case_is_a_function_of_a_device():
    heald_conformance.case("memory.copies_in_and_out_are_bit_exact")("EXAMPLE:0")
    heald_conformance.case("memory.copies_in_and_out_are_bit_exact[float16]")("CPU:0")
    (figures,) = heald_conformance.case("throughput.launches_are_timed")("CPU:0", Settings(quick=True))
    assert figures[0].unit == "us"
    with pytest.raises(LookupError, match="did you mean memory.a_large_copy_is_bit_exact"):
        heald_conformance.case("memory.a_large_copy")


def test_a_broken_rule_is_an_assertion_that_says_what_was_expected(monkeypatch):
    subject = Subject("EXAMPLE:0")
    monkeypatch.setitem(vars(subject.device), "allocate", lambda nbytes: None)
    with pytest.raises(Broken, match=r"expected: a buffer\n  came:     None\n  rule:     Device.allocate"):
        heald_conformance.case("ordering.work_on_one_stream_is_done_in_order")("EXAMPLE:0")


def test_a_place_of_failing_work_without_a_function_is_a_mistake_of_the_settings():
    for place in ("no_such_module:f", "heald_conformance.case:no_such_function"):
        with pytest.raises(SettingsError, match=f"failing_work = '{place}' cannot be loaded"):
            heald_conformance.case("faults.work_that_fails_behind_its_launch_is_an_error_with_its_device")(
                "EXAMPLE:0", Settings(failing_work=place))


def test_every_op_of_values_has_samples_that_the_reference_takes():
    with_recordings = "tf_text"
    kernels = [kernel for kernel in Subject("CPU:0").kernels() if kernel.pack != with_recordings]
    ops, on = sorted({kernel.op for kernel in kernels}), Subject("SIM:0")
    without = [op for op in ops if not any(runs(on, op, sample) for sample in tried_samples(on, op))]
    files = {kernel.op for kernel in kernels if kernel.files}
    without = {op for op in without if not is_of_things(on.host.registries.ops.get(op))}
    # DeserializeSparse reads strings or variants alone; the Saves and Restores have no form that a kernel takes
    never = {"Abort", "DeserializeSparse", "Restore", "RestoreSlice", "Save", "SaveSlices"}
    of_other_ops = {"DeleteSessionTensor", "GetSessionTensor", "SimpleMLInferenceOp"}  # one has kept or loaded a value
    assert without - files - EXCHANGES == never | of_other_ops


def is_of_things(op):
    """True for an op with inputs or outputs that only other ops of a session make."""
    return any(arg.dtype in (dtypes.resource, dtypes.variant) for arg in (*op.inputs, *op.outputs))


def tried_samples(on, op):
    """The samples of an op, in the first types first."""
    definition = on.host.registries.ops.get(op)
    name, rule = varied_type(definition), on.host.registries.ops.metadata(definition)
    types = [None] if name is None else sorted(definition.attrs[name].allowed or dtypes.ALL, key=lambda d: d.number)
    for dtype in types:
        if dtype is None or dtype in fixed_size_types():
            yield from samples(definition, dtype, rule.values if rule else ())


@pytest.mark.parametrize(("op", "dtype", "first"), [
    ("InvertPermutation", dtypes.int64, [3, 4, 0, 2, 1]),
    ("AsString", dtypes.float64, [1.5, np.float32(3.14159)]), ("AsString", dtypes.int8, [6, 13]),
    ("AsString", dtypes.bool_, [False, True]), ("AsString", dtypes.named("complex64"), [1.5, np.float32(3.14159)]),
    ("BroadcastArgs", dtypes.int64, [2, 3]),  # nothing is recorded but an error: as BroadcastGradientArgs
])
def test_recorded_cases_are_samples_in_other_types(op, dtype, first):
    definition = Subject("CPU:0").host.registries.ops.get(op)
    attrs, inputs = next(calls(definition, varied_type(definition), dtype))
    assert attrs.keys() == definition.attrs.keys()
    assert [x.dtype for x in inputs] == [t.dtype.numpy for t in definition.expand_inputs(attrs)]
    assert inputs[0].reshape(-1).tolist() == first


@pytest.mark.parametrize("op", ["Shape", "BroadcastArgs"])
def test_a_result_known_before_the_run_tells_nothing_of_a_kernel(op):
    with pytest.raises(NotApplicable, match="no kernel is called"):
        heald_conformance.case(f"kernels.a_kernel_agrees_with_the_cpu[{op}-int32]")("SIM:0")


def test_recorded_cases_call_the_kernels_of_the_device(monkeypatch):
    launched, launch = set(), Native.launch

    def note_launch(driver, stream, kernel, arguments):
        launched.add(kernel.op)
        launch(driver, stream, kernel, arguments)

    monkeypatch.setattr(Native, "launch", note_launch)
    for op in ("Split", "Sum", "Transpose"):
        heald_conformance.case(f"kernels.a_kernel_agrees_with_tensorflow[{op}]")("SIM:0")
    assert launched == {"Split", "Sum", "Transpose"}


@pytest.mark.parametrize(("device", "outputs", "is_right"), [
    ("SIM:0", [np.zeros((1, 4), np.float32)], True), ("SIM:0", [np.ones((1, 4), np.float32)], False),
    ("CPU:0", [np.zeros((1, 4), np.float32)], False),  # its memory is the host's: it can look at the index
    ("SIM:0", heald.errors.InvalidArgument("indices[0] = 3 is not in [0, 3)"), False),  # right, and no zeros
])
def test_an_index_out_of_range_may_give_zeros_on_devices_of_their_own_memory(device, outputs, is_right):
    (case, *_) = [c for c in cases()["GatherV2"] if "is not in" in c.message]
    assert may_succeed_on_device(Subject(device), case, outputs) == is_right


def test_samples_are_arrays_of_the_type_that_was_asked_for():
    for dtype in fixed_size_types():
        for shape in ((), (0, 3), (5,)):
            for drawn in (numbers(dtype, shape, generator()), any_bits(dtype, shape, generator())):
                assert isinstance(drawn, np.ndarray)
                assert (drawn.dtype, drawn.shape) == (dtype.numpy, shape)


def runs(on, op, sample):
    try:
        apply(on, op, sample, on.reference, frozenset())
    except (Declined, heald.errors.HealdError):
        return False
    return True


def test_an_expected_failure_is_reported_when_it_passes_or_names_nothing(tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('levels = ["memory"]\n[expected_failures]\n'
                        '"memory.copies_in_and_out_are_bit_exact[float32]" = "by its whole id"\n'
                        '"EXAMPLE:0 memory.*bit_exact[int?]" = "by a pattern"\n'
                        '"memory.copies_in_and_out_are_bit_exact[flaot32]" = "a slip of the pen"\n'
                        '"CPU:0 memory.*" = "another device"\n')
    report = Report(tmp_path, "--device", "EXAMPLE:0", "--conformance-config", str(settings), "-k", "bit_exact")
    case = "memory.copies_in_and_out_are_bit_exact"
    assert {name for _, name in report.failures} == {f"{case}[{kind}]" for kind in ("float32", "int8", "int4", "int2")}
    assert "by its whole id" in report.failures["EXAMPLE:0", f"{case}[float32]"]
    unused = [line.partition("'")[2] for line in report.output.splitlines() if "names no case of this run" in line]
    assert unused == ["CPU:0 memory.*' names no case of this run", f"{case}[flaot32]' names no case of this run"]


@pytest.mark.parametrize(("text", "message"), [
    ('levels = ["memroy"]', "'memroy' is no level; did you mean memory"),
    ("level = []", "'level' is no key; did you mean levels"),
    ("[tolerance.float61]\nrtol = 1", "'float61' is no element type with a tolerance; did you mean float64"),
    ("[tolerance.float16]\nrto = 1", "'rto' is no key of tolerance.float16; did you mean rtol"),
    ('[expected_failures]\n"a*" = ""', "needs a reason"),
    ("levels = [", "conformance.toml"),
])
def test_settings_are_closed(tmp_path, text, message):
    path = tmp_path / "conformance.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_settings(path)


def test_settings_are_read(tmp_path):
    path = tmp_path / "conformance.toml"
    path.write_text('levels = ["kernels", "memory"]\n[tolerance.float16]\nrtol = 1\n[expected_failures]\n'
                    '"kernels.*[Neg-float1?]" = "why"\n"EXAMPLE:0 memory.*" = "that"\n')
    settings = load_settings(path)
    assert settings.levels == ("memory", "kernels")
    assert settings.tolerance("float16") == (1.0, TOLERANCES["float16"][1])
    assert settings.tolerance("int8") == (0, 0)
    assert settings.why_expected("CPU:0", "kernels.a_kernel_agrees_with_the_cpu[Neg-float16]") == "why"
    assert settings.why_expected("CPU:0", "kernels.a_kernel_agrees_with_the_cpu[Neg-float32]") is None
    assert settings.why_expected("CPU:0", "memory.x") is None
    assert settings.why_expected("EXAMPLE:0", "memory.x") == "that"


@pytest.mark.parametrize(("pattern", "ops"), [
    ("kernels.*[Sin-*]", {"Sin"}), ("kernels.*[Sin*", {"Sin", "Sinh"}), ("kernels.*[Sin-float32]", {"Sin"}),
    ("kernels.*Sin?-*", {"Sinh"}), ("kernels.a_kernel[Sinh-float32]", {"Sinh"}), ("Sin", set())])
def test_a_pattern_of_expected_failures_covers_the_ids_that_it_matches_whole(pattern, ops):
    """A pattern without the hyphen behind Sin covers Sinh, too, which passes and fails the run."""
    settings = Settings(expected_failures={pattern: "a reason"})
    assert {op for op in ("Sin", "Sinh") if settings.why_expected("T:0", f"kernels.a_kernel[{op}-float32]")} == ops
