"""Native functions, which programs declare without a body and call like their own."""

from __future__ import annotations

from heald.api import I32, NATIVE, Step, errors


def register(kernels):
    for function in (native_add, native_error, native_sink):
        kernels.kernel(f"{NATIVE}{function.__name__}")(function)
    kernels.kernel(f"{NATIVE}native_async_add", step=True, asynchronous=True)(native_async_add)
    kernels.kernel(f"{NATIVE}native_async_sink", step=True)(native_async_sink)


def native_add(a: I32, b: I32) -> I32:
    return (a + b + 2**31) % 2**32 - 2**31


def native_async_add(step: Step, a: I32, b: I32) -> I32:
    return step.enqueue(lambda: native_add(a, b))


def native_error() -> I32:
    raise errors.Internal("something bad happened")


def native_sink(value: I32) -> None:
    pass


def native_async_sink(step: Step, value: I32) -> None:
    step.enqueue(lambda: native_sink(value))
