"""A session over two workers of Ray, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.ray_process import run_ray_worker

WORKER = Path(__file__).parents[1] / "workers" / "on_ray_sessions.py"


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("ray", reason="Ray is not installed", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("ray")
    return run_ray_worker([WORKER, folder / "facts.json"], folder, 180)


def test_modules_beside_the_caller_run_in_no_process(facts):
    assert not facts["hostile"]


def test_two_workers_equal_one_process(facts):
    assert facts["equal"]


def test_a_variable_lives_on_its_worker_between_steps(facts):
    assert facts["state"]


def test_a_killed_worker_ends_the_step_with_its_name_and_a_later_step_works(facts):
    kind, text, seconds_after_notice = facts["killed"]
    assert kind == "Unavailable"
    assert "/job:worker/replica:0/task:1" in text
    assert seconds_after_notice < 1
    assert facts["again"][:2] == ["", ""]


def test_a_restarted_worker_has_the_extended_graph_and_the_saved_variables(facts):
    assert facts["extended"]
    assert facts["restored"]


def test_a_variable_that_no_checkpoint_has_is_uninitialised_and_the_error_says_so(facts):
    assert facts["lost"][0] == "FailedPrecondition"
    assert "task:1 was restarted, and the checkpoint" in facts["lost"][1]


def test_another_cluster_is_refused_while_one_is_connected(facts):
    assert facts["elsewhere"][0] == "FailedPrecondition"
