"""FrameLayout: the properties of an executable's frames, as data, before the first frame exists.

A register is *fixed* when its payload is the same object in every run of a frame. Fixed are constants, buffers of the
memory plan, copies of small feeds, and views of these. A call whose registers are all fixed becomes a FrameCall over
these payloads. The other registers are *open*: a FrameCall reads them when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from ...errors import InvalidArgument
from ..program.host_program import COPY, HOST, ProgramFunction
from ..values.tensor import TensorMetadata
from .bound_call import BoundCall
from .host_array import given
from .memory_plan import MemoryPlan, Use, plan_memory
from .task_partition import TaskPartition

SMALL_FEED = 4096  # bytes up to which a feed is copied into the frame, which makes its register fixed
FEED_USERS = 3  # consumers from which on the copy pays: it costs as much as two open calls cost more than fixed ones


class FrameLayout:
    """All properties of an executable's frames that are known before the first frame exists.

    `flat`: for each FrameCall of the flat list the index of its call in `calls`.
    `late`: the indices of the calls that run in a Dataflow, behind asynchronous results.
    `tail`: the late calls that wait for every call that may pend. Nothing is pending when they start, so they run
        attached and in order, like the flat list. `tail_flat` has those with a FrameCall.
    `tail_needs`: the open registers that the tail reads and does not fill; `tail_gives`: the registers that it fills.
    `lasting`: the registers whose values outlive the calls before the tail.
    `attached`: the calls that each frame attaches: flat list, tail, and all fixed views, which leave nothing to run.
    `plan`: the memory plan of the flat list and the tail.

    `calls` has the calls in the order in which a run comes to them: flat list, other late calls, tail.
    """

    def __init__(
        self, function: ProgramFunction, metas: Sequence[TensorMetadata], calls: Sequence[BoundCall],
        presets: Mapping[int, Any], *, poison: bool,
    ) -> None:
        self.metas = metas
        self.late, self.tail, self.calls = _in_order_of_runs(calls)
        calls = self.calls
        for bound in calls:
            _check_shared(bound, metas)
        self.needs = [bound.call.needs for bound in calls]
        self.gives = [bound.call.gives for bound in calls]
        self.nonstrict = frozenset(n for n, c in enumerate(calls) if c.kernel is not None and c.kernel.nonstrict)
        self.presets = presets
        self.results = function.results
        self.opaque = {r for r, kind in enumerate(function.register_types) if isinstance(kind, str)}
        self.root = _roots(calls, len(metas))
        self.producer = {r: bound for bound in calls for r in bound.given}
        self.memory = [self.producer[r].memory if r in self.producer else HOST for r in range(len(metas))]
        self.is_asynchronous = any(call.may_pend or (call.kernel is not None and call.kernel.step and not call.settled)
                                   for call in calls)
        # Host kernels may hand over to a Dataflow, and poisoning follows the order of the list.
        self.is_in_order = poison or any(call.device is None for call in calls)
        arguments = range(len(function.arg_names))
        lent = self._lent(function.results, arguments)
        self._uses = self._find_uses(lent)
        self.plan = plan_memory(self._uses)
        self.copied_feeds = self._choose_copied_feeds(arguments, lent)
        given = {*presets, *self.plan.slot_of, *self.copied_feeds}
        self.fixed = self._find_fixed(given)
        self.open = (*(r for r in range(len(metas)) if r not in self.fixed or r in arguments), len(metas))
        views = {n for n, bound in enumerate(calls)
                 if bound.is_view and self.fixed.issuperset(bound.call.results)}
        in_order = [n for n in range(len(calls)) if n not in self.late or n in self.tail]
        self.attached = sorted(views.union(in_order))
        self.flat = tuple(n for n in in_order if n not in self.late and n not in views)
        self.tail_flat = tuple(n for n in in_order if n in self.tail and n not in views)
        self.tail_needs = self._outside(self.tail) - self.fixed
        self.tail_gives = frozenset(r for n in self.tail for r in calls[n].call.gives)
        self.lasting = dict.fromkeys((*function.results, *self._outside(self.tail)), -1)
        self.dying = self._find_dying({*function.results, *arguments})
        passed = {r for bound in calls if bound.passes_on for r in bound.call.results}
        self.copied_results = self._find_copied(function.results, given.union(arguments, self._retained(), passed))

    def plan_of(self, partition: TaskPartition) -> MemoryPlan:
        """Return the memory plan under a task partition. The planned registers are those of `plan`."""
        return plan_memory([self._uses[n] for n in self.flat], partition)

    def after(self, position: int, *, without: bool) -> list[int]:
        """Return the indices of the calls that have not run when the flat list stopped at this flat index.

        `without` leaves out the call at that index.
        """
        if not self.flat:
            return sorted(self.late)
        start = self.flat[position] + without
        return sorted(self.late.union(range(start, len(self.calls))))

    def payload(self, register: int, value: Any) -> Any:
        """Convert the payload of an asynchronous kernel's result to the form that the register holds."""
        if register in self.opaque:
            return value
        producer = self.producer.get(register)
        if producer is None:
            return given(value, self.metas[register], "an argument")
        if producer.device is None or producer.kernel is None:
            return given(value, self.metas[register], producer.call.code)
        return given(value, self.metas[register], producer.call.op, producer.kernel.pack)

    def check_arguments(self, function: ProgramFunction, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments of a call in the form that registers hold.

        Raises InvalidArgument for another number of them, and for tensors of other types and shapes.
        """
        if len(arguments) != len(function.arg_names):
            raise InvalidArgument(f"function '{function.name}' takes {len(function.arg_names)} arguments, "
                                  f"{len(arguments)} are given", location=function.location)
        return [value if i in self.opaque else given(value, self.metas[i], f"a call of function '{function.name}'")
                for i, value in enumerate(arguments)]

    def _lent(self, results: Sequence[int], arguments: range) -> frozenset[int]:
        """Return the registers whose arrays are read later, outside the order of the flat list.

        The readers are the user, a device that works through its queue, a kernel that has returned, or a late call.
        Registers that may hold such an array in a device's form are among them.
        """
        read_later = [a for bound in self.calls if not bound.sees_host
                      for a in bound.call.args if self.memory[a] == HOST]
        read_later += [a for bound in self.calls if bound.lends for a in bound.call.args]
        unplanned = self.late.difference(self.tail)
        read_later += [r for n in unplanned for r in (*self.calls[n].call.args, *self.calls[n].call.results)]
        read_later += self._outside(self.tail).difference(arguments)  # a copied feed is in place before the run
        read_later += [r for bound in self.calls if bound.wraps for r in bound.call.results]
        return frozenset(self.root[r] for r in (*results, *read_later)) | self._retained()

    def _retained(self) -> frozenset[int]:
        """Return the registers whose arrays a kernel keeps, so that they belong neither to the frame nor to the
        user."""
        return frozenset(self.root[bound.call.args[i]] for bound in self.calls for i in bound.retained)

    def _find_uses(self, lent: frozenset[int]) -> list[Use]:
        uses = []
        for bound in self.calls:
            reads = tuple(self.root[a] for a in bound.call.args)
            writes: tuple[tuple[int, int], ...] = ()
            if bound.plannable:
                writes = tuple((r, self.metas[r].nbytes) for r in bound.call.results
                               if r not in lent and self._has_size(r))
            over = {} if bound.kernel is None else {**bound.kernel.inplace, **getattr(bound.bound, "inplace", {})}
            shared = tuple((bound.call.results[o], reads[i]) for o, i in over.items() if self._same_layout(bound, o, i))
            uses.append(Use(reads, writes, bound.memory, shared))
        return uses

    def _choose_copied_feeds(self, arguments: range, lent: frozenset[int]) -> frozenset[int]:
        users = [0] * len(self.metas)
        for bound in self.calls:
            for a in bound.call.args:
                users[self.root[a]] += 1
        return frozenset(i for i in arguments if i not in lent and users[i] >= FEED_USERS and self._has_size(i)
                         and self.metas[i].nbytes <= SMALL_FEED)

    def _find_fixed(self, given: set[int]) -> frozenset[int]:
        fixed = set(given)
        for bound in self.calls:
            if bound.is_view and all(bound.call.args[source] in fixed for source in bound.alias.values()):
                fixed.update(bound.call.results)
        return frozenset(fixed)

    def _find_dying(self, kept: set[int]) -> dict[int, list[int]]:
        """For each attached call return the open registers without later consumers, whose values die there, arguments
        first."""
        last = {r: n for n, bound in enumerate(self.calls) for r in (*bound.call.needs, *bound.call.results)}
        unordered = self.late.difference(self.tail)
        kept |= self.fixed | {r for n in unordered for r in self.calls[n].call.needs}
        kept |= {r for bound in self.calls if bound.pends for r in bound.given}  # the end of the run waits for them
        dying: dict[int, list[int]] = {}
        for number in set(last.values()) - unordered:
            call = self.calls[number].call
            dead = [r for r in dict.fromkeys((*call.needs, *call.results)) if last[r] == number and r not in kept]
            if dead:
                dying[number] = dead
        return dying

    def _find_copied(self, results: Sequence[int], not_fresh: set[int]) -> tuple[int, ...]:
        """Return the indices of results that are copied before the user gets them.

        A result is copied when its elements are not this run's own, or when an earlier result is the same array.
        """
        roots = [self.root[register] for register in results]
        first = {root: i for i, root in reversed([*enumerate(roots)])}
        return tuple(i for i, root in enumerate(roots) if (root in not_fresh or first[root] < i)
                     and results[i] not in self.opaque)

    def _outside(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the registers that the calls with these indices need and do not fill."""
        calls = [self.calls[n].call for n in numbers]
        return frozenset(r for call in calls for r in call.needs).difference(r for call in calls for r in call.gives)

    def _has_size(self, register: int) -> bool:
        return self.metas[register].is_static and self.metas[register].dtype.itemsize > 0

    def _same_layout(self, bound: BoundCall, output: int, argument: int) -> bool:
        out, arg = self.metas[bound.call.results[output]], self.metas[bound.call.args[argument]]
        return out.is_static and out.shape == arg.shape and out.dtype.itemsize == arg.dtype.itemsize


def _in_order_of_runs(calls: Sequence[BoundCall]) -> tuple[frozenset[int], range, tuple[BoundCall, ...]]:
    """Return the indices of the late calls, the range of the tail, and the calls in the order for these indices.

    A call is late when it depends, directly or not, on a declared asynchronous result. It is in the tail when it is
    late and depends on every call that may pend. Both sets contain their dependents, so the order is topological.
    """
    sources: dict[int, int] = {}  # register -> bit set of the calls that may pend before it is filled
    pending: set[int] = set()
    everything = (1 << sum(call.may_pend for call in calls)) - 1
    bits = count()
    flat: list[BoundCall] = []
    late: list[BoundCall] = []
    tail: list[BoundCall] = []
    for bound in calls:
        behind = 0
        for register in bound.call.needs:
            behind |= sources.get(register, 0)
        is_late = not pending.isdisjoint(bound.call.needs)
        part = flat if not is_late else tail if behind == everything else late
        part.append(bound)
        if bound.may_pend:
            behind |= 1 << next(bits)
        sources.update(dict.fromkeys(bound.call.gives, behind))
        if is_late or bound.pends:
            pending.update(bound.call.gives)
    if not all(bound.sees_host for bound in tail):  # a device's buffers wait for its stream, not for the list
        late, tail = [*late, *tail], []
    ordered = (*flat, *late, *tail)
    return frozenset(range(len(flat), len(ordered))), range(len(flat) + len(late), len(ordered)), ordered


def _check_shared(bound: BoundCall, metas: Sequence[TensorMetadata]) -> None:
    """Check that a result is as large as the argument that it shows, or is a copy of.

    Raises InvalidArgument when it is not.
    """
    pairs = bound.alias.items() if bound.is_view else ((0, 0),) if bound.call.code == COPY else ()
    for output, argument in pairs:
        result, source = metas[bound.call.results[output]], metas[bound.call.args[argument]]
        if result.is_static and source.is_static and _extent(result) != _extent(source):
            raise InvalidArgument(f"{bound.call.op or bound.call.code} shows {source} as {result}, which differs in "
                                  "size", node=bound.call.node or None, op=bound.call.op or None,
                                  hint="compile the file again from its model")


def _extent(meta: TensorMetadata) -> tuple[int, bool]:
    """The bytes of a value. Elements without a size in bytes are counted."""
    return (meta.nbytes, True) if meta.dtype.itemsize else (meta.size, False)


def _roots(calls: Sequence[BoundCall], count: int) -> list[int]:
    """For each register return its root: the register whose buffer it shows, itself unless it is an alias."""
    root = list(range(count))
    for bound in calls:
        for output, argument in bound.alias.items():
            root[bound.call.results[output]] = root[bound.call.args[argument]]
    return root
