"""Compiles a model ahead of time: its program for given shapes, as data that runs without its graph."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...errors import InvalidArgument, Location, PermissionDenied, Unimplemented, boundary
from ...runtime.contract.loader import Initializer
from ...runtime.linker.preparation import Preparation
from ...runtime.linker.specialise import Specialiser
from ...runtime.program.compiled_model import CompiledModel, Entry, Port, Requirement
from ...runtime.program.host_program import CONSTANT, OWN, Call, ProgramDef
from ...runtime.service.feeds import convert
from ...runtime.service.load import load
from ...runtime.service.prepared_step import PreparedStep
from ...runtime.service.runtime import Runtime, runtime
from ...runtime.support.gc_pause import gc_paused
from ...runtime.values.tensor import TensorMetadata, fits, shape_text
from .model import Model, Signature
from .session import Session

Shapes = Mapping[str, Any]  # input name -> its shape, or a list of shapes
_NONE: Shapes = {}


@boundary
@gc_paused()
def compile_model(
    path: str | os.PathLike[str], *, inputs: Shapes | None = None, outputs: Sequence[str] | None = None,
    device: str | None = None, signature: str | None = None, tags: Collection[str] | None = None, config: Any = None,
    format: str | None = None, mmap: bool = True, strip: bool = False,  # noqa: A002 - as of `heald.load`
) -> CompiledModel:
    """Compile a file that `heald.load` reads.

    `inputs`: the shape of each input with unknown dimensions, or a list of shapes. Lists have one length: shape `i` of
    each input belongs to the `i`-th compiled function.
    `outputs`, `tags`, `format` and `mmap` are as of `heald.load`.
    `signature`: the one to compile. The default is the chosen one, and all others whose shapes are static or given and
    whose nodes this host has kernels and permissions for.
    `strip`: True to leave out the functions for other shapes, and the elements of constants that only kernels with
    prepared arrays use. These kernels then run with the same versions and instructions only.

    Raises InvalidArgument for unknown dimensions without a given shape, and as `heald.load`.
    """
    own = runtime(config)
    given = _NONE if inputs is None else inputs
    model = load(path, outputs=outputs, device=device, signature=signature, tags=tags, config=own, format=format,
                 mmap=mmap)
    if not isinstance(model, Model):
        raise InvalidArgument("the model is compiled already", location=Location(os.fspath(path)),
                              hint="compile its source file")
    chosen = _name_of(model, model.signatures, signature)
    compiling = _Compiling(model.session, own, strip)
    others = {} if signature is not None else {name: each for name, each in model.signatures.items() if name != chosen}
    _check_names(given, [model, *others.values()])
    compiling.add(chosen, model, given)
    for name, each in others.items():
        its_own = {key: shapes for key, shapes in given.items() if _all_fit(each.inputs.get(key), shapes)}
        if each.is_runnable and not _open(each, its_own):
            with suppress(PermissionDenied, Unimplemented):  # only the chosen signature must work here
                compiling.add(name, each, its_own)
    source = model.source
    program = compiling.specialiser.program
    compiled = [entry.function for entry in compiling.entries if program.functions[entry.function].is_compiled]
    preparation = Preparation(program, compiled, own.host)
    requirements = tuple(_requirements(program, own))
    if strip:
        program = preparation.strip_constants()
    return CompiledModel(program, tuple(compiling.entries), requirements, preparation.prepared,
                         form="" if source is None else source.describe().form, chosen=chosen)


class _Compiling:
    """Compiles the signatures of one session into one program."""

    def __init__(self, session: Session, own: Runtime, strip: bool) -> None:
        self.specialiser = Specialiser(own.host)
        self.entries: list[Entry] = []
        self._session, self._own, self._strip = session, own, strip
        self._initial: dict[str, str] = {}  # target of an initializer -> its function

    def add(self, name: str, signature: Signature, given: Shapes) -> None:
        """Add a signature, for each combination of shapes. Raises InvalidArgument when shapes are missing."""
        if missing := _open(signature, given):
            raise InvalidArgument(f"unknown dimensions: {', '.join(missing)}",
                                  hint="give shapes: --input NAME:SHAPE, or inputs={name: shape}")
        fetched, fed = tuple(signature.fetched.values()), tuple(signature.fed.values())
        step = self._session.prepare(fetched, fed)
        initial = tuple(self._initializer(each) for each in self._session.initializers(fetched, fed))
        for metas in _cases(signature, given):
            step.executable(tuple(meta.dims for meta in metas))  # kernels that decline are left out from here on
            function = self.specialiser.add(step.program, metas, name or "main")
            self._enter(name, signature, function, initial)
        if not self._strip and not all(meta.is_static for meta in signature.inputs.values()):
            self._enter(name, signature, self.specialiser.add_general(step.program, name or "main"), initial)

    def _enter(self, name: str, signature: Signature, function: str, initial: tuple[str, ...]) -> None:
        made = self.specialiser.program.functions[function]
        inputs = _ports(signature.fed, made.arg_metas)
        self.entries.append(Entry(name, function, inputs, _ports(signature.fetched, made.result_metas), initial))

    def _initializer(self, initializer: Initializer) -> str:
        """Return the function, without arguments, that makes a state."""
        if initializer.target not in self._initial:
            values = initializer.values()
            step = self._session.prepare((), tuple(values), (initializer.target,))
            function = step.program.functions["main"]
            memory = self._own.host.memory
            arrays = [convert(value, meta, name, memory)
                      for (name, value), meta in zip(values.items(), function.arg_metas, strict=True)]
            program = _filled(_linked(step, arrays), arrays)
            self._initial[initializer.target] = self.specialiser.add(program, (), f"initialize {initializer.target}")
        return self._initial[initializer.target]


def _linked(step: PreparedStep, arrays: Sequence[Any]) -> ProgramDef:
    """Return the program of a step without the kernels that decline arrays of these shapes."""
    step.executable(tuple(array.shape for array in arrays))
    return step.program


def _filled(program: ProgramDef, arrays: Sequence[Any]) -> ProgramDef:
    """Return the program with constants in place of the arguments of its function `main`."""
    main, first = program.functions["main"], len(program.constants)
    calls = [Call(CONSTANT, (), (i,), {"index": first + i}, node=name) for i, name in enumerate(main.arg_names)]
    filled = main._replace(arg_names=(), kernels=(*calls, *main.kernels))
    return program._replace(functions={**program.functions, "main": filled}, constants=(*program.constants, *arrays))


def _name_of(model: Signature, signatures: Mapping[str, Signature], given: str | None) -> str:
    """Return the name of the model's chosen signature; "" without signatures."""
    if given is not None:
        return given
    alike = (name for name, each in signatures.items() if (each.fed, each.fetched) == (model.fed, model.fetched))
    return next(alike, "")


def _check_names(given: Shapes, signatures: Sequence[Signature]) -> None:
    known = {name for signature in signatures for name in signature.inputs}
    for name in given:
        if name not in known:
            raise InvalidArgument(f"the model has no input '{name}'", hint=f"its inputs: {', '.join(sorted(known))}")


def _open(signature: Signature, given: Shapes) -> list[str]:
    """Return name and shape of the inputs with unknown dimensions for which no shape is given."""
    return [f"{name}:{shape_text(meta.shape)}" for name, meta in signature.inputs.items()
            if not meta.is_static and name not in given]


def _cases(signature: Signature, given: Shapes) -> Iterator[tuple[TensorMetadata, ...]]:
    """Yield the arguments of each function to compile. Raises InvalidArgument for shapes that do not fit."""
    shapes = {name: _listed(given[name]) for name in signature.inputs if name in given}
    counts = {len(each) for each in shapes.values()} or {1}
    if len(counts) > 1 or 0 in counts:
        have = ", ".join(f"{name}: {len(each)}" for name, each in shapes.items())
        raise InvalidArgument(f"inputs have different numbers of shapes ({have})", hint="give each input as many")
    for number in range(counts.pop()):
        metas = []
        for name, meta in signature.inputs.items():
            shape = shapes[name][number] if name in shapes else meta.dims
            if any(type(dim) is not int or dim < 0 for dim in shape) or not fits(shape, meta):
                raise InvalidArgument(f"shape {shape} does not fit input '{name}' {meta}")
            metas.append(TensorMetadata(meta.dtype, shape))
        yield tuple(metas)


def _all_fit(meta: TensorMetadata | None, shapes: Any) -> bool:
    return meta is not None and all(fits(shape, meta) for shape in _listed(shapes))


def _listed(shapes: Any) -> list[tuple[Any, ...]]:
    """Return the shapes of an input: one, or several in a list of sequences."""
    several = len(shapes) > 0 and all(isinstance(each, Sequence) for each in shapes)
    return [tuple(each) for each in shapes] if several else [tuple(shapes)]


def _ports(tensors: Mapping[str, str], metas: Sequence[TensorMetadata]) -> tuple[Port, ...]:
    return tuple(Port(name, tensor, meta) for (name, tensor), meta in zip(tensors.items(), metas, strict=True))


def _requirements(program: ProgramDef, own: Runtime) -> Iterator[Requirement]:
    """Yield the plugins of the program's devices, kernels and ops."""
    types = {name.partition(":")[0] for name in program.requires}
    calls = [call for function in program.functions.values() for call in function.kernels if _is_op(call)]
    packs = {call.pack for call in calls}
    op_sets = {own.host.registries.ops.plugin_of(op) for op in {call.op for call in calls}}
    for record in own.plugins.listing():
        brought = types.intersection(record.registered.get("device types", ()))
        uses = [("device", bool(brought)), ("kernels", record.id in packs), ("ops", record.id in op_sets)]
        for use, is_used in uses:
            if is_used:
                yield Requirement(record.id, record.distribution or "", record.version or "", use)


def _is_op(call: Call) -> bool:
    return call.code not in OWN and not call.is_host_kernel
