"""Binder: binds one call to the first of its kernels that takes it, at link time or, for unknown shapes, in the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import PluginError, Unimplemented
from ..contract.device import STREAM
from ..contract.device_limits import DeviceLimits
from ..contract.kernel import Bind, Bound, Declined, Keep, KernelDef, Own, check_bound, leave_to_collector, run_of
from ..contract.op import Attrs, MetadataRule, OpDef
from ..executor.array_contract import check_returned, checked_run_function, poison_array
from ..executor.calls.returned_results import make_run_on_list
from ..executor.host_array import view
from ..host.bound_call_cache import bytes_of_call
from ..host.file_policy import FilePolicy
from ..host.host_memory import COUNTED_FROM_BYTES, HostMemory
from ..program.host_program import Call
from ..program.infer import infer_call
from ..support.kernel_errors import raise_of
from ..support.records import NamedTuple
from ..values.tensor import TensorMetadata, ValueInfo
from .stored_constants import NO_STORED_CONSTANTS, StoredConstants, stored_constants_source

if TYPE_CHECKING:
    from ..contract.device import Device
    from ..executor.step import Step


class Binder(NamedTuple):
    """The inputs of binding one call, apart from its shapes.

    `candidates`: kernels in the order in which they are asked.
    `stored`: the source of prepared constants of compiled files.
    `own`: takes the objects to release when the program is closed.
    `keep`: the session's store for `Bind.resource`.
    `files`: decides about the files that the kernel may open.
    `checks`: `[debug] poison` is on, so each run is checked against the array contract.
    """

    call: Call
    op: OpDef
    rule: MetadataRule | None
    candidates: Sequence[KernelDef]
    device: Device
    device_name: str
    prepared: dict[Any, Any]
    memory: HostMemory
    keep: Keep
    function: str
    checks: bool
    files: FilePolicy
    stored: StoredConstants = NO_STORED_CONSTANTS
    own: Own = leave_to_collector

    def ask_candidates(
        self, inputs: Sequence[ValueInfo], outputs: Sequence[TensorMetadata], needed: Collection[int] | None = None
    ) -> tuple[KernelDef | None, Bound, list[tuple[str, str]]]:
        """Bind the first candidate that takes the call, asked in order.

        Returns kernel, bound kernel, and (pack, reason) of each refusal.

        The kernel is None when all candidates declined, or when the limits of the device leave no room for a tensor.
        `needed` is as in `Bind`. Raises ResourceExhausted when memory
        for the outputs is short: a kernel may compute as much when it is bound.
        """
        refusals: list[tuple[str, str]] = []
        in_host_memory = self.device.attributes.get("host_visible")  # the budget does not cover devices' own memory
        for output in outputs:
            is_counted = in_host_memory and output.is_static and output.nbytes >= COUNTED_FROM_BYTES
            if is_counted and not self._may_need_no_memory():
                self.memory.ask(output.nbytes, f"the result {output} of {self.op.name}")
        stored = stored_constants_source(self.stored, (self.function, self.call.node, self.device_name), inputs)
        limit = None if in_host_memory else self._refusal_of_limits(inputs, outputs)
        if limit is not None:
            return None, None, [(kernel.pack, limit) for kernel in self.candidates]
        for kernel in self.candidates:
            node = Bind(self.call.node, self.op.name, self.call.attrs, tuple(inputs), tuple(outputs), self.device,
                        STREAM, self.prepared, keep=self.keep, function=self.function, needed=needed,
                        ask=self.memory.ask, file=partial(self.files.path, self.op.name), stored=stored, own=self.own)
            bound = bind(kernel, node, self.device_name)
            if not isinstance(bound, Declined):
                return kernel, bound, refusals
            refusals.append((kernel.pack, bound.reason))
        return None, None, refusals

    def _refusal_of_limits(self, inputs: Sequence[ValueInfo], outputs: Sequence[TensorMetadata]) -> str | None:
        """Return the reason why a tensor of the call cannot be in the device's memory, or None."""
        limits, host = DeviceLimits.of(self.device.attributes), self.candidates[0].host
        there = [info.meta for info, tensor in zip(inputs, self.op.expand_inputs(self.call.attrs), strict=True)
                 if tensor.arg not in host]
        results = () if self.candidates[0].host_outputs else outputs
        return limits.refusal(meta for meta in (*there, *results) if meta.is_static)

    def _may_need_no_memory(self) -> bool:
        """True when a result may need no memory for all its elements: an alias, or a scalar or sparse tensor."""
        return any(kernel.aliases(self.call.attrs) or kernel.layouts for kernel in self.candidates)

    def value_inputs(self) -> frozenset[int]:
        """Indices of the inputs whose elements the metadata function reads."""
        if self.rule is None:
            return frozenset()
        tensors = self.op.expand_inputs(self.call.attrs)
        return frozenset(i for i, tensor in enumerate(tensors) if tensor.arg in self.rule.values)

    def retained_inputs(self, kernels: Sequence[KernelDef]) -> frozenset[int]:
        """Indices of the inputs that one of these kernels reads after it has returned.

        Raises Unimplemented for retained inputs in a device's memory.
        """
        names = {name for kernel in kernels for name in kernel.retains}
        if not names:
            return frozenset()
        if not self.device.attributes.get("host_visible") and not names <= kernels[0].host:
            raise Unimplemented(f"{kernels[0].pack}'s kernel for {self.op.name} retains inputs in the memory of "
                                f"{self.device_name}", node=self.call.node, op=self.op.name,
                                hint="a kernel may only retain inputs that it reads in host memory")
        tensors = self.op.expand_inputs(self.call.attrs)
        return frozenset(i for i, tensor in enumerate(tensors) if tensor.arg in names)


def bind(kernel: KernelDef, node: Bind, device: str) -> Bound | Declined:
    """Return the result of the kernel's bind function. Raises as `raise_of`."""
    try:
        bound = kernel.bind(node)
        check_bound(bound, kernel.pack, node.op, is_fusion=kernel.is_fusion, compiler=kernel.compiler)
        if not isinstance(bound, Declined) and not kernel.is_fusion and not kernel.compiler:
            check_aliases(kernel, node.attrs, len(node.inputs), len(node.outputs), is_alias=bound is None)
    except Exception as error:  # noqa: BLE001 - raised again, typed
        raise_of("bind", error, kernel, node.node, node.op, device)
    if isinstance(bound, Declined):
        return bound
    if "kernels_at_once" in node.device.attributes:
        from .kernel_permits import limit_kernel  # few devices have a limit

        bound = limit_kernel(bound, kernel, node.device)
    if node.scratch_sizes:
        from .scratch_kernel import with_scratch  # few kernels have scratch

        bound = with_scratch(bound, node.scratch_sizes, kernel, node.device)
    return bound


def check_aliases(
    kernel: KernelDef, attrs: Attrs, input_count: int, output_count: int, *, is_alias: bool = False
) -> None:
    """Raise PluginError when `alias=` of the kernel names an input or output that the node does not have.

    `is_alias`: the bind function returned None, so every output must have an entry.
    """
    aliases, owner = kernel.aliases(attrs), f"{kernel.pack}'s kernel for {kernel.op}"
    wrong = next(((o, i) for o, i in aliases.items()
                  if o not in range(output_count) or i not in range(input_count)), None)
    if wrong is not None:
        raise PluginError(f"alias= of {owner} shows input {wrong[1]} as output {wrong[0]}; the node's number of inputs "
                          f"is {input_count}, of outputs {output_count}", plugin=kernel.pack,
                          hint="give {output index: input index}, both from 0")
    missing = next((o for o in range(output_count) if o not in aliases), None)
    if is_alias and missing is not None:
        raise PluginError(f"bind of {owner} returned None, but declares no alias= for output {missing}",
                          plugin=kernel.pack,
                          hint=f"return a run function, or declare alias={{{missing}: input index}}")


class BoundInRuns:
    """A call that binds in runs: once for each combination of input shapes, and of the elements that binding reads.

    `memory`: counts and forgets the bound calls.
    `read`: the indices of the inputs whose elements binding reads.
    """

    def __init__(self, memory: HostMemory, read: Sequence[int]) -> None:
        self._memory, self._read = memory, tuple(read)
        self._bound: dict[Any, Callable[[Step, list[Any]], list[Any]]] = {}

    def __call__(self, step: Step, inputs: list[Any]) -> list[Any]:
        """Return the results for these input arrays. Raises the errors of binding and of the kernel."""
        key: Any = tuple([x.shape for x in inputs])
        if self._read:
            key = key, tuple([elements_key(inputs[i]) for i in self._read])
        run = self._bound.get(key)
        if run is None:
            run, nbytes = self._bind(inputs)
            self._bound[key] = run
            self._memory.bound_calls.keep(self, key, nbytes + sum(inputs[i].nbytes for i in self._read))
        return run(step, inputs)

    def forget(self, key: Any) -> None:
        self._bound.pop(key, None)

    def _info_of_input(self, index: int, array: Any, info: ValueInfo) -> ValueInfo:
        """Return the facts about an input in this run. `info`: those that hold in every run."""
        return ValueInfo(TensorMetadata(info.dtype, array.shape), array.copy() if index in self._read else info.value,
                         handle=info.handle)

    def _bind(self, inputs: list[Any]) -> tuple[Callable[[Step, list[Any]], list[Any]], int]:
        """Bind the call for these inputs. Returns the run function and its approximate bytes."""
        raise NotImplementedError


class LazyKernel(BoundInRuns):
    """A call whose shapes are known only in the run. Raises InvalidArgument for inputs that do not fit the op."""

    def __init__(self, binder: Binder, input_infos: Sequence[ValueInfo], needed: Collection[int]) -> None:
        super().__init__(binder.memory, sorted(i for i in binder.value_inputs() if not input_infos[i].is_known))
        self._binder = binder
        self._needed = needed
        self._infos = tuple(input_infos)  # facts about the inputs that hold in every run

    def _bind(self, inputs: list[Any]) -> tuple[Callable[[Step, list[Any]], list[Any]], int]:
        binder = self._binder
        infos = [self._info_of_input(i, array, info)
                 for i, (array, info) in enumerate(zip(inputs, self._infos, strict=True))]
        outputs = [o.meta for o in infer_call(binder.call, binder.op, binder.rule, infos)]
        open_output = next((o for o in outputs if not o.is_static), None)
        if open_output is not None and not binder.candidates[0].returns:
            raise Unimplemented(f"the metadata function leaves a result open: {open_output}",
                                node=binder.call.node, op=binder.op.name,
                                hint="a kernel of such an op allocates its outputs: allocates=True")
        kernel, bound, refusals = binder.ask_candidates(infos, outputs, self._needed)
        if kernel is None:
            why = "; ".join(f"{pack}: {reason}" for pack, reason in refusals)
            raise Unimplemented(f"no kernel takes these inputs: {why}", node=binder.call.node, op=binder.op.name)
        return self._run_of(kernel, bound, outputs), bytes_of_call(bound)

    def _run_of(
        self, kernel: KernelDef, bound: Bound, outputs: Sequence[TensorMetadata]
    ) -> Callable[[Step, list[Any]], list[Any]]:
        binder = self._binder
        if bound is None:
            alias = kernel.aliases(binder.call.attrs)
            return lambda _, ins: [view(ins[alias[i]], meta) for i, meta in enumerate(outputs)]
        return run_of_bound_call(kernel, bound, outputs, binder.call, binder.memory, checks=binder.checks)


def run_of_bound_call(
    kernel: KernelDef, bound: Any, outputs: Sequence[TensorMetadata], call: Call, memory: HostMemory, *, checks: bool
) -> Callable[[Step, list[Any]], list[Any]]:
    """Return a bound kernel in host memory as a function from step and inputs to new outputs."""
    run, takes_step = run_of(bound), kernel.step
    if checks and not kernel.nonstrict:
        poisons = () if kernel.returns else (poison_array,) * len(outputs)
        run = checked_run_function(run, poisons, kernel, first=int(takes_step))
    if kernel.returns and not takes_step:
        run_listed = make_run_on_list(run, outputs, call, kernel, memory)
        return lambda _, ins: run_listed(ins)
    if kernel.returns:
        return lambda step, ins: make_run_on_list(partial(run, step), outputs, call, kernel, memory)(ins)
    makers = [memory.maker(o.dims, o.dtype.numpy, "a result") for o in outputs]
    if len(makers) == 1 and not takes_step:
        return _call_for_one(run, makers[0], kernel)

    def make_outputs_and_call(step: Step, ins: list[Any]) -> list[Any]:
        outs = [make() for make in makers]
        check_returned(run(*((step,) if takes_step else ()), *ins, *outs), outs, kernel)
        return outs

    return make_outputs_and_call


def _call_for_one(
    run: Callable[..., Any], make: Callable[[], Any], kernel: KernelDef
) -> Callable[[Step, list[Any]], list[Any]]:
    """Return the call of a kernel with one output, which needs no lists of outputs."""

    def call(_: Step, ins: list[Any]) -> list[Any]:
        out = make()
        returned = run(*ins, out)
        if returned is not out and returned is not None:
            check_returned(returned, (out,), kernel)
        return [out]

    return call


def elements_key(array: Any) -> Any:
    """Return the elements of an array in a form that a dict takes as key."""
    return tuple(array.reshape(-1)) if array.dtype == object else array.tobytes()
