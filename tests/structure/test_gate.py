"""tests/thorough.txt names tests that exist, and only in the parts of the gate that docs/gate.md states."""

from __future__ import annotations

import ast
import re
from fnmatch import filter as matching_names
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
    name = test.partition("[")[0]  # the rest names parameters; a line may name nothing else
    assert not test or name.endswith("]") or matching_names(functions, name)


def test_no_line_is_listed_twice():
    assert len(LINES) == len(set(LINES))


def test_make_test_checks_text_and_types_and_both_parts_select_complementary_tests():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^test: lint\n\t.* -j 2 types tests$", makefile, re.MULTILINE)
    marks = re.findall(r"^(tests|thorough): .*\n\t.*-m \"(.*)\"$", makefile, re.MULTILINE)
    assert marks == [("tests", "not thorough"), ("thorough", "thorough or examples")]


def test_the_gate_runs_both_parts_each_with_a_limit():
    gate = (ROOT / ".ci" / "run").read_text("utf-8")
    assert re.findall(r"^timeout \d+ make (\w+)$", gate, re.MULTILINE) == ["test", "thorough"]
