"""One run of a model on made-up inputs, in a process of its own: `heald run --made-up` with limits.

The model is a stranger's, so the process has a limit of time and of memory, and its ops may open no file but the
model's own. The limit of memory is heald's budget, which refuses with an error. Where the system has limits of address
space, a wider limit ends a process that takes memory past the budget.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any

MAX_ERROR_BYTES = 1 << 16  # of the process's standard error
SPARE_MEMORY = 2 << 30  # bytes of address space besides the budget: libraries, stacks of threads
MEGABYTE = 1 << 20
_ONLY_OWN_FILES = {"HEALD_FILES__READ": "[]", "HEALD_FILES__WRITE": "[]", "HEALD_FILES__ALLOW_OPS": "[]"}


def try_model(
    path: Path, file_ops: Sequence[str], seconds: float, megabytes: int, plugins: Sequence[str] = ()
) -> dict[str, Any]:
    """Run a model once, with these plugins of --plugin.

    Returns the status "ran", "failed" or "refused", the reason, and the seconds.
    """
    if file_ops:
        return {"status": "refused", "reason": f"not tried: its ops open files: {', '.join(file_ops)}",
                "seconds": None}
    started = perf_counter()
    options = [word for plugin in plugins for word in ("--plugin", plugin)]
    command = [sys.executable, "-P", "-m", "heald", "run", str(path.absolute()), "--made-up", "--json", *options]
    reason = _run_in_process(command, seconds, megabytes)
    return {"status": "ran" if reason is None else "failed", "reason": reason, "seconds": perf_counter() - started}


def _run_in_process(command: list[str], seconds: float, megabytes: int) -> str | None:
    """Run a command within the limits. Returns None for success, else the reason."""
    environment = os.environ | _ONLY_OWN_FILES | {"HEALD_LIMITS__MEMORY": f"{megabytes}MiB"}
    with TemporaryFile() as errors:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,  # noqa: S603
                                   stderr=errors, start_new_session=True)
        try:
            _limit_memory(process.pid, megabytes * MEGABYTE + SPARE_MEMORY)
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"ended after {seconds:g} s: --timeout gives it more"
        finally:
            _end(process)
        errors.seek(0)
        return None if status == 0 else _reason(errors.read(MAX_ERROR_BYTES).decode("utf-8", "replace"), status)


def _limit_memory(process: int, count: int) -> None:
    """Limit the address space of a process that has just begun, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    if hasattr(resource, "prlimit"):
        with suppress(OSError):  # it has ended
            resource.prlimit(process, resource.RLIMIT_AS, (count, count))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with all processes that it started."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def _reason(text: str, status: int) -> str:
    lines = [line.strip() for line in text.splitlines()]
    error = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), None)
    if error is not None:
        return error
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
