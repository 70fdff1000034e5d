"""The suites of the other hooks pass on our own plugins, and fail on broken ones, each by the rule that it breaks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import heald_conformance
import pytest
from conformance.reports import Report
from heald.runtime.service import runtime
from heald_conformance import Broken
from heald_conformance.case import cases
from heald_conformance.hook_subject import HOOKS
from heald_conformance.hooks import handlers, meetings, queues

HERE = Path(__file__).parent
DATA = HERE.parent / "data" / "graphs"
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
    ("passes.a_pass_keeps_the_values_of_random_graphs", "loses_what_is_kept", "pass.graph"),
    ("passes.a_pass_keeps_the_values_of_random_graphs", "takes_neg_for_abs", "pass.values"),
    ("passes.a_pass_keeps_the_values_of_random_graphs", "never_ends", "returns"),
    ("passes.graphs_that_a_pass_changes_are_counted", "loses_what_is_kept", "pass.graph"),
    ("passes.a_second_run_of_a_pass_changes_nothing", "adds_at_each_run", "pass.repeats"),
    ("passes.a_pass_returns_the_same_graph_each_time", "counts_its_runs", "pass.deterministic"),
    ("passes.a_pass_leaves_its_input_as_it_is", "writes_to_constants", "pass.input"),
    ("passes.a_pass_keeps_what_it_declares", "replaces_ops", "pass.declares"),
    ("compilers.a_compiler_claims_groups_that_it_may_have", "leaves_a_gap", "compiler.claim"),
    ("compilers.a_compiler_claims_the_same_groups_each_time", "counts_its_claims", "compiler.deterministic"),
    ("compilers.a_compiler_keeps_the_values_of_random_graphs", "takes_neg_for_abs", "compiler.values"),
    ("compilers.a_compiler_keeps_the_values_of_random_graphs", "keeps_the_first_feed", "compiler.values"),
    ("compilers.a_compiler_keeps_the_values_of_random_graphs", "never_compiles", "returns"),
    ("compilers.a_kernel_keeps_to_its_operands", "writes_its_inputs", "compiler.operands"),
    ("compilers.a_refusal_says_why_and_changes_nothing", "declines_in_silence", "compiler.declines"),
    ("compilers.threads_run_a_kernel_at_once", "is_for_one_thread", "compiler.threads"),
    ("loaders.one_loader_recognises_the_file", "IsRecognisedTwice", "loader.recognise"),
    ("loaders.a_loader_recognises_no_stranger[text]", "TakesText", "loader.recognise"),
    ("loaders.recognise_is_light", "ReadsTheFile", "loader.light"),
    ("loaders.a_source_describes_itself", "DescribesNothing", "loader.describe"),
    ("loaders.a_description_reads_no_weights", "ReadsWeights", "loader.weights"),
    ("loaders.signatures_name_tensors_of_the_graph", "NamesNoTensor", "loader.signatures"),
    ("loaders.signatures_name_tensors_of_the_graph", "HasNoGraph", "loader.graph"),
    ("loaders.an_unknown_signature_is_a_typed_error", "TakesAnySignature", "loader.signatures"),
    ("loaders.the_initial_state_fits_the_graph", "StartsANodeThatIsNotThere", "loader.state"),
    ("loaders.a_file_that_was_cut_off_is_a_typed_error", "RaisesValueError", "loader.errors"),
    ("loaders.damaged_bytes_are_a_typed_error_or_a_model", "RaisesValueError", "loader.errors"),
    ("loaders.threads_open_a_file_at_once", "IsBusy", "loader.threads"),
    ("loaders.a_model_of_the_file_is_loaded", "HasNoGraph", "loader.graph"),
    ("handlers.results_are_those_of_the_device[Neg]", "passeson", "handler.results"),
    ("handlers.errors_are_those_of_the_device", "raisesitsown", "handler.errors"),
    ("handlers.inputs_stay_as_they_are[Neg]", "writesinputs", "handler.inputs"),
    ("handlers.many_calls_are_told_apart", "mixescalls", "handler.results"),
    ("handlers.threads_execute_at_once", "isforonethread", "handler.threads"),
    ("handlers.a_call_does_not_wait_for_a_pending_input", "readsinputs", "handler.pending"),
    ("handlers.a_failed_input_fails_the_result", "hideserrors", "handler.errors"),
    ("meetings.a_tensor_arrives", "no_rendezvous", "rendezvous.factory"),
    ("meetings.a_tensor_arrives", "LosesTensors", "rendezvous.recv"),
    ("meetings.a_tensor_arrives", "Blocks", "rendezvous.waits"),
    ("meetings.tensors_of_a_key_arrive_in_order", "IsLastInFirstOut", "rendezvous.recv"),
    ("meetings.keys_are_told_apart", "LooksAtNamesAlone", "rendezvous.recv"),
    ("meetings.a_dead_tensor_arrives_dead", "SendsTheDeadAsNone", "rendezvous.dead"),
    ("meetings.an_abort_ends_all_waiting", "KeepsWaiting", "rendezvous.abort"),
    ("meetings.threads_send_and_receive_at_once", "TakesNoThreads", "rendezvous.threads"),
    ("sessions.results_have_the_structure_of_the_fetches", "NoSession", "session.factory"),
    ("sessions.results_have_the_structure_of_the_fetches", "ReturnsTuples", "session.run"),
    ("sessions.a_callable_takes_its_feeds_in_order", "SortsFeeds", "session.make_callable"),
    ("sessions.a_released_callable_refuses_calls", "NeverReleases", "session.make_callable"),
    ("sessions.a_connection_puts_one_tensor_in_the_place_of_another", "IgnoresConnections", "session.connections"),
    ("sessions.a_wrong_connection_is_a_typed_error", "IgnoresConnections", "session.connections"),
    ("sessions.a_send_meets_the_recv_of_its_step", "LosesSends", "session.rendezvous"),
    ("sessions.a_recv_without_a_send_ends_with_its_step", "LosesSends", "session.rendezvous"),
    ("sessions.steps_at_once_receive_their_own_tensors", "MixesSteps", "session.rendezvous"),
    ("sessions.state_stays_until_it_is_reset", "NeverResets", "session.state"),
    ("sessions.a_session_is_extended", "IgnoresExtend", "session.extend"),
    ("sessions.a_step_is_run_in_parts", "ForgetsParts", "session.partial_run"),
    ("sessions.every_node_has_a_device", "PlacesNothing", "session.placement"),
    ("sessions.a_mistake_is_a_typed_error", "RaisesKeyError", "session.errors"),
    ("sessions.a_closed_session_refuses_work", "NeverCloses", "session.close"),
    ("sessions.threads_run_steps_at_once", "IsForOneThreadAtATime", "session.threads"),
]
LOCAL = "heald.runtime.host.rendezvous:LocalRendezvous"
OWN = {  # options -> the plugins' files beside the installed ones
    ("--queue", "last_in_first_out", "--allocator", "pages"): ["last_in_first_out.py", "page_allocator.py"],
    ("--queue", "multi_threaded", "--queue", "single_threaded", "--queue", "seeded"): [],
    ("--allocator", "plain", "--allocator", "pooled", "--allocator", "counting", "--allocator", "poisoning"): [],
    ("--compiler", "blocked"): ["blocked_compiler.py"],
    ("--pass", "identities", "--pass", "duplicates", "--pass", "strip-defaults", "--pass", "references"): [],
    ("--handler", "batching", "--handler", "logging", "--rendezvous", LOCAL): ["batching_handler.py"],
}


@pytest.fixture(scope="module")
def planted_scopes():
    """Default runtimes with the broken plugins: False is that without compilers, which take part in every session."""
    files = {are_compilers: [str(HERE / f"planted_{part}.py") for part in parts]
             for are_compilers, parts in ((False, ("hooks", "handlers", "sessions")), (True, ("compilers",)))}
    with pytest.MonkeyPatch.context() as patch:
        for module in (queues, handlers, meetings):
            patch.setattr(module, "PROMPT", 0.6)
        yield {are_compilers: runtime.ProcessScope(paths) for are_compilers, paths in files.items()}


@pytest.mark.parametrize(("case_id", "name", "rule"), PLANTED)
def test_a_broken_plugin_breaks_its_rule(planted_scopes, monkeypatch, tmp_path, case_id, name, rule):
    monkeypatch.setattr(runtime, "process_scope", planted_scopes[case_id.startswith("compilers.")])
    if name in ("never_ends", "never_compiles"):
        monkeypatch.setattr(sys.modules["heald_conformance.case"], "DEADLINE", 0.6)
    if case_id.startswith("loaders."):
        path = tmp_path / "file"
        path.write_bytes(f"broken {name} 3".encode().ljust(5 << 20 if name == "ReadsWeights" else 0))
        name = str(path)
    if case_id.startswith("sessions."):
        name = f"planted://{name}"
    if case_id.startswith("meetings."):
        name = f"conformance.planted_handlers:{name}"
    with pytest.raises(Broken, match=rf"rule:     {rule}: "):
        heald_conformance.case(case_id)(name)


def test_every_case_has_a_broken_plugin():
    tested = {case_id.partition("[")[0] for case_id, *_ in PLANTED}
    assert {case.id for level in HOOKS.values() for case in cases(level)} == tested


@pytest.mark.parametrize(("content", "plugins"), [
    ("checked 3", ["plugin_of_checked_formats"]), (DATA / "keras_tiny_cnn.pb", []),
])
def test_our_own_loaders_pass(tmp_path, monkeypatch, content, plugins):
    path = content
    if isinstance(content, str):
        path = tmp_path / "model.checked"
        path.write_text(content, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent / "plugins_for_tests"))
    report = Report(tmp_path, "--loader", str(path), *(f"--plugin={plugin}" for plugin in plugins))
    assert report.status == 0, report.output[-3000:]
    assert report.passed.total() > 40


def test_our_own_sessions_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent / "plugins_for_tests"))
    report = Report(tmp_path, "--session", "told", "--session", "local", "--plugin", "plugin_of_sessions")
    assert report.status == 0, report.output[-3000:]
    assert set(report.passed) == {"told", "local"}


@pytest.mark.parametrize("options", OWN)
def test_our_own_plugins_pass(tmp_path, options):
    plugins = [argument for file in OWN[options] for argument in ("--plugin", str(EXAMPLES / file))]
    report = Report(tmp_path, *options, *plugins)
    assert report.status == 0, report.output[-3000:]
    assert set(report.passed) == {name.rpartition("host.")[2] for name in options[1::2]}
    if "--pass" in options:
        assert "identities  changed 7 of 8 graphs\n" in report.output
        assert "references  changed 0 of 8 graphs: no case has tried it" in report.output
    if "--compiler" in options:
        assert re.search(r"blocked  claimed groups of [1-8] of 8 graphs", report.output)


def test_a_lost_file_of_a_loader_is_one_usage_error(tmp_path):
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--pyargs",
                           "heald_conformance", "--loader", "gone.json"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr.strip()) == (4, "ERROR: --loader: no such file: gone.json")
