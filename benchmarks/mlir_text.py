"""Texts of host programs: operations parsed, printed and verified in a second, and the whole way to a program.

    python benchmarks/mlir_text.py [--operations N[,N ...]]

The program adds integers, in the generic form and in the syntax of its dialect.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import heald
from heald_mlir.dialects.registry import KernelDialects
from heald_mlir.dialects.verifier import verify
from heald_mlir.parser import parse
from heald_mlir.printer import print_module
from tabulate import tabulate

GENERIC = '  %{i} = "tfrt.add.i32"(%{before}, %x) : (i32, i32) -> i32\n'
CUSTOM = "  %{i} = tfrt.add.i32 %{before}, %x\n"


def text(form: str, count: int) -> str:
    """A function of `count` additions."""
    lines = [form.format(i=i, before=i - 1 if i else "x") for i in range(count)]
    return f"func.func @f(%x: i32) -> i32 {{\n{''.join(lines)}  tfrt.return %{count - 1} : i32\n}}\n"


def rates(form: str, count: int) -> list[str]:
    """Operations in a second: parsed, printed, verified, and loaded as a program."""
    dialects = KernelDialects(heald.default_host().registries.host_kernels)
    source = text(form, count)
    speeds = []

    def time_work(work: object, *arguments: object) -> object:
        started = perf_counter()
        result = work(*arguments)  # type: ignore[operator]
        speeds.append(f"{count / (perf_counter() - started):,.0f}")
        return result

    module = time_work(parse, source, "-", 1, dialects)
    time_work(lambda: print_module(module, dialects if form is CUSTOM else None))  # type: ignore[arg-type]
    time_work(verify, module, dialects)
    time_work(heald.mlir.loads, source)
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", default="10000,100000", metavar="N[,N ...]")
    counts = [int(part) for part in parser.parse_args().operations.split(",")]
    rows = [[f"{count:,}", name, *rates(form, count)]
            for count in counts for name, form in (("generic", GENERIC), ("dialect's", CUSTOM))]
    print(tabulate(rows, ["operations", "form", "parse /s", "print /s", "verify /s", "load /s"], stralign="right"))


if __name__ == "__main__":
    main()
