"""Translation of host programs between text and BEF: `heald translate` and tfrt_translate."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from heald.api import errors
from heald.runtime.support import whole_file

from .diagnosed import handle_chunks
from .diagnostics import Diagnostic, InputChunk
from .printer import print_module
from .program_writer import write_program
from .text_file import declared_callees, decode_text, definition, dialects, program_of

MAGIC = b"\x0b\xef"
SEPARATOR = "// -----\n"
STDIN = "-"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of a translation, without its files."""
    parser.add_argument("--mlir-to-bef", action="store_true", help="read text, write BEF (by the input)")
    parser.add_argument("--bef-to-mlir", action="store_true", help="read BEF, write text (by the input)")
    add_text_arguments(parser)


def add_text_arguments(parser: ArgumentParser) -> None:
    """The options of every program that reads and writes texts."""
    parser.add_argument("--split-input-file", action="store_true", help="each text between lines // ----- on its own")
    parser.add_argument("--verify-diagnostics", action="store_true",
                        help="compare errors and remarks with comments expected-error {{text}}")
    parser.add_argument("--mlir-print-op-generic", action="store_true", help="write all operations in generic form")
    parser.add_argument("--mlir-print-debuginfo", action="store_true", help="write locations")


def read(source: str) -> bytes:
    """The bytes of a file, or of stdin for `-`. Raises NotFound and others for a file that cannot be read."""
    try:
        return sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
    except OSError as error:
        raise errors.of_system(error, source) from error


def write(target: str, outputs: list[str | bytes]) -> None:
    """Write outputs to a file, or to stdout for `-`. Raises NotFound and others for a file that cannot be written."""
    raw = b"".join(output.encode("utf-8", "surrogateescape") if isinstance(output, str) else output
                   for output in outputs)
    if target == STDIN:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return
    whole_file.write_whole(Path(target), [raw])


def translate(args: Namespace) -> int:
    """Translate `args.source` to `args.output` and return the exit status."""
    data = read(args.source)
    if args.bef_to_mlir or (data.startswith(MAGIC) and not args.mlir_to_bef):
        write(args.output, [_text(data, args)])
        return 0
    file = args.source

    def to_bef(chunk: InputChunk) -> tuple[bytes, list[Diagnostic]]:
        from heald import bef

        return bef.dumps(program_of(chunk.text, file, chunk.line)), []

    outputs, status = handle_chunks(decode_text(data, file), file, to_bef, split=args.split_input_file,
                                    verify=args.verify_diagnostics)
    if outputs:
        write(args.output, outputs)
    return status


def _text(data: bytes, args: Namespace) -> str:
    """The text of a BEF file. The signatures and the packed weights of a compiled model are left out, with a remark."""
    from heald import bef

    model = bef.loads(data)
    if model.entries:
        sys.stderr.write(f"{args.source}: remark: text has the program alone, without signatures and packed weights\n")
    return print_module(write_program(definition(model.program), declared_callees), dialects(),
                        generic=args.mlir_print_op_generic, locations=args.mlir_print_debuginfo)
