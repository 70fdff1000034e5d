"""A plugin of the tests alone: objects of hooks, each with one fault that the conformance suite must find."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import numpy as np
from heald.api import AllocatorStats, Graph, Node, errors, hookimpl
from heald.runtime.contract.allocator import PlainAllocator
from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue
from plugins_for_tests.plugin_of_formats import ScaleSource

HEALD_API = (1, 3)
QUEUES = {}  # by name: a class
ALLOCATORS = {}
LOADERS = {}  # by name: an object


class Queue(MultiThreadedWorkQueue):
    def __init__(self, config):
        super().__init__(config.threads or 2)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        QUEUES[cls.__name__] = cls


class Allocator(PlainAllocator):
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        ALLOCATORS[cls.__name__] = cls


LARGEST_OF_THE_TRIAL, READS_OF_THE_TRIAL = 4097, 3  # an object that is made has passed a trial: its faults come later


class SaysNothingOfThreads(Queue):
    reads = 0

    @property
    def parallelism_level(self):
        self.reads += 1
        return 1 if self.reads <= READS_OF_THE_TRIAL else 0

    @parallelism_level.setter
    def parallelism_level(self, level):
        pass


class LosesATask(Queue):
    count = 0

    def add_task(self, task, /):
        self.count += 1
        if self.count != 50:
            super().add_task(task)


class DoublesATask(Queue):
    count = 0

    def add_task(self, task, /):
        self.count += 1
        for _ in range(1 + (self.count == 50)):
            super().add_task(task)


class RunsTasksItself(Queue):
    def add_task(self, task, /):
        task()


class DropsTasksOfTasks(Queue):
    def add_task(self, task, /):
        if threading.current_thread() in _callers(self):
            super().add_task(task)


class IsQuietTooEarly(Queue):
    def quiesce(self, timeout=None):
        return True


class AnswersTooEarly(Queue):
    def await_values(self, values, /, timeout=None):
        return True


class PollsSeldom(Queue):
    def await_values(self, values, /, timeout=None):
        values = list(values)
        time.sleep(0.4)
        return super().await_values(values, timeout)


class ForgetsTimeouts(Queue):
    def await_values(self, values, /, timeout=None):
        return super().await_values(values)


class BlocksForAll(Queue):
    def __init__(self, config):
        super().__init__(config)
        self.one_at_a_time = threading.Lock()

    def add_task(self, task, /):
        def run():
            with self.one_at_a_time:
                task()

        super().add_task(run)

    def add_blocking_task(self, task, /, allow_queuing):
        self.add_task(task)
        return True


class RefusesAndRuns(Queue):
    def add_blocking_task(self, task, /, allow_queuing):
        return super().add_blocking_task(task, allow_queuing) and allow_queuing


class HidesErrors(Queue):
    def add_task(self, task, /):
        def run():
            with suppress(ZeroDivisionError):
                task()

        super().add_task(run)


class WaitsForItself(Queue):
    def await_values(self, values, /, timeout=None):
        return all(value.is_available() for value in values)


class TakesTasksWhenClosed(Queue):
    def add_task(self, task, /):
        with suppress(errors.FailedPrecondition):
            super().add_task(task)


class FinishesBeforeItCloses(Queue):
    def close(self):
        self.quiesce()
        super().close()


class LeavesThreads(Queue):
    def add_blocking_task(self, task, /, allow_queuing):
        threading.Thread(target=time.sleep, args=(1.5,), daemon=True).start()
        return super().add_blocking_task(task, allow_queuing)


class HangsInAChild(Queue):
    def quiesce(self, timeout=None):
        try:
            return super().quiesce(timeout)
        except errors.FailedPrecondition:
            time.sleep(2)
            raise


class IsTooShort(Allocator):
    def allocate(self, nbytes, alignment=64):
        return super().allocate(max(nbytes - (nbytes > LARGEST_OF_THE_TRIAL), 0), alignment)


class GivesFloats(Allocator):
    def allocate(self, nbytes, alignment=64):
        buffer = super().allocate(nbytes, alignment)
        return buffer if nbytes <= LARGEST_OF_THE_TRIAL else buffer.astype(np.float32)


class GivesReadOnly(Allocator):
    def allocate(self, nbytes, alignment=64):
        buffer = super().allocate(nbytes, alignment)
        buffer.flags.writeable = nbytes <= LARGEST_OF_THE_TRIAL
        return buffer


class ForgetsAlignment(Allocator):
    def allocate(self, nbytes, alignment=64):
        odd = nbytes > LARGEST_OF_THE_TRIAL
        return super().allocate(nbytes + odd, 64 if odd else alignment)[odd:]


class GivesMemoryTwice(Allocator):
    def __init__(self):
        super().__init__()
        self.arena, self.calls = super().allocate(1 << 22), 0

    def allocate(self, nbytes, alignment=64):
        self.calls += 1
        start = -self.arena.ctypes.data % alignment + self.calls % 7 * 4096
        return self.arena[start : start + nbytes] if start + nbytes <= 1 << 22 else super().allocate(nbytes, alignment)


class TakesBackWhatIsUsed(Allocator):
    """Memory goes to the next request as soon as the whole buffer is gone, and not the last array over it."""

    def __init__(self):
        super().__init__()
        self.memory = super().allocate(1 << 14)

    def allocate(self, nbytes, alignment=64):
        return self.memory[:nbytes] if nbytes == 5000 else super().allocate(nbytes, alignment)


class TakesBackTwice(Allocator):
    def __init__(self):
        super().__init__()
        self.idle = []

    def allocate(self, nbytes, alignment=64):
        return self.idle.pop() if nbytes == 5000 and self.idle else super().allocate(nbytes, alignment)

    def deallocate(self, buffer):
        if buffer.nbytes == 5000:
            self.idle.append(buffer)


class RaisesMemoryError(Allocator):
    def allocate(self, nbytes, alignment=64):
        try:
            return super().allocate(nbytes, alignment)
        except errors.ResourceExhausted:
            raise MemoryError from None


class IgnoresItsLimit(Allocator):
    def stats(self):
        return AllocatorStats(limit=1 << 20)


class NeverCountsBack(Allocator):
    used = 0

    def allocate(self, nbytes, alignment=64):
        self.used += nbytes
        return super().allocate(nbytes, alignment)

    def stats(self):
        return AllocatorStats(in_use=self.used)


class HasNoFigures(Allocator):
    count = 0

    def stats(self):
        self.count += 1
        return super().stats() if self.count == 1 else None


class IsForOneThread(Allocator):
    def __init__(self):
        super().__init__()
        self.owner = threading.get_ident()

    def allocate(self, nbytes, alignment=64):
        if threading.get_ident() != self.owner:
            raise RuntimeError("another thread's allocator")
        return super().allocate(nbytes, alignment)


def _all_nodes(graph, change):
    return Graph([change(node) for node in graph])


def loses_what_is_kept(graph, context):
    return Graph([node for node in graph if node.op == "Const" and node.name not in context.kept])


def takes_neg_for_abs(graph, context):
    return _all_nodes(graph, lambda node: node.replace(op="Abs") if node.op == "Neg" else node)


def adds_at_each_run(graph, context):
    return Graph([*graph, Node(f"more{len(graph.nodes)}", "NoOp")])


def counts_its_runs(graph, context):
    _runs.append(graph)
    return Graph([*graph, Node(f"run{len(_runs)}", "NoOp")])


def writes_to_constants(graph, context):
    for node in graph:
        if node.op == "Const":
            array = node.attrs["value"].array()
            array.flags.writeable = True
            array.reshape(-1)[:1] += 1
    return graph


def replaces_ops(graph, context):
    """It says to preserve them."""
    return _all_nodes(graph, lambda node: node.replace(op="StopGradient") if node.op == "Identity" else node)


def never_ends(graph, context):
    time.sleep(2)
    return graph


PASSES = (loses_what_is_kept, takes_neg_for_abs, adds_at_each_run, counts_its_runs, writes_to_constants, replaces_ops,
          never_ends)
_runs = []


@hookimpl
def heald_passes(registry):
    for function in PASSES:
        registry.add(function.__name__, function, stage="on_request", preserves="everything but these attributes")


class Loader:
    """Reads files "broken NAME 3": NAME is the class's."""

    source = ScaleSource

    def __init_subclass__(cls, **options):
        LOADERS[cls.__name__] = cls()

    def recognise(self, path, head):
        return head.startswith(f"broken {type(self).__name__} ".encode())

    def open(self, path, options):
        return self.source(path, options.signature)


class IsRecognisedTwice(Loader):
    pass


class TakesText(Loader):
    def recognise(self, path, head):
        return super().recognise(path, head) or head.startswith(b"hello")


class ReadsTheFile(Loader):
    def recognise(self, path, head):
        if not super().recognise(path, head):
            return False
        with path.open("rb") as file:
            return bool(file.read(8 << 20))


class DescribesNothing(Loader):
    class source(ScaleSource):  # noqa: N801 - an attribute
        def describe(self):
            return None


class ReadsWeights(Loader):
    class source(ScaleSource):  # noqa: N801 - an attribute
        def describe(self):
            return super().describe() if self.path.read_bytes() else None


class NamesNoTensor(Loader):
    class source(ScaleSource):  # noqa: N801 - an attribute
        def graph(self):
            return Graph([node for node in super().graph() if node.name != "y"])


class TakesAnySignature(Loader):
    def open(self, path, options):
        return self.source(path, "scaled")


class StartsANodeThatIsNotThere(Loader):
    class source(ScaleSource):  # noqa: N801 - an attribute
        def initial_state(self):
            return [super(type(self), self).initial_state()[0]._replace(target="nowhere")]


class RaisesValueError(Loader):
    class source(ScaleSource):  # noqa: N801 - an attribute
        def initial_state(self):
            float(self.path.read_text().split()[2])
            return super(type(self), self).initial_state()


class IsBusy(Loader):
    busy = False

    def open(self, path, options):
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        time.sleep(0.05)
        self.busy = False
        return super().open(path, options)


class HasNoGraph(Loader):
    class source(ScaleSource):  # noqa: N801 - an attribute
        def graph(self):
            return None


@hookimpl
def heald_loaders(registry):
    for name, loader in LOADERS.items():
        registry.add(name, loader)
    registry.add("twice", LOADERS["IsRecognisedTwice"])


def _callers(queue):
    return [thread for thread in threading.enumerate() if "heald conformance" in thread.name
            or thread is threading.main_thread()]


@hookimpl
def heald_work_queues(registry):
    for name, factory in QUEUES.items():
        registry.add(name, factory)
    registry.add("HasNoMethods", lambda config: object())


@hookimpl
def heald_allocators(registry):
    for name, factory in ALLOCATORS.items():
        registry.add(name, factory)
    registry.add("IsNoAllocator", object)
