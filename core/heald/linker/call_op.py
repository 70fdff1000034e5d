"""The op of a call: of the op table or, in a compiled program, of the call's own signature."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from ..contract.op import OP_SET, ArgDef, MetadataRule, OpDef, OpRegistry, infer
from ..errors import FailedPrecondition, NotFound
from ..program.host_program import Call, CallSignature
from ..support.install import plugin_hint
from ..values.tensor import ValueInfo

SIGNATURES = 256  # in the cache: the calls of a program have few


def op_of(call: Call, ops: OpRegistry) -> tuple[OpDef, MetadataRule | None]:
    """Return the op of a call and its metadata function.

    A call with a signature asks `ops` only when the metadata function runs, which then raises FailedPrecondition
    without the op.
    """
    signature = call.signature
    if signature is None:
        op = ops.get(call.op)
        return op, ops.metadata(op)
    op, values = _op_of(call.op, signature)
    return op, MetadataRule(partial(_inferred, call, ops), values)


@lru_cache(maxsize=SIGNATURES)
def _op_of(name: str, signature: CallSignature) -> tuple[OpDef, tuple[str, ...]]:
    """Return the op with this signature, and the names of the inputs whose elements its metadata function reads."""
    inputs, outputs = (tuple(ArgDef(*tensor) for tensor in side) for side in (signature.inputs, signature.outputs))
    values = tuple(dict.fromkeys(signature.inputs[i][0] for i in signature.value_inputs))
    return OpDef(name, inputs, outputs, stateful=signature.stateful), values


def signature_of(call: Call, op: OpDef, rule: MetadataRule | None) -> CallSignature:
    """Return the facts about a call's op that linking needs."""
    inputs = op.expand_inputs(call.attrs)
    values = () if rule is None else tuple(i for i, tensor in enumerate(inputs) if tensor.arg in rule.values)
    outputs = op.expand_outputs(call.attrs)
    return CallSignature(tuple((t.arg, t.dtype) for t in inputs), tuple((t.arg, t.dtype) for t in outputs), values,
                         op.stateful)


def _inferred(call: Call, ops: OpRegistry, attrs: Any, *inputs: ValueInfo) -> tuple[ValueInfo, ...]:
    try:
        op = ops.get(call.op)
    except NotFound as error:
        raise FailedPrecondition("the shapes of this call are known only in the run, and its op is of no op set in use",
                                 node=call.node, op=call.op, hint=plugin_hint(OP_SET)) from error
    return infer(op, ops.metadata(op), attrs, inputs)
