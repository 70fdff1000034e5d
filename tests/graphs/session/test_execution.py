"""Random graphs have NumPy's results under every memory plan, with folding and with concurrent frames."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.graphs.graph.graph import Node
from heald.graphs.session.step_compiler import StepCompiler
from heald.runtime.executor.memory_plan import Use, plan_memory
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_for_tests import kept_plugin

pytestmark = pytest.mark.usefixtures("graphs_as_written")
OPS = {"AddV2": np.add, "Sub": np.subtract, "Maximum": np.maximum, "Mul": np.multiply}
UNARY = {"Neg": np.negative, "Relu": lambda x: np.maximum(x, 0), "Identity": lambda x: x, "Square": np.square}


@st.composite
def programs(draw):
    """A list of (op, inputs) over values 0, 1 (fed) and 2 (a constant), and the values to fetch."""
    calls = []
    for i in range(draw(st.integers(1, 25))):
        value_index = st.integers(max(0, i - 6), i + 2) | st.integers(0, i + 2)
        op = draw(st.sampled_from([*OPS, *UNARY, "Reshape", "IdentityN"]))
        arity = 2 if op in OPS or op == "IdentityN" else 1
        calls.append((op, tuple(draw(value_index) for _ in range(arity))))
    fetches = draw(st.lists(st.integers(0, len(calls) + 2), min_size=1, max_size=4))
    return calls, fetches


def build(calls):
    nodes = [placeholder("v0", (None, 4)), placeholder("v1", (None, 4)), const("v2", [[1, -2, 3, -4]]),
             const("shape", [-1, 4], np.int32)]
    for i, (op, inputs) in enumerate(calls):
        names = [f"v{j}" for j in inputs]
        attrs = {"T": [dtypes.float32] * 2} if op == "IdentityN" else {}
        if op == "Reshape":
            names, attrs = [*names, "shape"], {"Tshape": dtypes.int32}
        nodes.append(node(f"v{i + 3}", op, *names, **attrs))
    return graph(*nodes)


def expected_values(calls, x, y):
    values = [x, y, np.float32([[1, -2, 3, -4]])]
    for op, inputs in calls:
        arguments = [values[j] for j in inputs]
        values.append(OPS[op](*arguments) if op in OPS else UNARY.get(op, lambda a, *_: a)(*arguments))
    return values


@given(programs())
@settings(max_examples=150)
def test_a_random_graph_gives_what_numpy_gives_and_keeps_its_results(program):
    calls, fetches = program
    step = heald.Session(build(calls)).make_callable([f"v{i}" for i in fetches], ["v0", "v1"])
    runs = []
    with np.errstate(all="ignore"):
        for seed, batch in enumerate((2, 2, 3, 2)):
            x, y = np.random.default_rng(seed).integers(-3, 4, (2, batch, 4)).astype(np.float32)
            want = expected_values(calls, x, y)
            runs.append((step(x, y), [want[i] for i in fetches]))
    for got, want in runs:  # compared after all runs: a result that a later run overwrites would show
        for g, w in zip(got, want, strict=True):
            assert np.array_equal(g, np.broadcast_to(w, g.shape), equal_nan=True)
            assert g.flags.writeable


@given(programs(), st.lists(st.sampled_from(["CPU:0", "EXAMPLE:0"]), min_size=25, max_size=25))
@settings(max_examples=100)
def test_a_graph_split_over_two_memories_gives_what_the_cpu_gives(program, devices):
    """The example device works only when it is waited for: a buffer that is reused too early would show."""
    calls, fetches = program
    placed = {f"v{i + 3}": device for i, device in enumerate(devices)}
    split = build(calls)
    split = split.replace(nodes=[n.replace(device=placed[n.name]) for n in split.nodes.values() if n.name in placed])
    session = heald.Session(split, {"placement": {"fallback": "allow"}})
    step = session.make_callable([f"v{i}" for i in fetches], ["v0", "v1"])
    runs = []
    with np.errstate(all="ignore"):
        for batch in (1, 2, 1):
            x, y = np.random.default_rng(batch).integers(-3, 4, (2, batch, 4)).astype(np.float32)
            want = expected_values(calls, x, y)
            runs.append((step(x, y), [want[i] for i in fetches]))
    for got, want in runs:
        for g, w in zip(got, want, strict=True):
            assert np.array_equal(g, np.broadcast_to(w, g.shape), equal_nan=True)


@given(programs())
@settings(max_examples=20)
def test_concurrent_runs_of_a_random_graph_do_not_see_each_other(program):
    calls, fetches = program
    step = heald.Session(build(calls)).make_callable([f"v{i}" for i in fetches], ["v0", "v1"])

    def run(seed):
        x, y = np.full((2, 2, 4), seed % 5, np.float32)
        return step(x, y)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(24)))
    for seed, got in enumerate(results):
        assert all(np.array_equal(g, w, equal_nan=True) for g, w in zip(got, run(seed), strict=True))


@st.composite
def uses(draw):
    """Calls that write register i and read earlier ones; some may write over their inputs."""
    result = []
    for i in range(draw(st.integers(1, 30))):
        reads = tuple(draw(st.lists(st.integers(0, i - 1), max_size=3))) if i else ()
        inplace = ((i, reads[0]),) if reads and draw(st.booleans()) else ()
        writes = ((i, draw(st.sampled_from([0, 16, 64, 100]))),) if draw(st.integers(0, 9)) else ()
        result.append(Use(reads, writes, draw(st.integers(-1, 0)), inplace))
    return result


@given(uses())
def test_no_two_registers_that_are_alive_together_share_a_slot(calls):
    plan = plan_memory(calls)
    holder: dict[int, int] = {}  # slot -> register whose value is in it
    for use in calls:
        for read in use.reads:
            if read in plan.slot_of:
                assert holder[plan.slot_of[read]] == read, "read after it was overwritten"
        for register, nbytes in use.writes:
            slot = plan.slot_of[register]
            memory, size = plan.slots[slot]
            assert size >= nbytes
            assert memory == use.memory
            if holder.get(slot) in use.reads and slot in {plan.slot_of.get(r) for r in use.reads}:
                assert (register, holder[slot]) in use.inplace, "an input is overwritten that may not be"
                assert use.reads.count(holder[slot]) == 1
            holder[slot] = register


@pytest.mark.parametrize(("reads", "shares"), [((0,), True), ((0, 0), False), ((0, 1), True), ((1, 1), False)])
def test_an_output_takes_the_place_of_an_input_that_its_call_reads_once(reads, shares):
    """In an elementwise kernel that reads one buffer under two shapes, an element is read after it was written."""
    calls = [Use((), ((0, 64),), -1), Use((), ((1, 64),), -1), Use(reads, ((2, 64),), -1, ((2, reads[0]),))]
    plan = plan_memory(calls)
    assert (plan.slot_of[2] == plan.slot_of[reads[0]]) == shares


def test_the_executable_of_runs_is_linked_once(monkeypatch):
    session = heald.Session(graph(placeholder("x"), node("y", "Neg", "x")))
    prepared = session.prepare(["y"], ["x"])
    links = []
    link = StepCompiler.link

    def record_link(*args, **options):
        linked = link(*args, **options)
        links.append(linked[2])
        return linked

    monkeypatch.setattr(StepCompiler, "link", record_link)
    session.run(["y"], {"x": np.ones(3, np.float32)})
    assert prepared.linked_executable(((3,),)) is links[0]
    other = prepared.linked_executable(((4,),))
    assert links[1:] == [other]


def test_objects_of_the_warm_path_have_few_attributes():
    """Python 3.11 reads an attribute of an object by its place as long as the class shares at most 30 names."""
    session = heald.Session(graph(placeholder("x"), node("y", "Neg", "x")))
    prepared = session.prepare(["y"], ["x"])
    assert max(len(vars(warm)) for warm in (session, prepared, prepared.executable(((3,),)))) < 30


def test_a_long_chain_needs_one_buffer():
    nodes = [placeholder("x", (1000,)), *(node(f"n{i}", "Neg", f"n{i - 1}" if i else "x") for i in range(100))]
    executable = heald.Session(graph(*nodes)).prepare("n99", ["x"]).executable()
    assert executable.layout.memory.plan.nbytes == 4000


def test_constants_are_computed_once_when_the_program_is_linked():
    nodes = [const("a", [1, 2]), const("b", [3, 4]), node("c", "Mul", "a", "b"), node("d", "Sqrt", "c"),
             placeholder("x", (2,)), node("y", "AddV2", "x", "d")]
    executable = heald.Session(graph(*nodes)).prepare("y", ["x"]).executable()
    assert [step.call.op for step in executable.layout.calls] == ["AddV2"]


def test_a_kernel_that_needs_a_step_is_not_run_when_the_program_is_linked():
    """It returns its outputs, too: it cannot be called as kernels are that are given theirs."""
    session = heald.Session(graph(const("c", [1, 2]), node("y", "Kept>KeepLater", "c")), kept_plugin.CONFIG)
    assert session.run("y").tolist() == [1, 2]


def test_a_deep_graph_is_no_recursion():
    nodes = [placeholder("x", (2,)), *(node(f"n{i}", "Neg", f"n{i - 1}" if i else "x") for i in range(5000))]
    assert heald.Session(graph(*nodes)).run("n4999", {"x": [1, 2]}).tolist() == [1, 2]


@pytest.mark.parametrize("run_step", ["fed", "constant"])
def test_warnings_of_numpy_do_not_leak(run_step):
    x = placeholder("x", (2,)) if run_step == "fed" else const("x", [0, -1])
    session = heald.Session(graph(x, node("y", "Log", "x"), node("z", "RealDiv", "x", "x")))
    y, z = session.run(["y", "z"], {"x": [0, -1]} if run_step == "fed" else {})
    assert np.isneginf(y[0])
    assert np.isnan(y[1])
    assert np.isnan(z[0])


def test_results_of_a_step_take_time_in_proportion_to_their_number():
    number = 30_000  # all pairs of them would take 9 s
    split = Node("s", "Split", ("axis", "x"), attrs={"T": dtypes.float32, "num_split": number})
    session = heald.Session(graph(placeholder("x", (number,)), const("axis", 0, np.int32), split))
    started = time.process_time()
    results = session.run([f"s:{i}" for i in range(number)], {"x": np.arange(number, dtype=np.float32)})
    assert time.process_time() - started < 4
    assert [int(r[0]) for r in results] == list(range(number))
