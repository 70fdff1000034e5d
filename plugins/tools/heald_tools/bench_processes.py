"""Several models of heald bench, each in a process of its own: `heald bench MODEL --json` with the same options.

The processes have a session of their own, so that a terminal's Ctrl-C reaches this process alone. It hands the signal
on to the process that measures, which reports its runs so far, and begins no other.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

FAILED, INTERRUPTED = 1, 130
_VALUES = ("batch", "duration", "hint", "streams", "threads", "device", "format", "signature")
_LISTS = ("input", "plugin")


def measure_apart(args: Namespace) -> tuple[list[dict[str, Any]], int]:
    """Return the reports of the models, and the status: 1 where a model failed, 130 after Ctrl-C."""
    reports: list[dict[str, Any]] = []
    status = 0
    for model in args.model:
        text, status_of_model = _output_of([sys.executable, "-P", "-m", "heald", "bench", *_options(args), "--json",
                                            "--", model])
        with suppress(ValueError):  # a process that failed or was killed has no report
            reports.append(json.loads(text))
        if status_of_model == INTERRUPTED:
            return reports, INTERRUPTED
        status = FAILED if status_of_model else status
    return reports, status


def _output_of(command: list[str]) -> tuple[str, int]:
    """The standard output and the status of a process. Ctrl-C is handed on, and the status is 130 then."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:  # noqa: S603
        try:
            return process.communicate()[0], process.returncode
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT) if sys.platform != "win32" else process.terminate()
            return process.communicate()[0], INTERRUPTED


def _options(args: Namespace) -> Iterator[str]:
    """The options of one process."""
    for name in _VALUES:
        value = getattr(args, name)
        if value is not None:
            yield f"--{name}={value}"
    for name in _LISTS:
        yield from (f"--{name}={value}" for value in getattr(args, name))
    for name in ("tags", "against"):
        if getattr(args, name):
            yield f"--{name}={','.join(getattr(args, name))}"
    if not args.mmap:
        yield "--no-mmap"
    if args.nodes:
        yield "--nodes"
