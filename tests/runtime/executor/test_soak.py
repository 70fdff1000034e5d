"""The soak, for seconds: it runs, and reports leftovers; by hand it takes half an hour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "soak.py"


@pytest.mark.skipif(sys.platform != "linux", reason="the soak reads what the process holds from /proc")
def test_a_short_soak_leaves_nothing_behind():
    done = subprocess.run([sys.executable, SOAK, "--seconds", "2"], capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing was left behind\n")


def test_the_verdict_tells_what_a_process_holds_more_than_before():
    from soak import Held, verdict

    before = Held(memory=1000, heap=100 << 20, blocks=200, objects=1000, threads=2, system_threads=4, files=6)
    middle = before._replace(memory=1500)
    after = before._replace(memory=1550, heap=104 << 20, blocks=209, objects=2000, threads=1)
    assert verdict(before, middle, after, judges_memory=True) == []
    more = after._replace(memory=1580, heap=106 << 20, blocks=220, threads=3, files=7)
    assert verdict(before, middle, more, judges_memory=True) == [
        "threads: 3, 2 at the baseline", "files: 7, 6 at the baseline", "heap: 111149056, 104857600 at the baseline",
        "blocks: 220, 200 at the baseline", "memory: 1580 bytes, 1500 in the middle"]
    young = middle._replace(memory=2000, heap=500 << 20, system_threads=5)
    assert verdict(before, middle, young, judges_memory=False) == []
