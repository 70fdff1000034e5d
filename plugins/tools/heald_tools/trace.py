"""heald trace: one run of a model, each kernel call with its times, for people and for trace viewers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heald.api.cli import add_json, say, ticking

from .step import add_step

if TYPE_CHECKING:
    from heald.runtime.executor import Event

MAX_ROWS = 20  # rows of the table of calls without --all


def add_arguments(parser: ArgumentParser) -> None:
    add_step(parser)
    parser.add_argument("-o", "--output", metavar="FILE.json",
                        help="write the trace for Perfetto (ui.perfetto.dev) or chrome://tracing")
    parser.add_argument("--perfetto", metavar="FILE.pftrace",
                        help="write the trace as Perfetto's protobuf, smaller than JSON and with the reasons")
    parser.add_argument("--metadata", metavar="FILE.pb",
                        help="write TensorFlow's message RunMetadata, for TensorFlow's own tools")
    parser.add_argument("--all", action="store_true", help="a row for every call, not only the longest")
    add_json(parser)


def trace(args: Namespace) -> int:
    from heald import RunMetadata, RunOptions

    from .step import load_model, names_and_feeds, with_graph

    model = with_graph(args, load_model(args))
    fetches, tensors, values = names_and_feeds(args, model)
    feeds = dict(zip(tensors.values(), values, strict=True))
    metadata = RunMetadata()
    with ticking(f"running {args.model}"):
        if fetches and args.target:  # as in heald run, the targets act first; the trace has the fetches
            model.session.run([], feeds, targets=args.target)
        targets = [] if fetches else args.target
        model.session.run(fetches, feeds, targets=targets)  # links the step
        model.session.run(fetches, feeds, targets=targets, options=RunOptions(trace=True), metadata=metadata)
    assert metadata.trace is not None
    if args.output is not None:
        metadata.trace.dump(args.output, model.session.placement().reasons())
    if args.perfetto is not None:
        _dump_perfetto(args.perfetto, metadata.trace, model.session.placement().reasons())
    if args.metadata is not None:
        metadata.dump(args.metadata)
    events = [event for event, _ in metadata.trace.calls()]
    if args.json:
        from heald.api.cli import show_json
        from heald.runtime.executor import clock_spans

        reasons, spans = model.session.placement().reasons(), clock_spans(events)
        show_json({"model": args.model, "calls": [
            _row(event, spans) | {"why": reasons.get(event.call.node, "")} for event in events]})
        return 0
    _tell(args, events)
    return 0


def _dump_perfetto(path: str, trace: Any, reasons: Mapping[str, str]) -> None:
    from heald.runtime.support import file_path, whole_file

    from .perfetto import perfetto_bytes

    whole_file.write_whole(file_path.file_path(path), [perfetto_bytes(trace, reasons)])


def _row(event: Event, spans: Mapping[str, tuple[int, int]]) -> dict[str, object]:
    """Return the row of one call. Times are milliseconds of the row's clock, from its first call on. Work on a device
    with a queue has the times of the device."""
    return {"node": event.call.node, "kernel": event.call.code, "device": event.device, "thread": event.thread,
            "clock": event.clock, "start": (event.span[0] - spans[event.clock][0]) / 1e6, "ms": event.duration_ns / 1e6,
            "outputs": [str(meta) for meta in event.outputs if meta is not None]}


def _tell(args: Namespace, events: Sequence[Event]) -> None:
    from heald.api.cli import show
    from heald.runtime.executor import clock_spans, clock_texts

    if not events:
        say("no kernel ran: the results are constants or feeds")
        return
    spans = clock_spans(events)
    order = [*spans]
    rows = [_row(event, spans) for event in events]
    longest = sorted(rows, key=lambda row: (order.index(str(row["clock"])), -float(str(row["ms"]))))
    shown = rows if args.all else longest[:MAX_ROWS]
    show([row | {"start": f"{row['start']:.3f}", "ms": f"{row['ms']:.3f}", "outputs": ", ".join(row["outputs"])}  # type: ignore[arg-type]
          for row in shown], (*(["clock"] if len(spans) > 1 else []), "start", "ms", "node", "kernel", "device",
                              "outputs"), cut=("node",))
    say(f"{len(events)} calls in {clock_texts(spans)} on {', '.join(sorted({event.device for event in events}))}"
        + ("" if len(shown) == len(rows) else f"; the {len(shown)} longest are shown: --all"))
    written = [path for path in (args.output, args.perfetto, args.metadata) if path is not None]
    say(f"written: {', '.join(written)}" if written else "--output trace.json writes a picture for ui.perfetto.dev")
