"""The op of a call: of the op table or, in a compiled program, of the call's own signature."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..contract.op import OP_SET, ArgDef, MetadataRule, OpDef, OpRegistry, infer
from ..errors import FailedPrecondition, NotFound
from ..program.host_program import Call, CallSignature
from ..values.tensor import ValueInfo

NEEDS_OPS = f"pip install {OP_SET[1]}"


def op_of(call: Call, ops: OpRegistry) -> tuple[OpDef, MetadataRule | None]:
    """Return the op of a call and its metadata function.

    A call with a signature asks `ops` only when the metadata function runs, which then raises FailedPrecondition
    without the op.
    """
    signature = call.signature
    if signature is None:
        op = ops.get(call.op)
        return op, ops.metadata(op)
    inputs, outputs = (tuple(ArgDef(*tensor) for tensor in side) for side in (signature.inputs, signature.outputs))
    values = tuple(dict.fromkeys(signature.inputs[i][0] for i in signature.value_inputs))
    op = OpDef(call.op, inputs, outputs, stateful=signature.stateful)
    return op, MetadataRule(partial(_inferred, call, ops), values)


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
                                 node=call.node, op=call.op, hint=NEEDS_OPS) from error
    return infer(op, ops.metadata(op), attrs, inputs)
