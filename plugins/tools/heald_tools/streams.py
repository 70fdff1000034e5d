"""Runs of one model from several threads at once: the throughput of a server, and the latency of each of its requests.

Each stream runs the model as soon as its last run has ended. All streams share one session, as the threads of a server
do. A stream never ends another's run: at the end, and after Ctrl-C, each finishes the run that it is in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any

from heald.api.cli import lasting

POLL = 0.02  # seconds between looks at the streams
MIN_RUNS = 5  # runs of each stream


@dataclass
class StreamTimes:
    """Seconds of each run of all streams, and of the whole measurement."""

    runs: list[float] = field(default_factory=list)
    wall: float = 0.0


def time_streams(run: Callable[[], Any], streams: int, seconds: float, what: str, times: StreamTimes) -> None:
    """Run the model from so many threads for about `seconds`. The times are in `times`, also after KeyboardInterrupt.

    Raises the error of the first run that fails.
    """
    stop, errors = threading.Event(), list[BaseException]()
    ready = threading.Barrier(streams + 1)
    threads = [threading.Thread(target=_run_stream, args=(run, ready, stop, times.runs, errors), daemon=True,
                                name=f"heald-stream-{number}") for number in range(streams)]
    for thread in threads:
        thread.start()
    ready.wait()
    started = perf_counter()
    try:
        for _ in lasting(seconds, 1, what):
            if errors:
                break
            sleep(min(POLL, seconds))
        _await_runs(threads, times, streams * MIN_RUNS, errors)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        times.wall = perf_counter() - started
    if errors:
        raise errors[0]


def _await_runs(threads: list[threading.Thread], times: StreamTimes, least: int, errors: list[BaseException]) -> None:
    """Wait until slow streams have run a few times, too."""
    while len(times.runs) < least and not errors and any(thread.is_alive() for thread in threads):
        sleep(POLL)


def _run_stream(
    run: Callable[[], Any], ready: threading.Barrier, stop: threading.Event, times: list[float],
    errors: list[BaseException],
) -> None:
    ready.wait()
    try:
        while not stop.is_set():
            started = perf_counter()
            run()
            times.append(perf_counter() - started)
    except BaseException as error:  # noqa: BLE001 - raised in the caller
        errors.append(error)
