"""Edits of compiled models as the decoder reads them: attributes, ops, arguments, calls, types, constants, entries.

An edit takes a model and another one, and returns a changed model. Most edits are wrong in one fact, and sound in all
others: `model_types` repairs the stated types behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
from heald.runtime.program import CompiledModel, ProgramFunction, RegisterType
from heald.runtime.program.host_program import CONSTANT, GROUP, HOST, RUNTIME_CODES, Call
from heald.runtime.values import dtypes
from heald.runtime.values.attribute_values import ShapeAttr
from heald.runtime.values.tensor import TensorMetadata
from heald_conformance import golden

from .attribute_values import EDGE_FLOATS, other_value
from .raw import EDGES

ModelEdit = Callable[[Random, CompiledModel, CompiledModel], CompiledModel]
_DIMS = (0, 1, 1, 2, 3, 5, 16, 64, 3000, None, 1 << 20, 1 << 33)
_HOST_TYPES: tuple[RegisterType, ...] = ("i1", "i32", "i64", "f32", "!tfrt.chain", "!tfrt.string")
_ADDED_CALLS = 3  # of one edit at most
_ATTEMPTS = 10  # to find an edit that the model has a place for


def edit_model(rng: Random, model: CompiledModel, other: CompiledModel) -> CompiledModel:
    """One edit of any kind that finds something to change."""
    changed = model
    for _ in range(_ATTEMPTS):
        if changed is model:
            changed = rng.choices(EDITS, _WEIGHTS)[0](rng, model, other)
    return changed


def with_function(model: CompiledModel, function: ProgramFunction) -> CompiledModel:
    return model._replace(program=model.program._replace(
        functions={**model.program.functions, function.name: function}))


def any_function(rng: Random, model: CompiledModel) -> ProgramFunction | None:
    functions = list(model.program.functions.values())
    return rng.choice(functions) if functions else None


def defined_before(function: ProgramFunction, at: int) -> list[int]:
    """The registers that are defined before call `at`."""
    return [*range(len(function.arg_names)), *(r for call in function.kernels[:at] for r in call.gives)]


def _call_edit(is_place: Callable[[Call], Any], change: Callable[[Random, ProgramFunction, int, CompiledModel], Any]
               ) -> ModelEdit:
    """An edit of one call that fulfils a condition: `change` returns the call, or the calls, in its place."""

    def edit(rng: Random, model: CompiledModel, other: CompiledModel) -> CompiledModel:
        function = any_function(rng, model)
        places = [at for at, call in enumerate(function.kernels) if is_place(call)] if function else []
        if not function or not places:
            return model
        at = rng.choice(places)
        changed = change(rng, function, at, other)
        calls = (changed,) if isinstance(changed, Call) else tuple(changed)
        return with_function(model, function._replace(
            kernels=(*function.kernels[:at], *calls, *function.kernels[at + 1 :])))

    return edit


def _change_attribute(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> Call:
    call = function.kernels[at]
    name = rng.choice([*call.attrs])
    attrs = dict(call.attrs)
    if rng.random() < 0.08:
        del attrs[name]
    else:
        attrs[name] = other_value(rng, attrs[name])
    return call._replace(attrs=attrs)


def _exchange_attribute(rng: Random, function: ProgramFunction, at: int, other: CompiledModel) -> Call:
    """An attribute of any call of the other model, mostly in the place of one of its name."""
    call = function.kernels[at]
    theirs = [pair for theirs_function in other.program.functions.values() for c in theirs_function.kernels
              for pair in c.attrs.items()]
    alike = [pair for pair in theirs if pair[0] in call.attrs] or theirs
    return call._replace(attrs={**call.attrs, **dict([rng.choice(alike)] if alike else [("extra", 1)])})


def _change_op(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> Call:
    """Another op with as many inputs, with attributes that a recorded case has."""
    call = function.kernels[at]
    case = _any_case(rng, [_element(function.register_types, r) for r in call.args])
    return call if case is None else call._replace(
        code=f"{_any_pack(rng, call.pack)}.{case.op}", attrs=_attributes_of(case, call.attrs))


def _any_case(rng: Random, elements: Sequence[Any]) -> golden.Case | None:
    """A recorded case with as many inputs, mostly of these element types."""
    cases = _cases_by_inputs().get(len(elements))
    for _ in range(_ATTEMPTS if cases else 0):
        case = rng.choice(rng.choice(cases))
        if [dtypes.of_numpy(value.dtype) for value in case.inputs] == elements:
            return case
    return rng.choice(rng.choice(cases)) if cases else None


@cache
def _cases_by_inputs() -> Mapping[int, list[list[golden.Case]]]:
    """Recorded cases by their number of inputs, and within it by op: an op with many cases is not chosen more often."""
    by_inputs: dict[int, dict[str, list[golden.Case]]] = {}
    for op, cases in golden.cases().items():
        for case in cases if op != "Const" else ():
            by_inputs.setdefault(len(case.inputs), {}).setdefault(op, []).append(case)
    return {count: list(by_op.values()) for count, by_op in by_inputs.items()}


@cache
def _case_attributes(case_id: str, op: str) -> Mapping[str, Any]:
    case = next(case for case in golden.cases()[op] if case.id == case_id)
    return case.graph().nodes["op"].attrs


def _attributes_of(case: golden.Case, present: Mapping[str, Any]) -> dict[str, Any]:
    theirs = {name: _as_program(value) for name, value in _case_attributes(case.id, case.op).items()}
    return {name: present[name] if name in present and type(present[name]) is type(value) else value
            for name, value in theirs.items()}


def _as_program(value: Any) -> Any:
    """A graph's attribute as a program has it: texts are str."""
    if isinstance(value, tuple) and type(value) in (tuple, ShapeAttr):
        return type(value)(map(_as_program, value))
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _any_pack(rng: Random, pack: str) -> str:
    return rng.choice((pack, pack, pack, "cpu", "onednn", "tfrt")) if rng.random() < 0.3 else pack


def _change_argument(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> Call:
    call = function.kernels[at]
    arg_index = rng.randrange(len(call.args))
    return call._replace(args=(*call.args[:arg_index], _any_register(rng, function, at, call.args[arg_index]),
                               *call.args[arg_index + 1 :]))


def _any_register(rng: Random, function: ProgramFunction, at: int, like: int) -> int:
    """A register that is defined before a call, mostly of the same element type; seldom any number."""
    if rng.random() < 0.03:
        return rng.choice((0, len(function.register_types), abs(rng.choice(EDGES)) % (1 << 31)))
    types, defined = function.register_types, defined_before(function, at)
    alike = [r for r in defined if _element(types, r) == _element(types, like)]
    return rng.choice(alike if alike and rng.random() < 0.8 else defined or [like])


def _element(types: Sequence[RegisterType], register: int) -> Any:
    kind = types[register] if register < len(types) else ""
    return kind if isinstance(kind, str) else kind.dtype


def _change_count(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> Call:
    """An argument more or fewer, or a result fewer."""
    call = function.kernels[at]
    changes: list[Call] = [call._replace(args=call.args[:-1]), call._replace(args=(*call.args, *call.args[:1])),
                           call._replace(args=call.args * 2), call._replace(results=call.results[:-1])]
    return rng.choice(changes)


def _change_flags(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> Call:
    call = function.kernels[at]
    defined = defined_before(function, at)
    return rng.choice((
        call._replace(nonstrict=not call.nonstrict),
        call._replace(stream=rng.choice((HOST, 0, 0, 1, 7))),
        call._replace(after=(*call.after, *rng.sample(defined, min(len(defined), 2)))),
        call._replace(after=()), call._replace(chain=rng.choice((None, *defined[-2:]))),
        call._replace(node=rng.choice(("", "other", *(c.node for c in function.kernels))))))


def _change_callees(rng: Random, function: ProgramFunction, at: int, other: CompiledModel) -> Call:
    """Other functions of the program: its own function, too, which then calls itself."""
    call = function.kernels[at]
    names = [*call.functions, function.name, *list(other.program.functions)[:2]]
    callees = [rng.choice(names) if rng.random() < 0.6 else name for name in call.functions]
    return call._replace(functions=tuple(callees if rng.random() < 0.8 else callees[:-1]))


def _change_group(rng: Random, function: ProgramFunction, at: int, other: CompiledModel) -> Call:
    """Another compiler, another name, wrong attributes; results in another order; or a chain, which no group has."""
    call = function.kernels[at]
    name = rng.choice(("compiler", "group"))
    return rng.choice((
        call._replace(attrs={**call.attrs, name: rng.choice(("fuzzed", "nobody", "", "x" * 300, 7, None))}),
        call._replace(attrs={key: value for key, value in call.attrs.items() if key != name}),
        call._replace(results=call.results[::-1]), call._replace(args=call.args[::-1]),
        call._replace(functions=tuple([*other.program.functions][:1])), call._replace(after=call.args[:1])))


def _change_constant_index(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> Call:
    call = function.kernels[at]
    index = call.attrs.get("index", 0)
    return call._replace(attrs={**call.attrs, "index": rng.choice((0, 1, 2, index + 1, -1, rng.choice(EDGES)))})


def _delete_call(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    """A function without a call, whose results are other registers from there on."""
    function = any_function(rng, model)
    if function is None or not function.kernels:
        return model
    at = rng.randrange(len(function.kernels))
    deleted_call, defined = function.kernels[at], defined_before(function, at)
    new = {r: rng.choice(defined) if defined and rng.random() < 0.9 else r for r in deleted_call.gives}
    calls = [call._replace(args=tuple(new.get(r, r) for r in call.args), after=tuple(new.get(r, r) for r in call.after))
             for call in function.kernels[at + 1 :]]
    return with_function(model, function._replace(
        kernels=(*function.kernels[:at], *calls), results=tuple(new.get(r, r) for r in function.results)))


def _repeat_call(rng: Random, function: ProgramFunction, at: int, _other: CompiledModel) -> list[Call]:
    return [function.kernels[at]] * rng.choice((2, 2, 3))


def _swap_calls(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    function = any_function(rng, model)
    if function is None or len(function.kernels) < 2:
        return model
    calls = list(function.kernels)
    at = rng.randrange(len(calls) - 1)
    calls[at : at + 2] = calls[at : at + 2][::-1]
    return with_function(model, function._replace(kernels=tuple(calls)))


def _add_calls(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    """Ops over registers of a function, whose first results are returned beside its own."""
    function = any_function(rng, model)
    for _ in range(rng.randint(1, _ADDED_CALLS)):
        function = function and _with_added_call(rng, function)
    return model if function is None else with_function(model, function)


def _with_added_call(rng: Random, function: ProgramFunction) -> ProgramFunction:
    defined = defined_before(function, len(function.kernels))
    args = tuple(rng.choice(defined[-4:] if rng.random() < 0.6 else defined)
                 for _ in range(rng.choice((1, 1, 2, 2, 3)) if defined else 0))
    case = _any_case(rng, [_element(function.register_types, r) for r in args]) if args else None
    if case is None:
        return function
    new = len(function.register_types)
    count = len(case.outputs or ()) or 1
    stream = next((call.stream for call in function.kernels if call.stream != HOST), 0)
    call = Call(f"{_any_pack(rng, 'cpu')}.{case.op}", args, tuple(range(new, new + count)), _attributes_of(case, {}),
                stream, f"{case.op}_{new}")
    like = function.register_types[args[0]]
    return function._replace(register_types=(*function.register_types, *[like] * count),
                             kernels=(*function.kernels, call), results=(*function.results, new),
                             streams=(*function.streams, 0) if function.streams else ())


def change_argument_type(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    """Another type of an argument of a function: with repaired types a sound file for other shapes."""
    return _with_type(rng, model, lambda function: len(function.arg_names))


def _change_type(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    return _with_type(rng, model, lambda function: len(function.register_types))


def _with_type(rng: Random, model: CompiledModel, count: Callable[[ProgramFunction], int]) -> CompiledModel:
    function = any_function(rng, model)
    if function is None or not count(function):
        return model
    at = rng.randrange(count(function))
    types = list(function.register_types)
    types[at] = other_type(rng, types[at])
    return with_function(model, function._replace(register_types=tuple(types)))


def other_type(rng: Random, kind: RegisterType) -> RegisterType:
    """Another type: mostly another dimension."""
    if isinstance(kind, str) or rng.random() < 0.04:
        return rng.choice((*_HOST_TYPES, TensorMetadata(dtypes.float32, (2,))))
    if rng.random() < 0.2:
        return TensorMetadata(rng.choice(dtypes.ALL), kind.shape)
    dims = list(kind.shape or ())
    choice = rng.random()
    if choice < 0.1:
        return TensorMetadata(kind.dtype, None)
    if dims and choice < 0.7:
        dims[rng.randrange(len(dims))] = rng.choice((*_DIMS, *dims))
    elif choice < 0.85:
        dims.insert(rng.randint(0, len(dims)), rng.choice((1, 1, 2, None)))
    elif dims:
        del dims[rng.randrange(len(dims))]
    return TensorMetadata(kind.dtype, tuple(dims))


def _change_results(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    function = any_function(rng, model)
    if function is None:
        return model
    registers = [*range(len(function.register_types))] or [0]
    results = list(function.results)
    choices = [[*results, rng.choice(registers)], [rng.choice(registers) for _ in results], results[:-1], results * 2]
    changed = function._replace(results=tuple(rng.choice(choices)))
    if rng.random() < 0.2:
        changed = changed._replace(targets=(*function.targets, rng.choice(registers)))
    return with_function(model, changed)


def _change_function_facts(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    function = any_function(rng, model)
    return model if function is None else with_function(model, rng.choice((
        function._replace(is_compiled=not function.is_compiled), function._replace(is_sync=not function.is_sync),
        function._replace(streams=tuple(rng.randrange(3) for _ in function.kernels)), function._replace(streams=()),
        function._replace(targets=function.results), function._replace(arg_names=function.arg_names[:-1]))))


def _change_constant(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    constants = list(model.program.constants)
    if not constants:
        return model
    at = rng.randrange(len(constants))
    constants[at] = other_array(rng, constants[at])
    return model._replace(program=model.program._replace(constants=tuple(constants)))


def other_array(rng: Random, value: Any) -> Any:
    """Other elements, another shape or another element type; the same value where its elements are missing."""
    if not isinstance(value, np.ndarray) or value.dtype == object or value.nbytes > 1 << 16:
        return value
    choice = rng.random()
    if choice < 0.5 and value.size:
        changed = np.array(value)
        number: Any = rng.choice(EDGE_FLOATS if value.dtype.kind not in "iub" else EDGES)
        with np.errstate(all="ignore"):
            changed.reshape(-1)[rng.randrange(value.size)] = (
                np.array(number % (1 << 64), np.uint64).astype(value.dtype) if value.dtype.kind in "iub"
                else np.array(number).astype(value.dtype))
        return changed
    if choice < 0.6:
        return value.reshape(-1)[: value.size // 2]
    if choice < 0.7:
        return value[None]
    if choice < 0.8:
        return value.reshape(-1)
    if choice < 0.9:
        return np.broadcast_to(value.reshape(-1)[:1], (rng.choice((2, 7, 1000, 1 << 20)),)) if value.size else value
    with np.errstate(all="ignore"):
        return value.astype(rng.choice(("f4", "f8", "i4", "i8", "i1", "?", "u2")))


def _change_prepared(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    if not model.prepared:
        return model
    rows = list(model.prepared)
    at = rng.randrange(len(rows))
    row = rows[at]
    theirs = rng.choice(rows)
    rows[at] = rng.choice((
        row._replace(value=other_array(rng, np.asarray(row.value))), row._replace(value=theirs.value),
        row._replace(node=theirs.node, key=theirs.key), row._replace(fingerprint=theirs.fingerprint + "x"),
        row._replace(function=rng.choice([*model.program.functions, "none"])), row._replace(device="CPU:1")))
    return model._replace(prepared=tuple(rows if rng.random() < 0.9 else rows[1:]))


def _change_entry(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    if not model.entries:
        return model
    entries = list(model.entries)
    at = rng.randrange(len(entries))
    entry = entries[at]
    functions = [*model.program.functions, "none"]
    entries[at] = rng.choice((
        entry._replace(function=rng.choice(functions)), entry._replace(initial=(rng.choice(functions),)),
        entry._replace(inputs=entry.inputs[:-1]), entry._replace(outputs=entry.outputs[:-1]),
        entry._replace(inputs=entry.inputs * 2), entry._replace(outputs=entry.outputs * 2),
        entry._replace(signature="other"), entry._replace(inputs=tuple(
            port._replace(meta=kind) if isinstance(kind := other_type(rng, port.meta), TensorMetadata) else port
            for port in entry.inputs))))
    return model._replace(entries=tuple(entries * rng.choice((1, 1, 1, 2))))


def _change_requirements(rng: Random, model: CompiledModel, _other: CompiledModel) -> CompiledModel:
    rows = list(model.requirements)
    if rows and rng.random() < 0.7:
        at = rng.randrange(len(rows))
        rows[at] = rng.choice((
            rows[at]._replace(version=rng.choice(("", "0", "9" * 5000, "1.x", "0.0.1"))),
            rows[at]._replace(plugin="nobody"), rows[at]._replace(use="other"),
            rows[at]._replace(distribution="x; echo")))
        return model._replace(requirements=tuple(rows))
    requires = rng.choice((("CPU:0", "CPU:0"), ("CPU:1",), ("GPU:0",), (), ("", "CPU:0"), ("CPU:99999999999",)))
    return model._replace(program=model.program._replace(requires=requires))


def _is_op(call: Call) -> bool:
    return call.code not in RUNTIME_CODES and not call.is_host_kernel


_WEIGHTED: dict[ModelEdit, float] = {
    _call_edit(lambda call: call.attrs and call.code not in RUNTIME_CODES, _change_attribute): 8,
    _call_edit(_is_op, _exchange_attribute): 1,
    _call_edit(_is_op, _change_op): 5,
    _call_edit(lambda call: call.args, _change_argument): 3,
    _call_edit(lambda call: call.code not in RUNTIME_CODES, _change_count): 1,
    _call_edit(bool, _change_flags): 1.5,
    _call_edit(lambda call: call.functions, _change_callees): 2,
    _call_edit(lambda call: call.code == GROUP, _change_group): 4,
    _call_edit(lambda call: call.code == CONSTANT, _change_constant_index): 0.7,
    _call_edit(bool, _repeat_call): 0.4,
    _delete_call: 1, _swap_calls: 0.7, _add_calls: 5, change_argument_type: 5, _change_type: 2, _change_results: 1,
    _change_function_facts: 0.7, _change_constant: 4, _change_prepared: 2, _change_entry: 1, _change_requirements: 0.4,
}
EDITS, _WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
