"""The rows of a scan, by several processes where there are many models.

This process describes the first part, and shows the progress. Each other part is the work of `heald scan --part I/N`,
which walks the folder by itself and prints its rows as JSON. A model that another process did not describe, since it
ended or since the folder has changed, is described here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from heald.api.cli import counted, model_row

from .doctor import usable_cores

if TYPE_CHECKING:
    from heald.api.cli import ModelFile

MODELS_OF_A_PROCESS = 100  # least number: a process takes as long to start as it takes for these
MAX_PROCESSES = 8


def part(text: str) -> tuple[int, int]:
    """Parse `I/N`: the index of a part, from 0 on, and the number of parts."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise ArgumentTypeError(f"'{text}' is no part, such as 0/2")
    return int(index), int(count)


def scan_models(models: Sequence[ModelFile], folder: Path, plugins: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of the models, in their order. Archives without a model have none."""
    count = max(1, min(usable_cores(), MAX_PROCESSES, len(models) // MODELS_OF_A_PROCESS))
    with _other_parts(folder, count, plugins) as outputs:
        own = models[::count]
        rows = dict(_rows(own, folder))
        for process, output in outputs:
            process.wait()
            output.seek(0)
            rows |= _read_rows(output.read())
    there = {model.name or "." for model in own} | rows.keys()
    rows |= dict(_rows([model for model in models if (model.name or ".") not in there], folder))
    return [row for model in models if (row := rows.get(model.name or ".")) is not None]


def _rows(models: Sequence[ModelFile], folder: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    for number in counted(len(models), f"scanning {folder}"):
        yield models[number].name or ".", model_row(models[number], folder)


def _read_rows(text: bytes) -> dict[str, dict[str, Any]]:
    try:
        rows = json.loads(text)
    except ValueError:  # the process has failed
        return {}
    return {row["file"]: row for row in rows}


@contextmanager
def _other_parts(
    folder: Path, count: int, plugins: Sequence[str]
) -> Iterator[list[tuple[subprocess.Popen[bytes], IO[bytes]]]]:
    """Start a process for each part but the first, and yield these with the files of their output."""
    started: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    options = [word for plugin in plugins for word in ("--plugin", plugin)]
    with ExitStack() as stack:
        try:
            for index in range(1, count):
                output: IO[bytes] = stack.enter_context(TemporaryFile())
                command = [sys.executable, "-P", "-m", "heald", "scan", str(folder), "--json", "--part",
                           f"{index}/{count}", *options]
                started.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,  # noqa: S603
                                                 stderr=subprocess.DEVNULL), output))
            yield started
        finally:
            for process, _ in started:
                process.kill()
                process.wait()
