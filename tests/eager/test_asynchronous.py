"""Handles that come later: simulated devices, queued calls, errors at the right handles, order of effects, ends."""

from __future__ import annotations

import sys
import threading

import heald
import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors

SEEDS = range(12)
ONES = np.ones((2, 2), np.float32)


def values(handle: heald.TensorHandle) -> list:
    return handle.numpy().tolist()


def test_a_handle_of_a_device_returns_before_the_work_is_done():
    cpu = core()
    native = cpu.host.open("SIM:0").native
    with native.machine.lock:  # no other thread moves the device's clock
        handle = cpu.execute("MatMul", ONES, ONES, device="SIM:0")
        assert (handle.shape, handle.dtype.name, handle.device) == ((2, 2), "float32", "SIM:0")
        assert "enqueued" in repr(handle)
        copied = handle.to("CPU:0")
        assert not copied.is_available
    assert values(handle) == values(copied) == [[2, 2], [2, 2]]
    assert "value" in repr(handle)
    assert native.report == []


def test_ops_follow_their_inputs_to_the_device_and_fall_back_to_the_host():
    cpu = core(ops=("AddV2",))
    x = cpu.execute("AddV2", ONES, ONES, device="SIM:0")
    y = cpu.execute("AddV2", x, 1)
    z = cpu.execute("Mul", y, y)
    assert (y.device, z.device) == ("SIM:0", "CPU:0")
    assert values(z) == [[9, 9], [9, 9]]
    with pytest.raises(errors.Unimplemented, match="no kernel on SIM:0"):
        cpu.execute("Mul", y, y, device="SIM:0")


def test_copies_between_devices_are_asynchronous_and_keep_values():
    cpu = core()
    x = cpu.handle(ONES)
    there = x.to("SIM:0").to("SIM:1").to("CPU:0")
    assert there.device == "CPU:0"
    assert values(there) == values(x)
    assert x.to("CPU:0") is x
    with pytest.raises(errors.NotFound):
        x.to("SIM:7")
    with pytest.raises(errors.InvalidArgument, match="stays in host memory"):
        cpu.handle(["text"]).to("SIM:0")
    with pytest.raises(errors.InvalidArgument, match="on SIM:0 and on SIM:1"):
        cpu.execute("AddV2", x.to("SIM:0"), x.to("SIM:1"))


def test_a_device_reports_no_race_and_gets_its_memory_back():
    cpu = core()
    native = cpu.host.open("SIM:0").native
    before = native.memory.in_use if hasattr(native.memory, "in_use") else None
    x = cpu.handle(ONES).to("SIM:0")
    for _ in range(50):
        x = cpu.execute("AddV2", x, x)
    x.numpy()
    del x
    cpu.host.device_memory.free_dropped()
    native.finish()
    assert native.report == []
    if before is not None:
        assert native.memory.in_use == before


@pytest.mark.parametrize("failing", [0, 1, 50, 99])
def test_a_failing_op_among_a_hundred_fails_itself_and_its_dependents_only(failing):
    reports: list[errors.HealdError] = []
    cpu = core(diagnostics=reports.append)
    native = cpu.host.open("SIM:0").native
    x = cpu.handle(ONES).to("SIM:0")
    x.numpy()
    native.fail(f"launch:{failing + 1}")
    independent = [cpu.execute("AddV2", x, i) for i in range(100)]
    dependent = [cpu.execute("Neg", handle) for handle in independent]
    for i in range(100):
        for handle, sign in ((independent[i], 1), (dependent[i], -1)):
            if i == failing:
                with pytest.raises(errors.Internal, match="planted fault") as raised:
                    handle.numpy()
                assert raised.value.op == "AddV2"
                assert raised.value.location.file == __file__
            else:
                assert values(handle) == [[sign * (1 + i)] * 2] * 2
    assert len(reports) == 1
    assert native.report == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failing_op_among_a_hundred_queued_ones_fails_all_that_follow_from_it(seed):
    """A hundred calls wait for one copy; every tenth depends on the one before it. Call 50 fails when it runs."""
    reports: list[errors.HealdError] = []
    cpu = core(seed, diagnostics=reports.append)
    x = cpu.handle(np.float32([3, 1, 2])).to("SIM:0")
    handles, failing, line = [], 50, 0
    for number in range(100):
        source = handles[-1] if number % 10 == 9 else x
        if number == failing:
            line = sys._getframe().f_lineno + 1
            handles.append(cpu.execute("GatherV2", source, [0, 1, 7], 0, device="CPU:0"))
        else:
            source = handles[failing] if failing < number < failing + 9 and number % 2 else source
            handles.append(cpu.execute("AddV2", source, number, device="CPU:0"))
        assert not handles[-1].is_available
    lost = {failing, *range(failing + 1, failing + 9, 2)}
    for number in reversed(range(100)):
        if number in lost:
            with pytest.raises(errors.InvalidArgument, match=r"indices\[2\] = 7") as raised:
                handles[number].numpy()
            assert (raised.value.op, raised.value.location.line) == ("GatherV2", line)
        else:
            before = number - 1 if number % 10 == 9 else 0
            assert values(handles[number]) == [element + number + before for element in (3, 1, 2)]
    assert len(reports) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_errors_arrive_at_the_right_handles_in_every_schedule(seed):
    cpu = core(seed)
    x = cpu.handle(np.float32([3, 1, 2])).to("SIM:0")
    good = cpu.execute("GatherV2", x, [0, 2], 0, device="CPU:0")
    bad = cpu.execute("GatherV2", x, [0, 7], 0, device="CPU:0")
    mixed = [cpu.execute("AddV2", good, 1), cpu.execute("AddV2", bad, 1), cpu.execute("AddV2", good, bad)]
    assert not any(handle.is_available for handle in mixed)
    assert all("pending" in repr(handle) for handle in mixed)
    assert mixed[0].shape == (2,)
    assert values(mixed[0]) == [4, 3]
    for handle in (bad, *mixed[1:]):
        with pytest.raises(errors.InvalidArgument, match=r"indices\[1\] = 7") as raised:
            handle.numpy()
        assert raised.value.op == "GatherV2"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_late_shape_error_fails_its_call_and_all_calls_behind_it(seed):
    """G02: op 1 does not fit, ops 2 and 3 depend on it; the kernels of 2 and 3 never run."""
    cpu = core(seed)
    data = cpu.handle(np.float32([1, 0, 2])).to("SIM:0")
    indices = cpu.execute("Where", data, device="CPU:0")
    expected = sys._getframe().f_lineno + 1
    first = cpu.execute("AddV2", indices, cpu.handle(np.ones((5, 1), np.int64)))
    second = cpu.execute("Neg", first)
    third = cpu.execute("Mul", second, 2)
    for handle in (first, second, third):
        with pytest.raises(errors.InvalidArgument, match="Incompatible shapes") as raised:
            handle.numpy()
        assert (raised.value.op, raised.value.location.line) == ("AddV2", expected)
    with pytest.raises(errors.InvalidArgument):
        assert third.shape
    assert indices.shape == (2, 1)
    assert "Neg" not in cpu.bound_ops.op_names()


def test_metadata_that_depends_on_data_comes_with_the_value():
    cpu = core(0)
    data = cpu.handle(np.float32([1, 0, 2])).to("SIM:0")
    indices = cpu.execute("Where", data, device="CPU:0")
    doubled = cpu.execute("Mul", indices, 2)
    assert "?" in repr(doubled)
    assert doubled.dtype.name == "int64"
    assert doubled.shape == (2, 1)
    shape = cpu.handle(np.int32([2, 2])).to("SIM:0")
    reshaped = cpu.execute("Reshape", cpu.handle(np.arange(4)), shape, device="CPU:0")
    assert reshaped.shape == (2, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_effects_on_a_resource_keep_program_order(seed):
    cpu = core(seed)
    variable = cpu.execute("VarHandleOp", attrs={"dtype": "float32", "shape": []})
    cpu.execute("AssignVariableOp", variable, np.float32(0))
    reads = []
    for number in (1, 2, 3):
        late = cpu.handle(np.float32(number)).to("SIM:0")
        cpu.execute("AssignAddVariableOp", variable, late, device="CPU:0")
        reads.append(cpu.execute("ReadVariableOp", variable, attrs={"dtype": "float32"}))
    assert [float(read) for read in reads] == [1, 3, 6]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_chain_orders_calls_and_carries_their_error(seed):
    cpu = core(seed)
    late = cpu.handle(np.int32([9])).to("SIM:0")
    chain, bad = cpu.execute("GatherV2", ONES, late, 0, device="CPU:0", chain=())
    after, good = cpu.execute("AddV2", ONES, 1, chain=chain)
    with pytest.raises(errors.InvalidArgument, match=r"indices\[0\] = 9"):
        good.numpy()
    assert bad.error is not None
    cpu.host.await_values([after])
    assert after.error.op == "GatherV2"
    chain, one = cpu.execute("AddV2", ONES, 1, chain=())
    chain, = cpu.execute("Assert", True, [1], chain=(chain, one))
    assert chain.is_available()


@pytest.mark.parametrize("seed", SEEDS)
def test_cancel_execution_turns_pending_and_later_handles_into_cancelled_ones_until_restart(seed):
    cpu = core(seed)
    done = cpu.execute("AddV2", ONES, 1)
    queued = cpu.execute("AddV2", cpu.handle(ONES).to("SIM:0"), 1, device="CPU:0")
    cpu.host.cancel_execution()
    copied = done.to("SIM:0")
    later = cpu.execute("AddV2", done, 1)
    behind = cpu.execute("AddV2", queued, 1)
    for handle in (queued, copied, later, behind):
        with pytest.raises(errors.Cancelled):
            handle.numpy()
    assert values(done) == [[2, 2], [2, 2]]
    cpu.host.restart()
    assert values(cpu.execute("AddV2", done, 1)) == [[3, 3], [3, 3]]
    with pytest.raises(errors.Cancelled):
        later.numpy()


def test_a_lost_device_fails_its_handles_and_later_calls():
    cpu = core()
    x = cpu.handle(ONES).to("SIM:0")
    x.numpy()
    cpu.host.open("SIM:0").native.fail("lost:1")
    handle = cpu.execute("AddV2", x, 1)
    for lost in (handle, cpu.execute("AddV2", handle, 1)):
        with pytest.raises(errors.Unavailable):
            lost.numpy()


def test_a_lack_of_device_memory_is_the_error_of_the_handle():
    cpu = core(memory=1 << 16)
    x = cpu.handle(np.ones(4096, np.float32)).to("SIM:0")
    handles = [cpu.execute("AddV2", x, i) for i in range(20)]
    assert values(handles[0])[0] == 1
    with pytest.raises(errors.ResourceExhausted) as raised:
        handles[-1].numpy()
    assert raised.value.location.file == __file__


def test_threads_enqueue_on_one_device():
    cpu = core()
    x = cpu.handle(ONES).to("SIM:0")
    results: dict[int, list] = {}

    def work(number: int) -> None:
        handle = x
        for _ in range(30):
            handle = cpu.execute("AddV2", handle, number)
        results[number] = values(handle)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [[1 + 30 * n] * 2] * 2 for n in range(4)}
    assert cpu.host.open("SIM:0").native.report == []




def test_the_second_call_of_a_kind_on_a_device_takes_no_signature(monkeypatch):
    cpu = core()
    x = cpu.handle(ONES).to("SIM:0")
    first = [cpu.execute("AddV2", x, x), cpu.execute("AddV2", x, x, device="SIM:0")]
    split = cpu.execute("Unpack", x, attrs={"num": 2})
    monkeypatch.setattr("heald_eager.signature.MatchMemo.match", None)
    second = [cpu.execute("AddV2", x, x), cpu.execute("AddV2", x, x, device="SIM:0")]
    assert [values(handle) for handle in first + second] == [[[2, 2], [2, 2]]] * 4
    again = cpu.execute("Unpack", x, attrs={"num": 2})
    assert [values(handle) for handle in again] == [values(handle) for handle in split]
    assert {handle.device for handle in second} == {"SIM:0"}
