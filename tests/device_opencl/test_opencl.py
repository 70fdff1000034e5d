"""The OpenCL plugin, on the best device that opencl_runtime finds, each test in a process of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from plugins_for_tests import plugin
from workers import opencl_runtime

Run = Callable[..., Any]
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
OPEN = "native = runtime().host.open('OPENCL:0').native\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def device(cache: Path) -> str:
    """The facts of OPENCL:0 on this machine. Tests that need the device are skipped without it."""
    answer = opencl_runtime.run("""
        runtime().host.names("OPENCL")
        record = runtime().host.records("OPENCL")[0]
        tell(status=record.status, reason=record.reason, model=f"{record.attributes.get('model')}, "
             f"{record.attributes.get('platform')}")
    """, cache)
    if answer["status"] != "ok":
        pytest.skip(f"OPENCL:0 is unavailable: {answer['reason']}; make opencl-cpu")
    return str(answer["model"])


@pytest.fixture
def run(device: str, cache: Path, record_property: Callable[[str, object], None]) -> Run:
    record_property("device tested", f"OPENCL:0 ({device})")
    return partial(opencl_runtime.run, cache=cache)


@pytest.fixture
def real_driver(device: str) -> None:
    if "Oclgrind" in device:
        pytest.skip("Oclgrind crashes when several threads wait, and hangs when an event fails")


def test_elementwise_ops_give_what_the_cpu_gives(run: Run) -> None:
    facts = run("""
        ELEMENTWISE = {op: ("float32", "int32") for op in "BiasAdd Maximum Neg Sub".split()} | {"Exp": ("float32",)}
        special = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 7])
        shapes = [((3, 70), (3, 70)), ((4, 5), (5,)), ((5,), ()), ((), (2, 3)), ((3, 1), (3, 4)), ((2, 3, 4), (4,)),
                  ((), ()), ((0, 3), (3,)), ((6,), (6,))]
        rng, wrong, count = np.random.default_rng(0), [], 0
        for op, types in ELEMENTWISE.items():
            for kind in types:
                T, unary = dtypes.named(kind), len(runtime().host.registries.ops.get(op).inputs) == 1
                for shape, other in shapes:
                    if op == "BiasAdd" and not (len(shape) > 1 and len(other) == 1):
                        continue
                    x = [np.asarray(rng.normal(size=s) * 9 if kind == "float32" else
                                    rng.integers(-2**31, 2**31, size=s)).astype(kind) for s in (shape, other)]
                    if kind == "float32" and shape == other == (6,):
                        x = [special, special[::-1].copy()]
                    names = "x" if unary else "xy"
                    nodes = [*(placeholder(n, a.shape, T) for n, a in zip(names, x)),
                             *(node(n, op, *names, device=d, T=T) for n, d in (("a", "OPENCL:0"), ("b", "CPU:0")))]
                    with heald.Session(graph(*nodes), {"placement": {"fallback": "error"}}) as s:
                        a, b = s.run(["a", "b"], dict(zip(names, x)))
                    count += 1
                    if not np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True) or a.shape != b.shape:
                        wrong.append([op, kind, shape, other, a.tolist(), b.tolist()])
        tell(wrong=wrong, count=count)
    """)
    assert facts["wrong"] == []
    assert facts["count"] > 50


def test_matmul_gives_what_the_cpu_gives(run: Run) -> None:
    facts = run("""
        wrong = []
        for rows, inner, columns in ((3, 4, 5), (1, 70, 65), (2, 0, 3), (0, 2, 2)):
            for ta in (False, True):
                for tb in (False, True):
                    a = np.random.default_rng(1).normal(size=(inner, rows) if ta else (rows, inner)).astype("f4")
                    b = np.random.default_rng(2).normal(size=(columns, inner) if tb else (inner, columns)).astype("f4")
                    g = graph(placeholder("a", a.shape), const("b", b),
                              node("m", "MatMul", "a", "b", device="OPENCL:0", transpose_a=ta, transpose_b=tb))
                    with heald.Session(g) as s:
                        m = s.run("m", {"a": a})
                    expected = (a.T if ta else a) @ (b.T if tb else b)
                    if m.shape != expected.shape or not np.allclose(m, expected, rtol=1e-4, atol=1e-5):
                        wrong.append([rows, inner, columns, ta, tb])
        tell(wrong=wrong)
    """)
    assert facts["wrong"] == []


SPLIT = """
C, D = "CPU:0", "OPENCL:0"
x = np.random.default_rng(0).normal(size=(4, 6)).astype("f4")
I = dtypes.int32
net = graph(placeholder("x", (4, 6)), const("b", np.arange(6)), const("s", [3, 8], np.int32), const("d", 1, np.int32),
            node("y", "BiasAdd", "x", "b", device=D), node("z", "Relu", "y", device=D), node("w", "Log", "z", device=C),
            node("v", "Maximum", "w", "x", device=D), node("r", "Reshape", "v", "s", device=D, Tshape=I),
            node("e", "ExpandDims", "r", "d", device=D, Tdim=I), node("q", "Squeeze", "e", device=D),
            node("i", "Identity", "q", device=D), node("out", "Sub", "i", "q", device=C))
"""


def test_a_graph_is_split_between_it_and_the_cpu(run: Run) -> None:
    facts = run(SPLIT + """
        session = heald.Session(net, {"placement": {"fallback": "error"}})
        out, i = session.run(["out", "i"], {"x": x})
        with np.errstate(divide="ignore"):
            expected = np.maximum(np.log(np.maximum(x + np.arange(6), 0)), x).reshape(3, 8)
        np.testing.assert_allclose(i, expected, rtol=1e-5)
        tell(zero=bool((out == 0).all()), assigned={r["node"]: r["assigned"] for r in session.placement().table()})
    """.replace("\n        ", "\n"))
    assert facts["zero"]
    assert {n for n, d in facts["assigned"].items() if d == "OPENCL:0"} == set("yzvreqi")


def test_an_op_without_a_kernel_falls_back_visibly(run: Run) -> None:
    facts = run("""
        import warnings
        g = graph(placeholder("x", (2, 3, 2)), node("a", "Neg", "x", device="OPENCL:0"),
                  node("s", "Where", "a", device="OPENCL:0"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = heald.Session(g)
            result = session.run("s", {"x": np.ones((2, 3, 2))}).tolist()
        tell(texts=[str(w.message) for w in caught], result=result)
    """)
    assert len(facts["result"]) == 12
    assert facts["texts"] == ["Where does not run on OPENCL:0: no kernel for Where; nodes s"]


def test_a_network_split_between_it_and_the_cpu_gives_what_the_cpu_gives(run: Run) -> None:
    facts = run(f"""
        import warnings
        warnings.simplefilter("ignore", heald.errors.HealdWarning)  # ops that it has no kernel for
        whole = heald.graphdef.load("{DIGITS / 'frozen.pb'}")
        x = np.load("{DIGITS / 'test.npz'}")["image"][:20]
        def logits(odd, even):
            nodes = [n.replace(device=(odd, even)[i % 2]) for i, n in enumerate(whole.nodes.values())]
            with heald.Session(whole.replace(nodes=nodes)) as session:
                result = session.run("logits", {{"image": x}})
                return result, len({{r["assigned"] for r in session.placement().table()}} - {{"host"}})
        want, _ = logits("CPU:0", "CPU:0")
        found = [logits(*devices) for devices in (["OPENCL:0"] * 2, ["OPENCL:0", "CPU:0"], ["CPU:0", "OPENCL:0"])]
        tell(apart=[float(abs(got - want).max() / want.std()) for got, _ in found], devices=[n for _, n in found])
    """)
    assert max(facts["apart"]) < 1e-4
    assert facts["devices"] == [1, 2, 2]


COUNTING = OPEN + """
commands = []
enqueue = native.commands.enqueue
native.commands.enqueue = lambda command, *arguments: (commands.append(command), enqueue(command, *arguments))
def counted(step, x):
    before = len(commands)
    return step(x).tolist(), len(commands) - before
"""


def test_constant_weights_are_packed_once_and_let_go_with_the_session(run: Run) -> None:
    facts = run(COUNTING + """
weights = np.random.default_rng(0).normal(size=(3, 40)).astype("f4")
session = heald.Session(graph(placeholder("x", (None, 3)), const("w", weights),
                             node("m", "MatMul", "x", "w", device="OPENCL:0")))
step = session.make_callable("m", ["x"])
found = [counted(step, np.ones((n, 3), "f4")) for n in (2, 2, 5)]
right = all(np.allclose(result, weights.sum(0), rtol=1e-5) for result, _ in found)
memory = runtime().host.open("OPENCL:0").memory
held = memory.used
del step
session.close()
tell(right=right, commands=[n for _, n in found], held=held, left=memory.used)
""")
    assert facts["right"]
    # The product, a copy out, and where the device does not read the feed in its place a copy in; for both shapes.
    assert facts["commands"][1:] in ([2, 2], [3, 3])
    assert facts["held"] > 0
    assert facts["left"] == 0


def test_an_array_that_is_constant_for_one_shape_of_the_feeds_is_packed_for_it(run: Run) -> None:
    facts = run("""
        from heald.graphs.graph.graph import Node
        I = dtypes.int32
        g = graph(placeholder("x", (None, 2)), node("s", "Shape", "x", device="CPU:0", out_type=I),
                  Node("f", "Cast", ["s"], attrs={"SrcT": I, "DstT": FLOAT}, device="CPU:0"),
                  const("d", [2, 1], np.int32), node("c", "Reshape", "f", "d", device="CPU:0", Tshape=I),
                  node("m", "MatMul", "x", "c", device="OPENCL:0"))
        with heald.Session(g) as session:
            tell(found=[session.run("m", {"x": np.ones((n, 2))})[0].tolist() for n in (3, 4, 3)])
    """)
    assert facts["found"] == [[5], [6], [5]]


def test_an_alias_of_several_inputs_launches_nothing(run: Run) -> None:
    facts = run("""
        g = graph(placeholder("x", (3,)), node("n", "Neg", "x", device="OPENCL:0"),
                  node("i", "IdentityN", "x", "n", device="OPENCL:0", T=[FLOAT, FLOAT]))
        with heald.Session(g, {"placement": {"fallback": "error"}}) as session:
            tell(found=[y.tolist() for y in session.run(["i:0", "i:1"], {"x": np.arange(3, dtype="f4")})])
    """)
    assert facts["found"] == [[0, 1, 2], [0, -1, -2]]


@pytest.mark.usefixtures("real_driver")
def test_several_threads_run_one_session(run: Run) -> None:
    facts = run(SPLIT + """
        step = heald.Session(net).make_callable("i", ["x"])
        inputs = [np.full((4, 6), k, "f4") for k in range(8)]
        expected, wrong = [step(a) for a in inputs], []
        def work(k):
            for _ in range(50):
                if not np.array_equal(step(inputs[k]), expected[k]):
                    wrong.append(k)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        tell(wrong=wrong)
    """.replace("\n        ", "\n"))
    assert facts["wrong"] == []


def test_a_graph_without_a_device_request_gets_the_cpu(run: Run) -> None:
    facts = run("""
        g = graph(placeholder("x", (3,)), node("n", "Abs", "x"))
        def row(config):
            session = heald.Session(g, config)
            session.run("n", {"x": np.ones(3)})
            return [session.placement().table()[1][c] for c in ("assigned", "refused")]
        default = row({})
        opened = [r.name for r in runtime().host.devices_in_use()]
        real = runtime().host.records("OPENCL")[0].attributes["accelerator"]
        tell(default=default, ordered=row({"placement": {"order": ["OPENCL"]}}), real=real)
    """)
    assert facts["ordered"] == ["OPENCL:0", ""]
    assert facts["default"] == ["OPENCL:0" if facts["real"] else "CPU:0", ""]


TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("tests", [
    "graphs/session/test_two_devices.py", "runtime/linker/test_unknown_shapes.py",
    "graphs/compiler/test_host_integers.py", "graphs/compiler/test_colocation.py"])
def test_programs_over_it_and_the_cpu_do_what_those_over_other_devices_do(run: Run, tests: str) -> None:
    facts = run(f"""
        import pytest
        class Reports:
            passed, failed = 0, []
            def pytest_runtest_logreport(self, report):
                Reports.passed += report.passed and report.when == "call"
                Reports.failed += [report.nodeid + ": " + report.longreprtext] * report.failed
        root = {str(TESTS.parent)!r}
        pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", root, "-c", root + "/pyproject.toml",
                     {str(TESTS / tests)!r}], [Reports()])
        tell(passed=Reports.passed, failed=Reports.failed)
    """, env={"HEALDTEST_PAIRS": "CPU:0/OPENCL:0"})
    assert facts["failed"] == []
    assert facts["passed"] >= 4


def test_a_control_edge_to_the_host_waits_until_the_device_is_done(run: Run, real_driver: None) -> None:
    facts = run("""
        from heald.runtime.program.host_program import EVENT
        g = [placeholder("x", (1,)), node("slow", "Test>Slow", "x", device="OPENCL:0")]
        config = {"plugins": {"load": [os.environ["PLUGIN"]]}}
        found, crossed = {}, 0
        for controls in ([], ["^slow"]):
            session = heald.Session(graph(*g, node("see", "Test>See", "x", *controls)), config)
            for _ in range(20):
                metadata = heald.RunMetadata()
                session.run(["slow", "see"], {"x": [1]}, options=heald.RunOptions(trace=True), metadata=metadata)
                crossed += [e.call.code for e in metadata.trace.events if not e.is_asynchronous].count(EVENT)
            import plugin_of_slow_kernels
            found[str(controls)] = plugin_of_slow_kernels.ended[:]
            plugin_of_slow_kernels.ended.clear()
        tell(found=found, crossed=crossed)
    """, env={"PLUGIN": plugin("slow_kernels")})
    assert facts["found"]["['^slow']"] == [True] * 20
    assert not all(facts["found"]["[]"])  # so that this could fail
    assert facts["crossed"] == 20


def test_a_graph_saved_for_gpus_runs_on_it_from_the_shell(run: Run, tmp_path: Path) -> None:
    facts = run("""
        from heald.cli import main
        from heald.graphs.graph.graphdef import dump
        os.chdir(os.environ["MODELS"])
        dump(graph(placeholder("x", (3,)), node("a", "Neg", "x", device="/device:GPU:1"),
                   node("y", "Relu", "a", device="/job:localhost/replica:0/task:0/device:GPU:0")), "gpu.pb")
        status = main(["run", "gpu.pb", "--input", "x=[1, -2, 3]", "--output", "out.npz"])
        told = main(["explain", "gpu.pb"])
        tell(status=[status, told], y=np.load("out.npz")["y"].tolist(),
             opened=[r.name for r in runtime().host.devices_in_use()])
    """, env={"MODELS": str(tmp_path), "HEALD_PLACEMENT__REMAP": '{"GPU:*" = "OPENCL:0"}',
              "HEALD_PLACEMENT__FALLBACK": "error"})
    assert facts == {"status": [0, 0], "y": [0, 2, 0], "opened": ["OPENCL:0"]}  # and no other


PACK = '''
from heald.api import hookimpl
HEALD_API = (1, 0)
LINES = "".join(f"    out[{i}] = missing_{i};\\n" for i in range(500))
SOURCE = "kernel void broken(global const float *x, global float *out) {\\n" + LINES + "}"

def bind(b):
    launch = b.device.native.kernel(SOURCE, "broken")
    return lambda x, out: launch((4,), None, x, out)

@hookimpl
def heald_kernels(registry):
    registry.kernels("OPENCL", lambda kernels: kernels.kernel("Abs")(bind))
'''


def test_another_packs_kernel_that_does_not_compile_shows_three_errors_and_its_node(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken_pack.py").write_text(PACK)
    facts = run(f"""
        g = graph(placeholder("x", (4,)), node("n", "Abs", "x", device="OPENCL:0"))
        session = heald.Session(g, {{"plugins": {{"load": ["{tmp_path}/broken_pack.py"]}},
                                    "kernels": {{"Abs": "broken_pack"}}}})
        try:
            session.run("n", {{"x": np.ones(4)}})
        except heald.errors.Internal as error:
            tell(text=error.message, place=[error.node, error.op, error.device])
    """)
    assert facts["text"].startswith("kernel '")
    assert "does not compile: " in facts["text"]
    assert [f"missing_{i}" in facts["text"] for i in range(4)] == [True, True, True, False]
    assert len(facts["text"]) < 700
    assert facts["place"] == ["n", "Abs", "OPENCL:0"]


def test_out_of_memory_is_an_error_of_the_node_and_memory_comes_back(run: Run) -> None:
    facts = run("""
        def session(count):
            g = graph(placeholder("x", (count,)), node("a", "Neg", "x", device="OPENCL:0"),
                      node("b", "Neg", "a", device="OPENCL:0"))
            return heald.Session(g, {"plugin": {"opencl": {"memory": 1 << 20}}})
        big = session(1 << 20)
        try:
            big.run("b", {"x": np.ones(1 << 20)})
        except heald.errors.ResourceExhausted as error:
            text, place = error.message, [error.node, error.op, error.device]
        small = session(1 << 10)
        result = small.run("b", {"x": np.ones(1 << 10)})
        tell(text=text, place=place, sum=float(result.sum()))
    """)
    assert "no memory for a buffer of 4194304 bytes" in facts["text"]
    assert facts["place"][::2] in (["a", "OPENCL:0"], ["b", "OPENCL:0"])  # for its argument, or the result of both
    assert facts["sum"] == 1024


def test_buffers_go_back_and_threads_end_with_the_host(run: Run) -> None:
    facts = run(SPLIT + """
        session = heald.Session(net)
        session.run("i", {"x": x})
        host = session.host
        memory = host.open("OPENCL:0").memory
        held = memory.used
        session.close()
        left = memory.used
        host.close()
        ending = [t for t in threading.enumerate() if t.name.startswith("heald-")]
        for thread in ending:
            thread.join(10)
        tell(held=held, left=left, threads=[t.name for t in ending], alive=[t.name for t in ending if t.is_alive()])
    """.replace("\n        ", "\n"))
    assert facts["held"] > 0
    assert facts["left"] == 0
    assert set(facts["threads"]) <= {"heald-waiter-OPENCL:0"}  # the runtime's: the plugin has none
    assert facts["alive"] == []


def test_the_probe_and_the_binaries_are_kept_for_the_next_process(run: Run, tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    count = OPEN + "tell(built=native.programs.built)"
    assert run(count, env=env) == {"built": 1}
    cache_folder = tmp_path / "heald" / "opencl"
    shutil.rmtree(cache_folder)
    assert run(count, env=env) == {"built": 0}  # not even probed
    step = """
        g = graph(placeholder("x", (3,)), node("n", "Neg", "x", device="OPENCL:0"))
        result = heald.Session(g).run("n", {"x": np.ones(3)}).tolist()
        tell(result=result, built=runtime().host.open("OPENCL:0").native.programs.built)
    """
    assert run(step, env=env) == {"result": [-1, -1, -1], "built": 1}
    assert run(step, env=env) == {"result": [-1, -1, -1], "built": 0}
    for binary in cache_folder.iterdir():
        binary.write_bytes(b"damaged")
    assert run(step, env=env) == {"result": [-1, -1, -1], "built": 1}


def test_feeds_and_constants_are_read_where_they_are_on_a_cpu(run: Run) -> None:
    """The driver may use the arrays whose addresses are multiples of 16."""
    facts = run("""
        n = 1 << 18
        def aligned(number):
            raw = np.empty(4 * n + 64, "u1")
            array = raw[-raw.ctypes.data % 64:][:4 * n].view("f4")
            array[:] = number
            return array
        x, c = aligned(3), aligned(4)
        g = graph(placeholder("x", (n,)), const("c", c), node("y", "Mul", "x", "c", device="OPENCL:0"))
        session = heald.Session(g)
        step = session.make_callable("y", ["x"])
        first = float(step(x)[-1])
        device, copied = session.host.open("OPENCL:0"), []
        device.copy_in = lambda host, buffer, stream: copied.append(host.nbytes)
        x[:] = 5
        again, references = float(step(x)[-1]), sys.getrefcount(x)
        tell(results=[first, again], copied=copied, used=device.memory.used / x.nbytes, cpu=device.native.on_cpu,
             references=references - sys.getrefcount(c))
    """)
    if not facts["cpu"]:
        pytest.skip("not a CPU")
    assert facts["results"] == [12, 20]
    assert facts["copied"] == []
    assert facts["used"] == 1  # the result
    assert facts["references"] <= 0  # the feed has no owner left


COPIES = """
import weakref
import pyopencl as cl
from heald_opencl.command_queue import LARGEST_UNFINISHED_COPIES
device = runtime().host.open("OPENCL:0")
buffer, gate = device.allocate(4), cl.UserEvent(device.native.context)

def copies(count):
    arrays = [np.zeros(4, "u1") for _ in range(count)]
    for array in arrays:
        device.copy_in(array, buffer, 0)
    return [weakref.ref(array) for array in arrays]

def held(references):
    return sum(reference() is not None for reference in references)

def close_gate():
    device.native.commands.enqueue(lambda handle: cl.enqueue_marker(handle, wait_for=[gate]))
"""


@pytest.mark.usefixtures("real_driver")
def test_arrays_are_held_while_they_are_copied_and_dropped_by_whoever_waits(run: Run) -> None:
    facts = run(COPIES + """
close_gate()
references = copies(3)
before = held(references)
gate.set_status(cl.command_execution_status.COMPLETE)
device.synchronize(device.record(0))
tell(before=before, after=held(references))
""")
    assert facts == {"before": 3, "after": 0}


def test_copies_without_waiting_hold_a_bounded_number_of_arrays(run: Run) -> None:
    facts = run(COPIES + "references = copies(5 * LARGEST_UNFINISHED_COPIES)\n"
                "tell(held=held(references), most=LARGEST_UNFINISHED_COPIES)")
    assert 0 < facts["held"] <= facts["most"]


@pytest.mark.usefixtures("real_driver")
@pytest.mark.parametrize("ending", ["is forked", "is lost", "is closed"])
def test_a_process_ends_whatever_becomes_of_its_copies(run: Run, ending: str) -> None:
    """Copies that never end when the device is lost, or when a child is forked from under them."""
    facts = run(COPIES + f"""
import warnings
close_gate()
references = copies(3)
if {ending!r} == "is closed":
    threading.Timer(0.05, lambda: gate.set_status(cl.command_execution_status.COMPLETE)).start()
    runtime().host.close()
    tell(status=0, held=held(references))
elif {ending!r} == "is lost":
    device.native.commands.lose(RuntimeError("by a test"))
    runtime().host.close()
    tell(status=0, held=held(references))
    sys.stdout.flush()
else:
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if child == 0:
        sys.exit()
    _, status = os.waitpid(child, 0)
    gate.set_status(cl.command_execution_status.COMPLETE)
    tell(status=status, held=held(references))
""")
    assert facts == {"status": 0, "held": 0 if ending == "is closed" else 3}


@pytest.mark.usefixtures("real_driver")
def test_a_fault_is_the_error_of_the_run_and_stays(run: Run) -> None:
    facts = run("""
        import pyopencl as cl
        device = runtime().host.open("OPENCL:0")
        queue, event, texts = device.native.commands, cl.UserEvent(device.native.context), []
        queue.enqueue(lambda handle: cl.enqueue_marker(handle, wait_for=[event]))
        marker = device.record(0)
        event.set_status(-5)
        buffer, array = device.allocate(4), np.zeros(4, "u1")
        for call in (lambda: device.synchronize(marker), lambda: device.synchronize(marker), lambda: device.record(0),
                     lambda: device.allocate(4), lambda: device.copy_in(array, buffer, 0),
                     lambda: device.copy_out(buffer, array, 0), lambda: device.native.kernel("", "")):
            try:
                call()
            except heald.errors.Unavailable as error:
                texts.append(error.message)
        tell(texts=texts)
    """)
    assert len(facts["texts"]) == 7
    assert all(text.startswith("the device was lost: ") for text in facts["texts"])


def test_sessions_on_a_lost_device_are_told_and_new_ones_run_elsewhere(run: Run) -> None:
    facts = run("""
        import warnings
        g = graph(placeholder("x", (3,)), node("n", "Neg", "x", device="OPENCL:0"), node("m", "Neg", "x"))
        session, texts = heald.Session(g), []
        session.run("n", {"x": np.ones(3)})
        device = runtime().host.open("OPENCL:0")
        device.native.commands.lose(RuntimeError("it fell off the bus"))
        for _ in range(3):
            try:
                session.run("n", {"x": np.ones(3)})
            except heald.errors.Unavailable as error:
                texts.append(error.message)
        record = runtime().host.records("OPENCL")[0]
        warnings.simplefilter("ignore")
        tell(texts=texts, status=record.status, m=session.run("m", {"x": np.ones(3)}).tolist(),
             new=heald.Session(g).run("n", {"x": np.ones(3)}).tolist())
    """)
    lost = "the device was lost: it fell off the bus"
    assert facts["texts"] == [lost] + [f"device OPENCL:0 is unavailable: {lost}"] * 2
    assert facts["status"] == "unavailable"
    assert facts["m"] == facts["new"] == [-1, -1, -1]


def test_a_forked_child_gets_an_error_and_ends(run: Run) -> None:
    facts = run("""
        import warnings
        g = graph(placeholder("x", (3,)), node("n", "Neg", "x", device="OPENCL:0"))
        step = heald.Session(g).make_callable("n", ["x"])
        step(np.ones(3, "f4"))
        reading, writing = os.pipe()
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            try:
                step(np.ones(3, "f4"))
            except heald.errors.HealdError as error:
                os.write(writing, str(error).encode())
            sys.exit()  # with all that an interpreter does at its end
        _, status = os.waitpid(child, 0)
        tell(status=status, text=os.read(reading, 1000).decode(), here=step(np.ones(3, "f4")).tolist())
    """)
    assert facts["status"] == 0
    assert "belongs to the process that forked this one" in facts["text"]
    assert facts["here"] == [-1, -1, -1]


def test_config_chooses_among_the_devices(run: Run) -> None:
    facts = run("""
        from heald_opencl.device import scan
        from heald_opencl.plugin import Config
        every, texts = scan(Config()), []
        for wrong in (Config(devices=("no such thing",)), Config(memory="180%"), Config(memory="much")):
            try:
                scan(wrong)
            except heald.errors.HealdError as error:
                texts.append(str(error))
        first = every[0].attributes
        tell(same=[d.uid for d in scan(Config(platforms=(first["platform"].upper(),)))][0] == every[0].uid,
             unique=len({d.uid for d in every}) == len(every), texts=texts, memory=first["memory"],
             half=scan(Config(memory="40%"))[0].attributes["memory"])
    """)
    assert facts["same"]
    assert facts["unique"]
    assert facts["half"] == pytest.approx(facts["memory"] / 2, abs=1)
    assert "config leaves none of the devices: " in facts["texts"][0]
    assert all("write a share such as '80%', or a number of bytes" in text for text in facts["texts"][1:])


WITHOUT = """
    from time import process_time
    records = [r for r in heald.devices() if r.type == "OPENCL"]
    seconds = process_time()  # the imports of heald and NumPy among them
    assigned = heald.Session(graph(placeholder("x", (3,)), node("n", "Neg", "x"))).placement().table()[1]
    try:
        runtime().host.open("OPENCL:0")
    except heald.errors.Unavailable as error:
        text = str(error)
    tell(names=[r.name for r in records], status=records[0].status, reason=records[0].reason, remedy=records[0].remedy,
         text=text, seconds=seconds, assigned=assigned["assigned"], refused=assigned["refused"])
"""


def check_unavailable(facts: dict[str, Any], reason: str, remedy: str) -> None:
    assert (facts["names"], facts["status"]) == (["OPENCL:*"], "unavailable")
    assert reason in facts["reason"]
    assert remedy in facts["remedy"]
    assert reason in facts["text"]
    assert (facts["assigned"], facts["refused"]) == ("CPU:0", "")
    assert facts["seconds"] < 1


def test_the_device_names_a_missing_driver(cache: Path) -> None:
    """With a pyopencl that brings none either."""
    (empty := cache / "empty").mkdir()
    pyopencl_spec = find_spec("pyopencl")
    assert pyopencl_spec is not None
    assert pyopencl_spec.origin is not None
    shutil.copytree(Path(pyopencl_spec.origin).parent, cache / "bare" / "pyopencl",
                    ignore=shutil.ignore_patterns("*.icd"))
    env = {"OCL_ICD_VENDORS": str(empty), "PYTHONPATH": f"{cache / 'bare'}:{opencl_runtime.TESTS}"}
    facts = opencl_runtime.run(WITHOUT, cache, env)
    check_unavailable(facts, "there is no OpenCL driver", "install the vendor's OpenCL driver")


def test_the_device_names_a_missing_pyopencl(cache: Path) -> None:
    (shadow := cache / "shadow").mkdir()
    (shadow / "pyopencl.py").write_text("raise ImportError('there is none')")
    facts = opencl_runtime.run(WITHOUT, cache, {"PYTHONPATH": f"{shadow}:{opencl_runtime.TESTS}"})
    check_unavailable(facts, "pyopencl cannot be imported: there is none", "pip install pyopencl")


def test_a_cache_that_cannot_be_written_is_no_error(run: Run) -> None:
    """PoCL is the exception: it shows no device then."""
    facts = run("""
        host = runtime().host
        name = next((r.name for r in host.records("OPENCL") if r.device is not None), None)
        tell(names=host.names("OPENCL"), first=name)
    """, env={"XDG_CACHE_HOME": "/dev/null/none"})
    assert facts["names"][:1] == ([facts["first"]] if facts["first"] else [])


def test_recorded_cases_pass_through_execute(run: Run, device: str) -> None:
    facts = run("""
        from harness.eager_golden import run_cases
        from heald_eager.core_runtime import CoreRuntime
        count, wrong = run_cases(CoreRuntime(runtime().host), "OPENCL:0", is_sample="HEALDTEST_CASES" not in os.environ)
        tell(count=count, wrong=wrong)
    """)
    # Oclgrind drops the kernel where its compiler writes `v < 0 ? -v : v` of integers as one instruction.
    dropped = [line for line in facts["wrong"] if "Oclgrind" in device and "has no kernel 'Abs'" in line]
    assert [line for line in facts["wrong"] if line not in dropped] == []
    assert facts["count"] >= (1000 if "HEALDTEST_CASES" in os.environ else 30)  # compilation takes .4 s a case
    assert len(dropped) <= (4 if "Oclgrind" in device else 0)


def test_a_traced_run_has_the_times_of_the_devices_own_clock(run: Run) -> None:
    facts = run("""
        g = [placeholder("x", (200, 200)),
             node("y", "MatMul", "x", "x", device="OPENCL:0", transpose_a=False, transpose_b=False)]
        device = runtime().host.open("OPENCL:0")
        early = device.record(0)
        times = []
        with heald.Session(graph(*g)) as session:
            for _ in range(2):
                metadata, x = heald.RunMetadata(), np.ones((200, 200), np.float32)
                right = bool((session.run("y", {"x": x}, options=heald.RunOptions(trace=True), metadata=metadata)
                              == 200).all())
                event, = [e for e in metadata.trace.events if e.call.op == "MatMul"]
                times.append((right, event.timed.span is not None and event.duration_ns > 0))
        late = device.record(0)
        device.synchronize(late)
        tell(times=times, early=early is not None and device.elapsed(early, late), none=device.elapsed(None, late),
             late=device.elapsed(late, late))
    """)
    assert facts["times"] == [[True, True]] * 2
    assert facts["early"] in (None, False)  # it is older than the first trace
    assert (facts["none"], facts["late"]) == (None, 0.0)


def test_a_kernel_touches_no_memory_but_its_operands(run: Run) -> None:
    facts = run("""
        from heald.runtime.contract.kernel import Bind, Declined
        from heald.runtime.values.tensor import TensorMetadata, ValueInfo
        from heald_kernel_text import NODES
        from heald_opencl.kernels import bind

        device, F, scratch_sizes = runtime().host.open("OPENCL:0"), dtypes.float32, {}

        def bound(op, result, *shapes, **attrs):
            inputs = tuple(ValueInfo(TensorMetadata(F, shape)) for shape in shapes)
            b = Bind("n", op, attrs, inputs, (TensorMetadata(F, result),), device, 0, {})
            plan = bind(NODES[op], b)
            scratch_sizes[id(plan)] = b.scratch_sizes
            return plan

        MATMUL = {"transpose_a": False, "transpose_b": False}
        lies = [bound("Softmax", (201, 20), (200, 20)), bound("MatMul", (40, 7), (5, 6), (6, 7), **MATMUL),
                bound("Unpack", (60,), (2, 6), axis=0)]
        attaches = []
        for honest, sizes, others in (
            (bound("Softmax", (200, 20), (200, 20)), (16000, 16000), [(4000, 16000), (16000, 4)]),
            (bound("Exp", (5, 6), (5, 6)), (120, 120), [(4, 120), (120, 4)]),
            (bound("MatMul", (50, 60), (50, 70), (70, 60), **MATMUL), (14000, 16800, 12000),
             [(4, 16800, 12000), (14000, 4, 12000), (14000, 16800, 4)]),
        ):
            for given in (sizes, *others):
                *inputs, out = [device.allocate(size) for size in given]
                scratch = [device.allocate(size) for size in scratch_sizes[id(honest)]]
                try:
                    honest.attach(tuple(inputs), (out, *scratch))
                    attaches.append("attached")
                except heald.errors.InvalidArgument as error:
                    attaches.append(str(error).partition(";")[0])
        tell(lies=[isinstance(lie, Declined) for lie in lies], attaches=attaches)
    """)
    assert facts["lies"] == [True] * 3
    softmax, exp, matmul = facts["attaches"][:3], facts["attaches"][3:6], facts["attaches"][6:]
    assert softmax[0] == exp[0] == matmul[0] == "attached"
    assert all("a buffer of 4 bytes" in text for text in matmul[1:])
    assert all("where kernel 'Softmax' touches 16000" in text for text in softmax[1:])
    assert all("where kernel 'Exp' touches 120" in text for text in exp[1:])
