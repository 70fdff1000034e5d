"""heald diff: two models compared by their nodes, or two devices by the tensors of one model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heald.api.cli import add_json, add_model, compare_models, open_graph, say, ticking

if TYPE_CHECKING:
    from heald import Session
    from heald.api.cli import Opened

    from .compare import Difference

DIFFERENT = 1
MAX_TENSORS = 10  # tensors shown without --all
COLUMNS = ("tensor", "op", "assigned", "kernel", "type", "largest", "relative", "beyond")
REFERENCE = "CPU:0"
EPILOG = """\
Two models are compared by their nodes, functions and versions, and constants by value; exit status: 0 when they are
equal, else 1. Values of variables are compared after heald edit --freeze.

On two devices, inputs that are not given get numbers between 0 and 1, the same ones every time; dimensions that are not
known are 1. Requests for devices in the graph are dropped. Exit status: 0 when nothing is beyond the tolerance, else
1."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("other", nargs="?", metavar="OTHER", help="a second model, which MODEL is compared with")
    parser.add_argument("--text", action="store_true", help="of two models: a line for each difference, and no table")
    parser.add_argument("--device", metavar="A", help="of one model: the device to look at, such as OPENCL:0")
    parser.add_argument("--reference", metavar="B", help="the device it is compared with (CPU:0)")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE|FILE",
                        help="feed an input, as heald run does (repeatable)")
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME",
                        help="compare what this tensor needs, instead of what the outputs need (repeatable)")
    parser.add_argument("--tolerance", type=float, default=None, metavar="T",
                        help="of the reference's standard deviation, for floats (0.001)")
    parser.add_argument("--all", action="store_true", help="a row for every tensor, or for every difference")
    add_json(parser)


def diff(args: Namespace) -> int:
    _check_options(args)
    return _devices(args) if args.other is None else compare_models(args)


def _check_options(args: Namespace) -> None:
    """Raises InvalidArgument for options of one comparison with the other, and for neither."""
    from heald.api import InvalidArgument

    if args.other is None:
        if args.device is None:
            raise InvalidArgument("heald diff needs a second model or a device",
                                  hint="write heald diff MODEL OTHER, or heald diff MODEL --device OPENCL:0")
        if args.text:
            raise InvalidArgument("--text is for two models, and one is given", hint="leave it out")
        return
    unused_options = [f"--{name}" for name in ("device", "reference", "input", "fetch", "tolerance")
                      if getattr(args, name) not in (None, [])]
    if unused_options:
        raise InvalidArgument(f"{unused_options[0]} is for one model on two devices, and two models are given",
                              hint="leave one of them out")


def _devices(args: Namespace) -> int:
    from heald import Session
    from heald.graphs.session import find_inputs, find_outputs

    from .compare import TOLERANCE, differences

    args.reference = args.reference or REFERENCE
    opened = open_graph(args)
    graph = opened.graph
    session = Session(graph, device=args.reference, initial_state=opened.initial_state)
    fetches = [opened.tensor(name) for name in args.fetch] or opened.outputs or list(find_outputs(session))
    feeds = _feeds(session, find_inputs(session, fetches), fetches, args.input, opened)
    tolerance = TOLERANCE if args.tolerance is None else args.tolerance
    with ticking(f"running on {args.device} and {args.reference}"):
        differences_of_tensors = list(differences(
            graph, feeds, args.device, args.reference, fetches, tolerance=tolerance,
            initial_state=opened.initial_state))
    beyond = [difference for difference in differences_of_tensors if difference.is_beyond]
    if args.json:
        from heald.api.cli import show_json

        show_json([_row(difference) | {"beyond": difference.is_beyond} for difference in differences_of_tensors])
    else:
        _tell(args, differences_of_tensors, beyond, tolerance)
    return DIFFERENT if beyond else 0


def _feeds(
    session: Session, inputs: Sequence[str], fetches: Sequence[str], input_texts: Sequence[str], opened: Opened
) -> dict[str, Any]:
    from .inputs import made_up_array, parse, read, texts_by_input

    given_texts = texts_by_input([parse(text) for text in input_texts], inputs)
    texts = {opened.tensor(name): text for name, text in given_texts.items()}
    shown = {opened.tensor(name): name for name in given_texts}
    names = tuple(dict.fromkeys((*inputs, *texts)))
    prepared = session.prepare(fetches, names)
    types = dict(zip(names, prepared.program.functions["main"].arg_metas, strict=True))
    return {name: read(texts[name], meta, shown[name]) if name in texts else made_up_array(meta, name)
            for name, meta in types.items()}


def _row(difference: Difference) -> dict[str, Any]:
    shape = ",".join(map(str, difference.shape))
    largest = None if difference.largest is None else f"{difference.largest:.3g}"
    return {"tensor": difference.tensor, "op": difference.op, "assigned": difference.assigned,
            "kernel": difference.kernel, "type": f"{difference.dtype}[{shape}]", "largest": largest,
            "relative": f"{difference.relative:.3g}"}


def _tell(args: Namespace, differences: Sequence[Difference], beyond: Sequence[Difference], tolerance: float) -> None:
    from heald.api.cli import plural, show

    shown = differences if args.all else beyond[:MAX_TENSORS]
    if shown:
        show([_row(d) | {"beyond": "yes" if d.is_beyond else ""} for d in shown], COLUMNS, cut=("tensor",))
        say()
    on_reference = sum(d.assigned != args.device for d in differences)
    on = f", {on_reference} of them not computed on {args.device} (heald explain tells why)" if on_reference else ""
    say(f"{plural(len(differences), 'tensor')} compared{on}")
    if not beyond:
        say(f"none further apart than {tolerance:g} of the standard deviation; "
            f"at most {max((d.relative for d in differences), default=0.0):.3g}")
        return
    more = f", {len(beyond) - MAX_TENSORS} more with --all" if len(beyond) > MAX_TENSORS and not args.all else ""
    say(f"{len(beyond)} beyond {tolerance:g}{more}: {args.device} and {args.reference} part at "
        f"{beyond[0].tensor} ({beyond[0].op})")
