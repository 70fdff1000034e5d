"""The guarded allocator ends a process that leaves a buffer, and serves a session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald import errors
from plugins_for_tests import plugin_of_noting_guards

from fuzz.guarded import GuardedAllocator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards need Linux")
ROOT = Path(__file__).parents[2]
SIGNALS = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT}


def end_of(access: str, nbytes: int) -> subprocess.CompletedProcess[str]:
    """The end of a process that makes this access to a guarded array."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    return subprocess.run([sys.executable, "-m", "workers.guarded_arrays", access, str(nbytes)], text=True,
                          capture_output=True, env=os.environ | {"PYTHONPATH": path}, check=False, timeout=60)


@pytest.mark.parametrize("nbytes", [1, 4096, 10_000])
@pytest.mark.parametrize("access", ["read behind", "write behind", "write one behind", "read before"])
def test_an_access_outside_a_buffer_ends_in_a_signal(access: str, nbytes: int) -> None:
    done = end_of(access, nbytes)
    assert done.returncode in SIGNALS, done
    assert "survived" not in done.stdout


@pytest.mark.parametrize("nbytes", [0, 100])
def test_accesses_within_a_buffer_are_permitted(nbytes: int) -> None:
    done = end_of("none", nbytes)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done


@pytest.mark.parametrize("alignment", [64, 4096, 1 << 21])
def test_buffers_are_aligned_and_writable(alignment: int) -> None:
    buffer = GuardedAllocator().allocate(5000, alignment)
    assert buffer.ctypes.data % alignment == 0
    buffer[:] = 7
    assert buffer.sum() == 35_000


def test_more_memory_than_the_system_has_is_a_typed_error() -> None:
    for nbytes in (1 << 60, 1 << 70):
        with pytest.raises(errors.ResourceExhausted):
            GuardedAllocator().allocate(nbytes)


def test_intermediate_values_of_a_run_have_guards_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_of_noting_guards, "sizes", sizes := [])
    nodes = [placeholder("x", (10, 10)), node("a", "Softmax", "x"), node("b", "Neg", "x"),
             node("c", "Sub", "a", "b"), node("y", "MatMul", "c", "a")]
    x = np.eye(10, dtype=np.float32)
    plain = heald.Session(graph(*nodes)).run("y", {"x": x})
    with heald.Session(graph(*nodes), plugin_of_noting_guards.CONFIG) as session:
        sizes.clear()  # of the trial of a new allocator
        np.testing.assert_allclose(session.run("y", {"x": x}), plain, rtol=1e-6)
    assert sizes
    assert set(sizes) == {400}
