"""tests/thorough.txt names tests that exist, and only in the parts of the gate that docs/gate.md states."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = [line.removeprefix("+ ") for line in (ROOT / "tests" / "thorough.txt").read_text("utf-8").splitlines()
         if line and not line.startswith("#")]


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_thorough_tests_names_a_file_and_a_test_of_it(line):
    file, _, test = line.partition("::")
    functions = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
                 if isinstance(node, ast.FunctionDef)}
    assert not test or "*" in test or test in functions


def test_no_line_is_listed_twice():
    assert len(LINES) == len(set(LINES))
