"""Specialise: writes the results of inference and folding back into a program, as data.

A specialised function serves arguments of one type each, and its known values are constants. Linking it folds nothing.
It derives all types anew, since the file may have been changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..host.host import Host
from ..host.resources import Resources
from ..program.groups import is_groupable, outline
from ..program.host_program import CONSTANT, COPY, HOST, Call, ProgramDef, ProgramFunction, RegisterType
from ..values.computed_info import ComputedInfo
from ..values.tensor import TensorMetadata, ValueInfo
from .link import Linker, check_nothing
from .shared_by_links import SharedByLinks


class Specialiser:
    """Collects specialised functions of several programs in one program, each constant once."""

    def __init__(self, host: Host, check: Callable[[], object] = check_nothing) -> None:
        self._host = host
        self._check = check
        self._functions: dict[str, ProgramFunction] = {}
        self._taken: set[str] = set()
        self._constants: list[Any] = []
        self._indices: dict[int, int] = {}  # id of a constant -> its index; `_constants` keeps the ids unique
        self._devices: list[str] = []

    @property
    def program(self) -> ProgramDef:
        """The program of all functions that were added."""
        return ProgramDef(dict(self._functions), tuple(self._constants), tuple(self._devices))

    def add(self, program: ProgramDef, arguments: Sequence[TensorMetadata], name: str) -> str:
        """Add `main` of a program, and the functions that it calls, for arguments of this metadata.

        `name`: the name that the function has, unless it is taken. Returns its name. Raises as `link`.
        """
        main = program.functions["main"]
        infos = [ValueInfo(meta) for meta in arguments]
        linker = Linker(program, main, self._host, SharedByLinks({}, Resources()), infos, False, False, self._check)
        return self._add_specialised(program, linker, name, {})

    def add_general(self, program: ProgramDef, name: str) -> str:
        """Add `main` of a program as it is, for arguments whose shapes are known in a later link."""
        return self._add_copy(program, "main", {}, name)

    def _add_specialised(self, program: ProgramDef, linker: Linker, name: str, copies: dict[str, str]) -> str:
        name = self.new_name(name)
        body = _FunctionWriter(self, program, linker, copies)
        self._functions[name] = body.function(name)
        return name

    def _add_copy(self, program: ProgramDef, source: str, copies: dict[str, str], name: str) -> str:
        """Add a function that is linked at its first call. `copies`: the names of added functions."""
        if source not in copies:
            copies[source] = self.new_name(name)
            function = program.functions[source]
            calls = []
            for call in function.kernels:
                if call.code == CONSTANT:
                    call = call._replace(attrs={"index": self.index(program.constants[call.attrs["index"]])})
                names = tuple(self._add_copy(program, callee, copies, callee) for callee in call.functions)
                calls.append(call._replace(functions=names, stream=self.stream(program, call)))
            self._functions[copies[source]] = function._replace(name=copies[source], kernels=tuple(calls))
        return copies[source]

    def callees(self, program: ProgramDef, linker: Linker, call: Call, copies: dict[str, str]) -> tuple[str, ...]:
        """Add the functions of a call. Returns their names."""
        if bodies := linker.body_linkers(call):
            return tuple(self._add_specialised(program, body, body.function.name, copies) for body in bodies)
        return tuple(self._add_copy(program, name, copies, name) for name in call.functions)

    def index(self, constant: Any) -> int:
        """Return the index of a constant, which is added once."""
        if id(constant) not in self._indices:
            self._indices[id(constant)] = len(self._constants)
            self._constants.append(constant)
        return self._indices[id(constant)]

    def stream(self, program: ProgramDef, call: Call) -> int:
        if call.stream == HOST:
            return HOST
        return self.stream_of(program.requires[call.stream])

    def stream_of(self, device: str) -> int:
        if device not in self._devices:
            self._devices.append(device)
        return self._devices.index(device)

    def add_body(self, body: ProgramFunction) -> None:
        """Add the body of a group, whose name is taken already."""
        self._functions[body.name] = body

    def new_name(self, name: str) -> str:
        number, new = 2, name
        while new in self._taken:
            new, number = f"{name}#{number}", number + 1
        self._taken.add(new)
        return new


class _FunctionWriter:
    """One specialised function while it is written. `copies`: as of `Specialiser._add_copy`."""

    def __init__(self, of: Specialiser, program: ProgramDef, linker: Linker, copies: dict[str, str]) -> None:
        self._of, self._program, self._linker, self._copies = of, program, linker, copies
        self._types: list[RegisterType] = []
        self._number: dict[int, int] = {}  # register -> its number for consumers
        self._calls: list[Call] = []

    def function(self, name: str) -> ProgramFunction:
        source, linker = self._linker.function, self._linker
        calls, values = linker.needed_calls_and_values()
        filled = {r for call in calls for r in call.gives} | set(range(len(source.arg_names)))
        read = {r for call in calls for r in call.args} | {*source.results}
        for register in range(len(source.arg_names)):
            self._number[register] = self._register(register)
        memory = linker.memory()
        node_of = {r: call for call in source.kernels for r in call.results}
        for register in sorted(read & values.keys()):
            self._add_constant(register, values[register], memory[register], node_of.get(register))
        constant_numbers = dict(self._number)
        for call in calls:
            self._add(call, filled, constant_numbers)
        targets = tuple(self._number[r] for r in source.targets if r in self._number)
        return self._with_groups(source._replace(
            name=name, register_types=tuple(self._types), kernels=tuple(self._calls),
            results=tuple(self._number[r] for r in source.results), targets=targets, is_compiled=True))

    def _with_groups(self, function: ProgramFunction) -> ProgramFunction:
        """Return the function with those calls of its groups that are left in functions of their own, as before."""
        nodes_of = {r: call.node for call in self._linker.function.kernels for r in call.gives}
        for group in self._linker.groups:
            nodes = {nodes_of[r] for r in group.registers}
            if any(call.node in nodes and is_groupable(call) for call in function.kernels):
                function, body = outline(function, nodes, group.compiler, group.name,
                                         self._of.new_name(group.function))
                self._of.add_body(body)
        return function

    def _register(self, of: int) -> int:
        """Return a new register of the type of another one."""
        kind = self._linker.function.register_types[of]
        self._types.append(kind if isinstance(kind, str) else self._linker.infos[of].meta)
        return len(self._types) - 1

    def _add_constant(self, register: int, info: ValueInfo, memory: int, call: Call | None) -> None:
        index = self._of.index(info.constant if isinstance(info, ComputedInfo) else info.value)
        node, new = "" if call is None else call.node, self._register(register)
        self._calls.append(Call(CONSTANT, (), (new,), {"index": index}, node=node))
        if memory != HOST:
            stream, constant, new = self._of.stream_of(self._program.requires[memory]), new, self._register(register)
            self._calls.append(Call(COPY, (constant,), (new,), {"to": "device"}, stream, node))
        self._number[register] = new

    def _add(self, call: Call, filled: set[int], constants: dict[int, int]) -> None:
        args = tuple(self._number[r] for r in call.args)
        after = tuple(self._number[r] for r in call.after if r in filled or r in self._number)
        gives = {r: self._register(r) for r in call.gives}
        self._number |= {r: new for r, new in gives.items() if r not in constants}
        if call.code == CONSTANT:
            call = call._replace(attrs={"index": self._of.index(self._program.constants[call.attrs["index"]])})
        self._calls.append(call._replace(
            args=args, results=tuple(gives[r] for r in call.results), after=after,
            chain=None if call.chain is None else gives[call.chain], stream=self._of.stream(self._program, call),
            functions=self._of.callees(self._program, self._linker, call, self._copies)))
