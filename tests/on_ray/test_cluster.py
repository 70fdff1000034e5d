"""One local cluster of Ray, in a process of its own: data sets, the engine of `heald run`, and the safety of both.

The process runs in a folder of hostile modules, and in a network namespace of its own where the system permits one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from fake_cuda.host_compiler import is_there
from harness.ray_process import run_ray_worker

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "tests" / "workers" / "on_ray_cluster.py"
FAKE_CUDA = ROOT / "tests" / "fake_cuda" / "plugin.py"
MOST_SECONDS = 300


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("ray.data", reason="Ray's data sets are not installed", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("ray")
    words = [WORKER, ROOT / "examples" / "digits", folder / "facts.json", "" if is_there() else FAKE_CUDA]
    return run_ray_worker(words, folder, MOST_SECONDS)


def test_modules_beside_the_caller_run_in_no_process(facts):
    assert not facts["hostile"]


def test_a_local_cluster_asks_for_tokens(facts):
    assert facts["mode"] == "token"


def test_a_second_connection_is_refused(facts):
    assert facts["again"][0] == "FailedPrecondition"


def test_a_resource_that_no_node_declares_is_an_error_with_the_line_that_declares_it(facts):
    kind, text = facts["lacking"]
    assert kind == "FailedPrecondition"
    assert "a place for 1 of 2 actors with OPENCL=1 each" in text
    assert """ray start --address=HOST:PORT --resources='{"OPENCL": 1}'""" in text
    assert facts["lacking_seconds"] < 10


def test_two_actors_over_a_data_set_equal_one_process_bit_for_bit(facts):
    assert facts["data"]["equal"]
    assert facts["data"]["columns"] == ["Identity_1", "at"]


def test_a_model_on_the_workers_is_loaded_from_its_path(facts):
    assert facts["actors"]["shared_outputs"] == facts["actors"]["outputs"] == 3


@pytest.mark.parametrize(("case", "kind", "text"), [
    ("bad_feed", "InvalidArgument", "feed 'image' has shape [2,3,8,1]"),
    ("versions", "FailedPrecondition", f"Python is 3.{sys.version_info[1]} here and 2.7 at the caller"),
    ("damaged", "DataLoss", "arrived with other bytes"),
    ("lost", "Unavailable", "the model's files are lost"),
    ("config", "NotFound", "plugin example_device is blocked"),
    ("absent", "NotFound", "absent.pb"),
    ("outside", "InvalidArgument", "leads out of the model's folder"),
    ("killed", "Unavailable", "a worker died"),
])
def test_a_fault_of_an_actor_is_a_typed_error(facts, case, kind, text):
    assert facts["actors"][case][0] == kind
    assert text in facts["actors"][case][1]


def test_an_actor_with_a_gpu_of_rays_runs_on_gpu_0(facts):
    if "gpu" not in facts:
        pytest.skip("no C++ compiler, which the fake driver needs")
    assert facts["gpu"]["equal"]
    assert "GPU:0" in facts["gpu"]["without"][1]


def test_a_models_files_are_written_once_for_all_actors_of_a_node(facts):
    assert facts["files"] == [1, True]


def test_two_runs_at_once_and_one_that_was_cut_off_write_the_table_of_one_machine(facts):
    assert facts["runs"]["equal"]
    assert facts["runs"]["lines"] >= 2000
    assert facts["runs"]["shards"] == sorted({*facts["runs"]["shards"]}), "each run went on behind the one before it"


@pytest.mark.parametrize(("run", "status", "text"), [
    ("alone", 1, "rows.jsonl:71"), ("together", 1, "rows.jsonl:71"),
    ("actor_killed", 1, "a worker died"), ("caller_killed", -9, ""), ("interrupted", 130, ""),
    ("resumed", 1, "2,159 rows"),
])
def test_each_end_of_a_run_has_its_status_and_reason(facts, run, status, text):
    assert facts["runs"][run][0] == status, facts["runs"][run][1]
    assert text in facts["runs"][run][1]
