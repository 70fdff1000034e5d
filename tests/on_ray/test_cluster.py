"""One local cluster of Ray, in a process of its own: data sets, the engine of `heald run`, and the safety of both.

The process runs in a folder of hostile modules, and in a network namespace of its own where the system permits one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.namespaces import namespace_words

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "tests" / "workers" / "on_ray_cluster.py"
MOST_SECONDS = 300


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("ray.data", reason="Ray's data sets are not installed", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("ray")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "PYTHON", "HEALD_"))}
    # Sockets have short paths, so that Ray's own folder is beside the system's other temporary files.
    environment |= {"HOME": str(folder)}
    command = [sys.executable, "-P", str(WORKER), str(ROOT / "examples" / "digits"), str(folder / "facts.json")]
    hostile = folder / "hostile"
    hostile.mkdir()
    done = subprocess.run([*namespace_words(), *command], cwd=hostile, env=environment, capture_output=True, text=True,
                          timeout=MOST_SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "facts.json").read_text("utf-8"))


def test_modules_beside_the_caller_run_in_no_process(facts):
    assert not facts["hostile"]


def test_a_local_cluster_asks_for_tokens(facts):
    assert facts["mode"] == "token"


def test_a_second_connection_is_refused(facts):
    assert facts["again"][0] == "FailedPrecondition"


def test_a_resource_that_no_node_declares_is_an_error_with_the_line_that_declares_it(facts):
    kind, text = facts["lacking"]
    assert kind == "FailedPrecondition"
    assert "0 of 1 actors with OPENCL=1" in text
    assert """ray start --address=HOST:PORT --resources='{"OPENCL": 1}'""" in text
    assert facts["lacking_seconds"] < 10


def test_two_actors_over_a_data_set_equal_one_process_bit_for_bit(facts):
    assert facts["data"]["equal"]
    assert facts["data"]["columns"] == ["Identity_1", "at"]


def test_a_model_on_the_workers_is_loaded_from_its_path(facts):
    assert facts["data"]["shared_rows"] == 540


def test_an_unknown_input_ends_a_data_set_with_the_reason(facts):
    assert "the model has no input 'x'; inputs: image" in facts["data"]["unknown_input"][1]


@pytest.mark.parametrize(("case", "kind", "text"), [
    ("bad_feed", "InvalidArgument", "feed 'image' has shape [2,3,8,1]"),
    ("versions", "FailedPrecondition", f"Python is 3.{sys.version_info[1]} here and 2.7 at the caller"),
    ("damaged", "DataLoss", "arrived with other bytes"),
    ("outside", "InvalidArgument", "leads out of the model's folder"),
    ("killed", "Unavailable", "a worker died"),
])
def test_a_fault_of_an_actor_is_a_typed_error(facts, case, kind, text):
    assert facts["actors"][case][0] == kind
    assert text in facts["actors"][case][1]


def test_the_engine_writes_the_table_of_one_machine_with_its_bad_rows_and_resume(facts):
    runs = facts["runs"]
    assert runs["equal"]
    assert runs["lines"] >= 99
    assert [runs[name][0] for name in ("alone", "together", "resumed")] == [1, 1, 1]
    assert all("rows.jsonl:71" in runs[name][1] for name in ("alone", "together", "resumed", "strict"))
    assert "99 rows" in runs["resumed"][1]
