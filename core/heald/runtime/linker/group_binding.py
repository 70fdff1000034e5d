"""Group binding: asks compilers for the kernels of their groups, with the facts of one link.

A compiler that declines, or is not in use, leaves the calls of its group as they are: the linker binds them one by one.
A group in host memory whose shapes depend on data becomes one call, whose compiler is asked in runs (`lazy_group`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import HealdError, PluginError
from ..contract.compiler import CompilerEntry
from ..contract.device import STREAM, Device
from ..contract.device_limits import DeviceLimits
from ..contract.kernel import Attachable, Bind, Declined, KernelDef
from ..executor.calls.kernel_call import KernelCall
from ..executor.calls.lazy_call import LazyCall
from ..executor.calls.op_call import OpCall
from ..host.host import Host
from ..program.groups import Group, GroupOutcome, in_place_of
from ..program.host_program import HOST, Call, ProgramFunction
from ..support.remedy import compiler_remedy
from ..values.tensor import ValueInfo
from .binder import bind
from .candidates import Candidates
from .fusion import fused_ops
from .shared_by_links import SharedByLinks
from .stored_constants import stored_constants_source

if TYPE_CHECKING:
    from .lazy_group import AskCompiler, LazyGroup

NO_REASON = "it gives no reason"
NOT_STATIC = "shapes known only while it runs"


class CallsWithGroups(NamedTuple):
    """The calls of a function after compilers were asked: one call for each kernel of theirs.

    `kernels`: by id the calls of groups, bound.
    """

    calls: list[Call]
    kernels: Mapping[int, OpCall]
    outcomes: tuple[GroupOutcome, ...]


class GroupBinding:
    """`infos`: the facts about the function's registers. `memory`: the stream whose memory holds each register.

    `error_of`: returns the error that a call of the function raises when it runs, if there is one.
    """

    def __init__(
        self, function: ProgramFunction, infos: Sequence[ValueInfo], memory: Mapping[int, int], candidates: Candidates,
        host: Host, shared: SharedByLinks, error_of: Callable[[Call], HealdError | None],
    ) -> None:
        self._function = function
        self._infos = infos
        self._memory = memory
        self._candidates = candidates
        self._host = host
        self._shared = shared
        self._error_of = error_of
        self._compilers = {entry.name: entry for entry in host.registries.enabled_compilers()}

    def bind(self, groups: Sequence[Group], calls: list[Call]) -> CallsWithGroups:
        """Ask for a kernel of each group. Raises PluginError for a compiler that fails or returns no kernel."""
        kernels: dict[int, OpCall] = {}
        outcomes: list[GroupOutcome] = []
        for group in groups:
            members = [call for call in calls if not group.registers.isdisjoint(call.gives)]
            bound = self._bind_group(group, members, calls) if members else "none of its nodes is left to run"
            refusal = bound if isinstance(bound, str) else ""
            asks_in_runs = not isinstance(bound, KernelCall | str)
            outcomes.append(GroupOutcome(group.compiler, group.name, tuple(call.node for call in members), refusal,
                                         asks_in_runs))
            if not isinstance(bound, str):
                calls = _behind_group(in_place_of(calls, members, bound.call), members, bound.call)
                kernels[id(bound.call)] = bound
        return CallsWithGroups(calls, kernels, tuple(outcomes))

    def _bind_group(self, group: Group, members: Sequence[Call], calls: Sequence[Call]) -> OpCall | str:
        """Return the bound call of a group, or the reason why its calls are linked in place."""
        compiler = self._compilers.get(group.compiler)
        if compiler is None:
            return "no such compiler is in use"
        device_type = self._candidates.devices[group.stream].type
        if compiler.device_type != device_type:
            return f"the compiler serves {compiler.device_type}, not {device_type}"
        allocates = compiler.permits("allocates")
        inputs, _ = fused_ops(members, [info.meta for info in self._infos])
        reason = self._obstacle(compiler, members, inputs, allocates=allocates)
        if reason and reason != NOT_STATIC:
            return reason
        call = self._group_call(group, members, calls, inputs)
        memory = HOST if self._candidates.works_on_host(call) else group.stream
        if any(self._memory[r] != memory for r in call.results):
            return "its results are in several memories"
        device, retained = self._candidates.devices[group.stream], self._retained_inputs(members, inputs)
        ask = partial(self._ask, compiler, group, call, members)
        if reason:
            lazy = None if memory != HOST else self._lazy_group(call, members, compiler, ask)
            kernel = self._kernel_of(compiler, call, device)
            return reason if lazy is None else LazyCall(call, device, memory, kernel, lazy, retained=retained,
                                                        stateful=self._has_state(members))
        kernel, bound = ask(self._infos)
        if isinstance(bound, Declined):
            return str(bound.reason or NO_REASON)
        return KernelCall(call, device, memory, kernel, bound, retained=retained, stateful=self._has_state(members))

    def _lazy_group(
        self, call: Call, members: Sequence[Call], compiler: CompilerEntry, ask: AskCompiler
    ) -> LazyGroup | None:
        """Return the group in the form that asks its compiler in runs; None where its nodes cannot run within it."""
        from .lazy_group import LazyGroup, obstacle_to_asking_in_runs  # few groups have open shapes

        binders = [self._candidates.binder(member) for member in members]
        if obstacle_to_asking_in_runs(binders):
            return None
        return LazyGroup(call, members, binders, self._infos, compiler, ask)

    def _ask(
        self, compiler: CompilerEntry, group: Group, call: Call, members: Sequence[Call], infos: Sequence[ValueInfo]
    ) -> tuple[KernelDef, Callable[..., Any] | Attachable | Declined]:
        """Ask a compiler for the kernel of a group, with these facts about the function's registers."""
        inputs, ops = fused_ops(members, [info.meta for info in infos])
        number = {register: i for i, register in enumerate((*inputs, *(r for m in members for r in m.results)))}
        device, name = self._candidates.devices[group.stream], self._candidates.names[group.stream]
        input_infos = tuple(infos[r] for r in inputs)
        outputs = tuple(infos[r].meta for r in call.results)
        stored = stored_constants_source(self._shared.stored, (self._function.name, call.node, name), input_infos)
        node = Bind(call.node, call.code, {}, input_infos, outputs, device, STREAM, self._shared.prepared, ops,
                    self._shared.resources.get, self._function.name, ask=self._host.memory.ask, stored=stored,
                    own=partial(self._shared.own, device), results=tuple(number[r] for r in call.results))
        kernel = self._kernel_of(compiler, call, device)
        bound = bind(kernel, node, name)
        if bound is None:
            raise PluginError(f"compile of {compiler} returned None for {group.name}", node=call.node,
                              plugin=compiler.plugin,
                              hint=f"return a kernel, or group.decline(reason); "
                                   f"{compiler_remedy(compiler.plugin, compiler.name)}")
        return kernel, bound

    def _kernel_of(self, compiler: CompilerEntry, call: Call, device: Device) -> KernelDef:
        return KernelDef(call.code, device.type, compiler.plugin, compiler.load().compile,
                         allocates=compiler.permits("allocates"), is_fusion=True, compiler=compiler.name)

    def _obstacle(
        self, compiler: CompilerEntry, members: Sequence[Call], inputs: Sequence[int], *, allocates: bool
    ) -> str:
        """Return the reason why a compiler cannot be asked in this link, empty when it can."""
        failing = next((call.node for call in members if self._error_of(call) is not None), None)
        if failing is not None:
            return f"node '{failing}' raises an error when it runs"
        open_inputs = any(not self._infos[r].meta.is_static for r in inputs)
        open_results = any(not self._infos[r].meta.is_static for call in members for r in call.results)
        if open_inputs or (open_results and not allocates):
            return NOT_STATIC
        if self._candidates.works_on_host(members[0]):
            return ""
        read = [*inputs, *(r for call in members for r in call.results)]
        registers = [register for register in read if self._memory[register] != HOST]
        if any(not self._infos[r].dtype.itemsize for r in registers):
            return "a value without fixed size is in no memory but the host's"
        limits = DeviceLimits.of(self._candidates.devices[members[0].stream].attributes)
        if refusal := limits.refusal([self._infos[r].meta for r in registers]):
            return refusal
        if allocates:
            return f"compiler {compiler.name} allocates results, which a kernel does in host memory alone"
        return ""

    def _group_call(
        self, group: Group, members: Sequence[Call], calls: Sequence[Call], inputs: tuple[int, ...]
    ) -> Call:
        """Return the call that replaces the members. Its results are the values that others read."""
        inside = {register for call in members for register in call.gives}
        others = [call for call in calls if inside.isdisjoint(call.gives)]
        read = {r for call in others for r in call.args} | {*self._function.results, *self._function.targets}
        results = tuple(r for call in members for r in call.results if r in read)
        chain = next((call.chain for call in members if call.chain is not None), None) if not results else None
        if not results and chain is None:
            results = members[-1].results[:1]
        after = tuple(dict.fromkeys(r for call in members for r in call.after if r not in inside))
        last = members[-1]
        return Call(f"{group.compiler}.{group.name}", inputs, results, {"_fused": tuple(c.node for c in members)},
                    group.stream, last.node, location=last.location, after=after, chain=chain)

    def _has_state(self, members: Sequence[Call]) -> bool:
        return any(self._host.registries.ops.get(call.op).stateful for call in members)

    def _retained_inputs(self, members: Sequence[Call], inputs: Sequence[int]) -> frozenset[int]:
        """Return the indices of the inputs that the members' own kernels keep: the group's kernel may keep them too."""
        kept = {call.args[i] for call in members if self._host.registries.ops.get(call.op).stateful
                for i in self._candidates.binder(call).retained_inputs(self._candidates.binder(call).candidates[:1])}
        return frozenset(i for i, register in enumerate(inputs) if register in kept)


def _behind_group(calls: Sequence[Call], members: Sequence[Call], group_call: Call) -> list[Call]:
    """Return the calls with control edges from the group's call in the place of edges from its members."""
    hidden = {r for call in members for r in call.gives}.difference(group_call.gives)
    done = group_call.gives[0]

    def moved(call: Call) -> Call:
        if call is group_call or hidden.isdisjoint(call.after):
            return call
        return call._replace(after=tuple(dict.fromkeys(done if r in hidden else r for r in call.after)))

    return [moved(call) for call in calls]


