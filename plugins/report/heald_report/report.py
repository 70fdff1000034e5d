"""The command: heald report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heald.api.cli import add_device, add_input, add_model, say, ticking

if TYPE_CHECKING:
    from heald import Model

EPILOG = """\
examples:
  heald report model.pb -o report.html                         one run with made-up inputs
  heald report model.pb -o report.html --input image=cat.png   one run with this input
  heald report model.pb -o report.html --no-run                the graph and the placement alone
  heald report model.pb -o graph.svg                           the picture of the graph alone
  heald report program.bef -o report.html                      a host program, step by step"""
TRACED_RUNS = 3  # the page shows the fastest
PROGRAMS = (".bef", ".mlir")
SUFFIXES, PICTURE = (".html", ".htm"), ".svg"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("-o", "--output", metavar="FILE.html", required=True,
                        help="the page to write; FILE.svg for the picture of the graph alone")
    add_input(parser, "feed an input; other inputs are made up")
    parser.add_argument("--no-run", dest="run_model", action="store_false",
                        help="run nothing: the page has no times and no memory")
    parser.add_argument("--title", metavar="TEXT", help="of the page, instead of the file's name")
    add_device(parser)


def report(args: Namespace) -> int:
    from heald.api.cli import byte_text
    from heald.errors import InvalidArgument
    from heald.runtime.support import whole_file

    from .page import page_bytes
    from .svg import model_svg

    suffix = Path(args.output).suffix.lower()
    if suffix not in (*SUFFIXES, PICTURE):
        raise InvalidArgument(f"--output '{args.output}' is no .html file, and no .svg file",
                              hint="--output report.html")
    if Path(args.model).suffix.lower() in PROGRAMS:
        return _report_program(args, suffix)
    model = load_graph_model(args)
    trace, note = record_run(args, model) if args.run_model and suffix != PICTURE else (None, "")
    with ticking("drawing"):
        title = args.title or Path(args.model).name
        content = model_svg(model).encode() if suffix == PICTURE else page_bytes(model, title, trace)
    whole_file.write_whole(Path(args.output), [content])
    say(f"written: {args.output}, {byte_text(len(content))}" + (f"; {note}" if note else ""))
    return 0


def _report_program(args: Namespace, suffix: str) -> int:
    """Write the page of a host program, which has no graph."""
    import heald
    from heald.api.cli import byte_text
    from heald.errors import InvalidArgument
    from heald.runtime.support import whole_file

    from .page import program_page_bytes

    if suffix == PICTURE:
        raise InvalidArgument(f"'{args.model}' is a host program, whose pictures are on a page",
                              hint="--output report.html")
    with ticking(f"loading {args.model}"):
        program = heald.HostProgram.load(args.model, format=args.format, mmap=args.mmap)
    content = program_page_bytes(program, args.title or Path(args.model).name)
    whole_file.write_whole(Path(args.output), [content])
    say(f"written: {args.output}, {byte_text(len(content))}")
    return 0


def load_graph_model(args: Namespace) -> Model:
    """Return the model. Raises Unimplemented for a compiled model, which has no graph."""
    import heald
    from heald_tools.step import with_graph

    with ticking(f"loading {args.model}"):
        model: Any = heald.load(args.model, device=args.device, signature=args.signature, tags=args.tags,
                                format=args.format, mmap=args.mmap)
    return with_graph(args, model)


def record_run(args: Namespace, model: Model) -> tuple[Any, str]:
    """Run the model several times, and return the trace of the fastest run.

    Returns None and the reason for a model that does not run on made-up inputs. With --input its error is raised."""
    from heald import RunMetadata, RunOptions
    from heald.errors import HealdError
    from heald_tools.made_up_inputs import candidate_feeds, run_first
    from heald_tools.step import outputs_of

    try:
        with ticking(f"running {args.model}"):
            first = run_first(outputs_of(model), candidate_feeds(args.input, model))
            feeds = {model.fed[name]: value for name, value in first.feeds.items()}
            traces = []
            for _ in range(TRACED_RUNS):
                metadata = RunMetadata()
                model.session.run([*model.fetched.values()], feeds, options=RunOptions(trace=True), metadata=metadata)
                traces.append(metadata.trace)
    except HealdError as error:
        if args.input:
            raise
        return None, f"the model did not run on made-up inputs: {error.message}"
    return min(traces, key=_duration), ""


def _duration(trace: Any) -> int:
    """Return the nanoseconds of the kernels of a run."""
    return sum(event.ns for event in trace.events)
