"""The report of heald bench: lines and tables on the terminal, JSON, and a page."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heald.api.cli import byte_text, say, show, show_json
from heald.runtime.support import whole_file

from .html_report import check_report_file, heading, paragraph, table, write_page

MAX_ROWS = 20  # rows of the table of nodes without --all
COLUMNS = ("runtime", "runs", "min", "p50", "p90", "p99", "per second", "heald / theirs", "first ms",
           "difference / std")
_NODE_COLUMNS = ("node", "device", "kernel", "how", "ms", "gflops", "gbs")
_FORMATS = {"difference": ".2e", "ratio": ".3g", "per_second": ",.1f", "first_ms": ",.1f"}

Report = Mapping[str, Any]


def check_files(args: Namespace) -> None:
    """Raise InvalidArgument for the name of a report that may be a model's."""
    check_report_file("--json", None if args.json == "-" else args.json, ".json")
    check_report_file("--html", args.html, ".html")


def write_reports(args: Namespace, reports: Sequence[Report]) -> None:
    """Print and write the reports. A command for several models has a list of them in JSON."""
    of_several = not isinstance(args.model, str)
    content = [*reports] if of_several else reports[0]
    if args.html is not None:
        _write_page(args.html, reports)
    if args.json == "-":
        show_json(content)
        return
    if args.json is not None:
        whole_file.write_whole(Path(args.json), [json.dumps(content, indent=2, ensure_ascii=False).encode()])
    for number, report in enumerate(reports):
        if number:
            say()
        _tell(report, None if args.all else MAX_ROWS)
    files = [name for name in (args.json, args.html) if name is not None]
    if files:
        say(f"\nwrote {' and '.join(files)}")


def _tell(report: Report, most_nodes: int | None) -> None:
    say(_summary(report))
    if not report["runtimes"]:
        return
    say(f"\n{_title(report)}")
    show([_cells(row) for row in report["runtimes"]], COLUMNS)
    if "others_difference" in report:
        say(_others_text(report))
    if "nodes" in report:
        from .node_times import tell_node_times

        tell_node_times(report, most_nodes)


def _summary(report: Report) -> str:
    parts = []
    if "load_ms" in report:
        parts.append(f"loaded in {report['load_ms']:.0f} ms")
    if "first_run_ms" in report:
        more = report["peak_memory"] - report["memory_before"]
        parts.append(f"first run in {report['first_run_ms']:.1f} ms more; {byte_text(report['peak_memory'])} of memory "
                     f"at the peak, {byte_text(more)} more than before")
    if "interrupted" in report:
        parts.append("interrupted, these are the runs before it" if report["runtimes"] else
                     "interrupted before a run was timed")
    return f"{report['model']}: {', '.join(parts)}"


def _title(report: Report) -> str:
    streams = f", {report['streams']} streams" if report["streams"] > 1 else ""
    below = "; below 1 of heald / theirs heald is faster" if len(report["runtimes"]) > 1 else ""
    return f"milliseconds a run, batch {report['batch']}{streams}{below}"


def _others_text(report: Report) -> str:
    return f"the others differ by up to {report['others_difference']:.2e} from each other"


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a person reads it."""
    texts = {key: f"{value:{_FORMATS.get(key, '.3f')}}" if isinstance(value, float) else value
             for key, value in row.items()}
    return texts | {"per second": texts["per_second"], "heald / theirs": texts.get("ratio"),
                    "first ms": texts.get("first_ms"), "difference / std": texts.get("difference")}


def _write_page(name: str, reports: Sequence[Report]) -> None:
    parts = []
    for report in reports:
        parts += [heading(report["model"]), paragraph(_summary(report))]
        if report["runtimes"]:
            parts += [paragraph(_title(report)), table([_cells(row) for row in report["runtimes"]], COLUMNS)]
        if "others_difference" in report:
            parts.append(paragraph(_others_text(report)))
        if "nodes" in report:
            parts += [paragraph("milliseconds of each kernel call"), table(report["nodes"], _NODE_COLUMNS)]
    write_page(name, "heald bench", parts)
