"""The suites of the other hooks pass on our own plugins, and fail on broken ones, each by the rule that it breaks."""

from __future__ import annotations

from pathlib import Path

import heald_conformance
import pytest
from conformance.reports import Report
from heald.runtime.service import runtime
from heald_conformance import Broken
from heald_conformance.case import cases
from heald_conformance.hooks import queues

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
PLANTED = [  # case, name of the broken object, the rule of the message
    ("queues.the_parallelism_level_is_a_number_from_one_on", "SaysNothingOfThreads", "queue.parallelism_level"),
    ("queues.every_task_runs_once", "HasNoMethods", "queue.factory"),
    ("queues.every_task_runs_once", "LosesATask", "queue.tasks"),
    ("queues.every_task_runs_once", "DoublesATask", "queue.tasks"),
    ("queues.tasks_that_tasks_add_run_too", "DropsTasksOfTasks", "queue.tasks"),
    ("queues.add_task_leaves_the_task_to_others", "RunsTasksItself", "queue.add_task"),
    ("queues.quiesce_waits_for_the_last_task", "IsQuietTooEarly", "queue.quiesce"),
    ("queues.await_values_waits_for_its_values", "AnswersTooEarly", "queue.await_values"),
    ("queues.await_values_sees_a_value_of_another_thread", "PollsSeldom", "queue.await_values"),
    ("queues.waits_with_a_timeout_return_false", "ForgetsTimeouts", "queue.await_values"),
    ("queues.waits_with_a_timeout_return_false", "AnswersTooEarly", "queue.await_values"),
    ("queues.a_blocking_task_holds_up_no_other", "BlocksForAll", "queue.add_blocking_task"),
    ("queues.blocking_tasks_run_once_or_are_not_taken", "RefusesAndRuns", "queue.add_blocking_task"),
    ("queues.a_task_that_raises_is_reported_and_ends_nothing", "HidesErrors", "queue.errors"),
    ("queues.a_task_cannot_wait_for_its_own_queue[await_values]", "WaitsForItself", "queue.in_task"),
    ("queues.a_closed_queue_refuses_work[add_task]", "TakesTasksWhenClosed", "queue.close"),
    ("queues.close_drops_tasks_and_waits_for_none", "FinishesBeforeItCloses", "queue.close"),
    ("queues.close_ends_the_threads", "LeavesThreads", "queue.close"),
    ("queues.a_forked_child_is_refused_at_once[quiesce]", "HangsInAChild", "queue.fork"),
    ("allocators.a_buffer_has_the_bytes_asked_for", "IsNoAllocator", "allocator.factory"),
    ("allocators.a_buffer_has_the_bytes_asked_for", "IsTooShort", "allocator.allocate"),
    ("allocators.a_buffer_has_the_bytes_asked_for", "GivesFloats", "allocator.allocate"),
    ("allocators.a_buffer_has_the_bytes_asked_for", "GivesReadOnly", "allocator.allocate"),
    ("allocators.a_buffer_starts_at_a_multiple_of_the_alignment", "ForgetsAlignment", "allocator.allocate"),
    ("allocators.no_two_buffers_share_a_byte", "GivesMemoryTwice", "allocator.ownership"),
    ("allocators.memory_lives_as_long_as_an_array_over_it", "TakesBackWhatIsUsed", "allocator.ownership"),
    ("allocators.a_second_deallocation_does_nothing", "TakesBackTwice", "allocator.ownership"),
    ("allocators.memory_that_is_not_there_is_resource_exhausted", "RaisesMemoryError", "allocator.memory"),
    ("allocators.the_limit_holds", "IgnoresItsLimit", "allocator.memory"),
    ("allocators.figures_follow_the_buffers", "NeverCountsBack", "allocator.stats"),
    ("allocators.figures_follow_the_buffers", "HasNoFigures", "allocator.stats"),
    ("allocators.threads_allocate_at_once", "IsForOneThread", "allocator.threads"),
    ("allocators.a_program_runs_in_its_memory", "GivesMemoryTwice", "allocator.ownership"),
]
OWN = {  # options -> the plugins' files beside the installed ones
    ("--queue", "last_in_first_out", "--allocator", "pages"): ["last_in_first_out.py", "page_allocator.py"],
    ("--queue", "multi_threaded", "--queue", "single_threaded", "--queue", "seeded"): [],
    ("--allocator", "plain", "--allocator", "pooled", "--allocator", "counting", "--allocator", "poisoning"): [],
}


@pytest.fixture(scope="module")
def planted_scope():
    """A default runtime with the broken plugins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "process_scope", runtime.ProcessScope([str(HERE / "planted_hooks.py")]))
        patch.setattr(queues, "PROMPT", 0.6)
        yield


@pytest.mark.parametrize(("case_id", "name", "rule"), PLANTED)
def test_a_broken_plugin_breaks_its_rule(planted_scope, case_id, name, rule):
    with pytest.raises(Broken, match=rf"rule:     {rule}: "):
        heald_conformance.case(case_id)(name)


def test_every_case_has_a_broken_plugin():
    tested = {case_id.partition("[")[0] for case_id, *_ in PLANTED}
    assert {case.id for level in ("queues", "allocators") for case in cases(level)} == tested


@pytest.mark.parametrize("options", OWN)
def test_our_own_plugins_pass(tmp_path, options):
    plugins = [argument for file in OWN[options] for argument in ("--plugin", str(EXAMPLES / file))]
    report = Report(tmp_path, *options, *plugins)
    assert report.status == 0, report.output[-3000:]
    assert set(report.passed) == set(options[1::2])
