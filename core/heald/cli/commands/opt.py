"""heald opt: graph passes by name over a model, or rewrites of a host program's text, which heald-mlir does."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from itertools import chain
from typing import Any

from ...errors import NotFound
from ..printing.progress import ticking
from ..printing.terminal import say
from .arguments import add_listing, add_loading, open_graph
from .editing import Editing, add_changes, check_output, frozen

EPILOG = """\
With --passes the file is a model, as of heald inspect. Its placeholders and the tensors of its signature stay; without
a signature all nodes that no other node needs stay. --feed and --fetch name other tensors instead. Without -o nothing
is written. Without --passes the file is the text of a host program."""
STDIN = "-"
COLUMNS = ("name", "stage", "plugin", "about", "preserves", "idempotent")


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("model", nargs="?", default=STDIN, metavar="FILE", help="a model, or a text (stdin)")
    parser.add_argument("-o", "--output", metavar="OUT", help="the file to write: .pb or .pbtxt; of texts stdout by "
                        "default")
    parser.add_argument("--passes", metavar="PASS,..", help="run graph passes, in this order")
    parser.add_argument("--list-passes", action="store_true", help="list all graph passes, and what each preserves")
    parser.add_argument("--feed", action="append", default=[], metavar="TENSOR",
                        help="a tensor that is fed (repeatable)")
    parser.add_argument("--fetch", action="append", default=[], metavar="TENSOR",
                        help="a tensor that is returned (repeatable)")
    parser.add_argument("--function", metavar="NAME", help="the function that passes are about: the entry")
    add_changes(parser)
    add_loading(parser)
    add_listing(parser)
    with suppress(NotFound):
        import heald

        heald.mlir.add_opt_arguments(parser.add_argument_group("texts of host programs"))


def opt(args: Namespace) -> int:
    if args.list_passes:
        return _list(args)
    return _program(args) if args.passes is None else _graph(args)


def _program(args: Namespace) -> int:
    """Rewrite the text of a program. Raises InvalidArgument for a model, NotFound without heald-mlir."""
    from pathlib import Path

    import heald

    from ...errors import InvalidArgument
    from ...graphs.graph.graphdef_suffixes import TEXT_SUFFIXES

    if Path(args.model).is_dir() or Path(args.model).suffix.lower() in (".pb", *TEXT_SUFFIXES):
        raise InvalidArgument(f"no pass is named for '{args.model}'",
                              hint="--passes a,b names passes; heald opt --list-passes lists them")
    status: int = heald.mlir.opt(args.model, STDIN if args.output is None else args.output, args)
    return status


def _graph(args: Namespace) -> int:
    from pathlib import Path

    from ...errors import NotFound
    from ...graphs.graph.graphdef import dump
    from ...runtime.service.runtime import runtime
    from ..printing.table import byte_text, plural, show_json
    from .passes import passes, show_passes
    from .translate import is_text

    text = args.output is not None and is_text(args.output)
    if args.output is not None:
        check_output(Path(args.output), args.force)
    if args.model == STDIN:
        raise NotFound("a model is a file or folder, and none is named", hint="heald opt --passes a,b MODEL -o OUT.pb")
    opened = open_graph(args)
    on = Editing(opened, frozen(opened) if args.freeze else opened.graph, runtime())
    names = [name for name in args.passes.split(",") if name]
    with ticking(f"rewriting {args.model}"):
        rows = passes(chain([("", on.graph)], on.graphs_after(names, feeds=[*map(on.tensor, args.feed)],
                                                       fetches=[*map(on.tensor, args.fetch)], entry=args.function)))
        if args.output is not None:
            on.check_state()
            dump(on.graph, args.output, text=text)
    report: dict[str, Any] = {"file": args.output, "nodes": len(on.graph), "functions": len(on.graph.functions),
                             "passes": rows}
    if args.json:
        show_json(report)
        return 0
    show_passes(rows)
    if args.output is not None:
        say(f"wrote {args.output}: {plural(len(on.graph), 'node')}, {byte_text(Path(args.output).stat().st_size)}")
    return 0


def _list(args: Namespace) -> int:
    from ...runtime.contract.graph_pass import STAGES
    from ...runtime.service.runtime import runtime
    from ..printing.table import show, show_json

    graph_passes = sorted(runtime().host.registries.passes.values(),
                          key=lambda graph_pass: (STAGES.index(graph_pass.stage), graph_pass.name))
    rows = [{"name": graph_pass.name, "stage": graph_pass.stage, "plugin": graph_pass.plugin, "about": graph_pass.about,
             "preserves": graph_pass.preserves,
             "idempotent": f"no: {graph_pass.repeats}" if graph_pass.repeats else "yes"}
            for graph_pass in graph_passes]
    if args.json:
        show_json(rows)
    else:
        show(rows, COLUMNS, wrap=("about", "preserves", "idempotent"))
    return 0
