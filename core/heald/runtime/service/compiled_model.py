"""Runs a CompiledModel: a model that needs no graph.

Its program may be a stranger's. Every call is checked by its op or host kernel, and all types are derived anew.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...errors import FailedPrecondition, HealdError, InvalidArgument, NotFound, Unimplemented, boundary
from ..discovery.discovery import PluginRecord
from ..executor.executable import Executable
from ..executor.step import RunOptions, Step, lasting_step
from ..host.resources import Resources
from ..linker.checked_program import check_program
from ..linker.link import NodesDeclined, link
from ..linker.result_inference import common_info
from ..linker.shared_by_links import SharedByLinks
from ..linker.stored_constants import LoadedConstants
from ..program.compiled_model import COMPILE_AGAIN, CompiledModel, Entry, Port, Requirement
from ..program.host_program import HOST, RUNTIME_CODES, ProgramDef
from ..program.verifier import VerifiedFunctions, verify
from ..support.fork_safety import inherited
from ..support.install import named_hint
from ..values.tensor import TensorMetadata, ValueInfo
from .arguments import inputs_in_order, take_options
from .prepared_step import PreparedStep
from .run_step import make_run_step
from .runtime import Runtime, runtime

if TYPE_CHECKING:
    from ..contract.kernel import FusionRefusal
    from ..contract.placement import Placement
    from ..program.groups import GroupOutcome

FOREIGN_PLUGIN_HINT = "heald does not bring it: ask the author of the file for its distribution"
_USES_OF_OP_SETS = frozenset({"ops", "other shapes"})  # older files name them for functions of open shapes alone


class CompiledEntries:
    """The ProgramSource of functions for the same arguments, each for other shapes."""

    skipped_passes = ""

    def __init__(self, program: ProgramDef, functions: Sequence[str], owner: Runtime) -> None:
        self._program, self._functions, self._runtime = program, functions, owner

    def program(self, step: Step) -> ProgramDef:  # noqa: ARG002 - nothing is left to make
        return self._program

    def link(
        self, program: ProgramDef, feed_metas: Sequence[TensorMetadata], shared: SharedByLinks, step: Step, *,
        waits: bool = True, foreign_feeds: frozenset[int] = frozenset(),
    ) -> tuple[ProgramDef, SharedByLinks, Executable]:
        """Link the function for arguments of this metadata.

        Raises FailedPrecondition for shapes that no function is compiled for, and for a node that no kernel takes: a
        program without its graph has one device for it.
        """
        name = self._function(tuple(feed_metas))
        host = self._runtime.host
        try:
            linked = link(program, host, feed_metas, function=name, shared=shared.of(name), waits=waits,
                          check=step.check, foreign_feeds=foreign_feeds)
        except NodesDeclined as declined:
            raise FailedPrecondition(declined.message, node=declined.node, device=declined.device,
                                     hint=COMPILE_AGAIN) from declined
        return program, shared, linked

    def _function(self, feed_metas: tuple[TensorMetadata, ...]) -> str:
        functions = []
        for function in map(self._program.functions.__getitem__, self._functions):  # each is decoded now
            if function.is_compiled and function.arg_metas == feed_metas:
                return function.name
            functions.append(function)
        for function in functions:
            if not function.is_compiled:
                return function.name
        shapes = "; ".join(", ".join(map(str, function.arg_metas)) for function in functions)
        raise FailedPrecondition(f"function '{functions[0].name}' is compiled for ({shapes}), given "
                                 f"({', '.join(map(str, feed_metas))})",
                                 hint="compile it for these shapes, too, or load the source")


class _CompiledStep(PreparedStep):
    """A prepared step whose functions serve one combination of shapes each."""

    def _link_dynamic(self, step: Step) -> Executable | None:  # noqa: ARG002 - as of PreparedStep
        self._may_be_dynamic = False
        return None


class _SharedState:
    """Program, host and resources of a model, which all its signatures share."""

    def __init__(self, model: CompiledModel, owner: Runtime) -> None:
        self.program, self.host, self._runtime = check_program(model.program, owner.host.registries), owner.host, owner
        self._stored = LoadedConstants(model.prepared)
        self.step = lasting_step(owner.host, Resources())
        self._done: set[str] = set()
        self._lock = threading.RLock()
        inherited.add(self)

    def forked(self) -> None:
        self._lock = threading.RLock()

    def make_prepared_step(self, functions: Sequence[str], ports: Sequence[Port]) -> PreparedStep:
        source = CompiledEntries(self.program, functions, self._runtime)
        return _CompiledStep([port.name for port in ports], [port.meta for port in ports], source, self.host,
                             self.step, self.step, self._new_step, lambda *_: None, self._stored)

    def initialize(self, functions: Sequence[str], step: Step | None) -> None:
        """Run the functions that have not run, in `step` if there is one. A function that fails stays for the next
        call."""
        with (step or self.step).holding(self._lock):
            for name in functions:
                if name not in self._done:
                    self.make_prepared_step([name], ())((), step)
                    self._done.add(name)

    def _new_step(self, options: RunOptions) -> Step:
        """Return a step for one run. Raises InvalidArgument for options of the wrong type."""
        return make_run_step(Step, self.host, options, (), resources=self.step.resources, ends_at_error=True)

    def limited_step(self, options: RunOptions) -> AbstractContextManager[Step]:
        """Give a step for one run, its preparation included. Raises InvalidArgument for options of the wrong type."""
        return closing(self._new_step(options))


class CompiledSignature:
    """One signature of a compiled model. It is called like a signature of `heald.load`.

    `inputs` and `outputs` map names to metadata, in the order that calls use. Dimensions that differ between the
    compiled functions are open.
    """

    def __init__(self, state: _SharedState, entries: Sequence[Entry]) -> None:
        """Raises InvalidArgument for functions of one signature with different names, and for a name that appears
        twice."""
        self._state, self._entries = state, entries
        _check_names(entries)
        self._inputs = [_common([entry.inputs[i] for entry in entries]) for i in range(len(entries[0].inputs))]
        outputs = [_common([entry.outputs[i] for entry in entries]) for i in range(len(entries[0].outputs))]
        self.inputs = {port.name: port.meta for port in self._inputs}
        self.outputs = {port.name: port.meta for port in outputs}
        self._input_names, self._output_names = tuple(self.inputs), tuple(self.outputs)

    def __str__(self) -> str:
        from ..contract.loader import signature_text

        return signature_text(self.inputs, self.outputs)

    @cached_property
    def _step(self) -> PreparedStep:
        return self._prepare(None)

    def _prepare(self, step: Step | None) -> PreparedStep:
        self._state.initialize([*dict.fromkeys(name for entry in self._entries for name in entry.initial)], step)
        return self._state.make_prepared_step([entry.function for entry in self._entries], self._inputs)

    @boundary
    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Outputs for these inputs, in order or by name (or one dict by name): the array, or several in a dict.

        `options=RunOptions(...)`: limits of the run and its preparation. Other values of that name are an input's.

        Raises InvalidArgument when inputs are missing, unknown or do not fit, and FailedPrecondition for shapes that
        the model is not compiled for. Raises DeadlineExceeded and Cancelled as the options say.
        """
        options = take_options(named)
        inputs = inputs_in_order(self._input_names, arrays, named)
        results = self._step(inputs) if options is None else self._run_limited(inputs, options)
        return results[0] if len(results) == 1 else dict(zip(self._output_names, results, strict=True))

    def _run_limited(self, inputs: Sequence[Any], options: RunOptions) -> list[Any]:
        with self._state.limited_step(options) as step:
            if "_step" not in self.__dict__:
                self._step = self._prepare(step)
            return self._step(inputs, step)


class LoadedCompiledModel(CompiledSignature):
    """A CompiledModel on this host: its chosen signature, and in `signatures` all of them, over the same state."""

    @boundary
    def __init__(self, model: CompiledModel, config: Any = None) -> None:
        """Raises FailedPrecondition for devices and plugins that the model needs and this host lacks.

        Raises NotFound for a model without entries, InvalidArgument for a program that is not well formed.
        """
        if not isinstance(model.program.functions, VerifiedFunctions):
            verify(model.program)
        names_ops = any(requirement.use in _USES_OF_OP_SETS for requirement in model.requirements)
        needed = {requirement.distribution for requirement in model.requirements} - {""} if names_ops else None
        owner = runtime(config, needed)
        _check_requirements(model, owner)
        state = _SharedState(model, owner)
        entries: dict[str, list[Entry]] = {}
        for entry in model.entries:
            entries.setdefault(entry.signature, []).append(entry)
        if model.chosen_signature not in entries:
            raise NotFound(f"the compiled model has no signature '{model.chosen_signature}'",
                           hint=f"its signatures: {', '.join(entries) or 'none'}")
        super().__init__(state, entries[model.chosen_signature])
        self._initial = frozenset(name for entry in model.entries for name in entry.initial)
        self.signatures: Mapping[str, CompiledSignature] = {
            name: CompiledSignature(state, signature_entries) for name, signature_entries in entries.items() if name}

    def program_ops(self) -> frozenset[str] | None:
        """The ops of a call, once its initial functions have run. None for a program with a call of another kind, such
        as a host kernel. Raises DataLoss for a function that is damaged."""
        calls = [call for name, function in self._state.program.functions.items() if name not in self._initial
                 for call in function.kernels if call.code not in RUNTIME_CODES]
        return None if any(call.is_host_kernel for call in calls) else frozenset(call.op for call in calls)

    @property
    def program_devices(self) -> tuple[str, ...]:
        """The devices that the program is compiled for."""
        return tuple(self._state.program.requires)

    @property
    def session(self) -> Any:
        """Raises Unimplemented: a compiled model has no graph."""
        raise Unimplemented("a compiled model has no graph, so it has no session", hint="load the source file")

    def placement(self) -> Placement:
        """The devices of the nodes of the chosen signature's first function. Raises as a call, without running it."""
        from ..contract.placement import Assignment, Placement

        executable = self._linked_function()
        ops = {call.node: call.op for call in executable.function.kernels}
        rows = {}
        for bound in executable.layout.calls:
            call = bound.call
            device = "" if call.stream == HOST else self._state.program.requires[call.stream]
            for node in call.fused or (call.node,):
                rows[node] = Assignment(node, ops.get(node, call.op), "", device, bound.kernel, "when it was compiled",
                                        fused=(call.code, call.node) if call.fused else None)
        return Placement(rows, self._state.host.registries.kernels)

    def algorithms(self) -> dict[str, str]:
        """The algorithms of these nodes' kernels, by node. Raises as `placement`."""
        return self._linked_function().algorithms()

    def groups(self) -> tuple[GroupOutcome, ...]:
        """The fates of the groups that compilers claimed of the same function and its callees. Raises as `placement`.
        """
        return tuple(outcome for linked in self._linked_function().with_callees() for outcome in linked.report.groups)

    def fusion_refusals(self) -> tuple[FusionRefusal, ...]:
        """The fusions that the links of the same functions did not use. Raises as `placement`."""
        return tuple(refusal for linked in self._linked_function().with_callees()
                     for refusal in linked.report.fusion_refusals)

    def _linked_function(self) -> Executable:
        metas = self._state.program.functions[self._entries[0].function].arg_metas
        shapes = tuple(meta.dims for meta in metas) if all(meta.is_static for meta in metas) else None
        return self._step.executable(shapes)


def _check_names(entries: Sequence[Entry]) -> None:
    first = entries[0]
    for entry in entries:
        for what in ("inputs", "outputs"):
            expected, names = ([port.name for port in getattr(some_entry, what)] for some_entry in (first, entry))
            if names != expected:
                raise InvalidArgument(f"signature '{entry.signature}' of the compiled model has functions with other "
                                      f"{what}: '{first.function}' and '{entry.function}'", hint=COMPILE_AGAIN)
            if len(set(names)) < len(names):
                raise InvalidArgument(f"signature '{entry.signature}' of the compiled model has {what} of one name: "
                                      f"{', '.join(names)}", hint=COMPILE_AGAIN)


def _common(ports: Sequence[Port]) -> Port:
    info = ValueInfo(ports[0].meta)
    for port in ports[1:]:
        info = common_info(info, ValueInfo(port.meta))
    return ports[0]._replace(meta=info.meta)


def _check_requirements(model: CompiledModel, owner: Runtime) -> None:
    for needed in model.requirements:
        _check_plugin(needed, owner.plugins.loaded_record(needed.plugin), owner.plugins.distributions())
    for name in model.program.requires:
        try:
            owner.host.open(name)
        except HealdError as error:
            raise FailedPrecondition(f"the model is compiled for {name}: {error}", device=name,
                                     hint=error.hint) from error


def _check_plugin(needed: Requirement, record: PluginRecord | None, installed: Collection[str]) -> None:
    if record is None:
        raise FailedPrecondition(f"the model needs plugin {needed.plugin} for its {needed.use}",
                                 hint=named_hint(needed.distribution, installed) or FOREIGN_PLUGIN_HINT)
    if record.status != "ok":
        raise FailedPrecondition(f"the model needs plugin {needed.plugin}, which is {record.status}: {record.reason}",
                                 hint=record.remedy or named_hint(record.distribution or "", installed))
    if record.version and _numbers(record.version) < _numbers(needed.version):
        raise FailedPrecondition(f"the model is compiled with plugin {needed.plugin} {needed.version}, "
                                 f"installed is {record.version}",
                                 hint=named_hint(record.distribution or "", installed))


def _numbers(version: str) -> tuple[tuple[int, str], ...]:
    """Return the numbers of a version in a form that compares as they do; a file may have them of any length."""
    numbers = (part.lstrip("0") for part in version.split(".") if part.isdecimal() and part.isascii())
    return tuple((len(number), number) for number in numbers)
