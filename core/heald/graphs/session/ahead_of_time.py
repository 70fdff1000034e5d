"""Compiles a model ahead of time: its program for given shapes, as data that runs without its graph."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument, Location, PermissionDenied, Unimplemented, boundary
from ...runtime.contract.loader import Initializer
from ...runtime.contract.session import in_this_process
from ...runtime.linker.preparation import Preparation
from ...runtime.linker.specialise import Specialiser
from ...runtime.program.compiled_model import CompiledModel, Entry, Port, Requirement
from ...runtime.program.host_program import CONSTANT, RUNTIME_CODES, Call, ProgramDef
from ...runtime.service.feeds import convert_feed
from ...runtime.service.load import load
from ...runtime.service.prepared_step import PreparedStep
from ...runtime.service.runtime import Runtime, runtime
from ...runtime.support.gc_pause import gc_paused
from ...runtime.values.tensor import TensorMetadata, fits, shape_text
from .model import Model, Signature
from .session import Session

Shapes = Mapping[str, Any]  # input name -> its shape, or a list of shapes
_NO_SHAPES: Shapes = {}
MOST_NAMED_INPUTS = 5  # inputs without a shape that a reason names


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
    host_runtime = runtime(config)
    input_shapes = _NO_SHAPES if inputs is None else inputs
    with in_this_process():
        model = load(path, outputs=outputs, device=device, signature=signature, tags=tags, config=host_runtime,
                     format=format, mmap=mmap)
    if not isinstance(model, Model):
        raise InvalidArgument("the model is compiled already", location=Location(os.fspath(path)),
                              hint="compile its source file")
    default_name = _name_of(model, model.signatures, signature)
    compiling = _SignatureCompiler(model.session, host_runtime, strip)
    others = {} if signature is not None else {
        name: other for name, other in model.signatures.items() if name != default_name}
    _check_names(input_shapes, [model, *others.values()])
    compiling.add_signature(default_name, model, input_shapes)
    left_out = {name: why for name, other in others.items()
                if (why := compiling.add_other_signature(name, other, input_shapes))}
    source = model.source
    program = compiling.specialiser.program
    compiled = [entry.function for entry in compiling.entries if program.functions[entry.function].is_compiled]
    preparation = Preparation(program, compiled, host_runtime.host)
    requirements = tuple(_requirements(program, host_runtime))
    if strip:
        program = preparation.strip_constants()
    return CompiledModel(program, tuple(compiling.entries), requirements, preparation.prepared,
                         form="" if source is None else source.describe().form, chosen_signature=default_name,
                         left_out=left_out)


class _SignatureCompiler:
    """Compiles the signatures of one session into one program."""

    def __init__(self, session: Session, host_runtime: Runtime, strip: bool) -> None:
        self.specialiser = Specialiser(host_runtime.host)
        self.entries: list[Entry] = []
        self._session, self._runtime, self._strip = session, host_runtime, strip
        self._initial: dict[str, str] = {}  # target of an initializer -> its function

    def add_signature(self, name: str, signature: Signature, input_shapes: Shapes) -> None:
        """Add a signature, for each combination of shapes. Raises InvalidArgument when shapes are missing."""
        if missing := _inputs_without_shape(signature, input_shapes):
            raise InvalidArgument(f"unknown dimensions: {', '.join(missing)}",
                                  hint="give shapes: --input NAME:SHAPE, or inputs={name: shape}")
        fetched, fed = tuple(signature.fetched.values()), tuple(signature.fed.values())
        step = self._session.prepare(fetched, fed)
        initial = tuple(self._function_of_initializer(initializer)
                        for initializer in self._session.initializers(fetched, fed))
        for metas in _argument_combinations(signature, input_shapes):
            step.executable(tuple(meta.dims for meta in metas))  # kernels that decline are left out from here on
            function = self.specialiser.add(step.program, metas, name or "main")
            self._add_entry(name, signature, function, initial)
        if not self._strip and not all(meta.is_static for meta in signature.inputs.values()):
            self._add_entry(name, signature, self.specialiser.add_general(step.program, name or "main"), initial)

    def add_other_signature(self, name: str, signature: Signature, input_shapes: Shapes) -> str:
        """Add a signature that need not work here. Returns the reason why it is left out; empty for an added one."""
        shapes = {key: given for key, given in input_shapes.items() if _all_fit(signature.inputs.get(key), given)}
        if not signature.is_runnable:
            return "it cannot be run"
        if missing := _inputs_without_shape(signature, shapes):
            more = f", and {len(missing) - MOST_NAMED_INPUTS} more" if len(missing) > MOST_NAMED_INPUTS else ""
            return f"no shape for {', '.join(missing[:MOST_NAMED_INPUTS])}{more}"
        try:
            self.add_signature(name, signature, shapes)
        except (PermissionDenied, Unimplemented) as error:
            return error.message
        return ""

    def _add_entry(self, name: str, signature: Signature, function: str, initial: tuple[str, ...]) -> None:
        program_function = self.specialiser.program.functions[function]
        inputs = _ports(signature.fed, program_function.arg_metas)
        self.entries.append(Entry(name, function, inputs, _ports(signature.fetched, program_function.result_metas),
                                  initial))

    def _function_of_initializer(self, initializer: Initializer) -> str:
        """Return the function, without arguments, that makes a state."""
        if initializer.target not in self._initial:
            values = initializer.values()
            step = self._session.prepare((), tuple(values), (initializer.target,))
            function = step.program.functions["main"]
            memory = self._runtime.host.memory
            arrays = [convert_feed(value, meta, name, memory)
                      for (name, value), meta in zip(values.items(), function.arg_metas, strict=True)]
            program = _with_constant_arguments(_link_program(step, arrays), arrays)
            self._initial[initializer.target] = self.specialiser.add(program, (), f"initialize {initializer.target}")
        return self._initial[initializer.target]


def _link_program(step: PreparedStep, arrays: Sequence[Any]) -> ProgramDef:
    """Return the program of a step without the kernels that decline arrays of these shapes."""
    step.executable(tuple(array.shape for array in arrays))
    return step.program


def _with_constant_arguments(program: ProgramDef, arrays: Sequence[Any]) -> ProgramDef:
    """Return the program with constants in place of the arguments of its function `main`."""
    main, first = program.functions["main"], len(program.constants)
    calls = [Call(CONSTANT, (), (i,), {"index": first + i}, node=name) for i, name in enumerate(main.arg_names)]
    filled = main._replace(arg_names=(), kernels=(*calls, *main.kernels))
    return program._replace(functions={**program.functions, "main": filled}, constants=(*program.constants, *arrays))


def _name_of(model: Signature, signatures: Mapping[str, Signature], requested: str | None) -> str:
    """Return the name of the model's chosen signature; "" without signatures."""
    if requested is not None:
        return requested
    alike = (name for name, candidate in signatures.items()
             if (candidate.fed, candidate.fetched) == (model.fed, model.fetched))
    return next(alike, "")


def _check_names(input_shapes: Shapes, signatures: Sequence[Signature]) -> None:
    input_names = {name for signature in signatures for name in signature.inputs}
    for name in input_shapes:
        if name not in input_names:
            raise InvalidArgument(f"the model has no input '{name}'",
                                  hint=f"its inputs: {', '.join(sorted(input_names))}")


def _inputs_without_shape(signature: Signature, input_shapes: Shapes) -> list[str]:
    """Return name and shape of the inputs with unknown dimensions for which no shape is given."""
    return [f"{name}:{shape_text(meta.shape)}" for name, meta in signature.inputs.items()
            if not meta.is_static and name not in input_shapes]


def _argument_combinations(signature: Signature, input_shapes: Shapes) -> Iterator[tuple[TensorMetadata, ...]]:
    """Yield the arguments of each function to compile. Raises InvalidArgument for shapes that do not fit."""
    shapes = {name: _shape_list(input_shapes[name]) for name in signature.inputs if name in input_shapes}
    counts = {len(shape_list) for shape_list in shapes.values()} or {1}
    if len(counts) > 1 or 0 in counts:
        have = ", ".join(f"{name}: {len(shape_list)}" for name, shape_list in shapes.items())
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
    return meta is not None and all(fits(shape, meta) for shape in _shape_list(shapes))


def _shape_list(shapes: Any) -> list[tuple[Any, ...]]:
    """Return the shapes of an input: one, or several in a list of sequences."""
    several = len(shapes) > 0 and all(isinstance(shape, Sequence) for shape in shapes)
    return [tuple(shape) for shape in shapes] if several else [tuple(shapes)]


def _ports(tensors: Mapping[str, str], metas: Sequence[TensorMetadata]) -> tuple[Port, ...]:
    return tuple(Port(name, tensor, meta) for (name, tensor), meta in zip(tensors.items(), metas, strict=True))


def _requirements(program: ProgramDef, host_runtime: Runtime) -> Iterator[Requirement]:
    """Yield the plugins of the program's devices, kernels and ops."""
    types = {name.partition(":")[0] for name in program.requires}
    calls = [call for function in program.functions.values() for call in function.kernels if _is_op(call)]
    packs = {call.pack for call in calls}
    op_sets = {host_runtime.host.registries.ops.plugin_of(op) for op in {call.op for call in calls}}
    for record in host_runtime.plugins.listing():
        brought = types.intersection(record.registered.get("device types", ()))
        uses = [("device", bool(brought)), ("kernels", record.id in packs), ("ops", record.id in op_sets)]
        for use, is_used in uses:
            if is_used:
                yield Requirement(record.id, record.distribution or "", record.version or "", use)


def _is_op(call: Call) -> bool:
    return call.code not in RUNTIME_CODES and not call.is_host_kernel
