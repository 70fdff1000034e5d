"""The flat list in parts: for every partition, on any threads, results, errors and memory are as on one thread."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from functools import partial
from types import SimpleNamespace
from unittest.mock import ANY

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from harness.garbage import collect
from harness.threads import in_threads
from heald.errors import Cancelled, DeadlineExceeded, PluginError, Unknown
from heald.runtime.executor import autotune
from heald.runtime.executor.autotune import FIRST_STAY_RUNS, compare_schedules
from heald.runtime.executor.memory_plan import FreeSlots, Use, plan_memory
from heald.runtime.executor.parallel_schedule import dependencies, make_parallel_schedule, schedule_of_partition
from heald.runtime.executor.schedule import Schedule
from heald.runtime.executor.step import RunOptions, Step
from heald.runtime.executor.task_partition import TaskPartition, divide_by_costs, divide_by_owner
from heald.runtime.executor.trace import Trace
from heald.runtime.linker.link import link
from heald.runtime.service.runtime import runtime
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("tests")]}, "work_queue": {"threads": 3}}
EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "100"))
US = 1000  # ns
X, Y = np.float32([1, 2, 3]), np.float32([-1, 5, 7])


@pytest.fixture(scope="module")
def host():
    host = runtime(CONFIG | {"allocator": {"name": "counting"}}).host
    yield host
    host.close()
    del host
    collect()  # other tests count what there is


# Dividing: nothing here has threads.


@st.composite
def costly_graphs(draw, largest_count=40):
    """The needs of each call, and its costs."""
    needs, costs = [], []
    for i in range(draw(st.integers(1, largest_count))):
        earlier_calls = st.integers(max(0, i - 3), i - 1) | st.integers(0, i - 1) if i else st.nothing()
        needs.append(sorted(draw(st.sets(earlier_calls, max_size=3)) if i else ()))
        costs.append(draw(st.sampled_from([0, 1, 20, 100, 200, 1000])) * US)
    return needs, costs


def is_valid(partition, needs):
    """True for a partition with each call once, in program order, behind its needs."""
    home = {call: part for part, calls in enumerate(partition.calls) for call in calls}
    assert sorted(call for calls in partition.calls for call in calls) == list(range(len(needs)))
    assert all(list(calls) == sorted(calls) for calls in partition.calls)
    assert all(n < part for part, before in enumerate(partition.needs) for n in before)
    for call, before in enumerate(needs):
        for n in before:
            assert home[n] == home[call] or home[n] in partition.needs[home[call]]
    return True


@given(costly_graphs(), st.integers(2, 5))
@settings(max_examples=2 * EXAMPLES)
def test_parts_have_every_call_once_behind_its_needs(graph, threads):
    needs, costs = graph
    partition = divide_by_costs(needs, costs, threads)
    assert partition is None or is_valid(partition, needs)


@given(costly_graphs(), st.data())
@settings(max_examples=2 * EXAMPLES)
def test_parts_by_owner_have_one_owner_each_and_some_are_independent(graph, data):
    needs, _ = graph
    owners = [data.draw(st.integers(0, 2)) for _ in needs]
    partition = divide_by_owner(needs, owners)
    if partition is not None:
        assert is_valid(partition, needs)
        assert all(len({owners[call] for call in calls}) == 1 for calls in partition.calls)
        reach = partition.reach()
        assert any(not reach[b] >> a & 1 for b in range(len(reach)) for a in range(b))


@pytest.mark.parametrize(("needs", "owners", "expected_parts"), [
    ([[], [], [0], [1]], [0, 1, 0, 1], ((0, 2), (1, 3))),
    ([[], [], [0, 1], [1]], [0, 1, 0, 1], ((0,), (1,), (2,), (3,))),
    ([[], [0], [1]], [0, 1, 0], None),
    ([[], []], [0, 0], None),
], ids=["two chains", "a crossing", "one chain over two owners", "one owner"])
def test_parts_by_owner_end_where_another_owner_needs_them(needs, owners, expected_parts):
    partition = divide_by_owner(needs, owners)
    assert expected_parts == (None if partition is None else partition.calls)


def test_independent_costly_calls_are_parts_of_their_own():
    partition = divide_by_costs([[]] * 16 + [list(range(16))], [200 * US] * 16 + [5 * US], 2)
    assert sorted(partition.calls) == [*((i,) for i in range(15)), (15,), (16,)]


def test_a_chain_in_a_branch_is_one_part():
    needs = [[], [0], [1], [], [3], [4], [2, 5]]
    partition = divide_by_costs(needs, [150 * US] * 7, 2)
    assert sorted(partition.calls) in ([(0, 1, 2, 6), (3, 4, 5)], [(0, 1, 2), (3, 4, 5), (6,)])


@pytest.mark.parametrize(("needs", "costs", "threads"), [
    ([[], []], [200 * US] * 2, 1),
    ([[]] * 10, [20 * US] * 10, 2),
    ([[], [0], [1], [2]], [1000 * US] * 4, 2),
    ([[], []], [1000 * US, 50 * US], 2),
    ([], [], 2),
], ids=["one thread", "little work", "a chain", "one call that outweighs all others", "nothing"])
def test_a_list_that_would_not_gain_is_not_divided(needs, costs, threads):
    assert divide_by_costs(needs, costs, threads) is None


def test_cheap_calls_go_into_few_parts():
    needs = [[] if i < 4 else [i - 4] for i in range(4000)]
    partition = divide_by_costs(needs, [2 * US] * 4000, 2)
    assert is_valid(partition, needs)
    assert len(partition.calls) < 400


@st.composite
def groupings(draw, needs):
    """Pieces of these calls: by costs, runs of the list, or each by itself."""
    size = len(needs)
    kind = draw(st.sampled_from(["costs", "runs", "single"]))
    if kind == "costs":
        costs = [draw(st.sampled_from([1, 200, 1000])) * US for _ in needs]
        partition = divide_by_costs(needs, costs, 3)
        if partition is not None:
            return partition
    ends = sorted(draw(st.sets(st.integers(1, size - 1)))) if kind == "runs" and size > 1 else range(1, size)
    return TaskPartition.of([range(a, b) for a, b in zip([0, *ends], [*ends, size], strict=True)], needs)


# The memory plan.


@st.composite
def memory_uses(draw):
    """Calls that read the writes of earlier calls, and write up to two registers, perhaps over an input."""
    uses, needs, writer = [], [], {}
    for i in range(draw(st.integers(1, 20))):
        reads = tuple(draw(st.lists(st.sampled_from(sorted(writer)), max_size=2))) if writer else ()
        writes = tuple((2 * i + k, draw(st.sampled_from([4, 8]))) for k in range(draw(st.integers(0, 2))))
        over = ((writes[0][0], reads[0]),) if writes and reads and draw(st.booleans()) else ()
        needs.append(sorted({writer[r] for r in reads}))
        writer.update({register: i for register, _ in writes})
        uses.append(Use(reads, writes, -1, over))
    return uses, needs, draw(groupings(needs))


def ordered_pairs(partition):
    """(a, b) for all calls of which a has ended when b begins, under every schedule."""
    behind = []
    for needs in partition.needs:
        behind.append(set(needs).union(*(behind[n] for n in needs)))
    home = {call: part for part, calls in enumerate(partition.calls) for call in calls}
    return {(a, b) for a in home for b in home if home[a] in behind[home[b]] or (home[a] == home[b] and a < b)}


@given(memory_uses())
@settings(max_examples=2 * EXAMPLES)
def test_values_that_may_be_alive_at_the_same_time_never_share_a_slot(program):
    uses, _, partition = program
    plan, before = plan_memory(uses, partition), ordered_pairs(partition)
    written = [(i, r, use) for i, use in enumerate(uses) for r, _ in use.writes]
    users = {r: {i for i, use in enumerate(uses) if r in use.reads or r in dict(use.writes)} for _, r, _ in written}
    assert set(plan.slot_of) == set(users)
    for i, r, use in written:
        for _, other, _ in written:
            if r != other and plan.slot_of[r] == plan.slot_of[other]:
                this_is_later = all((u, i) in before or (u == i and (r, other) in use.inplace) for u in users[other])
                maker = next(m for m, s, _ in written if s == other)
                other_is_later = all((u, maker) in before or (u == maker and (other, r) in uses[maker].inplace)
                                     for u in users[r])
                assert this_is_later or other_is_later
        assert plan.slots[plan.slot_of[r]][1] >= dict(use.writes)[r]


def test_independent_parts_use_the_buffers_of_earlier_parts():
    needs = [[i - 1] if i % 2 else [] for i in range(40)]
    partition = divide_by_costs(needs, [200 * US, 20 * US] * 20, 2)
    uses = [Use((i - 1,), ((i, 4),), -1) if i % 2 else Use((), ((i, 1 << 20),), -1) for i in range(40)]
    assert len(partition.calls) == 20
    assert plan_memory(uses, partition).nbytes < 5 << 20


@given(memory_uses())
def test_a_list_in_one_part_has_the_plan_of_the_flat_list(program):
    uses, needs, _ = program
    assert plan_memory(uses, TaskPartition.of([range(len(uses))], needs)) == plan_memory(uses)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9), st.integers(0, 3)), max_size=20),
       st.integers(0, 1), st.integers(1, 9), st.integers(0, 3))
def test_the_smallest_free_slot_that_fits_is_taken(slots, memory, nbytes, later):
    free = FreeSlots()
    for slot, given_slot in enumerate(slots):
        free.add(slot, *given_slot)
    usable = [(size, slot) for slot, (where, size, users) in enumerate(slots) if where == memory and not users & later]
    fitting = [(size, slot) for size, slot in usable if size >= nbytes]
    best = min(fitting) if fitting else max(usable, default=(0, None))
    assert free.take(memory, nbytes, later) == best[1]
    left = {free.take(where, 1, 0) for where in (0, 1) for _ in slots}
    assert left - {None} == set(range(len(slots))) - {best[1]}


# Running.


@st.composite
def programs(draw):
    """Calls (op, first, second) over values 0 and 1, which are fed; and the values to return."""
    op = st.sampled_from(["Test>Add"] * 5 + ["Test>Step", "AddV2", "Identity"])
    rare = st.sampled_from(["Test>Fail", "Test>Later", "Test>Note"])
    share = draw(st.sampled_from([0, 0, 1]))
    calls = []
    for i in range(draw(st.integers(1, 30))):
        earlier_calls = st.integers(max(0, i - 4), i + 1) | st.integers(0, i + 1)
        calls.append((draw(rare if draw(st.integers(0, 9)) < share else op), draw(earlier_calls), draw(earlier_calls)))
    return calls, draw(st.lists(st.integers(0, len(calls) + 1), min_size=1, max_size=4))


def executable(host, nodes, fetches, shape=(3,)):
    session = heald.Session(graph(placeholder("v0", shape), placeholder("v1", shape), *nodes), CONFIG)
    program = session.prepare(fetches, ["v0", "v1"]).program
    return link(program, host, program.functions["main"].arg_types)


def linked_program(host, calls, results):
    nodes = [node(f"v{i + 2}", op, f"v{a}", *([f"v{b}"] if op != "Identity" else [])) for i, (op, a, b) in
             enumerate(calls)]
    return executable(host, nodes, [f"v{r}" for r in results])


def use_partition(host, executable, partition=None):
    """Let later runs of the executable use this partition, by default a part for each call."""
    needs = dependencies(executable.layout)
    partition = partition or TaskPartition.of([[i] for i in range(len(needs))], needs)
    autotuner = executable.autotuner
    autotuner.schedule = schedule_of_partition(executable.layout, host, autotuner.schedule, partition)
    return executable


def said(executable, step, x, y):
    """Its results, or the node and class of its error."""
    try:
        return [r.tolist() for r in executable.run([x, y], step)]
    except heald.errors.HealdError as error:
        return error.node, error.op, error.device, type(error)


@given(programs(), st.data())
@settings(max_examples=EXAMPLES)
def test_a_random_program_in_parts_gives_what_the_flat_list_gives(host, program, data):
    calls, results = program
    flat, parallel = linked_program(host, calls, results), linked_program(host, calls, results)
    needs = dependencies(parallel.layout)
    if needs:
        use_partition(host, parallel, data.draw(groupings(needs)))
    failing = {(f"v{i + 2}", "Test>Fail", "CPU:0", PluginError) for i, (op, _, _) in enumerate(calls)
               if op == "Test>Fail"}
    for seed in (1, 2, 3):
        x, y = X * seed, Y - seed
        want, got = said(flat, Step(host), x, y), said(parallel, Step(host), x, y)
        assert got == want or {got, want} <= failing


def wide(op, width=8, last="Test>Add"):
    """Branches of `op`, each behind an addition, and a chain that joins them."""
    nodes = []
    for i in range(width):
        nodes += node(f"a{i}", "Test>Add", "v0", "v1"), node(f"b{i}", op, f"a{i}", "v0")
        nodes.append(node(f"c{i}", last, f"c{i - 1}" if i else "v1", f"b{i}"))
    return nodes


def test_concurrent_runs_in_parts_do_not_see_each_other(host):
    parallel = use_partition(host, executable(host, wide("Test>Step"), ["c7", "b3"]))

    def work(thread):
        for i in range(200):
            x, y = X + thread, Y * i
            want = [y + 8 * (2 * x + y), 2 * x + y]
            assert said(parallel, Step(host), x, y) == [w.tolist() for w in want]

    in_threads(work)


def test_calls_of_two_parts_run_at_the_same_time(host):
    parallel = use_partition(host, executable(host, wide("Test>Meet", 2), ["c1"]))
    for _ in range(20):
        assert said(parallel, Step(host), X, Y) == [(Y + 2 * (2 * X + Y)).tolist()]


def test_a_trace_shows_the_threads_of_the_parts(host):
    parallel = use_partition(host, executable(host, wide("Test>Meet", 2), ["c1"]))
    step = Step(host, trace=Trace())
    parallel.run([X, Y], step)
    threads = {e.call.node: e.thread for e in step.trace.events}
    assert sorted(threads) == ["a0", "a1", "b0", "b1", "c0", "c1"]
    assert threads["b0"] != threads["b1"]


def test_stateful_calls_keep_their_order(host):
    flat, parallel = (executable(host, wide("Test>Note"), ["c7"]) for _ in range(2))
    use_partition(host, parallel)
    from plugin_of_tests import noted

    def order(executable):
        noted.clear()
        executable.run([X, Y], Step(host))
        return list(noted)

    assert all(order(parallel) == order(flat) for _ in range(50))


def test_an_error_names_the_call_that_failed_in_the_middle_of_a_part(host):
    nodes = [node(f"n{i}", "Test>Positive" if i == 100 else "Test>Add", f"n{i - 1}" if i else "v0", "v1")
             for i in range(130)]
    parallel = executable(host, [*nodes, node("m", "Test>Add", "v1", "v1")], ["n129", "m"])
    needs = dependencies(parallel.layout)
    chain = [i for i, n in enumerate(parallel.layout.lists.flat) if parallel.layout.calls[n].call.node != "m"]
    other, = {*range(len(needs))} - {*chain}
    use_partition(host, parallel, TaskPartition.of([[other], chain], needs))
    with pytest.raises(PluginError, match="boom n100") as caught:
        parallel.run([-X, -X], Step(host))
    assert (caught.value.node, caught.value.op, caught.value.device) == ("n100", "Test>Positive", "CPU:0")


def test_a_kernel_that_polls_ends_when_one_beside_it_has_failed(host):
    nodes = [*wide("Test>Meet", 2), node("p", "Test>Poll", "b0", "v0"), node("f", "Test>Fail", "b1", "v0")]
    parallel = use_partition(host, executable(host, nodes, ["p", "f"]))
    with pytest.raises(PluginError, match="boom f"):
        parallel.run([X, Y], Step(host, timeout=20))


def test_a_timeout_ends_a_run_in_parts(host):
    parallel = use_partition(host, executable(host, wide("Test>Poll", 3), ["c2"]))
    with pytest.raises(DeadlineExceeded):
        parallel.run([X, Y], Step(host, timeout=0.02))


def test_a_run_in_parts_can_be_cancelled_from_another_thread(host):
    parallel, step = use_partition(host, executable(host, wide("Test>Poll", 3), ["c2"])), Step(host, timeout=20)
    threading.Timer(0.02, lambda: step.cancel(Cancelled("enough"))).start()
    with pytest.raises(Cancelled, match="enough"):
        parallel.run([X, Y], step)


@pytest.mark.parametrize("op", ["Interrupt", "Exit"])
def test_an_exception_that_would_end_a_helper_is_an_error_of_the_run_and_the_helper_lives(host, op):
    parallel = use_partition(host, executable(host, wide(f"Test>{op}", 2), ["c1"]))
    others = {*threading.enumerate()}
    for _ in range(5):
        with pytest.raises(Unknown, match=r"KeyboardInterrupt|SystemExit") as caught:
            parallel.run([X, Y], Step(host))
        assert (caught.value.node in ("b0", "b1"), caught.value.op) == (True, f"Test>{op}")
    assert len([t for t in {*threading.enumerate()} - others if t.name.startswith("heald-worker")]) <= 6


def test_frames_of_parts_are_used_again_and_none_is_left_when_the_executable_is_gone(host):
    parallel = use_partition(host, executable(host, wide("Test>Step"), ["c7"], (3000,)))
    x, y = np.ones(3000, np.float32), np.zeros(3000, np.float32)
    parallel.run([x, y], Step(host))
    host.work_queue.quiesce(5)  # a helper holds its last work until it has gone back to its queue
    before = host.allocator.stats().buffers
    for _ in range(50):
        parallel.run([x, y], Step(host))
    host.work_queue.quiesce(5)
    assert host.allocator.stats().buffers == before
    reference = weakref.ref(parallel)
    gc.disable()
    try:
        del parallel
        assert reference() is None
    finally:
        gc.enable()
    assert host.allocator.stats().buffers < before


@pytest.mark.parametrize("op", ["Test>Fail", "Test>Interrupt"])
def test_a_run_in_parts_that_failed_leaves_nothing_to_the_collector(host, op):
    parallel = use_partition(host, executable(host, wide(op, 2), ["c1"], (3000,)))
    x = np.ones(3000, np.float32)

    def fail():
        step = Step(host)
        with pytest.raises((PluginError, Unknown)):
            parallel.run([x, x], step)
        step.close()

    fail()
    host.work_queue.quiesce(5)
    gc.collect()
    before = host.allocator.stats().buffers
    gc.disable()
    try:
        for _ in range(10):
            fail()
        host.work_queue.quiesce(5)
        assert host.allocator.stats().buffers == before
    finally:
        gc.enable()


def test_a_run_does_all_itself_when_the_queue_is_closed_or_its_threads_are_busy():
    host = runtime(CONFIG).host
    parallel = use_partition(host, executable(host, wide("Test>Step"), ["c7"]))
    want = [(Y + 8 * (2 * X + Y)).tolist()]
    release = threading.Event()
    for _ in range(3):
        host.work_queue.add_task(release.wait)
    for _ in range(100):
        assert said(parallel, Step(host), X, Y) == want
    assert len(host.offers) < 20
    release.set()
    host.work_queue.quiesce(5)
    assert not host.offers
    host.work_queue.close()
    assert said(parallel, Step(host), X, Y) == want
    host.close()


def decisions(times, runs):
    """The schedules that an executable chooses when its runs take `times(name)` ns: "flat", "clocked" or "parts"."""
    schedules = {name: Schedule(lambda: None, None, None, [object()]) for name in ("flat", "parts")}
    names = {id(current): name for name, current in schedules.items()}
    tried = compare_schedules(schedules["flat"], lambda _costs: schedules["parts"])
    schedule_names, current = [], next(tried)
    for _ in range(runs):
        schedule_names.append(names.get(id(current), "clocked"))
        try:
            current = tried.send(times(schedule_names[-1]))
        except StopIteration as end:
            current = end.value
            break
    return schedule_names, current, schedules


def test_a_cheap_list_is_not_measured_again():
    schedule_names, current, schedules = decisions(lambda _: 1000, 100)
    assert (schedule_names, current) == (["flat"], schedules["flat"])


@pytest.mark.parametrize(("faster", "slower"), [("parts", "flat"), ("flat", "parts")])
def test_the_faster_schedule_stays_until_the_next_trial_and_the_other_keeps_no_frames(faster, slower):
    times = {faster: 1_000_000, slower: 2_000_000, "clocked": 2_000_000}
    schedule_names, _, schedules = decisions(times.__getitem__, 19 + FIRST_STAY_RUNS)
    assert schedule_names[:5] == ["flat", "flat", "clocked", "clocked", "parts"]
    assert schedule_names[5:19] == ["flat", "parts"] * 7
    assert schedule_names[19:] == [faster] * FIRST_STAY_RUNS
    assert (len(schedules[faster].frames), len(schedules[slower].frames)) == (1, 0)


def first_runs_on_devices(took, cost, runs=4):
    """The first schedules of calls on two devices: each of the two takes `cost` ns, and a run `took`."""
    step_of = Schedule(lambda: None, None, None)

    def run_each(call_each, frame, step):
        for index in (0, 1):
            call_each(index, partial(clock.advance, cost), frame, step)

    apart = Schedule(lambda: None, None, run_each, [object()])
    tried, schedule_names = compare_schedules(step_of, lambda _costs: None, apart), []
    current = next(tried)
    clock = Nanoseconds()
    frame = SimpleNamespace(calls=[None, None])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(autotune, "perf_counter_ns", clock.now)
        for _ in range(runs):
            names = {id(apart): "apart", id(step_of): "flat"}
            schedule_names.append(names.get(id(current), "clocked"))
            if schedule_names[-1] == "clocked":
                current.run(frame, None)
            try:
                current = tried.send(took)
            except StopIteration as end:
                return [*schedule_names, "flat" if end.value is step_of else "?"], apart
    return schedule_names, apart


class Nanoseconds:
    def __init__(self):
        self.time = 0

    def now(self):
        return self.time

    def advance(self, ns):
        self.time += ns


def test_devices_that_work_at_the_same_time_go_on_so_until_the_first_trial():
    schedule_names, _ = first_runs_on_devices(took=1000 * US, cost=1000 * US, runs=3 + FIRST_STAY_RUNS)
    assert schedule_names == ["clocked"] * 2 + ["apart"] * FIRST_STAY_RUNS + ["flat"]


@pytest.mark.parametrize(("took", "schedule_names"), [
    (10 * US, ["clocked", "flat"]), (1900 * US, ["clocked"] * 2 + ["flat"] * 2)], ids=["little work", "no overlap"])
def test_devices_that_gain_nothing_take_turns(took, schedule_names):
    assert first_runs_on_devices(took, cost=took // 2) == (schedule_names, ANY)


def test_cores_that_become_free_are_found_at_the_next_trial():
    done = []

    def times(name):
        done.append(name)
        return 2_000_000 if name != "parts" else 4_000_000 if len(done) < 60 else 1_000_000

    schedule_names, _, _ = decisions(times, 19 + FIRST_STAY_RUNS + 14 + 10)
    assert schedule_names[19 : 19 + FIRST_STAY_RUNS] == ["flat"] * FIRST_STAY_RUNS
    assert schedule_names[-10:] == ["parts"] * 10


@pytest.mark.parametrize(("cost", "is_divided"), [(1000 * US, True), (1 * US, False)])
def test_independent_calls_that_cost_enough_are_divided(host, cost, is_divided):
    nodes = [node("a", "Test>Step", "v0", "v1"), node("b", "Test>Step", "v1", "v0")]
    linked = executable(host, nodes, ["a", "b"])
    schedule = make_parallel_schedule(linked.layout, host, linked.autotuner.schedule, [cost, cost])
    assert (schedule is not None) == is_divided


@pytest.mark.parametrize(("device", "is_tried"), [("EXAMPLE:0", False), ("CPU:0", True)])
def test_other_schedules_are_tried_for_calls_on_host_memory_only(host, monkeypatch, device, is_tried):
    monkeypatch.setattr(autotune, "LEAST_DIVIDED_NS", 0)
    nodes = [node("a", "Neg", "v0", device=device), node("b", "Neg", "v1", device=device)]
    linked = executable(host, nodes, ["a", "b"])
    first = linked.autotuner.schedule
    for _ in range(3):
        said(linked, Step(host), X, Y)
    assert (linked.autotuner.schedule is not first) == is_tried


def test_a_frame_for_which_there_is_no_memory_is_run_by_one_thread(host):
    def host_with_limit(nbytes):
        return runtime(CONFIG | {"allocator": {"name": "plain", "limit": nbytes}}).host

    nodes = wide("Test>Step", 30)
    enough = executable(host, nodes, ["c29"], (1000,)).layout.memory.plan.nbytes + 20_000
    small = host_with_limit(enough)
    parallel = executable(small, nodes, ["c29"], (1000,))
    use_partition(small, parallel)
    assert not parallel.autotuner.schedule.make_frame().parts
    x = np.ones(1000, np.float32)
    assert (parallel.run([x, x], Step(small))[0] == 91).all()
    small.close()


def test_a_kernel_splits_its_work_over_the_queue_that_runs_it(host):
    one = executable(host, [node("s", "Test>Split", "v0", "v1")], ["s"])
    assert said(one, Step(host), X, Y) == [(X + Y).tolist()]
    nodes = [node(f"s{i}", "Test>Split", "v0", "v1") for i in range(4)]
    chain = [node(f"t{i}", "Test>Add", f"s{i}", f"t{i - 1}" if i else "v0") for i in range(4)]
    parallel = use_partition(host, executable(host, [*nodes, *chain], ["t3"]))
    for _ in range(20):
        assert said(parallel, Step(host), X, Y) == [(X + 4 * (X + Y)).tolist()]


def test_split_work_that_fails_raises_when_all_that_has_begun_has_ended(host):
    running = []

    def work(i):
        running.append(i)
        time.sleep(0.001)
        running.remove(i)
        if i == 1:
            raise ValueError("one")

    for _ in range(20):
        with pytest.raises(ValueError, match="one"):
            Step(host).parallel_for(20, work)
        assert not running


@pytest.mark.parametrize("queue", [{"threads": 3}, {"threads": 1}, {"name": "seeded"}])
def test_a_session_gives_the_same_results_while_it_finds_out_how_to_run_and_afterwards(queue):
    nodes = [placeholder("x", (200, 200))]
    nodes += [node(f"n{i}", op, "x") for i, op in enumerate(["Exp", "Tanh", "Sigmoid", "Neg"] * 6)]
    nodes += [node(f"m{i}", "AddV2", f"m{i - 1}" if i else "x", f"n{i}") for i in range(24)]
    x = np.linspace(-1, 1, 40_000, dtype=np.float32).reshape(200, 200)
    with heald.Session(graph(*nodes), CONFIG | {"work_queue": queue}) as session:
        first = session.run("m23", {"x": x})
        for _ in range(40):
            assert np.array_equal(session.run("m23", {"x": x}), first)
        metadata = heald.RunMetadata()
        session.run("m23", {"x": x}, options=RunOptions(trace=True), metadata=metadata)
        assert len(metadata.trace.events) == 48
