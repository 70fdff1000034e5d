"""BoundOp: an op bound to a kernel, for inputs of given metadata, attributes and a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from heald.api import STREAM, Device, KernelDef, MetadataRule, OpAttrs, OpDef, TensorMetadata, ValueInfo, shape_text
from heald.errors import HealdError, PluginError, Unimplemented
from heald.runtime.contract import run_of
from heald.runtime.executor import (
    allocating_run,
    buffer_poisoner,
    check_payload,
    check_returned,
    checked_run_function,
    make_run_on_list,
    poison_array,
    view,
)
from heald.runtime.host import Host, Resources, bytes_of_call, refusal
from heald.runtime.linker import Binder
from heald.runtime.program import Call, infer_outputs
from heald.runtime.values import COO, DENSE, SCALAR, fits, layout_of

from .handle_state import Kind

LARGEST_NUMPY_RESULT_BYTES = 64 << 10  # of a result that a NumPy function may allocate itself


class BoundOp:
    """A kernel with everything that its calls share. Several threads may use it.

    `outputs`: the ValueInfos of the results; their shapes are static unless the kernel `returns`.
    `kinds`: the Kinds of the results, added by the runtime; of no use where a shape is not static.
    `on_host`: indices of the inputs that the kernel reads in host memory.
    `alias`: for a kernel that runs nothing, the input whose memory each result is.
    `run`: the run function of the kernel, which takes inputs and outputs.
    `layouts`: the layout in which the kernel takes each input.
    `is_deferrable`: True for a kernel without effects that may run after its call has returned.
    `least_seconds`, `timed_runs`: the shortest of the runs that were timed, and their number. All that changes.
    """

    def __init__(
        self, op: OpDef, attrs: OpAttrs, device: Device, device_name: str, kernel: KernelDef, bound: Any,
        outputs: Sequence[ValueInfo], call: Call, host: Host,
    ) -> None:
        self.op = op
        self.kinds: list[Kind] = []
        self.device_name = device_name
        self.native = None if device.attributes.get("host_visible") else device
        self.device = device
        self.kernel = kernel
        self.outputs = tuple(outputs)
        self.metas = [o.meta for o in outputs]
        names = [tensor.arg for tensor in op.expand_inputs(attrs)]
        every = range(len(names))
        self.on_host = frozenset(every if self.native is None else (i for i in every if names[i] in kernel.host))
        self.layouts = [kernel.layouts.get(name, DENSE) for name in names]
        self.retained = frozenset(i for i in every if names[i] in kernel.retains)
        self.is_view = bound is None
        self.alias = [kernel.aliases(attrs)[i] for i in range(len(self.metas))] if self.is_view else []
        self.inplace: dict[int, int] = {} if self.is_view else {
            **kernel.inplace, **(getattr(bound, "inplace", None) or {})}
        self.nbytes = bytes_of_call(bound)
        self.returns = kernel.returns
        self.is_stateful = op.stateful
        self.is_deferrable = (self.native is None and not self.is_view and not op.stateful and bool(self.outputs)
                              and not _is_immediate(kernel))
        self.least_seconds = float("inf")
        self.timed_runs = 0
        self.run: Callable[..., Any] | None = None if self.is_view else self._checked_run(bound, call, host)
        self.makers = [] if self.is_view or self.returns or self.native is not None else [
            host.memory.maker(meta.dims, meta.dtype.numpy, "a result") for meta in self.metas]

    def _checked_run(self, bound: Any, call: Call, host: Host) -> Callable[..., Any]:
        """The run function, checked against the array contract where `[debug] poison` is on."""
        run = run_of(bound)
        if self.kernel.layouts:
            layouts = [self.kernel.layouts.get(tensor.arg, DENSE) for tensor in self.op.expand_outputs(call.attrs)]
            return partial(_run_in_layouts, run, self.metas, layouts, call, self.kernel)
        if host.debug.poison and not self.kernel.nonstrict:
            sizes = [] if self.returns else [meta.nbytes for meta in self.metas]
            poisons = [poison_array if self.native is None else buffer_poisoner(self.device, size) for size in sizes]
            run = checked_run_function(run, poisons, self.kernel, first=int(self.kernel.step))
        if not self.returns:
            return run
        kernel, metas, memory = self.kernel, self.metas, host.memory
        if not kernel.step:
            run_listed = make_run_on_list(run, metas, call, kernel, memory)
            return lambda *inputs: run_listed([*inputs])
        return lambda step, *inputs: make_run_on_list(
            lambda *ins: run(step, *ins), metas, call, kernel, memory)([*inputs])

    def note_seconds(self, seconds: float) -> None:
        """Keep the time of a run if it is the shortest. A race may keep the longer of two until a later run."""
        self.timed_runs += 1
        if seconds < self.least_seconds:
            self.least_seconds = seconds

    def check(self, returned: Any, outputs: Sequence[Any]) -> None:
        """Raises PluginError when the kernel returned another array than one of its outputs."""
        if returned is not None:
            check_returned(returned, outputs, self.kernel)

    def views(self, inputs: Sequence[Any]) -> list[Any]:
        """The results of a kernel that runs nothing, from arrays in host memory."""
        return [view(inputs[source], meta) for source, meta in zip(self.alias, self.metas, strict=True)]

    def fast_function(self, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """A function from arrays to the one result, or to a list of several, for calls without a check between them;
        None where a call needs more. `inputs` are the arrays of a call that has succeeded."""
        kernel = self.kernel
        if self.native is not None or self.is_stateful or kernel.step or kernel.asynchronous or kernel.nonstrict:
            return None
        if len(self.metas) != 1:
            return self._fast_function_of_results()
        if self.returns:
            return None
        if self.is_view:
            meta, source = self.metas[0], self.alias[0]
            return lambda *arrays: view(arrays[source], meta)
        make = self.makers[0]
        run: Any = self.run
        if isinstance(run, np.ufunc) and _allocates_alike(run, inputs, self.metas[0]):
            return run
        return allocating_run(run, make, kernel, len(inputs))

    def _fast_function_of_results(self) -> Callable[..., Any] | None:
        """`fast_function` of several results."""
        if self.returns:
            return None
        if self.is_view:
            return lambda *arrays: self.views(arrays)
        run, makers, kernel = self.run, self.makers, self.kernel
        assert run is not None

        def several(*arrays: Any) -> Any:
            outs = [make() for make in makers]
            check_returned(run(*arrays, *outs), outs, kernel)
            return outs

        return several


def _allocates_alike(function: np.ufunc, inputs: Sequence[Any], meta: TensorMetadata) -> bool:
    """True when the function without an output returns a new array like the one that it would be given."""
    if not meta.dims or meta.nbytes > LARGEST_NUMPY_RESULT_BYTES or function.nout != 1:
        return False
    with np.errstate(all="ignore"):
        array = function(*inputs)
    return (type(array) is np.ndarray and array.dtype == meta.dtype.numpy and array.shape == meta.dims
            and array.flags.c_contiguous)


class Binding:
    """Binds ops on one host: the counterpart of a linker for single calls."""

    def __init__(self, host: Host, resources: Resources) -> None:
        self._host = host
        self._resources = resources

    def infer(self, op: OpDef, attrs: OpAttrs, inputs: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
        """The ValueInfos of the results. Raises InvalidArgument when the inputs do not fit the op."""
        return infer_outputs(None, op, self._host.registries.ops.metadata(op), attrs, inputs)

    def rule(self, op: OpDef) -> MetadataRule | None:
        return self._host.registries.ops.metadata(op)

    def bind(
        self, op: OpDef, attrs: OpAttrs, inputs: Sequence[ValueInfo], device_name: str, node: str,
        layouts: Sequence[str],
    ) -> BoundOp:
        """Bind the op to the first kernel of the device that takes it.

        `node`: names the state that the kernel keeps. `layouts`: the inputs' layouts, in order.

        Raises InvalidArgument when the inputs do not fit the op,
        Unimplemented with each kernel's reason when no kernel takes them, PermissionDenied for a kernel that opens
        files where [files] permits none, and as DeviceSet.open.
        """
        outputs = self.infer(op, attrs, inputs)
        device = self._host.open(device_name)
        able, refusals = self._able_kernels(op, attrs, device, layouts)
        chain = None if outputs else len(inputs)
        call = Call(f"eager.{op.name}", tuple(range(len(inputs))), tuple(range(len(outputs))), attrs, 0, node,
                    chain=chain)
        for kernel in able:
            if kernel.files and not self._host.files.permits(op.name, kernel.files):
                raise refusal([(node, op.name, kernel.files)])
        while able:
            group = tuple(k for k in able if (k.host, k.host_outputs) == (able[0].host, able[0].host_outputs))
            binder = Binder(call, op, self.rule(op), group, device, device_name, {}, self._host.memory,
                            self._resources.get, "eager", self._host.debug.poison, self._host.files)
            bound_kernel, bound, declined = binder.ask_candidates(inputs, [o.meta for o in outputs])
            if bound_kernel is not None:
                if bound is None and bound_kernel.layouts:
                    raise PluginError(f"bind of {bound_kernel.pack}'s kernel for {op.name} returned None",
                                      hint="a kernel of declared layouts has a run function")
                _check_static(op, bound_kernel, outputs)
                if bound is not None and bound_kernel.host_outputs and not device.attributes.get("host_visible"):
                    bound = partial(_run_into_device, run_of(bound), [o.meta for o in outputs], device,
                                    self._host.waiter(device).keep)
                return BoundOp(op, attrs, device, device_name, bound_kernel, bound, outputs, call, self._host)
            refusals += declined
            able = [k for k in able if k not in group]
        if COO in layouts:
            raise self._no_sparse_kernel(op, attrs, device, device_name, layouts, refusals)
        raise self._no_kernel(op, attrs, device, device_name, refusals)

    def binds_later(self, op: OpDef, attrs: OpAttrs, device_name: str, layouts: Sequence[str]) -> bool:
        """True for a call that may return before its op is bound: on host memory, where its kernels are not imported
        yet, or where a kernel takes it by its declaration and each kernel that does is deferrable.

        Raises as DeviceSet.open.
        """
        if op.stateful or not op.outputs:
            return False
        device = self._host.open(device_name)
        if not device.attributes.get("host_visible"):
            return False
        if self._host.registries.kernels.is_awaited(op.name, device.type):
            return True
        able, _ = self._able_kernels(op, attrs, device, layouts)
        return bool(able) and not any(_is_immediate(k) or k.files or k.aliases(attrs) for k in able)

    def _able_kernels(
        self, op: OpDef, attrs: OpAttrs, device: Device, layouts: Sequence[str]
    ) -> tuple[list[KernelDef], list[tuple[str, str]]]:
        """The kernels that take a call by their declarations, best first; pack and reason of each other one."""
        kernels = self._kernels_for(op, attrs, device, layouts)
        reasons = [(k, k.refuses(attrs) or _reason_against_memory(op, attrs, k, device)) for k in kernels]
        return ([k for k, reason in reasons if reason is None],
                [(k.pack, reason) for k, reason in reasons if reason is not None])

    def _kernels_for(self, op: OpDef, attrs: OpAttrs, device: Device, layouts: Sequence[str]) -> list[KernelDef]:
        """The kernels for inputs of these layouts, best first: kernels declared for them, kernels that take a scalar
        tensor in its dense form, kernels for dense tensors. Sparse tensors are never converted."""
        kernels = self._host.registries.kernels
        special_kernels: list[KernelDef] = []
        names = [tensor.arg for tensor in op.expand_inputs(attrs)]
        as_given, no_scalar = list(layouts), [DENSE if layout == SCALAR else layout for layout in layouts]
        for layouts_taken in (as_given, no_scalar) if device.attributes.get("host_visible") else ():
            for kernel in kernels.of_layouts(op.name, device.type):
                kernel_layouts = [kernel.layouts.get(name, DENSE) for name in names]
                if kernel not in special_kernels and kernel_layouts == layouts_taken:
                    special_kernels.append(kernel)
        return special_kernels if COO in layouts else [*special_kernels, *kernels.candidates(op.name, device.type)]

    def _no_sparse_kernel(
        self, op: OpDef, attrs: OpAttrs, device: Device, device_name: str, layouts: Sequence[str],
        refusals: Sequence[tuple[str, str]],
    ) -> HealdError:
        names = [tensor.arg for tensor in op.expand_inputs(attrs)]
        call_layouts = ", ".join(f"{name}: {layout}" for name, layout in zip(names, layouts, strict=True))
        kernel_layouts = [", ".join(f"{name}: {kernel.layouts.get(name, DENSE)}" for name in names)
                          for kernel in self._host.registries.kernels.of_layouts(op.name, device.type)]
        why = "; ".join([f"{pack}: {reason}" for pack, reason in refusals]
                        or [f"sparse ones take ({text})" for text in dict.fromkeys(kernel_layouts) if COO in text])
        return Unimplemented(f"no kernel on {device_name} takes the layouts ({call_layouts}){why and f': {why}'}",
                             op=op.name, device=device_name, hint="convert the sparse inputs: x.to_dense()")

    def _no_kernel(
        self, op: OpDef, attrs: OpAttrs, device: Device, device_name: str, refusals: Sequence[tuple[str, str]]
    ) -> HealdError:
        types = ", ".join(f"{name}={attrs[name]}" for name, declared in op.attrs.items() if declared.type == "type")
        why = "; ".join(f"{pack}: {reason}" for pack, reason in refusals)
        other_types = [t.type for t in self._host.registries.device_types.by_priority()
                       if t.type != device.type and self._host.registries.kernels.candidates(op.name, t.type)]
        return Unimplemented(f"no kernel on {device_name} takes this call{types and f' ({types})'}: "
                             f"{why or 'none is registered for the op'}", op=op.name, device=device_name,
                             hint=f"device types with kernels: {', '.join(other_types)}" if other_types else
                             "`heald ops --device` lists the ops with kernels; `heald plugins` the plugins")


def _is_immediate(kernel: KernelDef) -> bool:
    """True for a kernel that has to run before its call returns."""
    return bool(kernel.asynchronous or kernel.nonstrict or kernel.step)


def _run_in_layouts(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], layouts: Sequence[str], call: Call, kernel: KernelDef,
    *arguments: Any,
) -> list[Any]:
    """Run a kernel of declared layouts. Raises PluginError for results of other layouts, types or shapes."""
    result = run(*arguments)
    values = list(result) if isinstance(result, tuple | list) else [result]
    if len(values) != len(metas):
        raise PluginError(f"the kernel of {call.op} (plugin {kernel.pack}) returned {len(values)} values, expected "
                          f"{len(metas)}", op=call.op)
    for i, (value, meta, layout) in enumerate(zip(values, metas, layouts, strict=True)):
        if layout == DENSE:
            values[i] = check_payload(value, meta, call.op, kernel.pack)
        elif layout_of(value) != layout or value.dtype is not meta.dtype or not fits(value.shape, meta):
            actual = f"a {layout_of(value)} tensor of {value.dtype}{shape_text(value.shape)}"
            raise PluginError(f"the kernel of {call.op} (plugin {kernel.pack}) returned {actual}, expected a {layout} "
                              f"tensor of {meta}", op=call.op)
    return values


def _run_into_device(
    run: Callable[..., Any], metas: Sequence[TensorMetadata], device: Device, keep: Callable[..., None], *operands: Any
) -> None:
    """Run a kernel whose results are in host memory, and copy them to the buffers of a handle's device."""
    arrays = [np.empty(meta.dims, meta.dtype.numpy) for meta in metas]
    count = len(operands) - len(metas)
    run(*operands[:count], *arrays)
    for array, buffer in zip(arrays, operands[count:], strict=True):
        device.copy_in(array, buffer, STREAM)
    keep(*arrays)


def _reason_against_memory(op: OpDef, attrs: OpAttrs, kernel: KernelDef, device: Device) -> str | None:
    """The reason why a device's memory cannot hold a tensor of the call, or None."""
    if device.attributes.get("host_visible"):
        return None
    tensors = [t for t in op.expand_inputs(attrs) if t.arg not in kernel.host] + op.expand_outputs(attrs)
    unfit = next((t for t in tensors if not t.dtype.itemsize), None)
    return None if unfit is None else f"'{unfit.arg}' is {unfit.dtype.name}, which stays in host memory"


def _check_static(op: OpDef, kernel: KernelDef, outputs: Sequence[ValueInfo]) -> None:
    """Raises Unimplemented for a result without a static shape, unless the kernel allocates it."""
    open_output = next((o.meta for o in outputs if not o.meta.is_static), None)
    if open_output is not None and not kernel.returns:
        raise Unimplemented(f"the metadata function leaves a result open: {open_output}", op=op.name,
                            hint="a kernel of such an op allocates its outputs: allocates=True")


