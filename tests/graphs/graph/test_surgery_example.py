"""The example of surgery runs, and its edited networks agree with the network that they come from."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "surgery.py"


def test_the_example_edits_saves_and_runs(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    difference, features = done.stdout.splitlines()
    assert float(difference.rpartition(" ")[2]) < 1e-5
    assert features.endswith("(540, 64)")
