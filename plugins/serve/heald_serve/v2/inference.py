"""The protocol without a transport: readiness, documents, and one inference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from heald.errors import HealdError, InvalidArgument, NotFound, Unimplemented

from ..awaiting import outputs_of
from ..later import Later, convert_later, value_or_raise
from ..metrics import Cells
from ..models.model_lists import ModelLists
from ..models.model_manager import ModelManager
from ..models.servable import AVAILABLE, LOADING, UNLOADING, Lease
from ..models.served_model import ServedSignature
from ..models.version_folders import is_version
from ..predict import Arrays, Prediction, Predictor, check_filter, choose_outputs
from .datatypes import check_datatypes
from .model_control import ModelControl
from .model_documents import config_document, model_document
from .statistics import Statistics

SIGNATURE_PARAMETER = "signature"
_STATES = {AVAILABLE: "READY", LOADING: "LOADING", UNLOADING: "UNLOADING"}
_UNSERVED_PARAMETERS = {"shared_memory_region": "is in shared memory, which the server does not share",
                        "classification": "is wanted as classes, which the server does not make"}


class InferCall(NamedTuple):
    """An inference. `read_inputs` makes the arrays. `output_names`: none for all. `deadline`: as of a Prediction."""

    name: str
    version: str
    signature: str
    read_inputs: Callable[[], Arrays]
    output_names: Sequence[str] = ()
    deadline: float | None = None
    on_disconnect: list[Callable[[], object]] | None = None


class InferResult(NamedTuple):
    """`answer`: the answer, as the front wrote it."""

    name: str
    version: str
    answer: Any


class Inference:
    """Any front may call, in the event loop of its own. `may_control` allows load and unload.

    `shared`: the cells of all workers.
    """

    def __init__(
        self, manager: ModelManager, predictor: Predictor, lists: ModelLists, *, may_control: bool = False,
        shared: Cells | None = None,
    ) -> None:
        self._manager, self._predictor = manager, predictor
        self._statistics = Statistics(shared)
        self.control = ModelControl(manager, lists, is_allowed=may_control)

    def is_ready(self) -> bool:
        return self._manager.is_ready()

    def is_model_ready(self, name: str, version: str) -> bool:
        """Raises NotFound for a model that does not exist, InvalidArgument for a version that is no number."""
        number = version_number(version)
        return any(row.state == AVAILABLE for row in self._manager.statuses(name, number))

    def model_document(self, name: str, version: str, signature: str = "") -> dict[str, Any]:
        with self._find(name, version) as lease:
            versions = [row.version for row in self._manager.statuses(name) if row.state == AVAILABLE]
            return model_document(lease, lease.signature(signature), versions)

    def config_document(self, name: str, version: str) -> dict[str, Any]:
        with self._find(name, version) as lease:
            return config_document(lease, lease.signature(""))

    def statistics_document(self, name: str, version: str) -> dict[str, Any]:
        """The statistics of a model's versions, of all models without a name."""
        number = version_number(version)
        names = [name] if name else self._manager.names()
        return self._statistics.document((model, row.version) for model in names
                                         for row in self._manager.statuses(model, number))

    def index_rows(self, *, is_ready: bool = False) -> list[dict[str, Any]]:
        """The models of the server's list, with the states of their versions."""
        return [row for row in self._index_rows() if not is_ready or row["state"] == "READY"]

    def _index_rows(self) -> Iterator[dict[str, Any]]:
        for name in self._manager.served_names():
            try:
                statuses = self._manager.statuses(name)
            except NotFound:
                yield {"name": name, "version": "", "state": "UNAVAILABLE", "reason": "no version"}
                continue
            for row in statuses:
                yield {"name": name, "version": str(row.version), "state": _STATES.get(row.state, "UNAVAILABLE"),
                       "reason": "" if row.error is None else str(row.error)}

    def _find(self, name: str, version: str) -> Lease:
        return self._manager.find(name, version_number(version))

    def check_room(self) -> None:
        """Raises Unavailable while an inference would be refused."""
        self._predictor.check_room()

    def admission(self) -> AbstractContextManager[None]:
        """A place for an inference. Raises Unavailable."""
        return self._predictor.admission()

    async def infer(
        self, call: InferCall, convert: Callable[[Callable[[], Any]], Any],
        write: Callable[[Arrays, ServedSignature], Any],
    ) -> InferResult:
        """Run an inference. `convert` runs a conversion and `write` makes the answer of the outputs."""
        with self._find(call.name, call.version) as lease:
            start = perf_counter()
            try:
                signature = _signature(lease, call.signature)
                check_filter(signature, call.output_names)
                inputs = await convert(call.read_inputs)
                check_datatypes(lease.name, signature.inputs, inputs)
                read = perf_counter()
                outputs = await outputs_of(self._predictor, Prediction(lease, signature, inputs, call.deadline),
                                           call.on_disconnect)
                ran = perf_counter()
                chosen = choose_outputs(outputs, call.output_names)
                answer = await convert(lambda: write(chosen, signature))
            except HealdError:
                self._statistics.add_failure(lease.name, lease.version, perf_counter() - start)
                raise
            self._statistics.add_success(lease.name, lease.version, _inferences(inputs), {
                "compute_input": read - start, "compute_infer": ran - read, "compute_output": perf_counter() - ran})
            return InferResult(lease.name, str(lease.version), answer)

    def infer_directly(
        self, call: InferCall, write: Callable[[Arrays], Any]
    ) -> InferResult | Later[InferResult] | None:
        """Run an inference here where its run is brief; None for any other. Raises as `infer`."""
        lease, joined = self._find(call.name, call.version), None
        try:
            if not isinstance(call.signature, str) or not self._predictor.may_be_brief(lease):
                return None
            start = perf_counter()
            signature = _signature(lease, call.signature)
            check_filter(signature, call.output_names)
            prediction = Prediction(lease, signature, call.read_inputs())
            read = perf_counter()
            outputs = self._predictor.run_briefly(prediction)
            if outputs is not None:
                return self._finish(call, prediction, outputs, write, start, read)
            joined = self._predictor.join_turn(prediction)
            return None if joined is None else convert_later(
                joined, lambda outcome: self._finish_joined(call, prediction, outcome, write, start, read))
        finally:
            if joined is None:
                lease.close()

    def _finish_joined(
        self, call: InferCall, prediction: Prediction, outcome: Arrays | HealdError, write: Callable[[Arrays], Any],
        start: float, read: float
    ) -> InferResult:
        with prediction.lease as lease:
            try:
                return self._finish(call, prediction, value_or_raise(outcome), write, start, read)
            except HealdError:
                self._statistics.add_failure(lease.name, lease.version, perf_counter() - start)
                raise

    def _finish(
        self, call: InferCall, prediction: Prediction, outputs: Arrays, write: Callable[[Arrays], Any], start: float,
        read: float
    ) -> InferResult:
        """The result of a run that began at `start`, with inputs since `read`."""
        lease, ran = prediction.lease, perf_counter()
        answer = write(choose_outputs(outputs, call.output_names))
        self._statistics.add_success(lease.name, lease.version, _inferences(prediction.inputs), {
            "compute_input": read - start, "compute_infer": ran - read, "compute_output": perf_counter() - ran})
        return InferResult(lease.name, str(lease.version), answer)


def _signature(lease: Lease, name: str) -> ServedSignature:
    try:
        return lease.signature(name)
    except NotFound as error:
        raise InvalidArgument(error.message) from None


def _inferences(inputs: Arrays) -> int:
    """The rows of the first input, 1 for one without."""
    first = next(iter(inputs.values()), None)
    return len(first) if first is not None and np.ndim(first) else 1


def version_number(text: str) -> int | None:
    """The number; None for the empty text. Raises InvalidArgument."""
    if not text:
        return None
    if not is_version(text):
        raise InvalidArgument(f"'{text[:100]}' is no version")
    return int(text)


def check_parameters(parameters: Mapping[str, Any], where: str) -> None:
    """Raises Unimplemented for a parameter without which the answer would be another one."""
    for name, text in _UNSERVED_PARAMETERS.items():
        if name in parameters:
            raise Unimplemented(f"{where} {text}")
