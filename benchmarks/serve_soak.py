"""The memory and the answers of a server under twice its capacity, for minutes.

    python benchmarks/serve_soak.py [--minutes 10] [--workers 1] [--model MODEL --body FILE.json] [--json FILE]

The server is `heald serve` in a process of its own; clients and server share the machine. The capacity is counted
first: so many connections ask as fast as they are answered. Then requests arrive on a schedule, twice as many a second.
An arrival without an idle connection, beyond MOST_CONNECTIONS, is dropped and counted.

Each second the anonymous memory (RssAnon) of the server and its workers is sampled, with threads and open files. The
first third is the warm-up. `slope` is the least-squares line through the rest. `growth` is the difference of the
medians of its first and last tenth. The exit status is 1 where the growth is above 5 % and 2 MB, where threads or files
grow, or where an answer is neither 200, 429 nor 503. Soaks of less than a minute of warm-up are not judged by memory.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple

from tabulate import tabulate

DIGITS = Path(__file__).parents[1] / "examples" / "digits"
CLOSED_CONNECTIONS, MOST_CONNECTIONS = 16, 256
CAPACITY_SECONDS = 5.0
WARM_UP = 1 / 3
LONG_ENOUGH_SECONDS = 60.0
GROWTH, LEAST_BYTES = 0.05, 2 << 20
EXPECTED = {200, 429, 503}
ROW_SECONDS = 30.0


class Sample(NamedTuple):
    """Of the server and its workers: anonymous bytes, threads, open files."""

    second: float
    memory: int
    threads: int
    files: int


class Connection:
    """A connection that is kept alive. `request` is the whole text of a request."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port, self._request = port, request
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> int:
        """The status of the answer; 0 where the connection ends without one."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(self._request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0
        return int(head[9:12])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def end(self) -> None:
        """Close the connection, and wait for that."""
        if self._streams is not None:
            writer = self._streams[1]
            self.close()
            with suppress(OSError):
                await writer.wait_closed()


class Load:
    """Clients of one server, and the statuses of their answers."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port, self._request = port, request
        self._idle: list[Connection] = []
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []  # of good answers
        self.dropped = 0

    async def capacity(self, seconds: float) -> float:
        """The answers a second to connections that ask again at once."""
        end = perf_counter() + seconds

        async def ask_until_end() -> int:
            connection, count = Connection(self._port, self._request), 0
            while perf_counter() < end:
                count += await connection.ask() == 200
            await connection.end()
            return count

        counts = await asyncio.gather(*[ask_until_end() for _ in range(CLOSED_CONNECTIONS)])
        return sum(counts) / seconds

    async def run(self, rate: float, seconds: float) -> None:
        """Ask `rate` times a second, without regard to the answers."""
        start = perf_counter()
        arrivals = 0
        while (now := perf_counter() - start) < seconds:
            while arrivals < now * rate:
                arrivals += 1
                self._arrive()
            await asyncio.sleep(0.002)
        await asyncio.gather(*self._tasks)
        for connection in self._idle:
            await connection.end()

    def _arrive(self) -> None:
        if not self._idle and self._count == MOST_CONNECTIONS:
            self.dropped += 1
            return
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = Connection(self._port, self._request)
            self._count += 1
        task = asyncio.ensure_future(self._ask(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, connection: Connection) -> None:
        start = perf_counter()
        status = await connection.ask()
        self.statuses[status] += 1
        if status == 200:
            self.seconds.append(perf_counter() - start)
        self._idle.append(connection)


def processes_of(pid: int) -> list[int]:
    """The process and its children."""
    children = [int(word) for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()]
    return [pid, *children]


def take_sample(pid: int, start: float) -> Sample:
    memory = threads = files = 0
    for one in processes_of(pid):
        try:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{one}/status").read_text().splitlines())
            files += len([*Path(f"/proc/{one}/fd").iterdir()])
        except OSError:  # it has just ended
            continue
        memory += int(status["RssAnon"].split()[0]) << 10
        threads += int(status["Threads"])
    return Sample(perf_counter() - start, memory, threads, files)


async def sample_until_end(pid: int, samples: list[Sample], load: Load) -> None:
    start = perf_counter()
    next_row = ROW_SECONDS
    while True:
        samples.append(take_sample(pid, start))
        if samples[-1].second >= next_row:
            next_row += ROW_SECONDS
            print(f"{samples[-1].second:6.0f} s  {samples[-1].memory / 1e6:8.1f} MB  {dict(load.statuses)}", flush=True)
        await asyncio.sleep(1)


def slope_of(samples: Sequence[Sample]) -> float:
    """Bytes a minute, by least squares."""
    middle = sum(sample.second for sample in samples) / len(samples)
    spread = sum((sample.second - middle) ** 2 for sample in samples)
    return 60 * sum((sample.second - middle) * sample.memory for sample in samples) / spread if spread else 0.0


def growth_of(samples: Sequence[Sample], field: str = "memory") -> float:
    """The difference of the medians of the last and the first tenth."""
    tenth = max(1, len(samples) // 10)
    first, last = samples[:tenth], samples[-tenth:]
    return median(getattr(sample, field) for sample in last) - median(getattr(sample, field) for sample in first)


def start_server(args: Namespace) -> tuple[subprocess.Popen[str], int]:
    """The process, and the port of its REST interface."""
    from socket import socket

    with socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "heald", "serve", f"m={args.model}", "--port=0", f"--rest_api_port={port}",
         f"--workers={args.workers}", *args.option], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="")
        if "at http" in line:
            return process, port
    raise SystemExit("the server has ended")


def request_text(args: Namespace) -> bytes:
    if args.body:
        body = Path(args.body).read_bytes()
    else:
        import numpy as np

        body = json.dumps({"instances": np.load(DIGITS / "test.npz")["image"][:1].tolist()}).encode()
    return (b"POST /v1/models/m:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)) + body


async def soak(port: int, pid: int, args: Namespace) -> dict[str, Any]:
    load = Load(port, request_text(args))
    seconds = 60 * args.minutes
    capacity = await load.capacity(min(CAPACITY_SECONDS, seconds))
    print(f"capacity: {capacity:.0f} requests/s")
    samples: list[Sample] = []
    sampling = asyncio.ensure_future(sample_until_end(pid, samples, load))
    await load.run(2 * capacity, seconds)
    sampling.cancel()
    warm = [sample for sample in samples if sample.second >= WARM_UP * seconds]
    good = load.statuses[200] / seconds
    return {"capacity": capacity, "goodput": good, "share": good / capacity if capacity else 0.0,
            "p50_ms": 1000 * percentile(load.seconds, 50), "p99_ms": 1000 * percentile(load.seconds, 99),
            "statuses": dict(load.statuses), "dropped": load.dropped,
            "memory": median(sample.memory for sample in warm), "slope": slope_of(warm), "growth": growth_of(warm),
            "threads": growth_of(warm, "threads"), "files": growth_of(warm, "files"),
            "warm_up_seconds": WARM_UP * seconds}


def percentile(numbers: Sequence[float], percent: int) -> float:
    """NaN for fewer than two numbers."""
    return quantiles(numbers, n=100)[percent - 1] if len(numbers) > 1 else float("nan")


def faults_of(report: dict[str, Any]) -> list[str]:
    faults = [f"answers of the status {status}: {count}" for status, count in report["statuses"].items()
              if status not in EXPECTED]
    if report["warm_up_seconds"] >= LONG_ENOUGH_SECONDS:
        if report["growth"] > max(GROWTH * report["memory"], LEAST_BYTES):
            faults.append(f"memory grew by {report['growth'] / 1e6:.1f} MB")
        faults += [f"{name} grew by {report[name]:.0f}" for name in ("threads", "files") if report[name] > 0]
    return faults


def tell(report: dict[str, Any]) -> None:
    rows = [("capacity, requests/s", f"{report['capacity']:.0f}"), ("good answers/s at twice that",
            f"{report['goodput']:.0f}: {100 * report['share']:.0f} %"),
            ("p50, p99 of good answers", f"{report['p50_ms']:.1f} ms, {report['p99_ms']:.1f} ms"),
            ("answers by status", report["statuses"]), ("arrivals without a connection", report["dropped"]),
            ("anonymous memory", f"{report['memory'] / 1e6:.1f} MB"),
            ("its slope", f"{report['slope'] / 1e6:+.2f} MB/min"),
            ("its growth", f"{report['growth'] / 1e6:+.2f} MB"),
            ("growth of threads, files", f"{report['threads']:+.0f}, {report['files']:+.0f}")]
    print(tabulate(rows, tablefmt="plain"))


def main() -> int:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--model", default=str(DIGITS / "frozen.pb"))
    parser.add_argument("--body", help="a file with the body of a request; needed for another model")
    parser.add_argument("--option", action="append", default=[], help="a further option of the server (repeatable)")
    parser.add_argument("--json", metavar="FILE", help="write the report here, too")
    args = parser.parse_args()
    process, port = start_server(args)
    with process:
        try:
            report = asyncio.run(soak(port, process.pid, args))
        finally:
            process.terminate()
            assert process.stderr is not None
            print(process.stderr.read(), end="")
    tell(report)
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    faults = faults_of(report)
    for fault in faults:
        print(f"FAULT: {fault}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
