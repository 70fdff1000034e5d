"""Kernels per second of host programs, against the same work in plain Python.

    python benchmarks/host_programs.py

`adds`: a chain of additions, and of constants and additions in turn. `loop`: additions in tfrt.while. `fizzbuzz`: 1,000
lines by tfrt.repeat and nested tfrt.cond, written to a stream that keeps nothing. `constant_add`: a constant and an
addition in tfrt.repeat. The last two are the texts in `programs/`. Each time is the least of many runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, cast

import heald
from heald.runtime.program.host_program import Call, ProgramFunction
from tabulate import tabulate
from timing import least

CHAIN = "!tfrt.chain"
COUNT = 1000
PROGRAMS = Path(__file__).parent / "programs"


class Void:
    """A stream that keeps nothing."""

    def write(self, text: str) -> None: ...

    def flush(self) -> None: ...


class Writer:
    """A function in the making: calling it adds a call and returns the registers of its results."""

    def __init__(self, *types: str) -> None:
        self.names = tuple(f"arg{i}" for i in range(len(types)))
        self.types = [*types]
        self.calls: list[Call] = []

    def __call__(self, code: str, *args: int, types: tuple[str, ...] = ("i32",), functions: tuple[str, ...] = (),
                 **attrs: Any) -> list[int]:
        registers = [*range(len(self.types), len(self.types) + len(types))]
        self.types += types
        self.calls.append(Call(code, args, tuple(registers), attrs, functions=functions))
        return registers

    def constant(self, value: int) -> int:
        return self("tfrt.constant.i32", value=value)[0]

    def function(self, name: str, *results: int) -> ProgramFunction:
        return ProgramFunction(name, self.names, tuple(self.types), tuple(self.calls), results)


def program(*functions: ProgramFunction) -> heald.HostProgram:
    return heald.HostProgram({function.name: function for function in functions})


def adds(constants: bool) -> heald.HostProgram:
    w = Writer()
    total = amount = w.constant(1)
    for number in range(COUNT):
        amount = w.constant(number) if constants else amount
        (total,) = w("tfrt.add.i32", total, amount)
    return program(w.function("main", total))


def loop() -> heald.HostProgram:
    body, main = Writer("i32", "i32"), Writer()
    (total,) = body("tfrt.add.i32", 1, 0)
    (following,) = body("tfrt.add.i32", 0, body.constant(-1))
    (goes_on,) = body("tfrt.lessequal.i32", body.constant(1), following, types=("i1",))
    (yes,) = main("tfrt.constant.i1", types=("i1",), value=True)
    results = main("tfrt.while", yes, main.constant(COUNT), main.constant(0), types=("i32", "i32"), functions=("body",))
    return program(body.function("body", following, total, goes_on), main.function("main", *results))


def python_constant_add() -> int:
    total = 0
    for _ in range(COUNT):
        total = (total + 42 + 2**31) % 2**32 - 2**31
    return total


def python_adds() -> int:
    total = 1
    for number in range(COUNT):
        total = (total + number + 2**31) % 2**32 - 2**31
    return total


def python_fizzbuzz() -> None:
    out = Void()
    for number in range(1, COUNT + 1):
        said = 15 if number % 15 == 0 else 3 if number % 3 == 0 else 5 if number % 5 == 0 else number
        out.write(f"int32 = {said}\n")
        out.flush()


def main() -> None:
    host = heald.HostContext(work_queue="single_threaded", output=cast(TextIO, Void()))

    def runner(program: heald.HostProgram) -> Callable[[], object]:
        def run() -> None:
            results = program.run("main", request=heald.RequestContext(host))
            if not host.await_values(results, 60) or any(result.is_error() for result in results):
                raise SystemExit(f"a program failed: {results}")

        return run

    rows = []
    for name, kernels, program, peer in (
        ("adds", COUNT, adds(constants=False), python_adds),
        ("constants and adds", 2 * COUNT, adds(constants=True), python_adds),
        ("loop", 5 * COUNT, loop(), python_adds),
        ("fizzbuzz", 13 * COUNT, heald.HostProgram.load(PROGRAMS / "fizzbuzz.mlir"), python_fizzbuzz),
        ("constant_add", 2 * COUNT, heald.HostProgram.load(PROGRAMS / "constant_add.mlir"), python_constant_add),
    ):
        ours, theirs = least(runner(program), peer)
        speed = f"{kernels / ours / 1e6:.2f}"
        rows.append([name, f"{ours * 1e3:.2f} ms", speed, f"{theirs * 1e3:.2f} ms", f"{ours / theirs:.1f}"])
    print(tabulate(rows, ["program", "run", "million kernels/s", "plain Python", "ratio"]))


if __name__ == "__main__":
    main()
