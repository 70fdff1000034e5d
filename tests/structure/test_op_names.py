"""Core names ops in structural.py alone: every other op belongs to an op set."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from heald_tf_ops.plugin import OPS

CORE = Path(__file__).parent.parent.parent / "core" / "heald"
WORDS = {"A", "Any", "B", "Shape"}  # ops of TensorFlow that are also words of Python, NumPy or heald
MODULES = sorted(path.relative_to(CORE).as_posix() for path in CORE.rglob("*.py"))


def op_names_in(text: str) -> Iterator[str]:
    """The ops that string literals name, each as often as it is written."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in OPS:
            yield node.value


@pytest.mark.parametrize("module", [m for m in MODULES if m != "runtime/contract/structural.py"])
def test_a_module_of_core_names_no_op(module):
    assert not set(op_names_in((CORE / module).read_text("utf-8"))) - WORDS


def test_the_table_of_structural_ops_names_them():
    assert {"Const", "Switch",
            "While"} <= set(op_names_in((CORE / "runtime/contract/structural.py").read_text("utf-8")))
