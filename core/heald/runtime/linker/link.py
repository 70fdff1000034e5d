"""Link: binds a function of a host program to the kernels of this host, for given metadata of its arguments.

All static work happens here, once. Shapes are inferred, known values are folded, and kernels are bound; the executable
plans memory. A call without static shapes binds in the run (see `LazyKernel`).

A program is data, and this is the only place where it meets kernels. A mapped file is compared with its state at
loading before each link; runs look at no file.
"""

# The theory of the linker
#
# `Linker.link` works in steps, each over the results of the earlier ones:
#
#   splice    the calls of groups take the place of the calls that name compilers
#   infer     facts about all registers, in program order; calls with known inputs are folded on the way
#   aliases   consumers of an alias in host memory read its source
#   needed    calls with effects, or with an unknown result that has a consumer
#   groups    compilers are asked for kernels of their groups; other groups stay the calls that they are
#   bind      from the last call to the first; a fused call comes bound
#   copy      one more call for each feed that a kernel retains
#   presets   the known values that bound calls read, in the memory of their readers
#
# The facts about a call of an op decide about its form:
#
#   facts known       on host memory                    on another device
#   all               KernelCall, ViewCall or refusal   KernelCall, ViewCall or refusal
#   not all           LazyCall, which binds in the run  refusal: its kernels need static shapes
#   refused, but      LazyCall, which raises the error  FailingCall, as are all calls behind it
#     maybe skipped     when it runs
#   all, but huge     LazyCall                          KernelCall, ViewCall or refusal
#
# Invariants
# - The link changes neither the program nor the graph. It adds to its SharedByLinks only.
# - A register in `_frozen` depends on constants alone, so its value is the same in every link of the program. Only such
#   values are shared through SharedByLinks.
# - A call with incoming control edges runs even if its results are known, since the work before it must happen.
# - All refusals of a link are raised together, in NodesDeclined. One new placement answers them all.
# - A feed is wrapped only if every run waits for the devices. Another caller might write the feed meanwhile.
# - A callee is linked with its caller, for the types of the call. It is linked at its first call instead in three
#   cases: it calls itself, MOST_NESTED_LINKS functions are around it, or the BodyBudget is used up. So a link ends.
#
# Rule: a decision that needs a shape, a kernel or a device is made here or in `attach`. A run gets its result.

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import FailedPrecondition, HealdError, InvalidArgument, PluginError, Unimplemented
from ..contract.device import own_method, reaches
from ..contract.kernel import KernelDef
from ..contract.structural import CHAIN_CODES, KEEPING_CODES, SEND_CODE
from ..executor.calls.bound_call import BoundCall
from ..executor.calls.kernel_call import KernelCall
from ..executor.calls.view_call import ViewCall
from ..executor.executable import Executable, LinkReport
from ..executor.host_array import stand_in
from ..host.kernel_context import KernelContext
from ..host.resources import Resources
from ..program.deferred_errors import DeferredErrors
from ..program.host_program import (
    CONSTANT,
    COPY,
    EVENT,
    GROUP,
    HOST,
    RUNTIME_CODES,
    Call,
    ProgramDef,
    ProgramFunction,
)
from ..program.infer import infer_registers
from ..support.mapped_file import check_unchanged
from ..values.foreign_array import foreign_feed_error
from ..values.tensor import TensorMetadata, ValueInfo, constant_info
from .binder import Binder, LazyKernel, check_aliases
from .candidates import Candidates
from .checked_memory import check_memory
from .folding import fold_call, is_worth_folding, laid_out_bytes
from .fused_binding import FusedBinding
from .known_values import KnownValues
from .part_views import replace_with_part_views
from .result_inference import MOST_NESTED_LINKS, RESULT_RULES, BodyBudget, may_skip_function
from .scratch_kernel import add_scratch_registers
from .shared_by_links import SharedByLinks

if TYPE_CHECKING:
    from ..contract.host_kernel import Callee
    from ..executor.calls.lazy_call import LazyCall
    from ..executor.calls.op_call import OpCall
    from ..host.host import Host
    from ..program.groups import Group, GroupOutcome
    from .group_binding import CallsWithGroups

Refusal = tuple[str, str, str, str]  # node, device, pack, reason
LARGEST_BOUND_AT_LINK = 1 << 28  # bytes of a tensor beyond which its kernel binds in the run, not in the link


def check_nothing() -> None:
    """The default check of a link: the link runs to its end."""


class NodesDeclined(Unimplemented):
    """Every kernel on the assigned device declined these nodes. `refusals` has the reasons."""

    def __init__(self, refusals: list[Refusal]) -> None:
        node, device, pack, reason = refusals[0]
        super().__init__(f"no kernel takes this node: {pack}: {reason}", node=node, device=device,
                         hint="place it on another device")
        self.refusals = refusals


class LinkedBody:
    """A function that is linked for the one call that it serves."""

    def __init__(self, name: str, executable: Executable) -> None:
        self.name = name
        self.executable: Any = executable


class LinkedFunction:
    """A function of a program, linked on first use."""

    def __init__(
        self, program: ProgramDef, name: str, host: Host, functions: dict[str, Callee],
        resources: Resources,
    ) -> None:
        self.name = name
        self._program = program
        self._host = host
        self._functions = functions
        self._resources = resources
        self._executable: Executable | None = None

    @property
    def executable(self) -> Executable:
        if self._executable is None:  # two threads may link it at once: either link is right
            shared = SharedByLinks(self._functions, self._resources)
            self._executable = link(self._program, self._host, function=self.name, shared=shared,
                                    checks_arguments=True)
        return self._executable


def link(
    program: ProgramDef, host: Host, arguments: Sequence[TensorMetadata] | None = None,
    *, function: str = "main", shared: SharedByLinks | None = None, waits: bool = False, fuses: bool = True,
    check: Callable[[], object] = check_nothing, foreign_feeds: frozenset[int] = frozenset(),
    checks_arguments: bool = False,
) -> Executable:
    """Bind a function of the program for arguments of this metadata (default: as far as the program knows them).

    `shared`: the same object for all links of one program.
    `waits`: True when every run waits for the devices at its end. A value that is copied out for the caller alone then
        needs no wait of its own.
    `fuses`: True to ask packs for kernels that do several calls at once.
    `check`: called once per call of the program; it raises to end the link.
    `foreign_feeds`: the arguments that are ForeignArrays, each in the memory of the device that reads it.
    `checks_arguments`: as of Executable.

    Raises NodesDeclined, InvalidArgument when metadata contradicts an op, and FailedPrecondition when a mapped file
    with constants has changed.
    """
    check_unchanged(program.constants)
    linked_function = program.functions[function]
    infos = [ValueInfo(meta) for meta in arguments or linked_function.arg_metas]
    shared = SharedByLinks({}, Resources()) if shared is None else shared
    linker = Linker(program, linked_function, host, shared, infos, waits, fuses, check,
                    foreign_feeds=foreign_feeds)
    bind_all = partial(linker.link, checks_arguments=checks_arguments)
    linked: Executable = KernelContext().run(bind_all)  # packs may start their threads
    return linked


class Linker:
    """The state of one link of a function, for arguments of which `arguments` is known.

    `enclosing`: the functions whose links this link is part of; `budget`: the one of the outermost.
    `is_conditional`: a run of the program may skip the function.
    """

    def __init__(
        self, program: ProgramDef, function: ProgramFunction, host: Host, shared: SharedByLinks,
        arguments: Sequence[ValueInfo], waits: bool, fuses: bool, check: Callable[[], object],
        enclosing: tuple[str, ...] = (), foreign_feeds: frozenset[int] = frozenset(),
        budget: BodyBudget | None = None, is_conditional: bool = False,
    ) -> None:
        self.arguments = tuple(arguments)
        self._budget = budget or BodyBudget.of(program)
        self._check = check
        self._waits = waits
        self._foreign_arguments = foreign_feeds
        self._fuses = fuses
        self._program = program
        self.groups: tuple[Group, ...] = ()
        if any(call.code == GROUP for call in function.kernels):
            from ..program.groups import splice  # few programs have groups

            function, self.groups = splice(function, program.functions)
        self._function = function
        self._host = host
        self._shared = shared
        self._enclosing = (*enclosing, function.name)
        self._candidates = Candidates(program, function.name, host, shared)
        self._declined: dict[str, list[tuple[str, str]]] = {}
        self._frozen: set[int] = set()  # registers with the same value in every link of this program
        self._calls: list[Call] = list(function.kernels)
        self._consumed: set[int] = set()  # registers with consumers
        self._bodies: dict[int, list[Linker]] = {}  # id of a call -> the links of its functions
        self._executables: list[Executable] = []  # of these
        self._derived: set[int] = set()  # results of calls of functions that are known to fit their types
        self._infos: list[ValueInfo] | None = None
        self._deferred_errors = DeferredErrors(function, is_conditional=is_conditional)

    @property
    def infos(self) -> list[ValueInfo]:
        """The facts about all registers, inferred at the first use."""
        if self._infos is None:
            self._infos = self._infer()
        return self._infos

    def _infer(self) -> list[ValueInfo]:
        function = self._function
        for call in function.kernels:
            if call.code == CONSTANT or (call.args and not call.is_host_kernel and self._frozen.issuperset(call.args)):
                self._frozen.update(call.results)
        fold = None if function.is_compiled else self._folded_outputs
        infos = infer_registers(function, self.arguments, self._program.constants, self._host.registries.ops, fold,
                                self._infer_results, self._deferred_errors.defers)
        self._deferred_errors.note_missing_results()
        return infos

    def needed_calls_and_values(self) -> tuple[list[Call], dict[int, ValueInfo]]:
        """Return the calls that runs need, before aliases and fusions, and the registers with known values."""
        infos, after_others = self.infos, self._results_after_control_edges()
        values = {r: info for r, info in enumerate(infos) if info.is_known and r not in after_others}
        self._calls = list(self._function.kernels)
        return self._needed_calls(values), values

    def body_linkers(self, call: Call) -> list[Linker]:
        """Return the links of a call's functions; none when they are linked at their first call."""
        return self._bodies.get(id(call), [])

    def memory(self) -> dict[int, int]:
        """For each register return the stream whose memory holds it, HOST for host memory."""
        return KnownValues(self._function, self._frozen, self._candidates, self._host, self._shared).memory()

    @property
    def function(self) -> ProgramFunction:
        return self._function

    @property
    def results(self) -> list[ValueInfo]:
        return [self.infos[register] for register in self._function.results]

    @property
    def never_returns(self) -> bool:
        """True when every call of the function raises an error that was deferred to the run."""
        return self.infos is not None and self._deferred_errors.end_function

    def link(self, *, checks_arguments: bool = False) -> Executable:
        self._check_foreign_arguments()
        function, infos = self._function, self.infos
        open_registers = set(range(len(function.arg_names))) | self._results_after_control_edges()
        values = {r: info for r, info in enumerate(infos) if info.is_known and r not in open_registers}
        self._calls = self._without_aliases(infos)
        bound_calls: list[BoundCall] = []
        refusals: list[Refusal] = []
        needed = self._needed_calls(values)
        compiled: Mapping[int, OpCall] = {}
        outcomes: tuple[GroupOutcome, ...] = ()
        if self.groups:
            needed, compiled, outcomes = self._bind_groups(needed)
        fused = FusedBinding(function, infos, self._candidates, self._host, self._shared)
        for call in fused.calls(needed) if self._fuses else reversed(needed):
            self._check()
            refused: list[Refusal] = []
            bound: BoundCall | None
            if isinstance(call, KernelCall):
                bound = call
            else:
                bound = compiled.get(id(call)) or self._bind(call, infos, refused)
            if bound is not None:
                bound_calls.append(bound)
            refusals = refused + refusals
        if refusals:
            raise NodesDeclined(refusals)
        bound_calls.reverse()
        metas = [info.meta for info in infos]
        constants = KnownValues(function, self._frozen, self._candidates, self._host, self._shared)
        memory = constants.memory()
        check_memory(function, bound_calls, memory, self._candidates, self._host.registries.ops)
        bound_calls = replace_with_part_views(bound_calls, metas, function.results, memory)
        bound_calls = add_scratch_registers(self._copy_retained_feeds(bound_calls, metas), metas)
        read = {r for bound in bound_calls for r in bound.registers_read}
        consumed = read.union(function.results) & values.keys()
        as_they_are = {r for r in consumed - read if memory[r] == HOST}  # results, which the run copies for the user
        presets = {r: constants.elements(r, values[r]) for r in as_they_are}
        presets |= {r: constants.preset(r, constants.elements(r, values[r]), memory[r]) for r in consumed - as_they_are}
        constants.await_uploads()
        unread = {r for bound in bound_calls for r in bound.call.args} & values.keys() - presets.keys()
        presets |= {r: stand_in(metas[r]) for r in unread}
        devices = dict(zip(self._program.requires, self._candidates.devices, strict=True))
        return Executable(function, metas, bound_calls, presets, devices, self._host,
                          LinkReport(self._declined, outcomes, fused.refusals), self._executables,
                          checks_arguments=checks_arguments)

    def _bind_groups(self, needed: list[Call]) -> CallsWithGroups:
        """Ask compilers for the kernels of the function's groups."""
        from .group_binding import GroupBinding  # few programs have groups

        binding = GroupBinding(self._function, self.infos, self.memory(), self._candidates, self._host, self._shared,
                               self._deferred_errors.error_of)
        return binding.bind(self.groups, needed)

    def _infer_results(self, call: Call, inputs: list[ValueInfo]) -> Sequence[ValueInfo]:
        """Return the facts about the results of a call of functions, and keep the links of these.

        Functions that call themselves, are nested too deep or are too many are linked when they are first called. A run
        then compares the results with their stated types.
        """
        if not self._has_inferred_results(call):
            return ()
        try:
            bodies, results = RESULT_RULES[call.code](call, partial(self._link_of_body, call), inputs)
        except HealdError as error:
            raise error.at(node=call.node or None, location=call.location)  # noqa: B904 - the same error, with its place
        if results and len(results) != len(call.results):
            raise InvalidArgument(f"the functions of {call.code} return {len(results)} values, the call has "
                                  f"{len(call.results)} results", node=call.node or None, location=call.location)
        self._bodies[id(call)] = bodies
        self._derived.update(call.results[: len(results)])
        return results

    def _has_inferred_results(self, call: Call) -> bool:
        return (call.code in RESULT_RULES and len(self._enclosing) <= MOST_NESTED_LINKS and self._budget.left > 0
                and set(self._enclosing).isdisjoint(call.functions))

    def _link_of_body(self, call: Call, index: int, arguments: Sequence[ValueInfo]) -> Linker:
        """Return the link of a call's function for these arguments."""
        name = call.functions[index]
        self._budget.left -= 1
        is_conditional = self._deferred_errors.may_skip(call) or may_skip_function(call.code, index)
        return Linker(self._program, self._program.functions[name], self._host, self._shared.of(name), arguments,
                      False, self._fuses, self._check, self._enclosing, budget=self._budget,
                      is_conditional=is_conditional)

    def _copy_retained_feeds(self, bound_calls: Sequence[BoundCall], metas: list[TensorMetadata]) -> list[BoundCall]:
        """Add a copy, in a new register, of each feed that a kernel retains: after the run the user may change it."""
        feeds = set(range(len(self._function.arg_names)))
        calls: list[BoundCall] = []
        for bound in bound_calls:
            args = list(bound.call.args)
            feeds.update(bound.call.results[o] for o, i in bound.alias.items() if args[i] in feeds)
            for i in sorted(i for i in bound.retained if args[i] in feeds):
                copy = Call(COPY, (args[i],), (len(metas),), {"to": "host"}, bound.call.stream, bound.call.node)
                from ..executor.calls.feed_copy import RetainedFeedCopy

                calls.append(RetainedFeedCopy(copy, bound.device))
                metas.append(metas[args[i]])
                args[i] = copy.results[0]
            calls.append(replace(bound, call=bound.call._replace(args=tuple(args))) if bound.retained else bound)
        return calls

    def _results_after_control_edges(self) -> set[int]:
        """Return the results of calls with incoming control edges, and all values computed from them.

        Such calls run even when their results are known beforehand, since the work before them must happen.
        """
        registers: set[int] = set()
        for call in self._function.kernels:
            if call.after or not registers.isdisjoint(call.args):
                registers.update(call.results)
        return registers

    def _without_aliases(self, infos: Sequence[ValueInfo]) -> list[Call]:
        """Return the function's calls, with arguments that are mere aliases in host memory replaced by their sources.

        A consumer of one output of an IdentityN then does not depend on the other outputs.
        """
        calls = []
        source: dict[int, int] = {}
        for call in self._function.kernels:
            if not source.keys().isdisjoint(call.args):
                call = call._replace(args=tuple(source.get(a, a) for a in call.args))
            calls.append(call)
            if (call.is_host_kernel or call.code in RUNTIME_CODES or call.after
                    or not self._candidates.works_on_host(call)):
                continue
            binder = self._candidates.binder(call)
            if not all(infos[call.args[i]].is_known for i in binder.value_inputs()):
                continue
            for result, argument in binder.candidates[0].aliases(call.attrs).items():
                if result not in range(len(call.results)) or argument not in range(len(call.args)):
                    continue  # the bind of the call refuses it
                meta = infos[call.results[result]].meta
                if meta.is_static and meta == infos[call.args[argument]].meta:
                    source[call.results[result]] = call.args[argument]
        return calls

    def _needed_calls(self, values: Mapping[int, Any]) -> list[Call]:
        """Return the calls that have unknown results with consumers, or effects on the outside."""
        consumed = self._consumed = {*self._function.results, *self._function.targets}
        needed = []
        for call in reversed(self._calls):
            acts = call.is_host_kernel or (call.code not in RUNTIME_CODES and self._candidates.binder(call).op.stateful)
            if acts or any(r in consumed and r not in values for r in call.gives):
                needed.append(call)
                consumed.update(call.needs)
        return needed[::-1]

    def _folded_outputs(
        self, call: Call, inputs: list[ValueInfo], outputs: tuple[ValueInfo, ...]
    ) -> tuple[ValueInfo, ...]:
        """Return the outputs, with their values when all inputs are known and computing them now is worth it."""
        self._check()
        frozen = self._frozen.issuperset(call.args)
        if not is_worth_folding(inputs, outputs):
            return outputs
        if frozen and call.results in self._shared.folded:
            return tuple(map(constant_info, self._shared.folded[call.results]))
        of_shapes = all(info.dtype.kind in "iub" and info.rank in (0, 1) for info in (*inputs, *outputs))
        is_foldable = frozen or of_shapes or self._candidates.works_on_host(call)
        binder = self._candidates.folding_binder(call) if is_foldable else None
        if binder is None or binder.op.stateful:
            return outputs
        values = fold_call(binder, inputs, outputs)
        if values is None:
            return outputs
        if frozen:
            self._shared.folded[call.results] = values
        return tuple(map(constant_info, values))

    def _bind_host(self, call: Call) -> BoundCall:
        from .host_binding import make_host_kernel_function

        kernel = self._host.registries.host_kernels.get(call.code)
        types = self._function.register_types
        stated = {i: types[r] for i, r in enumerate(call.results) if r not in self._derived}
        callees = self._link_callees(call)
        run = make_host_kernel_function(kernel, call, stated, callees, self._host.debug.check_types)
        never_pends = call.code in CHAIN_CODES or (
            id(call) in self._bodies and not any(callee.executable.is_asynchronous for callee in callees))
        if call.code in KEEPING_CODES:
            never_pends = not kernel.step  # other calls than this one may call its functions
        flags = KernelDef(call.code, "", kernel.plugin, make_host_kernel_function, asynchronous=kernel.asynchronous,
                          nonstrict=kernel.nonstrict or call.nonstrict, step=kernel.step)
        kept = (0,) if call.code == SEND_CODE else range(len(call.args)) if call.code in KEEPING_CODES else ()
        retained = frozenset(kept)  # a transport sends its value, and a dataset calls its functions, after the run
        from ..executor.calls.host_kernel_call import HostKernelCall

        return HostKernelCall(call, flags, run, never_pends, retained=retained)

    def _link_callees(self, call: Call) -> list[Callee]:
        """Return the functions of a call, linked for it or, on first use, for all calls."""
        if id(call) in self._bodies:
            linked = [body.link() for body in self._bodies[id(call)]]
            self._executables += linked
            return [LinkedBody(name, executable) for name, executable in zip(call.functions, linked, strict=True)]
        functions, resources = self._shared.functions, self._shared.resources
        for name in call.functions:
            functions.setdefault(name, LinkedFunction(self._program, name, self._host, functions, resources))
        return [functions[name] for name in call.functions]

    def _check_foreign_arguments(self) -> None:
        """Raises InvalidArgument where something else reads a foreign argument than devices that can adopt it."""
        function = self._function
        for call in function.kernels if self._foreign_arguments else ():
            for register in self._foreign_arguments.intersection(call.args):
                is_entry = call.code == COPY and call.attrs["to"] == "device"
                if not is_entry or own_method(self._candidates.devices[call.stream], "adopt") is None:
                    where = self._candidates.devices[call.stream].type if is_entry else "the host"
                    raise foreign_feed_error(function.arg_names[register], f"node '{call.node}' reads it on {where}")
        for register in self._foreign_arguments.intersection(function.results):
            raise foreign_feed_error(function.arg_names[register], "it is fetched")

    def _bind_transfer(self, call: Call, infos: Sequence[ValueInfo]) -> BoundCall | None:
        if not _has_size(infos[call.args[0]].meta):
            return None  # the producer or consumer on the device is refused instead
        from ..executor.calls.copy_in import CopyIn
        from ..executor.calls.copy_out import CopyOut
        from ..executor.calls.peer_copy import PeerCopy
        from ..executor.calls.wrapped_feed import WrappedFeed

        if call.attrs["to"] == "device":
            device = self._candidates.devices[call.stream]
            if "from" in call.attrs:
                source = self._candidates.devices[call.attrs["from"]]
                if not reaches(device, source):
                    raise FailedPrecondition(f"device {device.uid} does not reach the memory of {source.uid}",
                                             node=call.node, hint="compile the model on this machine")
                return PeerCopy(call, device, call.stream, source)
            # A caller that does not wait for the devices may write a feed while they still read it.
            wraps = (self._waits and call.args[0] < len(self._function.arg_names)
                     and own_method(device, "wrap") is not None)
            form = WrappedFeed if wraps or call.args[0] in self._foreign_arguments else CopyIn
            return form(call, device, call.stream)
        is_awaited = not self._waits or any(call.results[0] in other.args for other in self._function.kernels)
        return CopyOut(call, self._candidates.devices[call.stream], is_awaited)

    def _bind(
        self, call: Call, infos: Sequence[ValueInfo], refusals: list[Refusal]
    ) -> BoundCall | None:
        """Return the call with its kernel, or None when every kernel declined; `refusals` then receives the reasons."""
        if call.is_host_kernel:
            return self._bind_host(call)
        error = self._deferred_errors.error_of(call)
        if error is not None and call.stream != HOST and not self._candidates.works_on_host(call):
            memory = HOST if call.attrs.get("to") == "host" else call.stream
            from ..executor.calls.failing_call import FailingCall

            return FailingCall(call, self._candidates.devices[call.stream], memory, error)
        if call.code == COPY:
            return self._bind_transfer(call, infos)
        if call.code == EVENT:
            from ..executor.calls.event_call import EventCall

            return EventCall(call, self._candidates.devices[call.stream])
        binder = self._candidates.binder(call)
        inputs = [infos[a] for a in call.args]
        outputs = [infos[r].meta for r in call.results]
        needed = [number for number, register in enumerate(call.results) if register in self._consumed]
        visible = self._candidates.works_on_host(call)
        memory = self._candidates.result_memory(call)
        if not visible and (why := _missing_fact(binder, inputs, outputs)):
            packs = {k.pack for k in self._host.registries.kernels.candidates(call.op, binder.device.type)}
            refusals += [(call.node, binder.device_name, pack, why) for pack in sorted(packs)]
            return None
        returns = binder.candidates[0].returns
        ready = all(i.meta.is_static for i in inputs) and (returns or all(o.is_static for o in outputs))
        if visible and ready and _are_huge(inputs, outputs):
            ready = False  # some kernels compute tables of this size when they bind
        if not ready or call in self._deferred_errors or not all(inputs[i].is_known for i in binder.value_inputs()):
            return _lazy_call(call, binder, memory, inputs, needed)
        try:
            kernel, bound, declined = binder.ask_candidates(inputs, outputs, needed)
        except HealdError as error:
            if not visible or not self._deferred_errors.defers(call, error):
                raise
            return _lazy_call(call, binder, memory, inputs, needed)
        if kernel is None:
            refusals += [(call.node, binder.device_name, pack, reason) for pack, reason in declined]
            return None
        if declined:
            self._declined[call.node] = declined
            call = call._replace(code=f"{kernel.pack}.{call.op}")  # traces show it
        retained, stateful = binder.retained_inputs([kernel]), binder.op.stateful
        if bound is None:
            return ViewCall(call, binder.device, memory, kernel, alias=kernel.aliases(call.attrs), retained=retained,
                            stateful=stateful)
        return KernelCall(call, binder.device, memory, kernel, bound, retained=retained, stateful=stateful)


def _lazy_call(
    call: Call, binder: Binder, memory: int, inputs: Sequence[ValueInfo], needed: Collection[int]
) -> LazyCall:
    """Return the call in the form that binds in the run."""
    from ..executor.calls.lazy_call import LazyCall  # the rarer forms are imported with their first call

    for kernel in binder.candidates:
        try:
            check_aliases(kernel, call.attrs, len(inputs), len(call.results))
        except PluginError as error:
            raise error.at(node=call.node, op=call.op, device=binder.device_name) from None
    may_alias = {o: i for kernel in binder.candidates for o, i in kernel.aliases(call.attrs).items()}
    return LazyCall(call, binder.device, memory, binder.candidates[0], LazyKernel(binder, inputs, needed),
                    alias=may_alias, retained=binder.retained_inputs(binder.candidates), stateful=binder.op.stateful)


def _are_huge(inputs: Sequence[ValueInfo], outputs: Sequence[TensorMetadata]) -> bool:
    """True when outputs, or known inputs as a kernel reads them, take more memory than a link may."""
    metas = [*outputs, *(info.meta for info in inputs if info.is_known)]
    return any(meta.is_static and laid_out_bytes(meta) > LARGEST_BOUND_AT_LINK for meta in metas)


def _has_size(meta: TensorMetadata) -> bool:
    return meta.is_static and meta.dtype.itemsize > 0


def _missing_fact(binder: Binder, inputs: Sequence[ValueInfo], outputs: Sequence[TensorMetadata]) -> str | None:
    """Return a missing fact about this call that kernels outside host memory need, or None."""
    args = [tensor.arg for tensor in binder.op.expand_inputs(binder.call.attrs)]
    host = binder.candidates[0].host
    there = [i.meta for i, arg in zip(inputs, args, strict=True) if arg not in host] + [*outputs]
    sizeless = next((meta.dtype.name for meta in there if not meta.dtype.itemsize), None)
    if sizeless is not None:
        return f"{sizeless} values have no fixed size"
    if not all(meta.is_static for meta in (*there, *(i.meta for i in inputs))):
        return "shapes known only while it runs" if binder.rule else "no metadata function tells its shapes"
    open_value = next((args[i] for i in sorted(binder.value_inputs()) if not inputs[i].is_known), None)
    return f"elements of '{open_value}' known only while it runs" if open_value is not None else None
