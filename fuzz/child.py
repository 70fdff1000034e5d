"""Child: the parent's end of a worker process. It asks for ranges of mutants and kills a worker that is late."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .outcomes import DEADLINE, OWN_PLUGINS, SIGNAL, TIMEOUT, Outcome
from .samples import MEMORY_FILES

ROOT = Path(__file__).parents[1]
_START_SECONDS = 60.0  # seconds on a busy machine: of a child's imports, of the making of a mutant
_GRACE_SECONDS = 1.0  # seconds beyond the deadline, in which the child itself reports a mutant that was only just late
_DUMP = 0.5  # seconds for the traceback of a late child
_LOG_CHARACTERS = 4000  # characters kept of a child's log
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    "HEALD_LIMITS__MEMORY": "128MiB",
    "HEALD_PLUGINS__ALLOW": json.dumps([*OWN_PLUGINS, "guarded"]),
    "HEALD_PLUGINS__LOAD": json.dumps([str(Path(__file__).with_name("guarded.py"))]),
    "HEALD_ALLOCATOR__NAME": "guarded",
}


class Ended(Exception):
    """The child has ended; `outcome` belongs to the mutant that ended it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.kind)
        self.outcome = outcome


class Child:
    """One worker. `run` and `judge` raise Ended when a mutant ends the worker; only `close` may follow."""

    def __init__(self) -> None:
        self.runs = 0  # mutants judged
        self._folder = tempfile.TemporaryDirectory(prefix="heald-fuzz-", dir=MEMORY_FILES, ignore_cleanup_errors=True)
        self._log: IO[bytes] = open(Path(self._folder.name) / "log", "w+b")  # noqa: PTH123, SIM115 - closed below
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HEALD_")} | ENVIRONMENT
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker", self._folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._log, env=environment, cwd=self._folder.name, start_new_session=True)
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._pipe, selectors.EVENT_READ)
        self._unread = b""
        try:
            self._line(_START_SECONDS)
        except Ended as end:
            raise RuntimeError(f"a child did not start: {end.outcome.text}") from None

    def run(self, target: str, seed: int, first: int, stop: int) -> Iterator[tuple[int, Outcome]]:
        """The outcomes of mutants [first, stop), as they come. Raises Ended."""
        return self._ask([target, seed, first, stop])

    def judge(self, target: str, data: bytes) -> Outcome:
        """The outcome of a sample in its form as one file. Raises Ended."""
        file = Path(self._folder.name, "sample")
        file.write_bytes(data)
        ((_, outcome),) = self._ask([target, str(file)])
        return outcome

    def _ask(self, request: list[object]) -> Iterator[tuple[int, Outcome]]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        while json.loads(self._line(_START_SECONDS)):  # a mutant is made
            number, *outcome = json.loads(self._line(DEADLINE + _GRACE_SECONDS))
            self.runs += 1
            yield number, Outcome(*outcome)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._ready.close()
        for pipe in (self._process.stdin, self._pipe, self._log):
            if pipe is not None:
                pipe.close()
        self._folder.cleanup()

    def _line(self, seconds: float) -> bytes:
        """The next line, within so many seconds."""
        until = time.monotonic() + seconds
        while b"\n" not in self._unread:
            if not self._ready.select(max(0.0, until - time.monotonic())):
                raise Ended(self._late())
            some = os.read(self._pipe.fileno(), 1 << 16)
            if not some:
                raise Ended(self._died())
            self._unread += some
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _late(self) -> Outcome:
        """Kill a late child, after it has written its traceback."""
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(_DUMP)
        self._process.kill()
        text = self._last_words()
        frames = [line.strip() for line in text.splitlines() if line.startswith("  File") and "/fuzz/" not in line]
        return Outcome(TIMEOUT, " < ".join(_short(line) for line in frames[:3]), text)

    def _died(self) -> Outcome:
        code = self._process.wait()
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        text = self._last_words()
        frames = [line.strip() for line in text.splitlines() if line.startswith("  File")]
        return Outcome(SIGNAL, " < ".join([name, *(_short(line) for line in frames[:2])]), text)

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")[-_LOG_CHARACTERS:]


def _short(line: str) -> str:
    """`  File "/a/b.py", line 3 in f` as `b.py:f`."""
    file, _, tail = line.partition('", line ')
    return f"{file.rpartition('/')[2]}:{tail.partition(' in ')[2]}"
