"""weft.api offers plugins the names that type checkers see, one at a time."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from weft import api


def declared() -> set[str]:
    """The names that the block for type checkers imports."""
    tree = ast.parse(Path(api.__file__).read_text("utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {alias.name for statement in block.body if isinstance(statement, ast.ImportFrom)
            for alias in statement.names}


def test_type_checkers_see_the_names_that_the_module_offers():
    assert declared() == set(api.__all__)
    assert dir(api) == sorted(api.__all__)


@pytest.mark.parametrize("name", api.__all__)
def test_each_name_can_be_imported(name):
    assert getattr(importlib.import_module("weft.api"), name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_this"):
        api.nothing_like_this  # noqa: B018


def test_a_name_loads_its_own_module_only():
    code = "import sys; from weft.api import hookimpl; print(sys.modules.keys() & {'numpy', 'weft.graph.graph'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
