"""Lines on standard error: of the server's life, and of requests where the access log is on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple, TextIO

from heald.errors import printable


class AccessRecord(NamedTuple):
    """One answered request, of any front. `status`: a number of HTTP, or a name of gRPC."""

    client: str
    method: str
    target: str
    status: int | str
    seconds: float
    model: str
    trace: str


def report_line(text: str, stream: TextIO | None = None) -> None:
    """Write a line with escapes for unprintable characters."""
    print(f"heald serve: {printable(text)}", file=stream or sys.stderr, flush=True)


def access_writer(form: str, stream: TextIO | None = None) -> Callable[[AccessRecord], None] | None:
    """The writer of the access log, or None where it is off. `form` is none, text or json."""
    if form == "none":
        return None
    line_of = _json_line if form == "json" else _text_line

    def write(record: AccessRecord) -> None:
        with suppress(OSError, ValueError):  # of a closed stream: requests go on without their lines
            print(line_of(record), file=stream or sys.stderr, flush=True)

    return write


def _text_line(record: AccessRecord) -> str:
    trace = f" {record.trace}" if record.trace else ""
    return printable(f"{record.client or '-'} {record.method} {record.target} {record.status} "
                     f"{1000 * record.seconds:.1f} ms{trace}")


def _json_line(record: AccessRecord) -> str:
    return json.dumps({
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "client": record.client, "method": record.method,
        "target": record.target, "status": record.status, "milliseconds": round(1000 * record.seconds, 3),
        "model": record.model, "trace": record.trace})
