"""Run heald for a long time in every way at once, and compare the holdings of the process with those at the start.

    python tests/soak.py [--minutes 30 | --seconds 3] [--seed 0]

Deeds are drawn at random: runs of any shape and fetches, runs that fail, are cancelled or have no time, sessions that
are closed or dropped, host programs, saved models, a process that forks. Everything is closed and counted after a
warm-up, in the middle and at the end. Threads, files, the C library's bytes in use and Python's blocks must be as many
as after the warm-up, resident memory as much as in the middle: allocators keep pages for later, so it grows with the
highest use so far. An error that no deed expects ends the soak with its seed and step. The exit status is 1 for either.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import heald
import numpy as np
from builders.graphs import const, graph, node, placeholder
from builders.programs import Body, program
from harness.garbage import collect
from heald.cli.printing.progress import lasting
from heald.errors import (
    Aborted,
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    HealdError,
    InvalidArgument,
    NotFound,
    PluginError,
)
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes
from plugins_for_tests import plugin
from tabulate import tabulate
from tqdm import tqdm

HERE = Path(__file__).parent
DIGITS = HERE.parent / "examples" / "digits" / "frozen.pb"
SAVED_MODELS = HERE / "data" / "saved_models"
# A config of its own for all: the runtime that has none lives on, with threads that start when they are first needed.
PLUGINS = {"plugins": {"load": [plugin("tests"),
                                plugin("host_kernels")]}}
WARM_UP = 120.0  # seconds, or a third of the time: caches are full then, and pools have their threads
LONG_ENOUGH = 60.0  # seconds of warm-up from which memory is judged
GROWTH = 0.05  # the share by which memory may differ, or
LEAST = 2 << 20  # bytes of it
MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
ROW_EVERY = 30.0  # seconds
MOST_WAIT = 10.0  # seconds for threads that end
MOST_SESSIONS = 6
INT = dtypes.int32
QUEUE = {"component_types": (INT,)}
OPS = ("Now", "Later", "Queued", "Block", "Poll")
NODES = (
    placeholder("x"), const("one", 1), node("a", "AddV2", "x", "one"), node("b", "Mul", "a", "x"),
    node("c", "Tanh", "b"), node("sync", "Test>Positive", "a", "x"), node("split", "Test>Add", "sync", "a"),
    *(last for op in OPS for last in (node(op, f"Test>{op}", "a", "x"), node(op.lower(), "Test>Add", op, "a"))),
    node("behind", "Test>Positive", "Later", "x"),
    Node("v", "VarHandleOp", attrs={"dtype": dtypes.float32, "shape": None}),
    Node("assign", "AssignVariableOp", ("v", "x"), attrs={"dtype": dtypes.float32}),
    Node("read", "ReadVariableOp", ("v",), attrs={"dtype": dtypes.float32}),
    Node("q", "FIFOQueueV2", attrs=QUEUE), placeholder("n", (), INT),
    Node("put", "QueueEnqueueV2", ("q", "n"), attrs={"Tcomponents": (INT,)}),
    Node("get", "QueueDequeueV2", ("q",), attrs=QUEUE),
)
FETCHES = ("a", "b", "c", "sync", "split", "now", "later", "queued", "behind")
CONFIGS = ({"allocator": {"name": "plain"}}, {"allocator": {"name": "pooled"}}, {"allocator": {"name": "counting"}},
           {"work_queue": {"threads": 1}}, {"work_queue": {"threads": 2}}, {"debug": {"poison": True}},
           {"debug": {"check_types": True}})
FORK = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: that is the point
from soak import PLUGINS, NODES, graph, np, heald
from heald.errors import FailedPrecondition

session = heald.Session(graph(*NODES), PLUGINS)
x = np.float32([1, 2])
session.run(["split", "queued"], {"x": x})
child = os.fork()
if not child:
    session.run("split", {"x": x})
    try:
        session.run("queued", {"x": x})
    except FailedPrecondition:
        os._exit(0)
    os._exit(1)
status = os.waitpid(child, 0)[1]
session.run(["split", "queued"], {"x": x})
sys.exit(bool(status))
"""


class Held(NamedTuple):
    """Holdings of the process: resident bytes, bytes of the C library's allocator in use, blocks of Python's allocator,
    objects that the collector tracks, threads by Python and by the system, open files."""

    memory: int
    heap: int
    blocks: int
    objects: int
    threads: int
    system_threads: int
    files: int

    @classmethod
    def now(cls) -> Held:
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return cls(int(status["VmRSS"].split()[0]) << 10, heap(), sys.getallocatedblocks(), len(gc.get_objects()),
                   threading.active_count(), int(status["Threads"]), len(list(Path("/proc/self/fd").iterdir())))

    @property
    def counts(self) -> tuple[int, int, int]:
        """The numbers that must be the same in the end."""
        return self.threads, self.system_threads, self.files


class Soak:
    """The deeds, and the sessions that they share. All draw from one random source."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secrets
        self.sessions: list[heald.Session] = []
        self.host: heald.HostContext | None = None
        self.digits: heald.Model | None = None
        self.program = _program()
        self.runs = 0
        self.errors: Counter[str] = Counter()
        self.stray: list[str] = []  # exceptions in threads and finalizers

    @contextmanager
    def expecting(self, *kinds: type[HealdError]) -> Iterator[None]:
        """Errors of these classes are counted, all others are the end of the soak."""
        self.runs += 1
        try:
            yield
        except kinds as error:
            self.errors[type(error).__name__] += 1

    def session(self) -> heald.Session:
        """One of the open sessions, or a new one under a config of its own."""
        if len(self.sessions) < MOST_SESSIONS or self.random.random() < 0.01:
            config = self.random.choice(CONFIGS)
            self.sessions.append(heald.Session(graph(*NODES), PLUGINS | config))
        return self.random.choice(self.sessions)

    def feed(self, first: float = 1.0) -> Any:
        """An array of one of very many shapes, which begins with this number."""
        shape = [self.random.randint(1, 40) for _ in range(self.random.randint(0, 3))]
        x = np.full(shape, 2, np.float32)
        x.flat[0] = first
        return x

    def run_any_fetches(self) -> None:
        fetches = self.random.choices(FETCHES, k=self.random.randint(1, 4))
        options = heald.RunOptions(trace=self.random.random() < 0.2, timeout=self.random.choice([None, 60.0]))
        with self.expecting():
            x = self.feed()
            results = self.session().run(fetches, {"x": x}, options=options)
            assert all(result.shape == x.shape for result in results)

    def run_a_callable(self) -> None:
        step = self.session().make_callable("split", ["x"])
        x = self.feed()
        for _ in range(self.random.randint(1, 300)):
            with self.expecting():
                step(x)

    def fail(self) -> None:
        with self.expecting(PluginError, Aborted):
            self.session().run(self.random.choice(["sync", "now", "behind"]), {"x": self.feed(-9)})

    def ask_for_nonsense(self) -> None:
        fetch, feeds = self.random.choice([("nowhere", {}), ("a", {}), ("a", {"x": "text"}), ("a", {"x": object()}),
                                           ("a", {"nowhere": 1}), ("read", {})])
        with self.expecting(InvalidArgument, NotFound, FailedPrecondition):
            self.session().run(fetch, feeds)

    def cancel(self) -> None:
        token = heald.CancelToken()
        timer = threading.Timer(self.random.random() * 0.004, token.cancel)
        timer.start()
        with self.expecting(Cancelled):
            fetch = self.random.choice(["block", "poll", "later", "queued", "split"])
            self.session().run(fetch, {"x": self.feed()}, options=heald.RunOptions(cancel=token))
        timer.join()

    def run_out_of_time(self) -> None:
        with self.expecting(DeadlineExceeded):
            fetch = self.random.choice(["block", "poll", "later", "queued"])
            timeout = self.random.random() * 0.003
            self.session().run(fetch, {"x": self.feed()}, options=heald.RunOptions(timeout=timeout))

    def use_variable_and_queue(self) -> None:
        session, x = self.session(), self.feed()
        with self.expecting():
            session.run([], {"x": x}, targets=["assign"])
            assert session.run("read").tolist() == x.tolist()
        with self.expecting():
            session.run([], {"n": np.int32(7)}, targets=["put"])
            assert session.run("get") == 7
        with self.expecting(DeadlineExceeded):
            session.run("get", options=heald.RunOptions(timeout=0.001))

    def run_in_threads(self) -> None:
        session = self.session()
        feeds = [self.feed() for _ in range(3)]
        threads = [threading.Thread(target=session.run, args=(["split", "queued", "later"], {"x": x})) for x in feeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            with self.expecting():
                thread.join()

    def close(self) -> None:
        """Close a session, perhaps while it runs."""
        if self.sessions:
            session = self.sessions.pop(self.random.randrange(len(self.sessions)))
            timer = threading.Timer(self.random.random() * 0.003, session.close)
            timer.start()
            with self.expecting(Cancelled, FailedPrecondition):
                session.run(self.random.choice(["block", "later", "split"]), {"x": self.feed()})
            timer.join()

    def drop(self) -> None:
        """A session without close, whose last run may have failed. It is garbage of the collector, which runs here:
        garbage that waits would be most of the memory that is compared."""
        session = heald.Session(graph(*NODES), self.random.choice([PLUGINS, PLUGINS | self.random.choice(CONFIGS)]))
        with self.expecting(PluginError):
            session.run("sync", {"x": self.feed(self.random.choice([1, -9]))})
        del session
        collect()

    def classify_digits(self) -> None:
        if self.digits is None:
            self.digits = heald.load(DIGITS, outputs=["digit", "probabilities"], config=PLUGINS)
        with self.expecting():
            count = self.random.randint(1, 40)
            answers = self.digits(np.zeros((count, 8, 8, 1), np.float32))
            assert answers["digit"].shape == (count,)

    def load_saved_model(self) -> None:
        name = self.random.choice(["tf1", "control_flow", "keras"])
        with self.expecting():
            assert heald.load(SAVED_MODELS / name / "model", config=PLUGINS).placement()

    def run_program(self) -> None:
        if self.host is None:
            self.host = heald.HostContext(config=PLUGINS)
        request = heald.RequestContext(self.host, trace=self.random.random() < 0.2)
        with self.expecting():
            results = self.program.run("main", self.random.randint(-9, 9), request=request)
            if self.random.random() < 0.2:
                request.cancel()
            assert self.host.await_values(results, timeout=60)

    def fork(self) -> None:
        """A process that forks while it has a session and threads of its own."""
        with self.expecting():
            done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False,
                                  timeout=120, env=os.environ | {"PYTHONPATH": str(HERE)})
            assert done.returncode == 0, done.stderr

    def settle(self, least: Held | None = None) -> Held:
        """Close everything and count. Threads that end get a moment: until the counts stay, or come down to `least`."""
        for session in self.sessions:
            session.close()
        if self.host is not None:
            self.host.close()
        self.sessions, self.host, self.digits = [], None, None
        collect()
        trim()
        memory, end = Held.now(), time.monotonic() + MOST_WAIT
        before = None
        while time.monotonic() < end and (memory.counts != before if least is None else has_more(memory, least)):
            time.sleep(0.2)
            before, memory = memory.counts, Held.now()
        return memory


def has_more(after: Held, before: Held) -> bool:
    """Threads of Python, or files: those of libraries stay."""
    return after.threads > before.threads or after.files > before.files


def trim() -> None:
    """Give free memory back to the system, where the C library can: what is held is what is left."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in MALLINFO]


def heap() -> int:
    """Bytes that are allocated from the C library, which keeps more; 0 where it does not tell (before glibc 2.33)."""
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None:
        return 0
    tell.restype = _MallInfo
    state = tell()
    return int(state.uordblks + state.hblkhd)


def _program() -> heald.HostProgram:
    """A host program that adds, divides and fails in part."""
    body = Body("i32")
    total = body("tfrt.add.i32", 0, body.constant(3))
    failure = body("test.fail", total)
    return program(body.function("main", total, failure))


DEEDS: dict[Callable[[Soak], None], int] = {  # by how often, of each other
    Soak.run_any_fetches: 200, Soak.run_a_callable: 100, Soak.fail: 60, Soak.ask_for_nonsense: 30, Soak.cancel: 60,
    Soak.run_out_of_time: 40, Soak.use_variable_and_queue: 30, Soak.run_in_threads: 30, Soak.close: 12, Soak.drop: 6,
    Soak.classify_digits: 60, Soak.load_saved_model: 4, Soak.run_program: 60, Soak.fork: 1,
}


def soak(seconds: float, seed: int) -> int:
    """Run deeds for so long. Returns the exit status."""
    this, started, rows = Soak(seed), time.monotonic(), 0.0
    warm_up = min(WARM_UP, seconds / 3)
    baseline: Held | None = None
    middle: Held | None = None
    threading.excepthook = lambda args: this.stray.append(f"{args.exc_type.__name__}: {args.exc_value}")
    sys.unraisablehook = lambda args: this.stray.append(f"{args.exc_type.__name__}: {args.exc_value}")
    for step in lasting(seconds, 2 * len(DEEDS), "soak"):
        deed = list(DEEDS)[step] if step < len(DEEDS) else this.random.choices(*zip(*DEEDS.items(), strict=True))[0]
        try:
            deed(this)
            assert not this.stray, this.stray
        except Exception as error:
            tqdm.write(f"seed {seed}, step {step}, {deed.__name__}: {type(error).__name__}: {error}")
            raise
        elapsed = time.monotonic() - started
        if baseline is None and elapsed >= warm_up and step >= len(DEEDS) - 1:
            baseline = this.settle()
        if middle is None and baseline is not None and elapsed >= seconds / 2:
            middle = this.settle(baseline)
        if elapsed >= rows:
            tqdm.write(row(elapsed, this, Held.now()))
            rows = elapsed + ROW_EVERY
    end = this.settle(baseline)
    tqdm.write(row(time.monotonic() - started, this, end))
    baseline, middle = baseline or end, middle or end  # of a few seconds on a busy machine
    wrong = verdict(baseline, middle, end, judges_memory=warm_up >= LONG_ENOUGH)
    print(tabulate([["baseline", *baseline], ["middle", *middle], ["end", *end]], headers=["", *Held._fields]))
    if wrong:
        print("threads:", ", ".join(sorted(thread.name for thread in threading.enumerate())))
    print("\n".join(wrong) or "nothing was left behind")
    return bool(wrong)


def row(elapsed: float, this: Soak, memory: Held) -> str:
    errors = ", ".join(f"{count} {name}" for name, count in sorted(this.errors.items())) or "no errors"
    return (f"{elapsed:6.0f} s  {this.runs:8} runs  {memory.memory / 1e6:7.1f} MB  {memory.objects:8} objects  "
            f"{memory.threads}/{memory.system_threads} threads  {memory.files} files  {errors}")


def verdict(before: Held, middle: Held, after: Held, *, judges_memory: bool) -> list[str]:
    """The ways in which the process holds more than before. After a short warm-up only files and Python's threads
    count: the libraries' own threads come with the first large run."""
    counted = zip(("threads", "system_threads", "files"), before.counts, after.counts, strict=True)
    wrong = [f"{name}: {now}, {then} at the baseline" for name, then, now in counted
             if now > then and (judges_memory or name != "system_threads")]
    if judges_memory:
        if after.heap > before.heap + max(LEAST, before.heap * GROWTH):
            wrong.append(f"heap: {after.heap}, {before.heap} at the baseline")
        if after.blocks > before.blocks * (1 + GROWTH):
            wrong.append(f"blocks: {after.blocks}, {before.blocks} at the baseline")
        if after.memory > middle.memory * (1 + GROWTH):
            wrong.append(f"memory: {after.memory} bytes, {middle.memory} in the middle")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=30.0)
    length.add_argument("--seconds", type=float, help="a short form, which does not judge memory")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("error")
    seconds = 60 * options.minutes if options.seconds is None else options.seconds
    return soak(seconds, options.seed)


if __name__ == "__main__":
    sys.exit(main())
