"""Kernels without surprises: strings, copies, thread numbers, logs."""

from __future__ import annotations

import sys
import threading
import time
from random import uniform
from typing import Any, TypeVar

from heald.api import I32, I64, Chain, Step, String, available, errors
from heald.errors import Location

N = TypeVar("N")
PLAIN, VALUE, TYPED = "operands attr-dict", "$value attr-dict", "operands attr-dict `:` type(operands)"
ANY = "operands attr-dict `:` functional-type(operands, results)"
SYNTAX = {"get_string": VALUE, "identity": ANY, "multi_arg_result": ANY, "share_to_two": ANY, "test_cost": TYPED,
          "flat": "attr-dict `:` type(results)", "unique_loc": "attr-dict"}
LEAKED = []  # never freed


def register(kernels):
    for function in (get_string, append_string, identity, multi_arg_result, flat, share_to_two, async_value_get,
                     async_value_ref):
        kernels.kernel(f"tfrt_test.{function.__name__}", syntax=SYNTAX.get(function.__name__, PLAIN))(function)
    for function in (print_hello, print_string, get_thread_id, test_cost, print_debug_info, unique_loc, logging,
                     memory_leak_one_int32, use_sample_shared_context):
        kernels.kernel(f"tfrt_test.{function.__name__}", step=True,
                       syntax=SYNTAX.get(function.__name__, PLAIN))(function)
    kernels.kernel("tfrt_test.count3.i32", syntax=PLAIN)(count3)
    for name, kind in {"i32": I32, "i64": I64}.items():
        kernels.kernel(f"tfrt_test.copy.with_delay.{name}", N=kind, syntax=PLAIN)(copy_with_delay)


def print_hello(step: Step, chain: Chain) -> Chain:
    step.host.print_line("hello host executor!")


def get_string(*, value: String) -> String:
    return value


def print_string(step: Step, text: String, chain: Chain) -> Chain:
    step.host.print_line(f"string = {text}")


def append_string(first: String, last: String) -> String:
    return first + last


def identity(chain: Chain, *values: Any) -> list[Any]:
    return list(values)


def multi_arg_result(*values: Any) -> list[Any]:
    return list(values)


def count3(x: I32) -> tuple[I32, I32, I32]:
    return x + 1, x + 2, x + 3


def copy_with_delay(value: N) -> N:
    time.sleep(uniform(0.001, 0.01))  # noqa: S311
    return value


def flat(*, value: Any) -> list[Any]:
    """The leaves of nested arrays."""
    return [leaf for item in value for leaf in (flat(value=item) if isinstance(item, tuple | list) else [item])]


def share_to_two(value: Any) -> tuple[Any, Any]:
    return value, value


def get_thread_id(step: Step, chain: Chain) -> I32:
    """0, 1, 2, ... in the order in which threads first ask."""
    numbers_by_thread = step.host.resources.get("tfrt_test.threads", dict)
    return numbers_by_thread.setdefault(threading.get_ident(), len(numbers_by_thread))


def test_cost(step: Step, *values: Any, id: I64) -> I32:  # noqa: A002 - the attribute's name
    step.host.print_line(f"id: {id}")
    return 0


def print_debug_info(step: Step, chain: Chain, *, where: Location | None = None) -> Chain:
    """Names of locations do not survive in programs of heald."""
    step.host.print_line("Kernel has no debug info")


def unique_loc(step: Step, *, name: String, where: Location | None = None) -> Chain:
    """Fails when calls of different names share one location."""
    location, _ = step.host.resources.get("tfrt_test.locations", dict).setdefault(id(where), (name, where))
    if where is not None and location != name:
        raise errors.Internal(f"the calls '{location}' and '{name}' have one location")


def logging(step: Step, text: String, chain: Chain) -> Chain:
    levels = "INFO", "WARNING", "ERROR"
    texts = [(level, f"from TFRT_LOG({level}): {text}") for level in levels]
    texts += [(level, f"from TFRT_LOG_IF({level}, true): {text}") for level in levels]
    for level, line in texts:
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06}"
        print(f"{level[0]} {stamp} {threading.get_native_id()} simple.py:1] {line}", file=sys.stderr)


def memory_leak_one_int32(step: Step) -> None:
    LEAKED.append(step.host.allocator.allocate(4))


def use_sample_shared_context(step: Step, chain: Chain) -> tuple[String, Chain]:
    return step.host.resources.get("tfrt_test.sample_shared_context", lambda: "sample_shared_context0"), None


def async_value_get() -> String:
    return available("async_value_get").get()


def async_value_ref() -> String:
    return available("async_value_ref")


