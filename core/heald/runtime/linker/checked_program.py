"""CheckedFunctions: functions of a file, a text or a user, whose calls are compared with the declarations of their ops
and host kernels.

A graph's nodes are compared when they are resolved (`compiler/resolve`), so programs of the compiler need no check. The
check of a function uses the types that it states. Inference then derives the types, and compares both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...errors import HealdError, InvalidArgument
from ..contract.attribute_forms import check_attributes
from ..contract.op import OpDef, SignatureTensor
from ..contract.op_registry import OpRegistry
from ..host.registries import Registries
from ..program.host_program import RUNTIME_CODES, Call, ProgramDef, ProgramFunction, RegisterType
from ..program.verifier import VerifiedFunctions


class CheckedFunctions(VerifiedFunctions):
    """The functions of a verified program. Each is checked when it is first asked for."""

    def __init__(self, functions: Mapping[str, ProgramFunction], registries: Registries) -> None:
        self._functions = functions
        self._registries = registries
        self._checked: dict[str, ProgramFunction] = {}

    def __getitem__(self, name: str) -> ProgramFunction:
        """Raises as `check_function`."""
        if name not in self._checked:
            self._checked[name] = check_function(self._functions[name], self._functions, self._registries)
        return self._checked[name]

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


def check_program(program: ProgramDef, registries: Registries) -> ProgramDef:
    """Return a verified program whose functions are checked when they are first asked for."""
    return program._replace(functions=CheckedFunctions(program.functions, registries))


def check_function(
    function: ProgramFunction, functions: Mapping[str, ProgramFunction], registries: Registries
) -> ProgramFunction:
    """Return the function with the attributes of its ops in the forms that kernels see, and a node for every op.

    `functions`: the functions of the program.

    Raises NotFound for an unknown op or host kernel, and InvalidArgument for a call that does not fit it.
    """
    nodes: set[str] = set()
    calls = []
    for index, call in enumerate(function.kernels):
        try:
            if call.is_host_kernel:
                from .host_binding import check_call

                check_call(registries.host_kernels.get(call.code), call, function, functions)
            elif call.code not in RUNTIME_CODES:
                call = _checked_call(call, function.register_types, registries.ops)
                call = call._replace(node=_claim_node_name(call, index, nodes))
        except HealdError as error:
            op = None if call.is_host_kernel else call.op
            raise error.at(node=call.node or None, op=op, location=call.location)  # noqa: B904 - the same error
        calls.append(call)
    return function._replace(kernels=tuple(calls))


def _claim_node_name(call: Call, index: int, nodes: set[str]) -> str:
    """Return the call's node, or a name in its place. Kernels keep packed weights and state by node.

    Raises InvalidArgument for a node that another op of the function has.
    """
    node = call.node or f"{call.op}#{index}"
    if node in nodes:
        raise InvalidArgument("two ops of the function have this node", node=node, op=call.op)
    nodes.add(node)
    return node


def _checked_call(call: Call, types: Sequence[RegisterType], ops: OpRegistry) -> Call:
    op = ops.get(call.op)
    attrs = check_attributes(op, call.attrs)
    op.check_references()
    op.check_outputs(attrs)
    if op.count_inputs(attrs) != len(call.args):
        raise InvalidArgument(f"op {op.name} takes {op.count_inputs(attrs)} inputs with these attributes, the call has "
                              f"{len(call.args)} arguments", op=op.name)
    _check_types(op, "input", op.expand_inputs(attrs), [types[register] for register in call.args])
    _check_types(op, "output", op.expand_outputs(attrs), [types[register] for register in call.results])
    return call._replace(attrs=attrs)


def _check_types(op: OpDef, what: str, tensors: Sequence[SignatureTensor], types: Sequence[RegisterType]) -> None:
    if len(tensors) != len(types):
        raise InvalidArgument(f"op {op.name} has {len(tensors)} {what}s with these attributes, the call has "
                              f"{len(types)}", op=op.name)
    for tensor, kind in zip(tensors, types, strict=True):
        if isinstance(kind, str) or kind.dtype is not tensor.dtype:
            raise InvalidArgument(f"{what} '{tensor.arg}' is {tensor.dtype.name}, the program states {kind}",
                                  op=op.name)
