"""The families of the CPU's kernels, and of metadata functions: each is imported when one of its ops is asked for."""

from __future__ import annotations

import subprocess
import sys

import heald
from heald_cpu.kernels import TABLE
from heald_cpu.kernels.__main__ import table
from heald_tf_ops.metadata import __main__ as metadata


def test_the_table_has_the_ops_of_every_family() -> None:
    assert TABLE.read_text("utf-8") == table(), "make it anew: python -m heald_cpu.kernels"
    assert metadata.TABLE.read_text("utf-8") == metadata.table(), "make it anew: python -m heald_tf_ops.metadata"


def test_only_the_families_that_a_program_needs_are_imported() -> None:
    code = """
import sys, heald
registries = heald.default_host().registries
registries.kernels.candidates("Conv2D", "CPU")
registries.ops.metadata(registries.ops.get("Conv2D"))
print(sorted(name for package in ("heald_cpu.kernels", "heald_tf_ops.metadata")
             for name in ("conv", "fft", "linalg", "strings")
             if f"{package}.{name}" in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "['conv', 'conv']"


def test_a_listing_of_kernels_has_those_that_were_not_used_yet() -> None:
    kernels = heald.default_host().registries.kernels
    kernels.load("CPU")
    assert {"FFT", "Cholesky"} <= {kernel.op for kernel in kernels.loaded_kernels() if kernel.device_type == "CPU"}


def test_kernels_of_one_op_come_in_the_order_of_their_families_whichever_is_needed_first() -> None:
    code = """
import sys, heald
kernels = heald.default_host().registries.kernels
kernels.candidates(sys.argv[1], "CPU")
print([sorted(kernel.dtypes) + [kernel.bind.__module__] for kernel in kernels.candidates("ZerosLike", "CPU")])
"""
    lines = TABLE.read_text("utf-8").splitlines()
    sharing = [line.split("\t")[1].split() for line in lines if " ZerosLike" in line.replace("\t", " ")]
    first = [next(op for op in ops if op != "ZerosLike") for ops in sharing]
    orders = {subprocess.run([sys.executable, "-c", code, op], check=True, capture_output=True, text=True).stdout
              for op in [*first, "ZerosLike"]}
    assert len(sharing) > 1
    assert len(orders) == 1
