"""The population: models as users make them, each run in heald and compared with TensorFlow's answers.

    python benchmarks/population.py FOLDER [--only WORD] [--json FILE] [--commands] [--page]

population/make.py makes FOLDER, with Pythons that have TensorFlow. Each model runs in a process of its own with a limit
of time. A model works if every output is within the tolerance: 1e-4 + 1e-4 of TensorFlow's value for float32, 2e-2 for
half types; integers and strings are equal. The time is that of a call, against TensorFlow's, which make.py measured.

--commands also runs `heald inspect` and `heald bench` on each model, without inputs: bench for a tenth of a second.
--page writes docs/population.md and docs/population.json. The command exits with 1 unless all models work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import population_page
from tqdm import tqdm

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
COMMANDS = {"inspect": [], "bench": ["--duration", "0.1"]}  # with flags that shorten the command, and feed nothing
LIMIT_SECONDS = 120

Row = dict[str, Any]


def run_apart(command: list[str], limit: float) -> tuple[int | None, str, str]:
    """Exit status, stdout and stderr; no status past the limit."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit, cwd=HERE)
    except subprocess.TimeoutExpired:
        return None, "", ""
    return done.returncode, done.stdout, done.stderr


def check_model(folder: Path, limit: float) -> Row:
    """The verdict on a model."""
    status, output, errors = run_apart([sys.executable, str(HERE / "population_process.py"), str(folder)], limit)
    if status is None:
        return {"state": "time", "reason": f"no answer in {limit:g} s"}
    if status:
        return {"state": "crash", "reason": f"exit status {status}: {' '.join(errors.split())[-200:]}"}
    return dict(json.loads(output.splitlines()[-1]))


def check_command(command: str, path: Path, limit: float) -> str:
    """An empty text if the command succeeds on the model's file or folder, or its last line."""
    program = Path(sys.executable).with_name("heald")
    status, _, errors = run_apart([str(program), command, str(path), *COMMANDS[command]], limit)
    if status is None:
        return f"no answer in {limit:g} s"
    return "" if status == 0 else " ".join(errors.split())[-300:] or f"exit status {status}"


def check_all(folders: list[Path], options: argparse.Namespace) -> Iterator[Row]:
    with tqdm(folders, disable=None) as bar:
        for folder in bar:
            bar.set_description(folder.name[:30])
            case = json.loads((folder / "case.json").read_text())
            row = {key: case[key] for key in ("name", "family", "environment")}
            row |= {"tensorflow": case["seconds"], **check_model(folder, options.limit)}
            if options.commands:
                row |= {command: check_command(command, folder / case["path"], options.limit) for command in COMMANDS}
            yield row


def summary(rows: list[Row]) -> Mapping[str, Any]:
    """The figures of some rows: counts, the largest difference, the median ratio of times."""
    ratios = [row["seconds"] / row["tensorflow"] for row in rows if "seconds" in row]
    differences = [row["difference"] for row in rows if row["state"] == "works"]
    tried = {command: [row[command] for row in rows if command in row] for command in COMMANDS}
    counts = {command: f"{lines.count('')} of {len(lines)}" for command, lines in tried.items()}
    return {"models": len(rows), "works": sum(row["state"] == "works" for row in rows),
            "wrong": sum(row["state"] == "wrong" for row in rows), "difference": max(differences, default=0.0),
            "ratio": median(ratios) if ratios else None, **counts}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="WORD", help="models with this word in FAMILY/NAME")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="S", help="seconds of each process (120)")
    parser.add_argument("--commands", action="store_true", help="inspect and bench each model, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows; a later run adds to them")
    parser.add_argument("--page", action="store_true", help="write docs/population.md and docs/population.json")
    options = parser.parse_args()
    models = json.loads((HERE / "population" / "models.json").read_text())
    all_names = [row["name"] for rows in models.values() for row in rows]
    names = [row["name"] for family, rows in models.items() for row in rows
             if options.only in "/".join((family, row["name"]))]
    folders = [folder for name in names if ((folder := options.folder.resolve() / name) / "case.json").exists()]
    if not folders:
        parser.error(f"{options.folder} has no models: benchmarks/population/make.py makes them")
    stored = options.json is not None and options.json.exists()
    earlier = {row["name"]: row for row in json.loads(options.json.read_text())["rows"]} if stored else {}
    report: Row = {"date": datetime.now(UTC).date().isoformat(), "cores": os.cpu_count()}
    for row in check_all(folders, options):
        earlier[row["name"]] = {**earlier.get(row["name"], {}), **row}
        report["rows"] = [earlier[name] for name in all_names if name in earlier]
        if options.json is not None:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.page:
        (DOCS / "population.json").write_text(json.dumps(report, indent=0) + "\n")
        (DOCS / "population.md").write_text(population_page.page(report, summary))
    print(population_page.text(report, summary))
    return int(not all(row["state"] == "works" for row in report["rows"]))


if __name__ == "__main__":
    sys.exit(main())
