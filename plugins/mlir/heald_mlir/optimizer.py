"""Rewriting and checking of program texts: `heald opt` and tfrt_opt."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from heald.runtime.program import Stream, analyse_streams

from . import attributes as a
from .diagnosed import handle_chunks
from .diagnostics import Diagnostic, InputChunk
from .dialects.registry import KernelDialects
from .dialects.verifier import verify
from .ir import Operation
from .parser import FUNCTION, MODULE, parse
from .printer import print_module
from .program_attributes import place_of
from .program_reader import fault, read_program, stream_options
from .rewrites import canonicalize, inline
from .text_file import declared_callees, decode_text, dialects
from .translation import SEPARATOR, add_text_arguments, read, write

_BUILTIN = ("builtin", "func")
_OPEN_DIALECTS = ("tfrt", "tfrt_test", "corert", "tfrt_dht", "coo")  # they may have undeclared operations


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the optimizer, without its files."""
    parser.add_argument("--inline", action="store_true", help="replace calls by the body of their function")
    parser.add_argument("--canonicalize", action="store_true", help="drop unused constants, merge no chain twice")
    parser.add_argument("--tfrt-print-stream", action="store_true", help="remark the stream of each operation")
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help="permit dialects without kernels")
    add_text_arguments(parser)


def optimize(args: Namespace) -> int:
    """Rewrite `args.source` to `args.output` and return the exit status."""

    def rewritten(chunk: InputChunk) -> tuple[str, list[Diagnostic]]:
        declared = dialects()
        module = parse(chunk.text, args.source, chunk.line, declared)
        verify(module, declared)
        if not args.allow_unregistered_dialect:
            _check_dialects(module, declared)
        if args.inline:
            inline(module)
        if args.canonicalize:
            canonicalize(module)
        if args.inline or args.canonicalize:
            verify(module, declared)
        remarks = _streams(module) if args.tfrt_print_stream else []
        return print_module(module, declared, generic=args.mlir_print_op_generic,
                            locations=args.mlir_print_debuginfo), remarks

    outputs, status = handle_chunks(decode_text(read(args.source), args.source), args.source, rewritten,
                                    split=args.split_input_file, verify=args.verify_diagnostics)
    texts: list[str | bytes] = [part for output in outputs for part in (SEPARATOR, output)]
    if texts:
        write(args.output, texts[1:])
    return status


def _check_dialects(module: Operation, declared: KernelDialects) -> None:
    """Raises InvalidProgram for an operation of a dialect that no kernel belongs to."""
    for operation in module.walk():
        name = operation.name.partition(".")[0]
        if name not in (*_BUILTIN, *_OPEN_DIALECTS) and declared.declaration(operation.name) is None:
            raise fault(operation.location, f"'{operation.name}' op created with unregistered dialect. If this is "
                        "intended, please use -allow-unregistered-dialect with the MLIR tool used")


def _streams(module: Operation) -> list[Diagnostic]:
    """A remark for each function and operation: its stream, the stream's cost, and the stream that starts it."""
    program = read_program(module, declared_callees)
    remarks = []
    for outer in (inner for inner in module.walk() if inner.name == MODULE):
        for function in (inner for inner in outer.regions[0].blocks[0].operations if inner.name == FUNCTION):
            name = function.attributes["sym_name"]
            assert isinstance(name, a.StringAttr)
            if not function.regions[0].blocks:
                continue
            threshold, merges = stream_options(outer, function)
            operations = function.regions[0].blocks[0].operations
            for stream in analyse_streams(program.functions[name.value], threshold, merge_dependent=merges):
                remarks += [_remark(function if call < 0 else operations[call], stream) for call in stream.calls]
    return sorted(remarks, key=lambda remark: (remark.line, remark.column))


def _remark(operation: Operation, stream: Stream) -> Diagnostic:
    file, line, column = place_of(operation.location)[1] or ("-", None, None)
    parent = -1 if stream.parent is None else stream.parent
    return Diagnostic("remark", file, line or 0, column or 0,
                      f"stream id: {stream.number}, stream cost: {stream.cost}, parent stream: {parent}")
