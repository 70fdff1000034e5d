"""Programs for tests, written call by call."""

from __future__ import annotations

from typing import Any

import heald
from heald.errors import Location
from heald.runtime.program.host_program import Call, ProgramFunction

CHAIN = "!tfrt.chain"


class Body:
    """A function being written: `b("tfrt.add.i32", x, y)` adds a call and gives the register of its result, or as many
    registers as `results` has types. Calls stand on lines of their own."""

    def __init__(self, *types: str) -> None:
        self.args = tuple(range(len(types)))
        self._count = len(types)
        self._types: list[Any] = list(types)
        self._calls: list[Call] = []

    def __call__(self, code: str, *args: int, results: Any = "i32", functions: tuple[str, ...] = (),
                 nonstrict: bool = False, **attrs: Any) -> Any:
        types = (results,) if isinstance(results, str) else tuple(results)
        registers = tuple(range(len(self._types), len(self._types) + len(types)))
        self._types += types
        self._calls.append(Call(code, args, registers, attrs, functions=functions, nonstrict=nonstrict,
                                location=Location("program.mlir", len(self._calls) + 1, 1)))
        return registers[0] if isinstance(results, str) else registers

    def constant(self, value: int) -> int:
        return self("tfrt.constant.i32", value=value)

    def chain(self) -> int:
        return self("tfrt.new.chain", results=CHAIN)

    def function(self, name: str, *results: int) -> ProgramFunction:
        arguments = tuple(f"arg{i}" for i in range(self._count))
        return ProgramFunction(name, arguments, tuple(self._types), tuple(self._calls), results)


def program(*functions: ProgramFunction) -> heald.HostProgram:
    return heald.HostProgram({function.name: function for function in functions})
