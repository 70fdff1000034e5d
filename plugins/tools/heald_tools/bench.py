"""heald bench: a model's speed, its bounds, and a comparison with other runtimes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from heald.api.cli import add_device, add_json, add_model, positive, say, ticking
from heald.errors import DataLoss, HealdError, InvalidArgument

if TYPE_CHECKING:
    from .peers import Peer
    from .step import AnyModel
    from .turns import Turn

MAX_ROWS = 20  # rows of the table of nodes without --all
EPILOG = """\
Inputs that are not given are made up: random numbers, unknown lengths are 1, the
first of them --batch. Strings are a text, an image, a sound or a tf.Example: the
first of them that the model runs on. With --against the runtimes take turns in one process, each after
a pause in which the others' threads go to sleep and after runs that are not timed. The
ratio is heald's time over theirs, below 1 heald is faster: the median over turns of the
medians in each. They belong into an environment of their own: heald never needs them.

Numbers made up may be none that a network was made for (0..1 where pixels are 0..255):
rounding can count for more then. How far the others are from each other tells."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_model(parser)
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE|FILE",
                        help="feed an input, as heald run does (repeatable)")
    parser.add_argument("--batch", type=positive, default=1, metavar="N", help="examples in a run (1)")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="time each runtime for so long (3)")
    parser.add_argument("--threads", type=positive, metavar="N",
                        help="threads of each runtime's kernels (as many as there are cores)")
    add_device(parser)
    parser.add_argument("--against", type=_names, default=(), metavar="NAME,...",
                        help="run these as well: tensorflow, onnxruntime, openvino")
    parser.add_argument("--nodes", action="store_true", help="a row for each kernel call, and what the machine can do")
    parser.add_argument("--all", action="store_true", help="with --nodes: every call, not only the longest")
    add_json(parser)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def bench(args: Namespace) -> int:
    _set_threads(args.threads)
    from .peers import check_runtimes, peers
    from .step import outputs_of, with_graph
    from .turns import time_in_turns

    check_runtimes(args.against)
    started, before = perf_counter(), _peak()
    model = _load(args)
    loaded = perf_counter()
    step = outputs_of(model)
    with ticking("the first run"):
        feeds, first_seconds = _run_first(step, _candidates(args, model))
    values, after = list(feeds.values()), _peak()
    others = peers(args.against, args, with_graph(args, model), feeds) if args.against else []
    turns = time_in_turns([lambda: step(*values), *(peer.run for peer in others)], args.seconds,
                          f"timing {', '.join(['heald', *(peer.name for peer in others)])}")
    report: dict[str, Any] = {
        "model": args.model, "batch": args.batch, "load_ms": (loaded - started) * 1e3,
        "first_run_ms": first_seconds * 1e3, "peak_memory": after, "memory_before": before,
        **_compare_runtimes(turns, step(*values), others, args.batch),
    }
    if args.nodes:
        from .node_times import node_times

        report |= node_times(with_graph(args, model), feeds)
    if args.json:
        from heald.api.cli import show_json

        show_json(report)
    else:
        _tell(args, report)
    return 0


def _set_threads(count: int | None) -> None:
    """Set the variables that numeric libraries read when they load. Discovery has loaded none of these libraries."""
    import os

    if count is not None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(count)


def _load(args: Namespace) -> AnyModel:
    import heald

    config = None if args.threads is None else {"work_queue": {"threads": args.threads}}
    with ticking(f"loading {args.model}"):
        model: Any = heald.load(args.model, config=config, device=args.device, signature=args.signature, tags=args.tags,
                                format=args.format, mmap=args.mmap)
    return cast("AnyModel", model)


def _candidates(args: Namespace, model: AnyModel) -> Iterator[dict[str, Any]]:
    """Yield arrays for all inputs of the model. Inputs of strings without a value have another form each time."""
    from heald.api import dtypes
    from heald.runtime.service import convert_feed

    from .inputs import made_up_array, parse, read, texts_by_input
    from .made_up_strings import string_forms
    from .step import check_known

    texts = texts_by_input([parse(text) for text in args.input], tuple(model.inputs))
    check_known(texts, model)
    feeds = {name: convert_feed(read(texts[name], meta, name), meta, name) if name in texts
             else made_up_array(meta, name, args.batch, is_text=True) for name, meta in model.inputs.items()}
    strings = [feeds[name] for name, meta in model.inputs.items() if name not in texts and meta.dtype is dtypes.string]
    for form in string_forms(getattr(model, "graph", None)) if strings else [b""]:
        for array in strings:
            array[...] = form
        yield feeds


def _run_first(
    step: Callable[..., Any], candidates: Iterable[dict[str, Any]]
) -> tuple[dict[str, Any], float]:
    """Run the model once. Returns the first feeds that it runs on, and the seconds of that run.

    Raises the error of the first feeds when it runs on none.
    """
    refusal: HealdError | None = None
    for feeds in candidates:
        begun = perf_counter()
        try:
            step(*feeds.values())
        except (InvalidArgument, DataLoss) as error:
            refusal = refusal or error
        else:
            return feeds, perf_counter() - begun
    assert refusal is not None
    raise refusal


def _peak() -> int:
    """Return the peak memory of this process in bytes, 0 on Windows."""
    import sys

    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _compare_runtimes(
    turns: Sequence[Sequence[Turn]], results: Sequence[Any], others: Sequence[Peer], batch: int
) -> dict[str, Any]:
    """Compare the runtimes.

    `runtimes` has a row for each: milliseconds of a run, and the ratio of heald's time to the other's.
    `others_difference` is the largest difference between the others' outputs, in standard deviations.
    """
    from itertools import combinations

    from .peers import difference
    from .turns import ratio

    rows = [_row("heald", turns[0], batch)]
    outputs = [peer.run() for peer in others]
    for peer, theirs, turns_of_peer in zip(others, outputs, turns[1:], strict=True):
        rows.append(_row(peer.name, turns_of_peer, batch) | {
            "ratio": ratio(turns[0], turns_of_peer), "first_ms": peer.first_ms,
            "difference": difference(results, theirs)})
    apart = [difference(a, b) for a, b in combinations(outputs, 2)]
    return {"runtimes": rows, **({"others_difference": max(apart)} if apart else {})}


def _row(runtime: str, turns: Sequence[Turn], batch: int) -> dict[str, Any]:
    from statistics import median, quantiles

    times = [seconds for turn in turns for seconds in turn]
    percent = quantiles(times, n=100, method="inclusive")
    return {"runtime": runtime, "runs": len(times), "min": 1e3 * min(times), "median": 1e3 * median(times),
            "p90": 1e3 * percent[89], "p99": 1e3 * percent[98], "per_second": batch / median(times)}


def _tell(args: Namespace, report: Mapping[str, Any]) -> None:
    from heald.api.cli import byte_text, show

    more = report["peak_memory"] - report["memory_before"]
    say(f"{report['model']}: loaded in {report['load_ms']:.0f} ms, first run in {report['first_run_ms']:.1f} ms more; "
        f"{byte_text(report['peak_memory'])} of memory at the peak, {byte_text(more)} more than before")
    rows = [{key: f"{value:.2e}" if key == "difference" else f"{value:.3g}" if key == "ratio" else
             f"{value:,.1f}" if key in ("per_second", "first_ms") else
             f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()}
            for row in report["runtimes"]]
    below = "; below 1 of heald / theirs heald is faster" if len(rows) > 1 else ""
    say(f"\nmilliseconds a run, batch {report['batch']}{below}")
    show([row | {"per second": row["per_second"], "heald / theirs": row.get("ratio"), "first ms": row.get("first_ms"),
                 "difference / std": row.get("difference")} for row in rows],
         ("runtime", "runs", "min", "median", "p90", "p99", "per second", "heald / theirs", "first ms",
          "difference / std"))
    if "others_difference" in report:
        say(f"the others differ by up to {report['others_difference']:.2e} from each other")
    if "nodes" in report:
        from .node_times import tell_node_times

        tell_node_times(report, None if args.all else MAX_ROWS)
