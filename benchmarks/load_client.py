"""The client of serve_load.py: one process that sends prepared requests, by a schedule or as fast as answers come.

    python benchmarks/load_client.py < TASK > RESULT        both JSON; the fields are those of LoadTask and LoadResult

In the open loop the arrivals are a Poisson process, drawn before the start. A request's latency begins at its scheduled
time: time that it waits here, for a connection or for this process, counts. So a slow server cannot slow the arrivals
down (coordinated omission). A request that has waited for a connection for the limit is given up, as its caller would;
else one stall would make all later requests late. In the closed loop each of `connections` sends its next request when
its answer came.

A request is bytes that were made once. HTTP connections have one request at a time. HTTP/2 connections carry gRPC calls
as streams: the frames are written here, and the header table is off, so a status is a literal that can be searched for.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from array import array
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

HTTP, GRPC = "http", "grpc"
MOST_CONNECTIONS = 1000  # those that heald serves by default
GRPC_CONNECTIONS = 4
CLOSING_SECONDS = 0.02
LAST_ANSWER_SECONDS = 5.0  # after the last arrival
NO_ANSWER, RESET, GIVEN_UP = "none", "reset", "given up"
SUCCESSES = ("200", "0")

Done = Callable[[float, str], None]  # gets the scheduled time and the status


class LoadTask(NamedTuple):
    """`rate`: arrivals a second; 0 for the closed loop. `request`: a file of the bytes of a request or a message."""

    protocol: str
    port: int
    request: str
    path: str = ""  # of gRPC
    rate: float = 0.0
    seconds: float = 1.0
    connections: int = 8
    limit: float = 1.0
    seed: int = 1


class LoadResult(NamedTuple):
    """`rate`, `goodput`: answers, and good answers within the limit, a second. Latencies are of good answers, in ms.

    `lag`: the 99th percentile of the time between a scheduled arrival and its start here, in ms. `cpu`: of this
    process, microseconds a request.
    """

    sent: int
    rate: float
    goodput: float
    p50: float
    p99: float
    statuses: dict[str, int]
    lag: float
    cpu: float


class HttpConnection(asyncio.Protocol):
    """One request at a time. `on_idle` is called after each answer, `on_end` when the connection has ended."""

    def __init__(self, load: HttpLoad) -> None:
        self._load = load
        self._transport: Any = None
        self._scheduled: float | None = None
        self._received = b""
        self._size = 0  # of the answer, once its head is there

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def close(self) -> None:
        self._scheduled = None
        self._transport.close()

    def send(self, scheduled: float) -> None:
        self._scheduled = scheduled
        self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        if not self._size:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._received[:end].lower()
            at = head.find(b"content-length:")
            self._size = end + 4 + (int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0)
        if len(self._received) < self._size or self._scheduled is None:
            return
        status = self._received[9:12].decode("latin-1")
        scheduled, self._scheduled, self._received, self._size = self._scheduled, None, b"", 0
        self._load.on_answer(self, scheduled, status)

    def connection_lost(self, _: Exception | None) -> None:
        self._load.on_end(self, self._scheduled)


class HttpLoad:
    """Requests over connections that are kept: an idle one, else a new one, else the request waits for one."""

    def __init__(self, task: LoadTask, done: Done) -> None:
        self.request = Path(task.request).read_bytes()
        self._port, self._done, self._limit = task.port, done, task.limit
        self._idle: list[HttpConnection] = []
        self._connections: set[HttpConnection] = set()
        self._waiting: deque[float] = deque()
        self._opened = 0
        self._tasks: set[Any] = set()

    async def begin(self) -> None:
        """Nothing has to be opened first."""

    def send(self, scheduled: float) -> None:
        if self._idle:
            self._idle.pop().send(scheduled)
        elif self._opened < MOST_CONNECTIONS:
            self._opened += 1
            opening = asyncio.get_running_loop().create_task(self._open(scheduled))
            self._tasks.add(opening)
            opening.add_done_callback(self._tasks.discard)
        else:
            self._waiting.append(scheduled)

    async def _open(self, scheduled: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(lambda: HttpConnection(self), "127.0.0.1", self._port)
        except OSError:
            self._opened -= 1
            self._done(scheduled, RESET)
            return
        self._connections.add(connection)
        connection.send(scheduled)

    def close(self) -> None:
        self._waiting.clear()
        for connection in self._connections:
            connection.close()

    def on_answer(self, connection: HttpConnection, scheduled: float, status: str) -> None:
        self._done(scheduled, status)
        waiting = self._next_waiting()
        if waiting is None:
            self._idle.append(connection)
        else:
            connection.send(waiting)

    def _next_waiting(self) -> float | None:
        """The first request that waits for a connection, and not for too long."""
        while self._waiting:
            scheduled = self._waiting.popleft()
            if perf_counter() - scheduled <= self._limit:
                return scheduled
            self._done(scheduled, GIVEN_UP)
        return None

    def on_end(self, connection: HttpConnection, scheduled: float | None) -> None:
        self._opened -= 1
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if scheduled is not None:
            self._done(scheduled, RESET)
        waiting = self._next_waiting()
        if waiting is not None:
            self.send(waiting)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
TABLE_SIZE, INITIAL_WINDOW, MAX_FRAME = 1, 4, 5  # settings
LARGE_WINDOW = (1 << 31) - 1
STATUS_KEY = b"grpc-status"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal_headers(*pairs: tuple[str, str]) -> bytes:
    """The header block of short fields, none of them indexed."""
    return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                    for name, value in pairs)


class Http2Connection(asyncio.Protocol):
    """Streams of one prepared gRPC call."""

    def __init__(self, load: GrpcLoad) -> None:
        self._load = load
        self._transport: Any = None
        self._received = bytearray()
        self._scheduled: dict[int, float] = {}  # by stream
        self._next_stream = 1
        self._window, self._stream_window, self._most_frame_bytes = 65535, 65535, 16384
        self._stream_windows: dict[int, int] = {}  # of streams with bytes that wait
        self._unsent: dict[int, int] = {}  # the offset of the next byte, by stream
        self._uncounted = 0  # received bytes of data that the server's window lacks
        self.is_ready = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        settings = struct.pack(">HIHI", TABLE_SIZE, 0, INITIAL_WINDOW, LARGE_WINDOW)
        transport.write(PREFACE + frame(SETTINGS, 0, 0, settings)
                        + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    def close(self) -> None:
        self._scheduled.clear()
        self._transport.close()

    def send(self, scheduled: float) -> None:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._scheduled[stream] = scheduled
        message = self._load.message
        head = frame(HEADERS, END_HEADERS, stream, self._load.headers)
        if len(message) <= min(self._most_frame_bytes, self._window, self._stream_window) and not self._unsent:
            self._window -= len(message)
            self._transport.write(head + frame(DATA, END_STREAM, stream, message))
            return
        self._transport.write(head)
        self._unsent[stream], self._stream_windows[stream] = 0, self._stream_window
        self._send_rest()

    def _send_rest(self) -> None:
        """Send the bytes that the windows of connection and streams allow."""
        message = self._load.message
        for stream, at in list(self._unsent.items()):
            while at < len(message):
                size = min(self._most_frame_bytes, self._window, self._stream_windows[stream], len(message) - at)
                if size <= 0:
                    break
                flags = END_STREAM if at + size == len(message) else 0
                self._transport.write(frame(DATA, flags, stream, message[at : at + size]))
                at += size
                self._window -= size
                self._stream_windows[stream] -= size
            self._unsent[stream] = at
            if at == len(message):
                del self._unsent[stream], self._stream_windows[stream]

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        at = 0
        while len(received) - at >= 9:
            size = received[at] << 16 | received[at + 1] << 8 | received[at + 2]
            if len(received) - at - 9 < size:
                break
            kind, flags = received[at + 3], received[at + 4]
            stream = int.from_bytes(received[at + 5 : at + 9]) & LARGE_WINDOW
            self._on_frame(kind, flags, stream, bytes(received[at + 9 : at + 9 + size]))
            at += 9 + size
        del received[:at]

    def _on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == HEADERS and flags & END_STREAM:
            self._finish(stream, status_in(payload))
        elif kind == DATA:
            self._uncounted += len(payload)
            if self._uncounted > 1 << 20:
                self._transport.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._uncounted)))
                self._uncounted = 0
        elif kind == RST_STREAM:
            self._finish(stream, RESET)
        elif kind == PING and not flags & ACK:
            self._transport.write(frame(PING, ACK, 0, payload))
        elif kind == SETTINGS and not flags & ACK:
            self._read_settings(payload)
        elif kind == WINDOW_UPDATE:
            self._add_window(stream, int.from_bytes(payload) & LARGE_WINDOW)

    def _read_settings(self, payload: bytes) -> None:
        for key, value in struct.iter_unpack(">HI", payload):
            if key == INITIAL_WINDOW:
                for stream in self._stream_windows:
                    self._stream_windows[stream] += value - self._stream_window
                self._stream_window = value
            elif key == MAX_FRAME:
                self._most_frame_bytes = value
        self._transport.write(frame(SETTINGS, ACK, 0, b""))
        self.is_ready.set()
        self._send_rest()

    def _add_window(self, stream: int, size: int) -> None:
        if not stream:
            self._window += size
        elif stream in self._stream_windows:
            self._stream_windows[stream] += size
        if self._unsent:
            self._send_rest()

    def _finish(self, stream: int, status: str) -> None:
        scheduled = self._scheduled.pop(stream, None)
        self._unsent.pop(stream, None)
        self._stream_windows.pop(stream, None)
        if scheduled is not None:
            self._load.done(scheduled, status)

    def connection_lost(self, _: Exception | None) -> None:
        self._unsent.clear()
        for stream in list(self._scheduled):
            self._finish(stream, RESET)


def status_in(block: bytes) -> str:
    """The status in a header block whose fields are literals."""
    at = block.find(STATUS_KEY)
    if at < 0:
        return RESET
    at += len(STATUS_KEY)
    return block[at + 1 : at + 1 + block[at]].decode("latin-1")


class GrpcLoad:
    """Calls over a few connections, in turn."""

    def __init__(self, task: LoadTask, done: Done) -> None:
        message = Path(task.request).read_bytes()
        self.message = struct.pack(">BI", 0, len(message)) + message
        self.headers = literal_headers(
            (":method", "POST"), (":scheme", "http"), (":path", task.path), (":authority", f"127.0.0.1:{task.port}"),
            ("te", "trailers"), ("content-type", "application/grpc"))
        self._port, self.done = task.port, done
        self._connections: deque[Http2Connection] = deque()

    async def begin(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(GRPC_CONNECTIONS):
            _, connection = await loop.create_connection(lambda: Http2Connection(self), "127.0.0.1", self._port)
            await connection.is_ready.wait()
            self._connections.append(connection)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def send(self, scheduled: float) -> None:
        self._connections[0].send(scheduled)
        self._connections.rotate()


class Recorder:
    """The answers of a load."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.latencies = array("d")  # of good answers, seconds
        self.answered = 0
        self.last_answer = 0.0
        self.on_done: Callable[[], None] = lambda: None

    def done(self, scheduled: float, status: str) -> None:
        now = self.last_answer = perf_counter()
        self.answered += 1
        if status in SUCCESSES:
            self.latencies.append(now - scheduled)
        self.statuses[status] += 1
        self.on_done()


async def run_open(load: HttpLoad | GrpcLoad, recorder: Recorder, task: LoadTask) -> list[float]:
    """Send by the schedule, and wait for the answers. Returns how late each request began."""
    random = np.random.default_rng(task.seed)
    gaps = random.exponential(1 / task.rate, int(task.rate * task.seconds * 1.2) + 100)
    arrivals = [moment for moment in np.cumsum(gaps).tolist() if moment < task.seconds]
    lags = []
    start = perf_counter()
    at = 0
    while at < len(arrivals):
        now = perf_counter() - start
        while at < len(arrivals) and arrivals[at] <= now:
            load.send(start + arrivals[at])
            lags.append(now - arrivals[at])
            at += 1
        if at < len(arrivals):
            await asyncio.sleep(max(start + arrivals[at] - perf_counter(), 0))
    end = perf_counter() + LAST_ANSWER_SECONDS
    while recorder.answered < len(arrivals) and perf_counter() < end:
        await asyncio.sleep(0.01)
    if recorder.answered < len(arrivals):
        recorder.statuses[NO_ANSWER] += len(arrivals) - recorder.answered
    return lags


async def run_closed(load: HttpLoad | GrpcLoad, recorder: Recorder, task: LoadTask) -> list[float]:
    """Keep so many requests going. Requests that are refused wait for a moment, or they would be all of them."""
    start = perf_counter()
    loop = asyncio.get_running_loop()
    refused = 0

    def send() -> None:
        if perf_counter() - start < task.seconds:
            load.send(perf_counter())

    def send_next() -> None:
        nonlocal refused
        failures = recorder.answered - len(recorder.latencies)
        if failures > refused:
            refused = failures
            loop.call_later(0.01, send)
        else:
            loop.call_soon(send)

    recorder.on_done = send_next
    for _ in range(task.connections):
        load.send(perf_counter())
    await asyncio.sleep(task.seconds + 0.2)
    return [0.0]


async def run(task: LoadTask) -> LoadResult:
    recorder = Recorder()
    load = HttpLoad(task, recorder.done) if task.protocol == HTTP else GrpcLoad(task, recorder.done)
    await load.begin()
    start, cpu = perf_counter(), process_time()
    lags = await (run_open if task.rate else run_closed)(load, recorder, task)
    cpu = process_time() - cpu
    load.close()
    await asyncio.sleep(CLOSING_SECONDS)
    seconds = max(task.seconds, recorder.last_answer - start if not task.rate else 0)
    latencies = np.array(recorder.latencies) if recorder.latencies else np.array([float("nan")])
    sent = sum(recorder.statuses.values())
    return LoadResult(
        sent, recorder.answered / seconds, float((latencies <= task.limit).sum()) / seconds,
        1e3 * float(np.percentile(latencies, 50)), 1e3 * float(np.percentile(latencies, 99)), dict(recorder.statuses),
        1e3 * float(np.percentile(lags, 99)), 1e6 * cpu / max(sent, 1))


def main() -> None:
    task = LoadTask(**json.load(sys.stdin))
    try:
        import uvloop as event_loops
    except ImportError:
        event_loops = asyncio
    result = event_loops.run(run(task))
    json.dump(result._asdict(), sys.stdout)


if __name__ == "__main__":
    main()
