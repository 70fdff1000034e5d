"""A cluster of Ray on this machine, in a folder of hostile modules: facts about it, as JSON in the file of argument 2.

    python -P on_ray_cluster.py DIGITS FACTS.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import heald
import heald_ray
import numpy as np
from heald.errors import HealdError
from heald_ray.model_files import read_files
from heald_ray.predictor import model_arguments, predictor_arguments
from heald_ray.run_engine import BatchRunner, Step, _get

DIGITS = Path(sys.argv[1])
MODEL = DIGITS / "frozen.pb"
IMAGES = np.load(DIGITS / "test.npz")["image"]
HOSTILE = ("numpy", "json", "random", "heald", "heald_ray", "ray", "google", "sitecustomize")
SMALL_BATCH = 32


def error_of(function: Any, *arguments: Any, **options: Any) -> list[str]:
    try:
        function(*arguments, **options)
    except HealdError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:  # noqa: BLE001 - Ray Data wraps the errors of actors
        return [type(error).__name__, str(error)[-2000:]]
    return []


def heald_run(*words: str) -> tuple[int, str]:
    command = [sys.executable, "-P", "-m", "heald", "run", str(MODEL), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def data_set_facts(ray: Any) -> dict[str, Any]:
    data = ray.data.from_items([{"at": at, "image": image} for at, image in enumerate(IMAGES)], override_num_blocks=4)

    def predictions(arguments: dict[str, Any], batch: int, actors: int) -> Any:
        results = data.map_batches(heald_ray.Predictor, fn_constructor_kwargs=arguments, batch_format="numpy",
                                   batch_size=batch, compute=ray.data.ActorPoolStrategy(size=actors))
        return sorted(results.take_all(), key=lambda row: row["at"])

    rows = predictions(predictor_arguments(MODEL, keep=["at"], outputs=["Identity_1"]), SMALL_BATCH, 2)
    expected = heald.load(MODEL, outputs=["Identity_1"])(IMAGES)
    shared = predictions(predictor_arguments(DIGITS / "saved_model", model_on_workers=True, keep=["at"]), 100, 1)
    return {"equal": np.array_equal([row["Identity_1"] for row in rows], expected),
            "columns": sorted(rows[0]), "shared_rows": len(shared),
            "unknown_input": error_of(predictions, predictor_arguments(MODEL, inputs={"x": "image"}), 32, 1)}


def actor_facts(ray: Any) -> dict[str, Any]:
    def start(**changes: Any) -> tuple[Step, Any]:
        runner = ray.remote(BatchRunner).remote()
        _get(runner.load.remote({**model_arguments(MODEL), **changes}))
        return Step([runner]), runner

    files, contents = read_files(MODEL)
    wrong = np.array(contents)
    wrong[-1] ^= 1
    step, runner = start()
    outputs = step(IMAGES[:2])
    facts = {"outputs": len(outputs), "bad_feed": error_of(step, IMAGES[:2, :3]),
             "versions": error_of(start, versions={"Python": "2.7"}),
             "damaged": error_of(start, model=[files.name, files.sizes, "0" * 64], contents=[ray.put(wrong)]),
             "outside": error_of(start, model=["../x", files.sizes, files.digest])}
    ray.kill(runner)
    return facts | {"killed": error_of(step, IMAGES[:2])}


def run_facts(address: str) -> dict[str, Any]:
    rows = [json.dumps({"image": image.tolist()}) for image in IMAGES[:100]]
    rows[70] = json.dumps({"image": "no image"})
    Path("rows.jsonl").write_text("\n".join(rows) + "\n")
    words = ["--input", "rows.jsonl", "--batch", "16", "--output"]
    engine = ["--engine", "ray", "--address", address, "--actors", "2"]
    facts = {"alone": heald_run(*words, "alone/"), "together": heald_run(*words, "together/", *engine),
             "strict": heald_run(*words, "resumed/", *engine, "--strict"),
             "resumed": heald_run(*words, "resumed/", *engine, "--resume")}
    tables = {folder: "".join(file.read_text() for file in sorted(Path(folder).glob("part-*")))
              for folder in ("alone", "together", "resumed")}
    return facts | {"lines": tables["alone"].count("\n"),
                    "equal": tables["alone"] == tables["together"] == tables["resumed"]}


def main() -> None:
    mark = Path("mark").absolute()
    for name in HOSTILE:
        Path(f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write(__file__)\nraise SystemExit\n")
    heald_ray.connect("local", cpus=2)
    import ray

    ray.data.DataContext.get_current().enable_progress_bars = False
    start = monotonic()
    lacking = error_of(heald_ray.check_resources, {"OPENCL": 1}, seconds=0.5)
    facts = {"lacking": lacking, "lacking_seconds": monotonic() - start, "mode": os.environ["RAY_AUTH_MODE"],
             "again": error_of(heald_ray.connect, "local"), "data": data_set_facts(ray), "actors": actor_facts(ray)}
    facts["runs"] = run_facts(ray.get_runtime_context().gcs_address)
    ray.shutdown()
    Path(sys.argv[2]).write_text(json.dumps(facts | {"hostile": mark.exists()}))


if __name__ == "__main__":
    main()
