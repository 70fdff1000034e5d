"""Fixtures for tests of commands: `heald` in this process and in one of its own, and graphs in files for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from heald.cli import main
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graphdef import dump
from heald.runtime.service import runtime


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def words(self) -> list[list[str]]:
        """Of each line of `out` that is no ruler, for tests that care for a table's cells and not for its layout."""
        return [line.split() for line in self.out.splitlines() if set(line) - set("- ")]


Command = Callable[..., Done]
Saved = Callable[..., str]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Registrations and settings of a test end with it. No config file of this machine counts, and no pack
    that only some platforms have."""
    monkeypatch.setattr(runtime, "process_scope", runtime.ProcessScope())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if find_spec("heald_onednn") is not None:
        monkeypatch.setenv("HEALD_PLUGINS__BLOCK", "onednn")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `heald` with these arguments in this process."""

    def run(*arguments: str | Path) -> Done:
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        return Done(status, *capsys.readouterr())

    return run


@pytest.fixture
def process() -> Command:
    """Runs `python -m heald` with these arguments in a process of its own."""

    def run(*arguments: str) -> Done:
        completed = subprocess.run([sys.executable, "-m", "heald", *arguments], capture_output=True, text=True,
                                   timeout=60, check=False, env=os.environ | {"PYTHONWARNINGS": "error"})
        return Done(completed.returncode, completed.stdout, completed.stderr)

    return run


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    """Writes a graph of these nodes to a file."""

    def save(*nodes: Node, name: str = "model.pb") -> str:
        dump(Graph(nodes), tmp_path / name)
        return str(tmp_path / name)

    return save


@pytest.fixture
def digits() -> Path:
    return ROOT / "examples" / "digits"
