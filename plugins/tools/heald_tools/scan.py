"""heald scan: the models below a folder as a table, JSON or a page, with the ops and extras that each lacks."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heald.api import shape_text
from heald.api.cli import add_json, counted, find_models, model_row, plural, positive, say, show, show_json, tell_error

from .html_report import check_report_file, paragraph, table, write_page
from .scan_parts import part, scan_models
from .step import positive_seconds

if TYPE_CHECKING:
    from heald.api.cli import ModelFiles

    Row = dict[str, Any]

COLUMNS = ("file", "kind", "producer", "runs", "inputs", "outputs", "nodes", "ops", "missing", "extras", "devices",
           "note")
MAX_LISTED = 4  # tensors or ops in a cell of the table; JSON has all
EPILOG = """\
A SavedModel is one row, and so are a checkpoint with its graph and an archive with a model. Files of other formats are
rows with the way out. Links are not followed. Weights are not read, and no device is opened: "runs" says that
every needed op has a kernel.

With --run each of these models runs once, on made-up inputs, in a process of its own. Graphs with ops that open files
are refused.

Exit status: 1 when a folder or a file could not be read, else 0, whatever the models are."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("folder", metavar="FOLDER", help="the folder, with all folders below it")
    parser.add_argument("--run", action="store_true", help="try each model that can run on made-up inputs")
    parser.add_argument("--timeout", type=positive_seconds, default=60.0, metavar="S",
                        help="of --run: seconds for each model (60)")
    parser.add_argument("--memory", type=positive, default=4096, metavar="MB",
                        help="of --run: memory for each model (4096)")
    parser.add_argument("--part", type=part, help=SUPPRESS)
    parser.add_argument("--html", metavar="FILE", help="write the table as a page")
    add_json(parser)


def scan(args: Namespace) -> int:
    check_report_file("--html", args.html, ".html")
    folder = Path(args.folder)
    files = find_models(folder)
    if args.part is not None:
        index, count = args.part
        rows_of_part = [model_row(model, folder) for model in files.models[index::count]]
        show_json([row for row in rows_of_part if row is not None])
        return 0
    rows = scan_models(files.models, folder, args.plugin)
    if args.run:
        _run_models(rows, folder, args)
    summary = _summary(args, rows, files)
    if args.html is not None:
        cells = [_cells(row) for row in rows]
        write_page(args.html, f"Models in {args.folder}", [paragraph(summary), table(cells, COLUMNS, ("runs",))])
    _tell(args, rows, summary)
    for fault in files.faults:
        tell_error(fault)
    return int(bool(files.faults))


def _run_models(rows: Sequence[Row], folder: Path, args: Namespace) -> None:
    """Add the result of a run to each row of a model that can run."""
    from .model_trial import try_model

    runnable = [row for row in rows if row["runs"] and row["outputs"]]  # a host program has functions and no outputs
    for number in counted(len(runnable), f"running the models of {args.folder}"):
        row = runnable[number]
        row["run"] = try_model(folder / row["file"], row["file_ops"], args.timeout, args.memory, args.plugin)
        row["runs"] = row["run"]["status"] == "ran"


def _tell(args: Namespace, rows: Sequence[Row], summary: str) -> None:
    if args.json:
        show_json(rows)
        return
    if rows:
        show([_cells(row) for row in rows], COLUMNS, cut=("file",), wrap=("inputs", "outputs", "missing", "note"))
        say()
    say(summary + (f"; wrote {args.html}" if args.html is not None else ""))


def _summary(args: Namespace, rows: Sequence[Row], files: ModelFiles) -> str:
    counts = Counter("run" if row["runs"] else "lack" if row["missing"] else "error" for row in rows)
    parts = [f"{plural(len(rows), 'model')} in {args.folder}: {counts['run']:,} can run here",
             f"{counts['lack']:,} {'lacks' if counts['lack'] == 1 else 'lack'} ops" if counts["lack"] else "",
             f"{counts['error']:,} cannot be loaded or run" if counts["error"] else ""]
    rest = files.others + len(files.models) - len(rows)
    return "; ".join([", ".join(filter(None, parts)), *([plural(rest, "other file")] if rest else []),
                      *([f"{plural(files.links, 'link')} not followed"] if files.links else [])])


def _cells(row: Row) -> dict[str, Any]:
    """A row as a person reads it."""
    return {"file": row["file"], "kind": row["kind"], "producer": row["producer"], "nodes": row["nodes"],
            "ops": row["ops"], "inputs": _listed(map(_tensor, row["inputs"])),
            "outputs": _listed(map(_tensor, row["outputs"])),
            "missing": _listed(f"{lack['op']} ({lack['count']:,})" for lack in row["missing"]),
            "extras": ", ".join(row["extras"]), "devices": _listed(row["devices"]),
            "runs": "yes" if row["runs"] else "no", "note": _note(row)}


def _note(row: Row) -> str:
    trial = row.get("run", {})
    parts = [row["error"], row["hint"], trial.get("reason"), f"opens files: {', '.join(row['file_ops'])}" if
             row["file_ops"] and not trial else None, *row["warnings"]]
    return "; ".join(part for part in parts if part)


def _tensor(tensor: Mapping[str, Any]) -> str:
    if tensor["dtype"] == "?":
        return f"{tensor['name']}: ?"
    return f"{tensor['name']}: {tensor['dtype']}{shape_text(tensor['shape'])}"


def _listed(texts: Any) -> str:
    names = [*texts]
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more
