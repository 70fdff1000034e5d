"""The library: absent, in several threads, in children, and its costs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import conv, numbers
from heald.runtime.executor import parallel_schedule as piecewise
from heald_onednn import primitives

TESTS = Path(__file__).parents[1]


def network() -> heald.Graph:
    """Fixed and open calls: the first reads a feed that is too large for a frame, the last gives a result."""
    return graph(
        placeholder("x", (None, 28, 28, 8)), const("w", numbers(3, 3, 8, 16)), const("v", numbers(3, 3, 16, 16)),
        const("bias", numbers(16)), const("axes", [1, 2], np.int32), conv("a", "x", "w"),
        node("b", "AddV2", "a", "bias"),
        node("c", "Relu", "b"), conv("d", "c", "v", strides=[1, 2, 2, 1]), node("e", "Elu", "d"),
        node("f", "Mean", "e", "axes", keep_dims=False, Tidx=heald.api.dtypes.int32), node("y", "Softmax", "f"))


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=os.environ | {"PYTHONPATH": str(TESTS)},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT = """
    import numpy as np, heald
    from heald_onednn import library
    {}
    from builders.graphs import graph, node, placeholder
    x = np.ones((300, 300), np.float32)
    product = node("y", "MatMul", "x", "x", transpose_a=False, transpose_b=False)
    session = heald.Session(graph(placeholder("x"), product))
    print(session.run("y", {{"x": x}})[0, 0])
    (record,) = [r for r in heald.plugins() if r.id == "onednn"]
    print(record.status, "|", record.reason, "|", record.remedy)
"""


@pytest.mark.parametrize(("missing", "reason"), [
    ("library.NAME = 'libnothing.so.3'", "oneDNN cannot be loaded"),
    ("import sys; sys.modules['_cffi_backend'] = None", "oneDNN cannot be loaded"),
    ("library.platform.machine = lambda: 'riscv64'", "this is linux on riscv64"),
    ("library.OLDEST = (4, 0)", "4.0 is needed"),
])
def test_numpy_serves_in_place_of_a_missing_library_and_the_record_says_why(missing: str, reason: str) -> None:
    result, record = python(WITHOUT.format(missing)).splitlines()
    status, why, remedy = record.split(" | ")
    assert (float(result), status) == (300.0, "unavailable")
    assert reason in why
    assert remedy


def test_a_process_ends_well_also_where_the_library_goes_before_what_it_has_made() -> None:
    """The interpreter clears the remaining objects at its end in an order of its own."""
    python("""
        import ml_dtypes  # or whatever is of C++: the first such library stays
        from heald_onednn.library import library
        del library().c
    """)


def test_several_threads_run_one_session() -> None:
    with heald.Session(network()) as session:
        call = session.make_callable("y", ["x"])
        feeds = [numbers(1 + i % 2, 28, 28, 8) for i in range(6)]
        wants = [call(x) for x in feeds]

        def work(seed: int) -> None:
            for i in np.random.default_rng(seed).integers(0, len(feeds), 60):
                np.testing.assert_array_equal(call(feeds[i]), wants[i])

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))


def test_a_child_that_forked_runs_too() -> None:
    with heald.Session(network()) as session:
        x = numbers(1, 28, 28, 8)
        want = session.run("y", {"x": x})
    code = os.fork()
    if code == 0:
        failed = 1
        try:
            with heald.Session(network()) as session:
                failed = int(not np.isfinite(session.run("y", {"x": x})).all())
        finally:
            os._exit(failed)
    assert os.waitpid(code, 0)[1] == 0
    assert np.isfinite(want).all()


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_does_not_grow_with_runs() -> None:
    with heald.Session(network()) as session:
        call, x = session.make_callable("y", ["x"]), numbers(1, 28, 28, 8)
        for _ in range(200):
            call(x)
        before = resident()
        for _ in range(2000):
            call(x)
        assert resident() - before < 2 << 20


def test_primitives_of_a_session_are_freed_with_it() -> None:
    def once() -> None:
        with heald.Session(network()) as session:
            session.run("y", {"x": numbers(1, 28, 28, 8)})

    for _ in range(20):
        once()
    before = resident()
    for _ in range(60):
        once()
    assert resident() - before < 8 << 20


def test_settings_of_threads_reach_the_library_alone() -> None:
    output = python("""
        import os
        from heald_onednn.library import library, open_library
        open_library(3)
        print(library().c.omp_get_max_threads(), "OMP_NUM_THREADS" in os.environ, "GOMP_SPINCOUNT" in os.environ)
    """)
    assert output.split() == ["3", "False", "False"]


def test_the_plugins_light_module_opens_nothing() -> None:
    output = python("""
        import sys
        import heald_onednn.plugin
        print([m for m in ("numpy", "_cffi_backend", "heald_onednn.library") if m in sys.modules])
    """)
    assert output.strip() == "[]"




@pytest.mark.parametrize("fills_cores", [True, False])
def test_calls_that_use_all_cores_are_not_run_beside_each_other(
    fills_cores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs_seen: list[Any] = []
    monkeypatch.setattr(primitives.LibraryKernel, "fills_cores", fills_cores)
    monkeypatch.setattr(piecewise, "divide_by_costs", lambda needs, costs, threads: costs_seen.append(costs))
    nodes = [placeholder("x"), *(const(f"w{i}", numbers(3, 3, 32, 32)) for i in range(2)),
             *(conv(f"y{i}", "x", f"w{i}") for i in range(2)), node("z", "AddV2", "y0", "y1")]
    x = numbers(4, 64, 64, 32)
    with heald.Session(graph(*nodes)) as session:
        for _ in range(8):  # until it is known which way the program runs fastest
            session.run("z", {"x": x})
    assert bool(costs_seen) is not fills_cores
