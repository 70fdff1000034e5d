"""A run of a model by TensorFlow, in a process of the interpreter that has it. It writes a recording.

The process gets the text of `tensorflow_script`, so nothing of heald is imported there. Its working folder is a new
folder, from which it imports nothing of the user's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from heald.api import install_hint
from heald.api.cli import ticking
from heald.errors import InvalidArgument, NotFound, Unavailable, Unimplemented, Unknown

from . import outputs as output_files
from .recording import recorded_arrays

NO_TENSORFLOW = 3  # the script's status where TensorFlow is not installed
_SUFFIXES = (".pb", ".pbtxt")
_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "PYTHONDONTWRITEBYTECODE": "1"}


class Request(NamedTuple):
    """A run: the model's absolute path, its signature and tags, the arrays of its inputs, and names of tensors.

    `fed` and `fetched` have the tensors of inputs and outputs by name. `tensors` are recorded besides the outputs.
    """

    model: str
    is_saved_model: bool
    signature: str | None
    tags: Sequence[str] | None
    feeds: dict[str, Any]
    fed: dict[str, str]
    fetched: dict[str, str]
    tensors: Sequence[str]


def run_tensorflow(request: Request, python: str | None, output: str) -> None:
    """Run a model by the TensorFlow of this interpreter, and write the recording to a file.

    Raises Unimplemented for a form that TensorFlow does not load by itself, NotFound without the interpreter,
    Unavailable without TensorFlow in it, InvalidArgument for its error.
    """
    if not request.is_saved_model and Path(request.model).suffix.lower() not in _SUFFIXES:
        raise Unimplemented(f"TensorFlow is asked for SavedModels, .pb and .pbtxt files, and not for '{request.model}'",
                            hint="record its results with --record of another form of the model")
    with TemporaryDirectory() as folder:
        inputs = str(Path(folder) / "inputs.npz")
        output_files.write(inputs, recorded_arrays(request.feeds, {}, {}))
        told = request._asdict() | {"feeds": inputs, "output": str(Path(folder) / "results.npz")}
        with ticking("running tensorflow"):
            _run_script(python or sys.executable, json.dumps(told), folder)
        _keep(told["output"], inputs, output)


def _run_script(python: str, request: str, folder: str) -> None:
    script = Path(__file__).with_name("tensorflow_script.py").read_text("utf-8")
    try:
        done = subprocess.run([python, "-c", script], input=request, cwd=folder, env=os.environ | _ENVIRONMENT,  # noqa: S603
                              capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise NotFound(f"'{python}' cannot be started: {error.strerror}",
                       hint="--tensorflow PYTHON is the interpreter of an environment with TensorFlow") from error
    if done.returncode == NO_TENSORFLOW:
        raise Unavailable(f"tensorflow is not installed for {python}",
                          hint=f"--tensorflow PYTHON names another interpreter; {install_hint('tensorflow-cpu')}")
    if done.returncode < 0:
        raise Unknown(f"the process of TensorFlow was ended by signal {-done.returncode}")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise InvalidArgument(f"TensorFlow does not run the model: {lines[-1] if lines else 'it gave no reason'}")


def _keep(results: str, inputs: str, output: str) -> None:
    """Write inputs and results into one file."""
    from .array_files import ArrayArchive

    arrays: dict[str, Any] = {}
    for file in (inputs, results):
        with ArrayArchive(file) as archive:
            arrays |= {name: archive[name] for name in archive.names}
    output_files.write(output, arrays)
