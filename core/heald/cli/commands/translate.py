"""heald translate: one graph or host program, another form. Programs are translated by heald-mlir.

With --placed the file has the graph as heald places it, for viewers of graphs (`placed_graph`).
"""

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
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-o", "--output", metavar="OUT", help="the file to write")
    target.add_argument("--placed", metavar="OUT.pb",
                        help="write the graph of a model as it is placed: devices, kernels and reasons of nodes, for "
                             "Netron and TensorBoard")
    add_plugin(parser)
    with suppress(NotFound):
        import heald

        heald.mlir.add_translate_arguments(parser)


def translate(args: Namespace) -> int:
    from pathlib import Path

    if args.placed is not None:
        return _write_placed(args)
    if Path(args.source).suffix.lower() in PROGRAMS:
        import heald

        status: int = heald.mlir.translate(args)
        return status
    for path in (args.source, args.output):
        check_suffix(path)
    with ticking(f"translating {args.source}"):
        graph = _load(args.source)
        _dump(graph, args.output)
    _tell(graph, args.output)
    return 0


def _write_placed(args: Namespace) -> int:
    from .placed_graph import read_placed_graph

    check_suffix(args.placed)
    with ticking(f"placing {args.source}"):
        graph = read_placed_graph(args.source)
        _dump(graph, args.placed)
    _tell(graph, args.placed)
    return 0


def _tell(graph: Graph, path: str) -> None:
    from pathlib import Path

    from ..printing.table import byte_text, plural

    say(f"wrote {path}: {plural(len(graph), 'node')}, {byte_text(Path(path).stat().st_size)}")


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
                            hint="the suffix tells the form; 'heald edit MODEL -o OUT.pb' writes the graph of any "
                                 "model that a loader reads")
    return suffix != ".pb"
