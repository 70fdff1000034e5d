"""The population's figures as a page and as text: a table by family, and a table of the failures with their causes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

CAUSES = Path(__file__).parent / "population" / "causes.json"  # of failures, by the name of a model
REASON_WIDTH = 160

Row = Mapping[str, Any]
Summary = Callable[[list[Any]], Mapping[str, Any]]


def families(rows: Sequence[Row]) -> dict[str, list[Row]]:
    by_family: dict[str, list[Row]] = {}
    for row in rows:
        by_family.setdefault(row["family"], []).append(row)
    return by_family


def by_family(rows: Sequence[Row], summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: a line for each family, and one for all."""
    has_commands = any("inspect" in row for row in rows)
    head = ["family", "models", "work", "wrong", "largest difference", "time / TensorFlow's"]
    head += ["inspect", "bench"] if has_commands else []
    groups = [*families(rows).items(), ("all", list(rows))]
    return head, [_family_cells(name, summary(list(group)), has_commands=has_commands) for name, group in groups]


def _family_cells(name: str, figures: Mapping[str, Any], *, has_commands: bool) -> list[str]:
    ratio = "" if figures["ratio"] is None else f"{figures['ratio']:.2f}"
    cells = [name, str(figures["models"]), str(figures["works"]), str(figures["wrong"]),
             f"{figures['difference']:.0e}", ratio]
    return [*cells, figures["inspect"], figures["bench"]] if has_commands else cells


def failures(rows: Sequence[Row]) -> list[list[str]]:
    """The models that do not work: name, state, cause."""
    causes = json.loads(CAUSES.read_text()) if CAUSES.exists() else {}
    return [[row["name"], row["state"], causes.get(row["name"], _short(row["reason"]))]
            for row in rows if row["state"] != "works"]


def command_failures(rows: Sequence[Row]) -> Iterator[list[str]]:
    for command in ("inspect", "bench"):
        for row in rows:
            if row.get(command):
                yield [row["name"], command, _short(row[command])]


def _short(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "/")
    return flat if len(flat) <= REASON_WIDTH else f"{flat[:REASON_WIDTH]}..."


def text(report: Mapping[str, Any], summary: Summary) -> str:
    """The tables for a terminal."""
    head, cells = by_family(report["rows"], summary)
    parts = [tabulate(cells, head, disable_numparse=True)]
    problems = [*failures(report["rows"]), *command_failures(report["rows"])]
    if problems:
        parts.append(tabulate(problems, ["model", "state", "cause"], disable_numparse=True))
    return "\n\n".join(parts)


def page(report: Mapping[str, Any], summary: Summary) -> str:
    rows = report["rows"]
    head, cells = by_family(rows, summary)
    align = ["left", *["right"] * (len(head) - 1)]
    words = WORDS.format(date=report["date"], cores=report["cores"], models=len(rows))
    parts = ["# The population", words, *report.get("remarks", ()),
             tabulate(cells, head, tablefmt="pipe", disable_numparse=True, colalign=align), COLUMNS]
    problems = failures(rows)
    if problems:
        parts += ["## Models that do not work", tabulate(problems, ["model", "state", "cause"], tablefmt="pipe",
                                                         disable_numparse=True)]
    problems = [*command_failures(rows)]
    if problems:
        parts += ["## Commands without inputs", BENCH, tabulate(problems, ["model", "command", "last line"],
                                                               tablefmt="pipe", disable_numparse=True)]
    return "\n\n".join([*parts, REPEAT]) + "\n"


WORDS = """\
The population is a list of models as users make them with TensorFlow, Keras 2, Keras 3 and Estimator. heald loads each
file as its user would, runs it, and compares every output with TensorFlow's answer. `benchmarks/population/models.json`
lists the models with their seeds. The list was fixed before heald first ran any of them, and it only grows.

Measured on {date} on {cores} cores: {models} models."""

COLUMNS = """\
- A model works if each output is within 1e-4 + 1e-4 of TensorFlow's value. Half types have 2e-2. Integers and strings
  are equal, and so are types and shapes.
- The difference is |heald - TensorFlow| / (1 + |TensorFlow|), the largest of all outputs of the models that work.
- The time is the median of the models' ratios: a call in heald against a call in TensorFlow. Most of these models are
  small, so that the cost of a call counts most.
- `inspect` and `bench` count the models on which `heald inspect` and `heald bench` succeed without inputs, of the
  models that were tried."""

BENCH = """\
`heald bench` makes up the inputs that it is not given. Bytes of an image, an index within a table, or a node that runs
first cannot be made up."""

REPEAT = """\
## Repeat it

The makers run in environments that have TensorFlow and not heald:

```sh
python3.11 -m venv newest && newest/bin/pip install tensorflow-cpu==2.21.0 tf_keras==2.21.0 pillow
python3.11 -m venv keras2 && keras2/bin/pip install tensorflow-cpu==2.15.1 "numpy<2" pillow
newest/bin/python benchmarks/population/make.py /tmp/population --environment newest
newest/bin/python benchmarks/population/make.py /tmp/population --environment tf_keras
keras2/bin/python benchmarks/population/make.py /tmp/population --environment 2.15
.venv/bin/python benchmarks/population.py /tmp/population --commands
```

`--only WORD` takes the models with this word in their family or name. `make.py --times` measures TensorFlow again."""
