"""Kernels: how a plugin says which ops a device type can run, and how one is bound to a node.

A kernel has three phases. *bind*, once per link: sees op, attributes, what is known of each input, the device;
chooses the algorithm, packs constant weights. It returns the run function, None for an alias, or an object with
`run` and `attach`; or it declines, and the next candidate is asked. *attach*, once per frame: gets its buffers,
returns a call without arguments; without one it is `partial(run, *inputs, *outputs)`. *run*: the call itself, in a
thread where NumPy warns of nothing and denormals are 0 (`running/kernel_context.py`). It writes every element of its
outputs, only reads its inputs, and returns no other array (`running/array_contract.py`). A bound kernel holds nothing
that changes: several steps may run it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from threading import RLock
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from ..errors import PluginError, Unavailable, WeftError
from ..support.fork_safety import inherited
from ..support.plugin_guard import plugin_guard
from ..values.dtypes import DType, named
from ..values.tensor import TensorMetadata, ValueInfo
from .device import Conflict, Device, DeviceTypeRegistry, Stream, load_callable
from .op import Attrs, OpRegistry

ANY = "any"
T = TypeVar("T")


class Declined(NamedTuple):
    """What bind returns when its kernel cannot serve this node."""

    reason: str


class Attachable(Protocol):
    """A bound kernel that wants its buffers once per frame instead of with every call. It may have `inplace`, for this
    node, as kernels declare it for all: outputs that may be written over inputs. Then `attach` has to look whether the
    buffers are the same; `run` gets different ones."""

    def run(self, *inputs_then_outputs: Any) -> Any: ...

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], Any]: ...

    # Optional:
    #
    #     how: str
    #         """In which of several ways it does the work, in a few words, for `weft explain --all` and
    #         `weft bench --nodes`."""
    #
    #     nbytes: int
    #         """Bytes that it holds besides Python objects, about: caches of bound kernels are bounded by bytes."""
    #
    # and on a device that works on host memory:
    #
    #     reads: Collection[int]
    #         """The places of the inputs that its calls look at. A constant that nobody looks at, since bind has
    #         prepared all that is needed of it, is not kept: an array of its shape, with any elements, stands there."""
    #     fills_cores: bool
    #         """Whether a call has threads of its own for all cores: running others beside it gains nothing."""


Bound = Callable[..., Any] | Attachable | None
Alias = Mapping[int, int] | Callable[[Attrs], Mapping[int, int]]  # as a function where it depends on attributes
BindFunction = Callable[..., "Bound | Declined"]


class FusedOp(NamedTuple):
    """One op of several that are done at once. `args` and `results` are values by number: the inputs of the whole come
    first, then the results of its ops, in order; the first result of the last op is the output of the whole."""

    op: str
    attrs: Attrs
    args: tuple[int, ...]
    results: tuple[int, ...]
    outputs: tuple[TensorMetadata, ...]


Keep = Callable[[str, Callable[[], Any]], Any]  # what is kept under a name, made by whoever asks first
Ask = Callable[[int, str], None]  # for bytes, and what they are for


def _keep_nothing(_: str, make: Callable[[], T]) -> T:
    return make()


def _grant_all(nbytes: int, what: str) -> None:
    """The budget of a kernel that is bound outside any host."""


class Bind:
    """What bind sees of its node.

    `inputs` are ValueInfos: metadata is static, `value` is the array where it is known before the run (a constant;
    an input that the op's metadata function reads), else None. It may have to be made, so `is_known` is the way to ask
    whether it is there. `outputs` are static metadata, except for kernels
    that are declared `allocates`. `fused`: the ops that a fusion is to do; of one, `node` is the node of the last op,
    `op` the fusion's name, and `attrs` are none of theirs. `function`: the function of the program that the node is in.
    `needed`: the numbers of the outputs that somebody takes; what a kernel leaves in others does not matter.
    `ask(nbytes, what)` raises ResourceExhausted where the host's memory budget has no room for so many bytes now. A run
    function that makes its results calls it first, as soon as it knows their size.
    """

    __slots__ = ("_prepared", "ask", "attrs", "device", "function", "fused", "inputs", "keep", "needed", "node", "op",
                 "outputs", "stream")

    def __init__(
        self, node: str, op: str, attrs: Attrs, inputs: tuple[ValueInfo, ...], outputs: tuple[TensorMetadata, ...],
        device: Device, stream: Stream, prepared: dict[Any, Any], fused: tuple[FusedOp, ...] = (),
        keep: Keep = _keep_nothing, function: str = "", needed: Collection[int] | None = None,
        ask: Ask = _grant_all,
    ) -> None:
        self.node = node
        self.op = op
        self.attrs = attrs
        self.inputs = inputs
        self.outputs = outputs
        self.device = device
        self.stream = stream
        self.fused = fused
        self.keep = keep
        self.ask = ask
        self.function = function
        self.needed = frozenset(range(len(outputs)) if needed is None else needed)
        self._prepared = prepared

    def decline(self, reason: str) -> Declined:
        """Leave this node to the next candidate; `weft explain` shows the reason."""
        return Declined(reason)

    def prepared(self, key: str, make: Callable[[], T]) -> T:
        """What was made from this node's constants under `key`, made once and shared by all links of a program."""
        slot = (self.node, id(self.device), key)
        if slot not in self._prepared:
            self._prepared[slot] = make()
        return self._prepared[slot]  # type: ignore[no-any-return]

    def resource(self, kind: str, make: Callable[[], T]) -> T:
        """What the session keeps from run to run for this node, or for all nodes with its attributes `container` and
        `shared_name`: one of each kind, made once. Every kernel that is bound to such a node gets the same, and several
        threads may use it at once."""
        shared = self.attrs.get("shared_name")
        owner = f"{self.attrs.get('container')!r}/{shared!r}" if shared else f"{self.node} in {self.function}"
        return self.keep(f"{kind} of {owner}", make)  # type: ignore[no-any-return]


class KernelDef(NamedTuple):
    """A registered kernel. `dtypes`: by type attribute, the types it takes; an attribute not named may be any."""

    op: str
    device_type: str
    pack: str
    bind: BindFunction
    dtypes: Mapping[str, frozenset[DType] | None] = MappingProxyType({})
    when: Callable[[Attrs], bool] | None = None
    priority: int = 0
    host: frozenset[str] = frozenset()  # inputs that it reads in host memory
    alias: Alias = MappingProxyType({})  # output that is always the buffer of an input
    inplace: Mapping[int, int] = MappingProxyType({})  # output that may be written over an input
    retains: frozenset[str] = frozenset()  # inputs that it reads after it has returned: nobody else writes these arrays
    allocates: bool = False  # returns its outputs: their shapes depend on data
    # returns AsyncValues, or payloads where they are there already; of an op without outputs: that it is done, or None
    asynchronous: bool = False
    nonstrict: bool = False  # called when one input is available, with every input as an AsyncValue; returns outputs
    step: bool = False  # its first argument is the running Step

    @property
    def returns(self) -> bool:
        """True when the run function returns its outputs instead of writing them."""
        return self.allocates or self.asynchronous or self.nonstrict

    def aliases(self, attrs: Attrs) -> Mapping[int, int]:
        """Which outputs of a node with these attributes are the buffers of which inputs."""
        return self.alias(attrs) if callable(self.alias) else self.alias

    def refuses(self, attrs: Attrs) -> str | None:
        """Why this kernel is no candidate for a node with these attributes, or None."""
        for name, allowed in self.dtypes.items():
            given = attrs.get(name)
            types = given if isinstance(given, tuple | list) else (given,)
            if allowed is not None and not allowed.issuperset(types):
                return f"{name}={', '.join(str(t) for t in types)} is not among {dtype_names(allowed)}"
        try:
            holds = self.when is None or self.when(attrs)
        except Exception as error:  # noqa: BLE001 - a plugin's fault: its kernel is no candidate
            return f"its condition on the attributes raised {type(error).__name__}: {error}"
        return None if holds else "its condition on the attributes does not hold"


def dtype_names(allowed: Iterable[DType] | None) -> str:
    return "any" if allowed is None else ", ".join(d.name for d in sorted(allowed, key=lambda d: d.number))


class FusionDef(NamedTuple):
    """What one kernel of a pack can do at once: ops of its own kernels on one device, each of whose values only the
    next ones need, and all of the shape of the last. `heads` may be the first of them, and one is at most. One of
    `leads` may go before the head, whose first input it makes, of any shape: then it is the first of `Bind.fused`."""

    kernel: KernelDef  # `op` is the fusion's name
    ops: frozenset[str]
    heads: frozenset[str] = frozenset()
    leads: frozenset[str] = frozenset()


Find = Callable[[FusedOp, Mapping[int, FusedOp], Sequence[ValueInfo]], Collection[FusedOp]]


class PatternDef(NamedTuple):
    """What one kernel of a pack can do at once where its own function finds it. `find(last, made, known)` is asked for
    ops in `ends` that this pack's kernels serve. `made` has all ops that they serve, by the values that they make, in
    order; `known` is what is known of values, by number. It gives those to be done at once, `last` with them, or none.
    Their shapes may differ. They are left as they are where somebody else needs what goes between them."""

    kernel: KernelDef  # `op` is the pattern's name
    ends: frozenset[str]
    find: Find


class KernelPack(NamedTuple):
    """Kernels of one plugin for one device type; `register` is imported when the type is first used."""

    device_type: str
    register: str | Callable[..., None]
    priority: int
    plugin: str
    own: bool = False  # brought with the device type itself: void when another plugin's claim to the type wins


class Kernels:
    """What a pack's register function is given: it adds kernels of one plugin for one device type. The function raises
    Unavailable where what the kernels need is not here: the other packs' kernels serve, and the record says why."""

    def __init__(self, pack: KernelPack) -> None:
        self._pack = pack
        self.added: list[KernelDef] = []
        self.fusions: list[FusionDef] = []
        self.patterns: list[PatternDef] = []
        self.families: list[tuple[Sequence[str], Callable[..., None]]] = []

    def later(self, ops: Sequence[str], register: Callable[..., None]) -> None:
        """The kernels for these ops are a family of their own: `register` adds them, and imports what they need, when
        one of the ops is first asked for."""
        self.families.append((ops, register))

    def kernel(
        self, op: str, *, dtypes: Mapping[str, str | Iterable[str]] | None = None,
        when: Callable[[Attrs], bool] | None = None, priority: int = 0, host: Iterable[str] = (),
        alias: Alias | None = None, inplace: Mapping[int, int] | None = None, retains: Iterable[str] = (),
        allocates: bool = False, asynchronous: bool = False, nonstrict: bool = False, step: bool = False,
    ) -> Callable[[BindFunction], BindFunction]:
        """Decorate a bind function: it serves `op` for these types and attributes. See KernelDef for the flags."""

        def add(bind: BindFunction) -> BindFunction:
            sets = {attr: None if types == ANY else frozenset(map(named, [types] if isinstance(types, str) else types))
                    for attr, types in (dtypes or {}).items()}
            self.added.append(KernelDef(
                op, self._pack.device_type, self._pack.plugin, bind, sets, when, self._pack.priority + priority,
                frozenset(host), alias or {}, inplace or {}, frozenset(retains), allocates, asynchronous, nonstrict,
                step,
            ))
            return bind

        return add

    def fusion(
        self, name: str, *, ops: Iterable[str], heads: Iterable[str] = (), leads: Iterable[str] = (), priority: int = 0
    ) -> Callable[[BindFunction], BindFunction]:
        """Decorate a bind function that makes one kernel of several nodes, `Bind.fused`, or declines. It is asked where
        nodes that this pack's kernels serve follow each other like that: see FusionDef. A fusion of higher priority is
        asked first."""

        def add(bind: BindFunction) -> BindFunction:
            kernel = KernelDef(name, self._pack.device_type, self._pack.plugin, bind, priority=priority)
            self.fusions.append(FusionDef(kernel, frozenset(ops), frozenset(heads), frozenset(leads)))
            return bind

        return add

    def pattern(self, name: str, *, ends: Iterable[str], find: Find) -> Callable[[BindFunction], BindFunction]:
        """Decorate a bind function that makes one kernel of the nodes that `find` finds, `Bind.fused`, or declines.
        Patterns are looked for before any fusion is asked: see PatternDef."""

        def add(bind: BindFunction) -> BindFunction:
            kernel = KernelDef(name, self._pack.device_type, self._pack.plugin, bind)
            self.patterns.append(PatternDef(kernel, frozenset(ends), find))
            return bind

        return add


class KernelRegistry:
    """Kernels by op and device type, best candidate first. Packs are imported when their type is first asked for."""

    def __init__(
        self, device_types: DeviceTypeRegistry, override: Mapping[str, str] | None = None,
        ops: OpRegistry | None = None,
    ) -> None:
        self.failures: dict[tuple[str, str], WeftError] = {}  # (device type, plugin) -> why its kernels are missing
        self._device_types = device_types
        self._ops = OpRegistry() if ops is None else ops
        self._override = dict(override or {})  # op -> the pack that config wants
        self._waiting: list[KernelPack] = []
        self._loaded: list[KernelPack] = []
        self._kernels: dict[tuple[str, str], list[KernelDef]] = {}
        self._fusions: dict[tuple[str, str], list[FusionDef]] = {}  # (device type, pack)
        self._patterns: dict[tuple[str, str], list[PatternDef]] = {}
        self._families: list[tuple[KernelPack, frozenset[str]]] = []  # with their ops, not registered yet
        self._awaited: set[tuple[str, str]] = set()  # (op, device type) of these
        self._ready: set[str] = set()  # device types whose packs are all registered
        self._lock = RLock()
        inherited.add(self)

    def add_pack(self, pack: KernelPack) -> None:
        with self._lock:
            self._waiting.append(pack)
            self._ready.discard(pack.device_type)

    def packs(self) -> list[KernelPack]:
        return [*self._loaded, *self._waiting]

    def load(self, device_type: str) -> None:
        """Import and register every pack for a device type; one that fails is left out whole, by name."""
        with self._lock:
            announced = self._device_types.get(device_type)
            owner = announced.plugin if announced is not None else None
            for pack in [p for p in self._waiting if p.device_type == device_type]:
                self._waiting.remove(pack)
                self._loaded.append(pack)
                if not pack.own or owner == pack.plugin:
                    self._register(pack)
            self._ready.add(device_type)

    def candidates(self, op: str, device_type: str) -> list[KernelDef]:
        """The kernels that may serve `op` on this device type, best first."""
        if device_type not in self._ready:
            self.load(device_type)
        if (op, device_type) in self._awaited:
            self._load_families(op, device_type)
        return self._kernels.get((op, device_type), [])

    def fusions(self, device_type: str, pack: str) -> list[FusionDef]:
        """What a pack can do at once on this device type, in the order in which it is to be asked."""
        if device_type not in self._ready:
            self.load(device_type)
        return self._fusions.get((device_type, pack), [])

    def patterns(self, device_type: str, pack: str) -> list[PatternDef]:
        """What a pack can do at once on this device type where it finds it."""
        if device_type not in self._ready:
            self.load(device_type)
        return self._patterns.get((device_type, pack), [])

    def failure(self, device_type: str, plugin: str) -> Exception | None:
        """Why a plugin's kernels for a device type could not be registered, or None."""
        self.load(device_type)
        return self.failures.get((device_type, plugin))

    def loaded(self) -> Iterable[KernelDef]:
        """Every kernel of the device types that were asked for."""
        for op, device_type in sorted(self._awaited):
            self._load_families(op, device_type)
        return [kernel for rivals in self._kernels.values() for kernel in rivals]

    def conflicts(self) -> list[Conflict]:
        """Kernels of equal priority that two plugins bring for one op and device type, by pair of plugins."""
        contested: dict[tuple[str, str, str], set[str]] = {}
        self.loaded()
        for (op, device_type), rivals in self._kernels.items():
            for winner, loser in combinations(rivals, 2):
                if op not in self._override and winner.pack != loser.pack and _overlap(winner, loser):
                    contested.setdefault((device_type, winner.pack, loser.pack), set()).add(op)
        return [
            Conflict(f"{_op_names(ops)} on {device_type} at equal priority", winner, loser,
                     f"set [kernels] {min(ops)} = '{loser}' or '{winner}'")
            for (device_type, winner, loser), ops in sorted(contested.items())
        ]

    def forked(self) -> None:
        """Whoever registered kernels may not be here: types that are not ready start anew."""
        self._lock = RLock()
        self._waiting = [p for p in self.packs() if p.device_type not in self._ready]
        self._loaded = [p for p in self._loaded if p.device_type in self._ready]
        self._kernels = {key: rivals for key, rivals in self._kernels.items() if key[1] in self._ready}
        self._fusions = {key: fusions for key, fusions in self._fusions.items() if key[0] in self._ready}
        self._patterns = {key: patterns for key, patterns in self._patterns.items() if key[0] in self._ready}
        self._families = [family for family in self._families if family[0].device_type in self._ready]

    def _load_families(self, op: str, device_type: str) -> None:
        """Register the families that have kernels for an op, and those that share others with them: in their order, by
        which kernels of equal rank are asked."""
        with self._lock:
            ops, count = {op}, 0
            while count < len(ops):
                count = len(ops)
                for pack, theirs in self._families:
                    if pack.device_type == device_type and not ops.isdisjoint(theirs):
                        ops |= theirs
            for pack, theirs in [*self._families]:
                if pack.device_type == device_type and theirs <= ops:
                    self._register(pack)
                    self._families.remove((pack, theirs))
            self._awaited -= {(each, device_type) for each in ops}

    def _register(self, pack: KernelPack) -> None:
        kernels = Kernels(pack)
        try:
            with plugin_guard(f"registering its kernels for {pack.device_type}"):
                load_callable(pack.register)(kernels)
            for kernel in kernels.added:
                self._check_inputs(kernel)
        except PluginError as error:
            missing = error.__cause__ if isinstance(error.__cause__, Unavailable) else error
            self.failures[pack.device_type, pack.plugin] = missing
            return
        for ops, register in kernels.families:
            self._families.append((pack._replace(register=register), frozenset(ops)))
            self._awaited.update((op, pack.device_type) for op in ops)
        for kernel in kernels.added:
            rivals = self._kernels.setdefault((kernel.op, pack.device_type), [])
            rivals.append(kernel)
            rivals.sort(key=self._rank)
        if kernels.fusions:
            self._fusions[pack.device_type, pack.plugin] = sorted(kernels.fusions, key=lambda f: -f.kernel.priority)
        self._patterns[pack.device_type, pack.plugin] = kernels.patterns

    def _check_inputs(self, kernel: KernelDef) -> None:
        """Raise PluginError where the kernel names an input that its op, if there is one, does not have."""
        for what, names in (("host", kernel.host), ("retains", kernel.retains)):
            if names and kernel.op in self._ops:
                inputs = [arg.name for arg in self._ops.get(kernel.op).inputs]
                for name in sorted(names.difference(inputs)):
                    raise PluginError(f"{what} of {kernel.pack}'s kernel for {kernel.op} names '{name}', which is no "
                                      "input of it", op=kernel.op, hint=f"its inputs: {', '.join(inputs) or 'none'}")

    def _rank(self, kernel: KernelDef) -> tuple[bool, int, str]:
        return self._override.get(kernel.op) != kernel.pack, -kernel.priority, kernel.pack


def _op_names(ops: Collection[str]) -> str:
    """`the kernel for Add`, `the kernels for Add, Mul and 7 more`."""
    first = sorted(ops)[:3]
    more = f" and {len(ops) - len(first)} more" if len(ops) > len(first) else ""
    return f"the kernel{'s' if len(ops) > 1 else ''} for {', '.join(first)}{more}"


def _overlap(a: KernelDef, b: KernelDef) -> bool:
    """False when priority or the declared types tell that no node could be served by either alike."""
    if a.priority != b.priority:
        return False
    for attr in a.dtypes.keys() & b.dtypes.keys():
        x, y = a.dtypes[attr], b.dtypes[attr]
        if x is not None and y is not None and not x & y:
            return False
    return True


def run_of(bound: Callable[..., Any] | Attachable) -> Callable[..., Any]:
    """The run function of a bound kernel that is no alias."""
    return bound if callable(bound) else bound.run


def check_bound(bound: object, pack: str, op: str) -> None:
    """A bind function must return a callable, None, or an object with run and attach."""
    if isinstance(bound, Declined):
        return
    if bound is not None and not callable(bound) and not (hasattr(bound, "run") and hasattr(bound, "attach")):
        raise PluginError(f"bind of {pack}'s kernel for {op} returned {type(bound).__name__}; "
                          "expected a function, None, or an object with run and attach")


