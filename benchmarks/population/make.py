"""Makes the models of the population, with the interpreter of an environment that has TensorFlow and not heald.

    python benchmarks/population/make.py FOLDER --environment newest|tf_keras|2.15 [--only WORD] [--again] [--times]

models.json lists every model: name, environment, maker (module:function), seed and arguments. Its rows only grow.
FOLDER/NAME gets the model's files, case.json, inputs.npz and answers.npz; FOLDER stays out of the repository.
digests.json has the digest of each model's inputs. A model whose inputs differ from its first ones is not made.

    newest    tensorflow-cpu 2.21 with Keras 3
    tf_keras  the same with tf_keras
    2.15      tensorflow-cpu 2.15 with Keras 2 and Estimator

A process of its own makes each model, since graphs of TensorFlow 1 switch the behaviour of the whole process.
--times measures TensorFlow again, on models that exist.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
MODELS, DIGESTS = HERE / "models.json", HERE / "digests.json"

Row = Mapping[str, Any]


def read_rows(environment: str, word: str) -> list[dict[str, Any]]:
    """The rows of this environment, each with its family."""
    rows = [{"family": family, **row} for family, rows in json.loads(MODELS.read_text()).items() for row in rows]
    return [row for row in rows if row["environment"] == environment and word in f"{row['family']}/{row['name']}"]


def digest_of(calls: Any) -> str:
    import numpy as np

    digest = hashlib.sha256()
    for call in calls:
        for name, array in call.items():
            array = np.asarray(array)
            content = repr(array.tolist()).encode() if array.dtype.kind in "OSU" else array.tobytes()
            digest.update(repr((name, array.shape)).encode() + content)
    return digest.hexdigest()[:16]


def check_digest(row: Row, calls: Any) -> None:
    """Raise ValueError for inputs that differ from the first ones."""
    digest = digest_of(calls)
    earlier = json.loads(DIGESTS.read_text()).get(row["name"]) if DIGESTS.exists() else None
    if earlier not in (None, digest):
        raise ValueError(f"the inputs have the digest {digest}, and digests.json has {earlier}")


def make_model(row: Row, folder: Path) -> None:
    import cases
    import numpy as np
    import population_arrays
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    tf.keras.utils.set_random_seed(row["seed"])
    module, _, function = row["maker"].partition(":")
    arguments = dict(row.get("arguments", {}))
    maker = getattr(importlib.import_module(module), function)
    if getattr(maker, "wants_folder", False):
        arguments["folder"] = folder
    form = maker(np.random.default_rng(row["seed"]), **arguments)
    description = cases.save_form(form, folder)
    calls = cases.signature_calls(folder, description, form.calls)
    check_digest(row, form.calls)
    run = cases.open_case(folder, description)
    answers = [run(call) for call in calls]
    cases.check_answers(answers)
    population_arrays.write_calls(folder / "inputs.npz", calls)
    population_arrays.write_calls(folder / "answers.npz", answers)
    case = {
        **row,
        **description,
        "digest": digest_of(form.calls),
        "tolerance": form.tolerance,
        "tensorflow": tf.__version__,
        "seconds": cases.time_case(run, calls),
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def time_model(row: Row, folder: Path) -> None:
    import cases
    import population_arrays
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    case = json.loads((folder / "case.json").read_text())
    case["seconds"] = cases.time_case(
        cases.open_case(folder, case), population_arrays.read_calls(folder / "inputs.npz")
    )
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def run_apart(work: Callable[[Row, Path], None], row: Row, folder: Path) -> bool:
    """Do the work in a child, which forks before TensorFlow has threads. True if it succeeded."""
    import cases

    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    status = 1
    try:
        work(row, folder)
        status = 0
    except BaseException as error:  # noqa: BLE001 - the child ends here, and its parent goes on
        cases.say_failure(row["name"], error)
        if os.environ.get("POPULATION_TRACE"):
            import traceback

            traceback.print_exc()
    finally:
        os._exit(status)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--environment", required=True, choices=["newest", "tf_keras", "2.15"])
    parser.add_argument("--only", default="", metavar="WORD", help="models with this word in FAMILY/NAME")
    parser.add_argument("--again", action="store_true", help="make models that exist, too")
    parser.add_argument("--times", action="store_true", help="measure TensorFlow on models that exist")
    options = parser.parse_args()
    os.environ["TF_USE_LEGACY_KERAS"] = str(int(options.environment == "tf_keras"))
    failures = 0
    rows = read_rows(options.environment, options.only)
    for number, row in enumerate(rows, 1):
        folder = options.folder / row["name"]
        exists = (folder / "case.json").exists()
        if options.times:
            failures += exists and not run_apart(time_model, row, folder)
        elif not exists or options.again:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            succeeded = run_apart(make_model, row, folder)
            failures += not succeeded
            print(f"{number}/{len(rows)} {row['name']}{'' if succeeded else ': FAILED'}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
