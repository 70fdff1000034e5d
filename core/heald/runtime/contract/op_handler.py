"""Op handlers: the components that execute single ops, and the registry of their factories.

A handler makes, once for each op, a function that executes its calls. Handlers form a chain: a handler that does not
support an op leaves it to its fallback, and a handler that only watches, batches or fuses calls the fallback's
functions. The last handler of a chain is a device's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import Location, PluginError
from ..support.plugin_guard import plugin_guard
from ..support.records import NamedTuple
from ..values.tensor import TensorMetadata
from .device import load_callable

if TYPE_CHECKING:
    from ..values.async_value import AsyncValue
    from .op_attrs import OpAttrs

Handle = Any  # a heald.TensorHandle; its room is above this one


class OpInvocation(NamedTuple):
    """One call of an op, checked against the op's signature.

    `inputs`: TensorHandles, lists expanded. None of them is an error.
    `attrs`: every attribute of the op, defaults included.
    `donate`: indices of the inputs whose buffers the results may take.
    `device`: the device that the caller requests, or None.
    `location`: returns the source line of the call. Reading it takes microseconds: for messages only.
    `after`: values that must be complete before the call starts.
    `ended`: called by the device's handler with a value that completes when the call is over, or with None when it is
        over; None when no caller asks.
    `composite`: the number of results of a composite op, which has no declaration and no attributes; None for an op of
        the registry.
    """

    op: str
    inputs: tuple[Handle, ...]
    attrs: OpAttrs
    donate: frozenset[int]
    device: str | None
    location: Callable[[], Location | None]
    after: tuple[AsyncValue, ...] = ()
    ended: Callable[[AsyncValue | None], None] | None = None
    composite: int | None = None


OpFunction = Callable[[OpInvocation], Sequence[Handle]]  # returns a TensorHandle for each output


class OpHandler(Protocol):
    """Executes ops. Any thread may call."""

    @abstractmethod
    def make_op(self, op: str) -> OpFunction | None:
        """Return the function that executes calls of this op, or None for an op that is left to the fallback.

        The runtime keeps the function. The function never waits for a pending input; it raises errors of heald, and the
        runtime gives the call's location to them.
        """


class OpHandlerContext(Protocol):
    """The part of the runtime that a handler's factory receives."""

    def metadata(self, invocation: OpInvocation) -> tuple[TensorMetadata, ...] | None:
        """The metadata of a call's results, by the op's metadata function; None while it depends on pending inputs, and
        for a composite op.

        Raises InvalidArgument for inputs that do not fit the op.
        """

    def promise(
        self, metas: Sequence[TensorMetadata], demand: Callable[[], object]
    ) -> tuple[tuple[Handle, ...], AsyncValue]:
        """Return pending handles with this metadata, and the AsyncValue that settles all of them.

        `value.emplace(handles)` gives them the state of other handles, `value.set_error(error)` makes them errors.
        `demand()` is called when a consumer first needs one of the values, and may settle them.
        """

    def execute(self, op: str, *inputs: Any, attrs: Mapping[str, Any] | None = None) -> Any:
        """Execute an op as `heald.execute` does, by the devices' own handlers."""


Factory = Callable[[OpHandlerContext, OpHandler], OpHandler]


class OpHandlerEntry(NamedTuple):
    """A registered op handler. `factory(context, fallback)` returns it, or is "package.module:function"."""

    name: str
    factory: str | Factory
    plugin: str

    def make(self, context: OpHandlerContext, fallback: OpHandler) -> OpHandler:
        """Return a handler over this fallback. Raises PluginError for an object without `make_op`."""
        with plugin_guard(f"the op handler '{self.name}'"):
            handler = load_callable(self.factory)(context, fallback)
        if not callable(getattr(handler, "make_op", None)):
            raise PluginError(f"the factory of op handler '{self.name}' (plugin {self.plugin}) returned a "
                              f"{type(handler).__name__} without make_op", hint="see heald.api.OpHandler")
        return handler  # type: ignore[no-any-return]
