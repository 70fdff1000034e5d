"""heald bench: the speed of models, its bounds, and a comparison with other runtimes.

One model is measured in this process. Several models are measured in a process each, one after the other, so that none
is timed beside the memory and the threads of another. Ctrl-C ends the measurement, and reports the runs before it.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from heald.api.cli import add_device, add_input, add_loading, positive, ticking
from heald.errors import InvalidArgument

from .step import finite_seconds

if TYPE_CHECKING:
    from .peers import Peer
    from .step import AnyModel
    from .turns import Turn

    Report = dict[str, Any]

INTERRUPTED = 130
LATENCY, THROUGHPUT = "latency", "throughput"
EPILOG = """\
Inputs that are not given are made up: random numbers, unknown lengths are 1, the
first of them --batch. Strings are a text, an image, a sound or a tf.Example: the
first of them that the model runs on. Ctrl-C reports the runs so far, with status 130.

--hint latency, the default, is one stream with all cores for each run. --hint throughput is
as many streams as cores, with one thread for each run. --streams and --threads go before it.

With --against the runtimes take turns in one process, each after
a pause in which the others' threads go to sleep and after runs that are not timed. The
ratio is heald's time over theirs, below 1 heald is faster: the median over turns of the
medians in each. They belong into an environment of their own: heald never needs them.

Numbers made up may be none that a network was made for (0..1 where pixels are 0..255):
rounding can count for more then. How far the others are from each other tells."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("model", nargs="+", metavar="MODEL", help="a model, or several, which are measured in turn")
    add_loading(parser)
    add_input(parser, "feed an input; other inputs are made up")
    parser.add_argument("--batch", type=positive, default=1, metavar="N", help="examples in a run (1)")
    parser.add_argument("--duration", type=finite_seconds, default=3.0, metavar="S",
                        help="seconds to time each runtime (3)")
    parser.add_argument("--hint", choices=(LATENCY, THROUGHPUT), default=LATENCY,
                        help="the default of --streams and --threads (latency)")
    parser.add_argument("--streams", type=positive, metavar="N", help="runs at a time, each from a thread of its own")
    parser.add_argument("--threads", type=positive, metavar="N",
                        help="threads of each runtime's kernels (as many as there are cores)")
    add_device(parser)
    parser.add_argument("--against", type=_names, default=(), metavar="NAME,...",
                        help="run these as well: tensorflow, onnxruntime, openvino")
    parser.add_argument("--nodes", action="store_true", help="a row for each kernel call, and what the machine can do")
    parser.add_argument("--all", action="store_true", help="with --nodes: every call, not only the longest")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="print JSON, or write it to a file")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def bench(args: Namespace) -> int:
    from .bench_report import check_files, write_reports
    from .peers import check_runtimes

    check_files(args)
    check_runtimes(args.against)
    _apply_hint(args)
    if len(args.model) > 1:
        from .bench_processes import measure_apart

        reports, status = measure_apart(args)
    else:
        report: Report = {"model": args.model[0], "batch": args.batch, "hint": args.hint, "streams": args.streams,
                          "threads": args.threads, "runtimes": []}
        reports, status = [report], 0
        args.model = args.model[0]
        try:
            _measure(args, report)
        except KeyboardInterrupt:
            report["interrupted"] = True
            status = INTERRUPTED
    write_reports(args, reports)
    return status


def _apply_hint(args: Namespace) -> None:
    """Set the streams and threads of the hint. Raises InvalidArgument for streams beside other runtimes."""
    from .doctor import usable_cores

    is_throughput = args.hint == THROUGHPUT
    if args.streams is None:
        args.streams = usable_cores() if is_throughput else 1
    if args.threads is None and is_throughput:
        args.threads = max(1, usable_cores() // args.streams)
    if args.against and (is_throughput or args.streams > 1):
        raise InvalidArgument("--against compares one stream: the runtimes take turns",
                              hint="leave --streams and --hint throughput out")


def _measure(args: Namespace, report: Report) -> None:
    """Fill the report of a model. After KeyboardInterrupt the report has the runs so far."""
    _set_threads(args.threads)
    from .made_up_inputs import candidate_feeds, run_first
    from .peers import peers
    from .step import outputs_of, with_graph

    started = perf_counter()
    report["memory_before"] = _peak()
    model = _load(args)
    report["load_ms"] = (perf_counter() - started) * 1e3
    step = outputs_of(model)
    with ticking("the first run"):
        feeds, results, first_seconds = run_first(step, candidate_feeds(args.input, model, args.batch))
    report |= {"first_run_ms": first_seconds * 1e3, "peak_memory": _peak()}
    values = list(feeds.values())
    others = peers(args.against, args, with_graph(args, model), feeds) if args.against else []
    if args.streams > 1:
        _time_streams(args, report, lambda: step(*values))
    else:
        _time_runtimes(args, report, [lambda: step(*values), *(peer.run for peer in others)], others)
    report["peak_memory"] = _peak() if not others else report["peak_memory"]
    if others:
        report |= _differences(report["runtimes"], results, others)
    if args.nodes:
        from .node_times import node_times

        report |= node_times(with_graph(args, model), feeds)


def _set_threads(count: int | None) -> None:
    """Set the variables that numeric libraries read when they load. Discovery has loaded none of these libraries."""
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


def _peak() -> int:
    """Return the peak memory of this process in bytes, 0 on Windows."""
    import sys

    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _time_streams(args: Namespace, report: Report, run: Any) -> None:
    from .streams import StreamTimes, time_streams

    times = StreamTimes()
    try:
        time_streams(run, args.streams, args.duration, f"timing {args.streams} streams", times)
    finally:
        if times.runs:
            rate = args.batch * len(times.runs) / times.wall
            report["runtimes"] = [_row("heald", times.runs) | {"per_second": rate}]


def _time_runtimes(args: Namespace, report: Report, runs: Sequence[Any], others: Sequence[Peer]) -> None:
    """Add a row for each runtime: milliseconds of a run, and the ratio of heald's time to the other's."""
    from .turns import ratio, time_in_turns

    names = ["heald", *(peer.name for peer in others)]
    turns: list[list[Turn]] = [[] for _ in runs]
    try:
        time_in_turns(runs, args.duration, f"timing {', '.join(names)}", turns)
    finally:
        for name, turns_of_runtime in zip(names, turns, strict=True):
            times = [seconds for turn in turns_of_runtime for seconds in turn]
            if times:
                row = _row(name, times)
                row["per_second"] = args.batch / (row["p50"] / 1e3)
                row |= {"ratio": ratio(turns[0], turns_of_runtime)} if name != "heald" else {}
                report["runtimes"].append(row)


def _row(runtime: str, times: Sequence[float]) -> dict[str, Any]:
    """Return the milliseconds of the runs of a runtime: the shortest, and percentiles."""
    from statistics import quantiles

    percent = quantiles(times, n=100, method="inclusive") if len(times) > 1 else [*times] * 99
    return {"runtime": runtime, "runs": len(times), "min": 1e3 * min(times), "p50": 1e3 * percent[49],
            "p90": 1e3 * percent[89], "p99": 1e3 * percent[98]}


def _differences(rows: Sequence[Report], results: Sequence[Any], others: Sequence[Peer]) -> Mapping[str, Any]:
    """Add the difference from heald's outputs to the row of each other runtime.

    `others_difference` is the largest difference between the others' outputs, in standard deviations.
    """
    from itertools import combinations

    from .peers import difference

    outputs = [peer.run() for peer in others]
    for row, peer, theirs in zip(rows[1:], others, outputs, strict=True):
        row |= {"first_ms": peer.first_ms, "difference": difference(results, theirs)}
    apart = [difference(a, b) for a, b in combinations(outputs, 2)]
    return {"others_difference": max(apart)} if apart else {}
