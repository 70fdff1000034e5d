"""EagerContext: the state that all parts of one runtime share. Parts know the context, and not the runtime."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from heald.api import AsyncValue, DType, Step, TensorMetadata, dtypes, inherited, install_hint
from heald.errors import FailedPrecondition, HealdError
from heald.runtime.host import Host, KernelContext, Resources
from heald.runtime.values import DENSE, layout_of

from .asynchrony import Asynchrony, Mode
from .bound_op import Binding
from .handle_state import HandleOwner, Kinds, Pending, Ready
from .promise import Promises


class EagerContext:
    """The host, the ops and the policy of one runtime. Any thread may call.

    `owner`: the runtime, as its handles know it.
    `ops`: the metadata functions and kernels of the host's ops.
    `step`: the step in which all kernels run.
    `kinds`, `promises`: the metadata of handles, and the values that come later.
    `asynchrony`: the decision which calls return before their kernel has run.
    `cancelled`: the error of all calls until a restart, or None.
    """

    def __init__(self, host: Host, owner: HandleOwner, asynchronous: Mode) -> None:
        self.host = host
        self.owner = owner
        resources = Resources()
        self.ops = Binding(host, resources)
        self.step = Step(host, resources=resources)
        self.kinds = Kinds(owner)
        self.promises = Promises()
        self.asynchrony = Asynchrony(host, asynchronous)
        self.cancelled: HealdError | None = None
        self._default_device: dict[None, str] = {}  # at most one: `setdefault` is atomic
        self._idle_contexts: deque[KernelContext] = deque()
        inherited.add(self)
        if asynchronous != "never":
            self._import_ahead()

    def _import_ahead(self) -> None:
        """Import modules that the first long call needs. Its caller would wait for them: 1 ms of 5."""
        ops = self.host.registries.ops
        with suppress(HealdError):  # the first call that needs them raises it
            self.host.import_work_queue()
            for op in ops.probes():
                self.ops.rule(ops.get(op))

    @property
    def default_device(self) -> str:
        """The device of calls that name none and whose inputs are in host memory. Raises FailedPrecondition without a
        device that works on host memory."""
        for device in self._default_device.values():
            return device
        name = self.host.host_device()
        if name is None:
            raise FailedPrecondition("no device works on host memory", hint=install_hint("heald-cpu"))
        return self._default_device.setdefault(None, name)

    def ready_state(self, tensor: Any, dtype: DType | None = None) -> Ready:
        """The state of an array, a ScalarTensor or a CooTensor in host memory. `dtype`: the type of an object array."""
        if isinstance(tensor, np.ndarray | np.generic):
            meta, layout = TensorMetadata(dtype or dtypes.of_numpy(tensor.dtype), tensor.shape), DENSE
        else:
            meta, layout = TensorMetadata(tensor.dtype, tensor.shape), layout_of(tensor)
        return Ready(self.kinds.get(meta, self.default_device, layout=layout), tensor)

    def pending_state(
        self, meta: TensorMetadata, device: str, value: AsyncValue, demand: Callable[[], object] | None = None
    ) -> Pending:
        """The state of a value that comes later, as in Pending."""
        return Pending(meta, device, value, self.owner, demand)

    def wait(self, state: Pending) -> None:
        """Block until a pending value has come. An interrupt ends the waiting alone."""
        self.host.await_values([state.demanded_value()])

    def run_kernel(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel in a KernelContext that no other thread is in."""
        try:
            context = self._idle_contexts.pop()
        except IndexError:
            context = KernelContext()
        try:
            return context.run(function, *arguments)
        finally:
            self._idle_contexts.append(context)

    def forked(self) -> None:
        self._idle_contexts.clear()
