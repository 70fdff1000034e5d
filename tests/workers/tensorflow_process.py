"""Real TensorFlow in a process of its own: the asking side of tensorflow_worker."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from heald.graphs.graph.attr_value import Func, ShapeAttr
from heald.runtime.contract.op import OpDef, SignatureTensor
from heald.runtime.values.dtypes import DType
from heald.runtime.values.tensor_proto import TensorValue


class TensorFlow:
    """Started with the first question, and anew when a question has ended it. `python` has the package tensorflow."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._process: Any = None

    def answer(
        self, op: OpDef, attrs: Mapping[str, Any], inputs: Sequence[tuple[SignatureTensor, np.ndarray[Any, Any]]],
        way: str,
    ) -> Any:
        """Outputs, (code, message) of an error, or None where TensorFlow's process has ended. tensorflow_worker
        describes the places "eager", "graph" and "shapes"."""
        plain_attrs = {name: (op.attrs[name].type, plain(value)) for name, value in attrs.items()}
        typed = [(tensor.dtype.name, x) for tensor, x in inputs]
        request = op.name, plain_attrs, typed, len(op.expand_outputs(attrs)), way
        if self._process is None:
            worker = Path(__file__).with_name("tensorflow_worker.py")
            self._process = subprocess.Popen([self._python, str(worker)], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)  # noqa: S301 - we started it
        except (EOFError, BrokenPipeError):
            self.close()
            return None

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


def plain(value: Any) -> Any:
    """An attribute as data that another process understands."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, ShapeAttr):
        return [-1 if n is None else n for n in value]
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, Func | TensorValue):
        raise LookupError("functions and tensors are no attributes of a single op here")
    return value
