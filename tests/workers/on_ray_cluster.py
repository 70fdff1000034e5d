"""A cluster of Ray on this machine, in a folder of hostile modules: facts about it, as JSON in the file of argument 2.

    python -P on_ray_cluster.py DIGITS FACTS.json PLUGIN

`PLUGIN`: The path of the plugin of the fake CUDA driver, or "".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

import heald
import heald_ray
import numpy as np
from heald.errors import HealdError
from heald_ray.model_files import read_model_files
from heald_ray.predictor import model_arguments, predictor_arguments
from heald_ray.run_engine import BatchRunner, BatchStep, _get
from heald_ray.sent_config import pack_config

DIGITS = Path(sys.argv[1])
MODEL = DIGITS / "frozen.pb"
IMAGES = np.load(DIGITS / "test.npz")["image"]
SMALL_BATCH = 32
MOST_RUN_SECONDS = 100
GPU_SHARE = 0.5
# `heald run` with small shards, so that it writes many of them. A call of an actor cuts it off: by the actor's end, by
# its own end, or by Ctrl-C.
CUT_RUN = """
import os, signal, sys, threading
import heald_tools.rows.sinks as sinks
from heald.__main__ import main
from heald_ray.run_engine import BatchStep

def kill_actor():
    from ray._private.state import actors  # the public list needs the dashboard
    mine = BatchStep.actors[0]._actor_id.hex()
    os.kill(actors(mine)["Pid"], signal.SIGKILL)

CUTS = {"actor_killed": kill_actor, "caller_killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "interrupted": lambda: os.kill(os.getpid(), signal.SIGINT), "": None}
sinks.SHARD_ROWS = 300
cut, lock, calls, call_actor = CUTS[sys.argv.pop(1)], threading.Lock(), [], BatchStep.__call__

def call(self, *arrays):
    with lock:
        calls.append(None)
        if len(calls) == 150 and cut is not None:
            BatchStep.actors = self._actors
            cut()
    return call_actor(self, *arrays)

BatchStep.__call__ = call
sys.argv[0] = "heald"
sys.exit(main())
"""


def error_of(function: Any, *arguments: Any, **options: Any) -> list[str]:
    try:
        function(*arguments, **options)
    except HealdError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:  # noqa: BLE001 - Ray Data wraps the errors of actors
        return [type(error).__name__, str(error)[-2000:]]
    return []


def start_heald_run(*words: str, cut: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", CUT_RUN, cut, "run", str(MODEL), *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def heald_run(*words: str, cut: str = "") -> tuple[int, str]:
    return end_of(start_heald_run(*words, cut=cut))


def end_of(run: subprocess.Popen[str]) -> tuple[int, str]:
    _, text = run.communicate(timeout=MOST_RUN_SECONDS)
    return run.returncode, text


def data_set_facts(ray: Any) -> dict[str, Any]:
    data = ray.data.from_items([{"at": at, "image": image} for at, image in enumerate(IMAGES)], override_num_blocks=4)

    results = data.map_batches(
        heald_ray.Predictor, fn_constructor_kwargs=predictor_arguments(MODEL, keep=["at"], outputs=["Identity_1"]),
        batch_format="numpy", batch_size=SMALL_BATCH, compute=ray.data.ActorPoolStrategy(size=2),
        resources={"OPENCL": 0.5})
    rows = sorted(results.take_all(), key=lambda row: row["at"])
    expected = heald.load(MODEL, outputs=["Identity_1"])(IMAGES)
    return {"equal": np.array_equal([row["Identity_1"] for row in rows], expected), "columns": sorted(rows[0])}


def start_runner(ray: Any, options: dict[str, Any] | None = None, **changes: Any) -> tuple[BatchStep, Any]:
    runner = ray.remote(BatchRunner).options(**(options or {})).remote()
    _get(runner.load.remote({**model_arguments(MODEL), **changes}))
    return BatchStep([runner]), runner


class Owner:
    """An actor whose end loses its objects, as the end of a caller does."""

    def put(self, contents: Any) -> list[Any]:
        import ray

        return [ray.put(contents)]


def actor_facts(ray: Any) -> dict[str, Any]:
    def start(**changes: Any) -> None:
        start_runner(ray, **changes)

    files, contents = read_model_files(MODEL)
    wrong = np.array(contents)
    wrong[-1] ^= 1
    step, runner = start_runner(ray)
    outputs = step(IMAGES[:2])
    owner = ray.remote(Owner).remote()
    lost = ray.get(owner.put.remote(contents))
    ray.kill(owner)
    shared, _ = start_runner(ray, **model_arguments(DIGITS / "saved_model", model_on_workers=True))
    facts = {"outputs": len(outputs), "shared_outputs": len(shared(IMAGES[:2])),
             "bad_feed": error_of(step, IMAGES[:2, :3]),
             "versions": error_of(start, versions={"Python": "2.7"}),
             "damaged": error_of(start, model=[files.name, files.sizes, "0" * 64], contents=[ray.put(wrong)]),
             "lost": error_of(start, model=[files.name, files.sizes, "1" * 64], contents=lost),
             "config": error_of(start, device="EXAMPLE:0",
                                config=pack_config({"plugins": {"block": ["example_device"]}})),
             "absent": error_of(start, model="absent.pb"),
             "outside": error_of(start, model=["../x", files.sizes, files.digest])}
    ray.kill(runner)
    attempts = (error_of(step, IMAGES[:2]) for _ in range(10_000))  # Ray kills some time after the call
    return facts | {"killed": next(error for error in attempts if error)}


def gpu_facts(ray: Any) -> dict[str, Any]:
    """An actor that has a GPU of Ray's, with the fake driver as a plugin, and one without any CUDA."""
    def options(**variables: str) -> dict[str, Any]:
        return {"num_gpus": GPU_SHARE, "runtime_env": {"env_vars": variables}}

    without = error_of(start_runner, ray, options(HEALD_PLUGINS__BLOCK='["cuda"]'))
    step, runner = start_runner(ray, options(HEALD_PLUGINS__LOAD=json.dumps([sys.argv[3]])))
    digits = step(IMAGES[:2])[0]
    ray.kill(runner)
    return {"without": without, "equal": np.array_equal(digits, heald.load(MODEL)(IMAGES[:2])["Identity"])}


def run_facts(address: str) -> dict[str, Any]:
    """Undisturbed runs, two of them at a time, and one that is cut off three times and goes on each time."""
    rows = [json.dumps({"image": image.tolist()}) for image in IMAGES] * 4
    rows[70] = json.dumps({"image": "no image"})
    Path("rows.jsonl").write_text("\n".join(rows) + "\n")
    words = ["--input", "rows.jsonl", "--batch", "4", "--output"]
    # The cluster asks for a token, which --insecure does not turn off.
    engine = ["--engine", "ray", "--address", address, "--insecure", "--actors"]
    facts: dict[str, Any] = {"alone": heald_run(*words, "alone/")}
    together = start_heald_run(*words, "together/", *engine, "2")
    shards = []
    for cut in ("actor_killed", "caller_killed", "interrupted"):
        facts[cut] = heald_run(*words, "resumed/", *engine, "1", "--resume", cut=cut)
        shards.append(len(list(Path("resumed").glob("part-*"))))
    facts["together"] = end_of(together)
    facts["resumed"] = heald_run(*words, "resumed/", *engine, "1", "--resume")
    tables = {folder: "".join(file.read_text() for file in sorted(Path(folder).glob("part-*")))
              for folder in ("alone", "together", "resumed")}
    return facts | {"shards": shards, "lines": tables["alone"].count("\n"),
                    "equal": tables["alone"] == tables["together"] == tables["resumed"]}


def files_of_model() -> dict[str, tuple[int, int]]:
    """The files of models on this node, each with its inode and time: a second writing changes them."""
    folder = Path(tempfile.gettempdir())
    return {file.relative_to(folder).as_posix(): (file.stat().st_ino, file.stat().st_mtime_ns)
            for file in folder.glob("heald-ray-*/*/*")}


def main() -> None:
    seconds = {}
    start = monotonic()
    heald_ray.connect("local", cpus=6, resources={"OPENCL": 1, "GPU": 1})
    import ray

    ray.data.DataContext.get_current().enable_progress_bars = False
    facts: dict[str, Any] = {"mode": os.environ["RAY_AUTH_MODE"], "again": error_of(heald_ray.connect, "local")}
    before = monotonic()
    facts["lacking"] = error_of(heald_ray.check_resources, {"OPENCL": 1}, actors=2, seconds=0.5)
    facts["lacking_seconds"] = monotonic() - before
    facts["data"] = data_set_facts(ray)
    files = files_of_model()
    seconds["data"] = monotonic() - start
    facts["actors"] = actor_facts(ray)
    seconds["actors"] = monotonic() - start
    if sys.argv[3]:
        facts["gpu"] = gpu_facts(ray)
    seconds["gpu"] = monotonic() - start
    facts["runs"] = run_facts(ray.get_runtime_context().gcs_address)
    seconds["runs"] = monotonic() - start
    facts["files"] = [len(files), files_of_model() == files]
    ray.shutdown()
    Path(sys.argv[2]).write_text(json.dumps(facts | {"seconds": seconds}))


if __name__ == "__main__":
    main()
