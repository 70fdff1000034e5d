"""Kernels: the registration of a plugin's kernels for a device type, and the binding of a kernel to a node.

A kernel has three phases.
- *bind* runs once per link. It sees the op, the attributes, the known facts of each input, and the device. It chooses
    the algorithm and packs constant weights. It returns the run function, None for an alias, or an object with `run`
    and `attach`. A bind function may decline; then the next candidate is asked.
- *attach* runs once per frame. It receives the frame's buffers and returns a call without arguments. A bound kernel
    without `attach` is attached as `partial(run, *inputs, *outputs)`.
- *run* is that call. It runs in a thread where NumPy warns of nothing and denormals are 0 (`host/kernel_context.py`).

A run writes every element of its outputs, only reads its inputs, and returns no other array
(`executor/array_contract.py`). A bound kernel is immutable: several steps may run it at once.

Operands. The run function receives the inputs, then the outputs. An argument that stands for several tensors, `xs: N *
T`, is flattened: each tensor is an operand of its own, in the order of the signature. On a device that works on host
memory an operand is a C-contiguous, aligned NumPy array of exactly the type and shape that `Bind` states. On other
devices it is a buffer of the device in the same layout; an input that `host=` names is a NumPy array there too. The
scratch buffers that bind asked for follow the outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from ...errors import HealdError, HealdWarning, InvalidArgument, PermissionDenied, PluginError, Unavailable
from ..support.fork_safety import inherited
from ..support.install import Library
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple
from ..support.remedy import kernel_remedy, loading_remedy
from ..values.dtypes import DType, named
from ..values.tensor import TensorMetadata, ValueInfo
from .device import Conflict, Device, DeviceTypeRegistry, Stream, load_callable
from .op import Attrs
from .op_registry import OpRegistry
from .prepared import PreparedObject, constants_of

ANY = "any"  # in the place of types in `Kernels.kernel(dtypes=)`: every type
T = TypeVar("T")


class Declined(NamedTuple):
    """The result of a bind function whose kernel cannot serve the node. `reason` is shown by `heald explain`."""

    reason: str


class Attachable(Protocol):
    """A bound kernel that receives its buffers once per frame instead of with every call.

    An Attachable may have an attribute `inplace`: {output index: input index}, as in KernelDef, but for this node
    alone. The memory plan may then give such an output the buffer of its input. `attach` has to test whether the two
    buffers are the same one; `run` always receives different ones.
    """

    def run(self, *inputs_then_outputs: Any) -> Any:
        """Compute over these operands. Called instead of an attached call where an operand is made anew in each run,
        such as a fed array or a fetched result."""

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], Any]:
        """Return the call of one frame over these operands, each as `run` receives it: buffers of the device, and
        NumPy arrays for the inputs that `host=` names. Scratch buffers (`Bind.scratch`) are the last of `outputs`.
        Their memory stays; their content is new in each run. A frame runs one step at a time, so the call may own
        scratch memory."""

    # Optional attributes:
    #
    #     how: str
    #         """The chosen algorithm in a few words, for `heald explain --all` and `heald bench --nodes`."""
    #
    #     nbytes: int
    #         """Bytes that the kernel holds besides Python objects, approximately. The cache of bound calls is bounded
    #         by bytes."""
    #
    # Optional attribute on a device with a queue of its own:
    #
    #     captures: bool
    #         """False for a kernel whose attached call must run each time: it waits, or reads values of the host. The
    #         device may replay the work of other attached calls without calling them (`Device.capture`)."""
    #
    # Optional attributes on a device that works on host memory:
    #
    #     reads: Collection[int]
    #         """Indices of the inputs that the kernel's calls read. A constant that no call reads is not kept, because
    #         bind has prepared all its content. The call receives an array of its shape with arbitrary elements."""
    #     shows: Mapping[int, tuple[int, int]]
    #         """Since 1.4, also of a run function. {output: (input, element)}: the output's elements are those of the
    #         input in the same order, from this one on. The executor may then let the output show the input's memory,
    #         and call nothing. Every output has an entry, or there is no `shows`."""
    #     fills_cores: bool
    #         """True when a call has threads of its own for all cores. Other calls beside it gain nothing."""
    #     prefers_fixed_arrays: bool
    #         """True when an attached call is faster than `run` by more than 1 us. A small feed is then copied into the
    #         frame, and a small result out of it."""
    #
    # Optional attribute of an attached call:
    #
    #     join(calls: Sequence[Callable[[], Any]]) -> Sequence[Callable[[], Any] | None]
    #         """Return as many calls in the place of these adjacent attached calls, which have the same `join`. A call
    #         that does the work of several stands in the place of the first, and None in the places of the others. A
    #         cancelled step ends between calls only, so a joined call takes some milliseconds at most."""


Bound = Callable[..., Any] | Attachable | None  # a bound kernel: the run function, an Attachable, None for an alias
# {output index: index of the input whose buffer it is}, or a function of the attributes that returns it
Alias = Mapping[int, int] | Callable[[Attrs], Mapping[int, int]]  # a value of `Kernels.kernel(alias=)`
BindFunction = Callable[..., "Bound | Declined"]  # takes a Bind, returns a bound kernel or declines


class FusedOp(NamedTuple):
    """One op of a fusion, the group of ops that one kernel computes at once.

    Values are numbered: the inputs of the fusion come first, then the results of its ops in their order. `args` and
    `results` are such numbers; `outputs` has the static metadata of each result. The output of the fusion is the first
    result of its last op.
    """

    op: str
    attrs: Attrs
    args: tuple[int, ...]
    results: tuple[int, ...]
    outputs: tuple[TensorMetadata, ...]


Keep = Callable[[str, Callable[[], Any], str | None], Any]  # (name, make, container): the object, made at first
Ask = Callable[[int, str], None]  # (bytes, their purpose for the error message)


def _make_unkept(_: str, make: Callable[[], T], __: str | None = None) -> T:
    return make()


# (key, fingerprint, metadata of the array, make): the array of a file, or the result of `make`
Stored = Callable[[str, str, TensorMetadata, Callable[[], Any]], Any]


def _make_unstored(_: str, __: str, ___: TensorMetadata, make: Callable[[], T]) -> T:
    return make()


Own = Callable[[Callable[[Any], object], Any], None]  # (release, object): calls `release(object)` in the end


def leave_to_collector(_: Callable[[Any], object], __: Any) -> None:
    """Release nothing: an object that is bound outside any program goes with its last reference."""


OpenFile = Callable[[str | bytes, str], Path]  # (name, "read" or "write"): the path to open


def _refuse_files(name: str | bytes, access: str) -> Path:
    """Refuse every file: the policy of a kernel that is bound outside any host."""
    raise PermissionDenied(f"a kernel that no session has bound may not {access} {name!r}")


def _grant_all(nbytes: int, what: str) -> None:
    """Grant every request: the budget of a kernel that is bound outside any host."""


class Bind:
    """The node that a bind function binds its kernel to.

    `node`, `op`: The name and the op of the node. For a fusion `node` is the node of its last op, `op` the name of the
        fusion.
    `attrs`: Every declared attribute, defaults included: strings as str, types as DType, shapes as tuple or None, lists
        as tuples. For a fusion it belongs to none of its nodes.
    `inputs`: A ValueInfo for each input tensor, lists flattened, with static metadata. `value` is the array where the
        elements are known before the run: for a constant, and for an input that the op's metadata function reads.
        Otherwise `value` is None. Reading `value` may have to make the array; `is_known` tells at no cost whether there
        is one.
    `outputs`: The TensorMetadata of each output. It is static, except for kernels that are declared `allocates`.
    `needed`: The indices of the outputs that have consumers. The content of the other outputs does not matter.
    `device`, `stream`: The device that runs the kernel, and the stream that it enqueues on.
    `fused`: The ops that a fusion, or the group of a compiler, computes, in order; empty for a single node.
    `results`: For a group, the results by their numbers in `fused`; `outputs` has their metadata.
    `function`: The name of the function of the program that contains the node.
    `ask(nbytes, what)`: Raises ResourceExhausted when the host's memory budget has no room for `nbytes` bytes now. A
        run function that makes its results calls `ask` first, as soon as their size is known.
    `scratch_sizes`: The sizes of the scratch buffers that `scratch` was asked for so far.
    `file(name, access)`: Returns the path of a file that the kernel may open, "read" or "write" being the access.
        Raises PermissionDenied for a file that [files] does not permit. The kernel is declared with `files`.
    """

    __slots__ = ("_prepared", "_stored", "ask", "attrs", "device", "file", "function", "fused", "inputs", "keep",
                 "needed", "node", "op", "outputs", "own", "results", "scratch_sizes", "stream")

    def __init__(
        self, node: str, op: str, attrs: Attrs, inputs: tuple[ValueInfo, ...], outputs: tuple[TensorMetadata, ...],
        device: Device, stream: Stream, prepared: dict[Any, Any], fused: tuple[FusedOp, ...] = (),
        keep: Keep = _make_unkept, function: str = "", needed: Collection[int] | None = None,
        ask: Ask = _grant_all, file: OpenFile = _refuse_files, stored: Stored = _make_unstored,
        own: Own = leave_to_collector,
        results: tuple[int, ...] = (),
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
        self.file = file
        self.function = function
        self.results = results
        self.needed = frozenset(range(len(outputs)) if needed is None else needed)
        self._prepared = prepared
        self._stored = stored
        self.own = own
        self.scratch_sizes: list[int] = []

    def scratch(self, nbytes: int) -> int:
        """Ask for a buffer of `nbytes` that each run uses alone. Returns its index among the operands. Since 1.4.

        Scratch operands follow the outputs in `run`, and are the last of the `outputs` of `attach`: buffers of the
        device, or uint8 arrays in host memory, with any content. The memory plan shares their memory with values that
        do not live during the call. A kernel that returns its outputs cannot have scratch. Raises InvalidArgument for
        a size below 0.
        """
        if type(nbytes) is not int or nbytes < 0:
            raise InvalidArgument(f"scratch of {nbytes!r} bytes is asked for", hint="give a number of bytes from 0")
        self.scratch_sizes.append(nbytes)
        return len(self.inputs) + len(self.outputs) + len(self.scratch_sizes) - 1

    def decline(self, reason: str) -> Declined:
        """Leave this node to the next candidate. The bind function returns the result; `heald explain` shows the
        reason."""
        return Declined(reason)

    def prepared(
        self, key: str, make: Callable[[], T], *, fingerprint: str = "", meta: TensorMetadata | None = None,
        release: Callable[[T], object] | None = None,
    ) -> T:
        """The object made from this node's constants under `key`. `make()` runs once per node, device and key; all
        links of a program share its result, as long as the node's op, attributes and constants are the same.

        With a fingerprint the object is stored in compiled files. A loaded program of the same fingerprint and `meta`
        returns the array of the file, read-only and aligned to 64 bytes; `make` does not run. `make` is then the only
        reader of the constants' elements, which the file may lack.

        `fingerprint`: The name of the pack, and everything else that the bytes depend on besides node and key: the
            revision of its layouts, library, version, instruction set.
        `meta`: The type and shape of the array that `make()` returns, or that a callable without arguments returns,
            which `make()` returns.
        `release`: Called once with the object when the program is closed, while the device is still open. It is for
            objects with memory of a device. Without it the object goes with its last reference. Since 1.4.

        Raises InvalidArgument for a fingerprint without `meta`, FailedPrecondition when `make` would need constants
        that the file lacks.
        """
        slot = (self.node, id(self.device), key)
        ops = [(member.op, member.attrs) for member in self.fused] or [(self.op, self.attrs)]
        constants = constants_of(self.inputs)
        prepared = self._prepared.get(slot)
        if prepared is None or not prepared.serves(ops, constants):
            if fingerprint and meta is None:
                raise InvalidArgument(f"the prepared object '{key}' has a fingerprint and no metadata",
                                      hint="give the array's type and shape: meta=TensorMetadata(dtype, shape)")
            value = make() if meta is None else self._stored(key, fingerprint, meta, make)
            prepared = self._prepared[slot] = PreparedObject(ops, constants, value)
            if release is not None:
                self.own(release, value)
        return prepared.value  # type: ignore[no-any-return]

    def resource(self, kind: str, make: Callable[[], T], *, name: str = "") -> T:
        """The object that the session keeps for this node from run to run, one per `kind`. `make()` runs once.

        Nodes whose attributes `container` and `shared_name` are equal share one object. A node without `shared_name`
        has an object of its own. `name` stands for `shared_name` where an op has another attribute for that. Every
        kernel bound to such a node receives the same object, and several threads may use it at once. `Session.reset`
        drops the objects of nodes with the attribute `container`, and then kernels are bound anew.
        """
        shared = name or self.attrs.get("shared_name")
        owner = f"{self.attrs.get('container')!r}/{shared!r}" if shared else f"{self.node} in {self.function}"
        container = self.attrs.get("container")  # without this attribute the object outlives every reset
        return self.keep(f"{kind} of {owner}", make, container)  # type: ignore[no-any-return]


class KernelDef(NamedTuple):
    """A registered kernel. `dtypes` maps a type attribute to the types that the kernel takes; None, or an attribute
    that is missing in it, allows every type. The comment at each further field states its meaning."""

    op: str
    device_type: str
    pack: str
    bind: BindFunction
    dtypes: Mapping[str, frozenset[DType] | None] = MappingProxyType({})
    when: Callable[[Attrs], bool] | None = None
    priority: int = 0
    host: frozenset[str] = frozenset()  # names of the inputs that the kernel reads in host memory
    alias: Alias = MappingProxyType({})  # {output: input} whose buffer the output always is
    inplace: Mapping[int, int] = MappingProxyType({})  # {output: input} that the output may be written over
    retains: frozenset[str] = frozenset()  # inputs that are read after the run returned: no other call writes them
    allocates: bool = False  # the run returns its outputs, whose shapes depend on data
    # The run returns an AsyncValue for each output, or its payload where that is available already. For an op without
    # outputs the run returns an AsyncValue that tells the end of the work, or None when the work is done.
    asynchronous: bool = False
    nonstrict: bool = False  # called when one input is available; takes all as AsyncValues, returns its outputs
    step: bool = False  # the first argument of the run is the running Step
    files: frozenset[str] = frozenset()  # "read", "write": the accesses to files; steps run it only if [files] permits
    # {input or output: "scalar" or "coo"}: the layouts that an eager call's tensors have; the others are dense. Such a
    # kernel serves eager calls of exactly these inputs. Its run takes and returns ScalarTensors and CooTensors.
    layouts: Mapping[str, str] = MappingProxyType({})
    library: Library | None = None  # without it the kernel is no candidate, and no bind function is asked
    is_fusion: bool = False  # the kernel of several nodes, whose name is no op's
    # On a device outside host memory: the run function fills arrays in host memory before it returns. It reads inputs
    # that `host` names; of the others it knows type and shape alone.
    host_outputs: bool = False
    compiler: str = ""  # the compiler that made it of a group

    @property
    def returns(self) -> bool:
        """True when the run function returns its outputs instead of writing them."""
        return self.allocates or self.asynchronous or self.nonstrict or bool(self.layouts)

    def aliases(self, attrs: Attrs) -> Mapping[int, int]:
        """The aliases of a node with these attributes: {output index: index of the input whose buffer it is}."""
        return self.alias(attrs) if callable(self.alias) else self.alias

    def refuses(self, attrs: Attrs) -> str | None:
        """The reason why this kernel is no candidate for a node with these attributes, or None when it is one."""
        for name, allowed in self.dtypes.items():
            attr_value = attrs.get(name)
            types = attr_value if isinstance(attr_value, tuple | list) else (attr_value,)
            if allowed is not None and not allowed.issuperset(types):
                return f"{name}={', '.join(str(t) for t in types)} is not among {dtype_names(allowed)}"
        try:
            holds = self.when is None or self.when(attrs)
        except Exception as error:  # noqa: BLE001 - a plugin's fault: its kernel is no candidate
            return f"its condition on the attributes raised {type(error).__name__}: {error}"
        if not holds:
            return "its condition on the attributes does not hold"
        return None if self.library is None else self.library.lack()


def dtype_names(allowed: Iterable[DType] | None) -> str:
    return "any" if allowed is None else ", ".join(d.name for d in sorted(allowed, key=lambda d: d.number))


class FusionDef(NamedTuple):
    """A fusion: a chain of ops that one kernel of a pack can compute at once.

    The same pack serves all ops, on the same device, and all have the shape of the last op. Only the fusion's own ops
    consume the values between them. The ops are of `ops`, which does not contain the heads. At most one op is of
    `heads`, and is the first. An op in both counts as one of `ops` and may stand anywhere, any number of times. At most
    one op of `leads` precedes the head: it makes the head's first input, may have any shape, and is then the first of
    `Bind.fused`. A chain without a head is asked too, and the bind function declines it.
    """

    kernel: KernelDef  # its `op` is the fusion's name
    ops: frozenset[str]
    heads: frozenset[str] = frozenset()
    leads: frozenset[str] = frozenset()


Find = Callable[[FusedOp, Mapping[int, FusedOp], Sequence[ValueInfo]], Collection[FusedOp]]  # `PatternDef.find`


class PatternDef(NamedTuple):
    """A pattern: ops that one kernel of a pack can compute at once, found by a function of the pack.

    `find(last, made, known)` is called for each op in `ends` that this pack's kernels serve.
    `made`: Every op that the pack's kernels serve, in order, by the numbers of the values that it makes.
    `known`: The ValueInfo of each value, by its number.

    `find` returns the ops to compute at once, `last` among them, or none. Their shapes may differ. The ops are left as
    they are when a value between them has another consumer.
    """

    kernel: KernelDef  # its `op` is the pattern's name
    ends: frozenset[str]
    find: Find


SHOWN_NODES = 3  # nodes that the text of a refusal names


class FusionRefusal(NamedTuple):
    """A fusion or a pattern that a link did not use, though the pack has a kernel for such ops.

    `pattern`: its name with its pack's, such as `onednn.Product`.
    `node`: the node where it stopped: the one that stays apart, or the last one of those that the kernel declined.
    `nodes`: the nodes that it would have computed at once.
    """

    pattern: str
    node: str
    reason: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        left = len(self.nodes) - SHOWN_NODES
        names = ", ".join(self.nodes[:SHOWN_NODES]) + (f" and {left} more" if left > 0 else "")
        return f"fusion {self.pattern} stopped at '{self.node}': {self.reason} (nodes {names})"


class KernelChoice(NamedTuple):
    """Why a kernel was asked before others: the rule, and (pack, reason) of each candidate behind it."""

    rule: str
    lost: tuple[tuple[str, str], ...]


class KernelPack(NamedTuple):
    """The kernels of one plugin for one device type. `register` is imported when the type is first used."""

    device_type: str
    register: str | Callable[..., None]
    priority: int
    plugin: str
    is_of_device_plugin: bool = False  # announced with the device type: void when another plugin wins that type


class Kernels:
    """The registry that a pack's register function receives. The function adds the kernels of one plugin for one device
    type.

    The register function raises Unavailable when a requirement of its kernels is missing on this machine. Then the
    kernels of other packs serve, and the plugin's record states the reason.
    """

    def __init__(self, pack: KernelPack) -> None:
        self._pack = pack
        self.added: list[KernelDef] = []
        self.fusions: list[FusionDef] = []
        self.patterns: list[PatternDef] = []
        self.families: list[tuple[Sequence[str], Callable[..., None]]] = []

    def later(self, ops: Sequence[str], register: Callable[..., None]) -> None:
        """Declare a family: the kernels for `ops`. `register` adds them, and imports their requirements, when one of
        the ops is first asked for."""
        self.families.append((ops, register))

    def kernel(
        self, op: str, *, dtypes: Mapping[str, str | Iterable[str]] | None = None,
        when: Callable[[Attrs], bool] | None = None, priority: int = 0, host: Iterable[str] = (),
        alias: Alias | None = None, inplace: Mapping[int, int] | None = None, retains: Iterable[str] = (),
        allocates: bool = False, asynchronous: bool = False, nonstrict: bool = False, step: bool = False,
        files: Iterable[str] = (), layouts: Mapping[str, str] | None = None, library: Library | None = None,
        host_outputs: bool = False,
    ) -> Callable[[BindFunction], BindFunction]:
        """Decorate a bind function: it serves `op` for these types and attributes.

        `dtypes`: By type attribute, the name of one type, several names, or ANY.
        `when`: A condition on the attributes. The kernel is no candidate where `when(attrs)` is false or raises.
        `priority`: Added to the priority of the pack. The candidate of the highest priority is asked first.

        The other arguments are the fields of KernelDef.
        """

        def add(bind: BindFunction) -> BindFunction:
            sets = {attr: None if types == ANY else frozenset(map(named, [types] if isinstance(types, str) else types))
                    for attr, types in (dtypes or {}).items()}
            self.added.append(KernelDef(
                op, self._pack.device_type, self._pack.plugin, bind, sets, when, self._pack.priority + priority,
                frozenset(host), alias or {}, inplace or {}, frozenset(retains), allocates, asynchronous, nonstrict,
                step, frozenset(files), layouts or {}, library, host_outputs=host_outputs,
            ))
            return bind

        return add

    def fusion(
        self, name: str, *, ops: Iterable[str], heads: Iterable[str] = (), leads: Iterable[str] = (), priority: int = 0
    ) -> Callable[[BindFunction], BindFunction]:
        """Decorate a bind function that makes one kernel of several nodes (`Bind.fused`), or declines.

        The bind function is asked for nodes that this pack's kernels serve and that follow each other as FusionDef
        says. A fusion of higher priority is asked first.
        """

        def add(bind: BindFunction) -> BindFunction:
            kernel = KernelDef(name, self._pack.device_type, self._pack.plugin, bind, priority=priority, is_fusion=True)
            self.fusions.append(FusionDef(kernel, frozenset(ops), frozenset(heads), frozenset(leads)))
            return bind

        return add

    def pattern(self, name: str, *, ends: Iterable[str], find: Find) -> Callable[[BindFunction], BindFunction]:
        """Decorate a bind function that makes one kernel of the nodes that `find` returns (`Bind.fused`), or declines.
        All patterns are looked for before the first fusion is asked. See PatternDef."""

        def add(bind: BindFunction) -> BindFunction:
            kernel = KernelDef(name, self._pack.device_type, self._pack.plugin, bind, is_fusion=True)
            self.patterns.append(PatternDef(kernel, frozenset(ends), find))
            return bind

        return add


class KernelRegistry:
    """Kernels by op and device type, the best candidate first.

    Packs are imported when their device type is first asked for. Any thread may call: loading holds the registry's
    lock.
    """

    def __init__(
        self, device_types: DeviceTypeRegistry, override: Mapping[str, str] | None = None,
        ops: OpRegistry | None = None,
    ) -> None:
        self.failures: dict[tuple[str, str], HealdError] = {}  # (device type, plugin): why its kernels are missing
        self._device_types = device_types
        self._ops = OpRegistry() if ops is None else ops
        self._override = dict(override or {})  # op -> the pack that config chooses
        self._waiting: list[KernelPack] = []
        self._loaded: list[KernelPack] = []
        self._kernels: dict[tuple[str, str], list[KernelDef]] = {}
        self._of_layouts: dict[tuple[str, str], list[KernelDef]] = {}  # the kernels with `KernelDef.layouts`
        self._fusions: dict[tuple[str, str], list[FusionDef]] = {}  # (device type, pack)
        self._patterns: dict[tuple[str, str], list[PatternDef]] = {}
        self._families: list[tuple[KernelPack, frozenset[str]]] = []  # not registered yet, with their ops
        self._awaited: set[tuple[str, str, str]] = set()  # (op, device type, plugin) of the families not registered yet
        self._late: dict[str, set[str]] = {}  # plugins with families, by device type
        self._ready: set[str] = set()  # device types whose packs are all registered
        self._displaced: set[tuple[str, ...]] = set()  # (device type, pack, pack) that were noted
        self._to_tell: list[str] = []
        self.named: set[str] = set()  # plugins that the user named: their failure is an error, not a warning
        self._refused: list[PluginError] = []  # failures of their packs, to be raised
        self._lock = RLock()
        inherited.add(self)

    def add_pack(self, pack: KernelPack) -> None:
        with self._lock:
            self._waiting.append(pack)
            self._ready.discard(pack.device_type)

    def packs(self) -> list[KernelPack]:
        return [*self._loaded, *self._waiting]

    def load(self, device_type: str) -> None:
        """Import and register every pack for a device type. A pack that fails is left out as a whole and named in
        `failures`. Raises PluginError, once, for a failed pack of a plugin in `named`."""
        with self._lock:
            announced = self._device_types.get(device_type)
            owner = announced.plugin if announced is not None else None
            for pack in [p for p in self._waiting if p.device_type == device_type]:
                self._waiting.remove(pack)
                self._loaded.append(pack)
                if not pack.is_of_device_plugin or owner == pack.plugin:
                    self._register(pack)
            self._ready.add(device_type)
        self._warn_of_changes()
        self._raise_refused()

    def reload(self, device_type: str) -> None:
        """Forget the kernels for a device type: another plugin serves the type now. They are registered anew when next
        asked for."""
        with self._lock:
            self._ready.discard(device_type)
            self._waiting += [pack for pack in self._loaded if pack.device_type == device_type]
            self._keep_ready()

    def candidates(self, op: str, device_type: str, plugin: str | None = None) -> list[KernelDef]:
        """The kernels that may serve `op` on this device type over dense tensors, best first. The pack that config
        chooses comes first, then the highest priority, then the name of the pack.

        `plugin`: the kernels of this plugin are needed. Those of other plugins may be missing: their families are not
        registered for this call.
        """
        self._load_for(op, device_type, plugin)
        return self._kernels.get((op, device_type), [])

    def of_layouts(self, op: str, device_type: str) -> list[KernelDef]:
        """The kernels for `op` on this device type that are declared for other layouts than dense ones, in the order of
        `candidates`."""
        self._load_for(op, device_type)
        return self._of_layouts.get((op, device_type), [])

    def is_awaited(self, op: str, device_type: str) -> bool:
        """True when the first request for the op on a ready device type will import and register kernels."""
        return device_type in self._ready and any(
            (op, device_type, late) in self._awaited for late in self._late.get(device_type, ()))

    def _load_for(self, op: str, device_type: str, plugin: str | None = None) -> None:
        if device_type not in self._ready:
            self.load(device_type)
        for late in self._late.get(device_type, ()) if plugin is None else (plugin,):
            if (op, device_type, late) in self._awaited:
                self._load_families(op, device_type, late)
        self._raise_refused()

    def _raise_refused(self) -> None:
        if self._refused:
            raise self._refused.pop(0)

    def fusions(self, device_type: str, pack: str) -> list[FusionDef]:
        """The fusions of a pack on this device type, in the order in which they are asked."""
        if device_type not in self._ready:
            self.load(device_type)
        return self._fusions.get((device_type, pack), [])

    def patterns(self, device_type: str, pack: str) -> list[PatternDef]:
        """The patterns of a pack on this device type, in the order of their registration."""
        if device_type not in self._ready:
            self.load(device_type)
        return self._patterns.get((device_type, pack), [])

    def failure(self, device_type: str, plugin: str) -> Exception | None:
        """The reason why a plugin's kernels for a device type could not be registered, or None. Raises as `load`."""
        self.load(device_type)
        return self.failures.get((device_type, plugin))

    def loaded_kernels(self) -> Iterable[KernelDef]:
        """Every kernel of the device types that were asked for so far. All their families are registered first."""
        for op, device_type, plugin in sorted(self._awaited):
            self._load_families(op, device_type, plugin)
        return [kernel for rivals in self._kernels.values() for kernel in rivals]

    def kernels_of_unknown_ops(self, device_type: str) -> list[tuple[KernelDef, str]]:
        """The kernels for a device type whose op no plugin brings, each with the nearest names as a hint.

        Registration says nothing: the plugin with the op may be missing on purpose.
        """
        unknown = [kernel for kernel in self.loaded_kernels()
                   if kernel.device_type == device_type and kernel.op not in self._ops]
        return [(kernel, self._ops.hint_of_unknown(kernel.op)) for kernel in unknown]

    def conflicts(self) -> list[Conflict]:
        """Kernels of equal priority that two plugins register for one op and device type, by pair of plugins. Ops whose
        pack config chooses have no conflict."""
        contested: dict[tuple[str, str, str], set[str]] = {}
        self.loaded_kernels()
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
        """Register unfinished device types anew: the thread that was registering their kernels does not exist in the
        child."""
        self._lock = RLock()
        self._waiting = [p for p in self.packs() if p.device_type not in self._ready]
        self._keep_ready()

    def _keep_ready(self) -> None:
        """Drop the kernels of all device types that are not ready."""
        self._loaded = [p for p in self._loaded if p.device_type in self._ready]
        self._kernels = {key: rivals for key, rivals in self._kernels.items() if key[1] in self._ready}
        self._of_layouts = {key: rivals for key, rivals in self._of_layouts.items() if key[1] in self._ready}
        self._fusions = {key: fusions for key, fusions in self._fusions.items() if key[0] in self._ready}
        self._patterns = {key: patterns for key, patterns in self._patterns.items() if key[0] in self._ready}
        self._families = [family for family in self._families if family[0].device_type in self._ready]
        self._awaited = {awaited for awaited in self._awaited if awaited[1] in self._ready}

    def _load_families(self, op: str, device_type: str, plugin: str) -> None:
        """Register the families of a plugin that have kernels for an op, and all that share ops with them. Families are
        registered in their order, which decides between kernels of equal rank: those of one pack."""
        with self._lock:
            families = [family for family in self._families
                        if family[0].device_type == device_type and family[0].plugin == plugin]
            ops, count = {op}, 0
            while count < len(ops):
                count = len(ops)
                for _, theirs in families:
                    if not ops.isdisjoint(theirs):
                        ops |= theirs
            for pack, theirs in families:
                if theirs <= ops:
                    self._register(pack)
                    self._families.remove((pack, theirs))
            self._awaited -= {(family_op, device_type, plugin) for family_op in ops}
        self._warn_of_changes()

    def _warn_of_changes(self) -> None:
        """Warn of packs that failed and of kernels that were displaced since the last call."""
        while self._to_tell:
            warnings.warn(self._to_tell.pop(0), HealdWarning, stacklevel=4)

    def _register(self, pack: KernelPack) -> None:
        kernels = Kernels(pack)
        try:
            with plugin_guard(f"registering its kernels for {pack.device_type}", hint=loading_remedy(pack.plugin)):
                load_callable(pack.register)(kernels)
            for kernel in kernels.added:
                self._check_names(kernel)
        except PluginError as error:
            missing = error.__cause__ if isinstance(error.__cause__, Unavailable) else error
            self.failures[pack.device_type, pack.plugin] = missing
            if missing is error and pack.plugin in self.named:
                refused = PluginError(f"plugin {pack.plugin}: {error.message}", hint=error.hint, plugin=pack.plugin)
                refused.__cause__ = error
                self._refused.append(refused)
            elif missing is error:
                self._to_tell.append(f"plugin {pack.plugin}: {error}")
            return
        for ops, register in kernels.families:
            self._families.append((pack._replace(register=register), frozenset(ops)))
            self._awaited.update((op, pack.device_type, pack.plugin) for op in ops)
            self._late.setdefault(pack.device_type, set()).add(pack.plugin)
        for kernel in kernels.added:
            by_op = self._of_layouts if kernel.layouts else self._kernels
            rivals = by_op.setdefault((kernel.op, pack.device_type), [])
            rivals.append(kernel)
            rivals.sort(key=self._rank)
            if not kernel.layouts:
                self._note_displaced(kernel, rivals)
        self._to_tell += [text for fusion in kernels.fusions if (text := _doubt_of_heads(fusion))]
        key = pack.device_type, pack.plugin  # a family adds to the fusions and patterns of its pack
        fusions = [*self._fusions.get(key, ()), *kernels.fusions]
        self._fusions[key] = sorted(fusions, key=lambda fusion: -fusion.kernel.priority)
        self._patterns[key] = [*self._patterns.get(key, ()), *kernels.patterns]

    def _note_displaced(self, kernel: KernelDef, rivals: Sequence[KernelDef]) -> None:
        """Note that a kernel and a rival of equal rank serve the same nodes: once for each pair of packs."""
        for rival in rivals if kernel.op not in self._override else ():
            pair = (kernel.device_type, *sorted((kernel.pack, rival.pack)))
            is_alike = kernel.when is None and rival.when is None and _overlap(kernel, rival)
            if rival.pack != kernel.pack and pair not in self._displaced and is_alike:
                self._displaced.add(pair)
                winner, loser = sorted((kernel.pack, rival.pack))
                self._to_tell.append(
                    f"plugins {winner} and {loser} have kernels for {kernel.op} on {kernel.device_type} at equal "
                    f"priority: {winner}'s is used; set [kernels] {kernel.op} = '{loser}' or '{winner}'")

    def _check_names(self, kernel: KernelDef) -> None:
        """Raise PluginError when the kernel names an input that its op does not have, or an unknown layout. An op that
        is not registered is not checked."""
        if kernel.layouts:
            _check_layouts(kernel)
        if kernel.layouts and (kernel.alias or kernel.asynchronous or kernel.nonstrict):
            raise PluginError(f"{kernel.pack}'s kernel for {kernel.op} declares layouts, and an alias or a late result",
                              op=kernel.op, hint="a kernel of declared layouts is strict and returns its outputs")
        if not (kernel.host or kernel.retains or kernel.layouts) or kernel.op not in self._ops:
            return
        op = self._ops.get(kernel.op)
        inputs, outputs = ([arg.name for arg in args] for args in (op.inputs, op.outputs))
        for what, names, kind, op_names in (("host", kernel.host, "input", inputs),
                                            ("retains", kernel.retains, "input", inputs),
                                            ("layouts", kernel.layouts, "input or output", inputs + outputs)):
            for name in sorted(set(names).difference(op_names)):
                raise PluginError(f"{what} of {kernel.pack}'s kernel for {kernel.op} names '{name}', which is no "
                                  f"{kind} of the op", op=kernel.op,
                                  hint=f"the op's {kind}s: {', '.join(op_names) or 'none'}")

    def choice(self, kernel: KernelDef) -> KernelChoice:
        """Return the rule by which this kernel was asked before the candidates behind it, and these candidates.

        Candidates before it refused or declined; the placement has their reasons.
        """
        chosen_pack = self._override.get(kernel.op)
        rivals = [rival for rival in self.candidates(kernel.op, kernel.device_type) if rival != kernel]
        behind = [rival for rival in rivals if self._rank(rival) >= self._rank(kernel)]
        lost = tuple((rival.pack, self._reason_behind(rival, kernel)) for rival in behind)
        if chosen_pack == kernel.pack:
            rule = f"[kernels] {kernel.op} = '{chosen_pack}'"
        elif not rivals:
            rule = "the only kernel"
        elif not behind:
            rule = "the last candidate: the others refused"
        elif any(rival.priority == kernel.priority for rival in behind):
            rule = f"first in order at priority {kernel.priority}"
        else:
            rule = f"highest priority: {kernel.priority}"
        return KernelChoice(rule, lost)

    def _reason_behind(self, rival: KernelDef, kernel: KernelDef) -> str:
        if self._override.get(kernel.op) == kernel.pack != rival.pack:
            return f"[kernels] {kernel.op} names {kernel.pack}"
        if rival.priority < kernel.priority:
            return f"priority {rival.priority} is below {kernel.priority}"
        return "registered later" if rival.pack == kernel.pack else "equal priority, and its name comes later"

    def _rank(self, kernel: KernelDef) -> tuple[bool, int, str]:
        return self._override.get(kernel.op) != kernel.pack, -kernel.priority, kernel.pack


def _doubt_of_heads(fusion: FusionDef) -> str | None:
    """The warning for a fusion whose `ops` and `heads` overlap: these heads begin no fusion. None without overlap."""
    both = sorted(fusion.ops & fusion.heads)
    if not both:
        return None
    return (f"plugin {fusion.kernel.pack}: fusion '{fusion.kernel.op}' has {', '.join(both)} in ops= and heads=, so a "
            "chain may have it anywhere; leave it out of ops= for a chain that begins with it")


def _check_layouts(kernel: KernelDef) -> None:
    from ..values.layouts import LAYOUTS

    wrong = sorted(set(kernel.layouts.values()) - set(LAYOUTS))
    if wrong:
        raise PluginError(f"layouts of {kernel.pack}'s kernel for {kernel.op} has {wrong[0]!r}, which is no layout",
                          op=kernel.op, hint=f"the layouts: {', '.join(LAYOUTS)}")


def _op_names(ops: Collection[str]) -> str:
    """The ops of a conflict as text: `the kernel for Add`, `the kernels for Add, Mul and 7 more`."""
    first = sorted(ops)[:3]
    more = f" and {len(ops) - len(first)} more" if len(ops) > len(first) else ""
    return f"the kernel{'s' if len(ops) > 1 else ''} for {', '.join(first)}{more}"


def _overlap(a: KernelDef, b: KernelDef) -> bool:
    """True when some node could be served by either kernel alike. False when priorities or declared types rule that
    out."""
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


def check_bound(bound: object, pack: str, op: str, *, is_fusion: bool = False, compiler: str = "") -> None:
    """Raise PluginError when a bind function returned neither a callable, None, nor an object with `run` and
    `attach`."""
    if isinstance(bound, Declined):
        return
    if bound is not None and not callable(bound) and not (hasattr(bound, "run") and hasattr(bound, "attach")):
        owner = f"compile of compiler '{compiler}' of plugin {pack}" if compiler else f"bind of {pack}'s kernel"
        raise PluginError(f"{owner} for {op} returned {type(bound).__name__}; "
                          "expected a function, None, or an object with run and attach",
                          plugin=pack if compiler else None,
                          hint=kernel_remedy(pack, op, is_fusion=is_fusion, compiler=compiler))


