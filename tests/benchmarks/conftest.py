"""Imports the scripts of benchmarks/, which stand outside of every package."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """A module of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module
    for name, loaded in [*sys.modules.items()]:
        if str(getattr(loaded, "__file__", "")).startswith(str(BENCHMARKS)):
            del sys.modules[name]
