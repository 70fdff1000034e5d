"""Families of kernels that are imported with the first request for one of their ops."""

from __future__ import annotations

import subprocess
import sys

import pytest
from heald.runtime.contract.kernel import KernelPack, Kernels
from heald_onednn.kernels import LATE_FAMILIES, LATE_TYPED, register_family, register_kernels

TYPES = ("float32", "bfloat16")
PACK = KernelPack("CPU", register_kernels, 1, "onednn")


@pytest.mark.parametrize("name", [*LATE_FAMILIES, *LATE_TYPED])
def test_the_table_lists_the_ops_that_a_family_registers(name):
    kernels = Kernels(PACK)
    options = {"types": TYPES} if name in LATE_TYPED else {}
    register_family(name, kernels, **options)
    ops = (LATE_FAMILIES | LATE_TYPED)[name]
    assert {kernel.op for kernel in kernels.added} == set(ops)
    assert not kernels.fusions
    assert not kernels.patterns


def test_no_family_shares_an_op_with_those_that_register_at_once():
    kernels = Kernels(PACK)
    register_kernels(kernels, TYPES, winograd=True)
    late = [op for ops, _ in kernels.families for op in ops]
    assert len(late) == len(set(late))
    assert not set(late) & {kernel.op for kernel in kernels.added}


def test_a_start_imports_no_late_family():
    code = ("import heald, sys; heald.devices();"
            "print(*[name for name in sys.modules if name.startswith('heald_onednn.kernels.')])")
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {f"heald_onednn.kernels.{name}" for name in (LATE_FAMILIES | LATE_TYPED)}.isdisjoint(done.stdout.split())
