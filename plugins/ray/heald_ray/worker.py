"""Worker: one task of a cluster. It runs its part of each step on devices of its own process.

A worker knows neither its engine nor its caller. The engine calls its methods from several threads, and hands it a
function that sends a message to another worker.
"""

# The theory of a worker
#
# - One session has the worker's whole graph, so variables live as long as the worker.
# - Tensors of a step may arrive before the step starts here. `_meetings` keeps them by step.
# - A worker that has started again refuses steps until it is renewed: it may lack nodes, and all variables.
# - A step id is used once. `_finished` and `_oldest` remember ids, so a repeated call is refused and never runs twice.
# - A part of a step ends after the answers to its messages. So no message is lost by a worker that dies afterwards.
# - The caller tells the oldest step in flight with each step. Messages of older steps are dropped: their step is over.

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import heald
from heald.api import Graph, RendezvousKey, install_hint
from heald.errors import (
    Cancelled,
    FailedPrecondition,
    HealdError,
    Internal,
    Unavailable,
    describe_exception,
)
from heald.runtime.host import LocalRendezvous

from .sent_config import config_without_remap, unpack_config
from .task_graphs import task_name
from .tensor_message import Message, pack_error, pack_tensors, unpack_error, unpack_tensors
from .trace_message import pack_trace
from .wave_rendezvous import WaveRendezvous

# Sends a call (task, method, arguments) at once, and returns its answer. A dead worker's answer is Unavailable.
Post = Callable[[int, str, tuple[Any, ...]], Future[Any]]


class Worker:
    """One task. `graph`: the bytes of its GraphDef. `config`: the session's config, as `pack_config` returns it.

    `start`: counts the starts of this task; a later one has lost the variables of the earlier.
    """

    def __init__(self, task: int, graph: bytes, config: str, post: Post, start: int = 1) -> None:
        self._task, self._post, self._start = task, post, start
        self._graph: Graph = heald.graphdef.loads(graph)
        self._session: Any = heald.Session(self._graph, config_without_remap(unpack_config(config)), target="local")
        self._lock = threading.Lock()
        self.meetings: dict[int, LocalRendezvous] = {}
        self.tokens: dict[int, heald.CancelToken] = {}
        self._finished: set[int] = set()
        self._oldest = 0
        self._callables: dict[bytes, Any] = {}
        self._traces: dict[int, bytes] = {}
        self._lifeline = threading.Event()
        self._is_renewed = start == 1
        self._loss = "its variables are uninitialised"

    def live(self) -> None:
        """Return when a later lifeline is attached or the worker closes. A dead worker never answers."""
        with self._lock:
            self._lifeline.set()
            lifeline = self._lifeline = threading.Event()
        lifeline.wait()

    def run(self, step: int, oldest: int, plan: bytes, feeds: Message, timeout: float | None) -> list[Any]:
        """Run this worker's part of a step. Return [True, message of fetches] or [False, error]."""
        return self._run_part(step, oldest, plan, feeds, heald.RunOptions(timeout=timeout))

    def run_traced(self, step: int, oldest: int, plan: bytes, feeds: Message, timeout: float | None) -> list[Any]:
        """As `run`. Return [True, [message of fetches, message of the trace]] or [False, error]."""
        options = heald.RunOptions(timeout=timeout, trace=True)
        succeeded, result = self._run_part(step, oldest, plan, feeds, options)
        trace = self._traces.pop(step, b"")
        return [succeeded, [result, trace] if succeeded else result]

    def _run_part(self, step: int, oldest: int, plan: bytes, feeds: Message, options: Any) -> list[Any]:
        try:
            meeting, token = self._begin(step, oldest)
        except HealdError as error:
            return [False, pack_error(self._with_worker_name(error))]
        try:
            return [True, pack_tensors(self._run(step, plan, feeds, options, meeting, token))]
        except HealdError as error:
            return [False, pack_error(self._with_worker_name(error))]
        except Exception as error:  # noqa: BLE001 - an engine would send the exception as a pickle
            return [False, pack_error(self._with_worker_name(Internal(describe_exception(error))))]
        finally:
            self._end(step)

    def deliver(self, step: int, keys: list[str], tensors: Message) -> None:
        """Receive the tensors of one wave from another worker."""
        with self._lock:
            meeting = self._meeting(step)
        if meeting is None:
            return
        for key, tensor in zip(keys, unpack_tensors(tensors), strict=True):
            try:
                meeting.send(RendezvousKey.parse(key), tensor, tensor is None)
            except HealdError:
                return  # the step has ended in the meantime

    def abort(self, step: int, error: bytes) -> None:
        """End a step by the error of another worker or of the caller."""
        with self._lock:
            meeting, token = self._meeting(step), self.tokens.get(step)
        if meeting is not None:
            meeting.abort(unpack_error(error))
        if token is not None:
            token.cancel()

    def extend(self, graph: bytes) -> list[Any]:
        """Replace the graph by one with more nodes and functions. A graph without more changes nothing."""
        extended_graph = heald.graphdef.loads(graph)
        nodes = [node for node in extended_graph if node.name not in self._graph]
        functions = [function for name, function in extended_graph.functions.items()
                     if name not in self._graph.functions]
        self._graph = extended_graph
        if not nodes and not functions:
            return [True, None]
        return self._outcome(lambda: self._session.extend(Graph(nodes, functions, versions=extended_graph.versions)))

    def renew(self, graph: bytes, checkpoint: str | None) -> list[Any]:
        """Get the present graph, and restore variables from a checkpoint. A second call, or one to a worker that has
        not started again, changes no variable."""
        outcome = self.extend(graph)
        if outcome[0] and not self._is_renewed and checkpoint is not None:
            self._loss = self._restore(checkpoint)
        self._is_renewed = True
        return outcome

    def _restore(self, checkpoint: str) -> str:
        """Restore variables. Return what a missing variable's error says."""
        try:
            from heald_saved_model.checkpoint_restore import restore_variables

            restore_variables(self._session, checkpoint)
        except ModuleNotFoundError as error:
            return f"its variables are uninitialised: {error}; {install_hint('heald-saved-model')}"
        except HealdError as error:
            return f"its variables are uninitialised, because the checkpoint was not restored: {error}"
        return f"the checkpoint '{checkpoint}' lacks this variable"

    def reset(self, containers: list[str]) -> list[Any]:
        return self._outcome(lambda: self._session.reset(containers))

    def placement(self) -> list[Any]:
        """Return [True, rows], a row for each node: device, reason and error."""
        return self._outcome(lambda: {name: [row.device, row.reason, None if row.error is None else
                                             pack_error(row.error).decode()]
                                      for name, row in self._session.placement().items()})

    def partitions(self, plan: bytes) -> list[Any]:
        """Return [True, graphs], the bytes of the graph of each device of this worker."""
        feeds, fetches, targets, _ = json.loads(plan)
        return self._outcome(lambda: {device: heald.graphdef.dumps(part) for device, part in
                                      self._session.partitions(fetches, feeds, targets).items()})

    def close(self) -> None:
        self._lifeline.set()
        self._session.close()

    def _begin(self, step: int, oldest: int) -> tuple[LocalRendezvous, heald.CancelToken]:
        """Register a step. Raises FailedPrecondition for an id that this worker has seen."""
        with self._lock:
            if not self._is_renewed:
                raise Unavailable("the worker has started again, and has no state yet")
            if step < self._oldest or step in self._finished or step in self.tokens:
                raise FailedPrecondition(f"step {step} was run before: a step runs at most once")
            self._oldest = max(self._oldest, oldest)
            self._finished = {number for number in self._finished if number >= self._oldest}
            self.meetings = {number: meeting for number, meeting in self.meetings.items() if number >= self._oldest}
            meeting = self._meeting(step)
            assert meeting is not None
            token = self.tokens[step] = heald.CancelToken()
            return meeting, token

    def _meeting(self, step: int) -> LocalRendezvous | None:
        """Return the rendezvous of a step that is not over. The lock is held."""
        if step < self._oldest or step in self._finished:
            return None
        return self.meetings.setdefault(step, LocalRendezvous())

    def _end(self, step: int) -> None:
        with self._lock:
            self._finished.add(step)
            self.tokens.pop(step, None)
            meeting = self.meetings.pop(step, None)
        if meeting is not None:
            meeting.abort(Cancelled("the step has ended"))

    def _run(
        self, step: int, plan: bytes, feeds: Message, options: Any, meeting: LocalRendezvous,
        token: heald.CancelToken,
    ) -> list[Any]:
        names_fed, fetches, targets, waves = json.loads(plan)
        answers: list[Future[Any]] = []
        rendezvous = WaveRendezvous(meeting, waves, lambda task, keys, arrays: answers.append(self._post(
            task, "deliver", (step, keys, pack_tensors(arrays)))))
        with self._session.limited_step(options._replace(cancel=token), lambda: rendezvous) as within:
            run = self._callables.get(plan)
            if run is None:
                run = self._session.callable_within(within, fetches, names_fed, targets)
                self._callables[plan] = run
            results: list[Any] = run(*unpack_tensors(feeds), options=within)
        if within.trace is not None:
            self._traces[step] = pack_trace(within.trace)
        _wait_for_answers(answers, token)
        return results

    def _outcome(self, work: Callable[[], Any]) -> list[Any]:
        try:
            return [True, work()]
        except HealdError as error:
            return [False, pack_error(self._with_worker_name(error))]

    def _with_worker_name(self, error: HealdError) -> HealdError:
        """Return the error with the worker's name. After a restart a missing variable has the reason as its hint."""
        device = error.device or ""
        if not device.startswith("/job:"):
            error.device = f"{task_name(self._task)}/device:{device}" if device else task_name(self._task)
        if self._start > 1 and isinstance(error, FailedPrecondition):
            error.hint = f"{task_name(self._task)} was restarted, and {self._loss}: run the initialisers again"
        return error


def _wait_for_answers(answers: Sequence[Future[Any]], token: heald.CancelToken) -> None:
    """Wait for the answers to messages. Raises Unavailable for a dead worker, Cancelled for an aborted step."""
    done: SimpleQueue[Future[Any] | None] = SimpleQueue()
    number = token.on_cancel(lambda: done.put(None))
    for answer in answers:
        answer.add_done_callback(done.put)
    try:
        for _ in answers:
            next_answer = done.get()
            if next_answer is None:
                raise Cancelled("the step was aborted")
            next_answer.result()
    finally:
        token.forget(number)
