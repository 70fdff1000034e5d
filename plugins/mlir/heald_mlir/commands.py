"""The commands of `heald` that take host programs: opt, and the parts of translate and run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from heald.api import errors
from heald.runtime.support import file_kinds, file_path, input_file

from . import executor_driver, optimizer, translation
from .loaders import PROGRAM_SUFFIX, is_graph_text

BEF = ".bef"
_HEAD = 4096  # bytes that tell a graph's text


def add_opt_arguments(parser: ArgumentParser) -> None:
    """Add the options of `heald opt` for programs."""
    optimizer.add_arguments(parser)


def opt(source: str, output: str, args: Namespace) -> int:
    """Rewrite the text of a program; `-` is stdin and stdout. `args` has the options."""
    args.source, args.output = source, output
    return optimizer.optimize(args)


def add_translate_arguments(parser: ArgumentParser) -> None:
    """Add the options of `heald translate` for programs."""
    translation.add_arguments(parser.add_argument_group("programs: .mlir and .bef"))  # type: ignore[arg-type]


def translate(args: Namespace) -> int:
    """Translate a program. Raises InvalidArgument for an output whose suffix is not that of the result."""
    suffix = Path(args.output).suffix.lower()
    if args.output != translation.STDIN and suffix not in (BEF, PROGRAM_SUFFIX):
        raise errors.InvalidArgument(f"'{args.output}': programs are written as {BEF} and {PROGRAM_SUFFIX}",
                                     hint="the suffix tells the form; - is stdout; 'heald edit MODEL -o OUT.pb' writes "
                                          "the graph of a model")
    return translation.translate(args)


def is_program(path: str) -> bool:
    """Return True for a file of a host program: a text, or a BEF file without a model."""
    file = file_path.file_path(path)
    is_text = file.suffix.lower() == PROGRAM_SUFFIX
    if not file.is_file():
        return is_text
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    with input_file.reading(file):
        file_kinds.check_download(head, "a model")
    if is_text:
        return not is_graph_text(head)
    if not head.startswith(translation.MAGIC):
        return False
    from heald import bef

    return not bef.load(file).entries


def run_program(path: str, function: str | None, timeout: float | None = None) -> int:
    """Run a function of a program, or all of them, as bef_executor does; each ends after `timeout` seconds."""
    parser = ArgumentParser()
    executor_driver.add_arguments(parser)
    options = parser.parse_args([f"--functions={function}"] if function else [])
    options.source = path
    return executor_driver.execute(options, "heald run", timeout)
