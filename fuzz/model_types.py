"""Repair of stated types: a compiled model gets the types that its ops' rules derive, so that it reaches its kernels.

Attributes with element types and numbers of inputs follow the arguments. Results get registers of their own, and every
use is behind its definition. A call that fits no rule keeps its stated types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import heald
from heald.errors import HealdError
from heald.runtime.contract.attribute_forms import check_attributes
from heald.runtime.contract.op import ArgDef, OpDef, infer
from heald.runtime.program import CompiledModel, ProgramFunction, RegisterType
from heald.runtime.program.compiled_model import Port
from heald.runtime.program.host_program import CONSTANT, COPY, RUNTIME_CODES, Call, meta_of
from heald.runtime.program.infer import of_constant
from heald.runtime.values.tensor import TensorMetadata, ValueInfo

_MOST_RESULTS = 64  # of a call whose attributes count them


def repair_types(model: CompiledModel) -> CompiledModel:
    """The model whose functions and ports state derived types."""
    functions = {name: _Function(function, model.program.constants).repair()
                 for name, function in model.program.functions.items()}
    entries = tuple(entry._replace(
        inputs=_ports(entry.inputs, functions[entry.function].arg_metas),
        outputs=_ports(entry.outputs, functions[entry.function].result_metas))
        if entry.function in functions else entry for entry in model.entries)
    return model._replace(program=model.program._replace(functions=functions), entries=entries)


def _ports(ports: Sequence[Port], metas: Sequence[TensorMetadata]) -> tuple[Port, ...]:
    """A port for each argument or result."""
    return tuple(Port(f"p{at}", f"p{at}", meta) if port is None else port._replace(meta=meta)
                 for at, (port, meta) in enumerate(zip_longest(ports[: len(metas)], metas)))


class _Function:
    """One function while it is repaired: its registers with the facts about them."""

    def __init__(self, function: ProgramFunction, constants: Sequence[Any]) -> None:
        self._function, self._constants = function, constants
        self._types: list[RegisterType] = [*function.register_types]
        self._infos = [ValueInfo(meta_of(kind)) for kind in self._types]
        self._defined: list[int] = [*range(len(function.arg_names))]
        self._is_defined = set(self._defined)
        self._nodes: set[str] = set()

    def repair(self) -> ProgramFunction:
        calls = [self._call(call) for call in self._function.kernels]
        return self._function._replace(
            kernels=tuple(calls), register_types=tuple(self._types), results=self._uses(self._function.results),
            targets=self._uses(self._function.targets),
            streams=self._function.streams if len(self._function.streams) == len(calls) else ())

    def _uses(self, registers: Sequence[int]) -> tuple[int, ...]:
        """Registers that are defined: the last of them in the place of another one."""
        return tuple(r if r in self._is_defined else self._defined[-1]
                     for r in registers if r in self._is_defined or self._defined)

    def _call(self, call: Call) -> Call:
        call = call._replace(args=self._uses(call.args), after=self._uses(call.after))
        infos: Sequence[ValueInfo] = ()
        with suppress(HealdError, ArithmeticError, LookupError, TypeError, ValueError):
            if call.code == CONSTANT:
                infos = (of_constant(self._constants[call.attrs["index"]]),)
            elif call.code == COPY:
                infos = [self._infos[r] for r in call.args]
            elif not call.is_host_kernel and call.code not in RUNTIME_CODES:
                call, infos = self._op(call)
        results = [self._define(r, info) for r, info in zip_longest(call.results, infos)
                   if not infos or info is not None]
        if call.chain is not None:
            self._define(call.chain, None)
        return call._replace(results=tuple(results))

    def _op(self, call: Call) -> tuple[Call, Sequence[ValueInfo]]:
        """The call with attributes that fit its arguments, and the facts about its results."""
        op = heald.default_host().registries.ops.get(call.op)
        attrs = _fitting_attributes(op, call, self._infos)
        checked = check_attributes(op, attrs)
        op.check_outputs(checked)
        args = self._fitting_arguments(op, checked, call.args)
        outputs = op.expand_outputs(checked)
        if len(outputs) > _MOST_RESULTS:
            return call, ()
        node = call.node if call.node not in self._nodes else f"{call.node}_{len(self._types)}"
        self._nodes.add(node)
        call = call._replace(attrs=attrs, args=args, node=node)
        try:
            ops = heald.default_host().registries.ops
            return call, infer(op, ops.metadata(op), checked, [self._infos[r] for r in args])
        except Exception:  # noqa: BLE001 - the run is to tell what is wrong
            return call, [ValueInfo(TensorMetadata(tensor.dtype, None)) for tensor in outputs]

    def _fitting_arguments(self, op: OpDef, attrs: Mapping[str, Any], args: Sequence[int]) -> tuple[int, ...]:
        """As many arguments as the op takes: in the place of one of another element type the last register of it."""
        last = {self._infos[r].dtype: r for r in self._defined if not isinstance(self._types[r], str)}
        expected_types = [tensor.dtype for tensor in op.expand_inputs(attrs)]
        return tuple(r if r is not None and self._infos[r].dtype is dtype else last.get(dtype, r or 0)
                     for r, dtype in zip_longest(args[: len(expected_types)], expected_types))

    def _define(self, register: int | None, info: ValueInfo | None) -> int:
        """Define a register, or a new one where it is defined already, with this type; None keeps the stated one."""
        if register is None or register in self._is_defined or not 0 <= register < len(self._types):
            kind = self._types[register] if register is not None and register < len(self._types) else "i32"
            register = len(self._types)
            self._types.append(kind)
            self._infos.append(ValueInfo(meta_of(kind)))
        if info is not None:
            self._types[register], self._infos[register] = info.meta, info
        self._is_defined.add(register)
        self._defined.append(register)
        return register


def _fitting_attributes(op: OpDef, call: Call, infos: Sequence[ValueInfo]) -> dict[str, Any]:
    """The attributes with the element types and counts of the arguments."""
    attrs = {name: value for name, value in call.attrs.items() if name in op.attrs or name.startswith("_")}
    single = [arg for arg in op.inputs if not (arg.number_attr or arg.type_list_attr)]
    spare = max(0, len(call.args) - len(single))
    at = 0
    for arg in op.inputs:
        count = 1 if arg in single else spare
        types = [infos[r].dtype for r in call.args[at : at + count]]
        at += count
        attrs.update(_stated_types(arg, types))
    return attrs


def _stated_types(arg: ArgDef, types: Sequence[Any]) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    if arg.type_attr and types:
        stated[arg.type_attr] = types[0]
    if arg.number_attr:
        stated[arg.number_attr] = len(types)
    if arg.type_list_attr:
        stated[arg.type_list_attr] = tuple(types)
    return stated
