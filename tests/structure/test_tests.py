"""Tests use the public names of the code under test.

A test of a private name breaks when the code is rewritten and its behaviour stays. Three lines remain. Two of them read
`_obj` of ctypes and `_actions` of argparse, which have no public door. The third finds the executor's loops by their
step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
LARGEST_PRIVATE_LINE_COUNT = 3
PRIVATE = re.compile(r"_[A-Za-z]\w*")
DOCUMENTED = {"_asdict", "_exit", "_field_defaults", "_fields", "_getframe", "_make", "_replace", "_repr_html_"}
PATCHES = {"delattr", "getattr", "setattr", "setitem"}


def private_lines(source: str) -> list[int]:
    """The lines that read, write or patch a private attribute of another object."""
    return sorted({node.lineno for node in ast.walk(ast.parse(source))
                   if any(PRIVATE.fullmatch(name) and name not in DOCUMENTED for name in used_names(node))})


def used_names(node: ast.AST) -> Iterator[str]:
    """The attribute that a node names, unless it is one of `self` or `cls`."""
    if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
        yield node.attr
    if isinstance(node, ast.Call):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for argument in node.args[:2] if function in PATCHES else ():
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value.rpartition(".")[2]


def test_tests_leave_private_attributes_alone():
    lines = [f"{file.relative_to(TESTS)}:{line}" for file in sorted(TESTS.rglob("*.py")) if DATA not in file.parents
             for line in private_lines(file.read_text("utf-8"))]
    assert len(lines) <= LARGEST_PRIVATE_LINE_COUNT, lines


@pytest.mark.parametrize("line", [
    "session._step", "session._step = None", "make()._step", "session._step.host", "module._LARGEST",
    "monkeypatch.setattr(module, '_step', None)", "monkeypatch.setattr('package.module._step', None)",
    "getattr(session, '_step')"])
def test_a_use_of_a_private_attribute_is_counted(line):
    assert private_lines(f"x = 1\n{line}") == [2]


@pytest.mark.parametrize("line", [
    "self._step", "cls._step", "session.step", "session.__class__", "row._replace(name='a')", "os._exit(0)", "_step",
    "monkeypatch.setattr(module, 'step', None)", "attrs['_class']", "for _ in range(3): session.step"])
def test_any_other_line_is_left_alone(line):
    assert private_lines(line) == []
