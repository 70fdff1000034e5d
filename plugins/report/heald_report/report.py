"""The command: heald report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heald.api.cli import add_device, add_input, add_model, say, ticking

if TYPE_CHECKING:
    from heald import HostProgram, Model

    from .comparison import ModelRun
    from .pass_steps import PassStep
    from .roofline import Roofline

EPILOG = """\
examples:
  heald report model.pb -o report.html                         one run with made-up inputs
  heald report model.pb -o report.html --input image=cat.png   one run with this input
  heald report model.pb -o report.html --no-run                the graph and the placement alone
  heald report new.pb -o report.html --compare old.pb          with the differences of two models
  heald report model.pb -o report.html --device OPENCL:0 --compare-device CPU:0
  heald report model.pb -o graph.svg                           the picture of the graph alone
  heald report model.pb -o graph.svg --dark                    the picture for dark pages
  heald report program.bef -o report.html                      a host program, step by step
  heald report program.bef -o program.svg                      the picture of its first function"""
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
    parser.add_argument("--dark", action="store_true", help="colours of an .svg file for dark pages")
    parser.add_argument("--compare", metavar="OTHER", help="compare with this model, on the same inputs")
    parser.add_argument("--compare-device", metavar="D", help="the device of the other model; without --compare, of "
                        "the same model once more")
    add_device(parser)


def report(args: Namespace) -> int:
    from heald.api.cli import byte_text
    from heald.runtime.support import whole_file

    suffix = _checked_suffix(args)
    if Path(args.model).suffix.lower() in PROGRAMS:
        return _report_program(args, suffix)
    model = load_graph_model(args)
    content, note = _picture(args, model) if suffix == PICTURE else _page(args, model)
    whole_file.write_whole(Path(args.output), [content])
    say(f"written: {args.output}, {byte_text(len(content))}" + (f"; {note}" if note else ""))
    return 0


def _checked_suffix(args: Namespace) -> str:
    from heald.errors import InvalidArgument

    suffix = Path(args.output).suffix.lower()
    if suffix not in (*SUFFIXES, PICTURE):
        raise InvalidArgument(f"--output '{args.output}' is no .html file, and no .svg file",
                              hint="--output report.html")
    if suffix == PICTURE and (args.compare or args.compare_device):
        raise InvalidArgument("a comparison is a page, and no .svg file", hint="--output report.html")
    if args.dark and suffix != PICTURE:
        raise InvalidArgument("--dark is of a picture; a page has both", hint="--output graph.svg")
    return suffix


def _picture(args: Namespace, model: Model) -> tuple[bytes, str]:
    from .palette import DARK, LIGHT
    from .svg import model_svg

    with ticking("drawing"):
        return model_svg(model, DARK if args.dark else LIGHT).encode(), ""


def _page(args: Namespace, model: Model) -> tuple[bytes, str]:
    """Return the page, and a note about the parts that it lacks."""
    from .page import page_bytes

    run = run_model(args, model)
    comparison = _run_other(args, run) if args.compare or args.compare_device else None
    roofline = _roofline(run)
    steps = _pass_steps(args, model)
    notes = [side.note for side in comparison or [run] if side.note]
    with ticking("drawing" if comparison is None else "comparing and drawing"):
        page = page_bytes(model, run.title, run.trace, steps, roofline, comparison, feeds=run.fed_tensors)
    return page, "; ".join(notes)


def _report_program(args: Namespace, suffix: str) -> int:
    """Write the page of a host program, which has no graph, or the picture of its first function."""
    import heald
    from heald.api.cli import byte_text
    from heald.runtime.support import whole_file

    from .page import program_page_bytes

    with ticking(f"loading {args.model}"):
        program = heald.HostProgram.load(args.model, format=args.format, mmap=args.mmap)
    content = (_picture_of_program(args, program) if suffix == PICTURE
               else program_page_bytes(program, args.title or Path(args.model).name))
    whole_file.write_whole(Path(args.output), [content])
    say(f"written: {args.output}, {byte_text(len(content))}")
    return 0


def _picture_of_program(args: Namespace, program: HostProgram) -> bytes:
    from heald.errors import InvalidArgument

    from .palette import DARK, LIGHT
    from .program_svg import program_svg

    function = next(iter(program.functions.values()), None)
    picture = None if function is None else program_svg(function, program.requires, DARK if args.dark else LIGHT)
    if picture is None:
        raise InvalidArgument(f"'{args.model}': the first function has no calls, or too many for a picture",
                              hint="--output report.html")
    return picture.encode("utf-8", "replace")


def load_graph_model(args: Namespace) -> Model:
    """Return the model. Raises Unimplemented for a compiled model, which has no graph."""
    import heald
    from heald.runtime.contract import in_this_process
    from heald_tools.step import with_graph

    with ticking(f"loading {args.model}"), in_this_process():
        model: Any = heald.load(args.model, device=args.device, signature=args.signature, tags=args.tags,
                                format=args.format, mmap=args.mmap)
    return with_graph(args, model)


def _pass_steps(args: Namespace, model: Model) -> list[PassStep]:
    """Return the steps of the passes: over the file's graph before placement, then over the part that a step needs.

    The list ends at a pass that fails: the placement tells why the model does not run."""
    from heald.api.cli import open_graph
    from heald.errors import HealdError
    from heald.graphs.session import run_pre_placement_passes
    from heald.runtime.service import runtime

    from .pass_steps import timed_steps

    steps: list[PassStep] = []
    with ticking("following the passes"), suppress(HealdError):
        opened = open_graph(args)
        steps += timed_steps(run_pre_placement_passes(opened.graph, opened.initial_state, runtime.runtime()))
        steps += timed_steps(model.session.graphs_by_pass([*model.fetched.values()], [*model.fed.values()]))
    return steps


def run_model(args: Namespace, model: Model) -> ModelRun:
    """Run the model several times on made-up inputs, and return the fastest run.

    A model that does not run on them has no run, but the reason. With --input its error is raised."""
    from heald.errors import HealdError
    from heald_tools.made_up_inputs import candidate_feeds, run_first
    from heald_tools.step import outputs_of

    from .comparison import ModelRun

    run = ModelRun(model, args.title or Path(args.model).name)
    if not args.run_model:
        return run
    try:
        with ticking(f"running {args.model}"):
            first = run_first(outputs_of(model), candidate_feeds(args.input, model))
            return _trace_run(run, {model.fed[name]: value for name, value in first.feeds.items()})
    except HealdError as error:
        if args.input:
            raise
        return run._replace(note=f"the model did not run on made-up inputs: {error.message}")


def _run_other(args: Namespace, run: ModelRun) -> tuple[ModelRun, ModelRun]:
    """Run the model of --compare, or the same model on the device of --compare-device, on the inputs of the first.

    Return both, with titles that tell them apart."""
    from heald.errors import HealdError

    from .comparison import ModelRun, run_titles
    from .value_differences import feeds_of_other

    other_args = Namespace(**vars(args) | {"model": args.compare or args.model,
                                           "device": args.compare_device or args.device})
    title, other_title = run_titles((Path(args.model).name, Path(other_args.model).name),
                                    (args.device, other_args.device))
    run, other = run._replace(title=title), ModelRun(load_graph_model(other_args), other_title)
    if run.feeds is None:
        return run, other
    try:
        with ticking(f"running {other_title}"):
            return run, _trace_run(other, feeds_of_other(run.model, other.model, run.feeds))
    except HealdError as error:
        return run, other._replace(note=f"{other_title} did not run on the inputs of {title}: {error.message}")


def _trace_run(run: ModelRun, feeds: Mapping[str, Any]) -> ModelRun:
    """Return the fastest of several traced runs."""
    from heald import RunMetadata, RunOptions

    traces = []
    for _ in range(TRACED_RUNS):
        metadata = RunMetadata()
        run.model.session.run([*run.model.fetched.values()], feeds, options=RunOptions(trace=True), metadata=metadata)
        traces.append(metadata.trace)
    return run._replace(trace=min(traces, key=_host_ns), feeds=feeds)


def _roofline(run: ModelRun) -> Roofline | None:
    from .roofline import measure_roofline

    with ticking("measuring this machine"):
        return None if run.feeds is None else measure_roofline(run.model, run.feeds)


def _host_ns(trace: Any) -> int:
    """Return the nanoseconds of a run by the host's clock. Times of devices have no sum with them."""
    from heald.runtime.executor import HOST_CLOCK, clock_spans

    start, end = clock_spans(trace.events).get(HOST_CLOCK, (0, 0))
    return end - start
