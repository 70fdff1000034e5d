"""heald_tf_ops.ops: the functions of heald.ops with a typed stub."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import heald
import numpy as np
from heald_tf_ops import ops, stubs

NODES = [node for node in ast.parse(stubs.STUB.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]


def test_the_stub_is_what_the_generator_makes_of_the_op_table():
    assert stubs.STUB.read_text("utf-8") == stubs.stub(), "make tables"


def test_each_function_of_the_stub_is_the_op_that_its_docstring_names():
    names = [node.name for node in NODES]
    assert len(names) == len(set(names)) > 1500
    wrong = [name for name, node in zip(names, NODES, strict=True)
             if inspect.cleandoc(getattr(ops, name).__doc__) != ast.get_docstring(node)]
    assert wrong == []


def test_the_functions_have_the_names_that_tensorflow_gives_them():
    assert {"mat_mul", "add_v2", "conv2d", "fused_batch_norm_v3", "top_kv2", "max_pool3d", "assert_",
            "conv2d_backprop_input", "batch_mat_mul_v2", "lstm_block_cell"} <= {node.name for node in NODES}


def test_a_function_runs_its_op_and_has_its_signature():
    assert ops.mat_mul(np.eye(2), [[1.0, 2], [3, 4]], transpose_b=True).numpy().tolist() == [[1, 3], [2, 4]]
    assert str(inspect.signature(ops.mat_mul)) == str(inspect.signature(heald.ops.matmul)) == (
        "(a: 'Input', b: 'Input', /, *, transpose_a: 'bool' = False, transpose_b: 'bool' = False, "
        "T: 'Type' = Ellipsis, grad_a: 'bool' = False, grad_b: 'bool' = False) -> 'TensorHandle'")


def test_a_type_checker_reads_the_stub(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("from heald_tf_ops import ops\nops.mat_mul([[1.0]], [[2.0]], transpose_b=3)\n"
                       "reveal_type(ops.top_kv2([1.0, 2.0], 1))\n", "utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--follow-imports", "silent",
                           str(program)], capture_output=True, text=True, check=False)
    assert 'Argument "transpose_b" to "mat_mul" has incompatible type "int"' in done.stdout
    assert "tuple[heald_eager.tensor_handle.TensorHandle, heald_eager.tensor_handle.TensorHandle]" in done.stdout
