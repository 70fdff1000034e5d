"""Partial runs: a step whose feeds and fetches come in several calls, each node running at most once.

The step starts at the setup, event-driven, with a pending AsyncValue for each feed. Tasks of the work queue drive it.
A call is refused where TensorFlow's `Session.partial_run` refuses it.

A partial run is linked for the shapes that placeholders declare, since the feeds' own shapes come too late. Kernels on
host memory bind in the run where shapes are unknown. A device that needs static shapes refuses such a step at its
setup.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from ...errors import Cancelled, HealdError, InvalidArgument
from ...runtime.contract.structural import PLACEHOLDERS
from ...runtime.executor.executable import Executable
from ...runtime.executor.host_array import plain_integers
from ...runtime.executor.step import Step
from ...runtime.host.host_memory import HostMemory
from ...runtime.service.feeds import convert_feed
from ...runtime.support.fork_safety import inherited
from ...runtime.support.kernel_errors import as_heald_error
from ...runtime.values.async_value import AsyncValue, failed
from ...runtime.values.tensor import TensorMetadata
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved
from .function_compiler import StepSignature
from .graph_placement import Nodes

_numbers = count(1)  # of handles, which no other session of the process has


class PartialStep(Step):
    """A step that work queue tasks drive to its end. `over` becomes available then, or has the step's error."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.over = AsyncValue()
        super().__init__(*args, **options)

    def close(self) -> None:
        error = self.error
        super().close()
        if self.over.is_available():
            return
        if error is None:
            self.over.emplace(None)
        else:
            self.over.set_error(error)


class PartialRun:
    """One partial run, from its setup to its last feed and fetch. Several threads may call it."""

    def __init__(self, signature: StepSignature, nodes: Nodes, executable: Executable, step: PartialStep) -> None:
        self._signature = signature
        self._nodes = nodes
        self._step = step
        self._lock = threading.Lock()
        self._feeds = {fed: AsyncValue() for fed in signature.fed}  # feeds that have yet to come
        self._fed: set[Tensor] = set()
        self._fetched: set[Tensor] = set()
        self._needs: dict[Tensor, frozenset[Tensor]] = {}  # fetch -> the feeds that it needs
        feed_values = [*self._feeds.values()]
        self._results = dict(zip(signature.fetched, self._start(executable, feed_values), strict=True))
        inherited.add(self)

    def _start(self, executable: Executable, feed_values: Sequence[AsyncValue]) -> list[AsyncValue]:
        """Start the step and return its results. An error of calls without feeds becomes all results."""
        step = self._step
        try:
            return executable.start(feed_values, step)
        except Exception as error:  # noqa: BLE001 - the call that fetches a result raises it
            step.cancel(as_heald_error(error, "a partial run"))
            return [failed(step.end_error()) for _ in executable.function.results]
        except BaseException:
            step.cancel(Cancelled("the run was interrupted"))
            raise
        finally:
            step.detach()

    def start_call(
        self, feeds: Mapping[Tensor, tuple[str, Any]], fetches: Mapping[Tensor, str], memory: HostMemory
    ) -> bool:
        """Check one call, and give its feeds to the step. Returns True when no feed and no fetch is left.

        `feeds`: tensor to the user's name and value.
        `fetches`: tensor to the user's name.

        Raises InvalidArgument for feeds and fetches that TensorFlow refuses, too; the partial run then goes on.
        """
        arrays = {fed: _copy_of_feed(value, self._metadata_of_feed(fed, name), name, memory)
                  for fed, (name, value) in feeds.items()}
        with self._lock:
            for fed, (name, _) in feeds.items():
                if fed in self._fed:
                    raise _refusal(f"the feed '{name}' has already been fed", fed)
            for fetch, name in fetches.items():
                if fetch not in self._results:
                    raise _refusal(f"the fetch '{name}' was not specified in partial_run_setup", fetch)
                if fetch in self._fetched:
                    raise _refusal(f"the fetch '{name}' has already been fetched", fetch)
            for fetch, name in fetches.items():
                self._check_fetch(fetch, name, self._fed.union(feeds))
            self._fed.update(feeds)
            self._fetched.update(fetches)
            is_last = len(self._fed) == len(self._signature.fed) and len(self._fetched) == len(self._results)
        for fed, array in arrays.items():
            self._feeds.pop(fed).emplace(array)
        return is_last

    def _metadata_of_feed(self, fed: Tensor, name: str) -> TensorMetadata:
        meta = self._signature.fed.get(fed)
        if meta is None:
            raise _refusal(f"the feed '{name}' was not specified in partial_run_setup", fed)
        return meta

    def _check_fetch(self, fetch: Tensor, name: str, fed: set[Tensor]) -> None:
        """Raises InvalidArgument for a fetch that needs feeds which were not given."""
        if fetch not in self._needs:
            self._needs[fetch] = _needed_feeds(self._nodes, self._signature.fed, fetch)
        if missing := sorted(f"'{node}:{index}'" for node, index in self._needs[fetch] - fed):
            raise InvalidArgument(f"fetch '{name}' can't be computed from the feeds that have been fed so far",
                                  node=fetch[0], hint=f"you must feed a value for {', '.join(missing)} first")

    def finish_call(self, fetches: Mapping[Tensor, str], *, is_last: bool) -> list[Any]:
        """Wait for the values of these fetches, after the last call for the whole step.

        Raises the step's error, and InvalidArgument for a dead value. The step then ends.
        """
        values = [self._results[fetch] for fetch in fetches]
        self._step.workers.work_queue.await_values([*values, self._step.over] if is_last else values)
        for fetch, value in zip(fetches, values, strict=True):
            if value.is_dead():
                raise InvalidArgument(f"the fetched tensor '{fetches[fetch]}' is dead: control flow did not take its "
                                      "branch", node=fetch[0], hint="fetch what a Merge makes of it")
        arrays = [plain_integers(value.get()) for value in values]
        if is_last:
            self._step.over.get()
        return arrays

    def cancel(self, error: HealdError) -> None:
        """End the step; a call that waits raises this error."""
        self._step.cancel(error)

    def forked(self) -> None:
        self._lock = threading.Lock()


class PartialRuns:
    """The partial runs of a session that have not ended, by handle."""

    def __init__(self) -> None:
        self._runs: dict[str, PartialRun] = {}

    def add(self, run: PartialRun) -> str:
        handle = f"partial_run_{next(_numbers)}"
        self._runs[handle] = run
        return handle

    def run(
        self, handle: str, fetches: Sequence[str], feeds: Mapping[str, Any], memory: HostMemory,
        tensor: Callable[[str, str], Tensor],
    ) -> list[Any]:
        """Do one call and return the fetched arrays.

        `tensor(name, role)`: resolves a name of a "feed" or "fetch".

        The partial run ends with its last feed and fetch, and when a call fails that passed all checks.
        """
        run = self._runs.get(handle) if isinstance(handle, str) else None
        if run is None:
            raise InvalidArgument(f"there is no partial run {handle!r}: it has ended, or partial_run_setup did not "
                                  "return it", hint="handle = session.partial_run_setup(fetches, feeds)")
        feed_values: dict[Tensor, tuple[str, Any]] = {}
        for name, value in feeds.items():
            fed = tensor(name, "feed")
            if fed in feed_values:
                raise _refusal(f"tensor '{fed[0]}:{fed[1]}' is fed more than once", fed)
            feed_values[fed] = name, value
        tensors = [tensor(name, "fetch") for name in fetches]
        fetch_names = dict(zip(tensors, fetches, strict=True))
        is_last = run.start_call(feed_values, fetch_names, memory)
        try:
            arrays = dict(zip(fetch_names, run.finish_call(fetch_names, is_last=is_last), strict=True))
        except BaseException:
            self._runs.pop(handle, None)
            run.cancel(Cancelled("another call of this partial run has failed"))
            raise
        if is_last:
            self._runs.pop(handle, None)
        return [arrays[fetch] for fetch in tensors]

    def close(self) -> None:
        """Forget all partial runs. The session cancels their steps."""
        self._runs.clear()


def _copy_of_feed(value: Any, meta: TensorMetadata, name: str, memory: HostMemory) -> Any:
    """Return a copy of a feed as an array of its tensor's type: the step may read it after the call."""
    array = convert_feed(value, meta, name, memory)
    copy = memory.maker(array.shape, array.dtype, f"feed '{name}'")()
    copy[...] = array
    return copy


def _needed_feeds(nodes: Nodes, fed: Mapping[Tensor, TensorMetadata], fetch: Tensor) -> frozenset[Tensor]:
    """Return the feeds that this fetch is computed from, and fed placeholders that it waits for."""
    if fetch in fed:
        return frozenset((fetch,))
    order = prune(nodes, fed, [fetch], [])
    needed = {source for entry in order for source in entry.inputs if source in fed}
    waits = {control for entry in order for control in entry.node.controls if _is_placeholder(nodes[control])}
    return frozenset(needed | {feed for feed in fed if feed[0] in waits})


def _is_placeholder(entry: Resolved | HealdError) -> bool:
    return isinstance(entry, Resolved) and entry.op.name in PLACEHOLDERS


def _refusal(what: str, tensor: Tensor) -> InvalidArgument:
    return InvalidArgument(what, node=tensor[0])
