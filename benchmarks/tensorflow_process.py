"""TensorFlow in a process of its own, which runs GraphDefs, and the works of session_works.py, by tf.compat.v1.Session
and times them when it is asked.

Run as a program it is that process; it needs tensorflow-cpu and NumPy, and not heald. It reads requests from stdin and
answers each on stdout, both as lines of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from session_works import WORKS
from timing import seconds


class TensorFlowError(Exception):
    """The text of an error of TensorFlow."""


class TensorFlow:
    """The process, as seen by its parent. Files for it lie in `folder`."""

    def __init__(self, python: str, folder: Path) -> None:
        """Start the process. Raises TensorFlowError when this Python has no TensorFlow."""
        self._folder, self._numbers = folder, count()
        self._process = subprocess.Popen([python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, text=True)
        try:
            self._answer()
        except TensorFlowError:
            self.close()
            raise

    def __enter__(self) -> TensorFlow:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process, which ends with its requests."""
        with self._process:
            pass

    def open(
        self, graph: bytes, fetch: str, feeds: Mapping[str, np.ndarray], *, one_thread: bool
    ) -> tuple[np.ndarray, Callable[[int], float]]:
        """The fetched array, and a function that returns the seconds of a run over so many runs.

        `one_thread`: all ops run on the thread that calls; else TensorFlow's default, all cores.
        """
        stem = self._folder / f"graph{next(self._numbers)}"
        stem.with_suffix(".pb").write_bytes(graph)
        np.savez(stem.with_suffix(".npz"), **feeds)
        number = self._ask(do="open", stem=str(stem), fetch=fetch, one_thread=one_thread)
        result = np.load(stem.with_suffix(".npy"))
        return result, lambda repeat: float(self._ask(do="time", number=number, repeat=repeat))

    def work(self, name: str, folder: Path) -> tuple[np.ndarray, Callable[[], float]]:
        """The array that a work of session_works finds, and a function that does the work for its seconds."""
        stem = self._folder / f"work{next(self._numbers)}"
        number = self._ask(do="work", stem=str(stem), name=name, folder=str(folder))
        result = np.load(stem.with_suffix(".npy"))
        return result, lambda: float(self._ask(do="turn", number=number))

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise TensorFlowError("the process of TensorFlow has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise TensorFlowError(answer["error"])
        return answer["is"]


def _open_graph_run(stem: Path, fetch: str, *, one_thread: bool) -> Callable[[], Any]:
    """A function that runs the graph once. The result of a first run is written beside it."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(v1.GraphDef.FromString(stem.with_suffix(".pb").read_bytes()), name="")
    config = v1.ConfigProto()
    if one_thread:
        config.inter_op_parallelism_threads, config.intra_op_parallelism_threads = -1, 1
    with np.load(stem.with_suffix(".npz")) as file:
        feeds = {name: file[name] for name in file}
    step = v1.Session(graph=graph, config=config).make_callable(fetch, [f"{name}:0" for name in feeds])
    np.save(stem.with_suffix(".npy"), step(*feeds.values()))
    return lambda: step(*feeds.values())


class _Sessions:
    """TensorFlow, as a client of session_works."""

    def session(self, path: Path, devices: int = 1) -> Any:
        from tensorflow.compat import v1

        with v1.Graph().as_default() as graph:
            v1.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name="")
        return v1.Session(graph=graph, config=v1.ConfigProto(device_count={"CPU": devices}))

    def act(self, session: Any, target: str) -> None:
        session.run(target)

    def extend(self, session: Any, path: Path) -> None:
        from tensorflow.compat import v1

        with session.graph.as_default():
            v1.import_graph_def(v1.GraphDef.FromString(path.read_bytes()), name="")


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries may print
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    def answer(**what: Any) -> None:
        print(json.dumps(what), file=answers)

    try:
        import tensorflow  # noqa: F401
    except ImportError as error:
        answer(error=str(error))
        return
    answer(**{"is": None})
    steps: list[Callable[[], Any]] = []
    turns: list[Callable[[], float]] = []
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "open":
                steps.append(_open_graph_run(Path(request["stem"]), request["fetch"], one_thread=request["one_thread"]))
                answer(**{"is": len(steps) - 1})
            elif request["do"] == "work":
                result, turn = WORKS[request["name"]](_Sessions(), Path(request["folder"]))
                np.save(f"{request['stem']}.npy", result)
                turns.append(turn)
                answer(**{"is": len(turns) - 1})
            elif request["do"] == "turn":
                answer(**{"is": turns[request["number"]]()})
            else:
                answer(**{"is": seconds(steps[request["number"]], request["repeat"])})
        except Exception as error:  # noqa: BLE001 - the parent tells it
            answer(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    _serve()
