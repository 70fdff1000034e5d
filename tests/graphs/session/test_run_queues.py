"""A run that names a work queue uses the threads of that queue, and no other run does."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from harness.garbage import collect
from heald.errors import InvalidArgument, NotFound
from heald.runtime.executor.parallel_schedule import dependencies, schedule_of_partition
from heald.runtime.executor.step import Step
from heald.runtime.executor.task_partition import TaskPartition
from heald.runtime.service.runtime import runtime
from plugins_for_tests import counting_queue_plugin as queues

pytestmark = pytest.mark.filterwarnings("ignore:work_queues.wrong.name")  # which one test asks for
X = np.float32([1, 2, 3])
CONFIG = {
    "plugins": {"load": ["plugins_for_tests.counting_queue_plugin"]},
    "work_queue": {"name": "counting", "threads": 2, "seed": 1},
    "work_queues": {"own": {"name": "counting", "threads": 2, "seed": 2}, "other": {"threads": 1},
                    "alone": {"name": "single_threaded"}, "wrong": {"name": "countin"}},
}
OWN = heald.RunOptions(work_queue="own")


@pytest.fixture(autouse=True)
def _forget():
    queues.tasks.clear()
    queues.closed.clear()


def make_session():
    works = (node(op, f"Work>{op}", "x") for op in ("Task", "Blocking", "Split"))
    return heald.Session(graph(placeholder("x"), *works, node("two", "Work>Task", "Task")), CONFIG)


@pytest.mark.parametrize("fetch", ["Task", "Blocking", "Split"])
def test_tasks_of_kernels_go_to_the_queue_that_the_run_names(fetch):
    with make_session() as session:
        assert session.run(fetch, {"x": X}).tolist() == [2, 3, 4]
        own_tasks = queues.tasks.copy()
        assert own_tasks[1] >= 1
        assert own_tasks[2] == 0
        assert session.run(fetch, {"x": X}, options=OWN).tolist() == [2, 3, 4]
        assert queues.tasks[1] == own_tasks[1]
        assert queues.tasks[2] >= 1


@pytest.mark.parametrize("name", ["own", "other", "alone"])
def test_calls_that_wait_for_tasks_run_in_any_queue(name):
    with make_session() as session:
        for _ in range(20):
            assert session.run("two", {"x": X}, options=heald.RunOptions(work_queue=name)).tolist() == [3, 4, 5]


def test_a_parallel_schedule_is_helped_by_the_queue_of_the_run():
    nodes = [node(name, "Exp", "x") for name in "ab"]
    unfused = CONFIG | {"passes": {"disable": ["fusion"]}}
    with heald.Session(graph(placeholder("x"), *nodes, node("y", "AddV2", "a", "b")), unfused) as session:
        host, executable = session.host, session.prepare(["a", "b", "y"], ["x"]).executable(((3,),))
        layout = executable.layout
        partition = TaskPartition.of([[index] for index in range(len(layout.lists.flat))], dependencies(layout))
        schedule = schedule_of_partition(layout, host, executable.autotuner.schedule, partition)
        for workers, seed in ((host, 1), (host.workers("own"), 2)):
            step, frame = Step(host), schedule.make_frame()
            assert step.workers is host
            step.workers = workers
            workers.work_queue.quiesce()  # a new queue runs tasks of its trial
            frame.registers[0], frame.registers[-1] = X, step
            before = queues.tasks.copy()
            schedule.run(frame, step)
            assert queues.tasks - before == {seed: 1}


def test_a_named_queue_is_made_when_a_run_first_names_it_and_closed_with_its_host():
    collect()  # hosts of other tests
    queues.closed.clear()
    host = runtime(CONFIG).host
    assert host.workers("own") is host.workers("own")
    assert host.workers("own").work_queue.parallelism_level == 2
    assert host.workers("other").work_queue.parallelism_level == 1
    host.close()
    assert queues.closed == [2]
    host.workers("own")
    del host
    collect()
    assert queues.closed == [2, 2]


@pytest.mark.parametrize(("queue", "error", "message"), [
    ("onw", NotFound, "no work queue is called 'onw'; config names alone, other, own, wrong; did you mean own?"),
    ("zzz", NotFound, "describe it in config, as [work_queues.NAME]"),
    ("wrong", NotFound, "no work queue is called 'countin'; [work_queues.wrong] name: one of counting, "),
    (2, InvalidArgument, "RunOptions.work_queue is a name or None, not int; name a section [work_queues.NAME]"),
])
def test_a_wrong_name_is_an_error_that_says_the_way_out(queue, error, message):
    with make_session() as session:
        with pytest.raises(error) as caught:
            session.run("Task", {"x": X}, options=heald.RunOptions(work_queue=queue))
        assert message in str(caught.value)
        assert session.run("Task", {"x": X}).tolist() == [2, 3, 4]


def test_a_config_without_named_queues_says_so():
    session = heald.Session(graph(placeholder("x"), node("y", "Neg", "x")))
    with pytest.raises(NotFound, match="'own'; config names none; describe it in config"):
        session.run("y", {"x": X}, options=OWN)
