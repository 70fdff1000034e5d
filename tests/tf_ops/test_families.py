"""The table of families: an op's metadata function is found where the table sends the one who asks."""

import ast
from pathlib import Path

import heald_tf_ops.metadata
from heald_tf_ops.metadata.rules import TABLE

FOLDER = Path(heald_tf_ops.metadata.__file__).parent


def named_ops(module):
    """The ops that a module's calls of `rule` name as texts."""
    calls = [node for node in ast.walk(ast.parse(module.read_text("utf-8")))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "rule"]
    return {argument.value for call in calls for argument in call.args if isinstance(argument, ast.Constant)}


def test_the_family_of_an_op_is_the_module_that_registers_its_rule():
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines())
    family_of = {op: family for family, ops in rows for op in ops.split()}
    registered = {op: module.stem for module in FOLDER.glob("*.py") for op in named_ops(module)}
    assert len(registered) > 500
    assert {op: family_of[op] for op in registered} == registered
