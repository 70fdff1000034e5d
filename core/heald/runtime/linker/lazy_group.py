"""LazyGroup: a group whose shapes are known only in the run. Its compiler is asked once for each combination of shapes.

The nodes of a declined group run one by one, each bound for its own shapes. So do those of a group whose shapes depend
on values within it, and of one whose shapes contradict an op: the node then raises its own error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import HealdError
from ..contract.compiler import CompilerEntry
from ..contract.kernel import Attachable, Declined, KernelDef
from ..host.bound_call_cache import bytes_of_call
from ..program.host_program import Call
from ..program.infer import infer_call
from ..support.kernel_errors import kernel_fault
from ..values.tensor import ValueInfo
from .binder import Binder, BoundInRuns, LazyKernel, run_of_bound_call

if TYPE_CHECKING:
    from ..executor.step import Step

AskCompiler = Callable[[Sequence[ValueInfo]], tuple[KernelDef, Callable[..., Any] | Attachable | Declined]]
Run = Callable[["Step", list[Any]], list[Any]]


def obstacle_to_asking_in_runs(binders: Sequence[Binder]) -> bool:
    """True where a node of the group needs its step, or may pend: its kernels have to stand in the list of calls."""
    return any(kernel.step or kernel.asynchronous or kernel.nonstrict for binder in binders
               for kernel in binder.candidates)


class LazyGroup(BoundInRuns):
    """Errors are those of the nodes.

    `call`: the group's call; `members`: its calls in their order, with their binders.

    `infos`: the facts about all registers of the function that hold in every run.
    `ask`: asks the compiler, with the facts of one combination of shapes.
    """

    def __init__(
        self, call: Call, members: Sequence[Call], binders: Sequence[Binder], infos: Sequence[ValueInfo],
        compiler: CompilerEntry, ask: AskCompiler,
    ) -> None:
        super().__init__(binders[0].memory, [i for i, register in enumerate(call.args) if not infos[
            register].is_known and any(register == member.args[at] for member, binder in zip(
                members, binders, strict=True) for at in binder.value_inputs())])
        self._call, self._members, self._binders, self._infos = call, members, binders, infos
        self._allocates = compiler.permits("allocates")
        self._ask = ask
        self._nodes = [LazyKernel(binder, [infos[r] for r in member.args], range(len(member.results)))
                       for member, binder in zip(members, binders, strict=True)]

    def _bind(self, inputs: list[Any]) -> tuple[Run, int]:
        """Return the run function for these inputs, and the approximate bytes of the compiler's kernel."""
        infos = self._inferred(inputs)
        results = [infos[r].meta for r in self._call.results] if infos is not None else []
        if infos is None or not (self._allocates or all(info.meta.is_static for info in self._members_results(infos))):
            return self._run_nodes, bytes_of_call(None)
        kernel, bound = self._ask(infos)
        if isinstance(bound, Declined):
            return self._run_nodes, bytes_of_call(None)
        run = run_of_bound_call(kernel, bound, results, self._call, self._memory, checks=self._binders[0].checks)
        return run, bytes_of_call(bound)

    def _inferred(self, inputs: list[Any]) -> list[ValueInfo] | None:
        """Return the facts about all registers for these inputs; None where they contradict an op."""
        infos = [*self._infos]
        for i, (register, array) in enumerate(zip(self._call.args, inputs, strict=True)):
            infos[register] = self._info_of_input(i, array, infos[register])
        try:
            for member, binder in zip(self._members, self._binders, strict=True):
                outputs = infer_call(member, binder.op, binder.rule, [infos[r] for r in member.args])
                for register, info in zip(member.results, outputs, strict=True):
                    infos[register] = info
        except HealdError:
            return None
        return infos

    def _members_results(self, infos: Sequence[ValueInfo]) -> list[ValueInfo]:
        return [infos[register] for member in self._members for register in member.results]

    def _run_nodes(self, step: Step, inputs: list[Any]) -> list[Any]:
        """Run the nodes one by one. A result that shows an input or another result is copied: it is the group's own."""
        values: dict[int, Any] = dict(zip(self._call.args, inputs, strict=True))
        for member, binder, run in zip(self._members, self._binders, self._nodes, strict=True):
            try:
                results = run(step, [values[register] for register in member.args])
            except HealdError as error:
                raise error.at(node=member.node, op=member.op, location=member.location)  # noqa: B904 - with its place
            except Exception as error:  # the executor would name the compiler
                typed = kernel_fault(error, f"kernel {member.code}", binder.candidates[0])
                raise typed.at(node=member.node, op=member.op, location=member.location) from error
            values |= zip(member.results, results, strict=True)
        return _own_arrays([values[register] for register in self._call.results], inputs)


def _own_arrays(results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the results, with copies of those that may share memory with an input or an earlier result."""
    own: list[Any] = []
    for result in results:
        is_shared = any(result is other or np.may_share_memory(result, other) for other in (*inputs, *own))
        own.append(result.copy() if is_shared else result)
    return own

