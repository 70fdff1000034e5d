"""A worker as the parent sees it: a process that is started again when it dies, by a thread of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol

from heald.errors import HealdError

from ..models.model_config import ModelConfig
from ..settings import Settings
from .channel import Channel, channel_pair
from .pulse import Silence
from .restart_policy import RestartPolicy

PROGRAM = (sys.executable, "-P", "-m", "heald_serve.workers.worker")
LAST_SECONDS = 5.0  # of a process that has left its channel


class Parent(Protocol):
    """The methods that a worker's thread calls. `ending` is set when no worker starts again."""

    ending: threading.Event

    def settings(self) -> Settings:
        """The settings of a worker that starts now, with the last list of models."""

    def known_models(self) -> Sequence[ModelConfig]:
        """The models that are, or were, in the list."""

    def on_ready(self, worker: WorkerProcess) -> None: ...

    def on_failure(self, worker: WorkerProcess, error: HealdError) -> None: ...

    def on_death(self, worker: WorkerProcess, status: int) -> None: ...

    def on_last_death(self, worker: WorkerProcess, status: int) -> None: ...

    def beats_of(self, worker: WorkerProcess) -> Mapping[Any, float]:
        """The counts of the worker's event loops."""

    def on_silence(self, worker: WorkerProcess, seconds: float) -> None: ...

    def ask_workers(self, method: str, *arguments: Any) -> list[Any]: ...


class WorkerProcess:
    """`files`: descriptors of the shared counts, of which the one at `index` is this worker's.

    `models`: the list of models that the worker has got. `is_ready`: it serves, and its pulse is watched.
    """

    def __init__(
        self, index: int, parent: Parent, files: Sequence[int], questions: Executor, policy: RestartPolicy,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.index, self.is_ready = index, False
        self.models: Sequence[ModelConfig] = ()
        self.channel: Channel | None = None
        self._parent, self._files, self._questions, self._program = parent, files, questions, program
        self._policy = policy
        self._process: subprocess.Popen[bytes] | None = None
        self._silence, self._most_silence = Silence(), 0.0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"heald-serve-worker-{index}", daemon=True)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        is_restart = False
        while self._run_one_life(is_restart=is_restart):
            is_restart = True

    def _run_one_life(self, *, is_restart: bool) -> bool:
        """One life of the process. Returns True when another one follows."""
        start = monotonic()
        with self._lock:
            if self._parent.ending.is_set():
                return False
            process, channel = self._spawn()
        settings = self._parent.settings()
        self.models = settings.models
        self._silence, self._most_silence = Silence(), settings.silence_seconds
        channel.tell("start", settings, self._parent.known_models(), is_restart)
        channel.serve(self._watch)
        status = self._reap(process)
        self.is_ready = False
        if self._parent.ending.is_set():
            return False
        seconds = self._policy.wait_after(monotonic() - start)
        if seconds is None:
            self._parent.on_last_death(self, status)
            return False
        self._parent.on_death(self, status)
        return not self._parent.ending.wait(seconds)

    def _watch(self) -> None:
        """Kill the process when it hangs. Its channel then ends, and it starts again as any dead one."""
        if not self.is_ready or not self._most_silence or self._parent.ending.is_set():
            return
        seconds = self._silence.after(self._parent.beats_of(self))
        if seconds > self._most_silence:
            self.is_ready = False
            self._parent.on_silence(self, seconds)
            self.kill()

    def _begin_end(self) -> None:
        """A loop of a worker that drains may end before the others."""
        if self._most_silence:
            self._most_silence += self._parent.settings().drain_seconds

    def _spawn(self) -> tuple[subprocess.Popen[bytes], Channel]:
        parent_end, worker_end = channel_pair()
        numbers = [worker_end.fileno(), self.index, *self._files]
        with worker_end:
            process = subprocess.Popen([*self._program, *map(str, numbers)],  # noqa: S603 - a program of our own
                                       stdin=subprocess.DEVNULL, pass_fds=(worker_end.fileno(), *self._files))
        channel = Channel(parent_end, {
            "ready": lambda: self._parent.on_ready(self), "ending": self._begin_end,
            "failed": lambda error: self._parent.on_failure(self, error),
            "ask_workers": self._parent.ask_workers}, self._questions)
        self._process, self.channel = process, channel
        return process, channel

    def _reap(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def end(self) -> None:
        """Have the worker drain and end."""
        if self.channel is not None:
            self.channel.tell("end")

    def kill(self) -> None:
        with self._lock, suppress(OSError):
            if self._process is not None:
                self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the worker's thread. Returns False after so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()
