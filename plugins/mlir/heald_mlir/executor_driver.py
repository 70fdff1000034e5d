"""The driver of host programs: runs functions one after the other, and tells of each as TFRT's bef_executor does.

Errors of kernels are diagnostics at the place of their call. The comments `expected-error` of the source file, which
the program's locations name, tell which are expected.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from heald.api import AsyncValue, TensorMetadata, WorkQueueConfig, errors

from .diagnosed import all_diagnostics
from .diagnostics import Diagnostic, diagnostic_mismatches, expected_diagnostics
from .program_writer import is_native
from .text_file import decode_text, program_of
from .translation import MAGIC, STDIN, read

if TYPE_CHECKING:
    import heald

_FLOATS = ("f32", "f64")
_INTEGERS = ("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
_ALLOCATORS = {  # the announcement, and the configuration
    "malloc": ("malloc", {"name": "plain"}),
    "test_fixed_size_1k": ("fixed size malloc", {"name": "plain", "limit": 1024}),
    "profiled_allocator": ("profiled allocator based on malloc", {"name": "counting"}),
    "leak_check_allocator": ("memory leak check allocator", {"name": "counting"}),
}
LEAK_CHECK = "leak_check_allocator"
_QUEUE = re.compile(r"(s|mstd)(?::([1-9]\d{0,3})(?:,([1-9]\d{0,3}))?)?\Z", re.ASCII)
_BLOCKING = 256  # threads for blocking tasks, in TFRT's announcement


def add_arguments(parser: ArgumentParser) -> None:
    """The options of bef_executor, without its file."""
    parser.add_argument("--work_queue_type", default="s", metavar="s|mstd|mstd:N|mstd:N,M",
                        help="one thread, or a pool of N threads (s)")
    parser.add_argument("--host_allocator_type", default=LEAK_CHECK, choices=sorted(_ALLOCATORS),
                        help=f"the allocator of host memory ({LEAK_CHECK})")
    parser.add_argument("--functions", default="", metavar="F,...", help="run these functions alone")
    parser.add_argument("--test_init_function", default="", metavar="F", help="run this function first")
    parser.add_argument("--shared_libs", action="append", default=[], metavar="FILE",
                        help="register a plugin with kernels: a one-file plugin, or a module by its name (repeatable)")
    parser.add_argument("--print_error_code", action="store_true", help="print the code of an error result")


def execute(args: Namespace, program_name: str = "bef_executor", timeout: float | None = None) -> int:
    """Run the program in `args.source` and return the exit status. `timeout`: seconds of each function."""
    return Driver(args, program_name, timeout).run()


class Driver:
    """One run of the tool."""

    def __init__(self, args: Namespace, name: str, timeout: float | None = None) -> None:
        self._args, self._name, self._timeout = args, name, timeout
        self._diagnostics: list[Diagnostic] = []

    def run(self) -> int:
        import heald

        args = self._args
        for plugin in args.shared_libs:
            heald.register(plugin)
        announced, allocator = _ALLOCATORS[args.host_allocator_type]
        queue, threads = _work_queue(args.work_queue_type)
        self._say(f"Choosing {announced}.")
        self._say(f"Choosing {threads} work queue.")
        host = heald.HostContext(work_queue=queue, diagnostics=self._report, config={"allocator": allocator})
        try:
            status = self._run_on(host, args)
            if host.allocator.stats().buffers:  # of a cycle, perhaps; a collection takes as long as all objects need
                gc.collect()
            stats = host.allocator.stats()
            if args.host_allocator_type == LEAK_CHECK and stats.buffers:
                self._say(f"Memory leak detected: {stats.buffers} alive allocations, {stats.in_use} alive bytes")
                status = 1
        finally:
            host.close()
        return self._check_diagnostics() or status

    def _run_on(self, host: heald.HostContext, args: Namespace) -> int:
        program = _program(args.source)
        unknown = self._unknown_kernels(host, program)
        for error in unknown:
            self._report(error)
        if unknown:
            return 0
        for name in filter(None, args.functions.split(",")):
            if name not in program.functions:
                sys.stderr.write(f"{self._name}: couldn't find function {name}\n")
                return 1
        first = [args.test_init_function] if args.test_init_function in program.functions else []
        requested = [name for name in args.functions.split(",") if name] or list(program.functions)
        for name in (*first, *(requested_name for requested_name in requested if requested_name not in first)):
            runs = not name.startswith("%") and not is_native(program.functions[name])
            if runs and not self._run_function(host, program, name):
                break
        return 0

    def _unknown_kernels(self, host: heald.HostContext, program: heald.HostProgram) -> list[errors.HealdError]:
        unknown: list[errors.HealdError] = []
        for call in (call for function in program.functions.values() for call in function.kernels):
            if call.is_host_kernel:
                try:
                    host.registries.host_kernels.get(call.code)
                except errors.NotFound:
                    unknown.append(errors.NotFound(f"unknown kernel name '{call.code}'", location=call.location))
        return unknown

    def _run_function(self, host: heald.HostContext, program: heald.HostProgram, name: str) -> bool:
        """Run a function, and wait until its work is done. Returns False when the program cannot be linked."""
        import heald

        function = program.functions[name]
        if function.arg_names:
            self._say(f"--- Not running '{name}' because it has arguments.")
            return True
        self._say(f"--- Running '{name}':")
        end = inf if self._timeout is None else monotonic() + self._timeout
        try:
            results = program.run(name, request=heald.RequestContext(host),
                                  options=heald.RunOptions(timeout=self._timeout))
        except errors.HealdError as error:
            self._report(error)
            return False
        host.await_values(results)
        types = [function.register_types[register] for register in function.results]
        texts = [self._result(value, of) for value, of in zip(results, types, strict=True)]
        del results
        host.work_queue.quiesce()
        if monotonic() >= end:
            self._report(errors.DeadlineExceeded(f"function '{name}' took longer than its timeout of {self._timeout} s",
                                                 location=function.location))
        if texts:
            self._say(f"'{name}' returned {','.join(texts)}")
        return True

    def _result(self, value: AsyncValue, of: TensorMetadata | str) -> str:
        try:
            payload = value.get()
        except errors.HealdError as error:
            code = f", code: {_code(error)}" if self._args.print_error_code else ""
            return f"<<error: {error.message}{code}>>"
        if of in _INTEGERS:
            return str(int(payload))
        return f"{payload:e}" if of in _FLOATS else f"{of} value"

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def _report(self, error: errors.HealdError) -> None:
        for diagnostic in all_diagnostics(error, STDIN):
            kind = "runtime error: " if diagnostic.kind == "error" else ""
            self._diagnostics.append(diagnostic._replace(message=f"{kind}{diagnostic.message}"))

    def _check_diagnostics(self) -> int:
        """Compare the diagnostics with the expected ones; write the differences; return the status."""
        status = 0
        for file in dict.fromkeys(diagnostic.file for diagnostic in self._diagnostics):
            file_diagnostics = [diagnostic for diagnostic in self._diagnostics if diagnostic.file == file]
            text = _source(file)
            wrong = diagnostic_mismatches(file_diagnostics, expected_diagnostics(text), file)
            for diagnostic in wrong:
                sys.stderr.write(diagnostic.rendered_text(text) + "\n")
            status = 1 if wrong else status
        return status


def _program(source: str) -> heald.HostProgram:
    import heald

    data = read(source)
    program = heald.bef.loads(data).program if data.startswith(MAGIC) else program_of(decode_text(data, source), source)
    return heald.HostProgram(program.functions, program.constants, program.requires)


def _source(file: str) -> str:
    if file == STDIN:
        return ""
    try:
        return read(file).decode("utf-8", "surrogateescape")
    except errors.HealdError:
        return ""


def _work_queue(text: str) -> tuple[Any, str]:
    """The configuration of a work queue, and its announcement. Raises InvalidArgument for another text."""
    match = _QUEUE.match(text)
    if match is None or (match[1] == "s" and match[2]):
        raise errors.InvalidArgument(f"no work queue is called '{text}'", hint="give s, mstd, mstd:N or mstd:N,M")
    if match[1] == "s":
        return WorkQueueConfig("single_threaded"), "single-threaded"
    threads = int(match[2] or os.cpu_count() or 1)
    blocking = int(match[3] or _BLOCKING)
    return (WorkQueueConfig("multi_threaded", threads),
            f"Multi-threaded C++ work queue ({threads} threads, {blocking} blocking threads)")


def _code(error: errors.HealdError) -> str:
    """The name of a canonical code, as absl writes it."""
    kind: Sequence[type] = type(error).__mro__
    name = next(error_class.__name__ for error_class in kind if error_class.__module__ == "heald.errors")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
