"""The demo classifies the digits, and its last lines are commands that work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "digits" / "demo.py"


def test_the_commands_at_the_end_of_the_demo_work_in_the_folder_in_which_it_ran(tmp_path: Path) -> None:
    demo = subprocess.run([sys.executable, DEMO], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "529 of 540 test images" in demo.stdout
    *_, title, explain, bench, new = demo.stdout.splitlines()
    assert title == "Three things to try next:"
    for line, expected in ((explain, "first in order with a kernel"), (bench, "per second"), (new, "next: ")):
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S602
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
