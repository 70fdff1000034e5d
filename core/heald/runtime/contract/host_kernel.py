"""Host kernels: plain typed functions. The signature is the whole declaration.

    @kernels.kernel("my.clamp.i32")
    def clamp(x: I32, *, low: I32 = 0, high: I32) -> I32:
        return min(max(x, low), high)

Parameters. Positional parameters are the arguments; `*values` takes any number of them. A call may leave out the last
arguments whose parameters have defaults. Keyword-only parameters are the attributes. A keyword-only Callee, or tuple of
Callees, is a function of the program, for `step.call`. With `step=True` the first parameter is the running Step, whose
`host` is the Host. `Any` permits every type.

Results. The return annotation is the type of the result. A tuple of types declares several results, None declares none,
and `list[...]` as many as the call has.

Futures. A kernel may return an AsyncValue in place of any result: a later result, or the error of this result alone. A
kernel that always does is declared `asynchronous`; its consumers are then scheduled around it. An exception is the
error of all results. A `nonstrict` kernel is called when one argument is available, and receives an AsyncValue for each
argument.

Functions. `calls` checks the functions that a call names, when the program is linked: it takes the types of the call's
arguments and results, and returns the types that each function may have. Without it nothing is checked.

Places. A keyword-only parameter of the type `Location` is filled in with the place of the call in its source, or None.

Text. `syntax` is the form of a call in the text of programs, an assembly format of MLIR's operation definitions:
`syntax="operands attr-dict"`, `syntax="$value attr-dict"`. Core keeps it; the reader of texts compiles it. Without it a
call is written in the generic form.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

from ...errors import HealdWarning, Location, NotFound, PluginError, closest
from ..support.fork_safety import inherited
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple
from .device import Conflict, load_callable
from .host_type import HostType

CORE_PLUGIN = "heald"  # the plugin of the kernels and loaders that core itself has
KernelFunction = Callable[..., Any]
_REQUIRED: Any = inspect.Parameter.empty
F = TypeVar("F", bound=KernelFunction)
Types = tuple[Any, ...]  # of registers
FunctionTypes = tuple[Types, Types]  # of a function's arguments, and of its results
CallRule = Callable[[Types, Types], Sequence[FunctionTypes]]


class Callee(Protocol):
    """A function of the program, as kernels receive it: `step.call(callee, arguments)`."""

    name: str

    @property
    def executable(self) -> Any:
        """The linked function, which the step runs."""


class Parameter(NamedTuple):
    """An argument or an attribute. A `type` of None permits every type; `default` is as in `inspect`."""

    name: str
    type: HostType | None
    default: Any = _REQUIRED

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED

    def __str__(self) -> str:
        text = f"{self.name}: {self.type or 'any'}"
        return text if self.is_required else f"{text} = {self.default!r}"


class HostKernel(NamedTuple):
    """A declared host kernel.

    `variadic`: The parameter of further arguments; None when there may be none.
    `results`: The type of each result. None for as many results of any type as the call has.
    """

    code: str
    function: KernelFunction
    arguments: tuple[Parameter, ...]
    variadic: Parameter | None
    results: tuple[HostType | None, ...] | None
    attributes: Mapping[str, Parameter]
    callees: tuple[str, ...]
    takes_more_callees: bool  # the one callee parameter is a tuple of Callees
    step: bool
    asynchronous: bool
    nonstrict: bool
    plugin: str
    calls: CallRule | None = None
    located: str | None = None  # the parameter that receives the place of the call
    syntax: str | None = None  # its assembly format; None for the generic form alone

    def __str__(self) -> str:
        """The declaration in one line: `my.clamp.i32(x: i32) {low: i32 = 0, high: i32} -> i32`."""
        arguments = [str(a) for a in self.arguments] + ([f"*{self.variadic}"] if self.variadic is not None else [])
        functions = [f"@{name}..." if self.takes_more_callees else f"@{name}" for name in self.callees]
        braces = ", ".join([*map(str, self.attributes.values()), *functions])
        results = ["..."] if self.results is None else [str(r or "any") for r in self.results]
        text = results[0] if len(results) == 1 else f"({', '.join(results)})"
        return f"{self.code}({', '.join(arguments)}){f' {{{braces}}}' if braces else ''} -> {text}"

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.function) or ""


class HostPack(NamedTuple):
    """The host kernels of one plugin. `register` is imported when a program first asks for a host kernel."""

    register: str | Callable[..., None]
    plugin: str


class HostKernels:
    """The registry that a pack's register function receives. The function adds the host kernels of one plugin."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self.added: dict[str, HostKernel] = {}

    def kernel(
        self, code: str, *, step: bool = False, asynchronous: bool = False, nonstrict: bool = False,
        calls: CallRule | None = None, syntax: str | None = None, **types: Any
    ) -> Callable[[F], F]:
        """Decorate a function: it becomes the host kernel `code`, written `dialect.name`. `types` replaces TypeVars of
        the signature, by name, so that one generic function can be registered for several types. `calls`: the rule of
        the functions that it is given. `syntax`: the assembly format of its calls.

        Raises PluginError when the code is declared twice, and for a signature that `declared` refuses.
        """

        def add(function: F) -> F:
            if code in self.added:
                raise PluginError(f"the host kernel {code} is declared twice")
            kernel = declare_host_kernel(code, function, types, step, asynchronous, nonstrict, self._plugin)
            self.added[code] = kernel._replace(calls=calls, syntax=syntax)
            return function

        return add


def declare_host_kernel(
    code: str, function: KernelFunction, types: Mapping[str, Any] | None = None, step: bool = False,
    asynchronous: bool = False, nonstrict: bool = False, plugin: str = "",
) -> HostKernel:
    """Read a function's signature as the declaration of a host kernel. Raises PluginError when a type is missing or is
    not a type of registers."""
    if "." not in code.strip("."):
        raise PluginError(f"'{code}' is not the name of a host kernel", hint="write it as 'dialect.name'")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise PluginError(f"the signature of host kernel {code} cannot be read: {error}",
                          hint="import what its annotations name outside of TYPE_CHECKING") from error

    def host_type(name: str) -> HostType | None:
        if name not in hints:
            raise PluginError(f"host kernel {code} declares no type for '{name}'", hint="annotate it; Any is allowed")
        return _host_type(hints[name], types or {}, f"'{name}' of host kernel {code}")

    parameters = list(inspect.signature(function).parameters.values())
    if step and not parameters:
        raise PluginError(f"host kernel {code} takes no step", hint="make it the first parameter")
    arguments, attributes, callees, more, variadic, located = [], {}, [], False, None, None
    for p in parameters[1:] if step else parameters:
        if p.kind is p.VAR_KEYWORD:
            raise PluginError(f"host kernel {code} takes **{p.name}", hint="name its attributes, keyword-only")
        if p.kind is p.VAR_POSITIONAL:
            variadic = Parameter(p.name, host_type(p.name))
        elif p.kind is not p.KEYWORD_ONLY:
            arguments.append(Parameter(p.name, host_type(p.name), p.default))
        elif hints.get(p.name) is Callee:
            callees.append(p.name)
        elif Location in (hints.get(p.name), *get_args(hints.get(p.name))):
            located = p.name
        elif Callee in get_args(hints.get(p.name)):
            callees.append(p.name)
            more = True
        else:
            attributes[p.name] = Parameter(p.name, host_type(p.name), p.default)
    if more and len(callees) > 1:
        raise PluginError(f"host kernel {code} takes functions and a tuple of functions", hint="take the tuple alone")
    results = _results(hints, types or {}, code)
    return HostKernel(code, function, tuple(arguments), variadic, results, attributes, tuple(callees), more, step,
                      asynchronous, nonstrict, plugin, located=located)


def _results(hints: Mapping[str, Any], types: Mapping[str, Any], code: str) -> tuple[HostType | None, ...] | None:
    if "return" not in hints:
        raise PluginError(f"host kernel {code} declares no type for its results", hint="write -> None for none")
    hint, what = hints["return"], f"the results of host kernel {code}"
    if hint is type(None):
        return ()
    if get_origin(hint) in (list, Sequence):
        return None
    if get_origin(hint) is tuple:
        return tuple(_host_type(part, types, what) for part in get_args(hint))
    return (_host_type(hint, types, what),)


def _host_type(hint: Any, types: Mapping[str, Any], what: str) -> HostType | None:
    if isinstance(hint, TypeVar):
        hint = types.get(hint.__name__, hint)
    if hint is Any:
        return None
    if get_origin(hint) is Annotated:
        for mark in hint.__metadata__:
            if isinstance(mark, HostType):
                return mark
    raise PluginError(f"{what}: {hint} is not a type of registers",
                      hint="use a type of heald.api (I32, F32, Chain, ...), Annotated[..., HostType(name)], or Any")


class HostKernelRegistry:
    """Host kernels by code. heald's own pack is imported when the first program asks for a host kernel, those of
    plugins when a program asks for one that heald lacks. Any thread may call."""

    def __init__(self) -> None:
        self.failures: dict[str, PluginError] = {}  # plugin: why its host kernels are missing
        self._packs: list[HostPack] = []
        self._kernels: dict[str, HostKernel] = {}
        self._conflicts: list[Conflict] = []
        self._to_tell: list[str] = []  # failures, to be warned of
        self._lock = RLock()
        inherited.add(self)

    def add_pack(self, pack: HostPack) -> None:
        with self._lock:
            self._packs.append(pack)

    def get(self, code: str) -> HostKernel:
        """The host kernel of this code. Raises NotFound, with the nearest codes, when there is none."""
        kernel = self._own_kernel(code)
        if kernel is None:
            self.load()
            kernel = self._kernels.get(code)
        if kernel is None:
            raise NotFound(f"there is no host kernel {code}", op=code, hint=partial(self._nearest, code))
        return kernel

    def _own_kernel(self, code: str) -> HostKernel | None:
        """heald's own kernel of this code. It wins over every plugin's, so that no plugin's pack is imported for it:
        a graph with a loop would pay for the modules of file formats."""
        if self._packs:
            self._register_packs([pack for pack in self._packs if pack.plugin == CORE_PLUGIN])
        kernel = self._kernels.get(code)
        return kernel if kernel is not None and kernel.plugin == CORE_PLUGIN else None

    def _nearest(self, code: str) -> str:
        similar_codes = closest(code, self._kernels)
        return f"did you mean {' or '.join(similar_codes)}?" if similar_codes else "heald plugins lists the plugins"

    def load(self) -> None:
        """Import and register every pack. A pack that fails is left out as a whole and named in `failures`.

        Of two plugins that declare one code, the plugin with the lower id wins; heald's own kernels win over every
        plugin.
        """
        if not self._packs:
            return
        self._register_packs(self._packs)
        while self._to_tell:
            warnings.warn(self._to_tell.pop(0), HealdWarning, stacklevel=3)

    def conflicts(self) -> list[Conflict]:
        return list(self._conflicts)

    def forked(self) -> None:
        self._lock = RLock()

    def _register_packs(self, packs: Sequence[HostPack]) -> None:
        with self._lock:
            for pack in sorted(packs, key=lambda pack: _rank(pack.plugin)):
                if pack not in self._packs:
                    continue  # another thread was first
                self._register(pack)
                self._packs.remove(pack)  # removed last: a forked child may have to register it again

    def _register(self, pack: HostPack) -> None:
        kernels = HostKernels(pack.plugin)
        try:
            with plugin_guard("registering its host kernels"):
                load_callable(pack.register)(kernels)
        except PluginError as error:
            self.failures[pack.plugin] = error
            self._to_tell.append(f"plugin {pack.plugin}: {error}")
            return
        for code, kernel in kernels.added.items():
            rival = self._kernels.setdefault(code, kernel)
            if rival.plugin != kernel.plugin:
                winner, loser = sorted((rival, kernel), key=lambda k: _rank(k.plugin))
                self._kernels[code] = winner
                self._conflicts.append(Conflict(f"host kernel {code}", winner.plugin, loser.plugin,
                                                f"[plugins] block = ['{loser.plugin}'] or ['{winner.plugin}']"))


def _rank(plugin: str) -> tuple[bool, str]:
    return plugin != CORE_PLUGIN, plugin
