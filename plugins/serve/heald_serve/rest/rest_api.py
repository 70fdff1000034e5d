"""The route of /v1/: a request becomes a call, a prediction and an answer.

The event loop parses small bodies and writes small answers; a thread has the large ones. Checks have TensorFlow
Serving's order: path, JSON, object, signature_name, model, signature, tensors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from time import monotonic, perf_counter
from typing import Any, TypeVar

from heald.errors import HealdError, InvalidArgument

from ..awaiting import outputs_of
from ..classify import INPUTS
from ..http.messages import Request, Response, error_response
from ..later import Later, as_typed, convert_later, value_or_raise
from ..models.model_manager import ModelManager
from ..models.servable import Lease
from ..predict import Arrays, Prediction, Predictor
from ..request_counts import RequestCounts
from .json_text import debug_text, parse_object, parsed_bytes
from .model_info import metadata_body, status_body
from .paths import Call, parse_path
from .request_tensors import request_tensors
from .response_text import columns_body, rows_body

APIS = {"predict": "Predict", "classify": "Classify", "regress": "Regress"}
LARGEST_ON_LOOP_BYTES = 64 << 10
T = TypeVar("T")


class RestApi:
    """`seconds`: the time of a run, None for no limit. `conversions`: the threads of large bodies."""

    def __init__(
        self, manager: ModelManager, predictor: Predictor, conversions: Executor, counts: RequestCounts, *,
        seconds: float | None = 30.0, checks_methods: bool = False,
    ) -> None:
        self._manager, self._predictor, self._conversions, self._counts = manager, predictor, conversions, counts
        self._seconds, self._checks_methods = seconds, checks_methods

    async def __call__(self, request: Request) -> Response:
        """The answer. TensorFlow Serving counts every request, and the time of each that succeeds."""
        call = parse_path(request.method, request.target)
        try:
            with self._counts.measure(call.name, *_labels_of(call)):
                return await self._answer(call, request)
        except HealdError as error:
            return error_response(error, call.name)

    def answer_directly(
        self, target: str, _: Mapping[bytes, bytes], body: bytes
    ) -> Response | Later[Response] | None:
        """The answer of a prediction whose run is brief. None for any other request, and for one that fails: the
        ordinary way answers it."""
        start = perf_counter()
        if len(body) > LARGEST_ON_LOOP_BYTES:
            return None
        try:
            call = parse_path("POST", target)
            return self._predict_directly(call, body, start) if call.verb == "predict" else None
        except HealdError:
            return None

    def _predict_directly(self, call: Call, body: bytes, start: float) -> Response | Later[Response] | None:
        lease = self._manager.find(call.name, call.version, call.label)
        joined: Later[Arrays] | None = None
        try:
            if not self._predictor.may_be_brief(lease):
                return None
            document = parse_object(body)
            signature = _signature(lease, signature_name(document))
            inputs, are_rows = request_tensors(document, signature.inputs)
            prediction = Prediction(lease, signature, inputs)
            write = rows_body if are_rows else columns_body
            outputs = self._predictor.run_briefly(prediction)
            if outputs is not None:
                answer = write(outputs)
                self._counts.add(call.name, *_labels_of(call), 0, perf_counter() - start)
                return Response(200, answer, model=call.name)
            joined = self._predictor.join_turn(prediction)
            return None if joined is None else self._answer_later(call, joined, lease, write, start)
        finally:
            if joined is None:
                lease.close()

    def _answer_later(
        self, call: Call, joined: Later[Arrays], lease: Lease, write: Callable[[Arrays], bytes], start: float
    ) -> Later[Response]:
        """The answer of a prediction in a batch."""
        def answer(outcome: Arrays | HealdError) -> Response:
            lease.close()
            code = 0
            try:
                return Response(200, write(value_or_raise(outcome)), model=call.name)
            except Exception as fault:  # noqa: BLE001 - a fault of a model is an answer
                error = as_typed(fault)
                code = error.code
                return error_response(error, call.name)
            finally:
                self._counts.add(call.name, *_labels_of(call), code, perf_counter() - start)

        return convert_later(joined, answer)

    async def _answer(self, call: Call, request: Request) -> Response:
        if call.verb == "status":
            return Response(200, status_body(self._manager.statuses(call.name, call.version)), model=call.name)
        if call.verb == "metadata":
            with self._manager.find(call.name, call.version, call.label) as lease:
                return Response(200, metadata_body(lease), model=call.name)
        self._predictor.check_room()
        body = await request.body()
        size = len(body)
        with self._predictor.admission():
            if size > LARGEST_ON_LOOP_BYTES:
                request.reserve(parsed_bytes(body))
            document = await self._convert(size, partial(parse_object, body))
            if call.verb == "predict":
                return await self._predict(call, request, document, size)
            return await self._infer(call, request, document)

    async def _predict(self, call: Call, request: Request, document: Mapping[str, Any], size: int) -> Response:
        name = signature_name(document)
        with self._manager.find(call.name, call.version, call.label) as lease:
            signature = _signature(lease, name)
            inputs, are_rows = await self._convert(size, lambda: request_tensors(document, signature.inputs))
            outputs = await self._run(Prediction(lease, signature, inputs), request)
            write = rows_body if are_rows else columns_body
            nbytes = sum(getattr(array, "nbytes", 0) for array in outputs.values())
            return Response(200, await self._convert(nbytes, lambda: write(outputs)), model=call.name)

    async def _infer(self, call: Call, request: Request, document: Mapping[str, Any]) -> Response:
        from .examples import METHODS, WRITERS, example_strings

        name = signature_name(document)
        examples = example_strings(document, call.verb)
        with self._manager.find(call.name, call.version, call.label) as lease:
            signature = METHODS[call.verb].signature_of(lease, name, checks_method=self._checks_methods)
            outputs = await self._run(Prediction(lease, signature, {INPUTS: examples}), request)
            return Response(200, WRITERS[call.verb](outputs, len(examples)), model=call.name)

    async def _run(self, prediction: Prediction, request: Request) -> Arrays:
        """The outputs. A client that is gone, or a deadline that has passed, ends the run."""
        deadline = None if self._seconds is None else monotonic() + self._seconds
        return await outputs_of(self._predictor, prediction._replace(deadline=deadline), request.on_disconnect,
                                late=f"the run took longer than {self._seconds} s")

    async def _convert(self, size: int, convert: Callable[[], T]) -> T:
        """Convert here, or in a thread where the loop would be held up."""
        if size <= LARGEST_ON_LOOP_BYTES:
            return convert()
        return await asyncio.get_running_loop().run_in_executor(self._conversions, convert)


def _labels_of(call: Call) -> tuple[str, str]:
    """The API and the entrypoint of a call, in the metrics."""
    return APIS.get(call.verb, "GetModelStatus"), call.verb if call.verb in APIS else ""


def signature_name(document: Mapping[str, Any]) -> str:
    """The signature that a body names, "" for the default. Raises InvalidArgument for a name that is no string."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise InvalidArgument(f"JSON Value: {debug_text(document)} 'signature_name' key must be a string value.")
    return name


def _signature(lease: Lease, name: str) -> Any:
    try:
        return lease.signature(name)
    except HealdError as error:
        raise InvalidArgument(error.message) from None

