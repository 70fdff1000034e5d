"""heald diff: two models compared by their nodes, or the tensors of one model with those of another device, of a
recording or of TensorFlow."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heald.api.cli import (
    add_input,
    add_json,
    add_model,
    compare_models,
    inputs_by_name,
    open_graph,
    parse_input,
    say,
    ticking,
)
from heald.errors import InvalidArgument

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

With --record the results of a model are written: arrays inputs/NAME, outputs/NAME and, with --all, tensors/NODE:0 of
an .npz. --expect compares with such a file; a key without such a part is the input, the output or the tensor of this
name. --against tensorflow records and compares at once. TensorFlow runs in a process of the interpreter --tensorflow.

On two devices, inputs that are not given get numbers between 0 and 1, the same ones every time; dimensions that are not
known are 1. Requests for devices in the graph are dropped. Kernels of several nodes are compared, too: a group that
differs, though its nodes agree one by one, is named with all of them. Exit status: 0 when nothing is beyond the
tolerance, else 1."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("other", nargs="?", metavar="OTHER", help="a second model, which MODEL is compared with")
    parser.add_argument("--text", action="store_true", help="of two models: a line for each difference, and no table")
    parser.add_argument("--device", metavar="A", help="of one model: the device to look at, such as OPENCL:0")
    parser.add_argument("--expect", metavar="FILE.npz", help="of one model: compare with these results")
    parser.add_argument("--against", choices=("tensorflow",), help="of one model: compare with TensorFlow's results")
    parser.add_argument("--record", metavar="FILE.npz", help="of one model: write its results")
    parser.add_argument("--with", dest="by", choices=("heald", "tensorflow"), default=None,
                        help="of --record: the runtime (heald)")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="the interpreter that has TensorFlow (this one)")
    parser.add_argument("--reference", metavar="B", help="the device it is compared with (CPU:0)")
    add_input(parser)
    parser.add_argument("--fetch", action="append", default=[], metavar="NAME",
                        help="compare what this tensor needs, instead of what the outputs need (repeatable)")
    parser.add_argument("--tolerance", type=float, default=None, metavar="T",
                        help="of the reference's standard deviation, for floats (0.001)")
    parser.add_argument("--all", action="store_true", help="a row for every tensor, or for every difference")
    add_json(parser)


def diff(args: Namespace) -> int:
    _check_options(args)
    if args.other is not None:
        return compare_models(args)
    if args.record is not None:
        from .recorded_diff import HEALD, record

        args.by = args.by or HEALD
        return record(args)
    if args.expect is not None or args.against is not None:
        from .recorded_diff import differences_from

        return _report(args, differences_from(args), "heald", args.expect or args.against)
    return _devices(args)


def _check_options(args: Namespace) -> None:
    """Raises InvalidArgument for options of one comparison with another, and for none."""
    modes = [name for name in _MODES if getattr(args, name) is not None]
    if not modes and args.device is None:
        raise InvalidArgument("heald diff needs a second model or a device, or recorded results",
                              hint="heald diff MODEL OTHER, MODEL --device OPENCL:0, or MODEL --expect FILE.npz")
    mode = modes[0] if modes else "device"
    if len(modes) > 1:
        raise InvalidArgument(f"{_option(modes[1])} is {_PURPOSES[modes[1]]}, and {_GIVEN[mode]}",
                              hint="leave one of them out")
    used = _OPTIONS[mode] | ({"tensorflow"} if "tensorflow" in (args.against, args.by) else set())
    unused = [name for name in _PURPOSES if name not in (mode, *_MODES) and name not in used
              and getattr(args, name) not in (None, [], False)]
    if unused:
        raise InvalidArgument(f"{_option(unused[0])} is {_PURPOSES[unused[0]]}, and {_GIVEN[mode]}",
                              hint="leave one of them out" if mode == "other" else "leave it out")


_MODES = ("other", "record", "expect", "against")
_OF_RUN = {"input", "fetch", "device"}
_OPTIONS = {"other": {"text"}, "record": _OF_RUN | {"by"}, "expect": _OF_RUN | {"tolerance"},
            "against": _OF_RUN | {"tolerance"}, "device": _OF_RUN | {"tolerance", "reference"}}
_GIVEN = {"other": "two models are given", "record": "--record is given", "expect": "--expect is given",
          "against": "--against is given", "device": "one is given"}
_PURPOSES = {"device": "for one model on two devices", "reference": "for one model on two devices",
             "input": "for one model on two devices", "fetch": "for one model on two devices",
             "tolerance": "for one model on two devices", "text": "for two models", "by": "for --record",
             "tensorflow": "for --against tensorflow and --with tensorflow", "other": "a second model",
             "record": "for one model", "expect": "for one model", "against": "for one model"}


def _option(name: str) -> str:
    return {"other": "OTHER", "by": "--with"}.get(name, f"--{name}")


def _devices(args: Namespace) -> int:
    from heald import Session
    from heald.graphs.session import find_inputs, find_outputs

    from .compare import TOLERANCE, differences
    from .fused_diff import fused_differences, in_order

    args.reference = args.reference or REFERENCE
    opened = open_graph(args)
    graph = opened.graph
    session = Session(graph, device=args.reference, initial_state=opened.initial_state, target="local")
    fetches = [opened.tensor(name) for name in args.fetch] or opened.outputs or list(find_outputs(session))
    feeds = _feeds(session, find_inputs(session, fetches), fetches, args.input, opened)
    tolerance = TOLERANCE if args.tolerance is None else args.tolerance
    with ticking(f"running on {args.device} and {args.reference}"):
        differences_of_tensors = list(differences(
            graph, feeds, args.device, args.reference, fetches, tolerance=tolerance,
            initial_state=opened.initial_state))
        wrong = {difference.tensor for difference in differences_of_tensors if difference.is_beyond}
        of_groups = fused_differences(graph, feeds, args.device, args.reference, fetches, wrong, tolerance=tolerance,
                                      initial_state=opened.initial_state)
    differences_of_tensors = in_order(differences_of_tensors, of_groups)
    return _report(args, differences_of_tensors, args.device, args.reference)


def _report(args: Namespace, differences: Sequence[Difference], ours: str, theirs: str) -> int:
    """Show the differences between two sides. The status is 1 where one is beyond the tolerance."""
    from .compare import TOLERANCE

    beyond = [difference for difference in differences if difference.is_beyond]
    if args.json:
        from heald.api.cli import show_json

        show_json([_row(difference) | {"beyond": difference.is_beyond} for difference in differences])
    else:
        _tell(args, differences, TOLERANCE if args.tolerance is None else args.tolerance, (ours, theirs))
    return DIFFERENT if beyond else 0


def _feeds(
    session: Session, inputs: Sequence[str], fetches: Sequence[str], input_texts: Sequence[str], opened: Opened
) -> dict[str, Any]:
    from .inputs import made_up_array, read

    given_texts = inputs_by_name([parse_input(text) for text in input_texts], inputs)
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
            "relative": f"{difference.relative:.3g}", "fused": list(difference.fused)}


def _tell(args: Namespace, differences: Sequence[Difference], tolerance: float, sides: tuple[str, str]) -> None:
    from heald.api.cli import plural, show

    beyond = [difference for difference in differences if difference.is_beyond]
    shown = differences if args.all else beyond[:MAX_TENSORS]
    if shown:
        show([_row(d) | {"beyond": "yes" if d.is_beyond else ""} for d in shown], COLUMNS, cut=("tensor",))
        say()
    tensors = [difference for difference in differences if not difference.fused]
    elsewhere = 0 if args.device is None else sum(d.assigned != args.device for d in tensors)
    on = f", {elsewhere} of them not computed on {args.device} (heald explain tells why)" if elsewhere else ""
    say(f"{plural(len(tensors), 'tensor')} compared{on}")
    if not beyond:
        say(f"none further apart than {tolerance:g} of the standard deviation; "
            f"at most {max((d.relative for d in differences), default=0.0):.3g}")
        return
    more = f", {len(beyond) - MAX_TENSORS} more with --all" if len(beyond) > MAX_TENSORS and not args.all else ""
    say(f"{len(beyond)} beyond {tolerance:g}{more}: {sides[0]} and {sides[1]} part at "
        f"{beyond[0].tensor} ({beyond[0].op}){_group_text(beyond[0])}")


def _group_text(difference: Difference) -> str:
    """The nodes of a kernel of several nodes; empty for a single node."""
    if not difference.fused:
        return ""
    return (f", the end of {difference.kernel} of {', '.join(difference.fused)}: these nodes agree one by one, so the "
            "kernel that does them at once is wrong")
