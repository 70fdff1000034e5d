"""The Python of the pages about Ray runs as written. Each page starts a cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.namespaces import namespace_words

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = {"ray-data.md": "ray.data", "ray-serve.md": "ray.serve", "ray-sessions.md": "ray"}  # by page, its module
MOST_SECONDS = 240


@pytest.mark.parametrize("page", [page for page in PAGES if (ROOT / "docs" / page).exists()])
def test_the_python_of_a_page_about_ray_runs(page, tmp_path):
    pytest.importorskip(PAGES[page], reason=f"{PAGES[page]} is not installed", exc_type=ImportError)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "page.py").write_text("\n".join(BLOCK.findall((ROOT / "docs" / page).read_text("utf-8"))), "utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "HEALD_"))}
    done = subprocess.run([*namespace_words(), sys.executable, "page.py"], cwd=tmp_path, check=False,
                          env={**environment, "HOME": str(tmp_path)}, capture_output=True, text=True,
                          timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
