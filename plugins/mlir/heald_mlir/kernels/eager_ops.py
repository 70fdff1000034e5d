"""The dialect `corert`: op handlers, and calls of ops through them."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from heald.api import I1, AsyncValue, Callee, Chain, HostKernels, HostType, Step, available, errors
from heald.errors import Location
from heald_eager import LinkedHandler, runtime_of

from .op_attributes import Text, pairs
from .tensor_handles import Handle

CHAIN = "!tfrt.chain"
_CALL = "custom<heald_mlir.kernels.eager_syntax:{}>"


class CompositeOp(NamedTuple):
    """A function of the program as an op: it takes and returns a chain, then handles."""

    function: Any


OpHandlerType = Annotated[LinkedHandler, HostType("!corert.ophandler", lambda it: isinstance(it, LinkedHandler))]
OpType = Annotated[CompositeOp, HostType("!corert.op", lambda payload: isinstance(payload, CompositeOp))]
Pairs = Annotated[tuple[Any, ...], HostType("op attributes", lambda payload: isinstance(payload, tuple), typed=True)]


def register(kernels: HostKernels) -> None:
    kernels.kernel("corert.create_null_op_handler", step=True)(create_null_op_handler)
    kernels.kernel("corert.create_cpu_op_handler", step=True)(create_cpu_op_handler)
    kernels.kernel("corert.create_logging_op_handler", step=True)(create_logging_op_handler)
    kernels.kernel("corert.register_op_handler", step=True, syntax="$handler $op_handler_name attr-dict")(
        register_op_handler)
    kernels.kernel("corert.get_op_handler", step=True, syntax="$chain $op_handler_name attr-dict")(get_op_handler)
    kernels.kernel("corert.executeop", step=True, syntax=_CALL.format("CALL"))(executeop)
    kernels.kernel("corert.executeop.seq", step=True, syntax=_CALL.format("ORDERED_CALL"))(executeop_seq)
    kernels.kernel("corert.make_composite_op")(make_composite_op)
    kernels.kernel("corert.execute_crt_op", step=True, syntax=_CALL.format("COMPOSITE_CALL"))(execute_crt_op)


def create_null_op_handler(step: Step) -> OpHandlerType:
    """Return the handler that supports no op."""
    return runtime_of(step.host).null_handler()


def create_cpu_op_handler(step: Step, fallback: OpHandlerType) -> OpHandlerType:
    """Return the handler of the device on host memory. Raises FailedPrecondition without such a device."""
    return runtime_of(step.host).host_handler(fallback)


def create_logging_op_handler(step: Step, fallback: OpHandlerType, *, sync_log_results: I1 = False) -> OpHandlerType:
    """Return a handler that writes each call to stderr, and leaves it to its fallback.

    With `sync_log_results` each call waits for its results, so that they are written as values.
    """
    return runtime_of(step.host).logging_handler(fallback, sync_log_results)


def register_op_handler(step: Step, handler: OpHandlerType, *, op_handler_name: Text) -> Chain:
    """Name a handler for all programs of this host."""
    runtime_of(step.host).register(op_handler_name, handler)


def get_op_handler(step: Step, chain: Chain, *, op_handler_name: Text) -> OpHandlerType:
    """Return the handler of this name. Raises NotFound."""
    return runtime_of(step.host).handler_of(op_handler_name)


def executeop(
    step: Step, handler: OpHandlerType, *arguments: Handle, op_attrs: Pairs, op_func_attrs: Pairs = (), op_name: Text,
    location: Location | None = None,
) -> list[Any]:
    """Return the handles of an op's results; a result is complete when its tensor is.

    Raises Unimplemented for an op that no handler supports, and as the op's metadata function.
    """
    attrs = pairs(op_attrs) | pairs(op_func_attrs)
    results: list[Any] = runtime_of(step.host).execute(handler, op_name, arguments, attrs, location)
    return results


def executeop_seq(
    step: Step, handler: OpHandlerType, chain: Chain, *arguments: Handle, op_attrs: Pairs, op_func_attrs: Pairs = (),
    op_name: Text, location: Location | None = None,
) -> list[Any]:
    """Like `corert.executeop`; the first result is a chain that is complete after the call."""
    attrs = pairs(op_attrs) | pairs(op_func_attrs)
    ready: AsyncValue = available(None)
    return runtime_of(step.host).execute(handler, op_name, arguments, attrs, location, ready)


def make_composite_op(*, fn: Callee) -> OpType:
    """Return a function as an op. Raises InvalidArgument for a function without a chain before its other arguments, or
    results."""
    function = fn.executable.function
    types = function.register_types
    if list(function.arg_types[:1]) != [CHAIN] or [types[r] for r in function.results[:1]] != [CHAIN]:
        raise errors.InvalidArgument(f"the function '{fn.name}' is no composite op: its first argument and its first "
                                     "result are chains")
    return CompositeOp(fn)


def execute_crt_op(
    step: Step, op: OpType, *arguments: Handle, op_attrs: Pairs = (), op_func_attrs: Pairs = (),
) -> list[Any]:
    """Return the results of a composite op, without its chain.

    Raises InvalidArgument for attributes, which a function does not take, and for another number of arguments.
    """
    if op_attrs or op_func_attrs:
        names = ", ".join([*pairs(op_attrs), *pairs(op_func_attrs)])
        raise errors.InvalidArgument(f"the composite op '{op.function.name}' takes no attributes, but has {names}",
                                     hint="give them to the calls of ops within the function")
    tensor_count = len(op.function.executable.function.arg_types) - 1
    if tensor_count != len(arguments):
        raise errors.InvalidArgument(f"the composite op '{op.function.name}' takes {tensor_count} tensors, "
                                     f"{len(arguments)} were given")
    return step.call(op.function, [None, *arguments])[1:]

