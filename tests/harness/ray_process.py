"""A worker of the tests on Ray, in a process of its own: among hostile modules, and in a network namespace where the
system permits one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .hostile_modules import write_hostile_modules
from .namespaces import namespace_words


def run_ray_worker(words: Sequence[str | Path], folder: Path, most_seconds: float) -> dict[str, Any]:
    """Run a worker and its arguments. Return the facts that it writes to facts.json; "hostile": a module there ran."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "PYTHON", "HEALD_"))}
    # Sockets have short paths, so that Ray's own folder is beside the system's other temporary files. Ray gives an
    # actor of one CPU one thread of a BLAS library, whose sums depend on their number: the caller has one, too.
    environment |= {"HOME": str(folder), "TMPDIR": str(folder), "RAY_TMPDIR": tempfile.gettempdir(),
                    "OMP_NUM_THREADS": "1"}
    mark = write_hostile_modules(folder / "hostile")
    done = subprocess.run([*namespace_words(), sys.executable, "-P", *map(str, words)], cwd=mark.parent,
                          env=environment, capture_output=True, text=True, timeout=most_seconds, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return {**json.loads((folder / "facts.json").read_text("utf-8")), "hostile": mark.exists()}
