"""Makes the applications that applications.py runs, with TensorFlow: models as users write and save them.

    pip install tensorflow-cpu       (in an environment of its own, without heald)
    python benchmarks/application_models.py FOLDER [NAME ...]

FOLDER/NAME has case.json, arrays.npz and the application's files, one for each form:

    SavedModel       its signature serving_default
    frozen           convert_variables_to_constants_v2, with functional control flow (If, While)
    frozen, lowered  the same with lower_control_flow: Switch, Merge, Enter, Exit
    graph            a GraphDef whose variables are initialised and changed by its nodes

case.json: {"application": text, "tolerance": largest difference, "forms": {form: {"path", "feeds" and "fetches"
(tensors by name; a SavedModel has its signature instead), "before" (nodes run once), "targets", "steps" (runs in
turn)}}}. arrays.npz has "in/NAME" and "out/NAME"; with steps, the outputs of all runs are stacked. Outputs are
TensorFlow's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported

import application_inference as infer
import application_training as train
import keras
import tensorflow as tf
from application_forms import SEED

APPLICATIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "text classifier, LSTM": partial(infer.text_classifier, cell="LSTM"),
    "text classifier, GRU": partial(infer.text_classifier, cell="GRU"),
    "string lookup": infer.string_lookup,
    "text features": infer.text_features,
    "masked bidirectional RNN": infer.bidirectional,
    "generation, transformer": infer.generation,
    "generation, GRU with branches": infer.branching_generation,
    "beam search": infer.beam_search,
    "detection": infer.detection,
    "CRF": infer.crf,
    "map_fn, scan, foldl": infer.maps_and_scans,
    "switch_case": infer.switch_case,
    "assertions, loops with exits": infer.checked_loops,
    "TF1 loop of TensorArrays": infer.v1_loop,
    "TF1 dynamic_rnn of LSTMCell": infer.dynamic_rnn_of_cells,
    "training, momentum, resources": partial(train.dense, optimizer=train.momentum, resources=True),
    "training, momentum, references": partial(train.dense, optimizer=train.momentum, resources=False),
    "training, Adam, resources": partial(train.dense, optimizer=train.adam, resources=True),
    "training, Adam, references": partial(train.dense, optimizer=train.adam, resources=False),
    "training, SGD, references": partial(train.dense, optimizer=train.descent, resources=False),
    "training, embeddings, momentum, resources": partial(
        train.embeddings, optimizer=train.momentum, resources=True),
    "training, embeddings, momentum, references": partial(
        train.embeddings, optimizer=train.momentum, resources=False),
    "training, embeddings, Adam, resources": partial(train.embeddings, optimizer=train.adam, resources=True),
    "training of an LSTM's loop": train.lstm_loop,
    "training signature, GRU, Adam": train.keras_signature,
}


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tf.get_logger().setLevel("ERROR")
    failed = False
    names = [name for name in APPLICATIONS if not sys.argv[2:] or any(word in name for word in sys.argv[2:])]
    for name in names:
        folder = Path(sys.argv[1]) / name.replace(",", "").replace("'", "").replace(" ", "_").lower()
        folder.mkdir(parents=True, exist_ok=True)
        keras.utils.set_random_seed(SEED)
        try:
            case = {"application": name, **APPLICATIONS[name](folder)}
        except Exception as error:  # noqa: BLE001 - the others are made all the same
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
            continue
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
        print(name)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
