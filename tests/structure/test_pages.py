"""The pages tell the truth: their Python runs, their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted({page for pattern in ("*.md", "docs/*.md", "*/README.md", "plugins/*/README.md")
                for page in ROOT.glob(pattern)})
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")  # a block that begins so is a file; others are run
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")
READERS_OWN = '"model.pb"'  # a page that loads the reader's model is not run
STARTS_CLUSTER = "import heald_ray"  # tests/on_ray/test_pages.py runs such a page
WITH_PYTHON = [page for page in PAGES
               if BLOCK.search(text := page.read_text("utf-8")) is not None and READERS_OWN not in text
               and STARTS_CLUSTER not in text]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_of_a_page_runs(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    code = []
    for block in BLOCK.findall(page.read_text("utf-8")):
        name = FILE.match(block)
        if name is None:
            code.append(block)
        else:
            (tmp_path / name[1]).write_text(block, "utf-8")
            code.append(f"import heald; heald.register({name[1]!r})\n")
    (tmp_path / "page.py").write_text("\n".join(code), "utf-8")
    done = subprocess.run([sys.executable, "-W", "error", "page.py"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_to_files(page):
    assert [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()] == []
