"""Kernels that fail, cancel, or hold resources."""

from __future__ import annotations

from typing import Annotated

from heald.api import I32, Chain, HostType, Step, errors, failed

PLAIN = "operands attr-dict"
BAD = "something bad happened"


class Resource:
    """Tells when it is destroyed: by a kernel, or with its last reference."""

    def __init__(self, host):
        self._host = host
        host.print_line("Allocated TestResource")

    def destroy(self):
        host, self._host = self._host, None
        if host is not None:
            host.print_line("Destroyed TestResource")

    __del__ = destroy


TestResource = Annotated[Resource, HostType("!tfrt.test.resource", lambda value: isinstance(value, Resource))]


def register(kernels):
    for function in (fail, partial_fail, error_chain):
        kernels.kernel(f"tfrt_test.{function.__name__}", syntax=PLAIN)(function)
    for function in (cancel, allocate_resource, deallocate_resource):
        kernels.kernel(f"tfrt_test.{function.__name__}", step=True, syntax=PLAIN)(function)
    kernels.kernel("tfrt_test.report_error_async", step=True, asynchronous=True, syntax=PLAIN)(report_error_async)
    for kind in ("concrete", "indirect"):
        kernels.kernel(f"tfrt_test.report_error_{kind}_async", step=True, asynchronous=True, syntax=PLAIN)(
            report_error_unless_zero)


def fail() -> I32:
    raise errors.Internal(BAD)


def partial_fail() -> tuple[I32, I32]:
    return 1, failed(errors.Internal(BAD))


def report_error_async(step: Step) -> I32:
    return step.enqueue(lambda: zero_or_error(1))


def report_error_unless_zero(step: Step, x: I32) -> I32:
    return step.enqueue(lambda: zero_or_error(x))


def zero_or_error(x):
    if x:
        raise errors.Internal("something bad happened asynchronously")
    return 0


def cancel(step: Step, chain: Chain) -> tuple[I32, Chain]:
    step.cancel(errors.Cancelled("Cancelled"))
    return 0, None


def error_chain(chain: Chain) -> Chain:
    raise errors.Internal("error chain")


def allocate_resource(step: Step, chain: Chain) -> tuple[TestResource, Chain]:
    return Resource(step.host), None


def deallocate_resource(step: Step, resource: TestResource, chain: Chain) -> Chain:
    resource.destroy()
    step.host.print_line("tfrt_test.deallocate_resource done")
