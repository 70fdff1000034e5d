"""heald tfg: graphs as text in the TF Graph IR: printed, parsed, verified, exported, compared."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heald.api import Graph, errors
from heald.api.cli import (
    add_json,
    add_model,
    add_plugin,
    byte_text,
    compare_models,
    open_graph,
    plural,
    positive,
    say,
    show,
    show_json,
    ticking,
)

STDIN = "-"
INVALID = 1
EPILOG = """\
A model is a text (.tfg), a GraphDef (.pb, .pbtxt) or the folder of a SavedModel. A text that is printed gives the same
GraphDef back, byte for byte, except with --canonical: then it is the text of TensorFlow's own importer."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog="heald tfg")
    add = _action(actions, "print", print_text, "print a model as text")
    add_model(add)
    _add_text(add)
    add.add_argument("--elide", type=positive, metavar="N",
                     help="leave out constants of more than N elements; the text is for people, and canonical")
    add = _action(actions, "parse", parse, "check a text, and print it anew")
    _add_source(add)
    _add_text(add)
    add = _action(actions, "verify", verify, "check a model, and each node against its op; status 1 for faults")
    add_model(add)
    add.add_argument("more", nargs="*", metavar="TEXT", help="with --expect: further texts")
    add.add_argument("--expect", action="store_true",
                     help="compare the errors of texts (.tfg) with their comments expected-error {{...}}")
    add_json(add)
    add = _action(actions, "export", export, "write a text as a GraphDef")
    _add_source(add)
    add.add_argument("-o", "--output", required=True, metavar="OUT", help="the file to write: .pb or .pbtxt")
    add.add_argument("--canonical", action="store_true", help="as TensorFlow's own exporter writes it")
    add = _action(actions, "diff", compare_models, "compare two models, constants by value; status 1 when they differ")
    add_model(add)
    add.add_argument("other", metavar="OTHER", help="the model that MODEL is compared with")
    add.add_argument("--text", action="store_true", help="a line for each difference, and no table")
    add.add_argument("--all", action="store_true", help="a row for every difference")
    add_json(add)


def _action(actions: Any, name: str, function: Any, about: str) -> ArgumentParser:
    parser: ArgumentParser = actions.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter)
    parser.set_defaults(function=function)
    parser.add_argument("--config", metavar="FILE", help="take settings from this file first")
    add_plugin(parser)
    return parser


def _add_source(parser: ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", default=STDIN, metavar="TEXT", help="a text; stdin by default")


def _add_text(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default=STDIN, metavar="OUT", help="the file to write (stdout)")
    parser.add_argument("--canonical", action="store_true",
                        help="the text that TensorFlow prints: with defaults, without what only bytes have")


def run(args: Namespace) -> int:
    """Run the chosen action."""
    status: int = args.function(args)
    return status


def print_text(args: Namespace) -> int:
    from .elision import elided_text, without_large_constants
    from .text_file import text_fragments

    graph = _open_graph(args)
    if args.elide is None:
        fragments: Iterable[str] = text_fragments(graph, canonical=args.canonical)
    else:
        fragments = elided_text(text_fragments(without_large_constants(graph, args.elide), canonical=True))
    with _of_file(args.model):
        _write(args.output, fragments)
    return 0


def _open_graph(args: Namespace) -> Graph:
    """The graph of MODEL. A GraphDef that TensorFlow's importer refuses, too, raises the importer's error."""
    from heald import default_host

    from .checks.refused_file import importer_error

    try:
        return open_graph(args).graph
    except errors.InvalidArgument as error:
        told = importer_error(args.model, default_host().registries.ops)
        if told is None:
            raise
        raise told from error


@contextmanager
def _of_file(path: str) -> Iterator[None]:
    """Errors of a graph name its file."""
    try:
        yield
    except errors.InvalidArgument as error:
        raise error.at(location=errors.Location(path)) from error.__cause__


def parse(args: Namespace) -> int:
    from .text_file import text_fragments

    _write(args.output, text_fragments(_read(args.source), canonical=args.canonical, verify=False))
    return 0


def verify(args: Namespace) -> int:
    """Compare errors with the expected ones, or list the nodes that do not fit their ops."""
    if args.expect:
        return _compare_with_comments(args)
    if args.more:
        raise errors.InvalidArgument(f"one model is verified at a time, '{args.more[0]}' is another",
                                     hint="several texts with comments are verified by --expect")
    return _list_faults(args)


def _compare_with_comments(args: Namespace) -> int:
    from .expectations import read_annotated, unmet_expectations

    rows = []
    texts = {path: read_annotated(path) for path in dict.fromkeys((args.model, *args.more))}
    for path, text in texts.items():
        for mismatch, chunk in unmet_expectations(text, path):
            rows.append({"file": path, "line": mismatch.line, "column": mismatch.column, "fault": mismatch.message})
            if not args.json:
                sys.stderr.write(mismatch.rendered_text(chunk.text, chunk.line) + "\n")
    if args.json:
        show_json(rows)
    elif not rows:
        say(f"{plural(len(texts), 'text')}: every error is an expected one")
    return INVALID if rows else 0


def _list_faults(args: Namespace) -> int:
    """List the nodes that do not fit their ops.

    A file that is no graph raises the error of its loader. A GraphDef that TensorFlow does not import raises
    InvalidArgument in TensorFlow's words. Control flow that does not fit its functions raises
    MalformedText, with the place in the text that `heald tfg print --canonical` prints.
    """
    from heald import default_host
    from heald.graphs.compiler import faulty_nodes

    from ..attribute_text import MAX_LISTED_ELEMENTS
    from ..loaders import GRAPH_SUFFIX
    from .elision import without_large_constants
    from .text_file import check_import, dumps, loads

    graph = _open_graph(args)
    with ticking("verifying"), _of_file(args.model):
        rows = [{"node": name, "op": graph[name].op, "fault": error.message}
                for name, error in faulty_nodes(graph, default_host().registries.ops).items()]
        if not args.model.endswith(GRAPH_SUFFIX):  # the loader of texts verifies them
            check_import(graph)
            short = without_large_constants(graph, MAX_LISTED_ELEMENTS)
            loads(dumps(short, canonical=True), file=f"{args.model} as text")
    if args.json:
        show_json(rows)
    elif rows:
        show(rows, ("node", "op", "fault"), cut=("node",))
    else:
        say(f"{plural(len(graph), 'node')} and {plural(len(graph.functions), 'function')}: no fault")
    return INVALID if rows else 0


def export(args: Namespace) -> int:
    from heald import graphdef

    from .text_file import dumps, loads

    text = _is_text(args.output)
    graph = _read(args.source)
    if args.canonical:
        graph = loads(dumps(graph, canonical=True, verify=False), file=args.source)
    graphdef.dump(graph, args.output, text=text)
    say(f"wrote {args.output}: {plural(len(graph), 'node')}, {byte_text(Path(args.output).stat().st_size)}")
    return 0


def _read(source: str) -> Graph:
    from .text_file import load, loads

    graph: Graph = loads(sys.stdin.buffer.read()) if source == STDIN else load(source)
    return graph


def _write(target: str, fragments: Iterable[str]) -> None:
    """Write a text to a file, which appears when it is whole, or to stdout."""
    from heald.runtime.support import file_path, whole_file

    encoded = (fragment.encode("utf-8", "surrogateescape") for fragment in fragments)
    if target != STDIN:
        whole_file.write_whole(file_path.file_path(target), encoded)
        return
    encoded_fragments = list(encoded)  # an error leaves no part of a text on stdout
    sys.stdout.flush()
    sys.stdout.buffer.writelines(encoded_fragments)
    sys.stdout.buffer.flush()


def _is_text(path: str) -> bool:
    """True for a GraphDef in text form. Raises InvalidArgument for a suffix of neither form."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".pb", ".pbtxt"):
        raise errors.InvalidArgument(f"'{path}': a text is exported as .pb or .pbtxt", hint="the suffix tells the form")
    return suffix == ".pbtxt"
