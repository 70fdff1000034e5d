"""An application of Ray Serve over HTTP, in a process of its own. The program that makes it ends before any request.

The processes run in a folder of hostile modules, and in a network namespace of their own where the system permits one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness.ray_process import run_ray_worker

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "tests" / "workers" / "on_ray_serving.py"
MOST_SECONDS = 400


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("ray.serve", reason="Ray Serve is not installed", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("serve")
    return run_ray_worker([WORKER, ROOT / "examples" / "digits", folder / "facts.json"], folder, MOST_SECONDS)


def test_modules_beside_the_caller_run_in_no_process(facts):
    assert not facts["hostile"]


def test_an_answer_is_that_of_one_process_byte_for_byte(facts):
    assert facts["many_rows"]


def test_each_of_the_requests_that_share_runs_gets_its_own_row(facts):
    assert facts["single_rows"]


@pytest.mark.parametrize(("request_name", "status", "text"), [
    ("status", 200, "AVAILABLE"), ("health", 200, "success"), ("absent", 404, "Servable not found"),
    ("malformed", 400, "JSON Parse error"), ("shape", 400, "feed 'image' has shape [1,1]"),
    ("other_verb", 501, "a call of heald serve"),
])
def test_a_request_has_the_status_and_the_text_of_heald_serve(facts, request_name, status, text):
    assert facts[request_name][0] == status
    assert text in facts[request_name][1]


def test_full_queues_refuse_with_503_and_answer_the_others(facts):
    assert set(facts["overload"]) == {"200", "503"}
    assert facts["refusals"] == ["Request dropped due to backpressure "]


def test_a_load_starts_a_second_replica(facts):
    assert facts["scaled"]


def test_replicas_start_again_on_a_node_without_the_files_after_the_end_of_their_caller(facts):
    assert facts["killed_keepers"] == 1
    assert facts["killed"] >= 1
    assert facts["again"]
    assert facts["files"] == 1


def test_serves_shutdown_leaves_no_actor(facts):
    assert facts["left"] == []
