"""Link: binds a function of a host program to the kernels of this host, for given metadata of its arguments.

All static work happens here, once. Shapes are inferred, known values are folded, and kernels are bound; the executable
plans memory. A call without static shapes binds in the run (see `LazyKernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..compiler.infer import infer_registers
from ..contract.device import STREAM
from ..contract.kernel import Bind, Declined, FusionDef, KernelDef, PatternDef
from ..errors import ResourceExhausted, Unimplemented, WeftError
from ..executor.bound_call import BoundCall
from ..executor.executable import Executable
from ..executor.host_array import stand_in
from ..host.device_memory import Owned
from ..host.host_memory import HostMemory, LaidOut
from ..host.kernel_context import KernelContext
from ..host.resources import Resources
from ..program.host_program import CONSTANT, COPY, EVENT, HOST, OWN, Call, ProgramDef, ProgramFunction
from ..support.aligned_array import is_solid
from ..support.mapped_file import check_unchanged
from ..values.tensor import MadeInfo, TensorMetadata, ValueInfo, constant_info
from .binder import Binder, LazyKernel, bind
from .folding import folded, is_worth_folding, laid_out
from .follow import DEEPEST_LINK, FOLLOWED
from .fusion import FusionGroup, fused_call, fused_ops, groups
from .host_binding import bind_host_kernel
from .patterns import found

if TYPE_CHECKING:
    from ..contract.host_kernel import Callee
    from ..executor.step import Step
    from ..host.host import Host

Refusal = tuple[str, str, str, str]  # node, device, pack, reason
HUGE = 1 << 28  # bytes of a tensor beyond which its kernel binds in the run, not in the link


def nothing() -> None:
    """The default check of a link: the link runs to its end."""


class NodesDeclined(Unimplemented):
    """Every kernel on the assigned device declined these nodes. `refusals` has the reasons."""

    def __init__(self, refusals: list[Refusal]) -> None:
        node, device, pack, reason = refusals[0]
        super().__init__(f"no kernel takes this node: {pack}: {reason}", node=node, device=device,
                         hint="place it on another device")
        self.refusals = refusals


class Shared:
    """Values that the links of one program share.

    `prepared`: objects that kernels prepared from constants.
    `folded`, `uploaded`, `laid_out`: constants by result registers or register.
    `buffers`: device buffers with the functions that free them; they live as long as the program may be linked or run.
    `resources`: state that kernels keep for nodes, shared by the programs of one session.
    """

    def __init__(self, functions: dict[str, LinkedFunction], resources: Resources) -> None:
        self.prepared: dict[Any, Any] = {}
        self.folded: dict[tuple[int, ...], list[Any]] = {}
        self.uploaded: dict[int, Any] = {}
        self.laid_out: dict[int, LaidOut] = {}
        self.buffers: list[Owned] = []
        self.functions = functions
        self.resources = resources
        self._callees: dict[str, Shared] = {}

    def of(self, function: str) -> Shared:
        """Return what the links of a function of the same program share, where each is linked for its callers."""
        if function not in self._callees:
            own = self._callees[function] = Shared(self.functions, self.resources)
            own.prepared, own.buffers, own._callees = self.prepared, self.buffers, self._callees
        return self._callees[function]

    def renumbered(self) -> Shared:
        """Return what programs share without the functions that are linked by register number, for a program that was
        lowered again: the same numbers stand for other values in it."""
        anew = Shared({}, self.resources)
        anew.prepared, anew.buffers = self.prepared, self.buffers
        return anew


class LinkedBody:
    """A function that is linked for the one call that it serves."""

    def __init__(self, name: str, executable: Executable) -> None:
        self.name = name
        self.executable: Any = executable


class LinkedFunction:
    """A function of a program, linked on first use."""

    def __init__(
        self, program: ProgramDef, name: str, host: Host, functions: dict[str, LinkedFunction],
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
            shared = Shared(self._functions, self._resources)
            self._executable = link(self._program, self._host, function=self.name, shared=shared)
        return self._executable


def link(
    program: ProgramDef, host: Host, arguments: Sequence[TensorMetadata] | None = None,
    *, function: str = "main", shared: Shared | None = None, waits: bool = False, fuses: bool = True,
    check: Callable[[], object] = nothing,
) -> Executable:
    """Bind a function of the program for arguments of this metadata (default: as far as the program knows them).

    `shared`: the same object for all links of one program.
    `waits`: True when every run waits for the devices at its end. A value that is copied out for the caller alone then
        needs no wait of its own.
    `fuses`: True to ask packs for kernels that do several calls at once.
    `check`: called once per call of the program; it raises to end the link.

    Raises NodesDeclined, InvalidArgument when metadata contradicts an op, and FailedPrecondition when a mapped file
    with constants has changed.
    """
    check_unchanged(program.constants)
    chosen = program.functions[function]
    infos = [ValueInfo(meta) for meta in arguments or chosen.arg_metas]
    linker = Linker(program, chosen, host, Shared({}, Resources()) if shared is None else shared, infos, waits, fuses,
                    check)
    linked: Executable = KernelContext().run(linker.link)  # packs may start their threads
    return linked


class Linker:
    """The state of one link of a function, for arguments of which `arguments` is known.

    `around`: the functions whose links this link is part of.
    """

    def __init__(
        self, program: ProgramDef, function: ProgramFunction, host: Host, shared: Shared,
        arguments: Sequence[ValueInfo], waits: bool, fuses: bool, check: Callable[[], object],
        around: tuple[str, ...] = (),
    ) -> None:
        self.arguments = tuple(arguments)
        self._check = check
        self._waits = waits
        self._fuses = fuses
        self._program = program
        self._function = function
        self._host = host
        self._shared = shared
        self._around = (*around, function.name)
        self._devices = [host.open(name) for name in program.requires]  # by stream
        self._binders: dict[int, Binder] = {}
        self._declined: dict[str, list[tuple[str, str]]] = {}
        self._frozen: set[int] = set()  # registers with the same value in every link of this program
        self._calls: list[Call] = list(function.kernels)
        self._taken: set[int] = set()  # registers with consumers
        self._bodies: dict[int, list[Linker]] = {}  # id of a call -> the links of its functions
        self._executables: list[Executable] = []  # of these
        self._known: list[ValueInfo] | None = None

    @property
    def known(self) -> list[ValueInfo]:
        """The facts about all registers, inferred at the first use."""
        if self._known is None:
            self._known = self._infer()
        return self._known

    def _infer(self) -> list[ValueInfo]:
        function = self._function
        for call in function.kernels:
            if call.code == CONSTANT or (call.args and not call.is_host_kernel and self._frozen.issuperset(call.args)):
                self._frozen.update(call.results)
        return infer_registers(function, self.arguments, self._program.constants, self._host.registries.ops,
                               self._fold, self._follow)

    @property
    def results(self) -> list[ValueInfo]:
        return [self.known[register] for register in self._function.results]

    def link(self) -> Executable:
        function, known = self._function, self.known
        open_registers = set(range(len(function.arg_names))) | self._after_others()
        values = {r: info for r, info in enumerate(known) if info.is_known and r not in open_registers}
        self._calls = self._without_other_names(known)
        bound_calls: list[BoundCall] = []
        refusals: list[Refusal] = []
        for each in self._fuse(self._needed(values), known):
            self._check()
            refused: list[Refusal] = []
            bound = each if isinstance(each, BoundCall) else self._bind(each, known, refused)
            if bound is not None:
                bound_calls.append(bound)
            refusals = refused + refusals
        if refusals:
            raise NodesDeclined(refusals)
        bound_calls.reverse()
        metas = [info.meta for info in known]
        bound_calls = self._keep_feeds(bound_calls, metas)
        memory = self._memory()
        read = {r for bound in bound_calls for r in bound.read}
        taken = read.union(function.results) & values.keys()
        as_they_are = {r for r in taken - read if memory[r] == HOST}  # results, which the run copies for the user
        presets = {r: self._elements(r, values[r]) for r in as_they_are}
        presets |= {r: self._preset(r, self._elements(r, values[r]), memory[r]) for r in taken - as_they_are}
        unread = {r for bound in bound_calls for r in bound.call.args} & values.keys() - presets.keys()
        presets |= {r: stand_in(metas[r]) for r in unread}
        devices = dict(zip(self._program.requires, self._devices, strict=True))
        return Executable(function, metas, bound_calls, presets, devices, self._host, self._declined,
                          self._executables)

    def _follow(self, call: Call, inputs: list[ValueInfo]) -> Sequence[ValueInfo]:
        """Return the facts about the results of a call of functions, and keep the links of these.

        Functions that call themselves, or are nested too deep, are linked when they are first called.
        """
        follow = FOLLOWED.get(call.code)
        if follow is None or len(self._around) > DEEPEST_LINK or not set(self._around).isdisjoint(call.functions):
            return ()
        bodies, results = follow(partial(self._body, call), inputs, len(call.functions))
        self._bodies[id(call)] = bodies
        return results

    def _body(self, call: Call, index: int, arguments: Sequence[ValueInfo]) -> Linker:
        """Return the link of a call's function for these arguments."""
        name = call.functions[index]
        return Linker(self._program, self._program.functions[name], self._host, self._shared.of(name), arguments,
                      False, self._fuses, self._check, self._around)

    def _fuse(self, calls: list[Call], known: Sequence[ValueInfo]) -> Iterator[Call | BoundCall]:
        """Yield the calls from last to first, in reverse of an order in which they may run; a fused call comes bound.

        Networks have their largest weights at the end. Kernels that pack these in threads then work while the rest
        binds.
        """
        if not self._fuses:
            yield from reversed(calls)
            return
        metas = [info.meta for info in known]
        kept = {*self._function.results, *self._function.targets}
        calls, done = self._recognise(calls, known, metas, kept)
        fusible = any(self._fusions(call) for call in calls)
        groups_found = groups(calls, metas, kept, partial(self._able, metas=metas)) if fusible else {}
        inner = {id(call) for group in groups_found.values() for call in group.everything}
        for call in reversed(calls):
            if id(call) not in inner:
                yield done.get(id(call), call)
            elif id(call) in groups_found:
                yield from self._fuse_group(groups_found[id(call)], known, metas)

    def _recognise(
        self, calls: list[Call], known: Sequence[ValueInfo], metas: Sequence[TensorMetadata], kept: set[int]
    ) -> tuple[list[Call], dict[int, BoundCall]]:
        """Replace calls by the patterns that cover them. Returns the calls, and the bound pattern calls by id."""
        if not any(self._patterns(call) for call in calls):
            return calls, {}
        done: dict[int, BoundCall] = {}
        gone: dict[int, Call | None] = {}  # id of a call -> its replacement
        for pattern, members in found(calls, known, kept, partial(self._findable, metas=metas)):
            bound = self._bind_at_once(pattern, members, known, metas)
            if bound is not None:
                gone |= {id(member): None for member in members} | {id(members[-1]): bound.call}
                done[id(bound.call)] = bound
        return [left for call in calls if (left := gone.get(id(call), call)) is not None], done

    def _fuse_group(
        self, group: FusionGroup, known: Sequence[ValueInfo], metas: Sequence[TensorMetadata]
    ) -> Iterator[Call | BoundCall]:
        """Yield the group from last to first, in as few calls as its pack's kernels need for it."""
        for fusion, calls in group.attempts():
            bound = self._bind_at_once(fusion, calls, known, metas)
            if bound is not None:
                place = group.everything.index(calls[-1])
                yield from group.everything[:place:-1]
                yield bound
                yield from (member for member in group.everything[place::-1] if member not in calls)
                return
        yield from reversed(group.everything)

    def _bind_at_once(
        self, what: FusionDef | PatternDef, calls: list[Call], known: Sequence[ValueInfo],
        metas: Sequence[TensorMetadata],
    ) -> BoundCall | None:
        """Return one bound call for all of these, or None when the kernel declines."""
        args, ops = fused_ops(calls, metas)
        call = fused_call(what.kernel, calls, args)
        device, name = self._devices[call.stream], self._program.requires[call.stream]
        inputs, outputs = tuple(known[r] for r in args), (metas[call.results[0]],)
        bound = bind(what.kernel, Bind(call.node, call.op, call.attrs, inputs, outputs, device, STREAM,
                                       self._shared.prepared, ops, self._shared.resources.get, self._function.name,
                                       ask=self._host.memory.ask),
                     name)
        if isinstance(bound, Declined):
            return None
        return BoundCall(call, device, HOST if self._visible(call) else call.stream, what.kernel, bound)

    def _fusions(self, call: Call) -> Sequence[FusionDef]:
        """The fusions that the pack of this call offers."""
        if call.stream == HOST or call.code in OWN:
            return ()
        return self._host.registries.kernels.fusions(self._devices[call.stream].type, call.pack)

    def _patterns(self, call: Call) -> Sequence[PatternDef]:
        """The patterns that the pack of this call offers."""
        if call.stream == HOST or call.code in OWN:
            return ()
        return self._host.registries.kernels.patterns(self._devices[call.stream].type, call.pack)

    def _findable(self, call: Call, metas: Sequence[TensorMetadata]) -> Sequence[PatternDef]:
        """The patterns of the call's pack, empty when a pattern must not cover this call."""
        patterns = self._patterns(call)
        return patterns if patterns and self._is_plain(call, metas) else ()

    def _able(self, call: Call, metas: Sequence[TensorMetadata]) -> list[FusionDef]:
        """The fusions of the call's pack that may take this call: it must be plain and all its shapes known."""
        able = [f for f in self._fusions(call) if call.op in f.ops or call.op in f.heads or call.op in f.leads]
        return able if able and self._is_plain(call, metas) else []

    def _is_plain(self, call: Call, metas: Sequence[TensorMetadata]) -> bool:
        """True when all metadata of a call is known, and its kernel only computes."""
        if not all(metas[r].is_static and metas[r].dtype.itemsize for r in (*call.args, *call.results)):
            return False
        binder = self._binder(call)
        kernel = binder.candidates[0]
        return not (kernel.host or kernel.retains or kernel.returns or kernel.step or binder.op.stateful)

    def _keep_feeds(self, bound_calls: Sequence[BoundCall], metas: list[TensorMetadata]) -> list[BoundCall]:
        """Add a copy, in a new register, of each feed that a kernel retains: after the run the user may change it."""
        feeds = set(range(len(self._function.arg_names)))
        kept: list[BoundCall] = []
        for bound in bound_calls:
            args = list(bound.call.args)
            feeds.update(bound.call.results[o] for o, i in bound.alias.items() if args[i] in feeds)
            for i in sorted(i for i in bound.retained if args[i] in feeds):
                copy = Call(COPY, (args[i],), (len(metas),), {"to": "host"}, bound.call.stream, bound.call.node)
                kept.append(BoundCall(copy, bound.device, HOST, lazy=partial(_copied, self._host.memory)))
                metas.append(metas[args[i]])
                args[i] = copy.results[0]
            kept.append(bound._replace(call=bound.call._replace(args=tuple(args))) if bound.retained else bound)
        return kept

    def _after_others(self) -> set[int]:
        """Return the results of calls with incoming control edges, and all values computed from them.

        Such calls run even when their results are known beforehand, since the work before them must happen.
        """
        found: set[int] = set()
        for call in self._function.kernels:
            if call.after or not found.isdisjoint(call.args):
                found.update(call.results)
        return found

    def _memory(self) -> dict[int, int]:
        """For each register return the stream whose memory holds it, HOST for host memory."""
        memory: dict[int, int] = dict.fromkeys(range(len(self._function.register_types)), HOST)
        for call in self._function.kernels:
            if call.code == COPY:
                memory[call.results[0]] = call.stream if call.attrs["to"] == "device" else HOST
            elif call.code not in OWN and not call.is_host_kernel and not self._visible(call):
                memory |= dict.fromkeys(call.results, call.stream)
        return memory

    def _preset(self, register: int, value: Any, memory: int) -> Any:
        """Return a known value in the memory of its register. A value that all links share is uploaded once."""
        if memory == HOST:
            return value if is_solid(value) else self._laid_out(register, value)
        if register in self._frozen and register in self._shared.uploaded:
            return self._shared.uploaded[register]
        device = self._devices[memory]
        try:
            laid_out = value if is_solid(value) else self._laid_out(register, value).array()
            buffer = self._host.device_memory.upload(device, laid_out)
        except WeftError as error:
            self._host.failed(device, error)
            raise error.at(device=self._program.requires[memory])  # noqa: B904 - the same error, with its device
        self._shared.buffers.append((device.free, buffer))
        if register in self._frozen:
            self._shared.uploaded[register] = buffer
        return buffer

    def _elements(self, register: int, known: ValueInfo) -> Any:
        """Return the elements of a known value. Raises ResourceExhausted when they need memory and it is short."""
        if not isinstance(known, MadeInfo):
            return known.value
        node = self._node_of(register)
        try:
            return self._host.memory.lend(laid_out(known.meta), f"constant '{node}' {known.meta}", lambda: known.value)
        except ResourceExhausted as error:
            raise error.at(node=node)  # noqa: B904 - the same error, with its node

    def _node_of(self, register: int) -> str:
        return next((call.node for call in self._function.kernels if register in call.results), "")

    def _laid_out(self, register: int, value: Any) -> LaidOut:
        """Return the value as calls read it, one object for all links that share it."""
        laid = LaidOut(value, self._host.memory, self._node_of(register))
        return self._shared.laid_out.setdefault(register, laid) if register in self._frozen else laid

    def _visible(self, call: Call) -> bool:
        return bool(self._devices[call.stream].attributes.get("host_visible"))

    def _without_other_names(self, known: Sequence[ValueInfo]) -> list[Call]:
        """Return the function's calls, with arguments that are mere aliases in host memory replaced by their sources.

        A consumer of one output of an IdentityN then does not depend on the other outputs.
        """
        calls = []
        source: dict[int, int] = {}
        for call in self._function.kernels:
            if not source.keys().isdisjoint(call.args):
                call = call._replace(args=tuple(source.get(a, a) for a in call.args))
            calls.append(call)
            if call.is_host_kernel or call.code in OWN or call.after or not self._visible(call):
                continue
            binder = self._binder(call)
            if not all(known[call.args[i]].is_known for i in binder.value_inputs()):
                continue
            for result, argument in binder.candidates[0].aliases(call.attrs).items():
                meta = known[call.results[result]].meta
                if meta.is_static and meta == known[call.args[argument]].meta:
                    source[call.results[result]] = call.args[argument]
        return calls

    def _needed(self, values: Mapping[int, Any]) -> list[Call]:
        """Return the calls that have unknown results with consumers, or effects on the outside."""
        wanted = self._taken = {*self._function.results, *self._function.targets}
        needed = []
        for call in reversed(self._calls):
            acts = call.is_host_kernel or (call.code not in OWN and self._binder(call).op.stateful)
            if acts or any(r in wanted and r not in values for r in call.gives):
                needed.append(call)
                wanted.update(call.needs)
        return needed[::-1]

    def _binder(self, call: Call) -> Binder:
        key = id(call)
        if key not in self._binders:
            op = self._host.registries.ops.get(call.op)
            device, name = self._devices[call.stream], self._program.requires[call.stream]
            candidates = [k for k in self._host.registries.kernels.candidates(call.op, device.type)
                          if k.refuses(call.attrs) is None]
            named = next((k for k in candidates if k.pack == call.pack), None)
            if named is None:
                raise Unimplemented(f"no kernel {call.code} on {name}", node=call.node, op=call.op, device=name,
                                    hint="'weft plugins' lists the packs")
            same = tuple(k for k in candidates[candidates.index(named):]
                         if k.host == named.host)
            rule = self._host.registries.ops.metadata(op)
            self._binders[key] = Binder(call, op, rule, same, device, name, self._shared.prepared,
                                        self._host.memory, self._shared.resources.get, self._function.name,
                                        self._host.debug.poison)
        return self._binders[key]

    def _fold(
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
        binder = self._folder(call) if frozen or of_shapes or self._visible(call) else None
        if binder is None or binder.op.stateful:
            return outputs
        values = folded(binder, inputs, outputs)
        if values is None:
            return outputs
        if frozen:
            self._shared.folded[call.results] = values
        return tuple(map(constant_info, values))

    def _folder(self, call: Call) -> Binder | None:
        """Return the binder that can compute a call's results now.

        The kernels are the call's own if they work on host memory, else those of a device that does. None without such
        a device.
        """
        binder = self._binder(call)
        if self._visible(call):
            return binder
        name = self._host.host_device()
        if name is None:
            return None
        device = self._host.open(name)
        kernels = self._host.registries.kernels.candidates(call.op, device.type)
        able = tuple(k for k in kernels if k.refuses(call.attrs) is None)
        return binder._replace(candidates=able, device=device, device_name=name)

    def _bind_host(self, call: Call) -> BoundCall:
        kernel = self._host.registries.host_kernels.get(call.code)
        types = [self._function.register_types[r] for r in call.results]
        callees = self._callees(call)
        run = bind_host_kernel(kernel, call, types, callees, self._host.debug.check_types)
        settled = id(call) in self._bodies and not any(callee.executable.is_asynchronous for callee in callees)
        flags = KernelDef(call.code, "", kernel.plugin, bind_host_kernel, asynchronous=kernel.asynchronous,
                          nonstrict=kernel.nonstrict or call.nonstrict, step=kernel.step)
        return BoundCall(call, None, HOST, flags, run, settled=settled)

    def _callees(self, call: Call) -> list[Callee]:
        """Return the functions of a call, linked for it or, on first use, for all calls."""
        if id(call) in self._bodies:
            linked = [body.link() for body in self._bodies[id(call)]]
            self._executables += linked
            return [LinkedBody(name, executable) for name, executable in zip(call.functions, linked, strict=True)]
        functions, resources = self._shared.functions, self._shared.resources
        for name in call.functions:
            functions.setdefault(name, LinkedFunction(self._program, name, self._host, functions, resources))
        return [functions[name] for name in call.functions]

    def _transfer(self, call: Call, known: Sequence[ValueInfo]) -> BoundCall | None:
        if not _has_size(known[call.args[0]].meta):
            return None  # the producer or consumer on the device is refused instead
        if call.attrs["to"] == "device":
            device = self._devices[call.stream]
            # A caller that does not wait for the devices may write a feed while they still read it.
            wraps = self._waits and call.args[0] < len(self._function.arg_names) and hasattr(device, "wrap")
            return BoundCall(call, device, call.stream, wraps=wraps)
        awaited = not self._waits or any(call.results[0] in other.args for other in self._function.kernels)
        return BoundCall(call, self._devices[call.stream], HOST, awaited=awaited)

    def _bind(
        self, call: Call, known: Sequence[ValueInfo], refusals: list[Refusal]
    ) -> BoundCall | None:
        """Return the call with its kernel, or None when every kernel declined; `refusals` then receives the reasons."""
        if call.is_host_kernel:
            return self._bind_host(call)
        if call.code == COPY:
            return self._transfer(call, known)
        if call.code == EVENT:
            return BoundCall(call, self._devices[call.stream], HOST, awaited=True)
        binder = self._binder(call)
        inputs = [known[a] for a in call.args]
        outputs = [known[r].meta for r in call.results]
        needed = [number for number, register in enumerate(call.results) if register in self._taken]
        visible = self._visible(call)
        memory = HOST if visible else call.stream
        if not visible and (why := _unknown(binder, inputs, outputs)):
            packs = {k.pack for k in self._host.registries.kernels.candidates(call.op, binder.device.type)}
            refusals += [(call.node, binder.device_name, pack, why) for pack in sorted(packs)]
            return None
        returns = binder.candidates[0].returns
        ready = all(i.meta.is_static for i in inputs) and (returns or all(o.is_static for o in outputs))
        if visible and ready and _are_huge(inputs, outputs):
            ready = False  # some kernels compute tables of this size when they bind
        if not ready or not all(inputs[i].is_known for i in binder.value_inputs()):
            may_alias = {o: i for kernel in binder.candidates for o, i in kernel.aliases(call.attrs).items()}
            lazy = LazyKernel(binder, inputs, needed)
            return BoundCall(call, binder.device, memory, binder.candidates[0], lazy=lazy, alias=may_alias,
                             retained=binder.retained(binder.candidates), stateful=binder.op.stateful)
        kernel, bound, declined = binder.bind(inputs, outputs, needed)
        if kernel is None:
            refusals += [(call.node, binder.device_name, pack, reason) for pack, reason in declined]
            return None
        if declined:
            self._declined[call.node] = declined
            call = call._replace(code=f"{kernel.pack}.{call.op}")  # traces show it
        alias = kernel.aliases(call.attrs) if bound is None else {}
        return BoundCall(call, binder.device, memory, kernel, bound, alias=alias, retained=binder.retained([kernel]),
                         stateful=binder.op.stateful)


def _are_huge(inputs: Sequence[ValueInfo], outputs: Sequence[TensorMetadata]) -> bool:
    """True when outputs, or known inputs as a kernel reads them, take more memory than a link may."""
    metas = [*outputs, *(each.meta for each in inputs if each.is_known)]
    return any(meta.is_static and laid_out(meta) > HUGE for meta in metas)


def _has_size(meta: TensorMetadata) -> bool:
    return meta.is_static and meta.dtype.itemsize > 0


def _unknown(binder: Binder, inputs: Sequence[ValueInfo], outputs: Sequence[TensorMetadata]) -> str | None:
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


def _copied(memory: HostMemory, _: Step, arrays: list[Any]) -> list[Any]:
    copies = [memory.maker(array.shape, array.dtype, "the copy of a feed")() for array in arrays]
    for copy, array in zip(copies, arrays, strict=True):
        copy[...] = array
    return copies
