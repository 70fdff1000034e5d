"""FusedBinding: binds several calls of a function at once, where a pack has a kernel for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..contract.device import STREAM
from ..contract.device_limits import DeviceLimits
from ..contract.kernel import Bind, Declined, FusionDef, FusionRefusal, PatternDef
from ..executor.calls.kernel_call import KernelCall
from ..host.host import Host
from ..program.host_program import HOST, RUNTIME_CODES, Call, ProgramFunction
from ..values.tensor import ValueInfo
from .binder import bind
from .candidates import Candidates
from .fusion import FusionGroup, find_fusion_groups, find_refusals, fused_call, fused_ops
from .patterns import find_patterns
from .shared_by_links import SharedByLinks
from .stored_constants import stored_constants_source


class FusedBinding:
    """`infos`: the facts about the function's registers.

    `refusals`: the fusions and patterns that were not used, complete once all `calls` are made.
    """

    def __init__(
        self, function: ProgramFunction, infos: Sequence[ValueInfo], candidates: Candidates, host: Host,
        shared: SharedByLinks,
    ) -> None:
        self._function = function
        self._infos = infos
        self._metas = [info.meta for info in infos]
        self._kept = {*function.results, *function.targets}
        self._candidates = candidates
        self._host = host
        self._shared = shared
        self.refusals: list[FusionRefusal] = []

    def calls(self, calls: list[Call]) -> Iterator[Call | KernelCall]:
        """Yield the calls from last to first, in reverse of an order in which they may run; a fused call comes bound.

        Networks have their largest weights at the end. Kernels that pack these in threads then work while the rest
        binds.
        """
        calls, done = self._replace_patterns(calls)
        fusible = any(self._offered_fusions(call) for call in calls)
        fusion_groups: dict[int, FusionGroup] = {}
        if fusible:
            fusion_groups, home = find_fusion_groups(calls, self._metas, self._kept, self._applicable_fusions)
            self.refusals += find_refusals(calls, self._metas, self._kept, self._applicable_fusions, home)
        inner = {id(call) for group in fusion_groups.values() for call in group.calls_with_lead}
        for call in reversed(calls):
            if id(call) not in inner:
                yield done.get(id(call), call)
            elif id(call) in fusion_groups:
                yield from self._fuse_group(fusion_groups[id(call)])

    def _replace_patterns(self, calls: list[Call]) -> tuple[list[Call], dict[int, KernelCall]]:
        """Replace calls by the patterns that cover them. Returns the calls, and the bound pattern calls by id."""
        if not any(self._offered_patterns(call) for call in calls):
            return calls, {}
        done: dict[int, KernelCall] = {}
        replacements: dict[int, Call | None] = {}  # id of a call -> its replacement
        for pattern, members in find_patterns(calls, self._infos, self._kept, self._applicable_patterns,
                                              self.refusals.append):
            bound = self._bind_at_once(pattern, members)
            if isinstance(bound, FusionRefusal):
                self.refusals.append(bound)
            else:
                replacements |= {id(member): None for member in members} | {id(members[-1]): bound.call}
                done[id(bound.call)] = bound
        return [left for call in calls if (left := replacements.get(id(call), call)) is not None], done

    def _fuse_group(self, group: FusionGroup) -> Iterator[Call | KernelCall]:
        """Yield the group from last to first, in as few calls as its pack's kernels need for it."""
        refusals: list[FusionRefusal] = []
        for fusion, calls in group.attempts():
            bound = self._bind_at_once(fusion, calls)
            if isinstance(bound, FusionRefusal):
                refusals.append(bound)
            else:
                self._note_refusals(refusals, len(calls))
                position = group.calls_with_lead.index(calls[-1])
                yield from group.calls_with_lead[:position:-1]
                yield bound
                yield from (member for member in group.calls_with_lead[position::-1] if member not in calls)
                return
        self._note_refusals(refusals, 1)
        yield from reversed(group.calls_with_lead)

    def _note_refusals(self, refusals: Sequence[FusionRefusal], fused_count: int) -> None:
        """Keep the refusals of more calls than were fused. Of those with one reason only the first has most calls."""
        larger = (refusal for refusal in refusals if len(refusal.nodes) > fused_count)
        self.refusals += {(refusal.pattern, refusal.reason): refusal for refusal in reversed([*larger])}.values()

    def _bind_at_once(self, what: FusionDef | PatternDef, calls: list[Call]) -> KernelCall | FusionRefusal:
        """Return one bound call for all of these, or the refusal of the kernel or of the device's limits."""
        args, ops = fused_ops(calls, self._metas)
        call = fused_call(what.kernel, calls, args)
        device, name = self._candidates.devices[call.stream], self._candidates.names[call.stream]
        inputs, outputs = tuple(self._infos[r] for r in args), (self._metas[call.results[0]],)
        is_on_device = not device.attributes.get("host_visible")
        metas = (*(info.meta for info in inputs), *outputs)
        over_limit = DeviceLimits.of(device.attributes).refusal(metas) if is_on_device else None
        if over_limit:
            return _refusal(call, over_limit)
        stored = stored_constants_source(self._shared.stored, (self._function.name, call.node, name), inputs)
        node = Bind(call.node, call.op, call.attrs, inputs, outputs, device, STREAM, self._shared.prepared, ops,
                    self._shared.resources.get, self._function.name, ask=self._host.memory.ask, stored=stored,
                    own=partial(self._shared.own, device))
        bound = bind(what.kernel, node, name)
        if isinstance(bound, Declined) or bound is None:
            return _refusal(call, "it gives no reason" if bound is None else bound.reason)
        memory = HOST if self._candidates.works_on_host(call) else call.stream
        return KernelCall(call, device, memory, what.kernel, bound)

    def _offered_fusions(self, call: Call) -> Sequence[FusionDef]:
        """The fusions that the pack of this call offers."""
        if call.stream == HOST or call.code in RUNTIME_CODES or call.fused:
            return ()
        return self._host.registries.kernels.fusions(self._candidates.devices[call.stream].type, call.pack)

    def _offered_patterns(self, call: Call) -> Sequence[PatternDef]:
        """The patterns that the pack of this call offers."""
        if call.stream == HOST or call.code in RUNTIME_CODES or call.fused:
            return ()
        return self._host.registries.kernels.patterns(self._candidates.devices[call.stream].type, call.pack)

    def _applicable_patterns(self, call: Call) -> Sequence[PatternDef]:
        """The patterns of the call's pack, empty when a pattern must not cover this call."""
        patterns = self._offered_patterns(call)
        return patterns if patterns and self._is_plain(call) else ()

    def _applicable_fusions(self, call: Call) -> list[FusionDef]:
        """The fusions of the call's pack that may take this call: it must be plain and all its shapes known."""
        able = [f for f in self._offered_fusions(call) if call.op in f.ops or call.op in f.heads or call.op in f.leads]
        return able if able and self._is_plain(call) else []

    def _is_plain(self, call: Call) -> bool:
        """True when dtypes and shapes of a call are all known, and its kernel depends on its arguments alone.

        A kernel on host memory, one with state, one that runs functions, and one that keeps or returns its arguments
        cannot be part of a fusion.
        """
        metas = self._metas
        if not all(metas[r].is_static and metas[r].dtype.itemsize for r in (*call.args, *call.results)):
            return False
        binder = self._candidates.binder(call)
        kernel = binder.candidates[0]
        return not (kernel.host or kernel.host_outputs or kernel.retains or kernel.returns or kernel.step
                    or binder.op.stateful)


def _refusal(call: Call, reason: str) -> FusionRefusal:
    """The refusal of a fused call, which stops at its last node."""
    return FusionRefusal(call.code, call.node, reason, call.fused)
