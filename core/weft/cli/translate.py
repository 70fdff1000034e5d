"""weft translate: one graph or host program, another form. Programs are translated by weft-mlir."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress

from ..errors import Unavailable
from .progress import ticking
from .terminal import say

EPILOG = "The suffix tells the form: .pb is a binary GraphDef, .pbtxt the same in text; .bef a program, .mlir its text."
PROGRAMS = (".bef", ".mlir")


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("source", metavar="IN", help="the file to read: .pb, .pbtxt, .bef or .mlir")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write")
    with suppress(Unavailable):
        import weft

        weft.mlir.add_translate_arguments(parser)


def translate(args: Namespace) -> int:
    from pathlib import Path

    if Path(args.source).suffix.lower() in PROGRAMS:
        import weft

        status: int = weft.mlir.translate(args)
        return status
    from ..graph.graphdef import dump, load
    from .table import byte_text, plural

    forms = [is_text(path) for path in (args.source, args.output)]
    with ticking(f"translating {args.source}"):
        graph = load(args.source, text=forms[0])
        dump(graph, args.output, text=forms[1])
    say(f"wrote {args.output}: {plural(len(graph), 'node')}, {byte_text(Path(args.output).stat().st_size)}")
    return 0


def is_text(path: str) -> bool:
    """Whether a file is in the text form. Raises Unimplemented for other forms."""
    from pathlib import Path

    from ..errors import Unimplemented
    from ..graph.graphdef import TEXT_SUFFIXES

    suffix = Path(path).suffix.lower()
    if suffix != ".pb" and suffix not in TEXT_SUFFIXES:
        raise Unimplemented(f"'{path}': graphs are read and written as .pb and {', '.join(sorted(TEXT_SUFFIXES))}",
                            hint="the suffix tells the form")
    return suffix != ".pb"
