"""heald translate: one graph or host program, another form. Programs are translated by heald-mlir."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import NotFound
from ..printing.progress import ticking
from ..printing.terminal import say
from .arguments import add_plugin

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph

EPILOG = ("The suffix tells the form: .pb is a binary GraphDef, .pbtxt the same in text, .tfg a graph in the TF Graph "
          "IR; .bef a program, .mlir its text.")
PROGRAMS = (".bef", ".mlir")
TFG = ".tfg"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("source", metavar="IN", help="the file to read: .pb, .pbtxt, .tfg, .bef or .mlir")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write")
    add_plugin(parser)
    with suppress(NotFound):
        import heald

        heald.mlir.add_translate_arguments(parser)


def translate(args: Namespace) -> int:
    from pathlib import Path

    if Path(args.source).suffix.lower() in PROGRAMS:
        import heald

        status: int = heald.mlir.translate(args)
        return status
    from ..printing.table import byte_text, plural

    for path in (args.source, args.output):
        check_suffix(path)
    with ticking(f"translating {args.source}"):
        graph = _load(args.source)
        _dump(graph, args.output)
    say(f"wrote {args.output}: {plural(len(graph), 'node')}, {byte_text(Path(args.output).stat().st_size)}")
    return 0


def _load(path: str) -> Graph:
    from pathlib import Path

    if Path(path).suffix.lower() == TFG:
        import heald

        graph: Graph = heald.tfg.load(path)
        return graph
    from ...graphs.graph.graphdef import load

    return load(path, text=is_text(path))


def _dump(graph: Graph, path: str) -> None:
    from pathlib import Path

    if Path(path).suffix.lower() == TFG:
        import heald

        heald.tfg.dump(graph, path)
        return
    from ...graphs.graph.graphdef import dump

    dump(graph, path, text=is_text(path))


def check_suffix(path: str) -> None:
    """Raises Unimplemented for a file that is no form of a graph."""
    from pathlib import Path

    if Path(path).suffix.lower() != TFG:
        is_text(path)


def is_text(path: str) -> bool:
    """True for a file in protobuf's text form. Raises Unimplemented for other forms."""
    from pathlib import Path

    from ...errors import Unimplemented
    from ...graphs.graph.graphdef_suffixes import TEXT_SUFFIXES

    suffix = Path(path).suffix.lower()
    if suffix != ".pb" and suffix not in TEXT_SUFFIXES:
        forms = ", ".join(sorted((*TEXT_SUFFIXES, TFG)))
        raise Unimplemented(f"'{path}': graphs are read and written as .pb and {forms}",
                            hint="the suffix tells the form")
    return suffix != ".pb"
