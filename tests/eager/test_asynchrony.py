"""Long kernels on host memory: which calls return before they have run, and the order, errors and buffers of these."""

from __future__ import annotations

import sys
import threading

import heald
import numpy as np
import pytest
from harness import gated_kernel
from harness.eager_runtime import core
from heald import errors
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime
from heald_eager.asynchrony import TRUSTED_RUNS
from heald_eager.core_runtime import CoreRuntime

SEEDS = range(12)
LARGE = np.full(1 << 18, 3, np.float32)  # its calls are deferred before they are measured
SMALL = np.float32([3, 1, 2])


def gated(**settings) -> CoreRuntime:
    """A runtime over a host with a closed gate before the kernel of Neg."""
    gated_kernel.close()
    config = load_config({"plugins": {"load": ["harness.gated_kernel"]}, **settings})
    runtime = Runtime(config)
    return CoreRuntime(runtime.host, asynchronous=config.eager.asynchronous)


@pytest.fixture(autouse=True)
def _open_gate():
    yield
    gated_kernel.gate.set()


def test_a_large_call_returns_before_its_kernel_has_run_and_ten_of_them_take_turns():
    cpu = gated()
    inputs = [cpu.handle(LARGE + number) for number in range(10)]
    handles = [cpu.execute("Neg", x) for x in inputs]
    assert not any(handle.is_available for handle in handles)
    assert handles[0].shape == LARGE.shape
    caller = sum(range(1000))  # the caller's own Python goes on
    gated_kernel.gate.set()
    assert [handle.numpy()[0] for handle in handles] == [-3 - number for number in range(10)]
    assert gated_kernel.begun == [3 + number for number in range(10)]
    assert set(gated_kernel.running) == {1}
    assert caller == 499500


def test_a_short_op_and_a_read_wait_for_a_deferred_product_alone():
    cpu = gated()
    late = cpu.execute("Neg", cpu.handle(LARGE))
    behind = cpu.execute("AddV2", late, 1)
    beside = cpu.execute("AddV2", cpu.handle(SMALL), 1)
    assert beside.is_available
    assert not behind.is_available
    gated_kernel.gate.set()
    assert behind.numpy()[0] == -2


def test_the_array_of_a_caller_may_change_after_a_deferred_call():
    cpu = gated()
    array = LARGE.copy()
    handle = cpu.execute("Neg", array)
    array[:] = 7
    gated_kernel.gate.set()
    assert handle.numpy()[0] == -3


@pytest.mark.parametrize("mode", ["never", "always"])
def test_config_makes_no_call_asynchronous_or_every_one(mode):
    cpu = gated(eager={"asynchronous": mode})
    if mode == "never":
        gated_kernel.gate.set()
        assert cpu.execute("Neg", LARGE).is_available
    else:
        handles = [cpu.execute("Neg", cpu.handle(SMALL)) for _ in range(3)]
        assert not any(handle.is_available for handle in handles)
        gated_kernel.gate.set()
        assert [handle.numpy()[0] for handle in handles] == [-3] * 3
    with pytest.raises(errors.InvalidArgument, match="asynchronous"):
        load_config({"eager": {"asynchronous": "sometimes"}})


def test_a_call_is_deferred_once_its_kernel_was_long_and_no_longer_once_it_was_short(monkeypatch):
    cpu = core(0)
    x = cpu.handle(SMALL)
    monkeypatch.setattr("heald_eager.asynchrony.LONG_CALL_SECONDS", 0.0)
    handles = [cpu.execute("Neg", x) for _ in range(TRUSTED_RUNS + 1)]
    assert [handle.is_available for handle in handles] == [True] * TRUSTED_RUNS + [False]
    monkeypatch.setattr("heald_eager.signature.MatchMemo.match", None)
    handles.append(cpu.execute("Neg", x))  # the memo has it
    assert not handles[-1].is_available
    assert [values(handle) for handle in handles] == [[-3, -1, -2]] * len(handles)
    monkeypatch.undo()
    monkeypatch.setattr("heald_eager.asynchrony.LONG_CALL_SECONDS", 1e9)
    assert cpu.execute("Neg", x).is_available
    assert "Neg" in {key[0] for key in cpu.memo.fast}


def test_a_large_call_that_was_short_runs_in_the_caller(monkeypatch):
    cpu = core(0)
    monkeypatch.setattr("heald_eager.asynchrony.LONG_CALL_SECONDS", 1e9)
    x = cpu.handle(LARGE)
    first = cpu.execute("Neg", x)
    assert not first.is_available
    assert first.numpy()[0] == -3
    assert cpu.execute("Neg", x).is_available


@pytest.mark.parametrize(("op", "inputs"), [
    ("Neg", 1), ("AddV2", 2), ("Softsign", 1), ("Reshape", 1), ("ConcatV2", 2), ("ArgMax", 1), ("Where", 1)])
def test_a_large_first_call_returns_before_its_op_is_bound(op, inputs):
    cpu = core(0)
    x = cpu.handle(LARGE)
    attrs = {"N": inputs} if op == "ConcatV2" else None
    arguments = {"Reshape": (x, [512, 512]), "ConcatV2": ([x, x], 0), "ArgMax": (x, 0)}.get(op, (x,) * inputs)
    handle = cpu.execute(op, *arguments, attrs=attrs)
    assert not handle.is_available
    assert op not in cpu.bound_ops.op_names()
    expected = core(asynchronous="never").execute(op, *[
        [y.numpy() for y in a] if isinstance(a, list) and isinstance(a[0], heald.TensorHandle)
        else a.numpy() if isinstance(a, heald.TensorHandle) else a for a in arguments])
    assert np.array_equal(handle.numpy(), expected.numpy())
    assert op in cpu.bound_ops.op_names()


def test_a_large_first_call_without_a_kernel_for_it_is_an_error_of_its_handle_with_its_line(monkeypatch):
    def bind(*_: object) -> None:
        raise errors.Unimplemented("no kernel takes this call")

    cpu = core(0)
    x = cpu.handle(LARGE)
    monkeypatch.setattr("heald_eager.bound_op.Binding.bind", bind)
    line = sys._getframe().f_lineno + 1
    bad = cpu.execute("Softsign", x)
    behind = cpu.execute("Neg", bad)
    for handle in (bad, behind):
        with pytest.raises(errors.Unimplemented, match="no kernel takes") as raised:
            handle.numpy()
        assert (raised.value.op, raised.value.location.line) == ("Softsign", line)
    with pytest.raises(errors.Unimplemented, match="no kernel takes"):
        cpu.execute("Softsign", SMALL)  # the error of a small call is its own
    with pytest.raises(errors.InvalidArgument, match="Incompatible shapes"):
        cpu.execute("AddV2", x, np.ones(3, np.float32))  # as are errors of shapes and types
    with pytest.raises(errors.InvalidArgument, match="'T' is"):
        cpu.execute("Softsign", cpu.handle(LARGE.astype(np.int32)))


def test_a_large_first_call_on_a_devices_tensor_or_with_effects_is_bound_at_once():
    cpu = core(0)
    there = cpu.handle(LARGE).to("SIM:0")
    assert cpu.execute("Neg", there).device == "SIM:0"
    variable = cpu.execute("VarHandleOp", attrs={"dtype": "float32", "shape": [len(LARGE)]})
    cpu.execute("AssignVariableOp", variable, LARGE)
    assert "AssignVariableOp" in cpu.bound_ops.op_names()
    assert cpu.execute("ReadVariableOp", variable, attrs={"dtype": "float32"}).is_available


def test_a_task_of_the_work_queue_runs_long_calls_itself():
    cpu = core(asynchronous="always")
    results, done = [], threading.Event()

    def task() -> None:
        results.append(values(cpu.execute("Neg", SMALL)))
        done.set()

    cpu.host.work_queue.add_task(task)
    assert done.wait(30)
    assert results == [[-3, -1, -2]]


@pytest.mark.parametrize("seed", SEEDS)
def test_errors_reach_the_right_handles_with_their_line_in_every_schedule(seed):
    reports: list[errors.HealdError] = []
    cpu = core(seed, diagnostics=reports.append, asynchronous="always")
    x = cpu.handle(SMALL)
    good = cpu.execute("GatherV2", x, [0, 2], 0)
    line = sys._getframe().f_lineno + 1
    bad = cpu.execute("GatherV2", x, [0, 7], 0)
    mixed = [cpu.execute("AddV2", good, 1), cpu.execute("AddV2", bad, 1), cpu.execute("AddV2", good, bad)]
    assert not any(handle.is_available for handle in mixed)
    assert values(mixed[0]) == [4, 3]
    for handle in (bad, *mixed[1:]):
        with pytest.raises(errors.InvalidArgument, match=r"indices\[1\] = 7") as raised:
            handle.numpy()
        assert (raised.value.op, raised.value.location.file, raised.value.location.line) == ("GatherV2", __file__, line)
    assert len(reports) == 1
    with pytest.raises(errors.InvalidArgument):
        cpu.execute("AddV2", x, np.ones(2, np.float32))  # an error of shapes is the call's


@pytest.mark.parametrize("seed", SEEDS)
def test_effects_keep_the_order_of_the_program(seed):
    cpu = core(seed, asynchronous="always")
    variable = cpu.execute("VarHandleOp", attrs={"dtype": "float32", "shape": []})
    cpu.execute("AssignVariableOp", variable, np.float32(0))
    reads = []
    for number in (1, 2, 3):
        late = cpu.execute("Mul", np.float32(number), cpu.handle(np.float32(1)))
        assert not late.is_available
        cpu.execute("AssignAddVariableOp", variable, late)
        reads.append(cpu.execute("ReadVariableOp", variable, attrs={"dtype": "float32"}))
    assert [float(read) for read in reads] == [1, 3, 6]


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_random_ops_draw_in_the_order_of_the_program(seed):
    def draws(cpu: CoreRuntime) -> list:
        attrs = {"dtype": "float32", "seed": 1, "seed2": 2}
        drawn = [cpu.execute("RandomUniform", cpu.execute("Add", [0], [2]), attrs=attrs) for _ in range(4)]
        return [values(handle) for handle in reversed(drawn)]

    assert draws(core(seed, asynchronous="always")) == draws(core(asynchronous="never"))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_donated_buffer_of_a_pending_handle_is_overwritten_by_its_only_reader(seed):
    cpu = core(seed, asynchronous="always")
    x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
    first = x
    for _ in range(5):
        x = cpu.execute("AddV2", x, 1, donate=(0,))
    with pytest.raises(errors.FailedPrecondition, match="donated"):
        first.numpy()
    assert x.numpy()[0] == 9


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", ["deferred", "a copy from a device", "a move within the host"])
def test_a_donated_buffer_that_an_earlier_call_reads_later_keeps_its_value(seed, source):
    cpu = core(seed, asynchronous="always")
    if source == "a copy from a device":
        x = cpu.handle(SMALL).to("SIM:0").to("CPU:0")
    else:
        x = cpu.execute("AddV2", cpu.handle(SMALL), 0)
    other = cpu.handle(SMALL)
    reader = x.to_dense() if source == "a move within the host" else cpu.execute("AddV2", x, other)
    donated = cpu.execute("Mul", x, 10, donate=(0,))
    after = cpu.execute("Neg", reader)
    assert values(donated) == [30, 10, 20]
    assert values(reader) == ([3, 1, 2] if source == "a move within the host" else [6, 2, 4])
    assert values(after) == [-element for element in values(reader)]


def test_a_chain_of_donations_allocates_one_buffer():
    cpu = core(0, asynchronous="always")
    makes = []
    x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
    address = x.numpy().ctypes.data
    for _ in range(6):
        x = cpu.execute("AddV2", x, 1, donate=(0,))
    makes.append(x.numpy().ctypes.data)
    assert makes == [address]
    assert x.numpy()[0] == 10


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_cancelling_ends_deferred_calls(seed):
    cpu = core(seed, asynchronous="always")
    handle = cpu.execute("Neg", SMALL)
    cpu.host.cancel_execution()
    with pytest.raises(errors.Cancelled):
        handle.numpy()
    cpu.host.restart()
    assert values(cpu.execute("Neg", SMALL)) == [-3, -1, -2]


def test_a_long_chain_of_short_ops_behind_a_deferred_call_needs_no_stack():
    cpu = gated()
    x = cpu.execute("Sum", cpu.execute("Neg", cpu.handle(LARGE)), 0)
    for _ in range(3000):
        x = cpu.execute("AddV2", x, 1)
    gated_kernel.gate.set()
    assert float(x) == -3 * len(LARGE) + 3000


def values(handle: heald.TensorHandle) -> list:
    return handle.numpy().tolist()
